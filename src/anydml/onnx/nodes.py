"""Nodes and graphs of a model after its clean-up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

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
        Names of values; empty for one that is left out.
    proto : onnx.NodeProto
        The message; its inputs and outputs may have other names.
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

    @property
    def title(self) -> str:
        """The operator with its domain, as ``com.microsoft.Gelu``."""
        return f"{self.domain}.{self.operator}" if self.domain else self.operator

    @property
    def has_subgraphs(self) -> bool:
        """Whether an attribute is a graph."""
        return any(True for _ in subgraphs(self.proto))


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
        In an order in which every node follows those that it reads.
    values : dict of str to Value
        By name.
    removed : list of Removed
        What the clean-up removed.
    """

    inputs: list[Value] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    removed: list[Removed] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """For a name of the file that the clean-up replaced, the value that it is."""
