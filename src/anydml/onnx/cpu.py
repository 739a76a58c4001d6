"""Nodes that ONNX Runtime runs on the CPU."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from ctypes import string_at
from importlib.util import find_spec
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.errors import AnyDMLError, ModelError
from anydml.core.extras import name_missing_package
from anydml.models.document import visible
from anydml.onnx.nodes import Graph, Node, key_of
from anydml.onnx.read import load_onnx
from anydml.onnx.shapes import tensor_of, type_of
from anydml.onnx.table import operand_names
from anydml.onnx.types import (
    OBJECTS,
    SEQUENCE,
    Array,
    Value,
    is_plain,
    numpy_type,
    packed,
    type_name,
    type_number,
    unpacked,
)
from anydml.onnx.verdict import Judged

_CODE: Final = re.compile(r"\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : | node with name ''")
_TENSOR: Final = re.compile(r"tensor\((?!string).*\)")
"""The types of values that are bytes."""

_LONGEST: Final = 1000
"""Characters of a message of ONNX Runtime."""

_LARGE: Final = 2**24
"""Bytes of constants from which nodes are asked about in a session of their own."""

_MOST_TOGETHER: Final = 256
"""Nodes of a session that are asked about."""

_MOST_REFUSED: Final = 20
"""Refused nodes that are looked for, besides those that are alike."""


def is_available() -> bool:
    """Whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


def refuse_without_kernel(judged: Iterable[Judged], graph: Graph) -> None:
    """Refuse nodes on the CPU that ONNX Runtime refuses there, if it is installed."""
    waiting: dict[Any, dict[Any, list[Judged]]] = {}
    for item in judged:
        node = item.node
        values = graph.tensors(node.inputs)
        if node.misfit or (node.has_subgraphs and node.is_inside):  # as a part of another node
            continue
        known = all(value is None or value.type not in ("", SEQUENCE) or value.proto is not None
                    for value in values)  # fmt: skip
        if known and item.is_on_cpu:
            own = id(node) if node.has_subgraphs else 0
            alike = waiting.setdefault((node.domain, node.opset, own), {})
            alike.setdefault(key_of(node, values) or id(node), []).append(item)
    if not waiting or not is_available():
        return
    left = _MOST_REFUSED
    groups = [group for alike in waiting.values() for group in _groups([*alike.values()], graph)]
    while groups and left:
        group = groups.pop()
        nodes = [(items[0].node, [graph.values.get(name) for name in items[0].node.inputs])
                 for items in group]  # fmt: skip
        try:
            _session(nodes, _is_small_constant, graph.functions, thorough=False)
        except Exception as error:  # ONNX Runtime's exceptions have no public base
            half = len(group) // 2
            groups += [group[half:], group[:half]] if half else []
            left -= not half
            for item in () if half else group[0]:
                item.place, item.code, item.is_checked = "refused", "no_kernel_on_cpu", True
                item.reason = f"ONNX Runtime refuses it on the CPU, too: {message_of(error)}"


def _groups(alike: Sequence[list[Judged]], graph: Graph) -> Iterable[list[list[Judged]]]:
    """Nodes that one session has: not too many, and without large constants."""
    small: list[list[Judged]] = []
    size = 0
    for items in alike:
        constants = [graph.values[name] for name in items[0].node.inputs if name]
        own = sum(value.data.nbytes for value in constants if value.data is not None)
        if small and (size + own > _LARGE or len(small) == _MOST_TOGETHER):
            yield small
            small, size = [], 0
        small.append(items)
        size += own
    yield small


def _is_small_constant(value: Value) -> bool:
    return value.data is not None and value.data.nbytes < _LARGE


def message_of(error: Exception) -> str:
    """The message of an exception of ONNX Runtime on one line, without what begins each."""
    return visible(_CODE.sub("", " ".join(str(error).split()))[:_LONGEST])


