"""DirectML graphs as ONNX models: the definitions of the operators, traced into operators of ONNX.

A model has the graph that it was made of as a property, so that it can be turned back into exactly
that graph (`anydml.onnx.restore`). Weights are initializers of their own names, types and sizes;
what depends on them is computed by nodes, which runtimes compute once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import ArgumentTypeError, BindingError, InvalidDescriptorError, ModelError
from anydml.core.levels import LATEST
from anydml.core.program import Intermediate, KernelCall
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.devices.backends._base import unrepeated
from anydml.devices.backends._partition import Layout, Run, relayout, specs_of
from anydml.devices.backends._traced import compute_calls
from anydml.devices.binding import bind, elements_size
from anydml.engines._onnx import OnnxEngine
from anydml.engines._onnx_arrays import Traced, is_traced, repeated, value_of
from anydml.engines._onnx_graph import Graph, NotTraced, Spec
from anydml.graphs.check import SINCE, violations
from anydml.graphs.constants import MOST_INSIDE, settle_constants
from anydml.graphs.desc import ConstantNode, GraphDesc
from anydml.graphs.lower import Lowered, lower
from anydml.onnx.indexed import indexed_results
from anydml.onnx.read import load_onnx
from anydml.onnx.types import Array

PROPERTY: Final = "anydml.graph"
"""The property of a model that has its graph as JSON."""

_MOST_STEPS: Final = 1024
_ENGINE: Final = OnnxEngine(_MOST_STEPS)
_MOST_COMPUTED: Final = 1 << 24
"""The most elements of an array of places or constants that is computed for a node."""


class Written(NamedTuple):
    """A model, and its weights.

    Attributes
    ----------
    proto : onnx.ModelProto
        The model without the elements of the weights.
    weights : dict of str to ndarray
        The initializers whose elements it lacks.
    graph : GraphDesc
        The graph that it has as a property.
    """

    proto: Any
    weights: dict[str, Array]
    graph: GraphDesc

    def whole(self) -> Any:
        """The model with the elements of its weights."""
        for tensor in self.proto.graph.initializer:
            if tensor.name in self.weights:
                tensor.raw_data = little_endian(self.weights[tensor.name])
        return self.proto


def little_endian(array: Array) -> bytes:
    """The elements as a file of ONNX has them."""
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def bound_weights(graph: GraphDesc, weights: Mapping[str, Any]) -> tuple[Lowered, dict[str, Array]]:
    """A checked graph's program, and its weights as arrays of the sizes of their tensors.

    Raises
    ------
    InvalidDescriptorError
        The graph breaks rules.
    BindingError
        A weight is missing, unknown, or does not fit: the message has all of them.
    """
    if not isinstance(graph, GraphDesc):
        raise ArgumentTypeError(f"graph: expected a GraphDesc, got {short_repr(graph)}")
    found = violations(graph, LATEST, constants_since=SINCE)
    if found:
        raise InvalidDescriptorError(found)
    lowered = lower(graph)
    slots = [slot.name for slot in lowered.program.inputs]
    arrays, problems = dict[str, Array](), []
    for name in weights:
        if name not in slots:
            names = ", ".join(map(repr, slots)) or "none"
            problems.append(
                f"weights: expected inputs that a node reads ({names}), got {short_repr(name)}"
                f"{did_you_mean(name, slots)}"
            )
    for name in slots:
        tensor = lowered.tensors[name].storage
        if name not in weights:
            if tensor.flags is TensorFlags.OWNED_BY_DML:
                problems.append(f"{name}: expected its elements (it is OWNED_BY_DML), got none")
            continue
        try:
            arrays[name] = bind(name, tensor, _repeated_to(weights[name], tensor.sizes), False)
        except BindingError as error:
            problems.append(str(error))
    if problems:
        raise BindingError("; ".join(problems))
    return lowered, arrays


def _repeated_to(x: Any, sizes: tuple[int, ...]) -> Any:
    """An array of the rank of a tensor that has sizes of 1 where that has others, repeated."""
    shape = getattr(x, "shape", ())
    if isinstance(x, np.ndarray) and len(shape) == len(sizes) > 0 and shape != sizes:
        fits = all(n in (1, size) for n, size in zip(shape, sizes, strict=True))
        return np.broadcast_to(x, sizes) if fits else x
    return x


def buffer_of(array: Array, tensor: TensorDesc) -> bytes:
    """The buffer that has an array's elements where the strides of a tensor say."""
    tensor = tensor.storage
    size = max(tensor.total_tensor_size_in_bytes, elements_size(tensor))
    memory = np.zeros(size, np.uint8)
    kind = tensor.data_type.numpy
    strides = tuple(stride * kind.itemsize for stride in tensor.element_strides)
    np.ndarray(tensor.sizes, kind, memory.data, 0, strides)[...] = array
    return memory.tobytes()


