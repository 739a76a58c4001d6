"""Blocks of indices: checked, and turned into positions from the start of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.bridges.dask import _graphs
from anydml.bridges.dask._graphs import Lazy, Position
from anydml.functions import _indices


def positions(
    call: str, lookup: Lazy, sizes: Sequence[int], axes: Sequence[int], mode: str
) -> Lazy:
    """The positions that indices name, in int64 and in the same blocks.

    Parameters
    ----------
    call : str
        The function, for messages.
    lookup : dask.array.Array
        The indices; where they are tuples, in one chunk along the last axis.
    sizes, axes : sequence of int
        The sizes that a tuple's coordinates point into, and which axes these are.
    mode : str
        As for `anydml.gather`.
    """
    name = _graphs.named("places", call, lookup.name, sizes, axes, mode)
    layer: _graphs.Layer = {}
    limits = [_graphs.bounds(chunks) for chunks in lookup.chunks]
    for at in _graphs.blocks(lookup.chunks):
        origin = tuple(limits[axis][i][0] for axis, i in enumerate(at))
        given = (_graphs.block(lookup, at), call, list(sizes), list(axes), mode, list(origin))
        _graphs.put(layer, (name, *at), _positions, *given)
    return _graphs.made(name, layer, [lookup], lookup.chunks, lookup, np.int64)


def _positions(
    chunk: Any, call: str, sizes: list[int], axes: list[int], mode: str, origin: list[int]
) -> Any:
    if mode in ("wrap", "clip") and chunk.size:
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
