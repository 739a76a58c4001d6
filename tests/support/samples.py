"""Valid descriptors of computed operators, drawn from their fields, tables and `infer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from anydml.dtypes import DataType
from anydml.levels import LATEST
from anydml.ops._computed import Computed
from anydml.ops._fields import FieldInfo, Role
from anydml.ops._fields.base import EnumerationKind
from anydml.ops._fields.operators import NestedKind
from anydml.ops._fields.real import FloatKind
from anydml.ops._fields.scalars import ScalarKind
from anydml.ops._fields.structures import ScaleBiasKind
from anydml.tensor import TensorDesc

Draw = Callable[[st.SearchStrategy[Any]], Any]

FLOATS = st.sampled_from((-2.5, -1.0, -0.0, 0.0, 0.1, 1.0, 3.0, float("inf")))


@st.composite
def computed(draw: Draw, kind: type[Computed]) -> Computed:
    """A descriptor that breaks no rule at the latest level; inputs may be strided or broadcast."""
    row = kind.SUPPORT[-1]
    inputs = [info for info in kind.fields() if info.role is Role.INPUT]
    first = row.tensors[inputs[0].name]
    data_type = draw(st.sampled_from(first.data_types))
    rank = draw(st.sampled_from(first.ranks))
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    assume(np.prod(sizes) <= 300)
    fields: dict[str, Any] = {
        info.attribute: TensorDesc(data_type, sizes, _strides(draw, sizes)) for info in inputs
    }
    for info in kind.fields():
        if info.role is Role.ATTRIBUTE and info.counts is None:
            fields[info.attribute] = _attribute(draw, info, data_type)
    desc = kind.with_outputs(**fields)
    assert not desc.violations(LATEST), desc.violations(LATEST)
    return desc


def _strides(draw: Draw, sizes: tuple[int, ...]) -> tuple[int, ...] | None:
    if draw(st.booleans()):
        return None
    strides = np.cumprod((1, *sizes[:0:-1]))[::-1]
    return tuple(0 if draw(st.booleans()) else int(stride) * 2 for stride in strides)


def _attribute(draw: Draw, info: FieldInfo, data_type: DataType) -> Any:
    if isinstance(info.kind, NestedKind):
        fused = draw(st.sampled_from((None, *info.kind.rooms)))
        return None if fused is None else fused(**_attributes(draw, fused, data_type))
    if isinstance(info.kind, ScaleBiasKind):
        return draw(st.none() | st.tuples(FLOATS, FLOATS))
    if isinstance(info.kind, FloatKind):
        return draw(FLOATS)
    if isinstance(info.kind, EnumerationKind) and info.kind.members is DataType:
        return data_type
    if isinstance(info.kind, ScalarKind):
        if data_type.numpy.kind == "f":
            return draw(FLOATS)
        limits = np.iinfo(data_type.numpy)
        return draw(st.integers(int(limits.min), int(limits.max)))
    raise TypeError(f"{info.name}: no sample of {info.kind}")


def _attributes(draw: Draw, kind: Any, data_type: DataType) -> dict[str, Any]:
    return {
        info.attribute: _attribute(draw, info, data_type)
        for info in kind.fields()
        if info.role is Role.ATTRIBUTE and info.counts is None
    }
