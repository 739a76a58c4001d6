"""Reading a model: its text, its parts, and a check of every reference."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeVar

from anydml.core import _json
from anydml.core._json import Fields, short_repr
from anydml.core.errors import AnyDMLError, ModelError
from anydml.core.file_kinds import is_flatbuffer, kind_of
from anydml.core.problems import Problem
from anydml.graphs.desc import GraphDesc
from anydml.graphs.serialized import graph_from_bytes
from anydml.models.commands import Command, Dispatch, Print, WriteFile, read_command
from anydml.models.dispatchables import (
    Dispatchable,
    Source,
    is_owned,
    read_dispatchable,
    referenced_resources,
)
from anydml.models.files import open_file, system_reason
from anydml.models.graphs import GraphOperator, constants_in, data_of_inputs
from anydml.models.json_text import parse
from anydml.models.locations import within, words
from anydml.models.paths import Folder, Limits, model_name, output_folder, parts_below
from anydml.models.resources import Resource, read_resource
from anydml.models.unread_members import find_unread_members
from anydml.ops._fields import Role

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
    return _without_problems(read_model(path, limits))


def read_model(path: str | Path, limits: Limits | None = None) -> Model:
    """Read a model; parts that are wrong are left out and reported in ``problems``.

    The model of a file of one graph, serialized or as JSON, runs it and prints its outputs.

    Raises
    ------
    ModelError
        The file cannot be read, or is not a JSON object with the three members of a model.
    """
    limits = limits or Limits()
    document = _document(path, limits)
    folder = _folder_of(path, limits)
    if isinstance(document, GraphDesc):
        return _model_of(document, _name_of(path), folder, limits)
    return _read_model(document, _name_of(path), folder, limits)


def load_model_or_graph(path: str | Path, limits: Limits | None = None) -> Model | GraphDesc:
    """Read a model or a graph: a serialized one, or JSON whose nodes are a member ``Nodes``.

    Raises
    ------
    ModelError
        As `load_model` does.
    """
    limits = limits or Limits()
    document = _document(path, limits)
    if isinstance(document, GraphDesc):
        return document
    return _without_problems(
        _read_model(document, _name_of(path), _folder_of(path, limits), limits)
    )


def _document(path: str | Path, limits: Limits) -> Fields | GraphDesc:
    """What is in a file or comes from standard input: a JSON object, or a graph."""
    is_file = str(path) != STANDARD_INPUT
    data = _text(Path(path), limits) if is_file else _standard_input(limits)
    if is_flatbuffer(data):
        folder = _folder_of(path, limits)
        find = (
            (lambda name: None) if folder is None else constants_in(folder, (), limits.memory_limit)
        )
        return graph_from_bytes(data, find)
    document = _parsed(data)
    return GraphDesc.from_json(document) if "Nodes" in document else document


def _model_of(graph: GraphDesc, name: str, folder: Folder | None, limits: Limits) -> Model:
    """A model with a graph, resources of the inputs' files, and commands that run it.

    The outputs are printed. Of a graph that breaks rules there is nothing else.
    """
    operator = GraphOperator(graph)
    owned: dict[str, tuple[Source, ...]] = {}
    bound: dict[str, tuple[Source, ...]] = {}
    for info in operator.bind_points():
        (owned if is_owned(operator, info) else bound)[info.name] = (Source(info.name),)
    found, wrong = data_of_inputs(operator, folder)
    problems = _Collected()
    problems.take(wrong)
    resources = _parse_section(
        found,
        "resources",
        lambda name, value: read_resource(name, value, folder, limits.memory_limit),
        problems,
    )
    _check_memory(resources, limits, problems)
    dispatchables = {name: Dispatchable(name, operator, owned)}
    commands: list[Command] = []
    if bound and not wrong:
        outputs = (name for name, _, _ in operator.tensors(Role.OUTPUT))
        commands = [Dispatch(name, bound), *(Print(name, False) for name in outputs)]
    return Model(
        resources, dispatchables, dict(enumerate(commands)), problems.all(), (), name, limits
    )


def model_from_text(text: bytes, name: str, limits: Limits | None = None) -> Model:
    """The model that a JSON text describes; it reads files in `Limits.input_dir` only.

    Raises
    ------
    ModelError
        Something in it is wrong: all of that at once.
    """
    limits = limits or Limits()
    folder = None if limits.input_dir is None else Folder.of(limits.input_dir)
    return _without_problems(_read_model(_parsed(text), name, folder, limits))


def _without_problems(model: Model) -> Model:
    if model.problems:
        raise ModelError(*model.problems)
    return model


def _folder_of(path: str | Path, limits: Limits) -> Folder | None:
    """Where a model reads files: in the folder that the limits name, else beside itself."""
    if limits.input_dir is not None:
        return Folder.of(limits.input_dir)
    return None if str(path) == STANDARD_INPUT else Folder.of(Path(path).parent)


def _name_of(path: str | Path) -> str:
    return "stdin" if str(path) == STANDARD_INPUT else model_name(Path(path))


def _read_model(document: Fields, name: str, folder: Folder | None, limits: Limits) -> Model:
    if "Nodes" in document and "commands" not in document:
        raise ModelError(
            "Expected a JSON model, got a graph (a member 'Nodes'). `anydml show` draws it; to "
            "check and run it, pass GraphDesc.from_json(...) to Device.compile_graph."
        )
    faults = _json.Faults()
    resources = faults.field(document, "resources", _json.json_object)
    dispatchables = faults.field(document, "dispatchables", _json.json_object)
    command_list = faults.field(document, "commands", _json.json_array)
    faults.finish()
    commands = dict(enumerate(command_list))
    problems = _Collected()
    read_resources = _parse_section(
        resources,
        "resources",
        lambda name, value: read_resource(name, value, folder, limits.memory_limit),
        problems,
    )
    _check_memory(read_resources, limits, problems)
    read_dispatchables = _parse_section(
        dispatchables,
        "dispatchables",
        lambda name, value: read_dispatchable(name, value, folder, limits.memory_limit),
        problems,
    )
    read_commands = _parse_section(
        commands, "commands", lambda index, value: read_command(value), problems
    )
    output = output_folder(name, limits)
    problems.take(_unknown_sources(read_dispatchables, resources))
    for index, command in read_commands.items():
        found = _wrong_in(command, resources, dispatchables, read_resources, output)
        problems.take(within("commands", index, problem) for problem in found)
    warnings = _Collected()
    warnings.take(find_unread_members(document, read_resources, read_dispatchables, read_commands))
    return Model(
        read_resources, read_dispatchables, read_commands, problems.all(), warnings.all(), name,
        limits,
    )  # fmt: skip


class _Collected:
    """Problems or warnings; only the first of very many are kept."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self.full = False

    def take(self, texts: Iterable[str]) -> None:
        """Keep as many as are reported; further ones, whose suggestions take time, are not made."""
        for text in texts if not self.full else ():
            if len(self._kept) == _json.MOST_REPORTED:
                self.full = True
                return
            self._kept.append(text)

    def all(self) -> tuple[str, ...]:
        return (*self._kept, *(["There are more."] if self.full else []))


