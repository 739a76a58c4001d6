"""Any array in, the same kind out: a module for each library that is known here.

NumPy arrays pass through. PyTorch and JAX arrays on the CPU, and any other producer of DLPack, are
seen as NumPy arrays of the same memory; PyTorch and CuPy arrays on a GPU as a `DeviceArray`, which
says where they lie. Results go back as their kind without a copy. None of these libraries is
imported: an array of theirs that comes in shows that it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentTypeError
from anydml.libraries import _cupy, _dlpack, _jax, _numpy, _torch
from anydml.libraries._base import Array, Wrap, class_of
from anydml.libraries._device import DeviceArray
from anydml.libraries._types import (
    as_type,
    by_numpy,
    counterpart,
    dtype_name,
    is_added,
    is_plain,
    own_type,
    to_counterpart,
    to_internal_dtype,
)

_BUILTIN: Final = frozenset((bool, int, float, complex, list, tuple))  # no library owns these


@dataclass(frozen=True)
class Library:
    """The functions that one library's arrays need."""

    owns: Callable[[Any], bool]
    """Whether a value is an array of this library; without importing it."""
    as_operand: Callable[[Any, str], tuple[Array, Wrap]]
    """The array as a NumPy array of the same memory, and how to make a result of its kind. One
    without plain memory is refused; messages begin with the name."""
    index_type: Callable[[], np.dtype[Any]] = lambda: np.dtype(np.intp)
    """The type of the indices that its users index with."""
    check_dtype: Callable[[np.dtype[Any], str], object] = lambda dtype, name: None
    """Refuses a type that the library would change without a word."""
    promoted: Callable[[Sequence[np.dtype[Any]]], np.dtype[Any]] = by_numpy
    """The type that the library joins these types into; `TypeError` if there is none."""
    bump_version: Callable[[Any], None] = lambda value: None
    """Tells the library that an array of its own has been written."""


_NUMPY: Final = Library(_numpy.owns, _numpy.as_operand, check_dtype=counterpart)
_TORCH: Final = Library(
    _torch.owns,
    _torch.as_operand,
    _torch.index_type,
    promoted=_torch.promoted,
    bump_version=_torch.bump_version,
)
_CUPY: Final = Library(_cupy.owns, _cupy.as_operand)
_JAX: Final = Library(_jax.owns, _jax.as_operand, _jax.index_type, _jax.check_dtype, _jax.promoted)
_DLPACK: Final = Library(_dlpack.owns, _dlpack.as_operand)

LIBRARIES: Final = (_NUMPY, _TORCH, _CUPY, _JAX, _DLPACK)
"""The first that owns a value takes it; what none owns is made an array of numbers."""


def has_no_memory(value: Any) -> bool:
    """Whether the value is lazy or traced: a dask array, or a tracer of JAX."""
    return _is_dask(value) or _jax.is_tracer(value)


def reject_dask(value: Any, name: str) -> None:
    """Reject a dask array where converting it would compute it without being asked."""
    if _is_dask(value):
        raise ArgumentTypeError(
            f"{name}: expected an array in memory, got a dask array; call {name}.compute(), or "
            f"make the first operand a dask array"
        )


def _is_dask(value: Any) -> bool:
    return isinstance(value, class_of("dask.array", "Array"))


def as_numpy(value: Any, name: str) -> Array:
    """The value as a NumPy array, without a copy where it is an array already."""
    array = as_operand(value, name)[0]
    if isinstance(array, DeviceArray):
        raise ArgumentTypeError(
            f"{name}: expected an array in memory that the CPU reads, got one on {array.place}"
        )
    return array


def as_operand(value: Any, name: str) -> tuple[Array, Wrap]:
    """`as_numpy`, and how to make a result of the same kind."""
    if type(value) is np.ndarray:
        return _numbers(value, name), to_counterpart
    if type(value) not in _BUILTIN:
        for library in LIBRARIES:
            if library.owns(value):
                array, wrap = library.as_operand(value, name)
                return _numbers(array, name), wrap
    array = _numpy.from_values(value, name)
    if array.dtype.kind == "O":  # what NumPy could not make numbers of
        raise ArgumentTypeError(
            f"{name}: expected numbers or an array of them, got {_describe(value)}"
        )
    return _numbers(array, name), to_counterpart


def check_dtype(value: Any, dtype: np.dtype[Any], name: str) -> None:
    """Refuse a type that an array's library would change; the message begins with `name`."""
    library_of(value).check_dtype(dtype, name)


def promoted(value: Any, dtypes: Sequence[np.dtype[Any]], name: str) -> np.dtype[Any]:
    """The type that an array's library joins these types into; messages begin with `name`."""
    library = library_of(value)
    try:
        kind = library.promoted(dtypes)
    except ArgumentTypeError:
        raise
    except (TypeError, AttributeError, RuntimeError) as error:
        types = ", ".join(map(dtype_name, dtypes))
        raise ArgumentTypeError(
            f"{name}: expected types that can be promoted to one, got {types}"
        ) from error
    library.check_dtype(kind, name)
    return kind


def bump_version(value: Any) -> None:
    """Tell an array's library that the array has been written."""
    if type(value) is not np.ndarray:
        library_of(value).bump_version(value)


def _describe(value: Any) -> str:
    # What stands for itself in a message, or its class: an address says nothing.
    plain = value is None or isinstance(
        value, str | bytes | int | float | list | tuple | dict | set
    )
    if plain:
        return short_repr(value)
    sparse = callable(getattr(type(value), "todense", None))  # SciPy's and JAX's
    return f"an object of class {type(value).__qualname__}" + "; use .todense()" * sparse


def library_of(value: Any) -> Library:
    """The library of an array; NumPy for what no library owns."""
    return next((library for library in LIBRARIES if library.owns(value)), _NUMPY)


_TYPES = (
    "bool, integers of 8 to 64 bits, floats of 8 to 128 bits, bfloat16, complex64, complex128, "
    "datetime64, timedelta64"
)
_OTHER = {"O": "Python objects", "U": "strings", "S": "bytes", "T": "strings", "V": "records"}


def _numbers(array: Array, name: str) -> Array:
    if is_plain(array.dtype) or is_added(array.dtype):
        return array
    try:
        native = array.dtype.newbyteorder("=")
    except TypeError as error:  # types of NumPy 2's kind, as strings of any length
        raise _no_numbers(array.dtype, name) from error
    if is_added(own_type(native)):
        return to_internal_dtype(array if array.dtype.isnative else as_type(array, native, name))
    if array.dtype.kind not in "fiubcmM" or array.dtype.itemsize > 16:
        raise _no_numbers(array.dtype, name)
    if not array.dtype.isnative:
        return as_type(array, array.dtype.newbyteorder("="), name)
    return array


def _no_numbers(dtype: np.dtype[Any], name: str) -> ArgumentTypeError:
    # A type that another library adds to NumPy looks like a record, and has no fields.
    added = dtype.kind == "V" and dtype.names is None
    other = None if added else _OTHER.get(dtype.kind)
    if other == "strings" or dtype.kind == "S":
        hint = "numpy.unique(..., return_inverse=True) numbers them"
        return ArgumentTypeError(f"{name}: expected numbers, got {other} ({dtype}); {hint}")
    got = f"{other} ({dtype})" if other else dtype
    return ArgumentTypeError(f"{name}: expected numbers ({_TYPES}), got {got}")
