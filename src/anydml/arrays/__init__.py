"""Any array in, the same kind out: a module for each library that is known here.

NumPy arrays pass through. PyTorch and JAX arrays on the CPU, and any other producer of DLPack, are
seen as NumPy arrays of the same memory; PyTorch and CuPy arrays on a GPU as a `DeviceArray`, which
says where they lie. Results go back as their kind without a copy. None of these libraries is
imported: an array of theirs that comes in shows that it is loaded.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from anydml.arrays import _cupy, _dlpack, _jax, _numpy, _torch
from anydml.arrays._base import Array, Library, Wrap, as_type, unchanged
from anydml.arrays._device import (
    DeviceArray,
    address_of,
    apart_from,
    packed_strides,
    stand_in,
)
from anydml.errors import ArgumentTypeError

LIBRARIES: Final[tuple[Library, ...]] = (_numpy, _torch, _cupy, _jax, _dlpack)
"""The first that owns a value takes it; what none owns is made an array of numbers."""

__all__ = [
    "LIBRARIES",
    "Array",
    "DeviceArray",
    "Library",
    "Wrap",
    "address_of",
    "adopt",
    "apart_from",
    "as_numpy",
    "as_type",
    "packed_strides",
    "stand_in",
    "written",
]


def as_numpy(value: Any, name: str) -> Array:
    """The value as a NumPy array, without a copy where it is an array already.

    Raises
    ------
    ArgumentTypeError
        Not an array or array-like of numbers, or not in memory that the CPU reads.
    """
    array = adopt(value, name)[0]
    if isinstance(array, DeviceArray):
        raise ArgumentTypeError(
            f"{name}: expected an array in memory that the CPU reads, got one on {array.place}"
        )
    return array


def adopt(value: Any, name: str) -> tuple[Array, Wrap]:
    """`as_numpy`, and how to make a result of the same kind."""
    if type(value) is np.ndarray:
        return _numbers(value, name), unchanged
    for library in LIBRARIES:
        if library.owns(value):
            array, wrap = library.adopt(value, name)
            return _numbers(array, name), wrap
    return _numbers(_numpy.from_values(value, name), name), unchanged


def written(value: Any) -> None:
    """Tell an array's library that the array has been written."""
    if type(value) is np.ndarray:
        return
    for library in LIBRARIES:
        if library.owns(value):
            library.written(value)
            return


def _numbers(array: Array, name: str) -> Array:
    if array.dtype.kind not in "fiubcmM" or array.dtype.itemsize > 16:
        raise ArgumentTypeError(
            f"{name}: expected numbers (of at most 16 bytes an element), got {array.dtype}"
        )
    if not array.dtype.isnative:
        return as_type(array, array.dtype.newbyteorder("="), name)
    return array
