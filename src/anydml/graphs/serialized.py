"""Serialized graphs, which the DirectML provider of ONNX Runtime writes.

A FlatBuffers file of nodes that name their edges. Tensors and attributes of an operator are in the
page's order. The data of a constant are in the file, or in another one that has the node's name.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from anydml.core._json import short_repr
from anydml.core.dtypes import DataType
from anydml.core.errors import AnyDMLError, ModelError, Violation
from anydml.core.file_kinds import is_flatbuffer, kind_of
from anydml.core.levels import LATEST
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.graphs._flatbuffers import Source, Table
from anydml.graphs.desc import (
    ConstantNode,
    GraphDesc,
    InputEdge,
    IntermediateEdge,
    Node,
    OperatorNode,
    OutputEdge,
)
from anydml.ops._descriptor import Descriptor
from anydml.ops._deviations import observed
from anydml.ops._fields import BoolKind, EnumerationKind, Kind, NestedKind, Role, ScalarKind
from anydml.ops._registry import operator_named

# What names a file in the graph's own folder.
_PLAIN: Final = re.compile(r"(?!\.)[^/\\\0]{1,200}")

Constants = Callable[[str], bytes | None]
"""Finds the data of a constant by its name; None for one whose data are bound later."""

if TYPE_CHECKING:  # `pathlib` would be loaded for its name only
    from pathlib import Path

# The members of the schema's unions: of a node, of a constant and of an attribute.
_OPERATOR, _CONSTANT = 1, 2
_NAMED, _RAW = 1, 2
_ONE_OPERATOR, _OPERATORS, _UINT, _UINT64, _INT, _FLOAT = 1, 2, 3, 4, 5, 6
_UINTS, _INTS, _FLOATS, _SCALE_BIAS, _SIZE, _SCALAR, _BOOL = 7, 8, 9, 10, 11, 12, 13
_SCALAR_BYTES: Final = 8
_UNTYPED: Final = "UNKNOWN"
"""The data type 0."""
_STRUCTURES: Final = {
    _UINT: "I", _UINT64: "Q", _INT: "i", _FLOAT: "f", _SCALE_BIAS: "2f", _SIZE: "2I", _BOOL: "B",
}  # fmt: skip
_ARRAYS: Final = {_UINTS: "I", _INTS: "i", _FLOATS: "f"}
_PAIRS: Final = (_SCALE_BIAS, _SIZE)


DATA_SUFFIX: Final = ".bin"
"""The suffix of the file of a constant, which is named after the constant's node."""


def read_serialized_graph(path: str | Path) -> GraphDesc:
    """Read a graph that the DirectML provider of ONNX Runtime has written.

    ONNX Runtime writes each partition of a model to a file when its session option
    ``ep.dml.enable_graph_serialization`` is ``"true"``.

    Parameters
    ----------
    path : str or Path
        The file, as ``Partition_0.bin``. Data of constants that are not in it are read from files
        in the same folder, named after the constants, as ``weight.bin``. A constant without such a
        file is an input of the graph that is OWNED_BY_DML: `CompiledGraph.initialize` takes it.
        Links are followed, and files may have any size: check a file that you do not trust with
        ``anydml check``, which does neither.

    Returns
    -------
    GraphDesc
        For `Device.check` and `Device.compile_graph`.

    Raises
    ------
    ModelError
        The file cannot be read, is no serialized graph, or has a node that is wrong, which the
        message names.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.read_serialized_graph("no such file.bin")
    Traceback (most recent call last):
    anydml.ModelError: File 'no such file.bin' cannot be read: No such file or directory.
    """
    folder = os.path.dirname(path)

    def find(name: str) -> bytes | None:
        data = os.path.join(folder, f"{name}{DATA_SUFFIX}")
        return _bytes_of(data) if _PLAIN.fullmatch(name) and os.path.isfile(data) else None

    try:
        return graph_from_bytes(_bytes_of(path), find)
    except OSError as error:
        name = short_repr(str(error.filename or path))
        raise ModelError(f"File {name} cannot be read: {error.strerror}.") from error


