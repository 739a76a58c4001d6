"""Scattered updates that are combined: what goes beyond one call of the kernel.

The kernel adds, multiplies and compares numbers, the element itself included, and makes means. Here
are the element left out and bools, of calls of that kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from anydml._native import INDEX_MODES, NUMBERS, REDUCTIONS
from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.core.program import Inferred
from anydml.functions import _arguments, _engine
from anydml.libraries import Array, DeviceArray, as_type, dtype_name, is_added
from anydml.ops.cast import Cast
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND

# Other libraries' names of the same.
SYNONYMS: Final = {theirs: own for own, theirs in REDUCTIONS.items() if theirs != own}
NAMES: Final = (None, *REDUCTIONS, *SYNONYMS, "mean")

# 0 and 1 stand for bools: or, and.
OF_BOOLS: Final = {"add": "max", "mul": "min", "min": "min", "max": "max"}

# What becomes of sums: Mean of native/cpu/plans.hpp.
_MEAN, _MEAN_OF_UPDATES = 1, 2

# The type in which the sums of a mean are accumulated, where it is not the element type.
_WIDE: Final = {
    **dict.fromkeys(("float16", "bfloat16"), np.dtype(np.float32)),
    **dict.fromkeys(("int8", "int16", "int32", "uint8", "uint16", "uint32"), np.dtype(np.int64)),
}


def sum_type(dtype: Any) -> Any:
    """The type in which a mean accumulates its sums: at least float32, and int64 for integers."""
    return _WIDE.get(dtype_name(dtype), dtype)


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
        if reduction == "mean" and sum_type(data.dtype) != data.dtype:
            self._wide_mean(data, lookup, updates, result, include_self)
        elif reduction == "mean":
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

    def _wide_mean(
        self, data: Array, lookup: Array, updates: Array, result: Array, include_self: bool
    ) -> None:
        """Compute means in a wider type, then scatter them, so that other elements keep their bits.

        The first call checks the indices before anything is written to the result.
        """
        if not isinstance(data, DeviceArray):
            lookup = lookup.copy()  # what is checked once is what is used
        call, wide = self._operator.KERNEL, sum_type(data.dtype)
        sums, terms = _cast(call, data, wide), _cast_broadcast(call, updates, wide)
        again = Scatter(self._operator, self._inferred, self._attributes, private=True)
        again._run(sums, lookup, terms, sums, "mean", include_self)
        means = _cast(call, sums, data.dtype)
        found = _arguments.output(
            call, None, "out", updates.shape, data.dtype, [("x", data)], what="scratch"
        )
        reader: _engine.OperatorClass = GatherElements if self._attributes else GatherND
        attributes = {"batch_dims": 0} if reader is GatherND else self._attributes
        attributes = {**attributes, "clamp": INDEX_MODES.index("clamp")}
        inferred = _engine.infer(reader, (means, lookup), attributes)
        _engine.run(reader, (means, lookup), (found,), attributes, inferred)
        self._once(data, lookup, found, result, "none")

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


def _cast(call: str, array: Array, dtype: np.dtype[Any]) -> Array:
    result = _arguments.output(
        call, None, "out", array.shape, dtype, [("x", array)], what="scratch"
    )
    attributes = {"to": dtype}
    _engine.run(Cast, (array,), (result,), attributes, _engine.infer(Cast, (array,), attributes))
    return result


def _cast_broadcast(call: str, array: Array, dtype: np.dtype[Any]) -> Array:
    """Convert an array that may be broadcast, without the repetitions."""
    if isinstance(array, DeviceArray) or 0 not in array.strides or not array.size:
        return _cast(call, array, dtype)
    once = (*(slice(1) if stride == 0 else slice(None) for stride in array.strides),)
    return _arguments.broadcast_to(_cast(call, array[once], dtype), array.shape, "updates")


def means_of(x: Array, sums: Array, counts: Array, include_self: bool) -> Array:
    """The means of sums in `sum_type` of the type of `x`; integers are rounded down.

    `counts` says how many updates are in a sum, `include_self` whether the element itself is in
    it too. An element without updates keeps the bits that it has in `x`.
    """
    result = x.copy()
    terms = np.maximum(counts + include_self, 1)
    pairs = [(result, sums)]
    if result.dtype.kind == "c":
        pairs = [(result.real, sums.real), (result.imag, sums.imag)]
    for part, total in pairs:
        divide: np.ufunc = np.true_divide if total.dtype.kind == "f" else np.floor_divide
        with np.errstate(all="ignore"):
            means = divide(total, terms.astype(total.dtype)).astype(part.dtype)
        np.copyto(part, means, where=counts > 0)
    return result


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
