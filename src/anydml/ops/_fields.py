"""The kinds of a descriptor's fields: how each is taken, read from JSON, written and shown.

A room says what its fields are with the makers at the end of this page; everything that handles
fields in general asks their `Kind`.
"""

from __future__ import annotations

import dataclasses
import enum
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from anydml import _json
from anydml._named import NamedEnum
from anydml.errors import ModelError
from anydml.tensor import MAX_DIMENSIONS, TensorDesc

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


class Role(enum.Enum):
    """What a descriptor's field is."""

    INPUT = "input tensor"
    OUTPUT = "output tensor"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True)
class Kind:
    """What values a field has; this one is a UINT."""

    @property
    def text(self) -> str:
        """As the operators' pages show it."""
        return "UINT"

    @property
    def accepted(self) -> str:
        """What a value of another kind is told."""
        return "an integer of at most 64 bits"

    @property
    def choices(self) -> str:
        """What a reader without the enumeration's page is shown."""
        return self.text

    def take(self, value: Any) -> Any:
        """The value as the descriptor keeps it; TypeError or ValueError for another kind."""
        return _integer(value)

    def outside(self, value: Any) -> Iterator[tuple[str, str, Any]]:
        """Where a value leaves its range: a path below the field, the range, what stands there."""
        if not 0 <= value <= _json.UINT32_MAX:
            yield "", "0..2^32 - 1 (UINT)", value

    def read(self, value: Any) -> Any:
        """The value from its JSON form."""
        return _json.json_uint32(value)

    def write(self, value: Any) -> Any:
        """The JSON form."""
        return value

    def shown(self, value: Any) -> str:
        """As the descriptor's `repr` shows it."""
        return repr(value)


@dataclass(frozen=True)
class EnumerationKind(Kind):
    """A member of an enumeration."""

    members: type[NamedEnum]

    @property
    def text(self) -> str:
        """The enumeration's name."""
        return self.members.__name__

    @property
    def accepted(self) -> str:
        """The members."""
        return "one of " + ", ".join(map(str, self.members))

    @property
    def choices(self) -> str:
        return self.accepted

    def take(self, value: Any) -> Any:
        return self.members.parse(value)

    def outside(self, value: Any) -> Iterator[tuple[str, str, Any]]:
        yield from ()

    def read(self, value: Any) -> Any:
        return self.members.parse(value)

    def write(self, value: Any) -> Any:
        return value.suffix

    def shown(self, value: Any) -> str:
        return repr(value.suffix)


@dataclass(frozen=True)
class IntegersKind(Kind):
    """An array of UINT or INT, one for each dimension."""

    signed: bool = False

    @property
    def text(self) -> str:
        """The type of an element, and that there are several."""
        return "INT array" if self.signed else "UINT array"

    @property
    def accepted(self) -> str:
        """As many as a tensor may have dimensions."""
        return f"a sequence of at most {MAX_DIMENSIONS} integers"

    def take(self, value: Any) -> Any:
        if isinstance(value, str | bytes | dict):
            raise TypeError("no sequence of integers")
        taken: list[int] = []
        for number in value:  # which may have no end
            if len(taken) == MAX_DIMENSIONS:
                raise ValueError("more than any tensor has dimensions")
            taken.append(_integer(number))
        return tuple(taken)

    def outside(self, value: Any) -> Iterator[tuple[str, str, Any]]:
        low, high, text = (
            (INT32_MIN, INT32_MAX, "-2^31..2^31 - 1 (INT)")
            if self.signed
            else (0, _json.UINT32_MAX, "0..2^32 - 1 (UINT)")
        )
        for i, number in enumerate(value):
            if not low <= number <= high:
                yield f"[{i}]", text, number

    def read(self, value: Any) -> Any:
        read = _json.json_integer(INT32_MIN, INT32_MAX) if self.signed else _json.json_uint32
        return tuple(_each(value, read))

    def write(self, value: Any) -> Any:
        return list(value)


