"""Models on `Device("onnxruntime")`: what becomes one session, and of which operators."""

import numpy as np
import onnx.helper as oh
import onnxruntime
import pytest
from building import FLOAT, compare, floats, model_of, session, signed
from onnx import TensorProto

import anydml as dml
from anydml.devices.backends import onnxruntime as backend

node = oh.make_node


@pytest.fixture
def sessions(monkeypatch):
    """The operators of each session that is made."""
    made = []
    new_session = backend._new_session

    def record(name, model, *arguments):
        made.append([item.op_type for item in model.proto.graph.node])
        return new_session(name, model, *arguments)

    monkeypatch.setattr(backend, "_new_session", record)
    return made


def quantized_layer():
    """A product as `onnxruntime.quantization.quantize_dynamic` leaves it."""
    nodes = [
        node("DynamicQuantizeLinear", ["x"], ["xq", "scale", "zero"]),
        node("MatMulInteger", ["xq", "w", "zero", "wz"], ["i"]),
        node("Cast", ["i"], ["f"], to=FLOAT),
        node("Mul", ["scale", "ws"], ["factor"]),
        node("Mul", ["f", "factor"], ["y"]),
    ]
    weights = {"w": signed(1, 40, 24), "wz": np.int8(0), "ws": np.float32(0.02)}
    return model_of(nodes, {"x": (1, 7, 40)}, {"y": FLOAT}, weights)