def _text(path: Path, limits: Limits) -> bytes:
    with open_file(path) as file:
        return _limited(file, limits)


def _standard_input(limits: Limits) -> bytes:
    if sys.stdin is None:
        raise ModelError("Standard input is closed.")
    try:
        return _limited(sys.stdin.buffer, limits)
    except OSError as error:  # a folder, say
        raise ModelError(f"Standard input cannot be read: {system_reason(error)}.") from error


def _limited(file: BinaryIO, limits: Limits) -> bytes:
    # In pieces: a read allocates the full requested size, whatever the file's length.
    data = bytearray()
    limit = limits.text_limit
    while piece := file.read(_PIECE):
        if not data and is_flatbuffer(piece):
            limit = limits.memory_limit
        data += piece
        if len(data) > limit:
            _refuse_others(bytes(data), complete=False)
            raise ModelError(
                f"Expected a model of at most {limit} bytes (set by --memory-limit), "
                "got a larger one."
            )
    return bytes(data)


def _parsed(data: bytes) -> Fields:
    try:
        return parse(data)
    except ModelError:
        _refuse_others(data, complete=True)
        raise


def _refuse_others(data: bytes, complete: bool) -> None:
    kind = kind_of(data, complete)
    if kind is not None:
        raise ModelError(f"Expected a JSON model of DxDispatch, got {kind}.")


def _parse_section(
    records: Mapping[Any, Any],
    section: str,
    parse: Callable[[Any, Any], T],
    problems: _Collected,
) -> dict[Any, T]:
    found = {}
    for key, value in records.items():
        if problems.full:
            break
        try:
            found[key] = parse(key, value)
        except AnyDMLError as error:
            problems.take(within(section, key, item) for item in _json.problems_of(error))
    return found


def _check_memory(resources: Mapping[str, Resource], limits: Limits, problems: _Collected) -> None:
    total = sum(resource.size for resource in resources.values())
    if total > limits.memory_limit:
        text = (
            f"Resources: Expected at most {limits.memory_limit} bytes together (--memory-limit), "
            f"got {total}."
        )
        problems.take([Problem(text, "memory_limit", ("resources",))])


def _unknown(what: str, name: str, known: Mapping[str, Any]) -> str:
    return f"Unknown {what} {short_repr(name)}{_json.or_similar(name, known)}"


def _unknown_sources(
    dispatchables: Mapping[str, Dispatchable], resources: Mapping[str, Any]
) -> Iterator[str]:
    for key, dispatchable in dispatchables.items():
        for source in referenced_resources(dispatchable.bindings):
            if source not in resources:
                text = _unknown("resource", source, resources)
                yield within("dispatchables", key, text, "unknown_resource")


def _wrong_in(
    command: Command,
    resources: Mapping[str, Any],
    dispatchables: Mapping[str, Any],
    resources_read: Mapping[str, Resource],
    output: Folder,
) -> Iterator[str]:
    if isinstance(command, Dispatch) and command.dispatchable not in dispatchables:
        text = _unknown("dispatchable", command.dispatchable, dispatchables)
        yield Problem(text, "unknown_dispatchable", ("dispatchable",))
    for name in command.resources():
        if name not in resources:
            yield Problem(_unknown("resource", name, resources), "unknown_resource")
    if isinstance(command, WriteFile):
        try:
            parts_below(output, command.target)
        except ModelError as error:
            text = f"Error parsing field 'targetPath': {error}"
            yield Problem(text, "output_path", ("targetPath",))
    needs_type = isinstance(command, Print) or (
        isinstance(command, WriteFile) and (command.npy or command.picture)
    )
    if needs_type:
        resource = resources_read.get(next(command.resources()))
        if resource is not None and resource.data_type is None:
            text = f"{words('resources', resource.name)} needs an 'initialValuesDataType' for this."
            yield Problem(text, "missing_data_type", ("resource",))
