"""Reading JSON fields the way DxDispatch reads them, with errors that say where.

Every reader raises `ModelError`; `field` puts the field's name in front, so that nested fields give
``InputTensor.Sizes[1]: expected an integer in 0..4294967295, got 4.5``. Readers of several fields
collect what is wrong with each, by `Faults`, and raise all of it at once.
"""

from __future__ import annotations

import re
import reprlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, count, islice
from typing import Any, Final, TypeVar, cast

from anydml.core.errors import (
    AnyDMLError,
    ArgumentError,
    ArgumentTypeError,
    InvalidDescriptorError,
    ModelError,
)
from anydml.core.problems import Problem
from anydml.core.rules import UNKNOWN

T = TypeVar("T")

UINT32_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1

MOST_REPORTED: Final = 1000
"""The most problems that are reported, which bounds the memory of their messages."""

_WORDS: Final = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}

# What is looked through for a similar name: those of people, not those made to take time.
_LONGEST_GUESSED: Final = 40
_MOST_GUESSED: Final = 200

_REQUIRED: Final[Any] = object()


class Fields(dict[str, Any]):
    """A JSON object that knows which members have been read and which its text has twice.

    Attributes
    ----------
    read : set of str
        Members that a reader has read.
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

    def unread_names(self) -> list[str]:
        """Members that no reader has read."""
        return [name for name in self if name not in self.read]


def field(
    fields: Mapping[str, Any],
    name: str,
    parse: Callable[[Any], T],
    default: T = _REQUIRED,
    shown: str | None = None,
) -> T:
    """The field `name`, parsed by `parse`; required unless there is a default.

    `shown` stands for the name in messages; if it is empty, paths leave the field out.
    """
    if isinstance(fields, Fields):
        fields.note(name)
    if name not in fields:
        if default is _REQUIRED:
            text = f"expected a value, got none{_there_is(name, fields)}"
            raise ModelError(Problem.at(name, text, "missing_field", (name,)))
        return default
    try:
        return parse(fields[name])
    except AnyDMLError as error:
        shown = short_repr(name)[1:-1] if shown is None else shown
        raised = ModelError(*(problem.below(shown, name) for problem in problems_of(error)))
        raised.partial = partial_of(error)
        raise raised from error


def partial_of(error: AnyDMLError) -> Any:
    """The part of an invalid value that could be read, else UNKNOWN."""
    return getattr(error, "partial", UNKNOWN)


def _there_is(name: str, fields: Mapping[str, Any]) -> str:
    near = similar(name, fields)
    return f" (there is {short_repr(near)})" if near else ""


class Faults:
    """Collects the problems of several parts, to report them together."""

    def __init__(self) -> None:
        self._problems: list[Problem] = []

    @property
    def full(self) -> bool:
        """Whether more problems have been collected than are ever reported."""
        return len(self._problems) > MOST_REPORTED

    def add(self, error: AnyDMLError, index: int | None = None, name: str = "") -> None:
        """Collect the problems of an error, or of an array's member, which may have a name."""
        if not self.full:
            found = problems_of(error)
            if index is not None:
                path = f"[{index}] ({short_repr(name)})" if name else f"[{index}]"
                found = tuple(problem.below(path, index) for problem in found)
            self._problems += found

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Inside, errors are collected and end the block only."""
        try:
            yield
        except AnyDMLError as error:
            self.add(error)

    def field(
        self,
        fields: Mapping[str, Any],
        name: str,
        parse: Callable[[Any], T],
        default: T = _REQUIRED,
    ) -> T:
        """Read a field, or return None if that raises; `finish` prevents the use of None."""
        with self.kept():
            return field(fields, name, parse, default)
        return cast(T, None)

    def partial_field(
        self,
        fields: Mapping[str, Any],
        name: str,
        parse: Callable[[Any], Any],
        default: Any = _REQUIRED,
    ) -> Any:
        """Read a field; if that raises, return the part that could be read, else UNKNOWN."""
        try:
            return field(fields, name, parse, default)
        except AnyDMLError as error:
            self.add(error)
            return partial_of(error)

    def finish(self, partial: Callable[[], Any] = lambda: UNKNOWN) -> None:
        """Raise everything that has been collected, if anything has.

        `partial` makes what could be read.
        """
        if self._problems:
            error = ModelError(*self._problems)
            error.partial = partial()
            raise error


def problems_of(error: AnyDMLError) -> tuple[Problem, ...]:
    """Everything that an error reports."""
    if isinstance(error, ModelError):
        return tuple(map(Problem, error.problems))
    if isinstance(error, InvalidDescriptorError):
        return tuple(Problem(str(item), item.code) for item in error.violations)
    return (Problem(str(error)),)


def parse_members(
    value: Any, parse: Callable[[Any], T], name_of: Callable[[Any], str] = lambda member: ""
) -> list[T]:
    """The members of a JSON array, each read; a message says which ones are wrong.

    By their positions, and by the names that `name_of` finds in them.
    """
    found: list[T] = []
    faults = Faults()
    for i, member in enumerate(json_array(value)):
        try:
            found.append(parse(member))
        except AnyDMLError as error:
            faults.add(error, i, name_of(member))
            found.append(partial_of(error))
            if faults.full:
                break
    faults.finish(lambda: tuple(found))
    return found


def similar(name: str, known: Iterable[str]) -> str | None:
    """The one of the known names that a name which is not known may stand for, if any.

    Stricter than `nearest`, and quick for the many names of a model: they differ in one place, by
    at most two letters; upper case does not count.
    """
    lower = name.lower()
    for other in islice(known, _MOST_GUESSED):
        if other != name and len(other) <= _LONGEST_GUESSED and _near(lower, other.lower()):
            return other
    return None


def or_similar(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: a suggestion, if one is close."""
    near = similar(name, known)
    return f"; did you mean {short_repr(near)}?" if near else "."


