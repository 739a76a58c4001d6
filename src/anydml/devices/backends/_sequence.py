"""Programs of any length: where intermediates lie, and running the calls in order.

Intermediates share one block of memory for each run: two that are never needed at the same time may
have the same bytes. The block belongs to the run, so that several threads can run one program.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from anydml.core.errors import IndexOutOfRangeError
from anydml.core.program import ArraySpec, IndexUse, Intermediate, KernelCall, Program, Slot
from anydml.devices.backends._base import Array, decline, natural, out_of_range
from anydml.libraries._device import packed_strides

MOST_SORTED: Final = 2000
"""Buffers that are placed by size."""

ALIGNMENT: Final = 64
"""Bytes; of each intermediate's first element within the block."""


class Step(Protocol):
    """One call of a program, ready to run."""

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int
    ) -> int:
        """Run on natural arrays; the flat position of the first bad index, or -1.

        `private`: nobody sees the outputs when an index is bad, so they may be written before all
        indices have been checked.
        """


@runtime_checkable
class Specializing(Step, Protocol):
    """A step that prepares inputs which are known before it runs."""

    def specialized(self, known: Mapping[int, Any]) -> Step:
        """The step on the other inputs, in order; `known` has arrays by their positions."""


@dataclass(frozen=True)
class Layout:
    """Where the buffers of intermediates lie in a block.

    Attributes
    ----------
    offsets : dict of str to int
        Of each buffer, in bytes.
    nbytes : int
        Of the block.
    """

    offsets: Mapping[str, int]
    nbytes: int


