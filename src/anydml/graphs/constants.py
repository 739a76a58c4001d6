"""Constants of a graph as nodes of it or as inputs that it owns, whichever their size asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from anydml.core._json import unique_name
from anydml.core.levels import LATEST
from anydml.core.tensor import TensorFlags
from anydml.graphs.check import Place, Ports
from anydml.graphs.desc import (
    ConstantNode,
    GraphDesc,
    GraphTensor,
    InputEdge,
    IntermediateEdge,
    Node,
    OperatorNode,
)
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

MOST_INSIDE: Final = 512
"""The most bytes of a constant that is a node."""


def settle_constants(
    graph: GraphDesc, weights: Mapping[str, bytes], most_inside: int = MOST_INSIDE
) -> tuple[GraphDesc, dict[str, bytes]]:
    """Make large constants owned inputs, and what is known of other inputs constants.

    A constant stays one if it is small, or if an operator that reads it takes no OWNED_BY_DML
    tensor, as recurrent ones. Large ones get names, which no input or output has.

    Parameters
    ----------
    graph : GraphDesc
        A graph that has been checked.
    weights : mapping of str to bytes
        The buffers of all inputs that it owns, and of others, by name.
    most_inside : int
        The most bytes of a small constant.

    Returns
    -------
    graph : GraphDesc
        The same operators.
    weights : dict of str to bytes
        The buffers of the inputs that it owns now.
    """
    return _Settling(graph, weights, most_inside).settled()


class _Settling:
    def __init__(self, graph: GraphDesc, weights: Mapping[str, bytes], most_inside: int) -> None:
        self._most_inside = most_inside
        self._graph = graph
        self._weights = weights
        self._ports = Ports(graph)
        # Where the readers of inputs, and of constants, are.
        self._readers: dict[int, list[Place]] = {}
        self._constant_readers: dict[int, list[Place]] = {}
        for edge in graph.input_edges:
            to = edge.to_node_index, edge.to_node_input_index
            self._readers.setdefault(edge.graph_input_index, []).append(to)
        for link in graph.intermediate_edges:
            to = link.to_node_index, link.to_node_input_index
            self._constant_readers.setdefault(link.from_node_index, []).append(to)

    def settled(self) -> tuple[GraphDesc, dict[str, bytes]]:
        graph, weights = self._graph, self._weights
        used = {node.name for node in graph.nodes if isinstance(node, OperatorNode)}
        tensors = {tensor.name for tensor in (*graph.inputs, *graph.outputs)}
        known = [i for i, tensor in enumerate(graph.inputs) if tensor.name in weights]
        bound = {i for i in known if self._is_owned_from_now_on(i)}
        inside = {
            i: ConstantNode(weights[graph.inputs[i].name], _unique(graph.inputs[i].name, used))
            for i in known
            if i not in bound
        }
        tensors -= {graph.inputs[i].name for i in inside}
        nodes: dict[int, Node] = {}
        owned: dict[int, str] = {}
        for i, node in enumerate(graph.nodes):
            if not isinstance(node, ConstantNode):
                nodes[i] = node
            elif len(node.data) <= self._most_inside:
                nodes[i] = ConstantNode(node.data, node.name and _unique(node.name, used))
            elif self._may_be_owned(self._constant_readers[i]):
                owned[i] = _unique(node.name or f"constant_{i}", tensors)
            else:
                name = unique_name(node.name or f"constant_{i}", used | tensors)
                used.add(name)
                nodes[i] = ConstantNode(node.data, name)
        kept = [i for i in range(len(graph.inputs)) if i not in inside]
        input_at = {old: new for new, old in enumerate([*kept, *(~i for i in owned)])}
        node_at = {old: new for new, old in enumerate([*nodes, *(~i for i in inside)])}

        flags: dict[int, dict[int, TensorFlags]] = {}
        into, between = list[InputEdge](), list[IntermediateEdge]()
        for edge in graph.input_edges:
            index, node_index, at = (
                edge.graph_input_index, edge.to_node_index, edge.to_node_input_index,
            )  # fmt: skip
            to = node_at[node_index], at
            if index in inside:
                between.append(IntermediateEdge(node_at[~index], 0, *to, edge.name))
                flags.setdefault(node_index, {})[at] = TensorFlags.NONE
            else:
                into.append(InputEdge(input_at[index], *to, edge.name))
                if index in bound:
                    flags.setdefault(node_index, {})[at] = TensorFlags.OWNED_BY_DML
        for link in graph.intermediate_edges:
            index, node_index, at = (
                link.from_node_index, link.to_node_index, link.to_node_input_index,
            )  # fmt: skip
            to = node_at[node_index], at
            if index in owned:
                into.append(InputEdge(input_at[~index], *to, link.name))
                flags.setdefault(node_index, {})[at] = TensorFlags.OWNED_BY_DML
            else:
                start = node_at[index], link.from_node_output_index
                between.append(IntermediateEdge(*start, *to, link.name))
        for i, changed in flags.items():
            node = nodes[i]
            assert isinstance(node, OperatorNode), "constants have no inputs"
            nodes[i] = OperatorNode(_with_flags(node.desc, changed), node.name)
        out_of = [
            replace(e, from_node_index=node_at[e.from_node_index]) for e in graph.output_edges
        ]
        inputs = [_owned(graph.inputs[i]) if i in bound else graph.inputs[i] for i in kept]
        inputs += map(GraphTensor, owned.values())
        all_nodes = (*nodes.values(), *inside.values())
        settled = GraphDesc(all_nodes, into, between, out_of, inputs, graph.outputs)
        names = {graph.inputs[i].name for i in kept}
        buffers = {name: data for name, data in weights.items() if name in names}
        for i, name in owned.items():
            buffers[name] = graph.nodes[i].data  # type: ignore[union-attr]  # a constant
        return settled, buffers

    def _is_owned_from_now_on(self, index: int) -> bool:
        """Whether an input whose elements are known is one that the graph owns."""
        readers = self._readers.get(index, ())
        size = len(self._weights[self._graph.inputs[index].name])
        return size > self._most_inside and self._may_be_owned(readers)

    def _may_be_owned(self, readers: Sequence[Place]) -> bool:
        for index, at in readers:
            node = self._graph.nodes[index]
            assert isinstance(node, OperatorNode), "constants read nothing"
            if _with_flags(node.desc, {at: TensorFlags.OWNED_BY_DML}).violations(LATEST):
                return False
        return True


def _unique(name: str, used: set[str]) -> str:
    """A name that is not in use, which it is from now on."""
    found = unique_name(name, used)
    used.add(found)
    return found


def _owned(tensor: GraphTensor) -> GraphTensor:
    if tensor.desc is None:
        return tensor
    return GraphTensor(tensor.name, replace(tensor.desc, flags=TensorFlags.OWNED_BY_DML))


def _with_flags(desc: Descriptor, flags: Mapping[int, TensorFlags]) -> Descriptor:
    """A descriptor with other flags of input tensors, by their positions among the inputs."""
    changed: dict[str, Any] = {}
    at = 0
    for info in desc.tensor_fields(Role.INPUT):
        value = getattr(desc, info.attribute)
        tensors = [value] if value is None or not info.many else [*value]
        found = [
            tensor if at + i not in flags else replace(tensor, flags=flags[at + i])
            for i, tensor in enumerate(tensors)
        ]
        at += len(tensors)
        changed[info.attribute] = found if info.many and value is not None else found[0]
    return replace(desc, **changed)
