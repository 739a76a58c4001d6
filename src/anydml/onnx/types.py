"""Element types of ONNX by short names, and values of a model."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cache, cached_property
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.extras import name_missing_package

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

_SMALL: Final = 1024
"""Elements of a constant that is compared with others by its elements."""

SEQUENCE: Final = "sequence"
"""The type name of a value that is not a tensor: a sequence, an optional or a map."""

OBJECTS: Final = ("string", SEQUENCE)
"""The type names of values that are no numbers."""

NO_NUMBERS: Final = ("", *OBJECTS)
"""The type names of values that are not known to be tensors of numbers."""


def type_name(element: int) -> str:
    """The short name of a value of TensorProto.DataType; empty for one that is not known."""
    return _NAMES[element] if 0 < element < len(_NAMES) else ""


def type_number(name: str) -> int:
    """The value of TensorProto.DataType of a short name."""
    return _NAMES.index(name)


def is_plain(name: str) -> bool:
    """Whether DirectML and NumPy have an element type; constants of others are bytes."""
    return name in DATA_TYPES and DATA_TYPES[name].bits >= 8


@cache
def numpy_type(name: str) -> np.dtype[Any]:
    """The type of arrays of a tensor type; of `ml_dtypes` for a type that NumPy lacks."""
    if name in ("bool", "string"):
        return np.dtype(np.bool_ if name == "bool" else object)
    if is_plain(name):
        return DATA_TYPES[name].numpy
    if name in ("c64", "c128"):
        return np.dtype(f"complex{name[1:]}")
    with name_missing_package(f"tensors of {name}", "anydml[bfloat16]"):
        import ml_dtypes
    added: np.dtype[Any] = np.dtype(getattr(ml_dtypes, _ADDED[name]))
    return added


_ADDED: Final = {
    "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e4m3fnuz": "float8_e4m3fnuz",
    "f8e5m2": "float8_e5m2", "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0": "float8_e8m0fnu",
    "f4e2m1": "float4_e2m1fn", "u4": "uint4", "i4": "int4", "u2": "uint2", "i2": "int2",
}  # fmt: skip
"""The names of types in `ml_dtypes`."""

_PER_BYTE: Final = {"u4": 2, "i4": 2, "f4e2m1": 2, "u2": 4, "i2": 4}
"""How many elements a byte holds, of types with less than 8 bits."""


def packed(array: Array, name: str) -> Array:
    """Elements as a tensor of a type stores them: several in a byte, the first in the low bits."""
    count = _PER_BYTE.get(name)
    if count is None or array.dtype == np.uint8:  # which are bytes
        return array
    numbers = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & (2 ** (8 // count) - 1)
    numbers = np.append(numbers, np.zeros(-numbers.size % count, np.uint8)).reshape(-1, count)
    found: Array = np.bitwise_or.reduce(numbers << _shifts(count), axis=1)
    return found


def unpacked(data: Array, name: str, dtype: np.dtype[Any], sizes: Shape) -> Array:
    """The elements that bytes hold, the inverse of `packed`."""
    count = _PER_BYTE.get(name)
    if count is not None:
        numbers = data.reshape(-1, 1) >> _shifts(count) & (2 ** (8 // count) - 1)
        data = numbers.reshape(-1)[: prod(sizes)]
    return data.view(dtype).reshape(sizes)


def _shifts(count: int) -> Array:
    return np.arange(0, 8, 8 // count, dtype=np.uint8)


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
    proto : onnx.TypeProto or None
        The type of a value that is not a tensor.
    """

    name: str
    type: str = ""
    shape: tuple[int | str | None, ...] | None = None
    data: Array | None = None
    proto: Any = None

    @property
    def sizes(self) -> Shape | None:
        """The shape, if all of it is known."""
        for size in self.shape or ():
            if not isinstance(size, int):
                return None
        return self.shape  # type: ignore[return-value]  # integers

    @cached_property
    def key(self) -> Hashable:
        """The type, the shape and the elements: equal keys mean equal verdicts.

        Read it when the value is complete.
        """
        data = self.data
        if self.proto is not None:
            return self.type, self.proto.SerializeToString(deterministic=True)
        if data is not None and data.size <= _SMALL and data.dtype != object:
            return self.type, self.shape, data.tobytes()
        return self.type, self.shape, None if data is None else id(data)

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
