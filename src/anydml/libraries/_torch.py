"""PyTorch tensors in memory, on the CPU and on NVIDIA GPUs.

What has no plain memory of its own is refused by name: a tensor that a transformation passes around
has no storage to read.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, reduce
from math import prod
from typing import Any, Final

import numpy as np

from anydml._native import TYPES, has_extension
from anydml.core.errors import AllocationError, ArgumentTypeError
from anydml.libraries._base import MOST_AXES, Array, Wrap, class_of
from anydml.libraries._device import DeviceArray, Memory, Shape, owner_of, packed_strides
from anydml.libraries._types import dtype_name, is_added, type_of

TYPE_NAMES: Final = tuple(known.name for known in TYPES)
"""The types that kernels take, by the names that they have in PyTorch too."""


def owns(value: Any) -> bool:
    """Whether the value is a tensor, or of a class made from one."""
    return isinstance(value, class_of("torch", "Tensor"))


def is_symbol(value: Any) -> bool:
    """Whether the value is a size that a tracer leaves open."""
    return isinstance(value, class_of("torch", "SymInt"))


def is_true(condition: Any) -> bool:
    """Whether a condition on sizes holds.

    While PyTorch traces, one that depends on data is taken to hold, and the graph checks it.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.compiler.is_compiling():
        return bool(condition)
    if not torch.fx.experimental.symbolic_shapes.guard_or_true(condition):
        return False
    torch._check(condition)
    return True


def as_operand(value: Any, name: str) -> tuple[Array, Wrap]:
    """The tensor as a NumPy array that can be written, or its place on its GPU."""
    torch: Any = sys.modules["torch"]
    check_rank(value, name)
    storage = _storage(torch, value, name)
    dtype = _types(torch)[0].get(value.dtype)
    if dtype is None:
        raise ArgumentTypeError(
            f"{name}: expected one of {', '.join(map(str, _types(torch)[0]))}, got {value.dtype}; "
            f"convert it with .to(..)"
        )
    if value.device.type == "cuda":
        array: Any = _on_cuda(torch, value, dtype)
        return array, owner_of
    # `Tensor.numpy` and DLPack would leave a mark on the storage: it could not be resized any more.
    size = dtype.itemsize
    address = storage.data_ptr() + value.storage_offset() * size
    typestr = f"<u{size}" if is_added(dtype) else dtype.str
    strides = tuple(stride * size for stride in value.stride())
    memory = Memory(address, typestr, tuple(value.shape), strides, storage, writeable=True)
    return np.asarray(memory).view(dtype), tensor_of


def tensor_of(array: Array) -> Any:
    """A result as a tensor in memory of its own, which can be resized as any tensor's."""
    torch: Any = sys.modules["torch"]
    if not is_added(array.dtype):
        return torch.from_dlpack(array).clone()
    bits = np.dtype(f"i{array.itemsize}")  # NumPy exports types of its own only
    return torch.from_dlpack(array.view(bits)).clone().view(_types(torch)[1][array.dtype])


def copy_to_tensor(array: Array, name: str) -> Any:
    """Copy an operand of another library to a tensor; the user may write to it after the call."""
    if isinstance(array, DeviceArray):
        return tensor_of(array)
    if array.dtype not in _types(sys.modules["torch"])[1]:
        raise ArgumentTypeError(
            f"{name}: expected a type that PyTorch has, got {dtype_name(array.dtype)}"
        )
    return tensor_of(array.copy())  # packed: PyTorch has no negative strides


def index_type() -> np.dtype[Any]:
    """int64, as of all functions of PyTorch."""
    return np.dtype(np.int64)


