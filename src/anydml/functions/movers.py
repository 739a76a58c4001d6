"""`slice_window` and `cast` on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from anydml._json import shown
from anydml.arrays import Array, adopt
from anydml.dtypes import DataType
from anydml.errors import ArgumentTypeError
from anydml.functions import _arguments, _engine
from anydml.ops.cast import Cast
from anydml.ops.slice1 import Slice1


def cast(x: Any, dtype: Any, *, out: Any = None) -> Any:
    """`x` as another type, the same on every machine.

    A float becomes an integer without its fraction, and the nearest end of the range where it lies
    beyond; NaN becomes 0. An integer becomes a smaller one by its low bits. To a float everything
    is rounded once, to the nearest, ties to even. A NaN has no sign and payload afterwards, but
    between equal types bits are copied.

    Parameters
    ----------
    x : array_like
        Any rank; numbers or bools, no complex ones.
    dtype : DataType, str or dtype
        ``"float16"``, ``"FLOAT16"``, NumPy's or the array library's own type.
    out : array, optional
        Where to write.

    Returns
    -------
    array, shape of x
        Of the kind that `x` is; `out` where it is given. It owns its memory.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    Cast : the operator that this extends.

    Notes
    -----
    From ``DML_CAST_OPERATOR_DESC``; any rank, empty arrays and bools are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.cast([1.9, -1.5, 300.0, float("nan")], "uint8")
    array([  1,   0, 255,   0], dtype=uint8)
    """
    data, wrap = adopt(x, "x")
    data = _with_numbers(data)
    given = {"to": _type_named(dtype).numpy.name}
    inferred = _engine.infer(Cast, (data,), given)
    (spec,) = inferred.outputs
    result = _arguments.output(
        "cast", out, "out", spec.shape, _engine.dtype_of(spec), [("x", data)]
    )
    _engine.run(Cast, (data,), (result,), given, inferred, private=out is None)
    return wrap(result) if out is None else out


def slice_window(
    x: Any,
    starts: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    *,
    out: Any = None,
) -> Any:
    """A copy of a window of `x`, with a stride along each axis.

    Along an axis, elements are taken from the beginning of the window where the stride is positive,
    and from its end where it is negative: all that the stride reaches inside the window.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    starts : sequence of int
        Where the window begins on each axis, from 0 to its size.
    sizes : sequence of int
        How far it extends, inside `x`; 0 gives an empty result.
    strides : sequence of int, optional
        Elements to advance, not 0; 1 by default.
    out : array, optional
        Where to write.

    Returns
    -------
    array, shape ceil(sizes / abs(strides))
        Of the kind that `x` is; `out` where it is given. It owns its memory.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    Slice1 : the operator that this extends.

    Notes
    -----
    From ``DML_SLICE1_OPERATOR_DESC``; any rank and empty windows are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.slice_window([[1, 2, 3, 4], [5, 6, 7, 8]], (0, 1), (2, 3), (-1, 2))
    array([[6, 8],
           [2, 4]])
    """
    data, wrap = adopt(x, "x")
    given: dict[str, Any] = {
        "starts": _integers(starts, "starts"),
        "sizes": _integers(sizes, "sizes"),
        "strides": (1,) * data.ndim if strides is None else _integers(strides, "strides"),
    }
    inferred = _engine.infer(Slice1, (data,), given)
    (spec,) = inferred.outputs
    dtype = _engine.dtype_of(spec)
    result = _arguments.output("slice_window", out, "out", spec.shape, dtype, [("x", data)])
    given["counts"] = spec.shape
    _engine.run(Slice1, (data,), (result,), given, inferred, private=out is None)
    return wrap(result) if out is None else out


def _integers(values: Any, name: str) -> tuple[int, ...]:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ArgumentTypeError(f"{name}: expected a sequence of integers, got {shown(values)}")
    try:
        found = list(islice(values, _arguments.MOST_AXES + 1))  # which may have no end
    except (TypeError, ValueError, SystemError) as error:  # the last one: NumPy's odd sequences
        raise ArgumentTypeError(f"{name}: {error}") from error
    return tuple(_arguments.integer(value, f"{name}[{i}]") for i, value in enumerate(found))


def _with_numbers(array: Array) -> Array:
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if array.dtype.name not in _arguments.TYPED:
        raise ArgumentTypeError(
            f"x: expected one of bool, {', '.join(_arguments.TYPED)}, got {array.dtype}"
        )
    return array


def _type_named(dtype: Any) -> DataType:
    name = _name_of(dtype).removeprefix(DataType.prefix()).lower()
    if name not in _arguments.TYPED:
        accepted = ", ".join(_arguments.TYPED)
        raise ArgumentTypeError(f"dtype: expected one of {accepted}, got {shown(dtype)}")
    return DataType[name.upper()]


def _name_of(dtype: Any) -> str:
    if isinstance(dtype, str | DataType):
        return str(dtype)
    if type(dtype).__module__.partition(".")[0] == "torch":
        return str(dtype).removeprefix("torch.")
    try:
        return "" if dtype is None else np.dtype(dtype).name
    except (TypeError, ValueError, RecursionError):
        return ""
