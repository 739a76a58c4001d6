"""Conversions of numbers to bits and to text for messages."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml.core.rules import UNKNOWN, is_known


def bits_of(value: Any, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """The bytes of a value, as two integers of 64 bits; unknown if the value or type is."""
    if not (is_known(value) and is_known(dtype)):
        return UNKNOWN  # type: ignore[no-any-return]  # stands for any value
    octets = np.array(value, dtype).tobytes().ljust(16, b"\0")
    return tuple(np.frombuffer(octets, np.int64).tolist())


def span(low: int, high: int) -> str:
    """The text of a closed range in a message; an empty range accepts nothing."""
    if low > high:
        return "nothing"
    return f"{low}" if low == high else f"{low}..{high}"
