"""Descriptor → plan over the native kernels.

A plan says which kernel runs, on which tensors in which order, which leading dimensions the kernel
does not see (a descriptor pads every tensor to one DimensionCount), and its numbers. It checks
nothing: the descriptor has been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from anydml._native import native
from anydml.errors import IndexOutOfRangeError
from anydml.ops._descriptor import Descriptor
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.split import Split
from anydml.ops.top_k import AxisDirection, TopK

Array = np.ndarray[Any, np.dtype[Any]]

REDUCTIONS = {None: 0, "none": 0, "add": 1, "mul": 2, "min": 3, "max": 4}


@dataclass(frozen=True)
class Plan:
    """How the native kernels run a descriptor.

    Attributes
    ----------
    kernel : str
        The kernel's name.
    order : tuple of str
        The tensors in the kernel's order; a tensor list stands for all its members.
    numbers : tuple of int
        What the kernel takes besides, in its order.
    drop : dict of str to int
        Leading dimensions that the kernel does not see, by tensor.
    in_place : bool
        Whether the output may be the first tensor's own memory.
    index_axes : callable or None
        From the flat position of a bad index: the axis and size that it should point into.
    """

    kernel: str
    order: tuple[str, ...]
    numbers: tuple[int, ...]
    drop: Mapping[str, int]
    in_place: bool = False
    index_axes: Callable[[int], tuple[int, int]] | None = None

    def run(self, arrays: Mapping[str, Any], fresh: bool, threads: int) -> int:
        """Run on arrays of the descriptor's sizes; the first bad index, or -1.

        `fresh`: nobody sees the outputs when an index is bad, so they may be written before all
        indices have been checked.
        """
        views = [self._view(name, arrays[name]) for name in self.order]
        if self.kernel == "nonzero":
            found = native.nonzero_scan(views[0], *self.numbers, threads)
            views[1][...] = found.count
            native.nonzero_write(found, views[2], threads)
            return -1
        kernel = getattr(native, self.kernel)
        if self.kernel == "top_k":
            axis, k, largest = self.numbers
            kernel(*views, axis, k, bool(largest), threads)
            return -1
        if self.kernel in ("split", "join"):
            kernel(*views, *self.numbers, threads)
            return -1
        if self.kernel in ("scatter", "scatter_nd"):
            return int(kernel(*views, *self.numbers, REDUCTIONS[None], fresh, threads))
        axis, clamp = self.numbers
        return int(kernel(*views, axis, bool(clamp), fresh, threads))

    def _view(self, name: str, value: Any) -> Any:
        at: Any = (0,) * self.drop.get(name, 0)
        if isinstance(value, np.ndarray):
            return value[(*at, ...)]
        return [part[(*at, ...)] for part in value]


def plan(desc: Descriptor, clamp: bool = False) -> Plan:
    """The plan of a checked descriptor; `clamp` is for the gathers."""
    if isinstance(desc, TopK):
        return Plan(
            "top_k",
            ("InputTensor", "OutputValueTensor", "OutputIndexTensor"),
            (desc.axis, desc.k, int(desc.direction is AxisDirection.DECREASING)),
            {},
        )
    if isinstance(desc, NonzeroCoordinates):
        coordinates = desc.output_coordinates_tensor
        return Plan(
            "nonzero",
            ("InputTensor", "OutputCountTensor", "OutputCoordinatesTensor"),
            (coordinates.sizes[-1],),
            {"OutputCoordinatesTensor": coordinates.dimension_count - 2},
        )
    if isinstance(desc, Split):
        return Plan("split", ("InputTensor", "OutputTensors"), (desc.axis,), {})
    if isinstance(desc, Join):
        return Plan("join", ("InputTensors", "OutputTensor"), (desc.axis,), {})
    if isinstance(desc, Scatter):
        size = desc.input_tensor.sizes[desc.axis]
        return Plan(
            "scatter",
            ("InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor"),
            (desc.axis,),
            {},
            in_place=True,
            index_axes=lambda flat: (desc.axis, size),
        )
    if isinstance(desc, ScatterND):
        return _scatter_nd(desc)
    if isinstance(desc, GatherElements):
        size = desc.input_tensor.sizes[desc.axis]
        return Plan(
            "gather_elements",
            ("InputTensor", "IndicesTensor", "OutputTensor"),
            (desc.axis, int(clamp)),
            {},
            index_axes=lambda flat: (desc.axis, size),
        )
    if isinstance(desc, Gather):
        return _gather(desc, clamp)
    if isinstance(desc, GatherND):
        return _gather_nd(desc, clamp)
    raise NotImplementedError(f"no CPU kernel runs {desc.NAME}")


def _scatter_nd(desc: ScatterND) -> Plan:
    sizes, lookup = desc.meaningful_sizes()
    unused = desc.input_tensor.dimension_count - len(sizes)
    updates = len(lookup) - 1 + len(sizes) - lookup[-1]
    return Plan(
        "scatter_nd",
        ("InputTensor", "IndicesTensor", "UpdatesTensor", "OutputTensor"),
        (),
        {
            "InputTensor": unused,
            "OutputTensor": unused,
            "IndicesTensor": desc.indices_tensor.dimension_count - len(lookup),
            "UpdatesTensor": desc.updates_tensor.dimension_count - updates,
        },
        in_place=True,
        index_axes=lambda flat: (unused + flat % lookup[-1], sizes[flat % lookup[-1]]),
    )


def _gather(desc: Gather, clamp: bool) -> Plan:
    cropped = desc.cropped()
    natural = len(desc.natural_sizes()) - cropped
    size = desc.input_tensor.sizes[desc.axis]
    return Plan(
        "gather",
        ("InputTensor", "IndicesTensor", "OutputTensor"),
        (desc.axis - cropped, int(clamp)),
        {
            "InputTensor": cropped,
            "IndicesTensor": desc.indices_tensor.dimension_count - desc.index_dimensions,
            "OutputTensor": desc.output_tensor.dimension_count - natural,
        },
        index_axes=lambda flat: (desc.axis, size),
    )


def _gather_nd(desc: GatherND, clamp: bool) -> Plan:
    sizes, lookup = desc.meaningful_sizes()
    unused = desc.input_tensor.dimension_count - len(sizes)
    output = len(lookup) - 1 + len(sizes) - desc.batch - lookup[-1]

    def index_axes(flat: int) -> tuple[int, int]:
        axis = desc.batch + flat % lookup[-1]
        return unused + axis, sizes[axis]

    return Plan(
        "gather_nd",
        ("InputTensor", "IndicesTensor", "OutputTensor"),
        (desc.batch, int(clamp)),
        {
            "InputTensor": unused,
            "IndicesTensor": desc.indices_tensor.dimension_count - len(lookup),
            "OutputTensor": desc.output_tensor.dimension_count - output,
        },
        index_axes=index_axes,
    )


# What the native dispatch takes; it has room for them on the stack.
_MOST_TENSORS = 8


def binder(desc: Descriptor, plan: Plan) -> Any:
    """The native object that dispatches plain NumPy bindings; None for more than eight tensors."""
    roles = {info.name: info for info in desc.tensor_fields()}
    if sum(1 for _ in islice(desc.tensors(), _MOST_TENSORS + 1)) > _MOST_TENSORS:
        return None
    # The kernels for slabs take the whole first, whichever side it is on.
    order: Sequence[str] = plan.order if plan.kernel != "join" else plan.order[::-1]
    slots = []
    for name in order:
        info = roles[name]
        value = getattr(desc, info.attribute)
        for position, tensor in enumerate(value if info.many else (value,)):
            slots.append(
                (
                    name,
                    position if info.many else -1,
                    info.role.value == "output tensor",
                    int(tensor.data_type),
                    tensor.sizes,
                    tuple(range(plan.drop.get(name, 0))),
                )
            )
    return native.Binder(desc.NAME, plan.kernel, slots, list(plan.numbers), plan.in_place)


def index_error(
    where: str, indices: Array, flat: int, axis: int, size: int
) -> IndexOutOfRangeError:
    """The error for a bad index at a flat position of the index array."""
    position = tuple(map(int, np.unravel_index(flat, indices.shape)))
    value = int(indices[position])
    accepted = f"{-size if indices.dtype.kind == 'i' else 0}..{size - 1}" if size else "nothing"
    at = f"[{', '.join(map(str, position))}]" if position else ""
    return IndexOutOfRangeError(
        f"{where}{at}: expected {accepted} (axis {axis} of size {size}), got {value}",
        position,
        value,
        size,
    )
