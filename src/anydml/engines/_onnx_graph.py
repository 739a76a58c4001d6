"""ONNX graphs under construction.

Equal nodes are made once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from anydml.core._json import unique_name

NumpyArray: TypeAlias = np.ndarray[Any, np.dtype[Any]]

OPSET: Final = 21
"""The version of ONNX's operators in all models."""

IR_VERSION: Final = 10
"""The version of the file format that belongs to it."""

LARGE_BYTES: Final = 1024
"""Initializers of at least as many bytes can be left out of a model."""

Value: TypeAlias = int | float | str | tuple[int, ...] | tuple[str, ...]


class NotTraced(Exception):  # noqa: N818  # no error: the caller computes it in another way
    """There is no graph for a calculation; the message says why."""


class Model(NamedTuple):
    """A model, and what is not in it.

    Attributes
    ----------
    proto : onnx.ModelProto
        The model.
    apart : dict of str to array
        The initializers that it lacks.
    values : list of Spec
        What its nodes compute.
    is_fusible : bool
        Whether convolutions may take the factors and terms behind them.
    """

    proto: Any
    apart: Mapping[str, NumpyArray]
    values: Sequence[Spec]
    is_fusible: bool = True


class Spec(NamedTuple):
    """The type and the sizes of a value."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """An operator of ONNX, one of whose outputs is used; it has the name of the node."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    attributes: tuple[tuple[str, Value], ...]
    position: int = 0


def _joined(nodes: Iterable[Node]) -> Iterable[tuple[Node, dict[int, str]]]:
    """One node for all outputs of an operator, and the names of the outputs by their positions."""
    found: dict[Any, tuple[Node, dict[int, str]]] = {}
    for node in nodes:
        key: Any = node.operator, node.inputs, node.attributes
        if key in found and node.position in found[key][1]:  # one of several names of a value
            key = node.name
        found.setdefault(key, (node, {}))[1][node.position] = node.name
    return found.values()


class Graph:
    """Nodes in order.

    Attributes
    ----------
    nodes : dict of str to Node
        By the names of their outputs.
    constants : dict of str to array
        The initializers.
    inputs : dict of str to Spec
        In order.
    specs : dict of str to Spec
        Of all values but the initializers.
    scope : str
        What the names of new nodes begin with: that of the node of the graph that is computed.
    guards : list of str or None
        Values of one number each. If one is NaN, other results may be wrong: the calculation has to
        be repeated with a graph in which this is None, which is slower and always right.
    adds_exactly : bool
        Whether products of unsigned and signed bytes are added without overflow where it runs.
    """

    def __init__(self, guarded: bool = False, adds_exactly: bool = False) -> None:
        self.adds_exactly = adds_exactly
        self.guards: list[str] | None = [] if guarded else None
        self.nodes: dict[str, Node] = {}
        self.constants: dict[str, NumpyArray] = {}
        self.inputs: dict[str, Spec] = {}
        self.specs: dict[str, Spec] = {}
        self.scope = ""
        self._made: dict[Any, str] = {}
        self._held: dict[Any, str] = {}
        self._labels: dict[str, str] = {}

    def input(self, name: str, spec: Spec) -> str:
        """A new input's value."""
        value = f"input {name}"
        self.inputs[name] = self.specs[value] = spec
        self._labels[value] = name
        return value

    def label(self, value: str, name: str) -> None:
        """Give a value its name in the model, unless it has one; others come behind it."""
        self._labels.setdefault(value, name)

    def constant(self, array: NumpyArray) -> str:
        """The value of an initializer; of equal small ones there is one."""
        array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
        address = array.tobytes() if array.nbytes < LARGE_BYTES else array.ctypes.data
        key = array.dtype.str, array.shape, address
        if key not in self._held:
            self._held[key] = f"constant_{len(self._held)}"
            self.constants[self._held[key]] = array
        return self._held[key]

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        spec: Spec,
        attributes: Mapping[str, Value],
        position: int = 0,
    ) -> str:
        """The value of a new node, or of an equal one; an empty input is left out.

        It is the output at `position`.
        """
        pairs = tuple(sorted(attributes.items()))
        key = operator, tuple(inputs), pairs, spec, position
        if key not in self._made:
            name = f"{self.scope}/{operator}_{len(self.nodes)}"
            self.nodes[name] = Node(name, operator, tuple(inputs), pairs, position)
            self.specs[name] = spec
            self._made[key] = name
        return self._made[key]

    def model(self, outputs: Mapping[str, str], external: bool = False) -> Model:
        """An ONNX model with values as outputs of some names.

        Initializers of at least `LARGE_BYTES` are not in it, if `external`.
        """
        from onnx import TensorProto, helper, numpy_helper

        kind_of = helper.np_dtype_to_tensor_dtype
        nodes, finals = dict(self.nodes), dict[str, str]()
        for name, value in outputs.items():
            finals[name] = value
            if value not in self.nodes or [*finals.values()].count(value) > 1:
                finals[name] = f"output {name}"
                nodes[finals[name]] = Node(finals[name], "Identity", (value,), ())
        needed = set(finals.values())
        for node in reversed(nodes.values()):
            if node.name in needed:
                needed.update(node.inputs)
        names = self._names([*nodes, *self.constants], {own: n for n, own in finals.items()})
        made = []
        for node, own in _joined(node for node in nodes.values() if node.name in needed):
            inputs = [names[x] for x in node.inputs]
            results = [
                names[own[i]] if i in own else f"{node.name}.{i}" for i in range(max(own) + 1)
            ]
            made.append(helper.make_node(node.operator, inputs, results, node.name))
            made[-1].attribute.extend(helper.make_attribute(*at) for at in node.attributes)
        held = {names[n]: x for n, x in self.constants.items() if n in needed}
        apart = {n: x for n, x in held.items() if external and x.nbytes >= LARGE_BYTES}
        initializers = [
            numpy_helper.from_array(x, name) for name, x in held.items() if name not in apart
        ]
        for name, array in apart.items():
            tensor = TensorProto(name=name, data_type=kind_of(array.dtype), dims=array.shape)
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in (("location", "memory"), ("length", str(array.nbytes))):
                tensor.external_data.add(key=key, value=value)
            initializers.append(tensor)
        specs = {name: self._spec(value) for name, value in outputs.items()}
        inputs_info, outputs_info = (
            [helper.make_tensor_value_info(n, kind_of(s.dtype), s.shape) for n, s in side.items()]
            for side in (self.inputs, specs)
        )
        graph = helper.make_graph(made, "graph", inputs_info, outputs_info, initializers)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        return Model(model, apart, [self.specs[n] for n in nodes if n in needed & {*self.specs}])

    def _spec(self, value: str) -> Spec:
        if value in self.specs:
            return self.specs[value]
        array = self.constants[value]
        return Spec(array.dtype, array.shape)

    def _names(self, values: Sequence[str], outputs: Mapping[str, str]) -> dict[str, str]:
        """The name of each value in the model: its label, or its own; all differ."""
        used = {*self.inputs, *outputs.values()}
        names = {"": "", **{f"input {name}": name for name in self.inputs}, **outputs}
        for value in values:
            if value not in names:
                name = unique_name(self._labels.get(value, value), used)
                used.add(name)
                names[value] = name
        return names
