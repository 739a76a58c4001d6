"""Graphs on XLA: runs of computed calls, native calls between them, constants, threads, errors."""

import json
import pickle
import runpy
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from random_graphs import random_graph
from stepwise import run_stepwise
from test_random_graphs import as_bytes, is_read

import anydml as dml
from anydml import MissingKernelError
from anydml.cli import command as cli
from benchmarks import networks
from support import jax_64_bits

jax = pytest.importorskip("jax")

from anydml.devices.backends import xla  # noqa: E402  # needs JAX
from anydml.devices.backends._partition import partition  # noqa: E402
from anydml.engines._jax import JaxEngine  # noqa: E402  # after the skip

T = dml.TensorDesc
F = T("FLOAT32", (4, 6))
OWNED = T("FLOAT32", (4, 6), flags="OWNED_BY_DML")
X = np.arange(24, dtype=np.float32).reshape(4, 6) - 9
EXAMPLES = Path(__file__).parents[2] / "examples" / "graphs"


@pytest.fixture
def device():
    return dml.Device("xla")


def compiled_runs(graph):
    """The program with a call for each run, and the runs."""
    program = dml.Device("cpu").compile_graph(graph).program
    return partition(program, xla.joins, keeps=xla.calculates)


def assert_as_stepwise(seed):
    graph, arrays = random_graph(seed)
    expected = run_stepwise(graph, {name: as_bytes(a) for name, a in arrays.items()}, "cpu")
    compiled = dml.Device("xla").compile_graph(graph)
    bound = {t.name: arrays[t.name] for t in graph.inputs if is_read(graph, t)}
    owned = {n: bound.pop(n) for n in [*bound] if n in compiled._owned_names}
    got = compiled.initialize(**owned)(**bound)
    for name, array in got.items():
        assert as_bytes(array)[: array.nbytes].tobytes() == expected[name].tobytes()[: array.nbytes]


@pytest.mark.parametrize("seed", range(12))
def test_a_random_graph(seed):
    assert_as_stepwise(seed)


@pytest.mark.slow
def test_random_graphs():
    for seed in range(12, 180):
        assert_as_stepwise(seed)


