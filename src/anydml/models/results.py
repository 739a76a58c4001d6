"""A model's resources as arrays and as JSON, and arrays to compare them with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite, prod
from pathlib import Path
from typing import Any

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import ModelError
from anydml.core.tensor import TensorDesc
from anydml.models import npy
from anydml.models.commands import Dispatch, WriteFile
from anydml.models.files import open_file
from anydml.models.loader import Model
from anydml.ops._fields import Role

Array = np.ndarray[Any, np.dtype[Any]]


def elements(tensor: TensorDesc, octets: Array) -> Array:
    """The elements of a packed tensor at the beginning of a buffer."""
    dtype = tensor.data_type.numpy
    return octets[: tensor.element_count * dtype.itemsize].view(dtype).reshape(tensor.sizes)


def arrays(model: Model, buffers: Mapping[str, Array]) -> dict[str, Array]:
    """Each resource as an array on its buffer.

    It has the type and sizes of the tensor that the model binds it to. A resource that is bound to
    several, to a part of a tensor or to one with strides is flat, in its own type; one without a
    type is bytes.
    """
    found: dict[str, Array] = {}
    bound = dict(_bound(model))
    for name, buffer in buffers.items():
        resource, tensor = model.resources[name], bound.get(name)
        if tensor is not None:
            found[name] = elements(tensor, buffer)
        elif resource.data_type is not None:
            found[name] = resource.elements(resource.data(buffer))
        else:
            found[name] = buffer
    return found


def _bound(model: Model) -> Iterator[tuple[str, TensorDesc]]:
    # Resources and the only tensor that each is bound to, from its first byte on.
    tensors: dict[str, set[tuple[DataType, tuple[int, ...]] | None]] = {}
    for command in model.commands.values():
        if not isinstance(command, Dispatch):
            continue
        dispatchable = model.dispatchables[command.dispatchable]
        bindings = {**dispatchable.bindings, **command.bindings}
        for info in dispatchable.desc.bind_points():
            paths = dispatchable.desc.paths(info)
            for (_, tensor), source in zip(paths, bindings.get(info.name, ()), strict=False):
                is_packed = tensor.strides is None and not source.element_offset
                stored = tensor.storage
                shape = (stored.data_type, stored.sizes) if is_packed else None
                tensors.setdefault(source.name, set()).add(shape)
    for name, shapes in tensors.items():
        (first, *others) = shapes
        if first is not None and not others:
            yield name, TensorDesc(*first)


def as_json(model: Model, found: Mapping[str, Array]) -> dict[str, Any]:
    """For each resource that a dispatch writes: its type, sizes and values.

    A resource that the model writes to a file has the file's name in place of the values. NaN and
    infinities, which JSON lacks, are strings.
    """
    files = {
        command.resource: command.target
        for command in model.commands.values()
        if isinstance(command, WriteFile)
    }
    records = {}
    for name in sorted(_written(model)):
        array = found[name]
        values = {"file": files[name]} if name in files else {"values": json_numbers(array)}
        kind = DataType.from_numpy(array.dtype).name
        records[name] = {"dataType": kind, "sizes": list(array.shape), **values}
    return {"resources": records}


def _written(model: Model) -> set[str]:
    names: set[str] = set()
    for command in model.commands.values():
        if isinstance(command, Dispatch):
            desc = model.dispatchables[command.dispatchable].desc
            outputs = {info.name for info in desc.bind_points() if info.role is Role.OUTPUT}
            for name, sources in command.bindings.items():
                names |= {source.name for source in sources if name in outputs}
    return names


def json_numbers(array: Array) -> list[Any]:
    """The elements in row-major order; NaN and infinities, which JSON lacks, as strings."""
    numbers = array.reshape(-1).tolist()
    if array.dtype.kind != "f":
        return numbers
    return [number if isfinite(number) else str(number) for number in numbers]


def read_array(path: Path) -> Array:
    """The array in a `.npy` file; the bytes of any other file.

    Raises
    ------
    ModelError
        The file cannot be read, or has elements of a type that no tensor has.
    """
    with open_file(path) as file:
        if is_raw(path):
            return np.fromfile(file, np.uint8)
        try:
            header = npy.read_header(file, "CF")
        except ModelError as error:
            raise ModelError(f"File {str(path)!r}: {error}") from error
        flat = np.fromfile(file, header.dtype, prod(header.shape))
    array = flat.reshape(header.shape, order=header.order)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def is_raw(path: Path) -> bool:
    """Whether a file has elements alone, without their type and shape."""
    return path.suffix.lower() != ".npy"


def comparable(array: Array, other: Array, path: Path) -> Array:
    """What a file has, in the type and shape of another array where the file does not say them.

    Raw bytes have no type, and an array of as many elements may have another shape.

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
        array = array.view(other.dtype)
    return array.reshape(other.shape) if array.size == other.size else array
