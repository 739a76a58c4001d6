"""One number as another type: what the reference implementations of several rooms need."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def cast_element(element: Any, to: np.dtype[Any]) -> Any:
    """One element as another type."""
    if element.dtype == to:
        return element
    if to.kind == "f":
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return to.type("nan") if element != element else to.type(element)
    if element.dtype.kind == "f":
        return saturated(float(element), to)
    return element.astype(to)  # the low bits


def saturated(number: float, to: np.dtype[Any]) -> Any:
    """The integer that is left without the fraction, or the nearest end of the type's range."""
    limits = np.iinfo(to)
    if math.isnan(number):
        return to.type(0)
    if number >= limits.max:
        return to.type(limits.max)
    return to.type(limits.min) if number <= limits.min else to.type(math.trunc(number))
