"""What can be known of a model without running it, and is therefore known before anything runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import AnyDMLError, MissingKernelError, ModelError, Violation
from anydml.core.problems import Problem
from anydml.devices.binding import bind, elements_size, refuse_overlap
from anydml.devices.device import Device
from anydml.devices.operators import CompiledOperator
from anydml.graphs.check import CONSTANTS_SINCE, has_constants
from anydml.graphs.compiled import CompiledGraph
from anydml.models.commands import Dispatch, WriteFile
from anydml.models.dispatchables import Bindings, Dispatchable, binding_problems, is_owned
from anydml.models.files import Place, target_problem
from anydml.models.graphs import GraphOperator
from anydml.models.loader import Model
from anydml.models.locations import within
from anydml.models.paths import Limits, output_folder, own_folder, parts_below
from anydml.models.resources import Resource
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]


class Target(NamedTuple):
    """A file that a command writes."""

    at: int
    command: WriteFile
    place: Place


def refusal(dispatchable: Dispatchable, device: Device) -> str | None:
    """Why a device refuses a dispatchable, and the lowest level that accepts it; or None.

    The first line names the dispatchable; the others are indented.
    """
    violations = dispatchable.desc.violations(device.feature_level)
    return refused_text(dispatchable, device, violations) if violations else None


def refused_text(dispatchable: Dispatchable, device: Device, violations: list[Violation]) -> str:
    """The same, of what `Device.check` has found."""
    return "\n  ".join(
        (
            f"Dispatchable {short_repr(dispatchable.name)} ({dispatchable.desc.NAME}): refused at "
            f"feature level {device.feature_level}",
            *map(str, violations),
            lowest_level(dispatchable),
        )
    )


def lowest_level(dispatchable: Dispatchable) -> str:
    """A line about the lowest feature level that accepts a dispatchable."""
    desc = dispatchable.desc
    lowest = desc.minimum_level()
    if lowest is None:
        return "No feature level accepts it"
    as_inputs = (
        f" (below {CONSTANTS_SINCE}, constants count as inputs)"
        if isinstance(desc, GraphOperator) and has_constants(desc.graph)
        else ""
    )
    return f"Lowest feature level that accepts it: {lowest}{as_inputs}"


def compile_dispatchable(
    dispatchable: Dispatchable, device: Device
) -> CompiledOperator | CompiledGraph:
    """A dispatchable that the device accepts, ready to run.

    Raises
    ------
    ModelError
        The device has no kernel for it.
    """
    try:
        if isinstance(dispatchable.desc, GraphOperator):
            return dispatchable.desc.compile(device)
        return device.create_operator(dispatchable.desc).compile()
    except MissingKernelError as error:
        text = (
            f"Dispatchable {short_repr(dispatchable.name)} ({error.operator}): no {error.backend} "
            "kernel; --device reference runs it."
        )
        location = ("dispatchables", dispatchable.name)
        raise ModelError(Problem(text, "missing_kernel", location)) from error


def run_problems(
    model: Model, limits: Limits, device: Device, refused: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Everything that would stop a run of what has been read and is not refused."""
    wrong = [*find_binding_problems(model, refused)]
    yield from wrong
    yield from _memory_problems(model, limits, device, refused)
    if fits(model, limits) and not wrong:
        yield from _overlaps(model, refused)
    yield from _target_problems(model, limits)


def fits(model: Model, limits: Limits) -> bool:
    """Whether the resources together are within the memory limit."""
    return sum(resource.size for resource in model.resources.values()) <= limits.memory_limit


def find_binding_problems(model: Model, refused: frozenset[str] = frozenset()) -> Iterator[str]:
    """What is wrong with the bindings of dispatchables that are not refused."""
    for name, dispatchable in model.dispatchables.items():
        if name not in refused:
            for problem in binding_problems(
                dispatchable.desc, dispatchable.bindings, model.resources, initial=True
            ):
                yield within("dispatchables", name, problem, "binding")
    for index, command, dispatchable in _dispatches(model, refused):
        for problem in binding_problems(
            dispatchable.desc, command.bindings, model.resources, initial=False
        ):
            yield within("commands", index, problem, "binding")


def targets(model: Model, limits: Limits) -> Iterator[Target]:
    """The files that a model's commands write, in order.

    Raises
    ------
    ModelError
        The output folder cannot be one.
    """
    folder = output_folder(model.name, limits)
    for index, command in model.commands.items():
        if not isinstance(command, WriteFile) or command.resource not in model.resources:
            continue
        try:
            place = Place(folder, parts_below(folder, command.target))
        except ModelError:
            continue  # the loader reports it
        yield Target(index, command, place)


