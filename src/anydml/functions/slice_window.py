"""`slice_window`."""

from __future__ import annotations

from typing import Any, Final, overload

from numpy import ndarray

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Composed
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Library
from anydml.ops.slice1 import Slice1, first_places


def _window(starts: Any, sizes: Any, strides: Any, rank: int) -> dict[str, Any]:
    """Return the operator's attributes for the arguments of `slice_window`."""
    steps = (1,) * rank if strides is None else _arguments.integers(strides, "strides")
    for i, step in enumerate(steps):
        if type(step) is int and abs(step) >= 2**63:
            raise ArgumentError(
                f"strides[{i}]: expected {1 - 2**63}..{2**63 - 1}, got {short_repr(step)}"
            )
    return {
        "starts": _arguments.integers(starts, "starts"),
        "sizes": _arguments.integers(sizes, "sizes"),
        "strides": steps,
    }


def _prepare(lib: Library, x: Any, starts: Any, sizes: Any, strides: Any) -> Call:
    data = lib.array(x, "x")
    return (data,), _window(starts, sizes, strides, data.ndim), False


def _widen(attributes: Attributes, size: Any) -> Attributes:
    first = {"starts": 0, "sizes": size, "strides": 1}
    return {name: (first[name], *values) for name, values in attributes.items()}


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Place the gradient axis by axis: it grows from the elements of the window to the axis."""
    grad, shape = grads[0], saved.shapes[0]
    for axis, (start, size, stride) in enumerate(zip(*saved.attributes.values(), strict=True)):
        first, step = start, abs(stride)
        if stride < 0:  # from the end of the window
            grad = lib.flip(grad, axis)
            first = start + (size - 1) % step if size else start
        full_shape = (*grad.shape[:axis], shape[axis], *grad.shape[axis + 1 :])
        grad = lib.place(grad, full_shape, axis, first, step)
    return [grad]


def _compose(lib: Library, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    """Slice along each axis."""
    slices = []
    windows = zip(first_places(attributes), attributes["sizes"], attributes["strides"], strict=True)
    for first, size, stride in windows:
        end = first + stride * -(-size // abs(stride))
        slices.append(slice(first, end if end >= 0 else None, stride) if size else slice(0, 0))
    return [operands[0][tuple(slices)]]


def _bounds(operands: rules.Arrays, attributes: Attributes) -> list[Any]:
    bounds = []
    windows = zip(attributes["starts"], attributes["sizes"], operands[0].shape, strict=False)
    for start, size, limit in windows:
        bounds += [start >= 0, start <= limit, size >= 0, size <= limit - start]
    return bounds


SLICE_WINDOW: Final = FunctionSpec(
    Slice1,
    ("x",),
    {"starts": "sizes", "sizes": "sizes", "strides": "integers"},
    _prepare,
    batch=rules.batch_by("slice_window", _widen),
    derivatives=Derivatives(_gradient, rules.linear("slice_window")),
    bounds=_bounds,
    blocks=Composed(_compose),
)
_quick: Final = SLICE_WINDOW.quick


@overload
def slice_window(
    x: t.ArrayOf[t.Scalar],
    starts: t.Integers,
    sizes: t.Integers,
    strides: t.Steps = ...,
    *,
    out: None = ...,
) -> t.NDArray[t.Scalar]: ...
@overload
def slice_window(
    x: t.Other, starts: t.Integers, sizes: t.Integers, strides: t.Steps = ..., *, out: None = ...
) -> t.Other: ...
@overload
def slice_window(
    x: t.Operand, starts: t.Integers, sizes: t.Integers, strides: t.Steps = ..., *, out: t.Out = ...
) -> t.Out: ...


def slice_window(
    x: Any,
    starts: Any,
    sizes: Any,
    strides: Any = None,
    *more: Any,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Copy a window of `x`, with a stride along each axis.

    A positive stride starts at the beginning of the window, a negative one at its end. All elements
    that the stride reaches inside the window are taken.

    Parameters
    ----------
    x : array_like
        Any rank; numbers of any type.
    starts : sequence of int
        The start of the window on each axis, from 0 to the size of the axis.
    sizes : sequence of int
        The extent of the window on each axis, inside `x`; 0 gives an empty result.
    strides : sequence of int, optional
        The step between elements, not 0; 1 by default.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, shape ceil(sizes / abs(strides))
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    Notes
    -----
    From `Slice1`, ``DML_SLICE1_OPERATOR_DESC``; any rank and empty windows are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.slice_window([[1, 2, 3, 4], [5, 6, 7, 8]], (0, 1), (2, 3), (-1, 2))
    array([[6, 8],
           [2, 4]])
    """
    if type(x) is ndarray and not (more or unknown):
        result = _quick(out, x, starts, sizes, strides)
        if result is not None:
            return result
    return dispatch(SLICE_WINDOW, (x, starts, sizes, strides), out, more or unknown)
