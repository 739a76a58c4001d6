"""`DataType`: DirectML's tensor data types and the NumPy types that they are."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from anydml.core._json import short_repr
from anydml.core.enums import NamedEnum
from anydml.core.errors import ArgumentTypeError

"""The names that `DataType.parse` takes besides a member."""


class DataType(NamedEnum):
    """``DML_TENSOR_DATA_TYPE``, with the values of ``directml.h``.

    The four-bit types exist from feature level 6_3, in QUANTIZE and DEQUANTIZE. NumPy has no
    counterpart: their tensors are bound as bytes (`TensorDesc.storage`).

    Examples
    --------
    >>> import anydml as dml
    >>> dml.DataType.parse("DML_TENSOR_DATA_TYPE_FLOAT16").numpy
    dtype('float16')
    """

    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11
    UINT4 = 12
    INT4 = 13

    @classmethod
    def prefix(cls) -> str:
        return "DML_TENSOR_DATA_TYPE_"

    @classmethod
    def from_numpy(cls, dtype: Any) -> DataType:
        """The data type of a NumPy type (in either byte order; bool is UINT8)."""
        accepted = ", ".join(_FROM_NUMPY)
        try:
            kind = np.dtype(dtype)
            name = kind.newbyteorder("=").name
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentTypeError(
                f"dtype: expected one of {accepted}, got {short_repr(dtype)}"
            ) from error
        found = _FROM_NUMPY.get("uint8" if name == "bool" else name)
        if found is None:
            raise ArgumentTypeError(f"dtype: expected one of {accepted}, got {kind}")
        return found

    @cached_property
    def bits(self) -> int:
        """Bits of one element."""
        return 4 if self in (DataType.UINT4, DataType.INT4) else int(self.name.lstrip("UINTFLOA"))

    @property
    def element_size(self) -> int:
        """Bytes of one element; the four-bit types have none of their own and give 0."""
        return self.bits // 8

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type."""
        if self.bits < 8:
            raise ArgumentTypeError(f"dtype: NumPy has no counterpart of {self}")
        return np.dtype(self.name.lower())


_FROM_NUMPY = {member.numpy.name: member for member in DataType if member.bits >= 8}

_LOW = "FLOAT32 FLOAT16 INT32 INT16 INT8 UINT32 UINT16 UINT8"
_ALL = "FLOAT64 FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"


def data_types(names: str) -> tuple[DataType, ...]:
    """The members with the given suffixes, separated by blanks."""
    return tuple(DataType[name] for name in names.split())


# The sets that the pages' tables repeat.
UP_TO_32_BITS = data_types(_LOW)
ALL_TYPES = data_types(_ALL)
INDEX_TYPES = data_types("INT64 INT32 UINT64 UINT32")
