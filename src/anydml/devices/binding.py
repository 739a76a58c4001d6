"""Bindings: a caller's array or buffer as an array of the tensor's sizes over the same memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd
from typing import Any

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import ArgumentTypeError, BindingError
from anydml.core.tensor import TensorDesc, overlapping
from anydml.libraries import as_operand
from anydml.libraries._device import DeviceArray, address_of, apart_from, stand_in
from anydml.libraries._types import dtype_name

Array = np.ndarray[Any, np.dtype[Any]]

# Byte-sized kinds in which a raw buffer may come: memory, not numbers of another type.
_RAW = (np.dtype("u1"), np.dtype("i1"), np.dtype("S1"), np.dtype("V1"))

# Bounds the search for shared bytes between interleaved arrays.
_OVERLAP_WORK = 100_000

# Up to this many arrays, every pair is compared; of more, the occupied memory is marked.
_FEW = 8


def bind(
    name: str, tensor: TensorDesc, value: Any, output: bool, device: int | None = None
) -> Array:
    """The bound memory as an array of the tensor's sizes.

    An array whose shape equals the sizes is taken element by element, whatever its memory layout. A
    flat contiguous array, or anything bytes-like, is the raw buffer: laid out by the strides.
    Arrays on a GPU are taken where `device` is its number.

    Raises
    ------
    BindingError
        Wrong size, type, byte order or alignment; a read-only output; an output that overlaps
        itself.
    """
    array, is_raw = _memory(name, value, device)
    kind = tensor.data_type.numpy
    same_type = array.dtype.type is kind.type or _as_bool(array, tensor)
    if array.shape == tensor.sizes and same_type and not is_raw:
        if not array.dtype.isnative:
            raise BindingError(f"{name}: expected {kind} in native byte order, got {array.dtype}")
        view = array.view(kind) if array.dtype != kind else array
    else:
        view = _raw_buffer(name, tensor, array)
    if not view.flags.aligned:
        raise BindingError(
            f"{name}: expected memory aligned to the element size ({kind.itemsize} bytes), "
            f"got address {address_of(view):#x} with strides {view.strides}"
        )
    if output:
        if not view.flags.writeable:
            raise BindingError(f"{name}: expected writable memory for an output, got read-only")
        if overlaps_itself(view):
            raise BindingError(
                f"{name}: expected an output that does not overlap itself, "
                f"got strides {view.strides} (bytes) for sizes {view.shape}"
            )
    return view


def _memory(name: str, value: Any, device: int | None) -> tuple[Array, bool]:
    """Return an array on the memory of a value, and whether it is a flat bytes-like object."""
    if value is None:
        raise BindingError(f"{name}: expected an array or buffer, got None")
    if isinstance(value, DeviceArray):  # allocated by this library
        return value, False  # type: ignore[return-value]  # as `as_operand` returns them
    if not isinstance(value, np.ndarray) and not hasattr(value, "__dlpack__"):
        try:
            buffer = np.asarray(memoryview(value))
        except (TypeError, ValueError, BufferError, NotImplementedError):
            pass
        else:
            return buffer, buffer.ndim == 1 and buffer.flags.c_contiguous
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        return np.asarray(value), False
    try:
        array = as_operand(value, name)[0]
    except ArgumentTypeError as error:
        raise BindingError(str(error)) from error
    if isinstance(array, DeviceArray) and array.device != device:
        memory = "in memory that the CPU reads" if device is None else f"on cuda:{device}"
        raise BindingError(f"{name}: expected an array {memory}, got one on {array.place}")
    return array, False


def _as_bool(array: Array, tensor: TensorDesc) -> bool:
    return array.dtype == np.bool_ and tensor.data_type is DataType.UINT8


def _raw_buffer(name: str, tensor: TensorDesc, array: Array) -> Array:
    kind = tensor.data_type.numpy
    expected = f"{kind} of shape {tensor.sizes}"
    if array.ndim != 1 or not array.flags.c_contiguous:
        raise BindingError(
            f"{name}: expected {expected} or a flat contiguous buffer, "
            f"got {dtype_name(array.dtype)} of shape {array.shape}"
        )
    if array.dtype != kind and array.dtype not in _RAW:
        raise BindingError(
            f"{name}: expected {expected} or a flat buffer of {kind} or bytes, "
            f"got a flat buffer of {dtype_name(array.dtype)}"
        )
    total, minimum = tensor.total_tensor_size_in_bytes, elements_size(tensor)
    exact = total == tensor.minimum_size_in_bytes and array.nbytes >= minimum
    if array.nbytes < max(total, minimum) and not exact:
        raise BindingError(
            f"{name}: expected at least {max(total, minimum)} bytes (TotalTensorSizeInBytes), "
            f"got {array.nbytes}"
        )
    strides = tuple(stride * kind.itemsize for stride in tensor.element_strides)
    if isinstance(array, DeviceArray):
        return array.laid_out(tensor.sizes, kind, strides)
    # The bytes up to the last element only: the array may end before the rounded-up size.
    flat = array.view(np.uint8)[:minimum].view(np.uint8)
    return np.ndarray(tensor.sizes, kind, flat, 0, strides)


def elements_size(tensor: TensorDesc) -> int:
    """Bytes up to the tensor's last element, not rounded up."""
    pairs = zip(tensor.sizes, tensor.element_strides, strict=True)
    last = sum((size - 1) * stride for size, stride in pairs)
    return -(-(last + 1) * tensor.data_type.bits // 8)


def overlaps_itself(array: Array) -> bool:
    """Whether two elements of an array share memory."""
    if array.flags.c_contiguous or array.flags.f_contiguous:  # as all of fewer than two elements
        return False
    strides = (*(abs(stride) for stride in array.strides), 1)
    return overlapping((*array.shape, array.itemsize), strides)


def share_memory(a: Array, b: Array) -> bool:
    """Whether two arrays have a byte in common; layouts made to defeat the search count as such."""
    if apart_from(a, b):
        return False
    a, b = stand_in(a), stand_in(b)
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
        address_of(a) == address_of(b)
        and a.shape == b.shape
        and a.strides == b.strides
        and a.dtype == b.dtype
    )


