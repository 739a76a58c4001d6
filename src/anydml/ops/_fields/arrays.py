"""Arrays of numbers, one for each dimension: UINT, INT and FLOAT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anydml.core import _json
from anydml.core.levels import FeatureLevel
from anydml.core.rules import UNKNOWN
from anydml.core.tensor import MAX_DIMENSIONS, integer_of, members_of
from anydml.ops._fields.base import INT, UINT, Kind, Outside, Siblings, json_int, json_int64
from anydml.ops._fields.real import FloatKind

_FLOAT = FloatKind()


@dataclass(frozen=True)
class IntegersKind(Kind):
    """An array of UINT or INT.

    Attributes
    ----------
    signed : bool
        Whether they are INT.
    axes : bool
        Whether they are axes: a rule of the operator says which the tensor has.
    """

    signed: bool = False
    axes: bool = False

    @property
    def text(self) -> str:
        return "INT array" if self.signed else "UINT array"

    accepted = f"a sequence of at most {MAX_DIMENSIONS} integers"

    def convert(self, value: Any) -> Any:
        return tuple(n if n is UNKNOWN else integer_of(n) for n in members_of(value))

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        for i, number in enumerate(() if self.axes else value):
            if number is not UNKNOWN:
                yield from (INT if self.signed else UINT).find_outside(f"[{i}]", number)

    def parse(self, value: Any, siblings: Siblings) -> Any:
        parse = json_int64 if self.axes else json_int if self.signed else _json.json_uint32
        return tuple(_json.parse_members(value, parse))

    def write(self, value: Any) -> Any:
        return list(value)


@dataclass(frozen=True)
class FloatsKind(Kind):
    """An array of FLOAT."""

    text = "FLOAT array"
    accepted = f"a sequence of at most {MAX_DIMENSIONS} numbers"

    def convert(self, value: Any) -> Any:
        return tuple(n if n is UNKNOWN else _FLOAT.convert(n) for n in members_of(value))

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        for i, number in enumerate(value):
            if number is not UNKNOWN:
                for _, rule, got in _FLOAT.find_out_of_range(number, siblings, level):
                    yield f"[{i}]", rule, got

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return tuple(_json.parse_members(value, _json.json_float))

    def write(self, value: Any) -> Any:
        return [*map(_FLOAT.write, value)]

    def short_repr(self, value: Any) -> str:
        return f"({''.join(f'{_FLOAT.short_repr(number)}, ' for number in value)})"
