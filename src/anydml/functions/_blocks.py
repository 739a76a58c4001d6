"""Array functions in blocks: how each is cut (`Chunking`), and what the tasks of a lazy library do.

Blocks are arrays of any library in memory. Tasks get names of functions and plain values, so that
another process can run them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anydml.functions import _combining, _indices
from anydml.functions._spec import SPECS, Array

Part = tuple[Array, ...]
Attributes = tuple[Any, ...]
Pointing = tuple[int, tuple[int | None, ...], bool]
"""How indices name elements: how many axes of x come before the named ones; for each of these the
axis of the indices that it goes along with, or None where a coordinate points into it; and whether
the last axis of the indices holds the coordinates of a tuple."""


@dataclass(frozen=True)
class Blockwise:
    """A block of the result comes of one block."""


@dataclass(frozen=True)
class Tree:
    """Partial results of the blocks along an axis are merged; the result is one chunk there.

    Attributes
    ----------
    axis : int
        Which attribute is the axis.
    of_block : callable
        The partial results of a block, from where it begins on the axis and the attributes.
    merge : callable
        Of partial results that follow one another, and the attributes.
    """

    axis: int
    of_block: Callable[[Array, int, Attributes], Part]
    merge: Callable[[Sequence[Part], Attributes], Part]


@dataclass(frozen=True)
class Rows:
    """Each block gives rows, in row-major order of the elements.

    Attributes
    ----------
    mark : callable
        What of a block is enough to know.
    of_block : callable
        The rows of a block, or of its marks, from where it begins and the attributes.
    """

    mark: Callable[[Array], Array]
    of_block: Callable[[Array, Sequence[int], Attributes], Array]


@dataclass(frozen=True)
class Indexed:
    """The second operand names elements of the first, which are read, or written to.

    Attributes
    ----------
    points : callable
        How they do: `Pointing` from operands and attributes.
    writes : bool
        Whether there are updates.
    """

    points: Callable[[Sequence[Array], Attributes], Pointing]
    writes: bool = False


Chunking = Blockwise | Tree | Rows | Indexed


def call_block(chunk: Array, function: str, attributes: Attributes) -> Any:
    """The function of one block."""
    spec = SPECS[function]
    return spec.function(chunk, **spec.keywords(attributes))


# ---- selection ----------------------------------------------------------------------------------


def select(chunk: Array, start: int, attributes: Attributes) -> Part:
    """The first k of a block."""
    k, axis, largest, _ = attributes
    options = {"axis": axis, "largest": largest, "index_dtype": "int64"}
    found = SPECS["top_k"].function(chunk, min(k, chunk.shape[axis]), **options)
    found.indices[...] += start
    return tuple(found)


def merge_selected(parts: Sequence[Part], attributes: Attributes) -> Part:
    """The first k of several blocks."""
    # Parts follow one another, and ties within a part are in the order of their indices: the first
    # of equal values is the one with the lowest index.
    k, axis, largest, _ = attributes
    join = SPECS["join"].function
    values, indices = (join([part[i] for part in parts], axis=axis) for i in (0, 1))
    count = min(k, values.shape[axis])
    chosen = SPECS["top_k"].function(values, count, axis=axis, largest=largest)
    return chosen.values, SPECS["gather_elements"].function(indices, chosen.indices, axis=axis)


def mark_nonzero(chunk: Array) -> Any:
    """One byte for each element."""
    return chunk != 0


def find_nonzero(chunk: Array, starts: Sequence[int], attributes: Attributes) -> Array:
    """Coordinates in the whole array."""
    found: Array = SPECS["nonzero_coordinates"].function(chunk, index_dtype=attributes[0])
    for axis, start in enumerate(starts):
        if start:
            found[:, axis] += start
    return found


# ---- indices ------------------------------------------------------------------------------------


def resolve(
    chunk: Array, call: str, sizes: list[int], axes: list[int], clamp: bool, origin: list[int]
) -> Array:
    """Positions from the start of their axes, of a block of indices that begins at `origin`."""
    chunk = np.asarray(chunk) if isinstance(chunk, np.generic) else chunk  # of no axes
    if not clamp:
        _indices.check(f"{call}: indices", chunk, sizes, axes, origin)
    return _indices.places(chunk, sizes)


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
    spec = SPECS[function]
    arguments = (chunk, _relative(pointing, places, low))
    return spec.function(*arguments, **spec.keywords(attributes))


def read_part(
    chunk: Any,
    places: Any,
    pointing: Pointing,
    low: Any,
    high: Any,
    function: str,
    attributes: Attributes,
) -> Any:
    """What one block has of a block of a result."""
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
    if not tuples:
        return SPECS["gather"].function(chunk, found, axis=before)
    return SPECS["gather_nd"].function(chunk, found)


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
    return SPECS["scatter_nd"].function(chunk, found, new, reduction=reduction)


def divide(x: Any, sums: Any, counts: Any, include_self: bool) -> Any:
    """Means, of the elements, sums and how many updates are in each."""
    return _combining.means_of(x, sums, counts, include_self)
