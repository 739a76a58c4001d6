"""Dispatchables: a model's operators, and the checks of what is bound to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from anydml.core import _json
from anydml.core._json import json_shown, short_repr
from anydml.core.errors import ModelError
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.devices.binding import elements_size
from anydml.models.graphs import GraphOperator, read_graph_at
from anydml.models.paths import Folder
from anydml.models.resources import Resource, read_place
from anydml.ops._descriptor import DESCRIBED_IN, Descriptor
from anydml.ops._fields import FieldInfo
from anydml.ops._registry import from_json

# Kinds that need a device or a runtime of their own.
_OTHER_KINDS: Final = ("hlsl", "onnx")
_GRAPH: Final = "dmlserializedgraph"
_COMPILE_TYPES: Final = ("DmlCompileOp", "DmlCompileGraph")
_EXECUTION_FLAG: Final = "DML_EXECUTION_FLAG_"
_EXECUTION_FLAGS: Final = (
    "NONE",
    "ALLOW_HALF_PRECISION_COMPUTATION",
    "DISABLE_META_COMMANDS",
    "DESCRIPTORS_VOLATILE",
)


@dataclass(frozen=True)
class Source:
    """A resource in a binding; the bound range runs from the offset to the resource's end.

    Attributes
    ----------
    name : str
        The resource.
    element_offset : int
        Where the range starts, in elements.
    element_size : int
        In bytes; 0 stands for that of the resource's type.
    counter : str or None
        Another resource that must be there; operators do not use it.
    """

    name: str
    element_offset: int = 0
    element_size: int = 0
    counter: str | None = None

    def start(self, resource: Resource) -> int:
        """The byte at which the range starts.

        Raises
        ------
        ModelError
            The element size is not known, or the range starts behind the end.
        """
        size = self.element_size
        if not size and resource.data_type is not None:
            size = resource.data_type.element_size
        if self.element_offset and not size:
            raise ModelError(
                f"Resource {short_repr(self.name)} has no type: field 'elementSizeInBytes' is "
                "required "
                "beside 'elementOffset'."
            )
        start = self.element_offset * size
        if start >= resource.size:
            raise ModelError(
                f"Expected an offset below {resource.size} bytes (resource "
                f"{short_repr(self.name)}), "
                f"got {start}."
            )
        return start


Bindings = Mapping[str, tuple[Source, ...]]
"""What is bound to each bind point, by the page's tensor names."""


def referenced_resources(bindings: Bindings) -> Iterator[str]:
    """Every resource that bindings name."""
    for sources in bindings.values():
        for source in sources:
            yield source.name
            if source.counter is not None:
                yield source.counter


@dataclass(frozen=True)
class Dispatchable:
    """An operator or graph, and what is bound to OWNED_BY_DML tensors when it is initialised.

    `within` is the member of the JSON object that has the operator's fields, if it is not itself.
    """

    name: str
    desc: Descriptor | GraphOperator
    bindings: Bindings
    within: tuple[str, ...] = ()


def read_dispatchable(
    name: str, value: Any, folder: Folder | None = None, memory_limit: int = 0
) -> Dispatchable:
    """The dispatchable that a JSON object describes; a graph is read from a file in the folder.

    Raises
    ------
    ModelError
        A field is missing or wrong, or it is of a kind that anydml does not run.
    """
    fields = _json.json_object(value)
    kind = _json.field(fields, "type", _json.json_string)
    if kind.lower() in _OTHER_KINDS:
        raise ModelError(
            "Expected the name of a DirectML operator, "
            f"got a dispatchable of type {short_repr(kind)}, which needs DxDispatch."
        )
    faults = _json.Faults()
    desc: Descriptor | GraphOperator
    with faults.kept():
        if kind.lower() == _GRAPH:
            place = _json.field(fields, "sourcePath", lambda value: read_place(value, folder))
            desc = GraphOperator(read_graph_at(place, memory_limit))
        else:
            desc = from_json(fields)
    faults.field(fields, "dmlCompileType", _compile_type, None)
    faults.field(fields, "executionFlags", _execution_flags, None)
    unbound: Bindings = {}
    bindings = faults.field(fields, "bindings", read_bindings, unbound)
    faults.finish()
    nested = tuple(member for member in DESCRIBED_IN if member in fields)[:1]
    return Dispatchable(name, desc, bindings, nested)


def _compile_type(value: Any) -> None:
    if value not in _COMPILE_TYPES:
        raise ModelError(f"Expected one of {', '.join(_COMPILE_TYPES)}, got {json_shown(value)}.")


