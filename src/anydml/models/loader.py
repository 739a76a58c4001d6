"""A model as it stands in its file: read whole, with every reference checked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from anydml import _json
from anydml._json import Fields, shown
from anydml.errors import AnyDMLError, ModelError
from anydml.models.commands import Command, Dispatch, Print, WriteFile, read_command
from anydml.models.dispatchables import Dispatchable, named, read_dispatchable
from anydml.models.file_kinds import kind_of
from anydml.models.files import opened, system_reason
from anydml.models.paths import Folder, Limits, model_name, output_folder, parts_below
from anydml.models.resources import Resource, read_resource
from anydml.models.text import parse
from anydml.models.warnings import unread

T = TypeVar("T")

_PIECE: Final = 2**20
STANDARD_INPUT: Final = "-"
"""What stands for standard input in place of a model's path."""


@dataclass(frozen=True)
class Model:
    """Resources, dispatchables and commands that have been read.

    Attributes
    ----------
    resources, dispatchables : dict
        By the model's names, in its order.
    commands : dict of int to command
        By index.
    problems : tuple of str
        What could not be read, and which references lead nowhere; empty for a model that
        `load_model` returns.
    warnings : tuple of str
        What does nothing: members that nothing reads, bindings without a bind point, members that
        come twice.
    name : str
        The file's name without ``.json``, after which its output folder is named.
    limits : Limits
        With which it has been read.
    """

    resources: Mapping[str, Resource]
    dispatchables: Mapping[str, Dispatchable]
    commands: Mapping[int, Command]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]
    name: str
    limits: Limits


def load_model(path: str | Path, limits: Limits | None = None) -> Model:
    """Read a model; nothing is run, and no buffer is allocated.

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
    model = read_model(path, limits)
    if model.problems:
        raise ModelError(*model.problems)
    return model


def read_model(path: str | Path, limits: Limits | None = None) -> Model:
    """The same, but parts that are wrong are left out and told in ``problems``.

    Raises
    ------
    ModelError
        The file cannot be read, or is no JSON object with the three members of a model.
    """
    limits = limits or Limits()
    if str(path) == STANDARD_INPUT:
        folder = None if limits.input_dir is None else Folder.of(limits.input_dir)
        return _read(_parsed(_standard_input(limits)), "stdin", folder, limits)
    path = Path(path)
    document = _parsed(_text(path, limits))
    return _read(document, model_name(path), Folder.of(limits.input_dir or path.parent), limits)


def _read(document: Fields, name: str, folder: Folder | None, limits: Limits) -> Model:
    faults = _json.Faults()
    resources = faults.field(document, "resources", _json.json_object)
    dispatchables = faults.field(document, "dispatchables", _json.json_object)
    listed = faults.field(document, "commands", _json.json_array)
    faults.finish()
    commands = dict(enumerate(listed))
    problems = _Told()
    read_resources = _each(
        resources,
        "Resource {}",
        lambda name, value: read_resource(name, value, folder, limits.memory_limit),
        problems,
    )
    _check_memory(read_resources, limits, problems)
    read_dispatchables = _each(dispatchables, "Dispatchable {}", read_dispatchable, problems)
    read_commands = _each(
        commands, "Command at index {}", lambda index, value: read_command(value), problems
    )
    for key, dispatchable in read_dispatchables.items():
        for source in named(dispatchable.bindings):
            if source not in resources:
                problems.tell(
                    f"Dispatchable {shown(key)}: names resource {_lacking(source, resources)}"
                )
    output = output_folder(name, limits)
    for index, command in read_commands.items():
        for problem in _wrong_in(command, resources, dispatchables, read_resources, output):
            problems.tell(f"Command at index {index}: {problem}")
    found = unread(document, read_resources, read_dispatchables, read_commands)
    warnings = _Told()
    for warning in islice(found, _json.MOST_TOLD + 1):
        warnings.tell(warning)
    return Model(
        read_resources, read_dispatchables, read_commands, problems.all(), warnings.all(), name,
        limits,
    )  # fmt: skip


class _Told:
    """Problems or warnings, of which the first are kept."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._more = False

    def tell(self, text: str) -> None:
        if len(self._kept) < _json.MOST_TOLD:
            self._kept.append(text)
        else:
            self._more = True

    def all(self) -> tuple[str, ...]:
        return (*self._kept, *(["There are more."] if self._more else []))


def _text(path: Path, limits: Limits) -> bytes:
    with opened(path) as file:
        return _limited(file, limits)


def _standard_input(limits: Limits) -> bytes:
    if sys.stdin is None:
        raise ModelError("Standard input is closed.")
    try:
        return _limited(sys.stdin.buffer, limits)
    except OSError as error:  # a folder, say
        raise ModelError(f"Standard input cannot be read: {system_reason(error)}.") from error


def _limited(file: BinaryIO, limits: Limits) -> bytes:
    # In pieces: a read allocates all that it is asked for, whatever the file's length.
    data = bytearray()
    while piece := file.read(_PIECE):
        data += piece
        if len(data) > limits.text_limit:
            _refuse_others(bytes(data), whole=False)
            raise ModelError(
                f"Expected a model of at most {limits.text_limit} bytes (set by --memory-limit), "
                "got a larger one."
            )
    return bytes(data)


def _parsed(data: bytes) -> Fields:
    try:
        return parse(data)
    except ModelError:
        _refuse_others(data, whole=True)
        raise


def _refuse_others(data: bytes, whole: bool) -> None:
    kind = kind_of(data, whole)
    if kind is not None:
        raise ModelError(f"Expected a JSON model of DxDispatch, got {kind}.")


def _each(
    given: Mapping[Any, Any],
    where: str,
    read: Callable[[Any, Any], T],
    problems: _Told,
) -> dict[Any, T]:
    found = {}
    for key, value in given.items():
        try:
            found[key] = read(key, value)
        except AnyDMLError as error:
            for problem in _json.problems_of(error):
                problems.tell(f"{where.format(shown(key))}: {problem}")
    return found


def _check_memory(resources: Mapping[str, Resource], limits: Limits, problems: _Told) -> None:
    total = sum(resource.size for resource in resources.values())
    if total > limits.memory_limit:
        problems.tell(
            f"Resources: Expected at most {limits.memory_limit} bytes together (--memory-limit), "
            f"got {total}."
        )


def _lacking(name: str, known: Mapping[str, Any]) -> str:
    return f"{shown(name)}, which the model lacks{_json.or_similar(name, known)}"


def _wrong_in(
    command: Command,
    resources: Mapping[str, Any],
    dispatchables: Mapping[str, Any],
    read: Mapping[str, Resource],
    output: Folder,
) -> Iterator[str]:
    if isinstance(command, Dispatch) and command.dispatchable not in dispatchables:
        yield f"dispatches {_lacking(command.dispatchable, dispatchables)}"
    for name in command.resources():
        if name not in resources:
            yield f"names resource {_lacking(name, resources)}"
    if isinstance(command, WriteFile):
        try:
            parts_below(output, command.target)
        except ModelError as error:
            yield f"Error parsing field 'targetPath': {error}"
    needs_type = isinstance(command, Print) or (isinstance(command, WriteFile) and command.npy)
    if needs_type:
        resource = read.get(next(command.resources()))
        if resource is not None and resource.data_type is None:
            yield f"Resource {shown(resource.name)} needs an 'initialValuesDataType' for this."
