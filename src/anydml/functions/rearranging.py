"""`tile` and `reverse_subsequences` on arrays."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

import numpy as np
from numpy import ndarray

from anydml.core.errors import ArgumentTypeError
from anydml.functions import _arguments, _engine
from anydml.functions._attributes import check_lengths, normalize_repeats, refuse_negative
from anydml.functions._dispatch import dispatch
from anydml.functions._keywords import unknown_keyword
from anydml.functions._specs import REVERSE_SUBSEQUENCES, TILE
from anydml.functions._types import ArrayOf, Integers, NDArray, Operand, Other, Out, Plain, Scalar
from anydml.libraries import Array, DeviceArray, as_operand, dtype_name
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.tile import Tile

_call_tile = _engine.function_call(Tile.KERNEL)


@overload
def tile(
    x: ArrayOf[Scalar], repeats: Integers | SupportsIndex, *, out: None = ...
) -> NDArray[Scalar]: ...


@overload
def tile(x: Other, repeats: Integers | SupportsIndex, *, out: None = ...) -> Other: ...


@overload
def tile(x: Plain, repeats: Integers | SupportsIndex, *, out: None = ...) -> NDArray[Any]: ...


@overload
def tile(x: Operand, repeats: Integers | SupportsIndex, *, out: Out) -> Out: ...


def tile(x: Any, repeats: Any, *, out: Any = None, **unknown: Any) -> Any:
    """Repeat `x` along its axes.

    Repeats are aligned with the last axes, as in `numpy.tile` and `torch.tile`: missing repeats are
    1, and if there are more repeats than axes, `x` gets leading axes of size 1.

    Parameters
    ----------
    x : array_like
        Any rank; elements of any type.
    repeats : int or sequence of int
        The number of copies along each axis; one number applies to the last axis.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, each size is that of x times its repeats
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    Tile : the DirectML operator.

    Notes
    -----
    From ``DML_TILE_OPERATOR_DESC``; any rank, any type, repeats of 0 and repeats for fewer or more
    axes than `x` has are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.tile([[1, 2, 3], [4, 5, 6]], (1, 2))
    array([[1, 2, 3, 1, 2, 3],
           [4, 5, 6, 4, 5, 6]])
    """
    if unknown:
        raise unknown_keyword(tile, unknown)
    if type(x) is ndarray and out is None:
        result = _call_tile(None, x, repeats)
        if result is not None:
            return result
    return dispatch(TILE, (x, repeats), out)


@TILE.for_memory
def _tile(x: Any, repeats: Any, out: Any) -> Any:
    data, wrap = as_operand(x, "x")
    data, attributes = normalize_repeats(data, repeats)
    inferred = _engine.infer(Tile, (data,), attributes)
    (spec,) = inferred.outputs
    dtype = _engine.dtype_of(spec)
    result = _arguments.output("tile", out, "out", spec.shape, dtype, [("x", data)])
    _engine.run(Tile, (data,), (result,), attributes, inferred)
    return _arguments.wrap_result(result, out, wrap)


@overload
def reverse_subsequences(
    x: ArrayOf[Scalar], lengths: Operand, *, axis: SupportsIndex, out: None = ...
) -> NDArray[Scalar]: ...


@overload
def reverse_subsequences(
    x: Other, lengths: Operand, *, axis: SupportsIndex, out: None = ...
) -> Other: ...


@overload
def reverse_subsequences(
    x: Plain, lengths: Operand, *, axis: SupportsIndex, out: None = ...
) -> NDArray[Any]: ...


@overload
def reverse_subsequences(x: Operand, lengths: Operand, *, axis: SupportsIndex, out: Out) -> Out: ...


def reverse_subsequences(
    x: Any, lengths: Any, *, axis: Any, out: Any = None, **unknown: Any
) -> Any:
    """Reverse the first elements of each sequence along an axis.

    Parameters
    ----------
    x : array_like
        Rank 1 or more; elements of any type.
    lengths : array_like of int
        The number of elements of each sequence to reverse, 0 or more. A larger number reverses the
        whole sequence. The shape is that of `x` with 1 on the axis, or one that can be broadcast to
        it. On a GPU, lengths must be int32, int64, uint32 or uint64, and a negative length reverses
        nothing.
    axis : int
        The axis of the sequences; a negative one counts from the end.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape of x
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    ReverseSubsequences : the DirectML operator.

    Notes
    -----
    From ``DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC``; any rank, any type, lengths of any
    integer type and lengths that are broadcast are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.reverse_subsequences([[1, 2, 3, 4], [5, 6, 7, 8]], [[3], [2]], axis=1)
    array([[3, 2, 1, 4],
           [6, 5, 7, 8]])
    """
    if unknown:
        raise unknown_keyword(reverse_subsequences, unknown)
    return dispatch(REVERSE_SUBSEQUENCES, (x, lengths, axis), out)


@REVERSE_SUBSEQUENCES.for_memory
def _reverse_subsequences(x: Any, lengths: Any, axis: Any, out: Any) -> Any:
    data, wrap = as_operand(x, "x")
    number = _arguments.axis_of(axis, data)
    attributes = {"axis": number}
    shape = (*data.shape[:number], 1, *data.shape[number + 1 :])
    counts = lengths_of(lengths, shape)
    inferred = _engine.infer(ReverseSubsequences, (data, counts), attributes)
    operands = [("x", data), ("lengths", counts)]
    result = _arguments.output("reverse_subsequences", out, "out", data.shape, data.dtype, operands)
    inputs = (data, counts)
    _engine.run(ReverseSubsequences, inputs, (result,), attributes, inferred)
    return _arguments.wrap_result(result, out, wrap)


def lengths_of(lengths: Any, shape: tuple[int, ...]) -> Array:
    """Lengths as the kernel takes them, in memory of their own."""
    array = as_operand(lengths, "lengths")[0]
    check_lengths(array)
    if isinstance(array, DeviceArray):  # whose values the host cannot read
        if array.itemsize < 4:
            accepted = "int32, int64, uint32 or uint64"
            raise ArgumentTypeError(
                f"lengths: expected {accepted} on a GPU, got {dtype_name(array.dtype)}"
            )
        return _arguments.broadcast_to(array, shape, "lengths")
    counts = _engine.scratch("reverse_subsequences", array.copy)
    refuse_negative(counts)
    maximum = np.iinfo(np.uint32).max
    narrow = np.minimum(counts, maximum) if counts.dtype.itemsize > 4 else counts
    return _arguments.broadcast_to(narrow.astype(np.uint32), shape, "lengths")
