"""`dml.to_onnx`: ONNX Runtime computes what our devices do, and the graph comes back."""

import subprocess
import sys

import numpy as np
import pytest
from random_graphs import random_graph
from random_networks import random_network
from test_random_graphs import is_read
from test_serialized import alone

import anydml as dml
from anydml.devices.binding import bind
from anydml.graphs.lower import lower
from anydml.ops._examples import examples_of
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from anydml.onnx.read import read_proto  # noqa: E402  # needs the package onnx
from anydml.onnx.restore import restored  # noqa: E402  # after the skip
from anydml.onnx.write import PROPERTY  # noqa: E402  # after the skip

T = dml.TensorDesc
F = T("FLOAT32", (4, 6))
X = np.arange(24, dtype=np.float32).reshape(4, 6) - 9

REFUSED = {"ROI_ALIGN", "ROI_ALIGN1", "ROI_ALIGN_GRAD", "ROI_POOLING"}
"""Operators whose loops depend on the values of their inputs."""


def run(model, feeds):
    """What ONNX Runtime gives, by name."""
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"],
        disabled_optimizers=["DivMulFusion", "MatMulScaleFusion"],
    )  # fmt: skip
    found = session.run(None, {item.name: feeds[item.name] for item in session.get_inputs()})
    return dict(zip([item.name for item in session.get_outputs()], found, strict=True))


def assert_comes_back(graph, weights, model):
    """Writing the graph that a model gives back makes the same bytes."""
    found = restored(read_proto(model, "model", None, 2**30))
    assert found is not None
    again = dml.to_onnx(found[0], found[1])
    assert again.SerializeToString(deterministic=True) == model.SerializeToString(
        deterministic=True
    )


@pytest.mark.parametrize("name", OPERATORS)
def test_the_examples_of_every_operator(name):
    for example in examples_of(OPERATORS[name]):
        graph = alone(example.desc)
        feeds = {
            tensor.name: np.asarray(example.inputs[path])
            for tensor, (path, _, _) in zip(
                graph.inputs, example.desc.tensors(Role.INPUT), strict=True
            )
        }
        if name in REFUSED:
            with pytest.raises(dml.ModelError, match=rf"Node 'node' \({name}\): ONNX has no form"):
                dml.to_onnx(graph)
            continue
        got = run(dml.to_onnx(graph), feeds)
        for key, exact in dml.Device("reference").compile_graph(graph)(**feeds).items():
            assert (got[key].dtype, got[key].shape) == (exact.dtype, exact.shape)
            rtol = 2e-3 if exact.dtype == np.float16 else 1e-5
            np.testing.assert_allclose(got[key].astype("f8"), exact.astype("f8"), rtol, 1e-6)


def assert_same_bits(seed):
    """Whether a graph has a model; elements are only moved, or computed exactly."""
    graph, arrays = random_graph(seed)
    bound = {t.name: arrays[t.name] for t in graph.inputs if t.name in arrays and is_read(graph, t)}
    lowered = lower(graph)
    owned = {n: bound.pop(n) for n in [*bound] if "OWNED" in lowered.tensors[n].flags.name}
    expected = dml.Device("cpu").compile_graph(graph).initialize(**owned)(**bound)
    try:
        model = dml.to_onnx(graph, owned)
    except dml.ModelError as error:
        assert "it reads the bytes of" in str(error)  # noqa: PT017  # which not every graph does
        return False
    feeds = {n: np.array(bind(n, lowered.tensors[n], a, False)) for n, a in bound.items()}
    for name, array in run(model, feeds).items():
        assert array.dtype == expected[name].dtype
        np.testing.assert_array_equal(array, expected[name])
    assert_comes_back(graph, owned, model)
    return True


def test_random_layouts():
    assert sum(map(assert_same_bits, range(12))) > 8


@pytest.mark.slow
def test_many_random_layouts():
    assert sum(map(assert_same_bits, range(12, 120))) > 80


@pytest.mark.parametrize("seed", range(3))
def test_random_networks(seed):
    graph, arrays, weights = random_network(seed)
    read = {tensor.name for tensor in graph.inputs if is_read(graph, tensor)}
    arrays = {name: array for name, array in arrays.items() if name in read}
    weights = {name: array for name, array in weights.items() if name in read}
    model = dml.to_onnx(graph, weights)
    expected = dml.Device("reference").compile_graph(graph).initialize(**weights)(**arrays)
    for name, array in run(model, arrays).items():
        exact = expected[name]
        near = 64 * float(np.finfo(exact.dtype).eps)
        np.testing.assert_allclose(array.astype("f8"), exact.astype("f8"), near, near)
    assert_comes_back(graph, weights, model)


def weighted(count=200):
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (4, 6)))
    w = graph.input("w", T("FLOAT32", (6, count), flags="OWNED_BY_DML"))
    return graph.build(y=graph.activation_relu(graph.gemm(x, w, name="project"), name="relu"))


def test_names_are_kept_and_weights_are_whole():
    weights = np.random.default_rng(0).normal(size=(6, 200)).astype(np.float32)
    model = dml.to_onnx(weighted(), {"w": weights})
    assert [item.name for item in model.graph.input] == ["x"]
    assert [item.name for item in model.graph.output] == ["y"]
    (tensor,) = model.graph.initializer
    assert tensor.name == "w"
    assert onnx.numpy_helper.to_array(tensor).tobytes() == weights.tobytes()
    assert [node.name.partition("/")[0] for node in model.graph.node] == ["project", "relu"]


