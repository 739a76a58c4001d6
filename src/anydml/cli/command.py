"""The command `anydml`: run and check JSON models, look up operators and devices.

Exit status: 0; 1 for a model that is wrong or fails, or anything else that fails; 2 for wrong
usage; 130 after Ctrl-C. An error is one message on standard error, never a traceback (but in
Python's development mode, ``python -X dev -m anydml``, for faults of the command itself).
"""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

import anydml
from anydml.cli import tables
from anydml.cli._options import (
    PROVIDER_OF,
    PathType,
    add_bounds_options,
    add_check_options,
    add_level_options,
    add_limits_options,
    add_output_options,
    add_run_options,
    add_sizes_options,
    device_option,
    feature_level_option,
    file_option,
    no_such,
    one_level,
    to_repeats,
)
from anydml.cli.capture import capture_header
from anydml.cli.converting import convert_document
from anydml.cli.judging import judge, suite
from anydml.core._json import counted, short_repr
from anydml.core.comparison import Bounds, compare
from anydml.core.errors import AnyDMLError, ModelError
from anydml.core.levels import FeatureLevel
from anydml.devices.backends import cuda
from anydml.devices.device import Device
from anydml.documents import Document, Options, UsageError, example_document, open_document
from anydml.documents.document import Expected
from anydml.models import Limits
from anydml.models.document import STANDARD_INPUT, visible
from anydml.models.files import system_reason
from anydml.models.formats import comparable, is_raw, read_array
from anydml.onnx.table import described_operator
from anydml.ops._registry import OPERATORS, PREFIX, operator_meant, unknown_operator

_OF_PROVIDERS: Final = Bounds(rtol=1e-3, atol=1e-4)
"""Bounds of --against without others: providers add up in other orders."""

# For terminals that lack these characters.
_INSTEAD: Final = {"×": "x", "·": "*", "−": "-", "–": "-", "≤": "<=", "≥": ">=", "←": "<-",
                   "→": "->", "…": "...", "µ": "u", "²": "^2", "Σ": "sum of"}  # fmt: skip


class _Command(click.Command):
    """A command that says which arguments it takes, where it gets more of them."""

    allow_extra_args = True

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        extra = super().parse_args(ctx, args)
        if extra and not ctx.resilient_parsing:
            places = [p for p in self.params if isinstance(p, click.Argument)]
            names = ", ".join((p.metavar or str(p.name).upper()).strip("[]") for p in places)
            accepted = f"at most {counted(len(places), 'argument')} ({names})" if places else "none"
            got = ", ".join(map(short_repr, extra))
            raise click.UsageError(f"arguments: expected {accepted}, got {got} in addition", ctx)
        return extra

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise click.UsageError(str(error), ctx) from error


class _Group(click.Group):
    command_class = _Command


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(anydml.__version__, message="anydml %(version)s")
def commands() -> None:
    """DirectML's operators, graphs and JSON models on Linux, in Python."""