def _near(one: str, other: str) -> bool:
    if abs(len(one) - len(other)) > 2:
        return False
    longest = max(len(one), len(other))
    prefix = _common_prefix(one, other)
    suffix = _common_prefix(one[prefix:][::-1], other[prefix:][::-1])
    differing = longest - prefix - suffix
    return differing <= 2 and 2 * differing < longest


def _common_prefix(one: str, other: str) -> int:
    """How many characters two names begin with in common."""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))


def anything(value: Any) -> Any:
    return value


class _JsonRepr(reprlib.Repr):
    """Short forms with JSON's words in place of Python's."""

    def repr_NoneType(self, value: None, level: int) -> str:  # noqa: N802  # reprlib's form of name
        return "null"

    def repr_bool(self, value: bool, level: int) -> str:
        return "true" if value else "false"

    def repr_Fields(self, value: Fields, level: int) -> str:  # noqa: N802  # reprlib's form of name
        return self.repr_dict(value, level)


def _short(kind: type[reprlib.Repr]) -> reprlib.Repr:
    short = kind()
    short.maxlevel = 3
    short.maxstring = short.maxother = short.maxlong = 60
    return short


_SHORT: Final = _short(reprlib.Repr)
_JSON_SHORT: Final = _short(_JsonRepr)


def json_shown(value: Any) -> str:
    """A value that comes from JSON, as `short_repr` gives it but with JSON's words."""
    return short_repr(value, short=_JSON_SHORT)


def _shown_number(value: Any) -> str:
    """A value in place of a number or a bool: a string is called one, as ``"1"`` looks like 1."""
    quoted = f'"{short_repr(value)[1:-1]}"'
    return f"the string {quoted}" if isinstance(value, str) else json_shown(value)


def json_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        is_text = isinstance(value, str) and value.lstrip().startswith("{")
        hint = " (json.loads reads a text)" if is_text else ""
        raise ModelError(f"Expected an object, got {json_shown(value)}{hint}.")
    return value


def json_array(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise ModelError(f"Expected an array, got {json_shown(value)}.")
    return list(value)


def json_string(value: Any) -> str:
    if not isinstance(value, str):
        raise ModelError(f"Expected a string, got {json_shown(value)}.")
    return value


def json_bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ModelError(f"Expected true or false, got {_shown_number(value)}.")
    return value


def json_integer(low: int, high: int) -> Callable[[Any], int]:
    """A reader of integers in [low, high]; 1.0 and true are not integers."""

    def parse(value: Any) -> int:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if not is_integer or not low <= value <= high:
            raise ModelError(f"Expected an integer in {low}..{high}, got {_shown_number(value)}.")
        return int(value)

    return parse


def json_float(value: Any) -> float:
    """A number, or one of the words for what JSON has no number for, in any case."""
    if isinstance(value, str) and value.lower() in _WORDS:
        return _WORDS[value.lower()]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"Expected a number, 'nan', 'inf' or '-inf', got {_shown_number(value)}.")
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
    return tuple(parse_members(value, json_uint32))


