"""Programs as data: kernel calls over named slots.

An operator module lowers a descriptor to a `Program`; a backend compiles and runs it. Nothing here
knows a descriptor, a kernel or an array: everything is frozen, hashable, picklable and printable.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from anydml.core.errors import Violation
from anydml.core.rules import Rules, find_violations

Value = bool | int | float | str | None | tuple["Value", ...]
"""An attribute's value."""


@dataclass(frozen=True, slots=True)
class Dynamic:
    """A size that the data decide.

    Attributes
    ----------
    max : int
        The largest that it can be.
    """

    max: int


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """Shape and type of an array in natural form: any rank from 0 up, no padding.

    Attributes
    ----------
    shape : tuple of int or Dynamic
        The sizes. Whatever compares and adds like an integer is one.
    dtype : numpy.dtype or None
        The element type; None for an output of indices, whose type the caller chooses.
    """

    shape: tuple[Any, ...]
    dtype: np.dtype[Any] | None

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"


@dataclass(frozen=True, slots=True)
class Slot:
    """A named place of a program that an array is bound to.

    Attributes
    ----------
    name : str
        The page's name of the tensor; ``OutputTensors[1]`` for a member of a tensor list.
    spec : ArraySpec
        What the kernel sees.
    declared : tuple of int
        The sizes that the caller binds: those of `spec` behind the leading sizes of 1 with which
        descriptors pad all tensors to one DimensionCount.
    """

    name: str
    spec: ArraySpec
    declared: tuple[int, ...]

    @property
    def padding(self) -> int:
        """Leading dimensions that the kernel does not see."""
        return len(self.declared) - len(self.spec.shape)


