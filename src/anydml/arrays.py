"""Any array in, the same kind out: the only module that knows array libraries.

NumPy arrays pass through. PyTorch and JAX arrays on the CPU, and any other producer of DLPack, are
seen as NumPy arrays of the same memory; results go back as their kind without a copy. None of these
libraries is imported: an array of theirs that comes in shows that it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from anydml.errors import ArgumentTypeError

Array = np.ndarray[Any, np.dtype[Any]]
Wrap = Callable[[Array], Any]
"""Makes a result of the kind that came in from a NumPy array."""

_DLPACK_CPU = (1, 3, 11, 13)  # kDLCPU, pinned and managed host memory: all readable by the CPU


def as_numpy(value: Any, name: str) -> Array:
    """The value as a NumPy array, without a copy where it is an array already.

    Raises
    ------
    ArgumentTypeError
        Not an array or array-like of numbers, or not in memory that the CPU reads.
    """
    return adopt(value, name)[0]


def adopt(value: Any, name: str) -> tuple[Array, Wrap]:
    """`as_numpy`, and how to make a result of the same kind."""
    if type(value) is np.ndarray:
        return _numbers(value, name), _same
    if isinstance(value, np.ma.MaskedArray):
        raise ArgumentTypeError(f"{name}: expected an array without a mask, got a MaskedArray")
    if isinstance(value, np.ndarray | np.generic):
        return _numbers(np.asarray(value), name), _same
    library = type(value).__module__.partition(".")[0]
    if library == "torch" and hasattr(value, "numpy"):
        return _numbers(_from_torch(value, name), name), sys.modules["torch"].from_dlpack
    if library in ("jax", "jaxlib") and hasattr(value, "__dlpack__"):
        _host_only(value, name)
        return _numbers(np.asarray(value), name), sys.modules["jax"].numpy.from_dlpack
    if hasattr(value, "__dlpack__"):
        _host_only(value, name)
        return _numbers(_from_dlpack(value, name), name), _from_dlpack_of(library)
    return _numbers(_from_list(value, name), name), _same


def _same(array: Array) -> Array:
    return array


def _from_torch(value: Any, name: str) -> Array:
    if value.device.type != "cpu":
        raise ArgumentTypeError(
            f"{name}: expected a tensor on the CPU, got one on {value.device}; move it with .cpu()"
        )
    try:
        return value.numpy()  # type: ignore[no-any-return]  # shares memory, stays writable
    except (RuntimeError, TypeError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error


def _host_only(value: Any, name: str) -> None:
    try:
        kind, number = value.__dlpack_device__()
    except Exception as error:
        raise ArgumentTypeError(f"{name}: its memory cannot be read: {error}") from error
    if int(kind) not in _DLPACK_CPU:
        raise ArgumentTypeError(
            f"{name}: expected an array in memory that the CPU reads, got one on DLPack device "
            f"{int(kind)}:{number}"
        )


def _from_dlpack(value: Any, name: str) -> Array:
    try:
        return np.from_dlpack(value)
    except Exception as error:  # whatever the producer raises
        raise ArgumentTypeError(f"{name}: its memory cannot be read: {error}") from error


def _from_dlpack_of(library: str) -> Wrap:
    # The library's own importer where it has one in the usual place, else NumPy arrays.
    importer = getattr(sys.modules.get(library), "from_dlpack", None)
    return importer if callable(importer) else _same


def _from_list(value: Any, name: str) -> Array:
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error


def _numbers(array: Array, name: str) -> Array:
    if array.dtype.kind not in "fiubcmM" or array.dtype.itemsize > 16:
        raise ArgumentTypeError(
            f"{name}: expected numbers (of at most 16 bytes an element), got {array.dtype}"
        )
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="))
    return array
