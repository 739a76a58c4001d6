"""Compiled graphs: bindings, ownership, failing without traces, threads."""

import copy
import pickle
import threading

import numpy as np
import pytest

import anydml as dml

T = dml.TensorDesc
F = T("FLOAT32", (2, 3))
X = np.array([[-1, 3, 2], [4, 0, -2]], np.float32)


def linear():
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    w = graph.input("w", T("FLOAT32", (2, 3), flags="OWNED_BY_DML"))
    return graph.build(y=graph.activation_relu(graph.multiply(x, w), name="top"))


@pytest.fixture(params=["cpu", "reference"])
def device(request):
    return dml.Device(request.param)


def test_owned_inputs_are_copied_once(device):
    compiled = device.compile_graph(linear())
    with pytest.raises(dml.BindingError, match="w: expected an initialized input"):
        compiled(x=X)
    weights = np.full((2, 3), 2, np.float32)
    assert compiled.initialize(w=weights) is compiled
    weights[...] = 0
    for one in (compiled, copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert one(x=X)["y"].tolist() == [[0, 6, 4], [8, 0, 0]]
    compiled.initialize(w=np.ones(6, np.float32))  # a raw buffer
    assert compiled(x=X)["y"].tolist() == [[0, 3, 2], [4, 0, 0]]


def test_a_failed_initialization_changes_nothing():
    compiled = dml.Device("cpu").compile_graph(linear()).initialize(w=np.ones((2, 3), np.float32))
    for bindings, message in (
        ({"w": np.ones((3, 3), np.float32)}, r"^w: expected float32 of shape \(2, 3\) or a flat"),
        ({"w": np.ones(5, np.float32)}, "^w: expected at least 24 bytes"),
        ({"x": X}, "^x: expected an OWNED_BY_DML input, got another one"),
        ({}, r"^w: expected a binding \(the input is OWNED_BY_DML\), got none"),
    ):
        with pytest.raises(dml.BindingError, match=message):
            compiled.initialize(**bindings)
    assert compiled(x=X)["y"].tolist() == [[0, 3, 2], [4, 0, 0]]


@pytest.mark.parametrize(
    ("bindings", "message"),
    [
        ({"x": X}, "^y: expected a binding, got none"),
        ({"y": X.copy()}, "^x: expected a binding, got none"),
        ({"x": X, "y": X.copy(), "w": X}, r"^w: expected no binding \(the input is OWNED_BY_DML\)"),
        ({"x": X, "y": X.copy(), "v": X}, "^v: expected one of x, w, y, got an unknown binding"),
        ({"x": X.astype("f8"), "y": X.copy()}, "^x: expected float32 of shape"),
        ({"x": X.T, "y": X.copy()}, "^x: expected float32 of shape"),
        ({"x": X, "y": X}, "^y: expected memory that does not overlap x, got an overlap"),
        ({"x": None, "y": X}, "^x: expected an array or buffer, got None"),
    ],
)
def test_bindings_that_do_not_fit(bindings, message, device):
    compiled = device.compile_graph(linear()).initialize(w=np.ones((2, 3), np.float32))
    before = {name: value.copy() for name, value in bindings.items() if value is not None}
    with pytest.raises(dml.BindingError, match=message):
        compiled.dispatch(**bindings)
    for name, value in before.items():
        assert value.tobytes() == bindings[name].tobytes()


def test_a_call_takes_no_output():
    compiled = dml.Device("cpu").compile_graph(linear()).initialize(w=np.ones((2, 3), np.float32))
    with pytest.raises(dml.BindingError, match=r"y: expected no binding \(a call allocates"):
        compiled(x=X, y=X)


def test_what_may_be_bound(device):
    compiled = device.compile_graph(linear()).initialize(w=np.ones((2, 3), np.float32))
    expected = np.maximum(X, 0)
    assert (compiled(x=X.reshape(-1).tobytes())["y"] == expected).all()
    assert (compiled(x=np.asfortranarray(X))["y"] == expected).all()
    out = np.zeros((3, 2), np.float32).T
    compiled.dispatch(x=X, y=out)
    assert (out == expected).all()
    raw = bytearray(24)
    compiled.dispatch(x=X, y=raw)
    assert bytes(raw) == expected.tobytes()


def test_a_bad_index_names_the_node_and_writes_nothing(device):
    graph = dml.GraphBuilder()
    x, i = graph.input("x", F), graph.input("i", T("INT32", (1, 2)))
    early = graph.activation_relu(x)
    picked = graph.gather(graph.add(x, x), i, axis=0, index_dimensions=1, name="pick")
    compiled = device.compile_graph(graph.build(early=early, picked=picked))
    indices = np.array([[0, 2]], np.int32)
    outputs = {"early": np.full((2, 3), 7.0, np.float32), "picked": np.full((2, 3), 7, np.float32)}
    for run in (lambda: compiled(x=X, i=indices),
                lambda: compiled.dispatch(x=X, i=indices, **outputs)):  # fmt: skip
        with pytest.raises(
            dml.IndexOutOfRangeError, match=r"^pick.IndicesTensor\[0, 1\]: expected"
        ):
            run()
    assert all((array == 7).all() for array in outputs.values())
    indices[0, 1] = -1
    compiled.dispatch(x=X, i=indices, **outputs)
    assert (outputs["picked"] == 2 * X).all()


def test_gaps_that_a_later_node_reads_are_zero():
    graph = dml.GraphBuilder(lambda kind, sizes: T(kind, sizes, (8, 2)))
    x = graph.input("x", F)
    spread = graph.activation_relu(x)  # 24 bytes of elements within 52
    packed = dml.ElementWiseIdentity(
        input_tensor=T("UINT32", (13,)), output_tensor=T("UINT32", (13,))
    )
    (flat,) = graph.operator(packed, graph.reinterpret(spread, "UINT32", (13,)))
    compiled = dml.Device("cpu").compile_graph(graph.build(y=flat))
    blocks = [np.full(13, 0xFFFFFFFF, np.uint32) for _ in range(8)]  # what is left over in memory
    del blocks
    got = compiled(x=np.ones((2, 3), np.float32))["y"]
    one = np.float32(1).view(np.uint32)
    assert got.tolist() == [one, 0, one, 0, one, 0, 0, 0, one, 0, one, 0, one]


def test_pickles_of_one_graph_are_compiled_once():
    graph = dml.GraphBuilder()
    w = graph.input("w", dml.TensorDesc("FLOAT32", (2,), flags="OWNED_BY_DML"))
    x = graph.input("x", dml.TensorDesc("FLOAT32", (2,)))
    device = dml.Device("cpu")
    compiled = device.compile_graph(graph.build(y=graph.add(x, w)))
    compiled.initialize(w=np.float32([1, 2]))
    zeros, pickled = np.zeros(2, np.float32), pickle.dumps(compiled)
    first, second = pickle.loads(pickled), pickle.loads(pickled)
    assert first is not second
    assert first.program is second.program
    second.initialize(w=np.float32([5, 6]))
    third = pickle.loads(pickle.dumps(second))
    results = [one(x=zeros)["y"].tolist() for one in (compiled, first, second, third)]
    assert results == [[1, 2], [1, 2], [5, 6], [5, 6]]
    for _ in range(6):  # others, so that the first is forgotten
        pickle.loads(pickle.dumps(device.compile_graph(compiled.desc)))
    again = pickle.loads(pickled)
    assert again.program is not first.program
    assert again(x=zeros)["y"].tolist() == [1, 2]


def test_what_the_flag_for_half_precision_takes():
    graph = dml.GraphBuilder()
    desc = graph.build(y=graph.activation_relu(graph.input("x", dml.TensorDesc("FLOAT32", (2,)))))
    device = dml.Device("cpu")
    with pytest.raises(dml.ArgumentTypeError, match="allow_half_precision: expected a bool, got 1"):
        device.compile_graph(desc, allow_half_precision=1)
    compiled = device.compile_graph(desc, allow_half_precision=True)
    assert compiled(x=np.float32([-1, 2]))["y"].tolist() == [0, 2]


def test_unused_outputs_and_one_output_twice():
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    best = graph.top_k(x, axis=1, k=2)
    desc = graph.build(a=best.index, b=best.index, c=graph.reinterpret(best.index, sizes=(4,)))
    got = dml.Device("cpu").compile_graph(desc)(x=X)
    assert got["a"].tolist() == got["b"].tolist() == [[1, 2], [0, 1]]
    assert got["c"].tolist() == [1, 2, 0, 1]


def test_one_input_in_several_layouts(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    transposed = graph.reinterpret(x, sizes=(3, 2), strides=(1, 3))
    bits = graph.reinterpret(x, "INT32")
    desc = graph.build(
        t=graph.identity(transposed),
        b=graph.cast(bits, output_data_type="INT64"),
        x2=graph.add(x, x),
    )
    for array in (X, np.asfortranarray(X)):
        got = device.compile_graph(desc)(x=array)
        assert (got["t"] == X.T).all()
        assert (got["b"] == X.view(np.int32)).all()


def test_a_strided_input_in_several_layouts_is_bound_as_bytes(device):
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (2, 3), (1, 2)))
    desc = graph.build(y=graph.identity(x), flat=graph.identity(graph.reinterpret(x, sizes=(6,))))
    compiled = device.compile_graph(desc)
    buffer = np.arange(6, dtype=np.float32)
    got = compiled(x=buffer.tobytes())
    assert got["flat"].tolist() == buffer.tolist()
    assert got["y"].tolist() == buffer.reshape(3, 2).T.tolist()


