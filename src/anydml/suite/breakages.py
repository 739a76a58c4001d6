"""A valid descriptor with one thing broken, for everything that its definition says."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from anydml.core.dtypes import DataType
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.tensor import TensorDesc
from anydml.ops import _fields as kinds
from anydml.ops._computed import Sized
from anydml.ops._fields import FieldInfo, Role

UINT_MAX = 2**32 - 1


@dataclasses.dataclass(frozen=True)
class Broken:
    """A descriptor that breaks a rule.

    Attributes
    ----------
    what : str
        What was changed.
    desc : Descriptor
        The descriptor.
    path : str
        With what the path of a violation must begin, below the operator.
    level : FeatureLevel
        At which the rule is broken.
    alone : bool
        Whether no other field may have a violation.
    """

    what: str
    desc: Any
    path: str
    level: FeatureLevel = LATEST
    alone: bool = False


def breakages(desc: Any) -> Iterator[Broken]:
    """Each rule broken that follows from fields, table and `infer` of a descriptor."""
    levels = [level for level in FeatureLevel if level < desc.SUPPORT[0].level]
    if levels:
        yield Broken("no such operator yet", desc, "FeatureLevel", levels[-1])
    for info in desc.bind_points():
        for path, tensor in info.paths(getattr(desc, info.attribute)):
            yield from _table(desc, info, path, tensor)
            yield from _tensor_rules(desc, info, path, tensor)
    yield from _outputs(desc)
    yield from _dimension_counts(desc)
    for info in desc.fields():
        if info.role is Role.ATTRIBUTE:
            yield from _attribute(desc, info, getattr(desc, info.attribute))


def _table(desc: Any, info: FieldInfo, path: str, tensor: TensorDesc) -> Iterator[Broken]:
    rows = [row for row in desc.SUPPORT if desc._is_for(row)]
    accepted = rows[-1].tensors[info.name]
    for data_type in DataType:
        if data_type not in accepted.data_types:
            other = TensorDesc(data_type, tensor.sizes)
            yield Broken(f"{path} of {data_type}", replaced(desc, path, other), f"{path}.DataType")
    for rank in {accepted.ranks[0] - 1, accepted.ranks[-1] + 1}:
        sizes = ((1,) * rank + tensor.sizes)[-rank:] if rank else ()
        other = TensorDesc(tensor.data_type, sizes)
        yield Broken(f"{path} of rank {rank}", replaced(desc, path, other), f"{path}.Dimension")


def _tensor_rules(desc: Any, info: FieldInfo, path: str, tensor: TensorDesc) -> Iterator[Broken]:
    data_type, sizes, rank = tensor.data_type, tensor.sizes, tensor.dimension_count
    total = tensor.minimum_size_in_bytes

    def broken(what: str, part: str, alone: bool = True, **changes: Any) -> Broken:
        fields: dict[str, Any] = {"data_type": data_type, "sizes": sizes} | changes
        fields.setdefault("strides", tensor.strides)
        other = replaced(desc, path, TensorDesc(**fields))
        return Broken(f"{path} {what}", other, f"{path}.{part}", alone=alone)

    yield broken("too small", "TotalTensorSizeInBytes", total_tensor_size_in_bytes=total - 4)
    yield broken("of an odd size", "TotalTensorSizeInBytes", total_tensor_size_in_bytes=total + 2)
    for alignment in (12, data_type.element_size // 2 or 3, 2**32):
        yield broken(f"aligned to {alignment}", "GuaranteedBaseOffsetAlignment",
                     guaranteed_base_offset_alignment=alignment)  # fmt: skip
    large: dict[str, Any] = {"total_tensor_size_in_bytes": 1 << 60}
    yield broken("with a stride too few", "Strides", strides=(1,) * (rank - 1), **large)
    yield broken("with a stride too large", "Strides[0]", strides=(2**32,) * rank, **large)
    for axis in range(rank):
        for size in (0, -1, 2**32):
            changed = (*sizes[:axis], size, *sizes[axis + 1 :])
            yield broken(f"{axis} of {size}", f"Sizes[{axis}]", alone=False, sizes=changed,
                         strides=None, **large)  # fmt: skip
    if info.role is Role.OUTPUT:
        yield broken("owned", "Flags", flags="OWNED_BY_DML")
        if tensor.element_count > 1:
            yield broken("over itself", "Strides", strides=(0,) * rank)


def _outputs(desc: Any) -> Iterator[Broken]:
    """Outputs that are not what the inputs make."""
    if not desc.bind_points(Role.INPUT):
        return
    attributes = desc.attributes()
    specs = desc.inferred().outputs
    outputs = dict(zip(desc._slots(Role.OUTPUT), specs, strict=True))
    for path, tensor, info in desc.tensors(Role.OUTPUT):
        for axis in range(tensor.dimension_count):
            for more in (1, 10_000):
                sizes = [*tensor.sizes]
                sizes[axis] += more
                other = replaced(desc, path, TensorDesc(tensor.data_type, sizes))
                if other.attributes() != attributes and (
                    isinstance(desc, Sized) or _is_made(other, path, sizes)
                ):
                    continue  # the caller chooses these sizes
                # Where a size of an output is an attribute, a wrong one need not be wrong.
                if more > 1 or other.attributes() == attributes:
                    part = path if other.attributes() == attributes else info.name
                    yield Broken(f"{path} of {sizes}", other, part, alone=True)
        if outputs[path].dtype is None:
            continue
        for data_type in _accepted(desc, info):
            other = replaced(desc, path, TensorDesc(data_type, tensor.sizes))
            if data_type is not tensor.data_type and other.attributes() == attributes:
                yield Broken(f"{path} of {data_type}", other, f"{path}.DataType", alone=True)


def _is_made(desc: Any, path: str, sizes: list[int]) -> bool:
    """Whether inputs and attributes make an output of these sizes."""
    inferred = desc.inferred()
    shapes = dict(zip(desc._slots(Role.OUTPUT), inferred.outputs, strict=True))
    return not inferred.violations and [*shapes[path].shape] == sizes


def _dimension_counts(desc: Any) -> Iterator[Broken]:
    """A DimensionCount that the table accepts, but no other tensor has."""
    (_, first, _), *others = desc.tensors()
    for path, tensor, info in others:
        exact = desc.NATURAL or (info.role is Role.OUTPUT and desc.bind_points(Role.INPUT))
        if not exact or (desc.NATURAL and not desc.ONE_DIMENSION_COUNT):
            continue
        rows = [row for row in desc.SUPPORT if desc._is_for(row)]
        if first.dimension_count + 1 in rows[-1].tensors[info.name].ranks:
            other = replaced(desc, path, TensorDesc(tensor.data_type, (1, *tensor.sizes)))
            if isinstance(desc, Sized) and other.attributes() != desc.attributes():
                continue
            yield Broken(f"{path} of one more dimension", other, f"{path}.DimensionCount")


def _accepted(desc: Any, info: FieldInfo) -> tuple[DataType, ...]:
    rows = [row for row in desc.SUPPORT if desc._is_for(row)]
    types: tuple[DataType, ...] = rows[-1].tensors[info.name].data_types
    return types


def _attribute(desc: Any, info: FieldInfo, value: Any) -> Iterator[Broken]:
    def broken(wrong: Any, part: str = "", level: FeatureLevel = LATEST) -> Broken:
        other = dataclasses.replace(desc, **{info.attribute: wrong})
        return Broken(f"{info.name} {wrong}", other, f"{info.name}{part}", level)

    if value is None:
        return
    if info.counts is not None:
        yield from (broken(value + 1), broken(0))
    elif isinstance(info.kind, kinds.EnumerationKind):
        for name, since in info.kind.later:
            if desc.SUPPORT[0].level < since:
                yield broken(name, level=[level for level in FeatureLevel if level < since][-1])
    elif isinstance(info.kind, kinds.IntegersKind):
        for i in range(len(value)):
            for wrong in (2**32, -(2**32)):
                yield broken((*value[:i], wrong, *value[i + 1 :]), f"[{i}]")
    elif isinstance(info.kind, kinds.ScaleBiasKind):
        yield from (broken((1e39, 0), ".Scale"), broken((1, -1e39), ".Bias"))
    elif isinstance(info.kind, kinds.Size2DKind):
        yield from (broken((2**32, 1), ".Width"), broken((1, -1), ".Height"))
    elif isinstance(info.kind, kinds.FloatKind):
        yield from (broken(1e39), broken(-1e39))
    elif isinstance(info.kind, kinds.ScalarKind):
        if DataType.parse(getattr(desc, info.kind.typed_by)).numpy.kind != "f":
            yield broken(0.5)
    elif type(info.kind) in (kinds.Kind, kinds.AxisKind, kinds.IntKind):
        yield from (broken(2**32), broken(-(2**32)), broken(2**63))


def replaced(desc: Any, path: str, tensor: TensorDesc) -> Any:
    """The descriptor with another tensor at a path."""
    name, _, member = path.partition("[")
    info = next(info for info in desc.fields() if info.name == name)
    value: Any = tensor
    if info.many:
        members = list(getattr(desc, info.attribute))
        members[int(member[:-1])] = tensor
        value = tuple(members)
    return dataclasses.replace(desc, **{info.attribute: value})


def other_values(desc: Any) -> Iterator[Any]:
    """The descriptor with another value of one field, within the range of its kind."""
    for info in desc.fields():
        value = getattr(desc, info.attribute)
        if value is None or info.counts is not None:
            continue
        tensors = () if info.role is Role.ATTRIBUTE else value if info.many else (value,)
        for i, tensor in enumerate(tensors):
            for other in _other_tensors(tensor, desc.SUPPORT[-1].tensors[info.name].data_types):
                changed_list = (*value[:i], other, *value[i + 1 :]) if info.many else other
                yield dataclasses.replace(desc, **{info.attribute: changed_list})
        for other in () if tensors else _other_attributes(info.kind, value):
            yield dataclasses.replace(desc, **{info.attribute: other})


def _other_tensors(tensor: TensorDesc, data_types: Iterable[DataType]) -> Iterator[TensorDesc]:
    for data_type in data_types:
        if data_type is not tensor.data_type:
            yield TensorDesc(data_type, tensor.sizes)
    for i, size in enumerate(tensor.sizes):
        yield TensorDesc(tensor.data_type, (*tensor.sizes[:i], size + 1, *tensor.sizes[i + 1 :]))
    yield TensorDesc(tensor.data_type, (1, *tensor.sizes))
    yield TensorDesc(tensor.data_type, tensor.sizes[1:])


def _other_attributes(kind: Any, value: Any) -> Iterator[Any]:
    if isinstance(kind, kinds.EnumerationKind):
        yield from (member for member in kind.members if member is not value)
    elif isinstance(kind, kinds.IntegersKind | kinds.FloatsKind):
        for i, other in itertools.product(range(len(value)), (0, 9)):
            yield (*value[:i], other, *value[i + 1 :])
        yield from (value[1:], (*value, 1))
    elif isinstance(kind, kinds.Size2DKind):
        yield from ((0, value.height), (value.width, 0))
    elif type(kind) in (kinds.Kind, kinds.AxisKind, kinds.IntKind, kinds.FloatKind):
        yield from (0, 9)
