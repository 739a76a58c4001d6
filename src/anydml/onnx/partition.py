"""Partitions: the nodes of a model that become one DirectML graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any, Final

import numpy as np

from anydml.graphs.build import Expression, GraphBuilder
from anydml.graphs.desc import GraphDesc
from anydml.onnx.lower.rearrange import copy, reshape
from anydml.onnx.lower.recurrent import DEFAULTS as RECURRENT
from anydml.onnx.nodes import Graph, Node
from anydml.onnx.types import Value
from anydml.onnx.verdict import Judged, lower_node, tensor_desc

_CONSTANT_BYTES: Final = 8
"""Constants below this size become constant nodes."""

_OWNED_ELEMENTS: Final = 64
"""Constants of at most this many elements are owned by every graph that reads them."""


_LARGE_SCALE: Final = 2.0**119
"""Whose product with 255 is finite in float32."""


def constant_node(builder: GraphBuilder, value: Value, name: str = "") -> Expression:
    """Add a constant of a model as a constant node."""
    assert value.data is not None
    desc = tensor_desc(value)
    data = value.data.tobytes().ljust(desc.total_tensor_size_in_bytes, b"\0")
    return builder.constant(data, desc, name=name)


@dataclass(eq=False)
class Partition:
    """Nodes that become one graph.

    Attributes
    ----------
    nodes : list of Judged
        In the order of the model.
    outputs : list of str
        The values that others read, or that the model returns.
    owned : set of str
        Constants that are bound once.
    constants : set of str
        Constants that are constant nodes: recurrent layers take none that are bound once.
    literal : bool
        Whether nodes that copy bytes are operators, as in the provider's graphs.
    most_embedded : int
        The most bytes of a constant that becomes a constant node.
    in_place : bool
        Whether outputs that the provider puts in the memory of inputs replace these.
    """

    nodes: list[Judged]
    outputs: list[str]
    graph: Graph
    owned: set[str]
    constants: set[str]
    exact: bool
    embeds: bool = True
    literal: bool = True
    most_embedded: int = _CONSTANT_BYTES - 1
    in_place: bool = False
    reads: dict[str, Value] = field(default_factory=dict)

    @cached_property
    def desc(self) -> GraphDesc:
        """The graph."""
        builder = GraphBuilder()
        made: dict[str, Expression] = {}

        def source(value: Value) -> Expression:
            if value.name not in made:
                made[value.name] = self._input(builder, value)
            return made[value.name]

        for item in self.nodes:
            inputs, outputs = map(self.graph.tensors, (item.node.inputs, item.node.outputs))
            first = item.node.outputs[0]
            same = None if self.literal or first in self.outputs else self._same(item)
            if same is not None:
                made[first] = source(self.graph.values[same])
                continue
            label = _labels(item).__next__
            _, results = lower_node(
                item, inputs, outputs, builder, source, self.exact, label, self.in_place
            )
            for value, result in zip(outputs, results, strict=False):
                if value is not None and result is not None:
                    made[value.name] = result
        return builder.build(**{name: made[name] for name in self.outputs})

    def _same(self, item: Judged) -> str | None:
        """The value whose bytes a node gives again, for readers that can reinterpret them."""
        node = item.node
        if item.row is not None and item.row.lower in (copy, reshape):
            return node.inputs[0]
        if node.operator != "QuantizeLinear":
            return None
        before = self._producers.get(node.inputs[0])
        if before is None or before.operator != "DequantizeLinear":
            return None
        return before.inputs[0] if _undoes(node, before, self.graph.values) else None

    @cached_property
    def _producers(self) -> dict[str, Node]:
        return {item.node.outputs[0]: item.node for item in self.nodes}

    def _input(self, builder: GraphBuilder, value: Value) -> Expression:
        is_small = value.data is not None and value.nbytes <= self.most_embedded
        if value.data is not None and self.embeds and (is_small or value.name in self.constants):
            return constant_node(builder, value, value.name)
        self.reads[value.name] = value
        flags = "OWNED_BY_DML" if value.name in self.owned else "NONE"
        return builder.input(value.name, tensor_desc(value, flags=flags))


def _undoes(quantize: Node, dequantize: Node, values: Mapping[str, Value]) -> bool:
    """Whether quantization gives the 8-bit integers back that were dequantized before it.

    It does with the same constants if no product of an integer and a scale overflows or is
    denormal: the quotient of the rounded product and the scale rounds to the integer.
    """
    own, other = ([values[n] for n in node.inputs[1:] if n] for node in (quantize, dequantize))
    integers, result = values[dequantize.inputs[0]], values[quantize.outputs[0]]
    if integers.type != result.type or result.type not in ("u8", "i8") or own[0].type != "f32":
        return False
    if quantize.attributes != dequantize.attributes or len(own) != len(other):
        return False
    if len(own) < 2 and result.type != "u8":  # whose default zero point is of another type
        return False
    for one, two in zip(own, other, strict=True):
        if one.data is None or two.data is None or one.shape != two.shape:
            return False
        if one is not two and not np.array_equal(one.data, two.data):
            return False
    scales: Any = own[0].data
    sizes = np.abs(scales)
    return bool((sizes >= np.finfo(np.float32).tiny).all() and (sizes < _LARGE_SCALE).all())


def _labels(item: Judged) -> Iterator[str]:
    """Names of the operators of a node, as the provider gives them."""
    first = next(name for name in item.node.outputs if name)
    return (f"{first}_dmlEp_{i}" for i in count())


def stages(judged: Sequence[Judged], is_member: Sequence[bool]) -> list[int]:
    """For each node a number: members with one number form a graph without a cycle.

    Members have even numbers, others odd ones; a node never reads from a higher number.
    """
    made: dict[str, int] = {}
    found = []
    for item, member in zip(judged, is_member, strict=True):
        stage = max((made[name] for name in item.node.inputs if name in made), default=-1)
        if stage < 0:
            stage = 0 if member else -1
        if (stage % 2 == 0) is not member:
            stage += 1
        found.append(stage)
        made.update((name, stage) for name in item.node.outputs if name)
    return found


def partitions(
    judged: Sequence[Judged],
    graph: Graph,
    exact: bool,
    wanted: Iterable[str] = (),
    is_member: Sequence[bool] | None = None,
    embeds: bool = True,
    literal: bool = True,
    in_place: bool = False,
) -> list[Partition]:
    """The partitions of a model, in an order in which each follows those that it reads.

    Parameters
    ----------
    judged : sequence of Judged
        The nodes.
    graph : Graph
        The model.
    exact : bool
        Whether mistakes of the provider are repeated.
    wanted : iterable of str
        Values that are needed outside, besides the model's outputs.
    is_member : sequence of bool, optional
        Which nodes become graphs; by default those that the provider puts in graphs.
    embeds : bool
        Whether the smallest constants become constant nodes.
    literal : bool
        Whether Reshape and its like are nodes, as in the provider's graphs.
    in_place : bool
        Whether outputs that the provider puts in the memory of inputs replace these.
    """
    member = [item.place == "graph" for item in judged] if is_member is None else is_member
    numbers = stages(judged, member)
    groups: dict[int, list[Judged]] = {}
    for item, stage, inside in zip(judged, numbers, member, strict=True):
        if inside:
            groups.setdefault(stage, []).append(item)
    readers: dict[str, set[int]] = {}
    for item, stage, inside in zip(judged, numbers, member, strict=True):
        for name in item.node.inputs:
            readers.setdefault(name, set()).add(stage if inside else -1 - id(item))
    needed = {*graph.outputs.values(), *wanted}
    found = []
    for stage in sorted(groups):
        nodes = groups[stage]
        outputs = [
            name
            for item in nodes
            for name in item.node.outputs
            if name and (name in needed or readers.get(name, set()) - {stage})
        ]
        owned = {
            name
            for item in nodes
            for name in item.node.inputs
            if name and (value := graph.values[name]).data is not None
            and (not exact or readers[name] == {stage} or value.data.size <= _OWNED_ELEMENTS)
        }  # fmt: skip
        recurrent = (item.node.inputs for item in nodes if item.node.operator in RECURRENT)
        constants = owned & {name for inputs in recurrent for name in inputs}
        found.append(
            Partition(
                nodes, outputs, graph, owned - constants, constants, exact, embeds, literal,
                in_place=in_place,
            )
        )  # fmt: skip
    return found
