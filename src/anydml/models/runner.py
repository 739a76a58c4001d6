"""Running a model: resources allocated, dispatchables initialised, then command after command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy as np

from anydml.binding import elements_size
from anydml.device import Device
from anydml.errors import AnyDMLError, ModelError
from anydml.lifecycle import CompiledOperator
from anydml.models import npy
from anydml.models.commands import Command, Dispatch, Print, WriteFile
from anydml.models.dispatchables import Bindings, Dispatchable, binding_problems, owned
from anydml.models.loader import Model
from anydml.models.paths import Limits, find_target, open_target
from anydml.models.printing import printed
from anydml.models.resources import Resource
from anydml.ops._descriptor import Role

Array = np.ndarray[Any, np.dtype[Any]]


def run_model(
    model: Model,
    device: Device | None = None,
    limits: Limits | None = None,
    write: Callable[[str], object] | None = None,
) -> dict[str, Array]:
    """Run a model's commands.

    Parameters
    ----------
    model : Model
        As `load_model` returns it.
    device : Device, optional
        What runs the operators and whose feature level they are checked against.
    limits : Limits, optional
        What the model may read, write and allocate.
    write : callable, optional
        Takes what `print` commands print, in pieces; standard output by default.

    Returns
    -------
    dict of str to array
        The resources' bytes after the last command.

    Raises
    ------
    ModelError
        A dispatchable is refused or a binding does not fit, both before any command has run; or a
        command has failed.
    """
    device = device or Device("cpu")
    limits = limits or Limits()
    compiled = {
        name: _compiled(dispatchable, device) for name, dispatchable in model.dispatchables.items()
    }
    problems = [*bound_wrongly(model), *_memory_problems(model, limits)]
    if problems:
        raise ModelError("\n".join(problems))
    buffers = {name: _allocated(resource) for name, resource in model.resources.items()}
    for name, dispatchable in model.dispatchables.items():
        with _located(f"Dispatchable {name!r}"):
            bound = _bound(dispatchable, dispatchable.bindings, True, model.resources, buffers)
            if bound:
                compiled[name] = compiled[name].initialize(**bound)
    for index, command in model.commands.items():
        with _located(f"Command at index {index}"):
            _run(command, model, compiled, buffers, limits, write or sys.stdout.write)
    return buffers


def refusal(dispatchable: Dispatchable, device: Device) -> str | None:
    """Why a device refuses a dispatchable, and the lowest level that accepts it; or None.

    The first line names the dispatchable; the others are indented.
    """
    violations = device.check(dispatchable.desc)
    if not violations:
        return None
    lowest = device.minimum_feature_level(dispatchable.desc)
    return "\n  ".join(
        (
            f"Dispatchable {dispatchable.name!r} ({dispatchable.desc.NAME}): refused at feature "
            f"level {device.feature_level}",
            *map(str, violations),
            f"Lowest feature level that accepts it: {lowest or 'none'}",
        )
    )


def bound_wrongly(model: Model, refused: frozenset[str] = frozenset()) -> Iterator[str]:
    """What is wrong with the bindings of dispatchables that are not refused."""
    for name, dispatchable in model.dispatchables.items():
        if name not in refused:
            for problem in binding_problems(
                dispatchable.desc, dispatchable.bindings, model.resources, initial=True
            ):
                yield f"Dispatchable {name!r}: {problem}"
    for index, command in model.commands.items():
        if not isinstance(command, Dispatch) or command.dispatchable in refused:
            continue
        dispatched = model.dispatchables.get(command.dispatchable)
        if dispatched is not None:
            for problem in binding_problems(
                dispatched.desc, command.bindings, model.resources, initial=False
            ):
                yield f"Command at index {index}: {problem}"


def _compiled(dispatchable: Dispatchable, device: Device) -> CompiledOperator:
    refused = refusal(dispatchable, device)
    if refused is not None:
        raise ModelError(refused)
    return device.create_operator(dispatchable.desc).compile()


def _memory_problems(model: Model, limits: Limits) -> Iterator[str]:
    # Strides can make much of a small resource: an operator keeps a copy of an owned input, with
    # all elements that its strides repeat, and may need one of another input while it runs.
    kept = sum(resource.size for resource in model.resources.values())
    for name, dispatchable in model.dispatchables.items():
        desc, passing = dispatchable.desc, 0
        for _, tensor, info in desc.tensors(Role.INPUT):
            packed = tensor.element_count * tensor.data_type.element_size
            if owned(desc, info):
                kept += packed
            else:
                passing += max(packed - elements_size(tensor), 0)
        if kept + passing > limits.memory_limit:
            yield (
                f"Dispatchable {name!r}: Expected at most {limits.memory_limit} bytes "
                "(--memory-limit) for resources, OWNED_BY_DML tensors and inputs whose strides "
                f"repeat elements, got {kept + passing}."
            )
            return


def _allocated(resource: Resource) -> Array:
    with _located(f"Resource {resource.name!r}"):
        try:
            return resource.allocate()
        except MemoryError as error:
            raise ModelError(f"No memory for its {resource.size} bytes.") from error


def _bound(
    dispatchable: Dispatchable,
    bindings: Bindings,
    initial: bool,
    resources: Mapping[str, Resource],
    buffers: Mapping[str, Array],
) -> dict[str, Any]:
    desc = dispatchable.desc
    bound: dict[str, Any] = {}
    for info in desc.tensor_fields():
        if owned(desc, info) is initial:
            views = [
                buffers[source.name][source.start(resources[source.name]) :]
                for source in bindings[info.name]
            ]
            bound[info.name] = views if info.many else views[0]
    return bound


def _run(
    command: Command,
    model: Model,
    compiled: Mapping[str, CompiledOperator],
    buffers: Mapping[str, Array],
    limits: Limits,
    write: Callable[[str], object],
) -> None:
    if isinstance(command, Dispatch):
        dispatchable = model.dispatchables[command.dispatchable]
        compiled[command.dispatchable].dispatch(
            **_bound(dispatchable, command.bindings, False, model.resources, buffers)
        )
        return
    resource = model.resources[command.resource]
    buffer = buffers[command.resource]
    if isinstance(command, Print):
        for piece in printed(
            resource.name, _elements(resource, resource.data(buffer)), command.verbose
        ):
            write(piece)
        return
    _write_file(command, resource, buffer, limits)


def _elements(resource: Resource, octets: Array) -> Array:
    assert resource.data_type is not None, "the loader refuses the command otherwise"
    dtype = resource.data_type.numpy
    return octets[: octets.size // dtype.itemsize * dtype.itemsize].view(dtype)


def _write_file(command: WriteFile, resource: Resource, buffer: Array, limits: Limits) -> None:
    target = find_target(command.target, limits)
    if not command.npy:
        with open_target(target) as file:
            file.write(buffer.data)
        return
    # What only rounds the size up is no element.
    octets = buffer if resource.size_given else resource.data(buffer)
    numbers = _elements(resource, octets)
    if command.dimensions:
        count = prod(command.dimensions)
        if count > numbers.size:
            raise ModelError(
                f"Error parsing field 'dimensions': Expected at most {numbers.size} elements "
                f"(resource {resource.name!r}), got {count}."
            )
        numbers = numbers[:count].reshape(command.dimensions)
    with open_target(target) as file:
        npy.write(file, numbers)


@contextmanager
def _located(where: str) -> Iterator[None]:
    try:
        yield
    except AnyDMLError as error:
        raise ModelError(f"{where}: {error}") from error
