"""The types of the array functions' arguments and results, for type checkers.

A function has an overload for each kind of array: a NumPy array, or what NumPy makes one of
(`ArrayOf`), gives a NumPy array of its element type, an array of another library (`Exporter`) one
of its own class. What is given as `out` comes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, SupportsIndex, TypeAlias, TypedDict

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


if TYPE_CHECKING:
    from typing_extensions import TypeVar  # with defaults, which Python has from 3.13 on

    Scalar = TypeVar("Scalar", bound=np.generic, default=Any)
    Index = TypeVar("Index", bound=np.integer[Any], default=np.intp)
    Out = TypeVar("Out", default=NDArray[Any])
    OutIndices = TypeVar("OutIndices", default=NDArray[Any])
else:
    from typing import TypeVar

    Scalar, Index, Out, OutIndices = map(TypeVar, ("Scalar", "Index", "Out", "OutIndices"))

Other = TypeVar("Other", bound=Exporter)
Values = TypeVar("Values")
Indices = TypeVar("Indices")
IndexType = TypeVar("IndexType")

Plain: TypeAlias = complex | np.generic | Sequence[Any] | memoryview | bytearray
ArrayOf: TypeAlias = np.ndarray[Any, np.dtype[Scalar]] | Plain
"""A NumPy array of any shape, or what becomes one: numbers, lists and buffers."""

Operand: TypeAlias = ArrayLike | Exporter | Interface
"""Any operand."""

Integers: TypeAlias = Sequence[SupportsIndex] | NDArray[Any]
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
