"""NumPy arrays, their scalars, and what NumPy makes an array of: numbers, lists, buffers."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import AllocationError, ArgumentTypeError
from anydml.core.tensor import NUMBERS, frozen
from anydml.libraries._base import Array, Wrap, check_unlabelled
from anydml.libraries._types import to_counterpart


def owns(value: Any) -> bool:
    """Whether the value is an array, of any class, or a scalar."""
    return isinstance(value, np.ndarray | np.generic)


def as_operand(value: Any, name: str) -> tuple[Array, Wrap]:
    """The array itself."""
    return unmasked(value, name), to_counterpart


def unmasked(value: Any, name: str) -> Array:
    """An array of any class but NumPy's masked one, whose mask no function keeps."""
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(
            f"{name}: expected an array without a mask, got a MaskedArray; use .filled(..) or .data"
        )
    return np.asarray(value)


def _check_members(values: Any, name: str, visited: set[int]) -> None:
    # NumPy takes arrays inside lists too, and drops their masks and labels.
    if isinstance(values, np.ndarray):
        unmasked(values, name)
    elif not isinstance(values, tuple):
        check_unlabelled(values, name)
    elif id(values) not in visited:
        visited.add(id(values))
        if not NUMBERS.issuperset(map(type, values)):
            for i, member in enumerate(values):
                _check_members(member, f"{name}[{i}]", visited)


def from_values(value: Any, name: str) -> Array:
    """A new array of numbers or lists of them, or one over a buffer."""
    try:
        values = frozen(value)
        _check_members(values, name, set())
        array = np.asarray(values)
        _inside_its_buffer(array, name)
        return array
    except ArgumentTypeError:
        raise
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error
    except MemoryError:
        raise AllocationError(name, None, f"an array of {short_repr(value)}") from None


def _inside_its_buffer(array: Array, name: str) -> None:
    # NumPy takes the offset and strides of an `__array_interface__` over a buffer as they are.
    if array.base is None or isinstance(array.base, np.ndarray) or not array.size:
        return
    try:
        buffer = np.frombuffer(array.base, np.uint8)
    except (TypeError, ValueError, BufferError):
        return  # a pointer, which only its owner can vouch for
    begin, first = (a.__array_interface__["data"][0] for a in (buffer, array))
    spans = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    low = first + sum(span for span in spans if span < 0)
    high = first + sum(span for span in spans if span > 0) + array.itemsize
    if low < begin or high > begin + buffer.nbytes:
        raise ArgumentTypeError(
            f"{name}: expected an array within its buffer of {buffer.nbytes} bytes, "
            f"got one from {low - begin} to {high - begin}"
        )
