"""Nodes and graphs of a model after its clean-up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from anydml.core._json import short_repr
from anydml.onnx.read import subgraphs
from anydml.onnx.types import Value

CONTROL: Final = frozenset(("If", "Loop", "Scan"))
"""Operators that contain graphs."""


@dataclass(eq=False)
class Node:
    """A node of a cleaned-up model.

    Attributes
    ----------
    name : str
        Its name in the file, or that of its first output.
    operator, domain : str
        The operator; ``""`` is ai.onnx.
    version : int
        The version of the domain in which the operator was last revised.
    opset : int
        The version of the domain in the model.
    inputs, outputs : list of str
        Names of values; empty for one that is left out. What bodies read of the graphs around
        them are further inputs.
    proto : onnx.NodeProto
        The message; its inputs and outputs may have other names.
    opsets : mapping of str to int
        The versions of all domains, for the bodies.
    captured : list of str
        The names in the bodies of the further inputs.
    is_inside : bool
        Whether the node is part of a body.
    misfit : str
        Why a run of the body it is part of would fail with the sizes that are known.
    """

    name: str
    operator: str
    domain: str
    version: int
    opset: int
    inputs: list[str]
    outputs: list[str]
    proto: Any
    schema: Any
    attributes: dict[str, Any]
    opsets: Mapping[str, int]
    captured: list[str] = field(default_factory=list)
    is_inside: bool = False
    misfit: str = ""

    @property
    def title(self) -> str:
        """The operator with its domain, as ``com.microsoft.Gelu``."""
        return f"{self.domain}.{self.operator}" if self.domain else self.operator

    @property
    def label(self) -> str:
        """The node, for a message."""
        return f"Node {short_repr(self.name)} ({self.title})"

    @cached_property
    def key(self) -> Hashable:
        """Equal for nodes that are alike except for their values; None for one that has no equal.

        Many models repeat some nodes often, so that what follows from a node is found once.
        """
        has_tensor = (x.HasField("t") or x.HasField("sparse_tensor") for x in self.proto.attribute)
        if self.has_subgraphs or any(has_tensor):
            return None
        attributes = tuple(item.SerializeToString() for item in self.proto.attribute)
        outputs = tuple(map(bool, self.outputs))
        return self.domain, self.operator, self.version, self.opset, attributes, outputs

    @property
    def has_subgraphs(self) -> bool:
        """Whether an attribute is a graph."""
        return any(True for _ in subgraphs(self.proto))


def key_of(node: Node, *values: Sequence[Value | None]) -> Hashable:
    """A key of a node with its values; None for one that has no equal."""
    if node.key is None:
        return None
    return node.key, *(tuple(v and v.key for v in side) for side in values)


@dataclass(frozen=True)
class Removed:
    """A node that ONNX Runtime removes before it places nodes."""

    name: str
    operator: str
    why: str


@dataclass
class Graph:
    """A cleaned-up model.

    Attributes
    ----------
    inputs : list of Value
        Without those that initializers determine.
    outputs : dict of str to str
        The name of each output in the file, and of the value that it is.
    nodes : list of Node
        In an order in which every node follows those that it reads; those of a body precede the
        node that has it.
    values : dict of str to Value
        By name.
    removed : list of Removed
        What the clean-up removed.
    described : dict
        The operators of nodes, by keys that those that are alike share.
    functions : sequence of onnx.FunctionProto
        The functions of the model, which nodes of bodies may call.
    """

    inputs: list[Value] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    removed: list[Removed] = field(default_factory=list)
    described: dict[Hashable, Any] = field(default_factory=dict)
    functions: Sequence[Any] = ()
    names: dict[str, str] = field(default_factory=dict)
    """For a name of the file that the clean-up replaced, the value that it is."""

    def tensors(self, names: Iterable[str]) -> list[Value | None]:
        """The values of a node's inputs or outputs; None for one that is left out."""
        return [self.values[name] if name else None for name in names]

    @property
    def constants(self) -> set[str]:
        """The names of values that are the same in every run."""
        return {name for name, value in self.values.items() if value.data is not None}
