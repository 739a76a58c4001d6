"""`top_k` and `nonzero_coordinates` on arrays."""

from __future__ import annotations

from typing import Any, SupportsIndex, cast, overload

import numpy as np
from numpy import ndarray

from anydml.core.errors import ArgumentTypeError
from anydml.functions import _arguments, _engine
from anydml.functions._attributes import COMPARED, ORDERED, check_type, sized
from anydml.functions._dispatch import dispatch
from anydml.functions._keywords import unknown_keyword
from anydml.functions._specs import NONZERO_COORDINATES, TOP_K, TopKResult
from anydml.functions._types import (
    ArrayOf,
    GivenIndexType,
    Index,
    NDArray,
    Operand,
    Other,
    Out,
    OutIndices,
    Plain,
    Scalar,
)
from anydml.libraries import Array, DeviceArray, as_operand
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.top_k import TopK1

__all__ = ["TopKResult", "nonzero_coordinates", "top_k"]

_call_top_k = _engine.function_call(TopK1.KERNEL)
_call_nonzero = _engine.function_call(NonzeroCoordinates.KERNEL)


@overload
def top_k(
    x: ArrayOf[Scalar],
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: None = ...,
    out: None = ...,
) -> TopKResult[NDArray[Scalar], NDArray[np.intp]]: ...


@overload
def top_k(
    x: ArrayOf[Scalar],
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: type[Index] | np.dtype[Index],
    out: None = ...,
) -> TopKResult[NDArray[Scalar], NDArray[Index]]: ...


@overload
def top_k(
    x: ArrayOf[Scalar],
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: GivenIndexType | None = ...,
    out: None = ...,
) -> TopKResult[NDArray[Scalar], NDArray[Any]]: ...


@overload
def top_k(
    x: Other,
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: GivenIndexType | None = ...,
    out: None = ...,
) -> TopKResult[Other, Other]: ...


@overload
def top_k(
    x: Plain,
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: None = ...,
    out: None = ...,
) -> TopKResult[NDArray[Any], NDArray[np.intp]]: ...


@overload
def top_k(
    x: Plain,
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: type[Index] | np.dtype[Index],
    out: None = ...,
) -> TopKResult[NDArray[Any], NDArray[Index]]: ...


@overload
def top_k(
    x: Plain,
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: GivenIndexType | None = ...,
    out: None = ...,
) -> TopKResult[NDArray[Any], NDArray[Any]]: ...


@overload
def top_k(
    x: Operand,
    k: SupportsIndex,
    *,
    axis: SupportsIndex = ...,
    largest: bool = ...,
    sorted: bool = ...,
    index_dtype: GivenIndexType | None = ...,
    out: tuple[Out, OutIndices] | list[Any],
) -> TopKResult[Out, OutIndices]: ...


def top_k(
    x: Any,
    k: SupportsIndex,
    *,
    axis: SupportsIndex = -1,
    largest: bool = True,
    sorted: bool = True,
    index_dtype: Any = None,
    out: Any = None,
    **unknown: Any,
) -> TopKResult[Any, Any]:
    """Return the k largest or smallest elements along an axis, sorted, with their indices.

    Ties are in ascending index order in both directions. NaN counts as larger than every number,
    all NaNs tie, and -0.0 ties with +0.0. A returned value has the bits of the element.

    Parameters
    ----------
    x : array_like, shape (..., n, ...)
        Bools, floats or integers of 8 to 64 bits. Rank 0 counts as one element along one
        axis; the results then have rank 0, too, unless k is 0.
    k : int
        0 to n.
    axis : int, optional
        The axis of n elements; the last by default.
    largest : bool, optional
        Largest first, or (False) smallest first.
    sorted : bool, optional
        Accepted for compatibility with ``torch.topk``; results are sorted in any case.
    index_dtype : optional
        The type of the indices: int64, int32, uint32 or uint64, as a name, a NumPy type or a type
        of the library. The default is the type of the indices in `out`, or the type that the
        library indexes with: ``np.intp``, int64 for PyTorch, JAX's default integer.
    out : tuple of two arrays, optional
        The arrays to write values and indices to, with the shape of `x` and k along the axis. None
        means that the call allocates this one.

    Returns
    -------
    TopKResult
        ``values`` and ``indices``, arrays of the library of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    TopK1 : the DirectML operator.

    Notes
    -----
    From ``DML_TOP_K1_OPERATOR_DESC``; any rank, k = 0, k = n, float64 and empty arrays are
    extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> values, indices = dml.top_k([3.0, 1.0, 3.0, 2.0], 2)
    >>> values, indices
    (array([3., 3.]), array([0, 2]))
    """
    if unknown:
        raise unknown_keyword(top_k, unknown)
    if type(x) is ndarray and out is None:
        result = _call_top_k(TopKResult, x, axis, k, largest, index_dtype)
        if result is not None:
            return result  # type: ignore[no-any-return]  # TopKResult, made natively
    arguments = (x, k, axis, largest, sorted, index_dtype)
    return dispatch(TOP_K, arguments, out)  # type: ignore[no-any-return]  # by the specification


