"""Programs by the rooms' own reference implementations: slow, obvious, on any machine.

Indices are checked and resolved here, once for all operators; a room's `evaluate` sees only
positions that exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from anydml.backends._base import Array, decline, host_copy, natural, zeros
from anydml.program import IndexUse, Program, Slot
from anydml.registry import evaluation


class ReferenceBackend:
    """NumPy memory, and loops in Python."""

    device: int | None = None

    def allocate(self, slot: Slot, cleared: bool, call: str, like: Any = None) -> Array:
        """A new array of zeros."""
        return zeros(slot, call)

    copy = staticmethod(host_copy)

    def compile(self, program: Program) -> ReferenceExecutable:
        """Look up the reference implementation of each kernel."""
        return ReferenceExecutable(program)

    def describe(self) -> tuple[str, str]:
        """Loops in Python, on one thread."""
        return "Python", "1"


class ReferenceExecutable:
    """A program that runs by reference."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.dispatch = decline  # every dispatch is bound and checked in Python
        self._evaluations = [evaluation(call.kernel) for call in program.calls]

    def run(self, arrays: Mapping[str, Array], private: bool, threads: int) -> int:
        """Run on arrays of the declared sizes, by slot; the first bad index, or -1."""
        slots = (*self._program.inputs, *self._program.outputs)
        seen: dict[str | None, Any] = {None: None}  # a tensor that is left out
        seen |= {slot.name: natural(slot, arrays[slot.name]) for slot in slots}
        for call, evaluate in zip(self._program.calls, self._evaluations, strict=True):
            given = dict(call.attributes)
            operands = [seen[name] for name in call.inputs]
            if call.indices is not None:
                at = call.inputs.index(call.indices.slot)
                operands[at], bad = resolve(operands[at], call.indices, given.get("clamp", False))
                if bad >= 0:
                    return bad
            evaluate(operands, [seen[name] for name in call.outputs], given)
        return -1


def resolve(indices: Array, use: IndexUse, clamp: Any) -> tuple[Array, int]:
    """Indices as positions from the start of their axes, and the first that is out of range.

    Negative values count from the end; with `clamp` a value out of range becomes the nearest
    position. The second result is a flat position in row-major order, or -1.
    """
    positions = np.zeros(indices.shape, np.int64)
    for flat, value in enumerate(indices.ravel().tolist()):
        _, size = use.axis_and_size(flat)
        position = value + size if value < 0 else value
        if clamp:
            position = min(max(position, 0), size - 1)
        if not 0 <= position < size:
            return positions, flat
        positions.flat[flat] = position
    return positions, -1
