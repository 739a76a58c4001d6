"""FLOAT: numbers that descriptors compare and write by their bits."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from anydml.core import _json
from anydml.core.levels import FeatureLevel
from anydml.ops._fields.base import Kind, Outside, Siblings


class Real(float):
    """A float that is compared by its bits: NaN equals NaN, and -0.0 differs from 0.0.

    Descriptors compare, hash and come back from JSON and pickles by it. There is one NaN.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | float):
            return NotImplemented
        if math.isnan(self):
            return isinstance(other, float) and math.isnan(other)  # integers may be too large
        return float.__eq__(self, other) and math.copysign(1, self) == math.copysign(1, other)

    def __ne__(self, other: object) -> bool:
        return not self == other  # the base class defines its own

    def __hash__(self) -> int:
        return hash("nan") if math.isnan(self) else float.__hash__(self)

    def __repr__(self) -> str:
        text = float.__repr__(self)
        return text if math.isfinite(self) else f"float({text!r})"


def real_of(value: Any) -> Real:
    """Convert a number to a Real; reject bools, strings and arrays."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError("expected a number")
    try:
        return Real(value)
    except OverflowError as error:  # an integer of thousands of digits, say
        raise ValueError("expected a number that float64 can hold") from error


def rounded(value: Real, dtype: np.dtype[Any]) -> Real:
    """Round to the nearest value of a type; values beyond its range are unchanged."""
    with np.errstate(over="ignore", under="ignore"):
        near = Real(dtype.type(value))
    return value if math.isinf(near) else near


def fits(value: Real, dtype: np.dtype[Any]) -> bool:
    """Whether the rounded value is in the range of a type."""
    return math.isnan(value) or math.isinf(value) or abs(value) <= float(np.finfo(dtype).max)


def range_text(dtype: np.dtype[Any]) -> str:
    """The range of a type, for people."""
    maximum = float(np.finfo(dtype).max)
    return f"a number of at most {maximum} in magnitude, or an infinity or NaN"


def written(value: float) -> Any:
    """The JSON form: numbers, and words where JSON has no number."""
    return float(value) if math.isfinite(value) else repr(float(value))


_FLOAT = np.dtype(np.float32)


@dataclass(frozen=True)
class FloatKind(Kind):
    """A FLOAT, kept as the nearest one."""

    text = "FLOAT"
    accepted = "a number"

    def convert(self, value: Any) -> Any:
        return rounded(real_of(value), _FLOAT)

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        if not fits(value, _FLOAT):
            yield "", f"{range_text(_FLOAT)} (FLOAT)", value

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return _json.json_float(value)

    def write(self, value: Any) -> Any:
        return written(_shortest(value))

    def short_repr(self, value: Any) -> str:
        return repr(_shortest(value))


def _shortest(value: Real) -> Real:
    """The number with the fewest digits that rounds to this FLOAT."""
    return Real(str(np.float32(value))) if fits(value, _FLOAT) else value
