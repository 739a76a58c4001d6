"""Constant indices: values that are known before a run, and that would stop it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.core.program import IndexUse, Program
from anydml.core.tensor import TensorDesc
from anydml.devices.backends._sequence import index_error
from anydml.devices.binding import bind, elements_size
from anydml.models.check import Checks
from anydml.models.commands import Dispatch
from anydml.models.document import within
from anydml.models.operators import referenced_resources
from anydml.models.resources import Resource
from anydml.ops._fields import Role
from anydml.portable.kernels import resolve

Array = np.ndarray[Any, np.dtype[Any]]

Contents = Callable[[Resource, int], Array]
"""The bytes of a resource, of which at least the first are those that a run begins with."""


class _Reading(NamedTuple):
    """A tensor of indices in a resource; equal ones have the same fault."""

    where: str
    tensor: TensorDesc
    start: int
    use: IndexUse

    @property
    def end(self) -> int:
        """The byte behind the last element."""
        return self.start + elements_size(self.tensor)

    def fault(self, resource: Resource, octets: Array) -> str | None:
        """The first index that is out of range, as a run reports it."""
        array = bind(self.use.slot, self.tensor, octets[self.start :].data, output=False)
        flat = _first_bad(array, self.use.sizes)
        if flat < 0:
            return None
        axis, size = self.use.axis_and_size(flat)
        error = index_error(self.where, array, flat, axis, size)
        return f"{error} (resource {short_repr(resource.name)})"


def index_problems(checks: Checks, contents: Contents = Resource.allocate) -> Iterator[str]:
    """Indices out of range in resources that no command has written before they are read.

    Parameters
    ----------
    checks : Checks
        Of a model whose resources fit into its memory limit.
    contents : callable
        What a resource contains at the beginning.
    """
    found: list[tuple[int, str]] = []
    for name, readings in _constant_readings(checks).items():
        resource = checks.model.resources[name]
        try:
            octets = contents(resource, max(reading.end for reading in readings))
        except ModelError as error:
            yield within("resources", name, error)
            continue
        for reading, commands in readings.items():
            fault = reading.fault(resource, octets)
            if fault is not None:
                found += ((index, fault) for index in commands)
    for index, fault in sorted(found):
        yield within("commands", index, fault, "index_out_of_range")


def _constant_readings(checks: Checks) -> dict[str, dict[_Reading, list[int]]]:
    """By resource, the index tensors that are read while it is unwritten, and by which commands."""
    found: dict[str, dict[_Reading, list[int]]] = defaultdict(lambda: defaultdict(list))
    resources, wrong = checks.model.resources, checks.wrong_bindings
    written: set[str] = set()
    for index, command in checks.model.commands.items():
        if not isinstance(command, Dispatch):
            continue
        name = command.dispatchable
        program = checks.program(name)
        if program is None:
            written.update(command.resources())  # what it would write is not known
            continue
        dispatchable = checks.model.dispatchables[name]
        bound = {item.path: item for item in dispatchable.bound(command.bindings)}
        named = (*referenced_resources(dispatchable.bindings), *command.resources())
        if not ({name, index} & wrong.keys()) and resources.keys() >= {*named}:
            for where, use in _uses(program):
                _, _, tensor, source, _, owned = bound[use.slot]
                # A copy of an owned tensor is made before the first command.
                if owned or source.name not in written:
                    start = source.start(resources[source.name])
                    reading = _Reading(where, tensor, start, use)
                    found[source.name][reading].append(index)
        outputs = (item for item in bound.values() if item.info.role is Role.OUTPUT)
        written.update(item.source.name for item in outputs)
    return found


def _uses(program: Program) -> Iterator[tuple[str, IndexUse]]:
    """Yield the tensors that a program reads as indices, with their names in messages."""
    bound = {slot.name for slot in program.inputs}
    for call in program.calls:
        use = call.indices
        if use is not None and use.slot in bound:
            yield f"{call.source or program.name}.{use.tensor or use.slot}", use


def _first_bad(indices: Array, sizes: tuple[int, ...]) -> int:
    """Return the flat position of the first index outside its axis, or -1."""
    # Where elements repeat, the first one stands for all; coordinates have axes of their own.
    coordinates = len(sizes) > 1
    kept = indices[
        tuple(
            slice(1) if stride == 0 and not (coordinates and i == indices.ndim - 1) else slice(None)
            for i, stride in enumerate(indices.strides)
        )
    ]
    columns = np.moveaxis(kept, -1, 0) if coordinates else (kept,)
    if all(-n <= int(x.min()) and int(x.max()) < n for x, n in zip(columns, sizes, strict=True)):
        return -1  # without copies of all indices
    _, bad = resolve(kept, sizes if coordinates else sizes[0], "raise")
    return int(np.ravel_multi_index(np.unravel_index(bad, kept.shape), indices.shape))
