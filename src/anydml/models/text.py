"""Texts of models: JSON with comments and trailing commas, and nothing else beyond JSON.

Most models are plain JSON, so the standard parser comes first; only when it refuses are comments
and trailing commas replaced by blanks (which keeps the line and column of an error) and the rest
parsed again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Any, Final

from anydml.core._json import Fields, json_shown
from anydml.core.errors import ModelError
from anydml.core.file_kinds import kind_of
from anydml.core.problems import Problem

# A string or comment that is not closed runs to the end of the text: each character is looked at
# once, whatever the text.
STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_COMMENTS: Final = re.compile(rf"{STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# A comma behind an opening bracket, a colon or a comma is not trailing: the parser rejects it.
_COMMAS: Final = re.compile(rf"{STRING}|[\[{{:,]\s*,|,(?=\s*[\]}}])", re.DOTALL)
_EXCEPT_NEWLINES: Final = re.compile(r"[^\n]")
# Models need 10. Python's own limits, between 1,000 and 10,000, differ from version to version.
_DEEPEST: Final = 100
# What the parser refuses without saying where.
_CONSTANTS: Final = re.compile(rf"{STRING}|NaN|-?Infinity", re.DOTALL)
_NUMBERS: Final = re.compile(rf"{STRING}|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.DOTALL)
_BRACKETS: Final = re.compile(rf"{STRING}|[\[\]{{}}]", re.DOTALL)
_EXCEPT_BRACKETS: Final = re.compile(rf"{STRING}|[^\[\]{{}}\"]+", re.DOTALL)

# Messages of the parser that end with the position.
_PARSER_WORDS: Final = {
    "Unterminated string starting at": "a string that is not closed",
    "Invalid control character at": "a control character in a string",
}


class Text(Fields):
    """The object that a text describes.

    Attributes
    ----------
    data : bytes
        The text, in which problems are looked up.
    """

    __slots__ = ("data",)

    def __init__(self, fields: Fields, data: bytes) -> None:
        super().__init__([*fields.items()])
        self.repeated = fields.repeated
        self.data = data


def parse(data: bytes) -> Text:
    """Read the object that a text describes, and in it all objects as `Fields`.

    Raises
    ------
    ModelError
        Not UTF-8, not JSON with comments and trailing commas, nested too deeply, or not an object;
        the message says what the file is instead, if that is known.
    """
    try:
        return Text(_parsed(data), data)
    except ModelError:
        refuse_others(data, complete=True)
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


def refuse_others(data: bytes, complete: bool) -> None:
    """Raise if the beginning of a file, or all of it, shows that it is of another kind."""
    kind = kind_of(data, complete)
    if kind is not None:
        raise ModelError(f"Expected a JSON model of DxDispatch, got {kind}.")
