"""Predicates that several rooms need; which of them hold, each room says itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from anydml.dtypes import DataType
from anydml.errors import Violation
from anydml.ops._descriptor import Attributes
from anydml.ops._numbers import span
from anydml.program import ArraySpec
from anydml.tensor import TensorDesc

Named = tuple[str, TensorDesc]
"""A tensor with the path that a message gives it."""


def same_dimension_count(first: Named, *others: Named) -> Iterator[Violation]:
    """All have the first one's DimensionCount."""
    expected = first[1].dimension_count
    for path, tensor in others:
        if tensor.dimension_count != expected:
            rule = f"{expected} ({first[0]}.DimensionCount)"
            yield Violation(f"{path}.DimensionCount", rule, tensor.dimension_count)


def same_data_type(first: Named, *others: Named) -> Iterator[Violation]:
    """All have the first one's DataType."""
    for path, tensor in others:
        if tensor.data_type is not first[1].data_type:
            rule = f"{first[1].data_type} ({first[0]}.DataType)"
            yield Violation(f"{path}.DataType", rule, tensor.data_type)


def same_sizes(first: Named, other: Named, free_axis: int | None = None) -> Iterator[Violation]:
    """The other has the first one's sizes, except on the free axis.

    Says nothing where the DimensionCounts differ: `same_dimension_count` does.
    """
    if first[1].dimension_count != other[1].dimension_count:
        return
    for i, (expected, got) in enumerate(zip(first[1].sizes, other[1].sizes, strict=True)):
        if i != free_axis and expected != got:
            rule = f"{expected} ({first[0]}.Sizes[{i}])"
            yield Violation(f"{other[0]}.Sizes[{i}]", rule, got)


def size_is(tensor: Named, axis: int, rank: int, expected: int, why: str) -> Iterator[Violation]:
    """The tensor's size on an axis is the expected one.

    Says nothing where the DimensionCount is not `rank` or has no such axis: other rules do.
    """
    path, desc = tensor
    if 0 <= axis < desc.dimension_count == rank and desc.sizes[axis] != expected:
        yield Violation(f"{path}.Sizes[{axis}]", f"{expected} ({why})", desc.sizes[axis])


def sizes_are(tensor: Named, expected: tuple[int, ...], why: str) -> Iterator[Violation]:
    """The tensor has exactly the expected sizes, right-aligned behind leading sizes of 1."""
    path, desc = tensor
    missing = desc.dimension_count - len(expected)
    if missing < 0:
        rule = f"at least {len(expected)} ({why}: {expected})"
        yield Violation(f"{path}.DimensionCount", rule, desc.dimension_count)
        return
    for i, (want, got) in enumerate(zip((1,) * missing + expected, desc.sizes, strict=True)):
        if want != got:
            yield Violation(f"{path}.Sizes[{i}]", f"{want} ({why})", got)


def axis_in_range(axis: int, of: Named, field: str = "Axis") -> Iterator[Violation]:
    """The axis is one of the tensor's dimensions."""
    count = of[1].dimension_count
    if not 0 <= axis < count:
        yield Violation(field, f"{span(0, count - 1)} (within {of[0]}.DimensionCount)", axis)


def one_a_dimension(count: int, values: Sequence[int], of: Named) -> Iterator[Violation]:
    """A DimensionCount that counts these values is the tensor's.

    Says nothing where it does not count them: the field's own rule does.
    """
    rank = of[1].dimension_count
    if count == len(values) != rank:
        yield Violation("DimensionCount", f"{rank} ({of[0]}.DimensionCount)", count)


def values_for_dimensions(given: Mapping[str, Sequence[int]], of: Named) -> Iterator[Violation]:
    """Each of these arrays has a value for each of the tensor's dimensions."""
    rank = of[1].dimension_count
    for field, values in given.items():
        if len(values) != rank:
            yield Violation(field, f"{rank} values ({of[0]}.DimensionCount)", len(values))


def count_in_range(count: int, field: str, of: Named) -> Iterator[Violation]:
    """A count of meaningful trailing dimensions, and 1s in the sizes that it leaves out."""
    path, desc = of
    if not 1 <= count <= desc.dimension_count:
        rule = f"{span(1, desc.dimension_count)} ({path}.DimensionCount)"
        yield Violation(field, rule, count)
        return
    for i in range(desc.dimension_count - count):
        if desc.sizes[i] != 1:
            rule = f"1 (left out by {field} = {count})"
            yield Violation(f"{path}.Sizes[{i}]", rule, desc.sizes[i])


