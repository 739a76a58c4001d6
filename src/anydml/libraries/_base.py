"""Helpers that the modules of libraries share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from anydml.core.errors import ArgumentTypeError

Array = np.ndarray[Any, np.dtype[Any]]
# NumPy's limit.
MOST_AXES: Final = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32

Wrap = Callable[[Array], Any]
"""Makes a result of the kind that came in from a NumPy array."""


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


def unreadable(name: str, error: Exception) -> ArgumentTypeError:
    """Return the error for a library whose own code fails to hand out memory."""
    return ArgumentTypeError(f"{name}: its memory cannot be read: {error}")
