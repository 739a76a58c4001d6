"""A model as it stands in its file: read whole, with every reference checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from anydml import _json
from anydml.errors import AnyDMLError, ModelError
from anydml.models.commands import Command, Dispatch, Print, WriteFile, read_command
from anydml.models.dispatchables import Dispatchable, named, read_dispatchable
from anydml.models.paths import Limits, find_target, open_source
from anydml.models.resources import Resource, read_resource
from anydml.models.text import parse

T = TypeVar("T")


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
    """

    resources: Mapping[str, Resource]
    dispatchables: Mapping[str, Dispatchable]
    commands: Mapping[int, Command]
    problems: tuple[str, ...]


def load_model(path: str | Path, limits: Limits | None = None) -> Model:
    """Read a model; nothing is run, and no buffer is allocated.

    Parameters
    ----------
    path : str or Path
        The JSON file.
    limits : Limits, optional
        What the model may read, write and allocate.

    Raises
    ------
    ModelError
        The file cannot be read, or something in it is wrong: all of that at once.
    """
    model = read_model(path, limits)
    if model.problems:
        raise ModelError("\n".join(model.problems))
    return model


def read_model(path: str | Path, limits: Limits | None = None) -> Model:
    """The same, but parts that are wrong are left out and told in ``problems``.

    Raises
    ------
    ModelError
        The file cannot be read, or is no JSON object with the three members of a model.
    """
    limits = limits or Limits()
    path = Path(path)
    try:
        return _read(parse(_text(path, limits)), path.absolute().parent, limits)
    except RecursionError as error:
        raise ModelError("JSON parse error: nested too deeply.") from error


def _read(document: Mapping[str, Any], model_dir: Path, limits: Limits) -> Model:
    resources = _json.field(document, "resources", _json.json_object)
    dispatchables = _json.field(document, "dispatchables", _json.json_object)
    commands = dict(enumerate(_json.field(document, "commands", _json.json_array)))
    problems: list[str] = []
    read_resources = _each(
        resources,
        "Resource {!r}",
        lambda name, value: read_resource(name, value, model_dir, limits),
        problems,
    )
    _check_memory(read_resources, limits, problems)
    read_dispatchables = _each(dispatchables, "Dispatchable {!r}", read_dispatchable, problems)
    read_commands = _each(
        commands, "Command at index {}", lambda index, value: read_command(value), problems
    )
    for name, dispatchable in read_dispatchables.items():
        problems += [
            f"Dispatchable {name!r}: names resource {source!r}, which the model lacks."
            for source in named(dispatchable.bindings)
            if source not in resources
        ]
    for index, command in read_commands.items():
        problems += [
            f"Command at index {index}: {problem}"
            for problem in _wrong_in(command, resources, dispatchables, read_resources, limits)
        ]
    return Model(read_resources, read_dispatchables, read_commands, tuple(problems))


def _text(path: Path, limits: Limits) -> bytes:
    with open_source(path.resolve()) as file:
        data = file.read(limits.text_limit + 1)
    if len(data) > limits.text_limit:
        raise ModelError(
            f"Expected a model of at most {limits.text_limit} bytes (set by --memory-limit), "
            "got a larger one."
        )
    return data


def _each(
    given: Mapping[Any, Any],
    where: str,
    read: Callable[[Any, Any], T],
    problems: list[str],
) -> dict[Any, T]:
    found = {}
    for key, value in given.items():
        try:
            found[key] = read(key, value)
        except AnyDMLError as error:
            problems.append(f"{where.format(key)}: {error}")
    return found


def _check_memory(resources: Mapping[str, Resource], limits: Limits, problems: list[str]) -> None:
    total = sum(resource.size for resource in resources.values())
    if total > limits.memory_limit:
        problems.append(
            f"Resources: Expected at most {limits.memory_limit} bytes together (--memory-limit), "
            f"got {total}."
        )


def _wrong_in(
    command: Command,
    resources: Mapping[str, Any],
    dispatchables: Mapping[str, Any],
    read: Mapping[str, Resource],
    limits: Limits,
) -> Iterator[str]:
    if isinstance(command, Dispatch) and command.dispatchable not in dispatchables:
        yield f"dispatches {command.dispatchable!r}, which the model lacks."
    for name in command.resources():
        if name not in resources:
            yield f"names resource {name!r}, which the model lacks."
    if isinstance(command, WriteFile):
        try:
            find_target(command.target, limits)
        except ModelError as error:
            yield f"Error parsing field 'targetPath': {error}"
    needs_type = isinstance(command, Print) or (isinstance(command, WriteFile) and command.npy)
    if needs_type:
        resource = read.get(next(command.resources()))
        if resource is not None and resource.data_type is None:
            yield f"Resource {resource.name!r} needs an 'initialValuesDataType' for this."