@dataclass(frozen=True, slots=True)
class Intermediate:
    """An array that one call writes and later calls read; no caller binds it.

    Several may lie over the same bytes: what is written as one is read as another.

    Attributes
    ----------
    name : str
        Its name in the program's calls.
    spec : ArraySpec
        What the kernel sees.
    buffer : str
        The bytes that it lies over: the name of another intermediate, an input, an output or a
        constant, whose elements are packed. Its own, if empty.
    strides : tuple of int, optional
        In elements; packed, if None.
    """

    name: str
    spec: ArraySpec
    buffer: str = ""
    strides: tuple[int, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Bytes from the first element to the end of the last one."""
        assert self.spec.dtype is not None
        count = prod(self.spec.shape)
        if self.strides is not None and count:
            pairs = zip(self.spec.shape, self.strides, strict=True)
            count = 1 + sum((size - 1) * stride for size, stride in pairs)
        return int(count * self.spec.dtype.itemsize)


@dataclass(frozen=True, slots=True)
class Constant:
    """An array whose elements are part of the program.

    Attributes
    ----------
    name : str
        Its name in the program's calls.
    spec : ArraySpec
        What the kernel sees.
    data : bytes
        The elements, packed.
    """

    name: str
    spec: ArraySpec
    data: bytes


@dataclass(frozen=True, slots=True)
class IndexUse:
    """Where the values of an index operand point.

    Attributes
    ----------
    slot : str
        The operand that holds the indices.
    axes : tuple of int
        The axis, in the declared sizes of what is indexed, of each coordinate of a tuple; one axis
        where an index stands alone.
    sizes : tuple of int
        The sizes of these axes.
    tensor : str
        The page's name of the operand, for messages; the slot's, if empty.
    """

    slot: str
    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    tensor: str = ""

    def axis_and_size(self, flat: int) -> tuple[int, int]:
        """The axis, and its size, that the value at a flat position of the operand points into."""
        coordinate = flat % len(self.axes)
        return self.axes[coordinate], self.sizes[coordinate]


@dataclass(frozen=True, slots=True)
class Inferred:
    """The outputs and violations that an operator infers from its inputs.

    Attributes
    ----------
    outputs : tuple of ArraySpec
        In the page's order; `UNKNOWN` in them depends on a value that breaks a rule.
    violations : tuple of Violation
        Every rule that the inputs and attributes break, by the array functions' argument names.
    coordinates : tuple of int
        Axes of the first input that the coordinates of an index tuple point into, where the second
        input holds indices; one axis where an index stands alone.
    reasons : tuple of str
        Where the last sizes of the first output come from; without them a message has all sizes.
    """

    outputs: tuple[ArraySpec, ...]
    violations: tuple[Violation, ...] = ()
    coordinates: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        outputs: tuple[ArraySpec, ...],
        *rules: Rules,
        coordinates: tuple[int, ...] = (),
        reasons: tuple[str, ...] = (),
    ) -> Inferred:
        """The result that has the violations of these rules."""
        return cls(outputs, tuple(find_violations(*rules)), coordinates, reasons)


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of a kernel.

    Attributes
    ----------
    kernel : str
        Its name, the same on every backend.
    inputs, outputs : tuple of str or None
        Names of slots, in the kernel's order; None for an optional tensor that is left out.
    attributes : tuple of (str, value) pairs
        What the kernel takes besides.
    in_place : tuple of (str, str) pairs
        Output slots that the call writes, each with the input of the program whose memory it may
        be. The call need not be the one that reads that input.
    indices : IndexUse or None
        The operand whose values are checked while the kernel runs.
    leaves_undefined : tuple of str
        Output slots of which the kernel does not write every element: memory that is allocated for
        them is cleared first.
    source : str
        What messages call it, such as the graph node that it came from; the program's name, if
        empty.
    """

    kernel: str
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    attributes: tuple[tuple[str, Value], ...] = ()
    in_place: tuple[tuple[str, str], ...] = ()
    indices: IndexUse | None = None
    leaves_undefined: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """Kernel calls in order, and the slots that they read and write.

    Attributes
    ----------
    name : str
        What messages call it: the operator's name.
    inputs, outputs : tuple of Slot
        What a caller binds.
    calls : tuple of KernelCall
        In the order of execution. Each output and intermediate is written by one call, before any
        call reads it.
    intermediates : tuple of Intermediate
        What calls pass to later calls.
    constants : tuple of Constant
        Operands whose elements are known.
    held : tuple of (str, str) pairs
        Inputs that nobody binds, each with the output of its type and sizes whose memory has its
        elements when a run begins; with an empty name, the elements are zeros.
    allows_half : bool
        Whether products of FLOAT32 may be as precise as those of FLOAT16.
    """

    name: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    calls: tuple[KernelCall, ...]
    intermediates: tuple[Intermediate, ...] = ()
    constants: tuple[Constant, ...] = ()
    held: tuple[tuple[str, str], ...] = ()
    allows_half: bool = False

    def clamped(self) -> Program:
        """Return a program that reads the nearest element for an index that is out of range."""
        calls = tuple(
            call
            if call.indices is None
            else replace(call, attributes=(*call.attributes, ("clamp", True)))
            for call in self.calls
        )
        return replace(self, calls=calls)

    def in_place(self) -> tuple[tuple[str, str], ...]:
        """Outputs, each with an input whose memory it may be.

        No call after the one that writes the output reads that input.
        """
        outputs = {slot.name for slot in self.outputs}
        buffers = {item.name: item.buffer or item.name for item in self.intermediates}
        last_read = {
            buffers.get(name, name): position
            for position, call in enumerate(self.calls)
            for name in call.inputs
            if name is not None
        }
        inputs = {slot.name for slot in self.inputs}
        return tuple(
            (target, source)
            for position, call in enumerate(self.calls)
            for target, source in call.in_place
            if target in outputs and source in inputs and last_read.get(source, 0) <= position
        )

    def types(self) -> set[np.dtype[Any] | None]:
        """The types of all arrays."""
        arrays: list[Slot | Intermediate | Constant] = [*self.inputs, *self.outputs]
        arrays += [*self.intermediates, *self.constants]
        return {array.spec.dtype for array in arrays}

    def __str__(self) -> str:
        labels: dict[str | None, str] = {None: "nothing"}
        arrays: tuple[Slot | Intermediate | Constant, ...] = (
            *self.inputs, *self.outputs, *self.intermediates, *self.constants,
        )  # fmt: skip
        for item in arrays:
            labels[item.name] = f"{item.name}: {item.spec}"
        lines = []
        for call in self.calls:
            inputs = [labels[name] for name in call.inputs]
            inputs += [f"{name}={value!r}" for name, value in call.attributes]
            written = ", ".join(labels[name] for name in call.outputs)
            lines.append(f"{written} = {call.kernel}({', '.join(inputs)})")
        return "\n".join(lines)