def written_model(
    graph: GraphDesc, weights: Mapping[str, Any], memory_limit: int | None = None
) -> Written:
    """The model of a graph; see `anydml.to_onnx`.

    Parameters
    ----------
    graph, weights
        As `anydml.to_onnx` takes them.
    memory_limit : int, optional
        The most bytes of all tensors of the graph together.
    """
    load_onnx()
    lowered, arrays = bound_weights(graph, weights)
    nbytes = sum(prod(spec.shape) * np.dtype(spec.dtype).itemsize
                 for spec in specs_of(lowered.program).values())  # fmt: skip
    if memory_limit is not None and nbytes > memory_limit:
        raise ModelError(
            f"Expected tensors of at most {memory_limit} bytes together (--memory-limit), got "
            f"{nbytes}."
        )
    buffers = {name: buffer_of(x, lowered.tensors[name]) for name, x in arrays.items()}
    settled, buffers = settle_constants(graph, buffers)
    return _Writer(settled, *bound_weights(settled, buffers)).written()


class _Writer:
    def __init__(self, desc: GraphDesc, lowered: Lowered, weights: Mapping[str, Array]) -> None:
        self._desc = desc
        self._lowered = lowered
        self._program = lowered.program
        self._graph = Graph()
        self._specs = specs_of(self._program)
        self._views = {item.name: item for item in self._program.intermediates if item.buffer}
        self._strides = {item.name: item.strides for item in self._program.intermediates}
        self._weights = {name: np.ascontiguousarray(unrepeated(x)) for name, x in weights.items()}
        # What weights and constants are, beside the arrays of the graph.
        self._known: dict[str, Array] = {}
        self._held: dict[str | None, Any] = {None: None}
        self._labels = self._edge_names()

    def _edge_names(self) -> dict[str, str]:
        """The names that edges give to what nodes write, by the names in the program."""
        named = {
            (edge.from_node_index, edge.from_node_output_index): edge.name
            for edge in self._desc.intermediate_edges
            if edge.name
        }
        return {
            name: named[place] for name, place in self._lowered.places.items() if place in named
        }

    def written(self) -> Written:
        program, tensors = self._program, self._lowered.tensors
        for slot in program.inputs:
            tensor = tensors[slot.name].storage
            shape = tensor.sizes
            if slot.name in self._weights:
                array = self._weights[slot.name]
                shape = array.shape
                full = np.broadcast_to(array, slot.declared).reshape(slot.spec.shape)
                self._known[slot.name] = full
            spec = Spec(tensor.data_type.numpy, shape)
            x = Traced(self._graph, self._graph.input(slot.name, spec), spec)
            self._held[slot.name] = repeated(x, slot.declared).reshape(slot.spec.shape)
        for constant in program.constants:
            spec_ = constant.spec
            array = np.frombuffer(constant.data, spec_.dtype).reshape(spec_.shape)
            self._known[constant.name] = self._held[constant.name] = array
            place = self._lowered.places.get(constant.name)
            name = self._desc.nodes[place[0]].name if place else ""
            if name and array.nbytes > MOST_INSIDE:
                self._weights[name] = array
                spec = Spec(array.dtype, array.shape)
                self._held[constant.name] = Traced(self._graph, self._graph.input(name, spec), spec)
            elif name:
                self._graph.label(self._graph.constant(array), name)
        problems = []
        for call in program.calls:
            self._graph.scope = call.source or call.kernel
            try:
                self._trace(call)
            except NotTraced as error:
                problems.append(
                    f"Node {short_repr(call.source)} ({call.kernel.upper()}): ONNX has no form of "
                    f"it: {error}."
                )
                for name in filter(None, call.outputs):  # so that others are reported, too
                    spec = Spec(np.dtype(self._specs[name].dtype), self._specs[name].shape)
                    value = self._graph.input(f"{name} is not traced", spec)
                    self._held[name] = Traced(self._graph, value, spec)
        if problems:
            raise ModelError(*problems)
        outputs = {
            slot.name: value_of(self._graph, self._held[slot.name].reshape(slot.declared))
            for slot in program.outputs
        }
        return self._finished(outputs)

    def _trace(self, call: KernelCall) -> None:
        try:
            results = self._results(call, known=False)
        except NotTraced:
            if not any(self._is_known(name) for name in call.inputs):
                raise
            results = self._results(call, known=True)  # which may only need their elements
        for name, result in zip(call.outputs, results, strict=True):
            if name is not None:
                self._held[name] = result
                label = self._labels.get(name)
                if label and isinstance(result, Traced):
                    self._graph.label(result.value, label)

    def _results(self, call: KernelCall, known: bool) -> list[Any]:
        names = tuple(name and f"{i} {name}" for i, name in enumerate(call.inputs))
        held: dict[str | None, Any] = {None: None}
        for own, name in zip(names, call.inputs, strict=True):
            if name is not None:
                held[own] = self._operand(name, known)
        if not any(map(is_traced, held.values())):
            count = sum(prod(self._specs[name].shape) for name in filter(None, call.outputs))
            if count > _MOST_COMPUTED:
                raise NotTraced(f"a constant of {count} elements")
        bound = KernelCall(call.kernel, names, call.outputs, call.attributes, source=call.source)
        run = Run(self._specs, [bound])
        with np.errstate(all="ignore"):
            for _ in compute_calls(_ENGINE, run, held, self._indexed):
                pass
        return [None if name is None else held[name] for name in call.outputs]

    def _indexed(self, call: KernelCall, operands: Sequence[Any], specs: Any) -> Sequence[Any]:
        """The results of a native call, for which an operand has to be in the graph."""
        if not any(is_traced(x) for x in operands):
            first = np.ascontiguousarray(operands[0])
            spec = Spec(first.dtype, first.shape)
            value = self._graph.constant(first)
            operands = [Traced(self._graph, value, spec), *operands[1:]]
        return indexed_results(call, operands, specs)

    def _is_known(self, name: str | None) -> bool:
        view = self._views.get(name or "")
        return (view.buffer if view else name) in self._known

    def _operand(self, name: str, known: bool) -> Any:
        view = self._views.get(name)
        if view is None:
            return self._known[name] if known and name in self._known else self._held[name]
        source = self._specs[view.buffer]
        layouts = (
            Layout(source.shape, self._strides.get(view.buffer)),
            Layout(view.spec.shape, view.strides),
        )
        reader = relayout(*layouts)
        if view.buffer in self._known and (
            known or reader is None or source.dtype != view.spec.dtype
        ):
            return _reread(self._known[view.buffer], view)
        x = self._held[view.buffer]
        x = self._retyped(x, view)
        return self._gathered(x, *layouts) if reader is None else reader(_ENGINE.xp, x)

    def _retyped(self, x: Any, view: Intermediate) -> Any:
        """The bytes of integers as integers of another type of the same size."""
        dtype = np.dtype(view.spec.dtype)
        if x.dtype == dtype:
            return x
        if x.dtype.itemsize != dtype.itemsize or {x.dtype.kind, dtype.kind} != {"i", "u"}:
            raise NotTraced(f"it reads the bytes of {x.dtype.name} as {dtype.name}")
        return x.astype(dtype)

    def _gathered(self, x: Any, source: Layout, target: Layout) -> Any:
        """The elements of memory in another order, one by one; 0 where nothing has been written."""
        places, wanted = (_offsets(layout) for layout in (source, target))
        size = max(int(places.max()), int(wanted.max())) + 1
        if max(size, wanted.size) > _MOST_COMPUTED:
            raise NotTraced("it reads a large tensor with strides that leave gaps")
        where = np.full(size, -1)
        where[places.reshape(-1)] = np.arange(places.size)
        found = where[wanted]
        elements = _ENGINE.xp.take(x.reshape(-1), np.maximum(found, 0))
        return _ENGINE.xp.where(found < 0, x.dtype.type(0), elements)

    def _finished(self, outputs: Mapping[str, str]) -> Written:
        from onnx import TensorProto, helper

        proto = self._graph.model(outputs).proto
        proto.producer_name = "anydml"
        proto.graph.name = "graph"
        inputs = [item for item in proto.graph.input if item.name not in self._weights]
        del proto.graph.input[:]
        proto.graph.input.extend(inputs)
        made = [*proto.graph.initializer]
        del proto.graph.initializer[:]
        for name, array in self._weights.items():
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor = TensorProto(name=name, data_type=kind, dims=array.shape)
            proto.graph.initializer.append(tensor)
        proto.graph.initializer.extend(made)
        helper.set_model_props(proto, {PROPERTY: property_of(self._desc)})
        return Written(proto, self._weights, self._desc)


