"""`split` and `join` on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy import ndarray

from anydml.functions import _arguments, _engine
from anydml.functions._attributes import members_of, split_attributes
from anydml.functions._dispatch import dispatch
from anydml.functions._keywords import unknown_keyword
from anydml.functions._specs import JOIN, SPLIT
from anydml.functions._types import (
    ArrayOf,
    Integers,
    NDArray,
    Operand,
    Other,
    Out,
    Plain,
    Scalar,
)
from anydml.libraries import Array, as_operand, as_type, check_dtype, promoted
from anydml.ops.join import Join
from anydml.ops.split import Split

_call_split = _engine.function_call(Split.KERNEL)
_call_join = _engine.function_call(Join.KERNEL)


@overload
def split(
    x: ArrayOf[Scalar],
    sections_or_sizes: SupportsIndex | Integers | None = ...,
    *,
    axis: SupportsIndex = ...,
    points: Integers | None = ...,
    near_equal: bool = ...,
    out: None = ...,
) -> tuple[NDArray[Scalar], ...]: ...


@overload
def split(
    x: Other,
    sections_or_sizes: SupportsIndex | Integers | None = ...,
    *,
    axis: SupportsIndex = ...,
    points: Integers | None = ...,
    near_equal: bool = ...,
    out: None = ...,
) -> tuple[Other, ...]: ...


@overload
def split(
    x: Plain,
    sections_or_sizes: SupportsIndex | Integers | None = ...,
    *,
    axis: SupportsIndex = ...,
    points: Integers | None = ...,
    near_equal: bool = ...,
    out: None = ...,
) -> tuple[NDArray[Any], ...]: ...


@overload
def split(
    x: Operand,
    sections_or_sizes: SupportsIndex | Integers | None = ...,
    *,
    axis: SupportsIndex = ...,
    points: Integers | None = ...,
    near_equal: bool = ...,
    out: Sequence[Out | None],
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
        parts = _call_split(None, x, sections_or_sizes, axis)
        if parts is not None:
            return parts  # type: ignore[no-any-return]  # a tuple, made natively
    arguments = (x, sections_or_sizes, axis, points, near_equal)
    return dispatch(SPLIT, arguments, out)  # type: ignore[no-any-return]  # a tuple


@SPLIT.for_memory
def _split(
    x: Any,
    sections_or_sizes: Any,
    axis: Any,
    points: Any = None,
    near_equal: Any = False,
    out: Any = None,
) -> Any:
    array, wrap = as_operand(x, "x")
    attributes = split_attributes(array, sections_or_sizes, axis, points, near_equal)
    inferred = _engine.infer(Split, (array,), attributes)
    outs = _arguments.unpack_out(out, len(inferred.outputs), "one for each part")
    results: list[Array] = []
    for i, (spec, target) in enumerate(zip(inferred.outputs, outs, strict=True)):
        part = _arguments.output(
            "split", target, f"out[{i}]", spec.shape, array.dtype, [("x", array)], what=f"slab {i}"
        )
        results.append(part)
    if out is not None:
        _arguments.check_disjoint(results, "out")
    _engine.run(Split, (array,), results, attributes, inferred)
    pairs = zip(results, outs, strict=True)
    return tuple(_arguments.wrap_result(result, target, wrap) for result, target in pairs)


@overload
def join(
    arrays: Sequence[ArrayOf[Scalar]],
    *,
    axis: SupportsIndex | None = ...,
    promote: bool = ...,
    out: None = ...,
) -> NDArray[Scalar]: ...


@overload
def join(
    arrays: Sequence[Other],
    *,
    axis: SupportsIndex | None = ...,
    promote: bool = ...,
    out: None = ...,
) -> Other: ...


@overload
def join(
    arrays: Sequence[Plain],
    *,
    axis: SupportsIndex | None = ...,
    promote: bool = ...,
    out: None = ...,
) -> NDArray[Any]: ...


@overload
def join(
    arrays: Sequence[Operand], *, axis: SupportsIndex | None = ..., promote: bool = ..., out: Out
) -> Out: ...


def join(
    arrays: Sequence[Any],
    *,
    axis: SupportsIndex | None = 0,
    promote: bool = False,
    out: Any = None,
    **unknown: Any,
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
    Join : the DirectML operator.
    split : the inverse.

    Notes
    -----
    From ``DML_JOIN_OPERATOR_DESC``; any rank and empty arrays are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.join([[1, 2], [3], [4, 5]])
    array([1, 2, 3, 4, 5])
    >>> dml.join([[1, 2], [0.5]], promote=True)
    array([1. , 2. , 0.5])
    """
    if unknown:
        raise unknown_keyword(join, unknown)
    is_list = type(arrays) is list or type(arrays) is tuple
    if is_list and arrays and type(arrays[0]) is ndarray and out is None and promote is False:
        result = _call_join(None, arrays, axis)
        if result is not None:
            return result
    members = members_of(arrays)
    return dispatch(JOIN, (members, axis, promote), out)


@JOIN.for_memory
def _join(arrays: Any, axis: Any, promote: Any = False, out: Any = None) -> Any:
    first, wrap = as_operand(arrays[0], "arrays[0]")
    parts = [first]
    parts += [as_operand(value, f"arrays[{i}]")[0] for i, value in enumerate(arrays[1:], 1)]
    if _arguments.flag(promote, "promote"):
        parts = _promoted(arrays[0], parts)
    else:
        parts[1:] = [
            _arguments.same_type(part, value, f"arrays[{i}]", first, "arrays[0]")
            for i, (part, value) in enumerate(zip(parts[1:], arrays[1:], strict=True), 1)
        ]
    if axis is None:
        parts = [_engine.scratch("join", partial(np.ravel, part)) for part in parts]
        number = 0
    else:
        number = _arguments.axis_of(axis, first, "arrays[0]")
    attributes = {"axis": number}
    inferred = _engine.infer(Join, parts, attributes)
    operands = [(f"arrays[{i}]", part) for i, part in enumerate(parts)]
    shape = inferred.outputs[0].shape
    result = _arguments.output("join", out, "out", shape, parts[0].dtype, operands)
    _engine.run(Join, parts, (result,), attributes, inferred)
    return _arguments.wrap_result(result, out, wrap)


def _promoted(first: Any, parts: Sequence[Array]) -> list[Array]:
    """The arrays as the type that the first one's library joins theirs into."""
    kind = promoted(first, [part.dtype for part in parts], "arrays")
    check_dtype(first, kind, "arrays")
    return [
        part if part.dtype == kind else as_type(part, kind, f"arrays[{i}]")
        for i, part in enumerate(parts)
    ]
