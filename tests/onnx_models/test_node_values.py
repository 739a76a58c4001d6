"""Nodes of rare attributes, versions and types: their values are those of ONNX Runtime."""

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, compare, floats, model_of
from onnx import TensorProto

import anydml as dml

node = oh.make_node
INT64 = TensorProto.INT64


UNUSUAL = [
    TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ, TensorProto.UINT4, TensorProto.INT4,
]  # fmt: skip


@pytest.mark.parametrize("kind", UNUSUAL, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("size", [1, 4, 5])
def test_tensors_of_types_that_numpy_lacks(kind, size):
    x = np.float32([[1, 2, 3, 0.5, 6]])[:, :size]
    nodes = [
        node("Cast", ["x"], ["a"], to=kind),
        node("Transpose", ["a"], ["b"]),
        node("Cast", ["b"], ["y"], to=FLOAT),
        node("Transpose", ["c"], ["d"]),
        node("Cast", ["d"], ["z"], to=FLOAT),
    ]
    constant = oh.make_tensor("c", kind, [3, 1], [1, 2, 3])
    model = model_of(nodes, {"x": [1, size]}, {"y": FLOAT, "z": FLOAT}, opset=21)
    model.graph.initializer.append(constant)
    compare(model, {"x": x})
    # The tensors themselves, as inputs and outputs.
    dtype = oh.tensor_dtype_to_np_dtype(kind)
    model = model_of(nodes[1:2], {"a": (kind, [1, size])}, {"b": kind, "c": kind}, opset=21)
    model.graph.initializer.append(constant)
    given = x.astype(dtype)
    found = dml.read_onnx(model).compile(dml.Device("cpu"), outputs=["a"])(a=given)
    expected = {"a": given, "b": given.T, "c": np.float32([[1], [2], [3]]).astype(dtype)}
    for name, array in expected.items():
        assert found[name].dtype == dtype
        np.testing.assert_array_equal(found[name], array)


def test_quantization_to_8_bit_floats():
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    model = model_of(nodes, {"x": [2, 3]}, {"y": FLOAT}, {"s": np.float32(0.5)}, opset=19)
    zero = oh.make_tensor("z", TensorProto.FLOAT8E4M3FN, [], [0])
    model.graph.initializer.append(zero)
    compare(model, {"x": floats(0, 2, 3)})


@pytest.mark.parametrize("kind", [TensorProto.UINT4, TensorProto.INT4])
def test_4_bits_between_nodes_of_unknown_sizes(kind):
    """DirectML's operators and ONNX Runtime's take turns, with an odd number of elements."""
    nodes = [
        node("Reshape", ["x", "n"], ["a"]),
        node("QuantizeLinear", ["a", "s", "z"], ["q"]),
        node("Transpose", ["q"], ["t"]),
        node("DequantizeLinear", ["t", "s", "z"], ["y"]),
    ]
    inputs = {"x": np.float32([1, 2, -3, 4, 5]), "n": np.int64([5, 1])}
    model = model_of(
        nodes, {"x": [5], "n": (INT64, [2])}, {"y": FLOAT}, {"s": np.float32(1)}, opset=21
    )
    model.graph.initializer.append(oh.make_tensor("z", kind, [], [0]))
    compare(model, inputs)
