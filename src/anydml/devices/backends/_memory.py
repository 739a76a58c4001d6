"""How much memory a run of a program takes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from anydml.core.program import KernelCall, Program
from anydml.devices.backends._blocks import run_nbytes
from anydml.devices.backends._computed import call_nbytes
from anydml.devices.backends._partition import Run, Specs, specs_of
from anydml.devices.backends._sequence import lay_out, staged_outputs
from anydml.ops._registry import is_computed


def working_nbytes(
    program: Program, blocked: Mapping[str, Run] | None = None, threads: int = 1
) -> int:
    """The most bytes that a run takes besides what is bound, without allocating anything.

    That is what calls pass on, outputs that are computed elsewhere first, inputs that have to be
    copied to be read in another layout, and what the call with the largest operands computes in.
    `blocked` has the calls that run in blocks, by the names of their kernels, on some threads.
    """
    blocked = blocked or {}
    specs = specs_of(program)
    viewed = {item.buffer for item in program.intermediates}
    copied = {slot.name for slot in program.inputs if slot.name in viewed}
    passed = lay_out(program).nbytes + sum(
        prod(spec.shape) * spec.dtype.itemsize
        for name in copied | staged_outputs(program)
        if (spec := specs[name]).dtype is not None
    )
    temporary = (
        run_nbytes(blocked[call.kernel], threads)
        if call.kernel in blocked
        else _temporary(call, specs)
        for call in program.calls
    )
    return int(passed + max(temporary, default=0))


def _temporary(call: KernelCall, specs: Specs) -> int:
    if not is_computed(call.kernel):
        return 0  # native kernels have little scratch
    operands = [specs[name] for name in (*call.inputs, *call.outputs) if name is not None]
    return call_nbytes(call, operands)
