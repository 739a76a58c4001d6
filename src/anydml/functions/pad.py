"""`pad`."""

from __future__ import annotations

from typing import Any, Final, overload

import numpy as np
from numpy import ndarray

from anydml._native import PADDING_MODES
from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import ArgumentError
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Composed
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Array, Library, call_kernel
from anydml.libraries._types import dtype_name
from anydml.ops._numbers import bits_of
from anydml.ops.padding1 import Padding1

PADDING_SYNONYMS: Final = {"reflect": "reflection"}
"""NumPy's names of padding modes."""


_OTHER_PADDING_MODES: Final = {
    "replicate": "edge", "nearest": "edge", "circular": "wrap", "mirror": "reflect",
    "zeros": "constant",
}  # fmt: skip
"""Names of PyTorch and SciPy."""


def padding_mode(mode: Any) -> str:
    """The operator's name of a mode."""
    name = PADDING_SYNONYMS.get(mode, mode) if isinstance(mode, str) else mode
    if not isinstance(name, str) or name not in PADDING_MODES:
        known = (*PADDING_MODES, *PADDING_SYNONYMS)
        use = _OTHER_PADDING_MODES.get(mode) if isinstance(mode, str) else None
        hint = f"; use {use!r}" if use else did_you_mean(mode, known)
        accepted = ", ".join(map(repr, known))
        raise ArgumentError(f"mode: expected one of {accepted}, got {short_repr(mode)}{hint}")
    return str(name)


