"""Runs of calls on the arrays of an engine that traces them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from anydml.core.program import ArraySpec, KernelCall
from anydml.devices.backends._computed import WORKING
from anydml.devices.backends._partition import Run
from anydml.engines import Engine
from anydml.ops._registry import computation

NativeCall = Callable[[KernelCall, Sequence[Any], Sequence[ArraySpec]], Sequence[Any]]
"""Results of a call without `compute`, from its operands and the specs of its outputs."""

OwnResults = Callable[[str, Sequence[Any], Mapping[str, Any]], "Sequence[Any] | None"]
"""Results of a kernel by an operator of the engine's own, from operands and attributes."""


def compute_run(
    engine: Engine, run: Run, arrays: Sequence[Any], native_call: NativeCall | None = None
) -> list[Any]:
    """The outputs of a run from its inputs."""
    held = held_inputs(engine, run, arrays)
    for _ in compute_calls(engine, run, held, native_call):
        pass
    return [held[name] for name in run.outputs]


def held_inputs(engine: Engine, run: Run, arrays: Sequence[Any]) -> dict[str | None, Any]:
    """The inputs of a run by name, from arrays that may have sizes of 1 where elements repeat."""
    pairs = zip(run.inputs, arrays, strict=True)
    expand = engine.xp.broadcast_to
    return {None: None, **{name: expand(x, run.specs[name].shape) for name, x in pairs}}


def compute_calls(
    engine: Engine, run: Run, held: dict[str | None, Any], native_call: NativeCall | None = None,
    own_results: OwnResults = lambda *call: None,
) -> Iterator[KernelCall]:  # fmt: skip
    """Each call of a run, which is computed when the next one is asked for.

    `held` has the inputs of the run, and gets what the calls read in other layouts and what they
    write. Each result is rounded once, as it would be when it is written. `own_results` may give
    those of a call in place of `compute`.
    """
    for call in run.calls:
        yield call
        for view in filter(None, call.inputs):
            if view not in held:
                source, reader = run.views[view]
                held[view] = reader(engine.xp, held[source])
        definition = computation(call.kernel)
        operands = [held[name] for name in call.inputs]
        if definition is None:
            assert native_call is not None
            results = native_call(call, operands, [run.specs[name] for name in call.outputs])
        else:
            widens = definition.WIDENS
            widens &= not (definition.MULTIPLIES and engine.multiplies_halves)
            operands = [_widened(x, widens) for x in operands]
            attributes = dict(call.attributes)
            own = own_results(call.kernel, operands, attributes)
            results = definition.compute(engine, *operands, **attributes) if own is None else own
            if not isinstance(results, list | tuple):
                results = (results,)
        for output, result in zip(call.outputs, results, strict=True):
            if output is not None:
                spec = run.specs[output]
                cast = engine.cast(result, spec.dtype)
                held[output] = engine.xp.broadcast_to(cast, spec.shape)


def _widened(x: Any, widens: bool) -> Any:
    return x.astype(WORKING[x.dtype]) if widens and x is not None and x.dtype in WORKING else x
