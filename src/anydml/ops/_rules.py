"""Predicates that several definitions need; which of them hold, each definition says itself."""

from __future__ import annotations

from collections.abc import Iterator

from anydml.dtypes import DataType
from anydml.errors import Violation
from anydml.ops._descriptor import Attributes
from anydml.ops._numbers import span
from anydml.program import ArraySpec
from anydml.tensor import TensorDesc

Named = tuple[str, TensorDesc]
"""A tensor with the path that a message gives it."""


def same_data_type(first: Named, *others: Named) -> Iterator[Violation]:
    """All have the first one's DataType."""
    for path, tensor in others:
        if tensor.data_type is not first[1].data_type:
            rule = f"{first[1].data_type} ({first[0]}.DataType)"
            yield Violation(f"{path}.DataType", rule, tensor.data_type)


def same_sizes(first: Named, other: Named, free_axis: int) -> Iterator[Violation]:
    """The other has the first one's sizes, except on the free axis.

    Says nothing where the DimensionCounts differ, or nothing is the axis: other rules do.
    """
    rank = first[1].dimension_count
    if rank != other[1].dimension_count or not 0 <= free_axis < rank:
        return
    for i, (expected, got) in enumerate(zip(first[1].sizes, other[1].sizes, strict=True)):
        if i != free_axis and expected != got:
            rule = f"{expected} ({first[0]}.Sizes[{i}])"
            yield Violation(f"{other[0]}.Sizes[{i}]", rule, got)


def axis_in_range(axis: int, of: Named) -> Iterator[Violation]:
    """The axis is one of the tensor's dimensions."""
    yield from _axis(axis, of[1].dimension_count, of[0])


def _axis(axis: int, rank: int, name: str) -> Iterator[Violation]:
    if not 0 <= axis < rank:
        yield Violation("Axis", f"{span(0, rank - 1)} (within {name}.DimensionCount)", axis)


def count_in_range(count: int, field: str, of: Named, minimum: int = 1) -> Iterator[Violation]:
    """A count of meaningful trailing dimensions, and 1s in the sizes that it leaves out."""
    path, desc = of
    if not minimum <= count <= desc.dimension_count:
        rule = f"{span(minimum, desc.dimension_count)} ({path}.DimensionCount)"
        yield Violation(field, rule, count)
        return
    for i in range(desc.dimension_count - count):
        if desc.sizes[i] != 1:
            rule = f"1 (not counted by {field} = {count})"
            yield Violation(f"{path}.Sizes[{i}]", rule, desc.sizes[i])


def trailing(tensor: TensorDesc, count: int) -> tuple[int, ...]:
    """The last `count` sizes; all of them where there are not that many."""
    return tensor.sizes[max(tensor.dimension_count - max(count, 0), 0) :]


def type_of_scalar(field: str, data_type: DataType, of: Named) -> Iterator[Violation]:
    """The type that a field gives a scalar is the tensor's."""
    if data_type is not of[1].data_type:
        yield Violation(field, f"{of[1].data_type} ({of[0]}.DataType)", data_type)


def number_of(scalar: int | float) -> int | float:
    """A scalar as kernels take it: an integer of 64 bits with a sign, by its bits, or a float."""
    if isinstance(scalar, int) and scalar >= 2**63:
        return scalar - 2**64
    return scalar


# ---- natural shapes, for `infer` -----------------------------------------------------------------


def natural_axis(axis: int, of: ArraySpec, name: str = "InputTensor") -> Iterator[Violation]:
    """The axis, counted from the start, is one of the array's."""
    yield from _axis(axis, len(of.shape), name)


def indices_along(axis: int, data: ArraySpec, indices: ArraySpec) -> Iterator[Violation]:
    """Indices along an axis have the rank of the data and, off the axis, at most their sizes."""
    if len(indices.shape) != len(data.shape):
        rule = f"{len(data.shape)} (InputTensor.DimensionCount)"
        yield Violation("IndicesTensor.DimensionCount", rule, len(indices.shape))
        return
    for i, (have, limit) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if i != axis and have > limit:
            rule = f"at most {limit} (InputTensor.Sizes[{i}])"
            yield Violation(f"IndicesTensor.Sizes[{i}]", rule, have)


def tuples(data: ArraySpec, indices: ArraySpec, batch: int) -> Iterator[Violation]:
    """The last axis of the indices holds tuples of coordinates, behind batches as the data's."""
    rank = len(data.shape)
    if not indices.shape:
        yield Violation("IndicesTensor.DimensionCount", "1 or more (tuples on the last axis)", 0)
        return
    limit = min(rank, len(indices.shape) - 1)
    if not 0 <= batch <= limit:
        rule = f"{span(0, limit)} (smaller than the ranks of input and indices)"
        yield Violation("BatchDimensionCount", rule, batch)
        return
    for i in range(batch):
        if indices.shape[i] != data.shape[i]:
            rule = f"{data.shape[i]} (InputTensor.Sizes[{i - rank}], a batch size)"
            path = f"IndicesTensor.Sizes[{i - len(indices.shape)}]"
            yield Violation(path, rule, indices.shape[i])
    if indices.shape[-1] > rank - batch:
        rule = f"at most {rank - batch} (the dimensions that tuples point into)"
        yield Violation("IndicesTensor.Sizes[-1]", rule, indices.shape[-1])


def something_to_clamp_to(
    attributes: Attributes, data: ArraySpec, indices: ArraySpec, axes: tuple[int, ...]
) -> Iterator[Violation]:
    """Clamping needs an element to clamp to."""
    if not attributes.get("clamp") or any(size == 0 for size in indices.shape):
        return
    for axis in axes:
        if data.shape[axis] == 0:
            got = f"none: axis {axis} has no elements"
            yield Violation("InputTensor", "at least one element (to clamp indices to)", got)
