"""Programs on the native kernels of this processor.

A program comes from a descriptor that has been checked: nothing is checked here but the bindings
of the quick way, natively.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from anydml._native import native
from anydml.backends._base import Array, decline, natural, zeros
from anydml.dtypes import DataType
from anydml.errors import IndexOutOfRangeError
from anydml.ops.slice1 import first_places
from anydml.program import KernelCall, Program, Slot
from anydml.threads import get_num_threads

REDUCTIONS = {None: 0, "none": 0, "add": 1, "mul": 2, "min": 3, "max": 4}

Attributes = Mapping[str, Any]
Kernel = Callable[[Sequence[Array], Sequence[Array], Attributes, bool, int], int]
"""Inputs, outputs, attributes, whether the outputs are private, threads → the first bad index,
or -1."""


class CpuBackend:
    """Pooled memory and the native kernels."""

    def allocate(self, slot: Slot, cleared: bool, call: str) -> Array:
        """A new array, on pooled memory when it is large and need not be cleared."""
        if cleared:
            return zeros(slot, call)
        array: Array = native.empty(slot.declared, slot.spec.dtype, call, slot.name)
        return array

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
        slots: dict[str, Any] = {slot.name: slot for slot in (*program.inputs, *program.outputs)}
        self._inputs = [name and slots[name] for name in call.inputs]
        self._outputs = [name and slots[name] for name in call.outputs]
        self._kernel = call.kernel
        self._attributes = dict(call.attributes)
        binder = _binder(program, call)
        self.dispatch: Callable[[dict[str, Any], int], int | None] = (
            decline if binder is None else binder.dispatch
        )

    def run(self, arrays: Mapping[str, Array], private: bool, threads: int) -> int:
        """Run on arrays of the declared sizes by slot; the first bad index, or -1.

        `private`: nobody sees the outputs when an index is bad, so they may be written before all
        indices have been checked.
        """
        inputs: list[Any] = [slot and natural(slot, arrays[slot.name]) for slot in self._inputs]
        outputs: list[Any] = [slot and natural(slot, arrays[slot.name]) for slot in self._outputs]
        return execute(self._kernel, inputs, outputs, self._attributes, private, threads)


def execute(kernel: str, inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes,
            private: bool, threads: int) -> int:  # fmt: skip
    """Run a kernel on natural arrays; the first bad index, or -1."""
    return _KERNELS[kernel](inputs, outputs, given, private, threads)


def _top_k(inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes, private: bool,
           threads: int) -> int:  # fmt: skip
    native.top_k(*inputs, *outputs, given["axis"], given["k"], given["largest"], threads)
    return -1


def _nonzero(inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes, private: bool,
             threads: int) -> int:  # fmt: skip
    count, rows = outputs
    found = native.nonzero_scan(inputs[0], given["columns"], threads)
    count[...] = found.count
    native.nonzero_write(found, rows, threads)
    return -1


def _split(inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes, private: bool,
           threads: int) -> int:  # fmt: skip
    native.split(inputs[0], outputs, given["axis"], threads)
    return -1


def _join(inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes, private: bool,
          threads: int) -> int:  # fmt: skip
    native.join(inputs, outputs[0], given["axis"], threads)
    return -1


def _slice_window(inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes,
                  private: bool, threads: int) -> int:  # fmt: skip
    # A window with strides is a view; what is left is a copy between two layouts.
    # A window with strides is a view; what is left is a copy between two layouts.
    steps = zip(first_places(given), given["strides"], strict=True)
    reach: Any = tuple(slice(first, None, stride) for first, stride in steps)
    wanted: Any = tuple(slice(size) for size in outputs[0].shape)
    if outputs[0].size:
        native.copy(outputs[0], inputs[0][reach][wanted], threads)
    return -1


def _cast(inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes, private: bool,
          threads: int) -> int:  # fmt: skip
    native.cast(inputs[0], outputs[0], threads)
    return -1


def _indexed(kernel: Callable[..., int], number: str, option: str) -> Kernel:
    """A kernel that reads indices, with the names of its number (if any) and of its option."""

    def run(inputs: Sequence[Array], outputs: Sequence[Array], given: Attributes, private: bool,
            threads: int) -> int:  # fmt: skip
        numbers = _numbers(given, (number, option))
        return int(kernel(*inputs, *outputs, *numbers, private, threads))

    return run


def _numbers(given: Attributes, names: Sequence[str]) -> list[Any]:
    """Attributes as the native calls take them."""
    values = [given.get(name) for name in names if name]
    return [REDUCTIONS[v] if isinstance(v, str | None) else v for v in values]


_KERNELS: Mapping[str, Kernel] = {
    "top_k": _top_k,
    "nonzero_coordinates": _nonzero,
    "split": _split,
    "join": _join,
    "slice_window": _slice_window,
    "cast": _cast,
    "scatter_elements": _indexed(native.scatter, "axis", "reduction"),
    "scatter_nd": _indexed(native.scatter_nd, "", "reduction"),
    "gather": _indexed(native.gather, "axis", "clamp"),
    "gather_elements": _indexed(native.gather_elements, "axis", "clamp"),
    "gather_nd": _indexed(native.gather_nd, "batch_dims", "clamp"),
}


# What the native dispatch takes: kernels that it knows, and tensors that it has room for on the
# stack.
_DISPATCHED = frozenset(_KERNELS) - {"slice_window", "cast"}
_MOST_TENSORS = 8


def _binder(program: Program, call: KernelCall) -> Any:
    """The native object that dispatches plain NumPy bindings; None for more than eight tensors."""
    if call.kernel not in _DISPATCHED or len(program.inputs) + len(program.outputs) > _MOST_TENSORS:
        return None
    slots = [(slot, False) for slot in program.inputs] + [(slot, True) for slot in program.outputs]
    if call.kernel == "join":  # the native slab kernels take the whole first
        slots = slots[-1:] + slots[:-1]
    fields = []
    for slot, output in slots:
        name, bracket, position = slot.name.removesuffix("]").partition("[")
        fields.append(
            (
                name,
                int(position) if bracket else -1,
                output,
                int(DataType.from_numpy(slot.spec.dtype)),
                slot.declared,
                tuple(range(slot.padding)),
            )
        )
    numbers = [int(value) for _, value in call.attributes if isinstance(value, int)]
    return native.Binder(program.name, call.kernel, fields, numbers, bool(call.in_place))


def index_error(
    where: str, indices: Array, flat: int, axis: int, size: int
) -> IndexOutOfRangeError:
    """The error for a bad index at a flat position of the index array.

    The value is read anew for it, and may be a good one by now if another thread changes it.
    """
    position = tuple(map(int, np.unravel_index(flat, indices.shape)))
    value = int(indices[position])
    least = -size if indices.dtype.kind == "i" else 0
    accepted = f"{least}..{size - 1}" if size else "nothing"
    at = f"[{', '.join(map(str, position))}]" if position else ""
    got = f"a value that was changed during the call, to {value}"
    return IndexOutOfRangeError(
        f"{where}{at}: expected {accepted} (axis {axis} of size {size}), got "
        f"{got if least <= value < size else value}",
        position,
        value,
        size,
    )
