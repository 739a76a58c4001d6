"""How jobs are made: for every operation a function from sizes and a pattern to a `Job`.

The pattern says how values or indices lie; ``"random"`` is what every other one is compared with.
The same seed gives the same job.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from benchmarks.jobs import Array, Job

Shape = tuple[int, ...]
Generator = np.random.Generator

_FLOATS: Final = ("half NaN", "all NaN", "both zeros", "denormal", "infinite")
PATTERNS: Final[dict[str, tuple[str, ...]]] = {
    "top_k": ("sorted", "reversed", "rotated", "late", "constant", "few distinct"),
    "nonzero_coordinates": ("front", "back", "alternating", "runs", "none", "all"),
    "scatter_elements": ("sorted", "reversed", "constant", "few distinct", "negative"),
}
"""The patterns besides ``"random"``, by operation; indices share those of ``scatter_elements``."""


def patterns(operation: str, dtype: str) -> tuple[str, ...]:
    """Every pattern that an operation's recipe knows for a type, ``"random"`` first."""
    known = PATTERNS.get(operation, PATTERNS["scatter_elements"])
    if np.dtype(dtype).kind == "f" and operation == "top_k":
        known += _FLOATS
    if np.dtype(dtype).kind == "f" and operation == "nonzero_coordinates":
        known += ("NaN among -0",)
    return ("random", *known, "strided")


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
    pattern: str = "random",
) -> Job:
    """Values in the order, or with the ties, that the pattern names."""
    x = numbers(rng, shape, dtype)
    size = shape[axis]
    match pattern:
        case "sorted":
            x = np.sort(x, axis)
        case "reversed":
            x = np.flip(np.sort(x, axis), axis).copy()
        case "rotated":  # all of the largest side by side, in the middle
            x = np.roll(np.sort(x, axis), size // 2, axis)
        case "late":  # in no order, but the largest last
            x = np.partition(x, size - 1 - size // 16, axis)
        case "constant":
            x = np.ones_like(x)
        case "few distinct":
            x = rng.integers(0, 8, shape).astype(dtype)
        case "half NaN":
            x = np.where(rng.random(shape) < 0.5, x.dtype.type(np.nan), x)
        case "all NaN":
            x = np.full_like(x, np.nan)
        case "both zeros":
            x = np.where(rng.random(shape) < 0.5, x.dtype.type(0.0), x.dtype.type(-0.0))
        case "denormal":
            x = rng.integers(-1000, 1000, shape).astype(dtype) * np.finfo(dtype).smallest_subnormal
        case "infinite":
            x = np.where(x < 0, x.dtype.type(-np.inf), x.dtype.type(np.inf))
    return Job("top_k", (x,), {"k": k, "axis": axis, "largest": largest})


def nonzero_coordinates(
    rng: Generator,
    *,
    shape: Shape,
    density: float,
    dtype: str = "float32",
    pattern: str = "random",
) -> Job:
    """Zeros and non-zeros; ``none``, ``all`` and ``alternating`` (half) ignore the density."""
    count = prod(shape)
    mask = rng.random(count, np.float32) < density
    match pattern:
        case "front":
            mask = np.arange(count) < density * count
        case "back":
            mask = np.arange(count) >= (1 - density) * count
        case "alternating":
            mask = np.arange(count) % 2 == 0
        case "runs":
            mask = np.arange(count) % 1000 < 1000 * density
        case "none":
            mask[:] = False
        case "all":
            mask[:] = True
    x = numbers(rng, (count,), dtype)
    x[x == 0] = 1
    odd = pattern == "NaN among -0"
    x = np.where(mask, np.nan if odd else x, -0.0 if odd else 0).astype(dtype)
    return Job("nonzero_coordinates", (x.reshape(shape),), {})


def positions(rng: Generator, count: int, size: int, pattern: str, unique: bool) -> Array:
    """Positions in ``0..size - 1`` (negative ones for that pattern), in one line."""
    match pattern:
        case "constant":
            return np.full(count, size // 2)
        case "few distinct":
            return rng.integers(0, 8, count) * (size // 8)
    if unique and count <= size:
        drawn = rng.permutation(size)[:count]
    else:
        drawn = rng.integers(0, size, count)
    match pattern:
        case "sorted":
            return np.sort(drawn)
        case "reversed":
            return np.sort(drawn)[::-1].copy()
        case "negative":
            return drawn - size
    return drawn


def indices_along(
    rng: Generator, shape: Shape, axis: int, size: int, pattern: str, unique: bool
) -> Array:
    """Index arrays of a shape, pointing into an axis of a size; every line has its own order."""
    last = (*shape[:axis], *shape[axis + 1 :], shape[axis])
    lines, count = prod(last[:-1]), last[-1]
    if lines == 1 or pattern in ("constant", "few distinct"):
        drawn = positions(rng, lines * count, size, pattern, unique)
    elif unique and count <= size:
        drawn = rng.permuted(np.tile(np.arange(size), (lines, 1)), axis=1)[:, :count]
    else:
        drawn = rng.integers(0, size, (lines, count))
    drawn = drawn.reshape(last)
    if lines > 1 and pattern in ("sorted", "reversed"):
        drawn = np.sort(drawn, axis=-1)[..., :: 1 if pattern == "sorted" else -1]
    if lines > 1 and pattern == "negative":
        drawn = drawn - size
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
    pattern: str = "random",
) -> Job:
    """`count` updates on the axis (its size by default), to different targets if `unique`."""
    taken = (*shape[:axis], shape[axis] if count is None else count, *shape[axis + 1 :])
    indices = indices_along(rng, taken, axis, shape[axis], pattern, unique).astype(
        index_dtype, copy=False
    )
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
    pattern: str = "random",
) -> Job:
    """`count` tuples of `coordinates` each, for as many updates of the remaining shape."""
    sizes = shape[:coordinates]
    flat = positions(rng, count, prod(sizes), pattern, unique)
    indices = _tuples(flat, sizes).astype(index_dtype, copy=False)
    x, updates = numbers(rng, shape, dtype), numbers(rng, (count, *shape[coordinates:]), dtype)
    return Job("scatter_nd", (x, indices, updates), {"reduction": reduction})


def split(
    rng: Generator,
    *,
    shape: Shape,
    sections: int,
    axis: int = 0,
    dtype: str = "float32",
    pattern: str = "random",  # values do not matter to a copy
) -> Job:
    """One array to be cut into equal parts."""
    return Job("split", (numbers(rng, shape, dtype),), {"sections": sections, "axis": axis})


def join(
    rng: Generator,
    *,
    shapes: Sequence[Shape],
    axis: int = 0,
    dtype: str = "float32",
    pattern: str = "random",  # values do not matter to a copy
) -> Job:
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
    pattern: str = "random",
) -> Job:
    """`count` slices along the axis."""
    indices = positions(rng, count, shape[axis], pattern, unique).astype(index_dtype, copy=False)
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
    pattern: str = "random",
) -> Job:
    """`count` elements of every line along the axis (its size by default)."""
    taken = (*shape[:axis], shape[axis] if count is None else count, *shape[axis + 1 :])
    indices = indices_along(rng, taken, axis, shape[axis], pattern, unique).astype(
        index_dtype, copy=False
    )
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
    pattern: str = "random",
) -> Job:
    """`count` tuples of `coordinates` for every batch."""
    batch = shape[:batch_dims]
    sizes = shape[batch_dims : batch_dims + coordinates]
    flat = positions(rng, prod(batch) * count, prod(sizes), pattern, unique)
    indices = _tuples(flat, sizes).reshape(*batch, count, coordinates)
    options: dict[str, Any] = {"batch_dims": batch_dims}
    arrays = (numbers(rng, shape, dtype), indices.astype(index_dtype, copy=False))
    return Job("gather_nd", arrays, options)
