"""Functions that declare the fields of a definition, and the kinds of fields.

A `Kind` says how values are converted, read from JSON, written and shown. Code that handles fields
in general uses it.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from anydml.core.enums import NamedEnum
from anydml.core.levels import FeatureLevel
from anydml.ops._fields.arrays import FloatsKind, IntegersKind
from anydml.ops._fields.base import AxisKind, BoolKind, EnumerationKind, IntKind, Kind
from anydml.ops._fields.info import FieldInfo, Role
from anydml.ops._fields.operators import PREFIX, NestedKind
from anydml.ops._fields.real import FloatKind, Real
from anydml.ops._fields.scalars import ScalarKind
from anydml.ops._fields.structures import ScaleBias, ScaleBiasKind, Size2D, Size2DKind
from anydml.ops._fields.tensors import TensorKind

__all__ = ["PREFIX", "AxisKind", "BoolKind", "EnumerationKind", "FieldInfo", "FloatKind",
           "FloatsKind", "IntKind", "IntegersKind", "Kind", "NestedKind", "Real", "Role",
           "ScalarKind", "ScaleBias", "ScaleBiasKind", "Size2D", "Size2DKind",
           "TensorKind"]  # fmt: skip


def _field(
    role: Role, kind: Kind, counts: str | None = None, optional: bool = False, fused: bool = False
) -> Any:
    left_out = optional or fused or counts is not None
    default: Any = None if left_out else dataclasses.MISSING
    metadata = {"role": role, "kind": kind, "counts": counts, "optional": optional}
    return dataclasses.field(metadata=metadata, default=default)


def input_field(*, optional: bool = False, fused: bool = False) -> Any:
    """A field for one input tensor; with `fused`, of an operator that can be nested without it."""
    return _field(Role.INPUT, TensorKind(), optional=optional, fused=fused)


def input_list() -> Any:
    """A field for a list of input tensors."""
    return _field(Role.INPUT, TensorKind(many=True))


def output_field(*, optional: bool = False, fused: bool = False) -> Any:
    """A field for one output tensor; `fused` as for `input_field`."""
    return _field(Role.OUTPUT, TensorKind(), optional=optional, fused=fused)


def output_list() -> Any:
    """A field for a list of output tensors."""
    return _field(Role.OUTPUT, TensorKind(many=True))


def uint() -> Any:
    """A field for a UINT attribute."""
    return _field(Role.ATTRIBUTE, Kind())


def axis_field() -> Any:
    """A field for a UINT that is an axis."""
    return _field(Role.ATTRIBUTE, AxisKind())


def axes_field() -> Any:
    """A field for an array of UINT that are axes."""
    return _field(Role.ATTRIBUTE, IntegersKind(axes=True))


def integer() -> Any:
    """A field for an INT attribute."""
    return _field(Role.ATTRIBUTE, IntKind())


def boolean() -> Any:
    """A field for a BOOL attribute."""
    return _field(Role.ATTRIBUTE, BoolKind())


def floating() -> Any:
    """A field for a FLOAT attribute."""
    return _field(Role.ATTRIBUTE, FloatKind())


def count_of(attribute: str) -> Any:
    """A UINT field that counts a tensor list or an array; its default is the length of that."""
    return _field(Role.ATTRIBUTE, Kind(), counts=attribute)


def enumeration(members: type[NamedEnum], **later: FeatureLevel) -> Any:
    """A field for an enumeration; `later` maps members to the level that added them."""
    return _field(Role.ATTRIBUTE, EnumerationKind(members, tuple(later.items())))


def uints(*, optional: bool = False) -> Any:
    """A field for an array of UINT, one for each dimension."""
    return _field(Role.ATTRIBUTE, IntegersKind(), optional=optional)


def ints(*, optional: bool = False) -> Any:
    """A field for an array of INT, one for each dimension."""
    return _field(Role.ATTRIBUTE, IntegersKind(signed=True), optional=optional)


def floats(*, optional: bool = False) -> Any:
    """A field for an array of FLOAT, one for each dimension."""
    return _field(Role.ATTRIBUTE, FloatsKind(), optional=optional)


def scalar(typed_by: str, *, wraps: bool = False) -> Any:
    """A field for a scalar union of the type that an earlier attribute names."""
    return _field(Role.ATTRIBUTE, ScalarKind(typed_by, wraps))


def scale_bias() -> Any:
    """An optional field for a scale and a bias."""
    return _field(Role.ATTRIBUTE, ScaleBiasKind(), optional=True)


def size_2d() -> Any:
    """A field for a width and a height."""
    return _field(Role.ATTRIBUTE, Size2DKind())


def nested(*definitions: Any) -> Any:
    """An optional field for a nested operator of one of these definitions, without its tensors."""
    return _field(Role.ATTRIBUTE, NestedKind(definitions), optional=True)


def nested_list(*definitions: Any) -> Any:
    """A field for a list of nested operators of these definitions, without their tensors."""
    return _field(Role.ATTRIBUTE, NestedKind(definitions, many=True))
