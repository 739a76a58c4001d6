"""The native kernels on NumPy, with the same bits.

A kernel takes its inputs, its outputs and its attributes by name, as the native ones do, and writes
the outputs. A kernel with indices returns the position of the first one that is out of range, and
has then written nothing; every other returns -1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from anydml.portable._numbers import (
    Array,
    convert,
    is_bfloat16,
    is_nan,
    order_keys,
    value_of,
    widen,
    with_canonical_nan,
)
from anydml.portable._places import between, padded_from

Arrays = Sequence[Array]
Attributes = Mapping[str, Any]
Kernel = Callable[[Arrays, Arrays, Attributes], int]

INDEX_MODES: Final = ("raise", "clamp", "wrap", "clip")
KERNELS: Final[dict[str, Kernel]] = {}


def _kernel(function: Kernel) -> Kernel:
    KERNELS[function.__name__] = function
    return function


# ---- elements that move


@_kernel
def cast(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Convert elements to the type of the output."""
    outputs[0][...] = convert(inputs[0], outputs[0].dtype)
    return -1


@_kernel
def identity(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy elements, or multiply and add in float32 (floats of 16 and 32 bits) or float64."""
    x, y = inputs[0], outputs[0]
    if not attributes.get("scaled"):
        y[...] = x
        return -1
    wide = np.dtype(np.float32 if x.dtype in (np.float32, np.float16) else np.float64)
    with np.errstate(all="ignore"):
        result = convert(x, wide) * wide.type(attributes["scale"])
        result += wide.type(attributes["bias"])
    y[...] = convert(with_canonical_nan(result), y.dtype)
    return -1


@_kernel
def fill_sequence(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Write start, start + delta, ..; each sum is rounded before the next."""
    (y,) = outputs
    if y.size:
        terms = np.full(y.size, np.array(attributes["delta"]).astype(y.dtype), y.dtype)
        terms[0] = np.array(attributes["start"]).astype(y.dtype)
        with np.errstate(all="ignore"):
            sums = np.add.accumulate(terms)
        sums[1:] = with_canonical_nan(sums[1:])  # the first is not a sum
        y[...] = sums.reshape(y.shape)
    return -1


@_kernel
def fill_constant(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Write one value everywhere."""
    outputs[0][...] = value_of(attributes["value"], outputs[0].dtype)
    return -1


@_kernel
def tile(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Repeat the input along its axes."""
    outputs[0][...] = np.tile(inputs[0], attributes["repeats"])
    return -1


@_kernel
def pad(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Add elements before and after each axis."""
    (x,), (y,), mode = inputs, outputs, attributes.get("mode") or "constant"
    sides = [*zip(attributes["starts"], x.shape, y.shape, strict=True)]
    if mode == "constant":
        y[...] = value_of(attributes["value"], y.dtype)
        y[(*(slice(start, start + size) for start, size, _ in sides),)] = x
    elif y.size:
        for axis, (start, size, n) in enumerate(sides):
            if n != size:
                x = x.take(padded_from(mode, np.arange(n) - start, size), axis)
        y[...] = x
    return -1


@_kernel
def reverse_subsequences(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Reverse the first elements of each sequence along an axis."""
    (x, lengths), axis = inputs, attributes["axis"]
    size = x.shape[axis]
    at = np.arange(size).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    ends = np.minimum(lengths, size).astype(np.int64)
    outputs[0][...] = np.take_along_axis(x, np.where(at < ends, ends - 1 - at, at), axis)
    return -1


@_kernel
def upsample(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Enlarge the last two axes: repeat elements, or take means of neighbours."""
    (x,), (y,) = inputs, outputs
    scales = attributes["height"], attributes["width"]
    if attributes.get("mode", "nearest_neighbor") != "linear":
        y[...] = x.repeat(scales[0], -2).repeat(scales[1], -1)
        return -1
    if not y.size:
        return -1
    images = x.astype(np.float32)
    with np.errstate(all="ignore"):
        images = _blend(images, scales[1], -1)
        images = _blend(images, scales[0], -2)
    y[...] = convert(with_canonical_nan(images), y.dtype)
    return -1


def _blend(x: Array, scale: int, axis: int) -> Array:
    """Enlarge an axis by weighted means of the two nearest elements."""
    size = x.shape[axis]
    first, weight = between(size, scale)
    one = x.take(first, axis)
    two = x.take(np.minimum(first + 1, size - 1), axis)
    weight = weight.reshape(-1, *[1] * (-1 - axis))
    mean = one * (np.float32(1) - weight) + two * weight
    return np.where(weight == 0, one, np.asarray(mean))


@_kernel
def slice_window(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy a window of the input, with steps; a negative step begins at the end of the window."""
    (x,), (y,) = inputs, outputs
    sides = zip(
        *(attributes[name] for name in ("starts", "sizes", "strides")), y.shape, strict=True
    )
    if y.size:
        y[...] = x[tuple(_window(*side) for side in sides)]
    return -1


def _window(start: int, size: int, step: int, count: int) -> slice:
    """Return the slice of every `step`-th element of a window."""
    first = start if step > 0 else start + size - 1
    end = first + step * (count - 1) + (1 if step > 0 else -1)
    return slice(first, None if end < 0 else end, step)


@_kernel
def split(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy the parts of an axis to outputs."""
    start, axis = 0, attributes["axis"]
    for y in outputs:
        y[...] = inputs[0][(slice(None),) * axis + (slice(start, start + y.shape[axis]),)]
        start += y.shape[axis]
    return -1


@_kernel
def join(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy inputs next to each other along an axis."""
    start, axis = 0, attributes["axis"]
    for x in inputs:
        outputs[0][(slice(None),) * axis + (slice(start, start + x.shape[axis]),)] = x
        start += x.shape[axis]
    return -1


@_kernel
def one_hot(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Write `on` at the position that an index names along an axis, and `off` elsewhere."""
    (indices, values), (y,), axis = inputs, outputs, attributes["axis"]
    if attributes.get("inserts"):
        indices = np.expand_dims(indices, axis)
    off, on = values.reshape(-1)[:2]
    at = np.arange(y.shape[axis]).reshape([-1 if i == axis else 1 for i in range(y.ndim)])
    hit = indices == at.astype(indices.dtype)
    if indices.dtype.kind == "i":
        hit |= indices.astype(np.int64) == at - y.shape[axis]
    else:  # a large axis may wrap in a small type
        hit &= at <= np.iinfo(indices.dtype).max
    y[...] = np.where(hit, on, off)
    return -1


# ---- selection


_BLOCK: Final = 1 << 18  # elements that are selected from at a time


@_kernel
def top_k(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Select the k first elements of an order along an axis; equal ones in order of position."""
    return top_k_rows((*inputs, np.empty(0, np.int64)), outputs, {"sorted": True, **attributes})


@_kernel
def top_k_rows(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Select in another order too, or from the first elements of each row, as lengths say."""
    if not outputs[0].size:  # its axis may be longer than NumPy allows scratch to be
        return -1
    x = np.moveaxis(inputs[0], attributes["axis"], -1)
    values, indices = (np.moveaxis(y, attributes["axis"], -1) for y in outputs)
    size, k = x.shape[-1], attributes["k"]
    lengths = np.full(x.shape[:-1], size)
    if inputs[1].shape != (0,):
        lengths = np.clip(inputs[1], 0, size).astype(np.int64)
    found, rows = np.arange(k) < lengths[..., None], x.reshape(-1, size)
    step = max(1, _BLOCK // size)
    parts = [slice(at, at + step) for at in range(0, len(rows), step)]
    firsts = [_first_of(rows[at], lengths.reshape(-1)[at], k, attributes) for at in parts]
    order = np.concatenate(firsts).reshape(found.shape)
    if not attributes["sorted"]:
        order = np.sort(np.where(found, order, size), -1)
    order = np.where(found, order, 0)
    fill = np.array(attributes.get("fill", (0, 0)), np.int64).view(np.uint8)[: x.dtype.itemsize]
    values[...] = np.where(found, np.take_along_axis(x, order, -1), fill.view(x.dtype))
    indices[...] = np.where(found, order, -1)
    return -1


def _first_of(x: Array, lengths: Array, k: int, attributes: Attributes) -> Array:
    """Return the positions of the first elements of rows; 0 where there are fewer than k."""
    keys, last_first = order_keys(x), attributes.get("last_first")
    if attributes.get("largest"):
        if attributes.get("nan_last"):
            keys = np.where(is_nan(x), keys.dtype.type(0), keys)
        keys = ~keys
    behind = np.arange(x.shape[1]) >= lengths[:, None] if lengths.min() < x.shape[1] else None
    if behind is not None:
        keys = np.where(behind, ~keys.dtype.type(0), keys)
    limits = np.partition(keys, k - 1)[:, k - 1 :][:, :1]
    chosen, counts = keys < limits, np.minimum(lengths, k)
    ties = keys == limits  # of which there are as many as there is room for
    if behind is not None:
        ties &= ~behind
    at = np.flatnonzero(ties)
    rows = at // x.shape[1]
    many = np.bincount(rows, minlength=len(x))
    rank = np.arange(len(rows)) - (np.cumsum(many) - many)[rows]
    if last_first:
        rank = many[rows] - 1 - rank
    np.put(chosen, at[rank < (counts - np.count_nonzero(chosen, 1))[rows]], True)
    at = np.flatnonzero(chosen)[:: -1 if last_first else 1]
    at = at[np.lexsort((keys.reshape(-1)[at], at // x.shape[1]))]
    order = np.zeros((len(x), k), np.int64)
    order[np.arange(k) < counts[:, None]] = at % x.shape[1]
    return order


def find_nonzero(x: Array, columns: int) -> Array:
    """Return the last coordinates of the elements that are not zero, in order, as rows."""
    with np.errstate(invalid="ignore"):
        x = widen(x)
        return np.argwhere(x != 0)[:, x.ndim - columns :]


@_kernel
def nonzero_coordinates(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Write how many elements are not zero, and the coordinates of these."""
    rows = find_nonzero(inputs[0], attributes["columns"])
    outputs[0][...] = len(rows)
    outputs[1][: len(rows)] = rows
    return -1


# ---- indices


def resolve(indices: Array, sizes: Any, mode: Any) -> tuple[Array, int]:
    """Convert indices to positions from the start, in int64.

    Parameters
    ----------
    indices : array of int
        Of any library with NumPy's functions. In a signed type, negative ones count from the end
        unless `mode` is "clip".
    sizes : int or sequence of int
        The size of the axis of each index; several are those of the coordinates on the last axis.
    mode : str or int
        One of `INDEX_MODES`, or its number.

    Returns
    -------
    positions : array of int64
    bad : int
        The first position out of range in row-major order, where the mode raises; -1 if none is.
    """
    mode = mode if isinstance(mode, str) else INDEX_MODES[int(mode or 0)]
    sizes = np.broadcast_to(np.array(sizes, np.int64, like=indices), indices.shape)
    if indices.dtype == np.uint64:
        limit = sizes.astype(np.uint64)
        indices = indices % np.maximum(limit, 1) if mode == "wrap" else np.minimum(indices, limit)
    at = indices.astype(np.int64)
    if mode == "wrap":
        return at % np.maximum(sizes, 1), -1
    if mode == "clip":
        return at.clip(0, sizes - 1), -1
    at = np.where(at < 0, at + sizes, at)
    if mode == "clamp":
        return at.clip(0, sizes - 1), -1
    bad = (at < 0) | (at >= sizes)
    return at, int(np.argmax(bad)) if bad.any() else -1


@_kernel
def gather(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy the slices at indices into an axis."""
    (x, indices), axis = inputs, attributes["axis"]
    at, bad = resolve(indices, x.shape[axis], attributes.get("clamp"))
    if bad < 0 and outputs[0].size:
        outputs[0][...] = x[(slice(None),) * axis + (at,)]
    return bad


@_kernel
def gather_elements(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy the elements at indices along an axis."""
    (x, indices), axis = inputs, attributes["axis"]
    at, bad = resolve(indices, x.shape[axis], attributes.get("clamp"))
    if bad < 0 and outputs[0].size:
        outputs[0][...] = x[_grid(at, axis)]
    return bad


def _grid(at: Array, axis: int) -> tuple[Array, ...]:
    """Return the coordinates of elements: their own, but on one axis the positions."""
    grid = [*np.ogrid[tuple(slice(n) for n in at.shape)]]
    grid[axis] = at
    return (*grid,)


@_kernel
def gather_nd(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy the elements or blocks at tuples of indices, in each batch."""
    (x, indices), batch = inputs, attributes.get("batch_dims", 0)
    count = indices.shape[-1]
    at, bad = resolve(indices, x.shape[batch : batch + count], attributes.get("clamp"))
    if bad < 0 and outputs[0].size:
        grid = np.ogrid[tuple(slice(n) for n in indices.shape[:batch])]
        batches = [g.reshape(g.shape + (1,) * (at.ndim - 1 - batch)) for g in grid]
        outputs[0][...] = x[(*batches, *np.moveaxis(at, -1, 0))]
    return bad


# ---- scatter


@_kernel
def scatter_elements(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy the input, then combine elements with updates at indices along an axis."""
    x, indices, updates = (np.atleast_1d(operand) for operand in inputs)
    axis = attributes["axis"]
    at, bad = resolve(indices, x.shape[axis], None)
    if bad < 0:
        target = np.broadcast_to(_flat(_grid(at, axis), x.shape), updates.shape)
        _scatter(inputs[0], target.reshape(-1), updates.reshape(-1), outputs[0], attributes)
    return bad


@_kernel
def scatter_nd(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> int:
    """Copy the input, then combine elements or blocks with updates at tuples of indices."""
    x, indices, updates = inputs
    count = indices.shape[-1]
    at, bad = resolve(indices, x.shape[:count], None)
    if bad < 0:
        block = int(np.prod(x.shape[count:], dtype=np.int64))
        slices = _flat(np.moveaxis(at, -1, 0), x.shape[:count]).reshape(-1, 1)
        if count == 0:
            slices = np.zeros((int(np.prod(indices.shape[:-1])), 1), np.int64)
        target = (slices * block + np.arange(block)).reshape(-1)
        _scatter(x, target, updates.reshape(-1), outputs[0], attributes)
    return bad


def _flat(coordinates: Sequence[Array] | Array, shape: Sequence[int]) -> Array:
    """Return positions in row-major order."""
    flat = np.zeros((), np.int64)
    for at, size in zip(coordinates, shape, strict=True):
        flat = flat * size + at
    return flat


def _scatter(x: Array, target: Array, updates: Array, y: Array, attributes: Attributes) -> None:
    """Combine the elements at positions `target` of the flattened input with updates."""
    reduction, include_self = attributes.get("reduction") or "none", attributes.get("include_self")
    result = np.array(x, order="C").reshape(-1)
    if reduction == "none":
        result[target] = updates
    elif reduction in ("min", "max"):
        _extreme(result, target, updates, reduction == "max")
    else:
        mean = reduction == "mean"
        if mean and not include_self:
            result[target] = np.zeros((), result.dtype)
        with np.errstate(all="ignore"):
            _accumulate(result, target, updates, "add" if mean else reduction)
        if mean:
            _divide(result, target, bool(include_self))
    y[...] = result.reshape(x.shape)


def _extreme(result: Array, target: Array, updates: Array, largest: bool) -> None:
    """Keep the first of the smallest or the largest elements, or the first NaN."""

    def keys_of(x: Array) -> Array:  # the lowest is kept
        keys = order_keys(x)
        return np.where(is_nan(x), keys.dtype.type(0), ~keys if largest else keys)

    before, keys = keys_of(result), keys_of(updates)
    best = before.copy()
    np.minimum.at(best, target, keys)
    wins = (keys == best[target]) & (keys != before[target])
    last_first = np.flatnonzero(wins)[::-1]  # of several the last assignment stays
    result[target[last_first]] = updates[last_first]


def _accumulate(result: Array, target: Array, updates: Array, reduction: str) -> None:
    """Add or multiply updates in order; a NaN is canonical.

    Floats of 16 bits are widened before the first update, and rounded after the last.
    """
    ufunc: Any = np.multiply if reduction == "mul" else np.add
    if result.dtype == np.float16 or is_bfloat16(result.dtype):
        touched, where = np.unique(target, return_inverse=True)
        sums = convert(result[touched], np.dtype(np.float32))
        ufunc.at(sums, where, convert(updates, sums.dtype))
        result[touched] = convert(sums, result.dtype)
    elif ufunc is np.multiply and result.dtype.kind == "c":
        order = np.argsort(target, kind="stable")
        groups = target[order]
        begins = (
            np.flatnonzero(np.append(True, groups[1:] != groups[:-1])) if len(groups) else groups
        )
        counts = np.diff(np.append(begins, len(groups)))
        for turn in range(counts.max(initial=0)):  # the updates of a position one after the other
            chosen = order[begins[counts > turn] + turn]
            at = target[chosen]
            result[at] = _product(result[at], updates[chosen])
    else:
        ufunc.at(result, target, updates)
    parts = [result.real, result.imag] if result.dtype.kind == "c" else [result]
    for part in parts:
        part[target] = with_canonical_nan(part[target])


def _product(x: Array, y: Array) -> Array:
    """Multiply complex numbers part by part."""
    result = np.empty_like(x)
    result.real = x.real * y.real - x.imag * y.imag
    result.imag = x.real * y.imag + x.imag * y.real
    return result


def _divide(result: Array, target: Array, with_element: bool) -> None:
    """Divide sums by the number of their terms; integers are rounded down."""
    touched, counts = np.unique(target, return_counts=True)
    with np.errstate(all="ignore"):
        result[touched] = divided(result[touched], counts + with_element)


def divided(sums: Array, counts: Array) -> Array:
    """Divide sums by numbers of terms; integers are rounded down, complex numbers by parts."""
    if sums.dtype.kind == "c":
        result = np.empty_like(sums)
        result.real, result.imag = divided(sums.real, counts), divided(sums.imag, counts)
        return result
    divide: Any = np.true_divide if sums.dtype.kind == "f" else np.floor_divide
    return divide(sums, counts.astype(sums.dtype))  # type: ignore[no-any-return]  # of any library