@commands.command(short_help="Run a model or a graph.")
@click.argument(
    "model",
    metavar="[MODEL.json|MODEL.onnx|GRAPH.bin|-]",
    type=PathType(path_type=Path),
    required=False,
)
@click.option(
    "--example",
    metavar="OPERATOR",
    help="Run an operator's example instead of a model: split, torch.topk, Softmax.",
)
@device_option
@click.option(
    "--repeat",
    type=to_repeats,
    metavar="N",
    default=1,
    show_default=True,
    help="Run each dispatch, or an ONNX model, N times, for timing.",
)
@click.option(
    "--timing", is_flag=True, help="Print how long each dispatch, or an ONNX model, took."
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print the written resources as JSON instead of the model's output.",
)
@file_option(
    "RESOURCE=FILE", "--expect", "expected",
    help="Compare a resource with a .npy file or a file of raw elements; fail if they differ.",
)  # fmt: skip
@add_run_options
@add_bounds_options
@add_limits_options
def run(
    model: Path | None,
    example: str | None,
    device: str | None,
    repeat: int,
    timing: bool,
    feature_level: FeatureLevel,
    limits: Limits,
    as_json: bool,
    expected: tuple[tuple[str, Path], ...],
    bounds: Bounds,
    options: Options,
) -> None:
    """Run a JSON model, an ONNX model or a graph, or one from standard input (-).

    A model reads files only from its own folder, and writes only to a new one. A graph is what ONNX
    Runtime's DirectML provider has written (.bin), or JSON; its input x is read from x.npy or x.bin
    in the same folder, and its outputs are printed. An ONNX model takes its inputs by --input or
    --random, and its outputs are printed; --output-dir writes them too.
    """
    if as_json and timing:
        raise click.UsageError("--json and --timing cannot be combined")
    if options.against is not None and options.expect_all is not None:
        raise click.UsageError("--against and --expect-all cannot be combined")
    if device is not None and device.startswith(PROVIDER_OF):
        if options.against is None or timing:
            raise click.UsageError(f"--device {device}: expected --against, and no --timing")
        options = replace(options, provider=device.removeprefix(PROVIDER_OF))
        device = "onnxruntime"
    if options.against is not None and bounds == Bounds():
        bounds = _OF_PROVIDERS
    if bounds != Bounds() and not (expected or options.expect_all or options.against):
        raise click.UsageError(
            "--ulp, --rtol, --atol and --cast: expected --expect RESOURCE=FILE to compare with, "
            "got none"
        )
    if model is not None and example is None:
        document = open_document(model, limits, options)
    elif example is not None and model is None:
        document = example_document(_operator(example), limits, options)
    else:
        got = "none" if model is None else "two of them"
        raise click.UsageError(
            f"expected MODEL.json, GRAPH.bin, - (standard input) or --example OPERATOR, got {got}"
        )
    options.refuse(document)
    for warning in document.warnings:
        _say(f"Warning: {warning}")
    for name, _ in expected:
        if name not in document.names():
            missing = no_such(document.TENSOR, name, document.names())
            raise click.UsageError(f"--expect: {missing}")
    arrays = [(name, path, read_array(path)) for name, path in expected]
    further = document.expected()
    chosen = Device(device or document.default_device, feature_level=feature_level)
    results = document.run(
        chosen,
        (lambda _: None) if as_json else sys.stdout.write,
        names=[*further, *dict(expected)], repeat=repeat, timing=timing,
    )  # fmt: skip
    if as_json:
        _echo_json(document.results_data(results))
    sys.stdout.flush()
    if device is None and document.default_device != "cpu":
        _say(f"Ran on {document.default_device} (--device chooses another)")
    found = [_differs(name, results[name], path, array, bounds) for name, path, array in arrays]
    if _first_differs(document, chosen, results, further, bounds) or any(found):
        raise click.exceptions.Exit(1)


def _differs(name: str, result: Any, path: Path, array: Any, bounds: Bounds) -> bool:
    """Whether a tensor differs from an array, with a line of the difference."""
    names = f"{visible(name)}, {visible(str(path))}"
    found = compare(result, comparable(array, result, path), bounds, names)
    _say("\n".join(found.lines()))
    return found.first is not None


def _first_differs(
    document: Document,
    device: Device,
    results: Mapping[str, Any],
    arrays: Mapping[str, Expected],
    bounds: Bounds,
) -> bool:
    """Whether a tensor differs from the expected array; the first one that does is named."""
    added_up = 0
    for name, (origin, read) in arrays.items():
        node = document.producer(name) or "no node"
        names = f"{visible(name)} ({node}), {visible(origin)}"
        found = compare(results[name], read(), bounds, names)
        if found.first is not None and (own := document.alone(name, device)) is not None:
            found = compare(own, read(), bounds, names)
            added_up += found.first is None
        if found.first is not None:
            first = f"The first tensor that differs is {short_repr(name)}, of {node}"
            _say("\n".join([*found.lines(), first, *document.explain(name)]))
            return True
    equal = len(arrays) - added_up
    if arrays:
        _say(f"{counted(equal, 'tensor')} {'is' if equal == 1 else 'are'} equal within the bounds")
    if added_up:
        _say(f"{added_up} differ by what adds up from node to node: no node differs by itself")
    return False


