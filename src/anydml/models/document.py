"""Documents: what a model or a graph is read from, and where in it a problem is.

A text is JSON with comments and trailing commas, and nothing else beyond JSON. Most models are
plain JSON, so the standard parser comes first; only when it refuses are comments and trailing
commas replaced by blanks (which keeps the line and column of an error) and the rest parsed again. A
graph may be serialized instead.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, Final

from anydml.core._json import Fields, json_shown, or_similar, short_repr
from anydml.core.errors import ModelError
from anydml.core.file_kinds import is_flatbuffer, kind_of
from anydml.core.problems import Problem
from anydml.graphs.desc import GraphDesc
from anydml.graphs.serialized import DATA_SUFFIX, Constants, graph_from_bytes
from anydml.models.files import Folder, Limits, Place, open_file, system_reason

STANDARD_INPUT: Final = "-"
"""Stands for standard input in place of a model's path."""

_PIECE: Final = 2**20
_CONTAINERS: Final = {Fields, list}
_WORDS: Final = {
    "resources": "Resource {}",
    "dispatchables": "Dispatchable {}",
    "commands": "Command at index {}",
}

# A string or comment that is not closed runs to the end of the text: each character is looked at
# once, whatever the text.
_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_COMMENTS: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# A comma behind an opening bracket, a colon or a comma is not trailing: the parser rejects it.
_COMMAS: Final = re.compile(rf"{_STRING}|[\[{{:,]\s*,|,(?=\s*[\]}}])", re.DOTALL)
_EXCEPT_NEWLINES: Final = re.compile(r"[^\n]")
# Models need 10. Python's own limits, between 1,000 and 10,000, differ from version to version.
_DEEPEST: Final = 100
# What the parser refuses without saying where.
_CONSTANTS: Final = re.compile(rf"{_STRING}|NaN|-?Infinity", re.DOTALL)
_NUMBERS: Final = re.compile(rf"{_STRING}|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.DOTALL)
_BRACKETS: Final = re.compile(rf"{_STRING}|[\[\]{{}}]", re.DOTALL)
_EXCEPT_BRACKETS: Final = re.compile(rf"{_STRING}|[^\[\]{{}}\"]+", re.DOTALL)

# Messages of the parser that end with the position.
_PARSER_WORDS: Final = {
    "Unterminated string starting at": "a string that is not closed",
    "Invalid control character at": "a control character in a string",
}


def read_document(path: str | Path, limits: Limits) -> Fields | GraphDesc:
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
            _refuse_others(bytes(data), complete=False)
            raise ModelError(
                f"Expected a model of at most {limit} bytes (set by --memory-limit), "
                "got a larger one."
            )
    return bytes(data)


def _refuse_others(data: bytes, complete: bool) -> None:
    kind = kind_of(data, complete)
    if kind is not None:
        raise ModelError(f"Expected a JSON model of DxDispatch, got {kind}.")


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


def parse(data: bytes) -> Fields:
    """Read the object that a text describes, and in it all objects as `Fields`.

    Raises
    ------
    ModelError
        Not UTF-8, not JSON with comments and trailing commas, nested too deeply, or not an object;
        the message says what the file is instead, if that is known.
    """
    try:
        return _parsed(data)
    except ModelError:
        _refuse_others(data, complete=True)
        raise


def _parsed(data: bytes) -> Fields:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode()
        expected = "UTF-8 text" if "{" in before else "UTF-8 text, or a serialized graph"
        wrong = f"Expected {expected}, got byte 0x{error.object[error.start]:02X}"
        raise _error(before, len(before), wrong) from error
    try:
        try:
            value = _json(text)
        except (json.JSONDecodeError, RecursionError):
            text = plain(text)
            _refuse_depth(text)
            value = _json(text)
        else:
            _refuse_depth(text)
    except ModelError:
        raise
    except json.JSONDecodeError as error:
        raise _error(text, error.pos, _PARSER_WORDS.get(error.msg, error.msg)) from error
    except _ConstantError as error:
        (name,) = error.args
        at = next((at for at, token in _tokens(_CONSTANTS, text) if token == name), 0)
        words = '"nan", "inf", "-inf"'
        wrong = f"{name} is not JSON; write it as a string ({words})"
        raise _error(text, at, wrong) from error
    except ValueError as error:
        limit = sys.get_int_max_str_digits()
        numbers = _tokens(_NUMBERS, text)
        long = (at for at, token in numbers if token.isdecimal() and len(token) > limit)
        raise _error(text, next(long, 0), f"an integer of more than {limit} digits") from error
    if not isinstance(value, Fields):
        raise ModelError(f"Expected an object, got {json_shown(value)}.")
    return value


def plain(text: str) -> str:
    """Replace comments and trailing commas, outside strings, by blanks."""
    return _COMMAS.sub(_without_trailing, _COMMENTS.sub(_without_comment, text))


def _without_comment(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == '"':
        return token
    if token.startswith("/*") and (len(token) < 4 or not token.endswith("*/")):
        raise _error(match.string, match.start(), "a comment that is not closed")
    return _EXCEPT_NEWLINES.sub(" ", token)


def _without_trailing(match: re.Match[str]) -> str:
    return " " if match[0] == "," else match[0]


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=Fields, parse_constant=_refuse_constant)


class _ConstantError(Exception):
    """Name of a number that JSON does not have."""


def _refuse_constant(name: str) -> Any:
    raise _ConstantError(name)


def _error(text: str, at: int, wrong: str) -> ModelError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    text = f"JSON parse error at line {line}, column {column}: {wrong}."
    return ModelError(Problem(text, "invalid_json"))


def _tokens(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """Find the positions and texts of a pattern, outside strings and comments."""
    for match in pattern.finditer(plain(text)):
        if not match[0].startswith('"'):
            yield match.start(), match[0]


def _refuse_depth(text: str) -> None:
    """Raise if the brackets of a text without comments are nested too deeply."""
    brackets = _EXCEPT_BRACKETS.sub("", text)
    if max(_depths(brackets), default=0) > _DEEPEST:
        found = [*_tokens(_BRACKETS, text)]
        depths = _depths(bracket for _, bracket in found)
        at = next(at for (at, _), depth in zip(found, depths, strict=True) if depth > _DEEPEST)
        raise _error(text, at, f"nested more than {_DEEPEST} deep")


def _depths(brackets: Iterable[str]) -> Iterator[int]:
    return accumulate(1 if bracket in "[{" else -1 for bracket in brackets)


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
