"""Types and shapes of the outputs of a node, as the `onnx` package infers them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import AnyDMLError, ModelError
from anydml.onnx.nodes import Node
from anydml.onnx.read import load_onnx
from anydml.onnx.types import SEQUENCE, Shape, Value, packed, type_name, type_number

_NAMELESS: Final = {"": None, "?": None}
"""Names of dimensions that mean nothing: two of them may differ."""

_FACTS: Final = 8
"""The most attributes and inputs of a node in a message about it."""

_DATA_ELEMENTS: Final = 1024
"""Elements of a constant that shape inference may read."""


def infer(
    node: Node, operands: Sequence[Value | None], schemaless: Any, ir_version: int = 0
) -> list[tuple[Any, ...]] | None:
    """Infer each output of a node, as fields of a `Value` behind the name.

    None or less if they are not known.

    Raises
    ------
    ModelError
        The inputs do not fit the operator.
    """
    found: list[tuple[Any, ...]] | None = schemaless(node, operands)
    if found is not None or node.schema is None:
        _refuse_negative(node, found or ())
        return found
    if node.has_subgraphs:
        kinds = {attribute.type.name for attribute in node.schema.attributes.values()}
        if kinds.isdisjoint(("GRAPH", "GRAPHS")):
            raise ModelError(f"{node.label}: expected no subgraph.")
        return None
    onnx = load_onnx()
    _refuse_unbounded(node, operands)
    _refuse_unfit_shapes(node, operands)
    types, data = {}, {}
    for name, value in zip(node.proto.input, operands, strict=True):
        if value is None:
            continue
        if not value.type or (value.type == SEQUENCE and value.proto is None):
            return []
        types[name] = type_of(value)
        # The `onnx` package is too strict with these: ranges of rank 1, and places out of range.
        strict = {"Range": value.shape != (), "OneHot": name == node.proto.input[0]}
        known = None if value.type == SEQUENCE else value.data
        if known is not None and known.size <= _DATA_ELEMENTS and not strict.get(node.operator):
            data[name] = tensor_of(value, onnx)

    try:
        outputs = onnx.shape_inference.infer_node_outputs(
            node.schema, node.proto, types, data, ir_version=ir_version or 3,
            opset_imports=[onnx.helper.make_opsetid(node.domain, node.opset)],
        )  # fmt: skip
    except Exception as error:  # several classes without a base, also of damaged names
        reason = " ".join(str(error).split()).removesuffix(".")
        given = [f"{name}={short_repr(value)}" for name, value in node.attributes.items()]
        given += [f"{short_repr(x.name)} {short_repr(x.shape)}" for x in operands if x is not None]
        raise ModelError(
            f"{node.label}: {reason}; got {', '.join(given[:_FACTS]) or 'no inputs'}."
        ) from None
    values = [value_of("", outputs.get(name)) for name in node.proto.output]
    if not node.domain and node.operator in _CORRECTED:
        for value in values:
            value.shape = _CORRECTED[node.operator](node, operands, value)
    found = [(value.type, value.shape, None, value.proto) for value in values]
    _refuse_negative(node, found)
    return found


@contextmanager
def node_errors(name: str, operator: str) -> Iterator[None]:
    """Raise a `ModelError` for any error inside: a file may describe a node that is impossible."""
    try:
        yield
    except AnyDMLError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise ModelError(
            f"Node {short_repr(name)} ({short_repr(operator)[1:-1]}): expected inputs, outputs and "
            f"attributes that fit the operator, got others ({reason})."
        ) from error


def _refuse_unbounded(node: Node, operands: Sequence[Value | None]) -> None:
    """Refuse attributes with which `onnx` reads outside of its memory."""
    if node.domain or node.operator not in ("GatherND", "LayerNormalization", "Split"):
        return
    shape = next((x.shape for x in operands if x is not None), None)
    rank = 0 if shape is None else len(shape)
    name, low, high = {
        "GatherND": ("batch_dims", 0, rank),
        "LayerNormalization": ("axis", -rank, rank - 1),
        "Split": ("num_outputs", len(node.proto.output), len(node.proto.output)),
    }[node.operator]
    value = node.attributes.get(name)
    known = shape is not None or node.operator == "Split"
    if value is not None and known and not (isinstance(value, int) and low <= value <= high):
        raise ModelError(f"{node.label}: {name}: expected {low}..{high}, got {short_repr(value)}.")


def _refuse_negative(node: Node, found: Sequence[tuple[Any, ...]]) -> None:
    for _, shape, *_ in found:
        if any(isinstance(size, int) and size < 0 for size in shape or ()):
            raise ModelError(
                f"{node.label}: expected sizes of at least 0, got {short_repr(shape)}."
            )


_GATES: Final = {"RNN": 1, "GRU": 3, "LSTM": 4}


def _layer_shapes(node: Node, x: Any, w: Any, r: Any = None, *_: Any) -> dict[str, Any]:
    gates, hidden = _GATES[node.operator], node.attributes.get("hidden_size", r and r[-1])
    batch_first = node.attributes.get("layout", 0)
    directions = 2 if node.attributes.get("direction") == "bidirectional" else 1
    batch = x[0 if batch_first else 1]
    state = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    return {
        "X": (None, None, None), "W": (directions, _times(gates, hidden), x[2]),
        "R": (directions, _times(gates, hidden), hidden),
        "B": (directions, _times(2 * gates, hidden)), "sequence_lens": (batch,),
        "initial_h": state, "initial_c": state, "P": (directions, _times(3, hidden)),
    }  # fmt: skip


def _convolution_shapes(node: Node, x: Any, w: Any, *_: Any) -> dict[str, Any]:
    group, spatial = node.attributes.get("group", 1), (None,) * (len(x) - 2)
    kernel = node.attributes.get("kernel_shape") or spatial
    outside, inside = w[0], _times(group, w[1])
    if node.operator == "ConvTranspose":
        outside, inside = inside, outside
    return {"X": (None, inside, *spatial), "W": (None, None, *kernel), "B": (outside,)}


def _times(count: Any, size: Any) -> int | None:
    return count * size if isinstance(count, int) and isinstance(size, int) else None


_SHAPES: Final[Mapping[str, Callable[..., dict[str, Any]]]] = {
    **dict.fromkeys(_GATES, _layer_shapes),
    **dict.fromkeys(("Conv", "ConvTranspose"), _convolution_shapes),
}
"""The shapes of inputs that `onnx` does not compare, by their names; None for any size."""


def _refuse_unfit_shapes(node: Node, operands: Sequence[Value | None]) -> None:
    """Refuse tensors that do not fit together."""
    shapes = [None if value is None else value.shape for value in operands]
    known = shapes[:2]
    if node.domain or node.operator not in _SHAPES or not all(s and len(s) > 2 for s in known):
        return
    expected = _SHAPES[node.operator](node, *shapes)
    problems = [
        f"{node.label}: {name}: expected the shape {_text(wanted)}, got {_text(shape)}."
        for (name, wanted), shape in zip(expected.items(), shapes, strict=False)
        if shape is not None and not _fits(shape, wanted)
    ]
    if problems:
        raise ModelError(*problems)


def _fits(shape: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether sizes are equal as far as they are known."""
    return len(shape) == len(wanted) and all(
        one == other or not (isinstance(one, int) and isinstance(other, int))
        for one, other in zip(shape, wanted, strict=True)
    )