def paddings(width: Any, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many elements in front of and behind each axis."""
    if _arguments.is_number(width):
        both = (_arguments.integer(width, "pad_width"),) * rank
        return both, both
    widths = _arguments.take_at_most(
        width, "pad_width", "an integer, a pair, or a pair for each axis"
    )
    if len(widths) == 2 and all(
        _arguments.is_number(m) or not hasattr(m, "__iter__") for m in widths
    ):
        start, end = _arguments.integers(widths, "pad_width")
        return (start,) * rank, (end,) * rank
    if len(widths) != rank:
        raise ArgumentError(f"pad_width: expected {rank} pairs (the rank of x), got {len(widths)}")
    pairs = [_arguments.integers(member, f"pad_width[{i}]") for i, member in enumerate(widths)]
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            raise ArgumentError(f"pad_width[{i}]: expected a pair, got {len(pair)} values")
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def constant_of(value: Any, of: Any, mode: Any) -> Array:
    """The padding value of mode "constant"."""
    if dtype_name(of.dtype) == "float8_e8m0fnu" and mode != "constant":  # which has no zero
        return np.zeros((), of.dtype)
    return _arguments.number(value, "constant", of)


def _prepare(lib: Library, x: Any, pad_width: Any, mode: Any, constant: Any) -> Call:
    data = lib.array(x, "x")
    starts, ends = paddings(pad_width, data.ndim)
    attributes = {
        "mode": padding_mode(mode), "constant": constant, "starts": starts, "ends": ends,
    }  # fmt: skip
    return (data,), attributes, False


def _widen(attributes: Attributes, size: Any) -> Attributes:
    starts, ends = (0, *attributes["starts"]), (0, *attributes["ends"])
    return {**attributes, "starts": starts, "ends": ends}


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    """Leave out the padding; where it repeats elements, add it up axis by axis."""
    grad, shape = grads[0], saved.shapes[0]
    starts, ends, mode = (saved.attributes[name] for name in ("starts", "ends", "mode"))
    if mode == "constant":
        window = {"starts": starts, "sizes": shape, "strides": (1,) * len(shape)}
        return rules.call(lib, "slice_window", (grad,), **window)
    for axis, size in enumerate(shape):
        attributes = {"mode": mode, "constant": 0, "starts": (starts[axis],), "ends": (ends[axis],)}
        (positions,) = rules.call(lib, "pad", (lib.arange(size, grad),), **attributes)
        rest = (*grad.shape[:axis], *grad.shape[axis + 1 :])
        tuples = lib.reshape(positions, (*positions.shape, 1))
        updates = lib.moveaxis(grad, (axis,), (0,))
        (summed,) = rules.added_up(lib, (size, *rest), tuples, updates)
        grad = lib.moveaxis(summed, (0,), (axis,))
    return [grad]


def _compose(lib: Library, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    """Pad axis by axis, with one value or with slices of the array."""
    (x,), mode = operands, attributes["mode"]
    value = constant_of(attributes["constant"], x, mode)[()]
    pairs = zip(attributes["starts"], attributes["ends"], strict=True)
    for axis, (start, end) in enumerate(pairs):
        if (start, end) == (0, 0):
            continue
        if mode == "constant":
            before, behind = (lib.fill(x, axis, size, value) for size in (start, end))
        else:
            size = x.shape[axis]
            padded = pad(np.arange(size), ((start, end),), mode)
            before, behind = (
                lib.take(x, padded[:start], axis),
                lib.take(x, padded[start + size :], axis),
            )
        x = lib.concatenate([before, x, behind], axis)
    return [x]


def _program(
    lib: Library, spec: FunctionSpec, operands: rules.Arrays, attributes: Attributes
) -> rules.Arrays:
    """Call the kernel with the bits of the constant."""
    constant = constant_of(attributes["constant"], operands[0], attributes["mode"])
    value = bits_of(constant, operands[0].dtype)
    return call_kernel(lib, spec, operands, {**attributes, "value": value})


PAD: Final = FunctionSpec(
    Padding1,
    ("x",),
    {"mode": "word", "constant": "number", "starts": "sizes", "ends": "sizes"},
    _prepare,
    batch=rules.batch_by("pad", _widen),
    derivatives=Derivatives(_gradient, rules.linear("pad", constant=0)),
    bounds=lambda operands, a: [size >= 0 for size in (*a["starts"], *a["ends"])],
    program=_program,
    blocks=Composed(_compose),
)
_quick: Final = PAD.quick


@overload
def pad(
    x: t.ArrayOf[t.Scalar],
    pad_width: Any,
    mode: t.PadMode = ...,
    constant: Any = ...,
    *,
    out: None = ...,
) -> t.NDArray[t.Scalar]: ...
@overload
def pad(
    x: t.Other, pad_width: Any, mode: t.PadMode = ..., constant: Any = ..., *, out: None = ...
) -> t.Other: ...
@overload
def pad(
    x: t.Operand, pad_width: Any, mode: t.PadMode = ..., constant: Any = ..., *, out: t.Out = ...
) -> t.Out: ...


def pad(
    x: Any,
    pad_width: Any,
    mode: str = "constant",
    constant: Any = 0,
    *more: Any,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Add elements at both ends of each axis of `x`.

    Parameters
    ----------
    x : array_like
        Any rank; elements of any type.
    pad_width : int, pair of int, or sequence of pairs
        The number of elements to add before and after an axis: for all axes, or a pair for each.
    mode : str
        ``"constant"``, ``"edge"``, ``"reflection"`` (or ``"reflect"``), ``"symmetric"`` or
        ``"wrap"``.
    constant : number
        The padding value for mode ``"constant"``. A float type rounds it; an integer type accepts
        integers in its range, also written as 1.0.
    out : array, optional
        The array to write to.

    Returns
    -------
    array, each size is that of x plus both paddings
        An array of the same library as `x`, or `out`. Never a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    Notes
    -----
    From `Padding1`, ``DML_PADDING1_OPERATOR_DESC``; any rank, any type and empty arrays are
    extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.pad([1, 2, 3, 4], (2, 3), "reflection")
    array([3, 2, 1, 2, 3, 4, 3, 2, 1])
    """
    if type(x) is ndarray and not (more or unknown):
        result = _quick(out, x, pad_width, mode, constant)
        if result is not None:
            return result
    return dispatch(PAD, (x, pad_width, mode, constant), out, more or unknown)
