"""Graphs on ONNX Runtime: runs and steps between them, memory, threads, errors."""

import json
import multiprocessing
import pickle
import sys
import threading

import numpy as np
import pytest
from random_graphs import random_graph
from random_networks import random_network
from stepwise import run_stepwise
from test_random_graphs import as_bytes, is_read

import anydml as dml
from anydml.cli import command as cli

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from anydml.devices.backends import onnxruntime as backend  # noqa: E402  # needs ONNX Runtime
from anydml.devices.backends._partition import partition  # noqa: E402

T = dml.TensorDesc
F = T("FLOAT32", (4, 6))
X = np.arange(24, dtype=np.float32).reshape(4, 6) - 9
IMAGE = T("FLOAT32", (1, 4, 8, 8))


@pytest.fixture
def device(monkeypatch):
    """With a session for each run."""
    monkeypatch.setattr(backend, "LEAST_ELEMENTS", 0)
    return dml.Device("onnxruntime")


def runs_of(graph):
    program = dml.Device("cpu").compile_graph(graph).program
    return partition(program, backend.joins, keeps=backend.gets_a_session)


def read_by(graph, arrays):
    return {t.name: arrays[t.name] for t in graph.inputs if t.name in arrays and is_read(graph, t)}


def assert_as_stepwise(device, seed):
    graph, arrays = random_graph(seed)
    expected = run_stepwise(graph, {name: as_bytes(a) for name, a in arrays.items()}, "cpu")
    compiled = device.compile_graph(graph)
    bound = read_by(graph, arrays)
    owned = {n: bound.pop(n) for n in [*bound] if n in compiled._owned_names}
    got = compiled.initialize(**owned)(**bound)
    for name, array in got.items():
        assert as_bytes(array)[: array.nbytes].tobytes() == expected[name].tobytes()[: array.nbytes]


@pytest.mark.parametrize("seed", range(12))
def test_a_random_graph(device, seed):
    assert_as_stepwise(device, seed)


@pytest.mark.slow
def test_random_graphs(device):
    for seed in range(12, 180):
        assert_as_stepwise(device, seed)


def assert_as_reference(device, seed):
    """Rounding and NaN in fused graphs are those of the definitions."""
    graph, arrays, weights = random_network(seed)
    arrays, weights = read_by(graph, arrays), read_by(graph, weights)
    got, expected = (
        one.compile_graph(graph).initialize(**weights)(**arrays)
        for one in (device, dml.Device("reference"))
    )
    for name, exact in expected.items():
        result = got[name]
        np.testing.assert_array_equal(np.isnan(result), np.isnan(exact))
        np.testing.assert_array_equal(np.isinf(result), np.isinf(exact))
        near = 64 * float(np.finfo(exact.dtype).eps)
        np.testing.assert_allclose(result.astype("f8"), exact.astype("f8"), near, near)


@pytest.mark.parametrize("seed", range(8))
def test_a_random_network(device, seed):
    assert_as_reference(device, seed)


@pytest.mark.slow
def test_random_networks(device):
    for seed in range(8, 120):
        assert_as_reference(device, seed)


