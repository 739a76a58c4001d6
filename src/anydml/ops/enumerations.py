"""Enumerations that several families of operators use."""

from __future__ import annotations

from anydml.core.enums import NamedEnum


class AxisDirection(NamedEnum):
    """``DML_AXIS_DIRECTION``: INCREASING is smallest first, DECREASING is largest first."""

    INCREASING = 0
    DECREASING = 1


class InterpolationMode(NamedEnum):
    """``DML_INTERPOLATION_MODE``: the nearest element, or linear interpolation."""

    NEAREST_NEIGHBOR = 0
    LINEAR = 1


class MultiheadAttentionMaskType(NamedEnum):
    """``DML_MULTIHEAD_ATTENTION_MASK_TYPE``: what the elements of a mask mean."""

    NONE = 0
    KEY_SEQUENCE_LENGTH = 1
    KEY_SEQUENCE_END_START = 2
    KEY_QUERY_SEQUENCE_LENGTH_START_END = 3
    BOOLEAN = 4


class ReduceFunction(NamedEnum):
    """``DML_REDUCE_FUNCTION``."""

    ARGMAX = 0
    ARGMIN = 1
    AVERAGE = 2
    L1 = 3
    L2 = 4
    LOG_SUM = 5
    LOG_SUM_EXP = 6
    MAX = 7
    MIN = 8
    MULTIPLY = 9
    SUM = 10
    SUM_SQUARE = 11