@TOP_K.for_memory
def _top_k(
    x: Any,
    k: Any,
    axis: Any,
    largest: Any,
    sorted: Any = True,
    index_dtype: Any = None,
    out: Any = None,
) -> TopKResult[Any, Any]:
    array, wrap = as_operand(x, "x")
    check_type(array, ORDERED)
    scalar = array.ndim == 0
    shaped = array.reshape(1) if scalar else array
    number = _arguments.axis_of(axis, shaped)
    size = shaped.shape[number]
    count = _arguments.integer(k, "k")
    attributes = {"axis": number, "k": count}
    inferred = _engine.infer(TopK1, (shaped,), attributes)
    attributes["largest"] = _arguments.flag(largest, "largest")
    spec, _ = inferred.outputs  # both of one shape
    shape = () if scalar and count == 1 else spec.shape
    outs = _arguments.unpack_out(out, 2, "values, indices")
    index_kind = _arguments.result_indices(index_dtype, x, (size,), outs[1], "out[1]")
    operands = [("x", array)]
    values = _arguments.output(
        "top_k", outs[0], "out[0]", shape, array.dtype, operands, what="the values"
    )
    operands.append(("out[0]", values))
    indices = _arguments.output(
        "top_k", outs[1], "out[1]", shape, index_kind, operands, what="the indices"
    )
    results = (values, indices)
    pairs = zip(results, inferred.outputs, strict=True)
    filled = [result.reshape(spec.shape) for result, spec in pairs]
    if array.dtype == np.bool_:
        shaped, filled[0] = shaped.view(np.uint8), filled[0].view(np.uint8)
    _engine.run(TopK1, (shaped,), filled, attributes, inferred)
    copies = zip(results, outs, strict=True)
    return TopKResult(*(_arguments.wrap_result(r, target, wrap) for r, target in copies))