def _dispatches(
    model: Model, refused: frozenset[str]
) -> Iterator[tuple[int, Dispatch, Dispatchable]]:
    for index, command in model.commands.items():
        if isinstance(command, Dispatch) and command.dispatchable not in refused:
            dispatchable = model.dispatchables.get(command.dispatchable)
            if dispatchable is not None:
                yield index, command, dispatchable


def _memory_problems(
    model: Model, limits: Limits, device: Device, refused: frozenset[str]
) -> Iterator[str]:
    # Strides can make much of a small resource: an operator keeps a copy of an owned input, with
    # all elements that its strides repeat, and may need one of another input while it runs.
    kept = sum(resource.size for resource in model.resources.values())
    for name, dispatchable in model.dispatchables.items():
        if name in refused:
            continue
        desc = dispatchable.desc
        passing = device.backend.working_nbytes(desc.lower())
        for _, tensor, info in desc.tensors(Role.INPUT):
            packed = -(-tensor.element_count * tensor.data_type.bits // 8)
            if is_owned(desc, info):
                kept += packed
            else:
                passing += max(packed - elements_size(tensor), 0)
        if kept + passing > limits.memory_limit:
            text = (
                f"Expected at most {limits.memory_limit} bytes (--memory-limit) for resources, "
                "OWNED_BY_DML tensors, intermediate results and inputs whose strides repeat "
                f"elements, got {kept + passing}."
            )
            yield within("dispatchables", name, text, "memory_limit")
            return


def _overlaps(model: Model, refused: frozenset[str]) -> Iterator[str]:
    for index, command, dispatchable in _dispatches(model, refused):
        try:
            _refuse_overlap(dispatchable, command.bindings, model.resources)
        except AnyDMLError as error:
            yield within("commands", index, error, "overlap")


def _refuse_overlap(
    dispatchable: Dispatchable, bindings: Bindings, resources: Mapping[str, Resource]
) -> None:
    desc = dispatchable.desc
    bound = [
        (path, tensor, source, info.role)
        for info in desc.bind_points()
        if not is_owned(desc, info)
        for (path, tensor), source in zip(desc.paths(info), bindings[info.name], strict=True)
    ]
    written = {source.name for _, _, source, role in bound if role is Role.OUTPUT}
    times = Counter(source.name for _, _, source, _ in bound)
    buffers = {
        # Memory that is allocated but never used: only its address counts.
        name: _reserved(resources[name])
        for name in written
        if times[name] > 1 and name in resources
    }
    sides: dict[Role, list[tuple[str, Array]]] = {Role.INPUT: [], Role.OUTPUT: []}
    for path, tensor, source, role in bound:
        if source.name in buffers:
            octets = buffers[source.name][source.start(resources[source.name]) :]
            # Nothing is written here; outputs that overlap themselves are the descriptor's fault.
            sides[role].append((path, bind(path, tensor.storage, octets.data, output=False)))
    refuse_overlap(sides[Role.OUTPUT], sides[Role.INPUT], desc.lower().in_place())


def _reserved(resource: Resource) -> Array:
    try:
        return resource.reserve(np.empty)
    except ModelError as error:
        raise ModelError(f"Resource {short_repr(resource.name)}: {error}") from error


def _target_problems(model: Model, limits: Limits) -> Iterator[str]:
    found = [*targets(model, limits)]
    if not found:
        return
    folder = found[0].place.folder
    if own_folder(limits) and not limits.overwrite and os.path.lexists(folder.path):
        yield Problem(
            f"Output folder {str(folder.display_path)!r} exists: remove it, name another by "
            "--output-dir, or let its files be replaced by --overwrite.",
            "output_path",
        )
        return
    files: set[tuple[str, ...]] = set()
    folders: set[tuple[str, ...]] = set()
    for target in found:
        parts = target.place.parts
        above = {parts[:i] for i in range(1, len(parts))}
        resource = model.resources[target.command.resource]
        if resource.data_type is not None:  # the loader reports a .npy file without a type
            try:
                target.command.size(resource)
            except ModelError as error:
                yield within("commands", target.at, error, "output_path")
        if parts in folders or files & above:
            text = (
                f"File {target.place} cannot be written: the model has it, or a part of its path, "
                "both as a file and as a folder."
            )
            yield within("commands", target.at, text, "output_path")
        elif parts not in files:
            try:
                problem = target_problem(target.place, limits.overwrite)
            except ModelError as error:
                problem = str(error)
            if problem:
                yield within("commands", target.at, problem, "output_path")
        files.add(parts)
        folders |= above
