"""PyTorch tensors on the CPU.

What has no plain memory of its own is refused by name: a stand-in that a transformation passes
around looks like a tensor, and its memory is another's or nobody's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from anydml.arrays._base import Array, Wrap, every_type
from anydml.errors import ArgumentTypeError

keep = every_type


def owns(value: Any) -> bool:
    """Whether the value is a tensor, or of a class made from one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def adopt(value: Any, name: str) -> tuple[Array, Wrap]:
    """The tensor as a NumPy array that can be written."""
    torch: Any = sys.modules["torch"]
    return _from_torch(torch, value, name), torch.from_dlpack


def index_type() -> np.dtype[Any]:
    """int64, as of all functions of PyTorch."""
    return np.dtype(np.int64)


def promoted(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """PyTorch's rules: an integer and a float give the float."""
    torch: Any = sys.modules["torch"]
    found = reduce(torch.promote_types, [getattr(torch, dtype.name) for dtype in dtypes])
    return np.dtype(str(found).removeprefix("torch."))


def written(value: Any) -> None:
    """Bump the version counter: a gradient that would need the old values is refused."""
    sys.modules["torch"].autograd.graph.increment_version(value)


# The types that NumPy has as well.
_TYPES = (
    "bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64, "
    "complex64, complex128"
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


def _from_torch(torch: Any, value: Any, name: str) -> Array:
    try:
        _plain_torch(torch, value, name)
        if value.requires_grad and torch.is_grad_enabled():
            raise ArgumentTypeError(
                f"{name}: expected a tensor without a gradient, got one that requires grad; use "
                f".detach(), or torch.autograd.Function where a gradient is to pass"
            )
        array: Array = value.numpy()  # shares memory, stays writable
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
    if value.device.type != "cpu":
        raise ArgumentTypeError(
            f"{name}: expected a tensor on the CPU, got one on {value.device}; move it with .cpu()"
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