def test_a_native_call_between_two_sessions(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    values, indices = graph.top_k(graph.add(x, graph.multiply(x, x)), axis=1, k=2)
    desc = graph.build(y=graph.activation_softmax1(values, axes=(1,)), indices=indices)
    program, runs = runs_of(desc)
    assert [call.kernel for call in program.calls] == ["run 0", "top_k", "run 1"]
    assert [len(run.calls) for run in runs.values()] == [2, 1]
    got, expected = (d.compile_graph(desc)(x=X) for d in (device, dml.Device("cpu")))
    assert (got["indices"] == expected["indices"]).all()
    np.testing.assert_allclose(got["y"], expected["y"], 1e-6)


def test_an_operator_without_a_graph_between_two_sessions(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    y = graph.bit_and(graph.add(x, x), graph.multiply(x, x))
    desc = graph.build(y=graph.subtract(y, x))
    assert [*map(len, (run.calls for run in runs_of(desc)[1].values()))] == [2, 1]
    expected = dml.Device("cpu").compile_graph(desc)(x=X)["y"]
    assert device.compile_graph(desc)(x=X)["y"].tobytes() == expected.tobytes()


def test_a_small_dispatch_makes_no_session(monkeypatch):
    monkeypatch.setattr(backend, "SessionStep", None)
    monkeypatch.setattr(backend, "LEAST_ELEMENTS", 1 << 14)
    desc = dml.ElementWiseAdd.with_outputs(a_tensor=F, b_tensor=F)
    compiled = dml.Device("onnxruntime").create_operator(desc).compile()
    assert (compiled(X, X) == 2 * X).all()


def pooled_network():
    graph = dml.GraphBuilder()
    x = graph.input("x", IMAGE)
    w = graph.input("w", T("FLOAT32", (8, 4, 3, 3), flags="OWNED_BY_DML"))
    y = graph.convolution(x, w, fused_activation=dml.ActivationRelu())
    return graph.build(y=graph.max_pooling(y, window_size=(3, 3), strides=(1, 1)))


@pytest.mark.parametrize("bad", [[np.nan], [np.nan, np.inf], [np.inf, -np.inf], []], ids=str)
def test_a_maximum_keeps_nan(device, bad):
    """One session assumes that there is none; another one runs if its guard finds one."""
    desc = pooled_network()
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(1, 4, 8, 8)), rng.normal(size=(8, 4, 3, 3))
    x.reshape(-1)[77 : 77 + len(bad)] = bad
    bound = {"x": x.astype(np.float32)}
    got, expected = (
        one.compile_graph(desc).initialize(w=w.astype(np.float32))(**bound)["y"]
        for one in (device, dml.Device("reference"))
    )
    np.testing.assert_allclose(got, expected, 1e-5, 1e-5)


def test_a_maximum_of_infinities(device):
    """Of windows that have nothing else, -infinity is the maximum."""
    desc = dml.MaxPooling.with_outputs(
        input_tensor=IMAGE, strides=(1, 1), window_size=(2, 2), start_padding=(1, 1),
        end_padding=(0, 0),
    )  # fmt: skip
    x = np.random.default_rng(0).normal(size=IMAGE.sizes).astype(np.float32)
    x[:, :2, :4, :4] = -np.inf
    got, expected = (
        one.create_operator(desc).compile()(x) for one in (device, dml.Device("reference"))
    )
    assert got.tobytes() == expected.tobytes()


def test_a_partial_window(device):
    """DirectML accepts an output with one window more than fit."""
    tensors = {
        "input_tensor": T("FLOAT32", (1, 1, 4, 4)),
        "output_tensor": T("FLOAT32", (1, 1, 2, 2)),
    }
    desc = dml.MaxPooling(**tensors, strides=(3, 3), window_size=(2, 2), start_padding=(0, 0),
                          end_padding=(0, 0))  # fmt: skip
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    got = device.create_operator(desc).compile()(x)
    np.testing.assert_array_equal(got.reshape(-1), [5, 7, 13, 15])


def test_a_guard_leaves_inputs_for_the_second_session(device):
    """The output is the memory of the input."""
    x = np.linspace(-3, 3, 64, dtype=np.float32).reshape(1, 64)
    x[0, 3] = np.nan
    desc = dml.ActivationSoftmax1.with_outputs(input_tensor=T("FLOAT32", (1, 64)), axes=(1,))
    expected = dml.Device("reference").create_operator(desc).compile()(x)
    compiled = device.create_operator(desc).compile()
    np.testing.assert_array_equal(compiled(x), expected)
    memory = x.copy()
    if ("OutputTensor", "InputTensor") in compiled.program.in_place():
        compiled.dispatch(InputTensor=memory, OutputTensor=memory)
        np.testing.assert_array_equal(memory, expected)


def test_owned_tensors_are_constants(device):
    graph = dml.GraphBuilder()
    x, w = graph.input("x", F), graph.input("w", T("FLOAT32", (4, 6), (0, 1), flags="OWNED_BY_DML"))
    compiled = device.compile_graph(graph.build(y=graph.subtract(graph.multiply(x, w), x)))
    with pytest.raises(dml.BindingError, match="call initialize first"):
        compiled(x=X)
    row = np.arange(6, dtype=np.float32)
    for factor in (1, -2, 3):
        weights = row * factor
        compiled.initialize(w=weights)
        weights[:] = 77  # the graph has a copy
        for one in (compiled, pickle.loads(pickle.dumps(compiled)), compiled):
            assert (one(x=X)["y"] == X * row * factor - X).all()


def test_large_constants_are_not_copied_into_the_model(device, monkeypatch):
    models = []
    monkeypatch.setattr(
        backend, "traced", lambda *a, **k: models.append(TRACED(*a, **k)) or models[-1]
    )
    graph = dml.GraphBuilder()
    x, w = graph.input("x", F), graph.input("w", T("FLOAT32", (6, 500), flags="OWNED_BY_DML"))
    compiled = device.compile_graph(graph.build(y=graph.gemm(x, w)))
    weights = np.random.default_rng(0).normal(size=(6, 500)).astype(np.float32)
    np.testing.assert_allclose(compiled.initialize(w=weights)(x=X)["y"], X @ weights, 1e-5, 1e-4)
    model = models[-1]
    assert model.proto.ByteSize() < 2000
    (array,) = model.apart.values()
    assert np.shares_memory(array, compiled._owned["w"][0])


TRACED = backend.traced


@pytest.mark.parametrize(
    ("size", "factors"),
    [(1, (0.5, 2)), (1e10, (1e30, 1e-30)), (1e-20, (1e-30, 1e30)), (1, (np.inf, 0.5))],
    ids=str,
)
def test_factors_and_terms_behind_a_convolution(device, size, factors):
    """They are part of the weights, unless these would leave the range of float32."""
    graph = dml.GraphBuilder()
    x, w = (
        graph.input("x", IMAGE),
        graph.input("w", T("FLOAT32", (8, 4, 3, 3), flags="OWNED_BY_DML")),
    )
    y = graph.convolution(x, w)

    def channels(value):
        numbers = graph.constant((value * np.linspace(0.5, 1, 8)).astype(np.float32))
        return graph.reinterpret(numbers, sizes=y.sizes, strides=(0, 1, 0, 0))

    for factor in factors:
        y = graph.multiply(graph.subtract(y, channels(0.25)), channels(factor))
    desc = graph.build(y=y)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(8, 4, 3, 3)) * size
    weights[:, 0, 0] = 0
    inputs = (rng.normal(size=IMAGE.sizes) / size).astype(np.float32)
    got, expected = (
        one.compile_graph(desc).initialize(w=weights.astype(np.float32))(x=inputs)["y"]
        for one in (device, dml.Device("reference"))
    )
    near = 1e-5 * np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(got, expected, 1e-5, near)


