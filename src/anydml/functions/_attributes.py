"""The arguments of the array functions as attributes of their operators.

Everything here works on whatever has a shape and a type, be it lazy or traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from anydml._native import INDEX_MODES, MOST_ELEMENTS, NUMBERS, PADDING_MODES
from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.functions import _arguments
from anydml.libraries import MOST_AXES, Array, as_numpy, dtype_name, is_symbol, is_true, type_of

# What can be ordered, and what can be compared with zero.
ORDERED: Final = ("bool", *NUMBERS)

COMPARED: Final = (*ORDERED, "complex64", "complex128")

PADDING_SYNONYMS: Final = {"reflect": "reflection"}
"""NumPy's names of padding modes."""

_OTHER_PADDING_MODES: Final = {"replicate": "edge", "circular": "wrap"}  # PyTorch's names


def check_size_and_fill(size: Any, fill_value: Any, limits: Any) -> tuple[int, int]:
    """Check ``size=`` and ``fill_value=``.

    `limits` are those of the coordinates' type, as `numpy.iinfo` gives them.
    """
    rows = _arguments.integer(size, "size")
    if not 0 <= rows <= MOST_ELEMENTS:
        raise ArgumentError(f"size: expected 0..2^48 rows, got {short_repr(rows)}")
    fill = _arguments.integer(fill_value, "fill_value")
    if not limits.min <= fill <= limits.max:
        raise ArgumentError(
            f"fill_value: expected a value that {limits.dtype} can hold, got {short_repr(fill)}"
        )
    return rows, fill


def check_type(array: Any, accepted: tuple[str, ...]) -> None:
    """Refuse an operand of a type that the function does not take."""
    if dtype_name(array.dtype) not in accepted:
        raise ArgumentTypeError(
            f"x: expected one of {', '.join(accepted)}, got {dtype_name(array.dtype)}"
        )


def indexed_axes(lookup: Any, batch: int, rank: int) -> range:
    """The axes that tuples of indices point into, of those that there are."""
    length = lookup.shape[-1] if lookup.ndim else 0
    return range(max(batch, 0), min(batch + length, rank))


def broadcast_indexed(
    axis: int, data: Any, lookup: Any, broadcast: Callable[..., Any] = np.broadcast_shapes
) -> list[tuple[int, ...]]:
    """The shapes that data and indices are broadcast to: common sizes off the axis."""
    _arguments.same_rank(data, lookup)
    off = [(*a.shape[:axis], 1, *a.shape[axis + 1 :]) for a in (data, lookup)]
    try:
        common = broadcast(*off)
    except (ValueError, RuntimeError):  # PyTorch's is a RuntimeError
        raise ArgumentError(
            f"indices: expected a shape that can be broadcast with {tuple(data.shape)} except on "
            f"axis {axis}, got {tuple(lookup.shape)}"
        ) from None
    return [(*common[:axis], a.shape[axis], *common[axis + 1 :]) for a in (data, lookup)]


def check_mode(mode: Any, lookup: Any, data: Any, axes: Sequence[int]) -> None:
    """Reject unknown modes, and modes that need an element on an empty axis."""
    if not isinstance(mode, str) or mode not in INDEX_MODES:
        accepted = ", ".join(map(repr, INDEX_MODES))
        raise ArgumentError(
            f"mode: expected one of {accepted}, got "
            f"{short_repr(mode)}{did_you_mean(mode, INDEX_MODES)}"
        )
    if mode in ("raise", "clamp"):  # clamping: the operator's own rules
        return
    for axis in axes:
        if data.shape[axis] == 0 and 0 not in lookup.shape:
            raise ArgumentError(
                f"x: expected an element for mode {mode!r}, got none: axis {axis} has no elements"
            )


def check_scalar(lookup: Any, values: Any) -> None:
    """Refuse updates of one element that have not the shape of the indices."""
    if values.shape != lookup.shape:
        raise ArgumentError(
            f"updates: expected shape {tuple(lookup.shape)} (the shape of indices), "
            f"got {tuple(values.shape)}"
        )


