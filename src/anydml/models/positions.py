"""Lines and columns of problems in the text of a model, which is read again to find them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from anydml.core.problems import Problem
from anydml.models.text import STRING, plain

_SPACE: Final = re.compile(r"\s*")
_TOKEN: Final = re.compile(rf"{STRING}|[^\s\[\]{{}},:\"]+", re.DOTALL)
_BRACKET: Final = re.compile(rf"{STRING}|[\[\]{{}}]", re.DOTALL)


def placed(problems: Iterable[str], text: bytes) -> tuple[str, ...]:
    """Return problems with their lines and columns; those without a location as they are.

    A member that is missing is at the object that lacks it.
    """
    found = (*problems,)
    top = _Value()
    values = {}
    for i, problem in enumerate(found):
        if isinstance(problem, Problem) and problem.location and problem.position is None:
            values[i] = top.at(problem.location)
    if not values or not text:
        return found
    # Comments are blank here, which keeps every position.
    decoded = plain(text.decode("utf-8-sig"))
    _find(decoded, _after_space(decoded, 0), top)
    return tuple(
        problem if i not in values else _place(problem, values[i], decoded)
        for i, problem in enumerate(found)
    )


class _Value:
    """A value of the text that is looked for, or has a member that is."""

    __slots__ = ("above", "members", "start")

    def __init__(self, above: _Value | None = None) -> None:
        self.above = above
        self.members: dict[str | int, _Value] = {}
        self.start: int | None = None

    def at(self, location: Iterable[str | int]) -> _Value:
        """Return the value that a location leads to."""
        value = self
        for member in location:
            value = value.members.setdefault(member, _Value(value))
        return value


def _place(problem: str, value: _Value, text: str) -> str:
    while value.start is None and value.above is not None:
        value = value.above
    if value.above is None or value.start is None:  # the whole text is no place
        return problem
    line = text.count("\n", 0, value.start) + 1
    return Problem(problem).placed(line, value.start - text.rfind("\n", 0, value.start))


def _find(text: str, at: int, value: _Value | None) -> int:
    """Set the starts of a value at a position and of its members; return where it ends."""
    if value is not None:
        value.start = at
    if value is None or not value.members or text[at] not in "[{":
        return _end(text, at)
    is_object, count = text[at] == "{", 0
    at += 1
    while True:
        at = _after_space(text, at)
        if text[at] in "]}":
            return at + 1
        if text[at] == ",":
            at += 1
            continue
        key: str | int = count
        if is_object:
            name = _TOKEN.match(text, at)
            assert name is not None, "the parser has accepted the text"
            key = json.loads(name[0])
            at = _after_space(text, _after_space(text, name.end()) + 1)
        count += 1
        at = _find(text, at, value.members.get(key))


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return at if space is None else space.end()


def _end(text: str, at: int) -> int:
    """Return where the value at a position ends."""
    token = _TOKEN.match(text, at)
    if token is not None:
        return token.end()
    depth = 0
    for bracket in _BRACKET.finditer(text, at):
        depth += (bracket[0] in "[{") - (bracket[0] in "]}")
        if not depth:
            return bracket.end()
    return len(text)
