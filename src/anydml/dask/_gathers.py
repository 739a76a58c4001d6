"""`gather`, `gather_elements` and `gather_nd` on dask arrays.

Every block of the result is put together from what each block of `x` has of it: a task reads one
block of `x` and one of positions, and gives the elements found there and nothing else; together
these are as large as the block of the result that the last task makes. Where one block of `x` has
all, one task makes the block of the result. Indices in memory ask only those blocks that they name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from dask.array import broadcast_to

from anydml.dask import _graphs, _places
from anydml.dask._graphs import Chunks, Lazy, Position
from anydml.dask._places import Places
from anydml.functions import _arguments, _attributes, _engine
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
        An index outside the axis: at once where the indices are in memory, else when
        they are computed, with its position in all of them.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import gather
    >>> gather(da.arange(6, chunks=2), [5, 0, -2]).compute()
    array([5, 0, 4])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    data = data if data.ndim else data.reshape(1)
    lookup, held = _graphs.lazy_indices(indices)
    number = _arguments.axis_of(axis, data)
    _attributes.check_mode(mode, lookup, data, (number,))
    given = {"axis": number, "clamp": mode == "clamp"}
    (spec,) = _engine.infer(Gather, (data, lookup), given).outputs
    before, along, behind = data.chunks[:number], data.chunks[number], data.chunks[number + 1 :]
    if held is not None:
        each = _graphs.size_of(data, before + behind)
        lookup = _graphs.rechunked(lookup, _graphs.cut(lookup.shape, each, _graphs.size_of(data)))
    places = _places.positions("gather", lookup, held, (along,), [number], mode)
    limits = _graphs.bounds(along)

    def sources(at: Position) -> _Sources:
        where = at[number : number + lookup.ndim]
        front, back = at[:number], at[number + lookup.ndim :]
        return where, [_Source((*front, i, *back), limits[i]) for (i,) in places.reached(where)]

    how = _Gather(
        number, lookup.ndim, partial(_slices, axis=number), partial(_all_slices, axis=number)
    )
    result = _gathered("gather", how, data, places, (*before, *lookup.chunks, *behind), sources)
    assert result.shape == spec.shape
    return result


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
        An index outside the axis: at once where the indices are in memory, else when
        they are computed, with its position in all of them.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import gather_elements
    >>> x = da.from_array([[3, 9, 5], [1, 2, 4]], chunks=(1, 2))
    >>> gather_elements(x, [[1, 2], [0, -1]], axis=1).compute()
    array([[9, 5],
           [1, 4]])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    lookup, held = _graphs.lazy_indices(indices)
    number = _arguments.axis_of(axis, data if data.ndim else data.reshape(1))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        wanted = _attributes.alike(number, data, lookup)
        data = _graphs.spread(data, wanted[0], "x")
        lookup = _graphs.spread(lookup, wanted[1], "indices")
    scalar = lookup.ndim == 0
    if data.ndim == 0:  # one element on one axis, for indices of any shape
        lookup = lookup.reshape(1) if scalar else lookup
        behind = lookup.chunks[1:]
        data = broadcast_to(data, (1, *lookup.shape[1:]), chunks=((1,), *behind))
    _attributes.check_mode(mode, lookup, data, (number,))
    given = {"axis": number, "clamp": mode == "clamp"}
    (spec,) = _engine.infer(GatherElements, (data, lookup), given).outputs
    used = (slice(size) for size in lookup.shape)
    data = data[tuple(slice(None) if i == number else part for i, part in enumerate(used))]
    chunks = tuple(
        lookup.chunks[i] if i == number else sizes for i, sizes in enumerate(data.chunks)
    )
    lookup = _graphs.rechunked(lookup, chunks)
    pointed = (data.chunks[number],)
    places = _places.positions("gather_elements", lookup, held, pointed, [number], mode)
    limits = _graphs.bounds(data.chunks[number])

    def sources(at: Position) -> _Sources:
        return at, [
            _Source((*at[:number], i, *at[number + 1 :]), limits[i]) for (i,) in places.reached(at)
        ]

    how = _Gather(
        0, lookup.ndim, partial(_elements, axis=number), partial(_all_elements, axis=number)
    )
    result = _gathered("gather-elements", how, data, places, chunks, sources)
    assert result.shape == spec.shape
    return result.reshape(()) if scalar else result


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
        A coordinate outside its axis: at once where the indices are in memory, else when
        they are computed, with its position in all of them.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import gather_nd
    >>> gather_nd(da.arange(6, chunks=2).reshape(2, 3), [[1, 0], [0, -1]]).compute()
    array([3, 2])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    lookup, held = _graphs.lazy_indices(indices)
    batch = _arguments.integer(batch_dims, "batch_dims")
    _attributes.check_mode(mode, lookup, data, _attributes.pointed(lookup, batch, data.ndim))
    given = {"batch_dims": batch, "clamp": mode == "clamp"}
    inferred = _engine.infer(GatherND, (data, lookup), given)
    count = lookup.shape[-1]
    batches, pointed, behind = (
        data.chunks[:batch], data.chunks[batch : batch + count], data.chunks[batch + count :]
    )  # fmt: skip
    outer = lookup.chunks[batch:-1]
    if held is not None:
        each = _graphs.size_of(data, batches + behind)
        outer = _graphs.cut(lookup.shape[batch:-1], each, _graphs.size_of(data))
    lookup = _graphs.rechunked(lookup, (*batches, *outer, (count,)))
    places = _places.positions(
        "gather_nd", lookup, held, pointed, inferred.coordinates, mode, tuples=True
    )
    limits = [_graphs.bounds(sizes) for sizes in pointed]
    rank = lookup.ndim - 1

    def sources(at: Position) -> _Sources:
        where, back = (*at[:rank], 0), at[rank:]
        return where, [
            _Source((*at[:batch], *inner, *back), _places.corners(limits, inner))
            for inner in places.reached(where)
        ]

    how = _Gather(
        0, rank, partial(_blocks, batch=batch), partial(_all_blocks, batch=batch), _places.inside
    )
    result = _gathered("gather-nd", how, data, places, (*batches, *outer, *behind), sources)
    assert result.shape == inferred.outputs[0].shape
    return result


class _Source(NamedTuple):
    """A block of `x`, and the positions that it holds: from a first one to before a last one."""

    block: Position
    span: tuple[Any, Any]


_Sources = tuple[Position, list[_Source]]


def _between(places: Any, low: int, high: int) -> Any:
    return (places >= low) & (places < high)


class _Gather(NamedTuple):
    """How a gather reads a block.

    Attributes
    ----------
    axis, rank : int
        Where in the result the axes of the indices are, and how many: those of tuples without
        their last one.
    found : callable
        What a block has of the positions that lie in its span, one behind the other.
    whole : callable
        The block of the result, where all positions do.
    inside : callable
        Which positions lie in a span.
    """

    axis: int
    rank: int
    found: Callable[..., Any]
    whole: Callable[..., Any]
    inside: Callable[..., Any] = _between


def _gathered(
    call: str,
    how: _Gather,
    data: Lazy,
    places: Places,
    chunks: Chunks,
    sources: Callable[[Position], _Sources],
) -> Lazy:
    """A result in chunks: `sources` says by which positions a block is found, and where in `x`."""
    name = _graphs.named(call, data.name, places.array.name, how.axis, chunks)
    layer: _graphs.Layer = {}
    for at in _graphs.blocks(chunks):
        positions, used = sources(at)
        where = _graphs.block(places.array, positions)
        blocks = [_graphs.block(data, source.block) for source in used]
        spans = [source.span for source in used]
        if len(used) == 1:
            _graphs.put(layer, (name, *at), how.whole, blocks[0], where, spans[0][0])
            continue
        parts = [
            _graphs.put(layer, (f"{name}-found", i, *at), _found, how, block, where, spans[i])
            for i, block in enumerate(blocks)
        ]
        shape = tuple(sizes[i] for sizes, i in zip(chunks, at, strict=True))
        given = (how, _graphs.listed(parts), where, spans, shape, data._meta)
        _graphs.put(layer, (name, *at), _joined, *given)
    return _graphs.made(name, layer, [data, places.array], chunks, data, data.dtype)


def _found(how: _Gather, chunk: Any, places: Any, span: tuple[Any, Any]) -> Any:
    return how.found(chunk, places, how.inside(places, *span), span[0])


def _joined(
    how: _Gather, parts: list[Any], places: Any, spans: list[Any], shape: Position, kind: Any
) -> Any:
    axis, behind = how.axis, how.axis + how.rank
    flat = (*shape[:axis], math.prod(shape[axis:behind]), *shape[behind:])
    result = _graphs.empty(kind, flat)
    for part, span in zip(parts, spans, strict=True):
        inside = how.inside(places, *span).reshape(-1)
        result[(*(slice(None),) * axis, inside)] = part
    return result.reshape(shape)


def _slices(chunk: Any, places: Any, inside: Any, low: int, axis: int) -> Any:
    return functions.gather(chunk, places[inside] - low, axis=axis)


def _all_slices(chunk: Any, places: Any, low: int, axis: int) -> Any:
    return functions.gather(chunk, places - low, axis=axis)


def _elements(chunk: Any, places: Any, inside: Any, low: int, axis: int) -> Any:
    if not inside.any():
        return _graphs.empty(chunk, (0,))
    wanted = np.where(inside, places - low, 0)
    return functions.gather_elements(chunk, wanted, axis=axis)[inside]


def _all_elements(chunk: Any, places: Any, low: int, axis: int) -> Any:
    return functions.gather_elements(chunk, places - low, axis=axis)


def _blocks(chunk: Any, places: Any, inside: Any, low: list[int], batch: int) -> Any:
    coordinates = places[inside] - np.array(low, np.int64, like=places)
    if batch:
        of_batch = np.stack(np.nonzero(inside)[:batch], axis=-1)
        coordinates = np.concatenate([of_batch, coordinates], axis=-1)
    return functions.gather_nd(chunk, coordinates)


def _all_blocks(chunk: Any, places: Any, low: list[int], batch: int) -> Any:
    coordinates = places - np.array(low, np.int64, like=places)
    return functions.gather_nd(chunk, coordinates, batch_dims=batch)
