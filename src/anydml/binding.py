"""What a caller binds to a tensor, as an array of the tensor's sizes over the same memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.arrays import as_numpy
from anydml.dtypes import DataType
from anydml.errors import ArgumentTypeError, BindingError
from anydml.tensor import TensorDesc, overlapping

Array = np.ndarray[Any, np.dtype[Any]]

# Byte-sized kinds in which a raw buffer may come: memory, not numbers of another type.
_RAW = (np.dtype("u1"), np.dtype("i1"), np.dtype("S1"), np.dtype("V1"))

# Bounds the search for shared bytes between interleaved arrays.
_OVERLAP_WORK = 100_000


def bind(name: str, tensor: TensorDesc, value: Any, output: bool) -> Array:
    """The bound memory as an array of the tensor's sizes.

    An array whose shape equals the sizes is taken element by element, whatever its memory layout. A
    flat contiguous array, or anything bytes-like, is the raw buffer: laid out by the strides.

    Raises
    ------
    BindingError
        Wrong size, type, byte order or alignment; a read-only output; an output that overlaps
        itself.
    """
    array = _memory(name, tensor, value)
    wanted = tensor.data_type.numpy
    if array.shape == tensor.sizes and (array.dtype.type is wanted.type or _as_bool(array, tensor)):
        if not array.dtype.isnative:
            raise BindingError(f"{name}: expected {wanted} in native byte order, got {array.dtype}")
        view = array.view(wanted) if array.dtype != wanted else array
    else:
        view = _raw_buffer(name, tensor, array)
    if not view.flags.aligned:
        raise BindingError(
            f"{name}: expected memory aligned to the element size ({wanted.itemsize} bytes), "
            f"got address {view.__array_interface__['data'][0]:#x} with strides {view.strides}"
        )
    if output:
        if not view.flags.writeable:
            raise BindingError(f"{name}: expected writable memory for an output, got read-only")
        if overlaps_itself(view):
            raise BindingError(
                f"{name}: expected an output that gives each element its own place, "
                f"got strides {view.strides} (bytes) for sizes {view.shape}"
            )
    return view


def _memory(name: str, tensor: TensorDesc, value: Any) -> Array:
    if value is None:
        raise BindingError(f"{name}: expected an array or buffer, got None")
    if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
        try:
            return np.asarray(memoryview(value))
        except (TypeError, ValueError, BufferError):
            pass
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        return np.asarray(value)
    try:
        return as_numpy(value, name)
    except ArgumentTypeError as error:
        raise BindingError(str(error)) from error


def _as_bool(array: Array, tensor: TensorDesc) -> bool:
    return array.dtype == np.bool_ and tensor.data_type is DataType.UINT8


def _raw_buffer(name: str, tensor: TensorDesc, array: Array) -> Array:
    wanted = tensor.data_type.numpy
    expected = f"{wanted} of shape {tensor.sizes}"
    if array.ndim != 1 or not array.flags.c_contiguous:
        raise BindingError(
            f"{name}: expected {expected} or a flat contiguous buffer, "
            f"got {array.dtype} of shape {array.shape}"
        )
    if array.dtype != wanted and array.dtype not in _RAW:
        raise BindingError(
            f"{name}: expected {expected} or a flat buffer of {wanted} or bytes, "
            f"got a flat buffer of {array.dtype}"
        )
    total, least = tensor.total_tensor_size_in_bytes, elements_size(tensor)
    exact = total == tensor.minimum_size_in_bytes and array.nbytes >= least
    if array.nbytes < total and not exact:
        raise BindingError(
            f"{name}: expected at least {total} bytes (TotalTensorSizeInBytes), got {array.nbytes}"
        )
    strides = tuple(stride * wanted.itemsize for stride in tensor.element_strides)
    # The bytes up to the last element only: the array may end before the rounded-up size.
    flat = array.view(np.uint8)[:least].view(np.uint8)
    return np.ndarray(tensor.sizes, wanted, flat, 0, strides)


def elements_size(tensor: TensorDesc) -> int:
    """Bytes up to the tensor's last element, not rounded up."""
    pairs = zip(tensor.sizes, tensor.element_strides, strict=True)
    last = sum((size - 1) * stride for size, stride in pairs)
    return (last + 1) * tensor.data_type.element_size


def overlaps_itself(array: Array) -> bool:
    """Whether two elements of an array share memory."""
    if array.flags.c_contiguous or array.flags.f_contiguous or array.size < 2:
        return False
    strides = (*(abs(stride) for stride in array.strides), 1)
    return overlapping((*array.shape, array.itemsize), strides)


def share_memory(a: Array, b: Array) -> bool:
    """Whether two arrays have a byte in common; layouts made to defeat the search count as such."""
    if not np.may_share_memory(a, b):
        return False
    try:
        # NumPy's stubs know only two values of max_work.
        return np.shares_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def same_memory(a: Array, b: Array) -> bool:
    """Whether two arrays are the same elements in the same places."""
    return (
        a.__array_interface__["data"][0] == b.__array_interface__["data"][0]
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
    )


def refuse_overlap(outputs: Sequence[tuple[str, Array]], inputs: Sequence[tuple[str, Array]],
                   in_place: str | None) -> None:  # fmt: skip
    """Outputs share memory with nothing else, but for an in-place output with its whole input.

    Raises
    ------
    BindingError
        Two bindings overlap.
    """
    for i, (name, output) in enumerate(outputs):
        for other_name, other in (*outputs[:i], *inputs):
            if not share_memory(output, other):
                continue
            if in_place == other_name and same_memory(output, other):
                continue
            allowed = f" (only exactly the memory of {in_place} is allowed)" if in_place else ""
            raise BindingError(
                f"{name}: expected memory of its own{allowed}, got an overlap with {other_name}"
            )
