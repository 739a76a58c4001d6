"""`gather`, `gather_elements` and `gather_nd` on arrays."""

from __future__ import annotations

from typing import Any, SupportsIndex, overload

from numpy import ndarray

from anydml._native import INDEX_MODES
from anydml.functions import _arguments, _engine
from anydml.functions._attributes import broadcast_indexed, check_mode, indexed_axes
from anydml.functions._dispatch import dispatch
from anydml.functions._keywords import unknown_keyword
from anydml.functions._specs import GATHER, GATHER_ELEMENTS, GATHER_ND
from anydml.functions._types import (
    ArrayOf,
    GatherMode,
    NDArray,
    Operand,
    Other,
    Out,
    Plain,
    Scalar,
)
from anydml.libraries import Array, as_operand
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND

_call_gather = _engine.function_call(Gather.KERNEL)
_call_elements = _engine.function_call(GatherElements.KERNEL)
_call_nd = _engine.function_call(GatherND.KERNEL)


@overload
def gather(
    x: ArrayOf[Scalar],
    indices: Operand,
    *,
    axis: SupportsIndex = ...,
    mode: GatherMode = ...,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def gather(
    x: Other,
    indices: Operand,
    *,
    axis: SupportsIndex = ...,
    mode: GatherMode = ...,
    out: None = ...,
) -> Other: ...


@overload
def gather(
    x: Plain,
    indices: Operand,
    *,
    axis: SupportsIndex = ...,
    mode: GatherMode = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def gather(
    x: Operand, indices: Operand, *, axis: SupportsIndex = ..., mode: GatherMode = ..., out: Out
) -> Out: ...


def gather(
    x: Any,
    indices: Any,
    *,
    axis: SupportsIndex = 0,
    mode: str = "raise",
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Select slices of `x` along an axis by index.

    For axis 0, ``y[i, j, ..] = x[indices[i, j], ..]``. Negative indices count from the end of the
    axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type. Rank 0 counts as one element along one axis.
    indices : array_like of int
        Any shape.
    axis : int, optional
        0 by default.
    mode : {"raise", "clamp", "wrap", "clip"}, optional
        What to do with an index outside the axis: raise an error (default), read the nearest
        element ("clamp", as DirectML's page documents it), or take the index modulo the size
        ("wrap", as in NumPy). With "clip", as in NumPy, negative indices do not count from the
        end: they read the first element.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape x.shape[:axis] + indices.shape + x.shape[axis + 1:]
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    IndexOutOfRangeError
        An index is out of range (``mode="raise"``); `out` is unchanged.
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    Gather : the DirectML operator.

    Notes
    -----
    From ``DML_GATHER_OPERATOR_DESC``; natural ranks and empty arrays are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.gather([[1, 2], [3, 4], [5, 6]], [0, -1])
    array([[1, 2],
           [5, 6]])
    """
    if unknown:
        raise unknown_keyword(gather, unknown)
    if type(x) is ndarray and out is None:
        result = _call_gather(None, x, indices, axis, mode)
        if result is not None:
            return result
    return dispatch(GATHER, (x, indices, axis, mode), out)


@GATHER.for_memory
def _gather(x: Any, indices: Any, axis: Any, mode: Any, out: Any) -> Any:
    data, wrap = as_operand(x, "x")
    lookup = _arguments.index_array(indices)
    data = data if data.ndim else data.reshape(1)
    number = _arguments.axis_of(axis, data)
    check_mode(mode, lookup, data, (number,))
    result = _gathered(Gather, data, lookup, out, axis=number, clamp=INDEX_MODES.index(mode))
    return _arguments.wrap_result(result, out, wrap)


@overload
def gather_elements(
    x: ArrayOf[Scalar],
    indices: Operand,
    *,
    axis: SupportsIndex = ...,
    mode: GatherMode = ...,
    broadcast: bool = ...,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def gather_elements(
    x: Other,
    indices: Operand,
    *,
    axis: SupportsIndex = ...,
    mode: GatherMode = ...,
    broadcast: bool = ...,
    out: None = ...,
) -> Other: ...


@overload
def gather_elements(
    x: Plain,
    indices: Operand,
    *,
    axis: SupportsIndex = ...,
    mode: GatherMode = ...,
    broadcast: bool = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def gather_elements(
    x: Operand,
    indices: Operand,
    *,
    axis: SupportsIndex = ...,
    mode: GatherMode = ...,
    broadcast: bool = ...,
    out: Out,
) -> Out: ...


def gather_elements(
    x: Any,
    indices: Any,
    *,
    axis: SupportsIndex = 0,
    mode: str = "raise",
    broadcast: bool = False,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Select one element of `x` along an axis for each index.

    For axis 0, ``y[i, j, ..] = x[indices[i, j, ..], j, ..]``, as in ``torch.gather``, and as in
    `numpy.take_along_axis` unless a size off the axis is 1. Negative indices count from the end of
    the axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type. Rank 0 counts as one element along one axis.
    indices : array_like of int
        The same rank as `x`, with any size along the axis and at most the sizes of `x` elsewhere.
        If `x` has rank 0, any shape.
    axis : int, optional
        0 by default.
    mode : {"raise", "clamp", "wrap", "clip"}, optional
        What to do with an index outside the axis; see `gather`.
    broadcast : bool, optional
        Whether to broadcast `x` and the indices to common sizes off the axis, as
        `numpy.take_along_axis` does. Otherwise (False), indices of size 1 there refer to the first
        element only.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape of the indices
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    IndexOutOfRangeError
        An index is out of range (``mode="raise"``); `out` is unchanged.
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    GatherElements : the DirectML operator.
    scatter_elements : the inverse.

    Notes
    -----
    From ``DML_GATHER_ELEMENTS_OPERATOR_DESC``; any rank, empty arrays and indices smaller than `x`
    off the axis are extensions.

    Examples
    --------
    The values of `top_k` are what its indices gather:

    >>> import anydml as dml
    >>> import numpy as np
    >>> x = np.array([[3.0, 9.0, 5.0]])
    >>> dml.gather_elements(x, dml.top_k(x, 2).indices, axis=-1)
    array([[9., 5.]])
    """
    if unknown:
        raise unknown_keyword(gather_elements, unknown)
    if type(x) is ndarray and out is None and broadcast is False:
        result = _call_elements(None, x, indices, axis, mode)
        if result is not None:
            return result
    return dispatch(GATHER_ELEMENTS, (x, indices, axis, mode, broadcast), out)


@GATHER_ELEMENTS.for_memory
def _gather_elements(
    x: Any, indices: Any, axis: Any, mode: Any, broadcast: Any = False, out: Any = None
) -> Any:
    data, wrap = as_operand(x, "x")
    lookup = _arguments.index_array(indices)
    number = _arguments.axis_of(axis, data if data.ndim else data.reshape(1))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        shape = broadcast_indexed(number, data, lookup)
        data = _arguments.broadcast_to(data, shape[0], "x")
        lookup = _arguments.broadcast_to(lookup, shape[1], "indices")
    shape = lookup.shape
    if data.ndim == 0:  # one element on one axis, for indices of any shape
        lookup = lookup if lookup.ndim else lookup.reshape(1)
        data = _arguments.broadcast_to(data, (1, *lookup.shape[1:]), "x")
    check_mode(mode, lookup, data, (number,))
    clamp = INDEX_MODES.index(mode)
    result = _gathered(GatherElements, data, lookup, out, shape, axis=number, clamp=clamp)
    return _arguments.wrap_result(result, out, wrap)


@overload
def gather_nd(
    x: ArrayOf[Scalar],
    indices: Operand,
    *,
    batch_dims: SupportsIndex = ...,
    mode: GatherMode = ...,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def gather_nd(
    x: Other,
    indices: Operand,
    *,
    batch_dims: SupportsIndex = ...,
    mode: GatherMode = ...,
    out: None = ...,
) -> Other: ...


@overload
def gather_nd(
    x: Plain,
    indices: Operand,
    *,
    batch_dims: SupportsIndex = ...,
    mode: GatherMode = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def gather_nd(
    x: Operand,
    indices: Operand,
    *,
    batch_dims: SupportsIndex = ...,
    mode: GatherMode = ...,
    out: Out,
) -> Out: ...


def gather_nd(
    x: Any,
    indices: Any,
    *,
    batch_dims: SupportsIndex = 0,
    mode: str = "raise",
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Select elements or blocks of `x` by index tuples.

    ``y[b, i, ..] = x[b][tuple(indices[b, i, ..])]`` with ``batch_dims`` leading batch axes.
    Negative indices count from the end of their axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    indices : array_like of int, shape (*x.shape[:batch_dims], ..., t)
        Tuples of t coordinates, t from 0 to the rank of `x` without the batch axes.
    batch_dims : int, optional
        Leading axes that `x` and the indices share; 0 by default.
    mode : {"raise", "clamp", "wrap", "clip"}, optional
        What to do with an index outside its axis; see `gather`.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape indices.shape[:-1] + x.shape[batch_dims + t:]
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    IndexOutOfRangeError
        A coordinate is out of range (``mode="raise"``); `out` is unchanged.
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    GatherND1 : the DirectML operator.
    scatter_nd : the inverse.

    Notes
    -----
    From ``DML_GATHER_ND1_OPERATOR_DESC``; natural ranks, empty arrays and t = 0 are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.gather_nd([[0, 1], [2, 3]], [[1, 0], [0, -1]])
    array([2, 1])
    """
    if unknown:
        raise unknown_keyword(gather_nd, unknown)
    if type(x) is ndarray and out is None:
        result = _call_nd(None, x, indices, batch_dims, mode)
        if result is not None:
            return result
    return dispatch(GATHER_ND, (x, indices, batch_dims, mode), out)


@GATHER_ND.for_memory
def _gather_nd(x: Any, indices: Any, batch_dims: Any, mode: Any, out: Any) -> Any:
    data, wrap = as_operand(x, "x")
    lookup = _arguments.index_array(indices)
    batch = _arguments.integer(batch_dims, "batch_dims")
    axes = indexed_axes(lookup, batch, data.ndim)
    check_mode(mode, lookup, data, axes)
    result = _gathered(GatherND, data, lookup, out, batch_dims=batch, clamp=INDEX_MODES.index(mode))
    return _arguments.wrap_result(result, out, wrap)


def _gathered(
    operator: _engine.OperatorClass,
    data: Array,
    lookup: Array,
    out: Any,
    shape: tuple[int, ...] | None = None,
    **attributes: Any,
) -> Array:
    # `shape`: of the result, where an axis was added for the kernel.
    inferred = _engine.infer(operator, (data, lookup), attributes)
    (spec,) = inferred.outputs
    operands = [("x", data), ("indices", lookup)]
    dtype = _engine.dtype_of(spec)
    result_shape = spec.shape if shape is None else shape
    result = _arguments.output(operator.KERNEL, out, "out", result_shape, dtype, operands)
    filled = result.reshape(spec.shape)
    _engine.run(operator, (data, lookup), (filled,), attributes, inferred, private=out is None)
    return result
