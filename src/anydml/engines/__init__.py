"""What computed operators are written in: an array namespace and primitives.

An operator's `compute` gets an `Engine` and arrays of that engine, and imports neither NumPy nor
JAX. What NumPy and JAX have in common is the namespace `xp`; what they do differently, or not at
all, is a primitive.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias

Array: TypeAlias = Any
"""An array of an engine."""


class Engine(Protocol):
    """Where computed operators run.

    Attributes
    ----------
    xp : module
        The array namespace: NumPy's functions under NumPy's names.
    """

    xp: Any

    def cast(self, x: Array, dtype: Any) -> Array:
        """Elements as another type, as CAST converts: floats saturate, and NaN becomes 0."""
