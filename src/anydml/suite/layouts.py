"""How the elements of arrays lie in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """How the elements of an array lie in memory.

    Attributes
    ----------
    order : tuple of int, optional
        The dimensions from the outermost to the innermost in memory; row-major when left out.
    gaps : tuple of int
        For each dimension, elements that are left out between its neighbours; missing ones are 0.
    reversed : tuple of int
        Dimensions with a negative stride.
    repeated : tuple of int
        Dimensions with a stride of 0 (inputs only).
    shift : int
        Bytes off the element's alignment.
    swapped : bool
        Foreign byte order.
    writeable : bool
        Whether the array lets itself be written to.
    """

    order: tuple[int, ...] | None = None
    gaps: tuple[int, ...] = ()
    reversed: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()
    shift: int = 0
    swapped: bool = False
    writeable: bool = True

    def strides(self, shape: Sequence[int], item_size: int) -> tuple[int, ...]:
        """Strides in bytes; the negative ones as such."""
        strides = [0] * len(shape)
        step = item_size
        for i in reversed(self.order if self.order is not None else range(len(shape))):
            if i in self.repeated:
                continue
            step += (self.gaps[i] if i < len(self.gaps) else 0) * item_size
            strides[i] = -step if i in self.reversed else step
            step *= max(shape[i], 1)
        return tuple(strides)