def property_of(graph: GraphDesc) -> str:
    """The text of a graph as a property: its JSON form, with the sizes of constants for large ones.

    Their elements are those of the initializers of their names.
    """
    record = graph.to_json()
    for node, item in zip(graph.nodes, record["Nodes"], strict=True):
        if isinstance(node, ConstantNode) and len(node.data) > MOST_INSIDE:
            item["Data"] = len(node.data)
    return json.dumps(record, separators=(",", ":"))


def _offsets(layout: Layout) -> Array:
    """Where each element lies, counted in elements."""
    shape, strides = layout
    if strides is None:
        return np.arange(prod(shape)).reshape(shape)
    steps = np.meshgrid(*(np.arange(n) * s for n, s in zip(shape, strides, strict=True)),
                        indexing="ij", sparse=True)  # fmt: skip
    return np.broadcast_to(sum(steps, np.int64(0)), shape)


def _reread(array: Array, view: Intermediate) -> Array:
    """The packed bytes of an array as elements of another type, in other strides."""
    dtype = np.dtype(view.spec.dtype)
    memory = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    if memory.size < view.nbytes:
        memory = np.append(memory, np.zeros(view.nbytes - memory.size, np.uint8))
    strides = None if view.strides is None else [s * dtype.itemsize for s in view.strides]
    return np.ndarray(view.spec.shape, dtype, memory.data, 0, strides)
