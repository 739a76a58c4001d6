"""`split`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, SupportsIndex, Unpack, overload

from numpy import ndarray

from anydml.functions import _engine
from anydml.functions import _rules as rules
from anydml.functions._attributes import split_attributes
from anydml.functions._blocks import Composed
from anydml.functions._dispatch import dispatch
from anydml.functions._function import (
    Attribute,
    Attributes,
    Call,
    Derivatives,
    FunctionSpec,
    Library,
    Saved,
)
from anydml.functions._keywords import unknown_keyword
from anydml.functions._types import (
    ArrayOf,
    Integers,
    NDArray,
    Operand,
    Options,
    Other,
    Out,
    Plain,
    Scalar,
    Sections,
)
from anydml.ops.split import Split

_quick = _engine.function_call(Split.KERNEL)


def _prepare(
    lib: Library, x: Any, sections_or_sizes: Any, axis: Any, points: Any, near_equal: Any
) -> Call:
    data = lib.array(x, "x")
    number, sizes = split_attributes(data, sections_or_sizes, axis, points, near_equal)
    return Call((data,), {"axis": number, "sizes": sizes})


def _gradient(
    lib: Library, saved: Saved, grads: rules.Derived, needs: Sequence[bool]
) -> rules.Derived:
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
    (Attribute("axis", "integer"), Attribute("sizes", "sizes")),
    _prepare,
    rules.one_array,
    batch=rules.batch_along("split"),
    derivatives=Derivatives(_gradient, rules.linear("split")),
    bounds=lambda operands, a: (
        *(size >= 0 for size in a["sizes"]),
        sum(a["sizes"]) == operands[0].shape[a["axis"]],
    ),
    blocks=Composed(_compose),
)


class _Options(Options[Out], total=False):
    axis: SupportsIndex
    points: Integers | None
    near_equal: bool


@overload
def split(
    x: ArrayOf[Scalar], sections_or_sizes: Sections = ..., **options: Unpack[_Options[None]]
) -> tuple[NDArray[Scalar], ...]: ...


@overload
def split(
    x: Other, sections_or_sizes: Sections = ..., **options: Unpack[_Options[None]]
) -> tuple[Other, ...]: ...


@overload
def split(
    x: Plain, sections_or_sizes: Sections = ..., **options: Unpack[_Options[None]]
) -> tuple[NDArray[Any], ...]: ...


@overload
def split(
    x: Operand, sections_or_sizes: Sections = ..., **options: Unpack[_Options[Sequence[Out | None]]]
) -> tuple[Out | Any, ...]: ...


def split(
    x: Any,
    sections_or_sizes: SupportsIndex | Integers | None = None,
    *,
    axis: SupportsIndex = 0,
    points: Integers | None = None,
    near_equal: bool = False,
    out: Any = None,
    **unknown: Any,
) -> tuple[Any, ...]:
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
    Split : the DirectML operator.
    join : the inverse.

    Notes
    -----
    From ``DML_SPLIT_OPERATOR_DESC``; any rank, empty arrays and empty parts are extensions.

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
    if unknown:
        raise unknown_keyword(split, unknown)
    if type(x) is ndarray and out is None and points is None and near_equal is False:
        parts = _quick(None, x, sections_or_sizes, axis)
        if parts is not None:
            return parts  # type: ignore[no-any-return]  # a tuple, made natively
    arguments = (x, sections_or_sizes, axis, points, near_equal)
    return dispatch(SPLIT, arguments, out)  # type: ignore[no-any-return]  # a tuple
