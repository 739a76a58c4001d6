"""Problems as data: what is accepted, where it is wrong, and a code to select by.

Messages are written once, for people. What they say of accepted values follows one grammar
(``5``, ``1..5``, ``at most 5``, ``one of A, B``, then why), and `accepted_by` reads it.
"""

from __future__ import annotations

import re
from typing import Any, Final, Self

Location = tuple[str | int, ...]
"""Members of objects and indices of arrays, from the top of a JSON document."""

_REASON: Final = re.compile(r"(?<=\S)(?: \(| at feature level | below level ).*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?\d{1,20}(?:\.\d{1,20})?")
_POWER: Final = re.compile(r"(\d+)\^(\d+)( - 1)?")
_VALUE: Final = re.compile(r"-?\d[\d._]*|[A-Z][A-Z0-9_]*|\([\d, ]*\)")
_LENGTH: Final = re.compile(r"(\d+) (?:values|strides?|operators|dimensions)")
_EXPECTED: Final = re.compile(r"[Ee]xpected (.+?), got ", re.DOTALL)
_PARTS: Final = re.compile(r"\.(?=[A-Za-z])")
_MEMBER: Final = re.compile(r"(\w+)(?:\[(-?\d+|\.\.)\])?")
_WORD_START: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def accepted_by(rule: str) -> dict[str, Any] | None:
    """The values that a rule accepts: ``values``, ``minimum`` and ``maximum``, or ``length``.

    None where the rule is not of that kind: "a stride other than 0".

    Examples
    --------
    >>> from anydml.core.problems import accepted_by
    >>> accepted_by("one of UINT64, UINT32 at feature level 5_0 (INT64 at no level)")
    {'values': ['UINT64', 'UINT32']}
    >>> accepted_by("0..3 (InputTensor.DimensionCount is 4)")
    {'minimum': 0, 'maximum': 3}
    >>> accepted_by("1 or 4 (InputTensor.Sizes[1])")
    {'values': [1, 4]}
    """
    text = _POWER.sub(lambda m: str(int(m[1]) ** int(m[2]) - bool(m[3])), _REASON.sub("", rule))
    if length := _LENGTH.fullmatch(text):
        return {"length": int(length[1])}
    low, dots, high = text.removeprefix("an integer in ").partition("..")
    if dots and _NUMBER.fullmatch(low) and _NUMBER.fullmatch(high):
        return {"minimum": _value(low), "maximum": _value(high)}
    for begin, end, key in (
        ("at least ", "", "minimum"), ("", " or more", "minimum"), ("", " or above", "minimum"),
        ("at most ", "", "maximum"),
    ):  # fmt: skip
        bound = text.removeprefix(begin).removesuffix(end)
        if text.startswith(begin) and text.endswith(end) and _VALUE.fullmatch(bound):
            return {key: _value(bound)}
    values_text = text if _VALUE.fullmatch(text) else text.removeprefix("one of ")
    values = [values_text] if values_text.startswith("(") else re.split(r", | or ", values_text)
    if all(map(_VALUE.fullmatch, values)):
        return {"values": [_value(value) for value in values]}
    return None


def _value(text: str) -> Any:
    if text.startswith("("):
        return [int(size) for size in re.findall(r"\d+", text)]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    return text


def code_of(path: str, rule: str) -> str:
    """A code for a broken rule: the member that breaks it, and whether a feature level does.

    Examples
    --------
    >>> from anydml.core.problems import code_of
    >>> code_of("TOP_K.OutputIndexTensor.DataType", "one of UINT64, UINT32 at feature level 5_0")
    'unsupported_data_type'
    >>> code_of("TOP_K.Axis", "0..3 (InputTensor.DimensionCount is 4)")
    'invalid_axis'
    """
    name = re.sub(r"\[[^\]]*\]$", "", path).rpartition(".")[2]
    if name == "FeatureLevel":
        return "unsupported_operator"
    kind = "unsupported" if " at feature level " in rule or " below level " in rule else "invalid"
    return f"{kind}_{_WORD_START.sub('_', name).lower()}"


def members(path: str) -> Location:
    """Where a path such as ``OutputTensors[1].Sizes[0]`` leads in an operator's JSON.

    An index that counts from the end, or stands for several, ends it.
    """
    found: list[str | int] = []
    for part in _PARTS.split(path):
        match = _MEMBER.fullmatch(part)
        if match is None:
            break
        found.append(match[1])
        if match[2] is not None:
            if not match[2].isdigit():
                break
            found.append(int(match[2]))
    return tuple(found)


def pointer(location: Location) -> str:
    """A location as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in location)


class Problem(str):
    """A fault of a model: a message that knows its code and location.

    Attributes
    ----------
    code : str
        The kind of problem, for programs.
    location : tuple of str and int
        The members that lead to it, from the top of the model.
    path : str
        The same for people, at the beginning of the message: ``InputTensor.Sizes[1]``.
    position : tuple of int, or None
        Its line and column in the text of the model, where they are known.
    """

    code: str
    location: Location
    path: str
    position: tuple[int, int] | None

    def __new__(
        cls,
        text: str,
        code: str = "invalid_value",
        location: Location = (),
        path: str = "",
        position: tuple[int, int] | None = None,
    ) -> Self:
        """A message; one that is a problem already keeps what it knows."""
        if isinstance(text, Problem):
            code, location, path, position = text.code, text.location, text.path, text.position
        result = super().__new__(cls, text)
        result.code, result.location = code, location
        result.path, result.position = path, position
        return result

    @classmethod
    def at(cls, path: str, text: str, code: str, location: Location) -> Self:
        """A problem of the value that a path leads to; the text is without the path."""
        return cls(f"{path}: {text}", code, location, path)

    def reworded(self, text: str, *above: str | int) -> Problem:
        """Return the problem in other words, as seen from an outer object."""
        return Problem(text, self.code, (*above, *self.location), "", self.position)

    def below(self, path: str, *above: str | int) -> Problem:
        """Return the problem as seen from an outer object or array, with a longer path."""
        text = self[len(self.path) :]
        if not path:
            return Problem(str(self), self.code, (*above, *self.location), self.path)
        if not self.path:
            if self.startswith("Expected "):
                text = f"e{self[1:].removesuffix('.')}"
            text = f": {text}"
        elif self.path[0] != "[":
            path += "."
        path += self.path
        return Problem(path + text, self.code, (*above, *self.location), path)

    def placed(self, line: int, column: int) -> Problem:
        """Return the problem at a line and column."""
        return Problem(str(self), self.code, self.location, self.path, (line, column))

    @property
    def line(self) -> str:
        """The message, with the line and column behind it if they are known."""
        if self.position is None:
            return str(self)
        line, column = self.position
        return f"{self.removesuffix('.')} (line {line}, column {column})"

    def as_json(self) -> dict[str, Any]:
        """Code, place, what is accepted if the message says it, and the message."""
        rule = _EXPECTED.search(self)
        line, column = self.position or (None, None)
        return {
            "code": self.code,
            "location": pointer(self.location),
            "line": line,
            "column": column,
            "accepted": accepted_by(rule[1]) if rule else None,
            "message": str(self),
        }
