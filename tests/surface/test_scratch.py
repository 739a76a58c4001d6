"""Peak scratch of every algorithm is at most what ``docs/performance.md`` says.

Blocks below 64 KiB are not counted.
"""

import gc
import re
from pathlib import Path

import numpy as np
import pytest

import anydml as dml
from anydml._native import native

PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
TABLE = re.findall(r"^\| (.*) \| ([\d.]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
DOCUMENTED = {name: float(part) for name, part in TABLE}
MILLION = 1 << 20
GENERATOR = np.random.default_rng(0)
FLOATS = GENERATOR.random((1024, 1024), np.float32)
BYTES = GENERATOR.integers(0, 50, (1024, 1024)).astype(np.int8)
LOOKUP = GENERATOR.integers(0, 1024, (1024, 1024))
LONG = GENERATOR.random(4 * MILLION, np.float32)
ANYWHERE = GENERATOR.integers(0, LONG.size, LONG.size)
SOME = GENERATOR.integers(0, LONG.size, 1000)
ROWS = GENERATOR.permutation(1024)


def top_k(x, k, axis=-1):
    return dml.top_k, (x, k), {"axis": axis}


def nonzero(x):
    return dml.nonzero_coordinates, (x,), {}


def scatter(x, indices, axis, reduction=None):
    updates = np.ones(indices.shape, x.dtype)
    return dml.scatter_elements, (x, indices, updates), {"axis": axis, "reduction": reduction}


def scatter_nd(x, indices, reduction=None):
    updates = np.ones((*indices.shape[:-1], *x.shape[indices.shape[-1] :]), x.dtype)
    return dml.scatter_nd, (x, indices, updates), {"reduction": reduction}


def gather(function, x, indices, **options):
    return function, (x, indices), options


CASES = {
    "top_k, short rows": top_k(FLOATS.reshape(-1, 128), 10),
    "top_k, rows of 1024, k = 10": top_k(FLOATS, 10),
    "top_k, rows of 1024, k = 500": top_k(FLOATS, 500),
    "top_k, rows of 1024, sorted": top_k(FLOATS, 1024),
    "top_k, along axis 0": top_k(FLOATS, 10, 0),
    "top_k, along axis 0, sorted": top_k(FLOATS, 1024, 0),
    "top_k, a long row, k = 100": top_k(LONG, 100),
    "top_k, a long row, k = n / 16": top_k(LONG, LONG.size // 16),
    "top_k, a long row, k = n / 2": top_k(LONG, LONG.size // 2),
    "top_k, a long row, sorted": top_k(LONG, LONG.size),
    "top_k, a long row of int64, sorted": top_k(ANYWHERE, ANYWHERE.size),
    "top_k, a long row of int8, sorted": top_k(BYTES.reshape(-1), BYTES.size),
    "top_k, a long row, strided": top_k(LONG[::2], 100),
    "nonzero_coordinates, float32": nonzero(FLOATS),
    "nonzero_coordinates, int8, many axes": nonzero(BYTES.reshape(32, 32, 32, 32)),
    "nonzero_coordinates, int8, none": nonzero(np.zeros_like(BYTES)),
    "nonzero_coordinates, transposed": nonzero(FLOATS.T),
    "scatter_elements, rows": scatter(FLOATS, LOOKUP, 1),
    "scatter_elements, columns": scatter(FLOATS, LOOKUP, 0),
    "scatter_elements, columns, add": scatter(FLOATS, LOOKUP, 0, "add"),
    "scatter_elements, a long row": scatter(LONG, ANYWHERE, 0),
    "scatter_elements, a long row, add": scatter(LONG, ANYWHERE, 0, "add"),
    "scatter_elements, few updates": scatter(LONG, SOME, 0),
    "scatter_nd, rows": scatter_nd(FLOATS, ROWS[:, None]),
    "scatter_nd, rows, add": scatter_nd(FLOATS, ROWS[:, None], "add"),
    "scatter_nd, rows of 16 bytes": scatter_nd(LONG.reshape(-1, 4), ANYWHERE[::4, None] // 4),
    "scatter_nd, elements": scatter_nd(LONG, ANYWHERE[:, None]),
    "scatter_nd, elements, add": scatter_nd(LONG, ANYWHERE[:, None], "add"),
    "gather, rows": gather(dml.gather, FLOATS, ROWS),
    "gather, columns": gather(dml.gather, FLOATS, ROWS, axis=1),
    "gather_elements, rows": gather(dml.gather_elements, FLOATS, LOOKUP, axis=1),
    "gather_elements, columns": gather(dml.gather_elements, FLOATS, LOOKUP, axis=0),
    "gather_nd": gather(dml.gather_nd, FLOATS, LOOKUP.reshape(-1, 2)),
    "split, rows": (dml.split, (FLOATS, 8), {}),
    "split, columns": (dml.split, (FLOATS, 128), {"axis": 1}),
    "join, columns": (dml.join, ([FLOATS, FLOATS],), {"axis": 1}),
}


@pytest.fixture(scope="module", autouse=True)
def blocks_as_asked_for():
    """From the pool they may be larger; and arrays that die during a measurement would count."""
    usual = dml.memory_pool().limit
    dml.set_memory_pool_limit(0)
    gc.collect()
    yield
    dml.set_memory_pool_limit(usual)


def bytes_of(value):
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(map(bytes_of, value)) if isinstance(value, list | tuple) else 0


def peak_scratch(name):
    """The most scratch at a time, as a part of input and output."""
    function, arguments, options = CASES[name]
    function(*arguments, **options)  # whatever the first call of all keeps
    native.pool_peak()
    result = function(*arguments, **options)
    maximum = native.pool_peak() - dml.memory_pool().lent
    function(*arguments, **options, out=result)
    maximum = max(maximum, native.pool_peak() - dml.memory_pool().lent)
    return maximum / (bytes_of(arguments) + bytes_of(result))


def test_all_cases_are_documented():
    assert list(DOCUMENTED) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_peak_scratch(name):
    with dml.num_threads(2):
        assert peak_scratch(name) <= DOCUMENTED[name] + 0.005


def test_scratch_is_counted():
    assert peak_scratch("nonzero_coordinates, int8, none") > 0.1  # a bit for each byte