@commands.command("compare", short_help="Compare two arrays.")
@click.argument("got", metavar="A.npy", type=PathType(path_type=Path))
@click.argument("expected", metavar="B.npy", type=PathType(path_type=Path))
@add_bounds_options
def compare_files(got: Path, expected: Path, bounds: Bounds) -> None:
    """Print the largest difference of A from B, and the first element that exceeds the bounds.

    Without options, every difference exceeds them. The exit status is 1 when an element does.
    Integers are compared exactly. Leading sizes of 1 do not count, and one of the two may be flat.
    A file that is not .npy has raw elements, of the other file's type and shape.
    """
    names = f"{visible(str(got))}, {visible(str(expected))}"
    one, other = read_array(got), read_array(expected)
    if is_raw(got) and not is_raw(expected):
        one = comparable(one, other, got)
    elif is_raw(expected) and not is_raw(got):
        other = comparable(other, one, expected)
    found = compare(one, other, bounds, names)
    _echo_lines(found.lines())
    if found.first is not None:
        raise click.exceptions.Exit(1)


@commands.command(short_help="Check models and graphs without running them.")
@click.argument(
    "models",
    metavar="MODEL.json|MODEL.onnx|GRAPH.bin|-...",
    type=PathType(path_type=Path),
    nargs=-1,
    required=True,
)
@device_option
@add_level_options
@add_check_options
@add_limits_options
@click.option(
    "--fix", "fix_to", type=PathType(dir_okay=False, path_type=Path), metavar="OUT.json",
    help="Write the JSON model with the changes that do not alter what it computes: types of "
    "indices, numbers of dimensions, counts, strides left out.",
)  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON: an array with a report for each model."
)
def check(
    models: tuple[Path, ...],
    device: str | None,
    feature_level: FeatureLevel,
    limits: Limits,
    as_json: bool,
    directml: FeatureLevel | None,
    windows: FeatureLevel | None,
    options: Options,
    fix_to: Path | None,
) -> None:
    """Check JSON models, ONNX models and graphs without running them.

    Prints every rule that an operator breaks, the lowest feature level that accepts it, everything
    else that would stop a run, warnings, and the files that a run would write. The exit status is 1
    if anything is wrong.

    Of an ONNX model: where ONNX Runtime's DirectML provider would run each node and why, the rules
    that DirectML's operators break, and the DirectML and Windows that accept them. The exit status
    is 1 if a node is refused, or if its shapes or constants are known only in a run.

    With --fix the exit status is that of the written model.
    """
    if fix_to is not None and (len(models) > 1 or STANDARD_INPUT in map(str, (*models, fix_to))):
        raise click.UsageError("--fix: expected one model in a file, and a file to write")
    if [*map(str, models)].count(STANDARD_INPUT) > 1:
        raise click.UsageError("standard input (-) can be read only once")
    chosen = Device(device or "cpu", feature_level=one_level(feature_level, directml, windows))
    documents = [open_document(path, limits, options) for path in models]
    options.refuse(*documents)
    reports = []
    for path, document in zip(models, documents, strict=True):
        found = document.check(chosen)
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
    if fix_to is not None:
        reports = [(_fix(documents[0], fix_to, chosen), None)]
    if not all(good for good, _ in reports):
        raise click.exceptions.Exit(1)


def _fix(document: Document, output: Path, device: Device) -> bool:
    """Write a model with repairs, if there are any, and check it."""
    text, lines = document.fixed(device.feature_level)
    if not lines:
        _say("--fix: no change keeps what the model computes; nothing is written")
        return document.check(device).good
    limits = document.limits
    _write_text(output, text, limits.overwrite)
    _say("\n".join([*lines, f"Wrote {visible(str(output))}"]))
    if limits.input_dir is None:  # the files of the model are beside it
        limits = replace(limits, input_dir=document.path.parent)
    return open_document(output, limits, document.options).check(device).good


