"""The elements that padding and interpolation read along one axis."""

from __future__ import annotations

import numpy as np

from anydml.portable._numbers import Array


def padded_from(mode: str, at: Array, size: int) -> Array:
    """Return the elements that stand at positions outside of an axis, in a mode without a value."""
    if mode == "edge":
        return at.clip(0, size - 1)
    if mode == "wrap" or size == 1:
        return np.asarray(at % size)
    period = 2 * size - 2 if mode == "reflection" else 2 * size
    last = period if mode == "reflection" else period - 1
    within = at % period
    return np.asarray(np.minimum(within, last - within))


def between(size: int, scale: int) -> tuple[Array, Array]:
    """Return the elements at or before those of an enlarged axis, and the weights of the next."""
    # Distances from the center of the first element are in units of half an output element.
    distances = np.maximum(2 * np.arange(size * scale) + 1 - scale, 0)
    first, rest = np.divmod(distances, 2 * scale)
    weights = np.where(first < size - 1, rest / (2 * scale), 0).astype(np.float32)
    return np.minimum(first, size - 1), weights
