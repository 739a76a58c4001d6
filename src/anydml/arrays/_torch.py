"""PyTorch tensors, on the CPU and on NVIDIA GPUs.

What has no plain memory of its own is refused by name: a stand-in that a transformation passes
around looks like a tensor, and its memory is another's or nobody's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, reduce
from math import prod
from typing import Any

import numpy as np

from anydml._native import native
from anydml.arrays._base import MOST_AXES, Array, Wrap, class_of, every_type
from anydml.arrays._device import DeviceArray, Shape, owner_of, packed_strides
from anydml.arrays._types import ADDED, dtype_name, is_added, type_of
from anydml.errors import AllocationError, ArgumentTypeError

keep = every_type


def owns(value: Any) -> bool:
    """Whether the value is a tensor, or of a class made from one."""
    return isinstance(value, class_of("torch", "Tensor"))


def is_symbol(value: Any) -> bool:
    """Whether the value is a size that a tracer leaves open."""
    return isinstance(value, class_of("torch", "SymInt"))


def adopt(value: Any, name: str) -> tuple[Array, Wrap]:
    """The tensor as a NumPy array that can be written, or its place on its GPU."""
    torch: Any = sys.modules["torch"]
    _offer(torch)
    if value.ndim > MOST_AXES:
        raise ArgumentTypeError(f"{name}: expected at most {MOST_AXES} axes, got {value.ndim}")
    if getattr(value.device, "type", None) == "cuda":
        array: Any = _from_cuda(torch, value, name)
        return array, owner_of
    return _from_torch(torch, value, name), tensor_of


def tensor_of(array: Array) -> Any:
    """A result as a tensor over the same memory."""
    torch: Any = sys.modules["torch"]
    if not is_added(array.dtype):
        return torch.from_dlpack(array)
    bits = np.dtype(f"i{array.itemsize}")  # NumPy exports types of its own only
    return torch.from_dlpack(array.view(bits)).view(_types(torch)[1][array.dtype])


def index_type() -> np.dtype[Any]:
    """int64, as of all functions of PyTorch."""
    return np.dtype(np.int64)


def promoted(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """PyTorch's rules: an integer and a float give the float."""
    torch: Any = sys.modules["torch"]
    found = reduce(torch.promote_types, [getattr(torch, dtype_name(dtype)) for dtype in dtypes])
    return type_of(str(found).removeprefix("torch."))


def written(value: Any) -> None:
    """Bump the version counter: a gradient that would need the old values is refused."""
    sys.modules["torch"].autograd.graph.increment_version(value)


def asks_the_dispatcher(value: Any) -> bool:
    """Whether a call with this value is PyTorch's to carry out, by its dispatcher.

    That is a tensor which asks for a gradient, one that a transformation passes around (fake,
    functional, batched), and any dense one while a mode is on that sees every operation.
    """
    if not owns(value):
        return False
    torch: Any = sys.modules["torch"]
    keys_of = getattr(torch._C, "_dispatch_keys", None)
    if keys_of is None or not hasattr(torch.library, "register_vmap"):
        return False  # an older PyTorch, for which there is no bridge
    if value.device.type not in _DEVICES or value.is_nested or value.layout is not torch.strided:
        return False
    keys = keys_of(value)
    if keys.raw_repr() & ~_plain_keys(torch, value.device.type):
        kinds = torch._C.DispatchKey
        return any(keys.has(getattr(kinds, key)) for key in _TRANSFORMED) or _stands_in(value)
    asks = bool(value.requires_grad and torch.is_grad_enabled())
    return asks or _has_tangent(torch, value) or _seen_by_a_mode(torch)


def _has_tangent(torch: Any, value: Any) -> bool:
    """Whether it has a gradient that goes forward (torch.autograd.forward_ad)."""
    forward = torch.autograd.forward_ad
    if forward._current_level < 0:
        return False
    # Below autograd, in a mode say, nobody asks for it any more.
    autograd = torch._C.DispatchKey.AutogradFunctionality
    below = torch._C._dispatch_tls_is_dispatch_key_excluded(autograd)
    return not below and forward.unpack_dual(value).tangent is not None