def test_a_native_call_between_two_runs(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    values, indices = graph.top_k(graph.add(x, graph.multiply(x, x)), axis=1, k=2)
    desc = graph.build(y=graph.activation_softmax1(values, axes=(1,)), indices=indices)
    program, runs = compiled_runs(desc)
    assert [call.kernel for call in program.calls] == ["run 0", "top_k", "run 1"]
    assert [len(run.calls) for run in runs.values()] == [2, 1]
    got, expected = (d.compile_graph(desc)(x=X) for d in (device, dml.Device("cpu")))
    assert (got["indices"] == expected["indices"]).all()
    np.testing.assert_allclose(got["y"], expected["y"], 1e-6)


@pytest.mark.parametrize("title", ["squeezenet", "mobilenet"])
def test_a_network_is_one_run(title):
    network, sizes = networks.CASES[title]
    network(net := networks.Nodes(), "x")
    (graph,) = dml.read_onnx(net.model({"x": sizes}).SerializeToString()).graphs
    program, runs = compiled_runs(graph)
    assert len(program.calls) == len(runs) == 1


def test_operators_that_only_move_elements_run_natively(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    joined = graph.join([graph.tile(x, repeats=(1, 2)), graph.tile(x, repeats=(1, 2))], axis=0)
    desc = graph.build(y=joined)
    assert [call.kernel for call in compiled_runs(desc)[0].calls] == ["tile", "tile", "join"]
    assert (device.compile_graph(desc)(x=X)["y"] == np.tile(X, (2, 2))).all()


def test_what_only_a_run_reads_has_no_memory():
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    transposed = graph.reinterpret(graph.add(x, x), sizes=(6, 4), strides=(1, 6))
    row = graph.reinterpret(graph.activation_relu(transposed), sizes=(2, 24), strides=(0, 1))
    program, runs = compiled_runs(graph.build(y=graph.exp(row)))
    assert len(program.calls) == len(runs) == 1
    assert not program.intermediates
    assert program.calls[0].inputs == ("x",)


def test_bytes_that_are_read_as_others_begin_a_new_run(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    bits = graph.reinterpret(graph.add(x, x), "UINT32", (4, 6))
    desc = graph.build(y=graph.bit_count(bits))
    assert len(compiled_runs(desc)[1]) == 2
    expected = np.unpackbits((2 * X).view(np.uint8).reshape(4, 6, 4), axis=2).sum(2)
    assert (device.compile_graph(desc)(x=X)["y"] == expected).all()


@pytest.mark.parametrize("maximum", [0, 2**20])
def test_owned_tensors_are_constants_or_arguments(device, maximum, monkeypatch):
    monkeypatch.setattr(xla, "MOST_CONSTANT_BYTES", maximum)
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


def test_constants_of_the_graph(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    c = graph.constant(np.arange(6, dtype=np.float32))
    row = graph.reinterpret(c, sizes=(4, 6), strides=(0, 1))
    compiled = device.compile_graph(graph.build(y=graph.add(x, row)))
    assert (compiled(x=X)["y"] == X + np.arange(6)).all()


def test_an_output_over_an_input(device):
    graph = dml.GraphBuilder()
    x, y = graph.input("x", F), graph.input("y", F)
    desc = graph.build(a=graph.add(graph.identity(y), x), b=graph.multiply(x, y))
    first = dml.ElementWiseAdd.with_outputs(a_tensor=F, b_tensor=F)
    operator = device.create_operator(first).compile()
    memory = X.copy()
    operator.dispatch(ATensor=memory, BTensor=X, OutputTensor=memory)
    assert (memory == 2 * X).all()
    a, b = np.empty((6, 4), np.float32).T, np.empty_like(X)
    device.compile_graph(desc).dispatch(x=X, y=X, a=a, b=b)
    assert (a == 2 * X).all()
    assert (b == X * X).all()


def test_a_bad_index_leaves_outputs_as_they_were(device):
    graph = dml.GraphBuilder()
    x, at = graph.input("x", F), graph.input("at", T("INT32", (1, 2)))
    desc = graph.build(y=graph.add(x, x), z=graph.gather(x, at, axis=0, index_dimensions=1))
    y, z = np.full_like(X, 7), np.full((2, 6), 7, np.float32)
    with pytest.raises(dml.IndexOutOfRangeError):
        device.compile_graph(desc).dispatch(x=X, at=np.array([[0, 9]], np.int32), y=y, z=z)
    assert (y == 7).all()
    assert (z == 7).all()


def test_arrays_of_jax_are_results():
    """Bound as they are: not through NumPy, and with the sizes that the graph declares."""
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (1, 1, 2, 3)))
    w = graph.input("w", T("FLOAT32", (1, 1, 3, 2), flags="OWNED_BY_DML"))
    total = graph.gemm(x, w)
    desc = graph.build(y=total, z=graph.reduce(total, function="ARGMAX", axes=(3,)))
    values = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    compiled = dml.Device("xla").compile_graph(desc).initialize(w=values.reshape(1, 1, 3, 2))
    expected, bound = compiled(x=values), jax.numpy.asarray(values)
    with jax.transfer_guard("disallow"):
        found = compiled(x=bound)
    for name, result in found.items():
        assert isinstance(result, jax.Array)
        assert result.devices() == bound.devices()
        np.testing.assert_array_equal(result, expected[name])
    with pytest.raises(dml.BindingError, match="x: expected"):
        compiled(x=jax.numpy.zeros((1, 1, 3, 3)))


@pytest.mark.parametrize("allowed", [False, True])
def test_only_the_flag_makes_products_less_precise(allowed):
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (1, 1, 3, 3)))
    compiled = dml.Device("xla").compile_graph(
        graph.build(y=graph.gemm(x, x)), allow_half_precision=allowed
    )
    precision = jax.lax.Precision.DEFAULT if allowed else jax.lax.Precision.HIGHEST
    for one in (compiled, pickle.loads(pickle.dumps(compiled))):
        assert xla.engine("cuda", one.program).precision is precision


