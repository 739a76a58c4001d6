"""The command `anydml`: run and check JSON models, look operators and devices up.

Exit status: 0; 1 for a model that is wrong or fails, or anything else that fails; 2 for wrong
usage; 130 after Ctrl-C. An error is one message on standard error, never a traceback (but in
Python's development mode, ``python -X dev -m anydml``, for faults of the command itself).
"""

from __future__ import annotations

import codecs
import errno
import inspect
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import click

import anydml
from anydml import lookup
from anydml._json import shown
from anydml.backends import NAMES, cuda, is_name
from anydml.device import Device
from anydml.errors import AnyDMLError, ArgumentError
from anydml.levels import LATEST, FeatureLevel
from anydml.models import Limits, load_model, run_model
from anydml.models.files import system_reason
from anydml.models.loader import STANDARD_INPUT
from anydml.models.printing import visible
from anydml.models.report import report
from anydml.registry import OPERATORS, PREFIX, operator_meant, unknown_operator

# As many digits as Python makes a number of at any setting.
_SIZE: Final = re.compile(r"(\d{1,640})\s*(?:([KMGTPE])(?:iB|B)?|B)?", re.IGNORECASE)
_UNITS: Final = " KMGTPE"

_MOST_REPEATS: Final = 1_000_000

# For terminals that lack these characters.
_INSTEAD: Final = {"×": "x", "·": "*", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "←": "<-",
                   "→": "->", "…": "...", "µ": "u", "²": "^2", "Σ": "sum of"}  # fmt: skip


def _level(text: str) -> FeatureLevel:
    try:
        return FeatureLevel.parse(text)
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(
            f"expected a whole number of bytes, or one with a unit of K, M, G, T, P or E (powers "
            f"of 1024), such as 1000000, 512M or 4GiB, got {shown(text)}"
        )
    return int(match[1]) << 10 * _UNITS.index((match[2] or " ").upper())


def _repeats(text: int | str) -> int:
    text = str(text)  # an option's default comes as it is
    if re.fullmatch(r"[0-9]{1,20}", text) is None or not 1 <= int(text) <= _MOST_REPEATS:
        raise click.BadParameter(
            f"expected a whole number in 1..{_MOST_REPEATS}, got {shown(text)}"
        )
    return int(text)


class _PathType(click.Path):
    """Paths; an empty one, of a variable that is not set, is not the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("expected a path, got ''", param, ctx)
        return super().convert(value, param, ctx)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(anydml.__version__, message="anydml %(version)s")
def commands() -> None:
    """DirectML's operators on Linux: run and check models written for DxDispatch."""


def _model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--memory-limit",
            type=_size,
            metavar="SIZE",
            default="4GiB",
            show_default=True,
            help="The most memory that the model's resources take together.",
        ),
        click.option(
            "--overwrite",
            is_flag=True,
            help="Replace files that exist, and use the folder MODEL.out if it is there.",
        ),
        click.option(
            "--output-dir",
            type=_PathType(file_okay=False, path_type=Path),
            metavar="DIR",
            help="The folder that writeFile commands write to; by default a new one, MODEL.out, in "
            "the current folder.",
        ),
        click.option(
            "--input-dir",
            type=_PathType(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="The folder that files are read from; the model's own by default, and none for "
            "standard input.",
        ),
        click.option(
            "--feature-level",
            type=_level,
            metavar="LEVEL",
            default=LATEST.suffix,
            show_default=True,
            help="The level that operators are checked against.",
        ),
    ):
        command = option(command)
    return command


def _checked_device(_context: click.Context, _option: click.Parameter, name: str) -> str:
    if not is_name(name):
        raise click.BadParameter(f"{name!r} is not one of {', '.join((*NAMES, 'auto'))}")
    return name


_device_option = click.option(
    "--device",
    metavar="[cpu|cuda|cuda:N|reference|auto]",
    callback=_checked_device,
    default="cpu",
    show_default=True,
    help="Where the operators run.",
)


@commands.command(short_help="Run a JSON model.")
@click.argument("model", metavar="MODEL.json|-", type=_PathType(path_type=Path))
@_device_option
@click.option(
    "--repeat",
    type=_repeats,
    metavar="N",
    default=1,
    show_default=True,
    help="Run each dispatch so many times; what it leaves is what one leaves.",
)
@click.option("--timing", is_flag=True, help="Print how long each dispatch took.")
@_model_options
def run(
    model: Path,
    device: str,
    repeat: int,
    timing: bool,
    feature_level: FeatureLevel,
    input_dir: Path | None,
    output_dir: Path | None,
    overwrite: bool,
    memory_limit: int,
) -> None:
    """Run the commands of a JSON model, or of standard input (-), and print what they print.

    The model reads files in its own folder and writes into a new one only.
    """
    loaded = load_model(model, Limits(output_dir, memory_limit, input_dir, overwrite))
    for warning in loaded.warnings:
        _say(f"Warning: {warning}")
    chosen = Device(device, feature_level=feature_level)
    run_model(loaded, chosen, write=sys.stdout.write, repeat=repeat, timing=timing)


