"""Error bounds of operators as data, and comparisons with them.

The exact result is the operator computed in float64; `Device("reference")` gives it, rounded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class Unit(Enum):
    """The unit of a tolerance.

    The smallest normal number is allowed besides (but for bits): an engine may flush denormals.
    """

    BITS = "bits"
    """Every bit is the same; a NaN may be any NaN."""
    ULP = "ulp"
    """The distance between the two floats around the exact result."""
    PRODUCTS = "products"
    """Half of that distance at the operator's result on absolute values: of a sum of products."""
    SUMS = "sums"
    """A tolerance of a sum or a mean."""
    RUNNING = "running"
    """Half-ULPs of what each calculation on the way adds up, as they reach the result."""


@dataclass(frozen=True)
class Tolerance:
    """How far each element of a result may be from the exact one.

    Attributes
    ----------
    unit : Unit
        What the count is of.
    count : float
        How many of the unit; 0 for `Unit.BITS`.

    Examples
    --------
    >>> import anydml as dml
    >>> str(dml.tolerance(dml.TopK1))
    'EXACT'
    """

    unit: Unit
    count: float = 0

    def __str__(self) -> str:
        return "EXACT" if self.unit is Unit.BITS else f"{self.unit.value}({self.count:g})"


EXACT: Final = Tolerance(Unit.BITS)
"""The tolerance of operators that give equal bits on every backend."""


def ulp(count: float) -> Tolerance:
    """An error bound of `count` ULPs of the exact result."""
    return Tolerance(Unit.ULP, count)


def products(count: float) -> Tolerance:
    """An error bound for sums of products: `count` half-ULPs of the result on absolute values."""
    return Tolerance(Unit.PRODUCTS, count)


def sums(count: float) -> Tolerance:
    """An error bound for sums and means: `count` half-ULPs of the result on absolute values."""
    return Tolerance(Unit.SUMS, count)


def running(count: float) -> Tolerance:
    """An error bound of loops: errors of `count` half-ULPs on the way, as they reach the result."""
    return Tolerance(Unit.RUNNING, count)


def allowance(tolerance: Tolerance, exact: Array, magnitude: Array, dtype: np.dtype[Any]) -> Array:
    """How far each element may be from the exact one, in float64.

    Parameters
    ----------
    tolerance : Tolerance
        Of the operator; not `EXACT`.
    exact : array of float64
        The exact result.
    magnitude : array of float64
        The operator's exact result on absolute values; for `Unit.RUNNING` the bound itself.
    dtype : numpy.dtype
        Of the result: a float type.
    """
    at = exact if tolerance.unit is Unit.ULP else magnitude
    steps = tolerance.count if tolerance.unit is Unit.ULP else tolerance.count / 2
    limits = np.finfo(dtype)
    with np.errstate(all="ignore"):
        size = np.clip(np.abs(at), float(limits.smallest_normal), float(limits.max))
        spacing = np.exp2(np.floor(np.log2(size))) * float(limits.eps)
        # Rounding to the type is half an ULP of the result itself; denormals may be flushed.
        own = np.clip(np.abs(exact), float(limits.smallest_normal), float(limits.max))
        rounding = np.exp2(np.floor(np.log2(own))) * float(limits.eps) / 2
        most = magnitude if tolerance.unit is Unit.RUNNING else steps * spacing
        allowed: Array = most + rounding + float(limits.smallest_normal)
        return allowed


def first_difference(
    got: Array, exact: Array, magnitude: Array | None = None, tolerance: Tolerance = EXACT
) -> tuple[int, ...] | None:
    """The position of the first element that exceeds the tolerance; None where all are within it.

    Parameters
    ----------
    got : array
        A result.
    exact : array
        What it should be: of the result's type for `EXACT` and for integers, else float64.
    magnitude : array of float64, optional
        As for `allowance`; the absolute value of `exact` if left out.
    tolerance : Tolerance, optional
        How far it may be.
    """
    if tolerance.unit is Unit.BITS or got.dtype.kind not in "f":
        wrong = _differ(got, exact.astype(got.dtype, copy=False))
    else:
        wrong = _too_far(got, exact, np.abs(exact) if magnitude is None else magnitude, tolerance)
    if not wrong.any():
        return None
    return tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), wrong.shape))


def _differ(got: Array, exact: Array) -> Array:
    if got.dtype.kind != "f":
        return np.asarray(got != exact)
    bits = np.dtype(f"u{got.dtype.itemsize}")
    same = np.ascontiguousarray(got).view(bits) == np.ascontiguousarray(exact).view(bits)
    differ: Array = ~(same.reshape(got.shape) | (np.isnan(got) & np.isnan(exact)))
    return differ


def _too_far(got: Array, exact: Array, magnitude: Array, tolerance: Tolerance) -> Array:
    limits = np.finfo(got.dtype)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        wide, exact = got.astype(np.float64), exact.astype(np.float64)
    allowed = allowance(tolerance, exact, magnitude, got.dtype)
    with np.errstate(all="ignore"):
        # Beyond the largest float, infinity is as near as that float.
        top = float(limits.max) * (1 + float(limits.eps) / 2)
        near = np.abs(np.clip(wide, -top, top) - np.clip(exact, -top, top)) <= allowed
    near |= wide == exact
    near = np.where(np.isinf(exact), wide == exact, near)
    # Where the magnitude overflows, a sum of parts may overflow on the way, or cancel to NaN.
    overflows = (magnitude > float(limits.max)) & np.isfinite(exact)
    if tolerance.unit is Unit.RUNNING:
        near |= ~(magnitude <= float(limits.max))
    fine = near | (np.isnan(wide) & np.isnan(exact)) | (overflows & ~np.isfinite(wide))
    return np.asarray(~fine)
