"""The language of computed operators: an array namespace and primitives.

An operator's `compute` gets an `Engine` and arrays of that engine, and imports neither NumPy nor
JAX. What NumPy and JAX have in common is the namespace `xp`; what they do differently, or not at
all, is a primitive. JAX promotes an integer and a float to the float's type, where NumPy widens it:
`compute` says the type with `astype`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from anydml.engines._windows import Window

Array: TypeAlias = Any
"""An array of an engine."""

Reduction: TypeAlias = Literal["sum", "max", "logaddexp"]
"""``logaddexp`` is the logarithm of the sum of the elements' powers of e."""

Step: TypeAlias = Callable[[Any, Any], tuple[Any, Array]]
"""A step of a loop: what the next one gets, and a result, from what it gets and an element."""


class Engine(Protocol):
    """Where computed operators run.

    Attributes
    ----------
    xp : module
        The array namespace: NumPy's functions under NumPy's names.
    scratch_nbytes : int
        The most bytes that a primitive takes besides its operands, its result and arrays of their
        sizes. A constant: a convolution copies windows in pieces of limited size.
    multiplies_halves : bool
        Whether `dot` and `conv` take float16 and give float32, in which they add exact products.
    """

    xp: Any
    scratch_nbytes: int
    multiplies_halves: bool

    def dot(self, a: Array, b: Array) -> Array:
        """Matrix products of the last two axes; the others are broadcast. Integers wrap around."""

    def conv(
        self, x: Array, w: Array, window: Window, groups: int, steps: Sequence[int] | None = None
    ) -> Array:
        """Cross-correlation of x (N, C, *spatial) with w (K, C / groups, *window).

        Padding is zeros, and crops where it is negative. A step of n puts n - 1 zeros between two
        elements of x along an axis: this is then the transpose of a convolution with strides.
        """

    def reduce_window(self, x: Array, reduction: Reduction, window: Window) -> Array:
        """A reduction of each window of x (N, C, *spatial); padding takes no part.

        A NaN is the maximum, and of equal elements the first is. Of a window that meets only
        padding the sum is 0, its logarithm -inf and the maximum the type's lowest value.
        """

    def locate_max(self, x: Array, window: Window) -> tuple[Array, Array]:
        """The maximum of each window, and its place in the spatial dimensions, counted in order.

        The place is -1 where a window meets only padding.
        """

    def cast(self, x: Array, dtype: Any) -> Array:
        """Elements as another type, as CAST converts: floats saturate, and NaN becomes 0."""

    def bits(self, x: Array) -> Array:
        """The elements' bits as unsigned integers of the same size."""

    def from_bits(self, bits: Array, dtype: Any) -> Array:
        """Elements of a type from their bits."""

    def popcount(self, bits: Array) -> Array:
        """How many bits of each unsigned integer are 1."""

    def erf(self, x: Array) -> Array:
        """The error function, with at least the precision of the elements."""

    def scatter_add(self, size: int, places: Array, values: Array) -> Array:
        """Zeros of the values' type, as many as `size`, with each value added at its place.

        Places and values have one dimension; places are in range.
        """

    def scan(self, step: Step, carry: Any, xs: Any, backward: bool) -> tuple[Any, Array]:
        """A loop over the first axis of the arrays in the tuple `xs`, from its end if `backward`.

        Each step gets what the last one carries over and a tuple of one element of each array; it
        gives what it carries over and a result. The results are stacked in the order of the axis.
        """

    def repeat(self, count: Array, step: Callable[[Array, Any], Any], carry: Any) -> Any:
        """Repeat ``carry = step(i, carry)`` for i from 0 to `count` - 1, in order.

        `count` and i are integers of rank 0; `count` may depend on data.
        """
