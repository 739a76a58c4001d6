"""PyTorch's errors of the calls that `deterministic` replaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from anydml.torch._pytorch import torch

_INDEX_TYPES: Final = (torch.int64, torch.int32)


def is_plainly_valid(name: str, args: Sequence[Any]) -> bool:
    """Whether PyTorch accepts the types and ranks of a call, as far as kernels do not check them.

    False only means that PyTorch must be asked (`error_of`).
    """
    x = args[0]
    if name == "topk":
        return bool(x.dtype != torch.bool)
    if name in ("sort", "nonzero", "embedding_dense_backward"):
        return True
    if name in ("index_put", "_unsafe_index_put", "_index_put_impl"):
        masks = (*_INDEX_TYPES, torch.bool)
        return args[2].dtype == x.dtype and all(i is None or i.dtype in masks for i in args[1])
    if name == "put":
        return bool(args[2].dtype == x.dtype and args[1].dtype == torch.int64)
    index, source = args[2:4]
    if index.dtype not in _INDEX_TYPES:
        return False
    if isinstance(source, torch.Tensor) and (source.dtype != x.dtype or source.ndim != x.ndim):
        return False
    if name.endswith("_reduce") and x.dtype == torch.bool:
        return False
    return bool(index.ndim == (1 if name.startswith("index_") else x.ndim) and x.ndim)


def error_of(function: Any, args: Any, keywords: Any) -> Exception | None:
    """The error that PyTorch itself reports for a call, if it rejects the call as well."""

    def copied(value: Any) -> Any:
        # On the CPU: a bad index would end the work of a GPU.
        if isinstance(value, torch.Tensor):
            return value if value.is_meta else value.detach().to("cpu", copy=True)
        return [copied(item) for item in value] if isinstance(value, (list, tuple)) else value

    try:
        function(*copied(args), **{name: copied(value) for name, value in keywords.items()})
    except Exception as error:
        return None if "INTERNAL ASSERT" in str(error) else error
    return None


def is_about_index_values(error: Exception) -> bool:
    """Whether PyTorch's error is one that the kernels report themselves."""
    return "out of bounds" in str(error) or "out of range" in str(error)