def first_overlap(
    outputs: Sequence[Array], inputs: Sequence[Array], in_place: Collection[tuple[int, int]] = ()
) -> tuple[int, int] | None:
    """Two arrays that may not overlap and do: an output, and an earlier output or an input.

    As positions in outputs followed by inputs. `in_place` has pairs of an output and an input that
    may be exactly the same memory, also as such positions. Linear in the number of arrays (and
    n log n for their order), however they lie: those whose extents do not chain together are never
    compared.
    """
    arrays = [*outputs, *inputs]
    if len(arrays) <= _FEW:
        return _overlap_of_pairs(arrays, range(len(arrays)), len(outputs), in_place)
    found = None
    for group in _chains(arrays):
        if group[0] >= len(outputs) or (found is not None and group[0] >= found[0]):
            continue  # inputs only, or nothing that comes before
        compare = _overlap_of_pairs if len(group) <= _FEW else _overlap_of_marks
        pair = compare(arrays, group, len(outputs), in_place)
        if pair is not None and (found is None or pair < found):
            found = pair
    return found


def _overlap_of_pairs(
    arrays: Sequence[Array],
    group: Sequence[int],
    outputs: int,
    in_place: Collection[tuple[int, int]],
) -> tuple[int, int] | None:
    for i in group:
        if i >= outputs:
            break
        for j in group:
            if not i < j < outputs and i != j and _collide(arrays, i, j, in_place):
                return i, j
    return None


def _collide(
    arrays: Sequence[Array], output: int, other: int, in_place: Collection[tuple[int, int]]
) -> bool:
    a, b = arrays[output], arrays[other]
    return share_memory(a, b) and not ((output, other) in in_place and same_memory(a, b))


def _chains(arrays: Sequence[Array]) -> list[list[int]]:
    # Groups of arrays whose extents overlap from one to the next, each in ascending order.
    extents = []
    for i, array in enumerate(arrays):
        if array.size:
            begin, end = _extent(array)
            extents.append((begin, end, i))
    extents.sort()
    groups: list[list[int]] = []
    reached = -1
    for begin, end, i in extents:
        if begin >= reached:
            groups.append([])
        groups[-1].append(i)
        reached = max(reached, end)
    for group in groups:
        group.sort()
    return [group for group in groups if len(group) > 1]


def _extent(array: Array) -> tuple[int, int]:
    low = high = address_of(array)
    for size, stride in zip(array.shape, array.strides, strict=True):
        reach = (size - 1) * stride
        low += min(reach, 0)
        high += max(reach, 0)
    return low, high + array.itemsize


def _overlap_of_marks(
    arrays: Sequence[Array],
    group: Sequence[int],
    outputs: int,
    in_place: Collection[tuple[int, int]],
) -> tuple[int, int] | None:
    # A byte for each place that an element begins or continues in: interleaved parts, as the
    # columns of a matrix, would otherwise be compared pair by pair.
    extents = [_extent(arrays[i]) for i in group]
    begin = min(low for low, _ in extents)
    unit = gcd(*(low - begin for low, _ in extents))
    for i in group:
        unit = gcd(unit, arrays[i].itemsize, *(abs(stride) for stride in arrays[i].strides))
    places = -(-(max(high for _, high in extents) - begin) // unit)
    try:
        marks = np.zeros(places, np.bool_)
    except MemoryError:  # far apart in memory
        return _overlap_of_pairs(arrays, group, outputs, in_place)
    for i in group:
        array = arrays[i]
        offset = (address_of(array) - begin) // unit
        # A repeated dimension is one place.
        kept = [(n, s) for n, s in zip(array.shape, array.strides, strict=True) if s and n > 1]
        shape = (*(n for n, _ in kept), array.itemsize // unit)
        strides = (*(s // unit for _, s in kept), 1)
        own = np.ndarray(shape, np.bool_, marks, offset, strides)
        if own.any():
            for j in group:
                if j < min(i, outputs):
                    pair = (i, j) if i < outputs else (j, i)
                    if _collide(arrays, *pair, in_place):
                        return pair
        if i < outputs:
            own[...] = True
    return None


def refuse_overlap(
    outputs: Sequence[tuple[str, Array]],
    inputs: Sequence[tuple[str, Array]],
    in_place: Sequence[tuple[str, str]],
) -> None:
    """Refuse outputs that share memory with anything but, exactly, an input of `in_place`.

    Raises
    ------
    BindingError
        Two bindings overlap.
    """
    names = [name for name, _ in (*outputs, *inputs)]
    pairs = {
        (names.index(output), names.index(source))
        for output, source in in_place
        if output in names and source in names
    }
    pair = first_overlap([a for _, a in outputs], [a for _, a in inputs], pairs)
    if pair is None:
        return
    name, other_name = (names[i] for i in pair)
    accepted = " or ".join(source for output, source in in_place if output == name)
    allowed = f" (only exactly the memory of {accepted} is allowed)" if accepted else ""
    raise BindingError(
        f"{name}: expected memory that does not overlap {other_name}{allowed}, got an overlap"
    )
