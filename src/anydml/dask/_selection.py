"""`top_k` by a tree of partial results, `nonzero_coordinates` block by block, on dask arrays."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from anydml._json import shown
from anydml.dask import _graphs
from anydml.dask._graphs import Lazy
from anydml.errors import ArgumentError
from anydml.functions import _arguments, _attributes, _engine, selection
from anydml.functions.gather import gather_elements
from anydml.functions.selection import TopKResult
from anydml.functions.slabs import join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.top_k import TopK1

FAN_IN: Final = 4
"""Partial results of `top_k` that one task merges."""


def top_k(
    x: Any,
    k: Any,
    *,
    axis: Any = -1,
    largest: Any = True,
    sorted: Any = True,
    index_dtype: Any = None,
    out: None = None,
) -> TopKResult[Lazy, Lazy]:
    """`anydml.top_k` of a dask array: lazy values and indices, in one chunk along the axis.

    Every block gives its own first k; four such results at a time become one. A task holds one
    block and its result, or four results and the merged one.

    Parameters
    ----------
    x, k, axis, largest, index_dtype
        As for `anydml.top_k`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    TopKResult
        Two dask arrays, equal to the result in memory to the bit.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import top_k
    >>> values, indices = top_k(da.from_array([3, 1, 3, 2], chunks=2), 2)
    >>> values.compute(), indices.compute()
    (array([3, 3]), array([0, 2]))
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    _attributes.check_type(data, _attributes.ORDERED)
    scalar = data.ndim == 0
    shaped = data.reshape(1) if scalar else data
    number = _arguments.axis_of(axis, shaped)
    count = _arguments.integer(k, "k")
    inferred = _engine.infer(TopK1, (shaped,), {"axis": number, "k": count})
    first = _arguments.flag(largest, "largest")
    size = shaped.shape[number]
    kind = _arguments.result_indices(index_dtype, data._meta, (size,), None, "out[1]")
    chunks = (*shaped.chunks[:number], (count,), *shaped.chunks[number + 1 :])
    assert tuple(map(sum, chunks)) == inferred.outputs[0].shape
    name = _graphs.named("top-k", shaped.name, count, number, first)
    layer: _graphs.Layer = {}
    starts = [start for start, _ in _graphs.bounds(shaped.chunks[number])]
    for at in _graphs.blocks(chunks):
        found = []
        for i, start in enumerate(starts):
            place = (*at[:number], i, *at[number + 1 :])
            given = (_graphs.block(shaped, place), start, count, number, first)
            found.append(_graphs.put(layer, (f"{name}-of-block", *place), _of_block, *given))
        level = 0
        while len(found) > 1:
            groups = [found[i : i + FAN_IN] for i in range(0, len(found), FAN_IN)]
            found = [
                _graphs.put(
                    layer, (f"{name}-merged", level, i, *at), _merged, _graphs.listed(group),
                    count, number, first,
                )
                for i, group in enumerate(groups)
            ]  # fmt: skip
            level += 1
        _graphs.same(layer, (name, *at), found[0])
    pairs = _graphs.made(name, layer, [shaped], chunks, shaped, data.dtype)
    values = pairs.map_blocks(_values, name=_graphs.named("top-k-values", name), meta=pairs._meta)
    meta = _graphs.like(pairs, len(chunks), kind)
    named = _graphs.named("top-k-indices", name, kind)
    indices = pairs.map_blocks(_indices, kind, name=named, meta=meta)
    if scalar and count == 1:
        values, indices = values.reshape(()), indices.reshape(())
    return TopKResult(values, indices)


def _of_block(chunk: Any, start: int, k: int, axis: int, largest: bool) -> tuple[Any, Any]:
    count = min(k, chunk.shape[axis])
    found = selection.top_k(chunk, count, axis=axis, largest=largest, index_dtype="int64")
    found.indices[...] += start
    return found.values, found.indices


def _merged(parts: list[tuple[Any, Any]], k: int, axis: int, largest: bool) -> tuple[Any, Any]:
    # Parts follow one another, and ties within a part are in the order of their indices: the first
    # of equal values is the one with the lowest index.
    values, indices = (join([part[i] for part in parts], axis=axis) for i in (0, 1))
    chosen = selection.top_k(values, min(k, values.shape[axis]), axis=axis, largest=largest)
    return chosen.values, gather_elements(indices, chosen.indices, axis=axis)


def _values(found: tuple[Any, Any]) -> Any:
    return found[0]


def _indices(found: tuple[Any, Any], kind: np.dtype[Any]) -> Any:
    return found[1].astype(kind, copy=False)


def nonzero_coordinates(
    x: Any,
    *,
    index_dtype: Any = None,
    size: None = None,
    fill_value: Any = 0,
    out: None = None,
) -> Lazy:
    """`anydml.nonzero_coordinates` of a dask array: lazy, in chunks of unknown sizes.

    Blocks that do not follow one another in row-major order are first exchanged for others of the
    same size that do, as bools. A task holds one block of them and its coordinates.

    Parameters
    ----------
    x, index_dtype
        As for `anydml.nonzero_coordinates`.
    size, fill_value
        Not for dask arrays, whose chunks find their own numbers of rows.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array, shape (nan, x.ndim)
        Rows in ascending element order of the whole array; ``compute_chunk_sizes()`` finds out how
        many.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import nonzero_coordinates
    >>> nonzero_coordinates(da.eye(3, chunks=2)).compute()
    array([[0, 0],
           [1, 1],
           [2, 2]])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    _attributes.check_type(data, _attributes.COMPARED)
    if size is not None:
        raise ArgumentError(
            f"size: expected None for a dask array, got {shown(size)}; take the first rows of the "
            f"result when its chunk sizes are known"
        )
    kind = _arguments.result_indices(index_dtype, data._meta, data.shape, None, "out")
    inferred = _engine.infer(NonzeroCoordinates, (data,), {"columns": data.ndim})
    _, columns = inferred.outputs[1].shape
    read = data
    if not _graphs.is_in_order(data.chunks):
        marks = data.map_blocks(_marks, dtype=bool, meta=_graphs.like(data, data.ndim, bool))
        read = _graphs.in_order(marks, data.ndim)
    name = _graphs.named("nonzero", read.name, str(kind))
    layer: _graphs.Layer = {}
    limits = [_graphs.bounds(sizes) for sizes in read.chunks]
    for i, at in enumerate(_graphs.blocks(read.chunks)):
        starts = [limits[axis][n][0] for axis, n in enumerate(at)]
        _graphs.put(layer, (name, i, 0), _coordinates, _graphs.block(read, at), starts, kind)
    return _graphs.made(name, layer, [read], ((math.nan,) * len(layer), (columns,)), data, kind)


def _marks(chunk: Any) -> Any:
    return chunk != 0


def _coordinates(chunk: Any, starts: list[int], kind: np.dtype[Any]) -> Any:
    found = selection.nonzero_coordinates(chunk, index_dtype=kind)
    for axis, start in enumerate(starts):
        if start:
            found[:, axis] += start
    return found
