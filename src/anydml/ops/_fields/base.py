"""`Kind`, and the kinds of one number without a fraction: UINT, INT, BOOL, an enumeration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np

from anydml.core import _json
from anydml.core.enums import NamedEnum
from anydml.core.levels import FeatureLevel
from anydml.core.tensor import integer_of

Outside = tuple[str, str, Any]
"""A path below the field, what would be accepted there, and what stands there."""


class Range(NamedTuple):
    """Integers, and their text in messages."""

    low: int
    high: int
    text: str

    def find_outside(self, path: str, value: Any) -> Iterator[Outside]:
        """Yield the value if it is not in the range."""
        if not self.low <= value <= self.high:
            yield path, self.text, value


INT: Final = Range(-(2**31), 2**31 - 1, "-2^31..2^31 - 1 (INT)")
UINT: Final = Range(0, _json.UINT32_MAX, "0..2^32 - 1 (UINT)")

Siblings = Mapping[str, Any]
"""The values of a descriptor's fields, or of those before this one, by attribute."""


@dataclass(frozen=True)
class Kind:
    """The kind of the values of a field; the base class is a UINT.

    A value goes through `convert` when a descriptor is made, which keeps it whatever its range, and
    through `resolve` when all fields are converted; `find_out_of_range` is a rule like any other.
    """

    RANGE: ClassVar[Range | None] = UINT
    """The values in range; None where all that are accepted are, or another rule says which."""

    @property
    def text(self) -> str:
        """The text on the operators' pages."""
        return "UINT"

    @property
    def accepted(self) -> str:
        """The accepted values, for messages."""
        return "an integer of at most 64 bits"

    @property
    def choices(self) -> str:
        """The text for readers without the enumeration's page."""
        return self.text

    @property
    def needs(self) -> frozenset[str]:
        """The attributes, before this one, whose values `parse` requires."""
        return frozenset()

    def did_you_mean(self, value: Any) -> str:
        """The end of a message about a value that is not accepted."""
        return _json.or_in_list(value, self.convert)

    def convert(self, value: Any) -> Any:
        """Convert a value for the descriptor; raise TypeError or ValueError for another kind."""
        return integer_of(value)

    def resolve(self, value: Any, siblings: Siblings) -> Any:
        """Complete a converted value with the descriptor's other fields."""
        return value

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        """Yield the parts of a value that are out of range."""
        if self.RANGE is not None:
            yield from self.RANGE.find_outside("", value)

    def parse(self, value: Any, siblings: Siblings) -> Any:
        """Read the value from its JSON form."""
        return _json.json_uint32(value)

    def write(self, value: Any) -> Any:
        """The JSON form."""
        return value

    def short_repr(self, value: Any) -> str:
        """The text in the descriptor's `repr`: an expression that evaluates to the value."""
        return repr(value)


@dataclass(frozen=True)
class AxisKind(Kind):
    """A UINT that is an axis: a rule of the operator says which the tensor has."""

    RANGE = None

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return json_int64(value)


@dataclass(frozen=True)
class IntKind(Kind):
    """An INT."""

    RANGE = INT
    text = "INT"

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return json_int(value)


@dataclass(frozen=True)
class BoolKind(Kind):
    """A BOOL."""

    RANGE = None
    text = "BOOL"
    accepted = "True or False"

    def convert(self, value: Any) -> Any:
        if not isinstance(value, bool | np.bool_):
            raise TypeError("no bool")
        return bool(value)

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return _json.json_bool(value)


@dataclass(frozen=True)
class EnumerationKind(Kind):
    """A member of an enumeration.

    Attributes
    ----------
    members : type
        The enumeration.
    later : tuple of (str, FeatureLevel)
        Members that were added after the operator, and their levels.
    """

    members: type[NamedEnum]
    later: tuple[tuple[str, FeatureLevel], ...] = ()

    @property
    def text(self) -> str:
        return self.members.__name__

    @property
    def accepted(self) -> str:
        return "one of " + ", ".join(map(str, self.members))

    @property
    def choices(self) -> str:
        return self.accepted

    def did_you_mean(self, value: Any) -> str:
        return self.members.did_you_mean(value)

    def convert(self, value: Any) -> Any:
        return self.members.parse(value)

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        late = [name for name, since in self.later if level < since]
        if value.suffix in late:
            rest = ", ".join(str(member) for member in self.members if member.suffix not in late)
            since = dict(self.later)[value.suffix]
            yield "", f"one of {rest} at feature level {level} ({value} from {since})", value

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return self.members.read_json(value)

    def write(self, value: Any) -> Any:
        return value.suffix

    def short_repr(self, value: Any) -> str:
        return repr(value.suffix)


json_int64 = _json.json_integer(-(2**63), 2**63 - 1)
json_int = _json.json_integer(INT.low, INT.high)
