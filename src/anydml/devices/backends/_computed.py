"""Calls of operators with `compute` on NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.program import ArraySpec, KernelCall
from anydml.core.tolerance import Unit
from anydml.devices.backends._sequence import Step
from anydml.engines._numpy import NumpyEngine
from anydml.ops._registry import definition_of

ENGINE: Final = NumpyEngine()

Widening = Mapping[np.dtype[Any], np.dtype[Any]]
"""The type that elements of a type are computed in; others are computed in their own."""

WORKING: Final[Widening] = {np.dtype(np.float16): np.dtype(np.float32)}
"""The types that the CPU computes in."""

EXACT: Final[Widening] = {np.dtype(kind): np.dtype(np.float64) for kind in (np.float16, np.float32)}
"""The types that the reference device computes in, except where those of the CPU are exact too."""


def computed_step(call: KernelCall, widening: Widening) -> Step:
    """A call of an operator with `compute`; each result is rounded once, when it is written."""
    definition, attributes = definition_of(call.kernel), dict(call.attributes)
    compute = definition.compute
    if not definition.WIDENS:
        widening = {}
    elif definition.TOLERANCE.unit is Unit.BITS:
        widening = WORKING

    def run(inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int) -> int:
        with np.errstate(all="ignore"):
            if widening:
                inputs = [x if x is None else _widened(x, widening) for x in inputs]
            results = compute(ENGINE, *inputs, **attributes)
            if not isinstance(results, tuple):
                results = (results,)
            for output, result in zip(outputs, results, strict=True):
                if output is not None:
                    kind = output.dtype
                    output[...] = result if result.dtype is kind else ENGINE.cast(result, kind)
        return -1

    return run


def call_nbytes(call: KernelCall, operands: Sequence[ArraySpec]) -> int:
    """The most bytes that `compute` of a call takes besides its inputs and outputs."""
    kind = definition_of(call.kernel)
    elements = sum(int(prod(spec.shape)) for spec in operands)
    return elements * kind.WORKING_BYTES + kind.IN_PIECES * ENGINE.scratch_nbytes


def _widened(x: Any, widening: Widening) -> Any:
    wide = widening.get(x.dtype)
    return x if wide is None else x.astype(wide)
