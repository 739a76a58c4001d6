"""Any producer of DLPack whose library has no module of its own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from anydml._native import native
from anydml.core.errors import ArgumentTypeError
from anydml.libraries._base import Array, Wrap, unreadable
from anydml.libraries._device import DeviceArray, address_of
from anydml.libraries._types import DLPACK_CODES, dtype_name, is_added, to_counterpart, type_of

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # of NumPy's kinds
CUDA = 2  # kDLCUDA
_ON_HOST = (1, 3, 11, 13)  # kDLCPU, pinned and managed host memory: all readable by the CPU


def owns(value: Any) -> bool:
    """Whether the value can hand out its memory by DLPack."""
    return hasattr(value, "__dlpack__")


def as_operand(value: Any, name: str) -> tuple[Array, Wrap]:
    """The array as a NumPy array, and the library's own importer where it has one."""
    on_host(value, name)
    producer = _Integers(value)
    try:
        array: Array = np.from_dlpack(producer)
    except Exception as error:  # whatever the producer raises
        raise unreadable(name, error) from error
    if producer.name is not None:
        array = array.view(type_of(producer.name))
    library = type(value).__module__.partition(".")[0]
    importer = getattr(sys.modules.get(library), "from_dlpack", None)
    if not callable(importer):
        return array, to_counterpart
    return array, lambda result: importer(Exported(result) if is_added(result.dtype) else result)


class _Integers:
    """A producer whose elements NumPy takes: as integers, if it lacks their type."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.name: str | None = None  # of the type, once the memory has been handed out

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._value.__dlpack__(**options)
        self.name = native.as_integers(capsule)
        return capsule


class Exported:
    """A packed result as a producer, whatever its type and place."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        array = self._array
        return (CUDA, array.device) if isinstance(array, DeviceArray) else (_ON_HOST[0], 0)

    def __dlpack__(self, stream: int | None = None, **_: Any) -> Any:
        array = self._array
        if not isinstance(array, DeviceArray):
            return capsule_of(array, array)
        if stream is None:
            native.cuda.synchronize(array.device, array.stream)
        else:
            native.cuda.Event(array.device, array.stream).precede(stream)
        return capsule_of(array, array.owner)


def capsule_of(array: Any, owner: Any) -> Any:
    """The memory of a packed array as DLPack passes it, with what keeps it alive."""
    kind = array.dtype
    code = DLPACK_CODES[dtype_name(kind)] if is_added(kind) else _CODES[kind.kind]
    device = array.device if isinstance(array, DeviceArray) else -1
    return native.cuda.dlpack(owner, address_of(array), device, code, 8 * kind.itemsize,
                              list(array.shape))  # fmt: skip


def on_host(value: Any, name: str) -> None:
    """Refuse an array in memory that the CPU does not read."""
    try:
        kind, number = map(int, value.__dlpack_device__())
    except Exception as error:
        raise unreadable(name, error) from error
    if kind not in _ON_HOST:
        raise ArgumentTypeError(
            f"{name}: expected an array in memory that the CPU reads, got one on DLPack device "
            f"{kind}:{number}"
        )
