"""Programs on the native kernels of this processor.

A program comes from a descriptor that has been checked: nothing is checked here but the bindings
of the quick way, natively.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from anydml._native import describe_level, native
from anydml.core.dtypes import DataType
from anydml.core.errors import MissingKernelError
from anydml.core.program import KernelCall, Program, Slot
from anydml.devices.backends._base import Array, Executable, decline, host_copy, zeros
from anydml.devices.backends._blocks import blocks_step, fuse
from anydml.devices.backends._computed import WORKING, computed_step
from anydml.devices.backends._memory import working_nbytes
from anydml.devices.backends._sequence import HostExecutable, HostMemory, Step
from anydml.devices.threads import get_num_threads
from anydml.ops._registry import is_computed


class CpuBackend:
    """Pooled memory and the native kernels."""

    device: int | None = None

    def allocate(self, slot: Slot, cleared: bool, call: str, like: Any = None) -> Array:
        """A new array, on pooled memory when it is large and need not be cleared."""
        if cleared:
            return zeros(slot, call)
        return allocate(slot.declared, np.dtype(slot.spec.dtype), call, slot.name)

    copy = staticmethod(host_copy)

    def compile(self, program: Program) -> Executable:
        """Look up the kernels; a program of one call is dispatched natively.

        Raises
        ------
        MissingKernelError
            No kernel for a call.
        """
        known = native.kernels()
        refuse_missing(program, "CPU")
        # A call from a node of a graph, which has a source, is bound by the graph's names.
        is_native = len(program.calls) == 1 and all(
            call.kernel in known and not call.source for call in program.calls
        )
        dispatch = _native_dispatch(program) if is_native else decline
        widening = WORKING if any(kind in WORKING for kind in program.types()) else {}
        program, runs = fuse(program)

        def step_of(call: KernelCall) -> Step:
            if call.kernel in runs:
                return blocks_step(runs[call.kernel], widening)
            if is_computed(call.kernel):
                return computed_step(call, widening)
            return kernel_step(call)

        memory = HostMemory(partial(allocate_block, program.name))
        return HostExecutable(program, step_of, memory, dispatch)

    def working_nbytes(self, program: Program) -> int:
        """Implement `Backend.working_nbytes`, with elementwise calls in blocks."""
        return working_nbytes(*fuse(program), get_num_threads())

    def describe(self) -> tuple[str, str]:
        """The instruction-set level of the kernels, and the most threads of a call."""
        return describe_level(), str(get_num_threads())


def refuse_missing(program: Program, backend: str) -> None:
    """Refuse calls that are neither computed nor have a native kernel.

    Raises
    ------
    MissingKernelError
        There is one; the message names it and the backend.
    """
    for call in program.calls:
        if call.kernel not in native.kernels() and not is_computed(call.kernel):
            raise MissingKernelError(call.source or program.name, backend)


def kernel_step(call: KernelCall) -> Step:
    """A call of a native kernel."""
    attributes = dict(call.attributes)

    def run(inputs: Sequence[Any], outputs: Sequence[Any], private: bool, threads: int) -> int:
        return _KERNELS.execute(call.kernel, inputs, outputs, attributes, private, threads)

    return run


def allocate_block(call: str, nbytes: int) -> Array:
    """Memory for the intermediate results of a program that messages name `call`."""
    return allocate((nbytes,), np.dtype(np.uint8), call, "intermediate results")


class CpuKernels:
    """The native kernels."""

    def execute(self, kernel: str, inputs: Sequence[Array], outputs: Sequence[Array],
                attributes: Mapping[str, Any], private: bool, threads: int) -> int:  # fmt: skip
        """Run a kernel on natural arrays; the first bad index, or -1."""
        return int(native.run(kernel, inputs, outputs, dict(attributes), private, threads))

    def run_measured(self, kernel: str, x: Array, attributes: Mapping[str, Any],
                     make: Callable[[int], Array], threads: int) -> Array:  # fmt: skip
        """Run a kernel whose output's size the data decide."""
        result: Array = native.run_measured(kernel, x, dict(attributes), make, threads)
        return result


_KERNELS: Final = CpuKernels()


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any], call: str, purpose: str) -> Array:
    """A new array of undefined contents, on pooled memory when it is large.

    Raises
    ------
    AllocationError
        It cannot be allocated: `call` needs it for `purpose`.
    """
    array: Array = native.empty(shape, dtype, call, purpose)
    return array


def know_type(user_type: Any, dtype: np.dtype[Any]) -> None:
    """Register a user's type name for fast native calls."""
    native.know_type(user_type, dtype)


def _native_dispatch(program: Program) -> Callable[[dict[str, Any], int], int | None]:
    """The native dispatch of plain NumPy bindings to a program of one call."""
    (call,) = program.calls
    fields = []
    for slots, output in ((program.inputs, False), (program.outputs, True)):
        for slot in slots:
            name, bracket, position = slot.name.removesuffix("]").partition("[")
            number = int(DataType.from_numpy(slot.spec.dtype))
            list_position = int(position) if bracket else -1
            fields.append((name, list_position, output, number, slot.declared, slot.padding))
    compiled_call = native.CompiledCall(program.name, call.kernel, fields, dict(call.attributes),
                           bool(call.in_place))  # fmt: skip
    dispatch: Callable[[dict[str, Any], int], int | None] = compiled_call.dispatch
    return dispatch
