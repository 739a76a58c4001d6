"""Every rule of the graph pages.

Time and memory are in proportion to the numbers of nodes and edges, whatever the graph, and nothing
here recurses.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from anydml.core import _json
from anydml.core.errors import Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.devices.binding import elements_size
from anydml.graphs.desc import ConstantNode, GraphDesc, GraphTensor, OperatorNode
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

MOST_REPORTED: Final = 1000
"""Violations of a graph that are reported."""

SINCE: Final = FeatureLevel.LEVEL_2_0
"""The level of the DirectML version that introduced graphs."""
CONSTANTS_SINCE: Final = FeatureLevel.LEVEL_6_2
"""The level that introduced constant nodes."""

_LONGEST_CYCLE: Final = 6
"""Nodes of a cycle that a message shows."""

Port = tuple[str, TensorDesc] | None
"""Path and descriptor of a tensor that an edge may end at; None for one that is left out."""

Place = tuple[int, int]
"""A node and one of its inputs or outputs."""


class Ports:
    """The inputs and outputs of each node, in the order in which edges count them."""

    def __init__(self, graph: GraphDesc) -> None:
        self._graph = graph
        self._known: dict[tuple[int, Role], list[Port]] = {}

    def of(self, index: int, role: Role) -> list[Port]:
        """The ports of a node; a constant's output has no descriptor, and is not among them."""
        node = self._graph.nodes[index]
        if not isinstance(node, OperatorNode):
            return []
        key = id(node.desc), role  # nodes that share a descriptor share its ports
        if key not in self._known:
            self._known[key] = _ports(node.desc, role)
        return self._known[key]

    def at(self, place: Place, role: Role) -> Port:
        """The port at a place, which exists."""
        return self.of(place[0], role)[place[1]]


def _ports(desc: Descriptor, role: Role) -> list[Port]:
    found: list[Port] = []
    for info in desc.tensor_fields(role):
        value = getattr(desc, info.attribute)
        found += [None] if value is None else list(info.paths(value))
    return found


def violations(
    graph: GraphDesc, level: FeatureLevel, constants_since: FeatureLevel = CONSTANTS_SINCE
) -> list[Violation]:
    """Every rule that a graph breaks at a feature level, up to `MOST_REPORTED`.

    `constants_since` is the lowest level that takes constant nodes.
    """
    return list(islice(_violations(graph, level, constants_since), MOST_REPORTED))


def minimum_level(graph: GraphDesc) -> FeatureLevel | None:
    """The lowest feature level that accepts a graph, or None when none does."""
    return None if violations(graph, LATEST) else lowest_level(graph)


def lowest_level(graph: GraphDesc, constants_since: FeatureLevel = CONSTANTS_SINCE) -> FeatureLevel:
    """Return the lowest feature level that accepts a graph, which the latest accepts."""
    lowest = max(SINCE, constants_since) if has_constants(graph) else SINCE
    descs = {id(n.desc): n.desc for n in graph.nodes if isinstance(n, OperatorNode)}
    for desc in descs.values():
        if desc.violations(lowest):  # one check of most operators, instead of a search
            found = desc.minimum_level()
            assert found is not None, "the latest level accepts it"
            lowest = found
    return lowest


def has_constants(graph: GraphDesc) -> bool:
    """Whether a node of the graph is a constant."""
    return any(isinstance(node, ConstantNode) for node in graph.nodes)


def _violations(
    graph: GraphDesc, level: FeatureLevel, constants_since: FeatureLevel
) -> Iterator[Violation]:
    if level < SINCE:
        rule = f"{SINCE} or above (the level that introduced graphs)"
        yield Violation("FeatureLevel", rule, level)
    if not graph.nodes:
        yield Violation("Nodes", "at least one node", "none")
    yield from _names(graph)
    yield from _nodes(graph, level, constants_since)
    yield from _Edges(graph).violations()
    order = topological_order(graph)
    if len(order) < len(graph.nodes):
        yield Violation("Nodes", "a graph without cycles", _cycle(graph, set(order)))


def _names(graph: GraphDesc) -> Iterator[Violation]:
    named_tensors = [
        (f"{list_name}[{i}].Name", tensor.name)
        for list_name, tensors in (("Inputs", graph.inputs), ("Outputs", graph.outputs))
        for i, tensor in enumerate(tensors)
    ]
    nodes = [(f"Nodes[{i}].Name", node.name) for i, node in enumerate(graph.nodes) if node.name]
    for paths_and_names in (named_tensors, nodes):
        first: dict[str, str] = {}
        for path, name in paths_and_names:
            if name in first:
                rule = f"a unique name ({first[name].removesuffix('.Name')} has the same)"
                yield Violation(path, rule, _json.short_repr(name))
            first.setdefault(name, path)


