"""Operators and graphs of a model, and the resources that are bound to their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, NamedTuple

from anydml.core import _json
from anydml.core._json import json_shown, short_repr
from anydml.core.errors import InvalidDescriptorError, ModelError, Violation
from anydml.core.levels import LATEST, FeatureLevel
from anydml.core.program import Program
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.devices.device import Device
from anydml.devices.operators import CompiledOperator
from anydml.graphs.check import SINCE, lowest_level, violations
from anydml.graphs.compiled import CompiledGraph
from anydml.graphs.desc import GraphDesc, OperatorNode
from anydml.graphs.lower import NAME, Lowered, lower
from anydml.models.document import read_graph
from anydml.models.files import Folder
from anydml.models.resources import Resource, read_place
from anydml.ops._descriptor import DESCRIBED_IN, Descriptor
from anydml.ops._deviations import Deviation
from anydml.ops._fields import FieldInfo, Role, TensorKind
from anydml.ops._registry import from_json

# Kinds that need a device or a runtime of their own.
_OTHER_KINDS: Final = ("hlsl", "onnx")
_GRAPH: Final = "dmlserializedgraph"
_COMPILE_TYPES: Final = ("DmlCompileOp", "DmlCompileGraph")
_EXECUTION_FLAG: Final = "DML_EXECUTION_FLAG_"
_ALLOW_HALF: Final = "ALLOW_HALF_PRECISION_COMPUTATION"
_EXECUTION_FLAGS: Final = ("NONE", _ALLOW_HALF, "DISABLE_META_COMMANDS", "DESCRIPTORS_VOLATILE")


Compile = Callable[[], CompiledOperator | CompiledGraph]


class GraphOperator:
    """Graph that models bind as an operator, with a bind point for each input and output.

    Parameters
    ----------
    graph : GraphDesc
        The graph.
    """

    NAME = NAME

    def __init__(self, graph: GraphDesc) -> None:
        self.graph = graph
        self._violations: dict[FeatureLevel, list[Violation]] = {}

    @cached_property
    def _lowered(self) -> Lowered | None:
        return None if self.violations(LATEST) else lower(self.graph)

    def tensor_fields(self, role: Role | None = None) -> tuple[FieldInfo, ...]:
        """Return the inputs and outputs."""
        sides = ((Role.INPUT, self.graph.inputs), (Role.OUTPUT, self.graph.outputs))
        return tuple(
            FieldInfo(tensor.name, tensor.name, side, TensorKind(), None, False)
            for side, tensors in sides
            for tensor in tensors
            if role in (None, side)
        )

    def bind_points(self, role: Role | None = None) -> tuple[FieldInfo, ...]:
        """Return inputs that a node reads, and the outputs; none of a graph that breaks rules."""
        if self._lowered is None:
            return ()
        known = self._lowered.tensors
        return tuple(info for info in self.tensor_fields(role) if info.name in known)

    def paths(self, info: FieldInfo) -> Iterator[tuple[str, TensorDesc]]:
        """Find the tensor of a bind point."""
        if self._lowered is not None and info.name in self._lowered.tensors:
            yield info.name, self._lowered.tensors[info.name]

    def tensors(self, role: Role | None = None) -> Iterator[tuple[str, TensorDesc, FieldInfo]]:
        """List name, descriptor and bind point of each tensor."""
        for info in self.bind_points(role):
            for path, tensor in self.paths(info):
                yield path, tensor, info

    def violations(self, level: FeatureLevel) -> list[Violation]:
        """List the rules that the graph breaks; its constants count as inputs at low levels."""
        if level not in self._violations:
            self._violations[level] = violations(self.graph, level, constants_since=SINCE)
        return self._violations[level]

    def deviations(self, level: FeatureLevel) -> list[Deviation]:
        """List what DirectML accepts of the operators although their pages forbid it."""
        nodes = (node.desc for node in self.graph.nodes if isinstance(node, OperatorNode))
        return list(dict.fromkeys(item for desc in nodes for item in desc.deviations(level)))

    def minimum_level(self) -> FeatureLevel | None:
        """Return the lowest feature level that accepts the graph, or None when none does."""
        return None if self.violations(LATEST) else lowest_level(self.graph, constants_since=SINCE)

    def compile(self, device: Device, allow_half_precision: bool) -> CompiledGraph:
        """Compile the graph, which the feature level of the device accepts."""
        # What constants are makes no difference to a run.
        latest = Device(device.kind, feature_level=LATEST)
        return CompiledGraph(self.graph, latest, allow_half_precision, lowered=self._lowered)

    def lower(self) -> Program:
        """Return the program of the graph."""
        assert self._lowered is not None, "refused graphs are not run"
        return self._lowered.program


@dataclass(frozen=True)
class Source:
    """Resource in a binding; the bound range runs from the offset to the end of the resource.

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
        """Return the byte at which the range starts.

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
                "required beside 'elementOffset'."
            )
        start = self.element_offset * size
        if start >= resource.size:
            raise ModelError(
                f"Expected an offset below {resource.size} bytes (resource "
                f"{short_repr(self.name)}), got {start}."
            )
        return start


Bindings = Mapping[str, tuple[Source, ...]]
"""Resources that are bound to each bind point, by the names of tensors on the page."""


def referenced_resources(bindings: Bindings) -> Iterator[str]:
    """List every resource that bindings name."""
    for sources in bindings.values():
        for source in sources:
            yield source.name
            if source.counter is not None:
                yield source.counter


class Bound(NamedTuple):
    """Tensor of a dispatchable, and what is bound to it.

    `at` is its position among the inputs, or the outputs, as edges of graphs count them; `owned` is
    whether it is bound at initialization.
    """

    info: FieldInfo
    path: str
    tensor: TensorDesc
    source: Source
    at: int
    owned: bool


@dataclass(frozen=True)
class Dispatchable:
    """Operator or graph, and the resources of its OWNED_BY_DML tensors.

    `within` is the member of the JSON object that has the operator's fields, if it is not itself.
    `allows_half` is whether the execution flags allow computation in half precision.
    """

    name: str
    desc: Descriptor | GraphOperator
    bindings: Bindings
    within: tuple[str, ...] = ()
    allows_half: bool = False

    @property
    def graph(self) -> GraphDesc | None:
        """The graph; None for an operator."""
        return self.desc.graph if isinstance(self.desc, GraphOperator) else None

    def check(self, device: Device) -> tuple[Sequence[Violation], Compile | None]:
        """Return the rules that it breaks on a device, and what compiles it if there are none."""
        half = self.allows_half
        if isinstance(self.desc, GraphOperator):
            found = self.desc.violations(device.feature_level)
            return found, None if found else partial(self.desc.compile, device, half)
        try:
            operator = device.create_operator(self.desc)
        except InvalidDescriptorError as error:
            return error.violations, None
        return (), partial(operator.compile, allow_half_precision=half)

    def bound(self, further: Bindings, *roles: Role) -> Iterator[Bound]:
        """List the tensors that have a resource, by its own bindings or those of a command."""
        bindings = {**self.bindings, **further}
        for role in roles or (Role.INPUT, Role.OUTPUT):
            at = 0
            for info in self.desc.tensor_fields(role):
                tensors = [*self.desc.paths(info)]
                owned = is_owned(self.desc, info)
                pairs = zip(tensors, bindings.get(info.name, ()), strict=False)
                for i, ((path, tensor), source) in enumerate(pairs, at):
                    yield Bound(info, path, tensor, source, i, owned)
                at += max(len(tensors), 1)


def read_dispatchable(
    name: str, value: Any, folder: Folder | None = None, memory_limit: int = 0
) -> Dispatchable:
    """Read the dispatchable that a JSON object describes; a graph is in a file of the folder.

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
            desc = GraphOperator(read_graph(place, memory_limit))
        else:
            desc = from_json(fields)
    faults.field(fields, "dmlCompileType", _compile_type, None)
    flags = faults.field(fields, "executionFlags", _execution_flags, frozenset[str]())
    unbound: Bindings = {}
    bindings = faults.field(fields, "bindings", read_bindings, unbound)
    faults.finish()
    nested = tuple(member for member in DESCRIBED_IN if member in fields)[:1]
    return Dispatchable(name, desc, bindings, nested, _ALLOW_HALF in flags)


