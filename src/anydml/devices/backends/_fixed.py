"""Arrays in host memory that nothing writes, which compiled code may contain as constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.core.program import ArraySpec
from anydml.devices.backends._base import Array, host_copy
from anydml.devices.backends._sequence import HostMemory, Step


class Fixed(np.ndarray[Any, np.dtype[Any]]):
    """A read-only array, which may be a constant of compiled code."""


def fixed_copy(array: Any, call: str, purpose: str) -> Any:
    """A copy of a bound array; elements that strides of 0 repeat are there once."""
    copied = host_copy(unrepeated(array), call, purpose)
    return np.broadcast_to(copied, array.shape).view(Fixed)


def unrepeated(x: Array) -> Array:
    """The array with the size 1 where a stride of 0 repeats elements."""
    if 0 not in x.strides:
        return x
    return x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides)]


def plain_step(step: Step) -> Step:
    """A step that takes fixed arrays as any others."""

    def run(inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int) -> int:
        plain = [x.view(np.ndarray) if isinstance(x, Fixed) else x for x in inputs]
        return step(plain, outputs, private, threads)

    return run


class MemoryWithFixed(HostMemory):
    """Views of `Fixed` arrays are `Fixed` too."""

    def view(self, base: Array, offset: int, spec: ArraySpec, strides: tuple[int, ...]) -> Array:
        result = super().view(base, offset, spec, strides)
        return result.view(Fixed) if isinstance(base, Fixed) else result

    def pack(self, array: Array) -> Array:
        packed = super().pack(array)
        return (
            packed.view(Fixed) if isinstance(array, Fixed) and array.flags.c_contiguous else packed
        )
