"""Runs of computed calls on an NVIDIA GPU, compiled by XLA through JAX.

Arrays are passed by DLPack, without a copy if they are packed. A run waits for the work that makes
its inputs, and for its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax

from anydml.core.errors import DeviceError
from anydml.core.program import Program
from anydml.devices.backends._partition import Run, partition
from anydml.devices.backends._sequence import Step
from anydml.devices.backends.xla import calculates, compute_run, joins, options, translate_errors
from anydml.engines._jax import x64
from anydml.libraries import DeviceArray
from anydml.libraries._jax import as_operand, from_device_array

_ALIGNMENT = 16
"""Bytes; of the address of an argument of what XLA compiles."""


class Memory(Protocol):
    """Memory on the GPU, used on one stream."""

    def packed(self, array: DeviceArray) -> DeviceArray:
        """A packed copy of an array."""

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        """Copy elements between arrays of one shape and type."""

    def wait(self) -> None:
        """Wait for the stream."""


def compiled_runs(
    program: Program, device: int, memory_on: Callable[[int], Memory]
) -> tuple[Program, Mapping[str, Step]]:
    """The program with one call for each run of computed calls, and these by their kernels.

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
    name = program.name
    program, runs = partition(program, joins, keeps=calculates)
    steps = {kernel: _Step(name, run, places[0], memory_on) for kernel, run in runs.items()}
    return program, steps


def _no_gpu(program: Program, device: int, reason: str) -> DeviceError:
    return DeviceError(
        f"{program.name}: Device('cuda:{device}') calculates with JAX, which cannot use this GPU: "
        f"{reason}; pip install 'jax[cuda13]'"
    )


class _Step:
    """`Step` of a run, some of whose inputs may be known."""

    def __init__(
        self,
        name: str,
        run: Run,
        place: Any,
        memory_on: Callable[[int], Memory],
        known: Mapping[int, DeviceArray] | None = None,
    ) -> None:
        self._made_of = name, run, place, memory_on
        self._name = name
        self._place = place
        self._memory_on = memory_on
        with x64(), jax.default_device(place), translate_errors(name):
            placed = {i: _exported(x, memory_on(0)) for i, x in (known or {}).items()}
        self._placed = [*placed.values()]
        order = [*placed, *(i for i in range(len(run.inputs)) if i not in placed)]

        def call(*arguments: Any) -> list[Any]:
            inputs = dict(zip(order, arguments, strict=True))
            return compute_run(run, [inputs[i] for i in range(len(run.inputs))])

        self._call = jax.jit(call, compiler_options=options(place.platform))

    def specialized(self, known: Mapping[int, DeviceArray]) -> Step:
        """The step on the other inputs."""
        return _Step(*self._made_of, known)

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int
    ) -> int:
        first: DeviceArray = next(a for a in (*outputs, *inputs) if a is not None)
        memory = self._memory_on(first.stream)
        with x64(), jax.default_device(self._place), translate_errors(self._name):
            operands = (_exported(x, memory) for x in inputs)
            results = jax.block_until_ready(self._call(*self._placed, *operands))
            for output, result in zip(outputs, results, strict=True):
                if output.size:
                    source: Any = as_operand(result, "result")[0]
                    memory.copy(source, output)
            memory.wait()  # the results' memory is JAX's
        return -1


def _exported(array: DeviceArray, memory: Memory) -> Any:
    """As an array of JAX; repeated elements are there once."""
    sizes = tuple(
        1 if stride == 0 else n for n, stride in zip(array.shape, array.strides, strict=True)
    )
    once = array.laid_out(sizes, array.dtype, array.strides)
    if not once.size:
        return jax.numpy.zeros(sizes, array.dtype)
    is_usable = once.flags.c_contiguous and once.address % _ALIGNMENT == 0
    return from_device_array(once if is_usable else memory.packed(once))
