"""JAX as an engine: what XLA compiles.

`compute` runs once for each jitted function, on traced arrays. Types follow NumPy's rules only
while `x64` is active, around the trace and around each call of what was traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial, reduce
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from anydml.engines import Array, Reduction, Step
from anydml.engines._windows import NOWHERE, Window, larger, lowest

_MOST_TAPS: Final = 64
"""The most elements of a window that become one operation each."""


def x64() -> AbstractContextManager[Any]:
    """A context with 64-bit types enabled in this thread."""
    if hasattr(jax, "enable_x64"):
        context: AbstractContextManager[Any] = jax.enable_x64(True)
        return context
    from jax.experimental import enable_x64  # before JAX 0.8

    return enable_x64()  # type: ignore[no-any-return]  # JAX is not checked


class _Namespace:
    """`jax.numpy`, with functions that are as precise as NumPy's where XLA's are not.

    XLA makes both of ``exp(x + log(0.5))``, which is 13 ULPs off at 40 in float32.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(jnp, name)

    def argmax(self, x: Array, axis: int, **options: Any) -> Array:
        if x.dtype.kind == "f":  # of several NaN, a GPU may find any
            missing = jnp.isnan(x)
            x = jnp.where(missing.any(axis, keepdims=True), missing.astype(x.dtype), x)
        return jnp.argmax(x, axis, **options)

    def argmin(self, x: Array, axis: int, **options: Any) -> Array:
        return self.argmax(-x if x.dtype.kind == "f" else ~x, axis, **options)

    def cosh(self, x: Array) -> Array:
        return jnp.cosh(x.astype(jnp.float64)).astype(x.dtype)

    def sinh(self, x: Array) -> Array:
        return jnp.sinh(x.astype(jnp.float64)).astype(x.dtype)


class JaxEngine:
    """`Engine` on arrays that JAX traces.

    Parameters
    ----------
    multiplies_halves : bool, optional
        Whether matrix units multiply float16 where it is an operand: on a GPU.
    precision : jax.lax.Precision, optional
        Of products of float32; ``DEFAULT`` is TF32 on a GPU, which rounds them to 11 bits.
    """

    xp: Any = _Namespace()
    scratch_nbytes: int = 0

    def __init__(
        self, multiplies_halves: bool = False, precision: lax.Precision = lax.Precision.HIGHEST
    ) -> None:
        self.multiplies_halves = multiplies_halves
        self.precision = precision

    def dot(self, a: Array, b: Array) -> Array:
        """Matrix products."""
        return jnp.matmul(a, b, precision=self.precision, preferred_element_type=_sum_type(a))

    def conv(
        self, x: Array, w: Array, window: Window, groups: int, steps: Sequence[int] | None = None
    ) -> Array:
        """XLA's convolution; a depthwise one, for which that is slow, as a sum of taps."""
        steps = steps or [1] * len(window.sizes)
        if groups == len(w) == x.shape[1] and prod(window.sizes) <= _MOST_TAPS:
            ones = (1,) * len(window.sizes)
            x, w = (operand.astype(_sum_type(operand) or operand.dtype) for operand in (x, w))
            return sum(
                tap.of_elements(tap.values * w[(slice(None), 0, *tap.place)].reshape(-1, *ones))
                for tap in _taps(x, 0, window, steps)
            )
        return lax.conv_general_dilated(
            x, w, tuple(window.strides), [*map(tuple, window.pads)], tuple(steps),
            tuple(window.dilations), feature_group_count=groups, precision=self.precision,
            preferred_element_type=_sum_type(x),
        )  # fmt: skip

    def reduce_window(self, x: Array, reduction: Reduction, window: Window) -> Array:
        """A reduction of each window."""
        function = lax.max if reduction == "max" else jnp.logaddexp
        neutral = 0 if reduction == "sum" else lowest(x.dtype)
        if prod(window.sizes) <= _MOST_TAPS:
            taps = [tap.values for tap in _taps(x, neutral, window)]
            return sum(taps) if reduction == "sum" else reduce(function, taps)
        if reduction != "sum":
            return lax.reduce_window(x, neutral, function, **_dimensions(window))
        # XLA adds one element after the other: too many for float32.
        wide = x.astype(jnp.float64) if x.dtype.kind == "f" else x
        total = lax.reduce_window(wide, wide.dtype.type(0), lax.add, **_dimensions(window))
        return total.astype(x.dtype)

    def locate_max(self, x: Array, window: Window) -> tuple[Array, Array]:
        """The largest element of each window, and its place."""
        places = jnp.arange(prod(x.shape[2:]), dtype=jnp.int64).reshape(1, 1, *x.shape[2:])
        if prod(window.sizes) <= _MOST_TAPS:
            values = (tap.values for tap in _taps(x, lowest(x.dtype), window))
            found = (tap.values for tap in _taps(places, NOWHERE, window))
            best, at = reduce(_larger, zip(values, found, strict=True))
        else:
            operands = x, jnp.broadcast_to(places, x.shape)
            padding = lowest(x.dtype), NOWHERE
            best, at = lax.reduce_window(operands, padding, _larger, **_dimensions(window))
        return best, jnp.broadcast_to(jnp.where(at == NOWHERE, -1, at), best.shape)

    def cast(self, x: Array, dtype: Any) -> Array:
        """Conversion as CAST has it."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if x.dtype == np.float64 and dtype == np.float16:
            x = _rounded_to_odd(x)
        if x.dtype.kind != "f" or dtype.kind == "f":
            if dtype == np.float64 and x.dtype in (np.int64, np.uint64):
                # In two halves: XLA joins conversions, and would round to FLOAT32 at once.
                low = (x & x.dtype.type(0xFFFFFFFF)).astype(dtype)
                return (x >> x.dtype.type(32)).astype(dtype) * 2.0**32 + low
            return x.astype(dtype)
        limits = np.iinfo(dtype)
        wide = x.astype(jnp.float64)
        high = wide >= float(limits.max)
        low = wide <= float(limits.min)
        inside = jnp.where(high | low | jnp.isnan(wide), 0.0, jnp.trunc(wide)).astype(dtype)
        inside = jnp.where(high, dtype.type(limits.max), inside)
        return jnp.where(low, dtype.type(limits.min), inside)

    def bits(self, x: Array) -> Array:
        """The elements' bits as unsigned integers."""
        return lax.bitcast_convert_type(x, np.dtype(f"u{x.dtype.itemsize}"))

    def from_bits(self, bits: Array, dtype: Any) -> Array:
        """Elements of a type from their bits."""
        return lax.bitcast_convert_type(bits, dtype)

    def popcount(self, bits: Array) -> Array:
        """How many bits of each unsigned integer are 1."""
        return lax.population_count(bits).astype(jnp.uint8)

    def erf(self, x: Array) -> Array:
        """The error function."""
        return lax.erf(x)

    def scatter_add(self, size: int, places: Array, values: Array) -> Array:
        """Sums in an order that XLA chooses."""
        return jnp.zeros(size, values.dtype).at[places].add(values, mode="promise_in_bounds")

    def scan(self, step: Step, carry: Any, xs: Any, backward: bool) -> tuple[Any, Array]:
        """XLA's loop."""
        found: tuple[Any, Array] = lax.scan(step, carry, xs, reverse=backward)
        return found

    def repeat(self, count: Array, step: Callable[[Array, Any], Any], carry: Any) -> Any:
        """XLA's loop."""
        return lax.fori_loop(0, count, step, carry)


