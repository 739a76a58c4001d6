"""Resources: named buffers, what fills them first, and how much memory they take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from anydml import _json
from anydml.dtypes import DataType
from anydml.errors import ModelError
from anydml.models import npy, values
from anydml.models.paths import Limits, find_source, open_source

Array = np.ndarray[Any, np.dtype[Any]]

_IMAGES: Final = (".jpg", ".png")


@dataclass(frozen=True)
class Resource:
    """A buffer that a model declares; nothing is allocated before `allocate`.

    Attributes
    ----------
    name : str
        The model's name for it.
    data_type : DataType or None
        Type of the initial data, None where it is unknown.
    size, offset, data_size : int
        In bytes: the buffer, where in it the initial data begin, and how long they are.
    size_given : bool
        Whether the model says the size; otherwise it is the data's, rounded up to 4.
    fill : callable
        Writes the initial data into the bytes that it is given.
    """

    name: str
    data_type: DataType | None
    size: int
    offset: int
    data_size: int
    size_given: bool
    fill: Callable[[Array], None]

    def allocate(self) -> Array:
        """The buffer as bytes, with its initial data."""
        buffer = np.zeros(self.size, np.uint8)
        self.fill(self.data(buffer))
        return buffer

    def data(self, buffer: Array) -> Array:
        """The bytes of a buffer in which the initial data were."""
        return buffer[self.offset : self.offset + self.data_size]


@dataclass(frozen=True)
class _Data:
    data_type: DataType | None
    size: int
    fill: Callable[[Array], None]


def read_resource(name: str, value: Any, model_dir: Path, limits: Limits) -> Resource:
    """The resource that a JSON object declares.

    Raises
    ------
    ModelError
        A field is missing or wrong, a file cannot be used, or the memory limit is too small.
    """
    fields = _json.json_object(value)
    data_type = _json.field(fields, "initialValuesDataType", values.known_type, None)
    data = _json.field(
        fields, "initialValues", lambda given: _initial(given, data_type, model_dir, limits)
    )
    if not data.size:
        raise ModelError("Error parsing field 'initialValues': Expected at least one value.")
    offset = _json.field(fields, "initialValuesOffsetInBytes", _json.json_uint64, 0)
    rounded = -(-data.size // 4) * 4
    size = _json.field(fields, "sizeInBytes", _json.json_uint64, rounded)
    if offset + data.size > size:
        raise ModelError(
            f"Expected a buffer of at least {offset + data.size} bytes ({data.size} of initial "
            f"values at offset {offset}), got {size}."
        )
    if size > limits.memory_limit:
        raise ModelError(
            f"Expected at most {limits.memory_limit} bytes (--memory-limit), got {size}."
        )
    return Resource(
        name, data.data_type, size, offset, data.size, "sizeInBytes" in fields, data.fill
    )


def _initial(value: Any, data_type: DataType | None, model_dir: Path, limits: Limits) -> _Data:
    if isinstance(value, list):
        data = values.mixed(value) if data_type is None else values.many(data_type, value)
        octets = data.view(np.uint8)
        return _Data(data_type, octets.size, lambda buffer: np.copyto(buffer, octets))
    if value == "deferred":
        raise ModelError("Expected values: 'deferred' is for the outputs of ONNX models.")
    if not isinstance(value, Mapping):
        raise ModelError(f"Expected an array or an object, got {_json.shown(value)}.")
    if "value" in value and ("valueStart" in value or "sourcePath" in value):
        raise ModelError("Expected one of 'value', 'valueStart' and 'sourcePath', got several.")
    if "value" in value or "valueStart" in value:
        make = values.constant if "value" in value else values.sequence
        known = _required(data_type)
        size, fill = make(known, value)
        return _Data(known, size, fill)
    if "sourcePath" in value:
        name = _json.field(value, "sourcePath", _json.json_string)
        path = find_source(name, model_dir, limits)
        if path.suffix.lower() in _IMAGES:
            raise ModelError(f"Expected an .npy or raw file, got {name!r}: images are not decoded.")
        return (_npy if path.suffix.lower() == ".npy" else _raw)(path, data_type)
    raise ModelError("Expected an object with 'value', 'valueStart' or 'sourcePath'.")


def _required(data_type: DataType | None) -> DataType:
    if data_type is None:
        raise ModelError("Field 'initialValuesDataType' is required for these values.")
    return data_type


def _npy(path: Path, data_type: DataType | None) -> _Data:
    with open_source(path) as file:
        dtype, count = npy.read_header(file)
        start = file.tell()
    found = DataType.from_numpy(dtype)
    if data_type not in (None, found):
        raise ModelError(
            f"Expected {data_type} (initialValuesDataType), got {found} in {path.name!r}."
        )

    def fill(buffer: Array) -> None:
        _read(path, start, buffer)
        if not dtype.isnative:
            buffer.view(dtype.newbyteorder("=")).byteswap(inplace=True)

    return _Data(found, count * dtype.itemsize, fill)


def _raw(path: Path, data_type: DataType | None) -> _Data:
    with open_source(path) as file:
        size = file.seek(0, 2)
    return _Data(_required(data_type), size, lambda buffer: _read(path, 0, buffer))


def _read(path: Path, start: int, buffer: Array) -> None:
    with open_source(path) as file:
        file.seek(start)
        # typeshed gives BinaryIO no readinto; every file that open() makes has it.
        if file.readinto(buffer.data) != buffer.size:  # type: ignore[attr-defined]
            raise ModelError(f"File {str(path)!r} has become shorter while the model was read.")
