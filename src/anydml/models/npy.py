"""`.npy` files: their header checked against the file before any data is read."""

from __future__ import annotations

import os
import warnings
from math import prod
from typing import Any, BinaryIO

import numpy as np

from anydml.dtypes import DataType
from anydml.errors import AnyDMLError, ModelError

Array = np.ndarray[Any, np.dtype[Any]]


def read_header(file: BinaryIO) -> tuple[np.dtype[Any], int]:
    """The element type (in the file's byte order) and element count; the file is left at the data.

    Raises
    ------
    ModelError
        Not a `.npy` file; a type that no tensor has; Fortran order; less data than the header says.
    """
    try:
        shape, fortran, dtype = _header(file)
    except Exception as error:  # the header is a Python literal: much can be wrong with it
        raise ModelError(f"Expected an .npy file: {error}.") from error
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ModelError(f"Expected sizes of 0 or more, got shape {shape}.")
    try:
        DataType.from_numpy(dtype)
    except AnyDMLError as error:
        raise ModelError(f"Expected elements of a tensor's type: {error}.") from error
    if fortran and len(shape) > 1:
        raise ModelError("Expected C order, got Fortran order.")
    count = prod(shape)
    here = file.tell()
    available = file.seek(0, os.SEEK_END) - here
    file.seek(here)
    if count * dtype.itemsize > available:
        raise ModelError(
            f"Expected {count * dtype.itemsize} bytes of data (shape {shape}, {dtype}), "
            f"got {available}."
        )
    return dtype, count


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ModelError(f"version {version[0]}.{version[1]} is not known")
    # Version 3 differs from 2 in the encoding of structured types' field names only.
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # headers that Python 2 wrote
        found: tuple[tuple[int, ...], bool, np.dtype[Any]] = read(file)
    return found


def write(file: BinaryIO, array: Array) -> None:
    """The array as a `.npy` file."""
    np.lib.format.write_array(file, array, allow_pickle=False)
