"""`.npy` files: a header of a known form, checked against the file before any data is read.

The header is a Python literal. NumPy evaluates it; here it is matched, so that no header can take
time or memory, whatever its length, depth and numbers.
"""

from __future__ import annotations

import io
import os
import re
from math import prod
from typing import Any, BinaryIO, Final, Literal, NamedTuple

import numpy as np

from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError, ModelError

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
    """What a header says: the element type, in the file's byte order, the bytes and the shape."""

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
    members = _members(_text(file))
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


def _text(file: BinaryIO) -> str:
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


def header_of(array: Array) -> bytes:
    """What stands in front of a contiguous array's elements in a `.npy` file."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    return file.getvalue()