def _session(
    nodes: Sequence[tuple[Node, Sequence[Value | None]]],
    is_constant: Callable[[Value], bool],
    functions: Iterable[Any],
    thorough: bool,
    threads: int = 1,
) -> Any:
    """A session of nodes that are not connected; names of the tensors of several have a prefix."""
    with name_missing_package("nodes on the CPU", "anydml[onnxruntime]"):
        import onnxruntime
    onnx = load_onnx()
    graph = onnx.GraphProto(name="nodes")
    for i, (node, inputs) in enumerate(nodes):
        prefix = f"{i}/" if len(nodes) > 1 else ""
        proto = graph.node.add()
        proto.CopyFrom(node.proto)
        proto.name = ""
        names = [name and f"{prefix}{name}" for name in _names(node)]
        if not node.has_subgraphs:
            del proto.input[:], proto.output[:]
            proto.input.extend(names)
            proto.output.extend(name and f"{prefix}{name}" for name in node.outputs)
        for name, value in dict(zip(names, inputs, strict=False)).items():
            if value is None:
                continue
            if is_constant(value):
                tensor = graph.initializer.add()
                tensor.CopyFrom(tensor_of(value, onnx))
                tensor.name = name
            else:
                if node.has_subgraphs:  # a body may be for other sizes, but needs a rank
                    shape = value.shape and (None,) * len(value.shape)
                else:
                    shape = None if thorough else value.shape
                known = Value("", value.type, shape, proto=value.proto)
                graph.input.append(onnx.helper.make_value_info(name, type_of(known)))
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in proto.output if name)
    first = nodes[0][0]
    opsets = {"": 17, first.domain: first.opset}
    if first.has_subgraphs:
        opsets |= first.opsets
    imports = [onnx.helper.make_opsetid(*item) for item in opsets.items()]
    calls = functions if first.has_subgraphs else ()
    model = onnx.helper.make_model(graph, opset_imports=imports, functions=calls)
    model.ir_version = min(model.ir_version, 10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not thorough:
        levels = onnxruntime.GraphOptimizationLevel
        options.graph_optimization_level = levels.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _names(node: Node) -> list[str]:
    """The names of a node's inputs in a model of its own: those that its bodies know."""
    return [*node.proto.input, *node.captured] if node.has_subgraphs else operand_names(node)


class CpuNode:
    """One node as a model of its own, with its bodies.

    Parameters
    ----------
    node : Node
        The node.
    inputs : sequence of Value or None
        Its inputs in a run.
    constants : collection of str
        Names of values that are the same in every run.
    functions : iterable of onnx.FunctionProto
        Functions that nodes of its bodies may call.
    threads : int
        Those of its session, which do not spin.
    """

    def __init__(
        self,
        node: Node,
        inputs: Sequence[Value | None],
        constants: Collection[str],
        functions: Iterable[Any],
        threads: int,
    ) -> None:
        self._names = [
            "" if value is None or value.name in constants else name
            for name, value in zip(_names(node), inputs, strict=False)
        ]
        self._label = node.label
        self._outputs = list(node.outputs)
        try:
            self._session = _session(
                [(node, inputs)], lambda value: value.name in constants, functions,
                thorough=True, threads=threads,
            )  # fmt: skip
        except AnyDMLError:
            raise
        except Exception as error:
            message = message_of(error)
            raise ModelError(f"{self._label}: ONNX Runtime refuses it: {message}") from None
        ends = (*self._session.get_inputs(), *self._session.get_outputs())
        self._has_objects = any(not _TENSOR.fullmatch(end.type) for end in ends)

    def __call__(self, inputs: Sequence[Value | None]) -> list[Any]:
        """The outputs for some inputs."""
        pairs = zip(self._names, inputs, strict=False)
        feeds = {name: _ort_value(value) for name, value in pairs if name and value is not None}
        try:
            if self._has_objects:
                found = iter(self._session.run(None, feeds))
            else:
                found = map(_array, self._session.run_with_ort_values(None, feeds))
            return [next(found) if name else np.empty(0) for name in self._outputs]
        except Exception as error:
            message = message_of(error)
            raise ModelError(f"{self._label}: ONNX Runtime fails: {message}") from None


def _ort_value(value: Value) -> Any:
    """The elements of a value for ONNX Runtime, of any type."""
    from onnxruntime import OrtValue

    if value.type in OBJECTS:
        return value.data
    assert value.data is not None
    data, sizes = np.asarray(value.data, order="C"), value.sizes or ()
    if is_plain(value.type):
        return OrtValue.ortvalue_from_numpy(data)
    # The sizes are those of the array, of which ONNX Runtime reads as many bytes as it needs.
    data = packed(data, value.type).reshape(-1).view(np.uint8)
    array = np.zeros(prod(sizes) * numpy_type(value.type).itemsize, np.uint8)
    array[: data.size] = data
    array = array.view(numpy_type(value.type)).reshape(sizes)
    return OrtValue.ortvalue_from_numpy_with_onnx_type(array, type_number(value.type))


def _array(value: Any) -> Array:
    """The elements of a result of ONNX Runtime."""
    name = type_name(value.element_type())
    if is_plain(name):
        found: Array = value.numpy()
        return found
    data = string_at(value.data_ptr(), value.tensor_size_in_bytes())
    sizes = tuple(value.shape())
    return unpacked(np.frombuffer(bytearray(data), np.uint8), name, numpy_type(name), sizes)
