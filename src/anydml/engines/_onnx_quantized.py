"""Quantized arithmetic as single nodes of ONNX, where these give the same bits.

ONNX Runtime adds products of bytes exactly, and then multiplies by one number of float32, where the
definitions scale in float64. Both grow with the sum: they are compared at the sums at which a
result changes, and are equal everywhere if they are equal there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.engines._onnx_arrays import (
    Traced,
    as_matrix,
    chosen,
    elementwise,
    emit,
    graph_of,
    guarded,
)
from anydml.engines._onnx_graph import Graph, Node, NumpyArray, Value

_BYTES: Final = ("int8", "uint8")

_MOST_PRODUCTS: Final = 2**31 // 256**2
"""Products of two bytes whose sum is an INT32."""

_TRIED: Final = (0, 1, -1, 2, -2, 3, -3)
"""Factors next to the rounded one, by the number of steps in float32."""

_MOST_FACTORS: Final = 4096
"""Factors of one product, for each of which about 1,500 sums are compared."""


def in_one_node(x: Traced, dtype: np.dtype[Any]) -> Traced | None:
    """A conversion, with what is in front of it, as a quantizing or dequantizing node.

    None if there is no such node, or its bits may differ.
    """
    if dtype.name in _BYTES and x.dtype == np.float64:
        return _requantized(x, dtype)
    if dtype.name in _BYTES and x.dtype == np.float32:
        return _quantized(x, dtype)
    if dtype == x.dtype == np.float32:
        return _dequantized(x)
    return None


def convolved_bytes(
    x: Any, w: Any, counts: Sequence[int], group: int, **attributes: Value
) -> Traced | None:
    """A convolution of float64 that are bytes minus constants, exact; None for other numbers."""
    if prod(w.shape[1:]) > _MOST_PRODUCTS:
        return None
    shape = (x.shape[0], w.shape[0], *counts)
    return _summed_products("ConvInteger", x, w, shape, group=group, **attributes)


def multiplied_bytes(a: Any, b: Any) -> Traced | None:
    """A matrix product of float64 that are bytes minus constants; None for other numbers."""
    if not (a.dtype == b.dtype == np.float64) or a.shape[-1] > _MOST_PRODUCTS:
        return None
    shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    if not isinstance(b, Traced):
        b = as_matrix(b, a.ndim)
    return _summed_products("MatMulInteger", a, b, (*shape, a.shape[-2], b.shape[-1]))


def _summed_products(
    operator: str, a: Any, b: Any, shape: Sequence[int], **attributes: Value
) -> Traced | None:
    graph = graph_of((a, b))
    takes_signed = graph.adds_exactly and operator == "MatMulInteger"
    first, second = _as_bytes(a), _as_bytes(b, takes_signed)
    if first is None or second is None:
        return None
    operands = first[0], second[0], first[1], second[1]
    total: Traced = emit(operator, operands, np.int32, shape, **attributes).astype(np.float64)
    return total


def _as_bytes(x: Any, takes_signed: bool = False) -> tuple[Any, Any] | None:
    """Unsigned bytes, and one byte, whose difference an array is; None if there are none.

    Constants may be signed bytes, if these are taken.
    """
    if not isinstance(x, Traced):
        low = x.min()
        if takes_signed and (x == np.clip(np.rint(x), -128, 127)).all():
            return x.astype(np.int8), np.int8(0)
        zero = np.uint8(0 if low >= 0 else 128 if low >= -128 else 255)
        moved = x + zero
        if (moved == np.clip(np.rint(moved), 0, 255)).all():
            return moved.astype(np.uint8), zero
        return None
    subtracted = 0.0
    node = x.graph.nodes.get(x.value)
    if node is not None and node.operator == "Add" and node.inputs[1] in x.graph.constants:
        constant = x.graph.constants[node.inputs[1]]
        if constant.size != 1:
            return None
        subtracted, node = -float(constant.reshape(-1)[0]), x.graph.nodes.get(node.inputs[0])
    computed = None
    if node is not None and node.operator == "Sub":
        computed = _cast_byte(x.graph, node.inputs[1], ())
        node = None if computed is None else x.graph.nodes.get(node.inputs[0])
    whole = None if node is None else _cast_byte(x.graph, node.name, x.shape)
    if whole is None:
        return None
    if computed is not None:
        if computed.dtype != whole.dtype:
            return None
        if whole.dtype == np.int8:
            whole, computed = (_moved(byte, np.dtype(np.uint8)) for byte in (whole, computed))
        return whole, computed
    if whole.dtype == np.int8:  # 128 more
        whole, subtracted = _moved(whole, np.dtype(np.uint8)), subtracted + 128
    zero = np.uint8(np.clip(subtracted, 0, 255))
    return (whole, zero) if zero == subtracted else None


def _cast_byte(graph: Graph, value: str, shape: tuple[int, ...]) -> Traced | None:
    """The bytes of a shape of which a value of float64 is made; None if it is not."""
    node = graph.nodes.get(value)
    if node is not None and node.operator == "Reshape" and not shape:
        node = graph.nodes.get(node.inputs[0])
    if node is None or node.operator != "Cast":
        return None
    found = graph.specs.get(node.inputs[0])
    if found is None or found.dtype.name not in _BYTES or prod(found.shape) != prod(shape):
        return None
    bytes_: Traced = Traced(graph, node.inputs[0], found).reshape(shape)
    return bytes_


def _moved(x: Traced, dtype: np.dtype[Any]) -> Traced:
    """Signed bytes plus 128 as unsigned ones, or unsigned ones minus 128 as signed ones."""
    node = x.graph.nodes.get(x.value)
    if node is not None and node.operator == "Cast":
        inner = x.graph.nodes.get(node.inputs[0])
        if inner is not None and inner.operator == "BitwiseXor":
            return Traced(x.graph, inner.inputs[0], x.graph.specs[inner.inputs[0]])
    flipped: Traced = (x.astype(np.uint8) ^ np.uint8(128)).astype(dtype)
    return flipped


class _Step(NamedTuple):
    """A node of one input and a constant: Add, Mul, Div or, with a 0, Round."""

    operator: str
    constant: NumpyArray


def _steps_behind(graph: Graph, value: str) -> tuple[Node | None, list[_Step]]:
    """The steps of float64 that make a value, in order, and the products of bytes behind them."""
    steps: list[_Step] = []
    while (node := graph.nodes.get(value)) is not None:
        if node.operator == "Cast":
            node = graph.nodes.get(node.inputs[0])
            is_sum = node is not None and node.operator in ("ConvInteger", "MatMulInteger")
            return node if is_sum else None, steps[::-1]
        constant: NumpyArray | None = np.zeros(())
        if node.operator in ("Add", "Mul", "Div"):
            constant = graph.constants.get(node.inputs[1])
        if constant is None or node.operator not in ("Add", "Mul", "Div", "Round"):
            break
        steps.append(_Step(node.operator, constant))
        value = node.inputs[0]
    return None, []


def is_scaled_sum(x: Traced) -> bool:
    """Whether elements are sums of products of bytes times numbers, so that none is NaN."""
    node, steps = _steps_behind(x.graph, x.value)
    return node is not None and all(
        np.isfinite(constant).all() and (operator != "Div" or constant.all())
        for operator, constant in steps
    )


def _requantized(x: Traced, dtype: np.dtype[Any]) -> Traced | None:
    """Scaled sums of products of bytes, rounded and moved, as QLinearConv or QLinearMatMul."""
    graph = x.graph
    node, found = _steps_behind(graph, x.value)
    if node is None:
        return None
    is_convolution = node.operator == "ConvInteger"
    filters = graph.constants.get(node.inputs[1])
    channel = 1 if is_convolution else x.ndim - 1
    count = x.shape[channel]
    steps = [
        _Step(operator, row)
        for operator, constant in found
        if (row := _by_channel(constant, x.ndim, channel, count)) is not None
    ]
    operators = [step.operator for step in steps]
    if filters is None or len(steps) < len(found) or operators.count("Round") != 1:
        return None
    split = operators.index("Round")
    # A bias may be in front of the factors, and a zero point at the end.
    if operators[split + 1 :] not in ([], ["Add"]) or "Add" in operators[1:split]:
        return None
    bias, zeros = (
        reduce(np.add, (row for operator, row in part if operator == "Add"), np.zeros((1, 1)))
        for part in (steps[:split], steps[split:])
    )
    low = int(np.iinfo(dtype).min)
    zeros = zeros - low  # of unsigned bytes
    zero = float(zeros.flat[0])
    if zeros.size > 1 or zero != np.clip(np.rint(zero), 0, 255) or (bias != np.rint(bias)).any():
        return None
    largest = 255**2 * (prod(filters.shape[1:]) if is_convolution else filters.shape[-2])
    if np.abs(bias).max() + largest >= 2**31:
        return None
    sums = _sums_of_steps(steps, bias, zero, largest, low)
    if sums is None:
        return None
    factors = None
    if is_convolution or (filters.ndim == 2 and not bias.any()):
        factors = _equal_factors(sums, bias, _rounded_once, zero, np.float32)
    if factors is None:
        factors = _equal_factors(sums, bias, _truncated, zero, np.float64)
        return None if factors is None else _scaled(node, x, factors, bias, zero, dtype)
    w_zero = graph.constants[node.inputs[3]]
    if graph.adds_exactly and filters.dtype == np.uint8:  # and faster
        filters, w_zero = ((array ^ np.uint8(128)).view(np.int8) for array in (filters, w_zero))
    data = Traced(graph, node.inputs[0], graph.specs[node.inputs[0]])
    one, x_zero = np.float32(1), graph.constants[node.inputs[2]]
    operands = [data, one, x_zero, filters, factors, w_zero, one, np.uint8(zero)]
    if bias.any():
        operands.append(np.broadcast_to(bias.reshape(-1), (count,)).astype(np.int32))
    operator = "QLinearConv" if is_convolution else "QLinearMatMul"
    result: Traced = emit(operator, operands, np.uint8, x.shape, **dict(node.attributes))
    return result if dtype == np.uint8 else _moved(result, dtype)


def _scaled(
    node: Node, x: Traced, factors: NumpyArray, bias: NumpyArray, zero: float, dtype: np.dtype[Any]
) -> Traced:
    """A sum plus a bias, times factors of float64, rounded and moved."""

    def spread(numbers: NumpyArray) -> NumpyArray:
        behind = x.ndim - 2 if node.operator == "ConvInteger" else 0
        return numbers.reshape(-1, *(1,) * behind) if numbers.size > 1 else numbers.reshape(())

    total: Any = Traced(x.graph, node.name, x.graph.specs[node.name]).astype(np.float64)
    if bias.any():
        total = total + spread(bias)
    total = total * spread(factors) + (zero + 0.5)
    ends = np.zeros(()), np.full((), 255.0)
    result: Traced = emit("Clip", (total, *ends), np.float64, x.shape).astype(np.uint8)
    return result if dtype == np.uint8 else _moved(result, dtype)


def _by_channel(constant: NumpyArray, rank: int, channel: int, count: int) -> NumpyArray | None:
    """A constant as a column for all channels or for each; None if it has other sizes."""
    sizes = (1,) * (rank - constant.ndim) + constant.shape
    is_along = all(n == 1 for axis, n in enumerate(sizes) if axis != channel)
    fits = is_along and constant.size in (1, count) and count <= _MOST_FACTORS
    return constant.reshape(-1, 1) if fits else None


class _Sums(NamedTuple):
    """Sums at both sides of each step of a function that grows, in rows for channels.

    Attributes
    ----------
    values : array
        The sums, sorted. Between two that are not next to each other, the function is constant.
    results : array
        What the function gives, as unsigned bytes.
    ratio : array
        Its slope, as a column.
    """

    values: NumpyArray
    results: NumpyArray
    ratio: NumpyArray


def _sums_of_steps(
    steps: Sequence[_Step], bias: NumpyArray, zero: float, largest: int, low: int
) -> _Sums | None:
    """The sums up to the largest at which the result of some steps changes."""
    ratio: Any = np.ones((1, 1))
    for operator, constant in steps:
        if operator in ("Mul", "Div"):
            ratio = ratio * constant if operator == "Mul" else ratio / constant
    if not (np.isfinite(ratio) & (ratio > 2.0**-40) & (ratio < 2.0**40)).all():
        return None
    places = (np.arange(256) - 0.5 - zero) / ratio - bias
    near = (np.floor(places)[..., None] + np.arange(-2, 4)).reshape(len(places), -1)
    ends = np.broadcast_to(float(largest), (len(near), 1))
    sums = np.concatenate([near, -ends, ends], axis=1).clip(-largest, largest)
    sums.sort(axis=1)
    results: Any = sums
    for operator, constant in steps:
        if operator == "Round":
            results = np.rint(results)
        elif operator == "Add":
            results = results + constant
        else:
            results = results * constant if operator == "Mul" else results / constant
    results = np.clip(results - low, 0, 255)
    gaps = np.diff(sums, axis=1) > 1
    return None if (np.diff(results, axis=1)[gaps] != 0).any() else _Sums(sums, results, ratio)


def _rounded_once(sums: NumpyArray, factors: NumpyArray, zero: float) -> Any:
    """Bytes as ONNX Runtime's quantized operators make them."""
    values = np.rint(sums.astype(np.float32) * factors).astype(np.float64)
    return np.clip(values, -zero, 255 - zero) + zero


