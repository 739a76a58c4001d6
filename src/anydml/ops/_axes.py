"""Operations on the elements along axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from anydml.engines import Array, Engine


def merge_axes(e: Engine, x: Array, axes: Sequence[int]) -> tuple[Array, Callable[[Array], Array]]:
    """Merge some axes into the last one, in row-major order; also return the inverse function."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    order = [*kept, *sorted(axes)]
    moved = e.xp.transpose(x, order)
    merged = moved.reshape((*(x.shape[axis] for axis in kept), -1))
    inverse = sorted(range(x.ndim), key=order.__getitem__)

    def split(y: Any) -> Array:
        return e.xp.transpose(y.reshape(moved.shape), inverse)

    return merged, split


def total(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    """The sum along axes, whose sizes become 1; float64 for floats, the own type for integers."""
    dtype = e.xp.float64 if x.dtype.kind == "f" else x.dtype
    return e.xp.sum(x, axis=tuple(axes), dtype=dtype, keepdims=True)


def mean(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    """The mean of floats along axes, whose sizes become 1, in float64."""
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return total(e, x, axes) / count


def neighbours(e: Engine, x: Array, axis: int, count: int, transposed: bool = False) -> Array:
    """The sum over a zero-padded window along an axis, or the transpose of that sum."""
    size = x.shape[axis]
    before = min((count - 1) // 2, size - 1)
    after = min(count // 2, size - 1)
    if transposed:
        before, after = after, before
    widths = [(before, after) if i == axis else (0, 0) for i in range(x.ndim)]
    padded = e.xp.pad(x, widths)
    front = (slice(None),) * axis
    windows = (padded[(*front, slice(i, i + size))] for i in range(before + after + 1))
    return sum(windows, start=e.xp.zeros_like(x))
