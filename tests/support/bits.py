"""Arrays compared as what they are in memory: -0.0 is not 0.0, and each NaN is its own."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def bits(array: Any) -> Array:
    """The elements as unsigned integers of their size, in native byte order.

    Examples
    --------
    >>> from support import bits
    >>> bits([0.0, -0.0])
    array([                  0, 9223372036854775808], dtype=uint64)
    """
    values = np.asarray(array)
    native = np.array(values.astype(values.dtype.newbyteorder("="), copy=False), order="C")
    if native.dtype.itemsize in (1, 2, 4, 8):
        return native.view(f"u{native.dtype.itemsize}")
    raw = np.frombuffer(native.tobytes(), np.uint8)
    return raw.reshape(*native.shape, native.dtype.itemsize)


def assert_same_bits(got: Any, expected: Any, what: str = "result") -> None:
    """Fail unless both have the same type, shape and bits.

    Parameters
    ----------
    got, expected : array_like
        What came out and what should have.
    what : str, optional
        What the message calls it.

    Raises
    ------
    AssertionError
        They differ; the message has the first place where they do.
    """
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype != expected.dtype or got.shape != expected.shape:
        raise AssertionError(
            f"{what}: expected {expected.dtype} of shape {expected.shape}, "
            f"got {got.dtype} of shape {got.shape}"
        )
    different = bits(got) != bits(expected)
    if different.any():
        at = tuple(map(int, np.argwhere(different)[0]))[: got.ndim]
        raise AssertionError(
            f"{what}: {np.count_nonzero(different)} of {got.size} elements differ, first at {at}: "
            f"expected {expected[at]!r}, got {got[at]!r}"
        )