def _nodes(
    graph: GraphDesc, level: FeatureLevel, constants_since: FeatureLevel
) -> Iterator[Violation]:
    known: dict[int, list[Violation]] = {}
    for i, node in enumerate(graph.nodes):
        if isinstance(node, OperatorNode):
            key = id(node.desc)
            if key not in known:
                known[key] = node.desc.violations(level)
            for found in known[key]:
                yield Violation(f"{graph.label(i)}.{found.path}", found.rule, found.got)
            continue
        if level < constants_since:
            rule = f"{constants_since} or above (the level that introduced constant nodes)"
            yield Violation(f"{graph.label(i)}.FeatureLevel", rule, level)
        if not node.data:
            yield Violation(f"{graph.label(i)}.Data", "at least one byte", 0)


class _Edges:
    def __init__(self, graph: GraphDesc) -> None:
        self._graph = graph
        self._ports = Ports(graph)
        self._fed: set[Place] = set()
        self._used: set[int] = set()
        # By the graph's input: the first tensor that it is connected to, and what that is called.
        self._input: dict[int, tuple[str, TensorDesc]] = {}
        self._written: set[int] = set()

    def violations(self) -> Iterator[Violation]:
        graph = self._graph
        for i, edge in enumerate(graph.input_edges):
            to = edge.to_node_index, edge.to_node_input_index
            bad = [
                *self._check_graph_index(
                    f"InputEdges[{i}].GraphInputIndex", edge.graph_input_index, "input"
                ),
                *self._bad_place(f"InputEdges[{i}].To", *to, Role.INPUT),
            ]
            yield from bad or self._input_edge(edge.graph_input_index, to)
        for i, link in enumerate(graph.intermediate_edges):
            path = f"IntermediateEdges[{i}]"
            start = link.from_node_index, link.from_node_output_index
            to = link.to_node_index, link.to_node_input_index
            bad = [
                *self._bad_place(f"{path}.From", *start, Role.OUTPUT, constants=True),
                *self._bad_place(f"{path}.To", *to, Role.INPUT),
            ]
            yield from bad or self._link(start, to)
        for i, out in enumerate(graph.output_edges):
            start = out.from_node_index, out.from_node_output_index
            index = out.graph_output_index
            bad = [
                *self._bad_place(f"OutputEdges[{i}].From", *start, Role.OUTPUT),
                *self._check_graph_index(f"OutputEdges[{i}].GraphOutputIndex", index, "output"),
            ]
            yield from bad or self._output_edge(start, index)
        yield from self._unconnected()

    def _check_graph_index(self, path: str, index: int, what: str) -> Iterator[Violation]:
        tensors = self._graph.inputs if what == "input" else self._graph.outputs
        if not 0 <= index < len(tensors):
            yield Violation(path, _below(len(tensors), what, " of the graph"), index)

    def _bad_place(
        self, path: str, node: int, port: int, role: Role, constants: bool = False
    ) -> Iterator[Violation]:
        what = "Input" if role is Role.INPUT else "Output"
        if not 0 <= node < len(self._graph.nodes):
            yield Violation(f"{path}NodeIndex", _below(len(self._graph.nodes), "node"), node)
            return
        label = self._graph.label(node)
        if isinstance(self._graph.nodes[node], ConstantNode):
            if not constants:
                yield Violation(f"{path}NodeIndex", "an operator node", f"the constant {label}")
            elif port != 0:
                yield Violation(f"{path}NodeOutputIndex", f"0 (of the constant {label})", port)
            return
        ports = self._ports.of(node, role)
        if not 0 <= port < len(ports):
            rule = _below(len(ports), what.lower(), f" of {label}")
            yield Violation(f"{path}Node{what}Index", rule, port)
        elif ports[port] is None:
            rule = f"an {what.lower()} that the descriptor of {label} has"
            yield Violation(f"{path}Node{what}Index", rule, port)

    def _feed(self, to: Place) -> tuple[str, TensorDesc, list[Violation]]:
        port = self._ports.at(to, Role.INPUT)
        assert port is not None
        path = f"{self._graph.label(to[0])}.{port[0]}"
        bad = [Violation(path, "one connection", "several")] if to in self._fed else []
        self._fed.add(to)
        return path, port[1], bad

    def _input_edge(self, index: int, to: Place) -> Iterator[Violation]:
        path, tensor, bad = self._feed(to)
        yield from bad
        declared = self._graph.inputs[index]
        first = self._input.get(index)
        if first is None:
            first = (declared.name, declared.desc) if declared.desc else (path, tensor)
            self._input[index] = first
        where, other = first
        yield from _same_size(path, tensor, where, other.total_tensor_size_in_bytes)
        if tensor.flags is not other.flags:
            rule = (
                f"{other.flags} (as {where}; input {_json.short_repr(declared.name)} of the graph)"
            )
            yield Violation(f"{path}.Flags", rule, tensor.flags)

    def _link(self, start: Place, to: Place) -> Iterator[Violation]:
        path, tensor, bad = self._feed(to)
        yield from bad
        self._used.add(start[0])
        node, label = self._graph.nodes[start[0]], self._graph.label(start[0])
        if isinstance(node, ConstantNode):
            size, total = len(node.data), tensor.total_tensor_size_in_bytes
            if -(-size // 4) * 4 != total or size < elements_size(tensor):
                rule = f"{total} bytes (TotalTensorSizeInBytes of {path})"
                yield Violation(f"{label}.Data", rule, size)
        else:
            port = self._ports.at(start, Role.OUTPUT)
            assert port is not None
            total = port[1].total_tensor_size_in_bytes
            yield from _same_size(path, tensor, f"{label}.{port[0]}", total)
        if tensor.flags is TensorFlags.OWNED_BY_DML:
            rule = "a connection to an input of the graph (it is OWNED_BY_DML)"
            yield Violation(path, rule, f"one to {label}")

    def _output_edge(self, start: Place, index: int) -> Iterator[Violation]:
        self._used.add(start[0])
        declared = self._graph.outputs[index]
        if index in self._written:
            yield Violation(f"Outputs[{index}] ({declared.name})", "one connection", "several")
        self._written.add(index)
        port = self._ports.at(start, Role.OUTPUT)
        assert port is not None
        if declared.desc is not None:
            where = f"{self._graph.label(start[0])}.{port[0]}"
            yield from _same_size(
                declared.name, declared.desc, where, port[1].total_tensor_size_in_bytes
            )

    def _unconnected(self) -> Iterator[Violation]:
        graph = self._graph
        for i, node in enumerate(graph.nodes):
            for at, port in enumerate(self._ports.of(i, Role.INPUT)):
                if port is not None and (i, at) not in self._fed:
                    yield Violation(f"{graph.label(i)}.{port[0]}", "a connection", "none")
            if i not in self._used:
                what = "the constant" if isinstance(node, ConstantNode) else "an output"
                yield Violation(graph.label(i), f"a connection of {what}", "none")
        for i, tensor in enumerate(graph.outputs):
            if i not in self._written:
                yield Violation(f"Outputs[{i}] ({tensor.name})", "a connection", "none")
        for role, tensors in ((Role.INPUT, graph.inputs), (Role.OUTPUT, graph.outputs)):
            yield from _tensors(role, tensors)


def _tensors(role: Role, tensors: Iterable[GraphTensor]) -> Iterator[Violation]:
    for tensor in tensors:
        for found in tensor.desc.check(role is Role.OUTPUT) if tensor.desc else ():
            yield Violation(f"{tensor.name}.{found.path}", found.rule, found.got)


def _same_size(path: str, tensor: TensorDesc, where: str, expected: int) -> Iterator[Violation]:
    if tensor.total_tensor_size_in_bytes != expected:
        rule = f"{expected} ({where}, which it is connected to)"
        yield Violation(f"{path}.TotalTensorSizeInBytes", rule, tensor.total_tensor_size_in_bytes)


def _below(count: int, noun: str, of: str = "") -> str:
    if not count:
        return f"nothing (there are no {noun}s{of})"
    return f"{'0' if count == 1 else f'0..{count - 1}'} ({_json.counted(count, noun)}{of})"


def topological_order(graph: GraphDesc) -> list[int]:
    """The nodes, each after those that it reads from and else by position; without cycles."""
    following, waiting = _successors(graph)
    ready = [i for i in range(len(graph.nodes)) if not waiting[i]]
    order = []
    while ready:  # a heap: sorted to begin with
        node = heapq.heappop(ready)
        order.append(node)
        for successor in following.get(node, ()):
            waiting[successor] -= 1
            if not waiting[successor]:
                heapq.heappush(ready, successor)
    return order


def _successors(graph: GraphDesc) -> tuple[dict[int, list[int]], Counter[int]]:
    count = len(graph.nodes)
    following: dict[int, list[int]] = {}
    waiting: Counter[int] = Counter()
    for edge in graph.intermediate_edges:
        if 0 <= edge.from_node_index < count and 0 <= edge.to_node_index < count:
            following.setdefault(edge.from_node_index, []).append(edge.to_node_index)
            waiting[edge.to_node_index] += 1
    return following, waiting


def _cycle(graph: GraphDesc, ordered: set[int]) -> str:
    # Each node that could not be ordered reads from another such one: going back ends in a cycle.
    before: dict[int, int] = {}
    for edge in graph.intermediate_edges:
        ends: Any = (edge.from_node_index, edge.to_node_index)
        if all(0 <= end < len(graph.nodes) and end not in ordered for end in ends):
            before[edge.to_node_index] = edge.from_node_index
    node = next(iter(before))
    visited: dict[int, None] = {}
    while node not in visited:
        visited[node] = None
        node = before[node]
    passed = list(visited)
    cycle = [node, *reversed(passed[passed.index(node) :])]
    labels = [graph.label(i) for i in cycle]
    if len(labels) > _LONGEST_CYCLE:
        labels[_LONGEST_CYCLE - 2 : -1] = [f"{len(labels) - _LONGEST_CYCLE + 1} more"]
    return " -> ".join(labels)
