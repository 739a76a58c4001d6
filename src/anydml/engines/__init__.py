"""What computed operators are written in: an array namespace and a few primitives.

An operator's `compute` gets an `Engine` and arrays of that engine, and imports neither NumPy nor
JAX. What NumPy and JAX have in common is the namespace `xp`; what they do differently, or not at
all, is a primitive.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    def dot(self, a: Array, b: Array) -> Array:
        """Matrix products of the last two axes; the others are broadcast. Integers wrap."""

    def conv(
        self,
        x: Array,
        w: Array,
        *,
        strides: Sequence[int],
        pads: Sequence[tuple[int, int]],
        dilations: Sequence[int],
        groups: int,
        input_dilations: Sequence[int] | None = None,
    ) -> Array:
        """Cross-correlation of x (N, C, *spatial) with w (K, C / groups, *window).

        Padding is zeros, and crops where it is negative. An input dilation of n puts n - 1 zeros
        between two elements of x, which makes this the transpose of a convolution with strides.
        """

    def windows(
        self,
        x: Array,
        *,
        sizes: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[tuple[int, int]],
        dilations: Sequence[int],
        fill: Any,
    ) -> Array:
        """The windows of x (N, C, *spatial) as (N, C, *positions, *sizes); padding is `fill`."""

    def cast(self, x: Array, dtype: Any) -> Array:
        """Elements as another type, as CAST converts: floats saturate, and NaN becomes 0."""
