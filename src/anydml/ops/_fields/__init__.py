"""The kinds of a descriptor's fields: how values are converted, read from JSON, written and shown.

A definition declares its fields with the functions of `makers.py`. Code that handles fields in
general uses their `Kind`.
"""

from anydml.ops._fields.arrays import FloatsKind, IntegersKind
from anydml.ops._fields.base import AxisKind, BoolKind, EnumerationKind, IntKind, Kind
from anydml.ops._fields.info import FieldInfo, Role
from anydml.ops._fields.makers import (
    axes_field,
    axis_field,
    boolean,
    count_of,
    enumeration,
    floating,
    floats,
    input_field,
    input_list,
    integer,
    ints,
    nested,
    nested_list,
    output_field,
    output_list,
    scalar,
    scale_bias,
    size_2d,
    uint,
    uints,
)
from anydml.ops._fields.operators import PREFIX, NestedKind
from anydml.ops._fields.real import FloatKind, Real
from anydml.ops._fields.scalars import ScalarKind
from anydml.ops._fields.structures import ScaleBias, ScaleBiasKind, Size2D, Size2DKind
from anydml.ops._fields.tensors import TensorKind

__all__ = [
    "PREFIX",
    "AxisKind",
    "BoolKind",
    "EnumerationKind",
    "FieldInfo",
    "FloatKind",
    "FloatsKind",
    "IntKind",
    "IntegersKind",
    "Kind",
    "NestedKind",
    "Real",
    "Role",
    "ScalarKind",
    "ScaleBias",
    "ScaleBiasKind",
    "Size2D",
    "Size2DKind",
    "TensorKind",
    "axes_field",
    "axis_field",
    "boolean",
    "count_of",
    "enumeration",
    "floating",
    "floats",
    "input_field",
    "input_list",
    "integer",
    "ints",
    "nested",
    "nested_list",
    "output_field",
    "output_list",
    "scalar",
    "scale_bias",
    "size_2d",
    "uint",
    "uints",
]
