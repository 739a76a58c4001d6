"""`cast`, `pad` and `slice_window` on arrays."""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy import ndarray

from anydml.functions import _arguments, _engine
from anydml.functions._attributes import (
    check_numbers,
    constant_of,
    padding,
    type_named,
    window,
)
from anydml.functions._dispatch import dispatch
from anydml.functions._keywords import unknown_keyword
from anydml.functions._specs import CAST, PAD, SLICE_WINDOW
from anydml.functions._types import (
    ArrayOf,
    GivenType,
    Integers,
    NDArray,
    Operand,
    Other,
    Out,
    PadMode,
    Plain,
    Scalar,
)
from anydml.libraries import Array, as_operand, check_dtype
from anydml.ops.cast import Cast
from anydml.ops.padding1 import Padding1
from anydml.ops.slice1 import Slice1

_call_cast = _engine.function_call(Cast.KERNEL)
_call_pad = _engine.function_call(Padding1.KERNEL)
_call_window = _engine.function_call(Slice1.KERNEL)


@overload
def cast(
    x: ArrayOf[Any] | Plain, dtype: type[Scalar] | np.dtype[Scalar], *, out: None = ...
) -> NDArray[Scalar]: ...


@overload
def cast(x: ArrayOf[Any], dtype: GivenType, *, out: None = ...) -> NDArray[Any]: ...


@overload
def cast(x: Other, dtype: GivenType, *, out: None = ...) -> Other: ...


@overload
def cast(x: Plain, dtype: GivenType, *, out: None = ...) -> NDArray[Any]: ...


@overload
def cast(x: Operand, dtype: GivenType, *, out: Out) -> Out: ...


def cast(x: Any, dtype: Any, *, out: Any = None, **unknown: Any) -> Any:
    """Convert `x` to another type, with the same result on every machine.

    A float is truncated towards zero and limited to the range of an integer type; NaN becomes 0.
    An integer is converted to a smaller integer type by keeping its low bits. A conversion to a
    float rounds once, to nearest, ties to even. A NaN becomes the canonical NaN of the type. Equal
    types copy the bits.

    Parameters
    ----------
    x : array_like
        Any rank; real numbers or bools.
    dtype : DataType, str or dtype
        ``"float16"``, ``"FLOAT16"``, NumPy's or the array library's own type.
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
    Cast : the DirectML operator.

    Notes
    -----
    From ``DML_CAST_OPERATOR_DESC``; any rank, empty arrays and bools are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.cast([1.9, -1.5, 300.0, float("nan")], "uint8")
    array([  1,   0, 255,   0], dtype=uint8)
    """
    if unknown:
        raise unknown_keyword(cast, unknown)
    if type(x) is ndarray and out is None:
        result = _call_cast(None, x, dtype)
        if result is not None:
            return result
    return dispatch(CAST, (x, dtype), out)


@CAST.for_memory
def _cast(x: Any, dtype: Any, out: Any) -> Any:
    data, wrap = as_operand(x, "x")
    data = _with_numbers(data)
    to = type_named(dtype)
    _engine.know_type(dtype, to)
    if out is None:
        check_dtype(x, to, "dtype")
    attributes = {"to": to}
    inferred = _engine.infer(Cast, (data,), attributes)
    (spec,) = inferred.outputs
    result = _arguments.output(
        "cast", out, "out", spec.shape, _engine.dtype_of(spec), [("x", data)]
    )
    _engine.run(Cast, (data,), (result,), attributes, inferred)
    return _arguments.wrap_result(result, out, wrap)


@overload
def pad(
    x: ArrayOf[Scalar], pad_width: Any, mode: PadMode = ..., constant: Any = ..., *, out: None = ...
) -> NDArray[Scalar]: ...


@overload
def pad(
    x: Other, pad_width: Any, mode: PadMode = ..., constant: Any = ..., *, out: None = ...
) -> Other: ...


@overload
def pad(
    x: Plain, pad_width: Any, mode: PadMode = ..., constant: Any = ..., *, out: None = ...
) -> NDArray[Any]: ...


