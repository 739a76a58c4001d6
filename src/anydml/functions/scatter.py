"""`scatter_elements` and `scatter_nd` on arrays."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

from numpy import ndarray

from anydml.functions import _arguments, _combining, _engine
from anydml.functions._attributes import check_scalar, updates_shape
from anydml.functions._dispatch import dispatch
from anydml.functions._keywords import unknown_keyword
from anydml.functions._specs import SCATTER_ELEMENTS, SCATTER_ND
from anydml.functions._types import (
    ArrayOf,
    NDArray,
    Operand,
    Other,
    Out,
    Plain,
    Reduction,
    Scalar,
)
from anydml.libraries import Array, as_operand
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND

_call_elements = _engine.function_call(Scatter.KERNEL)
_call_nd = _engine.function_call(ScatterND.KERNEL)


@overload
def scatter_elements(
    x: ArrayOf[Scalar],
    indices: Operand,
    updates: Operand,
    *,
    axis: SupportsIndex = ...,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    broadcast: bool = ...,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def scatter_elements(
    x: Other,
    indices: Operand,
    updates: Operand,
    *,
    axis: SupportsIndex = ...,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    broadcast: bool = ...,
    out: None = ...,
) -> Other: ...


@overload
def scatter_elements(
    x: Plain,
    indices: Operand,
    updates: Operand,
    *,
    axis: SupportsIndex = ...,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    broadcast: bool = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def scatter_elements(
    x: Operand,
    indices: Operand,
    updates: Operand,
    *,
    axis: SupportsIndex = ...,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    broadcast: bool = ...,
    out: Out,
) -> Out: ...


def scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    axis: SupportsIndex = 0,
    reduction: str | None = None,
    include_self: bool = True,
    broadcast: bool = False,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Copy `x` and replace elements along an axis by index.

    ``y = x`` and then, for axis 0, ``y[indices[i, j, ..], j, ..] = updates[i, j, ..]``. If
    several updates have the same index, the last in row-major order wins. Negative indices count
    from the end of the axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    indices : array_like of int
        The same rank as `x`, with any size along the axis and at most the sizes of `x` elsewhere.
        If `x` has rank 0, it counts as one element along one axis, and the indices may have any
        shape.
    updates : array_like
        The shape of the indices, or one number for all of them; the type of `x`.
    axis : int, optional
        0 by default.
    reduction : {None, "none", "add", "mul", "min", "max", "mean"}, optional
        How to combine each update with the element. Updates are combined one after the other in
        row-major order, so the result has the same bits at any number of threads. The names are
        those of ONNX; PyTorch's "sum", "prod", "amin" and "amax" mean the same. A mean of integers
        is rounded down. A mean accumulates 16-bit floats in float32 and integers of up to 32 bits
        in int64, and rounds once. By default, the update replaces the element.
    include_self : bool, optional
        Whether the element itself is combined with its updates (True by default).
    broadcast : bool, optional
        Whether to broadcast indices and updates to the sizes of `x` off the axis, as
        `numpy.put_along_axis` does. Otherwise (False), indices of size 1 there refer to the first
        element only.
    out : array, optional
        The array to write to, with the shape and type of `x`. ``out=x`` writes in place.

    Returns
    -------
    array
        An array of the library, shape and type of `x`, or `out`.

    Raises
    ------
    IndexOutOfRangeError
        An index is out of range; `out` is unchanged.
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    Scatter : the DirectML operator.
    gather_elements : the inverse.

    Notes
    -----
    From ``DML_SCATTER_OPERATOR_DESC``; any rank, empty arrays, indices smaller than `x` off the
    axis and reductions are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.scatter_elements([0.0, 1.0, 2.0, 3.0, 4.0], [3, 1, 3, 0], [5.0, 6.0, 7.0, 8.0])
    array([8., 6., 2., 7., 4.])
    >>> dml.scatter_elements([0, 0, 0], [1, 1, -1], [5, 6, 7], reduction="add")
    array([ 0, 11,  7])
    """
    if unknown:
        raise unknown_keyword(scatter_elements, unknown)
    if type(x) is ndarray and out is None and include_self is True and broadcast is False:
        result = _call_elements(None, x, indices, updates, axis, reduction)
        if result is not None:
            return result
    return dispatch(
        SCATTER_ELEMENTS, (x, indices, updates, axis, reduction, include_self, broadcast), out
    )


@SCATTER_ELEMENTS.for_memory
def _scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    axis: Any,
    reduction: Any,
    include_self: Any,
    broadcast: Any = False,
    out: Any = None,
) -> Any:
    data, lookup, values, wrap = _operands(x, indices, updates)
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        shape = updates_shape(_arguments.axis_of(axis, data), data, lookup)
        lookup = _arguments.broadcast_to(lookup, shape, "indices")
        values = _arguments.broadcast_to(values, shape, "updates")
    elif values.ndim == 0:
        values = _arguments.broadcast_to(values, lookup.shape, "updates")
    scalar = data.ndim == 0
    if scalar:  # one element on one axis
        check_scalar(lookup, values)
        data = data.reshape(1)
        lookup, values = _arguments.ravel(lookup), _arguments.ravel(values)
    number = _arguments.axis_of(axis, data)
    operands = (data, lookup, values)
    result = _scattered(Scatter, operands, scalar, out, reduction, include_self, axis=number)
    return _arguments.wrap_result(result.reshape(()) if scalar else result, out, wrap)


