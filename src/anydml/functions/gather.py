"""`gather`, `gather_elements` and `gather_nd` on arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml._json import meant, shown
from anydml.arrays import Array, adopt
from anydml.errors import ArgumentError
from anydml.functions import _arguments, _engine
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND
from anydml.threads import get_num_threads

_quick_gather = _engine.quick(Gather.KERNEL)
_quick_elements = _engine.quick(GatherElements.KERNEL)
_quick_nd = _engine.quick(GatherND.KERNEL)

_CLAMP = {"raise": False, "clamp": True}


def gather(x: Any, indices: Any, *, axis: int = 0, mode: str = "raise", out: Any = None) -> Any:
    """The slices of `x` that the indices name along an axis.

    For axis 0, ``y[i, j, ..] = x[indices[i, j], ..]``. Negative indices count from the end of the
    axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type. Rank 0 is one element on one axis.
    indices : array_like of int
        Any shape.
    axis : int, optional
        0 by default.
    mode : {"raise", "clamp"}, optional
        What an index outside the axis does: raise (default), or read the nearest element, as the
        page documents it.
    out : array, optional
        Where to write.

    Returns
    -------
    array, shape x.shape[:axis] + indices.shape + x.shape[axis + 1:]
        Of the kind that `x` is; `out` where it is given.

    Raises
    ------
    IndexOutOfRangeError
        An index outside the axis (``mode="raise"``); `out` is as it was.
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    Gather : the operator that this extends.

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
    if out is None:
        result = _quick_gather(None, x, indices, axis, mode, get_num_threads())
        if result is not None:
            return result
    data, wrap = adopt(x, "x")
    lookup = _arguments.index_array(indices)
    data = data if data.ndim else data.reshape(1)
    number = _arguments.axis_of(axis, data)
    result = _gathered(Gather, data, lookup, out, axis=number, clamp=_clamps(mode))
    return _arguments.returned(result, out, wrap)


def gather_elements(
    x: Any, indices: Any, *, axis: int = 0, mode: str = "raise", out: Any = None
) -> Any:
    """The elements of `x` that the indices name along an axis, one for each index.

    For axis 0, ``y[i, j, ..] = x[indices[i, j, ..], j, ..]``: what `numpy.take_along_axis` and
    ``torch.gather`` do. Negative indices count from the end of the axis.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type. Rank 0 is one element on one axis.
    indices : array_like of int
        The rank of `x`. Off the axis, sizes up to those of `x`; on the axis, any. For an `x` of
        rank 0, any shape.
    axis : int, optional
        0 by default.
    mode : {"raise", "clamp"}, optional
        What an index outside the axis does: raise (default), or read the nearest element.
    out : array, optional
        Where to write.

    Returns
    -------
    array, shape of the indices
        Of the kind that `x` is; `out` where it is given.

    Raises
    ------
    IndexOutOfRangeError
        An index outside the axis (``mode="raise"``); `out` is as it was.
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    GatherElements : the operator that this extends.
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
    if out is None:
        result = _quick_elements(None, x, indices, axis, mode, get_num_threads())
        if result is not None:
            return result
    data, wrap = adopt(x, "x")
    lookup = _arguments.index_array(indices)
    shape = lookup.shape
    number = _arguments.axis_of(axis, data if data.ndim else data.reshape(1))
    if data.ndim == 0:  # one element on one axis, for indices of any shape
        lookup = lookup if lookup.ndim else lookup.reshape(1)
        data = np.broadcast_to(data, (1, *lookup.shape[1:]))
    result = _gathered(GatherElements, data, lookup, out, shape, axis=number, clamp=_clamps(mode))
    return _arguments.returned(result, out, wrap)


def gather_nd(
    x: Any, indices: Any, *, batch_dims: int = 0, mode: str = "raise", out: Any = None
) -> Any:
    """The elements or blocks of `x` that index tuples name.

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
    mode : {"raise", "clamp"}, optional
        What an index outside its axis does: raise (default), or read the nearest element.
    out : array, optional
        Where to write.

    Returns
    -------
    array, shape indices.shape[:-1] + x.shape[batch_dims + t:]
        Of the kind that `x` is; `out` where it is given.

    Raises
    ------
    IndexOutOfRangeError
        A coordinate outside its axis (``mode="raise"``); `out` is as it was.
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    GatherND1 : the operator that this extends.
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
    if out is None:
        result = _quick_nd(None, x, indices, batch_dims, mode, get_num_threads())
        if result is not None:
            return result
    data, wrap = adopt(x, "x")
    lookup = _arguments.index_array(indices)
    batch = _arguments.integer(batch_dims, "batch_dims")
    result = _gathered(GatherND, data, lookup, out, batch_dims=batch, clamp=_clamps(mode))
    return _arguments.returned(result, out, wrap)


def _gathered(
    room: _engine.Room,
    data: Array,
    lookup: Array,
    out: Any,
    shape: tuple[int, ...] | None = None,
    **given: Any,
) -> Array:
    # `shape`: of the result, where an axis was added for the kernel.
    inferred = _engine.infer(room, (data, lookup), given)
    (spec,) = inferred.outputs
    operands = [("x", data), ("indices", lookup)]
    dtype = _engine.dtype_of(spec)
    wanted = spec.shape if shape is None else shape
    result = _arguments.output(room.KERNEL, out, "out", wanted, dtype, operands)
    filled = result.reshape(spec.shape) if result.ndim == 0 else result
    _engine.run(room, (data, lookup), (filled,), given, inferred, private=out is None)
    return result


def _clamps(mode: Any) -> bool:
    if not isinstance(mode, str) or mode not in _CLAMP:
        accepted = ", ".join(map(repr, _CLAMP))
        raise ArgumentError(
            f"mode: expected one of {accepted}, got {shown(mode)}{meant(mode, _CLAMP)}"
        )
    return _CLAMP[mode]
