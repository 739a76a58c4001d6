"""Resources: named buffers, their initial values, and how much memory they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any, Final

import numpy as np

from anydml.core import _json
from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError
from anydml.core.problems import Problem
from anydml.models import formats
from anydml.models.files import Folder, Place, State, parts_below, state

Array = np.ndarray[Any, np.dtype[Any]]

# NumPy copies what it accumulates in place: a part at a time.
_CHUNK: Final = 2**16


@dataclass(frozen=True)
class Resource:
    """Buffer that a model declares; nothing is allocated before `allocate`.

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
        """Allocate the buffer with its initial data: all of it, or the first bytes up to `end`."""
        buffer = self.reserve(np.zeros)
        data = self.data(buffer)
        if end is not None:  # and whole elements of any type
            data = data[: max(0, -(-(end - self.offset) // 8) * 8)]
        if data.size:
            self.fill(data)
        return buffer

    def reserve(self, make: Callable[..., Array]) -> Array:
        """Allocate memory for the buffer, by `numpy.zeros` or `numpy.empty`.

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
        """Return the bytes of a buffer in which the initial data were."""
        return buffer[self.offset : self.offset + self.data_size]

    def elements(self, octets: Array) -> Array:
        """View bytes of the buffer as numbers of the type of the resource, as many as are whole."""
        assert self.data_type is not None, "the command is refused otherwise"
        dtype = self.data_type.numpy
        return octets[: octets.size // dtype.itemsize * dtype.itemsize].view(dtype)


@dataclass(frozen=True)
class _Data:
    data_type: DataType | None
    size: int
    fill: Callable[[Array], None]


def read_resource(name: str, value: Any, folder: Folder | None, memory_limit: int) -> Resource:
    """Read the resource that a JSON object declares; its file is in the folder, if any.

    Raises
    ------
    ModelError
        A field is missing or wrong, a file cannot be used, or the memory limit is too small.
    """
    fields = _json.json_object(value)
    faults = _json.Faults()
    data_type, typed = None, False
    with faults.kept():
        data_type = _json.field(fields, "initialValuesDataType", _known_type, None)
        typed = True
    offset = faults.field(fields, "initialValuesOffsetInBytes", _json.json_uint64, 0)
    size = faults.field(fields, "sizeInBytes", _json.json_uint64, None)
    picture = _Picture(None, memory_limit)
    if _is_picture(fields.get("initialValues")):  # else nothing reads the members, which is warned
        sizes = faults.field(fields, "resampleSize", formats.read_size, None)
        faults.field(fields, "resampleMode", formats.read_mode, None)
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
    """Sizes that a picture is resampled to, and the most bytes to decode it."""

    sizes: tuple[int, ...] | None
    limit: int


def _is_picture(value: Any) -> bool:
    source = value.get("sourcePath") if isinstance(value, Mapping) else None
    return isinstance(source, str) and formats.is_picture(source)


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
        data = _mixed(value) if data_type is None else _many(data_type, value)
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
        make = _constant if "value" in value else _sequence
        known = _required(data_type)
        size, fill = make(known, value)
        return _Data(known, size, fill)
    if "sourcePath" in value:
        place = _json.field(value, "sourcePath", lambda value: read_place(value, folder))
        if formats.is_picture(place.name):
            return _pixels(place, data_type, picture)
        return (_npy if place.name.lower().endswith(".npy") else _raw)(place, data_type)
    raise ModelError("Expected an object with 'value', 'valueStart' or 'sourcePath'.")


def _required(data_type: DataType | None) -> DataType:
    if data_type is None:
        raise ModelError("Field 'initialValuesDataType' is required for these values.")
    return data_type


def read_place(value: Any, folder: Folder | None) -> Place:
    """Read the name of a file in the folder of a model."""
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
            header = formats.read_header(file)
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
    known = formats.check_picture_type(data_type)
    with place.open_file() as file, _said_of(place):
        before = state(file)
        sizes = formats.picture_sizes(file, picture.sizes, picture.limit)

    def fill(buffer: Array) -> None:
        with place.open_file() as file, _said_of(place):
            elements = formats.decode_picture(file, sizes, known.numpy)
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


def _known_type(value: Any) -> DataType | None:
    """Read a data type, None for UNKNOWN; only those that NumPy has can fill a buffer."""
    if value in ("UNKNOWN", "DML_TENSOR_DATA_TYPE_UNKNOWN"):
        return None
    found = DataType.read_json(value)
    if not found.element_size:
        raise ModelError(f"Expected a type of whole bytes, got {found}.")
    return found


def _one(data_type: DataType) -> Callable[[Any], Any]:
    """Return a reader of one value of the type, as a NumPy scalar."""

    def parse(value: Any) -> Any:
        try:
            return _many(data_type, [value])[0]
        except ModelError as error:
            raise ModelError(*(text.removeprefix("[0]: ") for text in error.problems)) from error

    return parse


def _many(data_type: DataType, values: list[Any]) -> Array:
    """Read values of one type; a message says which of several is wrong.

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


def _constant(data_type: DataType, fields: Any) -> tuple[int, Callable[[Array], None]]:
    """Read ``{value, valueCount}``: how many bytes it takes, and a function that fills them."""
    faults = _json.Faults()
    count = faults.field(fields, "valueCount", _json.json_uint32)
    value = faults.field(fields, "value", _one(data_type))
    faults.finish()

    def fill(data: Array) -> None:
        data.view(value.dtype)[...] = value

    return count * data_type.element_size, fill


def _sequence(data_type: DataType, fields: Any) -> tuple[int, Callable[[Array], None]]:
    """Read ``{valueStart, valueDelta, valueCount}``, which is added up in the type itself."""
    faults = _json.Faults()
    count = faults.field(fields, "valueCount", _json.json_uint32)
    start = faults.field(fields, "valueStart", _one(data_type))
    delta = faults.field(fields, "valueDelta", _one(data_type))
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


def _mixed(values: list[Any]) -> Array:
    """Read the bytes of a list of ``{type, value}``, packed without alignment."""
    return np.frombuffer(b"".join(_json.parse_members(values, _typed)), np.uint8)


def _typed(value: Any) -> bytes:
    if isinstance(value, int | float | str):
        raise ModelError(
            f"Expected an object of a type and a value (or give the resource's "
            f"'initialValuesDataType'), got {_json.json_shown(value)}."
        )
    fields = _json.json_object(value)
    _json.field(fields, "name", _json.anything, None)  # for readers
    data_type = _json.field(fields, "type", _known_type)
    if data_type is None:
        raise ModelError(Problem("Expected a known type, got UNKNOWN.").below("type", "type"))
    number = _json.field(fields, "value", _one(data_type))
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


def json_numbers(array: Array) -> list[Any]:
    """List elements in row-major order; NaN and infinities, which JSON lacks, as strings."""
    numbers = array.reshape(-1).tolist()
    if array.dtype.kind != "f":
        return numbers
    return [number if isfinite(number) else str(number) for number in numbers]
