"""Functions that move elements, made of an array library's own operations.

A library that compiles or schedules these itself can fuse, cut and differentiate them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.functions._attributes import constant_of
from anydml.functions._spec import SPECS, Array, MovingNamespace, Namespace
from anydml.ops.slice1 import first_places

Arrays = Sequence[Array]


def split(xp: Namespace, operands: Arrays, attributes: Any) -> Arrays:
    """A slice for each slab."""
    (x,), (sizes, axis) = operands, attributes
    before = (slice(None),) * axis
    slabs, start = [], 0
    for size in sizes:
        # PyTorch cannot batch a slice of everything, which is a view of no other shape.
        whole = size == x.shape[axis]
        slabs.append(x if whole else x[(*before, slice(start, start + size))])
        start = start + size
    return slabs


def join(xp: Namespace, operands: Arrays, attributes: Any) -> Arrays:
    """The library's own operation."""
    return [xp.concatenate(operands, attributes[0])]


def slice_window(xp: MovingNamespace, operands: Arrays, attributes: Any) -> Arrays:
    """A slice along each axis."""
    (x,), (starts, sizes, strides) = operands, attributes
    places = first_places({"starts": starts, "sizes": sizes, "strides": strides})
    slices = []
    for first, size, stride in zip(places, sizes, strides, strict=True):
        end = first + stride * -(-size // abs(stride))
        slices.append(slice(first, end if end >= 0 else None, stride) if size else slice(0, 0))
    return [x[tuple(slices)]]


def pad(xp: MovingNamespace, operands: Arrays, attributes: Any) -> Arrays:
    """Axis by axis, with one value or with slices of the array."""
    (x,), (starts, ends, mode, constant) = operands, attributes
    value = constant_of(constant, x, mode)[()]
    for axis, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if (start, end) == (0, 0):
            continue
        if mode == "constant":
            before, behind = (xp.fill(x, axis, size, value) for size in (start, end))
        else:
            size = x.shape[axis]
            padded = SPECS["pad"].general(np.arange(size), ((start, end),), mode, 0, None)
            before, behind = (
                xp.take(x, padded[:start], axis),
                xp.take(x, padded[start + size :], axis),
            )
        x = xp.concatenate([before, x, behind], axis)
    return [x]


def tile(xp: MovingNamespace, operands: Arrays, attributes: Any) -> Arrays:
    """Axis by axis."""
    (x,), (repeats,) = operands, attributes
    for axis, count in enumerate(repeats):
        x = xp.repeat(x, count, axis)
    return [x]


def reverse_subsequences(xp: MovingNamespace, operands: Arrays, attributes: Any) -> Any:
    """The elements at positions that are computed from the lengths."""
    (x, lengths), (axis,) = operands, attributes
    places = xp.numbers(x, axis)
    reversed_places = xp.positions(xp.clip(lengths, None, x.shape[axis])) - 1 - places
    return xp.call(
        SPECS["gather_elements"],
        (x, xp.where(reversed_places >= 0, reversed_places, places)),
        (axis, False),
    )
