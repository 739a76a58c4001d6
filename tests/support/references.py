"""The operators on arrays, in NumPy or plain loops: an oracle independent of the definitions.

They share no line with the kernels either, and take natural shapes and valid arguments.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Place = tuple[int, ...]


def places(shape: Sequence[int]) -> Iterator[Place]:
    """All coordinates of a shape in row-major order."""
    return itertools.product(*map(range, shape))


def _compare(a: Any, b: Any) -> int:
    # NaN above every number and equal to NaN; -0.0 equal to 0.0 as Python has it.
    a_nan, b_nan = a != a, b != b
    if a_nan or b_nan:
        return int(a_nan) - int(b_nan)
    return int(a > b) - int(a < b)


def _put(target: Array, at: Place, source: Array, place: Place) -> None:
    # Views keep the bits; a scalar on the way could quieten a signalling NaN.
    into: tuple[Any, ...] = (*at, ...)
    out_of: tuple[Any, ...] = (*place, ...)
    target[into] = source[out_of]


def top_k(x: Array, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """Values and indices (int64) of the k largest or smallest elements along an axis.

    Examples
    --------
    >>> import numpy as np
    >>> from support import references
    >>> values, indices = references.top_k(np.array([2, 3, 3, 1]), 3)
    >>> values.tolist(), indices.tolist()
    ([3, 3, 2], [1, 2, 0])
    """
    axis %= x.ndim
    shape = x.shape[:axis] + (k,) + x.shape[axis + 1 :]
    values, chosen = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    sign = -1 if largest else 1

    def by_value_then_index(p: tuple[Any, int], q: tuple[Any, int]) -> int:
        return sign * _compare(p[0], q[0]) or p[1] - q[1]

    for around in places(x.shape[:axis] + x.shape[axis + 1 :]):
        front, behind = around[:axis], around[axis:]
        items = [(x[(*front, i, *behind)].item(), i) for i in range(x.shape[axis])]
        items.sort(key=cmp_to_key(by_value_then_index))
        for rank in range(k):
            at = (*front, rank, *behind)
            _put(values, at, x, (*front, items[rank][1], *behind))
            chosen[at] = items[rank][1]
    return values, chosen


def nonzero_coordinates(x: Array) -> Array:
    """Coordinates (int64) of the elements that are not zero, in row-major order."""
    rows = [at for at in places(x.shape) if x[at].item() != 0]
    return np.array(rows, np.int64).reshape(len(rows), x.ndim)


def wrapped(index: int, size: int) -> int:
    """A valid index counted from the front."""
    return index + size if index < 0 else index


def canonical_nan(kind: Any) -> Any:
    """The NaN of sums and products: positive and quiet, without a payload."""
    dtype = np.dtype(kind)
    quiet = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000,
             "float64": 0x7FF8000000000000}[dtype.name]  # fmt: skip
    return np.array([quiet], f"u{dtype.itemsize}").view(dtype)[0]


def combine(element: Any, update: Any, reduction: str | None) -> Any:
    """One contribution to one element, in the type of the two."""
    if reduction in (None, "none"):
        return update
    if reduction in ("add", "mul"):
        with np.errstate(all="ignore"):
            result = element + update if reduction == "add" else element * update
        return result if result == result else canonical_nan(result.dtype)
    if element != element:
        return element
    if update != update:
        return update
    better = update < element if reduction == "min" else update > element
    return update if better else element


def _contribute(
    target: Array, at: Place, updates: Array, place: Place, reduction: str | None
) -> None:
    if reduction in (None, "none"):
        _put(target, at, updates, place)
        return
    before, update = target[at], updates[place]
    after = combine(before, update, reduction)
    # Where one of the two is taken, its bits are.
    if after is before:
        return
    if after is update:
        _put(target, at, updates, place)
    else:
        target[at] = after


def _wide(x: Array, reduction: str | None) -> Array:
    """Float32 of 16-bit floats that are added or multiplied, and other arrays as they are."""
    is_rounded = reduction in ("add", "mul") and x.dtype.name in ("float16", "bfloat16")
    return x.astype(np.float32) if is_rounded else x


def _rounded(x: Array, sums: Array, targets: set[Place]) -> Array:
    """The sums in the type of x; an element without updates has its bits."""
    if sums.dtype == x.dtype:
        return sums
    result = x.copy()
    for at in targets:
        number = sums[at]
        with np.errstate(over="ignore"):
            result[at] = number.astype(x.dtype) if number == number else canonical_nan(x.dtype)
    return result


def scatter_elements(
    x: Array, indices: Array, updates: Array, axis: int = 0, reduction: str | None = None
) -> Array:
    """SCATTER: one update after the other, in row-major order of the indices."""
    axis %= x.ndim
    result, updates = _wide(x.copy(), reduction), _wide(updates, reduction)
    targets = set()
    for at in places(indices.shape):
        index = wrapped(int(indices[at]), x.shape[axis])
        target = (*at[:axis], index, *at[axis + 1 :])
        _contribute(result, target, updates, at, reduction)
        targets.add(target)
    return _rounded(x, result, targets)


def scatter_nd(x: Array, indices: Array, updates: Array, reduction: str | None = None) -> Array:
    """SCATTER_ND: one update after the other, in row-major order of the indices."""
    result, updates = _wide(x.copy(), reduction), _wide(updates, reduction)
    length = indices.shape[-1]
    targets = set()
    for at in places(indices.shape[:-1]):
        target = tuple(wrapped(int(indices[(*at, c)]), x.shape[c]) for c in range(length))
        for inner in places(x.shape[length:]):
            _contribute(result, target + inner, updates, at + inner, reduction)
            targets.add(target + inner)
    return _rounded(x, result, targets)


def split(x: Array, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """SPLIT: consecutive slabs."""
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def join(arrays: Sequence[Array], axis: int = 0) -> Array:
    """JOIN: one array behind the other."""
    return np.concatenate(arrays, axis)


def reverse_subsequences(x: Array, lengths: Array, axis: int) -> Array:
    """REVERSE_SUBSEQUENCES: an index for each element."""
    size = x.shape[axis]
    at = np.arange(size).reshape((-1,) + (1,) * (x.ndim - 1 - axis % x.ndim))
    kept = np.array(np.minimum(np.asarray(lengths).astype(object), size)).astype(int)
    places = np.where(at < kept, kept - 1 - at, at)
    return np.take_along_axis(x, np.broadcast_to(places, x.shape), axis)


def one_hot(indices: Array, depth: int, values: Array, axis: int = -1) -> Array:
    """ONE_HOT: every place of the axis compared with the index."""
    at = indices.astype(object)
    rank = indices.ndim + 1
    places = np.expand_dims(np.where(at < 0, at + depth, at), axis % rank)
    numbers = np.arange(depth).reshape((-1,) + (1,) * (rank - 1 - axis % rank))
    result: Array = np.where(np.array(places == numbers, bool), values[1], values[0])
    return result


def _positions(indices: Array, sizes: Any, clamp: bool) -> Array:
    limits = np.asarray(sizes)
    at = indices.astype(np.int64 if indices.dtype != np.uint64 else object)
    at = np.where(at < 0, at + limits, at)
    return np.array(np.clip(at, 0, limits - 1) if clamp else at).astype(np.int64)


def gather(x: Array, indices: Array, axis: int = 0, clamp: bool = False) -> Array:
    """GATHER: the slices that the indices name."""
    return np.take(x, _positions(indices, x.shape[axis], clamp), axis)


def gather_elements(x: Array, indices: Array, axis: int = 0, clamp: bool = False) -> Array:
    """GATHER_ELEMENTS: one element for each index."""
    places = np.indices(indices.shape, sparse=True)
    at = [*places[: axis % x.ndim], _positions(indices, x.shape[axis], clamp)]
    found: Array = x[(*at, *places[axis % x.ndim + 1 :])]
    return found


def gather_nd(x: Array, indices: Array, batch_dims: int = 0, clamp: bool = False) -> Array:
    """GATHER_ND (GATHER_ND1 with batches): the elements or blocks that the tuples name."""
    length = indices.shape[-1]
    at = _positions(indices, x.shape[batch_dims : batch_dims + length], clamp)
    batches = np.indices(indices.shape[:-1], sparse=True)[:batch_dims]
    found: Array = x[(*batches, *np.moveaxis(at, -1, 0))] if length else x
    if not length:
        shape = indices.shape[:-1] + x.shape[batch_dims:]
        behind = x.reshape(x.shape[:batch_dims] + (1,) * (indices.ndim - 1 - batch_dims)
                           + x.shape[batch_dims:])  # fmt: skip
        found = np.broadcast_to(behind, shape)
    return found
