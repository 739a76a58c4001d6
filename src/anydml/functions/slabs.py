"""`split` and `join` on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml._json import shown
from anydml.arrays import Array, adopt
from anydml.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.functions import _arguments, _engine
from anydml.ops.join import Join
from anydml.ops.split import Split
from anydml.threads import get_num_threads

_quick_split = _engine.quick(Split.KERNEL)
_quick_join = _engine.quick(Join.KERNEL)


def split(
    x: Any, sections_or_sizes: int | Sequence[int], *, axis: int = 0, out: Any = None
) -> tuple[Any, ...]:
    """Copies of consecutive slabs of `x` along an axis.

    Parameters
    ----------
    x : array_like
        Any rank of at least 1; numbers of any type.
    sections_or_sizes : int or sequence of int
        A number of equal sections, or the sizes of the slabs, which add up to the axis.
    axis : int, optional
        0 by default.
    out : sequence of arrays, optional
        Where to write, one array for each slab; None for one that is to be allocated.

    Returns
    -------
    tuple of arrays
        Of the kind that `x` is. They own their memory: none is a view of `x`.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    Split : the operator that this extends.
    join : the inverse.

    Notes
    -----
    From ``DML_SPLIT_OPERATOR_DESC``; any rank, empty arrays and empty slabs are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.split([1, 2, 3, 4, 5, 6], [2, 1, 3])
    (array([1, 2]), array([3]), array([4, 5, 6]))
    """
    if out is None:
        parts = _quick_split(None, x, sections_or_sizes, axis, get_num_threads())
        if parts is not None:
            return parts  # type: ignore[no-any-return]  # a tuple, made natively
    array, wrap = adopt(x, "x")
    number = _arguments.axis_of(axis, array)
    given = {"axis": number, "sizes": _sizes(sections_or_sizes, array.shape[number], number)}
    inferred = _engine.infer(Split, (array,), given)
    outs = _arguments.several(out, len(inferred.outputs), "one for each slab")
    results: list[Array] = []
    for i, (spec, target) in enumerate(zip(inferred.outputs, outs, strict=True)):
        part = _arguments.output(
            "split", target, f"out[{i}]", spec.shape, array.dtype, [("x", array)], what=f"slab {i}"
        )
        results.append(part)
    if out is not None:
        _arguments.apart(results, "out")
    private = all(target is None for target in outs)
    _engine.run(Split, (array,), results, given, inferred, private)
    pairs = zip(results, outs, strict=True)
    return tuple(_arguments.returned(result, target, wrap) for result, target in pairs)


def _sizes(sections_or_sizes: Any, total: int, axis: int) -> list[int]:
    name = "sections_or_sizes"
    given: Any = sections_or_sizes
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given[()]
    if _holds_several(given):
        # A list of its own: an item's own __index__ may change the caller's.
        members = _arguments.members(given, name)
        sizes = [_arguments.integer(s, f"{name}[{i}]") for i, s in enumerate(members)]
        if not sizes:
            raise ArgumentError(f"{name}: expected at least one size, got none")
        for i, size in enumerate(sizes):
            if size < 0:
                raise ArgumentError(
                    f"{name}[{i}]: expected a size of at least 0, got {shown(size)}"
                )
        return sizes
    sections = _arguments.integer(given, name)
    if sections < 1 or total % sections:
        raise ArgumentError(
            f"{name}: expected a divisor of {total} (the size of axis {axis} of x), "
            f"got {shown(sections)}"
        )
    try:
        return [total // sections] * sections
    except MemoryError:
        raise AllocationError("split", None, f"the list of {sections} slabs") from None


def _holds_several(value: Any) -> bool:
    if isinstance(value, str | bytes | dict | set) or not hasattr(value, "__len__"):
        return False
    try:
        return bool(getattr(value, "ndim", 1) > 0)
    except (TypeError, ValueError):  # a memoryview that was released, say
        return False


def join(arrays: Sequence[Any], *, axis: int = 0, out: Any = None) -> Any:
    """The arrays, one behind the other along an axis.

    Parameters
    ----------
    arrays : sequence of array_like
        At least one; of one type and, off the axis, of one shape.
    axis : int, optional
        0 by default.
    out : array, optional
        Where to write.

    Returns
    -------
    array
        Of the kind that the first array is; `out` where it is given.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument that does not fit.

    See Also
    --------
    Join : the operator that this extends.
    split : the inverse.

    Notes
    -----
    From ``DML_JOIN_OPERATOR_DESC``; any rank and empty arrays are extensions.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.join([[1, 2], [3], [4, 5]])
    array([1, 2, 3, 4, 5])
    """
    if out is None:
        result = _quick_join(None, arrays, axis, get_num_threads())
        if result is not None:
            return result
    if isinstance(arrays, str | bytes) or not hasattr(arrays, "__iter__"):
        raise ArgumentTypeError(f"arrays: expected a sequence of arrays, got {shown(arrays)}")
    given = _arguments.members(arrays, "arrays")
    if not given:
        raise ArgumentError("arrays: expected at least one, got none")
    first, wrap = adopt(given[0], "arrays[0]")
    number = _arguments.axis_of(axis, first, "arrays[0]")
    parts = [first]
    for i, value in enumerate(given[1:], 1):
        name = f"arrays[{i}]"
        part = adopt(value, name)[0]
        part = _arguments.same_type(part, value, name, first, "arrays[0]")
        parts.append(part)
    attributes = {"axis": number}
    inferred = _engine.infer(Join, parts, attributes)
    operands = [(f"arrays[{i}]", part) for i, part in enumerate(parts)]
    shape = inferred.outputs[0].shape
    result = _arguments.output("join", out, "out", shape, first.dtype, operands)
    _engine.run(Join, parts, (result,), attributes, inferred, private=out is None)
    return _arguments.returned(result, out, wrap)
