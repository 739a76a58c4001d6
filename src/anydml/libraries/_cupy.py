"""CuPy arrays."""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np

from anydml.core.errors import AllocationError
from anydml.libraries._base import Array, Wrap, class_of
from anydml.libraries._device import DeviceArray, Shape, owner_of, packed_strides
from anydml.libraries._types import counterpart


def owns(value: Any) -> bool:
    """Whether the value is an array, or of a class made from one."""
    return isinstance(value, class_of("cupy", "ndarray"))


def as_operand(value: Any, name: str) -> tuple[Array, Wrap]:
    """The array's place on its GPU."""
    cupy: Any = sys.modules["cupy"]
    device = int(value.device.id)
    with cupy.cuda.Device(device):
        stream = int(cupy.cuda.get_current_stream().ptr)

    def make(shape: Shape, like: np.dtype[Any]) -> DeviceArray:
        kind = counterpart(like, "result")
        try:
            with cupy.cuda.Device(device):
                result = cupy.empty(shape, kind)
        except (MemoryError, ValueError):  # the latter: larger than any memory
            raise AllocationError("cupy", prod(shape) * like.itemsize, "an array") from None
        strides = packed_strides(shape, like.itemsize)
        return DeviceArray(int(result.data.ptr), like, shape, strides, device, stream, result, make)

    address, dtype = int(value.data.ptr), np.dtype(value.dtype)
    array: Any = DeviceArray(
        address, dtype, value.shape, value.strides, device, stream, value, make
    )
    return array, owner_of
