"""One array's elements read in another layout, without their bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple, TypeAlias

from anydml.libraries import packed_strides

Relayout: TypeAlias = Callable[[Any, Any], Any]
"""Makes an array in one layout of one in another, given the namespace of arrays."""


class Layout(NamedTuple):
    """Sizes, and strides in elements; packed, if None."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None

    def dense(self) -> list[int] | None:
        """The axes in the order of memory, if each of its elements is there once, without gaps.

        Axes that only repeat are left out.
        """
        strides = packed_strides(self.shape, 1) if self.strides is None else self.strides
        axes = [a for a, (n, s) in enumerate(zip(self.shape, strides, strict=True)) if n > 1 and s]
        axes.sort(key=lambda axis: -strides[axis])
        packed = packed_strides(tuple(self.shape[axis] for axis in axes), 1)
        return axes if packed == tuple(strides[axis] for axis in axes) else None


def relayout(source: Layout, target: Layout) -> Relayout | None:
    """What reads the bytes of a dense array as another one: transposes, reshapes and broadcasts.

    None where that is not enough, or reads beyond the end.
    """
    source_order, target_order = source.dense(), target.dense()
    if source_order is None or target_order is None or _repeats(source, source_order):
        return None
    sizes = [target.shape[axis] for axis in target_order]
    if prod(sizes) > prod(source.shape):
        return None
    ones = [axis for axis in range(len(source.shape)) if axis not in source_order]
    present = sorted(target_order)
    kept = tuple(n if axis in target_order else 1 for axis, n in enumerate(target.shape))

    def read_view(xp: Any, x: Any) -> Any:
        flat = xp.transpose(x, [*source_order, *ones]).reshape(-1)[: prod(sizes)]
        moved = xp.transpose(flat.reshape(sizes), [target_order.index(axis) for axis in present])
        return xp.broadcast_to(moved.reshape(kept), target.shape)

    return read_view


def _repeats(layout: Layout, source_order: Sequence[int]) -> bool:
    return prod(layout.shape) != prod(layout.shape[axis] for axis in source_order)
