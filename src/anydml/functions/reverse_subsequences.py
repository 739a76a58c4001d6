"""`reverse_subsequences`."""

from __future__ import annotations

from typing import Any, Final, SupportsIndex, overload

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Array, Library, call_kernel
from anydml.libraries._types import dtype_name
from anydml.ops.reverse_subsequences import ReverseSubsequences


def _check_lengths(operands: rules.Arrays, attributes: Attributes) -> None:
    """Refuse lengths that are no integers."""
    _, lengths = operands
    if lengths.dtype.kind not in "iu" and lengths.size:
        raise ArgumentTypeError(f"lengths: expected integers, got {dtype_name(lengths.dtype)}")


def _refuse_negative(counts: Array) -> None:
    """Refuse lengths below 0."""
    if counts.dtype.kind == "i" and counts.size and (minimum := int(counts.min())) < 0:
        raise ArgumentError(f"lengths: expected 0 or more, got {short_repr(minimum)}")


def _prepare(lib: Library, x: Any, lengths: Any, axis: Any) -> Call:
    data, counts = rules.array_and_lengths(lib, x, lengths)
    number = _arguments.axis_of(axis, data)
    shape = (*data.shape[:number], 1, *data.shape[number + 1 :])
    counts = _arguments.broadcast_with(counts, shape, "lengths", lib.broadcast_to)
    return (data, counts), {"axis": number}, False


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Reverse the gradient."""
    operands = (grads[0], saved.operands[1])
    return [*rules.call(lib, "reverse_subsequences", operands, **saved.attributes), None]


def _program(
    lib: Library, spec: FunctionSpec, operands: rules.Arrays, attributes: Attributes
) -> rules.Arrays:
    """Call the kernel; where values are not known yet, a length below 0 means none."""
    x, lengths = operands
    if not lib.in_memory and lengths.dtype.kind == "i":
        lengths = lib.clip(lengths, 0, None)
    return call_kernel(lib, spec, (x, lengths), attributes)


def _in_blocks(lib: Library, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    """Gather the elements at positions that are computed from the lengths."""
    (x, lengths), axis = operands, attributes["axis"]
    places = lib.numbers(x, axis)
    reversed_places = lib.positions(lib.clip(lengths, None, x.shape[axis])) - 1 - places
    places = lib.where(reversed_places >= 0, reversed_places, places)
    return rules.call(lib, "gather_elements", (x, places), axis=axis, clamp=False)


REVERSE_SUBSEQUENCES: Final = FunctionSpec(
    ReverseSubsequences,
    ("x", "lengths"),
    {"axis": "integer"},
    _prepare,
    as_arrays=rules.array_and_lengths,
    batch=rules.batch_along("reverse_subsequences"),
    derivatives=Derivatives(_gradient, rules.linear("reverse_subsequences"), rules.saves_second),
    program=_program,
    check=_check_lengths,
    blocks=_in_blocks,
    value_checks={1: _refuse_negative},
)


@overload
def reverse_subsequences(
    x: t.ArrayOf[t.Scalar], lengths: t.Operand, *, axis: SupportsIndex, out: None = ...
) -> t.NDArray[t.Scalar]: ...
@overload
def reverse_subsequences(
    x: t.Other, lengths: t.Operand, *, axis: SupportsIndex, out: None = ...
) -> t.Other: ...
@overload
def reverse_subsequences(
    x: t.Operand, lengths: t.Operand, *, axis: SupportsIndex, out: t.Out = ...
) -> t.Out: ...


def reverse_subsequences(
    x: Any, lengths: Any, *more: Any, axis: Any, out: Any = None, **unknown: Any
) -> Any:
    """Reverse the first elements of each sequence along an axis.

    Parameters
    ----------
    x : array_like
        Rank 1 or more; elements of any type.
    lengths : array_like of int
        The number of elements of each sequence to reverse, 0 or more. A larger number reverses the
        whole sequence. The shape is that of `x` with 1 on the axis, or one that can be broadcast to
        it. On a GPU, lengths must be int32, int64, uint32 or uint64, and a negative length reverses
        nothing.
    axis : int
        The axis of the sequences; a negative one counts from the end.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape of x
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    Notes
    -----
    From `ReverseSubsequences`, ``DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC``; any rank, any type,
    lengths of any integer type and lengths that are broadcast are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.reverse_subsequences([[1, 2, 3, 4], [5, 6, 7, 8]], [[3], [2]], axis=1)
    array([[3, 2, 1, 4],
           [6, 5, 7, 8]])
    """
    return dispatch(REVERSE_SUBSEQUENCES, (x, lengths, axis), out, more or unknown)
