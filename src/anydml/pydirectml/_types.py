"""Enumerations, tensors and the small structures that functions take."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from anydml.core import tensor
from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import ArgumentTypeError
from anydml.core.tensor import TensorFlags
from anydml.ops import (
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    PaddingMode,
    RecurrentNetworkDirection,
)
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.ops._pages import PAGES
from anydml.ops._registry import OPERATORS

__all__ = [
    "ConvolutionDirection",
    "ConvolutionMode",
    "Dimensions",
    "ExecutionFlags",
    "FusedActivation",
    "InterpolationMode",
    "MatrixTransform",
    "OperatorType",
    "OutputOptions",
    "PaddingMode",
    "RecurrentNetworkDirection",
    "Size2D",
    "TensorDataType",
    "TensorDesc",
    "TensorFlags",
    "TensorPolicy",
]

Dimensions = list
"""The type of sizes and strides."""

TensorDataType = enum.IntEnum(  # type: ignore[misc]  # its members are computed  # its members are those of another one
    "TensorDataType", {"UNKNOWN": 0, **{member.name: member.value for member in DataType}}
)

OperatorType = enum.StrEnum(  # type: ignore[misc]  # its members are computed
    "OperatorType", {name: name for name in ("INVALID", *PAGES)}
)
"""Every operator of DirectML, by its name; the numbers of ``directml.h`` are not needed."""


class OutputOptions(enum.IntEnum):
    """Which outputs `gru` has."""

    Both = 0
    Sequence = 1
    Single = 2


class ExecutionFlags(enum.IntFlag):
    """``DML_EXECUTION_FLAGS``; only ALLOW_HALF_PRECISION_COMPUTATION has an effect, on GPUs."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


EXPORTED: Final[Sequence[type[enum.Enum]]] = (
    TensorDataType,
    TensorFlags,
    MatrixTransform,
    RecurrentNetworkDirection,
    ConvolutionMode,
    ConvolutionDirection,
    InterpolationMode,
    PaddingMode,
    ExecutionFlags,
    OperatorType,
)
"""Enumerations whose members the module has as well, in PyDirectML's order."""


class TensorPolicy(enum.Enum):
    """Which strides a tensor gets: packed ones, or those of the order N, spatial, C."""

    default = "default"
    interleaved_channel = "interleaved_channel"

    def strides(self, sizes: Sequence[int]) -> list[int] | None:
        """In elements; None for packed ones."""
        if self is TensorPolicy.default:
            return None
        spatial = [sizes[1] * prod(sizes[axis + 1 :]) for axis in range(2, len(sizes))]
        return [prod(sizes[1:]), 1, *spatial][: len(sizes)]


class TensorDesc:
    """A tensor's type, sizes and layout.

    It is made in one of four ways::

        TensorDesc(data_type, sizes, tensor_policy=TensorPolicy.default)
        TensorDesc(data_type, flags, sizes, tensor_policy=TensorPolicy.default)
        TensorDesc(data_type, sizes, strides)
        TensorDesc(data_type, flags, sizes, strides, total_tensor_size_in_bytes,
                   guaranteed_base_offset_alignment)
    """

    def __init__(self, data_type: TensorDataType, *values: Any, **fields: Any) -> None:
        names = ["sizes", "strides", "total_tensor_size_in_bytes"]
        names.append("guaranteed_base_offset_alignment")
        if values and isinstance(values[0], TensorFlags):
            names.insert(0, "flags")
        for name, value in zip(names, values, strict=False):
            key = "tensor_policy" if isinstance(value, TensorPolicy) else name
            if key in fields:
                raise ArgumentTypeError(f"TensorDesc: {key}: expected one value, got two")
            fields[key] = value
        unknown = fields.keys() - {*names, "flags", "tensor_policy"}
        if unknown or len(values) > len(names) or "sizes" not in fields:
            raise ArgumentTypeError(
                "TensorDesc: expected data_type, flags (optional), sizes, and strides or "
                f"a tensor_policy, got {len(values) + 1} values and {', '.join(fields) or 'none'}"
            )
        policy = fields.pop("tensor_policy", TensorPolicy.default)
        sizes = members("sizes", fields.pop("sizes"))
        if data_type not in map(int, DataType):
            raise ArgumentTypeError(
                f"data_type: expected a TensorDataType other than UNKNOWN, got "
                f"{short_repr(data_type)}"
            )
        given = fields.pop("strides", None)
        strides = members("strides", () if given is None else given) or policy.strides(sizes)
        self._desc = tensor.TensorDesc(DataType(int(data_type)), sizes, strides, **fields)

    @property
    def data_type(self) -> TensorDataType:
        """The type of the elements."""
        return TensorDataType(int(self._desc.data_type))

    @property
    def flags(self) -> TensorFlags:
        """The flags of the tensor: OWNED_BY_DML or none."""
        return self._desc.flags

    @property
    def sizes(self) -> list[int]:
        """The sizes."""
        return list(self._desc.sizes)

    @property
    def strides(self) -> list[int] | None:
        """In elements; None for packed ones."""
        return None if self._desc.strides is None else list(self._desc.strides)

    @property
    def total_tensor_size_in_bytes(self) -> int:
        """How many bytes are bound."""
        return self._desc.total_tensor_size_in_bytes

    @property
    def guaranteed_base_offset_alignment(self) -> int:
        """In bytes; 0 for none."""
        return self._desc.guaranteed_base_offset_alignment

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self.sizes))
        return (
            f"dml.TensorDesc of type {int(self.data_type)} and shape [{sizes}] "
            f"with flags {int(self.flags)}"
        )


def members(name: str, values: Any) -> tuple[Any, ...]:
    """Return the members of a sequence."""
    if not isinstance(values, Iterable):
        raise ArgumentTypeError(f"{name}: expected a sequence, got {short_repr(values)}")
    return tuple(values)


def tensor_of(desc: TensorDesc) -> tensor.TensorDesc:
    """The descriptor as the rest of the package has it."""
    if not isinstance(desc, TensorDesc):
        raise ArgumentTypeError(f"tensor_desc: expected a TensorDesc, got {short_repr(desc)}")
    return desc._desc


def desc_of(storage: tensor.TensorDesc) -> TensorDesc:
    """Return the TensorDesc of PyDirectML for one of this package."""
    desc = TensorDesc.__new__(TensorDesc)
    desc._desc = storage
    return desc


@dataclass
class Size2D:
    """``DML_SIZE_2D``."""

    width: int
    height: int


@dataclass(frozen=True)
class FusedActivation:
    """An activation that another operator applies to its result.

    Parameters
    ----------
    activation : OperatorType
        The operator.
    param_1, param_2 : float
        Its attributes in the page's order, as Alpha and Beta; those that it lacks do nothing.
    """

    activation: OperatorType
    param_1: float = 0
    param_2: float = 0

    def descriptor(self) -> Descriptor | None:
        """The activation's descriptor without tensors; None for INVALID."""
        if self.activation == "INVALID":
            return None
        kind = OPERATORS[self.activation]
        names = [info.attribute for info in kind.fields() if info.role is Role.ATTRIBUTE]
        return kind(**dict(zip(names, (self.param_1, self.param_2), strict=False)))


NO_ACTIVATION: Final = FusedActivation(OperatorType("INVALID"))