SPECIAL = {
    "random": [],
    "zeros": [0.0] * 280,
    "one sign": [*range(280)],
    "NaN": [1.0, np.nan],
    "infinities": [np.inf, -np.inf],
    "beyond the range": [3e38, -3e38],
    "denormals": [1e-45, *[0.0] * 279],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_dynamic_quantization_has_the_bits_of_the_definition(name, sessions):
    """Of all special numbers: a guard finds those that ONNX Runtime's operator gets wrong."""
    model = dml.read_onnx(quantized_layer())
    x = floats(0, 1, 7, 40)
    x.reshape(-1)[: len(SPECIAL[name])] = SPECIAL[name]
    expected, got = (
        model.compile(dml.Device(device))(x=x)["y"] for device in ("cpu", "onnxruntime")
    )
    np.testing.assert_array_equal(got, expected)
    first = sessions[0]
    assert {"DynamicQuantizeLinear", "MatMulInteger"} <= {*first}
    assert "MatMul" not in first  # of float64


@pytest.mark.parametrize("size", [3, 4, 17, 64])
def test_softmax_of_numbers_that_are_not_finite(size, sessions):
    nodes = [node(*item) for item in (("Relu", ["x"], ["a"]), ("Add", ["x", "a"], ["b"]),
                                      ("Softmax", ["b"], ["y"]))]  # fmt: skip
    x = floats(0, 7, size)
    x[0, 1], x[1, :], x[2, 2] = np.inf, -np.inf, np.nan
    x[3, :2], x[4, 1:], x[5, 0] = (np.inf, -np.inf), -np.inf, 88.0
    model = dml.read_onnx(model_of(nodes, {"x": x.shape}, {"y": FLOAT}))
    expected, got = (
        model.compile(dml.Device(device))(x=x)["y"] for device in ("reference", "onnxruntime")
    )
    np.testing.assert_allclose(got, expected, 72 * 2.0**-23)
    assert sessions[0].count("Softmax") == 1


def recurrent(steps, opset=17):
    nodes = [
        node("Add", ["x", "bias"], ["a"]),
        node("LSTM", ["a", "w", "r", "b"], ["", "h"], hidden_size=8),
        node("Squeeze", ["h"], ["s"]),
        node("Sigmoid", ["s"], ["y"]),
    ]
    weights = {
        "bias": floats(1, 6), "w": floats(2, 1, 32, 6), "r": floats(3, 1, 32, 8),
        "b": floats(4, 1, 64),
    }  # fmt: skip
    return model_of(nodes, {"x": (steps, 2, 6)}, {"y": FLOAT}, weights, opset)


@pytest.mark.parametrize("steps", [1, 20, 150])
def test_a_recurrent_layer_is_one_session_with_its_neighbours(steps, sessions):
    compare(recurrent(steps), {"x": floats(0, steps, 2, 6)}, "onnxruntime")
    (operators,) = sessions
    assert operators.count("LSTM") == 1
    assert "MatMul" not in operators


def test_axes_of_old_versions_are_folded(sessions):
    """Unsqueeze and Squeeze of constants, whose axes are attributes before version 13."""
    nodes = [
        node("Unsqueeze", ["w"], ["w1"], axes=[0, 3]),
        node("Squeeze", ["w1"], ["w2"], axes=[3]),
        node("Mul", ["x", "w2"], ["y"]),
    ]
    model = model_of(nodes, {"x": (1, 3, 4)}, {"y": FLOAT}, {"w": floats(0, 3, 4)}, 11)
    assert [item.operator for item in dml.read_onnx(model).graph.nodes] == ["Mul"]
    compare(model, {"x": floats(1, 1, 3, 4)}, "onnxruntime")


def test_nan_without_a_graph_is_computed_on_numpy(sessions):
    """A sequence that is too long for nodes of its own, with NaN that a guard finds."""
    steps = 150
    model = dml.read_onnx(recurrent(steps))
    x = floats(0, steps, 2, 6)
    x[3, 1] = np.nan
    expected, got = (
        model.compile(dml.Device(device))(x=x)["y"] for device in ("cpu", "onnxruntime")
    )
    assert np.isnan(expected).any()
    np.testing.assert_allclose(got, expected, 1e-5)
    assert len(sessions) == 1


def test_nodes_on_the_cpu_have_the_threads_that_are_set(monkeypatch):
    made = []
    new = onnxruntime.InferenceSession

    def session(model, options=None, **arguments):
        made.append(options)
        return new(model, options, **arguments)

    nodes = [node("Det", ["x"], ["d"]), node("Relu", ["d"], ["y"])]
    model = dml.read_onnx(model_of(nodes, {"x": (2, 3, 3)}, {"y": FLOAT}))
    compiled = model.compile(dml.Device("cpu"))
    monkeypatch.setattr(onnxruntime, "InferenceSession", session)
    for threads in (1, 3, 1):
        with dml.num_threads(threads):
            compiled(x=floats(0, 2, 3, 3))
    assert [options.intra_op_num_threads for options in made] == [1, 3]


def test_three_small_operators_get_a_session(sessions):
    nodes = [node("Relu", ["x"], ["a"]), node("Sqrt", ["a"], ["b"]), node("Exp", ["b"], ["y"])]
    compare(model_of(nodes, {"x": (2, 3)}, {"y": FLOAT}), {"x": floats(0, 2, 3)}, "onnxruntime")
    assert len(sessions) == 1
    compare(model_of(nodes[:2], {"x": (2, 3)}, {"b": FLOAT}), {"x": floats(0, 2, 3)}, "onnxruntime")
    assert len(sessions) == 1


@pytest.mark.parametrize("operator", ["GlobalAveragePool", "GlobalLpPool"])
@pytest.mark.parametrize("special", [[], [np.nan], [np.inf, -np.inf], [3e38]])
def test_global_pooling_of_large_images_joins_a_session(operator, special, sessions):
    nodes = [node("Relu", ["x"], ["a"]), node(operator, ["a"], ["b"]), node("Neg", ["b"], ["y"])]
    x = floats(0, 2, 5, 12, 96)
    x[1, 2].reshape(-1)[: len(special)] = special
    model = dml.read_onnx(model_of(nodes, {"x": x.shape}, {"y": FLOAT}))
    expected, got = (
        model.compile(dml.Device(device))(x=x)["y"] for device in ("reference", "onnxruntime")
    )
    np.testing.assert_allclose(got, expected, rtol=1e-6)
    assert len(sessions) == 1


@pytest.mark.parametrize("device", ["cpu", "onnxruntime"])
def test_weights_of_nodes_with_sizes_that_depend_on_data(device, monkeypatch):
    """They are bound once, and part of the session."""
    bound = []
    make = backend._new_session
    monkeypatch.setattr(
        backend,
        "_new_session",
        lambda n, m, inputs, t: bound.append(inputs) or make(n, m, inputs, t),
    )
    monkeypatch.setattr(backend, "LEAST_ELEMENTS", 0)
    nodes = [
        node("Relu", ["x"], ["r"]),
        node("Compress", ["r", "flags"], ["a"], axis=0),
        node("MatMul", ["a", "m"], ["b"]),
        node("LSTM", ["b", "w", "r0", "bias"], ["", "y"], hidden_size=8),
    ]
    weights = {
        "m": floats(1, 4, 6), "w": floats(2, 1, 32, 6), "r0": floats(3, 1, 32, 8),
        "bias": floats(4, 1, 64),
    }  # fmt: skip
    model = model_of(
        nodes, {"x": (5, 2, 4), "flags": (TensorProto.BOOL, [5])}, {"y": FLOAT}, weights
    )
    read = dml.read_onnx(model)
    compiled = read.compile(dml.Device(device))
    for flags in ([1, 0, 1, 1, 0], [0, 1, 0, 0, 0], [1, 0, 1, 1, 0]):
        feeds = {"x": floats(0, 5, 2, 4), "flags": np.array(flags, bool)}
        (expected,) = session(model).run(None, feeds)
        np.testing.assert_allclose(compiled(**feeds)["y"], expected, 1e-4, 1e-6)
    assert {len(inputs) for inputs in bound} == ({1} if device == "onnxruntime" else set())
