"""Programs on the native kernels of this processor.

A program comes from a descriptor that has been checked: nothing is checked here but the bindings
of the quick way, natively.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from anydml._native import native
from anydml.backends._base import Array, Measured, host_copy, natural, out_of_range, zeros
from anydml.dtypes import DataType
from anydml.errors import IndexOutOfRangeError
from anydml.program import KernelCall, Program, Slot
from anydml.threads import get_num_threads


class CpuBackend:
    """Pooled memory and the native kernels."""

    device: int | None = None

    def allocate(self, slot: Slot, cleared: bool, call: str, like: Any = None) -> Array:
        """A new array, on pooled memory when it is large and need not be cleared."""
        if cleared:
            return zeros(slot, call)
        return allocate(slot.declared, np.dtype(slot.spec.dtype), call, slot.name)

    copy = staticmethod(host_copy)

    def compile(self, program: Program) -> CpuExecutable:
        """Look up the kernel and prepare the native dispatch."""
        return CpuExecutable(program)

    def describe(self) -> tuple[str, str]:
        """The instruction-set level of the kernels, and the most threads of a call."""
        return str(native.level), str(get_num_threads())


class CpuExecutable:
    """A program that runs on the native kernels."""

    def __init__(self, program: Program) -> None:
        (call,) = program.calls
        slots: dict[str | None, Any] = {None: None}  # a tensor that is left out
        slots |= {slot.name: slot for slot in (*program.inputs, *program.outputs)}
        self._slots = [[slots[name] for name in names] for names in (call.inputs, call.outputs)]
        self._kernel = call.kernel
        self._attributes = dict(call.attributes)
        self.dispatch: Callable[[dict[str, Any], int], int | None] = _binder(program, call)

    def run(self, arrays: Mapping[str, Array], private: bool, threads: int) -> int:
        """Run on arrays of the declared sizes by slot; the first bad index, or -1.

        `private`: nobody sees the outputs when an index is bad, so they may be written before all
        indices have been checked.
        """
        inputs, outputs = (
            [slot and natural(slot, arrays[slot.name]) for slot in slots] for slots in self._slots
        )
        return _KERNELS.execute(self._kernel, inputs, outputs, self._attributes, private, threads)


class CpuKernels:
    """The native kernels."""

    def execute(self, kernel: str, inputs: Sequence[Array], outputs: Sequence[Array],
                given: Mapping[str, Any], private: bool, threads: int) -> int:  # fmt: skip
        """Run a kernel on natural arrays; the first bad index, or -1."""
        return int(native.run(kernel, inputs, outputs, dict(given), private, threads))

    def measure(self, kernel: str, given: Array, attributes: Mapping[str, Any],
                threads: int) -> Measured:  # fmt: skip
        """Run the first phase."""
        measured: Measured = native.measure(kernel, given, dict(attributes), threads)
        return measured

    def fill(self, measured: Any, output: Array, threads: int) -> None:
        """Run the second phase."""
        native.fill(measured, output, threads)


_KERNELS: Final = CpuKernels()


def allocate(shape: tuple[int, ...], dtype: np.dtype[Any], call: str, purpose: str) -> Array:
    """A new array of undefined contents, on pooled memory when it is large.

    Raises
    ------
    AllocationError
        There is no memory for it: `call` needs it for `purpose`.
    """
    array: Array = native.empty(shape, dtype, call, purpose)
    return array


def quick(kernel: str) -> Callable[..., Any]:
    """The quick call of a kernel, which takes an array function's own arguments.

    It gives None where anything about them is unusual or wrong, and has done nothing then. First
    comes the class of several results, or None. How many threads it uses is what `anydml.threads`
    says.
    """
    call: Callable[..., Any] = native.quick(kernel)
    return call


def know_type(given: Any, dtype: np.dtype[Any]) -> None:
    """Tell quick calls what a user's name of a type stands for, now that it is understood."""
    native.know_type(given, dtype)


def _binder(program: Program, call: KernelCall) -> Callable[[dict[str, Any], int], int | None]:
    """The native dispatch of plain NumPy bindings."""
    fields = []
    for slots, output in ((program.inputs, False), (program.outputs, True)):
        for slot in slots:
            name, bracket, position = slot.name.removesuffix("]").partition("[")
            number = int(DataType.from_numpy(slot.spec.dtype))
            listed = int(position) if bracket else -1
            fields.append((name, listed, output, number, slot.declared, slot.padding))
    binder = native.Binder(program.name, call.kernel, fields, dict(call.attributes),
                           bool(call.in_place))  # fmt: skip
    dispatch: Callable[[dict[str, Any], int], int | None] = binder.dispatch
    return dispatch


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
