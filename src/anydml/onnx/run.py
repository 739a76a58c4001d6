"""Running a model: graphs and operators on a device, other nodes by ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Never

import numpy as np

from anydml.core._json import did_you_mean, short_repr, unnamed_error
from anydml.core.errors import ArgumentTypeError, BindingError, InvalidDescriptorError, ModelError
from anydml.devices.device import Device
from anydml.devices.threads import get_num_threads
from anydml.graphs.build import GraphBuilder
from anydml.graphs.check import CONSTANTS_SINCE
from anydml.graphs.compiled import CompiledGraph
from anydml.libraries import as_numpy
from anydml.onnx.cpu import CpuNode, is_available
from anydml.onnx.folding import shape_or_size
from anydml.onnx.lower.node import UnsupportedError
from anydml.onnx.lower.recurrent import DEFAULTS as RECURRENT
from anydml.onnx.partition import Partition, constant_node, partitions, stages
from anydml.onnx.read import load_onnx
from anydml.onnx.shapes import infer, node_errors
from anydml.onnx.table import infer_without_schema
from anydml.onnx.types import (
    SEQUENCE,
    Array,
    Value,
    is_plain,
    numpy_type,
    packed,
    type_name,
    unpacked,
)
from anydml.onnx.verdict import Judged, lower_node, once, tensor_desc

if TYPE_CHECKING:
    from anydml.onnx.model import OnnxModel

Arrays = dict[str, Any]
"""Arrays by name; a sequence is a list, a map a dict, and an empty optional None."""


class CompiledModel:
    """An ONNX model that is ready to run; made by `OnnxModel.compile`.

    Parameters
    ----------
    model : OnnxModel
        The model.
    device : Device
        Where it runs.
    outputs : sequence of str
        Further tensors that a run returns.
    """

    def __init__(self, model: OnnxModel, device: Device, outputs: Sequence[str] = ()) -> None:
        if not isinstance(device, Device):
            raise ArgumentTypeError(f"device: expected a Device, got {short_repr(device)}")
        self._model = model
        self._device = device
        self._graph = model.graph
        self._inputs = model.inputs
        self._wanted = {name: self._unique(name) for name in outputs}
        judged = model.judged_for_run(device.feature_level)
        self._refuse(judged)
        self._steps = self._plan(judged)

    @property
    def device(self) -> Device:
        """The device that it was compiled for."""
        return self._device

    def __repr__(self) -> str:
        return f"<CompiledModel {self._model.name!r} on {self._device!r}>"

    def _unique(self, name: str) -> str:
        unique = self._graph.names.get(name, name)
        unique = self._graph.outputs.get(name, unique)
        inside = [node for node in self._graph.nodes if node.is_inside]
        if unique not in self._graph.values or any(unique in node.outputs for node in inside):
            raise ModelError(f"outputs: expected names of tensors of the model, got {name!r}.")
        return unique

    def _refuse(self, judged: Sequence[Judged]) -> None:
        problems = self._model.input_problems()
        for item in judged:
            problems += item.problems
            if item.is_on_cpu and not item.node.is_inside and not is_available():
                problems.append(
                    f"{item.node.label} runs on the CPU: {item.reason}. Install ONNX Runtime with "
                    "`pip install 'anydml[onnxruntime]'`."
                )
        if problems:
            raise ModelError(*problems)

    def _plan(self, judged: Sequence[Judged]) -> list[Callable[[Arrays], None]]:
        judged = [item for item in judged if not item.node.is_inside]
        member = [
            item.on_device and item.static and bool(item.row and item.row.lower)
            and item.node.operator not in _FINISH
            for item in judged
        ]  # fmt: skip
        numbers = stages(judged, member)
        wanted = self._wanted.values()
        embeds = self._device.feature_level >= CONSTANTS_SINCE
        exact = self._model.exact
        parts = partitions(judged, self._graph, exact, wanted, member, embeds, literal=exact)
        inside_graphs = sorted({s for s, inside in zip(numbers, member, strict=True) if inside})
        steps: list[tuple[int, Callable[[Arrays], None]]] = [
            (stage, _GraphStep(part, self._device))
            for stage, part in zip(inside_graphs, parts, strict=True)
        ]
        for item, stage, inside in zip(judged, numbers, member, strict=True):
            if not inside:
                steps.append((stage, _NodeStep(item, self._model, self._device)))
        return [step for _, step in sorted(steps, key=lambda pair: pair[0])]

    def __call__(self, /, *unnamed: Never, **inputs: Any) -> Arrays:
        """Run on inputs and return the outputs.

        Parameters
        ----------
        **inputs : array_like
            Every input by name, of its type and shape.

        Returns
        -------
        dict of str to ndarray
            The outputs, then the further tensors that `compile` was asked for, by name.

        Raises
        ------
        BindingError
            An input is missing, unknown, or of another type or shape.
        """
        if unnamed:
            raise unnamed_error("CompiledModel", unnamed, self._inputs)
        arrays = self._bound(inputs)
        for step in self._steps:
            step(arrays)
        names = {**self._graph.outputs, **self._wanted}
        return {name: self._result(unique, arrays) for name, unique in names.items()}

    def _result(self, unique: str, arrays: Arrays) -> Any:
        value = self._graph.values[unique]
        found: Any = arrays.get(unique, value.data)
        if found is None and unique not in arrays:
            raise ModelError(
                f"Output {short_repr(unique)}: expected a tensor that a node computes."
            )
        if value.data is not None and not is_plain(value.type):
            found = unpacked(found, value.type, numpy_type(value.type), value.sizes or ())
        shared = value.data is not None or unique in self._inputs
        return np.array(found) if shared and isinstance(found, np.ndarray) else found

    def _bound(self, inputs: Mapping[str, Any]) -> Arrays:
        expected = self._inputs
        for name in inputs:
            if name not in expected:
                raise BindingError(
                    f"{name}: expected an input of the model ({', '.join(expected)})"
                    f"{did_you_mean(name, expected)}"
                )
        arrays = {}
        for name, value in expected.items():
            if name not in inputs:
                raise BindingError(f"{name}: expected an array, got none")
            if value.type == SEQUENCE:
                arrays[name] = _object(inputs[name], name)
                continue
            array = _array(inputs[name], name)
            if value.type == "string" and array.dtype.kind in "UT":
                array = array.astype(object)
            expected_type = numpy_type(value.type)
            if array.dtype != expected_type:
                raise BindingError(
                    f"{name}: expected elements of {expected_type}, got {array.dtype}"
                )
            if array.shape != value.sizes:
                raise BindingError(f"{name}: expected shape {value.sizes}, got {array.shape}")
            arrays[name] = array
        return arrays


def _object(value: Any, name: str) -> Any:
    """A sequence, an optional or a map that a caller binds."""
    if isinstance(value, list | tuple):
        return [_object(item, f"{name}[{i}]") for i, item in enumerate(value)]
    return value if value is None or isinstance(value, dict) else _array(value, name)


def _array(value: Any, name: str) -> Array:
    """The array that a caller binds."""
    if isinstance(value, np.ndarray) and not isinstance(value, np.ma.MaskedArray):
        return np.asarray(value)  # of any type, those of `ml_dtypes` too
    try:
        return as_numpy(value, name)
    except ArgumentTypeError as error:
        raise BindingError(str(error)) from error


def _to_device(array: Array | None, value: Value, sizes: Sequence[int] | None = None) -> Array:
    """An array as a graph's input of the value has it; `sizes` are its sizes there, if known."""
    assert array is not None, value.name
    array = np.ascontiguousarray(packed(array, value.type))
    if array.dtype == bool:
        array = array.view(np.uint8)
    return array.reshape(tensor_desc(value).storage.sizes if sizes is None else sizes)


