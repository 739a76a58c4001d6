"""Commands: dispatch, print, writeFile."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from anydml.core import _json
from anydml.core.errors import ModelError
from anydml.core.problems import Problem
from anydml.models import formats
from anydml.models.operators import Bindings, read_bindings, referenced_resources
from anydml.models.resources import Array, Resource

_KINDS: Final = "dispatch, print, writeFile"
_MOST_DIMENSIONS: Final = 32  # what every NumPy can load
_NPY: Final = ".npy"


@dataclass(frozen=True)
class Dispatch:
    """Run a dispatchable on the bound resources."""

    dispatchable: str
    bindings: Bindings

    def resources(self) -> Iterator[str]:
        """List the resources that the command names."""
        return referenced_resources(self.bindings)


@dataclass(frozen=True)
class Print:
    """Print a resource's elements."""

    resource: str
    verbose: bool

    def resources(self) -> Iterator[str]:
        """List the resource."""
        yield self.resource


@dataclass(frozen=True)
class WriteFile:
    """Write a resource to a file: `.npy`, a picture, or raw bytes."""

    resource: str
    target: str
    dimensions: tuple[int, ...]

    @property
    def npy(self) -> bool:
        """Whether the file is a `.npy` file."""
        return self.target.lower().endswith(_NPY)

    @property
    def picture(self) -> bool:
        """Whether the file is a picture."""
        return formats.is_picture(self.target)

    def size(self, resource: Resource) -> int:
        """Return the bytes of elements that go into a `.npy` file or a picture.

        Raises
        ------
        ModelError
            The resource has fewer elements than the dimensions, or others than a picture's.
        """
        if self.picture:
            formats.check_picture_type(resource.data_type)
            formats.check_picture_dimensions(self.target, self.dimensions)
        assert resource.data_type is not None, "the command is refused otherwise"
        element = resource.data_type.element_size
        # Padding that rounds the size up is not an element.
        available = (resource.size if resource.size_given else resource.data_size) // element
        count = prod(self.dimensions) if self.dimensions else available
        if count > available:
            text = (
                f"Expected at most {available} elements (resource "
                f"{_json.short_repr(resource.name)}), got {count}."
            )
            raise ModelError(Problem(text).below("dimensions", "dimensions"))
        return count * element

    def contents(self, resource: Resource, buffer: Array) -> Array:
        """Return what goes into the file: the bytes of a raw one, else the elements."""
        if not self.npy and not self.picture:
            return buffer
        octets = buffer if resource.size_given else resource.data(buffer)
        numbers = resource.elements(octets[: self.size(resource)])
        return numbers.reshape(self.dimensions) if self.dimensions else numbers

    def resources(self) -> Iterator[str]:
        """List the resource."""
        yield self.resource


Command = Dispatch | Print | WriteFile


def read_command(value: Any) -> Command:
    """Read the command that a JSON object describes.

    Raises
    ------
    ModelError
        Fields are missing or wrong, or the command is not known.
    """
    fields = _json.json_object(value)
    kind = _json.field(fields, "type", _json.json_string)
    faults = _json.Faults()
    flat: tuple[int, ...] = ()
    command: Command
    match kind.lower():
        case "dispatch":
            command = Dispatch(
                faults.field(fields, "dispatchable", _json.json_string),
                faults.field(fields, "bindings", read_bindings),
            )
        case "print":
            command = Print(
                faults.field(fields, "resource", _json.json_string),
                faults.field(fields, "verbose", _json.json_bool, False),
            )
        case "writefile":
            resource = faults.field(fields, "resource", _json.json_string)
            target = faults.field(fields, "targetPath", _target)
            # A raw file has no shape: nothing reads the member then, which is warned of.
            shaped = (_NPY, *formats.PICTURES)
            raw = target is not None and not target.lower().endswith(shaped)
            dimensions = () if raw else faults.field(fields, "dimensions", _dimensions, flat)
            command = WriteFile(resource, target, dimensions)
        case _:
            raise ModelError(f"Expected a command of type {_KINDS}, got {_json.short_repr(kind)}.")
    faults.finish()
    return command


def _dimensions(value: Any) -> tuple[int, ...]:
    found = _json.json_uint32_array(value)
    if len(found) > _MOST_DIMENSIONS:
        raise ModelError(f"Expected at most {_MOST_DIMENSIONS} dimensions, got {len(found)}.")
    return found


def _target(value: Any) -> str:
    name = _json.json_string(value)
    if formats.is_picture(name):
        formats.load_pillow()
    return name