@dataclass(frozen=True)
class TensorKind(Kind):
    """A tensor, or a list of tensors."""

    many: bool = False

    @property
    def text(self) -> str:
        """One or several."""
        return "tensors" if self.many else "tensor"

    @property
    def accepted(self) -> str:
        """One or several descriptors."""
        return "a sequence of TensorDesc" if self.many else "a TensorDesc"

    def take(self, value: Any) -> Any:
        tensors = tuple(value) if self.many else (value,)
        if not all(isinstance(tensor, TensorDesc) for tensor in tensors):
            raise TypeError("expected TensorDesc")
        return tensors if self.many else value

    def outside(self, value: Any) -> Iterator[tuple[str, str, Any]]:
        yield from ()  # a tensor has rules of its own

    def read(self, value: Any) -> Any:
        return [*_each(value, TensorDesc.from_json)] if self.many else TensorDesc.from_json(value)

    def write(self, value: Any) -> Any:
        return [tensor.to_json() for tensor in value] if self.many else value.to_json()


@dataclass(frozen=True)
class FieldInfo:
    """A descriptor's field as its page has it.

    Attributes
    ----------
    attribute, name : str
        Its name in Python and on the page.
    role : Role
        Input tensor, output tensor or attribute.
    kind : Kind
        What values it has.
    counts : str or None
        The attribute whose length it is.
    """

    attribute: str
    name: str
    role: Role
    kind: Kind
    counts: str | None

    @property
    def many(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self.kind, TensorKind) and self.kind.many

    @property
    def text(self) -> str:
        """What it is, as people are shown it."""
        if self.role is Role.ATTRIBUTE:
            return self.kind.text
        return f"{self.role.value}s" if self.many else self.role.value

    @property
    def choices(self) -> str:
        """What it is, with the members of an enumeration."""
        return self.kind.choices if self.role is Role.ATTRIBUTE else self.text

    def paths(self, value: Any) -> Iterator[tuple[str, TensorDesc]]:
        """Path and descriptor of each tensor in a tensor field's value."""
        if not self.many:
            yield self.name, value
            return
        for i, tensor in enumerate(value):
            yield f"{self.name}[{i}]", tensor


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("a bool is no number")
    number = operator.index(value)
    if abs(number) > _json.UINT64_MAX:
        raise ValueError("larger than any field of the header")
    return number


def _each(value: Any, read: Callable[[Any], Any]) -> Iterator[Any]:
    for i, item in enumerate(_json.json_array(value)):
        try:
            yield read(item)
        except ModelError as error:
            raise ModelError(f"[{i}]: {error}") from error


# ---- what a room writes --------------------------------------------------------------------------


def _field(role: Role, kind: Kind, counts: str | None = None) -> Any:
    default: Any = dataclasses.MISSING if counts is None else None
    return dataclasses.field(
        metadata={"role": role, "kind": kind, "counts": counts}, default=default
    )


def input_field() -> Any:
    """A field for one input tensor."""
    return _field(Role.INPUT, TensorKind())


def input_list() -> Any:
    """A field for a list of input tensors."""
    return _field(Role.INPUT, TensorKind(many=True))


def output_field() -> Any:
    """A field for one output tensor."""
    return _field(Role.OUTPUT, TensorKind())


def output_list() -> Any:
    """A field for a list of output tensors."""
    return _field(Role.OUTPUT, TensorKind(many=True))


def uint() -> Any:
    """A field for a UINT attribute."""
    return _field(Role.ATTRIBUTE, Kind())


def count_of(attribute: str) -> Any:
    """A UINT field that counts a tensor list or an array; left out, it is the length of that."""
    return _field(Role.ATTRIBUTE, Kind(), counts=attribute)


def enumeration(members: type[NamedEnum]) -> Any:
    """A field for an enumeration."""
    return _field(Role.ATTRIBUTE, EnumerationKind(members))


def uints() -> Any:
    """A field for an array of UINT, one for each dimension."""
    return _field(Role.ATTRIBUTE, IntegersKind())


def ints() -> Any:
    """A field for an array of INT, one for each dimension."""
    return _field(Role.ATTRIBUTE, IntegersKind(signed=True))
