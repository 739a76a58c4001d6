"""`split`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, SupportsIndex, Unpack, overload

import numpy as np
from numpy import ndarray

from anydml.core._json import short_repr
from anydml.core.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.functions import _arguments
from anydml.functions import _rules as rules
from anydml.functions import _types as t
from anydml.functions._blocks import Composed
from anydml.functions._dispatch import dispatch
from anydml.functions._function import Attributes, Call, Derivatives, FunctionSpec, Saved
from anydml.functions._library import Library
from anydml.libraries._torch import is_true
from anydml.ops.split import Split


def _prepare(
    lib: Library, x: Any, sections_or_sizes: Any, axis: Any, points: Any, near_equal: Any
) -> Call:
    data = lib.array(x, "x")
    number = _arguments.axis_of(axis, data)
    total = data.shape[number]
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
    return (data,), {"axis": number, "sizes": sizes}, False


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
    if _arguments.is_integer(value) or isinstance(value, str | bytes | dict | set):
        return False
    if not hasattr(value, "__len__"):
        return False
    try:
        return bool(getattr(value, "ndim", 1) > 0)
    except (TypeError, ValueError):  # a memoryview that was released, say
        return False


def _gradient(lib: Library, saved: Saved, grads: rules.Derived, needs: Any) -> rules.Derived:
    return rules.call(lib, "join", grads, axis=saved.attributes["axis"])


def _compose(lib: Library, operands: rules.Arrays, attributes: Attributes) -> rules.Arrays:
    (x,), axis = operands, attributes["axis"]
    before = (slice(None),) * axis
    slabs, start = [], 0
    for size in attributes["sizes"]:
        # PyTorch cannot batch a slice of everything, which is a view of no other shape.
        whole = size == x.shape[axis]
        slabs.append(x if whole else x[(*before, slice(start, start + size))])
        start = start + size
    return slabs


SPLIT: Final = FunctionSpec(
    Split,
    ("x",),
    {"axis": "integer", "sizes": "sizes"},
    _prepare,
    batch=rules.batch_along("split"),
    derivatives=Derivatives(_gradient, rules.linear("split")),
    bounds=lambda operands, a: (
        *(size >= 0 for size in a["sizes"]),
        sum(a["sizes"]) == operands[0].shape[a["axis"]],
    ),
    blocks=Composed(_compose),
)
_quick: Final = SPLIT.quick


class _Options(t.Options[t.Out], total=False):
    axis: SupportsIndex
    points: t.Integers | None
    near_equal: bool


@overload
def split(
    x: t.ArrayOf[t.Scalar], sections_or_sizes: t.Sections = ..., **options: Unpack[_Options[None]]
) -> tuple[t.NDArray[t.Scalar], ...]: ...
@overload
def split(
    x: t.Other, sections_or_sizes: t.Sections = ..., **options: Unpack[_Options[None]]
) -> tuple[t.Other, ...]: ...
@overload
def split(
    x: t.Operand,
    sections_or_sizes: t.Sections = ...,
    **options: Unpack[_Options[Sequence[t.Out | None]]],
) -> tuple[t.Out | Any, ...]: ...


def split(
    x: Any,
    sections_or_sizes: SupportsIndex | t.Integers | None = None,
    *more: Any,
    axis: SupportsIndex = 0,
    points: t.Integers | None = None,
    near_equal: bool = False,
    out: Any = None,
    **unknown: Any,
) -> Any:
    """Split `x` into copies of consecutive parts along an axis.

    Parameters
    ----------
    x : array_like
        Any rank of at least 1; numbers of any type.
    sections_or_sizes : int or sequence of int
        A number of equal sections, or the sizes of the parts, which add up to the axis.
    axis : int, optional
        0 by default.
    points : sequence of int, optional
        The start positions of all parts but the first, in ascending order, as in `numpy.split`;
        pass either these or `sections_or_sizes`. Negative positions count from the end, and
        points beyond the end count as the end.
    near_equal : bool, optional
        Whether the sizes of sections may differ by one, with the longer sections first, as in
        `numpy.array_split` and ``torch.tensor_split`` (False by default).
    out : sequence of arrays, optional
        The arrays to write to, one for each part. None means that the call allocates this part.

    Returns
    -------
    tuple of arrays
        Arrays of the same library as `x`. Never views of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument has an invalid type, shape or value.

    See Also
    --------
    join : the inverse.

    Notes
    -----
    From `Split`, ``DML_SPLIT_OPERATOR_DESC``; any rank, empty arrays and empty parts are
    extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.split([1, 2, 3, 4, 5, 6], [2, 1, 3])
    (array([1, 2]), array([3]), array([4, 5, 6]))
    >>> dml.split([1, 2, 3, 4, 5, 6], points=[2, 3])
    (array([1, 2]), array([3]), array([4, 5, 6]))
    >>> dml.split([1, 2, 3, 4, 5], 2, near_equal=True)
    (array([1, 2, 3]), array([4, 5]))
    """
    if type(x) is ndarray and points is None and near_equal is False and not (more or unknown):
        parts = _quick(out, x, sections_or_sizes, axis)
        if parts is not None:
            return parts
    arguments = (x, sections_or_sizes, axis, points, near_equal)
    return dispatch(SPLIT, arguments, out, more or unknown)
