"""Checks of a model that has been read: everything that would stop a run, before anything runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.core import _json
from anydml.core._json import counted, short_repr
from anydml.core.errors import AnyDMLError, MissingKernelError, ModelError, Violation
from anydml.core.levels import FeatureLevel
from anydml.core.problems import Problem, members, pointer
from anydml.core.tensor import TensorDesc
from anydml.devices.binding import bind, elements_size, refuse_overlap
from anydml.devices.device import Device
from anydml.devices.operators import CompiledOperator
from anydml.graphs.check import CONSTANTS_SINCE, has_constants
from anydml.graphs.compiled import CompiledGraph
from anydml.models.commands import Command, Dispatch, Print, WriteFile
from anydml.models.document import within, words
from anydml.models.files import (
    Folder,
    Limits,
    Place,
    output_folder,
    own_folder,
    parts_below,
    target_problem,
)
from anydml.models.model import Model, json_model, read_model, reported
from anydml.models.operators import (
    Bindings,
    Dispatchable,
    GraphOperator,
    Source,
    is_owned,
    points_bound,
    referenced_resources,
)
from anydml.models.positions import placed
from anydml.models.resources import Resource
from anydml.models.text import parse
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]

_MOST_NAMES: Final = 20
"""Names of bindings in a message."""


def load_model(path: str | Path, limits: Limits | None = None) -> Model:
    """Read a model and check its references; nothing is run, and no buffer is allocated.

    Parameters
    ----------
    path : str or Path
        The JSON file, or ``"-"`` for standard input.
    limits : Limits, optional
        What the model may read, write and allocate.

    Raises
    ------
    ModelError
        The file cannot be read, or something in it is wrong: all of that at once.
    """
    return without_problems(read_model(path, limits))


def model_from_text(text: bytes, name: str, limits: Limits | None = None) -> Model:
    """Read a model from JSON, and check its references; files are in `Limits.input_dir` only.

    Raises
    ------
    ModelError
        Something in it is wrong: all of that at once.
    """
    limits = limits or Limits()
    folder = None if limits.input_dir is None else Folder.of(limits.input_dir)
    return without_problems(json_model(parse(text), name, folder, limits))


def without_problems(model: Model) -> Model:
    """Return the model; raise what is wrong in its parts and references, if anything is."""
    problems = reading_problems(model)
    if problems:
        raise ModelError(*problems)
    return model


def reading_problems(model: Model) -> tuple[str, ...]:
    """List the parts of a model that could not be read, and the references that lead nowhere."""
    found = chain(model.problems, _memory_exceeded(model), _wrong_references(model))
    return placed(reported(found), model.text)


def _memory_exceeded(model: Model) -> Iterator[str]:
    total = sum(resource.size for resource in model.resources.values())
    if total > model.limits.memory_limit:
        text = (
            f"Resources: Expected at most {model.limits.memory_limit} bytes together "
            f"(--memory-limit), got {total}."
        )
        yield Problem(text, "memory_limit", ("resources",))


def _wrong_references(model: Model) -> Iterator[str]:
    output = output_folder(model.name, model.limits)
    for name, dispatchable in model.dispatchables.items():
        for text in _unknown_resources(referenced_resources(dispatchable.bindings), model):
            yield within("dispatchables", name, text)
    for index, command in model.commands.items():
        for text in _wrong_in(command, model, output):
            yield within("commands", index, text)


def _wrong_in(command: Command, model: Model, output: Folder) -> Iterator[Problem]:
    if isinstance(command, Dispatch) and command.dispatchable not in model.declared_dispatchables:
        text = _unknown("dispatchable", command.dispatchable, model.declared_dispatchables)
        yield Problem(text, "unknown_dispatchable", ("dispatchable",))
    yield from _unknown_resources(command.resources(), model)
    if isinstance(command, WriteFile):
        try:
            parts_below(output, command.target)
        except ModelError as error:
            yield Problem(str(error), "output_path").below("targetPath", "targetPath")
    needs_type = isinstance(command, Print) or (
        isinstance(command, WriteFile) and (command.npy or command.picture)
    )
    if needs_type:
        resource = model.resources.get(next(command.resources()))
        if resource is not None and resource.data_type is None:
            text = f"{words('resources', resource.name)} needs an 'initialValuesDataType' for this."
            yield Problem(text, "missing_data_type", ("resource",))


def _unknown_resources(names: Iterable[str], model: Model) -> Iterator[Problem]:
    for name in names:
        if name not in model.declared_resources:
            text = _unknown("resource", name, model.declared_resources)
            yield Problem(text, "unknown_resource")


def _unknown(what: str, name: str, known: Collection[str]) -> str:
    return f"Unknown {what} {short_repr(name)}{_json.or_similar(name, known)}"


class Target(NamedTuple):
    """File that a command writes."""

    at: int
    command: WriteFile
    place: Place


@dataclass(frozen=True)
class Checked:
    """Dispatchable, and the rules that it breaks on a device."""

    dispatchable: Dispatchable
    device: Device

    @cached_property
    def violations(self) -> list[Violation]:
        """Rules that the dispatchable breaks."""
        return self.dispatchable.desc.violations(self.device.feature_level)

    @cached_property
    def lowest(self) -> FeatureLevel | None:
        """Lowest feature level that accepts the dispatchable, or None when none does."""
        return self.dispatchable.desc.minimum_level()

    @cached_property
    def observed(self) -> list[str]:
        """List what DirectML accepts of the dispatchable although a page forbids it."""
        found = self.dispatchable.desc.deviations(self.device.feature_level)
        return [f"{item.accepted} ({item.evidence})" for item in found]

    def compile(self) -> CompiledOperator | CompiledGraph:
        """Compile the dispatchable, which breaks no rule.

        Raises
        ------
        ModelError
            The device has no kernel for it.
        """
        desc, allows_half = self.dispatchable.desc, self.dispatchable.allows_half
        try:
            if isinstance(desc, GraphOperator):
                return desc.compile(self.device, allow_half_precision=allows_half)
            operator = self.device.create_operator(desc)
            return operator.compile(allow_half_precision=allows_half)
        except MissingKernelError as error:
            text = (
                f"{words('dispatchables', self.dispatchable.name)} ({error.operator}): no "
                f"{error.backend} kernel; --device reference runs it."
            )
            location = ("dispatchables", self.dispatchable.name)
            raise ModelError(Problem(text, "missing_kernel", location)) from error

    def text(self) -> str:
        """Describe whether it is accepted, and if not, why; lines but the first are indented."""
        desc, level = self.dispatchable.desc, self.device.feature_level
        has = isinstance(desc, GraphOperator) and has_constants(desc.graph)
        inputs = f" (below {CONSTANTS_SINCE}, constants count as inputs)" if has else ""
        return "\n  ".join(
            (
                f"{words('dispatchables', self.dispatchable.name)} ({desc.NAME}): "
                f"{'refused' if self.violations else 'accepted'} at feature level {level}",
                *map(str, self.violations),
                *(f"Accepted by DirectML, not on its page: {text}" for text in self.observed),
                f"Lowest feature level that accepts it: {self.lowest}{inputs}"
                if self.lowest
                else "No feature level accepts it",
            )
        )

    def as_json(self) -> dict[str, Any]:
        """Describe it as JSON."""
        return {
            "name": self.dispatchable.name,
            "operator": self.dispatchable.desc.NAME,
            "accepted": not self.violations,
            "minimum_feature_level": None if self.lowest is None else self.lowest.suffix,
            "observed_deviations": self.observed,
            "violations": [
                {
                    "path": item.path,
                    "rule": item.rule,
                    "got": str(item.got),
                    "code": item.code,
                    "accepted": item.accepted,
                    "location": self._pointer(item.path),
                }
                for item in self.violations
            ],
        }

    def _pointer(self, path: str) -> str:
        """Return the location in the model of a path in the operator."""
        below = members(path.removeprefix(f"{self.dispatchable.desc.NAME}."))
        return pointer(("dispatchables", self.dispatchable.name, *self.dispatchable.within, *below))


def run_problems(
    model: Model, limits: Limits, device: Device, refused: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Find everything that would stop a run of parts that have been read and are not refused."""
    wrong = [*find_binding_problems(model, refused)]
    yield from wrong
    yield from _memory_problems(model, limits, device, refused)
    if fits(model, limits) and not wrong:
        yield from _overlaps(model, refused)
    yield from _target_problems(model, limits)