def updates_shape(axis: int, data: Any, lookup: Any) -> tuple[int, ...]:
    """The shape that indices and updates are broadcast to: the sizes of the data off the axis."""
    _arguments.same_rank(data, lookup)
    return (*data.shape[:axis], lookup.shape[axis], *data.shape[axis + 1 :])


def split_attributes(
    array: Any, sections_or_sizes: Any, axis: Any, points: Any, near_equal: Any
) -> tuple[int, list[int]]:
    """Return the axis and the sizes of the slabs of `split`."""
    number = _arguments.axis_of(axis, array)
    total = array.shape[number]
    near = _arguments.flag(near_equal, "near_equal")
    if points is None:
        if sections_or_sizes is None:
            raise ArgumentTypeError(
                "sections_or_sizes: expected an integer (a number of sections), the sizes of the "
                "parts, or points=, got None"
            )
        sizes = _sizes(sections_or_sizes, total, number, near)
    elif sections_or_sizes is None:
        sizes = _between(points, total)
    else:
        raise ArgumentError("points: expected sections_or_sizes or points, got both")
    return number, sizes


def _sizes(sections_or_sizes: Any, total: int, axis: int, near_equal: bool) -> list[int]:
    name = "sections_or_sizes"
    value: Any = sections_or_sizes
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if _holds_several(value):
        # A list of its own: an item's own __index__ may change the caller's.
        members = _arguments.members(value, name)
        sizes = [_arguments.integer(s, f"{name}[{i}]") for i, s in enumerate(members)]
        if not sizes:
            raise ArgumentError(f"{name}: expected at least one size, got none")
        return sizes
    sections = _arguments.integer(value, name)
    if near_equal and sections < 1:
        raise ArgumentError(f"{name}: expected at least 1 section, got {short_repr(sections)}")
    if sections < 1 or (total % sections and not near_equal):
        raise ArgumentError(
            f"{name}: expected a divisor of {total} (the size of axis {axis} of x), "
            f"or near_equal=True, got {short_repr(sections)}"
        )
    try:
        longer = total % sections
        return [total // sections + 1] * longer + [total // sections] * (sections - longer)
    except MemoryError:
        raise AllocationError("split", None, f"the list of {sections} slabs") from None


def _between(points: Any, total: int) -> list[int]:
    """The sizes of the slabs that begin and end at these points."""
    if not _holds_several(points):
        raise ArgumentTypeError(
            f"points: expected a sequence of integers, got {short_repr(points)}"
        )
    members = _arguments.members(points, "points")
    integers = [_arguments.integer(point, f"points[{i}]") for i, point in enumerate(members)]
    points = [point if is_true(point >= 0) else max(point + total, 0) for point in integers]
    ends = [*(min(point, total) for point in points), total]
    starts = [0, *ends[:-1]]
    for i, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if not is_true(end >= start):
            raise ArgumentError(
                f"points[{i}]: expected a value of at least points[{i - 1}], "
                f"got {short_repr(integers[i])} after {short_repr(integers[i - 1])}"
            )
    return [end - start for start, end in zip(starts, ends, strict=True)]


def _holds_several(value: Any) -> bool:
    if is_integer(value) or isinstance(value, str | bytes | dict | set):
        return False
    if not hasattr(value, "__len__"):
        return False
    try:
        return bool(getattr(value, "ndim", 1) > 0)
    except (TypeError, ValueError):  # a memoryview that was released, say
        return False


def members_of(arrays: Any) -> list[Any]:
    """Return the members of the list that `join` takes, at least one."""
    if isinstance(arrays, str | bytes) or not hasattr(arrays, "__iter__"):
        raise ArgumentTypeError(f"arrays: expected a sequence of arrays, got {short_repr(arrays)}")
    members = _arguments.members(arrays, "arrays")
    if not members:
        raise ArgumentError("arrays: expected at least one, got none")
    return members


def window(starts: Any, sizes: Any, strides: Any, rank: int) -> dict[str, Any]:
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


def type_named(dtype: Any) -> np.dtype[Any]:
    """Return the type that `cast` converts to."""
    name = _arguments.type_name(dtype)
    if name not in NUMBERS:
        accepted = ", ".join(NUMBERS)
        use = "; use x != 0" if name == "bool" else did_you_mean(dtype, NUMBERS)
        raise ArgumentTypeError(f"dtype: expected one of {accepted}, got {short_repr(dtype)}{use}")
    return type_of(name)


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
    if _is_number(width):
        both = (_arguments.integer(width, "pad_width"),) * rank
        return both, both
    widths = _arguments.take_at_most(
        width, "pad_width", "an integer, a pair, or a pair for each axis"
    )
    if len(widths) == 2 and all(_is_number(m) or not hasattr(m, "__iter__") for m in widths):
        start, end = _arguments.integers(widths, "pad_width")
        return (start,) * rank, (end,) * rank
    if len(widths) != rank:
        raise ArgumentError(f"pad_width: expected {rank} pairs (the rank of x), got {len(widths)}")
    pairs = [_arguments.integers(member, f"pad_width[{i}]") for i, member in enumerate(widths)]
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            raise ArgumentError(f"pad_width[{i}]: expected a pair, got {len(pair)} values")
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs)


