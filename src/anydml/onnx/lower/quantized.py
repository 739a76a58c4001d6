"""Quantization, and operators on quantized elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.tensor import TensorDesc
from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lower, Lowering, RefusedError, UnsupportedError, padded
from anydml.onnx.types import DATA_TYPES


def linear(name: str) -> Lower:
    """QuantizeLinear or DequantizeLinear, with a scale for the tensor or along an axis."""

    def lower(n: Lowering) -> Expression:
        blocks = bool(n.get("block_size", 0))
        per_axis = len(n.shape(1)) == 1 and n.shape(1) != (1,)
        four_bits = any(DATA_TYPES[kind].bits < 8 for kind in (n.type(), n.results[0].type))
        if n.version >= 21 and (n.exact or blocks or four_bits or not per_axis):
            return _in_blocks(name, n, per_axis and not blocks)
        sizes = n.output()[1]
        rank = len(n.shape())
        axis = n.axis(1) if rank > 1 or per_axis else 0

        def spread(expression: Expression, count: int) -> Expression:
            own = [count if i == axis else 1 for i in range(rank)] if per_axis else [1] * rank
            strides = [1 if per_axis and i == axis else 0 for i in range(rank)]
            assert len(own) == rank
            return n.reshape(expression, sizes, (*(0,) * (len(sizes) - rank), *strides))

        scale = spread(n.view(1, rank=1), n.shape(1)[0] if per_axis else 1)
        zero = spread(n.view(2, rank=1), 0) if n.has(2) else None
        if zero is None and name == "QUANTIZE" and n.results[0].type == "u8":
            filled = n.emit(
                "FILL_VALUE_CONSTANT", outputs=[("UINT8", (1, 1, 1, 1))], value_data_type="UINT8",
                value=0,
            )  # fmt: skip
            zero = n.reshape(filled, sizes, (0,) * len(sizes))
        return n.emit(f"ELEMENT_WISE_{name}_LINEAR", n.view(0), scale, zero)

    return lower


def _in_blocks(name: str, n: Lowering, per_axis: bool) -> Expression:
    rank = max(len(n.shape()), 4)
    axis = rank - len(n.shape()) + n.axis(1) if per_axis else 0

    def parameter(i: int) -> Expression:
        return n.vector(i, rank, axis) if per_axis else n.view(i, rank=rank)

    scale = parameter(1)
    if n.has(2):
        tensors, kind = [scale, parameter(2)], "SCALE_ZERO_POINT"
    else:
        tensors, kind = [scale], "SCALE"
    return n.emit(name, n.view(0), tensors, quantization_type=kind)


def dynamic(n: Lowering) -> Any:
    one = (1,) * max(len(n.shape()), 4)
    return n.emit_all(
        "DYNAMIC_QUANTIZE_LINEAR", n.view(0),
        outputs=[n.output(), ("FLOAT32", one), (DATA_TYPES[n.results[0].type], one)],
    )  # fmt: skip


def quantized_add(n: Lowering) -> Expression:
    sizes = n.output()[1]
    rank = len(sizes)
    parts = {i: n.vector(i, rank, rank - 1) for i in (1, 2, 4, 5, 6, 7) if n.has(i)}
    return n.emit(
        "ELEMENT_WISE_QUANTIZED_LINEAR_ADD", n.broadcast(0, sizes), parts[1], parts.get(2),
        n.broadcast(3, sizes), parts[4], parts.get(5), parts[6], parts.get(7),
    )  # fmt: skip


def _spread(n: Lowering, i: int, sizes: Any) -> Expression | None:
    return n.view(i, sizes, (0,) * len(sizes)) if n.has(i) else None


def quantized_sigmoid(n: Lowering) -> Expression:
    sizes = n.output()[1]
    if not (n.has(2) and n.has(4)):
        raise UnsupportedError("it needs both zero points")
    float_ = n.emit(
        "ELEMENT_WISE_DEQUANTIZE_LINEAR", n.view(0), _spread(n, 1, sizes), _spread(n, 2, sizes),
        outputs=[("FLOAT32", sizes)],
    )  # fmt: skip
    result = n.emit("ACTIVATION_SIGMOID", float_, outputs=[("FLOAT32", sizes)])
    return n.emit(
        "ELEMENT_WISE_QUANTIZE_LINEAR", result, _spread(n, 3, sizes), _spread(n, 4, sizes)
    )


def quantized_concat(n: Lowering) -> Expression:
    sizes = n.output()[1]
    floats = []
    for i in range(2, len(n.operands), 3):
        own = padded(n.shape(i))
        floats.append(
            n.emit(
                "ELEMENT_WISE_DEQUANTIZE_LINEAR", n.view(i), _spread(n, i + 1, own),
                _spread(n, i + 2, own), outputs=[("FLOAT32", own)],
            )
        )  # fmt: skip
    rank = len(n.results[0].shape)
    axis = n.axis(1, rank) + max(4 - rank, 0)
    joined = n.emit("JOIN", floats, outputs=[("FLOAT32", sizes)], axis=axis)
    return n.emit(
        "ELEMENT_WISE_QUANTIZE_LINEAR", joined, _spread(n, 0, sizes), _spread(n, 1, sizes)
    )


def matmul_in_blocks(n: Lowering) -> Expression:
    """MatMulNBits: dequantize B, then multiply by its transpose."""
    count, size, bits = n.get("K"), n.get("N"), n.get("bits", 4)
    block = n.get("block_size")
    for i, name in ((4, "g_idx"), (5, "bias")):
        if n.has(i):
            raise RefusedError(name, "no tensor", "a tensor")
    if count % block:
        raise RefusedError("K", f"a multiple of {block} (block_size)", count)
    if n.has(3) and n.type(3) != "u8":
        raise UnsupportedError("zero points that are floats")
    kind = DataType.UINT4 if bits == 4 else DataType.UINT8
    groups = count // block
    b = n.builder.reinterpret(n.operand(1).expression(), kind, (1, 1, size, count))
    scale = n.view(2, (1, 1, size, groups))
    zero: Expression | None
    if n.has(3):
        zeros = n.operand(3).expression()
        row = groups + groups % 2 if bits == 4 else groups  # rows of whole bytes
        strides = (size * row, size * row, row, 1)
        zero = n.builder.reinterpret(zeros, kind, (1, 1, size, groups), strides)
    elif n.exact:  # the provider takes the numbers as they are
        zero = None
    else:
        middle = np.full(4, 0x88 if bits == 4 else 0x80, np.uint8)
        constant = n.builder.constant(middle.tobytes(), TensorDesc("UINT8", (4,)))
        zero = n.builder.reinterpret(constant, kind, (1, 1, size, groups), (0, 0, 0, 0))
    floats = n.emit(
        "DEQUANTIZE", b, [scale] if zero is None else [scale, zero],
        outputs=[(DATA_TYPES[n.type()], (1, 1, size, count))],
        quantization_type="SCALE" if zero is None else "SCALE_ZERO_POINT",
    )  # fmt: skip
    a = padded(n.shape())
    to = (*a[:-2], size, count)
    spread = n.reshape(floats, to, (*(0,) * (len(a) - 2), count, 1))
    return n.emit("GEMM", n.view(0), spread, trans_a="NONE", trans_b="TRANSPOSE", alpha=1.0,
                  beta=0.0)  # fmt: skip
