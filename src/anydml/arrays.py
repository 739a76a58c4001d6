"""Any array in, the same kind out: the only module that knows array libraries.

NumPy arrays pass through. PyTorch and JAX arrays on the CPU, and any other producer of DLPack, are
seen as NumPy arrays of the same memory; results go back as their kind without a copy. None of these
libraries is imported: an array of theirs that comes in shows that it is loaded.

What has no plain memory of its own is refused by name: a stand-in that a transformation of PyTorch
or JAX passes around looks like an array, and its memory is another's or nobody's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from anydml._json import shown
from anydml.errors import AllocationError, ArgumentTypeError
from anydml.tensor import frozen

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
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return _numbers(_from_torch(torch, value, name), name), torch.from_dlpack
    library = type(value).__module__.partition(".")[0]
    if library in ("jax", "jaxlib"):
        _no_tracer(value, name)
    if library in ("jax", "jaxlib") and hasattr(value, "__dlpack__"):
        _host_only(value, name)
        return _numbers(_from_jax(value, name), name), sys.modules["jax"].numpy.from_dlpack
    if hasattr(value, "__dlpack__"):
        _host_only(value, name)
        return _numbers(_from_dlpack(value, name), name), _from_dlpack_of(library)
    return _numbers(_from_list(value, name), name), _same


def as_type(array: Array, dtype: Any, name: str) -> Array:
    """A copy of an operand as another type."""
    try:
        return array.astype(dtype)
    except (MemoryError, ValueError):  # "array is too big"
        size = array.size * np.dtype(dtype).itemsize
        raise AllocationError(name, size, f"a copy as {np.dtype(dtype)}") from None


def _same(array: Array) -> Array:
    return array


# The first that a tensor has says what it is: the dispatch keys of PyTorch, and what to do.
_NOT_PLAIN = (
    ("Functionalize", "a functional tensor (torch.func.functionalize); call outside of it"),
    ("FuncTorchBatched", "a batched tensor (torch.vmap); call outside of it"),
    ("FuncTorchGradWrapper", "a tensor inside torch.func.grad or jvp; call outside of it"),
    ("Python", "a wrapper subclass without memory of its own; pass the tensor that it wraps"),
    ("Conjugate", "a tensor with the conjugate bit; use .resolve_conj()"),
    ("Negative", "a tensor with the negative bit; use .resolve_neg()"),
    ("ZeroTensor", "a zero tensor without memory; use torch.zeros_like(..)"),
    ("Quantized", "a quantized tensor; use .int_repr() or .dequantize()"),
)


def _from_torch(torch: Any, value: Any, name: str) -> Array:
    try:
        _plain_torch(torch, value, name)
        array: Array = value.numpy()  # shares memory, stays writable
        storage = value.untyped_storage().nbytes()
    except ArgumentTypeError:
        raise
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error
    if storage < array.nbytes and array.size and storage < _reach(value):
        raise ArgumentTypeError(
            f"{name}: expected a tensor whose storage holds its elements, "
            f"got one of {storage} bytes for shape {array.shape}"
        )
    return array


def _plain_torch(torch: Any, value: Any, name: str) -> None:
    kind = type(value).__name__
    fake = kind == "FakeTensor"
    if value.device.type == "meta" or fake:
        shown_as = "a fake tensor" if fake else "a tensor on meta"
        raise ArgumentTypeError(
            f"{name}: expected a tensor on the CPU, got {shown_as}, which has no memory"
        )
    if value.device.type != "cpu":
        raise ArgumentTypeError(
            f"{name}: expected a tensor on the CPU, got one on {value.device}; move it with .cpu()"
        )
    if value.layout is not torch.strided or value.is_nested:
        got = "a nested tensor" if value.is_nested else f"one of layout {value.layout}"
        raise ArgumentTypeError(
            f"{name}: expected a dense tensor, got {got}; use .to_dense() or .to_padded_tensor()"
        )
    keys_of = getattr(torch._C, "_dispatch_keys", None)
    if keys_of is None:  # an internal function, the only one that tells all kinds
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            return
        raise ArgumentTypeError(f"{name}: expected a plain tensor, got a {kind}")
    keys = keys_of(value)
    if not keys.raw_repr() & ~_plain_keys(torch):
        return
    text = str(keys)
    for key, what in _NOT_PLAIN:
        if key in text:
            raise ArgumentTypeError(f"{name}: expected a tensor with plain memory, got {what}")
    raise ArgumentTypeError(f"{name}: expected a tensor with plain memory, got one with {text}")


_keys: list[int] = []


def _plain_keys(torch: Any) -> int:
    # Those of an ordinary tensor; one made in inference mode has fewer.
    if not _keys:
        kinds = torch._C.DispatchKey
        keys = torch._C.DispatchKeySet(kinds.CPU)
        for key in (kinds.AutogradCPU, kinds.ADInplaceOrView, kinds.AutocastCPU):
            keys = keys.add(key)
        _keys.append(keys.raw_repr())
    return _keys[0]


def _reach(value: Any) -> int:
    # Bytes of the storage up to the last element.
    pairs = zip(value.shape, value.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in pairs)
    return int((value.storage_offset() + last + 1) * value.element_size())


def _no_tracer(value: Any, name: str) -> None:
    core = getattr(sys.modules.get("jax"), "core", None)
    tracer = getattr(core, "Tracer", None)
    if tracer is not None and isinstance(value, tracer):
        raise ArgumentTypeError(
            f"{name}: expected an array with memory, got a tracer (jax.jit, vmap or grad); "
            f"call outside of it or through jax.pure_callback"
        )


def _from_jax(value: Any, name: str) -> Array:
    try:
        return np.asarray(value)
    except Exception as error:  # deleted, donated, not addressable: whatever JAX raises
        raise ArgumentTypeError(f"{name}: its memory cannot be read: {error}") from error


def _host_only(value: Any, name: str) -> None:
    try:
        kind, number = map(int, value.__dlpack_device__())
    except Exception as error:
        raise ArgumentTypeError(f"{name}: its memory cannot be read: {error}") from error
    if kind not in _DLPACK_CPU:
        raise ArgumentTypeError(
            f"{name}: expected an array in memory that the CPU reads, got one on DLPack device "
            f"{kind}:{number}"
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
        array = np.asarray(frozen(value))
        _inside_its_buffer(array, name)
        return array
    except ArgumentTypeError:
        raise
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error
    except MemoryError:
        raise AllocationError(name, None, f"an array of {shown(value)}") from None


def _extent(array: Array) -> tuple[int, int]:
    """The lowest address of an array's elements, and the one behind the highest."""
    first = array.__array_interface__["data"][0]
    spans = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    below = sum(span for span in spans if span < 0)
    above = sum(span for span in spans if span > 0)
    return first + below, first + above + array.itemsize


def _inside_its_buffer(array: Array, name: str) -> None:
    # NumPy takes the offset and strides of an `__array_interface__` over a buffer as they are.
    if array.base is None or isinstance(array.base, np.ndarray) or not array.size:
        return
    try:
        whole = np.frombuffer(array.base, np.uint8)
    except (TypeError, ValueError, BufferError):
        return  # a pointer, which only its owner can vouch for
    begin, (low, high) = whole.__array_interface__["data"][0], _extent(array)
    if low < begin or high > begin + whole.nbytes:
        raise ArgumentTypeError(
            f"{name}: expected an array inside its buffer of {whole.nbytes} bytes, "
            f"got one from {low - begin} to {high - begin}"
        )


def _numbers(array: Array, name: str) -> Array:
    if array.dtype.kind not in "fiubcmM" or array.dtype.itemsize > 16:
        raise ArgumentTypeError(
            f"{name}: expected numbers (of at most 16 bytes an element), got {array.dtype}"
        )
    if not array.dtype.isnative:
        return as_type(array, array.dtype.newbyteorder("="), name)
    return array
