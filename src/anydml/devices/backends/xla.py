"""Programs compiled by XLA, through JAX.

A program runs as maximal runs of computed calls, each one jitted function, which XLA compiles when
it first runs. Native calls run between them on the CPU's kernels. All arrays are in host memory:
on the CPU, XLA reads those that are aligned where they are; a GPU gets copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final

import jax
import numpy as np
from jax import lax

from anydml.core.errors import AllocationError, DeviceError
from anydml.core.program import KernelCall, Program, Slot
from anydml.devices.backends._base import Executable, unrepeated, unrepeated_copy
from anydml.devices.backends._memory import working_nbytes
from anydml.devices.backends._partition import Run, partition
from anydml.devices.backends._sequence import DirectCall, HostExecutable, HostMemory, Step
from anydml.devices.backends._traced import compute_run
from anydml.devices.backends.cpu import CpuBackend, allocate_block, kernel_step, refuse_missing
from anydml.engines._jax import JaxEngine, x64
from anydml.ops._registry import computation, is_computed

MOST_CONSTANT_BYTES: Final = 64 << 20
"""Bytes of the owned tensors that a CPU's run compiles as constants; more are arguments."""

_GPUS: Final = "gpu", "cuda"

_OPTIONS: Final = {
    "xla_allow_excess_precision": False,  # FLOAT16 is rounded between two calls
    "xla_cpu_enable_fast_min_max": False,  # NaN is kept
}
_GPU_OPTIONS: Final = {
    # Choosing among kernels for float32 takes Triton 20 s for a transformer, and gives equal ones.
    "xla_gpu_enable_triton_gemm": False,
}
_GRAPH_OPTIONS: Final = {
    # All of a program is one CUDA graph, convolutions included.
    "xla_gpu_enable_command_buffer": (
        "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,DYNAMIC_SLICE_FUSION,CONVOLUTION"
    ),
    "xla_gpu_graph_min_graph_size": 1,
}
_CPU_OPTIONS: Final = {
    # Which makes x * (1 / y) of x / y, x of x + 0 and (a + b) * c of a * c + b * c.
    "xla_disable_hlo_passes": "algsimp",
}


def options(platform: str) -> list[dict[str, Any]]:
    """How XLA compiles for a platform: the first of these that works for a program."""
    if platform == "cpu":
        return [{**_OPTIONS, **_CPU_OPTIONS}]
    if platform not in _GPUS:
        return [{**_OPTIONS}]
    own = {**_OPTIONS, **_GPU_OPTIONS}
    return [{**own, **_GRAPH_OPTIONS}, own, {**_OPTIONS}]


def engine(platform: str, program: Program) -> JaxEngine:
    """Return the engine for a program on a platform."""
    is_reduced = program.allows_half
    return JaxEngine(
        platform in _GPUS, lax.Precision.DEFAULT if is_reduced else lax.Precision.HIGHEST
    )


def first_working(platform: str, make: Callable[[dict[str, Any]], Any]) -> Any:
    """Call `make` with the first of the platform's options that XLA does not fail with."""
    *others, last = options(platform)
    for one in others:
        with suppress(jax.errors.JaxRuntimeError):
            return make(one)
    return make(last)


def joins(call: KernelCall, run: Run) -> bool:
    """Whether a call is part of compiled code."""
    return computation(call.kernel) is not None


def calculates(run: Run) -> bool:
    """Whether a run does more than move elements, which native kernels do without compiling."""
    return any(is_computed(call.kernel) for call in run.calls)


class XlaBackend:
    """XLA on a device of JAX.

    Parameters
    ----------
    platform : str, optional
        As ``"cpu"`` or ``"cuda"``; that of JAX's default device, if left out.

    Raises
    ------
    DeviceError
        JAX has no such platform here.
    """

    device: int | None = None

    def __init__(self, platform: str | None = None) -> None:
        self._platform = platform
        try:
            self._first = jax.devices(platform)[0]
        except RuntimeError as error:
            name = f"xla:{platform}" if platform else "xla"
            raise DeviceError(
                f"kind: expected a platform that JAX has, got {name}: {error}"
            ) from None

    def __reduce__(self) -> tuple[type[XlaBackend], tuple[str | None]]:
        return type(self), (self._platform,)

    allocate = CpuBackend.allocate
    working_nbytes = staticmethod(partial(working_nbytes, compiled=True))
    copy = staticmethod(unrepeated_copy)

    def compile(self, program: Program) -> Executable:
        """Find the runs of computed calls; each is compiled when it first runs.

        Raises
        ------
        MissingKernelError
            A call is not computed, and the CPU has no kernel for it.
        """
        refuse_missing(program, "XLA")
        name = program.name
        program, runs = partition(program, joins, keeps=calculates)
        place = self._first if self._platform else None
        platform = self._first.platform
        computing = engine(platform, program)

        def step_of(call: KernelCall) -> Step:
            if call.kernel in runs:
                return _Step(name, runs[call.kernel], place, platform, computing)
            return kernel_step(call)

        return HostExecutable(program, step_of, HostMemory(partial(allocate_block, name)))

    def describe(self) -> tuple[str, str]:
        """The device, and JAX's version; XLA chooses how many threads there are."""
        return f"XLA on {self._first.device_kind}, JAX {jax.__version__}", "set by XLA"


