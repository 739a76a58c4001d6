"""Compiled graphs on worker processes of Dask."""

import os

import numpy as np
import pytest

import anydml as dml

da = pytest.importorskip("dask.array")


def described(block, compiled):
    """The result for a block, and which worker and which compiled program made it."""
    result = compiled(x=block)["y"]
    return np.array([[os.getpid(), id(compiled.program), result[0, 0]]], np.float64)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["cpu", "xla", "onnxruntime"])
def test_a_worker_compiles_a_graph_once(device):
    if device != "cpu":
        pytest.importorskip({"xla": "jax"}.get(device, device))
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (1, 3)))
    w = graph.input("w", dml.TensorDesc("FLOAT32", (3, 2), flags="OWNED_BY_DML"))
    compiled = dml.Device(device).compile_graph(graph.build(y=graph.gemm(x, w)))
    compiled.initialize(w=np.arange(6, dtype=np.float32).reshape(3, 2))
    data = np.arange(36, dtype=np.float32).reshape(12, 3)
    blocks = da.from_array(data, chunks=(1, 3))
    found = blocks.map_blocks(described, compiled, chunks=(1, 3), dtype=np.float64)
    rows = found.compute(scheduler="processes", num_workers=2)
    np.testing.assert_array_equal(rows[:, 2], data @ [0, 2, 4])
    workers = set(rows[:, 0])
    assert os.getpid() not in workers
    assert len({tuple(row) for row in rows[:, :2]}) == len(workers) <= 2
