"""ONNX as an engine: `compute` becomes nodes of a graph, which ONNX Runtime runs.

What ONNX Runtime does differently from the definitions is computed around its nodes: NaN in
maxima, floats beyond the range of an integer type, quotients towards the floor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from math import prod
from typing import Any, Final

import numpy as np
from numpy.polynomial import Chebyshev

from anydml.engines import Array, Reduction, Step
from anydml.engines._numpy import ERF_IS_1, NumpyEngine, erf_series
from anydml.engines._onnx_arrays import (
    elementwise,
    emit,
    guarded,
    is_traced,
    padded,
    product,
    repeated,
    typed,
    working_type,
)
from anydml.engines._onnx_graph import NotTraced
from anydml.engines._onnx_namespace import MOST_STEPS, Namespace
from anydml.engines._onnx_quantized import (
    convolved_bytes,
    in_one_node,
    is_scaled_sum,
    multiplied_bytes,
)
from anydml.engines._windows import NOWHERE, Axis, Window, larger, lowest

_NUMPY: Final = NumpyEngine()
_XP: Any = Namespace()

MOST_TAPS: Final = 64
"""The most elements of a window along one axis, or of a filter, that become nodes of their own."""

MOST_PADDED: Final = 1 << 26
"""The most elements of an array with its padding."""


class OnnxEngine:
    """`Engine` on arrays of an ONNX graph, and on NumPy arrays as NumPy's.

    Parameters
    ----------
    most_steps : int
        The most steps of a loop, each of which becomes nodes of its own.
    """

    xp: Any = _XP
    scratch_nbytes: int = 0
    multiplies_halves: bool = False

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        self._most_steps = most_steps

    def dot(self, a: Array, b: Array) -> Array:
        """Matrix products."""
        if not (is_traced(a) or is_traced(b)):
            return _NUMPY.dot(a, b)
        whole = multiplied_bytes(a, b)
        return product(a, b) if whole is None else whole

    def conv(
        self, x: Array, w: Array, window: Window, groups: int, steps: Sequence[int] | None = None
    ) -> Array:
        """ONNX Runtime's convolution of float32; of others, a sum of matrix products."""
        if not (is_traced(x) or is_traced(w)):
            return _NUMPY.conv(x, w, window, groups, steps)
        w = typed(w, x.dtype)
        if steps is not None and any(step > 1 for step in steps):
            if x.dtype != np.float32 or any(stride > 1 for stride in window.strides):
                raise NotTraced(f"a transposed convolution of {x.dtype.name}")
            return _transposed(x, w, window, groups, steps)
        axes = window.over(x.shape[2:])
        if x.dtype != np.float32:
            whole = None
            if x.dtype == np.float64 and min(map(min, window.pads)) >= 0:
                counts = [axis.count for axis in axes]
                whole = convolved_bytes(x, w, counts, group=groups, **_attributes(window))
            return _by_taps(x, w, axes, groups) if whole is None else whole
        crops = [(min(low, 0), min(high, 0)) for low, high in window.pads]
        shape = (x.shape[0], w.shape[0], *(axis.count for axis in axes))
        if any(n + sum(pair) < 1 for n, pair in zip(x.shape[2:], crops, strict=True)):
            return repeated(np.zeros((), x.dtype), shape)  # every window lies in the padding
        x = padded(x, [(0, 0), (0, 0), *crops], 0)
        return emit("Conv", (x, w), x.dtype, shape, group=groups, **_attributes(window))

    def reduce_window(self, x: Array, reduction: Reduction, window: Window) -> Array:
        """A reduction of each window."""
        if not is_traced(x):
            return _NUMPY.reduce_window(x, reduction, window)
        axes = window.over(x.shape[2:])
        # ONNX Runtime's pooling takes padding that is smaller than the window.
        is_plain = all(
            max(pair) < axis.window and min(pair) >= 0 and _meets_elements(axis)
            for pair, axis in zip(window.pads, axes, strict=True)
        )
        if reduction == "max":
            # ONNX Runtime's maximum loses NaN, and is the lowest number where all are -infinity.
            fits = x.dtype.name not in ("int64", "uint64")
            if is_plain and fits and (x.dtype.kind != "f" or guarded(x, is_finite=True)):
                return _max_pooled(x, axes, window)
            return _folded(x, axes, _XP.maximum, lowest(x.dtype))
        if reduction == "logaddexp":
            return _folded(x, axes, _add_logarithms, -np.inf)
        if x.dtype == np.float32 and is_plain and prod(window.sizes) <= MOST_TAPS:
            mean = _pooled("AveragePool", x, axes, window, count_include_pad=1)
            return mean * np.float32(prod(window.sizes))
        wide = x.astype(np.float64) if x.dtype.kind == "f" else x
        whole = (
            (axis.count, axis.start, axis.window, axis.dilation) == (1, 0, axis.size, 1)
            for axis in axes
        )
        if all(whole):
            spatial = tuple(range(2, x.ndim))
            return _XP.sum(wide, axis=spatial, keepdims=True).astype(x.dtype)
        return _folded(wide, axes, lambda a, b: a + b, 0).astype(x.dtype)

    def locate_max(self, x: Array, window: Window) -> tuple[Array, Array]:
        """The largest element of each window, and its place."""
        if not is_traced(x):
            return _NUMPY.locate_max(x, window)
        places = np.arange(prod(x.shape[2:])).reshape(1, 1, *x.shape[2:])
        best, at = x, places
        for dimension, axis in enumerate(window.over(x.shape[2:]), 2):
            values = _taps(best, dimension, axis, lowest(x.dtype))
            found = _taps(at, dimension, axis, NOWHERE)
            best, at = reduce(partial(larger, _XP), zip(values, found, strict=True))
        at = _XP.where(at == NOWHERE, np.int64(-1), at)
        return best, _XP.broadcast_to(at, best.shape)

    def cast(self, x: Array, dtype: Any) -> Array:
        """Conversion as CAST has it."""
        if not is_traced(x):
            return _NUMPY.cast(np.asarray(x), dtype)
        dtype = np.dtype(dtype)
        whole = in_one_node(x, dtype)
        if whole is not None:
            return whole
        if x.dtype == np.float64 and dtype == np.float16:
            return _rounded_to_half(x)
        if x.dtype.kind != "f" or dtype.kind not in "iu":
            return x.astype(dtype)
        limits = np.iinfo(dtype)
        kind = np.float32 if x.dtype == np.float32 and dtype.itemsize < 4 else np.float64
        low, high = kind(limits.min), kind(limits.max)
        wide = x.astype(kind)
        present = wide if is_scaled_sum(x) else _XP.where(_XP.isnan(wide), kind(0), wide)
        if dtype.itemsize < 8:
            return _XP.clip(present, low, high).astype(dtype)
        above, below = wide >= high, wide <= low
        inside = _XP.where(above | below, kind(0), present).astype(dtype)
        return _XP.where(
            above, dtype.type(limits.max), _XP.where(below, dtype.type(limits.min), inside)
        )

    def bits(self, x: Array) -> Array:
        """The elements' bits; those of floats are not traced."""
        if not is_traced(x):
            return _NUMPY.bits(x)
        if x.dtype.kind == "f":
            raise NotTraced("the bits of floats")
        return x.astype(f"u{x.dtype.itemsize}")

    def from_bits(self, bits: Array, dtype: Any) -> Array:
        """Elements of a type from their bits."""
        if not is_traced(bits):
            return _NUMPY.from_bits(bits, dtype)
        if np.dtype(dtype).kind == "f":
            raise NotTraced("the bits of floats")
        return bits.astype(dtype)

    def popcount(self, bits: Array) -> Array:
        """How many bits are 1: sums of pairs, of fours and of bytes."""
        if not is_traced(bits):
            return _NUMPY.popcount(bits)
        kind = np.uint64
        x = bits.astype(kind)
        x = x - ((x >> kind(1)) & kind(0x5555555555555555))
        x = (x & kind(0x3333333333333333)) + ((x >> kind(2)) & kind(0x3333333333333333))
        x = (x + (x >> kind(4))) & kind(0x0F0F0F0F0F0F0F0F)
        return ((x * kind(0x0101010101010101)) >> kind(56)).astype(np.uint8)

    def erf(self, x: Array) -> Array:
        """The error function: ONNX Runtime's of float32, for others NumPy's series."""
        if not is_traced(x):
            return _NUMPY.erf(x)
        if x.dtype == np.float32:
            return elementwise("Erf", x)
        near, far = erf_series()
        size = _XP.minimum(_XP.abs(x.astype(np.float64)), ERF_IS_1)
        square = size * size
        below_1 = size * _sum_of_series(near, _XP.minimum(square, 1.0))
        from_1 = _sum_of_series(far, _XP.maximum(size, 1.0))
        result = _XP.where(size < 1.0, below_1, _XP.where(size == ERF_IS_1, 1.0, from_1))
        return _XP.copysign(result, x)

    def scatter_add(self, size: int, places: Array, values: Array) -> Array:
        """Sums in the order of the values."""
        if not (is_traced(places) or is_traced(values)):
            return _NUMPY.scatter_add(size, places, values)
        working = working_type("ScatterElements", values.dtype)
        operands = np.zeros(size, working), typed(places, np.int64), typed(values, working)
        result = emit("ScatterElements", operands, working, (size,), axis=0, reduction="add")
        return result.astype(values.dtype)

    def scan(self, step: Step, carry: Any, xs: Any, backward: bool) -> tuple[Any, Array]:
        """A loop whose steps are nodes of their own."""
        count = len(xs[0])
        if count > self._most_steps:
            raise NotTraced(f"a sequence of more than {self._most_steps} steps")
        results = []
        parts = [_parts(x) for x in xs]
        for i in range(count)[::-1] if backward else range(count):
            carry, result = step(carry, tuple(part[i] for part in parts))
            results.append(result)
        return carry, _XP.stack(results[::-1] if backward else results)

    def repeat(self, count: Array, step: Callable[[Array, Any], Any], carry: Any) -> Any:
        """A loop of a known number of steps."""
        if is_traced(count):
            raise NotTraced("a loop whose length depends on data")
        if count > self._most_steps:
            raise NotTraced(f"a loop of more than {self._most_steps} steps")
        return _NUMPY.repeat(count, step, carry)


