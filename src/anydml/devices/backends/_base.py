"""The interface of backends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from anydml.core.errors import AllocationError, IndexOutOfRangeError
from anydml.core.program import Program, Slot
from anydml.libraries._device import DeviceArray

Array = np.ndarray[Any, np.dtype[Any]]


class Executable(Protocol):
    """A compiled program; may run on several threads at once."""

    @property
    def dispatch(self) -> Callable[[dict[str, Any], int], int | None]:
        """Runs on plain bindings of the declared sizes, by the page's names, and some threads.

        It gives None when a binding is anything unusual, and nothing has been done; else the first
        bad index, or -1. Outputs are the caller's: nothing is written when an index is bad. Not a
        method, so that a native one can stand here: a call between costs as much as a small kernel.
        """

    def run(self, arrays: Mapping[str, Array], private: bool, threads: int) -> None:
        """Run on checked arrays of the declared sizes, by slot.

        `private`: nobody sees the outputs when an index is bad, so they may be written before all
        indices have been checked.

        Raises
        ------
        IndexOutOfRangeError
            An index points outside its axis; outputs that are not private are as they were.
        """

    @property
    def direct(self) -> Callable[[dict[str, Any]], dict[str, Any] | None]:
        """Gives results for inputs that its own library made, by slot; None for any others.

        Inputs are of the declared sizes and types, and results are new arrays of that library.
        """

    def owning(self, arrays: Mapping[str, Array]) -> Executable:
        """The program with inputs that are not bound, which `Backend.copy` has made, by slot."""


class Kernels(Protocol):
    """Kernels by name, on natural arrays that have been checked."""

    def execute(self, kernel: str, inputs: Sequence[Array], outputs: Sequence[Array],
                attributes: Mapping[str, Any], private: bool, threads: int) -> int:  # fmt: skip
        """Run a kernel; the first bad index, or -1."""

    def run_measured(self, kernel: str, x: Array, attributes: Mapping[str, Any],
                     make: Callable[[int], Array], threads: int) -> Array:  # fmt: skip
        """Run a kernel whose output's size the data decide; `make` gives an array for a size."""


class Backend(Protocol):
    """Allocates arrays and compiles programs."""

    device: int | None
    """The number of the GPU whose arrays may be bound; None for host memory only."""

    def allocate(self, slot: Slot, cleared: bool, call: str, like: Any = None) -> Array:
        """A new array of a slot's declared sizes: of undefined contents, or of zeros.

        It is of the kind of `like`, the first operand that is bound, where that is on a device.

        Raises
        ------
        AllocationError
            It cannot be allocated; the message begins with `call`.
        """

    def copy(self, array: Any, call: str, purpose: str) -> Any:
        """A copy of a bound array, for an operator that owns it; `call` needs it for `purpose`."""

    def compile(self, program: Program) -> Executable:
        """Make a checked program ready to run."""

    def working_nbytes(self, program: Program) -> int:
        """The most bytes that a run takes besides what is bound, without allocating anything."""

    def describe(self) -> tuple[str, str]:
        """Name what it computes with (an instruction set, say), and the number of threads."""


def decline(bindings: dict[str, Any], threads: int) -> int | None:
    """The dispatch of a program that has no quick way."""
    return None


def zeros(slot: Slot, call: str) -> Array:
    """A new array of zeros, of a slot's declared sizes."""
    try:
        return np.zeros(slot.declared, slot.spec.dtype)
    except MemoryError:
        size = prod(slot.declared) * np.dtype(slot.spec.dtype).itemsize
        raise AllocationError(call, size, slot.name) from None


def host_copy(array: Array, call: str, purpose: str) -> Array:
    """A copy in host memory.

    Raises
    ------
    AllocationError
        It cannot be allocated.
    """
    try:
        return array.copy()
    except MemoryError:
        raise AllocationError(call, array.nbytes, purpose) from None


def unrepeated(x: Array) -> Array:
    """The array with the size 1 where a stride of 0 repeats elements."""
    if 0 not in x.strides:
        return x
    return x[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides)]


def unrepeated_copy(array: Array, call: str, purpose: str) -> Array:
    """A copy of a bound array; elements that strides of 0 repeat are there once."""
    return np.broadcast_to(host_copy(unrepeated(array), call, purpose), array.shape)


def out_of_range(where: str, shape: tuple[int, ...], signed: bool, flat: int, value: int,
                 axis: int, size: int, note: str = "",
                 origin: Sequence[int] = ()) -> IndexOutOfRangeError:  # fmt: skip
    """The error for a value at a flat position of an index array of a shape.

    `origin` is where the array lies in the caller's, of which it is a block.
    """
    position = tuple(map(int, np.unravel_index(flat, shape)))
    position = tuple(map(sum, zip(position, origin, strict=True))) if origin else position
    minimum = -size if signed else 0
    accepted = f"{minimum}..{size - 1}" if size else "nothing"
    at = f"[{', '.join(map(str, position))}]" if position else ""
    got = f"a value that was changed during the call, to {value}"
    return IndexOutOfRangeError(
        f"{where}{at}: expected {accepted} (axis {axis} of size {size}), got "
        f"{got if minimum <= value < size else value}{note}",
        position,
        value,
        size,
    )


def natural(slot: Slot, array: Any) -> Any:
    """An array of the declared sizes as the kernel sees it, without the padding."""
    if isinstance(array, DeviceArray):
        inner = slice(slot.padding, None)
        return array.laid_out(array.shape[inner], array.dtype, array.strides[inner])
    at: Any = (0,) * slot.padding
    view: Array = array[(*at, ...)]
    return view
