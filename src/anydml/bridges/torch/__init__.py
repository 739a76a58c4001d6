"""The array functions inside PyTorch programs: gradients, `torch.compile`, `torch.export`, `vmap`.

`anydml.top_k` and the other functions come here by themselves with a tensor that requires a
gradient, that a transformation passes around, or while a dispatch mode is on. Plain tensors do
not: they take the quick way.

The operators are ``torch.ops.anydml.top_k`` and so on.
"""

from typing import Any

from anydml.bridges.torch import _batches  # noqa: F401 (registers what vmap does)
from anydml.bridges.torch._deterministic import deterministic
from anydml.bridges.torch._functions import (
    cast,
    gather,
    gather_elements,
    gather_nd,
    join,
    nonzero_coordinates,
    pad,
    reverse_subsequences,
    scatter_elements,
    scatter_nd,
    slice_window,
    split,
    tile,
    top_k,
)
from anydml.bridges.torch._pytorch import torch

Tensor: Any = torch.Tensor

__all__ = [
    "cast",
    "deterministic",
    "gather",
    "gather_elements",
    "gather_nd",
    "join",
    "nonzero_coordinates",
    "pad",
    "reverse_subsequences",
    "scatter_elements",
    "scatter_nd",
    "slice_window",
    "split",
    "tile",
    "top_k",
]
