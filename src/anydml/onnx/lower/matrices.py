"""Matrix products and einsum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from anydml.core.tensor import packed_strides
from anydml.graphs.build import Expression
from anydml.onnx.lower.elementwise import fused_activation
from anydml.onnx.lower.node import Lowering, Sizes, UnfitError, UnsupportedError, padded, strides_to


def gemm(n: Lowering) -> Expression:
    c = n.broadcast(2, n.output()[1]) if n.has(2) else None
    trans = ["TRANSPOSE" if n.get(name, 0) else "NONE" for name in ("transA", "transB")]
    return n.emit(
        "GEMM", n.view(0), n.view(1), c, trans_a=trans[0], trans_b=trans[1],
        alpha=n.get("alpha", 1.0), beta=n.get("beta", 1.0),
    )  # fmt: skip


def product_sizes(n: Lowering, a: int, b: int) -> tuple[Sizes, Sizes, Sizes]:
    """The sizes of A, B and the product, with a row or column for vectors, of equal rank."""
    left, right = n.shape(a), n.shape(b)
    left = (1, *left) if len(left) == 1 else left
    right = (*right, 1) if len(right) == 1 else right
    rank = max(len(left), len(right), 4)
    left, right = padded(left, rank), padded(right, rank)
    pairs = zip(left[:-2], right[:-2], strict=True)
    batch = [max(one, other) if min(one, other) else 0 for one, other in pairs]
    return left, right, (*batch, left[-2], right[-1])


def batched(n: Lowering, i: int, own: Sizes, sizes: Sizes) -> Expression:
    """An operand of a product, repeated over the batches of the result."""
    to = (*sizes[:-2], *own[-2:])
    return n.view(i, to, strides_to(own, to))


def matmul(n: Lowering) -> Expression:
    left, right, sizes = product_sizes(n, 0, 1)
    return n.emit(
        "GEMM", batched(n, 0, left, sizes), batched(n, 1, right, sizes),
        outputs=[(n.output()[0], sizes)], trans_a="NONE", trans_b="NONE", alpha=1.0, beta=0.0,
    )  # fmt: skip


def fused_matmul(n: Lowering) -> Expression:
    """FusedMatMul, and FusedMatMulActivation."""

    def operand(i: int, batch: bool) -> tuple[Sizes, Sizes]:
        shape = n.shape(i)
        strides = packed_strides(shape)
        if batch:  # the first dimension is the second to last of each matrix
            shape = (*shape[1:-1], shape[0], shape[-1])
            strides = (*strides[1:-1], strides[0], strides[-1])
        return padded(shape, 4), padded(strides, 4)

    (a, a_strides), (b, b_strides) = (
        operand(i, bool(n.get(f"transBatch{'AB'[i]}"))) for i in (0, 1)
    )
    if len(a) != len(b):
        rank = max(len(a), len(b))
        a, b, a_strides, b_strides = (padded(s, rank) for s in (a, b, a_strides, b_strides))
    batch = [max(x, y) for x, y in zip(a[:-2], b[:-2], strict=True)]

    def spread(i: int, own: Sizes, strides: Sizes) -> Expression:
        to = (*batch, *own[-2:])
        found = [0 if s == 1 and t != 1 else x for s, t, x in zip(own, to, strides, strict=True)]
        return n.view(i, to, found)

    trans = [bool(n.get(name, 0)) for name in ("transA", "transB")]
    rows, columns = a[-1 if trans[0] else -2], b[-2 if trans[1] else -1]
    activation = fused_activation(n, len(a)) if n.get("activation") else None
    return n.emit(
        "GEMM", spread(0, a, a_strides), spread(1, b, b_strides),
        outputs=[(n.output()[0], (*batch, rows, columns))],
        trans_a="TRANSPOSE" if trans[0] else "NONE", trans_b="TRANSPOSE" if trans[1] else "NONE",
        alpha=n.get("alpha", 1.0), beta=0.0, fused_activation=activation,
    )  # fmt: skip


def _parameter(n: Lowering, i: int, rank: int, axis: int) -> Expression | None:
    """A scale or zero point along the rows (-2) or columns (-1) of matrices."""
    if not n.has(i):
        return None
    shape = n.shape(i)
    if len(shape) <= 1:
        return n.vector(i, rank, rank + axis)
    return n.view(i, rank=rank)


def _row(n: Lowering, i: int, sizes: Sizes) -> Expression | None:
    """A vector that is repeated for every row of the result."""
    return n.view(i, sizes, (*(0,) * (len(sizes) - 1), 1)) if n.has(i) else None


def integer_product(n: Lowering) -> Expression:
    left, right, sizes = product_sizes(n, 0, 1)
    rank = len(sizes)
    return n.emit(
        "MATRIX_MULTIPLY_INTEGER", batched(n, 0, left, sizes), _parameter(n, 2, rank, -2),
        batched(n, 1, right, sizes), _parameter(n, 3, rank, -1),
        outputs=[(n.output()[0], sizes)],
    )  # fmt: skip


def quantized_product(n: Lowering) -> Expression:
    left, right, sizes = product_sizes(n, 0, 3)
    parts = {i: _parameter(n, i, len(sizes), -1 if i in (4, 5) else -2) for i in (1, 2, 4, 5, 6, 7)}
    return n.emit(
        "QUANTIZED_LINEAR_MATRIX_MULTIPLY", batched(n, 0, left, sizes), parts[1], parts[2],
        batched(n, 3, right, sizes), parts[4], parts[5], parts[6], parts[7],
        outputs=[(n.output()[0], sizes)],
    )  # fmt: skip


_TO_FLOAT: Final = {"a": 0, "b": 1, "a_scale": 2, "b_scale": 3, "a_zero": 4, "b_zero": 5,
                    "bias": 6}  # fmt: skip
"""Positions of the inputs of MatMulIntegerToFloat."""


def integer_product_to_float(
    n: Lowering, at: Mapping[str, int] = _TO_FLOAT, output: Any = None
) -> Expression:
    """A product of integers as floats; `at` has the positions of the inputs."""
    a, b = at["a"], at["b"]
    left, right, sizes = product_sizes(n, a, b)
    rank = len(sizes)
    return n.emit(
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", batched(n, a, left, sizes),
        _parameter(n, at["a_scale"], rank, -2), _parameter(n, at["a_zero"], rank, -2),
        batched(n, b, right, sizes), _parameter(n, at["b_scale"], rank, -1),
        _parameter(n, at["b_zero"], rank, -1), _row(n, at["bias"], sizes),
        outputs=[((output or n.output())[0], sizes)],
    )  # fmt: skip


def _labels(n: Lowering) -> tuple[list[str], str]:
    text = str(n.get("equation", "")).replace(" ", "")
    if "." in text:
        raise UnsupportedError("an equation with an ellipsis")
    left, arrow, right = text.partition("->")
    inputs = left.split(",")
    if not arrow:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    if len(inputs) > 2 or len(inputs) != len(n.operands):
        raise UnsupportedError("an equation of more than two tensors")
    if any(not set(right) <= set("".join(inputs)) for _ in inputs):
        raise UnsupportedError("an equation whose result has a label of no input")
    return inputs, right


def einsum(n: Lowering) -> Expression:
    """Project the inputs to all labels by strides, multiply, and sum over those that are lost."""
    inputs, right = _labels(n)
    sizes: dict[str, int] = {}
    for i, labels in enumerate(inputs):
        if len(labels) != len(n.shape(i)):
            raise UnfitError("an equation that does not fit its tensors")
        for label, size in zip(labels, n.shape(i), strict=True):
            sizes[label] = max(size, sizes.get(label, 1))
    lost = [label for label in sizes if label not in right]
    order = [*right, *lost]
    full = tuple(sizes[label] for label in order) or (1,)

    def projected(i: int) -> Expression:
        strides = dict.fromkeys(order, 0)
        own = packed_strides(n.shape(i))
        for label, size, stride in zip(inputs[i], n.shape(i), own, strict=True):
            strides[label] += stride if size > 1 else 0
        return n.view(i, full, tuple(strides.values()) or (1,))

    data_type = n.output()[0]
    if len(inputs) == 1:
        result: Expression = projected(0)
        if not lost:
            return n.emit("ELEMENT_WISE_IDENTITY", result, outputs=[(data_type, full)])
    elif product := _as_product(n, inputs, right, sizes, lost):
        return product
    else:
        result = n.emit(
            "ELEMENT_WISE_MULTIPLY", projected(0), projected(1), outputs=[(data_type, full)]
        )
    if lost:
        kept = tuple(sizes[label] for label in right)
        result = n.emit(
            "REDUCE", result, outputs=[(data_type, (*kept, *(1 for _ in lost)))], function="SUM",
            axes=tuple(range(len(right), len(order))),
        )  # fmt: skip
    return result


def _as_product(
    n: Lowering, inputs: list[str], right: str, sizes: dict[str, int], lost: list[str]
) -> Expression | None:
    """A matrix product, where one label is lost and each operand has one of its own."""
    a, b = inputs
    if len(lost) != 1 or lost[0] not in a or lost[0] not in b or len(right) > 4:
        return None
    if len(set(a)) != len(a) or len(set(b)) != len(b):
        return None
    rows, columns = ([c for c in one if c not in other] for one, other in ((a, b), (b, a)))
    batch = [c for c in right if c in a and c in b]
    if len(rows) != 1 or len(columns) != 1 or right != "".join([*batch, *rows, *columns]):
        return None

    def matrix(i: int, labels: list[str]) -> Expression:
        own = dict(zip(inputs[i], packed_strides(n.shape(i)), strict=True))
        strides = [own[c] if n.shape(i)[inputs[i].index(c)] > 1 else 0 for c in labels]
        return n.view(i, padded([sizes[c] for c in labels]), padded_strides(strides))

    def padded_strides(strides: list[int]) -> tuple[int, ...]:
        return (*(0,) * (4 - len(strides)), *strides)

    full = padded([sizes[c] for c in right])
    return n.emit(
        "GEMM", matrix(0, [*batch, *rows, *lost]), matrix(1, [*batch, *columns, *lost]),
        outputs=[(n.output()[0], full)], trans_a="NONE", trans_b="TRANSPOSE", alpha=1.0, beta=0.0,
    )  # fmt: skip


def dynamic_quantized_product(n: Lowering) -> Expression:
    """Quantize A at run time, then multiply the integers."""
    a = n.view(0)
    one = (1,) * len(a.sizes)
    byte, scale, zero = n.emit_all(
        "DYNAMIC_QUANTIZE_LINEAR", a,
        outputs=[("UINT8", a.sizes), ("FLOAT32", one), ("UINT8", one)],
    )  # fmt: skip
    left, right, sizes = product_sizes(n, 0, 1)
    rank = len(sizes)
    bias = _row(n, 4, sizes)
    to = (*sizes[:-2], *left[-2:])
    return n.emit(
        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT", n.reshape(byte, to, strides_to(left, to)),
        n.reshape(scale, (1,) * rank), n.reshape(zero, (1,) * rank), batched(n, 1, right, sizes),
        _parameter(n, 2, rank, -1), _parameter(n, 3, rank, -1), bias,
        outputs=[(n.output()[0], sizes)],
    )  # fmt: skip