def _truncated(sums: NumpyArray, factors: NumpyArray, zero: float) -> Any:
    """Bytes as `_scaled` makes them: halves are rounded up."""
    return np.trunc(np.clip(sums * factors + (zero + 0.5), 0, 255))


def _equal_factors(
    sums: _Sums, bias: NumpyArray, function: Callable[..., Any], zero: float, kind: type
) -> Any:
    """Factors of a type with which a function of the biased sums has the same results, or None."""
    found: Any = np.zeros(sums.ratio.shape, kind)
    for distance in _TRIED:
        factors: Any = sums.ratio.astype(kind)
        for _ in range(abs(distance)):
            factors = np.nextafter(factors, kind(np.inf if distance > 0 else 0))
        results = function(sums.values + bias, factors, zero)
        is_equal = (results == sums.results).all(axis=1, keepdims=True)
        if len(found) == 1:
            is_equal = is_equal.all(keepdims=True)
        found = np.where((found == 0) & is_equal, factors, found)
        if found.all():
            return found.reshape(-1 if len(found) > 1 else ())
    return None


def _quantized(x: Traced, dtype: np.dtype[Any]) -> Traced | None:
    """Rounded quotients by one scale, plus one zero point."""
    graph, value, zero = x.graph, x.value, np.zeros(1, np.float32)
    node = graph.nodes.get(value)
    if node is not None and node.operator == "Add" and node.inputs[1] in graph.constants:
        zero, node = graph.constants[node.inputs[1]], graph.nodes.get(node.inputs[0])
    if node is None or node.operator != "Round":
        return None
    node = graph.nodes.get(node.inputs[0])
    if node is None or node.operator != "Div" or node.inputs[1] not in graph.constants:
        return None
    scale, spec = graph.constants[node.inputs[1]], graph.specs.get(node.inputs[0])
    if spec is None or spec.shape != x.shape or not scale.size == zero.size == 1:
        return None
    limits = np.iinfo(dtype)
    is_byte = limits.min <= zero.item() <= limits.max and zero.item() == np.rint(zero.item())
    if not is_byte or not np.isfinite(scale.item()) or not scale.item():
        return None
    data = Traced(graph, node.inputs[0], spec)
    operands = data, scale.reshape(()), zero.astype(dtype).reshape(())
    result: Traced = emit("QuantizeLinear", operands, dtype, x.shape)
    if not guarded(data):
        result = chosen(elementwise("IsNaN", data, dtype=bool), dtype.type(0), result)
    return result


def _dequantized(x: Traced) -> Traced | None:
    """Bytes minus one zero point, times one scale."""
    graph = x.graph
    node = graph.nodes.get(x.value)
    if node is None or node.operator != "Mul" or node.inputs[1] not in graph.constants:
        return None
    scale, node = graph.constants[node.inputs[1]], graph.nodes.get(node.inputs[0])
    zero = np.zeros(1, np.float32)
    if node is not None and node.operator == "Add" and node.inputs[1] in graph.constants:
        zero, node = -graph.constants[node.inputs[1]], graph.nodes.get(node.inputs[0])
    if node is None or node.operator != "Cast" or not scale.size == zero.size == 1:
        return None
    spec = graph.specs.get(node.inputs[0])
    if spec is None or spec.dtype.name not in _BYTES or spec.shape != x.shape:
        return None
    data, moved = Traced(graph, node.inputs[0], spec), zero.astype(spec.dtype)
    if moved != zero:
        return None
    operands = data, scale.reshape(()), moved.reshape(())
    result: Traced = emit("DequantizeLinear", operands, x.dtype, x.shape)
    return result
