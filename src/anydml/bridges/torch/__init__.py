"""Where `anydml.torch.deterministic` was before; kept for one release."""

from anydml.torch import deterministic

__all__ = ["deterministic"]
