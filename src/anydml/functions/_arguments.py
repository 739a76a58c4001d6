"""Checks of arguments and preparation of outputs, which the array functions share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Final, cast

import numpy as np

from anydml._native import INDEX_TYPES, MOST_ELEMENTS, NUMBERS
from anydml.core._json import did_you_mean, short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.core.tensor import frozen
from anydml.devices.backends import kernels_for
from anydml.devices.backends.cpu import allocate
from anydml.devices.backends.cuda import uploaded
from anydml.devices.binding import overlaps_itself, same_memory, share_memory
from anydml.libraries import as_numpy, as_operand, check_dtype, has_no_memory, library_of
from anydml.libraries._base import MOST_AXES, Array, Wrap, check_unlabelled
from anydml.libraries._device import DeviceArray
from anydml.libraries._numpy import unmasked
from anydml.libraries._torch import is_symbol
from anydml.libraries._types import (
    as_type,
    dtype_name,
    is_added,
    own_type,
    to_internal_dtype,
    type_of,
)

ORDERED: Final = ("bool", *NUMBERS)
"""The types that can be ordered."""


def integer(value: Any, name: str) -> int:
    """Convert an integer argument or a symbolic integer; reject bools and floats."""
    if type(value) is int or is_symbol(value):
        return value  # type: ignore[no-any-return]  # a symbol adds and compares as an integer
    if isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"{name}: expected an integer, got {short_repr(value)}")
    try:
        operator.index(value)
    except TypeError:
        hint = " (static: use static_argnums)" if has_no_memory(value) else ""
        raise ArgumentTypeError(
            f"{name}: expected an integer{hint}, got {short_repr(value)}"
        ) from None
    return int(value)  # while PyTorch traces, this warns that the value becomes a constant


def integers(values: Any, name: str, accepted: str = "a sequence of integers") -> tuple[int, ...]:
    """A sequence of integers, of no more than there are axes and one."""
    found = enumerate(take_at_most(values, name, accepted))
    return tuple([n if type(n) is int else integer(n, f"{name}[{i}]") for i, n in found])


def take_at_most(values: Any, name: str, accepted: str) -> list[Any]:
    """The members of a sequence, which may have no end: no more than there are axes and one."""
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ArgumentTypeError(f"{name}: expected {accepted}, got {short_repr(values)}")
    try:
        return list(islice(values, MOST_AXES + 1))
    except (TypeError, ValueError, SystemError) as error:  # the last one: NumPy's odd sequences
        raise ArgumentTypeError(f"{name}: {error}") from error


def is_integer(value: Any) -> bool:
    """Whether it is an integer, or a symbol for one, of which a tracer can ask nothing else."""
    return type(value) is int or is_symbol(value)


def is_number(value: Any) -> bool:
    """Whether it stands for one integer; arrays of rank 0 have ``__len__``, too."""
    if is_integer(value):
        return True
    if not hasattr(value, "__index__"):
        return False
    return not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def flag(value: Any, name: str) -> bool:
    """A bool argument."""
    if value is True or value is False:
        return value
    if not isinstance(value, bool | np.bool_):
        raise ArgumentTypeError(f"{name}: expected a bool, got {short_repr(value)}")
    return bool(value)


def axis_of(axis: Any, array: Array, name: str = "x", added: int = 0) -> int:
    """An axis counted from the front; negative values count from the end.

    `added`: how many more axes than the array has what the axis is of.
    """
    number = integer(axis, "axis")
    rank = array.ndim + added
    if not -rank <= number < rank:
        if rank == 0:
            raise ArgumentError(f"{name}: expected at least one axis, got rank 0")
        raise ArgumentError(
            f"axis: expected {-rank}..{rank - 1} ({name} has rank {rank}), got {short_repr(number)}"
        )
    return number % rank


def same_rank(data: Any, lookup: Any) -> None:
    """Check that the indices have the rank of the data."""
    if lookup.ndim != data.ndim:
        raise ArgumentError(
            f"indices: expected rank {data.ndim} (the rank of x), got shape {tuple(lookup.shape)}"
        )


_INDEX_DTYPES = frozenset(map(np.dtype, INDEX_TYPES))  # a dtype's name takes 5 µs


def is_uint64(x: Any) -> bool:
    """Whether an array of any library has this type; as int64, large values are negative."""
    return str(x.dtype).endswith("uint64")


def index_array(value: Any, name: str = "indices") -> Array:
    """Convert an operand to an index array of a type that the kernels read.

    Smaller integer types are widened, empty arrays of any type taken; bools and floats are not
    indices.
    """
    return index_operand(value, name)[0]


def index_operand(value: Any, name: str) -> tuple[Array, Wrap]:
    """Return `index_array`, and how to make a result of the same kind."""
    try:
        array, wrap = as_operand(value, name)
    except ArgumentTypeError:
        _check_index_values(value, name)
        raise
    if array.dtype in _INDEX_DTYPES or array.dtype.name in INDEX_TYPES:
        return array, wrap
    if array.dtype.kind in "iu":
        return as_type(array, np.int64, name), wrap
    if array.size == 0 and not hasattr(value, "__dlpack__"):
        return array.astype(np.int64), wrap  # an empty list has no type of its own
    raise ArgumentTypeError(
        f"{name}: expected one of {', '.join(INDEX_TYPES)}, or a smaller integer type, "
        f"got {dtype_name(array.dtype)}"
    )


def _check_index_values(value: Any, name: str) -> None:
    """Reject Python integers of more than 64 bits, of which NumPy makes no integer array."""
    if not isinstance(value, int | list | tuple):
        return
    try:
        found = np.asarray(value, object).ravel()
    except ValueError:  # lists of several lengths
        return
    for number in found:
        if isinstance(number, int) and not -(2**63) <= number < 2**64:
            raise ArgumentTypeError(
                f"{name}: expected indices of at most 64 bits, got {short_repr(number)}, which is "
                f"out of range"
            ) from None


def number_to_device_of(array: Array, other: Array) -> Array:
    """One number in host memory, where another operand is on a GPU, as an array there."""
    return array if array.ndim else to_device_of(array, other)


def to_device_of(array: Array, other: Array) -> Array:
    """An array in host memory, where another operand is on a GPU, as an array there."""
    if isinstance(array, DeviceArray) or not isinstance(other, DeviceArray):
        return array
    return cast(Array, uploaded(array, other.device, other.stream))


def copy_on_device(source: Any, target: Any) -> None:
    """Copy one array on a GPU to another of the same sizes and type."""
    if target.size:
        kernels_for([source, target]).execute("identity", [source], [target], {}, True, 1)


def ravel(array: Array) -> Array:
    """The elements in row-major order, in one dimension."""
    if isinstance(array, DeviceArray):
        if not array.flags.c_contiguous:
            packed = array.make(array.shape, array.dtype)
            copy_on_device(array, packed)
            array = packed
        return cast(Array, array.laid_out((array.size,), array.dtype, (array.itemsize,)))
    return array.reshape(-1)


def type_name(dtype: Any) -> str:
    """The name of a type that is given by name, as NumPy's or as a library's own, in lower case.

    Empty for what names none, and for a type in foreign byte order.
    """
    if isinstance(dtype, DataType):
        return dtype.suffix.lower()
    if type(dtype).__module__.partition(".")[0] == "torch":
        return str(dtype).removeprefix("torch.")
    if isinstance(dtype, str):
        name = dtype.removeprefix(DataType.prefix()).lower()
        if name in NUMBERS:
            return name
    try:
        found = None if dtype is None else np.dtype(dtype)
    except (TypeError, ValueError, RecursionError):
        return ""
    return found.name if found is not None and found.isnative else ""


def type_named(dtype: Any) -> np.dtype[Any]:
    """Return the type that `cast` converts to."""
    name = type_name(dtype)
    if name not in NUMBERS:
        raise unknown_type(dtype, "dtype", NUMBERS)
    return type_of(name)


def unknown_type(dtype: Any, argument: str, accepted: Sequence[str]) -> ArgumentTypeError:
    """Return the error for an argument that is not an accepted type."""
    is_bool = argument == "dtype" and type_name(dtype) == "bool"
    hint = "; use x != 0" if is_bool else did_you_mean(dtype, accepted)
    return ArgumentTypeError(
        f"{argument}: expected one of {', '.join(accepted)}, got {short_repr(dtype)}{hint}"
    )


def check_type(array: Any, accepted: tuple[str, ...]) -> None:
    """Refuse an operand of a type that the function does not take."""
    if dtype_name(array.dtype) not in accepted:
        raise ArgumentTypeError(
            f"x: expected one of {', '.join(accepted)}, got {dtype_name(array.dtype)}"
        )


def result_indices(
    index_dtype: Any, x: Any, shape: Sequence[int], out: Any, name: str
) -> np.dtype[Any]:
    """The type of the indices that a function returns: positions on axes of these sizes.

    What is asked for; else the type of the array that the caller gives (`out`, named `name`); else
    what users of x's library index with.
    """
    argument, requested = "index_dtype", index_dtype
    if index_dtype is None and type_name(getattr(out, "dtype", None)) in INDEX_TYPES:
        argument, requested = name, out.dtype
    if requested is None:
        kind = library_of(x).index_type()
    elif (found := type_name(requested)) in INDEX_TYPES:
        kind = np.dtype(found)
    else:
        raise unknown_type(requested, "index_dtype", INDEX_TYPES)
    longest = max(shape, default=0)
    if longest - 1 > np.iinfo(kind).max:
        raise ArgumentError(
            f"{argument}: expected a type that holds positions up to {longest - 1}, got {kind}"
        )
    if out is None:
        check_dtype(x, kind, argument)
    return kind


def same_type(array: Array, value: Any, name: str, of: Array, of_name: str = "x") -> Array:
    """An operand that must have another's type.

    Lists and Python numbers have no type of their own: they take it on where their values fit, as
    2.0 does in an integer type. Numbers round to a float type as any does when it is written down.
    """
    target = own_type(of.dtype)
    if own_type(array.dtype) == target:
        return array if array.dtype == of.dtype else array.view(of.dtype)
    got, advice = "", ""
    if is_untyped(value):
        converted, unfit = _converted(array, value, target, name)
        if converted is not None:
            return converted if target == of.dtype else converted.view(of.dtype)
        got = f" values that do not fit: {short_repr(unfit)}"
        if is_added(target) and target.itemsize == 1:  # which takes no number but zero
            advice = "; give an array of that type"
    raise ArgumentTypeError(
        f"{name}: expected {dtype_name(of.dtype)} (the type of {of_name}), "
        f"got {dtype_name(array.dtype)}{got}{advice}"
    )


def number(value: Any, name: str, of: Any) -> Array:
    """One number of the type of another operand."""
    array = as_numpy(value, name)
    if array.ndim:
        raise ArgumentError(f"{name}: expected one number, got shape {array.shape}")
    return same_type(array, value, name, of)


def is_untyped(value: Any) -> bool:
    """Whether a value is a number or a list, which adapts to the element type of another operand.

    NumPy's scalars are numbers, too.
    """
    if isinstance(value, np.generic):
        return value.dtype.kind in "biufc"
    return not any(hasattr(value, name) for name in ("__dlpack__", "__array_interface__"))


# The least number that rounds to infinity.
_BFLOAT_OVERFLOW = float.fromhex("0x1.ffp127")


def _converted(
    array: Array, value: Any, target: np.dtype[Any], name: str
) -> tuple[Array | None, Any]:
    """Python numbers as another type, or None and the first of them that it lacks."""
    integers = target.kind in "iu" and not is_added(target)
    if integers and array.dtype.kind == "f" and (np.abs(array) >= 2**53).any():
        # NumPy has rounded the integers that stand among floats.
        numbers, limits = np.asarray(frozen(value), object), np.iinfo(target)
        for number in numbers.flat:
            if not limits.min <= number <= limits.max or number != int(number):
                return None, number
        return numbers.astype(target), None
    unfit = _find_unrepresentable(array, target)
    if unfit.any():
        return None, array[unfit][0].item()
    return as_type(array, target, name), None


def _find_unrepresentable(array: Array, target: np.dtype[Any]) -> Array:
    """Which values another type lacks."""
    kinds = {"c": "iufc", "f": "iuf", "i": "iuf", "u": "iuf", "b": "iuf"}
    if array.dtype.kind not in kinds.get("f" if is_added(target) else target.kind, ""):
        return np.ones(array.shape, np.bool_)
    if is_added(target):
        if target.itemsize == 1:  # of these only zero is known here, where they have one
            nonzero = (array != 0) | np.signbit(array)
            return cast(Array, nonzero | (dtype_name(target) == "float8_e8m0fnu"))
        numbers = np.abs(array.astype(np.float64))
        return cast(Array, np.isfinite(numbers) & (numbers >= _BFLOAT_OVERFLOW))
    if target.kind == "b":
        return cast(Array, (array != 0) & (array != 1))
    if target.kind in "iu":
        limits = np.iinfo(target)
        if array.dtype.kind != "f":
            return cast(Array, (array < limits.min) | (array > limits.max))
        # As floats, both limits are exact.
        is_out_of_range = (array < float(limits.min)) | (array >= float(limits.max + 1))
        return cast(Array, is_out_of_range | (np.trunc(array) != array))
    with np.errstate(over="ignore"):  # what overflows is refused
        return cast(Array, np.isfinite(array) & ~np.isfinite(array.astype(target)))


def broadcast_with(
    array: Any, shape: Sequence[Any], name: str, broadcast: Callable[..., Any]
) -> Any:
    """Broadcast the operand to a shape, by its library's own function."""
    try:
        return broadcast(array, shape)
    except (ValueError, RuntimeError):  # PyTorch's is a RuntimeError
        raise ArgumentError(
            f"{name}: expected a shape that can be broadcast to {tuple(shape)}, "
            f"got {tuple(array.shape)}"
        ) from None


