"""The array functions on PyTorch's tensors, and `deterministic`.

`anydml.top_k` and the other functions come here by themselves with a tensor. The operators are
``torch.ops.anydml.top_k`` and so on.
"""

from anydml.core.extras import name_missing_package

with name_missing_package("anydml.torch", "anydml[torch]"):
    import anydml.torch._operators  # noqa: F401 (defines torch.ops.anydml)
    from anydml.torch._deterministic import deterministic

__all__ = ["deterministic"]


def __dir__() -> list[str]:
    return __all__
