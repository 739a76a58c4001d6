"""`FieldInfo`: what a field is, in the descriptor and on the page."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anydml.core.rules import UNKNOWN
from anydml.core.tensor import TensorDesc
from anydml.ops._fields.base import Kind
from anydml.ops._fields.tensors import TensorKind


class Role(enum.Enum):
    """The role of a descriptor's field."""

    INPUT = "input tensor"
    OUTPUT = "output tensor"
    ATTRIBUTE = "attribute"


@dataclass(frozen=True)
class FieldInfo:
    """A field of a descriptor, as on its page.

    Attributes
    ----------
    attribute, name : str
        The name in Python and on the page.
    role : Role
        Input tensor, output tensor or attribute.
    kind : Kind
        The kind of its values.
    counts : str or None
        The attribute whose length the field contains.
    optional : bool
        Whether it may be omitted (None in Python).
    """

    attribute: str
    name: str
    role: Role
    kind: Kind
    counts: str | None
    optional: bool

    @property
    def many(self) -> bool:
        """Whether it is a list of tensors."""
        return isinstance(self.kind, TensorKind) and self.kind.many

    @property
    def text(self) -> str:
        """The text of the kind, for people."""
        return self._worded(self.kind.text)

    @property
    def choices(self) -> str:
        """The text of the kind, with the members of an enumeration."""
        return self._worded(self.kind.choices)

    def _worded(self, attribute: str) -> str:
        text = attribute
        if self.role is not Role.ATTRIBUTE:  # tensors are described by their role
            text = f"{self.role.value}s" if self.many else self.role.value
        return f"{text}, optional" if self.optional else text

    def paths(self, value: Any) -> Iterator[tuple[str, TensorDesc]]:
        """Path and descriptor of each tensor in a tensor field's value."""
        if value is None or value is UNKNOWN:
            return
        if not self.many:
            yield self.name, value
            return
        for i, tensor in enumerate(value):
            yield f"{self.name}[{i}]", tensor
