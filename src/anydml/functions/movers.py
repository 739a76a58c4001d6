"""`slice_window` on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml._json import shown
from anydml.arrays import adopt
from anydml.errors import ArgumentTypeError
from anydml.functions import _arguments, _engine
from anydml.ops.slice1 import Slice1


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
    return _arguments.returned(result, out, wrap)


def _integers(values: Any, name: str) -> tuple[int, ...]:
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ArgumentTypeError(f"{name}: expected a sequence of integers, got {shown(values)}")
    return tuple(_arguments.integer(value, f"{name}[{i}]") for i, value in enumerate(values))
