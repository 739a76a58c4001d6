"""The command `anydml`: run and check JSON models, look operators and devices up, benchmark.

Exit status: 0; 1 for a model that is wrong or fails, or anything else that fails; 2 for wrong
usage; 130 after Ctrl-C. An error is one message on standard error.
"""

from __future__ import annotations

import inspect
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

import anydml
from anydml.backends import backends_here, cuda
from anydml.device import Device
from anydml.errors import AnyDMLError, ArgumentError
from anydml.levels import LATEST, FeatureLevel
from anydml.models import Limits, load_model, run_model
from anydml.models.printing import visible
from anydml.models.report import report
from anydml.ops._descriptor import Descriptor
from anydml.registry import OPERATORS, PREFIX

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_SIZE: Final = re.compile(r"(\d{1,15})\s*(?:([KMGT])(?:iB|B)?|B)?", re.IGNORECASE)
_UNITS: Final = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def _level(text: str) -> FeatureLevel:
    try:
        return FeatureLevel.parse(text)
    except ArgumentError as error:
        raise click.BadParameter(str(error)) from error


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"expected bytes, as 1000000, 512M or 4GiB, got {text!r}")
    return int(match[1]) << _UNITS[(match[2] or "").upper()]


class _Commands(click.Group):
    """The commands; `bench` is imported only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), "bench"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name != "bench":
            return super().get_command(ctx, cmd_name)
        try:
            from anydml.bench.command import command
        except ImportError as error:
            return _missing_bench(error)
        return command


def _missing_bench(error: ImportError) -> click.Command:
    def fail(**_: Any) -> None:
        raise click.ClickException(f"bench needs the extra anydml[bench]: {error}.")

    return click.Command(
        "bench",
        callback=fail,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        context_settings={"ignore_unknown_options": True},
        short_help="Needs the extra anydml[bench].",
    )


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(anydml.__version__, message="anydml %(version)s")
def commands() -> None:
    """DirectML's operators on any machine: run and check models written for DxDispatch."""


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
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="The folder that writeFile commands write to; by default a new one, MODEL.out, in "
            "the current folder.",
        ),
        click.option(
            "--input-dir",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
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


@commands.command()
@click.argument("model", metavar="MODEL.json|-", type=click.Path(path_type=Path))
@click.option(
    "--device",
    metavar="[cpu|cuda|cuda:N|reference|auto]",
    default="cpu",
    show_default=True,
    help="Where the operators run.",
)
@_model_options
def run(
    model: Path,
    device: str,
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
        click.echo(f"Warning: {warning}", err=True)
    run_model(loaded, Device(device, feature_level=feature_level), write=sys.stdout.write)


@commands.command()
@click.argument(
    "models", metavar="MODEL.json|-...", type=click.Path(path_type=Path), nargs=-1, required=True
)
@_model_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an array of a report for each.")
def check(
    models: tuple[Path, ...],
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
    limits = Limits(output_dir, memory_limit, input_dir, overwrite)
    device = Device("cpu", feature_level=feature_level)
    reports = []
    for path in models:
        found = report(path, device, limits)
        reports.append((found.good, found.as_json() if as_json else None))
        if as_json:
            continue
        if len(models) > 1:
            click.echo(f"{visible(str(path))}:")
        if found.unreadable is not None:
            click.echo(f"Error: {found.unreadable}", err=True)
        for line in found.lines():
            click.echo(line)
    if as_json:
        click.echo(json.dumps([text for _, text in reports], indent=1))
    if not all(good for good, _ in reports):
        raise click.exceptions.Exit(1)


@commands.command()
@click.argument("name", required=False)
def ops(name: str | None) -> None:
    """List the operators, or show what one of them means, takes and refuses."""
    console = _console()
    if name is None:
        console.print(_operators())
        return
    operator = _operator(name)
    console.print(f"{PREFIX}{operator.NAME}  (anydml.{operator.__name__})\n")
    console.print(inspect.getdoc(inspect.getmodule(operator)) or "", soft_wrap=True)
    console.print(_fields(operator))
    console.print(_support(operator))


def _operator(name: str) -> type[Descriptor]:
    wanted = name.upper().removeprefix(PREFIX)
    for known, operator in OPERATORS.items():
        if wanted in (known, operator.__name__.upper()):
            return operator
    raise click.BadParameter(f"expected one of {', '.join(OPERATORS)}, got {name!r}")


def _console() -> Console:
    from rich.console import Console  # here, so that `run` starts without it

    return Console(markup=False, highlight=False, emoji=False)


def _table(title: str, *columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(*columns, title=title, title_justify="left", box=box.SIMPLE)
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def _operators() -> Table:
    table = _table("Operators", "name", "from level", "ranks", "data types of the first tensor")
    for name, operator in OPERATORS.items():
        latest = next(iter(operator.SUPPORT[-1].tensors.values()))
        types = " ".join(map(str, latest.data_types))
        table.add_row(name, str(operator.SUPPORT[0].level), latest.ranks_text, types)
    return table


def _fields(operator: type[Descriptor]) -> Table:
    table = _table("Fields", "name", "kind")
    for info in operator.fields():
        table.add_row(info.name, info.choices)
    return table


def _support(operator: type[Descriptor]) -> Table:
    table = _table("Support, from feature level", "level", "tensor", "ranks", "data types")
    for row in operator.SUPPORT:
        level = str(row.level)
        for name, accepted in row.tensors.items():
            types = " ".join(map(str, accepted.data_types))
            table.add_row(level, name, accepted.ranks_text, types)
            level = ""
    return table


@commands.command()
def devices() -> None:
    """Show the devices that are here and how they compute."""
    table = _table("Devices", "device", "computes with", "threads")
    for kind, backend in backends_here().items():
        table.add_row(kind, *backend.describe())
    _console().print(table)


@commands.command()
def warm() -> None:
    """Compile all kernels for the GPUs of this machine, so that no first call waits for it."""
    found, _ = cuda.gpus()
    for device, gpu in enumerate(found):
        compiled, all_of_them = cuda.warm(device)
        click.echo(f"cuda:{device} ({gpu.name}): {compiled} of {all_of_them} compiled")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the command
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open to the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names in a model may have any character
            stream.reconfigure(errors="backslashreplace")
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
    except (AnyDMLError, OSError) as error:
        try:
            sys.stdout.flush()
        except OSError:  # standard output is what failed: its disk is full, say
            _drop(sys.stdout)
        return _failed(str(error))
    return status if isinstance(status, int) else 0


def _drop(stream: Any) -> None:
    """Leave nothing to be flushed at exit, which would fail again, with a status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tell(show: Callable[[], object]) -> None:
    try:
        show()
        sys.stderr.flush()
    except OSError:  # nobody is there to read it
        _drop(sys.stderr)


def _failed(message: str, status: int = 1) -> int:
    _tell(lambda: click.echo(f"Error: {message}", err=True))
    return status
