"""`gather`, `gather_elements` and `gather_nd` on dask arrays.

Every block of the result is put together from what each block of `x` has of it: a task reads one
block of `x` and one of positions, and gives the elements found there and nothing else; together
these are as large as the block of the result that the last task makes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.array import broadcast_to

from anydml.bridges.dask import _graphs, _places
from anydml.bridges.dask._graphs import Lazy
from anydml.functions import _arguments, _engine
from anydml.functions import gather as functions
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND


def gather(x: Any, indices: Any, *, axis: Any = 0, mode: Any = "raise", out: None = None) -> Lazy:
    """`anydml.gather` where an operand is a dask array: lazy, in the chunks of `x` and the indices.

    A task holds a block of `x`, a block of indices and what it finds, or a block of the result, its
    parts and the indices.

    Parameters
    ----------
    x, indices, axis, mode
        As for `anydml.gather`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        The slices.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.
    IndexOutOfRangeError
        When it is computed: an index outside the axis, with its position in all of the indices.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.bridges.dask import gather
    >>> gather(da.arange(6, chunks=2), [5, 0, -2]).compute()
    array([5, 0, 4])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    data = data if data.ndim else data.reshape(1)
    lookup = _graphs.lazy_indices(indices)
    number = _arguments.axis_of(axis, data)
    functions.check_mode(mode, lookup, data, (number,))
    given = {"axis": number, "clamp": mode == "clamp"}
    (spec,) = _engine.infer(Gather, (data, lookup), given).outputs
    places = _places.positions("gather", lookup, [data.shape[number]], [number], mode)
    before, behind = data.chunks[:number], data.chunks[number + 1 :]
    chunks = (*before, *lookup.chunks, *behind)
    limits = _graphs.bounds(data.chunks[number])
    name = _graphs.named("gather", data.name, places.name, number)
    layer: _graphs.Layer = {}
    for at in _graphs.blocks(chunks):
        front, back = at[:number], at[number + lookup.ndim :]
        where = _graphs.block(places, at[number : number + lookup.ndim])
        parts = [
            _graphs.put(
                layer, (f"{name}-found", i, *at), _slices,
                _graphs.block(data, (*front, i, *back)), where, *span, number,
            )
            for i, span in enumerate(limits)
        ]  # fmt: skip
        given_parts = (_graphs.listed(parts), where, limits, number)
        _graphs.put(layer, (name, *at), _joined_slices, *given_parts)
    result = _graphs.made(name, layer, [data, places], chunks, data, data.dtype)
    assert result.shape == spec.shape
    return result


def _slices(chunk: Any, places: Any, low: int, high: int, axis: int) -> Any:
    wanted = places[(places >= low) & (places < high)] - low
    return functions.gather(chunk, wanted, axis=axis)


def _joined_slices(parts: list[Any], places: Any, limits: list[tuple[int, int]], axis: int) -> Any:
    flat = places.reshape(-1)
    shape = parts[0].shape
    result = _graphs.empty(parts[0], (*shape[:axis], flat.size, *shape[axis + 1 :]))
    for part, (low, high) in zip(parts, limits, strict=True):
        inside = (flat >= low) & (flat < high)
        result[(*(slice(None),) * axis, inside)] = part
    return result.reshape((*shape[:axis], *places.shape, *shape[axis + 1 :]))