def _sum_type(x: Array) -> Any:
    """The type in which products of an array's elements are added, if not its own."""
    return np.dtype(np.float32) if x.dtype == np.float16 else None


def _rounded_to_odd(x: Array) -> Array:
    """FLOAT64 as FLOAT32 that rounds to FLOAT16 as the FLOAT64 does: XLA's CPU rounds twice."""
    near = x.astype(jnp.float32)
    bits, widened = lax.bitcast_convert_type(near, np.uint32), near.astype(x.dtype)
    one, zero = np.uint32(1), np.uint32(0)
    shorter = bits - jnp.where(jnp.abs(widened) > jnp.abs(x), one, zero)
    return lax.bitcast_convert_type(shorter | jnp.where(widened == x, zero, one), np.float32)


_larger: Final = partial(larger, jnp)


class _Tap(NamedTuple):
    """One element of a window: its place there, and what it meets in each window."""

    place: tuple[int, ...]
    values: Array
    inside: Sequence[Any]
    """For each spatial dimension, in which windows that is an element, not padding."""

    def of_elements(self, values: Array) -> Array:
        """The values where this meets an element, and 0 elsewhere."""
        rank = len(self.inside)
        for axis, inside in enumerate(self.inside):
            if not inside.all():
                mask = inside.reshape(-1, *(1 for _ in range(axis + 1, rank)))
                values = jnp.where(mask, values, values.dtype.type(0))
        return values


def _taps(
    x: Array, padding: Any, window: Window, steps: Sequence[int] | None = None
) -> Iterator[_Tap]:
    """Each element of a window over x (N, C, *spatial), in order."""
    sizes, strides, pads, dilations = window
    steps = steps or [1] * len(sizes)
    spatial = [(*pad, step - 1) for pad, step in zip(pads, steps, strict=True)]
    padded = lax.pad(x, jnp.asarray(padding, x.dtype), [(0, 0, 0), (0, 0, 0), *spatial])
    counts = [
        (size - (taps - 1) * dilation - 1) // stride + 1
        for size, taps, stride, dilation in zip(
            padded.shape[2:], sizes, strides, dilations, strict=True
        )
    ]
    for place in product(*map(range, sizes)):
        first = [tap * dilation for tap, dilation in zip(place, dilations, strict=True)]
        met = [
            at + stride * np.arange(count)
            for at, count, stride in zip(first, counts, strides, strict=True)
        ]
        inside = [
            (at >= start) & (at <= start + (size - 1) * step) & ((at - start) % step == 0)
            for at, size, (start, _), step in zip(met, x.shape[2:], pads, steps, strict=True)
        ]
        end = [int(at[-1]) + 1 for at in met]
        values = lax.slice(padded, (0, 0, *first), (*x.shape[:2], *end), (1, 1, *strides))
        yield _Tap(place, values, inside)


def _dimensions(window: Window) -> dict[str, Any]:
    """The arguments of `lax.reduce_window`, batches and channels included."""
    return {
        "window_dimensions": (1, 1, *window.sizes),
        "window_strides": (1, 1, *window.strides),
        "padding": [(0, 0), (0, 0), *map(tuple, window.pads)],
        "window_dilation": (1, 1, *window.dilations),
    }
