"""Types of elements: those that NumPy lacks, conversion and promotion.

NumPy lacks bfloat16 and floats of 8 bits, which are only moved. Arrays of these types, whichever
library they come from, are seen under types of this library's own, of which
native/python/added_types.cpp has the list. NumPy's users have them from `ml_dtypes`, which is never
imported here: what an array of its types shows is that it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from anydml._native import native
from anydml.arrays._base import Array, class_of
from anydml.errors import AllocationError, ArgumentTypeError
from anydml.threads import get_num_threads

_FOUND: Final[dict[str, tuple[np.dtype[Any], int]]] = native.added_types()

ADDED: Final = {name: dtype for name, (dtype, _) in _FOUND.items()}
"""This library's own types by name."""

FLOATS_OF_8_BITS: Final = tuple(name for name, dtype in ADDED.items() if dtype.itemsize == 1)
"""Those that have no numbers here."""

DLPACK_CODES: Final = {name: code for name, (_, code) in _FOUND.items()}

# What becomes bfloat16.
_CONVERTED: Final = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64",
                     "uint32", "uint16", "uint8")  # fmt: skip

USER_DEFINED: Final = 256
"""Types of this number and above come from libraries."""


def is_added(dtype: np.dtype[Any]) -> bool:
    """Whether it is one of this library's own types."""
    return dtype.num >= USER_DEFINED and ADDED.get(dtype.name) == dtype


def own_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What stands here for a type of `ml_dtypes` in native byte order; any other as it is."""
    foreign = dtype.type.__module__.startswith("ml_dtypes")
    if not foreign or not dtype.isnative:
        return dtype
    own = ADDED.get(dtype.name)
    if own is None or own.itemsize != dtype.itemsize:
        return dtype
    native.know_added_type(dtype, dtype.name)
    return own


def type_of(name: str) -> np.dtype[Any]:
    """The type of a name, NumPy's or this library's own."""
    own = ADDED.get(name)
    return np.dtype(name) if own is None else own


def seen(array: Array) -> Array:
    """An array under this library's own type, where it has `ml_dtypes`' of the same name."""
    own = own_type(array.dtype)
    return array if own is array.dtype else array.view(own)


def counterpart(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """What NumPy's users have in place of one of this library's own types.

    Raises
    ------
    ArgumentTypeError
        `ml_dtypes` is not loaded, or has it not; the message begins with `name`.
    """
    if not is_added(dtype):
        return dtype
    kind = class_of("ml_dtypes", dtype.name)
    if not isinstance(kind, type) or not issubclass(kind, np.generic):
        raise ArgumentTypeError(
            f"{name}: expected a type that NumPy has, got {dtype}; import ml_dtypes, which adds it"
        )
    found: np.dtype[Any] = np.dtype(kind)
    return found


def by_numpy(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The type that NumPy's own rules join types into."""
    return own_type(np.result_type(*[counterpart(dtype, "arrays") for dtype in dtypes]))


def given_back(array: Array) -> Array:
    """A result as a NumPy array that its users know."""
    dtype = array.dtype
    return array if dtype.num < USER_DEFINED else array.view(counterpart(dtype, "result"))


def as_type(array: Array, dtype: Any, name: str) -> Array:
    """A copy of an operand as another type.

    Raises
    ------
    ArgumentTypeError
        Not in memory that the CPU reads, or a type without numbers.
    AllocationError
        There is no memory for the copy.
    """
    wanted = np.dtype(dtype)
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"{name}: expected {wanted}, got {array.dtype}, which is converted in memory "
            f"that the CPU reads only; use dml.cast first"
        )
    try:
        if is_added(wanted) or is_added(array.dtype):
            return _converted(array, wanted, name)
        return array.astype(wanted)
    except AllocationError:
        raise
    except (MemoryError, ValueError):  # "array is too big"
        size = array.size * wanted.itemsize
        raise AllocationError(name, size, f"a copy as {wanted}") from None


def _converted(array: Array, wanted: np.dtype[Any], name: str) -> Array:
    if wanted == array.dtype:
        return array.copy()
    if array.dtype == ADDED["bfloat16"] and not is_added(wanted):
        floats = array.view(np.uint16).astype(np.uint32)
        floats <<= 16  # in place: rank 0 stays an array
        return floats.view(np.float32).astype(wanted, copy=False)
    numbers = array.view(np.uint8) if array.dtype == np.bool_ else array
    if wanted.name == "bfloat16" and numbers.dtype.name in _CONVERTED:
        made = np.empty(array.shape, wanted)
        native.run("cast", (numbers,), (made,), {}, True, get_num_threads())
        return made
    if wanted.name in FLOATS_OF_8_BITS and array.dtype.kind in "iuf" and not array.any():
        return np.zeros(array.shape, wanted)
    raise ArgumentTypeError(f"{name}: expected {wanted}, got {array.dtype}")
