"""How much memory a run of a program takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from anydml.core.program import ArraySpec, KernelCall, Program
from anydml.devices.backends._blocks import run_nbytes
from anydml.devices.backends._computed import call_nbytes
from anydml.devices.backends._partition import Run, Specs, specs_of
from anydml.devices.backends._sequence import lay_out, staged_outputs
from anydml.ops._registry import is_computed


def working_nbytes(
    program: Program,
    blocked: Mapping[str, Run] | None = None,
    threads: int = 1,
    *,
    compiled: bool = False,
    computes: Callable[[str], object] = is_computed,
) -> int:
    """The most bytes that a run takes besides what is bound, without allocating anything.

    That is what calls pass on, outputs that are computed elsewhere first, inputs that have to be
    copied to be read in another layout, and what the call with the largest operands computes in.
    `blocked` has the calls that run in blocks, by the names of their kernels, on some threads.
    `compiled`: calls that move elements may be part of compiled code, whose results are copied.
    `computes`: whether a kernel is computed with NumPy.
    """
    blocked = blocked or {}
    specs = specs_of(program)
    viewed = {item.buffer for item in program.intermediates}
    copied = {slot.name for slot in program.inputs if slot.name in viewed}
    passed = lay_out(program).nbytes + sum(
        _nbytes(specs[name]) for name in copied | staged_outputs(program)
    )
    temporary = (
        run_nbytes(blocked[call.kernel], threads)
        if call.kernel in blocked
        else _temporary(call, specs, compiled, computes(call.kernel))
        for call in program.calls
    )
    return int(passed + max(temporary, default=0))


def _temporary(call: KernelCall, specs: Specs, compiled: bool, computed: object) -> int:
    written = [specs[name] for name in call.outputs if name is not None]
    if computed:
        return call_nbytes(call, [*(specs[n] for n in call.inputs if n is not None), *written])
    # Native kernels have little scratch.
    return sum(_nbytes(spec) for spec in written) if compiled else 0


def _nbytes(spec: ArraySpec) -> int:
    return int(prod(spec.shape)) * np.dtype(spec.dtype).itemsize
