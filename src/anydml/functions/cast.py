"""`cast`."""

from __future__ import annotations

from typing import Any, Final, overload

from numpy import ndarray

from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Blockwise
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Library, call_with_numbers
from anydml.ops.cast import Cast


def _prepare(lib: Library, x: Any, dtype: Any) -> Call:
    return (lib.array(x, "x"),), {"to": lib.value_type(dtype)}, False


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    return rules.call(lib, "cast", (grads[0],), to=saved.dtypes[0])


CAST: Final = FunctionSpec(
    Cast,
    ("x",),
    {"to": "type"},
    _prepare,
    batch=rules.batch_by("cast"),
    derivatives=Derivatives(_gradient, rules.linear("cast")),
    results=("to",),
    program=call_with_numbers,
    check=lambda operands, a: _arguments.check_type(operands[0], _arguments.ORDERED),
    blocks=Blockwise(),
)
_quick: Final = CAST.quick


@overload
def cast(
    x: t.ArrayOf[Any], dtype: t.TypeOf[t.Scalar], *, out: None = ...
) -> t.NDArray[t.Scalar]: ...
@overload
def cast(x: t.ArrayOf[Any], dtype: t.GivenType, *, out: None = ...) -> t.NDArray[Any]: ...
@overload
def cast(x: t.Other, dtype: t.GivenType, *, out: None = ...) -> t.Other: ...
@overload
def cast(x: t.Operand, dtype: t.GivenType, *, out: t.Out = ...) -> t.Out: ...


def cast(x: Any, dtype: Any, *more: Any, out: Any = None, **unknown: Any) -> Any:
    """Convert `x` to another type, with the same result on every machine.

    A float is truncated towards zero and limited to the range of an integer type; NaN becomes 0.
    An integer is converted to a smaller integer type by keeping its low bits. A conversion to a
    float rounds once, to nearest, ties to even. A NaN becomes the canonical NaN of the type. Equal
    types copy the bits.

    Parameters
    ----------
    x : array_like
        Any rank; real numbers or bools.
    dtype : DataType, str or dtype
        ``"float16"``, ``"FLOAT16"``, NumPy's or the array library's own type.
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
    From `Cast`, ``DML_CAST_OPERATOR_DESC``; any rank, empty arrays and bools are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.cast([1.9, -1.5, 300.0, float("nan")], "uint8")
    array([  1,   0, 255,   0], dtype=uint8)
    """
    if type(x) is ndarray and not (more or unknown):
        result = _quick(out, x, dtype)
        if result is not None:
            return result
    return dispatch(CAST, (x, dtype), out, more or unknown)
