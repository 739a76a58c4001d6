"""Graphs with operators that calculate on an NVIDIA GPU: compiled by XLA, through JAX.

A program is one compiled function as far as it can be: native kernels are custom calls in it. What
it reads is passed by DLPack. It writes memory of JAX, which is copied to the caller's, or is the
result where the caller passes arrays of JAX. The host never waits: streams wait for each other, and
what another stream still reads is kept until it has passed an event.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import jax
import numpy as np

from anydml._native import native
from anydml.core.errors import DeviceError
from anydml.core.program import ArraySpec, KernelCall, Program, Slot
from anydml.devices.backends._code_cache import compiled
from anydml.devices.backends._partition import Run, partition
from anydml.devices.backends._sequence import DirectCall, Step
from anydml.devices.backends._traced import compute_run
from anydml.devices.backends._xla_calls import custom_call
from anydml.devices.backends.xla import (
    are_bound,
    are_representable,
    calculates,
    engine,
    first_working,
    translate_errors,
)
from anydml.engines._jax import JaxEngine, x64
from anydml.libraries import as_operand
from anydml.libraries._device import DeviceArray, packed_strides
from anydml.libraries._dlpack import capsule_of
from anydml.libraries._jax import from_device_array
from anydml.ops._registry import computation

_ALIGNMENT: Final = 16
"""Bytes; of the address of an argument of what XLA compiles."""

_LEGACY_STREAM: Final = 1
"""By which DLPack calls the default stream, whose handle is 0."""

_CUDA: Final = 2  # kDLCUDA

_LENDABLE: Final = ("torch", "cupy")
"""Libraries whose `from_dlpack` takes results, and whose memory is used on one stream."""

_MOST_KEPT: Final = 64
"""Calls whose arrays are kept at a time."""


class Memory(Protocol):
    """Memory on the GPU, used on one stream."""

    def packed(self, array: DeviceArray) -> DeviceArray:
        """A packed copy of an array."""

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        """Copy elements between arrays of one shape and type."""


def compiled_runs(
    program: Program, device: int, memory_on: Callable[[int], Memory], cache: str
) -> tuple[Program, Mapping[str, CompiledRun]]:
    """The program with one call for each run, and the runs' steps by the kernels of these calls.

    Raises
    ------
    DeviceError
        JAX does not see the GPU.
    """
    try:
        places = [d for d in jax.devices("cuda") if d.local_hardware_id == device]
    except RuntimeError as error:  # of a JAX without CUDA
        raise _no_gpu(program, device, str(error)) from None
    if not places:
        raise _no_gpu(program, device, "JAX does not list this GPU")
    calls, computing = _Calls(program), engine(places[0].platform, program)
    partitioned, runs = partition(program, _joins, keeps=calculates)
    return partitioned, {
        kernel: CompiledRun(program.name, run, places[0], memory_on, cache, calls, computing)
        for kernel, run in runs.items()
    }


def _joins(call: KernelCall, run: Run) -> bool:
    """Whether a call is part of compiled code: not if it leaves elements of memory undefined."""
    if computation(call.kernel) is not None:
        return True
    is_native = call.kernel in native.kernels()
    return is_native and not call.leaves_undefined and None not in (*call.inputs, *call.outputs)


def _no_gpu(program: Program, device: int, reason: str) -> DeviceError:
    return DeviceError(
        f"{program.name}: Device('cuda:{device}') calculates with JAX, which cannot use this GPU: "
        f"{reason}; pip install 'jax[cuda13]'"
    )


class _Calls:
    """Native calls of a program in traced code."""

    def __init__(self, program: Program) -> None:
        self._name = program.name
        self._padding = {slot.name: slot.padding for slot in (*program.inputs, *program.outputs)}

    def __call__(
        self, call: KernelCall, operands: Sequence[Any], outputs: Sequence[ArraySpec]
    ) -> list[Any]:
        named: dict[str, Any] = {}
        axes: tuple[int, ...] = ()
        if call.indices is not None:
            use = call.indices
            padding = [self._padding.get(name or "", 0) for name in (call.inputs[0], use.slot)]
            axes = tuple(axis - padding[0] for axis in use.axes)
            where = f"{call.source or self._name}.{use.tensor or use.slot}"
            named = {"where": where, "padding": np.array(padding, np.int64)}
        specs = [(spec.shape, spec.dtype) for spec in outputs]
        return custom_call(call.kernel, operands, specs, dict(call.attributes), axes, **named)


class _Kept:
    """Arrays that a stream reads, until it has passed an event."""

    def __init__(self) -> None:
        self._items: deque[tuple[Any, Any]] = deque()

    def add(self, event: Any, arrays: Any) -> None:
        """Keep arrays until an event; those of earlier calls go when theirs has passed."""
        items = self._items
        items.append((event, arrays))
        try:
            while items[0][0].has_passed():
                items.popleft()
            if len(items) > _MOST_KEPT:
                items.popleft()[0].wait()
        except IndexError:  # none, or another thread took the last
            pass


class CompiledRun:
    """`Step` of a run, some of whose inputs may be known."""

    def __init__(
        self,
        name: str,
        run: Run,
        place: Any,
        memory_on: Callable[[int], Memory],
        cache: str,
        native_call: _Calls,
        computing: JaxEngine,
        known: Mapping[int, DeviceArray] | None = None,
    ) -> None:
        self._made_of = name, run, place, memory_on, cache, native_call, computing
        self._computing = computing
        self._cache = cache
        self._native_call = native_call
        self.run = run
        self.checks = any(call.indices is not None for call in run.calls)
        self.place = place
        self._name = name
        self._memory_on = memory_on
        self._kept = _Kept()
        with x64(), jax.default_device(place), translate_errors(name):
            placed = {i: _imported(x, memory_on(x.stream)) for i, x in (known or {}).items()}
        self._placed = [array for array, _ in placed.values()]
        self._order = [*placed, *(i for i in range(len(run.inputs)) if i not in placed)]
        self._codes: dict[Any, Any] = {}

    def specialized(self, known: Mapping[int, DeviceArray]) -> Step:
        """The step on the other inputs."""
        return CompiledRun(*self._made_of, known)

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int
    ) -> int:
        stream = next(a for a in (*outputs, *inputs) if a is not None).stream
        memory = self._memory_on(stream)
        with x64(), jax.default_device(self.place), translate_errors(self._name):
            imported = [_imported(x, memory) for x in inputs]
            operands = [array for array, _ in imported]
            kind = tuple((owner, array.shape) for array, owner in imported)
            results = self._compute(operands, kind, None)
            if self.checks and not private:
                jax.block_until_ready(results)
                native.cuda.synchronize(outputs[0].device, None)  # which raises what was found
            for output, result in zip(outputs, results, strict=True):
                if output.size:
                    memory.copy(_placed_on(result, output.dtype, output.device, stream), output)
        event = native.cuda.Event(outputs[0].device, stream)
        self._kept.add(event, (results, operands, inputs))
        return -1

    def direct(self, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> DirectCall:
        """Implement `Direct.direct`."""
        expected = [(slot.name, slot.declared, np.dtype(slot.spec.dtype)) for slot in inputs]
        at = [self.run.outputs.index(slot.name) for slot in outputs]
        names = [slot.name for slot in outputs]
        declared = {slot.name: slot.declared for slot in outputs}
        shapes = tuple(declared[str(name)] for name in self.run.outputs)
        device = self.place.local_hardware_id

        def run(bindings: dict[str, Any]) -> dict[str, Any] | None:
            if not bindings or len(bindings) != len(expected):
                return None
            values = [bindings.get(name) for name, _, _ in expected]
            if all(isinstance(value, jax.Array) for value in values):
                give: Callable[[list[Any]], list[Any] | None] = on_jax
            else:
                give = on_others
            if self.checks:
                native.cuda.raise_bad_indices(device)
            results = give(values)
            if results is None:
                return None
            return {name: results[i] for name, i in zip(names, at, strict=True)}

        def on_jax(arrays: list[Any]) -> list[Any] | None:
            if not are_bound(arrays, inputs, self.place) or not are_representable(outputs):
                return None
            with x64(), jax.default_device(self.place), translate_errors(self._name):
                return self._compute(arrays, "jaxlib", shapes)

        def on_others(values: list[Any]) -> list[Any] | None:
            library = type(values[0]).__module__.partition(".")[0]
            if library not in _LENDABLE:
                return None
            arrays = []
            for value, (name, sizes, dtype) in zip(values, expected, strict=True):
                if type(value).__module__.partition(".")[0] != library:
                    return None
                array: Any = as_operand(value, name)[0]
                if not isinstance(array, DeviceArray) or array.device != device:
                    return None
                if array.shape != sizes or array.dtype != dtype or not array.flags.aligned:
                    return None
                arrays.append(array)
            stream = arrays[0].stream
            memory = self._memory_on(stream)
            with x64(), jax.default_device(self.place), translate_errors(self._name):
                imported = [_imported(x, memory) for x in arrays]
                operands = [x for x, _ in imported]
                kind = tuple((owner, x.shape) for x, owner in imported)
                results = self._compute(operands, kind, shapes)
                take = sys.modules[library].from_dlpack
                lent = [take(_Lent(result, device, self._kept)) for result in results]
            self._kept.add(native.cuda.Event(device, stream), (operands, values))
            return lent

        return run

    def _compute(
        self, operands: Sequence[Any], kind: Hashable, shapes: Sequence[tuple[int, ...]] | None
    ) -> list[Any]:
        """The results for arrays of JAX, of the natural sizes or of these `shapes`.

        A CUDA graph cannot be updated to memory of another allocator, so each `kind` of operands
        has compiled code of its own: the libraries that own them, and their sizes. Should a graph
        fail nevertheless when it first runs, there is none.
        """
        code = self._codes.get((kind, shapes))
        if code is not None:
            found: list[Any] = code(*self._placed, *operands)
            return found

        def make(chosen: dict[str, Any]) -> tuple[Any, list[Any]]:
            function = jax.jit(self._function(shapes), compiler_options=chosen)
            lowered = function.lower(*self._placed, *operands)
            code = compiled(lowered, chosen, self.place, self._cache)
            jax.block_until_ready(code(*self._placed, *operands))
            return code, jax.block_until_ready(code(*self._placed, *operands))  # updates a graph

        self._codes[kind, shapes], first = first_working(self.place.platform, make)
        return list(first)

    def _function(self, shapes: Sequence[tuple[int, ...]] | None) -> Callable[..., list[Any]]:
        """The compiled function: of known inputs, then of the others in order."""
        run = self.run

        def compute(*arguments: Any) -> list[Any]:
            inputs = dict(zip(self._order, arguments, strict=True))
            arrays = []
            for i, name in enumerate(run.inputs):
                natural = run.specs[name].shape
                is_padded = inputs[i].ndim != len(natural)
                arrays.append(inputs[i].reshape(natural) if is_padded else inputs[i])
            results = compute_run(self._computing, run, arrays, self._native_call)
            if shapes is None:
                return results
            return [x.reshape(shape) for x, shape in zip(results, shapes, strict=True)]

        return compute


class _Lent:
    """A result that another library takes: its memory stays JAX's.

    It goes back when the stream that took it has done what it had to do when it let it go.
    """

    def __init__(self, result: Any, device: int, kept: _Kept) -> None:
        self._result = result
        self._device = device
        self._kept = kept

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self._device

    def __dlpack__(self, stream: int | None = None, **options: Any) -> Any:
        stream = stream or _LEGACY_STREAM
        array = _placed_on(self._result, self._result.dtype, self._device, stream)
        return capsule_of(array, _Loan(self._result, self._device, stream, self._kept))


class _Loan:
    """Keeps a result until the end of the work of a stream, when nobody refers to it any more."""

    def __init__(self, result: Any, device: int, stream: int, kept: _Kept) -> None:
        self._parts = result, device, stream, kept

    def __del__(self) -> None:
        result, device, stream, kept = self._parts
        with suppress(Exception):  # at exit
            kept.add(native.cuda.Event(device, stream), result)


def _placed_on(result: Any, kind: Any, device: int, stream: int) -> DeviceArray:
    """A result as the work of a stream may use it from now on."""
    result.__dlpack__(stream=stream or _LEGACY_STREAM)  # which lets the stream wait for it
    strides = packed_strides(result.shape, kind.itemsize)
    return DeviceArray(result.unsafe_buffer_pointer(), kind, result.shape, strides, device, stream,
                       result, no_arrays)  # fmt: skip


def no_arrays(shape: tuple[int, ...], kind: np.dtype[Any]) -> DeviceArray:
    """Nobody makes arrays like a result."""
    raise NotImplementedError


def _imported(array: DeviceArray, memory: Memory) -> tuple[Any, str]:
    """Convert to an array of JAX, with the library that owns it; repeats are there once."""
    sizes = tuple(
        1 if stride == 0 else n for n, stride in zip(array.shape, array.strides, strict=True)
    )
    once = array.laid_out(sizes, array.dtype, array.strides)
    if not once.size:
        return jax.numpy.zeros(sizes, array.dtype), "jaxlib"
    if not once.flags.c_contiguous or once.address % _ALIGNMENT:
        once = memory.packed(once)
    return from_device_array(once), type(once.owner).__module__.partition(".")[0]
