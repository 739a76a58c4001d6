"""`GraphDesc`: DirectML's graph description, one to one, and its JSON form."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np

from anydml.core import _json
from anydml.core.errors import ArgumentError, ArgumentTypeError, ModelError
from anydml.core.problems import Problem
from anydml.core.tensor import TensorDesc
from anydml.ops._descriptor import Descriptor, page_name
from anydml.ops._registry import read_descriptor

_TYPE_PREFIX = "DML_GRAPH_NODE_TYPE_"
_MOST_UNUSED = 1024  # inputs without edges, in a graph that does not list its inputs
_MOST_COUNTED = 65_536  # inputs or outputs that a file may declare without listing them


@dataclass(frozen=True, slots=True)
class OperatorNode:
    """A ``DML_OPERATOR_GRAPH_NODE_DESC``: an operator within a graph.

    Parameters
    ----------
    desc : Descriptor
        What it does.
    name : str, optional
        What messages call it; no other node has the name.

    Examples
    --------
    >>> import anydml as dml
    >>> tensor = dml.TensorDesc("FLOAT32", (4,))
    >>> relu = dml.ActivationRelu(input_tensor=tensor, output_tensor=tensor)
    >>> dml.OperatorNode(relu, "relu").name
    'relu'
    """

    desc: Descriptor
    name: str = ""

    TYPE: ClassVar[str] = "OPERATOR"

    def __post_init__(self) -> None:
        if not isinstance(self.desc, Descriptor):
            raise ArgumentTypeError(
                f"desc: expected an operator descriptor, got {_json.short_repr(self.desc)}"
            )
        _check_name(self.name)

    def to_json(self) -> dict[str, Any]:
        """The JSON form, with the page's field names."""
        return _with_name({"Type": self.TYPE, "Operator": self.desc.to_json()}, self.name)

    @classmethod
    def from_json(cls, value: Any) -> OperatorNode:
        """The node that a JSON object describes."""
        record = _json.json_object(value)
        return cls(_json.field(record, "Operator", read_descriptor), _name_of(record))


@dataclass(frozen=True, slots=True, repr=False)
class ConstantNode:
    """A ``DML_CONSTANT_DATA_GRAPH_NODE_DESC``: data that are known when a graph is compiled.

    Parameters
    ----------
    data : bytes, buffer or array
        The bytes of a tensor; the elements of an array in row-major order. They are copied.
    name : str, optional
        What messages call it; no other node has the name.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.ConstantNode(bytes(400), "weights")
    <ConstantNode 'weights' of 400 bytes>
    """

    data: bytes
    name: str = ""

    TYPE: ClassVar[str] = "CONSTANT"

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes):
            try:
                view = memoryview(self.data)
            except TypeError:
                raise ArgumentTypeError(
                    f"data: expected bytes, a buffer or an array, got {_json.short_repr(self.data)}"
                ) from None
            object.__setattr__(self, "data", view.tobytes())
        _check_name(self.name)

    def __repr__(self) -> str:
        return f"<ConstantNode {self.name!r} of {len(self.data)} bytes>"

    def to_json(self) -> dict[str, Any]:
        """The JSON form, with the page's field names and the data in base 64."""
        data = base64.b64encode(self.data).decode("ascii")
        return _with_name({"Type": self.TYPE, "Data": data}, self.name)

    @classmethod
    def from_json(cls, value: Any) -> ConstantNode:
        """The node that a JSON object describes."""
        record = _json.json_object(value)
        return cls(_json.field(record, "Data", _read_base64), _name_of(record))


