"""Arrays in a GPU's memory: where they lie and how. Nothing here reads them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, prod
from typing import Any, NamedTuple

import numpy as np

from anydml.core.errors import ArgumentTypeError

Shape = tuple[int, ...]


class Flags(NamedTuple):
    """The flags of `numpy.ndarray.flags`."""

    aligned: bool
    c_contiguous: bool
    f_contiguous: bool
    writeable: bool


@dataclass(slots=True, eq=False, repr=False)
class DeviceArray:
    """An array of a library on a GPU, with the names that an ndarray has for the same things."""

    address: int
    """The address of the first element."""
    dtype: np.dtype[Any]
    shape: Shape
    strides: Shape
    """The strides, in bytes."""
    device: int
    """The number of the GPU."""
    stream: int
    """The stream that its library works on now."""
    owner: Any
    """The library's own array: what a caller gets back, and what keeps the memory alive."""
    make: Callable[[Shape, np.dtype[Any]], DeviceArray]
    """Makes a new array of a shape and type by the same library, on the same GPU."""
    writeable: bool = True
    """Whether it may be an output."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ArgumentTypeError(
            f"expected arrays in memory that the CPU reads for this, got one on {self.place}"
        )

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def place(self) -> str:
        """The device, as messages name it."""
        return f"cuda:{self.device}"

    @property
    def flags(self) -> Flags:
        """How the elements lie."""
        place = stand_in(self).flags
        strides = [s for n, s in zip(self.shape, self.strides, strict=True) if n > 1]
        aligned = gcd(self.address, *strides) % self.itemsize == 0 or self.size == 0
        return Flags(aligned, place.c_contiguous, place.f_contiguous, self.writeable)

    def reshape(self, shape: int | Shape) -> DeviceArray:
        """Insert or remove sizes of 1."""
        new_shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if new_shape == self.shape:
            return self
        kept = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        if [n for n, _ in kept] != [n for n in new_shape if n != 1]:
            raise ArgumentTypeError(f"shape: expected one like {self.shape}, got {new_shape}")
        rest = iter(kept)
        strides = tuple(self.itemsize if n == 1 else next(rest)[1] for n in new_shape)
        return self.laid_out(new_shape, self.dtype, strides)

    def broadcast_to(self, shape: Shape) -> DeviceArray:
        """Broadcast the array to a shape, or raise `ValueError`."""
        if np.broadcast_shapes(self.shape, shape) != tuple(shape):
            raise ValueError(f"expected a shape that {self.shape} can be broadcast to, got {shape}")
        added = len(shape) - self.ndim
        pairs = zip(self.shape, self.strides, shape[added:], strict=True)
        strides = (0,) * added + tuple(s if n == size else 0 for n, s, size in pairs)
        result = self.laid_out(tuple(shape), self.dtype, strides)
        result.writeable = False
        return result

    def view(self, dtype: Any) -> DeviceArray:
        """View the memory as another type of the same size."""
        return self.laid_out(self.shape, np.dtype(dtype), self.strides)

    def laid_out(self, shape: Shape, dtype: np.dtype[Any], strides: Shape) -> DeviceArray:
        """The memory from the first element on, under another layout."""
        return DeviceArray(self.address, dtype, shape, strides, self.device, self.stream,
                           self.owner, self.make, self.writeable)  # fmt: skip


class Memory:
    """An object with NumPy's array interface, for NumPy, which holds this and so the owner."""

    def __init__(
        self, address: int, typestr: str, shape: Shape, strides: Shape, owner: Any, writeable: bool
    ) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, not writeable),
            "typestr": typestr,
            "shape": shape,
            "strides": strides,
        }


def stand_in(x: Any) -> Any:
    """An ndarray with the address of the array, for computing its extent; never read."""
    if not isinstance(x, DeviceArray):
        return x
    return np.asarray(Memory(x.address, f"|V{x.itemsize}", x.shape, x.strides, x, False))


def address_of(array: Any) -> int:
    """The address of the first element."""
    if isinstance(array, DeviceArray):
        return array.address
    return int(array.__array_interface__["data"][0])


def packed_strides(shape: Shape, itemsize: int) -> Shape:
    """The strides, in bytes, of an array without gaps in row-major order."""
    strides = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    return tuple(reversed(strides))


def owner_of(array: Any) -> Any:
    """A result as the library's own array."""
    return array.owner


def apart_from(a: Any, b: Any) -> bool:
    """Whether two arrays are in memories of different devices."""
    first = a.device if isinstance(a, DeviceArray) else None
    second = b.device if isinstance(b, DeviceArray) else None
    return first != second