def _compile_type(value: Any) -> None:
    if value not in _COMPILE_TYPES:
        raise ModelError(f"Expected one of {', '.join(_COMPILE_TYPES)}, got {json_shown(value)}.")


def _execution_flags(value: Any) -> frozenset[str]:
    flags = value if isinstance(value, list) else [value]
    for flag in flags:
        if not isinstance(flag, str) or flag.removeprefix(_EXECUTION_FLAG) not in _EXECUTION_FLAGS:
            known = ", ".join(_EXECUTION_FLAGS)
            raise ModelError(
                f"Expected one of {known} or an array of them, got {json_shown(flag)}."
            )
    return frozenset(flag.removeprefix(_EXECUTION_FLAG) for flag in flags)


def read_bindings(value: Any) -> Bindings:
    """Read bindings: for each bind point a name of a resource, an object, or an array of these."""
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


def points_bound(desc: Descriptor | GraphOperator, initial: bool) -> Iterator[FieldInfo]:
    """Find the bind points that need a resource at initialization, or at dispatch."""
    for info in desc.bind_points():
        if is_owned(desc, info) is initial:
            yield info


def is_owned(desc: Descriptor | GraphOperator, info: FieldInfo) -> bool:
    """Return whether a tensor field is bound when the operator is initialised, not at dispatch."""
    flags = (tensor.flags for _, tensor in desc.paths(info))
    return TensorFlags.OWNED_BY_DML in flags