def _is_number(value: Any) -> bool:
    """Whether it stands for one integer; arrays of rank 0 have ``__len__``, too."""
    if is_integer(value):
        return True
    if not hasattr(value, "__index__"):
        return False
    return not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def normalize_repeats(data: Any, repeats: Any) -> tuple[Any, tuple[int, ...]]:
    """Return the array with as many axes as there are repeats, and a repeat for each axis."""
    counts = _repeats(repeats)
    missing = len(counts) - data.ndim
    if data.ndim > MOST_AXES:
        raise ArgumentError(f"x: expected at most {MOST_AXES} axes, got {data.ndim}")
    if len(counts) > MOST_AXES:
        raise ArgumentError(f"repeats: expected at most {MOST_AXES} values, got {len(counts)}")
    if missing > 0:
        data = data.reshape((1,) * missing + data.shape)
    return data, (1,) * -missing + counts


def _repeats(repeats: Any) -> tuple[int, ...]:
    if _is_number(repeats):
        return (_arguments.integer(repeats, "repeats"),)
    found = _arguments.take_at_most(repeats, "repeats", "an integer or a sequence of integers")
    return tuple(_arguments.integer(value, f"repeats[{i}]") for i, value in enumerate(found))


def is_integer(value: Any) -> bool:
    """Whether it is an integer, or a symbol for one, of which a tracer can ask nothing else."""
    return type(value) is int or is_symbol(value)


def constant_of(value: Any, of: Any, mode: Any) -> Array:
    """The padding value of mode "constant"."""
    if dtype_name(of.dtype) == "float8_e8m0fnu" and mode != "constant":  # which has no zero
        return np.zeros((), of.dtype)
    array = _arguments.same_type(as_numpy(value, "constant"), value, "constant", of)
    if array.ndim:
        raise ArgumentError(f"constant: expected one number, got shape {array.shape}")
    return array


def refuse_negative(counts: Array) -> None:
    """Refuse lengths below 0."""
    if counts.dtype.kind == "i" and counts.size and (minimum := int(counts.min())) < 0:
        raise ArgumentError(f"lengths: expected 0 or more, got {short_repr(minimum)}")


def check_lengths(array: Any) -> None:
    """Refuse lengths that are no integers."""
    if array.dtype.kind not in "iu" and array.size:
        raise ArgumentTypeError(f"lengths: expected integers, got {dtype_name(array.dtype)}")
