"""Formats of arrays in files: `.npy`, pictures and raw bytes.

The header of a `.npy` file is a Python literal. NumPy evaluates it; here it is matched, so that no
header can take time or memory, whatever its length, depth and numbers. It is checked against the
file before any data is read.

A picture is a tensor ``{1, channels, height, width}`` of floats between 0 and 1, through Pillow.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import numpy as np

from anydml.core import _json
from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError, ModelError
from anydml.core.extras import name_missing_package
from anydml.models.files import Place, open_file

Array = np.ndarray[Any, np.dtype[Any]]

_MAGIC: Final = b"\x93NUMPY"
_LENGTH_BYTES: Final[dict[tuple[int, ...], int]] = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
# NumPy's own limit, and the most dimensions that an array of its has.
_LONGEST_HEADER: Final = 10_000
_MOST_DIMENSIONS: Final = 64

_MEMBERS: Final = ("descr", "fortran_order", "shape")
# Every step is decided by its first character: a match takes time in proportion to its text.
# (No possessive quantifiers: Python 3.11.2 gets nested ones wrong.)
_GAP: Final = r"[ \t\n]*"
_SIZE: Final = rf"(?:0|[1-9][0-9]{{0,19}})L?{_GAP}"  # L: from Python 2
_VALUES: Final = {
    "descr": r"""'[^'\\]*'|"[^"\\]*"|\[[^:]*\]""",  # a list: fields of a record
    "fortran_order": r"True|False",
    "shape": rf"\({_GAP}(?:{_SIZE},{_GAP}(?:{_SIZE}(?:,{_GAP}{_SIZE})*(?:,{_GAP})?)?)?\)",
}
_ONE: Final = "|".join(
    rf"""(?:'{name}'|"{name}"){_GAP}:{_GAP}(?P<{name}>{value})""" for name, value in _VALUES.items()
)
_MEMBER: Final = re.compile(rf"{_GAP}(?:{_ONE}){_GAP}(?:,{_GAP}|(?=\}}))")
_TYPE: Final = re.compile(r"[<>|=]?[?bBiufcmMOSUV][0-9]{0,2}")


class Header(NamedTuple):
    """Header of a `.npy` file: element type, in its byte order, bytes, shape and order."""

    dtype: np.dtype[Any]
    size: int
    shape: tuple[int, ...]
    order: Literal["C", "F"] = "C"


def read_header(file: BinaryIO, orders: str = "C") -> Header:
    """Read the header; the file is left at the data.

    Parameters
    ----------
    file : binary file
        At its beginning.
    orders : str
        ``"C"``, or ``"CF"`` to accept Fortran order, too.

    Raises
    ------
    ModelError
        Not a `.npy` file; a type that no tensor has; another order; less data than the header says.
    """
    members = _members(_header_text(file))
    dtype = _dtype(members["descr"])
    shape = tuple(map(int, re.findall(r"\d+", members["shape"])))
    if len(shape) > _MOST_DIMENSIONS:
        raise ModelError(f"Expected at most {_MOST_DIMENSIONS} dimensions, got {len(shape)}.")
    order: Literal["C", "F"] = "C"
    if members["fortran_order"] == "True" and len(shape) > 1:
        order = "F"
    if order not in orders:
        raise ModelError("Expected C order, got Fortran order.")
    size = prod(shape) * dtype.itemsize
    here = file.tell()
    available = file.seek(0, os.SEEK_END) - here
    file.seek(here)
    if size > available:
        raise ModelError(
            f"Expected {size} bytes of data (shape {shape}, {dtype}), got {available}."
        )
    return Header(dtype, size, shape, order)


