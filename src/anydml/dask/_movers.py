"""`split`, `join`, `slice_window`, `pad` and `cast` on dask arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
from dask.array import arange, concatenate, full_like, take, where, zeros_like

from anydml.arrays import counterpart, keep, promoted
from anydml.dask import _graphs
from anydml.dask._gathers import gather_elements
from anydml.dask._graphs import Lazy
from anydml.functions import _arguments, _attributes, _engine, movers, rearranging
from anydml.ops.cast import Cast
from anydml.ops.join import Join
from anydml.ops.padding1 import Padding1
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.slice1 import Slice1, first_places
from anydml.ops.split import Split
from anydml.ops.tile import Tile

SMALL: Final = 2**20
"""Bytes up to which a chunk of constant padding may be larger than the chunks of an array."""


def split(
    x: Any,
    sections_or_sizes: Any = None,
    *,
    axis: Any = 0,
    points: Any = None,
    near_equal: Any = False,
    out: None = None,
) -> tuple[Lazy, ...]:
    """`anydml.split` of a dask array: lazy slabs, in the chunks that `x` has there.

    A task holds one block and its part.

    Parameters
    ----------
    x, sections_or_sizes, axis, points, near_equal
        As for `anydml.split`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    tuple of dask.array.Array
        The slabs.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import split
    >>> [part.compute().tolist() for part in split(da.arange(5, chunks=2), [3, 2])]
    [[0, 1, 2], [3, 4]]
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    given = _attributes.split_attributes(data, sections_or_sizes, axis, points, near_equal)
    inferred = _engine.infer(Split, (data,), given)
    before = (slice(None),) * given["axis"]
    limits = _graphs.bounds(given["sizes"])
    parts = tuple(data[(*before, slice(*limit))] for limit in limits)
    assert [part.shape for part in parts] == [spec.shape for spec in inferred.outputs]
    return parts


def join(arrays: Sequence[Any], *, axis: Any = 0, promote: Any = False, out: None = None) -> Lazy:
    """`anydml.join` of arrays of which one is a dask array: lazy, in the chunks that they have.

    A task holds one block. With ``axis=None`` blocks that do not follow one another in row-major
    order are exchanged for others of the same size first.

    Parameters
    ----------
    arrays, axis, promote
        As for `anydml.join`; the first array's library promotes.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        The arrays, one behind the other.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import join
    >>> join([da.arange(3, chunks=2), da.arange(2)]).compute()
    array([0, 1, 2, 0, 1])
    """
    _graphs.no_out(out)
    given = _attributes.members_of(arrays)
    names = [f"arrays[{i}]" for i in range(len(given))]
    first = _graphs.lazy(given[0], names[0])
    others = list(zip(given[1:], names[1:], strict=True))
    if _arguments.flag(promote, "promote"):
        parts = [first, *(_graphs.lazy(value, name) for value, name in others)]
        kind = promoted(parts[0]._meta, [part.dtype for part in parts], "arrays")
        keep(parts[0]._meta, kind, "arrays")
        parts = [part.astype(kind) for part in parts]
    else:
        parts = [first, *(_graphs.lazy_as(*other, first, names[0]) for other in others)]
    if axis is None:
        parts, number = [_raveled(part) for part in parts], 0
    else:
        number = _arguments.axis_of(axis, parts[0], "arrays[0]")
    inferred = _engine.infer(Join, parts, {"axis": number})
    result = _concatenated(parts, number)
    assert result.shape == inferred.outputs[0].shape
    return result


def _concatenated(parts: Sequence[Lazy], axis: int) -> Lazy:
    # Without those that have no elements, which Dask puts together in its own way.
    full = [part for part in parts if part.shape[axis]]
    if all(part.size for part in full):
        return concatenate(full, axis=axis) if full else parts[0]
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    return zeros_like(parts[0], shape=tuple(shape), chunks=-1)


def _raveled(array: Lazy) -> Lazy:
    """The elements in row-major order, a chunk for each block."""
    array = _graphs.in_order(array, array.ndim)
    name = _graphs.named("ravel", array.name)
    layer: _graphs.Layer = {}
    sizes = []
    for i, at in enumerate(_graphs.blocks(array.chunks)):
        _graphs.put(layer, (name, i), np.ravel, _graphs.block(array, at))
        shape = (array.chunks[axis][n] for axis, n in enumerate(at))
        sizes.append(int(np.prod(list(shape), dtype=np.int64)))
    return _graphs.made(name, layer, [array], (tuple(sizes),), array, array.dtype)


