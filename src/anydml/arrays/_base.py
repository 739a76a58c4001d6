"""What every library's module needs, and what it is to those who ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from anydml.errors import AllocationError, ArgumentTypeError

Array = np.ndarray[Any, np.dtype[Any]]
Wrap = Callable[[Array], Any]
"""Makes a result of the kind that came in from a NumPy array."""


class Library(Protocol):
    """A module that knows one library's arrays."""

    def owns(self, value: Any) -> bool:
        """Whether the value is an array of this library; without importing it."""

    def adopt(self, value: Any, name: str) -> tuple[Array, Wrap]:
        """The array as a NumPy array of the same memory, and how to make a result of its kind.

        Raises
        ------
        ArgumentTypeError
            No plain memory that the CPU reads; the message begins with `name`.
        """

    def index_type(self) -> np.dtype[Any]:
        """The type of the indices that its users index with."""

    def keep(self, dtype: np.dtype[Any], name: str) -> None:
        """Refuse a type that results of the library would not keep; the message begins with `name`.

        Raises
        ------
        ArgumentTypeError
            A type that the library would change without a word.
        """

    def promoted(self, dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
        """The type that the library joins these types into.

        Raises
        ------
        TypeError
            There is none.
        """

    def written(self, value: Any) -> None:
        """Tell the library that an array of its own has been written."""


def unchanged(array: Array) -> Array:
    """The result of an operation on NumPy arrays."""
    return array


def intp() -> np.dtype[Any]:
    """The type that NumPy indexes with."""
    return np.dtype(np.intp)


def by_numpy(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """NumPy's own rules."""
    return np.result_type(*dtypes)


def every_type(dtype: np.dtype[Any], name: str) -> None:
    """A library that changes no type."""


def unnoticed(value: Any) -> None:
    """A library that does not count writes."""


def unreadable(name: str, error: Exception) -> ArgumentTypeError:
    """What is raised where a library's own code fails to hand out memory."""
    return ArgumentTypeError(f"{name}: its memory cannot be read: {error}")


def as_type(array: Array, dtype: Any, name: str) -> Array:
    """A copy of an operand as another type."""
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"{name}: expected {np.dtype(dtype)}, got {array.dtype}, which is converted in memory "
            f"that the CPU reads only; use dml.cast first"
        )
    try:
        return array.astype(dtype)
    except (MemoryError, ValueError):  # "array is too big"
        size = array.size * np.dtype(dtype).itemsize
        raise AllocationError(name, size, f"a copy as {np.dtype(dtype)}") from None