def has_axis(axis: int, *tensors: TensorDesc) -> bool:
    """Whether the axis can be looked up in all of them."""
    return all(0 <= axis < tensor.dimension_count for tensor in tensors)


def trailing(tensor: TensorDesc, count: int) -> tuple[int, ...]:
    """The last `count` sizes; all of them where there are not that many."""
    return tensor.sizes[max(tensor.dimension_count - count, 0) :]


def tuple_size(indices: Named, most: int, why: str) -> Iterator[Violation]:
    """The last size of an index tensor: coordinates per tuple."""
    path, desc = indices
    if desc.sizes and not 1 <= desc.sizes[-1] <= most:
        yield Violation(f"{path}.Sizes[-1]", f"{span(1, most)} ({why})", desc.sizes[-1])


def slabs(
    whole: Named, parts: Sequence[Named], axis: int, count_field: str, list_field: str
) -> Iterator[Violation]:
    """Parts that lie one behind the other along an axis make up the whole (SPLIT, JOIN)."""
    if not parts:
        yield Violation(count_field, "at least 1", 0)
    yield from same_dimension_count(whole, *parts)
    yield from same_data_type(whole, *parts)
    yield from axis_in_range(axis, whole)
    for part in parts:
        yield from same_sizes(whole, part, free_axis=axis)
    if parts and has_axis(axis, whole[1], *(desc for _, desc in parts)):
        total = sum(desc.sizes[axis] for _, desc in parts)
        if total != whole[1].sizes[axis]:
            rule = f"a sum of {whole[1].sizes[axis]} ({whole[0]}.Sizes[{axis}])"
            yield Violation(f"{list_field}[..].Sizes[{axis}]", rule, total)


# ---- natural shapes, for `infer` -----------------------------------------------------------------


def natural_axis(axis: int, of: ArraySpec, name: str = "x") -> Iterator[Violation]:
    """The axis, counted from the start, is one of the array's."""
    rank = len(of.shape)
    if not 0 <= axis < rank:
        yield Violation("axis", f"an axis of {name}, which has rank {rank}", axis)


def indices_along(axis: int, data: ArraySpec, indices: ArraySpec) -> Iterator[Violation]:
    """Indices along an axis have the rank of the data and, off the axis, at most their sizes."""
    if len(indices.shape) != len(data.shape):
        rule = f"rank {len(data.shape)} (the rank of x)"
        yield Violation("indices", rule, f"shape {indices.shape}")
        return
    for i, (have, most) in enumerate(zip(indices.shape, data.shape, strict=True)):
        if i != axis and have > most:
            rule = f"at most {most} (x's size) on axis {i}"
            yield Violation("indices", rule, f"shape {indices.shape}")


def tuples(data: ArraySpec, indices: ArraySpec, batch: int) -> Iterator[Violation]:
    """The last axis of the indices holds tuples of coordinates, behind batches as the data's."""
    rank = len(data.shape)
    if not indices.shape:
        yield Violation("indices", "tuples on the last axis", "rank 0")
        return
    most = min(rank, len(indices.shape) - 1)
    if not 0 <= batch <= most:
        rule = f"0..{most} (x has rank {rank}, indices {len(indices.shape)})"
        yield Violation("batch_dims", rule, batch)
        return
    if indices.shape[:batch] != data.shape[:batch]:
        rule = f"leading sizes {data.shape[:batch]} (the batches of x)"
        yield Violation("indices", rule, f"shape {indices.shape}")
    if indices.shape[-1] > rank - batch:
        without = " without batches" if batch else ""
        rule = f"at most {rank - batch} (the rank of x{without}) on the last axis"
        yield Violation("indices", rule, indices.shape[-1])


def something_to_clamp_to(
    given: Attributes, data: ArraySpec, indices: ArraySpec, axes: tuple[int, ...]
) -> Iterator[Violation]:
    """Clamping needs an element to clamp to."""
    if not given["clamp"] or any(size == 0 for size in indices.shape):
        return
    for axis in axes:
        if data.shape[axis] == 0:
            got = f"none: axis {axis} has no elements"
            yield Violation("x", "an element for indices to clamp to", got)


def type_of_scalar(field: str, data_type: DataType, of: Named) -> Iterator[Violation]:
    """The type that a field gives a scalar is the tensor's."""
    if data_type is not of[1].data_type:
        yield Violation(field, f"{of[1].data_type} ({of[0]}.DataType)", data_type)


def number_of(scalar: int | float) -> int | float:
    """A scalar as kernels take it: an integer of 64 bits with a sign, by its bits, or a float."""
    if isinstance(scalar, int) and scalar >= 2**63:
        return scalar - 2**64
    return scalar