@overload
def scatter_nd(
    x: ArrayOf[Scalar],
    indices: Operand,
    updates: Operand,
    *,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def scatter_nd(
    x: Other,
    indices: Operand,
    updates: Operand,
    *,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    out: None = ...,
) -> Other: ...


@overload
def scatter_nd(
    x: Plain,
    indices: Operand,
    updates: Operand,
    *,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def scatter_nd(
    x: Operand,
    indices: Operand,
    updates: Operand,
    *,
    reduction: Reduction | None = ...,
    include_self: bool = ...,
    out: Out,
) -> Out: ...


def scatter_nd(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    reduction: str | None = None,
    include_self: bool = True,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Copy `x` and replace elements or blocks by index tuples.

    ``y = x`` and then ``y[tuple(indices[i, j, ..])] = updates[i, j, ..]``. If several updates
    have the same index, the last in row-major order wins. Negative indices count from the end of
    their axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    indices : array_like of int, shape (..., t)
        Tuples of t coordinates, t from 0 to the rank of `x`.
    updates : array_like, shape (..., *x.shape[t:])
        The new values, or one number for all of them; the type of `x`.
    reduction : {None, "none", "add", "mul", "min", "max", "mean"}, optional
        How to combine each update with the element. Updates are combined one after the other in
        row-major order, so the result has the same bits at any number of threads. The names are
        those of ONNX; PyTorch's "sum", "prod", "amin" and "amax" mean the same. A mean of integers
        is rounded down. A mean accumulates 16-bit floats in float32 and integers of up to 32 bits
        in int64, and rounds once. By default, the update replaces the element.
    include_self : bool, optional
        Whether the element itself is combined with its updates (True by default).
    out : array, optional
        The array to write to, with the shape and type of `x`. ``out=x`` writes in place.

    Returns
    -------
    array
        An array of the library, shape and type of `x`, or `out`.

    Raises
    ------
    IndexOutOfRangeError
        A coordinate is out of range; `out` is unchanged.
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    ScatterND : the DirectML operator.
    gather_nd : the inverse.

    Notes
    -----
    From ``DML_SCATTER_ND_OPERATOR_DESC``; natural ranks instead of padded ones, empty arrays, t = 0
    and reductions are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.scatter_nd([1, 2, 3, 4, 5, 6, 7, 8], [[4], [3], [1], [7]], [9, 10, 11, 12])
    array([ 1, 11,  3, 10,  9,  6,  7, 12])
    """
    if unknown:
        raise unknown_keyword(scatter_nd, unknown)
    if type(x) is ndarray and out is None and include_self is True:
        result = _call_nd(None, x, indices, updates, reduction)
        if result is not None:
            return result
    return dispatch(SCATTER_ND, (x, indices, updates, reduction, include_self), out)


@SCATTER_ND.for_memory
def _scatter_nd(
    x: Any, indices: Any, updates: Any, reduction: Any, include_self: Any, out: Any
) -> Any:
    data, lookup, values, wrap = _operands(x, indices, updates)
    if values.ndim == 0 and lookup.ndim:
        shape = lookup.shape[:-1] + data.shape[lookup.shape[-1] :]
        values = _arguments.broadcast_to(values, shape, "updates")
    operands = (data, lookup, values)
    result = _scattered(ScatterND, operands, False, out, reduction, include_self)
    return _arguments.wrap_result(result, out, wrap)


def _operands(x: Any, indices: Any, updates: Any) -> tuple[Array, Array, Array, Any]:
    data, wrap = as_operand(x, "x")
    values = as_operand(updates, "updates")[0]
    values = _arguments.same_type(values, updates, "updates", data)
    values = _arguments.number_to_device_of(values, data)
    return data, _arguments.index_array(indices), values, wrap


def _scattered(
    operator: _engine.OperatorClass,
    operands: tuple[Array, Array, Array],
    scalar: bool,
    out: Any,
    reduction: Any,
    include_self: Any,
    **attributes: Any,
) -> Array:
    data, lookup, values = operands
    inferred = _engine.infer(operator, operands, attributes)
    reduction_name = _combining.reduction_of(reduction, data)
    includes_self = _arguments.flag(include_self, "include_self")
    named_operands = [("x", data), ("indices", lookup), ("updates", values)]
    shape = () if scalar else data.shape
    result = _arguments.output(
        operator.KERNEL, out, "out", shape, data.dtype, named_operands, in_place=data
    )
    if scalar:
        result = result.reshape(1)
    call = _combining.Scatter(operator, inferred, attributes, private=out is None)
    call.run(operands, result, reduction_name, includes_self)
    return result
