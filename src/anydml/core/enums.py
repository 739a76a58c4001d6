"""Enums that are given by the member, its full header name or the name's suffix."""

from __future__ import annotations

import enum
import re
from typing import Self

from anydml.core._json import did_you_mean, json_shown, short_repr
from anydml.core.errors import ArgumentError, ModelError


class NamedEnum(enum.IntEnum):
    """An enumeration of the DirectML header."""

    @classmethod
    def prefix(cls) -> str:
        """The beginning of full names, as ``DML_PADDING_MODE_`` of `PaddingMode`."""
        return f"DML{re.sub('(?=[A-Z])', '_', cls.__name__)}_".upper()

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls.parse(value)  # a name, or an error of this package

    @classmethod
    def parse(cls, value: object) -> Self:
        """The member that `value` names: the member itself, its full name or its suffix."""
        member = cls._find(value)
        if member is None:
            raise ArgumentError(
                f"{cls.__name__}: expected {cls._expected(value, short_repr(value))}"
            )
        return member

    @classmethod
    def read_json(cls, value: object) -> Self:
        """Parse the value of a JSON field, which the reader names in messages."""
        member = cls._find(value)
        if member is None:
            raise ModelError(f"Expected {cls._expected(value, json_shown(value))}")
        return member

    @classmethod
    def _find(cls, value: object) -> Self | None:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            suffix = value.removeprefix(cls.prefix())
            return next((member for member in cls if member.suffix == suffix), None)
        return None

    @classmethod
    def _expected(cls, value: object, got: str) -> str:
        names = [member.suffix for member in cls]
        return f"one of {', '.join(names)}, got {got}{cls.did_you_mean(value)}"

    @classmethod
    def did_you_mean(cls, value: object) -> str:
        """The end of a message about a value that names no member."""
        word = value.removeprefix(cls.prefix()) if type(value) is str else value
        return did_you_mean(word, [member.suffix for member in cls])

    @property
    def suffix(self) -> str:
        """The name without the header's prefix, as `FLOAT32`."""
        return self.name

    @property
    def full_name(self) -> str:
        """The name in ``directml.h``."""
        return self.prefix() + self.suffix

    def __str__(self) -> str:
        return self.suffix

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)
