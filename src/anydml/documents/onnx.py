"""ONNX models as documents."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from anydml.core._json import short_repr
from anydml.core._progress import show_progress
from anydml.core.errors import ModelError
from anydml.core.levels import FeatureLevel
from anydml.devices.backends import is_name
from anydml.devices.device import Device
from anydml.documents.document import Arrays, Converted, Document, Expected, UsageError, Write
from anydml.drawing import Box, Line, draw_boxes
from anydml.models.document import visible
from anydml.models.files import Output, model_name, output_folder, own_folder
from anydml.models.formats import npy_pieces, read_array
from anydml.models.resources import json_numbers
from anydml.models.run import durations, repeated
from anydml.models.write import file_names
from anydml.onnx import against, read_onnx
from anydml.onnx.cpu import is_available
from anydml.onnx.model import OnnxModel
from anydml.onnx.read import read_file
from anydml.onnx.report import Report, Unreadable
from anydml.onnx.restore import graph_of_source
from anydml.onnx.types import DATA_TYPES, OBJECTS, SEQUENCE, Value, numpy_type


class OnnxDocument(Document):
    """An ONNX model."""

    TAKES_OPTIONS = True
    TENSOR = "tensor"

    @cached_property
    def _given(self) -> dict[str, Any]:
        return {name: read_array(file) for name, file in self.options.input}

    @cached_property
    def model(self) -> OnnxModel:
        """The model, with the shapes of the given inputs."""
        runtime = self.options.runtime
        return read_onnx(
            self.path, shapes=self._shapes(self._given), dims=dict(self.options.dim),
            as_onnxruntime=self.options.as_onnxruntime,
            runtime=None if runtime is None else runtime.versions[-1],
            memory_limit=self.limits.memory_limit,
        )  # fmt: skip

    @property
    def default_device(self) -> str:
        return "onnxruntime" if is_available() else "cpu"

    def _shapes(self, arrays: Mapping[str, Any]) -> dict[str, Sequence[int]]:
        known = {name: array.shape for name, array in arrays.items()}
        return {**known, **dict(self.options.shape)}

    def names(self) -> Collection[str]:
        return self.model.names()

    @cached_property
    def _arrays(self) -> Arrays:
        """The arrays of all inputs."""
        return made_inputs(self.model, self._given, self.options.random)

    @cached_property
    def _provided(self) -> tuple[dict[str, Any], set[str]]:
        """The tensors of the other side, `--against`, and the nodes that it leaves to the CPU."""
        return against.tensors_of(self.model, self.options.against or "", self._arrays)

    def _provided_tensor(self, name: str) -> Any:
        return self._provided[0][name]

    def expected(self) -> Mapping[str, Expected]:
        if self.options.provider is not None:
            against.session_options(self.options.provider, "--device")
        if self.options.against is not None:
            if problems := self.model.memory_problems(copies=2):  # ours and the provider's
                raise ModelError(*problems)
            side = Device if is_name(self.options.against) else against.session_options
            side(self.options.against)  # raises if it is not there
            read = self._provided_tensor  # not before the model has run here
            names = against.computed_names(self.model)
            return {name: (self.options.against, partial(read, name)) for name in names}
        folder = self.options.expect_all
        if folder is None:
            return {}
        files = {name: folder / f"{name}.npy" for name in self.names()}
        safe = {name: folder / f"{file}.npy" for name, file in file_names(files).items()}
        found: dict[str, Expected] = {}
        for name, own in files.items():
            path = next((p for p in (own, safe[name]) if _is_file(p)), None)
            if path is not None:
                found[name] = str(path), partial(read_array, path)
        if not found:
            raise UsageError(f"--expect-all: {str(folder)!r} has no NAME.npy of a tensor")
        return found

    def _node(self, name: str) -> tuple[str, bytes, dict[str, Any]]:
        return against.one_node(self.model, name, {**self._arrays, **self._provided[0]})

    def alone(self, name: str, device: Device) -> Any:
        if self.options.against is None:
            return None
        _, content, inputs = self._node(name)
        exact, limit = self.options.as_onnxruntime, self.limits.memory_limit
        node = read_onnx(
            content, shapes=self._shapes(inputs), as_onnxruntime=exact, memory_limit=limit
        )
        return self._runner(node, device, ())(**inputs)[name]

    def explain(self, name: str) -> Iterator[str]:
        """Write a model of the node that computes a tensor, with its inputs of the provider."""
        if self.options.against is None:
            return
        node, content, inputs = self._node(name)
        if node in self._provided[1]:
            yield f"{self.options.against} leaves this node to the CPU"
        folder = output_folder(model_name(self.path), self.limits)
        with Output(folder, own_folder(self.limits), self.limits.overwrite) as output:
            output.write("node.onnx", [memoryview(content)])
            for item, file in file_names(inputs).items():
                output.write(f"{file}.npy", npy_pieces(inputs[item]))
        where = visible(str(folder.display_path))
        yield f"Wrote node.onnx, a model of this node alone, and its inputs to {where}"

    def producer(self, name: str) -> str:
        return self.model.producer(name)

    def check(self, device: Device) -> Report | Unreadable:
        try:
            return Report(self.model, device.feature_level)
        except ModelError as error:
            return Unreadable(self.path.name, error.problems)

    def run(
        self, device: Device, write: Write, names: Sequence[str], repeat: int, timing: bool
    ) -> Arrays:
        model = self.model
        if problems := model.memory_problems():
            raise ModelError(*problems)
        arrays = self._arrays
        further = [name for name in dict.fromkeys(names) if name not in model.outputs]
        compiled = self._runner(model, device, further)
        results: dict[str, Any] = {}
        what = f"Run of {short_repr(self.path.name)}"
        seconds = repeated(lambda: results.update(compiled(**arrays)), repeat, what, show_progress)
        if self.limits.output_dir is not None:
            self._write_files(results)
        if timing:
            write(f"{durations(what, seconds)}\n")
        for name in model.outputs:
            for line in _lines(name, results[name]):
                write(f"{line}\n")
        return results

    def _runner(
        self, model: OnnxModel, device: Device, further: Sequence[str]
    ) -> Callable[..., Arrays]:
        """Return what runs a model: the device, or the provider of ONNX Runtime."""
        compiled, provider = model.compile(device, further), self.options.provider
        if provider is None:
            return compiled

        def run(**arrays: Any) -> Arrays:
            compiled(**arrays)  # ONNX Runtime ends the process for some invalid models
            return against.provider_tensors(model, provider, arrays)[0]

        return run

    def _write_files(self, results: Arrays) -> None:
        problems = [
            f"Output {short_repr(name)}: expected a tensor of numbers for a file, got a {kind}."
            for name in self.model.outputs if (kind := _kind(results[name])) in OBJECTS
        ]  # fmt: skip
        if problems:
            raise ModelError(*problems)
        folder = output_folder(model_name(self.path), self.limits)
        with Output(folder, own_folder(self.limits), self.limits.overwrite) as output:
            for name, file in file_names(self.model.outputs).items():
                output.write(f"{file}.npy", npy_pieces(results[name]))

    def results_data(self, results: Arrays) -> dict[str, Any]:
        return {"outputs": {name: _record(results[name]) for name in self.model.outputs}}

    def draw(self, level: FeatureLevel) -> str:
        """Draw the nodes; those that DirectML refuses are red."""
        report = Report(self.model, level)
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
                Line(made[name], at, (str(values[name]),))
                for name in item.node.inputs
                if name in made
            ]
            made.update((name, at) for name in item.node.outputs if name)
        for name, unique in report.model.graph.outputs.items():
            if unique in made:
                lines.append(Line(made[unique], len(boxes), (str(values[unique]),)))
                boxes.append(Box(name, str(values[unique]), is_data=True))
        return draw_boxes(f"The model {report.model.name}", boxes, lines, problems)

    def graph(self, arrays: Arrays) -> Converted:
        source = read_file(self.path, self.limits.memory_limit)
        graph, weights = graph_of_source(source, self._shapes(arrays), dict(self.options.dim))
        return graph, {**weights, **arrays}


def made_inputs(model: OnnxModel, given: Arrays, seed: int | None) -> Arrays:
    """Make random arrays for the inputs that have none, if there is a seed."""
    unknown = [name for name in given if name not in model.inputs]
    if unknown:
        names = ", ".join(map(repr, model.inputs)) or "none"
        raise UsageError(f"--input: expected one of {names}, got {unknown[0]!r}")
    missing = [name for name in model.inputs if name not in given]
    if missing and seed is None:
        names = ", ".join(map(repr, missing))
        raise UsageError(f"expected --input NAME=FILE.npy or --random SEED for {names}")
    free = model.input_problems()
    if free:
        raise ModelError(*free)
    generator = np.random.default_rng(seed)
    made = {name: _random(model.inputs[name], generator) for name in missing}
    return {**given, **made}


def _random(value: Value, generator: np.random.Generator) -> Any:
    if value.type in OBJECTS:
        raise ModelError(
            f"Input {value.name!r}: expected --input for a tensor of numbers, got a {value.type}, "
            "which can be passed from Python (`anydml.read_onnx`)."
        )
    if value.type not in DATA_TYPES or DATA_TYPES[value.type].bits < 8:
        raise ModelError(f"Input {value.name!r}: expected --input for a tensor of {value.type}.")
    sizes, kind = value.sizes or (), numpy_type(value.type)
    if kind.kind == "f":
        return generator.uniform(-1, 1, sizes).astype(kind)
    return generator.integers(0, 2, sizes).astype(kind)


def _kind(value: Any) -> str:
    """The type of a result, in words."""
    if not isinstance(value, np.ndarray):
        return SEQUENCE
    return "string" if value.dtype == object else value.dtype.name


def _lines(name: str, value: Any) -> Iterator[str]:
    """Describe a result: an array, a sequence, a map, or an optional that is empty."""
    if isinstance(value, np.ndarray):
        yield f"{visible(name)}: {_kind(value)} {value.shape}"
        yield np.array2string(value, threshold=100)
    elif isinstance(value, list):
        yield f"{visible(name)}: sequence of {len(value)}"
        for i, item in enumerate(value):
            yield from _lines(f"{name}[{i}]", item)
    else:
        yield f"{visible(name)}: {visible(repr(value))}"


def _record(value: Any) -> Any:
    """A result as JSON."""
    if isinstance(value, np.ndarray):
        sizes = list(value.shape)
        return {"dataType": _kind(value), "sizes": sizes, "values": json_numbers(value)}
    if isinstance(value, list):
        return [_record(item) for item in value]
    if isinstance(value, dict):
        return {str(key): json_numbers(np.asarray(item))[0] for key, item in value.items()}
    return value


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no file can have
        return False