def _header_text(file: BinaryIO) -> str:
    start = file.read(len(_MAGIC) + 2)
    if not start.startswith(_MAGIC):
        raise ModelError("Expected an .npy file, got something else.")
    version = tuple(start[len(_MAGIC) :])
    if version not in _LENGTH_BYTES:
        got = ".".join(map(str, version)) or "none"
        raise ModelError(f"Expected an .npy file of version 1.0, 2.0 or 3.0, got {got}.")
    octets = file.read(_LENGTH_BYTES[version])
    length = int.from_bytes(octets, "little")
    if length > _LONGEST_HEADER:
        raise ModelError(f"Expected a header of at most {_LONGEST_HEADER} bytes, got {length}.")
    header = file.read(length)
    if len(octets) < _LENGTH_BYTES[version] or len(header) < length:
        raise ModelError("Expected an .npy file, got one that ends within its header.")
    return header.decode("latin1")  # in version 3 UTF-8, but nothing else than ASCII is accepted


def _members(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    inside = text.removesuffix("\n").rstrip(" ")
    at = 1
    while inside.startswith("{") and (match := _MEMBER.match(inside, at)):
        found |= {name: value for name, value in match.groupdict().items() if value}
        at = match.end()
    if inside[at:] == "}" and found.keys() == {*_MEMBERS}:
        return found
    raise ModelError(
        f"Expected a header with {', '.join(map(repr, _MEMBERS))} of the usual form, "
        f"got {short_repr(inside)}."
    )


def _dtype(text: str) -> np.dtype[Any]:
    name = text[1:-1]
    if text[0] != "[" and _TYPE.fullmatch(name):
        try:
            dtype = np.dtype(name)
            DataType.from_numpy(dtype)
        except (TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, AnyDMLError) else f"got {name!r}"
            raise ModelError(f"Expected elements of a tensor's type: {reason}.") from error
        return dtype
    raise ModelError(f"Expected elements of a tensor's type: got {short_repr(text)}.")


def npy_pieces(array: Array) -> list[memoryview]:
    """Return the bytes of a `.npy` file of an array: the header and the elements."""
    array = np.asarray(array, order="C")
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    return [memoryview(file.getvalue()), octets_of(array)]


def octets_of(array: Array) -> memoryview:
    """View the bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data


_FORMATS: Final = {".jpg": "JPEG", ".png": "PNG"}
PICTURES: Final = tuple(_FORMATS)
"""Endings of the names of pictures."""

_MODES: Final = {1: "L", 3: "RGB", 4: "RGBA"}
_PICTURE_TYPES: Final = (DataType.FLOAT32, DataType.FLOAT16)
_PICTURE_RANK: Final = 4


def is_picture(name: str) -> bool:
    """Return whether a file is a picture, by its name."""
    return name.lower().endswith(PICTURES)


def load_pillow() -> Any:
    """Import the module `Image` of Pillow.

    Raises
    ------
    MissingPackageError
        It is not installed.
    """
    with name_missing_package("Images need Pillow", "anydml[image]"):
        from PIL import Image
    return Image


def read_size(value: Any) -> tuple[int, ...]:
    """Read the field `resampleSize`: {1, channels, height, width}."""
    sizes = _json.json_uint32_array(value)
    if len(sizes) != _PICTURE_RANK or sizes[0] != 1 or sizes[1] not in _MODES or not all(sizes):
        raise ModelError(
            f"Expected 1, channels (1, 3 or 4), height and width, got {_json.json_shown(value)}."
        )
    return sizes


def read_mode(value: Any) -> None:
    """Read the field `resampleMode`."""
    if value != "scale":
        raise ModelError(f"Expected 'scale', got {_json.json_shown(value)}.")


def check_picture_type(data_type: DataType | None) -> DataType:
    """Check the element type of a picture.

    Raises
    ------
    ModelError
        Not FLOAT32 or FLOAT16.
    """
    if data_type not in _PICTURE_TYPES:
        raise ModelError(f"Expected FLOAT32 or FLOAT16 for a picture, got {data_type}.")
    return data_type


def picture_sizes(file: BinaryIO, sizes: tuple[int, ...] | None, limit: int) -> tuple[int, ...]:
    """Return the sizes of a tensor of a picture: `sizes`, else its own with 1, 3 or 4 channels.

    Raises
    ------
    ModelError
        No picture, or one that takes more bytes than the limit to decode.
    """
    with _opened_picture(file) as image:
        width, height = image.size
        if 4 * width * height > limit:
            raise ModelError(
                f"Expected a picture that takes at most {limit} bytes (--memory-limit), "
                f"got {width} x {height} pixels."
            )
        own = 4 if image.has_transparency_data else 1 if image.mode in ("1", "L") else 3
        return sizes or (1, own, height, width)


def decode_picture(file: BinaryIO, sizes: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Decode the elements of a picture, scaled to the sizes with bicubic interpolation."""
    _, channels, height, width = sizes
    with _opened_picture(file) as image:
        converted = image.convert(_MODES[channels])
        if converted.size != (width, height):
            converted = converted.resize((width, height), load_pillow().Resampling.BICUBIC)
        pixels = np.asarray(converted, np.float32).reshape(height, width, channels)
        return (pixels.transpose(2, 0, 1) / np.float32(255)).astype(dtype)


def check_picture_dimensions(name: str, dimensions: Sequence[int]) -> None:
    """Check that a tensor of these sizes can be written as a picture.

    Raises
    ------
    ModelError
        It cannot.
    """
    channels = dimensions[1] if len(dimensions) == _PICTURE_RANK else 0
    jpeg = name.lower().endswith(".jpg")
    if channels not in _MODES or (jpeg and channels == 4) or dimensions[0] != 1:
        counts = "1 or 3" if jpeg else "1, 3 or 4"
        raise ModelError(
            f"Expected 1, channels ({counts}), height and width for a picture, "
            f"got {list(dimensions)}."
        )


def encode_picture(name: str, elements: Array) -> bytes:
    """Encode a picture; elements below 0 and NaN are black, those above 1 full."""
    values = np.nan_to_num(elements[0].astype(np.float32), nan=0).clip(0, 1)
    pixels = np.rint(values.transpose(1, 2, 0) * np.float32(255)).astype(np.uint8)
    file = io.BytesIO()
    image = load_pillow().fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)
    image.save(file, _FORMATS[name[name.rindex(".") :].lower()])
    return file.getvalue()


