"""`scatter_elements` and `scatter_nd` on arrays."""

from __future__ import annotations

from typing import Any

from anydml.arrays import Array, adopt, as_numpy
from anydml.errors import ArgumentError
from anydml.functions import _arguments, _engine
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.threads import get_num_threads

_quick_elements = _engine.quick(Scatter.KERNEL)
_quick_nd = _engine.quick(ScatterND.KERNEL)


def scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    *,
    axis: int = 0,
    reduction: str | None = None,
    out: Any = None,
) -> Any:
    """A copy of `x` in which the elements that the indices name along an axis are replaced.

    ``y = x`` and then, for axis 0, ``y[indices[i, j, ..], j, ..] = updates[i, j, ..]``. Where
    several updates meet in one element the last in row-major order wins. Negative indices count
    from the end of the axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    indices : array_like of int
        The rank of `x`. Off the axis, sizes up to those of `x`; on the axis, any. An `x` of rank 0
        is one element on one axis, and its indices may have any shape.
    updates : array_like
        Shape of the indices, type of `x`.
    axis : int, optional
        0 by default.
    reduction : {None, "none", "add", "mul", "min", "max"}, optional
        Combine each update with the element instead of replacing it, one after the other in
        row-major order: the same bits at any number of threads. An extension, as ONNX has it.
    out : array, optional
        Where to write: shape and type of `x`. ``out=x`` writes in place, without a copy.

    Returns
    -------
    array
        Of the kind and shape that `x` is; `out` where it is given.

    Raises
    ------
    IndexOutOfRangeError
        An index outside the axis; `out` is as it was.
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    Scatter : the operator that this extends.
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
    if out is None:
        result = _quick_elements(None, x, indices, updates, axis, reduction, get_num_threads())
        if result is not None:
            return result
    data, lookup, values, wrap = _operands(x, indices, updates)
    scalar = data.ndim == 0
    if scalar:  # one element on one axis
        if values.shape != lookup.shape:
            raise ArgumentError(
                f"updates: expected shape {lookup.shape} (the shape of indices), got {values.shape}"
            )
        data, lookup, values = data.reshape(1), lookup.reshape(-1), values.reshape(-1)
    number = _arguments.axis_of(axis, data)
    result = _scattered(Scatter, (data, lookup, values), scalar, out, reduction, axis=number)
    return (wrap(result.reshape(()) if scalar else result)) if out is None else out


def scatter_nd(
    x: Any, indices: Any, updates: Any, *, reduction: str | None = None, out: Any = None
) -> Any:
    """A copy of `x` in which the elements or blocks that index tuples name are replaced.

    ``y = x`` and then ``y[tuple(indices[i, j, ..])] = updates[i, j, ..]``. Where several updates
    meet the last in row-major order wins. Negative indices count from the end of their axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    indices : array_like of int, shape (..., t)
        Tuples of t coordinates, t from 0 to the rank of `x`.
    updates : array_like, shape (..., *x.shape[t:])
        Type of `x`.
    reduction : {None, "none", "add", "mul", "min", "max"}, optional
        Combine each update with the element instead of replacing it, one after the other in
        row-major order: the same bits at any number of threads. An extension, as ONNX has it.
    out : array, optional
        Where to write: shape and type of `x`. ``out=x`` writes in place, without a copy.

    Returns
    -------
    array
        Of the kind and shape that `x` is; `out` where it is given.

    Raises
    ------
    IndexOutOfRangeError
        A coordinate outside its axis; `out` is as it was.
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    ScatterND : the operator that this extends.
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
    if out is None:
        result = _quick_nd(None, x, indices, updates, reduction, get_num_threads())
        if result is not None:
            return result
    data, lookup, values, wrap = _operands(x, indices, updates)
    result = _scattered(ScatterND, (data, lookup, values), False, out, reduction)
    return wrap(result) if out is None else out


def _operands(x: Any, indices: Any, updates: Any) -> tuple[Array, Array, Array, Any]:
    data, wrap = adopt(x, "x")
    values = as_numpy(updates, "updates")
    values = _arguments.same_type(values, updates, "updates", data)
    return data, _arguments.index_array(indices), values, wrap


def _scattered(
    room: _engine.Room,
    operands: tuple[Array, Array, Array],
    scalar: bool,
    out: Any,
    reduction: Any,
    **given: Any,
) -> Array:
    data, lookup, values = operands
    inferred = _engine.infer(room, operands, given)
    given["reduction"] = _arguments.reduction_of(reduction, data)
    named = [("x", data), ("indices", lookup), ("updates", values)]
    shape = () if scalar else data.shape
    call = room.KERNEL
    result = _arguments.output(call, out, "out", shape, data.dtype, named, in_place=data)
    if scalar:
        result = result.reshape(1)
    _engine.run(room, operands, (result,), given, inferred, private=out is None)
    return result
