"""NumPy's functions on arrays of an ONNX graph; on other operands they are NumPy's own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from anydml.engines._onnx_arrays import (
    Traced,
    axes_of,
    chosen,
    compact,
    elementwise,
    emit,
    guarded,
    is_traced,
    joined,
    padded,
    permuted,
    power,
    reduced,
    repeated,
    result_type,
    taken,
    typed,
    working_type,
)
from anydml.engines._onnx_graph import NotTraced

MOST_STEPS: Final = 64
"""The most steps of a loop that become nodes of their own."""

MOST_FACTORS: Final = 512
"""The most elements of a running product, each of which becomes a node."""


class Namespace:
    """NumPy, with functions of traced arrays under NumPy's names."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(np, name)
        if not callable(value) or isinstance(value, type):
            return value

        def call(*arguments: Any, **options: Any) -> Any:
            if not _has_traced((*arguments, *options.values())):
                return value(*arguments, **options)
            if name not in _FUNCTIONS:
                raise NotTraced(f"the function {name}")
            return _FUNCTIONS[name](*arguments, **options)

        return call


def _has_traced(operands: Sequence[Any]) -> bool:
    return any(
        isinstance(x, Traced) or (isinstance(x, list | tuple) and _has_traced(x)) for x in operands
    )


def _function(node: str) -> Callable[[Any], Any]:
    """An operator of ONNX on floats; integers are computed in float64."""

    def call(x: Any) -> Any:
        if x.dtype.kind != "f":
            x = x.astype(np.float64)
        return elementwise(node, x)

    return call


def asarray(x: Any, dtype: Any = None) -> Any:
    if is_traced(x):
        return x if dtype is None else x.astype(dtype)
    raise NotTraced("an array of arrays")


def maximum(a: Any, b: Any) -> Any:
    common = result_type(a, b)
    for x, other in ((a, b), (b, a)):
        if not is_traced(other) and common.name in ("float32", "float64"):
            bound = compact(np.asarray(other))
            if bound.size == 1 and bound.reshape(-1)[0] == 0:  # joins a convolution in front
                shape = np.broadcast_shapes(x.shape, np.shape(other))
                return repeated(elementwise("Relu", typed(x, common)), shape)
    return elementwise("Max", a, b)


def minimum(a: Any, b: Any) -> Any:
    return elementwise("Min", a, b)


def clip(x: Any, low: Any, high: Any) -> Any:
    common = result_type(x, low, high)
    bounds = [np.asarray(b) for b in (low, high) if not is_traced(b)]
    if is_traced(x) and len(bounds) == 2 and all(b.ndim == 0 for b in bounds):
        working = working_type("Clip", common)
        least, most = (b.astype(common).astype(working) for b in bounds)
        if least <= most:
            small = typed(x, working).compact
            result = emit("Clip", (small, least, most), working, small.shape)
            return repeated(result.astype(common), x.shape)
    return minimum(maximum(x, low), high)


def isnan(x: Any) -> Any:
    return elementwise("IsNaN", x, dtype=bool)


def isinf(x: Any) -> Any:
    return elementwise("IsInf", x, dtype=bool)


def isfinite(x: Any) -> Any:
    return ~(isnan(x) | isinf(x))


def trunc(x: Any) -> Any:
    return chosen(x < 0, elementwise("Ceil", x), elementwise("Floor", x))


def copysign(x: Any, sign: Any) -> Any:
    size = elementwise("Abs", x) if is_traced(x) else np.abs(x)
    return chosen(_is_negative(sign), -size, size)


def _is_negative(x: Any) -> Any:
    """The sign bit of numbers."""
    if not is_traced(x):
        return np.signbit(x)
    zero, one = x.dtype.type(0), x.dtype.type(1)
    return (x < zero) | ((x == zero) & (one / x < zero))


def fmod(a: Any, b: Any) -> Any:
    return elementwise("Mod", a, b, fmod=1)


def mod(a: Any, b: Any) -> Any:
    rest, zero = fmod(a, b), result_type(a, b).type(0)
    moved = chosen((b < zero) != (rest < zero), rest + b, rest)
    return chosen(rest == zero, copysign(zero, b), moved)


def expm1(x: Any) -> Any:
    """``tanh(x / 2) * (exp(x) + 1)``; of float64 Kahan's: the rounding of the power cancels."""
    wide = x.astype(np.float64)
    y = elementwise("Exp", wide)
    if x.dtype != np.float64:
        return (elementwise("Tanh", wide * 0.5) * (y + 1.0)).astype(x.dtype)
    below = y - 1.0
    exact = below * wide / elementwise("Log", y)
    result = chosen(y == 1.0, wide, chosen((below == -1.0) | isinf(y), below, exact))
    return result.astype(x.dtype)


