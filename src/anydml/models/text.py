"""The text of a model: JSON with comments and trailing commas, and nothing else beyond JSON.

Most models are plain JSON, so the standard parser comes first; only when it refuses are comments
and trailing commas replaced by blanks (which keeps the line and column of an error) and the rest
parsed again.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from anydml._json import json_object
from anydml.errors import ModelError

# A string or comment that is not closed runs to the end of the text: each character is looked at
# once, whatever the text.
_STRING: Final = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_COMMENTS: Final = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# A comma behind an opening bracket, a colon or a comma is no trailing one: left to be refused.
_COMMAS: Final = re.compile(rf"{_STRING}|[\[{{:,]\s*,|,(?=\s*[\]}}])", re.DOTALL)
_EXCEPT_NEWLINES: Final = re.compile(r"[^\n]")


def parse(data: bytes) -> dict[str, Any]:
    """The object that the text of a model describes.

    Members that come twice count as the last of them.

    Raises
    ------
    ModelError
        Not UTF-8, not JSON with comments and trailing commas, or not an object.
    RecursionError
        Nested too deeply.
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
    except ValueError as error:  # an integer of thousands of digits
        raise ModelError(f"JSON parse error: {error}.") from error
    return dict(json_object(value))


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
    return json.loads(text, parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ModelError(
        f'JSON parse error: {name} is not JSON; write it as a string ("nan", "inf", "-inf").'
    )