def test_results_are_of_the_first_input_s_kind():
    torch = pytest.importorskip("torch")
    compiled = dml.Device("cpu").compile_graph(linear()).initialize(w=np.ones((2, 3), np.float32))
    got = compiled(x=torch.from_numpy(X))["y"]
    assert isinstance(got, torch.Tensor)
    assert got.tolist() == np.maximum(X, 0).tolist()


def test_several_threads_run_one_graph():
    compiled = dml.Device("cpu").compile_graph(linear()).initialize(w=np.ones((2, 3), np.float32))
    wrong = []

    def work(k):
        for _ in range(200):
            got = compiled(x=X + k)["y"]
            if not (got == np.maximum(X + k, 0)).all():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_how_much_memory_a_run_takes():
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (1000,)))
    halves = graph.split(x, axis=0, output_axis_sizes=[400, 600])
    desc = graph.build(y=graph.join([halves[1], halves[0]], axis=0))
    compiled = dml.Device("cpu").compile_graph(desc)
    assert compiled.working_nbytes == 1600 + 2432  # aligned
    x = graph.reinterpret(x, sizes=(10, 100), strides=(1, 10))
    identity = graph.build(y=graph.identity(x))
    assert dml.Device("cpu").compile_graph(identity).working_nbytes == 4000  # a copy, if not packed
    add = dml.ElementWiseAdd.with_outputs(a_tensor=F, b_tensor=F)
    assert dml.Device("cpu").create_operator(add).compile().working_nbytes == 3 * 6 * 16


