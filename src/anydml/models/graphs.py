"""Graphs in models: serialized ones as dispatchables, and files of one graph as models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.problems import Problem
from anydml.core.program import Program
from anydml.core.tensor import TensorDesc
from anydml.devices.binding import elements_size
from anydml.devices.device import Device
from anydml.graphs.check import SINCE, minimum_level, violations
from anydml.graphs.compiled import CompiledGraph
from anydml.graphs.desc import GraphDesc
from anydml.graphs.lower import NAME, Lowered, lower
from anydml.graphs.serialized import DATA_SUFFIX, Constants, graph_from_bytes
from anydml.models import npy
from anydml.models.files import Place, state
from anydml.models.paths import Folder, parts_below
from anydml.ops._fields import FieldInfo, Role, TensorKind


class GraphOperator:
    """A graph as models see an operator: with a bind point for each input and output.

    Parameters
    ----------
    graph : GraphDesc
        The graph.
    """

    NAME = NAME

    def __init__(self, graph: GraphDesc) -> None:
        self.graph = graph

    @cached_property
    def _lowered(self) -> Lowered | None:
        return None if violations(self.graph, LATEST) else lower(self.graph)

    def tensor_fields(self, role: Role | None = None) -> tuple[FieldInfo, ...]:
        """The inputs and outputs."""
        sides = ((Role.INPUT, self.graph.inputs), (Role.OUTPUT, self.graph.outputs))
        return tuple(
            FieldInfo(tensor.name, tensor.name, side, TensorKind(), None, False)
            for side, tensors in sides
            for tensor in tensors
            if role in (None, side)
        )

    def bind_points(self, role: Role | None = None) -> tuple[FieldInfo, ...]:
        """The inputs that a node reads, and the outputs; none of a graph that breaks rules."""
        if self._lowered is None:
            return ()
        known = self._lowered.tensors
        return tuple(info for info in self.tensor_fields(role) if info.name in known)

    def paths(self, info: FieldInfo) -> Iterator[tuple[str, TensorDesc]]:
        """The tensor of a bind point."""
        if self._lowered is not None and info.name in self._lowered.tensors:
            yield info.name, self._lowered.tensors[info.name]

    def tensors(self, role: Role | None = None) -> Iterator[tuple[str, TensorDesc, FieldInfo]]:
        """Name, descriptor and bind point of each tensor."""
        for info in self.bind_points(role):
            for path, tensor in self.paths(info):
                yield path, tensor, info

    def violations(self, level: FeatureLevel) -> list[Violation]:
        """The rules that the graph breaks; its constants may be inputs, as in ONNX Runtime."""
        return violations(self.graph, level, constants_since=SINCE)

    def minimum_level(self) -> FeatureLevel | None:
        """The lowest feature level that accepts the graph, or None when none does."""
        return minimum_level(self.graph, constants_since=SINCE)

    def compile(self, device: Device) -> CompiledGraph:
        """The graph, which the device's feature level accepts, ready to run on the device."""
        # What constants are makes no difference to a run.
        return Device(device.kind, feature_level=LATEST).compile_graph(self.graph)

    def lower(self) -> Program:
        """The graph's program."""
        assert self._lowered is not None, "refused graphs are not run"
        return self._lowered.program


def constants_in(folder: Folder, below: tuple[str, ...], memory_limit: int) -> Constants:
    """Find the data of constants in a folder.

    Parameters
    ----------
    folder : Folder
        Out of which nothing is read.
    below : tuple of str
        The path from there to the folder of the graph.
    memory_limit : int
        The most bytes of all of them.
    """
    taken = 0

    def find(name: str) -> bytes | None:
        nonlocal taken
        try:
            parts = parts_below(folder, "/".join((*below, f"{name}{DATA_SUFFIX}")))
        except ModelError:
            return None  # no file can be named so
        if not folder.path.joinpath(*parts).exists():
            return None
        place = Place(folder, parts)
        with place.open_file() as file:
            data = file.read(memory_limit - taken + 1)
        taken += len(data)
        if taken > memory_limit:
            raise ModelError(
                f"Expected at most {memory_limit} bytes of constants (--memory-limit), got more "
                f"with {place}."
            )
        return data

    return find


def read_graph_at(place: Place, memory_limit: int) -> GraphDesc:
    """The serialized graph at a place that a model names."""
    with place.open_file() as file:
        data = file.read(memory_limit + 1)
    if len(data) > memory_limit:
        raise ModelError(f"Expected at most {memory_limit} bytes (--memory-limit), got {place}.")
    return graph_from_bytes(data, constants_in(place.folder, place.parts[:-1], memory_limit))


def data_of_inputs(
    graph: GraphOperator, folder: Folder | None
) -> tuple[dict[str, Any], list[Problem]]:
    """Find the resources of a graph's inputs, in files named after them, and of its outputs.

    Returns
    -------
    tuple of dict and list
        Each resource, as a model has it; and the inputs without a file, or with one of another
        type, shape or size.
    """
    resources: dict[str, Any] = {}
    problems: list[Problem] = []
    for name, tensor, info in graph.tensors():
        values: Any = {"value": 0, "valueCount": tensor.element_count}
        if info.role is Role.INPUT:
            files = [f"{name}{suffix}" for suffix in (".npy", DATA_SUFFIX)]
            found = [file for file in files if folder and _is_file(folder, file)]
            if folder is None or not found:
                text = (
                    f"Input {short_repr(name)}: Expected a file {' or '.join(map(repr, files))} "
                    "beside the graph (or in --input-dir), got neither."
                )
                problems.append(Problem(text, "missing_file"))
                continue
            try:
                _check_input(tensor, Place(folder, parts_below(folder, found[0])))
            except ModelError as error:
                problems.append(Problem(f"Input {short_repr(name)}: {error}"))
                continue
            values = {"sourcePath": found[0]}
        kind = tensor.data_type.name
        resources[name] = {"initialValuesDataType": kind, "initialValues": values}
    return resources, problems


def _check_input(tensor: TensorDesc, place: Place) -> None:
    """Raise unless a file has the type, shape and size of an input's tensor.

    Sizes of 1 in front do not count: descriptors often have more of them than arrays. With strides
    a file has the buffer of the tensor, whose shape is another one.
    """
    data_type, shape = tensor.data_type, None
    with place.open_file() as file:
        if place.name.endswith(DATA_SUFFIX):
            size = state(file).size
        else:
            try:
                dtype, size, shape, _ = npy.read_header(file)
            except ModelError as error:
                raise ModelError(f"File {place}: {error}") from error
            if DataType.from_numpy(dtype) is not data_type:
                raise ModelError(
                    f"expected {data_type} in {place}, got {dtype.newbyteorder('=').name}."
                )
    expected = f"{data_type} {_braced(tensor.sizes)}"
    if shape is not None and tensor.strides is None:
        if _without_leading_ones(shape) != _without_leading_ones(tensor.sizes):
            raise ModelError(f"expected {expected} in {place}, got {data_type} {_braced(shape)}.")
        return
    minimum = elements_size(tensor)
    if not minimum <= size <= tensor.total_tensor_size_in_bytes:
        raise ModelError(f"expected {minimum} bytes ({expected}) in {place}, got {size}.")


def _braced(sizes: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, sizes))}}}"


def _without_leading_ones(sizes: tuple[int, ...]) -> tuple[int, ...]:
    first = next((i for i, size in enumerate(sizes) if size != 1), len(sizes))
    return sizes[first:]


def _is_file(folder: Folder, name: str) -> bool:
    try:
        return folder.path.joinpath(*parts_below(folder, name)).is_file()
    except ModelError:
        return False