@commands.command(short_help="Say what is wrong with JSON models.")
@click.argument(
    "models", metavar="MODEL.json|-...", type=_PathType(path_type=Path), nargs=-1, required=True
)
@_device_option
@_model_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an array of a report for each.")
def check(
    models: tuple[Path, ...],
    device: str,
    feature_level: FeatureLevel,
    input_dir: Path | None,
    output_dir: Path | None,
    overwrite: bool,
    memory_limit: int,
    as_json: bool,
) -> None:
    """Say what is wrong with JSON models, and the lowest level that takes each operator.

    Every rule that an operator breaks, everything else that would stop a run, what does nothing
    (warnings), and the files that a run would write. Nothing is run. The exit status is 1 when
    anything is wrong.
    """
    if [*map(str, models)].count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input (-) can be read once only")
    limits = Limits(output_dir, memory_limit, input_dir, overwrite)
    chosen = Device(device, feature_level=feature_level)
    reports = []
    for path in models:
        found = report(path, chosen, limits)
        reports.append((found.good, found.as_json() if as_json else None))
        if as_json:
            continue
        if len(models) > 1:
            print(f"{visible(str(path))}:")
        if found.unreadable:
            sys.stdout.flush()  # the two may go to one place
            where = f"{visible(str(path))}: " if len(models) > 1 else ""
            _say("Error: " + "\n".join(f"{where}{problem}" for problem in found.unreadable))
        for line in found.lines():
            print(line)
    if as_json:
        print(json.dumps([text for _, text in reports], indent=1))
    if not all(good for good, _ in reports):
        raise click.exceptions.Exit(1)


@commands.command(short_help="List the operators, or show one.")
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="List what anydml lacks of DirectML, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: all of it, or one operator's.")
def ops(name: str | None, everything: bool, as_json: bool) -> None:
    """List the operators, or show what one of them means, takes and refuses.

    NAME is DirectML's, or that of a function of the same meaning: TOP_K1, torch.topk, Concat.
    """
    if name is not None:
        _show_operator(_operator(name), as_json)
    elif as_json:
        _echo_json(lookup.all_operators_data() if everything else lookup.operators_data())
    else:
        _echo_lines(lookup.all_operators(_width()) if everything else lookup.operators(_width()))


def _show_operator(name: str, as_json: bool) -> None:
    if as_json:
        _echo_json(lookup.operator_data(name))
        return
    operator = OPERATORS[name]
    print(f"{PREFIX}{operator.NAME}  (anydml.{operator.__name__})\n")
    print(f"{inspect.getdoc(inspect.getmodule(operator)) or ''}\n")
    if operator.ALSO_KNOWN_AS:
        print(f"Also known as: {', '.join(operator.ALSO_KNOWN_AS.split())}\n")
    _echo_lines(lookup.fields(operator, _width()))
    print()
    _echo_lines(lookup.support(operator, _width()))


def _operator(name: str) -> str:
    found = operator_meant(name)
    if found is None:
        raise click.UsageError(unknown_operator(name))
    return found


@commands.command(short_help="Show the devices that are here.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def devices(as_json: bool) -> None:
    """Show the devices that are here and how they compute."""
    if as_json:
        _echo_json(lookup.devices_data())
    else:
        _echo_lines(lookup.devices(_width()))


def _echo_lines(lines: Iterable[str]) -> None:
    print("\n".join(lines))


def _echo_json(value: Any) -> None:
    print(json.dumps(value, indent=1))


def _width() -> int | None:
    """How wide the terminal is; None where there is none, so that each row is one line."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


@commands.command()
def warm() -> None:
    """Compile all kernels for the GPUs of this machine, so that no first call waits for it."""
    found, _ = cuda.gpus()
    for device, gpu in enumerate(found):
        compiled, all_of_them = cuda.warm(device)
        click.echo(f"cuda:{device} ({gpu.name}): {compiled} of {all_of_them} compiled")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    _prepare_streams()
    try:
        status = commands.main(arguments, prog_name="anydml", standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe can still be told
    except click.ClickException as error:
        _tell(error.show)
        return error.exit_code
    except BrokenPipeError:
        _drop(sys.stdout)  # whoever reads has gone: nothing to tell
        return 1
    except (click.Abort, KeyboardInterrupt):
        return _failed("interrupted", 130)
    except MemoryError:
        return _failed("not enough memory")
    except AnyDMLError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(_system_error(error))
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        return _failed(
            f"this should not have happened ({type(error).__name__}: {error}); please report it, "
            "with what `python -X dev -m anydml` shows"
        )
    return status if isinstance(status, int) else 0


def _prepare_streams() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the command
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open to the end
    codecs.register_error("anydml", _shown_instead)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names in a model may have any character
            stream.reconfigure(errors="anydml")


def _shown_instead(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that the terminal's encoding lacks."""
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    escaped = (
        _INSTEAD.get(c) or c.encode("ascii", "backslashreplace").decode() for c in characters
    )
    return "".join(escaped), error.end


def _drop(stream: Any) -> None:
    """Leave nothing to be flushed at exit, which would fail again, with a status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tell(show: Callable[[], object]) -> None:
    try:
        show()
        sys.stderr.flush()
    except (OSError, UnicodeError):  # nobody is there to read it, or no letter can be written
        _drop(sys.stderr)


def _say(message: str) -> None:
    _tell(lambda: print(message, file=sys.stderr))


def _system_error(error: OSError) -> str:
    """What the system refuses, and why; a model's files have messages of their own."""
    where = "" if error.filename is None else f"{visible(str(error.filename))}: "
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        where = "standard output: "
    return f"{where}{system_reason(error)}"


def _failed(message: str, status: int = 1) -> int:
    try:
        sys.stdout.flush()  # what came before
    except (OSError, UnicodeError):  # standard output is what failed: its disk is full, say
        _drop(sys.stdout)
    _say(f"Error: {message}")
    return status
