"""The tasks of a lazy library, on blocks in memory.

Tasks get names of functions and plain values, so that another process can run them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.devices.backends._sequence import index_error
from anydml.functions._blocks import Pointing
from anydml.functions._function import SPECS, Attributes
from anydml.functions._library import Array
from anydml.functions._memory import call_on_memory, on_memory
from anydml.portable import kernels


def call_chunk(chunk: Array, function: str, attributes: Attributes) -> Any:
    """Call a function on one block."""
    return call_on_memory(SPECS[function], (chunk,), attributes)


def resolve(
    chunk: Array, call: str, sizes: list[int], axes: list[int], clamp: bool, origin: list[int]
) -> Array:
    """Return positions from the start of their axes, of a block of indices that begins at `origin`.

    Raises
    ------
    IndexOutOfRangeError
        For the first index outside its axis, in row-major order.
    """
    chunk = _as_array(chunk)
    limits = sizes[0] if len(sizes) == 1 else sizes
    positions, bad = kernels.resolve(chunk, limits, "clamp" if clamp else "raise")
    if bad >= 0:
        which = bad % len(sizes)
        where = f"{call}: indices"
        raise index_error(where, chunk, bad, axes[which], int(sizes[which]), origin)
    return _as_array(positions)


def _as_array(x: Any) -> Any:
    """Convert a scalar, which NumPy returns in place of an array of rank 0, to an array."""
    return np.asarray(x) if isinstance(x, np.generic) else x


def _inside(pointing: Pointing, places: Any, low: Any, high: Any) -> Any:
    """Which positions lie between two corners."""
    if not pointing[2]:
        return (places >= low[0]) & (places < high[0])
    begin, end = (np.array(corner, np.int64, like=places) for corner in (low, high))
    return ((places >= begin) & (places < end)).all(axis=-1)


def _relative(pointing: Pointing, places: Any, low: Any) -> Any:
    """Positions counted from a corner."""
    return places - np.array(low if pointing[2] else low[0], np.int64, like=places)


def read_indexed(
    chunk: Any, places: Any, pointing: Pointing, low: Any, function: str, attributes: Attributes
) -> Any:
    """The block of a result that has all its elements of one block."""
    operands = (chunk, _relative(pointing, places, low))
    return call_on_memory(SPECS[function], operands, attributes)


def read_part(
    chunk: Any,
    places: Any,
    pointing: Pointing,
    low: Any,
    high: Any,
    function: str,
    attributes: Attributes,
) -> Any:
    """Return the elements of a result block that lie in one source block."""
    before, aligned, tuples = pointing
    inside = _inside(pointing, places, low, high)
    if any(axis is not None for axis in aligned):
        if not inside.any():
            return np.empty((0, *chunk.shape[len(aligned) :]), chunk.dtype, like=chunk)
        mask = inside[..., None] if tuples else inside
        any_place = np.array(low, np.int64, like=places)
        chosen = np.where(mask, places, any_place)
        return read_indexed(chunk, chosen, pointing, low, function, attributes)[inside]
    found = _relative(pointing, places[inside], low)
    reader, where = ("gather_nd", {"batch_dims": 0}) if tuples else ("gather", {"axis": before})
    return call_on_memory(SPECS[reader], (chunk, found), {**where, "clamp": False})


def join_parts(
    parts: Sequence[Any], places: Any, pointing: Pointing, spans: Any, shape: Any, like: Any
) -> Any:
    """A block of a result of what several blocks have of it."""
    before, _, tuples = pointing
    behind = before + places.ndim - tuples
    flat = (*shape[:before], math.prod(shape[before:behind]), *shape[behind:])
    result: Any = np.empty(flat, like.dtype, like=like)
    for part, span in zip(parts, spans, strict=True):
        inside = _inside(pointing, places, *span).reshape(-1)
        result[(*(slice(None),) * before, inside)] = part
    return result.reshape(shape)


def write(
    chunk: Any, places: Any, updates: Any, pointing: Pointing, reduction: str, low: Any, high: Any
) -> Any:
    """A block with the updates that name its elements."""
    _, aligned, tuples = pointing
    inside = _inside(pointing, places, low, high)
    if not inside.any():
        return chunk
    found = _relative(pointing, places[inside], low)
    if not tuples:
        where = np.nonzero(inside)
        found = np.stack([found if axis is None else where[axis] for axis in aligned], axis=-1)
    new = updates[inside] if updates.ndim else updates
    return on_memory(SPECS["scatter_nd"], (chunk, found, new, reduction, True), None)


def finish(x: Array, sums: Array, counts: Array, terms: int | None) -> Array:
    """Return sums and products in the type of `x`; integers are rounded down.

    `counts` says how many updates each has, and `terms` how many terms a mean has besides; None if
    it is not a mean. An element without updates keeps the bits that it has in `x`.
    """
    with np.errstate(all="ignore"):
        if terms is not None:
            sums = kernels.divided(sums, np.maximum(counts + terms, 1))
        return np.where(counts > 0, sums.astype(x.dtype), x)
