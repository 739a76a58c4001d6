"""Dask arrays of CuPy's blocks: results stay on the GPU, and have the CPU's bits."""

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

da = pytest.importorskip("dask.array")
cupy = pytest.importorskip("cupy")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cupy.cuda.is_available(), reason="no GPU"),
]

X = np.random.default_rng(3).integers(0, 9, (40, 60)).astype(np.float32)
ROWS = np.random.default_rng(4).integers(-40, 40, (30, 60))
CALLS = {
    "top_k": lambda x, rows: dml.top_k(x, 5, axis=0).values,
    "top_k's indices": lambda x, rows: dml.top_k(x, 5, axis=0).indices,
    "nonzero_coordinates": lambda x, rows: dml.nonzero_coordinates(x),
    "split": lambda x, rows: dml.split(x, [15, 25])[1],
    "join": lambda x, rows: dml.join([x, x], axis=None),
    "slice_window": lambda x, rows: dml.slice_window(x, (1, 2), (30, 50), (-2, 3)),
    "pad": lambda x, rows: dml.pad(x, 3, "constant", 7),
    "cast": lambda x, rows: dml.cast(x, "int8"),
    "gather": lambda x, rows: dml.gather(x, rows[:, 0]),
    "gather_elements": dml.gather_elements,
    "gather_nd": lambda x, rows: dml.gather_nd(x, rows[:, :1]),
    "scatter_elements": lambda x, rows: dml.scatter_elements(x, rows, x[:30], reduction="add"),
    "scatter_nd": lambda x, rows: dml.scatter_nd(x, rows[:, :1], x[:30]),
}


@pytest.mark.parametrize("name", CALLS)
def test_blocks_on_a_gpu(name):
    lazy = (da.from_array(cupy.asarray(array), chunks=(16, 25)) for array in (X, ROWS))
    got = CALLS[name](*lazy)
    assert isinstance(got._meta, cupy.ndarray)
    found = got.compute(scheduler="synchronous")
    assert isinstance(found, cupy.ndarray)
    assert_same_bits(cupy.asnumpy(found), CALLS[name](X, ROWS))


def test_operands_in_memory_of_the_gpu():
    lazy = da.from_array(cupy.asarray(X), chunks=(16, 25))
    rows, updates = cupy.asarray(ROWS), cupy.asarray(X[:30])
    for got, expected in (
        (dml.gather(lazy, rows[:, 0]), X[ROWS[:, 0]]),
        (dml.gather(cupy.asarray(X), da.from_array(rows[:, 0], chunks=7)), X[ROWS[:, 0]]),
        (dml.scatter_elements(lazy, rows, updates), dml.scatter_elements(X, ROWS, X[:30])),
        (dml.tile(lazy, (2, 1)), dml.tile(X, (2, 1))),
        (dml.pad(lazy, 3, "wrap"), dml.pad(X, 3, "wrap")),
    ):
        found = got.compute(scheduler="synchronous")
        assert isinstance(found, cupy.ndarray)
        assert_same_bits(cupy.asnumpy(found), expected)
