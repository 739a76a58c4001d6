"""Rules that several definitions share; each definition calls those that apply to it."""

from __future__ import annotations

from collections.abc import Iterator

from anydml.core.dtypes import DataType
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec
from anydml.core.tensor import TensorDesc
from anydml.ops._descriptor import Attributes
from anydml.ops._numbers import span

Named = tuple[str, TensorDesc]
"""A tensor with the path that a message gives it."""


def same_data_type(first: Named, *others: Named) -> Iterator[Violation]:
    """Check that all tensors have the DataType of the first one."""
    for path, tensor in others:
        if tensor.data_type is not first[1].data_type:
            rule = f"{first[1].data_type} ({first[0]}.DataType)"
            yield Violation(f"{path}.DataType", rule, tensor.data_type)


def same_sizes(first: Named, other: Named, free_axis: int) -> Iterator[Violation]:
    """Check that the other tensor has the sizes of the first one, except on the free axis.

    Yields nothing if the DimensionCounts differ or the axis is out of range: other rules report
    these.
    """
    rank = first[1].dimension_count
    if rank != other[1].dimension_count or not 0 <= free_axis < rank:
        return
    for i, (expected, got) in enumerate(zip(first[1].sizes, other[1].sizes, strict=True)):
        if i != free_axis and expected != got:
            rule = f"{expected} ({first[0]}.Sizes[{i}])"
            yield Violation(f"{other[0]}.Sizes[{i}]", rule, got)


def axis_in_range(axis: int, of: Named) -> Iterator[Violation]:
    """Check that the axis is a dimension of the tensor."""
    yield from _axis(axis, of[1].dimension_count, of[0])


def _axis(axis: int, rank: int, name: str) -> Iterator[Violation]:
    if not 0 <= axis < rank:
        yield Violation("Axis", f"{span(0, rank - 1)} (within {name}.DimensionCount)", axis)


def count_in_range(count: int, field: str, of: Named, minimum: int = 1) -> Iterator[Violation]:
    """Check a count of meaningful trailing dimensions, and that all sizes before them are 1."""
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
    """The last `count` sizes, or all sizes if there are fewer."""
    return tensor.sizes[max(tensor.dimension_count - max(count, 0), 0) :]


def type_of_scalar(field: str, data_type: DataType, of: Named) -> Iterator[Violation]:
    """Check that the type of a scalar equals the type of the tensor."""
    if data_type is not of[1].data_type:
        yield Violation(field, f"{of[1].data_type} ({of[0]}.DataType)", data_type)


def number_of(scalar: int | float) -> int | float:
    """The scalar for kernels: a float, or a signed integer of 64 bits with the same bits."""
    if isinstance(scalar, int) and scalar >= 2**63:
        return scalar - 2**64
    return scalar


# ---- natural shapes, for `infer` -----------------------------------------------------------------


def natural_axis(axis: int, of: ArraySpec, name: str = "InputTensor") -> Iterator[Violation]:
    """Check that the axis, counted from the start, is an axis of the array."""
    yield from _axis(axis, len(of.shape), name)


def indices_along(axis: int, data: ArraySpec, indices: ArraySpec) -> Iterator[Violation]:
    """Check that indices have the rank of the data and, except on the axis, at most its sizes."""
    if len(indices.shape) != len(data.shape):
        rule = f"{len(data.shape)} (InputTensor.DimensionCount)"
        yield Violation("IndicesTensor.DimensionCount", rule, len(indices.shape))
        return
    for i, (have, limit) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if i != axis and have > limit:
            rule = f"at most {limit} (InputTensor.Sizes[{i}])"
            yield Violation(f"IndicesTensor.Sizes[{i}]", rule, have)


def tuples(data: ArraySpec, indices: ArraySpec, batch: int) -> Iterator[Violation]:
    """Check that the batch sizes are equal, and that index tuples are not too long."""
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
    """Check that there is an element to which indices can be clamped."""
    if not attributes.get("clamp") or any(size == 0 for size in indices.shape):
        return
    for axis in axes:
        if data.shape[axis] == 0:
            got = f"none: axis {axis} has no elements"
            yield Violation("InputTensor", "at least one element (to clamp indices to)", got)