def test_names_of_nodes_and_edges_are_kept():
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    named = graph.activation_sigmoid(x, name="gate")
    desc = graph.build(out=graph.multiply(named, x, name="product"))
    program = dml.Device("cpu").compile_graph(desc).program
    (run,) = partition(program, backend.joins)[1].values()
    model = TRACED(run, [None] * len(run.inputs), external=False).proto
    onnx.checker.check_model(model, full_check=True)
    assert [value.name for value in (*model.graph.input, *model.graph.output)] == ["x", "out"]
    names = {node.name.partition("/")[0] for node in model.graph.node}
    assert any("gate" in name for name in names)
    assert any("product" in name for name in names)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_threads(device, threads):
    """The same bits at any number of threads, from several threads at once."""
    desc = pooled_network()
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((1, 4, 8, 8), (8, 4, 3, 3)))
    compiled = device.compile_graph(desc).initialize(w=w)
    before = dml.get_num_threads()
    expected = compiled(x=x)["y"]
    results = []
    try:
        dml.set_num_threads(threads)
        workers = [
            threading.Thread(
                target=lambda i=i: results.append((i, [compiled(x=x * i)["y"] for _ in range(5)]))
            )
            for i in range(1, 4)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        (step,) = (one.step for one in compiled._executable._sequence._calls)
        assert {key[1] for key in step._sessions} == {before, threads}
    finally:
        dml.set_num_threads(before)
    assert len(results) == 3
    for factor, found in results:
        for y in found:
            assert y.tobytes() == found[0].tobytes()
            if factor == 1:
                assert y.tobytes() == expected.tobytes()


def test_layouts_of_inputs_and_outputs(device):
    graph = dml.GraphBuilder()
    x, y = graph.input("x", F), graph.input("y", F)
    desc = graph.build(a=graph.add(graph.identity(y), x), b=graph.multiply(x, y))
    compiled = device.compile_graph(desc)
    a, b = np.empty((6, 4), np.float32).T, np.empty_like(X)
    column = np.broadcast_to(X[:, :1], X.shape)
    for first, second in (
        (X, X),
        (X[::-1], X),
        (column, X),
        (X, column),
        (X.T.copy().T, X[:, ::-1]),
    ):
        compiled.dispatch(x=first, y=second, a=a, b=b)
        assert (a == first + second).all()
        assert (b == first * second).all()


def test_an_output_over_an_input(device):
    first = dml.ElementWiseAdd.with_outputs(a_tensor=F, b_tensor=F)
    operator = device.create_operator(first).compile()
    memory = X.copy()
    operator.dispatch(ATensor=memory, BTensor=X, OutputTensor=memory)
    assert (memory == 2 * X).all()


def test_errors_have_the_name_of_the_node(device, monkeypatch):
    desc = pooled_network()
    w = np.zeros((8, 4, 3, 3), np.float32)
    compiled = device.compile_graph(desc).initialize(w=w)

    def fail(*_, **__):
        raise RuntimeError("Non-zero status code returned while running Conv node. Name:'conv'")

    monkeypatch.setattr(onnxruntime, "InferenceSession", fail)
    with pytest.raises(dml.DeviceError, match=r"ONNX Runtime failed: .*Name:'conv'"):
        compiled(x=np.zeros((1, 4, 8, 8), np.float32))


def test_a_session_that_would_take_too_much_memory(device, monkeypatch):
    monkeypatch.setattr(backend, "memory_limit", lambda: 1000)
    compiled = device.compile_graph(pooled_network())
    compiled.initialize(w=np.zeros((8, 4, 3, 3), np.float32))
    with pytest.raises(dml.AllocationError, match="a session of ONNX Runtime"):
        compiled(x=np.zeros((1, 4, 8, 8), np.float32))


def test_working_memory_includes_the_session(device):
    desc = pooled_network()
    own, others = (
        dml.Device(name).compile_graph(desc).working_nbytes for name in ("onnxruntime", "cpu")
    )
    assert own > others


def _in_child(compiled, x, results):
    results.put(compiled(x=x)["y"].tobytes())


@pytest.mark.skipif(not hasattr(sys, "getrefcount") or sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_process(device):
    """Threads of a session are not in a child, which makes a session of its own."""
    compiled = device.compile_graph(pooled_network())
    compiled.initialize(w=np.ones((8, 4, 3, 3), np.float32))
    x = np.ones((1, 4, 8, 8), np.float32)
    expected = compiled(x=x)["y"].tobytes()
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(compiled, x, results))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert results.get() == expected


def test_an_old_onnx_runtime(monkeypatch):
    monkeypatch.setattr(onnxruntime, "__version__", "1.9.0")
    with pytest.raises(
        dml.DeviceError, match=r"needs ONNX Runtime 1.28 or newer, got 1\.9\.0: pip"
    ):
        dml.Device("onnxruntime")


def test_the_command_line(device, tmp_path, capsys):
    """A model that would take more memory than the limit is refused."""
    tensor = {"DataType": "FLOAT32", "Sizes": [3]}
    values = {"initialValuesDataType": "FLOAT32", "initialValues": [-1, 0.25, 2]}
    model = {
        "resources": {"X": values, "Y": values},
        "dispatchables": {
            "relu": {"type": "ACTIVATION_RELU", "InputTensor": tensor, "OutputTensor": tensor}
        },
        "commands": [
            {"type": "dispatch", "dispatchable": "relu",
             "bindings": {"InputTensor": "X", "OutputTensor": "Y"}},
            {"type": "print", "resource": "Y"},
        ],
    }  # fmt: skip
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    assert cli.main(["run", str(path), "--device", "onnxruntime"]) == 0
    assert capsys.readouterr().out == "Resource 'Y': 0, 0.25, 2\n"
    assert cli.main(["run", str(path), "--device", "onnxruntime", "--memory-limit", "30"]) == 1
    assert "limit" in capsys.readouterr().err
    assert cli.main(["devices"]) == 0
    assert f"ONNX Runtime {onnxruntime.__version__}" in capsys.readouterr().out