def check_element_count(operands: Sequence[tuple[str, Array]]) -> None:
    """Operands that a kernel can count; broadcast ones may be larger than any memory."""
    for name, array in operands:
        if array.size > MOST_ELEMENTS:
            raise ArgumentError(
                f"{name}: expected at most 2^48 elements, got {array.size} (shape {array.shape})"
            )


def output(
    call: str,
    out: Any,
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    operands: Sequence[tuple[str, Array]],
    in_place: bool = False,
    what: str = "the result",
) -> Array:
    """Memory for a result: a new array, or the caller's after checking it.

    It may not overlap `operands`; with `in_place` it may be the first of them. `call` and `what`
    are for the message if the allocation fails.
    """
    target = np.dtype(dtype)
    if len(shape) > MOST_AXES:
        raise ArgumentError(
            f"{call}: expected at most {MOST_AXES} axes of {what}, got {len(shape)}"
        )
    if out is None:
        if isinstance(operands[0][1], DeviceArray):
            fresh = cast(Array, operands[0][1].make(shape, target))
        else:
            fresh = allocate(shape, target, call, what)
        check_element_count(operands)
        return fresh
    check_element_count(operands)
    array = _output_array(out, name)
    if array.dtype != target:  # one in foreign byte order is another
        raise ArgumentTypeError(
            f"{name}: expected {dtype_name(target)}, got {dtype_name(array.dtype)}"
        )
    if array.shape != shape:
        raise ArgumentError(f"{name}: expected shape {shape}, got {array.shape}")
    if not array.flags.writeable:
        raise ArgumentError(f"{name}: expected a writable array, got a read-only one")
    if overlaps_itself(array):
        raise ArgumentError(
            f"{name}: expected an array that does not overlap itself, "
            f"got strides {array.strides} for shape {array.shape}"
        )
    for i, (other_name, other) in enumerate(operands):
        are_plain = type(array) is type(other) is np.ndarray
        if are_plain and not np.may_share_memory(array, other):  # a quick test
            continue
        if share_memory(array, other):
            if in_place and i == 0 and same_memory(array, other):
                continue
            raise ArgumentError(
                f"{name}: expected memory that does not overlap {other_name}, got an overlap"
            )
    return array


