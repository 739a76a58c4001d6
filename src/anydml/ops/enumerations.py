"""Enumerations that operators of several families have."""

from __future__ import annotations

from typing import Literal

from anydml.enums import NamedEnum


class AxisDirection(NamedEnum):
    """``DML_AXIS_DIRECTION``: INCREASING is smallest first, DECREASING is largest first."""

    INCREASING = 0
    DECREASING = 1

    @classmethod
    def prefix(cls) -> str:
        return "DML_AXIS_DIRECTION_"


DirectionName = Literal[
    "INCREASING", "DECREASING", "DML_AXIS_DIRECTION_INCREASING", "DML_AXIS_DIRECTION_DECREASING"
]


class InterpolationMode(NamedEnum):
    """``DML_INTERPOLATION_MODE``: the nearest element, or the mean of the two nearest ones."""

    NEAREST_NEIGHBOR = 0
    LINEAR = 1

    @classmethod
    def prefix(cls) -> str:
        return "DML_INTERPOLATION_MODE_"
