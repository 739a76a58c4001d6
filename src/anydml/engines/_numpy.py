"""NumPy as an engine: what the base install computes with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev

from anydml.engines import Reduction, Step
from anydml.engines._convolution import SCRATCH_BYTES, correlate, correlate_dilated, multiply
from anydml.engines._reductions import REDUCTIONS, locate_max
from anydml.engines._windows import NOWHERE, Window

Array = np.ndarray[Any, np.dtype[Any]]


class NumpyEngine:
    """`Engine` on NumPy arrays."""

    xp: Any = np
    scratch_nbytes: int = SCRATCH_BYTES
    multiplies_halves: bool = False

    def dot(self, a: Array, b: Array) -> Array:
        """Matrix products, by BLAS where it has the type."""
        return multiply(_with_rows(a), _with_rows(b))

    def conv(
        self, x: Array, w: Array, window: Window, groups: int, steps: Sequence[int] | None = None
    ) -> Array:
        """Cross-correlation, as `_convolution` describes."""
        if steps is None or all(step == 1 for step in steps):
            return correlate(x, w, window.over(x.shape[2:]), groups)
        axes = window.over([(n - 1) * step + 1 for n, step in zip(x.shape[2:], steps, strict=True)])
        own = [replace(axis, size=n) for axis, n in zip(axes, x.shape[2:], strict=True)]
        return correlate_dilated(x, w, own, groups, steps)

    def reduce_window(self, x: Array, reduction: Reduction, window: Window) -> Array:
        """A reduction of each window."""
        return REDUCTIONS[reduction](x, window.over(x.shape[2:]))

    def locate_max(self, x: Array, window: Window) -> tuple[Array, Array]:
        """The largest element of each window, and its place."""
        values, places = locate_max(x, window.over(x.shape[2:]))
        return values, np.where(places == NOWHERE, -1, places)

    def cast(self, x: Array, dtype: Any) -> Array:
        """Conversion as CAST has it."""
        dtype = np.dtype(dtype)
        if x.dtype == dtype:
            return x
        if x.dtype.kind in "iu" and dtype.kind == "f" and x.dtype.itemsize < dtype.itemsize:
            return x.astype(dtype)  # exactly: no error to ignore
        if x.dtype.kind != "f" or dtype.kind == "f":
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                return x.astype(dtype)
        limits = np.iinfo(dtype)
        wide = x.astype(np.float64)
        high = wide >= float(limits.max)
        low = wide <= float(limits.min)
        inside = np.where(high | low | np.isnan(wide), 0.0, np.trunc(wide)).astype(dtype)
        inside = np.where(high, dtype.type(limits.max), inside)
        return np.where(low, dtype.type(limits.min), inside)

    def bits(self, x: Array) -> Array:
        """The elements' bits as unsigned integers."""
        return x.view(f"u{x.dtype.itemsize}")

    def from_bits(self, bits: Array, dtype: Any) -> Array:
        """Elements of a type from their bits."""
        return bits.view(dtype)

    def popcount(self, bits: Array) -> Array:
        """How many bits of each unsigned integer are 1."""
        octets = np.ascontiguousarray(bits)[..., np.newaxis].view(np.uint8)
        counts: Array = np.unpackbits(octets, axis=-1).sum(axis=-1, dtype=np.uint8)
        return counts

    def erf(self, x: Array) -> Array:
        """The error function."""
        near, far = erf_series()
        size = np.minimum(np.abs(x.astype(np.float64)), ERF_IS_1)
        below_1 = size * near(np.minimum(size * size, 1.0))
        from_1 = np.where(size == ERF_IS_1, 1.0, far(np.maximum(size, 1.0)))
        return np.copysign(np.where(size < 1, below_1, from_1), x)

    def scatter_add(self, size: int, places: Array, values: Array) -> Array:
        """Sums in the order of the values."""
        if values.dtype == np.float64:  # much faster
            return np.bincount(places, values, size)
        sums = np.zeros(size, values.dtype)
        np.add.at(sums, places, values)
        return sums

    def scan(self, step: Step, carry: Any, xs: Any, backward: bool) -> tuple[Any, Array]:
        """A loop in Python."""
        results = []
        steps = zip(*xs, strict=True)
        for at in reversed([*steps]) if backward else steps:
            carry, result = step(carry, at)
            results.append(result)
        return carry, np.stack(results[::-1] if backward else results)

    def repeat(self, count: Array, step: Callable[[Array, Any], Any], carry: Any) -> Any:
        """A loop in Python."""
        for i in range(int(count)):
            carry = step(np.asarray(i), carry)
        return carry


ERF_IS_1 = 6.0
"""From here on, the error function rounds to 1 in float64."""


@cache
def erf_series() -> tuple[Chebyshev, Chebyshev]:
    """``erf(x) / x`` as a function of x squared up to 1, and ``erf(x)`` from 1 on."""

    def ratio(squares: Array) -> Array:
        return np.array([math.erf(r) / r for r in np.sqrt(squares)])

    near = Chebyshev.interpolate(ratio, 14, [0.0, 1.0])
    far = Chebyshev.interpolate(np.vectorize(math.erf), 44, [1.0, ERF_IS_1])
    return near, far


def _with_rows(x: Array) -> Array:
    """A matrix whose rows or columns are contiguous: others are slow in `matmul`."""
    return x if x.itemsize in x.strides[-2:] else np.ascontiguousarray(x)