def test_a_large_constant_is_an_initializer_once():
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    large = np.arange(24 * 50, dtype=np.float32).reshape(6, 200)
    y = graph.gemm(x, graph.constant(large, name="table"))
    model = dml.to_onnx(graph.build(y=y))
    assert [tensor.name for tensor in model.graph.initializer] == ["table"]
    assert len(model.SerializeToString()) < 2 * large.nbytes
    np.testing.assert_allclose(run(model, {"x": X})["y"], X @ large, 1e-6)


def test_a_constant_that_an_operator_must_not_own_stays_a_constant():
    """The weights of recurrent operators, here of more steps than a session of ours has."""
    graph = dml.GraphBuilder()
    sizes = (1, 70, 2, 3), (1, 1, 16, 3), (1, 1, 16, 16), (70, 1, 2, 16)
    x, w, r, out = (T("FLOAT32", size) for size in sizes)
    values = [np.random.default_rng(i).normal(0, 0.3, d.sizes).astype("f4")
              for i, d in enumerate((x, w, r))]  # fmt: skip
    desc = dml.Rnn(
        input_tensor=x, weight_tensor=w, recurrence_tensor=r, output_sequence_tensor=out,
        activation_descs=[dml.ActivationTanh()], direction="FORWARD",
    )  # fmt: skip
    constants = [graph.constant(values[i], d, name=n) for i, d, n in ((1, w, "w"), (2, r, "r"))]
    y = graph.operator(desc, graph.input("x", x), *constants, name="rnn")
    built = graph.build(y=y[0] if isinstance(y, tuple) else y)
    model = dml.to_onnx(built)
    assert "r" in {tensor.name for tensor in model.graph.initializer}
    expected = dml.Device("reference").compile_graph(built)(x=values[0])["y"]
    np.testing.assert_allclose(run(model, {"x": values[0]})["y"], expected, 1e-5, 1e-6)
    assert_comes_back(built, {}, model)


def test_a_given_input_is_part_of_the_model():
    model = dml.to_onnx(weighted(3), {"w": np.ones((6, 3), np.float32), "x": X})
    assert not model.graph.input
    np.testing.assert_allclose(run(model, {})["y"], np.maximum(X @ np.ones((6, 3)), 0))


def test_every_weight_that_does_not_fit_is_named():
    with pytest.raises(dml.BindingError) as caught:
        dml.to_onnx(weighted(), {"v": X, "x": X[:2]})
    assert "got 'v'" in str(caught.value)
    assert "x: expected float32 of shape (4, 6)" in str(caught.value)
    assert "w: expected its elements (it is OWNED_BY_DML), got none" in str(caught.value)
    with pytest.raises(dml.ArgumentTypeError, match="graph: expected a GraphDesc, got 3"):
        dml.to_onnx(3)
    with pytest.raises(dml.InvalidDescriptorError, match="at least one node"):
        dml.to_onnx(dml.GraphDesc([]))


def test_every_node_without_a_form_is_named():
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    a = graph.bit_and(x, x, name="first")
    b = graph.bit_or(graph.add(a, x), x, name="second")
    with pytest.raises(dml.ModelError) as caught:
        dml.to_onnx(graph.build(y=graph.add(a, b)))
    assert [str(problem) for problem in caught.value.problems] == [
        f"Node {name!r} (ELEMENT_WISE_BIT_{kind}): ONNX has no form of it: the bits of floats."
        for name, kind in (("first", "AND"), ("second", "OR"))
    ]


def test_a_large_constant_is_not_computed():
    desc = dml.FillValueConstant(
        output_tensor=T("FLOAT32", (2**28,)), value_data_type="FLOAT32", value=1.0
    )
    with pytest.raises(dml.ModelError, match="a constant of 268435456 elements"):
        dml.to_onnx(alone(desc))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"Nodes": 3}', '{"Nodes": [3]}', '{"Nodes": [{"Data": 4}]}',
     '{"Nodes": [{"Type": "CONSTANT", "Name": "w", "Data": 1}]}'],
)  # fmt: skip
def test_a_property_that_does_not_match_is_ignored(text):
    """A model says what its nodes say, whatever its properties are."""
    model = dml.to_onnx(weighted(), {"w": np.ones((6, 200), np.float32)})
    (item,) = model.metadata_props
    assert item.key == PROPERTY
    item.value = text
    assert restored(read_proto(model, "model", None, 2**30)) is None


def test_a_model_that_has_been_changed_gives_no_graph():
    model = dml.to_onnx(weighted(), {"w": np.ones((6, 200), np.float32)})
    assert restored(read_proto(model, "model", None, 2**30)) is not None
    model.graph.node[-1].op_type = "Abs"
    assert restored(read_proto(model, "model", None, 2**30)) is None


def test_onnx_runtime_is_not_needed():
    program = """
import sys
sys.modules["onnxruntime"] = None
import anydml as dml
graph = dml.GraphBuilder()
x = graph.input("x", dml.TensorDesc("FLOAT32", (2,)))
assert len(dml.to_onnx(graph.build(y=graph.activation_relu(x))).graph.node) == 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)