def _text(shape: Sequence[Any]) -> str:
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    return f"({sizes},)" if len(shape) == 1 else f"({sizes})"


def _reshaped(node: Node, operands: Sequence[Value | None], found: Value) -> Any:
    x = operands[0]
    if x is not None and None not in (x.sizes, found.sizes):
        count = prod(x.sizes or ())
        if count != prod(found.sizes or ()):
            raise ModelError(
                f"{node.label}: expected a shape of {count} elements (those of {x.sizes}), "
                f"got {found.sizes}."
            )
    return found.shape


def _of_einsum(node: Node, operands: Sequence[Value | None], found: Value) -> Any:
    """Return the shape with sizes of 1 broadcast, which `onnx` leaves out."""
    left, arrow, right = str(node.attributes.get("equation", "")).replace(" ", "").partition("->")
    terms = left.split(",")
    known = [x.sizes for x in operands if x is not None and x.sizes is not None]
    if not arrow or len(known) != len(terms) or not f"{left}{right}".replace(",", "").isalpha():
        return found.shape
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, known, strict=True):
        for label, size in zip(term, shape, strict=True):
            sizes[label] = max(size, sizes.get(label, 1)) if size else 0
    return tuple(sizes[label] for label in right)


def _pooled(node: Node, operands: Sequence[Value | None], found: Value) -> Any:
    """Return the shape without windows that begin behind the input, as ONNX Runtime does."""
    x, shape, given = operands[0], found.sizes, node.attributes
    if not given.get("ceil_mode") or x is None or x.sizes is None or shape is None:
        return found.shape
    rank = len(shape) - 2
    strides, pads = given.get("strides") or [1] * rank, given.get("pads") or [0] * 2 * rank
    return (*shape[:2], *windows_inside(shape[2:], x.sizes[2:], strides, pads))


def windows_inside(
    counts: Sequence[int], sizes: Sequence[int], strides: Sequence[int], pads: Sequence[int]
) -> list[int]:
    """The number of windows along each dimension, without one that begins behind the input."""
    parts = zip(counts, sizes, strides, pads, strict=False)
    return [n - ((n - 1) * stride >= size + pad) for n, size, stride, pad in parts]


def _transposed(node: Node, operands: Sequence[Value | None], found: Value) -> Any:
    """Return the shape of a transposed convolution by its definition, which `onnx` has in part."""
    return transposed(node, operands[:2], node.attributes.get("pads")) or found.shape


