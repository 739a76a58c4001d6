"""Rules that several definitions share; each definition calls those that apply to it.

Tensors are pairs of a path and an `ArraySpec`. Omitted tensors, which are None, break no rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec
from anydml.core.rules import UNKNOWN, Rules, differ, known
from anydml.core.tensor import TensorDesc
from anydml.ops._numbers import span
from anydml.ops._shapes import Named


def equal(path: str, got: Any, expected: Any, why: str = "") -> Rules:
    """Check that a value is the expected one."""
    if differ(expected, got):
        yield Violation(path, f"{expected} ({why})" if why else f"{expected}", got)


def at_least(path: str, number: Any, minimum: int) -> Rules:
    """Check that a number is not too small."""
    if number < minimum:
        yield Violation(path, f"at least {minimum}", number)


def each_at_least(path: str, numbers: Sequence[Any], minimum: int) -> Rules:
    """Check that no number of an array is too small."""
    for i, number in enumerate(numbers):
        yield at_least(f"{path}[{i}]", number, minimum)


def at_most(path: str, number: Any, maximum: Any, why: str) -> Rules:
    """Check that a number is not too large."""
    if number > maximum:
        yield Violation(path, f"at most {maximum} ({why})", number)


def has_length(path: str, values: Sequence[Any], count: Any, why: str) -> Rules:
    """Check that an array has as many values as needed."""
    if values is not UNKNOWN and differ(count, len(values)):
        yield Violation(path, f"{count} values ({why})", len(values))


def within(path: str, number: Any, low: Any, high: Any, why: str) -> Rules:
    """Check that a number is in a range."""
    if not low <= number <= high:
        yield Violation(path, f"{span(low, high)} ({why})", number)


def if_within(number: Any, low: Any, high: Any) -> Any:
    """Return the number; unknown if it is not in the range."""
    return number if known(lambda: low <= number <= high) is True else UNKNOWN


def usable(values: Any, count: int, positive: bool = False) -> list[Any]:
    """The values of an array; unknown if there are more or fewer, or where one must be positive."""
    if values is UNKNOWN or len(values) != count:
        return [UNKNOWN] * count
    if not positive:
        return list(values)
    return [UNKNOWN if n is UNKNOWN or n < 1 else n for n in values]


# ---- types and sizes of several tensors ----------------------------------------------------------


def same_types(first: Named, *others: Named) -> Rules:
    """Check that all tensors have the DataType of the first one."""
    for path, spec in others:
        if first[1] is not None and spec is not None and differ(first[1].dtype, spec.dtype):
            rule = f"{type_name(first[1])} ({first[0]}.DataType)"
            yield Violation(f"{path}.DataType", rule, type_name(spec))


def same_ranks(first: Named, *others: Named) -> Rules:
    """Check that all tensors have the DimensionCount of the first one."""
    rank = rank_of(first[1])
    for path, spec in others:
        if spec is not None:
            why = f"{first[0]}.DimensionCount"
            yield equal(f"{path}.DimensionCount", rank_of(spec), rank, why)


def same_sizes(first: Named, *others: Named, free_axis: int | None = None) -> Rules:
    """Check that all tensors have the sizes of the first one, except on the free axis.

    Tensors of another DimensionCount are skipped: `same_ranks` reports these.
    """
    for other in others:
        yield _same_sizes(first, other, free_axis)


def _same_sizes(first: Named, other: Named, free_axis: int | None) -> Rules:
    if first[1] is None or other[1] is None or rank_of(first[1]) != rank_of(other[1]):
        return
    if free_axis is not None and not 0 <= free_axis < rank_of(first[1]):
        return  # `axis_in_range` reports it
    for i, (expected, got) in enumerate(zip(first[1].shape, other[1].shape, strict=True)):
        if i != free_axis and differ(expected, got):
            yield Violation(f"{other[0]}.Sizes[{i}]", f"{expected} ({first[0]}.Sizes[{i}])", got)


def same_shape(path: str, shape: Any, expected: Any, why: str) -> Rules:
    """Check that an array has the sizes that others imply."""
    if tuple(shape) != tuple(expected):
        yield Violation(f"{path}.Sizes", f"{tuple(expected)} ({why})", tuple(shape))


def same(first: Named, *others: Named) -> Rules:
    """Check that all tensors have the type and the sizes of the first one."""
    yield same_types(first, *others)
    yield same_ranks(first, *others)
    yield same_sizes(first, *others)


def broadcast_to(first: Named, *others: Named) -> Rules:
    """Check that each size is 1 or that of the first tensor; types are equal, and ranks."""
    yield same_types(first, *others)
    yield same_ranks(first, *others)
    for other in others:
        yield _broadcast_sizes(first, other)


def _broadcast_sizes(first: Named, other: Named) -> Rules:
    if first[1] is None or other[1] is None or rank_of(first[1]) != rank_of(other[1]):
        return
    for i, (full_size, size) in enumerate(zip(first[1].shape, other[1].shape, strict=True)):
        if differ(1, size) and differ(full_size, size):
            rule = "1" if full_size == 1 else f"1 or {full_size} ({first[0]}.Sizes[{i}])"
            yield Violation(f"{other[0]}.Sizes[{i}]", rule, size)


def shape_of(spec: ArraySpec | None) -> Any:
    """The sizes, which are unknown without a tensor."""
    return UNKNOWN if spec is None else spec.shape


def rank_of(spec: ArraySpec | None) -> Any:
    """The number of dimensions, which may be unknown."""
    return UNKNOWN if spec is None or spec.shape is UNKNOWN else len(spec.shape)


def size_at(spec: ArraySpec, axis: int) -> Any:
    """The size on an axis; unknown if there is no such axis."""
    rank = rank_of(spec)
    return known(lambda: spec.shape[axis] if -rank <= axis < rank else UNKNOWN)


def of_rank(spec: ArraySpec, rank: Any) -> ArraySpec:
    """The tensor; its sizes are unknown if it has another number of dimensions."""
    return spec if known(lambda: rank_of(spec) == rank) is True else ArraySpec(UNKNOWN, spec.dtype)


def type_name(spec: ArraySpec) -> str:
    """The name of the type on the page."""
    return str(spec.dtype).upper()


def type_of_scalar(field: str, data_type: Any, of: Named) -> Rules:
    """Check that the type of a scalar equals the type of the tensor."""
    if data_type is not UNKNOWN and of[1] is not None:
        dtype = data_type.numpy if data_type.bits >= 8 else None
        if differ(of[1].dtype, dtype):
            yield Violation(field, f"{type_name(of[1])} ({of[0]}.DataType)", data_type)


# ---- axes and counts of dimensions ---------------------------------------------------------------


def axis_in_range(axis: int, of: Named, field: str = "Axis") -> Rules:
    """Check that the axis, counted from the start, is a dimension of the tensor."""
    rank = rank_of(of[1])
    yield within(field, axis, 0, rank - 1, f"{of[0]}.DimensionCount is {rank}")


def distinct_axes(axes: Sequence[int], of: Named) -> Rules:
    """Check that each axis is a dimension of the tensor and occurs once."""
    for i, axis in enumerate(axes):
        yield axis_in_range(axis, of, f"Axes[{i}]")
        yield _not_repeated(axes, i)


def _not_repeated(axes: Sequence[int], i: int) -> Rules:
    known_axes = [axis for axis in axes[:i] if axis is not UNKNOWN]
    if axes[i] in known_axes:
        rule = f"an axis that is not repeated (Axes[{axes.index(axes[i])}] is the same)"
        yield Violation(f"Axes[{i}]", rule, axes[i])


def count_in_range(count: int, field: str, of: Named, minimum: int = 1) -> Rules:
    """Check a count of meaningful trailing dimensions, and that all sizes before them are 1."""
    path, rank = of[0], rank_of(of[1])
    if not minimum <= count <= rank:
        yield Violation(field, f"{span(minimum, rank)} ({path}.DimensionCount)", count)
        return
    for i, size in enumerate(of[1].shape[: rank - count] if of[1] else ()):
        yield equal(f"{path}.Sizes[{i}]", size, 1, f"not counted by {field} = {count}")


def trailing(tensor: TensorDesc, count: int) -> Any:
    """The last `count` sizes, or all sizes if there are fewer."""
    sizes = tensor.sizes
    return known(lambda: sizes[max(len(sizes) - max(count, 0), 0) :])


def number_of(scalar: int | float) -> int | float:
    """The scalar for kernels: a float, or a signed integer of 64 bits with the same bits."""
    if isinstance(scalar, int) and scalar >= 2**63:
        return scalar - 2**64
    return scalar


# ---- indices -------------------------------------------------------------------------------------


def indices_along(axis: int, data: ArraySpec, indices: ArraySpec) -> Rules:
    """Check that indices have the rank of the data and, except on the axis, at most its sizes."""
    if rank_of(indices) != rank_of(data):
        yield same_ranks(("InputTensor", data), ("IndicesTensor", indices))
        return
    for i, (have, limit) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if i != axis:
            yield at_most(f"IndicesTensor.Sizes[{i}]", have, limit, f"InputTensor.Sizes[{i}]")


def tuples(data: ArraySpec, indices: ArraySpec, batch: int) -> Rules:
    """Check that the batch sizes are equal, and that index tuples are not too long."""
    rank, own = rank_of(data), rank_of(indices)
    if own == 0:
        yield Violation("IndicesTensor.DimensionCount", "1 or more (tuples on the last axis)", 0)
        return
    limit = min(rank, own - 1)
    if not 0 <= batch <= limit:
        rule = f"{span(0, limit)} (smaller than the ranks of input and indices)"
        yield Violation("BatchDimensionCount", rule, batch)
        return
    for i in range(batch):
        why = f"InputTensor.Sizes[{i - rank}], a batch size"
        yield equal(f"IndicesTensor.Sizes[{i - own}]", indices.shape[i], data.shape[i], why)
    why = "the dimensions that tuples point into"
    yield at_most("IndicesTensor.Sizes[-1]", indices.shape[-1], rank - batch, why)


def indexed_axes(data: ArraySpec, indices: ArraySpec, batch: int) -> Any:
    """The axes that tuples point into; unknown if the tuples break a rule."""

    def axes() -> Any:
        end = batch + indices.shape[-1] if indices.shape else -1
        return tuple(range(batch, end)) if 0 <= batch <= end <= len(data.shape) else UNKNOWN

    return known(axes)


def something_to_clamp_to(
    attributes: Mapping[str, Any], data: ArraySpec, indices: ArraySpec, axes: tuple[int, ...]
) -> Rules:
    """Check that there is an element to which indices can be clamped."""
    if not attributes.get("clamp") or any(size == 0 for size in indices.shape):
        return
    for axis in axes:
        if data.shape[axis] == 0:
            got = f"none: axis {axis} has no elements"
            yield Violation("InputTensor", "at least one element (to clamp indices to)", got)