@overload
def pad(
    x: Operand, pad_width: Any, mode: PadMode = ..., constant: Any = ..., *, out: Out
) -> Out: ...


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    constant: Any = 0,
    *,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Add elements at both ends of each axis of `x`.

    Parameters
    ----------
    x : array_like
        Any rank; elements of any type.
    pad_width : int, pair of int, or sequence of pairs
        The number of elements to add before and after an axis: for all axes, or a pair for each.
    mode : str
        ``"constant"``, ``"edge"``, ``"reflection"`` (or ``"reflect"``), ``"symmetric"`` or
        ``"wrap"``.
    constant : number
        The padding value for mode ``"constant"``; it must be exactly representable in the
        type, as 1.0 is in an integer type.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, each size is that of x plus both paddings
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    Padding1 : the DirectML operator.

    Notes
    -----
    From ``DML_PADDING1_OPERATOR_DESC``; any rank, any type and empty arrays are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.pad([1, 2, 3, 4], (2, 3), "reflection")
    array([3, 2, 1, 2, 3, 4, 3, 2, 1])
    """
    if unknown:
        raise unknown_keyword(pad, unknown)
    if type(x) is ndarray and out is None:
        result = _call_pad(None, x, pad_width, mode, constant)
        if result is not None:
            return result
    return dispatch(PAD, (x, pad_width, mode, constant), out)


@PAD.for_memory
def _pad(x: Any, pad_width: Any, mode: Any, constant: Any, out: Any) -> Any:
    data, wrap = as_operand(x, "x")
    attributes = padding(data, pad_width, mode, constant_of(constant, data, mode))
    inferred = _engine.infer(Padding1, (data,), attributes)
    (spec,) = inferred.outputs
    dtype = _engine.dtype_of(spec)
    result = _arguments.output("pad", out, "out", spec.shape, dtype, [("x", data)])
    _engine.run(Padding1, (data,), (result,), attributes, inferred)
    return _arguments.wrap_result(result, out, wrap)


@overload
def slice_window(
    x: ArrayOf[Scalar],
    starts: Integers,
    sizes: Integers,
    strides: Integers | None = ...,
    *,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def slice_window(
    x: Other,
    starts: Integers,
    sizes: Integers,
    strides: Integers | None = ...,
    *,
    out: None = ...,
) -> Other: ...


@overload
def slice_window(
    x: Plain,
    starts: Integers,
    sizes: Integers,
    strides: Integers | None = ...,
    *,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def slice_window(
    x: Operand,
    starts: Integers,
    sizes: Integers,
    strides: Integers | None = ...,
    *,
    out: Out,
) -> Out: ...


def slice_window(
    x: Any,
    starts: Integers,
    sizes: Integers,
    strides: Integers | None = None,
    *,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Copy a window of `x`, with a stride along each axis.

    A positive stride starts at the beginning of the window, a negative one at its end. All elements
    that the stride reaches inside the window are taken.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    starts : sequence of int
        The start of the window on each axis, from 0 to the size of the axis.
    sizes : sequence of int
        The extent of the window on each axis, inside `x`; 0 gives an empty result.
    strides : sequence of int, optional
        The step between elements, not 0; 1 by default.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape ceil(sizes / abs(strides))
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    Slice1 : the DirectML operator.

    Notes
    -----
    From ``DML_SLICE1_OPERATOR_DESC``; any rank and empty windows are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.slice_window([[1, 2, 3, 4], [5, 6, 7, 8]], (0, 1), (2, 3), (-1, 2))
    array([[6, 8],
           [2, 4]])
    """
    if unknown:
        raise unknown_keyword(slice_window, unknown)
    if type(x) is ndarray and out is None:
        result = _call_window(None, x, starts, sizes, strides)
        if result is not None:
            return result
    return dispatch(SLICE_WINDOW, (x, starts, sizes, strides), out)


@SLICE_WINDOW.for_memory
def _slice_window(x: Any, starts: Any, sizes: Any, strides: Any, out: Any) -> Any:
    data, wrap = as_operand(x, "x")
    attributes = window(starts, sizes, strides, data.ndim)
    inferred = _engine.infer(Slice1, (data,), attributes)
    (spec,) = inferred.outputs
    dtype = _engine.dtype_of(spec)
    result = _arguments.output("slice_window", out, "out", spec.shape, dtype, [("x", data)])
    attributes["counts"] = spec.shape
    _engine.run(Slice1, (data,), (result,), attributes, inferred)
    return _arguments.wrap_result(result, out, wrap)


def _with_numbers(array: Array) -> Array:
    check_numbers(array)
    return array.view(np.uint8) if array.dtype == np.bool_ else array