def promoted(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """PyTorch's rules: an integer and a float give the float."""
    torch: Any = sys.modules["torch"]
    found = reduce(torch.promote_types, [getattr(torch, dtype_name(dtype)) for dtype in dtypes])
    return type_of(str(found).removeprefix("torch."))


def bump_version(value: Any) -> None:
    """Bump the version counter: a gradient that would need the old values is refused."""
    sys.modules["torch"].autograd.graph.increment_version(value)


def _storage(torch: Any, value: Any, name: str) -> Any:
    """The storage of a tensor that has plain memory and requires no gradient."""
    check_kind(value, name)
    _no_gradient(torch, value, name)
    try:
        storage = value.untyped_storage()
        nbytes, address = storage.nbytes(), storage.data_ptr()
    except (RuntimeError, NotImplementedError):
        raise ArgumentTypeError(
            f"{name}: expected a tensor with plain memory, got one of a transformation "
            f"(torch.vmap, torch.func, torch.compile); call it outside"
        ) from None
    pairs = zip(value.shape, value.stride(), strict=True)
    last = value.storage_offset() + sum((size - 1) * stride for size, stride in pairs)
    if prod(value.shape) and nbytes < (last + 1) * value.element_size():
        raise ArgumentTypeError(
            f"{name}: expected a tensor whose storage holds its elements, "
            f"got one of {nbytes} bytes for shape {tuple(value.shape)}"
        )
    if prod(value.shape) and not address:
        raise ArgumentTypeError(
            f"{name}: expected a tensor with plain memory, got one without; "
            f"use torch.zeros_like(..) where it stands for zeros"
        )
    return storage


def check_rank(value: Any, name: str) -> None:
    """Refuse a tensor of more axes than kernels take."""
    if value.ndim > MOST_AXES:
        raise ArgumentTypeError(f"{name}: expected at most {MOST_AXES} axes, got {value.ndim}")


def check_kind(value: Any, name: str) -> None:
    """Refuse a tensor of a kind that no kernel takes."""
    torch: Any = sys.modules["torch"]
    if type(value).__name__ == "FakeTensor":
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
    if value.device.type not in ("cpu", "cuda"):
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
    for is_so, what in (
        (value.is_quantized, "a quantized tensor; use .int_repr() or .dequantize()"),
        (value.is_conj(), "a tensor with the conjugate bit; use .resolve_conj()"),
        (value.is_neg(), "a tensor with the negative bit; use .resolve_neg()"),
        (
            type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__,
            "a wrapper subclass without memory of its own; pass the tensor that it wraps",
        ),
    ):
        if is_so:
            raise ArgumentTypeError(f"{name}: expected a tensor with plain memory, got {what}")


def _no_gradient(torch: Any, value: Any, name: str) -> None:
    asks = value.requires_grad and torch.is_grad_enabled()
    try:
        moves = torch.autograd.forward_ad.unpack_dual(value).tangent is not None
    except RuntimeError:  # below autograd, in a dispatch mode
        moves = False
    if asks or moves:
        got = "one that requires grad" if asks else "one with a tangent (forward_ad)"
        keep = "call an array function without out= and with a tensor as the first argument"
        if not has_extension():
            keep = "install anydml's native modules, which this installation lacks"
        raise ArgumentTypeError(
            f"{name}: expected a tensor without a gradient, got {got}; use .detach(); to keep the "
            f"gradient, {keep}"
        )


def _on_cuda(torch: Any, value: Any, dtype: np.dtype[Any]) -> DeviceArray:
    size, device = dtype.itemsize, value.device.index
    stream = torch.cuda.current_stream(value.device).cuda_stream

    def make(shape: Shape, like: np.dtype[Any]) -> DeviceArray:
        try:
            result = torch.empty(shape, dtype=_types(torch)[1][like], device=value.device)
        except torch.OutOfMemoryError:
            raise AllocationError("torch", prod(shape) * like.itemsize, "a tensor") from None
        strides = packed_strides(shape, like.itemsize)
        return DeviceArray(result.data_ptr(), like, shape, strides, device, stream, result, make)

    strides = tuple([stride * size for stride in value.stride()])
    return DeviceArray(value.data_ptr(), dtype, tuple(value.shape), strides, device, stream,
                       value, make)  # fmt: skip


@cache
def _types(torch: Any) -> tuple[dict[Any, np.dtype[Any]], dict[np.dtype[Any], Any]]:
    """NumPy's types, or this library's own, by PyTorch's, and the other way."""
    found = {getattr(torch, name): type_of(name) for name in TYPE_NAMES if hasattr(torch, name)}
    return found, {dtype: kind for kind, dtype in found.items()}
