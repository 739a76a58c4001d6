"""Small structures of the header: ``DML_SCALE_BIAS`` and ``DML_SIZE_2D``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from anydml.core import _json
from anydml.core.levels import FeatureLevel
from anydml.ops._fields.base import Kind, Outside, Siblings
from anydml.ops._fields.real import FloatKind


class ScaleBias(NamedTuple):
    """``DML_SCALE_BIAS``: each element becomes ``element * scale + bias`` first.

    Attributes
    ----------
    scale, bias : float
        Both FLOAT.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.ScaleBias(scale=2.0, bias=0.5)
    ScaleBias(scale=2.0, bias=0.5)
    """

    scale: float
    bias: float


class Size2D(NamedTuple):
    """``DML_SIZE_2D``.

    Attributes
    ----------
    width, height : int
        Both UINT.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.Size2D(width=3, height=2).height
    2
    """

    width: int
    height: int


@dataclass(frozen=True)
class _PairKind(Kind):
    # A structure of two members of one kind; descriptors also accept a pair of values.
    MADE: ClassVar[type[Any]]
    MEMBERS: ClassVar[tuple[str, str]]
    MEMBER: ClassVar[Kind]

    @property
    def accepted(self) -> str:
        return f"a {self.MADE.__name__}, or two numbers ({', '.join(self.MEMBERS)})"

    def convert(self, value: Any) -> Any:
        if not isinstance(value, list | tuple) or len(value) != len(self.MEMBERS):
            raise TypeError("expected two numbers")
        return self.MADE(*map(self.MEMBER.convert, value))

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        for name, member in zip(self.MEMBERS, value, strict=True):
            for _, rule, got in self.MEMBER.find_out_of_range(member, siblings, level):
                yield f".{name}", rule, got

    def parse(self, value: Any, siblings: Siblings) -> Any:
        record = _json.json_object(value)
        faults = _json.Faults()
        values = [
            faults.field(record, name, lambda member: self.MEMBER.parse(member, {}))
            for name in self.MEMBERS
        ]
        faults.finish()
        return tuple(values)

    def write(self, value: Any) -> Any:
        pairs = zip(self.MEMBERS, value, strict=True)
        return {name: self.MEMBER.write(member) for name, member in pairs}

    def short_repr(self, value: Any) -> str:
        pairs = zip(self.MEMBERS, value, strict=True)
        members = (f"{name.lower()}={self.MEMBER.short_repr(member)}" for name, member in pairs)
        return f"{self.MADE.__name__}({', '.join(members)})"


@dataclass(frozen=True)
class ScaleBiasKind(_PairKind):
    """A ``DML_SCALE_BIAS``."""

    MADE = ScaleBias
    MEMBERS = ("Scale", "Bias")
    MEMBER = FloatKind()
    text = "scale and bias"


@dataclass(frozen=True)
class Size2DKind(_PairKind):
    """A ``DML_SIZE_2D``."""

    MADE = Size2D
    MEMBERS = ("Width", "Height")
    MEMBER = Kind()
    text = "width and height"
