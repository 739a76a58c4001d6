"""How jobs are made: for every operation a function from sizes to a `Job`.

The same seed gives the same job.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from benchmarks.jobs import Array, Job

Shape = tuple[int, ...]
Generator = np.random.Generator


def numbers(rng: Generator, shape: Shape, dtype: str) -> Array:
    """Normally distributed floats, or integers from the type's whole range."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        drawn = rng.standard_normal(shape, np.float64 if kind.itemsize == 8 else np.float32)
        return drawn.astype(kind, copy=False)
    limits = np.iinfo(kind)
    return rng.integers(limits.min, limits.max, shape, kind, endpoint=True)


def top_k(
    rng: Generator,
    *,
    shape: Shape,
    k: int,
    axis: int = -1,
    largest: bool = True,
    dtype: str = "float32",
) -> Job:
    """Random values."""
    x = numbers(rng, shape, dtype)
    return Job("top_k", (x,), {"k": k, "axis": axis, "largest": largest})


def nonzero_coordinates(
    rng: Generator, *, shape: Shape, density: float, dtype: str = "float32"
) -> Job:
    """Zeros and non-zeros."""
    count = prod(shape)
    mask = rng.random(count, np.float32) < density
    x = numbers(rng, (count,), dtype)
    x[x == 0] = 1
    x = np.where(mask, x, 0).astype(dtype)
    return Job("nonzero_coordinates", (x.reshape(shape),), {})


def positions(rng: Generator, count: int, size: int, unique: bool) -> Array:
    """Positions in ``0..size - 1``, in one line."""
    if unique and count <= size:
        return rng.permutation(size)[:count]
    return rng.integers(0, size, count)


def indices_along(rng: Generator, shape: Shape, axis: int, size: int, unique: bool) -> Array:
    """Index arrays of a shape, pointing into an axis of a size; every line has its own order."""
    last = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    lines, count = prod(last[:-1]), last[-1]
    if lines == 1:
        drawn = positions(rng, lines * count, size, unique)
    elif unique and count <= size:
        drawn = rng.permuted(np.tile(np.arange(size), (lines, 1)), axis=1)[:, :count]
    else:
        drawn = rng.integers(0, size, (lines, count))
    drawn = drawn.reshape(last)
    return np.ascontiguousarray(np.moveaxis(drawn, -1, axis))


def scatter_elements(
    rng: Generator,
    *,
    shape: Shape,
    axis: int = 0,
    count: int | None = None,
    dtype: str = "float32",
    index_dtype: str = "int64",
    reduction: str | None = None,
    unique: bool = True,
) -> Job:
    """`count` updates on the axis (its size by default), to different targets if `unique`."""
    taken = (*shape[:axis], shape[axis] if count is None else count, *shape[axis + 1 :])
    indices = indices_along(rng, taken, axis, shape[axis], unique).astype(index_dtype, copy=False)
    x, updates = numbers(rng, shape, dtype), numbers(rng, taken, dtype)
    options = {"axis": axis, "reduction": reduction}
    return Job("scatter_elements", (x, indices, updates), options)


def _tuples(flat: Array, sizes: Shape) -> Array:
    """Flat positions as tuples of coordinates; negative ones as negative coordinates."""
    total = prod(sizes)
    columns = np.stack(np.unravel_index(np.where(flat < 0, flat + total, flat), sizes), axis=-1)
    return np.where((flat < 0)[:, None], columns - np.array(sizes), columns)


def scatter_nd(
    rng: Generator,
    *,
    shape: Shape,
    count: int,
    coordinates: int,
    dtype: str = "float32",
    index_dtype: str = "int64",
    reduction: str | None = None,
    unique: bool = True,
) -> Job:
    """`count` tuples of `coordinates` each, for as many updates of the remaining shape."""
    sizes = shape[:coordinates]
    flat = positions(rng, count, prod(sizes), unique)
    indices = _tuples(flat, sizes).astype(index_dtype, copy=False)
    x, updates = numbers(rng, shape, dtype), numbers(rng, (count, *shape[coordinates:]), dtype)
    return Job("scatter_nd", (x, indices, updates), {"reduction": reduction})


def split(
    rng: Generator, *, shape: Shape, sections: int, axis: int = 0, dtype: str = "float32"
) -> Job:
    """One array to be cut into equal parts."""
    return Job("split", (numbers(rng, shape, dtype),), {"sections": sections, "axis": axis})


def join(rng: Generator, *, shapes: Sequence[Shape], axis: int = 0, dtype: str = "float32") -> Job:
    """The parts of one array."""
    return Job("join", tuple(numbers(rng, shape, dtype) for shape in shapes), {"axis": axis})


def gather(
    rng: Generator,
    *,
    shape: Shape,
    count: int,
    axis: int = 0,
    dtype: str = "float32",
    index_dtype: str = "int64",
    unique: bool = False,
) -> Job:
    """`count` slices along the axis."""
    indices = positions(rng, count, shape[axis], unique).astype(index_dtype, copy=False)
    return Job("gather", (numbers(rng, shape, dtype), indices), {"axis": axis})


def gather_elements(
    rng: Generator,
    *,
    shape: Shape,
    axis: int = 0,
    count: int | None = None,
    dtype: str = "float32",
    index_dtype: str = "int64",
    unique: bool = True,
) -> Job:
    """`count` elements of every line along the axis (its size by default)."""
    taken = (*shape[:axis], shape[axis] if count is None else count, *shape[axis + 1 :])
    indices = indices_along(rng, taken, axis, shape[axis], unique).astype(index_dtype, copy=False)
    return Job("gather_elements", (numbers(rng, shape, dtype), indices), {"axis": axis})


def gather_nd(
    rng: Generator,
    *,
    shape: Shape,
    count: int,
    coordinates: int,
    batch_dims: int = 0,
    dtype: str = "float32",
    index_dtype: str = "int64",
    unique: bool = False,
) -> Job:
    """`count` tuples of `coordinates` for every batch."""
    batch = shape[:batch_dims]
    sizes = shape[batch_dims : batch_dims + coordinates]
    flat = positions(rng, prod(batch) * count, prod(sizes), unique)
    indices = _tuples(flat, sizes).reshape(*batch, count, coordinates)
    options: dict[str, Any] = {"batch_dims": batch_dims}
    arrays = (numbers(rng, shape, dtype), indices.astype(index_dtype, copy=False))
    return Job("gather_nd", arrays, options)
