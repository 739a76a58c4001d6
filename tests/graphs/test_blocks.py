"""Runs of elementwise calls in blocks: the same bits, less memory, on several threads."""

import numpy as np
import pytest
from random_graphs import random_graph
from stepwise import run_stepwise
from test_random_graphs import as_bytes, is_read

import anydml as dml
from anydml.devices.backends import _blocks

T = dml.TensorDesc


@pytest.fixture(params=[1, 3])
def tiny_blocks(request, monkeypatch):
    monkeypatch.setattr(_blocks, "BLOCK", 16)
    monkeypatch.setattr(_blocks, "_LEAST_PIECES", 1)
    with dml.num_threads(request.param):
        yield


@pytest.mark.parametrize("seed", range(80, 180))
def test_random_graphs_in_tiny_blocks(seed, tiny_blocks):
    graph, arrays = random_graph(seed)
    expected = run_stepwise(graph, {name: as_bytes(a) for name, a in arrays.items()}, "cpu")
    compiled = dml.Device("cpu").compile_graph(graph)
    bound = {t.name: arrays[t.name] for t in graph.inputs if is_read(graph, t)}
    owned = {n: a for n, a in bound.items() if n in compiled._owned_names}
    got = compiled.initialize(**owned)(**{n: a for n, a in bound.items() if n not in owned})
    for name, array in got.items():
        assert as_bytes(array)[: array.nbytes].tobytes() == expected[name].tobytes()[: array.nbytes]


def chain(sizes, strides=None, dtype="FLOAT32"):
    graph = dml.GraphBuilder()
    x = graph.input("x", T(dtype, sizes))
    y = graph.input("y", T(dtype, sizes, strides))
    value = graph.add(graph.multiply(x, y), x)
    value = graph.activation_sigmoid(graph.subtract(value, y))
    return graph.build(z=graph.clip(value, min=0.25, max=0.75), w=value)


@pytest.mark.parametrize("dtype", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("sizes", [(200_003,), (3, 70_001), (2, 3, 5, 7_001), (300_000, 1)])
def test_large_arrays(sizes, dtype):
    graph = chain(sizes, dtype=dtype)
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=sizes).astype(graph.inputs[0].desc.data_type.numpy) for _ in range(2))
    compiled = dml.Device("cpu").compile_graph(graph)
    results = []
    for threads in (1, 4):
        with dml.num_threads(threads):
            results.append(compiled(x=x, y=y))
    expected = run_stepwise(graph, {"x": as_bytes(x), "y": as_bytes(y)}, "cpu")
    for name in ("z", "w"):
        assert results[0][name].tobytes() == results[1][name].tobytes()
        assert results[0][name].tobytes() == expected[name].tobytes()[: results[0][name].nbytes]


def test_a_broadcast_operand():
    graph = chain((4, 50_000), (0, 1))
    x = np.arange(200_000, dtype=np.float32).reshape(4, 50_000)
    row = np.linspace(-1, 1, 50_000, dtype=np.float32)
    compiled = dml.Device("cpu").compile_graph(graph)
    got = compiled(x=x, y=row)  # a raw buffer, laid out by the strides
    assert got["z"].tobytes() == compiled(x=x, y=np.tile(row, (4, 1)))["z"].tobytes()


def test_what_only_a_run_reads_has_no_memory():
    graph = chain((1000,))
    program = dml.Device("cpu").compile_graph(graph).program
    fused, runs = _blocks.fuse(program)
    assert len(program.calls) == 5
    assert len(fused.calls) == len(runs) == 1
    assert program.intermediates
    assert not fused.intermediates
    assert fused.calls[0].inputs == ("x", "y")
    assert set(fused.calls[0].outputs) == {"z", "w"}


def test_another_layout_of_what_a_run_writes_begins_a_new_run():
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (300, 300)))
    first = graph.add(x, x)
    transposed = graph.reinterpret(first, sizes=(300, 300), strides=(1, 300))
    desc = graph.build(y=graph.multiply(first, transposed))
    compiled = dml.Device("cpu").compile_graph(desc)
    assert len(_blocks.fuse(compiled.program)[1]) == 2
    array = np.arange(90_000, dtype=np.float32).reshape(300, 300)
    assert (compiled(x=array)["y"] == 4 * array * array.T).all()


def test_an_error_on_a_thread_reaches_the_caller():
    def work(pieces):
        for piece in pieces:
            if piece == 70:
                raise MemoryError("seventy")

    with pytest.raises(MemoryError, match="seventy"):
        _blocks.share_out(range(100), work, 3)


def test_every_block_once():
    for shape, maximum in (((7, 3, 5), 4), ((1000,), 64), ((3, 1, 1000), 10), ((1, 1), 1)):
        counts = np.zeros(shape, int)
        for at in _blocks.blocks(shape, maximum):
            counts[at] += 1
            assert counts[at].size <= max(maximum, 1)
        assert (counts == 1).all()