def _from_device(array: Array, value: Value) -> Array:
    """An output of a graph with the type and shape that it has in the model."""
    sizes = value.sizes or ()
    return unpacked(array, value.type, numpy_type(value.type), sizes)


class _GraphStep:
    """A partition on a device."""

    def __init__(self, part: Partition, device: Device) -> None:
        desc = part.desc
        self._compiled: CompiledGraph = device.compile_graph(desc)
        values = part.graph.values
        read = {tensor.name for tensor in self._compiled.desc.inputs}
        used = {edge.graph_input_index for edge in desc.input_edges}
        named = [tensor.name for i, tensor in enumerate(desc.inputs) if i in used]
        self._inputs = {
            n: (values[n], tensor_desc(values[n]).storage.sizes)
            for n in named
            if n not in part.owned and n in read
        }
        outputs = ((name, values[name]) for name in part.outputs)
        self._outputs = {n: (v.type, numpy_type(v.type), v.sizes or ()) for n, v in outputs}
        owned = {n: _to_device(values[n].data, values[n]) for n in named if n in part.owned}
        if owned:
            self._compiled.initialize(**owned)

    def __call__(self, arrays: Arrays) -> None:
        bound = {
            name: _to_device(arrays.get(name, value.data), value, sizes)
            for name, (value, sizes) in self._inputs.items()
        }
        found = self._compiled(**bound)
        for name, known in self._outputs.items():
            arrays[name] = unpacked(found[name], *known)