def lay_out(program: Program) -> Layout:
    """Find a place for each intermediate; those with disjoint lifetimes may share bytes.

    The largest come first, each at the lowest offset that is free during its lifetime. Of more than
    `MOST_SORTED`, for which that takes too long, each takes the place of one of its own size.
    """
    sizes: dict[str, int] = {}
    buffer_of: dict[str | None, str] = {}
    own = {item.name for item in program.intermediates if not item.buffer}
    for item in program.intermediates:
        buffer = item.buffer or item.name
        if buffer in own:
            buffer_of[item.name] = buffer
            sizes[buffer] = max(sizes.get(buffer, 0), item.nbytes)
    lifetimes: dict[str, tuple[int, int]] = {}
    for position, call in enumerate(program.calls):
        for name in (*call.inputs, *call.outputs):
            if name in buffer_of:
                first, _ = lifetimes.get(buffer_of[name], (position, position))
                lifetimes[buffer_of[name]] = first, position
    if len(lifetimes) > MOST_SORTED:
        return _lay_out_in_order(sizes, lifetimes)
    offsets: dict[str, int] = {}
    total = 0
    for buffer in sorted(lifetimes, key=lambda name: -sizes[name]):
        first, last = lifetimes[buffer]
        taken = sorted(
            (offset, offset + sizes[other])
            for other, offset in offsets.items()
            if lifetimes[other][0] <= last and first <= lifetimes[other][1]
        )
        offset = 0
        for begin, end in taken:
            if offset + sizes[buffer] <= begin:
                break
            offset = max(offset, -(-end // ALIGNMENT) * ALIGNMENT)
        offsets[buffer] = offset
        total = max(total, offset + sizes[buffer])
    return Layout(offsets, total)


def _lay_out_in_order(sizes: Mapping[str, int], lifetimes: Mapping[str, tuple[int, int]]) -> Layout:
    offsets: dict[str, int] = {}
    total = 0
    free: dict[int, list[int]] = {}
    ends: list[tuple[int, str]] = []  # a heap
    for buffer, (first, last) in sorted(lifetimes.items(), key=lambda item: item[1]):
        while ends and ends[0][0] < first:
            _, dead = heapq.heappop(ends)
            free.setdefault(sizes[dead], []).append(offsets[dead])
        places = free.get(sizes[buffer])
        if places:
            offsets[buffer] = places.pop()
        else:
            offsets[buffer] = total
            total += -(-sizes[buffer] // ALIGNMENT) * ALIGNMENT
        heapq.heappush(ends, (last, buffer))
    return Layout(offsets, total)


def staged_outputs(program: Program) -> frozenset[str]:
    """Outputs that are computed in packed memory of the run's own and copied at the end.

    These are the outputs that a call writes before a later call checks indices, so that nothing has
    been written when an index is bad, and those whose bytes an intermediate lies over.
    """
    last = max((i for i, call in enumerate(program.calls) if call.indices is not None), default=0)
    outputs = {slot.name for slot in program.outputs}
    written = {name for call in program.calls[:last] for name in call.outputs if name is not None}
    return frozenset(outputs & (written | {item.buffer for item in program.intermediates}))


class Memory(Protocol):
    """Where the arrays of a run are."""

    def block(self, nbytes: int) -> Any:
        """New memory, as an array of bytes.

        Raises
        ------
        AllocationError
            It cannot be allocated.
        """

    def view(self, base: Any, offset: int, spec: ArraySpec, strides: tuple[int, ...]) -> Any:
        """An array over a block's bytes, from an offset on; strides are in bytes."""

    def pack(self, array: Any) -> Any:
        """The elements of an array in row-major order as a block: a copy, unless it is packed."""

    def clear(self, array: Any) -> None:
        """Set all elements to zero."""

    def copy(self, source: Any, target: Any) -> None:
        """Copy elements between arrays of one shape and type."""


@dataclass(frozen=True)
class _Prepared:
    """A call of a sequence.

    Attributes
    ----------
    call : KernelCall
        The call.
    step : Step
        Runs it on `inputs`.
    inputs : sequence of str or None
        Those that are not known before a run.
    visible : bool
        Whether it writes what is bound.
    cleared : sequence of str
        What is cleared before.
    """

    call: KernelCall
    step: Step
    inputs: Sequence[str | None]
    visible: bool
    cleared: Sequence[str]


class CallSequence:
    """The calls of a program, ready to run in order.

    Parameters
    ----------
    program : Program
        What runs.
    step_of : callable
        Makes a call of the program ready to run.
    memory : Memory
        Where `known` is.
    known : mapping of str to array
        Constants, and inputs that are not bound, of the sizes that kernels see. They, and what
        lies over their bytes, become part of the steps: a run spends no time on them.
    """

    def __init__(
        self,
        program: Program,
        step_of: Callable[[KernelCall], Step],
        memory: Memory,
        known: Mapping[str, Any],
    ) -> None:
        self._program = program
        self._layout = lay_out(program)
        self._staged = staged_outputs(program)
        self._known: dict[str | None, Any] = {}
        self._known.update(known)
        for item in program.intermediates:
            if item.buffer in known:
                base = memory.pack(known[item.buffer])
                self._known[item.name] = memory.view(base, 0, item.spec, _strides(item))
        self._intermediates = [
            (item, self._layout.offsets.get(item.buffer or item.name), _strides(item))
            for item in program.intermediates
            if item.name not in self._known
        ]
        self._bound = [
            slot for slot in (*program.inputs, *program.outputs) if slot.name not in known
        ]
        outputs = {slot.name for slot in program.outputs}
        self._calls = [
            _Prepared(
                call,
                self._specialized(step_of(call), call.inputs),
                [name for name in call.inputs if name not in self._known],
                any(name in outputs and name not in self._staged for name in call.outputs),
                [n for n in call.leaves_undefined if n not in outputs or n in self._staged],
            )
            for call in program.calls
        ]
        # One call on what is bound as it is bound: nothing else has to be prepared.
        first = self._calls[0]
        self._plain: _Prepared | None = None
        is_other = (
            self._staged
            or first.call.indices
            or None in (*first.inputs, *first.call.outputs)
            or any(slot.padding for slot in self._bound)
        )
        if self.single() is not None and not is_other:
            self._plain = first

    def single(self) -> tuple[Step, Sequence[str | None]] | None:
        """The step of the only call, if it is on what is bound, and its inputs."""
        first, *others = self._calls
        if others or self._intermediates or first.cleared:
            return None
        return first.step, first.inputs

    def _specialized(self, step: Step, inputs: Sequence[str | None]) -> Step:
        known = {i: self._known[name] for i, name in enumerate(inputs) if name in self._known}
        if not known:
            return step
        if isinstance(step, Specializing):
            return step.specialized(known)
        positions = range(len(inputs))

        def run(inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int) -> int:
            rest = iter(inputs)
            operands = [known[i] if i in known else next(rest) for i in positions]
            return step(operands, outputs, private, threads)

        return run

    def run(self, memory: Memory, arrays: Mapping[str, Any], private: bool, threads: int) -> None:
        """Run on arrays of the declared sizes by slot, as `Executable.run`."""
        if self._plain is not None:
            one = self._plain
            inputs = [arrays[name] for name in one.inputs]  # type: ignore[index]  # no None
            outputs = [arrays[name] for name in one.call.outputs]  # type: ignore[index]
            one.step(inputs, outputs, private, threads)
            return
        held: dict[str | None, Any] = {None: None}
        for slot in self._bound:
            array = arrays[slot.name]
            held[slot.name] = natural(slot, array) if slot.padding else array
        staged = {} if private else {name: held[name] for name in self._staged}
        for name, array in staged.items():
            held[name] = _packed_view(memory, ArraySpec(array.shape, array.dtype))
        if self._intermediates:
            self._add_intermediates(memory, held)
        for one in self._calls:
            for name in one.cleared:
                if name not in self._staged or not private:  # else the caller has cleared it
                    memory.clear(held[name])
            inputs = [held[name] for name in one.inputs]
            outputs = [held[name] for name in one.call.outputs]
            bad = one.step(inputs, outputs, private or not one.visible, threads)
            if bad >= 0:
                use = one.call.indices
                assert use is not None
                places: Sequence[Mapping[Any, Any]] = arrays, held, self._known
                indices = next(place[use.slot] for place in places if use.slot in place)
                raise _bad_index(self._program, one.call, use, indices, bad)
        for name, array in staged.items():
            memory.copy(held[name], array)

    def _add_intermediates(self, memory: Memory, held: dict[str | None, Any]) -> None:
        block = memory.block(self._layout.nbytes) if self._layout.nbytes else None
        for item, offset, strides in self._intermediates:
            # Without an offset, over what is bound.
            base = memory.pack(held[item.buffer]) if offset is None else block
            held[item.name] = memory.view(base, offset or 0, item.spec, strides)


def _strides(item: Intermediate) -> tuple[int, ...]:
    size = np.dtype(item.spec.dtype).itemsize
    if item.strides is not None:
        return tuple(stride * size for stride in item.strides)
    return packed_strides(item.spec.shape, size)


def _packed_view(memory: Memory, spec: ArraySpec) -> Any:
    size = np.dtype(spec.dtype).itemsize
    block = memory.block(prod(spec.shape) * size)
    return memory.view(block, 0, spec, packed_strides(spec.shape, size))


class HostMemory:
    """Arrays that NumPy sees.

    Parameters
    ----------
    block : callable
        As `Memory.block`.
    """

    def __init__(self, block: Callable[[int], Array]) -> None:
        self.block = block

    def view(self, base: Array, offset: int, spec: ArraySpec, strides: tuple[int, ...]) -> Array:
        """An array over a block's bytes."""
        if 0 in spec.shape:
            return np.empty(spec.shape, spec.dtype)
        return np.ndarray(spec.shape, spec.dtype, base, offset, strides)

    def pack(self, array: Array) -> Array:
        """The elements as bytes."""
        return np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def clear(self, array: Array) -> None:
        """Set all elements to zero."""
        array[...] = 0

    def copy(self, source: Array, target: Array) -> None:
        """Copy elements."""
        target[...] = source


class HostExecutable:
    """A program on arrays in host memory.

    Parameters
    ----------
    program, step_of
        As for `CallSequence`.
    memory : HostMemory
        Where intermediate results are.
    dispatch : callable, optional
        As `Executable.dispatch`.
    owned : mapping of str to array, optional
        Inputs that are not bound, by slot.
    """

    def __init__(
        self,
        program: Program,
        step_of: Callable[[KernelCall], Step],
        memory: HostMemory,
        dispatch: Callable[[dict[str, Any], int], int | None] = decline,
        owned: Mapping[str, Array] | None = None,
    ) -> None:
        self.dispatch = dispatch
        self._made_of = program, step_of, memory
        known = host_constants(program) | natural_inputs(program, owned or {})
        self._sequence = CallSequence(program, step_of, memory, known)
        self.direct = direct_call(program, self._sequence)

    def owning(self, arrays: Mapping[str, Array]) -> HostExecutable:
        return HostExecutable(*self._made_of, owned=arrays)

    def run(self, arrays: Mapping[str, Array], private: bool, threads: int) -> None:
        self._sequence.run(self._made_of[2], arrays, private, threads)


DirectCall = Callable[[dict[str, Any]], dict[str, Any] | None]
"""A call of `Executable.direct`."""


@runtime_checkable
class Direct(Protocol):
    """A step that takes arrays of its own library as they are."""

    def direct(self, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> DirectCall:
        """The direct call of a program of this step alone, whose inputs are in this order."""


def direct_call(program: Program, sequence: CallSequence) -> DirectCall:
    """The direct call of a program's calls, which declines unless they are one that has it."""
    single = sequence.single()
    if single is None or not isinstance(single[0], Direct):
        return lambda bindings: None
    slots = {slot.name: slot for slot in program.inputs}
    return single[0].direct([slots[str(name)] for name in single[1]], program.outputs)


def natural_inputs(program: Program, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs of a program as kernels see them, of arrays of the declared sizes by slot."""
    return {
        slot.name: natural(slot, arrays[slot.name])
        for slot in program.inputs
        if slot.name in arrays
    }


def host_constants(program: Program) -> dict[str, Array]:
    """A program's constants as arrays that cannot be written."""
    return {
        item.name: np.frombuffer(item.data, item.spec.dtype).reshape(item.spec.shape)
        for item in program.constants
    }


def _bad_index(
    program: Program, call: KernelCall, use: IndexUse, indices: Array, flat: int
) -> IndexOutOfRangeError:
    axis, size = use.axis_and_size(flat)
    where = f"{call.source or program.name}.{use.tensor or use.slot}"
    for slot in program.inputs:
        if slot.name == use.slot:  # tensors given at initialization lack leading sizes of 1
            indices = indices.reshape(slot.declared)
    return index_error(where, indices, flat, axis, size)


def index_error(
    where: str, indices: Array, flat: int, axis: int, size: int, origin: Sequence[int] = ()
) -> IndexOutOfRangeError:
    """The error for a bad index at a flat position of the index array.

    The value is read anew for it, and may be a good one by now if another thread changes it.
    `origin` is where the array lies in the caller's, of which it is a block.
    """
    value = int(indices[np.unravel_index(flat, indices.shape)])
    signed = indices.dtype.kind == "i"
    return out_of_range(where, indices.shape, signed, flat, value, axis, size, origin=origin)
