"""Resources: named buffers, what fills them first, and how much memory they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from anydml.core import _json
from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError
from anydml.models import initial_values, npy, pictures
from anydml.models.files import Place, State, state
from anydml.models.paths import Folder, parts_below

Array = np.ndarray[Any, np.dtype[Any]]


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
        Writes the initial data, or as many whole elements as it is given bytes for, into them.
    """

    name: str
    data_type: DataType | None
    size: int
    offset: int
    data_size: int
    size_given: bool
    fill: Callable[[Array], None]

    def allocate(self, end: int | None = None) -> Array:
        """The buffer as bytes, with its initial data: all of it, or the first bytes up to `end`."""
        buffer = self.reserve(np.zeros)
        data = self.data(buffer)
        if end is not None:  # and whole elements of any type
            data = data[: max(0, -(-(end - self.offset) // 8) * 8)]
        if data.size:
            self.fill(data)
        return buffer

    def reserve(self, make: Callable[..., Array]) -> Array:
        """Memory for the buffer, as `numpy.zeros` or `numpy.empty` makes it.

        Raises
        ------
        ModelError
            The system does not have it.
        """
        try:
            return make(self.size, np.uint8)
        except (MemoryError, ValueError) as error:  # ValueError: beyond the address space
            raise ModelError(f"{self.size} bytes could not be allocated.") from error

    def data(self, buffer: Array) -> Array:
        """The bytes of a buffer in which the initial data were."""
        return buffer[self.offset : self.offset + self.data_size]

    def elements(self, octets: Array) -> Array:
        """Bytes of the buffer as numbers of the resource's type, as many as are whole."""
        assert self.data_type is not None, "the loader refuses the command otherwise"
        dtype = self.data_type.numpy
        return octets[: octets.size // dtype.itemsize * dtype.itemsize].view(dtype)


@dataclass(frozen=True)
class _Data:
    data_type: DataType | None
    size: int
    fill: Callable[[Array], None]


def read_resource(name: str, value: Any, folder: Folder | None, memory_limit: int) -> Resource:
    """The resource that a JSON object declares; its file is read from the folder, if any.

    Raises
    ------
    ModelError
        A field is missing or wrong, a file cannot be used, or the memory limit is too small.
    """
    fields = _json.json_object(value)
    faults = _json.Faults()
    data_type, typed = None, False
    with faults.kept():
        data_type = _json.field(fields, "initialValuesDataType", initial_values.known_type, None)
        typed = True
    offset = faults.field(fields, "initialValuesOffsetInBytes", _json.json_uint64, 0)
    size = faults.field(fields, "sizeInBytes", _json.json_uint64, None)
    picture = _Picture(None, memory_limit)
    if _is_picture(fields.get("initialValues")):  # else nothing reads the members, which is warned
        sizes = faults.field(fields, "resampleSize", pictures.read_size, None)
        faults.field(fields, "resampleMode", pictures.read_mode, None)
        picture = _Picture(sizes, memory_limit)
    # Without the type the values cannot be checked.
    data = faults.field(
        fields,
        "initialValues",
        lambda value: _filled(value, data_type, folder, picture) if typed else None,
    )
    faults.finish()
    assert data is not None, "what has no type has been refused"
    size_given = size is not None
    if size is None:
        size = -(-data.size // 4) * 4
    if offset + data.size > size:
        raise ModelError(
            f"Expected a buffer of at least {offset + data.size} bytes ({data.size} of initial "
            f"values at offset {offset}), got {size}."
        )
    if size > memory_limit:
        raise ModelError(f"Expected at most {memory_limit} bytes (--memory-limit), got {size}.")
    return Resource(name, data.data_type, size, offset, data.size, size_given, data.fill)


@dataclass(frozen=True)
class _Picture:
    """What is known of a picture besides its file: its sizes, and the most bytes to decode it."""

    sizes: tuple[int, ...] | None
    limit: int


def _is_picture(value: Any) -> bool:
    source = value.get("sourcePath") if isinstance(value, Mapping) else None
    return isinstance(source, str) and pictures.is_picture(source)


def _filled(
    value: Any, data_type: DataType | None, folder: Folder | None, picture: _Picture
) -> _Data:
    data = _initial(value, data_type, folder, picture)
    if not data.size:
        raise ModelError("Expected at least one value.")
    return data


def _initial(
    value: Any, data_type: DataType | None, folder: Folder | None, picture: _Picture
) -> _Data:
    if isinstance(value, list):
        data = (
            initial_values.mixed(value)
            if data_type is None
            else initial_values.many(data_type, value)
        )
        octets = data.view(np.uint8)
        return _Data(
            data_type, octets.size, lambda buffer: np.copyto(buffer, octets[: buffer.size])
        )
    if value == "deferred":
        raise ModelError("Expected values: 'deferred' is for the outputs of ONNX models.")
    if not isinstance(value, Mapping):
        raise ModelError(f"Expected an array or an object, got {_json.json_shown(value)}.")
    if "value" in value and ("valueStart" in value or "sourcePath" in value):
        raise ModelError("Expected one of 'value', 'valueStart' and 'sourcePath', got several.")
    if "value" in value or "valueStart" in value:
        make = initial_values.constant if "value" in value else initial_values.sequence
        known = _required(data_type)
        size, fill = make(known, value)
        return _Data(known, size, fill)
    if "sourcePath" in value:
        place = _json.field(value, "sourcePath", lambda value: read_place(value, folder))
        if pictures.is_picture(place.name):
            return _pixels(place, data_type, picture)
        return (_npy if place.name.lower().endswith(".npy") else _raw)(place, data_type)
    raise ModelError("Expected an object with 'value', 'valueStart' or 'sourcePath'.")


def _required(data_type: DataType | None) -> DataType:
    if data_type is None:
        raise ModelError("Field 'initialValuesDataType' is required for these values.")
    return data_type


def read_place(value: Any, folder: Folder | None) -> Place:
    """The file in a model's folder that it names."""
    name = _json.json_string(value)
    if folder is None:
        raise ModelError(
            "Expected no files: a model from standard input has no folder "
            f"(--input-dir names a folder for them), got {_json.short_repr(name)}."
        )
    return Place(folder, parts_below(folder, name))


def _npy(place: Place, data_type: DataType | None) -> _Data:
    with place.open_file() as file:
        before = state(file)
        with _said_of(place):
            header = npy.read_header(file)
        start = file.tell()
    found = DataType.from_numpy(header.dtype)
    if data_type not in (None, found):
        raise ModelError(f"Expected {data_type} (initialValuesDataType), got {found} in {place}.")

    def fill(buffer: Array) -> None:
        _read_file(place, before, start, buffer)
        if not header.dtype.isnative:
            buffer.view(header.dtype.newbyteorder("=")).byteswap(inplace=True)

    return _Data(found, header.size, fill)


def _pixels(place: Place, data_type: DataType | None, picture: _Picture) -> _Data:
    known = pictures.check_type(data_type)
    with place.open_file() as file, _said_of(place):
        before = state(file)
        sizes = pictures.picture_sizes(file, picture.sizes, picture.limit)

    def fill(buffer: Array) -> None:
        with place.open_file() as file, _said_of(place):
            elements = pictures.decode(file, sizes, known.numpy)
            if state(file) != before:
                raise _changed(place)
        octets = elements.reshape(-1).view(np.uint8)
        np.copyto(buffer, octets[: buffer.size])

    return _Data(known, prod(sizes) * known.element_size, fill)


@contextmanager
def _said_of(place: Place) -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        raise ModelError(f"File {place}: {error}") from error


def _changed(place: Place) -> ModelError:
    return ModelError(f"File {place} has changed since the model was read.")


def _raw(place: Place, data_type: DataType | None) -> _Data:
    with place.open_file() as file:
        before = state(file)
    known = _required(data_type)
    return _Data(known, before.size, lambda buffer: _read_file(place, before, 0, buffer))


def _read_file(place: Place, before: State, start: int, buffer: Array) -> None:
    with place.open_file() as file:
        file.seek(start)
        # typeshed gives BinaryIO no readinto; every file that open() makes has it.
        count = file.readinto(buffer.data)  # type: ignore[attr-defined]
        if count != buffer.size or state(file) != before:
            raise _changed(place)
