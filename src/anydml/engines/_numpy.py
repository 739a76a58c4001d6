"""NumPy as an engine: what the base install computes with."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


class NumpyEngine:
    """`Engine` on NumPy arrays."""

    xp: Any = np

    def cast(self, x: Array, dtype: Any) -> Array:
        """Conversion as CAST has it."""
        dtype = np.dtype(dtype)
        if x.dtype.kind != "f" or dtype.kind == "f":
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                return x.astype(dtype)
        limits = np.iinfo(dtype)
        wide = x.astype(np.float64)
        high = wide >= float(limits.max)
        low = wide <= float(limits.min)
        inside = np.where(high | low | np.isnan(wide), 0.0, np.trunc(wide)).astype(dtype)
        inside = np.where(high, dtype.type(limits.max), inside)
        return np.where(low, dtype.type(limits.min), inside)
