"""Tolerances of WebNN's tests: results beyond them are wrong.

They are the metrics of the Web Platform Tests (webnn/resources/utils.js), for the operators that
implementations of WebNN use. An operator without one has the widest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.tolerance import EXACT, Tolerance, first_difference, ulp

Array = np.ndarray[Any, np.dtype[Any]]

_WIDEST: Final = {"atol": [1 / 1024, 1 / 512]}
_ULPS: Final[Mapping[str, tuple[int, int]]] = {
    "ELEMENT_WISE_ADD": (1, 1), "ELEMENT_WISE_ADD1": (1, 1), "ELEMENT_WISE_SUBTRACT": (1, 1),
    "ELEMENT_WISE_MULTIPLY": (1, 1), "ELEMENT_WISE_DIVIDE": (2, 2), "ELEMENT_WISE_RECIP": (2, 2),
    "ELEMENT_WISE_POW": (32, 2), "ELEMENT_WISE_CONSTANT_POW": (32, 2),
    "ELEMENT_WISE_EXP": (32, 1), "ELEMENT_WISE_SQRT": (1, 1), "ACTIVATION_ELU": (18, 18),
    "ACTIVATION_HARD_SIGMOID": (2, 2), "ACTIVATION_HARD_SWISH": (4, 4),
    "ACTIVATION_LEAKY_RELU": (1, 1), "ACTIVATION_LINEAR": (2, 2),
    "ACTIVATION_PARAMETERIZED_RELU": (1, 1), "ACTIVATION_SIGMOID": (34, 3),
    "ACTIVATION_SOFTPLUS": (18, 18), "ACTIVATION_SOFTSIGN": (3, 3), "BATCH_NORMALIZATION": (6, 6),
}  # fmt: skip
"""ULPs of FLOAT32 and of FLOAT16."""


def _along(desc: Any, axes: Any) -> int:
    return prod(desc.input_tensor.sizes[axis] for axis in axes)


def _softmax(desc: Any) -> int:
    return 3 * _along(desc, getattr(desc, "axes", (-1,))) + 3


_COUNTED: Final[Mapping[str, Callable[[Any], int]]] = {
    "CONVOLUTION": lambda d: 2 * prod(d.filter_tensor.sizes[1:]),
    "GEMM": lambda d: 3 + 2 * d.a_tensor.sizes[-1 if d.trans_a.suffix == "NONE" else -2],
    "AVERAGE_POOLING": lambda d: prod(d.window_size) + 2,
    "AVERAGE_POOLING1": lambda d: prod(d.window_size) + 2,
    "REDUCE": lambda d: 2 * _along(d, d.axes) + 18,
    "ACTIVATION_SOFTMAX": _softmax,
    "ACTIVATION_SOFTMAX1": _softmax,
}
"""ULPs that depend on the number of elements of a sum."""


def webnn_bound(desc: Any) -> dict[str, Any]:
    """The tolerance of an operator, as the index has it: for FLOAT32 and for FLOAT16."""
    if desc.NAME in _COUNTED:
        return {"ulp": [_COUNTED[desc.NAME](desc)] * 2}
    if desc.NAME in _ULPS:
        return {"ulp": [*_ULPS[desc.NAME]]}
    return {"ulp": [0, 0]} if desc.TOLERANCE is EXACT else _WIDEST


def first_beyond(
    got: Array, expected: Array, magnitude: Array, tolerance: Tolerance, bound: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """The first element beyond both a tolerance and WebNN's; integers are compared exactly."""
    if got.dtype.kind != "f":
        return first_difference(got, expected)
    unit, (single, half) = next(iter(bound.items()))
    allowed = half if got.dtype == np.float16 else single
    found = first_difference(got, expected, magnitude, tolerance)
    if found is None:
        return None
    if unit == "atol":
        with np.errstate(all="ignore"):
            wide, exact = got.astype(np.float64), expected.astype(np.float64)
            near = np.abs(wide - exact) <= allowed * np.maximum(1, np.abs(magnitude))
        got = np.where(near, expected.astype(got.dtype), got)
        return first_difference(got, expected, magnitude, tolerance)
    return first_difference(got, expected.astype(np.float64), magnitude, ulp(allowed))