def _bytes_of(path: str | Path) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def graph_from_bytes(data: bytes, constants: Constants = lambda name: None) -> GraphDesc:
    """Read a graph from the bytes of a file.

    Parameters
    ----------
    data : bytes
        The file's content.
    constants : callable
        The data of constants that are not in the file. What it does not find is an input of the
        graph that is OWNED_BY_DML.

    Raises
    ------
    ModelError
        It is no serialized graph, or a node of it is wrong; the message names the node.
    """
    if not is_flatbuffer(data):
        kind = kind_of(data) or "something else"
        raise ModelError(f"Expected a serialized graph, got {kind}.")
    try:
        root = Source(data).root()
        nodes, inputs, outputs = root.tables(0), root.texts(1), root.texts(2)
    except ModelError as error:
        raise ModelError(f"Expected a serialized graph: {error}") from error
    if not nodes:
        raise ModelError("Expected a serialized graph, got a FlatBuffers file without nodes.")
    return _Reader(nodes, inputs, outputs, constants).graph()


class _Reader:
    def __init__(
        self, nodes: list[Table], inputs: list[str], outputs: list[str], constants: Constants
    ) -> None:
        self._tables, self._inputs, self._outputs = nodes, inputs, outputs
        self._output_positions = {name: i for i, name in reversed([*enumerate(outputs)])}
        self._constants = constants
        self._nodes: list[Node] = []
        self._late: set[str] = set()  # edges of constants whose data are bound later
        # Where each edge begins: an input of the graph, or a node and its output.
        self._edge_starts: dict[str, int | tuple[int, int]] = {
            name: i for i, name in enumerate(self._inputs) if name
        }
        self._into: list[InputEdge] = []
        self._between: list[IntermediateEdge] = []
        self._out_of: list[OutputEdge] = []

    def graph(self) -> GraphDesc:
        for i, table in enumerate(self._tables):
            name = table.text(2) or f"nodes[{i}]"
            try:
                self._read_node(table, table.text(2))
            except AnyDMLError as error:
                raise ModelError(f"Node {short_repr(name)}: {error}") from error
        return GraphDesc(
            self._nodes, self._into, self._between, self._out_of, self._inputs, self._outputs
        )

    def _read_node(self, table: Table, name: str) -> None:
        kind, desc = table.number(0, "B"), table.table(1)
        inputs, outputs = table.texts(3), table.texts(4)
        if desc is None or kind not in (_OPERATOR, _CONSTANT):
            raise ModelError(f"Expected an operator or a constant, got a node of type {kind}.")
        if kind == _CONSTANT:
            data = self._data(desc, name)
            if data is None:
                self._inputs.append(name)
                self._edge_starts.update(dict.fromkeys(outputs, len(self._inputs) - 1))
                self._late.update(outputs)
                return
            self._nodes.append(ConstantNode(data, name))
        else:
            self._nodes.append(OperatorNode(self._operator(desc, inputs, outputs), name))
        self._connect(inputs, outputs)

    def _data(self, desc: Table, name: str) -> bytes | None:
        kind, detail = desc.number(0, "B"), desc.table(1)
        if detail is None or kind not in (_NAMED, _RAW):
            raise ModelError(f"Expected data or the name of data, got a constant of type {kind}.")
        return detail.octets(0) if kind == _RAW else self._constants(name)

    def _operator(self, desc: Table, inputs: Sequence[str], outputs: Sequence[str]) -> Descriptor:
        kind = operator_named(desc.text(0))
        fields = {
            **dict(self._tensors(kind, Role.INPUT, desc.tables(1), inputs)),
            **dict(self._tensors(kind, Role.OUTPUT, desc.tables(2), outputs)),
        }
        return kind(**fields, **_attributes(kind, desc.tables(3), fields))

    def _tensors(
        self, kind: type[Descriptor], role: Role, tables: Sequence[Table], edges: Sequence[str]
    ) -> Iterator[tuple[str, Any]]:
        """Read the tensor fields.

        Those without an edge are left out. They have no table, or that of a description of type
        INVALID, which has no sizes.
        """
        left, names = deque(tables), iter(edges)
        for info in kind.tensor_fields(role):
            if info.many:  # all that is left: no field of the same role comes behind a list
                pairs = zip(left, names, strict=False)
                yield info.attribute, [_tensor(table, edge in self._late) for table, edge in pairs]
            elif edge := next(names, ""):
                if not left:
                    raise ModelError(f"{info.name}: expected a tensor, got none.")
                yield info.attribute, _tensor(left.popleft(), edge in self._late)
            elif left and not left[0].numbers(1, "I"):
                left.popleft()

    def _connect(self, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        node = len(self._nodes) - 1
        for i, edge in enumerate(inputs):
            if not edge:  # an optional tensor that is left out
                continue
            begin = self._edge_starts.get(edge)
            if begin is None:
                raise ModelError(
                    f"Expected an edge from an input of the graph or an earlier node, got "
                    f"{short_repr(edge)}."
                )
            if isinstance(begin, int):
                self._into.append(InputEdge(begin, node, i, edge))
            else:
                self._between.append(IntermediateEdge(*begin, node, i, edge))
        for i, edge in enumerate(outputs):
            if edge:
                self._edge_starts[edge] = node, i
                position = self._output_positions.get(edge)
                if position is not None:
                    self._out_of.append(OutputEdge(node, i, position, edge))


def _tensor(table: Table, is_owned: bool) -> TensorDesc:
    return TensorDesc(
        DataType.parse(table.text(0)), table.numbers(1, "I") or (), table.numbers(2, "I"),
        flags=TensorFlags.OWNED_BY_DML if is_owned else TensorFlags.NONE,
        total_tensor_size_in_bytes=table.number(3, "Q"),
    )  # fmt: skip


def _attributes(
    kind: type[Descriptor], tables: Sequence[Table], tensors: Mapping[str, Any]
) -> dict[str, Any]:
    infos = [info for info in kind.fields() if info.role is Role.ATTRIBUTE]
    if len(tables) > len(infos):
        raise ModelError(f"Expected {len(infos)} attributes, got {len(tables)}.")
    found: dict[str, Any] = {}
    for info, table in zip(infos, tables, strict=False):
        try:
            value = _value(info.kind, table, found)
            if value is _UNTYPED:
                value = _type_of_bytes(kind, info.name, tensors)
        except ValueError as error:
            raise ModelError(f"{info.name}: {error}") from error
        if value is not None:
            found[info.attribute] = value
    return found


def _type_of_bytes(kind: type[Descriptor], name: str, tensors: Mapping[str, Any]) -> DataType:
    """The type of UINT8 tensors in place of no type, where DirectML accepts that."""
    data_type = next((t.data_type for t in tensors.values() if isinstance(t, TensorDesc)), None)
    violation = Violation(name, "a type", _UNTYPED)
    if data_type is DataType.UINT8 and observed(kind.NAME, violation, LATEST):
        return data_type
    raise ValueError(f"expected a data type, got {_UNTYPED}")


def _value(kind: Kind, table: Table, others: dict[str, Any]) -> Any:
    """Read the value of an attribute, or None; `others` are those in front of it."""
    tag = table.number(1, "B")
    if tag in _STRUCTURES:
        values = table.structure(2, _STRUCTURES[tag])
        if values is None or tag in _PAIRS:
            return values
        if isinstance(kind, EnumerationKind):
            is_untyped = kind.members is DataType and values[0] == 0
            return _UNTYPED if is_untyped else kind.members(values[0])
        return bool(values[0]) if isinstance(kind, BoolKind) else values[0]
    members = table.table(2) if tag else None
    if members is None:
        return None
    if tag in _ARRAYS:
        return members.numbers(0, _ARRAYS[tag]) or ()
    if isinstance(kind, NestedKind) and tag in (_ONE_OPERATOR, _OPERATORS):
        tables = [members] if tag == _ONE_OPERATOR else members.tables(0)
        operators = [_fused(kind, operator) for operator in tables]
        return operators if kind.many else operators[0]
    octets = members.structure(1, f"{_SCALAR_BYTES}B") if tag == _SCALAR else None
    data_type = others.get(kind.typed_by) if isinstance(kind, ScalarKind) else None
    if octets is None or not isinstance(data_type, DataType):
        raise ModelError(f"expected {kind.accepted}, got a value of type {tag}.")
    return np.frombuffer(bytes(octets), data_type.numpy)[0].item()


def _fused(kind: NestedKind, table: Table) -> Descriptor:
    definition = operator_named(table.text(0))
    if definition not in kind.definitions:  # none of which has operators of its own
        raise ModelError(f"expected {kind.accepted}, got {definition.__name__}.")
    return definition(**_attributes(definition, table.tables(1), {}))
