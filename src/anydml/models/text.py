"""The text of a model: JSON with comments and trailing commas, and nothing else beyond JSON.

Most models are plain JSON, so the standard parser comes first; only when it refuses are comments
and trailing commas replaced by blanks (which keeps the line and column of an error) and the rest
parsed again.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final

from anydml._json import Fields, shown
from anydml.errors import ModelError

# A string or comment that is not closed runs to the end of the text: each character is looked at
# once, whatever the text.
_STRING: Final = r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)'
_COMMENTS: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# A comma behind an opening bracket, a colon or a comma is no trailing one: left to be refused.
_COMMAS: Final = re.compile(rf"{_STRING}|[\[{{:,]\s*,|,(?=\s*[\]}}])", re.DOTALL)
_EXCEPT_NEWLINES: Final = re.compile(r"[^\n]")


def parse(data: bytes) -> Fields:
    """The object that the text of a model describes, and in it all objects as `Fields`.

    Raises
    ------
    ModelError
        Not UTF-8, not JSON with comments and trailing commas, nested too deeply, or not an object.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(f"Expected UTF-8 text, got byte {error.start} that is not.") from error
    try:
        try:
            value = _json(text)
        except json.JSONDecodeError:
            value = _json(plain(text))
    except json.JSONDecodeError as error:
        raise ModelError(
            f"JSON parse error at line {error.lineno}, column {error.colno}: {error.msg}."
        ) from error
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(
            f"JSON parse error: an integer of more than {sys.get_int_max_str_digits()} digits."
        ) from error
    except RecursionError as error:
        raise ModelError("JSON parse error: nested too deeply.") from error
    if not isinstance(value, Fields):
        raise ModelError(f"Expected an object, got {shown(value)}.")
    return value


def plain(text: str) -> str:
    """The text with comments and trailing commas, outside strings, replaced by blanks."""
    return _COMMAS.sub(_without_trailing, _COMMENTS.sub(_without_comment, text))


def _without_comment(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == '"':
        return token
    if token.startswith("/*") and (len(token) < 4 or not token.endswith("*/")):
        line = match.string.count("\n", 0, match.start()) + 1
        raise ModelError(f"JSON parse error at line {line}: a comment that is not closed.")
    return _EXCEPT_NEWLINES.sub(" ", token)


def _without_trailing(match: re.Match[str]) -> str:
    return " " if match[0] == "," else match[0]


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=Fields, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ModelError(
        f'JSON parse error: {name} is not JSON; write it as a string ("nan", "inf", "-inf").'
    )