@contextmanager
def translate_errors(name: str) -> Iterator[None]:
    """Raise this library's errors for those of XLA, which messages say of a program."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        if "RESOURCE_EXHAUSTED" in str(error):
            raise AllocationError(name, None, "what XLA computes") from error
        raise DeviceError(f"{name}: XLA failed: {error}") from error


def are_bound(arrays: Sequence[Any], slots: Sequence[Slot], place: Any) -> bool:
    """Whether arrays are those of JAX that slots describe, on a device."""
    for array, slot in zip(arrays, slots, strict=True):
        if not isinstance(array, jax.Array) or isinstance(array, jax.core.Tracer):
            return False
        if array.is_deleted() or array.devices() != {place}:
            return False
        if array.shape != slot.declared or array.dtype != slot.spec.dtype:
            return False
    return True


def are_representable(slots: Sequence[Slot]) -> bool:
    """Whether JAX, as it is configured, has the types of slots."""
    kinds = [np.dtype(slot.spec.dtype) for slot in slots]
    return bool(jax.config.jax_enable_x64) or all(kind.itemsize < 8 for kind in kinds)


class _Step:
    """`Step` of a run, some of whose inputs may be known.

    On a CPU these are constants of the compiled code, if they are not too large. A GPU would divide
    by a constant by multiplying with its rounded reciprocal.
    """

    def __init__(
        self,
        name: str,
        run: Run,
        place: Any,
        platform: str,
        computing: JaxEngine,
        known: Mapping[int, Any] | None = None,
    ) -> None:
        self._made_of = name, run, place, platform, computing
        self._name = name
        self._place = jax.default_device(place) if place else nullcontext()
        self._here = place or jax.devices()[0]
        self._outputs = run.outputs
        arrays = {i: unrepeated(x) for i, x in (known or {}).items()}
        nbytes = sum(x.nbytes for x in arrays.values())
        is_constant = platform == "cpu" and nbytes <= MOST_CONSTANT_BYTES
        constants = arrays if is_constant else {}
        with x64(), self._place, translate_errors(name):
            placed = {} if is_constant else {i: jax.device_put(x) for i, x in arrays.items()}
        self._placed = [*placed.values()]
        order = [*placed, *(i for i in range(len(run.inputs)) if i not in arrays)]

        def call(*arguments: Any) -> list[Any]:
            inputs = {**constants, **dict(zip(order, arguments, strict=True))}
            return compute_run(computing, run, [inputs[i] for i in range(len(run.inputs))])

        self._function = call
        self._platform = platform
        self._call: Any = None

    def specialized(self, known: Mapping[int, Any]) -> Step:
        """The step on the other inputs."""
        return _Step(*self._made_of, known)

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int
    ) -> int:
        with x64(), self._place, translate_errors(self._name):
            # An output may be an input's memory, so that all must have been read.
            results = self._results(*self._placed, *map(unrepeated, inputs))
            jax.block_until_ready(results)
        for output, result in zip(outputs, results, strict=True):
            output[...] = np.asarray(result)
        return -1

    def direct(self, inputs: Sequence[Slot], outputs: Sequence[Slot]) -> DirectCall:
        """Implement `Direct.direct`: arrays of JAX stay where they are; nothing waits for them."""
        at = [self._outputs.index(slot.name) for slot in outputs]
        here = self._here

        def run(bindings: dict[str, Any]) -> dict[str, Any] | None:
            arrays: list[Any] = [bindings.get(slot.name) for slot in inputs]
            if not arrays or len(bindings) != len(arrays):
                return None
            if not are_bound(arrays, inputs, here) or not are_representable(outputs):
                return None
            with x64(), jax.default_device(here), translate_errors(self._name):
                operands = [
                    x.reshape(slot.spec.shape) if slot.padding else x
                    for x, slot in zip(arrays, inputs, strict=True)
                ]
                results = self._results(*self._placed, *operands)
                return {
                    slot.name: results[i].reshape(slot.declared) if slot.padding else results[i]
                    for i, slot in zip(at, outputs, strict=True)
                }

        return run

    def _results(self, *operands: Any) -> list[Any]:
        if self._call is not None:
            results: list[Any] = self._call(*operands)
            return results

        def run(chosen: dict[str, Any]) -> tuple[Any, list[Any]]:
            call = jax.jit(self._function, compiler_options=chosen)
            return call, jax.block_until_ready(call(*operands))

        self._call, results = first_working(self._platform, run)
        return results