def log1p(x: Any) -> Any:
    """Kahan's: the rounding of the sum cancels in the quotient."""
    wide = x.astype(np.float64)
    y = wide + 1.0
    exact = elementwise("Log", y) * wide / (y - 1.0)
    result = chosen(y == 1.0, wide, chosen(isinf(y), y, exact))
    return result.astype(x.dtype)


def arctan2(y: Any, x: Any) -> Any:
    common = result_type(y, x)
    if common != np.float32:
        raise NotTraced(f"arctan2 of {common.name}")
    wide_y, wide_x = typed(y, np.float64), typed(x, np.float64)
    both = isinf(wide_y) & isinf(wide_x)
    zeros = (wide_y == 0.0) & (wide_x == 0.0)
    size = elementwise("Abs", wide_y) / elementwise("Abs", wide_x)
    size = chosen(both, 1.0, chosen(zeros, 0.0, size))
    angle = elementwise("Atan", size.astype(np.float32)).astype(np.float64)
    angle = chosen(_is_negative(wide_x), np.pi - angle, angle)
    missing = isnan(wide_x) | isnan(wide_y)
    return chosen(missing, np.nan, copysign(angle, wide_y)).astype(np.float32)


def maximum_along(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest elements; NaN where there is one."""
    if x.dtype == np.uint64:
        return _flipped(maximum_along(_flipped(x), axis, keepdims))
    result = reduced("ReduceMax", x, axis, keepdims)
    return _with_nan(result, x, axis, keepdims)


def minimum_along(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _reversed(maximum_along(_reversed(x), axis, keepdims))


def _reversed(x: Any) -> Any:
    """Elements in the opposite order of size."""
    return -x if x.dtype.kind == "f" else ~x


def _flipped(x: Any) -> Any:
    """Unsigned integers as signed ones of the same order, and back."""
    other = np.dtype(("i" if x.dtype.kind == "u" else "u") + str(x.dtype.itemsize))
    bit = np.int64(-(2**63))
    return (x ^ bit).astype(other) if x.dtype.kind == "i" else x.astype(other) ^ bit


def _with_nan(result: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    if x.dtype.kind != "f" or guarded(x):
        return result
    return chosen(isnan(x).any(axis, keepdims), x.dtype.type(np.nan), result)


def argmax(x: Any, axis: int, keepdims: bool = False) -> Any:
    """The place of the first of the largest elements, or of the first NaN."""
    if x.dtype == np.uint64:
        x = _flipped(x)
    if x.dtype.kind == "f" and not guarded(x):
        missing = isnan(x)
        x = chosen(missing.any(axis, keepdims=True), missing.astype(x.dtype), x)
    axis %= x.ndim
    shape = tuple(1 if i == axis else n for i, n in enumerate(x.shape))
    x = x.astype(working_type("ArgMax", x.dtype))
    result = emit("ArgMax", (x,), np.int64, shape, axis=axis)
    return result if keepdims else result.reshape(shape[:axis] + shape[axis + 1 :])


def argmin(x: Any, axis: int, keepdims: bool = False) -> Any:
    return argmax(_reversed(x), axis, keepdims)


def sum_along(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return reduced("ReduceSum", x, axis, keepdims, _summed_type(x, dtype))


def product_along(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    return reduced("ReduceProd", x, axis, keepdims, _summed_type(x, dtype))


def _summed_type(x: Any, dtype: Any) -> np.dtype[Any]:
    if dtype is None and x.dtype.kind in "biu":
        dtype = np.uint64 if x.dtype.kind == "u" else np.int64
    found: np.dtype[Any] = np.dtype(dtype or x.dtype)
    return found


def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    count = int(np.prod([x.shape[i] for i in axes_of(axis, x.ndim)], dtype=np.int64))
    return sum_along(x, axis, dtype, keepdims) / count


def cumsum(x: Any, axis: int, dtype: Any = None) -> Any:
    x = x.astype(_summed_type(x, dtype))
    working = working_type("CumSum", x.dtype)
    places = np.asarray(axis % x.ndim, np.int64)
    return emit("CumSum", (x.astype(working), places), working, x.shape).astype(x.dtype)


def cumprod(x: Any, axis: int, dtype: Any = None) -> Any:
    x = x.astype(_summed_type(x, dtype))
    if x.shape[axis] > MOST_FACTORS:
        raise NotTraced(f"a running product of more than {MOST_FACTORS} elements")
    front = (slice(None),) * (axis % x.ndim)
    found = [x[(*front, slice(0, 1))]]
    for i in range(1, x.shape[axis]):
        found.append(found[-1] * x[(*front, slice(i, i + 1))])
    return joined(found, axis)


def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    rank = arrays[0].ndim + 1
    at = axis % rank
    if at == 0 and rank > 1:
        return joined(arrays, 0).reshape((len(arrays), *arrays[0].shape))
    expanded = [x.reshape((*x.shape[:at], 1, *x.shape[at:])) for x in arrays]
    return joined(expanded, at)


def split(x: Any, parts: int, axis: int = 0) -> list[Any]:
    front, size = (slice(None),) * (axis % x.ndim), x.shape[axis] // parts
    return [x[(*front, slice(i * size, (i + 1) * size))] for i in range(parts)]


def flip(x: Any, axis: Any = None) -> Any:
    axes = axes_of(axis, x.ndim)
    return x[tuple(slice(None, None, -1) if i in axes else slice(None) for i in range(x.ndim))]


def pad(x: Any, widths: Sequence[tuple[int, int]], constant_values: Any = 0) -> Any:
    return padded(x, widths, constant_values)


def take(x: Any, places: Any, axis: int | None = None) -> Any:
    return taken(x.reshape(-1), places, 0) if axis is None else taken(x, places, axis)


def take_along_axis(x: Any, places: Any, axis: int) -> Any:
    axis %= x.ndim
    shape = [
        n if i == axis else max(n, m)
        for i, (n, m) in enumerate(zip(places.shape, x.shape, strict=True))
    ]
    sources = [m if i == axis else n for i, (n, m) in enumerate(zip(shape, x.shape, strict=True))]
    operands = repeated(x, sources), repeated(typed(places, np.int64), shape)
    return emit("GatherElements", operands, x.dtype, shape, axis=axis)


def repeat(x: Any, count: int, axis: int) -> Any:
    axis %= x.ndim
    inner = x.reshape((*x.shape[: axis + 1], 1, *x.shape[axis + 1 :]))
    sizes = (*x.shape[: axis + 1], count, *x.shape[axis + 1 :])
    merged = (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1 :])
    return repeated(inner, sizes).reshape(merged)


def tile(x: Any, counts: Sequence[int]) -> Any:
    for axis, count in enumerate(counts):
        if count > 1:
            x = joined([x] * count, axis)
    return x


def full_like(x: Any, value: Any) -> Any:
    return np.broadcast_to(np.asarray(value, x.dtype), x.shape)


def full(shape: Sequence[int], value: Any, dtype: Any = None) -> Any:
    return repeated(value if dtype is None else value.astype(dtype), shape)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    name: _function(node)
    for name, node in {
        "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan",
        "tanh": "Tanh", "rint": "Round", "round": "Round", "floor": "Floor", "ceil": "Ceil",
        "arcsin": "Asin", "arccos": "Acos", "arctan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
        "arcsinh": "Asinh", "arccosh": "Acosh", "arctanh": "Atanh",
    }.items()
} | {
    "add": operator.add, "subtract": operator.sub, "multiply": operator.mul,
    "negative": operator.neg, "equal": operator.eq, "less": operator.lt, "less_equal": operator.le,
    "greater": operator.gt, "greater_equal": operator.ge,
    "abs": lambda x: x if x.dtype.kind == "u" else elementwise("Abs", x),
    "where": chosen, "power": power, "max": maximum_along, "min": minimum_along, "sum": sum_along,
    "prod": product_along, "concatenate": lambda arrays, axis=0: joined(arrays, axis),
    "transpose": lambda x, axes=None: x.T if axes is None else permuted(x, axes),
    "swapaxes": lambda x, a, b: x.swapaxes(a, b), "broadcast_to": repeated,
    "reshape": lambda x, shape: x.reshape(shape),
    "zeros_like": lambda x: full_like(x, 0), "ones_like": lambda x: full_like(x, 1),
    "any": lambda x, axis=None, keepdims=False: x.any(axis, keepdims),
    **{f.__name__: f for f in (
        asarray, maximum, minimum, clip, isnan, isinf, isfinite, trunc, copysign, fmod, mod, expm1,
        log1p, arctan2, argmax, argmin, mean, cumsum, cumprod, stack, split, flip, pad, take,
        take_along_axis, repeat, tile, full_like, full,
    )},
}  # fmt: skip
