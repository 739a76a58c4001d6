"""Scattered updates that are combined: what goes beyond one call of the kernel.

The kernel adds, multiplies and compares numbers, the element itself included, and makes means. Here
are the element left out and bools, of calls of that kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from anydml._json import did_you_mean, short_repr
from anydml._native import NUMBERS, REDUCTIONS
from anydml.arrays import Array, DeviceArray, as_type, dtype_name, is_added, to_internal_dtype
from anydml.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.functions import _arguments, _engine
from anydml.program import Inferred

# Other libraries' names of the same.
SYNONYMS: Final = {theirs: own for own, theirs in REDUCTIONS.items() if theirs != own}
NAMES: Final = (None, *REDUCTIONS, *SYNONYMS, "mean")

# 0 and 1 stand for bools: or, and.
OF_BOOLS: Final = {"add": "max", "mul": "min", "min": "min", "max": "max"}

# What becomes of sums: Mean of native/cpu/plans.hpp.
_MEAN, _MEAN_OF_UPDATES = 1, 2

# What means are computed in, at least.
_WIDE: Final = {"f": np.float32, "i": np.int64, "u": np.uint64}


def name_of(reduction: Any) -> str:
    """The kernel's name of a reduction, or "mean"."""
    if reduction is None:
        return "none"
    if not isinstance(reduction, str) or reduction not in NAMES:
        accepted = ", ".join(repr(name) for name in NAMES)
        raise ArgumentError(
            f"reduction: expected one of {accepted}, got {short_repr(reduction)}"
            f"{did_you_mean(reduction, NAMES)}"
        )
    return SYNONYMS.get(reduction, reduction)


def reduction_of(reduction: Any, array: Array) -> str:
    """The kernel's name of a reduction, or "mean"; one that the array's type has."""
    name = name_of(reduction)
    check_type(name, array, reduction)
    return name


def check_type(name: str, array: Array, label: Any = None) -> None:
    """Refuse a reduction that an array's type has not; `label` is what the caller called it."""
    types: tuple[str, ...] = NUMBERS
    if name != "mean":
        types += ("bool",)
    if name in ("add", "mul", "mean"):
        types += ("complex64", "complex128")
    if name != "none" and dtype_name(array.dtype) not in types:
        raise ArgumentTypeError(
            f"x: reduction {label or name!r} expected one of {', '.join(types)}, "
            f"got {dtype_name(array.dtype)}"
        )


class Scatter:
    """One call of a scatter, on natural operands that fit together.

    Parameters
    ----------
    operator : descriptor class
        Of the operator.
    inferred : Inferred
        What `infer` made of the operands.
    attributes : mapping
        The kernel's attributes without the reduction.
    private : bool
        Whether nobody sees the result when an index is bad.
    """

    def __init__(
        self,
        operator: _engine.OperatorClass,
        inferred: Inferred,
        attributes: dict[str, Any],
        private: bool,
    ) -> None:
        self._operator = operator
        self._inferred = inferred
        self._attributes = attributes
        self._private = private

    def run(
        self, operands: Sequence[Array], result: Array, reduction: str, include_self: bool
    ) -> None:
        """Scatter the updates into the result, which may be the first operand's memory.

        Raises
        ------
        IndexOutOfRangeError
            An index is out of range; a result that is not private is unchanged.
        AllocationError
            Scratch cannot be allocated.
        """
        data, lookup, updates = operands
        if reduction != "none" and data.dtype == np.bool_:
            bits = [array.view(np.uint8) for array in (data, updates, result)]
            data, updates, result = bits
            reduction = OF_BOOLS[reduction]
        try:
            self._run(data, lookup, updates, result, reduction, include_self or reduction == "none")
        except AllocationError:
            raise
        except MemoryError:
            raise AllocationError(self._operator.KERNEL, None, "scratch") from None

    def _run(
        self,
        data: Array,
        lookup: Array,
        updates: Array,
        result: Array,
        reduction: str,
        include_self: bool,
    ) -> None:
        if reduction == "mean":
            mean = _MEAN if include_self else _MEAN_OF_UPDATES
            self._once(data, lookup, updates, result, "add", mean)
        elif include_self:
            self._once(data, lookup, updates, result, reduction)
        else:
            if not isinstance(data, DeviceArray):
                lookup = lookup.copy()  # what is checked once is what is used
            number = np.asarray(neutral(reduction, data.dtype))
            start = _arguments.broadcast_to(
                _arguments.number_to_device_of(number, data), updates.shape, "updates"
            )
            self._once(data, lookup, start, result, "none")
            self._once(result, lookup, updates, result, reduction)

    def _once(
        self,
        data: Array,
        lookup: Array,
        updates: Array,
        result: Array,
        reduction: str,
        mean: int = 0,
    ) -> None:
        attributes = {**self._attributes, "reduction": reduction, "mean": mean}
        inputs = (data, lookup, updates)
        _engine.run(self._operator, inputs, (result,), attributes, self._inferred, self._private)


def divide(result: Array, counts: Array, include_self: bool) -> None:
    """Turn sums into means, in place; integers are rounded down.

    `counts` says how many updates are in a sum, `include_self` whether the element itself is in
    it too.
    """
    result = to_internal_dtype(result)
    touched = counts > 0  # what no update names keeps its bits
    counts = np.maximum(counts + include_self, 1)
    for part in (result.real, result.imag) if result.dtype.kind == "c" else (result,):
        if is_added(part.dtype):
            sums = as_type(part, np.float32, "mean")
            with np.errstate(all="ignore"):
                means = as_type(sums / counts.astype(np.float32), part.dtype, "mean")
        else:
            by: np.ufunc = np.true_divide if part.dtype.kind == "f" else np.floor_divide
            wide = np.promote_types(part.dtype, _WIDE[part.dtype.kind])
            with np.errstate(all="ignore"):
                means = by(part.astype(wide), counts.astype(wide)).astype(part.dtype)
        np.copyto(part, means, where=touched)


def neutral(reduction: str, dtype: np.dtype[Any]) -> Any:
    """What leaves every other operand as it is."""
    if is_added(dtype):
        return as_type(np.asarray(neutral(reduction, np.dtype(np.float32))), dtype, "x")
    if dtype == np.bool_:
        return np.bool_(OF_BOOLS[reduction] == "min")
    if reduction in ("add", "mean"):
        return dtype.type(0)
    if reduction == "mul":
        return dtype.type(1)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return dtype.type(np.inf if reduction == "min" else -np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if reduction == "min" else limits.min)
