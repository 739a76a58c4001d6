"""`Job`: one concrete piece of work, the same for every contestant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

CACHE_LINE = 64
MANY_RESULTS = ("top_k", "split")
"""The operations with more than one result."""


@dataclass(frozen=True)
class Job:
    """An operation with its inputs.

    Attributes
    ----------
    operation : str
        The array function's name.
    arrays : tuple of arrays
        Its array arguments, in its order; for ``join``, the parts.
    options : mapping
        Its other arguments, named as the array function names them; the number of equal parts of a
        split is ``sections``.
    """

    operation: str
    arrays: tuple[Array, ...]
    options: Mapping[str, Any]

    @property
    def traffic(self) -> int:
        """The least bytes that must move: inputs read once, outputs written once.

        What need not be read is left out, so that no fraction of a bandwidth comes out too good:
        rows that `scatter_nd` replaces, and what a gather does not pick. Memory is read by cache
        lines: between elements that lie closer than these, everything is.
        """
        first, *others = self.arrays
        size = first.nbytes
        match self.operation:
            case "top_k":
                axis, k = self.options["axis"], int(self.options["k"])
                results = first.size // first.shape[axis] * k
                return int(size + results * (first.itemsize + np.dtype(np.intp).itemsize))
            case "nonzero_coordinates":
                row = first.ndim * np.dtype(np.intp).itemsize
                return size + int(np.count_nonzero(first)) * row
            case "scatter_elements":
                return 2 * size + sum(a.nbytes for a in others)
            case "scatter_nd":
                indices, updates = others
                row = prod(first.shape[indices.shape[-1] :]) * first.itemsize
                replaced = row >= CACHE_LINE and self.options["reduction"] is None
                kept = max(size - updates.nbytes, 0) if replaced else size
                return kept + indices.nbytes + updates.nbytes + size
            case "split" | "join":
                return 2 * sum(a.nbytes for a in self.arrays)
            case "gather" | "gather_elements" | "gather_nd":
                picked = self._picked() * first.itemsize
                return others[0].nbytes + min(picked, size) + picked
        raise ValueError(f"operation: expected an array function's name, got {self.operation!r}")

    def _picked(self) -> int:
        """How many elements a gather picks."""
        data, indices = self.arrays
        if self.operation == "gather":
            axis = int(self.options["axis"])
            return int(data.size // data.shape[axis] * indices.size)
        if self.operation == "gather_elements":
            return indices.size
        indexed = int(self.options["batch_dims"]) + indices.shape[-1]
        return int(indices.size // indices.shape[-1] * prod(data.shape[indexed:]))
