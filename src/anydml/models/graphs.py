"""Graphs in models: serialized ones as dispatchables, and files of one graph as models."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

from anydml._json import short_repr
from anydml.errors import ModelError, Violation
from anydml.graphs.check import violations
from anydml.graphs.desc import GraphDesc
from anydml.graphs.lower import NAME, Lowered, lower
from anydml.graphs.serialized import DATA_SUFFIX, Constants, graph_from_bytes
from anydml.levels import LATEST, FeatureLevel
from anydml.models.files import Place
from anydml.models.paths import Folder, parts_below
from anydml.ops._fields import FieldInfo, Role, TensorKind
from anydml.program import Program
from anydml.tensor import TensorDesc


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
        """The rules that the graph breaks."""
        return violations(self.graph, level)

    def lower(self) -> Program:
        """The graph's program."""
        assert self._lowered is not None, "refused graphs are not run"
        return self._lowered.program


def constants_in(
    folder: Folder, below: tuple[str, ...] = (), memory_limit: int | None = None
) -> Constants:
    """Find the data of constants in a folder.

    Parameters
    ----------
    folder : Folder
        Out of which nothing is read.
    below : tuple of str
        The way from there to the folder of the graph.
    memory_limit : int, optional
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
            left = -1 if memory_limit is None else memory_limit - taken + 1
            data = file.read(left)
        taken += len(data)
        if memory_limit is not None and taken > memory_limit:
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


def data_of_inputs(graph: GraphOperator, folder: Folder | None) -> dict[str, Any]:
    """For each input and output, a resource as a model has it: files named after the inputs.

    Raises
    ------
    ModelError
        There is no file for an input; the message has all of them.
    """
    resources: dict[str, Any] = {}
    missing = []
    for name, tensor, info in graph.tensors():
        values: Any = {"value": 0, "valueCount": tensor.element_count}
        if info.role is Role.INPUT:
            files = [f"{name}{suffix}" for suffix in (".npy", DATA_SUFFIX)]
            found = [file for file in files if folder and _is_file(folder, file)]
            if not found:
                missing.append(
                    f"Input {short_repr(name)}: Expected a file {' or '.join(map(repr, files))} "
                    "beside the graph (or in --input-dir), got neither."
                )
                continue
            values = {"sourcePath": found[0]}
        kind = tensor.data_type.name
        resources[name] = {"initialValuesDataType": kind, "initialValues": values}
    if missing:
        raise ModelError(*missing)
    return resources


def _is_file(folder: Folder, name: str) -> bool:
    try:
        return folder.path.joinpath(*parts_below(folder, name)).is_file()
    except ModelError:
        return False
