"""Runs of elementwise calls, computed in blocks that stay in the cache.

Consecutive calls of elementwise operators over the same sizes become one call, which does all of
them for a block of elements, then for the next block. What only these calls read is never an array
of all elements.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from anydml._native import native
from anydml.core.program import KernelCall, Program
from anydml.devices.backends._base import unrepeated
from anydml.devices.backends._chains import chain_of
from anydml.devices.backends._computed import ENGINE, Widening, call_nbytes
from anydml.devices.backends._partition import Run, partition
from anydml.devices.backends._sequence import Step
from anydml.ops._registry import definition_of, is_elementwise

BLOCK: Final = 128 * 1024
"""About how many bytes of each array are computed at a time.

The C library gives larger blocks back to the system, which then clears each page again.
"""

_WIDEST: Final = 8
"""Bytes of an element."""

_LEAST_PIECES: Final = 4
"""For each thread: starting one takes as long as a piece or two."""

Arrays = Sequence[Any]


def fuse(program: Program) -> tuple[Program, dict[str, Run]]:
    """Replace runs of elementwise calls by single calls, as `partition` does."""
    # What a run has written can be read in another layout when all its blocks are written.
    return partition(program, _joins, relayouts=False, keeps=_gains)


def _joins(call: KernelCall, run: Run) -> bool:
    if not is_elementwise(call.kernel):
        return False
    (output,) = call.outputs
    return not run.calls or _shape(run) == run.specs[output].shape


def _gains(run: Run) -> bool:
    """Whether blocks are worth it: not for one call on one of them."""
    return len(run.calls) > 1 or prod(_shape(run)) * _WIDEST > BLOCK


def _shape(run: Run) -> tuple[int, ...]:
    """The sizes of all outputs."""
    return run.specs[run.calls[0].outputs[0]].shape


def _itemsize(run: Run, call: KernelCall) -> int:
    return np.dtype(run.specs[call.outputs[0]].dtype).itemsize


def _block_size(run: Run) -> int:
    """The most elements that are computed at once."""
    return BLOCK // max(_itemsize(run, call) for call in run.calls)


def run_nbytes(run: Run, threads: int) -> int:
    """The most bytes that a run takes besides its inputs and outputs, on a number of threads."""
    count = min(prod(_shape(run)), _block_size(run))
    written = {call.outputs[0]: count * _itemsize(run, call) for call in run.calls}
    maximum = 0
    for call in run.calls:
        names = (name for name in (*call.inputs, *call.outputs) if name is not None)
        operands = [replace(run.specs[name], shape=(count,)) for name in names]
        others = sum(written.values()) - written[call.outputs[0]]
        maximum = max(maximum, others + call_nbytes(call, operands))
    return maximum * thread_count(block_count(_shape(run), _block_size(run)), threads)


def blocks_step(run: Run, widening: Widening) -> Step:
    """A run, ready to run: natively where all arrays are packed and `chain_of` knows the run."""
    chain = chain_of(run)
    compute = _numpy_step(run, widening)
    if chain is None:
        return compute

    def step(inputs: Arrays, outputs: Arrays, private: bool, threads: int) -> int:
        if native.chain((*inputs, *outputs), chain, threads):
            return -1
        return compute(inputs, outputs, private, threads)

    return step


def _numpy_step(run: Run, widening: Widening) -> Step:
    group, inputs, outputs, specs = run.calls, run.inputs, run.outputs, run.specs
    # Arrays are counted: what is read, what is written, and None for what is left out.
    place: dict[str | None, int] = {name: i for i, name in enumerate(inputs)}
    for call in group:
        place.setdefault(call.outputs[0], len(place))
    place[None] = len(place)
    kept: set[str | None] = set(outputs)
    plan = []
    for call in reversed(group):
        kinds = [None if name is None else specs[name].dtype for name in call.inputs]
        wide = [kind and widening.get(kind) for kind in kinds]
        # What no later call reads goes at once: the next array takes its place in the cache.
        dead = [place[name] for name in set(call.inputs) - {None} if name not in kept]
        kept.update(call.inputs)
        sources = [place[name] for name in call.inputs]
        name = call.outputs[0]
        definition, attributes = definition_of(call.kernel), dict(call.attributes)
        kind = np.dtype(specs[name].dtype)
        casts = [(i, w) for i, w in enumerate(wide) if w and definition.WIDENS]
        plan.append((definition.compute, sources, casts, attributes, place[name], kind, dead))
    plan.reverse()
    ends = [place[name] for name in outputs]
    pieces = list(blocks(_shape(run), _block_size(run)))
    unread: list[Any] = [None] * (len(place) - len(inputs))

    def compute(pieces: Iterable[Any], ins: Arrays, outs: Arrays) -> None:
        with np.errstate(all="ignore"):
            for at in pieces:
                held = [unrepeated(array[at]) for array in ins] + unread
                for function, sources, casts, attributes, target, kind, dead in plan:
                    operands = [held[i] for i in sources]
                    for i, wide_kind in casts:
                        operands[i] = operands[i].astype(wide_kind)
                    result = function(ENGINE, *operands, **attributes)
                    held[target] = _converted(result, kind)
                    if dead:
                        del operands, result
                        for i in dead:
                            held[i] = None
                for i, array in zip(ends, outs, strict=True):
                    array[at] = held[i]

    def step(inputs: Arrays, outputs: Arrays, private: bool, threads: int) -> int:
        count = thread_count(len(pieces), threads)
        if count == 1:
            compute(pieces, inputs, outputs)
        else:
            share_out(pieces, lambda part: compute(part, inputs, outputs), count)
        return -1

    return step


def _converted(x: Any, dtype: np.dtype[Any]) -> Any:
    """A result as CAST converts it; floats to integers by the native kernel, which is faster."""
    if x.dtype == dtype or x.dtype.kind != "f" or dtype.kind not in "iu":
        return ENGINE.cast(x, dtype)
    result = np.empty(x.shape, dtype)
    native.run("cast", (x,), (result,), {}, True, 1)
    return result


def thread_count(pieces: int, threads: int) -> int:
    """On how many threads a number of pieces is computed."""
    return max(1, min(threads, pieces // _LEAST_PIECES)) if pieces >= 2 * _LEAST_PIECES else 1


def blocks(shape: tuple[int, ...], limit: int) -> Iterator[tuple[Any, ...]]:
    """Indices of consecutive parts of an array, each of at most `limit` elements."""
    if prod(shape) <= limit:
        yield (...,)
        return
    axis, step = _cut(shape, limit)
    for outer in product(*map(range, shape[:axis])):
        for begin in range(0, shape[axis], step):
            yield (*outer, slice(begin, begin + step))


def block_count(shape: tuple[int, ...], limit: int) -> int:
    """How many parts `blocks` makes."""
    if prod(shape) <= limit:
        return 1
    axis, step = _cut(shape, limit)
    return prod(shape[:axis]) * -(-shape[axis] // step)


def _cut(shape: tuple[int, ...], limit: int) -> tuple[int, int]:
    """The axis along which blocks are cut, those in front being loops, and their size there."""
    axis = next(i for i in range(len(shape)) if prod(shape[i + 1 :]) <= limit)
    return axis, limit // prod(shape[axis + 1 :])


def share_out(pieces: Sequence[Any], work: Callable[[Iterable[Any]], None], count: int) -> None:
    """Do work on pieces, on a number of threads.

    Raises
    ------
    BaseException
        The first that a thread has raised, when all have ended.
    """
    left = iter(pieces)  # which hands out one piece at a time, as the interpreter lock sees to
    errors: list[BaseException] = []

    def share() -> None:
        try:
            work(left)
        except BaseException as error:
            errors.append(error)

    others = [threading.Thread(target=share) for _ in range(count - 1)]
    for thread in others:
        thread.start()
    share()
    for thread in others:
        thread.join()
    if errors:
        raise errors[0]