def _execution_flags(value: Any) -> None:
    for flag in value if isinstance(value, list) else [value]:
        if not isinstance(flag, str) or flag.removeprefix(_EXECUTION_FLAG) not in _EXECUTION_FLAGS:
            known = ", ".join(_EXECUTION_FLAGS)
            raise ModelError(
                f"Expected one of {known} or an array of them, got {json_shown(flag)}."
            )


def read_bindings(value: Any) -> Bindings:
    """Bindings by bind point: a resource's name, an object, or an array of these each."""
    fields = _json.json_object(value)
    faults = _json.Faults()
    bindings = {point: faults.field(fields, point, _sources) for point in fields}
    faults.finish()
    return bindings


def _sources(value: Any) -> tuple[Source, ...]:
    return (
        tuple(_json.parse_members(value, _source)) if isinstance(value, list) else (_source(value),)
    )


def _source(value: Any) -> Source:
    if isinstance(value, str):
        return Source(value)
    if not isinstance(value, Mapping):
        raise ModelError(
            f"Expected a resource's name, an object or an array of these, got {json_shown(value)}."
        )
    # The range runs to the resource's end whatever the count says, as in the original, which takes
    # the format for other kinds of dispatchables.
    faults = _json.Faults()
    faults.field(value, "format", _json.anything, None)
    faults.field(value, "elementCount", _json.json_uint64, None)
    source = Source(
        faults.field(value, "name", _json.json_string),
        faults.field(value, "elementOffset", _json.json_uint64, 0),
        faults.field(value, "elementSizeInBytes", _json.json_uint64, 0),
        faults.field(value, "counter", _json.json_string, None),
    )
    faults.finish()
    return source


def is_owned(desc: Descriptor | GraphOperator, info: FieldInfo) -> bool:
    """Whether a tensor field is bound when the operator is initialised, not at dispatch."""
    flags = (tensor.flags for _, tensor in desc.paths(info))
    return TensorFlags.OWNED_BY_DML in flags


def binding_problems(
    desc: Descriptor | GraphOperator,
    bindings: Bindings,
    resources: Mapping[str, Resource],
    initial: bool,
) -> Iterator[str]:
    """What is wrong with bindings to an accepted descriptor, at initialisation or at dispatch.

    Names that are no bind point are warned of when the model is read.
    """
    for info in desc.tensor_fields():
        sources = bindings.get(info.name, ())
        if is_owned(desc, info) is not initial:
            if sources:
                yield (
                    f"Bind point '{info.name}': Expected no resource, because it is "
                    f"{'not ' if initial else ''}OWNED_BY_DML; "
                    f"bind it in {'a dispatch command' if initial else 'its dispatchable'}."
                )
            continue
        tensors = [*desc.paths(info)]
        if len(sources) != len(tensors):
            bound = ", ".join(map(_json.short_repr, islice(bindings, 20))) or "none"
            yield (
                f"Bind point '{info.name}': Expected {len(tensors)} "
                f"resource{'' if len(tensors) == 1 else 's'}, got {len(sources)} "
                f"(bindings: {bound})."
            )
            continue
        for (path, tensor), source in zip(tensors, sources, strict=True):
            resource = resources.get(source.name)
            if resource is None:
                continue  # the loader reports it
            try:
                _check_range(tensor, source, resource)
            except ModelError as error:
                yield f"Bind point '{path}': {error}"


def _check_range(tensor: TensorDesc, source: Source, resource: Resource) -> None:
    start = source.start(resource)
    element = tensor.storage.data_type.element_size
    if start % element:
        raise ModelError(
            f"Expected an offset in resource {short_repr(source.name)} that is a multiple of "
            f"{element} "
            f"bytes ({tensor.data_type}), got {start}."
        )
    alignment = tensor.guaranteed_base_offset_alignment
    if alignment and start % alignment:
        raise ModelError(
            f"Expected an offset in resource {short_repr(source.name)} that is a multiple of "
            f"{alignment} bytes (GuaranteedBaseOffsetAlignment), got {start}."
        )
    available = resource.size - start
    needed = tensor.total_tensor_size_in_bytes
    if needed == tensor.minimum_size_in_bytes:
        needed = elements_size(tensor)  # the last bytes may be missing where they only round up
    if available < needed:
        raise ModelError(
            f"Expected at least {needed} bytes of resource {short_repr(source.name)} from byte "
            f"{start} "
            f"on, got {available}."
        )
