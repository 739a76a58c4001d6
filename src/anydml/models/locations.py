"""Where in a model a problem is: the words in front of its message, and its location as data."""

from __future__ import annotations

from typing import Final

from anydml.core._json import short_repr
from anydml.core.problems import Problem

_WORDS: Final = {
    "resources": "Resource {}",
    "dispatchables": "Dispatchable {}",
    "commands": "Command at index {}",
}


def words(section: str, key: str | int) -> str:
    """How messages name a part of a model."""
    return _WORDS[section].format(key if isinstance(key, int) else short_repr(key))


def within(section: str, key: str | int, text: object, code: str = "invalid_value") -> Problem:
    """A problem of a part of a model: ``Dispatchable 'top': Expected …``.

    The code is for a text, or an error, that has none of its own.
    """
    problem = text if isinstance(text, Problem) else Problem(str(text), code)
    return problem.reworded(f"{words(section, key)}: {problem}", section, key)
