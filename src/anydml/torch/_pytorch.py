"""PyTorch, which is imported with this package and not needed for its types."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, TypeAlias

from anydml._native import require_extension

require_extension("anydml.torch")
torch: Final[Any] = import_module("torch")

Tensor: TypeAlias = Any
"""A ``torch.Tensor``, or what stands for one."""
