"""Runs of computed calls that are compiled as one function each.

A run ends in front of a native call, and where a call reads what the run has written in a layout
that transposing, reshaping and broadcasting do not make.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from anydml.core.program import ArraySpec, Intermediate, KernelCall, Program
from anydml.devices.backends._layouts import Layout, Relayout, relayout
from anydml.ops._registry import is_computed

Names = dict[str, None]
"""A set in the order of insertion."""


@dataclass
class Run:
    """Consecutive calls.

    Attributes
    ----------
    specs : mapping of str to ArraySpec
        Of what the program's calls read and write.
    calls : list of KernelCall
        In order.
    inputs, outputs : sequence of str
        What they read that is there before, and what they leave to others.
    written : dict of str to None
        All that they write.
    views : dict of str to (str, Relayout)
        What they read in another layout than they have written it in: the name that it has there,
        and what makes the one of the other.
    """

    specs: Mapping[str | None, ArraySpec]
    calls: list[KernelCall] = field(default_factory=list)
    inputs: Names = field(default_factory=dict)
    outputs: Sequence[str] = ()
    written: Names = field(default_factory=dict)
    views: dict[str, tuple[str, Relayout]] = field(default_factory=dict)


def partition(program: Program) -> tuple[Program, dict[str, Run]]:
    """The program with one call for each run, and the runs by the names of these calls."""
    specs: dict[str | None, ArraySpec] = {
        item.name: item.spec
        for items in (program.inputs, program.outputs, program.intermediates, program.constants)
        for item in items
    }
    items = {item.name: item for item in program.intermediates}
    parts: list[KernelCall | Run] = []
    for call in program.calls:
        if not is_computed(call.kernel):
            parts.append(call)
            continue
        last = parts[-1] if parts else None
        views = _views(call, last, items) if isinstance(last, Run) else None
        if views is None:
            last, views = Run(specs), {}
            parts.append(last)
        assert isinstance(last, Run)
        _append(last, call, views)
    reads = Counter(name for part in parts for name in part.inputs if name is not None)
    viewed: dict[str, list[str]] = {}
    for item in program.intermediates:
        viewed.setdefault(item.buffer, []).append(item.name)
    calls: list[KernelCall] = []
    runs: dict[str, Run] = {}
    dropped: set[str] = set()
    for part in parts:
        if isinstance(part, KernelCall):
            calls.append(part)
            continue
        # What only this run reads is in no memory of ours.
        inner = {
            name
            for name in part.written
            if name in items and not any(reads[other] for other in (name, *viewed.get(name, ())))
        }
        dropped.update(*((name, *viewed.get(name, ())) for name in inner))
        part.outputs = [name for name in part.written if name not in inner]
        undefined = (name for call in part.calls for name in call.leaves_undefined)
        cleared = tuple(name for name in undefined if name not in dropped)
        name = f"run {len(runs)}"
        calls.append(
            KernelCall(name, tuple(part.inputs), tuple(part.outputs), leaves_undefined=cleared)
        )
        runs[name] = part
    kept = tuple(item for item in program.intermediates if item.name not in dropped)
    return replace(program, calls=tuple(calls), intermediates=kept), runs


def _views(
    call: KernelCall, run: Run, items: Mapping[str, Intermediate]
) -> dict[str, tuple[str, Relayout]] | None:
    """What a call reads of a run in other layouts; None if it cannot be part of the run."""
    found: dict[str, tuple[str, Relayout]] = {}
    for name in filter(None, call.inputs):
        if name not in items or items[name].buffer not in run.written:
            continue
        buffer = items[name].buffer
        source, target = run.specs[buffer], run.specs[name]
        strides = items[buffer].strides if buffer in items else None
        reader = relayout(Layout(source.shape, strides), Layout(target.shape, items[name].strides))
        if reader is None or source.dtype != target.dtype:
            return None
        found[name] = buffer, reader
    return found


def _append(run: Run, call: KernelCall, views: Mapping[str, tuple[str, Relayout]]) -> None:
    run.calls.append(call)
    run.views.update(views)
    for name in call.inputs:
        if name is not None and name not in run.written and name not in run.views:
            run.inputs[name] = None
    run.written.update(dict.fromkeys(name for name in call.outputs if name is not None))
