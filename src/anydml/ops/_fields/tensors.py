"""Tensors and lists of tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from anydml.core import _json
from anydml.core.tensor import TensorDesc
from anydml.ops._fields.base import Kind, Siblings


@dataclass(frozen=True)
class TensorKind(Kind):
    """A tensor, or a list of tensors.

    Attributes
    ----------
    many : bool
        Whether it is a list.
    """

    RANGE = None  # a tensor has rules of its own

    many: bool = False

    @property
    def accepted(self) -> str:
        return "a sequence of TensorDesc" if self.many else "a TensorDesc"

    def did_you_mean(self, value: Any) -> str:
        array = "; TensorDesc.from_array describes an array" if hasattr(value, "dtype") else ""
        return super().did_you_mean(value) or array

    def convert(self, value: Any) -> Any:
        tensors = tuple(value) if self.many else (value,)
        if not all(isinstance(tensor, TensorDesc) for tensor in tensors):
            raise TypeError("expected TensorDesc")
        return tensors if self.many else value

    def parse(self, value: Any, siblings: Siblings) -> Any:
        return (
            _json.parse_members(value, TensorDesc.from_json)
            if self.many
            else TensorDesc.from_json(value)
        )

    def write(self, value: Any) -> Any:
        return [tensor.to_json() for tensor in value] if self.many else value.to_json()
