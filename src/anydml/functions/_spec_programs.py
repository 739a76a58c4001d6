"""Calls of functions as calls of their kernels, in programs that a library compiles (`Programs`).

Steps without a kernel, such as dividing sums, use the library's own operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from anydml.functions import _combining
from anydml.functions._attributes import constant_of, padding
from anydml.functions._spec import Array, FunctionSpec, Programs, call_kernel

Arrays = Sequence[Array]


def call_with_numbers(
    xp: Programs, spec: FunctionSpec, operands: Arrays, attributes: Any
) -> Arrays:
    """A kernel that knows no bools gets the numbers that they are in memory."""
    first, *others = operands
    if first.dtype != np.bool_:
        return call_kernel(xp, spec, operands, attributes)
    results = call_kernel(xp, spec, (xp.astype(first, np.uint8), *others), attributes)
    return [
        xp.astype(result, np.bool_) if kind == 0 else result
        for result, kind in zip(results, spec.result_types, strict=True)
    ]


def scatter(xp: Programs, spec: FunctionSpec, operands: Arrays, attributes: Any) -> Arrays:
    """As `_combining` makes them of calls of the kernel."""
    x, indices, updates = operands
    *leading, reduction, include_self = attributes

    def once(data: Array, values: Array, reduction: str) -> Array:
        combining = (*leading, reduction, True)
        return call_kernel(xp, spec, (data, indices, values), combining, mean=0)[0]

    if reduction != "none" and x.dtype == np.bool_:
        bits = xp.astype(x, np.uint8), indices, xp.astype(updates, np.uint8)
        on_bits = (*leading, _combining.OF_BOOLS[reduction], include_self)
        return [scatter(xp, spec, bits, on_bits)[0] != 0]
    if reduction == "none" or (include_self and reduction != "mean"):
        return [once(x, updates, reduction)]
    if reduction == "mean":
        with xp.wide_types():
            return [_mean(xp, once, x, updates, include_self)]
    identity = xp.full(updates.shape, _combining.neutral(reduction, x.dtype), x.dtype)
    return [once(once(x, identity, "none"), updates, reduction)]


def _mean(
    xp: Programs,
    once: Callable[[Array, Array, str], Array],
    x: Array,
    updates: Array,
    include_self: bool,
) -> Array:
    wide = _combining.sum_type(x.dtype)
    sums = xp.astype(x, wide)
    if not include_self:
        sums = once(sums, xp.full(updates.shape, 0, wide), "none")
    sums = once(sums, xp.astype(updates, wide), "add")
    ones = xp.full(updates.shape, 1, np.int32)
    counts = once(xp.full(x.shape, 0, np.int32), ones, "add")
    means = xp.divide(sums, xp.clip(counts + int(include_self), 1, None))
    return xp.where(counts > 0, xp.astype(means, x.dtype), x)  # without updates: the same bits


def nonzero_coordinates(
    xp: Programs, spec: FunctionSpec, operands: Arrays, attributes: Any
) -> Arrays:
    """The kernel finds as many rows as there may be; then they are cut off or filled in."""
    (x,), (kind, size, fill) = operands, attributes
    total, columns = prod(x.shape), x.ndim
    if not total or not size:
        return [xp.full((size, columns), fill, kind)]
    source = xp.is_nonzero(x) if x.dtype.kind == "c" else x
    outputs = ((1,), np.uint32), ((total, columns), kind)
    count, rows = xp.run(spec.operator.KERNEL, (source,), outputs, {"columns": columns})
    row_numbers = xp.arange(size, count)
    taken = xp.take(rows, xp.clip(row_numbers, 0, total - 1), 0)
    return [xp.where(xp.reshape(row_numbers < count, (size, 1)), taken, fill)]


def pad(xp: Programs, spec: FunctionSpec, operands: Arrays, attributes: Any) -> Arrays:
    """The kernel takes the bits of the constant."""
    (x,), (starts, ends, mode, constant) = operands, attributes
    value = constant_of(constant, x, mode)
    bits = padding(x, [*zip(starts, ends, strict=True)], mode, value)["value"]
    return call_kernel(xp, spec, operands, attributes, value=bits)


def reverse_subsequences(
    xp: Programs, spec: FunctionSpec, operands: Arrays, attributes: Any
) -> Arrays:
    """A length below 0 means none."""
    x, lengths = operands
    if lengths.dtype.kind == "i":
        lengths = xp.clip(lengths, 0, None)
    return call_kernel(xp, spec, (x, lengths), attributes)
