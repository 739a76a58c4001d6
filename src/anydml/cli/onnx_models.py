"""ONNX models on the command line: check, run and show."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
import numpy as np

from anydml.cli._options import PathType, no_such
from anydml.core._json import short_repr
from anydml.core._progress import show_progress
from anydml.core.comparison import Bounds, compare
from anydml.core.errors import ArgumentError, ModelError
from anydml.core.file_kinds import kind_of
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.releases import level_of_directml, level_of_windows
from anydml.devices.device import Device
from anydml.drawing import Box, Line, draw_boxes
from anydml.models.document import visible
from anydml.models.files import (
    Limits,
    Output,
    model_name,
    open_file,
    output_folder,
    own_folder,
)
from anydml.models.formats import comparable, header_of, read_array
from anydml.models.resources import json_numbers
from anydml.models.run import durations, repeated
from anydml.models.write import file_names
from anydml.onnx import read_onnx
from anydml.onnx.model import OnnxModel
from anydml.onnx.report import Report, Unreadable
from anydml.onnx.table import HOST, ROWS, SHADERS
from anydml.onnx.types import DATA_TYPES, Value, numpy_type

_HEAD: Final = 4096


def is_onnx(path: Path) -> bool:
    """Whether a file is an ONNX model, by its name or its first bytes."""
    if path.suffix.lower() == ".onnx":
        return True
    if str(path) == "-" or path.suffix.lower() in (".json", ".bin"):
        return False
    try:
        with open_file(path) as file:
            kind = kind_of(file.read(_HEAD), complete=False)
    except ModelError:
        return False
    return kind is not None and "ONNX model" in kind


def onnx_operator(name: str) -> str | None:
    """Describe an operator of ONNX that no DirectML operator stands for; None for others."""
    if name in SHADERS:
        return (
            f"{name} is an operator of ONNX, which ONNX Runtime's DirectML provider computes with "
            "compute shaders of its own."
        )
    row = ROWS.get(("", name)) or ROWS.get(("com.microsoft", name))
    if name in HOST or (row is not None and row.lower is None):
        return f"{name} is an operator of ONNX, which ONNX Runtime computes without DirectML."
    if row is not None:
        return (
            f"{name} is an operator of ONNX, which ONNX Runtime composes from other operators of "
            "DirectML (`anydml check MODEL.onnx` reports on a model)."
        )
    return None


# Options


def _to_shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    if not (name and equals and re.fullmatch(r"\d{1,10}(,\d{1,10})*|scalar", sizes)):
        raise click.BadParameter(f"expected NAME=1,3,224,224, got {short_repr(text)}")
    return name, () if sizes == "scalar" else tuple(map(int, sizes.split(",")))


def _to_dimension(text: str) -> tuple[str, int]:
    name, equals, size = text.rpartition("=")
    if not (name and equals and re.fullmatch(r"\d{1,10}", size)):
        raise click.BadParameter(f"expected NAME=1, got {short_repr(text)}")
    return name, int(size)


def _to_file(text: str) -> tuple[str, Path]:
    name, equals, path = text.rpartition("=")
    if not (name and equals and path):
        raise click.BadParameter(f"expected NAME=FILE.npy, got {short_repr(text)}")
    return name, Path(path)


def _to_seed(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", str(text)):
        raise click.BadParameter(f"expected an integer of at least 0, got {short_repr(text)}")
    return int(text)


def _level_by(find: Callable[[str], FeatureLevel]) -> Callable[[str], FeatureLevel]:
    def convert(text: str) -> FeatureLevel:
        try:
            return find(text)
        except ArgumentError as error:
            raise click.BadParameter(str(error)) from error

    return convert


_SHAPES: Final = (
    click.option("--shape", "shapes", type=_to_shape, multiple=True, metavar="NAME=1,3,224,224",
                 help="Shape of an input of an ONNX model (`NAME=scalar` for rank 0)."),
    click.option("--dim", "dims", type=_to_dimension, multiple=True, metavar="NAME=1",
                 help="Size of a free dimension of an ONNX model."),
)  # fmt: skip
_EXACT: Final = click.option(
    "--as-onnxruntime", is_flag=True,
    help="Run exactly the versions of ONNX operators that ONNX Runtime's DirectML provider has.",
)  # fmt: skip
_CHECK: Final = (
    click.option("--directml", "directml", type=_level_by(level_of_directml), metavar="VERSION",
                 help="Check against the feature level of a DirectML version, such as 1.8."),
    click.option("--windows", "windows", type=_level_by(level_of_windows), metavar="VERSION",
                 help="Check against the DirectML of a Windows release (\"11 22H2\") or build."),
)  # fmt: skip
_RUN: Final = (
    click.option("--input", "inputs", type=_to_file, multiple=True, metavar="NAME=FILE.npy",
                 help="Input of an ONNX model."),
    click.option("--random", "seed", type=_to_seed, metavar="SEED",
                 help="Fill the other inputs of an ONNX model with random numbers: floats in "
                 "-1..1, integers 0 or 1."),
    click.option("--expect-all", "expect_all", metavar="DIR",
                 type=PathType(exists=True, file_okay=False, path_type=Path),
                 help="Compare every tensor of an ONNX model for which DIR has NAME.npy, and name "
                 "the first node that differs."),
)  # fmt: skip


def _with(options: Sequence[Callable[..., Any]]) -> Callable[[Callable[..., Any]], Any]:
    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


add_show_options = _with(_SHAPES)
add_check_options = _with((*_CHECK, *_SHAPES, _EXACT))
add_convert_options = _with(
    (
        click.option("--input", "inputs", type=_to_file, multiple=True, metavar="NAME=FILE.npy",
                     help="Elements of an input, which become part of the output, such as a weight "
                     "that the graph does not contain."),
        *_SHAPES,
    )
)  # fmt: skip
add_run_options = _with((*_RUN, *_SHAPES, _EXACT))


def refuse_onnx_options(**given: Any) -> None:
    """Raise for options of ONNX models with another model.

    Raises
    ------
    click.UsageError
        An option is given.
    """
    for name, value in given.items():
        if value not in (None, False, ()):
            raise click.UsageError(f"--{name.replace('_', '-')}: expected an ONNX model (.onnx)")


def one_level(
    level: FeatureLevel, directml: FeatureLevel | None, windows: FeatureLevel | None
) -> FeatureLevel:
    """The level that three options say, of which one may be given."""
    given = [item for item in (directml, windows) if item is not None]
    if len(given) + (level is not LATEST) > 1:
        raise click.UsageError("expected one of --feature-level, --directml and --windows")
    return given[0] if given else level


# Commands

Shapes = Sequence[tuple[str, tuple[int, ...]]]
Dimensions = Sequence[tuple[str, int]]


def check_onnx(
    path: Path, level: FeatureLevel, shapes: Shapes, dims: Dimensions, limits: Limits, exact: bool
) -> Report | Unreadable:
    """The report of a model, valid or not."""
    try:
        return _report(path, level, shapes, dims, limits, exact)
    except ModelError as error:
        return Unreadable(path.name, error.problems)


def _report(
    path: Path, level: FeatureLevel, shapes: Shapes, dims: Dimensions, limits: Limits, exact: bool
) -> Report:
    model = read_onnx(
        path, shapes=dict(shapes), dims=dict(dims), as_onnxruntime=exact,
        memory_limit=limits.memory_limit,
    )  # fmt: skip
    return Report(model, level)


def run_onnx(
    path: Path,
    device: Device,
    limits: Limits,
    *,
    inputs: Sequence[tuple[str, Path]],
    seed: int | None,
    shapes: Shapes,
    dims: Dimensions,
    exact: bool,
    expected: Sequence[tuple[str, Path]],
    expect_all: Path | None,
    bounds: Bounds,
    as_json: bool,
    repeat: int,
    timing: bool,
) -> bool:
    """Run a model and print its outputs; whether all expected arrays are equal."""
    given = {name: read_array(file) for name, file in inputs}
    known = {name: array.shape for name, array in given.items()}
    model = read_onnx(
        path, shapes={**known, **dict(shapes)}, dims=dict(dims), as_onnxruntime=exact,
        memory_limit=limits.memory_limit,
    )  # fmt: skip
    if problems := model.memory_problems:
        raise ModelError(*problems)
    arrays = _inputs(model, given, seed)
    wanted = _wanted(model, expect_all)
    for name, _ in expected:
        if name not in model.names():
            raise click.UsageError(f"--expect: {no_such('tensor', name, model.names())}")
    further = [name for name in (*wanted, *dict(expected)) if name not in model.outputs]
    compiled = model.compile(device, list(dict.fromkeys(further)))
    results: dict[str, Any] = {}
    what = f"Run of {short_repr(path.name)}"
    seconds = repeated(lambda: results.update(compiled(**arrays)), repeat, what, show_progress)
    outputs = {name: results[name] for name in model.outputs}
    if limits.output_dir is not None:
        _write(path, outputs, limits)
    if timing:
        print(durations(what, seconds))
    _print(outputs, as_json)
    sys.stdout.flush()
    good = True
    for name, file in expected:
        good &= _compare(name, results[name], file, bounds, f"{visible(name)}, ")
    for name, file in wanted.items():
        node = model.producer(name)
        label = f"{visible(name)} ({node}), " if node else f"{visible(name)}, "
        if not _compare(name, results[name], file, bounds, label, quiet=True):
            print(f"The first tensor that differs is {short_repr(name)}, of {node or 'no node'}",
                  file=sys.stderr)  # fmt: skip
            return False
    if wanted:
        equal = "1 tensor is" if len(wanted) == 1 else f"{len(wanted)} tensors are"
        print(f"{equal} equal within the bounds", file=sys.stderr)
    return good


def _compare(
    name: str, result: Any, file: Path, bounds: Bounds, label: str, quiet: bool = False
) -> bool:
    array = comparable(read_array(file), result, file)
    found = compare(result, array, bounds, f"{label}{visible(str(file))}")
    if found.first is not None or not quiet:
        print("\n".join(found.lines()), file=sys.stderr)
    return found.first is None


def _inputs(model: OnnxModel, given: Mapping[str, Any], seed: int | None) -> dict[str, Any]:
    unknown = [name for name in given if name not in model.inputs]
    if unknown:
        names = ", ".join(map(repr, model.inputs)) or "none"
        raise click.UsageError(f"--input: expected one of {names}, got {unknown[0]!r}")
    missing = [name for name in model.inputs if name not in given]
    if missing and seed is None:
        names = ", ".join(map(repr, missing))
        raise click.UsageError(f"expected --input NAME=FILE.npy or --random SEED for {names}")
    free = model.input_problems()
    if free:
        raise ModelError(*free)
    generator = np.random.default_rng(seed)
    made = {name: _random(model.inputs[name], generator) for name in missing}
    return {**given, **made}


def _random(value: Value, generator: np.random.Generator) -> Any:
    if value.type not in DATA_TYPES or DATA_TYPES[value.type].bits < 8:
        raise ModelError(f"Input {value.name!r}: expected --input for a tensor of {value.type}.")
    sizes, kind = value.sizes or (), numpy_type(value.type)
    if kind.kind == "f":
        return generator.uniform(-1, 1, sizes).astype(kind)
    return generator.integers(0, 2, sizes).astype(kind)


def _wanted(model: OnnxModel, folder: Path | None) -> dict[str, Path]:
    """The tensors for which a folder has a file, in the order in which they are computed."""
    if folder is None:
        return {}
    files = {name: folder / f"{name}.npy" for name in model.names()}
    safe = {name: folder / f"{file}.npy" for name, file in file_names(files).items()}
    found = {}
    for name, own in files.items():
        path = next((p for p in (own, safe[name]) if _is_file(p)), None)
        if path is not None:
            found[name] = path
    if not found:
        raise click.UsageError(f"--expect-all: {str(folder)!r} has no NAME.npy of a tensor")
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _write(path: Path, outputs: Mapping[str, Any], limits: Limits) -> None:
    folder = output_folder(model_name(path), limits)
    with Output(folder, own_folder(limits), limits.overwrite) as output:
        for name, file in file_names(outputs).items():
            array = np.ascontiguousarray(outputs[name])
            output.write(
                f"{file}.npy", [memoryview(header_of(array)), array.reshape(-1).view(np.uint8).data]
            )


def _print(outputs: Mapping[str, Any], as_json: bool) -> None:
    if as_json:
        records = {
            name: {"dataType": array.dtype.name, "sizes": list(array.shape),
                   "values": json_numbers(array)}
            for name, array in outputs.items()
        }  # fmt: skip
        print(json.dumps({"outputs": records}, indent=1))
        return
    for name, array in outputs.items():
        print(f"{visible(name)}: {array.dtype.name} {array.shape}")
        print(np.array2string(array, threshold=100))


def draw_onnx(path: Path, level: FeatureLevel, shapes: Shapes, dims: Dimensions) -> str:
    """A picture of a model; nodes that DirectML refuses are red."""
    report = _report(path, level, shapes, dims, Limits(), False)
    boxes: list[Box] = []
    lines: list[Line] = []
    made: dict[str, int] = {}
    values = report.model.graph.values
    for value in report.model.graph.inputs:
        made[value.name] = len(boxes)
        boxes.append(Box(value.name, str(value), is_data=True))
    problems = []
    for item in report.judged:
        found = [str(violation) for violation in item.violations]
        problems += found
        at = len(boxes)
        boxes.append(Box(item.node.name, f"{item.node.title} ({item.place})", problems=found))
        lines += [
            Line(made[name], at, (str(values[name]),)) for name in item.node.inputs if name in made
        ]
        made.update((name, at) for name in item.node.outputs if name)
    for name, unique in report.model.graph.outputs.items():
        if unique in made:
            lines.append(Line(made[unique], len(boxes), (str(values[unique]),)))
            boxes.append(Box(name, str(values[unique]), is_data=True))
    return draw_boxes(f"The model {report.model.name}", boxes, lines, problems)
