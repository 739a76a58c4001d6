"""Blocks of indices: checked, and turned into positions from the start of their axes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from dask.array import broadcast_to, from_array

from anydml.dask import _graphs
from anydml.dask._graphs import Chunks, Lazy, Position
from anydml.functions import _indices


class Places(NamedTuple):
    """What indices name.

    Attributes
    ----------
    array : dask.array.Array
        Positions from the start of their axes, in int64.
    reached : callable
        Takes the position of one of its blocks, and gives those blocks of the pointed axes that it
        names; all of them where the indices are not known yet.
    """

    array: Lazy
    reached: Callable[[Position], Collection[Position]]


def positions(
    call: str,
    lookup: Lazy,
    held: Any,
    pointed: Chunks,
    axes: Sequence[int],
    mode: str,
    *,
    tuples: bool = False,
) -> Places:
    """The positions that indices name, in the same blocks.

    Parameters
    ----------
    call : str
        The function, for messages.
    lookup : dask.array.Array
        The indices; where they are tuples, in one chunk along the last axis.
    held : numpy.ndarray or None
        The same indices where they are in memory: they are read and checked at once.
    pointed, axes : sequence
        The chunks of the axes that a tuple's coordinates point into, and which axes these are.
    mode : str
        As for `anydml.gather`.
    tuples : bool
        Whether the last axis of the indices holds tuples.
    """
    sizes = [sum(chunks) for chunks in pointed]
    if held is not None:
        held = held.reshape(lookup.shape) if held.size == lookup.size else held
        found = _positions(held, call, sizes, list(axes), mode, [])
        return _known(found, lookup.chunks, pointed, tuples)
    name = _graphs.named("places", call, lookup.name, sizes, axes, mode)
    layer: _graphs.Layer = {}
    limits = [_graphs.bounds(chunks) for chunks in lookup.chunks]
    for at in _graphs.blocks(lookup.chunks):
        origin = [limits[axis][i][0] for axis, i in enumerate(at)]
        given = (_graphs.block(lookup, at), call, sizes, list(axes), mode, origin)
        _graphs.put(layer, (name, *at), _positions, *given)
    everywhere = dict.fromkeys(_graphs.blocks(pointed))
    array = _graphs.made(name, layer, [lookup], lookup.chunks, lookup, np.int64)
    return Places(array, lambda at: everywhere)


def _known(found: Any, chunks: Chunks, pointed: Chunks, tuples: bool) -> Places:
    everywhere = list(_graphs.blocks(pointed))
    ends = [np.cumsum(sizes) for sizes in pointed]
    shape = tuple(map(sum, chunks))
    own = [
        sizes if size == sum(sizes) else (size,)
        for size, sizes in zip(found.shape, chunks, strict=True)
    ]
    limits = [_graphs.bounds(sizes) for sizes in own]

    def reached(at: Position) -> Collection[Position]:
        spans = (each[min(i, len(each) - 1)] for i, each in zip(at, limits, strict=True))
        block = found[tuple(slice(*span) for span in spans)]
        columns = np.moveaxis(block, -1, 0) if tuples else [block]
        number = np.zeros(block.shape[:-1] if tuples else block.shape, np.int64)
        for end, column in zip(ends, columns, strict=True):
            number = number * len(end) + np.searchsorted(end, column, side="right")
        named = np.flatnonzero(np.bincount(number.reshape(-1)))
        return dict.fromkeys(everywhere[i] for i in named)

    array = from_array(found, chunks=tuple(own), name=_graphs.named("places", found, own))
    if found.shape != shape:  # again and again
        array = broadcast_to(array, shape, chunks=chunks)
    return Places(array, reached)


def _positions(
    chunk: Any, call: str, sizes: list[int], axes: list[int], mode: str, origin: list[int]
) -> Any:
    if mode in ("wrap", "clip"):
        return _indices.moved(chunk, sizes, mode).astype(np.int64, copy=False)
    if mode == "raise":
        _indices.check(f"{call}: indices", chunk, sizes, axes, origin)
    return _indices.places(chunk, sizes)


def inside(places: Any, low: Sequence[int], high: Sequence[int]) -> Any:
    """Which tuples of coordinates lie between two corners."""
    least, end = (np.array(corner, np.int64, like=places) for corner in (low, high))
    return ((places >= least) & (places < end)).all(axis=-1)


def corners(limits: Sequence[Sequence[tuple[int, int]]], at: Position) -> Any:
    """The low and the high corner of a block."""
    spans = [limits[axis][i] for axis, i in enumerate(at)]
    return [low for low, _ in spans], [high for _, high in spans]
