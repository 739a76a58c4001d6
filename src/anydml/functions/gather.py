"""`gather`."""

from __future__ import annotations

from typing import Any, Final, SupportsIndex, Unpack, overload

from numpy import ndarray

from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Indexed
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._indexing import into_axes
from anydml.functions._library import Library
from anydml.ops.gather import Gather


def _prepare(lib: Library, x: Any, indices: Any, axis: Any, mode: Any) -> Call:
    data, lookup = rules.array_and_indices(lib, x, indices)
    if data.ndim == 0:  # one element on one axis
        data = lib.reshape(data, (1,))
    number = _arguments.axis_of(axis, data)
    lookup, clamp = into_axes(lib, mode, lookup, data, (number,))
    return (data, lookup), {"axis": number, "clamp": clamp}, False


def _batch(
    lib: Library, operands: rules.Arrays, dims: rules.Dims, size: Any, attributes: Attributes
) -> rules.Batched:
    """Call once for one array or one array of indices; else take tuples behind a batch axis."""
    x, indices = operands
    axis, clamp = attributes["axis"], attributes["clamp"]
    if dims[1] is None:
        moved = lib.moveaxis(x, (dims[0] or 0,), (0,))
        return rules.call(lib, "gather", (moved, indices), axis=axis + 1, clamp=clamp), [0]
    if dims[0] is None:
        moved = lib.moveaxis(indices, (dims[1],), (0,))
        return rules.call(lib, "gather", (x, moved), axis=axis, clamp=clamp), [axis]
    x, indices = rules.all_first(lib, operands, dims, size)
    rank = indices.ndim - 1
    tuples = lib.reshape(indices, (*indices.shape, 1))
    lined_up = lib.moveaxis(x, (axis + 1,), (1,))
    slices = rules.call(lib, "gather_nd", (lined_up, tuples), batch_dims=1, clamp=clamp)[0]
    behind = tuple(range(1, rank + 1))
    return [lib.moveaxis(slices, behind, tuple(i + axis for i in behind))], [0]


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Add up the gradients of each slice that was read."""
    grad, axis, shape = grads[0], saved.attributes["axis"], saved.shapes[0]
    indices = rules.clamped(lib, saved.operands[1], shape[axis], saved.attributes["clamp"])
    behind = tuple(range(axis, axis + indices.ndim))
    slices = lib.moveaxis(grad, behind, tuple(range(indices.ndim)))
    lined_up = (shape[axis], *shape[:axis], *shape[axis + 1 :])
    tuples = lib.reshape(indices, (*indices.shape, 1))
    (summed,) = rules.added_up(lib, lined_up, tuples, slices)
    return [lib.moveaxis(summed, (0,), (axis,)), None]


GATHER: Final = FunctionSpec(
    Gather,
    ("x", "indices"),
    {"axis": "integer", "clamp": "flag"},
    _prepare,
    as_arrays=rules.array_and_indices,
    batch=_batch,
    derivatives=Derivatives(_gradient, rules.linear("gather"), rules.saves_second),
    blocks=Indexed(lambda operands, a: (a["axis"], (None,), False)),
)
_quick: Final = GATHER.quick


class _Options(t.Options[t.Out], total=False):
    axis: SupportsIndex
    mode: t.GatherMode


@overload
def gather(
    x: t.ArrayOf[t.Scalar], indices: t.Operand, **options: Unpack[_Options[None]]
) -> t.NDArray[t.Scalar]: ...
@overload
def gather(x: t.Other, indices: t.Operand, **options: Unpack[_Options[None]]) -> t.Other: ...
@overload
def gather(x: t.Operand, indices: t.Operand, **options: Unpack[_Options[t.Out]]) -> t.Out: ...


def gather(
    x: Any,
    indices: Any,
    *more: Any,
    axis: Any = 0,
    mode: Any = "raise",
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

    Notes
    -----
    From `Gather`, ``DML_GATHER_OPERATOR_DESC``; natural ranks and empty arrays are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.gather([[1, 2], [3, 4], [5, 6]], [0, -1])
    array([[1, 2],
           [5, 6]])
    """
    if type(x) is ndarray and not (more or unknown):
        result = _quick(out, x, indices, axis, mode)
        if result is not None:
            return result
    return dispatch(GATHER, (x, indices, axis, mode), out, more or unknown)
