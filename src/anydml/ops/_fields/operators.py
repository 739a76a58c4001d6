"""Nested operators: operators without tensors inside another one, such as a fused activation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anydml.core import _json
from anydml.core.errors import ModelError
from anydml.core.levels import FeatureLevel
from anydml.core.tensor import members_of
from anydml.ops._fields.base import Kind, Outside, Siblings

PREFIX = "DML_OPERATOR_"


@dataclass(frozen=True)
class NestedKind(Kind):
    """An operator of one of several kinds, or a list of them.

    Attributes
    ----------
    definitions : tuple of descriptor classes
        The accepted operators; each is `FUSED`.
    many : bool
        Whether it is a list.
    """

    definitions: tuple[Any, ...]
    many: bool = False

    @property
    def text(self) -> str:
        return "operators" if self.many else "operator"

    @property
    def accepted(self) -> str:
        one = "one of " + ", ".join(definition.__name__ for definition in self.definitions)
        return f"a sequence of operators, each {one}" if self.many else one

    @property
    def choices(self) -> str:
        return self.accepted

    def convert(self, value: Any) -> Any:
        operators = tuple(members_of(value)) if self.many else (value,)
        if not all(type(operator) in self.definitions for operator in operators):
            raise TypeError("expected an operator that can be nested here")
        return operators if self.many else value

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        for i, operator in enumerate(value if self.many else (value,)):
            below = f"[{i}]" if self.many else ""
            for violation in operator.violations_nested(level):
                yield f"{below}.{violation.path}", violation.rule, violation.got

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return tuple(_json.parse_members(value, self._one)) if self.many else self._one(value)

    def _one(self, value: Any) -> Any:
        record = _json.json_object(value)
        name = _json.operator_type(record, _json.json_string)
        for definition in self.definitions:
            if name.removeprefix(PREFIX) == definition.NAME:
                return definition.read_described(record)
        known = ", ".join(definition.NAME for definition in self.definitions)
        raise ModelError(f"Expected an operator ({known}), got {_json.short_repr(name)}.")

    def write(self, value: Any) -> Any:
        return [operator.to_json() for operator in value] if self.many else value.to_json()
