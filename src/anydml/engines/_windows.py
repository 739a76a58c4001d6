"""Sliding windows over arrays that are not padded: which elements a window's taps meet.

A tap is one element of the window. Over all windows along an axis it meets a regular slice of the
input, and beyond both ends of that slice only padding. So padding, however large, takes no memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

NOWHERE: Final = np.int64(np.iinfo(np.int64).max)
"""The place of the maximum of a window that meets only padding."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Windows along one axis.

    Attributes
    ----------
    size : int
        Elements of the input.
    window : int
        Taps of a window.
    count : int
        How many windows.
    stride : int
        From a window to the next.
    dilation : int
        From a tap to the next.
    start : int
        Padding in front of the input; negative where elements are left out.
    """

    size: int
    window: int
    count: int
    stride: int
    dilation: int
    start: int

    @property
    def is_identity(self) -> bool:
        """Whether each window is one element, in order."""
        return (self.window, self.count, self.stride, self.start) == (1, self.size, 1, 0)

    def overlap(self, tap: int) -> tuple[slice, slice] | None:
        """The windows whose tap lies in the input, and the elements that it meets there."""
        return self._meet(tap * self.dilation - self.start, self.stride, self.count)

    def within(self, window: int) -> tuple[slice, slice] | None:
        """A window, and all elements that it meets."""
        pair = self._meet(window * self.stride - self.start, self.dilation, self.window)
        return pair and (slice(window, window + 1), pair[1])

    def _meet(self, offset: int, step: int, count: int) -> tuple[slice, slice] | None:
        # Of the places `offset + index * step`, those that are elements.
        first = max(-(offset // step), 0)
        last = min((self.size - 1 - offset) // step, count - 1)
        if first > last:
            return None
        low, high = (offset + index * step for index in (first, last))
        return slice(first, last + 1), slice(low, high + 1, step)

    def part(self, windows: slice) -> Axis:
        """A range of the windows."""
        start = self.start - windows.start * self.stride
        return replace(self, count=windows.stop - windows.start, start=start)


class Window(NamedTuple):
    """A window that slides over spatial dimensions; a number, or a pair, for each of these."""

    sizes: Sequence[int]
    strides: Sequence[int]
    pads: Sequence[tuple[int, int]]
    dilations: Sequence[int]

    def over(self, sizes: Sequence[int]) -> list[Axis]:
        """Windows along axes of these sizes, as many as fit into the padded input."""
        return [
            Axis(size, window, (size + sum(pad) - (window - 1) * dilation - 1) // stride + 1,
                 stride, dilation, pad[0])
            for size, window, stride, pad, dilation in zip(sizes, *self, strict=True)
        ]  # fmt: skip


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest element of a type."""
    return dtype.type(-np.inf if dtype.kind == "f" else np.iinfo(dtype).min)


def larger(xp: Any, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """The larger of two elements and its place, a NaN if there is one, of equals the first."""
    (x, at), (y, place) = a, b
    less, more = x < y, x > y
    if x.dtype.kind == "f":
        nan = xp.isnan(x), xp.isnan(y)
        less, more = less | (nan[1] & ~nan[0]), more | (nan[0] & ~nan[1])
    second = less | (~more & (place < at))
    return xp.where(second, y, x), xp.where(second, place, at)


Index: TypeAlias = tuple[Any, ...]
"""An index of an array."""


def taps(axes: Sequence[Axis]) -> Iterator[tuple[tuple[int, ...], Index, Index]]:
    """Each tap that meets elements: its place in the window, windows and elements as slices."""
    overlaps = [[(tap, axis.overlap(tap)) for tap in range(axis.window)] for axis in axes]
    for chosen in product(*overlaps):
        pairs = [pair for _, pair in chosen if pair is not None]
        if len(pairs) == len(axes):
            place = tuple(tap for tap, _ in chosen)
            yield place, tuple(out for out, _ in pairs), tuple(taken for _, taken in pairs)


def blocks(counts: Sequence[int], limit: int) -> Iterator[Index]:
    """Cut an index space into blocks of about `limit` elements that are consecutive in order."""
    steps = []
    for axis, count in enumerate(counts):
        inner = prod(counts[axis + 1 :])
        steps.append(min(max(limit // max(inner, 1), 1), max(count, 1)))
    starts = [range(0, count, step) for count, step in zip(counts, steps, strict=True)]
    for first in product(*starts):
        yield tuple(
            slice(low, min(low + step, count))
            for low, step, count in zip(first, steps, counts, strict=True)
        )
