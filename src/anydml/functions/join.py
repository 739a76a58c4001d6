"""`join`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, SupportsIndex, Unpack, overload

from numpy import ndarray

from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Composed
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Array, Library
from anydml.ops.join import Join


def _as_arrays(lib: Library, arrays: Any, axis: Any = 0, promote: Any = False) -> tuple[Array, ...]:
    members = _arguments.members_of(arrays)
    if _arguments.flag(promote, "promote"):
        return tuple(lib.promoted(members, "arrays"))
    first = lib.array(members[0], "arrays[0]")
    others = enumerate(members[1:], 1)
    return first, *(lib.same_type(x, first, f"arrays[{i}]", "arrays[0]") for i, x in others)


def _prepare(lib: Library, arrays: Any, axis: Any, promote: Any) -> Call:
    parts = _as_arrays(lib, arrays, axis, promote)
    if axis is None:
        parts = tuple(lib.reshape(part, (-1,)) for part in parts)
    number = 0 if axis is None else _arguments.axis_of(axis, parts[0], "arrays[0]")
    return parts, {"axis": number}, False


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    axis = saved.attributes["axis"]
    sizes = [shape[axis] for shape in saved.shapes]
    return rules.call(lib, "split", (grads[0],), axis=axis, sizes=sizes)


JOIN: Final = FunctionSpec(
    Join,
    ("arrays",),
    {"axis": "integer"},
    _prepare,
    as_arrays=_as_arrays,
    batch=rules.batch_along("join"),
    derivatives=Derivatives(_gradient, rules.linear("join")),
    results=("arrays",),
    blocks=Composed(lambda lib, operands, a: [lib.concatenate(operands, a["axis"])]),
)
_quick: Final = JOIN.quick


class _Options(t.Options[t.Out], total=False):
    axis: SupportsIndex | None
    promote: bool


@overload
def join(
    arrays: Sequence[t.ArrayOf[t.Scalar]], **options: Unpack[_Options[None]]
) -> t.NDArray[t.Scalar]: ...
@overload
def join(arrays: Sequence[t.Other], **options: Unpack[_Options[None]]) -> t.Other: ...
@overload
def join(arrays: Sequence[t.Operand], **options: Unpack[_Options[t.Out]]) -> t.Out: ...


def join(
    arrays: Any, *more: Any, axis: Any = 0, promote: Any = False, out: Any = None, **unknown: Any
) -> Any:
    """Concatenate arrays along an axis.

    Parameters
    ----------
    arrays : sequence of array_like
        At least one array. All have the same type, and the same shape except along the axis.
    axis : int or None, optional
        0 by default. None joins the flattened arrays.
    promote : bool, optional
        Whether to promote arrays of different types to one type, by the rules of the first array's
        library. Otherwise (False), different types are rejected.
    out : array, optional
        The array to write to.

    Returns
    -------
    array
        An array of the same library as the first array, or `out`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    split : the inverse.

    Notes
    -----
    From `Join`, ``DML_JOIN_OPERATOR_DESC``; any rank and empty arrays are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.join([[1, 2], [3], [4, 5]])
    array([1, 2, 3, 4, 5])
    >>> dml.join([[1, 2], [0.5]], promote=True)
    array([1. , 2. , 0.5])
    """
    is_list = type(arrays) is list or type(arrays) is tuple
    if (
        is_list
        and arrays
        and type(arrays[0]) is ndarray
        and promote is False
        and not (more or unknown)
    ):
        result = _quick(out, arrays, axis)
        if result is not None:
            return result
    members = _arguments.members_of(arrays)
    return dispatch(JOIN, (members, axis, promote), out, more or unknown)