def _stands_in(value: Any) -> bool:
    # PyTorch's own kinds without memory; a user's subclasses answer for themselves.
    kind = type(value)
    return kind.__module__.startswith("torch._subclasses") and kind.__name__ in _STAND_INS


def _seen_by_a_mode(torch: Any) -> bool:
    python = torch._C.DispatchKey.Python
    excluded = torch._C._dispatch_tls_is_dispatch_key_excluded(python)
    return torch._C._len_torch_dispatch_stack() > 0 and not excluded


_TYPES = (
    "bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, "
    "float64, complex64, complex128, floats of 8 bits"
)

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

_TRANSFORMED = ("Functionalize", "FuncTorchBatched", "FuncTorchGradWrapper")
_STAND_INS = ("FakeTensor", "FunctionalTensor")


def _from_torch(torch: Any, value: Any, name: str) -> Array:
    try:
        _plain_torch(torch, value, name)
        _no_gradient(torch, value, name)
        array = _in_numpy(torch, value)
        storage = value.untyped_storage().nbytes()
    except ArgumentTypeError:
        raise
    except TypeError as error:
        raise ArgumentTypeError(
            f"{name}: expected one of {_TYPES}, got {value.dtype}; convert it with .to(..)"
        ) from error
    except (RuntimeError, NotImplementedError) as error:
        raise ArgumentTypeError(f"{name}: {error}") from error
    if storage < array.nbytes and array.size and storage < _reach(value):
        raise ArgumentTypeError(
            f"{name}: expected a tensor whose storage holds its elements, "
            f"got one of {storage} bytes for shape {array.shape}"
        )
    return array


def _in_numpy(torch: Any, value: Any) -> Array:
    """The tensor's memory, which stays writable."""
    try:
        array: Array = value.numpy()
    except TypeError:  # a type that NumPy lacks
        own = _types(torch)[0].get(value.dtype)
        if own is None:
            raise
        bits = torch.int16 if own.itemsize == 2 else torch.int8
        array = value.view(bits).numpy().view(own)
    return array


def _offer(torch: Any) -> None:
    """Tell the quick calls of PyTorch's exchange table, where it has one."""
    # Samples are made of PyTorch's functions: not while a mode stands in for them.
    modes = getattr(torch._C, "_len_torch_dispatch_stack", None)
    if modes is not None and not modes() and not torch._C._len_torch_function_stack():
        _offered(torch, modes)


@cache
def _offered(torch: Any, modes: Any) -> None:
    capsule = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
    keys = getattr(torch._C, "_dispatch_keys", None)
    if capsule is not None and keys is not None:
        plain = (_plain_keys(torch, "cpu"), _plain_keys(torch, "cuda"))
        forward = vars(torch.autograd.forward_ad)
        native.take_tensors(torch.Tensor, capsule, keys, modes, forward, *plain)
        native.learn_tensors(_samples(torch, keys), torch._C.TensorBase.requires_grad)


def _samples(torch: Any, keys_of: Any) -> list[tuple[Any, int, int, int]]:
    """Tensors of different kinds, and what PyTorch says of them."""
    plain = torch.empty(2, dtype=torch.complex64, device="cpu")
    kinds = (plain, plain.conj(), plain.conj().imag, plain[1:], torch.empty(3, device="meta"))
    return [(x, x._cdata, keys_of(x).raw_repr(), x.untyped_storage().nbytes()) for x in kinds]


def _no_gradient(torch: Any, value: Any, name: str) -> None:
    asks = value.requires_grad and torch.is_grad_enabled()
    if asks or _has_tangent(torch, value):
        got = "one that requires grad" if asks else "one with a tangent (forward_ad)"
        raise ArgumentTypeError(
            f"{name}: expected a tensor without a gradient, got {got}; use "
            f".detach(), or an array function without out=, where a gradient is to pass"
        )


def _from_cuda(torch: Any, value: Any, name: str) -> DeviceArray:
    _plain_torch(torch, value, name)
    _no_gradient(torch, value, name)
    array = _on_cuda(torch, value, name)
    storage = value.untyped_storage().nbytes()
    if array.size and storage < _reach(value):
        raise ArgumentTypeError(
            f"{name}: expected a tensor whose storage holds its elements, "
            f"got one of {storage} bytes for shape {array.shape}"
        )
    return array


