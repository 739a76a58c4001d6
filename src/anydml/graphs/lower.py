"""A graph as one program: the calls of its nodes in order, and what they pass on.

An edge connects bytes. Where both ends have one layout, a node reads the very array that another
one writes. Elsewhere each end is a view of the bytes, with the type, sizes and strides that its
descriptor says, so no edge costs a copy. Only an output of the graph is copied at the end, where
its bytes are needed in several layouts or by several outputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from anydml.core.program import (
    ArraySpec,
    Constant,
    IndexUse,
    Intermediate,
    KernelCall,
    Program,
    Slot,
)
from anydml.core.tensor import TensorDesc
from anydml.devices.binding import elements_size
from anydml.graphs.check import Place, Ports, topological_order
from anydml.graphs.desc import ConstantNode, GraphDesc
from anydml.ops._fields import Role

NAME = "graph"
"""The name of a graph's program in messages."""

Source = int | Place
"""Where bytes come from: an input of the graph, or an output of a node."""

Names = dict[str | None, str | None]
"""Names in the graph's program by the names in a node's own program."""


@dataclass(frozen=True)
class Lowered:
    """A graph's program, and as what its inputs and outputs are bound.

    Attributes
    ----------
    program : Program
        With a slot for each input that a node reads and for each output, by its name.
    tensors : dict of str to TensorDesc
        By the names of slots.
    places : dict of str to Place
        The nodes and outputs that write arrays of the program, by the names of these.
    """

    program: Program
    tensors: Mapping[str, TensorDesc]
    places: Mapping[str, Place]


def lower(graph: GraphDesc) -> Lowered:
    """The program of a graph that has been checked."""
    return _Lowering(graph).lowered()


@dataclass(frozen=True)
class _Port:
    """One end of an edge: a tensor, and what a kernel sees of it."""

    tensor: TensorDesc
    spec: ArraySpec

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """In elements, of the sizes that the kernel sees; 0 for a size of 1."""
        return _strides(self.spec.shape, self.tensor.element_strides)

    @cached_property
    def is_packed(self) -> bool:
        """Whether its elements lie in row-major order without gaps."""
        packed = TensorDesc(self.tensor.data_type, self.tensor.sizes).element_strides
        return self.strides == _strides(self.spec.shape, packed)

    def matches(self, other: _Port) -> bool:
        """Whether an array of the other one's elements is one of this one's."""
        return self is other or (self.spec == other.spec and self.strides == other.strides)


def _strides(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, ...]:
    trailing = strides[len(strides) - len(shape) :]
    return tuple(s if size > 1 else 0 for size, s in zip(shape, trailing, strict=True))


def _port_of(tensor: TensorDesc) -> _Port:
    stored = tensor.storage
    return _Port(stored, ArraySpec(stored.sizes, stored.data_type.numpy))


@dataclass(frozen=True)
class _Operator:
    """A node's program, and the specs of its slots by their names."""

    program: Program
    specs: Mapping[str, ArraySpec]