@contextmanager
def _opened_picture(file: BinaryIO) -> Iterator[Any]:
    opening: Callable[..., Any] = load_pillow().open
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sizes, which are checked here
            with opening(file, formats=tuple(_FORMATS.values())) as image:
                yield image
    except AnyDMLError:
        raise
    except Exception as error:  # whatever a decoder raises of a file that is broken
        raise ModelError(f"it cannot be decoded: {error}") from error


def read_array(path: Path) -> Array:
    """Read the array in a `.npy` file, or the bytes of any other file.

    Raises
    ------
    ModelError
        The file cannot be read, or has elements of a type that no tensor has.
    """
    with open_file(path) as file:
        return _read(file, is_raw(path), str(path))


def read_array_at(place: Place) -> Array:
    """Read the array in a file of a model's folder, as `read_array` reads one of the user."""
    with place.open_file() as file:
        return _read(file, is_raw(Path(place.name)), place.display_path)


def _read(file: BinaryIO, raw: bool, display_path: str) -> Array:
    if raw:
        return np.fromfile(file, np.uint8)
    try:
        header = read_header(file, "CF")
    except ModelError as error:
        raise ModelError(f"File {display_path!r}: {error}") from error
    flat = np.fromfile(file, header.dtype, prod(header.shape))
    array = flat.reshape(header.shape, order=header.order)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def is_raw(path: Path) -> bool:
    """Return whether a file has elements alone, without their type and shape."""
    return path.suffix.lower() != ".npy"


def comparable(array: Array, other: Array, path: Path) -> Array:
    """Give the array of a file the type and shape of another where the file does not say them.

    Raw bytes have neither.

    Raises
    ------
    ModelError
        There are more or fewer raw bytes than the other array has.
    """
    if is_raw(path):
        if array.nbytes != other.nbytes:
            raise ModelError(
                f"File {str(path)!r}: expected {other.nbytes} bytes ({other.dtype} of shape "
                f"{other.shape}), got {array.nbytes}."
            )
        array = array.view(other.dtype).reshape(other.shape)
    return array
