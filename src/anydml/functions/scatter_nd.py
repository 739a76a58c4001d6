"""`scatter_nd`."""

from __future__ import annotations

from typing import Any, Final, Unpack, overload

from numpy import ndarray

from anydml.functions import _arguments, _scatter
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Indexed, point_by_tuples
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, FunctionSpec
from anydml.functions._library import Library
from anydml.ops.scatter_nd import ScatterND


def _prepare(
    lib: Library, x: Any, indices: Any, updates: Any, reduction: Any, include_self: Any
) -> Call:
    data, lookup, values = _scatter.as_arrays(lib, x, indices, updates)
    if values.ndim == 0 and lookup.ndim:  # one update stands for all
        shape = (*lookup.shape[:-1], *data.shape[lookup.shape[-1] :])
        values = lib.broadcast_to(values, shape)
    attributes = {
        "reduction": _scatter.name_of(reduction),
        "include_self": _arguments.flag(include_self, "include_self"),
    }
    return (data, lookup, values), attributes, False


def _batch(
    lib: Library, operands: rules.Arrays, dims: rules.Dims, size: Any, attributes: Attributes
) -> rules.Batched:
    """Call once with tuples that begin with their member of the batch."""
    x, indices, updates = rules.all_first(lib, operands, dims, size)
    inputs = (x, rules.with_batches(lib, indices, 1), updates)
    return rules.call(lib, "scatter_nd", inputs, **attributes), [0]


SCATTER_ND: Final = FunctionSpec(
    ScatterND,
    ("x", "indices", "updates"),
    _scatter.KINDS,
    _prepare,
    as_arrays=_scatter.as_arrays,
    batch=_batch,
    derivatives=_scatter.DERIVATIVES,
    program=_scatter.program,
    check=_scatter.check_type,
    blocks=Indexed(lambda operands, a: point_by_tuples(operands, 0), writes=True),
)
_quick: Final = SCATTER_ND.quick


class _Options(t.Options[t.Out], total=False):
    reduction: t.Reduction | None
    include_self: bool


@overload
def scatter_nd(
    x: t.ArrayOf[t.Scalar],
    indices: t.Operand,
    updates: t.Operand,
    **options: Unpack[_Options[None]],
) -> t.NDArray[t.Scalar]: ...
@overload
def scatter_nd(
    x: t.Other, indices: t.Operand, updates: t.Operand, **options: Unpack[_Options[None]]
) -> t.Other: ...
@overload
def scatter_nd(
    x: t.Operand, indices: t.Operand, updates: t.Operand, **options: Unpack[_Options[t.Out]]
) -> t.Out: ...


def scatter_nd(
    x: Any,
    indices: Any,
    updates: Any,
    *more: Any,
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
        How to combine each update with the element; see `scatter_elements`. By default, the update
        replaces the element.
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
    gather_nd : the inverse.

    Notes
    -----
    From `ScatterND`, ``DML_SCATTER_ND_OPERATOR_DESC``; natural ranks instead of padded ones, empty
    arrays, t = 0 and reductions are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.scatter_nd([1, 2, 3, 4, 5, 6, 7, 8], [[4], [3], [1], [7]], [9, 10, 11, 12])
    array([ 1, 11,  3, 10,  9,  6,  7, 12])
    """
    if type(x) is ndarray and include_self is True and not (more or unknown):
        result = _quick(out, x, indices, updates, reduction)
        if result is not None:
            return result
    return dispatch(
        SCATTER_ND, (x, indices, updates, reduction, include_self), out, more or unknown
    )
