"""Functions whose second operand names elements of the first one, on dask arrays.

**Reading.** Every block of the result is put together from what each block of `x` has of it: a task
reads one block of `x` and one of positions, and gives the elements found there and nothing else;
together these are as large as the block of the result that the last task makes. Where one block of
`x` has all, one task makes the block of the result. Indices in memory ask only those blocks that
they name.

**Writing.** Every block of the result begins as the block of `x` and takes the updates of one block
after the other, in the order of the updates: the last one wins, and sums round, as in memory. Sums
and products of 16-bit floats are float32 in between. Nothing is written in place, so that a task
that is run again finds what it found before.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from typing import Any, Final

import numpy as np
from dask.array import broadcast_to, from_array, zeros_like
from dask.array.utils import meta_from_array
from dask.task_spec import List

from anydml.dask import _graphs
from anydml.dask._graphs import Chunks, Lazy, Position
from anydml.functions import _block_tasks, _scatter
from anydml.functions._blocks import Pointing
from anydml.functions._function import FunctionSpec


class _Places:
    """Positions that indices name, in blocks that fit those of `x`.

    `array` has them in int64, from the start of the `indexed_axes` of `x`; `outer` are the chunks
    of its axes, without the one of tuples.
    """

    def __init__(self, spec: FunctionSpec, x: Lazy, indices: Any, attributes: Any) -> None:
        before, aligned, tuples = spec.blocks.points((x, indices), attributes)
        self.pointing: Pointing = (before, aligned, tuples)
        self.aligned = {j: before + i for i, j in enumerate(aligned) if j is not None}
        self.indexed_axes = tuple(before + i for i, j in enumerate(aligned) if j is None)
        self.behind = x.chunks[before + len(aligned) :]
        self._chunks: Chunks = tuple(x.chunks[axis] for axis in self.indexed_axes)
        self.limits = [_graphs.bounds(sizes) for sizes in self._chunks]
        self._everywhere = list(_graphs.blocks(self._chunks))
        self._held: Any = None
        rank = indices.ndim - tuples
        held = not _graphs.is_lazy(indices)
        own = [axis for axis in range(rank) if axis not in self.aligned]
        cut: Any = {}
        if held:
            shape = tuple(indices.shape[axis] for axis in own)
            others = [sizes for axis, sizes in enumerate(x.chunks) if axis not in self.indexed_axes]
            bytes_per_index = _graphs.size_of(x, tuple(others))
            found = _graphs.choose_chunks(shape, bytes_per_index, _graphs.size_of(x))
            cut = dict(zip(own, found, strict=True))
        elif spec.blocks.writes and len(own) > 1:
            last = (*indices.chunks[:rank], *((size,) for size in indices.shape[rank:]))
            indices = _graphs.in_order(_graphs.rechunked(indices, last), rank)
        self.outer: Chunks = tuple(
            _limited(x.chunks[self.aligned[axis]], indices.shape[axis])
            if axis in self.aligned
            else (cut[axis] if held else indices.chunks[axis])
            for axis in range(rank)
        )
        chunks = (*self.outer, *((size,) for size in indices.shape[rank:]))
        clamp = attributes.get("clamp", False)
        sizes = [x.shape[axis] for axis in self.indexed_axes]
        arguments = (spec.name, sizes, list(self.indexed_axes), clamp)
        if held:
            self.array = self._known(indices, chunks, arguments)
            return
        indices = _graphs.rechunked(indices, chunks)
        name = _graphs.layer_name("places", indices.name, arguments)
        layer: _graphs.Layer = {}
        bounds = [_graphs.bounds(sizes) for sizes in chunks]
        for at in _graphs.blocks(chunks):
            origin = [bounds[axis][i][0] for axis, i in enumerate(at)]
            chunk = _graphs.block(indices, at)
            _graphs.put(layer, (name, *at), _block_tasks.resolve, chunk, *arguments, origin)
        self.array = _graphs.new_array(name, layer, [indices], chunks, indices, np.int64)

    def _known(self, indices: Any, chunks: Chunks, arguments: Any) -> Lazy:
        indices = np.asarray(indices)
        # Of axes along which the indices are broadcast, only what is in memory.
        once = [
            slice(1) if stride == 0 and indices.size else slice(None) for stride in indices.strides
        ]
        call, sizes, axes, clamp = arguments
        found = _block_tasks.resolve(indices[(*once, ...)], call, sizes, axes, clamp, [])
        self._held = found
        own = tuple(
            sizes if size == sum(sizes) else (size,)
            for size, sizes in zip(found.shape, chunks, strict=True)
        )
        self._bounds = [_graphs.bounds(sizes) for sizes in own]
        array = from_array(found, chunks=own, name=_graphs.layer_name("places", found, own))
        if found.shape != indices.shape:
            array = broadcast_to(array, indices.shape, chunks=chunks)
        return array

    def key(self, at: Position) -> Position:
        """The block of positions at a place of its outer axes."""
        return (*at, 0) if self.pointing[2] else at

    def reached(self, at: Position) -> Collection[Position]:
        """The blocks of the pointed axes that a block names; all where it is not known yet."""
        if self._held is None:
            return self._everywhere
        at = self.key(at)
        spans = (
            bounds[min(i, len(bounds) - 1)] for i, bounds in zip(at, self._bounds, strict=True)
        )
        block = self._held[tuple(slice(*span) for span in spans)]
        columns = np.moveaxis(block, -1, 0) if self.pointing[2] else [block]
        number = np.zeros(block.shape[:-1] if self.pointing[2] else block.shape, np.int64)
        for sizes, column in zip(self._chunks, columns, strict=True):
            ends = np.cumsum(sizes)
            number = number * len(ends) + np.searchsorted(ends, column, side="right")
        return [self._everywhere[i] for i in np.flatnonzero(np.bincount(number.reshape(-1)))]


def _limited(sizes: Sequence[int], total: int) -> tuple[int, ...]:
    """The first chunks of an axis, up to some size."""
    spans = _graphs.bounds(sizes)
    return tuple(min(high, total) - low for low, high in spans if low < total) or (0,)


def read_indexed(spec: FunctionSpec, operands: Sequence[Any], attributes: Any) -> list[Lazy]:
    """The elements that the indices name."""
    x, indices = operands
    places = _Places(spec, x, indices, attributes)
    before, aligned, _ = places.pointing
    chunks = (*x.chunks[:before], *places.outer, *places.behind)
    name = _graphs.layer_name(spec.name, x.name, places.array.name, attributes, chunks)
    meta = meta_from_array(x)
    layer: _graphs.Layer = {}
    for at in _graphs.blocks(chunks):
        outer = at[before : before + len(places.outer)]
        front, behind = at[:before], at[before + len(outer) :]
        where = _graphs.block(places.array, places.key(outer))
        sources, spans = [], []
        for inner in places.reached(outer):
            inner_positions = iter(inner)
            middle = (next(inner_positions) if axis is None else outer[axis] for axis in aligned)
            sources.append(_graphs.block(x, (*front, *middle, *behind)))
            spans.append(_graphs.corners(places.limits, inner))
        if len(sources) == 1:
            arguments = (sources[0], where, places.pointing, spans[0][0], spec.name, attributes)
            _graphs.put(layer, (name, *at), _block_tasks.read_indexed, *arguments)
            continue
        parts = [
            _graphs.put(layer, (f"{name}-found", i, *at), _block_tasks.read_part, source, where,
                        places.pointing, *span, spec.name, attributes)
            for i, (source, span) in enumerate(zip(sources, spans, strict=True))
        ]  # fmt: skip
        shape = tuple(sizes[i] for sizes, i in zip(chunks, at, strict=True))
        rest = (List(*parts), where, places.pointing, spans, shape, meta)
        _graphs.put(layer, (name, *at), _block_tasks.join_parts, *rest)
    return [_graphs.new_array(name, layer, [x, places.array], chunks, x, x.dtype)]


_ONE: Final = np.int64(1)


def write(spec: FunctionSpec, operands: Sequence[Any], attributes: Any) -> list[Lazy]:
    """The updates in the way of the reduction."""
    x, indices, updates = operands
    reduction, include_self = attributes["reduction"], attributes["include_self"]
    places = _Places(spec, x, indices, attributes)
    updates = _graphs.rechunked(updates, (*places.outer, *places.behind))
    steps = _steps(x, places)

    def run(start: Lazy, values: Any, reduction: str) -> Lazy:
        """A chain of tasks for each block; `values` may be one value for all."""
        lazy = _graphs.is_lazy(values)
        key = values.name if lazy else values
        name = _graphs.layer_name(
            spec.name, start.name, places.array.name, key, reduction, places.pointing
        )
        layer: _graphs.Layer = {}
        for at, chain in steps.items():
            state = _graphs.block(start, at)
            for i, (outer, behind, span) in enumerate(chain):
                new = _graphs.block(values, (*outer, *behind)) if lazy else values
                where = _graphs.block(places.array, places.key(outer))
                arguments = (state, where, new, places.pointing, reduction, *span)
                state = _graphs.put(layer, (f"{name}-step", i, *at), _block_tasks.write, *arguments)
            _graphs.same(layer, (name, *at), state)
        of = [start, places.array, *([values] if lazy else [])]
        return _graphs.new_array(name, layer, of, x.chunks, x, start.dtype)

    start, wide = x, x.dtype
    if reduction == "mean" or any(len(chain) > 1 for chain in steps.values()):
        wide = _scatter.carried_type(reduction, x.dtype)
    if wide != x.dtype:
        start, updates = x.astype(wide), updates.astype(wide)
    if not include_self and reduction != "none":
        start = run(start, _scatter.identity(reduction, start.dtype), "none")
    if reduction != "mean" and wide == x.dtype:
        return [run(start, updates, reduction)]
    sums = run(start, updates, "add" if reduction == "mean" else reduction)
    kind = _graphs.like(x, x.ndim, np.int64)
    counts = run(zeros_like(kind, shape=x.shape, chunks=x.chunks), _ONE, "add")
    terms = int(include_self) if reduction == "mean" else None
    options = {"dtype": x.dtype, "meta": meta_from_array(x)}
    return [x.map_blocks(_block_tasks.finish, sums, counts, terms, **options)]


def _steps(x: Lazy, places: _Places) -> dict[Position, list[Any]]:
    """For each block of `x` the blocks of updates that may name its elements, in order."""
    reached = {at: set(places.reached(at)) for at in _graphs.blocks(places.outer)}
    steps: dict[Position, list[Any]] = {}
    for at in _graphs.blocks(x.chunks):
        inner = tuple(at[axis] for axis in places.indexed_axes)
        behind = at[x.ndim - len(places.behind) :]
        span = _graphs.corners(places.limits, inner)
        choices = [
            [at[places.aligned[j]]] if j in places.aligned else range(len(sizes))
            for j, sizes in enumerate(places.outer)
        ]
        steps[at] = [
            (outer, behind, span)
            for outer in itertools.product(*choices)
            if inner in reached.get(outer, ())
        ]
    return steps
