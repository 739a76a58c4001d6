"""The protocol of the libraries' modules, and helpers that they share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from anydml.core.errors import ArgumentTypeError

Array = np.ndarray[Any, np.dtype[Any]]
# NumPy's limit.
MOST_AXES: Final = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32

Wrap = Callable[[Array], Any]
"""Makes a result of the kind that came in from a NumPy array."""


class Library(Protocol):
    """A module that knows one library's arrays."""

    def owns(self, value: Any) -> bool:
        """Whether the value is an array of this library; without importing it."""

    def as_operand(self, value: Any, name: str) -> tuple[Array, Wrap]:
        """The array as a NumPy array of the same memory, and how to make a result of its kind.

        An array without plain memory is refused; messages begin with `name`.
        """

    def index_type(self) -> np.dtype[Any]:
        """The type of the indices that its users index with."""

    def check_dtype(self, dtype: np.dtype[Any], name: str) -> None:
        """Refuse a type that the library would change without a word."""

    def promoted(self, dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
        """The type that the library joins these types into; `TypeError` if there is none."""

    def bump_version(self, value: Any) -> None:
        """Tell the library that an array of its own has been written."""


def class_of(module: str, name: str) -> type | tuple[()]:
    """A class of a loaded library, for isinstance; () where there is none.

    Anything may go by a library's name: a user's own module, a stand-in for documentation.
    """
    try:
        kind = getattr(sys.modules.get(module), name, None)
    except Exception:  # the module's own code
        return ()
    return kind if isinstance(kind, type) else ()


def check_unlabelled(value: Any, name: str) -> None:
    """Refuse a container of values with labels: a result would silently be without them.

    That is an object of pandas, xarray or Polars, or of a library with the same protocol.
    """
    kind = type(value)
    if not hasattr(kind, "to_numpy") or hasattr(kind, "__dlpack__"):
        return
    # xarray's data may be a lazy or foreign array, which .to_numpy() would compute.
    use = next(
        (use for use in ("data", "to_dask_array()") if hasattr(kind, use.removesuffix("()"))),
        "to_numpy()",
    )
    raise ArgumentTypeError(
        f"{name}: expected an array without labels, got an object of class "
        f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}; use .{use}"
    )


def intp() -> np.dtype[Any]:
    """The type that NumPy indexes with."""
    return np.dtype(np.intp)


def accept_any_dtype(dtype: np.dtype[Any], name: str) -> None:
    """A library that changes no type."""


def no_version_counter(value: Any) -> None:
    """A library that does not count writes."""


def unreadable(name: str, error: Exception) -> ArgumentTypeError:
    """Return the error for a library whose own code fails to hand out memory."""
    return ArgumentTypeError(f"{name}: its memory cannot be read: {error}")