def _output_array(out: Any, name: str) -> Array:
    """Return an array of the memory to write to."""
    if type(out) is np.ndarray:
        return to_internal_dtype(out)
    if isinstance(out, np.generic):
        raise ArgumentTypeError(f"{name}: expected an array, got the scalar {short_repr(out)}")
    check_unlabelled(out, name)
    if not hasattr(out, "__array_interface__") and not hasattr(out, "__dlpack__"):
        raise ArgumentTypeError(f"{name}: expected an array, got {type(out).__name__}")
    if isinstance(out, np.ndarray):
        return to_internal_dtype(unmasked(out, name))
    return as_operand(out, name)[0]


def members(value: Any, name: str) -> list[Any]:
    """Return a new list of the sequence's members."""
    try:
        return list(value)
    except MemoryError:
        raise AllocationError(name, None, "a list") from None
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error


def members_of(arrays: Any) -> list[Any]:
    """Return the members of the list that `join` takes, at least one."""
    if isinstance(arrays, str | bytes) or not hasattr(arrays, "__iter__"):
        raise ArgumentTypeError(f"arrays: expected a sequence of arrays, got {short_repr(arrays)}")
    found = members(arrays, "arrays")
    if not found:
        raise ArgumentError("arrays: expected at least one, got none")
    return found
