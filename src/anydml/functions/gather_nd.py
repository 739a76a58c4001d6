"""`gather_nd`."""

from __future__ import annotations

from typing import Any, Final, SupportsIndex, Unpack, overload

from numpy import ndarray

from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Indexed, point_by_tuples
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Call, Derivatives, FunctionSpec, Saved
from anydml.functions._indexing import into_axes
from anydml.functions._library import Library
from anydml.ops.gather_nd import GatherND


def _prepare(lib: Library, x: Any, indices: Any, batch_dims: Any, mode: Any) -> Call:
    data, lookup = rules.array_and_indices(lib, x, indices)
    batch = _arguments.integer(batch_dims, "batch_dims")
    length = lookup.shape[-1] if lookup.ndim else 0
    axes = range(max(batch, 0), min(batch + length, data.ndim))  # of those that there are
    lookup, clamp = into_axes(lib, mode, lookup, data, axes)
    return (data, lookup), {"batch_dims": batch, "clamp": clamp}, False


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Add up the gradients of each block that was read."""
    grad, shape, indices = grads[0], saved.shapes[0], saved.operands[1]
    batch = saved.attributes["batch_dims"]
    if saved.attributes["clamp"] and indices.shape[-1]:
        axes = range(batch, batch + indices.shape[-1])
        columns = [
            rules.clamped(lib, indices[..., i], shape[axis], True) for i, axis in enumerate(axes)
        ]
        indices = lib.stack(columns, -1)
    tuples = rules.with_batches(lib, indices, batch)
    return [*rules.added_up(lib, shape, tuples, grad), None]


GATHER_ND: Final = FunctionSpec(
    GatherND,
    ("x", "indices"),
    {"batch_dims": "integer", "clamp": "flag"},
    _prepare,
    as_arrays=rules.array_and_indices,
    batch=rules.batch_along("gather_nd", "batch_dims"),
    derivatives=Derivatives(_gradient, rules.linear("gather_nd"), rules.saves_second),
    blocks=Indexed(lambda operands, a: point_by_tuples(operands, a["batch_dims"])),
)
_quick: Final = GATHER_ND.quick


class _Options(t.Options[t.Out], total=False):
    batch_dims: SupportsIndex
    mode: t.GatherMode


@overload
def gather_nd(
    x: t.ArrayOf[t.Scalar], indices: t.Operand, **options: Unpack[_Options[None]]
) -> t.NDArray[t.Scalar]: ...
@overload
def gather_nd(x: t.Other, indices: t.Operand, **options: Unpack[_Options[None]]) -> t.Other: ...
@overload
def gather_nd(x: t.Operand, indices: t.Operand, **options: Unpack[_Options[t.Out]]) -> t.Out: ...


def gather_nd(
    x: Any,
    indices: Any,
    *more: Any,
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
    scatter_nd : the inverse.

    Notes
    -----
    From `GatherND1`, ``DML_GATHER_ND1_OPERATOR_DESC``; natural ranks, empty arrays and t = 0 are
    extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.gather_nd([[0, 1], [2, 3]], [[1, 0], [0, -1]])
    array([2, 1])
    """
    if type(x) is ndarray and not (more or unknown):
        result = _quick(out, x, indices, batch_dims, mode)
        if result is not None:
            return result
    return dispatch(GATHER_ND, (x, indices, batch_dims, mode), out, more or unknown)
