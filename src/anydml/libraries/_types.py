"""Element types: those that NumPy lacks, conversion and promotion.

NumPy lacks bfloat16 and floats of 8 bits. An array of such a type, whichever library it comes from,
is seen here as records of one unsigned integer: plain NumPy, in which nothing is registered. The
list of these types is in native/common/types.def. NumPy's users have them from `ml_dtypes`, which
is imported only for a result that NumPy's users get: an array of its types shows that it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np

from anydml._native import NUMBERS, native
from anydml.core.errors import AllocationError, ArgumentTypeError
from anydml.devices.threads import get_num_threads
from anydml.libraries._base import Array, class_of

_FOUND: Final[dict[str, tuple[np.dtype[Any], int]]] = native.added_types()

ADDED: Final = {name: dtype for name, (dtype, _) in _FOUND.items()}
"""The types that NumPy lacks, by name."""

DLPACK_CODES: Final = {name: code for name, (_, code) in _FOUND.items()}

_NAMES: Final = {dtype: name for name, dtype in ADDED.items()}

_NUMPY_NAMES: Final = {
    np.dtype(name): name
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}  # str(dtype) takes 4 µs

_USER_DEFINED: Final = 256  # NumPy's types of this number and above come from other packages


def is_added(dtype: np.dtype[Any]) -> bool:
    """Whether it stands for a type that NumPy lacks."""
    return dtype in _NAMES


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of a type: of one that NumPy lacks its own, else what NumPy prints."""
    return _NAMES.get(dtype) or _NUMPY_NAMES.get(dtype) or str(dtype)


def is_plain(dtype: np.dtype[Any]) -> bool:
    """Whether it is a type of numbers that NumPy has itself, in native byte order."""
    return dtype in _NUMPY_NAMES


def own_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return this package's type for one of `ml_dtypes` in native byte order; others unchanged."""
    if dtype.num < _USER_DEFINED or dtype.name not in ADDED or not dtype.isnative:
        return dtype
    if class_of("ml_dtypes", dtype.name) is not dtype.type:
        return dtype
    native.know_added_type(dtype, dtype.name)
    return ADDED[dtype.name]


def type_of(name: str) -> np.dtype[Any]:
    """The type of a name, NumPy's or what stands here for one that NumPy lacks."""
    own = ADDED.get(name)
    return np.dtype(name) if own is None else own


def to_internal_dtype(array: Array) -> Array:
    """An array as it is seen here, where it has a type of `ml_dtypes`."""
    own = own_type(array.dtype)
    return array if own is array.dtype else array.view(own)


def counterpart(dtype: np.dtype[Any], name: str) -> np.dtype[Any]:
    """Return the type of `ml_dtypes` for one that NumPy lacks; others unchanged.

    The message of a missing or too old `ml_dtypes` begins with `name`.
    """
    if not is_added(dtype):
        return dtype
    with suppress(ImportError):
        import ml_dtypes  # noqa: F401 (class_of finds it)
    kind = class_of("ml_dtypes", _NAMES[dtype])
    if not (isinstance(kind, type) and issubclass(kind, np.generic)):
        raise ArgumentTypeError(
            f"{name}: expected a type that NumPy has, got {_NAMES[dtype]}; "
            "`pip install 'anydml[bfloat16]'` adds it"
        )
    return np.dtype(kind)


def by_numpy(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The type that NumPy's own rules join types into."""
    return own_type(np.result_type(*[counterpart(dtype, "arrays") for dtype in dtypes]))


def to_counterpart(array: Array) -> Array:
    """A result as a NumPy array that its users know."""
    return array.view(counterpart(array.dtype, "result")) if is_added(array.dtype) else array


def as_type(array: Array, dtype: Any, name: str) -> Array:
    """A copy of an operand as another type."""
    target = np.dtype(dtype)
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(
            f"{name}: expected {dtype_name(target)}, got {dtype_name(array.dtype)}, which is "
            f"converted in memory that the CPU reads only; use dml.cast first"
        )
    try:
        if is_added(target) or is_added(array.dtype):
            return _converted(array, target, name)
        return array.astype(target)
    except AllocationError:
        raise
    except (MemoryError, ValueError):  # "array is too big"
        size = array.size * target.itemsize
        raise AllocationError(name, size, f"a copy as {dtype_name(target)}") from None


def _converted(array: Array, target: np.dtype[Any], name: str) -> Array:
    if target == array.dtype:
        return array.copy()
    if array.dtype == ADDED["bfloat16"] and not is_added(target):
        floats = array.view(np.uint16).astype(np.uint32)
        floats <<= 16  # in place: rank 0 stays an array
        return floats.view(np.float32).astype(target, copy=False)
    numbers = array.view(np.uint8) if array.dtype == np.bool_ else array
    if target == ADDED["bfloat16"] and numbers.dtype.name in NUMBERS:
        result = np.empty(array.shape, target)
        native.run("cast", (numbers,), (result,), {}, True, get_num_threads())
        return result
    if is_added(target) and target.itemsize == 1 and array.dtype.kind in "iuf" and not array.any():
        return np.zeros(array.shape, target)
    raise ArgumentTypeError(f"{name}: expected {dtype_name(target)}, got {dtype_name(array.dtype)}")
