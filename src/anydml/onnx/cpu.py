"""Nodes that ONNX Runtime runs on the CPU."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ctypes import string_at
from importlib.util import find_spec
from math import prod
from typing import Any

import numpy as np

from anydml.core._json import short_repr
from anydml.core.errors import ModelError
from anydml.onnx.nodes import Node
from anydml.onnx.read import load_onnx
from anydml.onnx.shapes import tensor_of
from anydml.onnx.types import (
    Array,
    Value,
    is_plain,
    numpy_type,
    packed,
    type_name,
    type_number,
    unpacked,
)


def is_available() -> bool:
    """Whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


class CpuNode:
    """One node as a model of its own.

    Parameters
    ----------
    node : Node
        The node.
    inputs : sequence of Value or None
        Its inputs in a run.
    constants : collection of str
        Names of values that are the same in every run.
    """

    def __init__(
        self, node: Node, inputs: Sequence[Value | None], constants: Collection[str]
    ) -> None:
        import onnxruntime

        onnx = load_onnx()
        proto = onnx.NodeProto()
        proto.CopyFrom(node.proto)
        del proto.input[:]
        proto.input.extend(node.inputs)
        del proto.output[:]
        proto.output.extend(node.outputs)
        self._names = {
            value.name for value in inputs if value is not None and value.name not in constants
        }
        declared, initializers = {}, {}
        for value in inputs:
            if value is None:
                continue
            if value.name in constants:
                initializers[value.name] = tensor_of(value, onnx)
            else:
                kind = onnx.helper.make_tensor_type_proto(type_number(value.type), None)
                declared[value.name] = onnx.helper.make_value_info(value.name, kind)
        results = [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in node.outputs if n]
        graph = onnx.helper.make_graph(
            [proto], "node", list(declared.values()), results, list(initializers.values())
        )
        opsets = [onnx.helper.make_opsetid(node.domain, node.opset)]
        if node.domain:
            opsets.append(onnx.helper.make_opsetid("", 17))
        model = onnx.helper.make_model(graph, opset_imports=opsets)
        model.ir_version = min(model.ir_version, 10)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self._label = f"Node {short_repr(node.name)} ({node.title})"
        self._outputs = list(node.outputs)
        try:
            self._session = onnxruntime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's exceptions have no public base
            raise ModelError(f"{self._label}: ONNX Runtime refuses it: {error}") from None

    def __call__(self, inputs: Sequence[Value | None]) -> list[Array]:
        """The outputs for some inputs."""
        feeds = {v.name: _ort_value(v) for v in inputs if v is not None and v.name in self._names}
        try:
            found = iter(self._session.run_with_ort_values(None, feeds))
        except Exception as error:
            raise ModelError(f"{self._label}: ONNX Runtime fails: {error}") from None
        return [_array(next(found)) if name else np.empty(0) for name in self._outputs]


def _ort_value(value: Value) -> Any:
    """The elements of a value for ONNX Runtime, of any type."""
    from onnxruntime import OrtValue

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