def operator_type(fields: Mapping[str, Any], parse: Callable[[Any], T]) -> T:
    """The operator that an object describes by its ``type`` or ``Type``."""
    return field(fields, "Type" if "type" not in fields and "Type" in fields else "type", parse)


def nearest(word: Any, known: Iterable[Any]) -> str:
    """A hint with the known name closest to a misspelt one; empty if none is close."""
    if type(word) is not str or not 1 < len(word) <= 60:
        return ""
    from difflib import SequenceMatcher, get_close_matches  # which only a message needs

    names = {name.lower(): name for name in known if type(name) is str and len(name) <= 60}
    close = get_close_matches(word.lower(), names, 4, 0.7)
    if not close:  # an abbreviation, as AVG, or a beginning; or what a known name abbreviates
        lower = word.lower()
        return next(
            (names[n] for n in names if _abbreviates(lower, n) or _abbreviates(n, lower)), ""
        )
    # Of equally close names the first known one, as FLOAT32 for FLOAT.
    closest = SequenceMatcher(None, close[0], word.lower()).ratio()
    equal = {name for name in close if SequenceMatcher(None, name, word.lower()).ratio() == closest}
    return names[next(name for name in names if name in equal)]


def or_in_list(value: Any, convert: Callable[[Any], Any]) -> str:
    """The end of a message about a value that would be accepted as a list of one."""
    try:
        convert([value])
    except Exception:  # of a user's class, too
        return ""
    return f"; did you mean [{short_repr(value)}]?"


def _abbreviates(word: str, name: str) -> bool:
    """Whether a word of three letters or more has letters of a name, in order, from the first."""
    rest = iter(name)
    return len(word) > 2 and word[0] == name[0] and all(letter in rest for letter in word)


def did_you_mean(word: Any, known: Iterable[Any]) -> str:
    """The end of a message about an unknown name: a suggestion, if one is close."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def check_word(name: str, value: Any, accepted: Sequence[Any]) -> str:
    """Return the value of an argument; refuse one that is not one of some words."""
    if not isinstance(value, str) or value not in accepted:
        words = ", ".join(map(repr, accepted))
        hint = did_you_mean(value, accepted)
        raise ArgumentError(f"{name}: expected one of {words}, got {short_repr(value)}{hint}")
    return value


def unnamed_error(call: str, given: tuple[Any, ...], names: Iterable[str]) -> ArgumentTypeError:
    """The error for arguments by position, of a call that takes arguments by name only."""
    by_name = ", ".join(f"{name}=" for name in names) or "none here"
    return ArgumentTypeError(
        f"{call}: expected arguments by name ({by_name}), got {len(given)} by position"
    )


def unique_name(name: str, used: Container[str]) -> str:
    """The name, with a number behind it if it is in use."""
    numbered = (f"{name}_{number}" for number in count(2))
    return next(found for found in chain([name], numbered) if found not in used)


def counted(number: int, noun: str) -> str:
    """A count and its noun, as in "1 node" and "2 nodes"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def short_repr(value: Any, limit: int = 60, short: reprlib.Repr = _SHORT) -> str:
    """A short form of a value for a message, whatever its size and depth."""
    if type(value) is int and abs(value) < 2**63:
        return str(value)  # PyTorch 2.10 and 2.11 cannot trace reprlib
    try:
        text = short.repr(value)
    except (ValueError, RecursionError):  # an integer too long to print, somewhere inside
        kind = type(value).__name__
        digits = "an integer" if kind == "int" else f"a value of type {kind} with integers"
        text = f"{digits} of thousands of digits"
    text = re.sub(r"\s*\n\s*", " ", text)  # of an array
    if " at 0x" in text:  # where an object lies says nothing
        text = re.sub(" at 0x[0-9a-fA-F]+", "", text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
