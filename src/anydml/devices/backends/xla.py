"""Programs compiled by XLA, through JAX.

A program runs as maximal runs of computed calls, each one jitted function, which XLA compiles when
it first runs. Native calls run between them on the CPU's kernels. All arrays are in host memory:
on the CPU, XLA reads those that are aligned where they are; a GPU gets copies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, Final, NamedTuple

import jax
import numpy as np

from anydml.core.errors import AllocationError, DeviceError
from anydml.core.program import KernelCall, Program
from anydml.devices.backends._base import Array, Executable
from anydml.devices.backends._fixed import (
    Fixed,
    MemoryWithFixed,
    fixed_copy,
    plain_step,
    unrepeated,
)
from anydml.devices.backends._memory import working_nbytes
from anydml.devices.backends._partition import Run, partition
from anydml.devices.backends._sequence import HostExecutable, Step, host_constants
from anydml.devices.backends._traced import compute_run
from anydml.devices.backends.cpu import CpuBackend, block, kernel_step, refuse_missing
from anydml.engines._jax import JaxEngine, x64
from anydml.ops._registry import computation, is_computed

ENGINE: Final = JaxEngine()

MOST_CONSTANT_BYTES: Final = 64 << 20
"""Of the owned tensors of a run that are compiled as constants on a CPU; others are arguments."""

_OPTIONS: Final = {
    "xla_allow_excess_precision": False,  # FLOAT16 is rounded between two calls
    "xla_cpu_enable_fast_min_max": False,  # NaN is kept
}
_CPU_OPTIONS: Final = {
    # Which makes x * (1 / y) of x / y, x of x + 0 and (a + b) * c of a * c + b * c.
    "xla_disable_hlo_passes": "algsimp",
}


def options(platform: str) -> dict[str, Any]:
    """How XLA compiles for a platform."""
    return {**_OPTIONS, **_CPU_OPTIONS} if platform == "cpu" else {**_OPTIONS}


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
    copy = staticmethod(fixed_copy)

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

        def step_of(call: KernelCall) -> Step:
            if call.kernel in runs:
                return _Step(name, runs[call.kernel], place, platform)
            return plain_step(kernel_step(call))

        constants = {key: array.view(Fixed) for key, array in host_constants(program).items()}
        return HostExecutable(
            program, step_of, MemoryWithFixed(partial(block, name)), constants=constants
        )

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


class _Function(NamedTuple):
    """A run, compiled with some of its inputs fixed.

    Attributes
    ----------
    fixed : dict of int to array
        These inputs by their positions. Holding them keeps their memory from being used anew.
    identity : object
        Differs where others are fixed.
    call : callable
        Takes the inputs that are not constants.
    placed : dict of int to jax.Array
        What is fixed and not a constant.
    """

    fixed: Mapping[int, Array]
    identity: object
    call: Any
    placed: Mapping[int, Any]


class _Step:
    """`Step` of a run."""

    def __init__(self, name: str, run: Run, place: Any, platform: str) -> None:
        self._name = name
        self._run = run
        self._place = place
        self._compiler_options = options(platform)
        # A GPU divides by a constant by multiplying with its rounded reciprocal.
        self._may_have_constants = platform == "cpu"
        self._function: _Function | None = None

    def __call__(
        self, inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int
    ) -> int:
        place = jax.default_device(self._place) if self._place else nullcontext()
        with x64(), place, translate_errors(self._name):
            results = self._results(inputs)
        for output, result in zip(outputs, results, strict=True):
            output[...] = np.asarray(result)
        return -1

    def _results(self, inputs: Sequence[Any]) -> Any:
        fixed = {i: x for i, x in enumerate(inputs) if isinstance(x, Fixed)}
        identity = [(x.__array_interface__["data"], x.strides) for x in fixed.values()]
        function = self._function
        if function is None or function.identity != identity:
            function = self._function = self._specialized(fixed, identity)
        operands = [
            function.placed[i] if i in function.placed else unrepeated(x)
            for i, x in enumerate(inputs)
            if i in function.placed or i not in fixed
        ]
        # An output may be an input's memory, so that all must have been read.
        return jax.block_until_ready(function.call(*operands))

    def _specialized(self, fixed: Mapping[int, Any], identity: object) -> _Function:
        arrays = {i: unrepeated(x.view(np.ndarray)) for i, x in fixed.items()}
        nbytes = sum(x.nbytes for x in arrays.values())
        constant = self._may_have_constants and nbytes <= MOST_CONSTANT_BYTES
        constants = arrays if constant else {}
        placed = {} if constant else {i: jax.device_put(x) for i, x in arrays.items()}

        def call(*arguments: Any) -> list[Any]:
            rest = iter(arguments)
            return compute_run(
                ENGINE, self._run,
                [constants[i] if i in constants else next(rest)
                 for i in range(len(self._run.inputs))],
            )  # fmt: skip

        return _Function(
            fixed, identity, jax.jit(call, compiler_options=self._compiler_options), placed
        )