class _NodeStep:
    """A node of its own: on the device once its shapes are known, or on the CPU."""

    def __init__(self, item: Judged, model: OnnxModel, device: Device) -> None:
        self._item = item
        self._model = model
        self._device = device
        self._cpu: dict[int, CpuNode] = {}  # by the number of threads
        self._known: dict[Any, tuple[CompiledGraph, list[Value | None], list[str]]] = {}

    def __call__(self, arrays: Arrays) -> None:
        node, item = self._item.node, self._item
        inputs = [self._value(name, arrays) if name else None for name in node.inputs]
        if any(self._model.graph.values[name].sizes is None for name in node.outputs if name):
            self._check_memory(inputs)
        if item.is_on_host:
            found = _host(item, inputs[0])
        elif not item.on_device:
            found = self._on_cpu(inputs)
        else:
            found = self._on_device(inputs)
        for name, array in zip(node.outputs, found, strict=False):
            if name:
                arrays[name] = array

    def _infer(self, inputs: Sequence[Value | None]) -> list[tuple[Any, ...]]:
        node, proto = self._item.node, self._model.source.proto
        with node_errors(node.name, node.title):
            return infer(node, inputs, infer_without_schema, proto.ir_version) or []

    def _check_memory(self, inputs: Sequence[Value | None]) -> None:
        """Refuse results that exceed the memory limit, if their sizes depend on data."""
        node, limit = self._item.node, self._model.source.memory_limit
        size = sum(Value("", *known).nbytes for known in self._infer(inputs))
        if size > limit:
            raise ModelError(
                f"{node.label}: expected results of at most {limit} bytes (--memory-limit), "
                f"got {size}."
            )

    def _value(self, name: str, arrays: Arrays) -> Value:
        value = self._model.graph.values[name]
        array = arrays.get(name, value.data)
        if value.type == SEQUENCE or not isinstance(array, np.ndarray):
            return Value(name, SEQUENCE, None, array, value.proto)
        kind = value.type or type_name(load_onnx().helper.np_dtype_to_tensor_dtype(array.dtype))
        return Value(name, kind, array.shape if name in arrays else value.sizes, array)

    def _on_cpu(self, inputs: Sequence[Value | None]) -> list[Any]:
        threads, graph = get_num_threads(), self._model.graph
        if threads not in self._cpu:
            given = inputs
            if self._item.node.has_subgraphs:  # bodies need the ranks that all runs have
                given = [value and (graph.values[value.name] if graph.values[value.name].type
                                    else Value(value.name, value.type, proto=value.proto))
                         for value in inputs]  # fmt: skip
            node = self._item.node
            self._cpu[threads] = CpuNode(node, given, graph.constants, graph.functions, threads)
        return self._cpu[threads](inputs)

    def _on_device(self, inputs: Sequence[Value | None]) -> list[Array]:
        item = self._item
        positions = item.row.constants_at(item.version) if item.row else ()
        key = tuple(
            None if v is None else (v.sizes, v.data.tobytes() if i in positions else None)  # type: ignore[union-attr]
            for i, v in enumerate(inputs)
        )
        if key not in self._known:
            made = self._compile(inputs, positions)
            if made is None:
                return self._on_cpu(inputs)
            self._known[key] = made
        compiled, outputs, names = self._known[key]
        values = {v.name: v for v in inputs if v is not None}
        bound = {name: _to_device(values[name].data, values[name]) for name in names}
        found = compiled(**bound) if compiled.desc.nodes else {}
        finish = _FINISH.get(item.node.operator)
        if finish is not None:
            return [finish(found, inputs)]
        return [
            np.empty(0) if value is None else _from_device(found[value.name], value)
            for value in outputs
        ]

    def _compile(
        self, inputs: Sequence[Value | None], positions: Sequence[int]
    ) -> tuple[CompiledGraph, list[Value | None], list[str]] | None:
        """The graph of the node for these inputs, and those to bind.

        None if the CPU has to run it.
        """
        item, node = self._item, self._item.node
        known = self._infer(inputs)
        outputs: list[Value | None] = []
        for i, name in enumerate(node.outputs):
            value = Value(name, *known[i]) if name and i < len(known) else None
            if value is not None and value.sizes is None and item.node.operator != "NonZero":
                return None  # its kernel finds out
            outputs.append(value)
        # Only constants may be compiled in: other elements differ from run to run.
        constants = self._model.graph.constants
        operands = [
            v if v is None or i in positions or v.name in constants
            else Value(v.name, v.type, v.shape)
            for i, v in enumerate(inputs)
        ]  # fmt: skip
        embeds = node.operator in RECURRENT and self._device.feature_level >= CONSTANTS_SINCE
        owned: Arrays = {}
        sizes = [v.sizes or () for v in (*operands, *outputs) if v is not None]
        if any(0 in size for size in sizes):
            return None
        builder = GraphBuilder()

        def made(value: Value) -> Any:
            if value.name in constants and embeds:
                return constant_node(builder, value)
            desc = tensor_desc(value)
            if value.name in constants and node.operator not in RECURRENT:
                owned[value.name] = _to_device(value.data, value)
                desc = tensor_desc(value, flags="OWNED_BY_DML")
            return builder.input(value.name, desc)

        try:
            _, results = lower_node(item, operands, outputs, builder, once(made), self._model.exact)
        except UnsupportedError:
            return None
        if node.operator in _FINISH:
            named = {f"#{i}": result for i, result in enumerate(results) if result is not None}
        else:
            named = {
                value.name: result
                for value, result in zip(outputs, results, strict=False)
                if value is not None and result is not None
            }
        try:
            compiled = self._device.compile_graph(builder.build(**named))
            if owned:
                compiled.initialize(**owned)
            return compiled, outputs, [t.name for t in compiled.desc.inputs if t.name not in owned]
        except InvalidDescriptorError as error:
            raise ModelError(*(f"{node.label}: {found}" for found in error.violations)) from None


def _host(item: Judged, value: Value | None) -> list[Array]:
    """Shape and Size, of a tensor that is there."""
    found = shape_or_size(item.node, None if value is None else value.sizes)
    assert found is not None
    return found


def _coordinates(found: Arrays, inputs: Sequence[Value | None]) -> Array:
    """The rows that NONZERO_COORDINATES counts, as columns."""
    count = int(found["#0"].reshape(-1)[0])
    rank = len(inputs[0].sizes or ()) if inputs[0] is not None else 0
    rows: Array = found["#1"].reshape(-1, max(rank, 1))[:count]
    return rows.T[:rank].astype(np.int64) if rank else np.zeros((0, count), np.int64)


_FINISH: Final[dict[str, Callable[[Arrays, Sequence[Value | None]], Array]]] = {
    "NonZero": _coordinates
}
"""How outputs follow from those of the operator, where their sizes are known after the run."""
