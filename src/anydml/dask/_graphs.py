"""Dask arrays that functions take and return: operands, blocks, graphs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from dask import config
from dask.array import Array as _Array
from dask.array import broadcast_to, concatenate, full_like, zeros_like
from dask.array.core import normalize_chunks
from dask.array.utils import meta_from_array
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import Alias, Task, TaskRef
from dask.utils import parse_bytes

Lazy: TypeAlias = Any
"""A dask array: the package has no types."""

Chunks = tuple[tuple[int, ...], ...]
Layer = dict[Any, Any]
Position = tuple[int, ...]

SMALL: Final = 2**20
"""Bytes up to which a chunk of one value may be larger than the chunks of an array."""


def is_lazy(value: Any) -> bool:
    """Whether it is a dask array."""
    return isinstance(value, _Array)


def broadcast(array: Any, shape: Sequence[int]) -> Any:
    """Broadcast a dask array, or one in memory, to a shape."""
    if not is_lazy(array):
        return np.broadcast_to(array, shape)
    shape = tuple(shape)
    if np.broadcast_shapes(array.shape, shape) != shape:
        raise ValueError(f"shape {array.shape} does not broadcast to {shape}")
    if 0 in shape:
        return zeros_like(array, shape=shape, chunks=-1)
    return broadcast_to(array, shape)


def layer_name(function: str, *arguments: Any) -> str:
    """A layer's name, the same for the same call."""
    return f"anydml-{function}-{tokenize(*arguments)}"


def blocks(chunks: Chunks) -> Iterator[Position]:
    """The positions of all blocks, in row-major order."""
    return itertools.product(*(range(len(sizes)) for sizes in chunks))


def bounds(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Where the chunks of an axis begin and end."""
    ends = list(itertools.accumulate(sizes))
    return list(zip([0, *ends[:-1]], ends, strict=True))


def block(array: Lazy, at: Position) -> Any:
    """A reference to a block."""
    return TaskRef((array.name, *at))


def put(layer: Layer, key: tuple[Any, ...], function: Callable[..., Any], *arguments: Any) -> Any:
    """Add a task, and give a reference to what it makes."""
    layer[key] = Task(key, function, *arguments)
    return TaskRef(key)


def same(layer: Layer, key: tuple[Any, ...], reference: Any) -> None:
    """Add an alias of another key."""
    layer[key] = Alias(key, reference.key)


def new_array(
    name: str, layer: Layer, of: Sequence[Lazy], chunks: Any, kin: Lazy, dtype: Any
) -> Lazy:
    """A dask array of a layer whose blocks are of the kind that another one's are."""
    graph = HighLevelGraph.from_collections(name, layer, dependencies=list(of))
    return _Array(graph, name, chunks=chunks, meta=like(kin, len(chunks), dtype))


def like(array: Lazy, rank: int, dtype: Any) -> Any:
    """Return an empty array of a rank and type, of the library of the blocks."""
    return np.zeros((0,) * rank, np.dtype(dtype), like=meta_from_array(array))


def rechunked(array: Lazy, chunks: Chunks) -> Lazy:
    """Rechunk an array without intermediate blocks larger than the old or new ones."""
    if chunks == array.chunks:
        return array
    if not array.size:
        return zeros_like(array, chunks=chunks)
    limit = max(size_of(array), size_of(array, chunks))
    return array.rechunk(chunks, block_size_limit=limit)


def choose_chunks(shape: tuple[int, ...], bytes_per_index: int, min_bytes: int) -> Chunks:
    """Chunks of indices that are in memory, of which every one names `bytes_per_index` bytes.

    What those of a chunk name together is no larger than `min_bytes` bytes, or than a chunk as
    Dask's configuration has it (``array.chunk-size``).
    """
    limit = max(min_bytes, parse_bytes(config.get("array.chunk-size")))
    limit //= max(bytes_per_index, 8)  # a position has 8 bytes
    chunks: Chunks = normalize_chunks(
        ("auto",) * len(shape), shape, limit=max(1, limit), dtype=np.dtype(np.uint8)
    )
    return chunks


def size_of(array: Lazy, chunks: Chunks | None = None) -> int:
    """The bytes of the largest block, or of the largest of chunks of the same elements."""
    sizes = array.chunks if chunks is None else chunks
    return int(math.prod(map(max, sizes)) * array.dtype.itemsize)


def in_order(array: Lazy, axes: int) -> Lazy:
    """The array in blocks that follow one another in row-major order of its first `axes` axes.

    Blocks are no larger than the largest that came in; the other axes keep their chunks.
    """
    if is_in_order(array.chunks[:axes]):
        return array
    block_size = max(1, math.prod(max(sizes) for sizes in array.chunks[:axes]))
    sizes = [-1] * axes
    inner = 1
    for axis in reversed(range(axes)):
        size = array.shape[axis]
        if inner * size > block_size:
            sizes[:axis] = [1] * axis
            sizes[axis] = max(1, block_size // inner)
            break
        inner *= size
    exchanged = normalize_chunks((*sizes, *array.chunks[axes:]), array.shape)
    return rechunked(array, exchanged)


def is_in_order(chunks: Chunks) -> bool:
    """Whether row-major order of the blocks is row-major order of the elements."""
    cut = [axis for axis, sizes in enumerate(chunks) if len(sizes) > 1]
    return all(size <= 1 for axis in range(max(cut, default=0)) for size in chunks[axis])


def corners(limits: Sequence[Sequence[tuple[int, int]]], at: Position) -> tuple[Any, Any]:
    """The low and the high corner of a block."""
    spans = [limits[axis][i] for axis, i in enumerate(at)]
    return [low for low, _ in spans], [high for _, high in spans]


def joined(parts: Sequence[Lazy], axis: int) -> Lazy:
    """The arrays, one behind the other."""
    # Without those that have no elements, which Dask puts together in its own way.
    full = [part for part in parts if part.shape[axis]]
    if all(part.size for part in full):
        return concatenate(full, axis=axis) if full else parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return zeros_like(parts[0], shape=tuple(shape), chunks=-1)


def filled(array: Lazy, axis: int, size: int, value: Any) -> Lazy:
    """One value, in the chunks of an array but for an axis."""
    shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
    others = [max(sizes) for i, sizes in enumerate(array.chunks) if i != axis]
    min_size = SMALL // max(1, math.prod(others) * array.dtype.itemsize)
    max_size = max(1, min_size, *array.chunks[axis])
    chunks = (*array.chunks[:axis], max_size, *array.chunks[axis + 1 :])
    return full_like(array, value, shape=shape, chunks=chunks)
