"""JSON values of a data type, and what `initialValues` makes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from anydml.core import _json
from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError

Array = np.ndarray[Any, np.dtype[Any]]

# NumPy copies what it accumulates in place: a part at a time.
_CHUNK: Final = 2**16


def known_type(value: Any) -> DataType | None:
    """A data type, None for UNKNOWN; only those that NumPy has can fill a buffer."""
    if value in ("UNKNOWN", "DML_TENSOR_DATA_TYPE_UNKNOWN"):
        return None
    found = DataType.read_json(value)
    if not found.element_size:
        raise ModelError(f"Expected a type of whole bytes, got {found}.")
    return found


def one(data_type: DataType) -> Callable[[Any], Any]:
    """A reader of one value of the type, as a NumPy scalar."""

    def parse(value: Any) -> Any:
        try:
            return many(data_type, [value])[0]
        except ModelError as error:
            raise ModelError(*(text.removeprefix("[0]: ") for text in error.problems)) from error

    return parse


def many(data_type: DataType, values: list[Any]) -> Array:
    """Values of one type; a message says which of several is wrong.

    Raises
    ------
    ModelError
        Not a number of that type, or out of its range.
    """
    dtype = data_type.numpy
    if dtype.kind == "f":
        # In three steps, as the original reads them; what is too large for the type is infinite.
        numbers = _floats(values)
        with np.errstate(over="ignore", under="ignore"):
            if dtype == np.float16:
                numbers = numbers.astype(np.float32)
            return numbers.astype(dtype)
    info = np.iinfo(dtype)
    all_integers = set(map(type, values)) <= {int}  # type by type, because bools are rejected
    if not all_integers or min(values, default=0) < info.min or max(values, default=0) > info.max:
        values = _json.parse_members(values, _json.json_integer(int(info.min), int(info.max)))
    return np.array(values, dtype)


def constant(data_type: DataType, fields: Any) -> tuple[int, Callable[[Array], None]]:
    """The bytes that ``{value, valueCount}`` takes, and what fills them."""
    faults = _json.Faults()
    count = faults.field(fields, "valueCount", _json.json_uint32)
    value = faults.field(fields, "value", one(data_type))
    faults.finish()

    def fill(data: Array) -> None:
        data.view(value.dtype)[...] = value

    return count * data_type.element_size, fill


def sequence(data_type: DataType, fields: Any) -> tuple[int, Callable[[Array], None]]:
    """The same for ``{valueStart, valueDelta, valueCount}``, added up in the type itself."""
    faults = _json.Faults()
    count = faults.field(fields, "valueCount", _json.json_uint32)
    start = faults.field(fields, "valueStart", one(data_type))
    delta = faults.field(fields, "valueDelta", one(data_type))
    faults.finish()

    def fill(data: Array) -> None:
        numbers = data.view(start.dtype)
        numbers[0] = start
        numbers[1:] = delta
        with np.errstate(all="ignore"):  # integers wrap, floats reach infinity
            for at in range(0, numbers.size, _CHUNK):
                part = numbers[at : at + _CHUNK + 1]
                np.add.accumulate(part, out=part)

    return count * data_type.element_size, fill


def mixed(values: list[Any]) -> Array:
    """The bytes of a list of ``{type, value}``, packed without alignment."""
    return np.frombuffer(b"".join(_json.parse_members(values, _typed)), np.uint8)


def _typed(value: Any) -> bytes:
    if isinstance(value, int | float | str):
        raise ModelError(
            f"Expected an object of a type and a value (or give the resource's "
            f"'initialValuesDataType'), got {_json.json_shown(value)}."
        )
    fields = _json.json_object(value)
    _json.field(fields, "name", _json.anything, None)  # for readers
    data_type = _json.field(fields, "type", known_type)
    if data_type is None:
        raise ModelError("Error parsing field 'type': Expected a known type, got UNKNOWN.")
    number = _json.field(fields, "value", one(data_type))
    return bytes(number.tobytes())


def _floats(values: list[Any]) -> Array:
    if set(map(type, values)) <= {int, float}:
        try:
            numbers = np.array(values, np.float64)
        except OverflowError:
            pass
        else:
            if np.isfinite(numbers).all():
                return numbers
    return np.array(_json.parse_members(values, _json.json_float), np.float64)
