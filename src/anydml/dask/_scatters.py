"""`scatter_elements` and `scatter_nd` on dask arrays.

Every block of the result begins as the block of `x` and takes the updates of one block after the
other, in the order of the updates: the last one wins, and sums round, as in memory. A task holds a
block of `x` before and after, a block of positions and a block of updates. Nothing is written in
place, so that a task that is run again finds what it found before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
from dask.array import zeros_like

from anydml.dask import _graphs, _places
from anydml.dask._graphs import Chunks, Lazy, Position
from anydml.dask._places import Places
from anydml.functions import _arguments, _attributes, _combining, _engine
from anydml.functions import scatter as functions
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND

Step = Callable[..., Any]


def scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    axis: Any = 0,
    reduction: Any = None,
    include_self: Any = True,
    broadcast: Any = False,
    out: None = None,
) -> Lazy:
    """`anydml.scatter_elements` where an operand is a dask array: lazy, in the chunks of `x`.

    A task holds a block of `x` before and after, one of indices and one of updates.

    Parameters
    ----------
    x, indices, updates, axis, reduction, include_self, broadcast
        As for `anydml.scatter_elements`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        Of the shape and type of `x`.

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
    >>> from anydml.dask import scatter_elements
    >>> scatter_elements(da.zeros(5, chunks=2, dtype=int), [3, 1, 3], [5, 6, 7]).compute()
    array([0, 6, 0, 7, 0])
    """
    _graphs.no_out(out)
    data, (lookup, held), values = _operands(x, indices, updates)
    number = _arguments.axis_of(axis, data if data.ndim else data.reshape(1))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        shape = _attributes.along(number, data, lookup)
        lookup, values = (
            _graphs.spread(lookup, shape, "indices"),
            _graphs.spread(values, shape, "updates"),
        )
    elif values.ndim == 0:
        values = _graphs.spread(values, lookup.shape, "updates")
    scalar = data.ndim == 0
    if scalar:  # one element on one axis
        _attributes.check_scalar(lookup, values)
        data, lookup, values = data.reshape(1), lookup.reshape(-1), values.reshape(-1)
    inferred = _engine.infer(Scatter, (data, lookup, values), {"axis": number})
    how = _combining.reduction_of(reduction, data)
    whole = _arguments.flag(include_self, "include_self")
    chunks = tuple(
        lookup.chunks[i] if i == number else _cut(sizes, lookup.shape[i])
        for i, sizes in enumerate(data.chunks)
    )
    lookup, values = (_graphs.rechunked(array, chunks) for array in (lookup, values))
    pointed = (data.chunks[number],)
    places = _places.positions("scatter_elements", lookup, held, pointed, [number], "raise")
    reached = _reached(places, lookup.chunks)
    limits = _graphs.bounds(data.chunks[number])

    def steps(at: Position) -> list[Any]:
        off = (*at[:number], *at[number + 1 :])
        there = (*chunks[:number], *chunks[number + 1 :])
        if any(i >= len(sizes) for i, sizes in zip(off, there, strict=True)):
            return []  # behind the last index
        blocks = [(*at[:number], j, *at[number + 1 :]) for j in range(len(chunks[number]))]
        span = limits[at[number]]
        return [
            (block, block, *span, number)
            for block in blocks
            if at[number : number + 1] in reached[block]
        ]

    result = _scattered(_elements, (data, places.array, values), steps, how, whole)
    assert result.shape == inferred.outputs[0].shape
    return result.reshape(()) if scalar else result


def scatter_nd(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    reduction: Any = None,
    include_self: Any = True,
    out: None = None,
) -> Lazy:
    """`anydml.scatter_nd` where an operand is a dask array: lazy, in the chunks of `x`.

    Blocks of tuples that do not follow one another in row-major order are exchanged for others of
    the same size that do. A task holds a block of `x` before and after, one of tuples and one of
    updates.

    Parameters
    ----------
    x, indices, updates, reduction, include_self
        As for `anydml.scatter_nd`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        Of the shape and type of `x`.

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
    >>> from anydml.dask import scatter_nd
    >>> scatter_nd(da.zeros(4, chunks=2, dtype=int), [[3], [0], [3]], [5, 6, 7]).compute()
    array([6, 0, 0, 7])
    """
    _graphs.no_out(out)
    data, (lookup, held), values = _operands(x, indices, updates)
    if values.ndim == 0 and lookup.ndim:
        blocks = lookup.shape[:-1] + data.shape[lookup.shape[-1] :]
        values = _graphs.spread(values, blocks, "updates")
    inferred = _engine.infer(ScatterND, (data, lookup, values), {})
    how = _combining.reduction_of(reduction, data)
    whole = _arguments.flag(include_self, "include_self")
    count = lookup.shape[-1]
    outer = lookup.chunks[:-1]
    if held is not None:
        each = _graphs.size_of(data, data.chunks[count:])
        outer = _graphs.cut(lookup.shape[:-1], each, _graphs.size_of(data))
    lookup = _graphs.rechunked(lookup, (*outer, (count,)))
    lookup = _graphs.in_order(lookup, lookup.ndim - 1)
    outer, pointed = lookup.chunks[:-1], data.chunks[:count]
    values = _graphs.rechunked(values, (*outer, *data.chunks[count:]))
    axes = inferred.coordinates
    places = _places.positions("scatter_nd", lookup, held, pointed, axes, "raise", tuples=True)
    reached = _reached(places, lookup.chunks)
    limits = [_graphs.bounds(sizes) for sizes in pointed]

    def steps(at: Position) -> list[Any]:
        span = _places.corners(limits, at[:count])
        return [
            ((*tuples, 0), (*tuples, *at[count:]), *span)
            for tuples in _graphs.blocks(outer)
            if at[:count] in reached[(*tuples, 0)]
        ]

    result = _scattered(_blocks, (data, places.array, values), steps, how, whole)
    assert result.shape == inferred.outputs[0].shape
    return result


def _reached(places: Places, chunks: Chunks) -> dict[Position, Collection[Position]]:
    """By block of indices, the blocks that it names."""
    return {at: places.reached(at) for at in _graphs.blocks(chunks)}


def _operands(x: Any, indices: Any, updates: Any) -> tuple[Lazy, tuple[Lazy, Any], Lazy]:
    data = _graphs.lazy(x, "x")
    return data, _graphs.lazy_indices(indices), _graphs.lazy_as(updates, "updates", data)


def _cut(sizes: Sequence[int], total: int) -> tuple[int, ...]:
    """The first chunks of an axis, up to some size."""
    spans = _graphs.bounds(sizes)
    return tuple(min(high, total) - low for low, high in spans if low < total) or (0,)


def _scattered(
    step: Step,
    operands: tuple[Lazy, Lazy, Lazy],
    steps: Callable[[Position], list[Any]],
    how: str,
    whole: bool,
) -> Lazy:
    """The updates of all steps, in the way of the reduction."""
    data, places, values = operands
    run = partial(_pass, step, steps)
    if how == "none":
        return run(data, places, values, None, how)
    start = data
    if not whole:
        neutral = _combining.neutral(how, data.dtype)
        start = run(data, places, None, neutral, "none")
    if how != "mean":
        return run(start, places, values, None, how)
    sums = run(start, places, values, None, "add")
    kind = _graphs.like(data, data.ndim, np.int64)
    none = zeros_like(kind, shape=data.shape, chunks=data.chunks)
    counts = run(none, places, None, np.int64(1), "add")
    return sums.map_blocks(_means, counts, whole, dtype=data.dtype, meta=data._meta)


def _pass(
    step: Step,
    steps: Callable[[Position], list[Any]],
    data: Lazy,
    places: Lazy,
    values: Lazy | None,
    one: Any,
    how: str,
) -> Lazy:
    """A chain of tasks for each block: `values`, or `one` value for all, in order."""
    name = _graphs.named("scatter", data.name, places.name, values, one, how, step.__name__)
    layer: _graphs.Layer = {}
    for at in _graphs.blocks(data.chunks):
        state = _graphs.block(data, at)
        for i, (where, what, *more) in enumerate(steps(at)):
            new = one if values is None else _graphs.block(values, what)
            given = (state, _graphs.block(places, where), new, how, *more)
            state = _graphs.put(layer, (f"{name}-step", i, *at), step, *given)
        _graphs.same(layer, (name, *at), state)
    of = [data, places] if values is None else [data, places, values]
    return _graphs.made(name, layer, of, data.chunks, data, data.dtype)


def _elements(
    chunk: Any, places: Any, updates: Any, how: Any, low: int, high: int, axis: int
) -> Any:
    inside = (places >= low) & (places < high)
    if not inside.any():
        return chunk
    flat = (places - low) * math.prod(chunk.shape[axis + 1 :])
    for i, size in enumerate(places.shape):
        if i != axis:
            along = np.arange(size, like=places) * math.prod(chunk.shape[i + 1 :])
            flat += along.reshape((-1, *(1,) * (places.ndim - 1 - i)))
    new = updates[inside] if updates.ndim else updates
    result = functions.scatter_elements(chunk.reshape(-1), flat[inside], new, reduction=how)
    return result.reshape(chunk.shape)


def _blocks(
    chunk: Any, places: Any, updates: Any, how: Any, low: list[int], high: list[int]
) -> Any:
    inside = _places.inside(places, low, high)
    if not inside.any():
        return chunk
    coordinates = places[inside] - np.array(low, np.int64, like=places)
    new = updates[inside] if updates.ndim else updates
    return functions.scatter_nd(chunk, coordinates, new, reduction=how)


def _means(sums: Any, counts: Any, whole: bool) -> Any:
    result = sums.copy()
    _combining.divide(result, counts, whole)
    return result