def _on_cuda(torch: Any, value: Any, name: str) -> DeviceArray:
    dtype = _types(torch)[0].get(value.dtype)
    if dtype is None:
        raise ArgumentTypeError(f"{name}: expected one of {_TYPES}, got {value.dtype}")
    size, device = dtype.itemsize, value.device.index
    stream = torch._C._cuda_getCurrentRawStream(device)

    def make(shape: Shape, like: np.dtype[Any]) -> DeviceArray:
        try:
            made = torch.empty(shape, dtype=_types(torch)[1][like], device=value.device)
        except torch.OutOfMemoryError:
            raise AllocationError("torch", prod(shape) * like.itemsize, "a tensor") from None
        strides = packed_strides(shape, like.itemsize)
        return DeviceArray(made.data_ptr(), like, shape, strides, device, stream, made, make)

    strides = tuple([stride * size for stride in value.stride()])
    return DeviceArray(value.data_ptr(), dtype, tuple(value.shape), strides, device, stream,
                       value, make)  # fmt: skip


Types = tuple[dict[Any, np.dtype[Any]], dict[np.dtype[Any], Any]]


@cache
def _types(torch: Any) -> Types:
    """NumPy's types, or what stands for them, by PyTorch's, and the other way."""
    names = (
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "float32", "float64", "complex64", "complex128", *ADDED,
    )  # fmt: skip
    found = {getattr(torch, name): type_of(name) for name in names if hasattr(torch, name)}
    return found, {dtype: kind for kind, dtype in found.items()}


def _plain_torch(torch: Any, value: Any, name: str) -> None:
    kind = type(value).__name__
    if kind == "FakeTensor":
        raise ArgumentTypeError(
            f"{name}: expected a tensor on the CPU, got a fake tensor, which has no memory; call "
            f"outside of FakeTensorMode, torch.compile and torch.export, or from an operator that "
            f"torch.library.custom_op makes"
        )
    if value.device.type == "meta":
        raise ArgumentTypeError(
            f"{name}: expected a tensor on the CPU, got a tensor on meta, which has no memory; "
            f"make it with device='cpu', or fill what torch.empty_like(.., device='cpu') gives"
        )
    if value.device.type not in _DEVICES:
        raise ArgumentTypeError(
            f"{name}: expected a tensor on the CPU or on an NVIDIA GPU, got one on "
            f"{value.device}; move it with .cpu()"
        )
    if value.is_nested:
        raise ArgumentTypeError(
            f"{name}: expected a dense tensor, got a nested tensor; use .to_padded_tensor(..)"
        )
    if value.layout is not torch.strided:
        raise ArgumentTypeError(
            f"{name}: expected a dense tensor, got one of layout {value.layout}; use .to_dense()"
        )
    keys_of = getattr(torch._C, "_dispatch_keys", None)
    if keys_of is None:  # an internal function, the only one that tells all kinds
        if type(value) in (torch.Tensor, torch.nn.Parameter):
            return
        raise ArgumentTypeError(f"{name}: expected a plain tensor, got a {kind}")
    keys = keys_of(value)
    if not keys.raw_repr() & ~_plain_keys(torch, value.device.type):
        return
    text = str(keys)
    for key, what in _NOT_PLAIN:
        if key in text:
            raise ArgumentTypeError(f"{name}: expected a tensor with plain memory, got {what}")
    raise ArgumentTypeError(f"{name}: expected a tensor with plain memory, got one with {text}")


_DEVICES = ("cpu", "cuda")
_KEYS: dict[str, int] = {}  # the dispatch keys of ordinary tensors by device, once they are known


def _plain_keys(torch: Any, device: str) -> int:
    # A tensor that was made in inference mode has fewer.
    if device not in _KEYS:
        kinds, name = torch._C.DispatchKey, device.upper()
        keys = torch._C.DispatchKeySet(getattr(kinds, name))
        for key in (f"Autograd{name}", "ADInplaceOrView", f"Autocast{name}"):
            keys = keys.add(getattr(kinds, key))
        _KEYS[device] = keys.raw_repr()
    return _KEYS[device]


def _reach(value: Any) -> int:
    # Bytes of the storage up to the last element.
    pairs = zip(value.shape, value.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in pairs)
    return int((value.storage_offset() + last + 1) * value.element_size())