@dataclass(frozen=True, slots=True)
class _Edge:
    # Fields of integers, and a name at the end.

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name == "name":
                _check_name(value)
            elif type(value) is not int:
                if isinstance(value, bool) or not isinstance(value, int | np.integer):
                    got = _json.short_repr(value)
                    raise ArgumentTypeError(f"{item.name}: expected an integer, got {got}")
                object.__setattr__(self, item.name, int(value))

    def to_json(self) -> dict[str, Any]:
        """The JSON form, with the page's field names."""
        out = {page_name(f.name): getattr(self, f.name) for f in fields(self) if f.name != "name"}
        return _with_name(out, getattr(self, "name", ""))

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The edge that a JSON object describes."""
        record = _json.json_object(value)
        faults = _json.Faults()
        values: list[Any] = [
            faults.field(record, page_name(item.name), _json.json_uint32)
            for item in fields(cls)
            if item.name != "name"
        ]
        values.append(faults.field(record, "Name", _json.json_string, ""))
        faults.finish()
        return cls(*values)


@dataclass(frozen=True, slots=True)
class InputEdge(_Edge):
    """A ``DML_INPUT_GRAPH_EDGE_DESC``: from an input of the graph to an input of a node.

    Parameters
    ----------
    graph_input_index, to_node_index, to_node_input_index : int
        The graph's input, the node, and which of its inputs. The inputs of a node are its input
        tensors in the page's order; one that is left out counts, and a list has its members in
        its place.
    name : str, optional
        Names the graph's input, if that has no other name.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.InputEdge(0, 0, 1).to_node_input_index
    1
    """

    graph_input_index: int
    to_node_index: int
    to_node_input_index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class IntermediateEdge(_Edge):
    """A ``DML_INTERMEDIATE_GRAPH_EDGE_DESC``: from an output of a node to an input of another one.

    Parameters
    ----------
    from_node_index, from_node_output_index, to_node_index, to_node_input_index : int
        Node and output, node and input; counted as for `InputEdge`. A constant has output 0.
    name : str, optional
        Without meaning.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.IntermediateEdge(0, 0, 1, 0).to_node_index
    1
    """

    from_node_index: int
    from_node_output_index: int
    to_node_index: int
    to_node_input_index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class OutputEdge(_Edge):
    """A ``DML_OUTPUT_GRAPH_EDGE_DESC``: from an output of a node to an output of the graph.

    Parameters
    ----------
    from_node_index, from_node_output_index, graph_output_index : int
        Node and output, counted as for `InputEdge`, and the graph's output.
    name : str, optional
        Names the graph's output, if that has no other name.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.OutputEdge(0, 0, 0).graph_output_index
    0
    """

    from_node_index: int
    from_node_output_index: int
    graph_output_index: int
    name: str = ""


@dataclass(frozen=True, slots=True)
class GraphTensor:
    """An input or output of a graph.

    Parameters
    ----------
    name : str
        By which it is bound.
    desc : TensorDesc, optional
        As what it is bound. Left out, as the node at the other end of its first edge has it.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.GraphTensor("x").name
    'x'
    """

    name: str
    desc: TensorDesc | None = None

    def __post_init__(self) -> None:
        _check_name(self.name)
        if not self.name:
            raise ArgumentError("name: expected a name, got ''")
        if self.desc is not None and not isinstance(self.desc, TensorDesc):
            raise ArgumentTypeError(
                f"desc: expected a TensorDesc, got {_json.short_repr(self.desc)}"
            )

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
        return {"Name": self.name} | ({"Desc": self.desc.to_json()} if self.desc else {})

    @classmethod
    def from_json(cls, value: Any) -> GraphTensor:
        """The input or output that a JSON object describes."""
        record = _json.json_object(value)
        name = _json.field(record, "Name", _json.json_string)
        return cls(name, _json.field(record, "Desc", TensorDesc.from_json, None))


Node = OperatorNode | ConstantNode


@dataclass(frozen=True)
class GraphDesc:
    """A ``DML_GRAPH_DESC``: operators and constants, and the edges between them.

    Making one checks only that its fields are of the right kind; `Device.check` and
    `Device.compile_graph` check the rules.

    Parameters
    ----------
    nodes : sequence of OperatorNode or ConstantNode
        Edges have their positions.
    input_edges : sequence of InputEdge
        From inputs of the graph to nodes.
    intermediate_edges : sequence of IntermediateEdge
        From nodes to nodes.
    output_edges : sequence of OutputEdge
        From nodes to outputs of the graph.
    inputs, outputs : sequence of GraphTensor or str, optional
        The graph's inputs and outputs. By default there is one for each index up to the largest
        of the edges, with the name of its edge, else ``input0``, ``input1``, and so on.

    Examples
    --------
    >>> import anydml as dml
    >>> tensor = dml.TensorDesc("FLOAT32", (2,))
    >>> add = dml.ElementWiseAdd.with_outputs(a_tensor=tensor, b_tensor=tensor)
    >>> graph = dml.GraphDesc([dml.OperatorNode(add, "sum")],
    ...                       [dml.InputEdge(0, 0, 0, "x"), dml.InputEdge(0, 0, 1)],
    ...                       output_edges=[dml.OutputEdge(0, 0, 0, "twice")])
    >>> dml.Device("cpu").compile_graph(graph)(x=dml.cast([1, 2], "float32"))
    {'twice': array([2., 4.], dtype=float32)}
    """

    nodes: tuple[Node, ...]
    input_edges: tuple[InputEdge, ...]
    intermediate_edges: tuple[IntermediateEdge, ...]
    output_edges: tuple[OutputEdge, ...]
    inputs: tuple[GraphTensor, ...]
    outputs: tuple[GraphTensor, ...]

    def __init__(
        self,
        nodes: Iterable[Node],
        input_edges: Iterable[InputEdge] = (),
        intermediate_edges: Iterable[IntermediateEdge] = (),
        output_edges: Iterable[OutputEdge] = (),
        inputs: Iterable[GraphTensor | str] | None = None,
        outputs: Iterable[GraphTensor | str] | None = None,
    ) -> None:
        put = object.__setattr__
        put(self, "nodes", _all_of("nodes", nodes, OperatorNode, ConstantNode))
        for name, edges, kind in (
            ("input_edges", input_edges, InputEdge),
            ("intermediate_edges", intermediate_edges, IntermediateEdge),
            ("output_edges", output_edges, OutputEdge),
        ):
            put(self, name, _all_of(name, edges, kind))
        for what, items in (("input", inputs), ("output", outputs)):
            put(self, f"{what}s", _tensors(what, items, getattr(self, f"{what}_edges")))

    def label(self, index: int) -> str:
        """The name of a node in messages: its own, or ``nodes[3]``."""
        return self.nodes[index].name or f"nodes[{index}]"

    def to_json(self) -> dict[str, Any]:
        """The JSON form, with the page's field names.

        Examples
        --------
        >>> import anydml as dml
        >>> graph = dml.GraphDesc([dml.ConstantNode(b"1234", "c")])
        >>> dml.GraphDesc.from_json(graph.to_json()) == graph
        True
        """
        return {
            page_name(item.name): [part.to_json() for part in getattr(self, item.name)]
            for item in fields(self)
        }

    @classmethod
    def from_json(cls, value: Any) -> GraphDesc:
        """The graph that a JSON object describes.

        Raises
        ------
        ModelError
            Fields are missing, of the wrong kind or out of their range: ``problems`` has all of
            them.
        """
        record = _json.json_object(value)
        faults = _json.Faults()

        def parse(name: str, kind: Any, *default: Any) -> Any:
            return faults.field(
                record, name, lambda v: _json.parse_members(v, kind, _label), *default
            )

        parts = [
            parse("Nodes", _read_node),
            parse("InputEdges", InputEdge.from_json, ()),
            parse("IntermediateEdges", IntermediateEdge.from_json, ()),
            parse("OutputEdges", OutputEdge.from_json, ()),
            parse("Inputs", GraphTensor.from_json, None),
            parse("Outputs", GraphTensor.from_json, None),
        ]
        counts = []
        for name, tensors in zip(("InputCount", "OutputCount"), parts[4:], strict=True):
            low, high = 0, _MOST_COUNTED
            if tensors is not None:
                low = high = len(tensors)
            counts.append(faults.field(record, name, _json.json_integer(low, high), None))
        faults.finish()
        nodes, into, between, out_of, inputs, outputs = parts
        inputs = _tensors("input", inputs, into, counts[0])
        outputs = _tensors("output", outputs, out_of, counts[1])
        return cls(nodes, into, between, out_of, inputs, outputs)


def _all_of(name: str, values: Any, *kinds: type) -> tuple[Any, ...]:
    try:
        members = tuple(values)
    except TypeError:
        raise ArgumentTypeError(
            f"{name}: expected a sequence, got {_json.short_repr(values)}"
        ) from None
    for i, member in enumerate(members):
        if not isinstance(member, kinds):
            accepted = " or ".join(kind.__name__ for kind in kinds)
            raise ArgumentTypeError(
                f"{name}[{i}]: expected {accepted}, got {_json.short_repr(member)}"
            )
    return members


def _tensors(
    what: str, items: Iterable[Any] | None, edges: Sequence[Any], count: int | None = None
) -> tuple[GraphTensor, ...]:
    if items is not None:
        tensors = (GraphTensor(item) if isinstance(item, str) else item for item in items)
        return _all_of(f"{what}s", tensors, GraphTensor)
    indices = [getattr(edge, f"graph_{what}_index") for edge in edges]
    if count is None:
        count = max(indices, default=-1) + 1
        if count > len(edges) + (_MOST_UNUSED if what == "input" else 0):
            count = len(edges)  # the index is wrong
    names = [""] * max(count, 0)
    for index, edge in zip(indices, edges, strict=True):
        if 0 <= index < len(names):
            names[index] = names[index] or edge.name
    return tuple(GraphTensor(name or f"{what}{i}") for i, name in enumerate(names))


def _check_name(name: Any) -> None:
    if not isinstance(name, str):
        raise ArgumentTypeError(f"name: expected a string, got {_json.short_repr(name)}")


def _with_name(out: dict[str, Any], name: str) -> dict[str, Any]:
    return out | ({"Name": name} if name else {})


def _name_of(record: Mapping[str, Any]) -> str:
    return _json.field(record, "Name", _json.json_string, "")


def _label(member: Any) -> str:
    """The name of a node, an edge, an input or an output in a message; it may be wrong itself."""
    name = member.get("Name") if isinstance(member, Mapping) else None
    return name if isinstance(name, str) else ""


def _read_node(value: Any) -> Node:
    record = _json.json_object(value)
    found = _json.field(record, "Type", _json.json_string).removeprefix(_TYPE_PREFIX)
    for kind in (OperatorNode, ConstantNode):
        if found == kind.TYPE:
            return kind.from_json(record)
    wrong = Problem(f"Expected OPERATOR or CONSTANT, got {_json.short_repr(found)}.")
    raise ModelError(wrong.below("Type", "Type"))


def _read_base64(value: Any) -> bytes:
    text = _json.json_string(value)
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ModelError(f"Expected data in base 64: {error}.") from error