def test_memory_of_intermediates_is_used_again():
    graph = dml.GraphBuilder()
    value = graph.input("x", T("FLOAT32", (1000,)))
    for _ in range(50):
        value = graph.tile(value, repeats=(1,))
    assert dml.Device("cpu").compile_graph(graph.build(y=value)).working_nbytes < 3 * 4096


def test_memory_of_very_many_intermediates_is_used_again():
    graph = dml.GraphBuilder()
    value = graph.input("x", F)
    for _ in range(2501):  # each reads all elements of the one before
        value = graph.slice(value, input_window_offsets=(0, 0), input_window_sizes=(2, 3),
                            input_window_strides=(-1, -1))  # fmt: skip
    compiled = dml.Device("cpu").compile_graph(graph.build(y=value))
    assert compiled.working_nbytes < 1000
    assert (compiled(x=X)["y"] == X[::-1, ::-1]).all()


@pytest.mark.parametrize("device", ["cpu", "reference", "xla"])
def test_a_call_does_nothing_for_an_owned_tensor(device, monkeypatch):
    """Its binding, its overlaps and its views are resolved by `initialize`."""
    if device == "xla":
        pytest.importorskip("jax")
    flagged = dml.TensorDesc("FLOAT32", (4, 6), flags="OWNED_BY_DML")
    graph = dml.GraphBuilder()
    value = graph.input("x", dml.TensorDesc("FLOAT32", (6, 4)))
    for i in range(12):
        owned = graph.input(f"w{i}", flagged)
        value = graph.add(value, graph.reinterpret(owned, sizes=(6, 4), strides=(1, 6)))
    compiled = dml.Device(device).compile_graph(graph.build(y=value))
    weights = {f"w{i}": np.full((4, 6), i, np.float32) for i in range(12)}
    compiled.initialize(**weights)
    seen = []
    executable = type(compiled._executable)
    run = executable.run

    def note(self, arrays, *rest):
        seen.extend(arrays)
        return run(self, arrays, *rest)

    monkeypatch.setattr(executable, "run", note)
    monkeypatch.setattr(np, "may_share_memory", lambda *arrays: seen.extend(arrays) or False)
    x = np.zeros((6, 4), np.float32)
    assert (compiled(x=x)["y"] == 66).all()
    compiled.dispatch(x=x[::-1], y=np.empty((6, 4), np.float32)[::-1])
    assert not {*map(id, weights.values())} & {*map(id, seen)}
    assert {name for name in seen if isinstance(name, str)} == {"x", "y"}
    assert not any(isinstance(a, np.ndarray) and a.shape == (4, 6) for a in seen)
    read = {item.buffer for item, *_ in compiled._executable._sequence._intermediates}
    assert not read & weights.keys()