def transposed(
    node: Node, operands: Sequence[Value | None], pads: Sequence[int] | None
) -> Shape | None:
    """The shape of the result of a transposed convolution; None if one of its inputs is not known.

    Parameters
    ----------
    node : Node
        The node.
    operands : sequence of Value or None
        The input and the filter.
    pads : sequence of int or None
        The padding, with which the result is smaller.
    """
    x, w = (None if value is None else value.sizes for value in operands)
    if x is None or w is None or len(x) < 3:
        return None
    rank = len(x) - 2

    def of(name: str, default: Sequence[int]) -> list[int]:
        return list(node.attributes.get(name) or default)

    strides, window = of("strides", [1] * rank), of("kernel_shape", w[2:])
    more, dilations = of("output_padding", [0] * rank), of("dilations", [1] * rank)
    pads = pads or [0] * 2 * rank
    sizes = [
        (x[2 + i] - 1) * strides[i] + (window[i] - 1) * dilations[i] + 1 + more[i]
        for i in range(rank)
    ]
    if "output_shape" in node.attributes:
        sizes = of("output_shape", [])[-rank:]
    elif str(node.attributes.get("auto_pad", "")).startswith("SAME"):
        sizes = [min(size, x[2 + i] * strides[i]) for i, size in enumerate(sizes)]
    else:
        sizes = [size - pads[i] - pads[rank + i] for i, size in enumerate(sizes)]
    return (x[0], w[1] * node.attributes.get("group", 1), *sizes)


def _squeezed(node: Node, operands: Sequence[Value | None], found: Value) -> Any:
    """Return the shape without axes in any order; `onnx` expects them to increase."""
    x, axes = operands[0], node.attributes.get("axes")
    if x is None or x.shape is None or axes is None:
        return found.shape
    gone = [range(len(x.shape))[axis] for axis in axes]
    return tuple(size for i, size in enumerate(x.shape) if i not in gone)


def _of_all(node: Node, operands: Sequence[Value | None], found: Value) -> Any:
    """Return the shape that all inputs broadcast to; `onnx` has that of the first, or none."""
    sizes = [value.sizes for value in operands if value is not None]
    if node.version < 7 or not sizes or None in sizes:
        return found.shape
    return np.broadcast_shapes(*(size or () for size in sizes))


def _resized(node: Node, operands: Sequence[Value | None], found: Value) -> Any:
    """Return the shape with products in FLOAT32, as ONNX Runtime rounds; `onnx` takes FLOAT64."""
    scales: Any = node.attributes.get("scales")
    at = 1 if node.version < 11 else 2
    if len(operands) > at and (value := operands[at]) is not None:
        scales = value.data
    x = operands[0]
    if scales is None or x is None or None in (x.sizes, found.sizes) or not np.size(scales):
        return found.shape
    sizes = list(x.sizes or ())
    axes = node.attributes.get("axes", range(len(sizes)))
    for axis, scale in zip(axes, np.ravel(scales), strict=False):
        sizes[axis] = int(np.floor(np.float32(sizes[axis]) * np.float32(scale)))
    return tuple(sizes)


_CORRECTED: Final[Mapping[str, Callable[..., Any]]] = {
    "ConvTranspose": _transposed, "Einsum": _of_einsum, "Reshape": _reshaped,
    "Resize": _resized, "Squeeze": _squeezed, "Upsample": _resized,
    **dict.fromkeys(("GreaterOrEqual", "LessOrEqual", "MeanVarianceNormalization", "PRelu"),
                    _of_all),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _pooled),
}  # fmt: skip
"""Corrections of the shapes that `onnx` infers, by operator."""


def value_of(name: str, proto: Any) -> Value:
    """The value that a TypeProto describes."""
    if proto is None:
        return Value(name)
    kind = proto.WhichOneof("value")
    if kind != "tensor_type":
        return Value(name, SEQUENCE, proto=proto) if kind else Value(name)
    tensor = proto.tensor_type
    shape: tuple[int | str | None, ...] | None = None
    if tensor.HasField("shape"):
        shape = tuple(
            dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0
            else _NAMELESS.get(dim.dim_param, dim.dim_param)
            for dim in tensor.shape.dim
        )  # fmt: skip
    return Value(name, type_name(tensor.elem_type) if tensor.elem_type else "", shape)


def type_of(value: Value) -> Any:
    """The TypeProto of a value, which others of its type and shape share."""
    return _type_proto(value.type, value.shape) if value.proto is None else value.proto


@lru_cache(1024)
def _type_proto(name: str, shape: tuple[int | str | None, ...] | None) -> Any:
    return load_onnx().helper.make_tensor_type_proto(type_number(name), shape)


def tensor_of(value: Value, onnx: Any) -> Any:
    """The TensorProto of a constant."""
    assert value.data is not None
    if value.type == "string":
        texts = value.data.reshape(-1).tolist()
        return onnx.helper.make_tensor(value.name, type_number("string"), value.sizes or (), texts)
    data = packed(value.data, value.type).tobytes()
    return onnx.helper.make_tensor(
        value.name, type_number(value.type), value.sizes or (), data, raw=True
    )