def test_float16_is_rounded_between_operators(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT16", (3,)))
    compiled = device.compile_graph(graph.build(y=graph.subtract(graph.add(x, x), x)))
    assert compiled(x=np.array([1.5, 40000, -7], np.float16))["y"].tolist() == [1.5, np.inf, -7]


def test_float64_rounds_to_float16_once():
    halves = np.arange(1, 0x7BFF, dtype=np.uint16).view(np.float16).astype(np.float64)
    middles = (halves[1:] + halves[:-1]) / 2
    x = np.concatenate([middles * (1 + near) for near in (0, 1e-15, -1e-15)])
    x = np.concatenate([x, -x, [0.0, np.inf, 1e300, -1e300, 1e-300, np.nan]])
    with xla.x64():
        got = jax.jit(lambda x: JaxEngine().cast(x, np.float16))(x)
    with np.errstate(over="ignore", under="ignore"):
        np.testing.assert_array_equal(np.asarray(got), x.astype(np.float16))


def test_denormals_are_zeros(device):
    minimum = np.finfo(np.float32).smallest_normal
    tensor = T("FLOAT32", (2,))
    desc = dml.ElementWiseMultiply.with_outputs(a_tensor=tensor, b_tensor=tensor)
    x = np.array([minimum, minimum / 4], np.float32)
    y = np.array([0.5, 2**20], np.float32)
    with jax_64_bits(False):
        assert device.create_operator(desc).compile()(x, y).tolist() == [0, 0]
        assert not jax.config.jax_enable_x64


def test_from_several_threads(device):
    graph = dml.GraphBuilder()
    x, w = graph.input("x", F), graph.input("w", OWNED)
    values, _ = graph.top_k(graph.multiply(x, w), axis=0, k=4)
    compiled = device.compile_graph(graph.build(y=graph.add(values, values)))
    compiled.initialize(w=np.full_like(X, 2))
    wrong = []

    def work(k):
        results = [compiled(x=X + k)["y"] for _ in range(20)]
        wrong.extend(k for y in results if (y != 4 * (X + k)[::-1]).any())

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    with xla.x64():  # and in a thread that has 64-bit types already
        assert (compiled(x=X)["y"] == 4 * X[::-1]).all()


def test_platforms():
    assert repr(dml.Device("xla:cpu", feature_level="5_0")) == (
        "Device('xla:cpu', feature_level='5_0')"
    )
    assert dml.Device("xla:cpu") != dml.Device("xla")
    assert pickle.loads(pickle.dumps(dml.Device("xla:cpu"))) == dml.Device("xla:cpu")
    with pytest.raises(dml.DeviceError, match=r"platform .*xla:vacuum"):
        dml.Device("xla:vacuum")
    with pytest.raises(dml.DeviceError, match=r"expected one of cpu, .*got 'xla:'"):
        dml.Device("xla:")


def test_memory_that_xla_cannot_have(device, monkeypatch):
    desc = dml.ElementWiseAdd.with_outputs(a_tensor=F, b_tensor=F)
    compiled = device.create_operator(desc).compile()

    def fail(*_):
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    monkeypatch.setattr(xla, "compute_run", fail)
    with pytest.raises(dml.AllocationError, match="ELEMENT_WISE_ADD"):
        compiled(X, X)


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_an_example_network(script, monkeypatch):
    pytest.importorskip("PIL")
    monkeypatch.setattr(dml, "Device", lambda _, device=dml.Device: device("xla"))
    monkeypatch.setattr(sys, "argv", [str(script)])
    runpy.run_path(str(script), run_name="__main__")  # which checks its own results


def test_the_command_line(tmp_path, capsys):
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
    assert cli.main(["run", str(path), "--device", "xla:cpu"]) == 0
    assert capsys.readouterr().out == "Resource 'Y': 0, 0.25, 2\n"
    assert cli.main(["run", str(path), "--device", "xla", "--memory-limit", "20"]) == 1
    assert "limit" in capsys.readouterr().err
    assert cli.main(["devices"]) == 0
    assert f"XLA on cpu, JAX {jax.__version__}" in capsys.readouterr().out


@pytest.mark.parametrize("by", ["constant", "input"])
def test_a_quotient_is_rounded_once(device, by):
    """XLA would multiply by the reciprocal of what is the same for all elements."""
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (3, 1000)))
    seven = np.array([7], np.float32)
    y = graph.constant(seven) if by == "constant" else graph.input("y", T("FLOAT32", (1,)))
    y = graph.reinterpret(y, sizes=(3, 1000), strides=(0, 0))
    compiled = device.compile_graph(graph.build(z=graph.divide(x, y)))
    values = np.random.default_rng(0).random((3, 1000), np.float32)
    arguments = {"x": values} if by == "constant" else {"x": values, "y": seven}
    assert (compiled(**arguments)["z"] == values / seven).all()


def test_an_operator_that_nothing_runs(device):
    program = dml.Cast(input_tensor=F, output_tensor=F).lower()
    (call,) = program.calls
    unknown = replace(program, name="ABACUS", calls=(replace(call, kernel="abacus"),))
    with pytest.raises(MissingKernelError, match="ABACUS has no XLA kernel; Device") as caught:
        device.backend.compile(unknown)
    assert caught.value.backend == "XLA"
