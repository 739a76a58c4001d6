"""Reading JSON fields the way DxDispatch reads them, with errors that say where.

Every reader raises `ModelError`; `field` puts the field's name in front, so that nested fields give
``Error parsing field 'InputTensor': Field 'Sizes' is required.``
"""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from anydml.errors import AnyDMLError, ModelError

T = TypeVar("T")

UINT32_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1

_WORDS: Final = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}

_SHORT: Final = reprlib.Repr()
_SHORT.maxlevel = 3
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60

_REQUIRED: Final[Any] = object()


class Fields(dict[str, Any]):
    """A JSON object that knows which members have been read and which its text has twice.

    Attributes
    ----------
    read : set of str
        Members that a reader has asked for.
    repeated : tuple of str
        Members that come more than once; the last one counts.
    """

    __slots__ = ("read", "repeated")

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.read: set[str] | tuple[()] = ()
        self.repeated: tuple[str, ...] = ()
        if len(pairs) != len(self):
            counts = Counter(name for name, _ in pairs)
            self.repeated = tuple(name for name, count in counts.items() if count > 1)

    def note(self, name: str) -> None:
        """A member has been read."""
        if not self.read:
            self.read = set()  # made when it is needed: most objects of a large text are small
        self.read.add(name)

    def unread(self) -> list[str]:
        """Members that no reader has asked for."""
        return [name for name in self if name not in self.read]


def field(
    fields: Mapping[str, Any], name: str, read: Callable[[Any], T], default: T = _REQUIRED
) -> T:
    """The field `name`, read by `read`; required unless there is a default."""
    if isinstance(fields, Fields):
        fields.note(name)
    if name not in fields:
        if default is _REQUIRED:
            raise ModelError(f"Field '{name}' is required{_there_is(name, fields)}.")
        return default
    try:
        return read(fields[name])
    except AnyDMLError as error:
        raise ModelError(f"Error parsing field '{name}': {error}") from error


def _there_is(name: str, fields: Mapping[str, Any]) -> str:
    near = nearest(name, fields)
    return f" (there is {near!r})" if near else ""


def anything(value: Any) -> Any:
    return value


def json_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ModelError(f"Expected an object, got {shown(value)}.")
    return value


def json_array(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ModelError(f"Expected an array, got {shown(value)}.")
    return list(value)


def json_string(value: Any) -> str:
    if not isinstance(value, str):
        raise ModelError(f"Expected a string, got {shown(value)}.")
    return value


def json_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ModelError(f"Expected a bool, got {shown(value)}.")
    return value


def json_integer(low: int, high: int) -> Callable[[Any], int]:
    """A reader of integers in [low, high]; 1.0 and true are not integers."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ModelError(f"Expected an integer in {low}..{high}, got {shown(value)}.")
        if not low <= value <= high:
            raise ModelError(f"Expected an integer in {low}..{high}, got {shown(value)}.")
        return value

    return read


def json_float(value: Any) -> float:
    """A number, or one of the words for what JSON has no number for, in any case."""
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"Expected a number, 'nan', 'inf' or '-inf', got {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), float("-inf")):
        raise ModelError("Expected a number that FLOAT64 holds, got a larger one.")
    return number


json_uint32 = json_integer(0, UINT32_MAX)
json_uint64 = json_integer(0, UINT64_MAX)


def json_uint32_array(value: Any) -> tuple[int, ...]:
    return tuple(map(json_uint32, json_array(value)))


def nearest(word: Any, known: Iterable[Any]) -> str:
    """The known name that a misspelt one is near to; empty where there is none."""
    if type(word) is not str or not 1 < len(word) <= 60:
        return ""
    from difflib import get_close_matches  # which only a message needs

    names = {name.lower(): name for name in known if type(name) is str and len(name) <= 60}
    found = get_close_matches(word.lower(), names, 1, 0.7)
    return names[found[0]] if found else ""


def meant(word: Any, known: Iterable[Any]) -> str:
    """The end of a message about a name that is not known: what may have been meant."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def shown(value: Any, limit: int = 60) -> str:
    """A short form of a value for a message, whatever its size and depth."""
    try:
        text = _SHORT.repr(value)
    except (ValueError, RecursionError):  # an integer too long to print, somewhere inside
        kind = type(value).__name__
        digits = "an integer" if kind == "int" else f"a value of type {kind} with integers"
        text = f"{digits} of thousands of digits"
    if " at 0x" in text:  # where an object lies says nothing
        text = re.sub(" at 0x[0-9a-fA-F]+", "", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
