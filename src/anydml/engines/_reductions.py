"""Reductions of sliding windows on NumPy, one axis after the other.

A window of h × w elements takes h + w passes. Axes that make the array smaller come first, so that
what is between two axes is never larger than the input or the result. Along an axis a pass is for
each tap of the window or for each window, whichever are fewer. Padding is never made, and takes no
part: a window that meets only padding is the neutral element.

Beyond its result a call takes twice as much as the larger of input and result; with positions, ten
times as many bytes as these have elements, and as much again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.engines import Reduction
from anydml.engines._windows import NOWHERE, Axis, Index, lowest

Array = np.ndarray[Any, np.dtype[Any]]


def sum_windows(x: Array, axes: Sequence[Axis]) -> Array:
    """The sum of each window's elements."""
    return _reduced(x, axes, np.add, 0)


def max_windows(x: Array, axes: Sequence[Axis]) -> Array:
    """The largest of each window's elements, a NaN where there is one, of zeros the first."""
    result = _reduced(x, axes, np.maximum, lowest(x.dtype))
    if x.dtype.kind == "f" and (result == 0).any() and (np.signbit(x) & (x == 0)).any():
        return locate_max(x, axes)[0]  # `maximum` keeps either of two zeros
    return result


def log_sum_windows(x: Array, axes: Sequence[Axis]) -> Array:
    """The logarithm of the sum of the powers of e of each window's elements."""
    return _reduced(x, axes, np.logaddexp, -np.inf)


REDUCTIONS: Final[Mapping[Reduction, Callable[[Array, Sequence[Axis]], Array]]] = {
    "sum": sum_windows,
    "max": max_windows,
    "logaddexp": log_sum_windows,
}
"""The signature of `Engine.reduce_window`."""


def locate_max(x: Array, axes: Sequence[Axis]) -> tuple[Array, Array]:
    """Reduce windows, and locate the first of the largest in the spatial dimensions of `x`."""
    sizes = x.shape[2:]
    places = np.broadcast_to(np.arange(prod(sizes), dtype=np.int64).reshape(sizes), x.shape)
    for dimension, axis in _in_order(axes):
        shape = (*x.shape[:dimension], axis.count, *x.shape[dimension + 1 :])
        values, found = np.full(shape, lowest(x.dtype), x.dtype), np.full(shape, NOWHERE)
        for windows, elements in _passes(axis, dimension):
            candidates, at = x[elements], places[elements]
            if axis.window > axis.count:  # all elements of one window
                largest = candidates.max(dimension, keepdims=True)
                hit = (candidates == largest) | (candidates != candidates)
                first = np.where(hit, at, NOWHERE).argmin(dimension, keepdims=True)
                candidates = np.take_along_axis(candidates, first, dimension)
                at = np.take_along_axis(at, first, dimension)
            _keep_larger(values[windows], found[windows], candidates, at)
        x, places = values, found
    return x, places


def _keep_larger(values: Array, places: Array, candidates: Array, at: Array) -> None:
    """Replace values by candidates that are larger, or equal and in front of them."""
    larger, equal = candidates > values, candidates == values
    if values.dtype.kind == "f":
        new, old = np.isnan(candidates), np.isnan(values)
        larger |= new & ~old
        equal |= new & old
    larger |= equal & (at < places)
    np.copyto(values, candidates, where=larger)
    np.copyto(places, at, where=larger)


def _reduced(x: Array, axes: Sequence[Axis], function: np.ufunc, neutral: Any) -> Array:
    for dimension, axis in _in_order(axes):
        shape = (*x.shape[:dimension], axis.count, *x.shape[dimension + 1 :])
        result = np.full(shape, neutral, x.dtype)
        for windows, elements in _passes(axis, dimension):
            target, taken = result[windows], x[elements]
            if axis.window > axis.count:
                function.reduce(taken, dimension, keepdims=True, out=target)
            else:
                function(target, taken, out=target)
        x = result
    return x


def _in_order(axes: Sequence[Axis]) -> list[tuple[int, Axis]]:
    """Dimensions of x (N, C, *spatial) and their windows, those that shrink most first."""
    moved = [(dimension, axis) for dimension, axis in enumerate(axes, 2) if not axis.is_identity]
    return sorted(moved, key=lambda pair: pair[1].count / pair[1].size)


def _passes(axis: Axis, dimension: int) -> Iterator[tuple[Index, Index]]:
    """Windows and the elements that they meet: by tap, or all taps of a window, as is shorter."""
    before = (slice(None),) * dimension
    if axis.window <= axis.count:
        pairs = (axis.overlap(tap) for tap in range(axis.window))
    else:
        pairs = (axis.within(window) for window in range(axis.count))
    for pair in pairs:
        if pair is not None:
            yield (*before, pair[0]), (*before, pair[1])