def _parts(x: Array) -> list[Array]:
    """The parts along the first axis, cut from fewer dimensions: it takes one node for each."""
    if x.ndim < 2:
        return [*x]
    rows, flat = x.shape[1], x.reshape(-1, *x.shape[2:])
    return [flat[i * rows : (i + 1) * rows] for i in range(len(x))]


def _in_order(pads: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Padding as ONNX has it; where elements are left out, there is none."""
    return tuple(max(pair[end], 0) for end in (0, 1) for pair in pads)


def _meets_elements(axis: Axis) -> bool:
    """Whether each window along an axis meets an element."""
    return all(axis.within(window) for window in range(axis.count))


def _attributes(window: Window) -> dict[str, Any]:
    """A window as ONNX's attributes."""
    return {
        "kernel_shape": tuple(window.sizes),
        "strides": tuple(window.strides),
        "pads": _in_order(window.pads),
        "dilations": tuple(window.dilations),
    }


def _pooled(
    operator: str, x: Array, axes: Sequence[Axis], window: Window, **attributes: Any
) -> Array:
    shape = (*x.shape[:2], *(axis.count for axis in axes))
    return emit(operator, (x,), x.dtype, shape, **_attributes(window), **attributes)


def _max_pooled(x: Array, axes: Sequence[Axis], window: Window) -> Array:
    if x.dtype.kind == "f":
        return _pooled("MaxPool", x, axes, window)
    exact = np.float32 if x.dtype.itemsize < 4 else np.float64
    own = x.dtype.name in ("int8", "uint8")
    return _pooled("MaxPool", x if own else x.astype(exact), axes, window).astype(x.dtype)


def _taps(x: Array, dimension: int, axis: Axis, value: Any) -> list[Array]:
    """Return what each element of a window meets in all windows along an axis, with padding."""
    if axis.window > MOST_TAPS:
        raise NotTraced(f"windows of more than {MOST_TAPS} elements")
    end = (axis.count - 1) * axis.stride
    behind = end + (axis.window - 1) * axis.dilation + 1 - axis.size - axis.start
    if prod(x.shape) // axis.size * (axis.size + max(axis.start, 0) + max(behind, 0)) > MOST_PADDED:
        raise NotTraced("that much padding")
    widths = [(0, 0)] * x.ndim
    widths[dimension] = axis.start, behind
    whole = padded(x, widths, value)
    front = (slice(None),) * dimension
    places = (tap * axis.dilation for tap in range(axis.window))
    return [whole[(*front, slice(at, at + end + 1, axis.stride))] for at in places]


def _folded(
    x: Array, axes: Sequence[Axis], function: Callable[[Array, Array], Array], neutral: Any
) -> Array:
    """A reduction of windows along one axis after the other, as `_reductions` has it."""
    pairs = [(i, axis) for i, axis in enumerate(axes, 2) if not axis.is_identity]
    for dimension, axis in sorted(pairs, key=lambda pair: pair[1].count / pair[1].size):
        x = reduce(function, _taps(x, dimension, axis, neutral))
    return x


def _sum_of_series(series: Chebyshev, x: Array) -> Array:
    """A Chebyshev series by Clenshaw's recurrence."""
    low, high = map(float, series.domain)
    doubled = (x * 2.0 - (low + high)) * (2.0 / (high - low))
    last, before = doubled * 0.0, doubled * 0.0
    for coefficient in series.coef[:0:-1]:
        last, before = doubled * last - before + float(coefficient), last
    return doubled * 0.5 * last - before + float(series.coef[0])


def _add_logarithms(a: Array, b: Array) -> Array:
    """The logarithm of the sum of two numbers from their logarithms."""
    larger, smaller = _XP.maximum(a, b), _XP.minimum(a, b)
    same = larger == smaller  # infinities, whose difference is NaN
    below = _XP.where(same, 0.0, smaller - larger)
    return larger + _XP.log1p(_XP.exp(below))


def _by_taps(x: Array, w: Array, axes: Sequence[Axis], groups: int) -> Array:
    """A convolution as a sum of matrix products, one for each element of the filter."""
    if prod(w.shape[2:]) > MOST_TAPS:
        raise NotTraced(f"a filter of {x.dtype.name} with more than {MOST_TAPS} elements")
    filters, channels = w.shape[0] // groups, w.shape[1]
    counts = tuple(axis.count for axis in axes)

    def products(values: Array, dimension: int, place: tuple[int, ...]) -> Array:
        if dimension < x.ndim:
            taps = _taps(values, dimension, axes[dimension - 2], 0)
            found = (products(tap, dimension + 1, (*place, i)) for i, tap in enumerate(taps))
            return reduce(lambda a, b: a + b, found)
        columns = values.reshape(x.shape[0], groups, channels, prod(counts))
        part = w[(slice(None), slice(None), *place)].reshape(groups, filters, channels)
        return product(part, columns)

    return products(x, 2, ()).reshape(x.shape[0], w.shape[0], *counts)


def _transposed(x: Array, w: Array, window: Window, groups: int, steps: Sequence[int]) -> Array:
    """The transpose of a convolution with strides, from the filter that slides over its input."""
    w = _XP.flip(w, tuple(range(2, w.ndim)))
    parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    own = _XP.swapaxes(parts, 1, 2).reshape(
        groups * w.shape[1], w.shape[0] // groups, *window.sizes
    )
    spans = [(n - 1) * step for n, step in zip(window.sizes, window.dilations, strict=True)]
    # What is cropped from the result, or added where it is negative.
    crops = [
        (span - low, span - high) for span, (low, high) in zip(spans, window.pads, strict=True)
    ]
    full = [
        (n - 1) * step + span + 1 for n, step, span in zip(x.shape[2:], steps, spans, strict=True)
    ]
    sizes = [n - sum(max(crop, 0) for crop in pair) for n, pair in zip(full, crops, strict=True)]
    shape = (x.shape[0], groups * own.shape[1])
    if min(sizes) < 1:  # an axis is cropped away, so only padding remains
        padded_sizes = (n - sum(pair) for n, pair in zip(full, crops, strict=True))
        return repeated(np.zeros((), x.dtype), (*shape, *padded_sizes))
    attributes = _attributes(window._replace(strides=steps, pads=crops))
    y = emit("ConvTranspose", (x, own), x.dtype, (*shape, *sizes), group=groups, **attributes)
    return padded(y, [(0, 0), (0, 0), *((max(-a, 0), max(-b, 0)) for a, b in crops)], 0)


def _rounded_to_half(x: Array) -> Array:
    """FLOAT64 as the nearest FLOAT16; ONNX Runtime rounds to FLOAT32 first."""
    near = x.astype(np.float32)
    half = near.astype(np.float16).astype(np.float64)
    step = _XP.where(near.astype(np.float64) < x, np.float32(2.0**-22), np.float32(-(2.0**-22)))
    other = near + _XP.abs(near) * step
    other = other.astype(np.float16).astype(np.float64)
    nearer = _XP.abs(x - other) < _XP.abs(x - half)
    return _XP.where(nearer, other, half).astype(np.float16)
