"""Scalar unions: a number of the type that another field names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from anydml.core import _json
from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError
from anydml.core.levels import FeatureLevel
from anydml.core.tensor import integer_of
from anydml.ops._fields.base import Kind, Outside, Siblings
from anydml.ops._fields.real import Real, fits, range_text, real_of, rounded, written

MEMBERS: Final = {
    DataType.FLOAT64: "Float64",
    DataType.FLOAT32: "Float32",
    DataType.FLOAT16: "UInt16",
    DataType.INT64: "Int64",
    DataType.INT32: "Int32",
    DataType.INT16: "Int16",
    DataType.INT8: "Int8",
    DataType.UINT64: "UInt64",
    DataType.UINT32: "UInt32",
    DataType.UINT16: "UInt16",
    DataType.UINT8: "UInt8",
}
"""The members of ``DML_SCALAR_UNION``."""


@dataclass(frozen=True)
class ScalarKind(Kind):
    """A ``DML_SCALAR_UNION``.

    Kept as an integer, or for the types with a fraction as the nearest `Real` of the type.

    Attributes
    ----------
    typed_by : str
        The attribute, before this one, that names the type.
    wraps : bool
        Whether a negative number is accepted for an unsigned type and means the value with the same
        bits.
    """

    typed_by: str
    wraps: bool = False

    text = "scalar"
    accepted = "a number"

    @property
    def needs(self) -> frozenset[str]:
        return frozenset((self.typed_by,))

    def convert(self, value: Any) -> Any:
        try:
            return integer_of(value)
        except TypeError:
            return real_of(value)

    def resolve(self, value: Any, siblings: Siblings) -> Any:
        data_type = siblings[self.typed_by]
        if _has_fraction(data_type):
            return rounded(real_of(value), data_type.numpy)
        if self.wraps and isinstance(value, int):
            low, _ = limits(data_type)  # the lowest value of a signed type
            return (
                value + 2**data_type.bits if -(2 ** (data_type.bits - 1)) <= value < low else value
            )
        return value

    def find_out_of_range(
        self, value: Any, siblings: Siblings, level: FeatureLevel
    ) -> Iterator[Outside]:
        data_type = siblings[self.typed_by]
        if _has_fraction(data_type):
            if not fits(value, data_type.numpy):
                yield "", f"{range_text(data_type.numpy)} ({data_type})", value
            return
        low, high = limits(data_type)
        if not isinstance(value, int) or not low <= value <= high:
            minimum = -(2 ** (data_type.bits - 1)) if self.wraps else low
            yield "", f"an integer in {minimum}..{high} ({data_type})", value

    def parse(self, value: Any, siblings: Siblings) -> Any:
        data_type = siblings[self.typed_by]
        if isinstance(value, Mapping):
            return self._member(value, data_type)
        if _has_fraction(data_type):
            return _json.json_float(value)
        low, high = limits(data_type)
        return _json.json_integer(-(2 ** (data_type.bits - 1)) if self.wraps else low, high)(value)

    def _member(self, value: Mapping[str, Any], data_type: DataType) -> Any:
        name = MEMBERS.get(data_type)
        if name is None or list(value) != [name]:
            expected = (
                "a number" if name is None else f"a number or an object of one field '{name}'"
            )
            raise ModelError(f"Expected {expected} ({data_type}), got {_json.json_shown(value)}.")
        if data_type is not DataType.FLOAT16:
            return _json.field(
                value, name, lambda inner: self.parse(inner, {self.typed_by: data_type})
            )
        bits = _json.field(value, name, _json.json_integer(0, 2**16 - 1))
        return float(np.array(bits, np.uint16).view(np.float16))

    def write(self, value: Any) -> Any:
        return written(value) if isinstance(value, Real) else value


def _has_fraction(data_type: DataType) -> bool:
    return data_type.suffix.startswith("F")


def limits(data_type: DataType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    if data_type.suffix.startswith("U"):
        return 0, 2**data_type.bits - 1
    return -(2 ** (data_type.bits - 1)), 2 ** (data_type.bits - 1) - 1
