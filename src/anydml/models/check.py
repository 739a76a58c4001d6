"""Checks of a model that has been read: everything that would stop a run, before anything runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from anydml.core.program import Program
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
    Compile,
    Dispatchable,
    GraphOperator,
    Source,
    is_owned,
    points_bound,
    referenced_resources,
)
from anydml.models.positions import placed
from anydml.models.repairs import Changes, repairs
from anydml.models.resources import Resource
from anydml.models.text import parse
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import Role
from anydml.ops._registry import page_lines, page_of

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
    def _found(self) -> tuple[Sequence[Violation], Compile | None]:
        return self.dispatchable.check(self.device)

    @property
    def violations(self) -> Sequence[Violation]:
        """Rules that the dispatchable breaks."""
        return self._found[0]

    @cached_property
    def lowest(self) -> FeatureLevel | None:
        """Lowest feature level that accepts the dispatchable, or None when none does."""
        return self.dispatchable.desc.minimum_level()

    @cached_property
    def observed(self) -> list[str]:
        """List what DirectML accepts of the dispatchable although a page forbids it."""
        found = self.dispatchable.desc.deviations(self.device.feature_level)
        return [f"{item.accepted} ({item.evidence})" for item in found]

    @cached_property
    def repairs(self) -> Mapping[str, Changes]:
        """Changes that repair violations of an operator, by their paths."""
        desc = self.dispatchable.desc
        level = self.device.feature_level
        return repairs(desc, level) if isinstance(desc, Descriptor) else {}

    @cached_property
    def compiled(self) -> CompiledOperator | CompiledGraph:
        """The dispatchable, ready to run.

        Raises
        ------
        ModelError
            The dispatchable breaks rules, or the device has no kernel for it.
        """
        _, compile_it = self._found
        if compile_it is None:
            raise ModelError(self.text())
        try:
            return compile_it()
        except MissingKernelError as error:
            location = ("dispatchables", self.dispatchable.name)
            text = (
                f"{words(*location)} ({error.operator}): no {error.backend} kernel; "
                "--device reference runs it."
            )
            raise ModelError(Problem(text, "missing_kernel", location)) from error

    @cached_property
    def program(self) -> Program:
        """The program of the dispatchable, which breaks no rule."""
        try:
            return self.compiled.program
        except ModelError:  # without a kernel
            return self.dispatchable.desc.lower()

    def text(self) -> str:
        """Describe whether it is accepted, and if not, why; lines but the first are indented."""
        desc, level = self.dispatchable.desc, self.device.feature_level
        graph = self.dispatchable.graph
        has = graph is not None and has_constants(graph)
        inputs = f" (below {CONSTANTS_SINCE}, constants count as inputs)" if has else ""
        return "\n  ".join(
            (
                f"{words('dispatchables', self.dispatchable.name)} ({desc.NAME}): "
                f"{'refused' if self.violations else 'accepted'} at feature level {level}",
                *self._violation_lines(),
                *(f"Accepted by DirectML, not on its page: {text}" for text in self.observed),
                f"Lowest feature level that accepts it: {self.lowest}{inputs}"
                if self.lowest
                else "No feature level accepts it",
            )
        )

    def _violation_lines(self) -> Iterator[str]:
        tried: list[Changes] = []
        for item in self.violations:
            yield str(item)
            changes = self.repairs.get(item.path, ())
            if changes and changes not in tried:
                tried.append(changes)
                yield f"  try: {', '.join(map(str, changes))}"
        yield from page_lines(self.violations)

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
                    **item.as_json(),
                    "location": self._pointer(item.path),
                    "page": page_of(item.path),
                    "fix": [change.as_json() for change in self.repairs.get(item.path, ())],
                }
                for item in self.violations
            ],
        }

    def _pointer(self, path: str) -> str:
        """Return the location in the model of a path in the operator."""
        below = members(path.removeprefix(f"{self.dispatchable.desc.NAME}."))
        return pointer(("dispatchables", self.dispatchable.name, *self.dispatchable.within, *below))


class Checks:
    """Findings on a model that has been read, each fact once.

    Parameters
    ----------
    model : Model
        The model.
    device : Device
        What would run it.
    limits : Limits
        What it may read, write and allocate.
    """

    def __init__(self, model: Model, device: Device, limits: Limits) -> None:
        self.model = model
        self.device = device
        self.limits = limits
        self.checked = {name: Checked(d, device) for name, d in model.dispatchables.items()}

    def program(self, name: str) -> Program | None:
        """The program of a dispatchable; None for one that is not known or is refused."""
        checked = self.checked.get(name)
        return None if checked is None or checked.violations else checked.program

    @cached_property
    def fits(self) -> bool:
        """Whether the resources together are within the memory limit."""
        sizes = (resource.size for resource in self.model.resources.values())
        return sum(sizes) <= self.limits.memory_limit

    @cached_property
    def wrong_bindings(self) -> dict[str | int, list[str]]:
        """Wrong bindings of dispatchables and commands, by name and index.

        Of refused operators, those that have a wrong number of resources.
        """
        model = self.model
        found: dict[str | int, list[str]] = {}
        for name, item in model.dispatchables.items():
            found[name] = self._wrong(item, item.bindings, initial=True)
        for index, command, item in model.dispatches():
            found[index] = self._wrong(item, command.bindings, initial=False)
        return {key: problems for key, problems in found.items() if problems}

    def _wrong(self, item: Dispatchable, bindings: Bindings, initial: bool) -> list[str]:
        resources = {} if self.checked[item.name].violations else self.model.resources
        return [*binding_problems(item.desc, bindings, resources, initial)]


def run_problems(checks: Checks) -> Iterator[str]:
    """Find everything that would stop a run of parts that have been read and are not refused."""
    wrong = checks.wrong_bindings
    for key, problems in wrong.items():
        section = "commands" if isinstance(key, int) else "dispatchables"
        yield from (within(section, key, problem, "binding") for problem in problems)
    yield from _memory_problems(checks)
    if checks.fits and not wrong:
        yield from _overlaps(checks)
    yield from _target_problems(checks.model, checks.limits)


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
    if not desc.bind_points():
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


def _memory_problems(checks: Checks) -> Iterator[str]:
    # Strides can make much of a small resource: an operator keeps a copy of an owned input, with
    # all elements that its strides repeat, and may need one of another input while it runs.
    limit = checks.limits.memory_limit
    kept = sum(resource.size for resource in checks.model.resources.values())
    for name, dispatchable in checks.model.dispatchables.items():
        program, desc = checks.program(name), dispatchable.desc
        if program is None:
            continue
        passing = checks.device.backend.working_nbytes(program)
        for _, tensor, info in desc.tensors(Role.INPUT):
            packed = -(-tensor.element_count * tensor.data_type.bits // 8)
            if is_owned(desc, info):
                kept += packed
            else:
                passing += max(packed - elements_size(tensor), 0)
        if kept + passing > limit:
            text = (
                f"Expected at most {limit} bytes (--memory-limit) for resources, "
                "OWNED_BY_DML tensors, intermediate results and inputs whose strides repeat "
                f"elements, got {kept + passing}."
            )
            yield within("dispatchables", name, text, "memory_limit")
            return


def _overlaps(checks: Checks) -> Iterator[str]:
    for index, command, dispatchable in checks.model.dispatches():
        program = checks.program(dispatchable.name)
        if program is not None:
            try:
                _refuse_overlap(dispatchable, command.bindings, checks.model.resources, program)
            except AnyDMLError as error:
                yield within("commands", index, error, "overlap")


def _refuse_overlap(
    dispatchable: Dispatchable,
    bindings: Bindings,
    resources: Mapping[str, Resource],
    program: Program,
) -> None:
    bound = [item for item in dispatchable.bound(bindings) if not item.owned]
    written = {item.source.name for item in bound if item.info.role is Role.OUTPUT}
    times = Counter(item.source.name for item in bound)
    buffers = {
        # Memory that is allocated but never used: only its address counts.
        name: _reserved(resources[name])
        for name in written
        if times[name] > 1 and name in resources
    }
    sides: dict[Role, list[tuple[str, Array]]] = {Role.INPUT: [], Role.OUTPUT: []}
    for info, path, tensor, source, *_ in bound:
        if source.name in buffers:
            octets = buffers[source.name][source.start(resources[source.name]) :]
            # Nothing is written here; outputs that overlap themselves are the descriptor's fault.
            view = bind(path, tensor.storage, octets.data, output=False)
            sides[info.role].append((path, view))
    refuse_overlap(sides[Role.OUTPUT], sides[Role.INPUT], program.in_place())


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
