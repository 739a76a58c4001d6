"""The operators on arrays as plain loops, written from the pages and nothing else.

They share no line with the rooms' references or the kernels, take natural shapes and valid
arguments, and are slow.
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
        front, back = around[:axis], around[axis:]
        items = [(x[(*front, i, *back)].item(), i) for i in range(x.shape[axis])]
        items.sort(key=cmp_to_key(by_value_then_index))
        for rank in range(k):
            at = (*front, rank, *back)
            _put(values, at, x, (*front, items[rank][1], *back))
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
    """One contribution to one element, in the element's own type."""
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


def _contribute(target: Array, at: Place, updates: Array, place: Place, how: str | None) -> None:
    if how in (None, "none"):
        _put(target, at, updates, place)
        return
    before, given = target[at], updates[place]
    after = combine(before, given, how)
    # Where one of the two is taken, its bits are.
    if after is before:
        return
    if after is given:
        _put(target, at, updates, place)
    else:
        target[at] = after


def scatter_elements(
    x: Array, indices: Array, updates: Array, axis: int = 0, reduction: str | None = None
) -> Array:
    """SCATTER: one update after the other, in row-major order of the indices."""
    axis %= x.ndim
    result = x.copy()
    for at in places(indices.shape):
        index = wrapped(int(indices[at]), x.shape[axis])
        _contribute(result, (*at[:axis], index, *at[axis + 1 :]), updates, at, reduction)
    return result


def scatter_nd(x: Array, indices: Array, updates: Array, reduction: str | None = None) -> Array:
    """SCATTER_ND: one update after the other, in row-major order of the indices."""
    result = x.copy()
    length = indices.shape[-1]
    for at in places(indices.shape[:-1]):
        target = tuple(wrapped(int(indices[(*at, c)]), x.shape[c]) for c in range(length))
        for inner in places(x.shape[length:]):
            _contribute(result, target + inner, updates, at + inner, reduction)
    return result


def split(x: Array, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """SPLIT: consecutive slabs."""
    axis %= x.ndim
    parts = []
    start = 0
    for size in sizes:
        part = np.zeros(x.shape[:axis] + (size,) + x.shape[axis + 1 :], x.dtype)
        for at in places(part.shape):
            _put(part, at, x, (*at[:axis], start + at[axis], *at[axis + 1 :]))
        parts.append(part)
        start += size
    return parts


def join(arrays: Sequence[Array], axis: int = 0) -> Array:
    """JOIN: one array behind the other."""
    first = arrays[0]
    axis %= first.ndim
    total = sum(a.shape[axis] for a in arrays)
    result = np.zeros(first.shape[:axis] + (total,) + first.shape[axis + 1 :], first.dtype)
    start = 0
    for array in arrays:
        for at in places(array.shape):
            _put(result, (*at[:axis], start + at[axis], *at[axis + 1 :]), array, at)
        start += array.shape[axis]
    return result


def reverse_subsequences(x: Array, lengths: Array, axis: int) -> Array:
    """REVERSE_SUBSEQUENCES: the first elements of each sequence from the last one of them back."""
    axis %= x.ndim
    result = x.copy()
    for at in places(lengths.shape):
        length = min(int(lengths[at]), x.shape[axis])
        for i in range(length):
            place = (*at[:axis], length - 1 - i, *at[axis + 1 :])
            _put(result, (*at[:axis], i, *at[axis + 1 :]), x, place)
    return result


def tile(x: Array, repeats: Sequence[int]) -> Array:
    """TILE: the input beside itself."""
    shape = tuple(size * repeat for size, repeat in zip(x.shape, repeats, strict=True))
    result = np.zeros(shape, x.dtype)
    for at in places(shape):
        _put(result, at, x, tuple(i % size for i, size in zip(at, x.shape, strict=True)))
    return result


def _read(index: int, size: int, clamp: bool) -> int:
    position = wrapped(index, size)
    return min(max(position, 0), size - 1) if clamp else position


def gather(x: Array, indices: Array, axis: int = 0, clamp: bool = False) -> Array:
    """GATHER: the slices that the indices name."""
    axis %= x.ndim
    result = np.zeros(x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype)
    for at in places(result.shape):
        middle = at[axis : axis + indices.ndim]
        index = _read(int(indices[middle]), x.shape[axis], clamp)
        _put(result, at, x, (*at[:axis], index, *at[axis + indices.ndim :]))
    return result


def gather_elements(x: Array, indices: Array, axis: int = 0, clamp: bool = False) -> Array:
    """GATHER_ELEMENTS: one element for each index."""
    axis %= x.ndim
    result = np.zeros(indices.shape, x.dtype)
    for at in places(indices.shape):
        index = _read(int(indices[at]), x.shape[axis], clamp)
        _put(result, at, x, (*at[:axis], index, *at[axis + 1 :]))
    return result


def gather_nd(x: Array, indices: Array, batch_dims: int = 0, clamp: bool = False) -> Array:
    """GATHER_ND (GATHER_ND1 with batches): the elements or blocks that the tuples name."""
    length = indices.shape[-1]
    block = x.shape[batch_dims + length :]
    result = np.zeros(indices.shape[:-1] + block, x.dtype)
    for at in places(indices.shape[:-1]):
        tuple_ = [
            _read(int(indices[(*at, c)]), x.shape[batch_dims + c], clamp) for c in range(length)
        ]
        for inner in places(block):
            _put(result, at + inner, x, (*at[:batch_dims], *tuple_, *inner))
    return result
