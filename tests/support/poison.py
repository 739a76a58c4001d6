"""Arrays of any memory layout inside memory that is poisoned first and watched afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.suite.layouts import Layout

Array = np.ndarray[Any, np.dtype[Any]]

# Before the first and after the last element: two cache lines.
_CANARY = 128


PACKED = Layout()


class Poisoned:
    """An array within memory that is filled with a pattern and watched.

    Parameters
    ----------
    shape : sequence of int
        Its shape.
    dtype : dtype_like
        Its element type.
    layout : Layout, optional
        Where the elements lie; packed by default.
    values : array_like, optional
        What the elements hold at first; poison when left out.

    Attributes
    ----------
    array : numpy.ndarray
        The array to hand out.
    block : numpy.ndarray
        All the bytes around and between its elements, and theirs.

    Examples
    --------
    >>> from support import Layout, Poisoned
    >>> watched = Poisoned((2, 3), "f4", Layout(gaps=(0, 1)))
    >>> watched.array.strides
    (24, 8)
    >>> watched.array[...] = 0
    >>> watched.gaps_intact(), watched.untouched()
    (True, False)
    """

    def __init__(
        self,
        shape: Sequence[int],
        dtype: Any,
        layout: Layout = PACKED,
        values: Any = None,
    ) -> None:
        kind = np.dtype(dtype)
        if layout.swapped:
            kind = kind.newbyteorder("S")
        shape = tuple(shape)
        strides = layout.strides(shape, kind.itemsize)
        reach = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
        low = sum(min(r, 0) for r in reach) if 0 not in shape else 0
        high = sum(max(r, 0) for r in reach) if 0 not in shape else 0
        total = 2 * _CANARY + high - low + kind.itemsize + layout.shift
        # Whole units of the largest element, so that `shift` alone decides the alignment.
        self.block: Array = np.zeros(-(-total // 16), "c16").view(np.uint8)
        self.block[...] = np.arange(self.block.size, dtype=np.uint32) * 37 % 251 + 3
        offset = _CANARY + layout.shift - low
        self._is_outside = np.ones(self.block.size, np.uint8)
        np.ndarray(shape, f"V{kind.itemsize}", self._is_outside, offset, strides)[...] = bytes(
            kind.itemsize
        )
        self.array: Array = np.ndarray(shape, kind, self.block, offset, strides)
        if values is not None:
            # Bit by bit: an assignment of floats may quieten a signalling NaN.
            source = np.asarray(values, dtype=kind.newbyteorder("=")).astype(kind)
            raw = np.ndarray(shape, f"V{kind.itemsize}", self.block, offset, strides)
            raw[...] = source.view(raw.dtype)
        if not layout.writeable:
            self.array.flags.writeable = False
        self._before = self.block.copy()

    def gaps_intact(self) -> bool:
        """Whether no byte outside the elements has changed."""
        return not np.any((self.block != self._before) & (self._is_outside != 0))

    def untouched(self) -> bool:
        """Whether no byte at all has changed."""
        return bool(np.array_equal(self.block, self._before))