def slice_window(x: Any, starts: Any, sizes: Any, strides: Any = None, *, out: None = None) -> Lazy:
    """`anydml.slice_window` of a dask array: lazy; a task holds one block and its part.

    Parameters
    ----------
    x, starts, sizes, strides
        As for `anydml.slice_window`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        The window.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import slice_window
    >>> slice_window(da.arange(6, chunks=2), [1], [5], [-2]).compute()
    array([5, 3, 1])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    given = _attributes.window(starts, sizes, strides, data.ndim)
    (spec,) = _engine.infer(Slice1, (data,), given).outputs
    if 0 in spec.shape:
        return zeros_like(data, shape=spec.shape, chunks=-1)
    steps = zip(first_places(given), given["strides"], spec.shape, strict=True)
    result = data[tuple(_steps(*step) for step in steps)]
    assert result.shape == spec.shape
    return result


def _steps(first: int, stride: int, count: int) -> slice:
    end = first + stride * count
    return slice(first, end if end >= 0 else None, stride)


def pad(
    x: Any, pad_width: Any, mode: Any = "constant", constant: Any = 0, *, out: None = None
) -> Lazy:
    """`anydml.pad` of a dask array: lazy; padding comes in chunks up to those of `x`, or 1 MiB.

    A task holds one block, or what one block of padding repeats.

    Parameters
    ----------
    x, pad_width, mode, constant
        As for `anydml.pad`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        `x` with more elements at the ends of each axis.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import pad
    >>> pad(da.arange(4, chunks=2), (2, 3), "reflection").compute()
    array([2, 1, 0, 1, 2, 3, 2, 1, 0])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    value = movers.constant_of(constant, data, mode)
    given = movers.padding(data, pad_width, mode, value)
    (spec,) = _engine.infer(Padding1, (data,), given).outputs
    if not data.size and given["mode"] != "constant":  # nothing is repeated
        return zeros_like(data, shape=spec.shape, chunks=-1)
    result = data
    for axis, width in enumerate(zip(given["starts"], given["ends"], strict=True)):
        if width == (0, 0):
            continue
        if given["mode"] == "constant":
            ends = [_filled(result, axis, size, value) for size in width]
        else:
            size = data.shape[axis]
            places = _engine.scratch("pad", partial(_places, size, width, given["mode"]))
            ends = [take(result, part, axis) for part in np.split(places, [width[0]])]
        result = _concatenated([ends[0], result, ends[1]], axis)
    assert result.shape == spec.shape
    return result


def _places(size: int, width: tuple[int, int], mode: Any) -> Any:
    """Where the elements in front of and behind an axis are read: what padding makes of places."""
    padded = movers.pad(np.arange(size), width, mode)
    return np.concatenate([padded[: width[0]], padded[width[0] + size :]])


def _filled(array: Lazy, axis: int, size: int, value: Any) -> Lazy:
    shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
    others = [max(sizes) for i, sizes in enumerate(array.chunks) if i != axis]
    least = SMALL // max(1, math.prod(others) * array.dtype.itemsize)
    most = max(1, least, *array.chunks[axis])
    chunks = (*array.chunks[:axis], most, *array.chunks[axis + 1 :])
    return full_like(array, value[()], shape=shape, chunks=chunks)


def tile(x: Any, repeats: Any, *, out: None = None) -> Lazy:
    """`anydml.tile` of a dask array: lazy, in the chunks of `x` again and again.

    A task holds one block.

    Parameters
    ----------
    x, repeats
        As for `anydml.tile`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        `x` again and again along its axes.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import tile
    >>> tile(da.arange(3, chunks=2), 2).compute()
    array([0, 1, 2, 0, 1, 2])
    """
    _graphs.no_out(out)
    data, given = _attributes.matched(_graphs.lazy(x, "x"), repeats)
    (spec,) = _engine.infer(Tile, (data,), given).outputs
    if 0 in spec.shape:
        return zeros_like(data, shape=spec.shape, chunks=-1)
    for axis, count in enumerate(given["repeats"]):
        data = _concatenated([data] * count, axis)
    return data


def reverse_subsequences(x: Any, lengths: Any, *, axis: Any, out: None = None) -> Lazy:
    """`anydml.reverse_subsequences` where an operand is a dask array: lazy, in the chunks of `x`.

    It is `gather_elements` of positions that are computed beside it, and tasks hold what those of
    `gather_elements` hold.

    Parameters
    ----------
    x, lengths, axis
        As for `anydml.reverse_subsequences`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        `x` with the first elements of each sequence in the opposite order.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once; a negative length when it is computed.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import reverse_subsequences
    >>> reverse_subsequences(da.arange(5, chunks=2), [4], axis=0).compute()
    array([3, 2, 1, 0, 4])
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    counts = _graphs.lazy(lengths, "lengths")
    number = _arguments.axis_of(axis, data)
    rearranging.check_lengths(counts)
    one = (*data.shape[:number], 1, *data.shape[number + 1 :])
    counts = _graphs.spread(counts, one, "lengths")
    _engine.infer(ReverseSubsequences, (data, counts), {"axis": number})
    if not data.size:
        return zeros_like(data)
    size = data.shape[number]
    counts = counts.map_blocks(_lengths, size, meta=_graphs.like(data, data.ndim, np.int64))
    at = arange(size, chunks=(data.chunks[number],), like=data._meta)
    at = at.reshape((-1, *(1,) * (data.ndim - 1 - number)))
    return gather_elements(data, where(at < counts, counts - 1 - at, at), axis=number)


def _lengths(chunk: Any, most: int) -> Any:
    return np.minimum(rearranging.lengths_of(chunk, chunk.shape), most).astype(np.int64)


def cast(x: Any, dtype: Any, *, out: None = None) -> Lazy:
    """`anydml.cast` of a dask array: lazy; a task holds one block and its copy.

    Parameters
    ----------
    x, dtype
        As for `anydml.cast`.
    out : None
        Dask arrays are never written.

    Returns
    -------
    dask.array.Array
        `x` as another type.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit, at once.

    Examples
    --------
    >>> import dask.array as da
    >>> from anydml.dask import cast
    >>> cast(da.from_array([1.9, 300.0], chunks=1), "uint8").compute()
    array([  1, 255], dtype=uint8)
    """
    _graphs.no_out(out)
    data = _graphs.lazy(x, "x")
    movers.check_numbers(data)
    to = _attributes.type_named(dtype)
    (spec,) = _engine.infer(Cast, (data,), {"to": to}).outputs
    kind = counterpart(_engine.dtype_of(spec), "dtype")
    meta = _graphs.like(data, data.ndim, kind)
    return data.map_blocks(movers.cast, to.name, dtype=kind, meta=meta)