def fits(model: Model, limits: Limits) -> bool:
    """Return whether the resources together are within the memory limit."""
    return sum(resource.size for resource in model.resources.values()) <= limits.memory_limit


def find_binding_problems(model: Model, refused: frozenset[str] = frozenset()) -> Iterator[str]:
    """Find wrong bindings; of refused operators, those that have a wrong number of resources."""
    for name, dispatchable in model.dispatchables.items():
        resources = {} if name in refused else model.resources
        for problem in binding_problems(
            dispatchable.desc, dispatchable.bindings, resources, initial=True
        ):
            yield within("dispatchables", name, problem, "binding")
    for index, command, dispatchable in _dispatches(model, frozenset()):
        resources = {} if dispatchable.name in refused else model.resources
        for problem in binding_problems(
            dispatchable.desc, command.bindings, resources, initial=False
        ):
            yield within("commands", index, problem, "binding")


def binding_problems(
    desc: Descriptor | GraphOperator,
    bindings: Bindings,
    resources: Mapping[str, Resource],
    initial: bool,
) -> Iterator[str]:
    """Find wrong bindings to a descriptor, at initialisation or at dispatch.

    Names that are no bind point are warned of when the model is read, unless a tensor has no
    resource: then its problem has the names.
    """
    if isinstance(desc, GraphOperator) and not desc.bind_points():
        return  # of a refused graph, nothing is known of the tensors
    meant = _misspelled(desc, bindings, initial)
    for info in desc.tensor_fields():
        sources = bindings.get(info.name, ())
        if is_owned(desc, info) is not initial:
            if sources:
                yield (
                    f"Bind point '{info.name}': Expected no resource, because it is "
                    f"{'not ' if initial else ''}OWNED_BY_DML; "
                    f"bind it in {'a dispatch command' if initial else 'its dispatchable'}."
                )
            continue
        tensors = [*desc.paths(info)]
        if len(sources) != len(tensors):
            near = meant.get(info.name)
            bound = ", ".join(map(short_repr, islice(bindings, _MOST_NAMES))) or "none"
            hint = f"bindings: {bound}" if near is None else f"there is {short_repr(near)}"
            yield (
                f"Bind point '{info.name}': Expected "
                f"{counted(len(tensors), 'resource')}, got {len(sources)} ({hint})."
            )
            continue
        for (path, tensor), source in zip(tensors, sources, strict=True):
            resource = resources.get(source.name)
            if resource is None:
                continue  # `load_model` reports it
            try:
                _check_range(tensor, source, resource)
            except ModelError as error:
                yield f"Bind point '{path}': {error}"