def gather_elements(
    x: Any,
    indices: Any,
    *,
    axis: Any = 0,
    mode: Any = "raise",
    broadcast: Any = False,
    out: None = None,
) -> Lazy:
    """`anydml.gather_elements` where an operand is a dask array: lazy.

    The result has the chunks of `x` off the axis and those of the indices on it. A task holds a
    block of `x`, a block of indices and what it finds, or a block of the result, its parts and the
    indices.

    Parameters
    ----------
    x, indices, axis, mode, broadcast
        As for `anydml.gather_elements`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        The elements, one for each index.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.
    IndexOutOfRangeError
        When it is computed: an index outside the axis, with its position in all of the indices.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.bridges.dask import gather_elements
    >>> x = da.from_array([[3, 9, 5], [1, 2, 4]], chunks=(1, 2))
    >>> gather_elements(x, [[1, 2], [0, -1]], axis=1).compute()
    array([[9, 5],
           [1, 4]])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    lookup = _graphs.lazy_indices(indices)
    number = _arguments.axis_of(axis, data if data.ndim else data.reshape(1))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        wanted = functions.alike(number, data, lookup)
        data = _graphs.spread(data, wanted[0], "x")
        lookup = _graphs.spread(lookup, wanted[1], "indices")
    scalar = lookup.ndim == 0
    if data.ndim == 0:  # one element on one axis, for indices of any shape
        lookup = lookup.reshape(1) if scalar else lookup
        behind = lookup.chunks[1:]
        data = broadcast_to(data, (1, *lookup.shape[1:]), chunks=((1,), *behind))
    functions.check_mode(mode, lookup, data, (number,))
    given = {"axis": number, "clamp": mode == "clamp"}
    (spec,) = _engine.infer(GatherElements, (data, lookup), given).outputs
    used = (slice(size) for size in lookup.shape)
    data = data[tuple(slice(None) if i == number else part for i, part in enumerate(used))]
    chunks = tuple(
        lookup.chunks[i] if i == number else sizes for i, sizes in enumerate(data.chunks)
    )
    lookup = _graphs.rechunked(lookup, chunks)
    call = "gather_elements"
    places = _places.positions(call, lookup, [data.shape[number]], [number], mode)
    limits = _graphs.bounds(data.chunks[number])
    name = _graphs.named("gather-elements", data.name, places.name, number)
    layer: _graphs.Layer = {}
    for at in _graphs.blocks(chunks):
        where = _graphs.block(places, at)
        parts = [
            _graphs.put(
                layer, (f"{name}-found", i, *at), _elements,
                _graphs.block(data, (*at[:number], i, *at[number + 1 :])), where, *span, number,
            )
            for i, span in enumerate(limits)
        ]  # fmt: skip
        _graphs.put(layer, (name, *at), _joined_elements, _graphs.listed(parts), where, limits)
    result = _graphs.made(name, layer, [data, places], chunks, data, data.dtype)
    assert result.shape == spec.shape
    return result.reshape(()) if scalar else result


def _elements(chunk: Any, places: Any, low: int, high: int, axis: int) -> Any:
    inside = (places >= low) & (places < high)
    if low == high:  # nothing to read
        return _graphs.empty(chunk, 0)
    wanted = np.where(inside, places - low, 0)
    return functions.gather_elements(chunk, wanted, axis=axis)[inside]


def _joined_elements(parts: list[Any], places: Any, limits: list[tuple[int, int]]) -> Any:
    result = _graphs.empty(parts[0], places.shape)
    for part, (low, high) in zip(parts, limits, strict=True):
        result[(places >= low) & (places < high)] = part
    return result


def gather_nd(
    x: Any, indices: Any, *, batch_dims: Any = 0, mode: Any = "raise", out: None = None
) -> Lazy:
    """`anydml.gather_nd` where an operand is a dask array: lazy, in the chunks of both.

    A task holds a block of `x`, a block of tuples and what it finds, or a block of the result, its
    parts and the tuples.

    Parameters
    ----------
    x, indices, batch_dims, mode
        As for `anydml.gather_nd`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        The elements or blocks.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.
    IndexOutOfRangeError
        When it is computed: a coordinate outside its axis, with its position in all of the indices.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.bridges.dask import gather_nd
    >>> gather_nd(da.arange(6, chunks=2).reshape(2, 3), [[1, 0], [0, -1]]).compute()
    array([3, 2])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    lookup = _graphs.lazy_indices(indices)
    batch = _arguments.integer(batch_dims, "batch_dims")
    count = lookup.shape[-1] if lookup.ndim else 0
    axes = range(max(batch, 0), min(batch + count, data.ndim))
    functions.check_mode(mode, lookup, data, axes)
    given = {"batch_dims": batch, "clamp": mode == "clamp"}
    inferred = _engine.infer(GatherND, (data, lookup), given)
    wanted = (*data.chunks[:batch], *lookup.chunks[batch:-1], (count,))
    lookup = _graphs.rechunked(lookup, wanted)
    sizes = [data.shape[axis] for axis in inferred.coordinates]
    places = _places.positions("gather_nd", lookup, sizes, inferred.coordinates, mode)
    pointed = data.chunks[batch : batch + count]
    limits = [_graphs.bounds(sizes) for sizes in pointed]
    spans = [_places.corners(limits, at) for at in _graphs.blocks(pointed)]
    chunks = (*lookup.chunks[:-1], *data.chunks[batch + count :])
    name = _graphs.named("gather-nd", data.name, places.name, batch)
    layer: _graphs.Layer = {}
    for at in _graphs.blocks(chunks):
        tuples, back = at[: lookup.ndim - 1], at[lookup.ndim - 1 :]
        where = _graphs.block(places, (*tuples, 0))
        parts = [
            _graphs.put(
                layer, (f"{name}-found", i, *at), _blocks,
                _graphs.block(data, (*tuples[:batch], *inner, *back)), where, *spans[i], batch,
            )
            for i, inner in enumerate(_graphs.blocks(pointed))
        ]  # fmt: skip
        behind = [data.chunks[batch + count + i][n] for i, n in enumerate(back)]
        given_parts = (_graphs.listed(parts), where, spans, behind)
        _graphs.put(layer, (name, *at), _joined_blocks, *given_parts)
    result = _graphs.made(name, layer, [data, places], chunks, data, data.dtype)
    assert result.shape == inferred.outputs[0].shape
    return result


def _blocks(chunk: Any, places: Any, low: list[int], high: list[int], batch: int) -> Any:
    inside = _places.inside(places, low, high)
    coordinates = places[inside] - np.array(low, np.int64, like=places)
    if batch:
        of_batch = np.stack(np.nonzero(inside)[:batch], axis=-1)
        coordinates = np.concatenate([of_batch, coordinates], axis=-1)
    return functions.gather_nd(chunk, coordinates)


def _joined_blocks(parts: list[Any], places: Any, spans: list[Any], behind: list[int]) -> Any:
    result = _graphs.empty(parts[0], (*places.shape[:-1], *behind))
    for part, span in zip(parts, spans, strict=True):
        result[_places.inside(places, *span)] = part
    return result
