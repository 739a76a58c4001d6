"""Descriptors that many tests share, and arrays for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor

_SHARED: dict[tuple[str, int, bool], Any] = {}


def shared(kind: type[Descriptor], seed: int = 0, *, packed: bool = False) -> Any:
    """A descriptor that breaks no rule, of a seed; made once for all tests."""
    key = kind.__name__, seed, packed
    if key not in _SHARED:
        _SHARED[key] = descriptor(Seeded(seed), kind, packed=packed)
    return _SHARED[key]


def plain_values(desc: Any) -> dict[str, Any]:
    """An array for every tensor, by the page's names: inputs of small numbers, outputs of zeros.

    Zeros are indices that are in range, whatever they point into.
    """
    found: dict[str, Any] = {}
    for info in desc.bind_points():
        indices = info.role is Role.OUTPUT or info.name == "IndicesTensor"
        arrays = [
            (np.zeros if indices else np.ones)(tensor.sizes, tensor.data_type.numpy)
            for _, tensor in info.paths(getattr(desc, info.attribute))
        ]
        found[info.name] = arrays if info.many else arrays[0]
    return found