def _misspelled(
    desc: Descriptor | GraphOperator, bindings: Bindings, initial: bool
) -> Mapping[str, str]:
    """Find names that are no bind point, by the point without a resource that they resemble."""
    points = {info.name for info in desc.tensor_fields()}
    unknown = islice((name for name in bindings if name not in points), _MOST_NAMES)
    missing = [info.name for info in points_bound(desc, initial) if info.name not in bindings]
    return {_json.nearest(name, missing[:_MOST_NAMES]): name for name in unknown}


def _check_range(tensor: TensorDesc, source: Source, resource: Resource) -> None:
    start = source.start(resource)
    element = tensor.storage.data_type.element_size
    if start % element:
        raise ModelError(
            f"Expected an offset in resource {short_repr(source.name)} that is a multiple of "
            f"{element} bytes ({tensor.data_type}), got {start}."
        )
    alignment = tensor.guaranteed_base_offset_alignment
    if alignment and start % alignment:
        raise ModelError(
            f"Expected an offset in resource {short_repr(source.name)} that is a multiple of "
            f"{alignment} bytes (GuaranteedBaseOffsetAlignment), got {start}."
        )
    available = resource.size - start
    needed = tensor.total_tensor_size_in_bytes
    if needed == tensor.minimum_size_in_bytes:
        needed = elements_size(tensor)  # the last bytes may be missing where they only round up
    if available < needed:
        raise ModelError(
            f"Expected at least {needed} bytes of resource {short_repr(source.name)} from byte "
            f"{start} on, got {available}."
        )


def targets(model: Model, limits: Limits) -> Iterator[Target]:
    """List the files that the commands of a model write, in order.

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
            continue  # `load_model` reports it
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
        if resource.data_type is not None:  # `load_model` reports others
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