@overload
def nonzero_coordinates(
    x: ArrayOf[Any],
    *,
    index_dtype: None = ...,
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[np.intp]: ...


@overload
def nonzero_coordinates(
    x: ArrayOf[Any],
    *,
    index_dtype: type[Index] | np.dtype[Index],
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[Index]: ...


@overload
def nonzero_coordinates(
    x: ArrayOf[Any],
    *,
    index_dtype: GivenIndexType | None = ...,
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def nonzero_coordinates(
    x: Other,
    *,
    index_dtype: GivenIndexType | None = ...,
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: None = ...,
) -> Other: ...


@overload
def nonzero_coordinates(
    x: Plain,
    *,
    index_dtype: None = ...,
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[np.intp]: ...


@overload
def nonzero_coordinates(
    x: Plain,
    *,
    index_dtype: type[Index] | np.dtype[Index],
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[Index]: ...


@overload
def nonzero_coordinates(
    x: Plain,
    *,
    index_dtype: GivenIndexType | None = ...,
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def nonzero_coordinates(
    x: Operand,
    *,
    index_dtype: GivenIndexType | None = ...,
    size: SupportsIndex | None = ...,
    fill_value: SupportsIndex = ...,
    out: Out,
) -> Out: ...


def nonzero_coordinates(
    x: Any,
    *,
    index_dtype: Any = None,
    size: SupportsIndex | None = None,
    fill_value: SupportsIndex = 0,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Return the coordinates of all nonzero elements, in ascending element order.

    Negative zero counts as zero, NaN does not.

    Parameters
    ----------
    x : array_like
        Bools, floats, integers or complex numbers, of any rank.
    index_dtype : optional
        The type of the coordinates: int64, int32, uint32 or uint64, as a name, a NumPy type or a
        type of the library. The default is the type of `out`, or the type that the library indexes
        with: ``np.intp``, int64 for PyTorch, JAX's default integer.
    size : int, optional
        The number of rows of the result, as in ``jnp.nonzero``. Further coordinates are dropped,
        and missing rows contain `fill_value`. The default is the number of nonzero elements.
    fill_value : int, optional
        0 by default.
    out : array, shape (count, x.ndim), optional
        The array to write the coordinates to; its shape must fit exactly.

    Returns
    -------
    array, shape (count, x.ndim)
        A row of coordinates for each nonzero element, or `size` rows, as an array of the library
        of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    NonzeroCoordinates : the DirectML operator.

    Notes
    -----
    From ``DML_NONZERO_COORDINATES_OPERATOR_DESC``; any rank, 64-bit types, bools and empty arrays
    are extensions. A scalar gives one row without coordinates if it is not zero, and no rows
    otherwise.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.nonzero_coordinates([[1.0, -0.0], [0.0, 5.0]])
    array([[0, 0],
           [1, 1]])
    >>> dml.nonzero_coordinates([0, 5, 0], size=2, fill_value=-1)
    array([[ 1],
           [-1]])
    """
    if unknown:
        raise unknown_keyword(nonzero_coordinates, unknown)
    if type(x) is ndarray and out is None and size is None:
        coordinates = _call_nonzero(None, x, index_dtype)
        if coordinates is not None:
            return coordinates
    return dispatch(NONZERO_COORDINATES, (x, index_dtype, size, fill_value), out)


@NONZERO_COORDINATES.for_memory
def coordinates_of(
    x: Any, index_dtype: Any, size: Any = None, fill_value: Any = 0, out: Any = None
) -> Any:
    """`nonzero_coordinates` of an array with memory."""
    array, wrap = as_operand(x, "x")
    check_type(array, COMPARED)
    kind = _arguments.result_indices(index_dtype, x, array.shape, out, "out")
    _arguments.check_element_count([("x", array)])

    def rows_of(count: int, out: Any = out) -> Array:
        return _arguments.output(
            "nonzero_coordinates", out, "out", (count, array.ndim), kind, [("x", array)],
            what="the coordinates",
        )  # fmt: skip

    row_count, fill = (None, 0) if size is None else sized(size, fill_value, np.iinfo(kind))

    source = array
    if array.dtype.kind == "c":
        if isinstance(array, DeviceArray):
            raise ArgumentTypeError(
                f"x: expected real numbers for an array on a GPU, got {array.dtype}"
            )
        with np.errstate(invalid="ignore"):  # a signalling NaN is one that is not zero
            source = _engine.scratch("nonzero_coordinates", lambda: np.asarray(array != 0))
    columns = {"columns": array.ndim}
    if row_count is None:
        rows = _engine.run_measured(NonzeroCoordinates, columns, source, rows_of)
    else:
        rows = rows_of(row_count)
        found = _engine.run_measured(
            NonzeroCoordinates, columns, source, lambda count: rows_of(count, None)
        )
        fill_rows(rows, found, np.asarray(fill, kind))
    return _arguments.wrap_result(rows, out, wrap)


def fill_rows(rows: Any, found: Any, fill: Any) -> None:
    """The first rows that were found, as many as fit; a number in the others."""
    count = min(found.shape[0], rows.shape[0])
    if isinstance(rows, DeviceArray):
        _fill_there(rows, found, count, fill)
        return
    rows[:count] = found[:count]
    rows[count:] = fill


def _fill_there(rows: DeviceArray, found: DeviceArray, count: int, fill: Any) -> None:
    row_count, columns = rows.shape
    first = (count, columns)
    others = rows.laid_out((row_count - count, columns), rows.dtype, rows.strides)
    others.address += count * rows.strides[0]
    number: Any = _arguments.number_to_device_of(fill, cast(Array, rows))
    number = _arguments.broadcast_to(number, others.shape, "fill_value")
    _arguments.copy_on_device(
        found.laid_out(first, found.dtype, found.strides),
        rows.laid_out(first, rows.dtype, rows.strides),
    )
    _arguments.copy_on_device(number, others)
