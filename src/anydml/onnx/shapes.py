"""Types and shapes of the outputs of a node, as the `onnx` package infers them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.onnx.nodes import Node
from anydml.onnx.read import load_onnx
from anydml.onnx.types import SEQUENCE, Value, type_name, type_number

_NAMELESS: Final = {"": None, "?": None}
"""Names of dimensions that mean nothing: two of them may differ."""

_DATA_ELEMENTS: Final = 1024
"""Elements of a constant that shape inference may read."""


def infer(
    node: Node, operands: Sequence[Value | None], schemaless: Any, ir_version: int = 0
) -> list[tuple[str, Any]] | None:
    """The type and shape of each output of a node; None or less if they are not known.

    Raises
    ------
    ModelError
        The inputs do not fit the operator.
    """
    found: list[tuple[str, Any]] | None = schemaless(node, operands)
    if found is not None or node.schema is None or node.has_subgraphs:
        return found
    onnx = load_onnx()
    types, data = {}, {}
    for name, value in zip(node.proto.input, operands, strict=True):
        if value is None:
            continue
        if not value.type or value.type == SEQUENCE:
            return []
        types[name] = type_of(value, onnx)
        if value.data is not None and value.data.size <= _DATA_ELEMENTS:
            data[name] = tensor_of(value, onnx)

    def inferred(data: dict[str, Any]) -> Any:
        return onnx.shape_inference.infer_node_outputs(
            node.schema, node.proto, types, data, ir_version=ir_version or 3,
            opset_imports=[onnx.helper.make_opsetid(node.domain, node.opset)],
        )  # fmt: skip

    try:
        try:
            outputs = inferred(data)
        except onnx.shape_inference.InferenceError:
            outputs = inferred({})  # which ONNX Runtime asks, before constants are folded
    except Exception as error:  # several classes without a base, also of damaged names
        reason = " ".join(str(error).split())
        raise ModelError(f"Node {short_repr(node.name)} ({node.title}): {reason}") from None
    values = [value_of("", outputs.get(name)) for name in node.proto.output]
    return [(value.type, value.shape) for value in values]


def value_of(name: str, proto: Any) -> Value:
    """The value that a TypeProto describes."""
    if proto is None:
        return Value(name)
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        return Value(name, SEQUENCE if kind else "")
    tensor = proto.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0
            else _NAMELESS.get(dim.dim_param, dim.dim_param)
            for dim in tensor.shape.dim
        )  # fmt: skip
    return Value(name, type_name(tensor.elem_type) if tensor.elem_type else "", shape)


def type_of(value: Value, onnx: Any) -> Any:
    """The TypeProto of a value."""
    return onnx.helper.make_tensor_type_proto(type_number(value.type), value.shape)


def tensor_of(value: Value, onnx: Any) -> Any:
    """The TensorProto of a constant."""
    data = value.data
    assert data is not None
    return onnx.helper.make_tensor(
        value.name, type_number(value.type), value.sizes or (), data.tobytes(), raw=True
    )
