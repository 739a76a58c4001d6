"""The types of the array functions' arguments and results, for type checkers.

A function has an overload for each kind of array: a NumPy array gives a NumPy array of its element
type, an array of another library (`Exporter`) one of its own class, numbers, lists and buffers
(`Plain`) a NumPy array. What is given as `out` comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, SupportsIndex, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anydml.core._literals import GatherMode, IndexName, PadMode, Reduction, TypeName
from anydml.core.dtypes import DataType

__all__ = ["GatherMode", "NDArray", "PadMode", "Reduction"]


class Exporter(Protocol):
    """An array that hands out its memory by DLPack: PyTorch's, JAX's, CuPy's, NumPy's."""

    def __dlpack__(self) -> Any: ...


class Interface(Protocol):
    """An object with NumPy's array interface."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class ForeignType(Protocol):
    """An element type of another library."""

    @property
    def itemsize(self) -> int: ...


Scalar = TypeVar("Scalar", bound=np.generic)
Index = TypeVar("Index", bound=np.integer[Any])
Other = TypeVar("Other", bound=Exporter)
Out = TypeVar("Out")
OutIndices = TypeVar("OutIndices")
Values = TypeVar("Values")
Indices = TypeVar("Indices")
IndexType = TypeVar("IndexType")

ArrayOf: TypeAlias = np.ndarray[Any, np.dtype[Scalar]]
"""A NumPy array of any shape."""

Plain: TypeAlias = complex | np.generic | Sequence[Any] | memoryview | bytearray | Interface
"""Lists and numbers that NumPy converts to an array, but no arrays of other libraries."""

Operand: TypeAlias = ArrayLike | Exporter
"""Operands besides the array that decides the kind of the result."""

Integers: TypeAlias = Sequence[SupportsIndex] | ArrayOf[Any]
Size: TypeAlias = SupportsIndex
Steps: TypeAlias = Integers | None
Sections: TypeAlias = SupportsIndex | Integers | None
TypeOf: TypeAlias = type[Scalar] | np.dtype[Scalar]
GivenIndexType: TypeAlias = IndexName | DataType | np.dtype[Any] | type[Any] | ForeignType | None
GivenType: TypeAlias = TypeName | DataType | np.dtype[Any] | type[Any] | ForeignType


class Options(TypedDict, Generic[Out], total=False):
    """The keywords of a function, which its overloads share; `Out` is None without ``out=``."""

    out: Out


class IndexOptions(Options[Out], Generic[IndexType, Out], total=False):
    """The keywords of a function that returns indices, of a type that ``index_dtype=`` names."""

    index_dtype: IndexType
