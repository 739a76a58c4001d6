"""Documents: what a model or a graph is read from, and where in it a problem is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from anydml.core._json import Fields, or_similar, short_repr
from anydml.core.errors import ModelError
from anydml.core.file_kinds import is_flatbuffer
from anydml.core.problems import Problem
from anydml.graphs.desc import GraphDesc
from anydml.graphs.serialized import DATA_SUFFIX, Constants, graph_from_bytes
from anydml.models.files import Folder, Limits, Place, open_file, system_reason
from anydml.models.positions import placed
from anydml.models.text import Text, parse, refuse_others

STANDARD_INPUT: Final = "-"
"""Stands for standard input in place of a model's path."""

_PIECE: Final = 2**20
_CONTAINERS: Final = {Fields, list}
_WORDS: Final = {
    "resources": "Resource {}",
    "dispatchables": "Dispatchable {}",
    "commands": "Command at index {}",
}


def read_document(path: str | Path, limits: Limits) -> Text | GraphDesc:
    """Read a JSON object or a serialized graph from a file or from standard input.

    Raises
    ------
    ModelError
        The file cannot be read, is neither, or is larger than the limits allow.
    """
    data = _standard_input(limits) if str(path) == STANDARD_INPUT else _file(Path(path), limits)
    if is_flatbuffer(data):
        return graph_from_bytes(data, _constants(folder_of(path, limits), (), limits.memory_limit))
    return parse(data)


def folder_of(path: str | Path, limits: Limits) -> Folder | None:
    """Return the folder that the limits name, else that of the file; None for standard input."""
    if limits.input_dir is not None:
        return Folder.of(limits.input_dir)
    return None if str(path) == STANDARD_INPUT else Folder.of(Path(path).parent)


def _file(path: Path, limits: Limits) -> bytes:
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
            refuse_others(bytes(data), complete=False)
            raise ModelError(
                f"Expected a model of at most {limit} bytes (set by --memory-limit), "
                "got a larger one."
            )
    return bytes(data)


def json_graph(document: Text) -> GraphDesc:
    """Read the graph that a JSON object describes.

    Raises
    ------
    ModelError
        Members are missing or wrong: all of them at once, with their lines and columns.
    """
    try:
        return GraphDesc.from_json(document)
    except ModelError as error:
        raise ModelError(*placed(error.problems, document.data)) from error


def read_graph(place: Place, memory_limit: int) -> GraphDesc:
    """Read the serialized graph at a place, with the data of its constants from files beside it.

    Raises
    ------
    ModelError
        It cannot be read, or takes more memory than the limit.
    """
    with place.open_file() as file:
        data = file.read(memory_limit + 1)
    if len(data) > memory_limit:
        raise ModelError(f"Expected at most {memory_limit} bytes (--memory-limit), got {place}.")
    return graph_from_bytes(data, _constants(place.folder, place.parts[:-1], memory_limit))


def _constants(folder: Folder | None, below: tuple[str, ...], memory_limit: int) -> Constants:
    """Return a reader of the constants' files, in a folder that `below` leads to from another."""
    taken = 0

    def read(name: str) -> bytes | None:
        nonlocal taken
        path = "/".join((*below, f"{name}{DATA_SUFFIX}"))
        place = None if folder is None else folder.find(path)
        if place is None:
            return None
        with place.open_file() as file:
            data = file.read(memory_limit - taken + 1)
        taken += len(data)
        if taken > memory_limit:
            raise ModelError(
                f"Expected at most {memory_limit} bytes of constants (--memory-limit), got more "
                f"with {place}."
            )
        return data

    return read


def words(section: str, key: str | int) -> str:
    """Name a part of a model in messages."""
    return _WORDS[section].format(key if isinstance(key, int) else short_repr(key))


def within(section: str, key: str | int, text: object, code: str = "invalid_value") -> Problem:
    """Make a problem of a part of a model: ``Dispatchable 'top': Expected …``.

    The code is for a text, or an error, that has none of its own.
    """
    problem = text if isinstance(text, Problem) else Problem(str(text), code)
    return problem.reworded(f"{words(section, key)}: {problem}", section, key)


def visible(name: str) -> str:
    """Escape the characters of a name that a terminal would act on."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()


def unread_members(where: str, top: Fields, is_read: bool) -> Iterator[str]:
    """Find members of an object, and of those in it, that nothing has read or that come twice.

    Parameters
    ----------
    where : str
        How messages name the object.
    top : Fields
        The object.
    is_read : bool
        Whether it could be read: otherwise it is not known what would have been.
    """
    yield from unread_names(where, top, is_read)
    way: list[str | int] = []
    pending = [_containers(top)]
    while pending:
        found = next(pending[-1], None)
        if found is None:
            pending.pop()
            del way[-1:]
            continue
        key, value = found
        way.append(key)
        pending.append(_containers(value))
        if isinstance(value, Fields) and (value.repeated or value.unread_names()):
            yield from unread_names(f"{where}: {_path(way)}", value, is_read)


def _containers(value: Any) -> Iterator[tuple[str | int, Any]]:
    """Find the objects and arrays in one, except those that nothing reads."""
    if isinstance(value, Fields):
        for name, item in value.items():
            if type(item) in _CONTAINERS and name in value.read:
                yield name, item
    elif not _CONTAINERS.isdisjoint(map(type, value)):
        for i, item in enumerate(value):
            if type(item) in _CONTAINERS:
                yield i, item


def _path(way: Iterable[str | int]) -> str:
    pieces = (f"[{key}]" if isinstance(key, int) else f".{short_repr(key)[1:-1]}" for key in way)
    return "".join(pieces).removeprefix(".")


def unread_names(
    where: str, value: Fields, is_read: bool, silent: Iterable[str] = ()
) -> Iterator[str]:
    """Find the members of one object alone; see `unread_members`."""
    for name in value.repeated:
        yield f"{where}: member {short_repr(name)} comes more than once; the last one counts."
    if is_read:
        for name in value.unread_names():
            if name not in silent:
                yield (
                    f"{where}: nothing reads member "
                    f"{short_repr(name)}{or_similar(name, value.read)}"
                )
