"""The node tests of the `onnx` package through computed operators: a judge from outside.

A node becomes a descriptor by a small mapping; operands are broadcast as ONNX broadcasts them, with
strides of 0.
"""

import numpy as np
import pytest
from onnx_nodes import attributes_of, node_cases

import anydml as dml

pytest.importorskip("onnx")

DEVICE = dml.Device("cpu")


def unary(kind, **fixed):
    def run(inputs, attributes):
        return kind, inputs[:1], {**fixed, **attributes}

    return run


def binary(kind):
    return lambda inputs, attributes: (kind, np.broadcast_arrays(*inputs), attributes)


def clip(inputs, attributes):
    x = inputs[0]
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    given = [*inputs[1:], None, None][:2]
    bounds = [
        least if bound is None else bound.item()
        for bound, least in zip(given, (limits.min, limits.max), strict=True)
    ]
    low, high = (float(b) if x.dtype.kind == "f" else int(b) for b in bounds)
    data_type = dml.DataType.from_numpy(x.dtype)
    return dml.ElementWiseClip1, [x], {"min_max_data_type": data_type, "min": low, "max": high}


def leaky_relu(inputs, attributes):
    return dml.ActivationLeakyRelu, inputs, {"alpha": attributes.get("alpha", 0.01)}


MAPPING = {
    "Add": binary(dml.ElementWiseAdd),
    "Sub": binary(dml.ElementWiseSubtract),
    "Mul": binary(dml.ElementWiseMultiply),
    "Div": binary(dml.ElementWiseDivide),
    "Clip": clip,
    "Relu": unary(dml.ActivationRelu),
    "LeakyRelu": leaky_relu,
    "Sigmoid": unary(dml.ActivationSigmoid),
    "Tanh": unary(dml.ActivationTanh),
}


# Where ONNX means something else than DirectML's pages, or its test data does.
DIFFERENT = {
    "test_clip_min_greater_than_max": "CLIP is max(Min, min(x, Max)); ONNX gives Max",
    **dict.fromkeys(
        ("test_div_int8", "test_div_int16"),
        "integers are divided towards zero; the data are of NumPy's division, which rounds down",
    ),
}


def described(array):
    strides = [stride // array.itemsize for stride in array.strides]
    return dml.TensorDesc(dml.DataType.from_numpy(array.dtype), array.shape, strides)


def test_the_differences_are_of_cases_that_are_there():
    assert DIFFERENT.keys() <= {case.name for case in node_cases(MAPPING)}


@pytest.mark.parametrize("case", node_cases(MAPPING), ids=lambda case: case.name)
def test_node(case):
    if case.name in DIFFERENT:
        pytest.skip(DIFFERENT[case.name])
    (node,) = case.model.graph.node
    for given, expected in case.data_sets:
        present = iter(given)
        arrays = [np.asarray(next(present)) if name else None for name in node.input]
        kind, inputs, fields = MAPPING[node.op_type](arrays, attributes_of(case))
        inputs = [array if array.ndim else array.reshape(1) for array in inputs]
        names = [
            info.attribute for info in kind.tensor_fields() if info.attribute != "output_tensor"
        ]
        tensors = dict(zip(names, map(described, inputs), strict=True))
        desc = kind.with_outputs(**tensors, **fields)
        got = DEVICE.create_operator(desc).compile()(*inputs)
        (wanted,) = map(np.asarray, expected)
        np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-6, atol=1e-7)
        assert got.dtype == wanted.dtype
