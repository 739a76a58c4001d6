"""Programs by the operators' own definitions: slow, obvious, on any machine.

A definition has `compute`, or `evaluate` in plain loops. Indices are checked and resolved here,
once for all operators; `evaluate` sees only positions that exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from anydml.core.program import KernelCall, Program, Slot
from anydml.devices.backends._base import Array, Executable, host_copy, zeros
from anydml.devices.backends._computed import EXACT, computed_step
from anydml.devices.backends._memory import working_nbytes
from anydml.devices.backends._sequence import HostExecutable, HostMemory, Step
from anydml.ops._registry import computation, evaluation
from anydml.portable.kernels import resolve


class ReferenceBackend:
    """NumPy memory; `compute` with NumPy, in float64 where it calculates; else Python loops."""

    device: int | None = None

    def allocate(self, slot: Slot, cleared: bool, call: str, like: Any = None) -> Array:
        """A new array of zeros."""
        return zeros(slot, call)

    copy = staticmethod(host_copy)
    working_nbytes = staticmethod(partial(working_nbytes, computes=computation))

    def compile(self, program: Program) -> Executable:
        """Look up the reference implementation of each kernel."""
        return HostExecutable(program, _step, HostMemory(_block))

    def describe(self) -> tuple[str, str]:
        """Python and NumPy, on one thread."""
        return "Python", "1"


def _step(call: KernelCall) -> Step:
    if computation(call.kernel):
        return computed_step(call, EXACT)
    evaluate, attributes = evaluation(call.kernel), dict(call.attributes)

    def run(inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int) -> int:
        operands = list(inputs)
        if call.indices is not None:
            at = call.inputs.index(call.indices.slot)
            sizes = call.indices.sizes
            mode = "clamp" if attributes.get("clamp", False) else "raise"
            operands[at], bad = resolve(operands[at], sizes[0] if len(sizes) == 1 else sizes, mode)
            if bad >= 0:
                return bad
        evaluate(operands, outputs, attributes)
        return -1

    return run


def _block(nbytes: int) -> Array:
    return np.zeros(nbytes, np.uint8)
