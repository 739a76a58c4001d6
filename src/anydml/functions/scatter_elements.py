"""`scatter_elements`."""

from __future__ import annotations

from typing import Any, Final, SupportsIndex, Unpack, overload

from numpy import ndarray

from anydml.core.errors import ArgumentError
from anydml.functions import _arguments, _scatter
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Indexed, point_along
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Call, FunctionSpec
from anydml.functions._library import Library
from anydml.ops.scatter import Scatter


def _prepare(
    lib: Library,
    x: Any,
    indices: Any,
    updates: Any,
    axis: Any,
    reduction: Any,
    include_self: Any,
    broadcast: Any,
) -> Call:
    data, lookup, values = _scatter.as_arrays(lib, x, indices, updates)
    is_scalar = data.ndim == 0
    number = _arguments.axis_of(axis, lib.reshape(data, (1,)) if is_scalar else data)
    if _arguments.flag(broadcast, "broadcast") and not is_scalar:
        _arguments.same_rank(data, lookup)
        shape = (*data.shape[:number], lookup.shape[number], *data.shape[number + 1 :])
        lookup = _arguments.broadcast_with(lookup, shape, "indices", lib.broadcast_to)
        values = _arguments.broadcast_with(values, shape, "updates", lib.broadcast_to)
    elif values.ndim == 0:
        values = lib.broadcast_to(values, lookup.shape)
    if is_scalar:  # one element on one axis
        if values.shape != lookup.shape:
            raise ArgumentError(
                f"updates: expected shape {tuple(lookup.shape)} (the shape of indices), "
                f"got {tuple(values.shape)}"
            )
        data, lookup, values = (lib.reshape(array, (-1,)) for array in (data, lookup, values))
    attributes = {
        "axis": number,
        "reduction": _scatter.name_of(reduction),
        "include_self": _arguments.flag(include_self, "include_self"),
    }
    return (data, lookup, values), attributes, is_scalar


SCATTER_ELEMENTS: Final = FunctionSpec(
    Scatter,
    ("x", "indices", "updates"),
    {"axis": "integer", **_scatter.KINDS},
    _prepare,
    as_arrays=_scatter.as_arrays,
    batch=rules.batch_along("scatter_elements"),
    derivatives=_scatter.DERIVATIVES,
    program=_scatter.program,
    check=_scatter.check_type,
    blocks=Indexed(point_along, writes=True),
)
_quick: Final = SCATTER_ELEMENTS.quick


class _Options(t.Options[t.Out], total=False):
    axis: SupportsIndex
    reduction: t.Reduction | None
    include_self: bool
    broadcast: bool


@overload
def scatter_elements(
    x: t.ArrayOf[t.Scalar],
    indices: t.Operand,
    updates: t.Operand,
    **options: Unpack[_Options[None]],
) -> t.NDArray[t.Scalar]: ...
@overload
def scatter_elements(
    x: t.Other, indices: t.Operand, updates: t.Operand, **options: Unpack[_Options[None]]
) -> t.Other: ...
@overload
def scatter_elements(
    x: t.Operand, indices: t.Operand, updates: t.Operand, **options: Unpack[_Options[t.Out]]
) -> t.Out: ...


def scatter_elements(
    x: Any,
    indices: Any,
    updates: Any,
    *more: Any,
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
        is rounded down. Sums, products and means accumulate 16-bit floats in float32 (means also
        integers of up to 32 bits in int64) and round once. By default, the update replaces the
        element.
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
    gather_elements : the inverse.

    Notes
    -----
    From `Scatter`, ``DML_SCATTER_OPERATOR_DESC``; any rank, empty arrays, indices smaller than `x`
    off the axis and reductions are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.scatter_elements([0.0, 1.0, 2.0, 3.0, 4.0], [3, 1, 3, 0], [5.0, 6.0, 7.0, 8.0])
    array([8., 6., 2., 7., 4.])
    >>> dml.scatter_elements([0, 0, 0], [1, 1, -1], [5, 6, 7], reduction="add")
    array([ 0, 11,  7])
    """
    if type(x) is ndarray and include_self is True and broadcast is False and not (more or unknown):
        result = _quick(out, x, indices, updates, axis, reduction)
        if result is not None:
            return result
    arguments = (x, indices, updates, axis, reduction, include_self, broadcast)
    return dispatch(SCATTER_ELEMENTS, arguments, out, more or unknown)
