"""Indices in host memory: checked, moved into their axes, or counted from the start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml.devices.backends._sequence import index_error
from anydml.libraries import Array


def check(
    where: str,
    lookup: Array,
    sizes: Sequence[int],
    axes: Sequence[int],
    origin: Sequence[int] = (),
) -> None:
    """Refuse a value outside its axis; negative ones count from the end.

    Parameters
    ----------
    where : str
        What the message calls the indices.
    lookup : array of int
        The last axis holds tuples where there are several sizes.
    sizes, axes : sequence of int
        The sizes that the coordinates of a tuple point into, and which axes these are.
    origin : sequence of int, optional
        Where `lookup` lies in the caller's indices, of which it is a block.

    Raises
    ------
    IndexOutOfRangeError
        For the first one in row-major order.
    """
    limits = _limits(lookup, sizes)
    is_out_of_range = lookup >= limits
    if lookup.dtype.kind == "i":
        is_out_of_range |= lookup < -limits
    if is_out_of_range.any():
        flat = int(is_out_of_range.argmax())
        which = flat % len(sizes)
        raise index_error(where, lookup, flat, axes[which], int(sizes[which]), origin)


def moved(lookup: Array, sizes: Sequence[int], mode: str) -> Array:
    """The indices inside their axes: wrapped, or NumPy's "clip"."""
    limits = _limits(lookup, sizes)
    result = lookup.astype(limits.dtype)
    if mode == "wrap":
        np.remainder(result, limits, out=result)
    else:
        np.clip(result, 0, limits - limits.dtype.type(1), out=result)
    return result


def places(lookup: Array, sizes: Sequence[int]) -> Array:
    """Positions from the start of the axis, in int64, of indices; the nearest of one outside."""
    result = lookup.astype(np.int64)
    if not lookup.size:
        return result
    limits = _limits(lookup, sizes)
    if lookup.dtype.kind == "u":
        result[...] = np.minimum(lookup, limits - limits.dtype.type(1))
        return result
    result += np.where(result < 0, limits, 0)
    np.clip(result, 0, limits - 1, out=result)
    return result


def _limits(lookup: Array, sizes: Sequence[int]) -> Array:
    # 64 bits with the sign of the indices: no size is larger, and nothing is rounded.
    kind = np.int64 if lookup.dtype.kind == "i" else np.uint64
    return np.array(sizes[0] if len(sizes) == 1 else sizes, kind, like=lookup)
