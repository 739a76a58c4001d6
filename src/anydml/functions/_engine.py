"""What runs every array function: outputs by the room's `infer`, the work by a backend's kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from anydml._json import shown
from anydml.arrays import Array
from anydml.backends import kernels_for
from anydml.backends._sequence import index_error
from anydml.backends.cpu import know_type, quick
from anydml.errors import AllocationError, ArgumentError
from anydml.ops._descriptor import Descriptor
from anydml.program import ArraySpec, IndexUse, Inferred
from anydml.threads import get_num_threads

Room = type[Descriptor]

__all__ = ["Room", "dtype_of", "infer", "know_type", "quick", "run", "run_measured", "scratch"]


def infer(room: Room, operands: Sequence[Array], given: Mapping[str, Any]) -> Inferred:
    """What the operator makes of these operands; axes count from the start.

    Raises
    ------
    ArgumentError
        A rule that the operands or attributes break.
    """
    inferred = room.infer([ArraySpec(tuple(a.shape), a.dtype) for a in operands], given)
    for violation in inferred.violations[:1]:
        got = violation.got if isinstance(violation.got, str) else shown(violation.got)
        raise ArgumentError(f"{violation.path}: expected {violation.rule}, got {got}")
    return inferred


def run(
    room: Room,
    inputs: Sequence[Array],
    outputs: Sequence[Array],
    given: Mapping[str, Any],
    inferred: Inferred,
    private: bool = True,
) -> None:
    """Run the operator's kernel.

    Parameters
    ----------
    room : descriptor class
        Of the operator.
    inputs, outputs : sequence of arrays
        In the page's order, in natural form.
    given : mapping
        The kernel's attributes.
    inferred : Inferred
        What `infer` made of the inputs.
    private : bool, optional
        Whether nobody sees the outputs when an index is bad; of no meaning without indices.

    Raises
    ------
    IndexOutOfRangeError
        An index points outside its axis; outputs that are not private are as they were.
    """
    kernels = kernels_for([*inputs, *outputs])
    bad = kernels.execute(room.KERNEL, inputs, outputs, given, private, get_num_threads())
    if bad >= 0:
        sizes = tuple(inputs[0].shape[axis] for axis in inferred.coordinates)
        use = IndexUse("indices", inferred.coordinates, sizes)
        axis, size = use.axis_and_size(bad)
        raise index_error(f"{room.KERNEL}: indices", inputs[1], bad, axis, size)


def run_measured(
    room: Room, given: Mapping[str, Any], x: Array, allocate: Callable[[int], Array]
) -> Array:
    """Run the operator's kernel in two phases, where the data decide a size of its output.

    Parameters
    ----------
    room : descriptor class
        Of the operator.
    given : mapping
        The kernel's attributes.
    x : array
        In natural form.
    allocate : callable
        Makes the output, once its size is known.
    """
    threads = get_num_threads()
    kernels = kernels_for([x])
    measured = kernels.measure(room.KERNEL, x, given, threads)
    output = allocate(measured.count)
    kernels_for([x, output]).fill(measured, output, threads)
    return output


def scratch(call: str, make: Callable[[], Array]) -> Array:
    """What NumPy makes on the way to a kernel.

    Raises
    ------
    AllocationError
        There is no memory for it.
    """
    try:
        return make()
    except (MemoryError, ValueError):  # "array is too big"
        raise AllocationError(call, None, "scratch") from None


def dtype_of(spec: ArraySpec) -> np.dtype[Any]:
    """The element type of an output whose type the operator decides."""
    assert spec.dtype is not None
    return spec.dtype
