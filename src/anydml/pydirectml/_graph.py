"""Devices, graphs, expressions and what is bound to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import ArgumentError, ArgumentTypeError, BindingError, DeviceError
from anydml.core.tensor import TensorFlags
from anydml.devices import device as devices
from anydml.devices.binding import elements_size
from anydml.graphs import build
from anydml.graphs.compiled import CompiledGraph
from anydml.pydirectml._types import ExecutionFlags, TensorDesc, desc_of, members, tensor_of

__all__ = [
    "Binding",
    "Device",
    "Expression",
    "GRUOutputs",
    "GraphBuilder",
    "MaxPoolingOutputs",
    "Model",
    "TensorData",
]

VARIABLE: Final = "ANYDML_DEVICE"
"""Names the device, as `anydml.Device` takes it: ``cpu``, ``reference``, ``cuda`` and so on."""

Method = Callable[[Any, Any], Any]


def _in_place(binary: Method) -> Method:
    """The method that makes an expression the result, also for others that refer to it."""

    def method(self: Expression, other: object) -> Any:
        result = binary(self, other)
        if result is not NotImplemented:
            self._expression = result._expression
            return self
        return result

    return method


class Expression(build.Arithmetic):
    """A tensor of a graph; one that is made without arguments stands for an absent output."""

    def __init__(self) -> None:
        self._expression: build.Expression | None = None
        self._name = "data"

    def get_output_desc(self) -> TensorDesc:
        """The tensor."""
        return desc_of(to_expression("expression", self).desc)

    def _apply(self, name: str, *operands: Self, **attributes: Any) -> Any:
        return call(name, *operands, **attributes)[0]

    __iadd__ = _in_place(build.Arithmetic.__add__)
    __isub__ = _in_place(build.Arithmetic.__sub__)
    __imul__ = _in_place(build.Arithmetic.__mul__)
    __itruediv__ = _in_place(build.Arithmetic.__truediv__)
    __imod__ = _in_place(build.Arithmetic.__mod__)


def wrap(expression: build.Expression | None) -> Expression:
    """An expression of the builder as one of this module."""
    wrapped = Expression()
    wrapped._expression = expression
    return wrapped


def to_expression(name: str, value: Any) -> build.Expression:
    """The builder's expression that an argument stands for."""
    if not isinstance(value, Expression) or value._expression is None:
        got = "an absent output" if isinstance(value, Expression) else short_repr(value)
        raise ArgumentTypeError(f"{name}: expected an Expression, got {got}")
    return value._expression


def call(name: str, *inputs: Any, **fields: Any) -> tuple[Expression, ...]:
    """Call a function of the builder with expressions, None and sequences of expressions."""
    operands = [
        [to_expression(f"input[{i}]", item) for i, item in enumerate(value)]
        if isinstance(value, list | tuple)
        else None if value is None else to_expression(f"{name}: input {at}", value)
        for at, value in enumerate(inputs)
    ]  # fmt: skip
    first: Any = operands[0]
    if first == []:
        raise ArgumentTypeError(f"{name}: input: expected at least one Expression, got none")
    builder = (first[0] if isinstance(first, list) else first).builder
    found = getattr(builder, name)(*operands, **{k: v for k, v in fields.items() if v is not None})
    return tuple(map(wrap, found if isinstance(found, tuple) else (found,)))


@dataclass
class MaxPoolingOutputs:
    """The result of `max_pooling`; indices only on demand."""

    values: Expression
    indices: Expression


@dataclass
class GRUOutputs:
    """The requested outputs of `gru`."""

    sequence: Expression
    single: Expression


class TensorData(np.ndarray[Any, np.dtype[Any]]):
    """The elements of a tensor: a NumPy array, hence a buffer."""

    def __new__(cls, data: Any) -> TensorData:
        return np.array(data, np.float32, order="C").view(cls)


