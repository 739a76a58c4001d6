"""`gather_elements`."""

from __future__ import annotations

from typing import Any, Final, SupportsIndex, Unpack, overload

from numpy import ndarray

from anydml.core.errors import ArgumentError
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Indexed, point_along
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Call, Derivatives, FunctionSpec, Saved
from anydml.functions._indexing import into_axes
from anydml.functions._library import Array, Library
from anydml.ops.gather_elements import GatherElements


def _broadcast(lib: Library, axis: int, data: Array, lookup: Array) -> tuple[Array, Array]:
    """Broadcast data and indices to common sizes off the axis."""
    _arguments.same_rank(data, lookup)
    off = [(*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (data, lookup)]
    try:
        common = lib.broadcast_shapes(*off)
    except (ValueError, RuntimeError):  # PyTorch's is a RuntimeError
        raise ArgumentError(
            f"indices: expected a shape that can be broadcast with {tuple(data.shape)} except on "
            f"axis {axis}, got {tuple(lookup.shape)}"
        ) from None
    first, second = (
        lib.broadcast_to(a, (*common[:axis], a.shape[axis], *common[axis + 1 :]))
        for a in (data, lookup)
    )
    return first, second


def _prepare(lib: Library, x: Any, indices: Any, axis: Any, mode: Any, broadcast: Any) -> Call:
    data, lookup = rules.array_and_indices(lib, x, indices)
    number = _arguments.axis_of(axis, data if data.ndim else lib.reshape(data, (1,)))
    if _arguments.flag(broadcast, "broadcast") and data.ndim:
        data, lookup = _broadcast(lib, number, data, lookup)
    is_scalar = data.ndim == 0 and lookup.ndim == 0
    if data.ndim == 0:  # one element on one axis, for indices of any shape
        lookup = lib.reshape(lookup, (1,)) if is_scalar else lookup
        data = lib.broadcast_to(data, (1, *lookup.shape[1:]))
    lookup, clamp = into_axes(lib, mode, lookup, data, (number,))
    return (data, lookup), {"axis": number, "clamp": clamp}, is_scalar


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Add up the gradients of each element that was read."""
    grad, axis, shape = grads[0], saved.attributes["axis"], saved.shapes[0]
    indices = rules.clamped(lib, saved.operands[1], shape[axis], saved.attributes["clamp"])
    return [*rules.added_up(lib, shape, indices, grad, axis=axis), None]


GATHER_ELEMENTS: Final = FunctionSpec(
    GatherElements,
    ("x", "indices"),
    {"axis": "integer", "clamp": "flag"},
    _prepare,
    as_arrays=rules.array_and_indices,
    batch=rules.batch_along("gather_elements"),
    derivatives=Derivatives(_gradient, rules.linear("gather_elements"), rules.saves_second),
    blocks=Indexed(point_along),
)
_quick: Final = GATHER_ELEMENTS.quick


class _Options(t.Options[t.Out], total=False):
    axis: SupportsIndex
    mode: t.GatherMode
    broadcast: bool


@overload
def gather_elements(
    x: t.ArrayOf[t.Scalar], indices: t.Operand, **options: Unpack[_Options[None]]
) -> t.NDArray[t.Scalar]: ...
@overload
def gather_elements(
    x: t.Other, indices: t.Operand, **options: Unpack[_Options[None]]
) -> t.Other: ...
@overload
def gather_elements(
    x: t.Operand, indices: t.Operand, **options: Unpack[_Options[t.Out]]
) -> t.Out: ...


def gather_elements(
    x: Any,
    indices: Any,
    *more: Any,
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
    scatter_elements : the inverse.

    Notes
    -----
    From `GatherElements`, ``DML_GATHER_ELEMENTS_OPERATOR_DESC``; any rank, empty arrays and indices
    smaller than `x` off the axis are extensions.

    Examples
    --------
    The values of `top_k` are what its indices gather:

    >>> import anydml as dml
    >>> import numpy as np
    >>> x = np.array([[3.0, 9.0, 5.0]])
    >>> dml.gather_elements(x, dml.top_k(x, 2).indices, axis=-1)
    array([[9., 5.]])
    """
    if type(x) is ndarray and broadcast is False and not (more or unknown):
        result = _quick(out, x, indices, axis, mode)
        if result is not None:
            return result
    return dispatch(GATHER_ELEMENTS, (x, indices, axis, mode, broadcast), out, more or unknown)
