"""Serialized graphs, written with the `flatbuffers` package by the published schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import flatbuffers  # type: ignore[import-untyped]  # it has no types
import numpy as np

import anydml as dml
from anydml.ops._fields import (
    BoolKind,
    EnumerationKind,
    FloatKind,
    FloatsKind,
    IntegersKind,
    IntKind,
    NestedKind,
    Role,
    ScalarKind,
    ScaleBiasKind,
    Size2DKind,
)


class Writer:
    """Writes the tables of a graph."""

    def __init__(self, as_onnxruntime: bool = False) -> None:
        self.builder: Any = flatbuffers.Builder()
        self._as_onnxruntime = as_onnxruntime

    def table(self, *members: Any) -> int:
        """A table: offsets as integers, numbers as pairs of a kind and a value."""
        b = self.builder
        b.StartObject(len(members))
        for slot, member in enumerate(members):
            if isinstance(member, tuple):
                kind, value = member
                {"B": b.PrependUint8Slot, "Q": b.PrependUint64Slot}[kind](slot, value, 0)
            elif member is not None:
                b.PrependUOffsetTRelativeSlot(slot, member, 0)
        return int(b.EndObject())

    def offsets(self, values: list[int]) -> int:
        """A vector of tables or strings."""
        self.builder.StartVector(4, len(values), 4)
        for value in reversed(values):
            self.builder.PrependUOffsetTRelative(value)
        return int(self.builder.EndVector())

    def texts(self, values: list[str]) -> int:
        """A vector of strings."""
        return self.offsets([self.builder.CreateString(value) for value in values])

    def numbers(self, values: Any, dtype: str) -> int:
        """A vector of numbers."""
        return int(self.builder.CreateNumpyVector(np.array(values, dtype)))

    def structure(self, values: Any, dtype: str) -> int:
        """A structure outside of a table, as unions have it."""
        data = np.array(values, dtype).tobytes()
        self.builder.Prep(8, len(data))
        for octet in reversed(data):
            self.builder.PrependByte(octet)
        return int(self.builder.Offset())

    def tensor(self, tensor: dml.TensorDesc) -> int:
        """A DmlBufferTensorDesc."""
        strides = tensor.strides
        return self.table(
            self.builder.CreateString(tensor.data_type.full_name),
            self.numbers(tensor.sizes, "<u4"),
            None if strides is None else self.numbers(strides, "<u4"),
            ("Q", tensor.total_tensor_size_in_bytes),
        )

    def _tensors(self, desc: Any, role: Role) -> Iterator[int]:
        for info in desc.tensor_fields(role):
            value = getattr(desc, info.attribute)
            if value is None and self._as_onnxruntime:
                name = self.builder.CreateString("DML_TENSOR_DATA_TYPE_UNKNOWN")
                yield self.table(name, self.numbers([], "<u4"), None, ("Q", 0))
            elif value is not None:
                yield from (self.tensor(tensor) for tensor in (value if info.many else [value]))

    def attribute(self, desc: Any, info: Any) -> int:
        """An AttributeDesc; of a value that is left out, one without a value."""
        tag, value = self._value(desc, info.kind, getattr(desc, info.attribute))
        return self.table(self.builder.CreateString(info.name), ("B", tag), value)

    def _value(self, desc: Any, kind: Any, value: Any) -> tuple[int, int | None]:
        if value is None:
            return 0, None
        if isinstance(kind, NestedKind):
            if not kind.many:
                return 1, self.nested(value)
            return 2, self.table(self.offsets([self.nested(member) for member in value]))
        if isinstance(kind, EnumerationKind):
            untyped = self._as_onnxruntime and value is dml.DataType.UINT8
            return 3, self.structure(0 if untyped else value.value, "<u4")
        if isinstance(kind, IntegersKind):
            signed = any(number < 0 for number in value)
            return (8, self.table(self.numbers(value, "<i4"))) if signed else (
                7, self.table(self.numbers(value, "<u4")))  # fmt: skip
        if isinstance(kind, ScalarKind):
            octets = np.zeros(8, np.uint8)
            data_type = getattr(desc, kind.typed_by).numpy
            raw = np.array([value], data_type).tobytes()
            octets[: len(raw)] = np.frombuffer(raw, np.uint8)
            return 12, self.table(("B", 1), self.structure(octets, "u1"))
        for known, tag, dtype in (
            (BoolKind, 13, "u1"), (FloatKind, 6, "<f4"), (IntKind, 5, "<i4"),
            (ScaleBiasKind, 10, "<f4"), (Size2DKind, 11, "<u4"),
        ):  # fmt: skip
            if isinstance(kind, known):
                return tag, self.structure(value, dtype)
        if isinstance(kind, FloatsKind):
            return 9, self.table(self.numbers(value, "<f4"))
        return 3, self.structure(value, "<u4")

    def _attributes(self, desc: Any) -> int:
        infos = [info for info in desc.fields() if info.role is Role.ATTRIBUTE]
        return self.offsets([self.attribute(desc, info) for info in infos])

    def nested(self, desc: Any) -> int:
        """An Activation."""
        name = self.builder.CreateString(f"DML_OPERATOR_{desc.NAME}")
        return self.table(name, self._attributes(desc))

    def operator(self, desc: Any) -> int:
        """An OperatorNodeDesc.

        Tensors that are left out have no table, or that of a description of type INVALID.
        """
        sides = [self.offsets([*self._tensors(desc, role)]) for role in (Role.INPUT, Role.OUTPUT)]
        name = self.builder.CreateString(f"DML_OPERATOR_{desc.NAME}")
        return self.table(name, *sides, self._attributes(desc))


def serialized(
    graph: dml.GraphDesc, with_names: bool = False, as_onnxruntime: bool = False
) -> bytes:
    """A graph's file; with `with_names`, data of constants are left to other files.

    With `as_onnxruntime`, tensors that are left out are descriptions of type INVALID, and the type
    UINT8 of bounds is 0.

    An edge that leaves an output of a node has the output's name, or that of the graph's output.
    """
    writer = Writer(as_onnxruntime)
    outputs: dict[tuple[int, int], str] = {}
    for out_of in graph.output_edges:
        begin = out_of.from_node_index, out_of.from_node_output_index
        outputs[begin] = graph.outputs[out_of.graph_output_index].name
    inputs: dict[tuple[int, int], str] = {}
    for into in graph.input_edges:
        inputs[into.to_node_index, into.to_node_input_index] = graph.inputs[
            into.graph_input_index
        ].name
    for edge in graph.intermediate_edges:
        begin = edge.from_node_index, edge.from_node_output_index
        name = outputs.setdefault(begin, f"edge {begin[0]} {begin[1]}")
        inputs[edge.to_node_index, edge.to_node_input_index] = name
    nodes = []
    for i, node in enumerate(graph.nodes):
        counts = _counts(node)
        names = [
            writer.texts([side.get((i, j), "") for j in range(count)])
            for side, count in zip((inputs, outputs), counts, strict=True)
        ]
        label = writer.builder.CreateString(node.name)
        if isinstance(node, dml.OperatorNode):
            kind, desc = 1, writer.operator(node.desc)
        else:
            data = (
                writer.table(writer.builder.CreateString(node.name))
                if with_names
                else writer.table(writer.builder.CreateByteVector(node.data))
            )
            kind, desc = 2, writer.table(("B", 1 if with_names else 2), data)
        nodes.append(writer.table(("B", kind), desc, label, *names))
    root = writer.table(
        writer.offsets(nodes),
        writer.texts([tensor.name for tensor in graph.inputs]),
        writer.texts([tensor.name for tensor in graph.outputs]),
    )
    writer.builder.Finish(root)
    return bytes(writer.builder.Output())


def _counts(node: Any) -> tuple[int, int]:
    """How many inputs and outputs a node has, those that are left out included."""
    if isinstance(node, dml.ConstantNode):
        return 0, 1
    return tuple(
        sum(
            len(getattr(node.desc, info.attribute)) if info.many else 1
            for info in node.desc.tensor_fields(role)
        )
        for role in (Role.INPUT, Role.OUTPUT)
    )  # type: ignore[return-value]  # two