class Binding:
    """The elements of an input, converted to the tensor's type.

    Parameters
    ----------
    expr : Expression
        The input.
    data : array_like
        As many elements as its memory has, in the order in which they lie there: shapes may differ.
    """

    def __init__(self, expr: Expression, data: Any) -> None:
        desc = to_expression("expr", expr).desc.storage
        try:
            array = np.ascontiguousarray(data, desc.data_type.numpy)
        except (TypeError, ValueError) as error:
            raise BindingError(f"{expr._name}: expected numbers, got {short_repr(data)}") from error
        if array.nbytes not in (elements_size(desc), desc.total_tensor_size_in_bytes):
            count = elements_size(desc) // desc.data_type.element_size
            raise BindingError(
                f"{expr._name}: expected {count} elements for {desc_of(desc)!r}, got {array.size} "
                f"of shape {array.shape}"
            )
        self._bytes = array.reshape(-1).view(np.uint8)


class Model:
    """A graph that is ready to run; `GraphBuilder.build` makes it."""

    def __init__(self, graph: CompiledGraph) -> None:
        self._graph = graph


class GraphBuilder:
    """Where the expressions of a graph are made."""

    def __init__(self, device: Device) -> None:
        if not isinstance(device, Device):
            raise ArgumentTypeError(f"device: expected a Device, got {short_repr(device)}")
        self._device = device
        self._graph = build.GraphBuilder()
        self._inputs: set[int] = set()

    def build(self, flags: ExecutionFlags, outputs: Sequence[Expression]) -> Model:
        """Compile the graph that computes some expressions."""
        outputs_by_name = {
            f"output{i}": to_expression(f"outputs[{i}]", value)
            for i, value in enumerate(members("outputs", outputs))
        }
        allows_half = ExecutionFlags.ALLOW_HALF_PRECISION_COMPUTATION in ExecutionFlags(flags)
        graph, device = self._graph.build(**outputs_by_name), self._device._device
        return Model(device.compile_graph(graph, allow_half_precision=allows_half))

    def _input(self, index: int, desc: TensorDesc) -> Expression:
        if index in self._inputs:
            raise ArgumentError(f"input_index: expected an unused index, got {index}")
        name = f"input{index}"
        expression = wrap(self._graph.input(name, tensor_of(desc)))
        expression._name = name
        self._inputs.add(index)
        return expression


class Device:
    """Where models run: on the device that ``ANYDML_DEVICE`` names, the CPU by default.

    Parameters
    ----------
    use_gpu, use_debug_layer : bool
        Accepted, and without effect.
    """

    def __init__(self, use_gpu: bool = True, use_debug_layer: bool = False) -> None:
        self._use_gpu = bool(use_gpu)
        try:
            self._device = devices.Device(os.environ.get(VARIABLE) or "cpu")
        except DeviceError as error:
            raise DeviceError(f"{VARIABLE}: {error}") from None

    def __repr__(self) -> str:
        return f"dml.Device on {'GPU' if self._use_gpu else 'CPU'}"

    def compute(
        self, model: Model, inputs: Sequence[Binding | None], outputs: Sequence[Expression]
    ) -> list[TensorData]:
        """Calculate a model's outputs.

        Parameters
        ----------
        model : Model
            As `GraphBuilder.build` made it.
        inputs : sequence of Binding or None
            By input_index; None for one that no operator reads.
        outputs : sequence of Expression
            Those that the model was built for.

        Returns
        -------
        list of TensorData
            One for each output.
        """
        graph = model._graph
        descs = [tensor.desc for tensor in graph.desc.outputs]
        outputs, inputs = members("outputs", outputs), members("inputs", inputs)
        if [to_expression(f"outputs[{i}]", value).desc for i, value in enumerate(outputs)] != descs:
            raise ArgumentError(
                "outputs: expected the expressions that were passed to build, got others"
            )
        bindings = {f"input{i}": value for i, value in enumerate(inputs) if value is not None}
        bound: list[dict[str, Any]] = [{}, {}]
        for index in dict.fromkeys(edge.graph_input_index for edge in graph.desc.input_edges):
            tensor = graph.desc.inputs[index]
            if tensor.name not in bindings:
                at = tensor.name.removeprefix("input")
                raise BindingError(f"inputs[{at}]: expected a Binding, got {len(inputs)} inputs")
            owned = tensor.desc is not None and tensor.desc.flags is TensorFlags.OWNED_BY_DML
            bound[owned][tensor.name] = bindings[tensor.name]._bytes
        if bound[True]:
            graph.initialize(**bound[True])
        results = graph(**bound[False])
        return [result.view(TensorData) for result in results.values()]
