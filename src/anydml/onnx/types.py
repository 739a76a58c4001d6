"""Element types of ONNX by short names, and values of a model."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.dtypes import DataType

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]

# The values of TensorProto.DataType in onnx.proto; the position is the value.
_NAMES: Final = (
    "undefined", "f32", "u8", "i8", "u16", "i16", "i32", "i64", "string", "bool", "f16", "f64",
    "u32", "u64", "c64", "c128", "bf16", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "u4",
    "i4", "f4e2m1", "f8e8m0", "u2", "i2",
)  # fmt: skip

DATA_TYPES: Final = {
    "f32": DataType.FLOAT32, "f16": DataType.FLOAT16, "f64": DataType.FLOAT64,
    "u8": DataType.UINT8, "u16": DataType.UINT16, "u32": DataType.UINT32, "u64": DataType.UINT64,
    "i8": DataType.INT8, "i16": DataType.INT16, "i32": DataType.INT32, "i64": DataType.INT64,
    "bool": DataType.UINT8, "u4": DataType.UINT4, "i4": DataType.INT4,
}  # fmt: skip
"""DirectML's types; a bool is a UINT8."""

ALL: Final = "u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 bool"
NUMBERS: Final = "f16 f32 u8 i8 u16 i16 u32 i32 u64 i64"
FLOATS: Final = "f16 f32"

SEQUENCE: Final = "sequence"
"""The type name of a value that is not a tensor: a sequence, an optional or a map."""


def type_name(element: int) -> str:
    """The short name of a value of TensorProto.DataType; empty for one that is not known."""
    return _NAMES[element] if 0 < element < len(_NAMES) else ""


def type_number(name: str) -> int:
    """The value of TensorProto.DataType of a short name."""
    return _NAMES.index(name)


def numpy_type(name: str) -> np.dtype[Any]:
    """The NumPy type of a tensor type that DirectML has; four-bit types are stored as bytes."""
    if name == "bool":
        return np.dtype(np.bool_)
    data_type = DATA_TYPES[name]
    return np.dtype(np.uint8) if data_type.bits < 8 else data_type.numpy


def name_of_numpy(dtype: np.dtype[Any]) -> str:
    """The short name of a NumPy type; empty for one that DirectML lacks."""
    names = (name for name in DATA_TYPES if DATA_TYPES[name].bits >= 8)
    return next((name for name in names if numpy_type(name) == dtype), "")


@dataclass(eq=False)
class Value:
    """A tensor of a model.

    Attributes
    ----------
    name : str
        Its unique name.
    type : str
        The short name of its element type; empty if it is not known.
    shape : tuple or None
        Integers, and for a free dimension its name or None; None if not even the rank is known.
    data : ndarray or None
        The elements, if they are constant.
    """

    name: str
    type: str = ""
    shape: tuple[int | str | None, ...] | None = None
    data: Array | None = None

    @property
    def sizes(self) -> Shape | None:
        """The shape, if all of it is known."""
        if self.shape is None:
            return None
        sizes = tuple(size for size in self.shape if isinstance(size, int))
        return sizes if len(sizes) == len(self.shape) else None

    @property
    def nbytes(self) -> int:
        """The bytes of the elements, if all of the shape is known, else 0."""
        sizes = self.sizes
        data_type = DATA_TYPES.get(self.type)
        return 0 if sizes is None or data_type is None else -(-prod(sizes) * data_type.bits // 8)

    def __str__(self) -> str:
        shape = (
            "?"
            if self.shape is None
            else ", ".join("?" if s is None else str(s) for s in self.shape)
        )
        return f"{self.type or 'unknown type'} {{{shape}}}"
