"""Comparison of two arrays: the largest difference, and the first element beyond a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from anydml.core.errors import ArgumentError

Array = np.ndarray[Any, np.dtype[Any]]

_CHUNK: Final = 1 << 20
"""Elements that are compared at a time."""


@dataclass(frozen=True)
class Bounds:
    """Differences of floats that are accepted.

    A float is accepted if it equals the expected one, if both are NaN, if they differ by at most
    `atol` + `rtol` × |expected|, or if they are at most `ulp` ULPs apart. NaN and infinities equal
    only themselves, whatever the bounds. All bounds are finite and at least 0. Integers are
    compared exactly.

    With `cast`, expected values are converted to the type of the others first: floats are rounded,
    and integers have to keep their values.
    """

    rtol: float = 0.0
    atol: float = 0.0
    ulp: int = 0
    cast: bool = False

    def __str__(self) -> str:
        return f"rtol {self.rtol:g}, atol {self.atol:g}, ulp {self.ulp}"


@dataclass(frozen=True)
class Element:
    """One element of both arrays, by its flat position."""

    position: int
    got: Any
    expected: Any
    difference: float | int
    ulps: int | None

    def text(self, shape: tuple[int, ...]) -> str:
        """Describe where it is, and both values."""
        where = [int(i) for i in np.unravel_index(self.position, shape)]
        steps = "" if self.ulps is None else f", {self.ulps} ULPs"
        exact = isinstance(self.difference, int)
        difference = str(self.difference) if exact else f"{self.difference:g}"
        return f"{where}: got {self.got}, expected {self.expected} ({difference}{steps})"


@dataclass(frozen=True)
class Comparison:
    """The result of `compare`.

    Attributes
    ----------
    names : str
        Of the two arrays.
    shape, dtype
        Of both.
    bounds : Bounds
        What is accepted.
    beyond : int
        How many elements are not accepted.
    largest, first : Element or None
        The one with the largest difference, and the first that is not accepted.
    """

    names: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    bounds: Bounds
    beyond: int
    largest: Element | None
    first: Element | None

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def lines(self) -> list[str]:
        """Describe the result."""
        what = f"{self.names}: {self.size} elements ({self.dtype} of shape {self.shape})"
        if self.largest is None:
            return [f"{what}: equal"]
        found = [f"{what}: largest difference at {self.largest.text(self.shape)}"]
        if self.first is None:
            return [*found, f"All are within {self.bounds}."]
        is_float = self.dtype.kind == "f"
        what = f"exceed {self.bounds}" if is_float else "differ (integers are compared exactly)"
        return [*found, f"{self.beyond} {what}; the first at {self.first.text(self.shape)}"]


def compare(
    got: Array, expected: Array, bounds: Bounds | None = None, names: str = ""
) -> Comparison:
    """Compare two arrays element by element.

    Parameters
    ----------
    got, expected : ndarray
        Of one type, unless the bounds convert it, and of one shape; leading sizes of 1 do not
        count, and one may be flat.
    bounds : Bounds, optional
        Which differences are accepted; none, if left out.
    names : str
        What messages call the two.

    Returns
    -------
    Comparison
        The largest difference, and what exceeds the bounds.

    Raises
    ------
    ArgumentError
        The arrays differ in type or shape.
    """
    bounds = bounds or Bounds()
    if bounds.cast:
        expected = _converted(expected, got.dtype, names)
    shapes = {without_leading_ones(array.shape) for array in (got, expected)}
    if len(shapes) == 1 or (got.size == expected.size and min(map(len, shapes)) <= 1):
        expected = expected.reshape(got.shape)
    for name in ("shape", "dtype"):
        one, other = getattr(got, name), getattr(expected, name)
        if one != other:
            raise ArgumentError(f"{names}: expected the same {name}, got {one} and {other}")
    flat, expected_values = got.reshape(-1), expected.reshape(-1)
    beyond, largest, first = 0, None, None
    for start in range(0, flat.size, _CHUNK):
        a, b = flat[start : start + _CHUNK], expected_values[start : start + _CHUNK]
        difference, steps = _differences(a, b), _steps(a, b)
        accepted = difference == 0
        if steps is not None:
            near = (steps <= bounds.ulp) & np.isfinite(a) & np.isfinite(b)
            accepted |= near | _within(difference, b, bounds)
        beyond += int(np.count_nonzero(~accepted))

        i = int(np.argmax(difference))
        if difference[i] > (largest.difference if largest else 0):
            largest = _element(start, i, a, b, difference, steps)
        if first is None and not accepted.all():
            first = _element(start, int(np.argmin(accepted)), a, b, difference, steps)
    return Comparison(names, got.shape, got.dtype, bounds, beyond, largest, first)


def without_leading_ones(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes from the first one other than 1 on."""
    first = next((i for i, size in enumerate(sizes) if size != 1), len(sizes))
    return sizes[first:]


def _converted(expected: Array, dtype: np.dtype[Any], names: str) -> Array:
    kinds = {expected.dtype.kind, dtype.kind}
    with np.errstate(all="ignore"):
        found = expected.astype(dtype)
    if kinds == {"f"} or (kinds <= {*"iu"} and np.array_equal(found, expected)):
        return found
    raise ArgumentError(
        f"{names}: expected values that {dtype} holds (--cast rounds floats only), got "
        f"{expected.dtype}"
    )


def _element(
    start: int, i: int, a: Array, b: Array, difference: Array, steps: Array | None
) -> Element:
    no_ulps = steps is None or not (np.isfinite(a[i]) and np.isfinite(b[i]))
    ulps = None if no_ulps or steps is None else int(steps[i])
    return Element(start + i, a[i], b[i], difference[i].item(), ulps)


def _differences(a: Array, b: Array) -> Array:
    """Return absolute differences, of integers exact; 0 for two NaN, inf for one NaN."""
    if a.dtype.kind in "iu":
        wide = np.uint64 if a.dtype.kind == "u" else np.int64
        # Differences of int64 wrap, and are right again as unsigned numbers.
        larger, smaller = np.maximum(a, b).astype(wide), np.minimum(a, b).astype(wide)
        return larger.view(np.uint64) - smaller.view(np.uint64)
    with np.errstate(all="ignore"):
        found = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return np.where((a == b) | ((a != a) & (b != b)), 0, np.where(found != found, np.inf, found))


def _within(difference: Array, expected: Array, bounds: Bounds) -> Array:
    """Return which differences of floats are finite and at most `atol` + `rtol` × |expected|."""
    with np.errstate(all="ignore"):
        relative = bounds.rtol * np.abs(expected.astype(np.float64)) if bounds.rtol else 0.0
        return np.isfinite(difference) & (difference <= bounds.atol + relative)


def _steps(a: Array, b: Array) -> Array | None:
    """Count the ULPs between elements; None for types that are not floats."""
    if a.dtype.kind != "f":
        return None
    one, other = _ordered(a), _ordered(b)
    steps = np.maximum(one, other) - np.minimum(one, other)
    return np.where((a == b) | ((a != a) & (b != b)), 0, steps)


def _ordered(x: Array) -> Array:
    """Map floats to unsigned integers in the same order."""
    bits = x.view(f"u{x.itemsize}")
    sign = bits.dtype.type(1 << (8 * x.itemsize - 1))
    return np.where(bits & sign, ~bits, bits | sign)
