"""Any producer of DLPack whose library has no module of its own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from anydml.arrays._base import (
    Array,
    Wrap,
    every_type,
    intp,
    unnoticed,
    unreadable,
)
from anydml.arrays._types import by_numpy, given_back
from anydml.errors import ArgumentTypeError

_ON_HOST = (1, 3, 11, 13)  # kDLCPU, pinned and managed host memory: all readable by the CPU

index_type = intp
keep = every_type
promoted = by_numpy
written = unnoticed


def owns(value: Any) -> bool:
    """Whether the value can hand out its memory by DLPack."""
    return hasattr(value, "__dlpack__")


def adopt(value: Any, name: str) -> tuple[Array, Wrap]:
    """The array as a NumPy array, and the library's own importer where it has one."""
    on_host(value, name)
    try:
        array: Array = np.from_dlpack(value)
    except Exception as error:  # whatever the producer raises
        raise unreadable(name, error) from error
    library = type(value).__module__.partition(".")[0]
    importer = getattr(sys.modules.get(library), "from_dlpack", None)
    return array, importer if callable(importer) else given_back


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