class _Lowering:
    def __init__(self, graph: GraphDesc) -> None:
        self._graph = graph
        self._ports = Ports(graph)
        self._operators: dict[int, _Operator] = {}
        self._ends: dict[tuple[int, int, Role], _Port] = {}
        self._calls: list[KernelCall] = []
        self._intermediates: list[Intermediate] = []
        self._constants: list[Constant] = []
        self._inputs: list[Slot] = []
        self._outputs: dict[int, Slot] = {}
        self._held: list[tuple[str, str]] = []
        self._tensors: dict[str, TensorDesc] = {}
        self._source_of: dict[Place, Source] = {}
        self._readers: dict[Source, list[_Port]] = {}
        self._goals: dict[Place, list[int]] = {}
        # The array that has the bytes of a source, by its name, and its layout.
        self._values: dict[Source, tuple[str, _Port]] = {}
        self._views: dict[tuple[str, ArraySpec, tuple[int, ...]], str] = {}
        self._bound = {tensor.name for tensor in graph.outputs}
        names = {tensor.name for tensor in graph.inputs} | self._bound
        self._mark = "#"  # which begins all names that are not an input's or an output's
        while any(name.startswith(self._mark) for name in names):
            self._mark += "#"

    def lowered(self) -> Lowered:
        graph = self._graph
        for edge in graph.input_edges:
            self._connect(edge.graph_input_index, (edge.to_node_index, edge.to_node_input_index))
        for link in graph.intermediate_edges:
            start = link.from_node_index, link.from_node_output_index
            self._connect(start, (link.to_node_index, link.to_node_input_index))
        for out in graph.output_edges:
            start = out.from_node_index, out.from_node_output_index
            self._goals.setdefault(start, []).append(out.graph_output_index)
        for index in range(len(graph.inputs)):
            if index in self._readers:
                self._add_input(index)
        for node in topological_order(graph):
            if isinstance(graph.nodes[node], ConstantNode):
                self._add_constant(node)
            else:
                self._add_operator(node)
        program = Program(
            NAME,
            tuple(self._inputs),
            tuple(self._outputs[i] for i in sorted(self._outputs)),
            tuple(self._calls),
            tuple(self._intermediates),
            tuple(self._constants),
            tuple(self._held),
        )
        places = {
            name: place for place, (name, _) in self._values.items() if isinstance(place, tuple)
        }
        return Lowered(program, self._tensors, places)

    def _connect(self, source: Source, to: Place) -> None:
        self._source_of[to] = source
        self._readers.setdefault(source, []).append(self._end(to, Role.INPUT))

    def _end(self, place: Place, role: Role) -> _Port:
        key = id(self._graph.nodes[place[0]].desc), place[1], role  # type: ignore[union-attr]  # no constant
        if key not in self._ends:
            port = self._ports.at(place, role)
            assert port is not None, "the graph has been checked"
            self._ends[key] = _Port(port[1].storage, self._operator(place[0]).specs[port[0]])
        return self._ends[key]

    def _operator(self, node: int) -> _Operator:
        desc: Any = self._graph.nodes[node].desc  # type: ignore[union-attr]  # an operator
        if id(desc) not in self._operators:  # nodes that share a descriptor share its program
            program = desc.lower()
            specs = {slot.name: slot.spec for slot in (*program.inputs, *program.outputs)}
            self._operators[id(desc)] = _Operator(program, specs)
        return self._operators[id(desc)]

    def _add_input(self, index: int) -> None:
        declared, readers = self._graph.inputs[index], self._readers[index]
        end = readers[0] if declared.desc is None else _port_of(declared.desc)
        end = next((r for r in readers if r.tensor == end.tensor), end)
        if not all(end.matches(reader) for reader in readers):
            if declared.desc is None and not end.is_packed:
                end = next((reader for reader in readers if reader.is_packed), end)
            reach = max(elements_size(reader.tensor) for reader in readers)
            if not end.is_packed or elements_size(end.tensor) < reach:
                # What is read in several layouts, and beyond its elements, comes as bytes.
                total, flags = end.tensor.total_tensor_size_in_bytes, end.tensor.flags
                end = _port_of(TensorDesc("UINT8", (total,), flags=flags))
        self._values[index] = declared.name, end
        self._tensors[declared.name] = end.tensor
        self._inputs.append(Slot(declared.name, end.spec, end.tensor.sizes))

    def _add_constant(self, node: int) -> None:
        data: bytes = self._graph.nodes[node].data  # type: ignore[union-attr]  # a constant
        name = f"{self._mark}{node}"
        readers = self._readers[(node, 0)]
        end = readers[0]
        if not end.is_packed or not all(end.matches(reader) for reader in readers):
            end = _port_of(TensorDesc("UINT8", (len(data),)))
        self._values[(node, 0)] = name, end
        self._constants.append(Constant(name, end.spec, data[: elements_size(end.tensor)]))

    def _add_operator(self, node: int) -> None:
        program = self._operator(node).program
        prefix = f"{self._mark}{node}."
        names: Names = {None: None}
        undefined: dict[str | None, str] = {}
        copies: list[KernelCall] = []
        for at, port in enumerate(self._ports.of(node, Role.INPUT)):
            if port is not None:
                source = self._source_of[(node, at)]
                names[port[0]] = self._read_source(source, self._end((node, at), Role.INPUT))
        for at, port in enumerate(self._ports.of(node, Role.OUTPUT)):
            if port is not None:
                name, gaps = self._write((node, at), prefix + port[0], copies)
                names[port[0]] = name
                if gaps:
                    undefined[port[0]] = gaps
        for held, output in program.held:
            name = names[held] = prefix + held
            slot = next(slot for slot in program.inputs if slot.name == held)
            self._inputs.append(replace(slot, name=name))
            self._held.append(
                (name, str(names[output]) if names.get(output) in self._bound else "")
            )
        for item in program.intermediates:
            names[item.name] = prefix + item.name
        for item in program.intermediates:
            buffer = str(names[item.buffer]) if item.buffer else ""
            self._intermediates.append(replace(item, name=prefix + item.name, buffer=buffer))
        for constant in program.constants:
            names[constant.name] = prefix + constant.name
            self._constants.append(replace(constant, name=prefix + constant.name))
        label = self._graph.label(node)
        for call in program.calls:
            cleared = [str(names[name]) for name in call.leaves_undefined]
            cleared += [undefined[name] for name in call.outputs if name in undefined]
            self._calls.append(
                KernelCall(
                    call.kernel,
                    tuple(names[name] for name in call.inputs),
                    tuple(names[name] for name in call.outputs),
                    call.attributes,
                    indices=_renamed(call.indices, names),
                    leaves_undefined=tuple(cleared),
                    source=label,
                )
            )
        self._calls += copies

    def _read_source(self, source: Source, end: _Port) -> str:
        name, held = self._values[source]
        return name if end.matches(held) else self._view(name, end)

    def _write(self, place: Place, name: str, copies: list[KernelCall]) -> tuple[str, str]:
        """The name of what a node writes, and of its bytes if it leaves some undefined."""
        end = self._end(place, Role.OUTPUT)
        goals = []
        for index in self._goals.get(place, ()):
            declared = self._graph.outputs[index]
            goal = end if declared.desc is None else _port_of(declared.desc)
            goal = end if goal.tensor == end.tensor else goal
            self._tensors[declared.name] = goal.tensor
            self._outputs[index] = Slot(declared.name, goal.spec, goal.tensor.sizes)
            goals.append((declared.name, goal))
        readers = [*self._readers.get(place, ()), *(goal for _, goal in goals)]
        if goals and all(end.matches(reader) for reader in readers):
            name = goals.pop(0)[0]  # which the node writes itself
        else:
            strides = None if end.is_packed else end.strides
            self._intermediates.append(Intermediate(name, end.spec, "", strides))
        self._values[place] = name, end
        for goal_name, goal in goals:
            source = self._read_source(place, goal)
            scaled = (("scaled", False),)
            label = self._graph.label(place[0])
            copies.append(KernelCall("identity", (source,), (goal_name,), scaled, source=label))
        views = [elements_size(r.tensor) for r in readers if not end.matches(r)]
        gaps = ""
        if max(views, default=0) > end.tensor.element_count * end.tensor.data_type.element_size:
            gaps = self._view(name, _port_of(TensorDesc("UINT8", (max(views),))))
        return name, gaps

    def _view(self, buffer: str, end: _Port) -> str:
        key = buffer, end.spec, end.strides
        if key not in self._views:
            self._views[key] = f"{self._mark}{len(self._views)}:{buffer}"
            strides = None if end.is_packed else end.strides
            view = Intermediate(self._views[key], end.spec, buffer, strides)
            self._intermediates.append(view)
        return self._views[key]


def _renamed(use: IndexUse | None, names: Names) -> IndexUse | None:
    if use is None:
        return None
    return replace(use, slot=str(names[use.slot]), tensor=use.tensor or use.slot)
