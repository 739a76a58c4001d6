"""Runs: consecutive calls of a program that a backend executes as one.

`partition` makes the longest runs that a backend wants. It asks ``joins(call, run)`` for each call,
in order: first whether the call may be appended to the run before it, then whether it may begin
one. A run has names of what it reads and writes; a backend turns it into a step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, NamedTuple, TypeAlias

from anydml.core.program import ArraySpec, Intermediate, KernelCall, Program
from anydml.libraries._device import packed_strides

Names = dict[str, None]
"""A set in the order of insertion."""

Specs: TypeAlias = Mapping[str | None, ArraySpec]
"""The shapes and types that the calls of a program read and write, by name."""

Relayout: TypeAlias = Callable[[Any, Any], Any]
"""Makes an array in one layout of one in another, given the namespace of arrays."""


@dataclass
class Run:
    """Consecutive calls that are executed as one.

    Attributes
    ----------
    specs : mapping of str to ArraySpec
        Of what the program's calls read and write.
    calls : list of KernelCall
        In order.
    inputs : dict of str to None
        Names of arrays that exist before the run, in the order in which calls read them.
    outputs : sequence of str
        Names of arrays that others read after the run.
    written : dict of str to None
        All that the calls write.
    views : dict of str to (str, Relayout)
        Inputs of calls that have the bytes of what an earlier call of the run writes, in another
        layout: the name of what is written, and a function that makes the one of the other.
    """

    specs: Specs
    calls: list[KernelCall] = field(default_factory=list)
    inputs: Names = field(default_factory=dict)
    outputs: Sequence[str] = ()
    written: Names = field(default_factory=dict)
    views: dict[str, tuple[str, Relayout]] = field(default_factory=dict)


Joins: TypeAlias = Callable[[KernelCall, Run], bool]
"""Whether a call may be appended to a run, which has no calls yet if the call would begin it."""


def specs_of(program: Program) -> Specs:
    """Shapes and types of all arrays of a program, by name."""
    return {
        item.name: item.spec
        for items in (program.inputs, program.outputs, program.intermediates, program.constants)
        for item in items
    }


def partition(
    program: Program,
    joins: Joins,
    *,
    relayouts: bool = True,
    keeps: Callable[[Run], bool] = lambda run: True,
) -> tuple[Program, dict[str, Run]]:
    """Replace runs of calls by single calls.

    Parameters
    ----------
    program : Program
        What is to run.
    joins : callable
        As `Joins`.
    relayouts : bool, optional
        Whether a run may read what it has written in another layout, by transposing, reshaping and
        broadcasting. Where that is not enough, the call that reads it begins a new run.
    keeps : callable, optional
        Whether a run stays one; its calls stay calls of the program otherwise.

    Returns
    -------
    program : Program
        With one call for each run, and without intermediates that only the run reads.
    runs : dict of str to Run
        By the kernels of these calls.
    """
    specs = specs_of(program)
    items = {item.name: item for item in program.intermediates}
    parts: list[KernelCall | Run] = []
    for call in program.calls:
        last = parts[-1] if parts else None
        views = _views(call, last, items) if isinstance(last, Run) else None
        is_next = views is not None and (relayouts or not views)
        if not (is_next and isinstance(last, Run) and joins(call, last)):
            last, views = Run(specs), {}
            if not joins(call, last):
                parts.append(call)
                continue
            parts.append(last)
        _append(last, call, views or {})
    calls = [
        one
        for part in parts
        for one in (part.calls if isinstance(part, Run) and not keeps(part) else [part])
    ]
    return _replaced(program, calls, items)


def _replaced(
    program: Program, parts: Sequence[KernelCall | Run], items: Mapping[str, Intermediate]
) -> tuple[Program, dict[str, Run]]:
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
        # Intermediates that only this run reads are in no memory of ours.
        inner = {
            name
            for name in part.written
            if name in items and not any(reads[other] for other in (name, *viewed.get(name, ())))
        }
        dropped.update(*((name, *viewed.get(name, ())) for name in inner))
        part.outputs = tuple(name for name in part.written if name not in inner)
        undefined = (name for call in part.calls for name in call.leaves_undefined)
        cleared = tuple(name for name in undefined if name not in dropped)
        name = f"run {len(runs)}"
        indices = next((call.indices for call in part.calls if call.indices is not None), None)
        calls.append(
            KernelCall(name, tuple(part.inputs), part.outputs, indices=indices,
                       leaves_undefined=cleared)
        )  # fmt: skip
        runs[name] = part
    kept = tuple(item for item in program.intermediates if item.name not in dropped)
    return replace(program, calls=tuple(calls), intermediates=kept), runs


def _views(
    call: KernelCall, run: Run, items: Mapping[str, Intermediate]
) -> dict[str, tuple[str, Relayout]] | None:
    """Inputs of a call that a run has written in other layouts; None if no relayout makes them."""
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


class Layout(NamedTuple):
    """Sizes, and strides in elements; packed, if None."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None

    def dense(self) -> list[int] | None:
        """The axes in the order of memory, if each of its elements is there once, without gaps.

        Axes that only repeat are left out.
        """
        strides = packed_strides(self.shape, 1) if self.strides is None else self.strides
        axes = [a for a, (n, s) in enumerate(zip(self.shape, strides, strict=True)) if n > 1 and s]
        axes.sort(key=lambda axis: -strides[axis])
        packed = packed_strides(tuple(self.shape[axis] for axis in axes), 1)
        return axes if packed == tuple(strides[axis] for axis in axes) else None


def relayout(source: Layout, target: Layout) -> Relayout | None:
    """Find how to read the bytes of a dense array as another one: transpose, reshape and broadcast.

    None where that is not enough, or reads beyond the end.
    """
    source_order, target_order = source.dense(), target.dense()
    if source_order is None or target_order is None or _repeats(source, source_order):
        return None
    sizes = [target.shape[axis] for axis in target_order]
    if prod(sizes) > prod(source.shape):
        return None
    ones = [axis for axis in range(len(source.shape)) if axis not in source_order]
    present = sorted(target_order)
    kept = tuple(n if axis in target_order else 1 for axis, n in enumerate(target.shape))

    def read_view(xp: Any, x: Any) -> Any:
        flat = xp.transpose(x, [*source_order, *ones]).reshape(-1)[: prod(sizes)]
        moved = xp.transpose(flat.reshape(sizes), [target_order.index(axis) for axis in present])
        return xp.broadcast_to(moved.reshape(kept), target.shape)

    return read_view


def _repeats(layout: Layout, source_order: Sequence[int]) -> bool:
    return prod(layout.shape) != prod(layout.shape[axis] for axis in source_order)
