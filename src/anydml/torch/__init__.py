"""The array functions on PyTorch's tensors, and `deterministic`.

`anydml.top_k` and the other functions come here by themselves with a tensor. The operators are
``torch.ops.anydml.top_k`` and so on.
"""

from anydml.torch._deterministic import deterministic
from anydml.torch._operators import call_of

__all__ = ["call_of", "deterministic"]
