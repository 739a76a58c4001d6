"""Conversions and orders of elements, with the bits of the native kernels.

NumPy lacks bfloat16 and 8-bit floats: their arrays are records of one unsigned integer, with the
name of the type (`anydml.libraries._types`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether an element type stands for bfloat16."""
    return dtype.names == ("anydml.bfloat16",)


def to_bits(x: Array) -> Array:
    """View elements of at most 8 bytes as unsigned integers."""
    return x.view(f"u{x.dtype.itemsize}")


def value_of(bits: Sequence[int], dtype: np.dtype[Any]) -> Any:
    """The value with the given bytes."""
    return np.array(bits, np.int64).view(np.uint8)[: dtype.itemsize].view(dtype)[0]


def widen(x: Array) -> Array:
    """Convert bfloat16 to float32, and return other types unchanged."""
    if not is_bfloat16(x.dtype):
        return x
    return (to_bits(x).astype(np.uint32) << np.uint32(16)).view(np.float32)


def is_nan(x: Array) -> Array:
    """Test elements for NaN, which integers never are."""
    x = widen(x)
    return np.asarray(x != x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def with_canonical_nan(x: Array) -> Array:
    """Replace every NaN by the canonical one: positive, quiet, without a payload."""
    if is_bfloat16(x.dtype):
        return np.where(is_nan(x), np.uint16(0x7FC0), to_bits(x)).view(x.dtype)
    return np.where(is_nan(x), x.dtype.type(np.nan), x) if x.dtype.kind == "f" else x


def order_keys(x: Array) -> Array:
    """Return unsigned integers in the order of the elements.

    NaN is the greatest, whatever its sign, and zeros are equal.
    """
    bits, kind = to_bits(x), "f" if is_bfloat16(x.dtype) else x.dtype.kind
    width = bits.dtype.type(8 * bits.dtype.itemsize - 1)
    sign = bits.dtype.type(1) << width
    if kind == "u":
        return bits
    if kind == "i":
        return np.asarray(bits ^ sign)
    negative = -(bits >> width)  # all bits or none
    keys: Array = ((bits ^ negative) - negative) | (sign & ~negative)
    bad = is_nan(x)
    if bad.any():
        keys[bad] = ~keys.dtype.type(0)
    return keys


def convert(x: Array, to: np.dtype[Any]) -> Array:
    """Convert elements as CAST does: truncate and saturate to integers, round once to floats."""
    if x.dtype == to:
        return x
    x = widen(x)
    if is_bfloat16(to):
        return _to_bfloat16(x).view(to)
    with np.errstate(all="ignore"):
        if to.kind == "f":
            return with_canonical_nan(x.astype(to))
        if x.dtype.kind != "f":
            return x.astype(to)
        limits = np.iinfo(to)
        above, below = x >= float(limits.max), x <= float(limits.min)
        inside = np.where(above | below | is_nan(x), x.dtype.type(0), x).astype(to)
        return np.where(above, limits.max, np.where(below, limits.min, inside)).astype(to)


def _to_bfloat16(x: Array) -> Array:
    """Round to bfloat16, halves to even; the bits."""
    with np.errstate(all="ignore"):
        bits = _to_odd(x).view(np.uint32)
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    rounded = ((bits + half) >> np.uint32(16)).astype(np.uint16)
    return np.where(is_nan(x), np.uint16(0x7FC0), rounded)


def _to_odd(x: Array) -> Array:
    """Convert to float32, where an inexact result gets an odd last bit.

    Another rounding to fewer bits then gives what one rounding of `x` would.
    """
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        size = np.where(x < 0, ~x.view(np.uint64) + np.uint64(1), x.view(np.uint64))
        dropped = (size & np.uint64(0x7FF)) != 0  # bits below the 53 of float64
        large = ((size >> np.uint64(11)) | dropped).astype(np.float64) * 2048.0
        size = np.where(size >> np.uint64(53), large, size.astype(np.float64))
        x = np.where(x < 0, -size, size)
    x = np.asarray(x, np.float64)
    near = x.astype(np.float32)
    toward_zero = np.where(np.abs(near) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    inexact = (toward_zero != x) & np.isfinite(x)
    bits = toward_zero.astype(np.float32).view(np.uint32)
    return np.asarray(bits | inexact.astype(np.uint32)).view(np.float32)
