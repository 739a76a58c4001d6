"""What `torch.compile` reads in place of `traced_by`: the call goes to PyTorch's bridge.

PyTorch looks for it at the function itself, so that neither has to be imported for the other.
"""

from __future__ import annotations

from typing import Any

from anydml.arrays import traced_by


def _torchs(value: Any) -> Any:
    from anydml.bridges import torch as bridge

    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return bridge if isinstance(value, bridge.Tensor) else None


vars(traced_by)["_torchdynamo_inline"] = _torchs