@commands.command(short_help="Draw a model or a graph.")
@click.argument("model", metavar="MODEL.json|MODEL.onnx|GRAPH.bin|-", type=PathType(path_type=Path))
@click.option(
    "-o", "--output", type=PathType(dir_okay=False, path_type=Path), metavar="FILE.svg|-",
    default="-", help="The file to write; standard output by default.",
)  # fmt: skip
@feature_level_option
@add_sizes_options
@click.option("--overwrite", is_flag=True, help="Replace the file if it exists.")
def show(
    model: Path, output: Path, feature_level: FeatureLevel, overwrite: bool, options: Options
) -> None:
    """Draw a JSON model, an ONNX model or a graph (.bin, or JSON) as SVG.

    Operators and tensors are boxes, with the sizes and types of what goes from one to the next.
    What the feature level refuses is red. Nothing is run. Needs igraph
    (`pip install 'anydml[show]'`).
    """
    document = open_document(model, Limits(), options)
    options.refuse(document)
    _write_text(output, document.draw(feature_level), overwrite)


def _write_text(output: Path, text: str, overwrite: bool) -> None:
    if str(output) == STANDARD_INPUT:
        sys.stdout.write(text)
        return
    try:
        with output.open("w" if overwrite else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        name = short_repr(str(output))
        raise ModelError(f"File {name} exists: use another name or --overwrite.") from None
    except OSError as error:  # a full disk, which Python reports without the name
        name = short_repr(str(output))
        raise ModelError(f"File {name} cannot be written: {system_reason(error)}.") from error


@commands.command(short_help="Convert between DirectML graphs, JSON models and ONNX models.")
@click.argument("model", metavar="MODEL.onnx|GRAPH.bin|GRAPH.json|-", type=PathType(path_type=Path))
@click.option(
    "-o", "--output", type=PathType(dir_okay=False, path_type=Path), metavar="OUT.onnx|OUT.json",
    required=True, help="The file to write.",
)  # fmt: skip
@click.option(
    "--form", type=click.Choice(["graph", "dxdispatch"]),
    help="Form of OUT.json: a graph (the default), or a model for DxDispatch.",
)  # fmt: skip
@file_option(
    "NAME=FILE.npy", "--input", "inputs",
    help="Elements of an input, which become part of the output, such as a weight that the graph "
    "does not contain.",
)  # fmt: skip
@add_sizes_options
@click.option(
    "--external-data", "external", is_flag=True,
    help="Write the weights of OUT.onnx to OUT.onnx.data. Models of nearly 2 GiB always have it.",
)  # fmt: skip
@add_output_options
def convert(
    model: Path,
    output: Path,
    form: str | None,
    inputs: tuple[tuple[str, Path], ...],
    external: bool,
    limits: Limits,
    options: Options,
) -> None:
    """Convert a graph or a JSON model to ONNX, and an ONNX model to JSON.

    An ONNX file has operators of ONNX alone: any runtime runs it, without DirectML. Inputs,
    outputs and weights keep their names. What ONNX has no form of is an error that names the node.

    OUT.json has the DirectML operators of the model, and its weights are files NAME.npy in the same
    folder. `--form dxdispatch` makes a model of operators, resources and commands.

    Weights that a graph does not contain are read from --input, or from NAME.npy or NAME.bin in the
    folder of the graph.
    """
    document = open_document(model, limits, options)
    convert_document(document, output, form=form, inputs=inputs, external=external)


@commands.command(short_help="List the operators, or describe one.")
@click.argument("name", required=False)
@click.option(
    "--all",
    is_flag=True,
    expose_value=False,
    help="List every operator of DirectML, as `anydml ops` without NAME does.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON: every operator, or one.")
def ops(name: str | None, as_json: bool) -> None:
    """List the operators, or describe one: its meaning, fields and support table.

    NAME is DirectML's name, or that of the same function elsewhere: TOP_K1, torch.topk, Concat.
    """
    if name is not None:
        _show_operator(_operator(name), as_json)
    elif as_json:
        _echo_json(tables.operators_data())
    else:
        _echo_lines(tables.operators(_width()))


def _show_operator(name: str, as_json: bool) -> None:
    if as_json:
        _echo_json(tables.operator_data(name))
        return
    operator = OPERATORS[name]
    print(f"{PREFIX}{operator.NAME}  (anydml.{operator.__name__})\n")
    print(f"{tables.meaning_of(operator)}\n")
    if operator.ALSO_KNOWN_AS:
        print(f"Also known as: {', '.join(operator.ALSO_KNOWN_AS.split())}\n")
    _echo_lines(tables.fields(operator, _width()))
    print()
    _echo_lines(tables.support(operator, _width()))


def _operator(name: str) -> str:
    found = operator_meant(name)
    if found is None:
        raise click.UsageError(described_operator(name) or unknown_operator(name))
    return found


@commands.command("capture-header", short_help="Write a C++ header that prints descriptions.")
@click.option(
    "-o",
    "--output",
    type=PathType(dir_okay=False, path_type=Path),
    metavar="FILE.h|-",
    default=Path("anydml_capture.h"),
    show_default=True,
    help="Where to write it; - for standard output.",
)
@click.option("--overwrite", is_flag=True, help="Replace an existing file.")
def capture(output: Path, overwrite: bool) -> None:
    """Write a C++17 header with which a program prints its DirectML descriptions.

    `anydml::to_json` of a DML_OPERATOR_DESC or a DML_GRAPH_DESC is a file for `anydml check`.
    """
    _write_text(output, capture_header(anydml.__version__), overwrite)


@commands.command(short_help="Show the devices of this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def devices(as_json: bool) -> None:
    """Show the devices of this machine and how they compute."""
    if as_json:
        _echo_json(tables.devices_data())
    else:
        _echo_lines(tables.devices(_width()))


def _echo_lines(lines: Iterable[str]) -> None:
    print("\n".join(lines))


def _echo_json(value: Any) -> None:
    print(json.dumps(value, indent=1))


def _width() -> int | None:
    """The terminal's width; None without a terminal, so that rows are not wrapped."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS"):
        return shutil.get_terminal_size().columns
    return None


@commands.command()
def warm() -> None:
    """Compile all GPU kernels now instead of at their first use."""
    found, _ = cuda.gpus()
    for device, gpu in enumerate(found):
        compiled, all_of_them = cuda.warm(device)
        click.echo(f"cuda:{device} ({gpu.name}): {compiled} of {all_of_them} compiled")


commands.add_command(judge)
commands.add_command(suite)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    _prepare_streams()
    try:
        status = commands.main(arguments, prog_name="anydml", standalone_mode=False)
        sys.stdout.flush()  # here, where a closed pipe can still be reported
    except click.ClickException as error:
        _try_to_show(error.show)
        return error.exit_code
    except BrokenPipeError:
        _drop(sys.stdout)  # the reader has closed the pipe
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
            f"internal error ({type(error).__name__}: {error}); please report it "
            "with what `python -X dev -m anydml` shows"
        )
    return status if isinstance(status, int) else 0


def _prepare_streams() -> None:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # open to the end
    codecs.register_error("anydml", _shown_instead)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names in a model may have any character
            stream.reconfigure(errors="anydml")


def _shown_instead(error: UnicodeError) -> tuple[str, int]:
    """Replacements for characters that the terminal's encoding lacks."""
    assert isinstance(error, UnicodeEncodeError)
    characters = error.object[error.start : error.end]
    escaped = (
        _INSTEAD.get(c) or c.encode("ascii", "backslashreplace").decode() for c in characters
    )
    return "".join(escaped), error.end


def _drop(stream: Any) -> None:
    """Leave nothing to be flushed at exit, which would fail again, with a status of its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _try_to_show(show: Callable[[], object]) -> None:
    try:
        show()
        sys.stderr.flush()
    except (OSError, UnicodeError):  # standard error is closed, or cannot encode the message
        _drop(sys.stderr)


def _say(message: str) -> None:
    _try_to_show(lambda: print(message, file=sys.stderr))


def _system_error(error: OSError) -> str:
    """Report errors of the system; a model's files have messages of their own."""
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
