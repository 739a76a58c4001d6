"""The calls in the functions' docstrings, on arrays of other libraries: NumPy's results."""

import numpy as np
import pytest

import anydml as dml
from support.documented_calls import documented_calls

CALLS = pytest.mark.parametrize("call", documented_calls(), ids=str)


def same(results, expected):
    listed = [x if isinstance(x, tuple | list) else [x] for x in (results, expected)]
    for result, wanted in zip(*listed, strict=True):
        assert np.asarray(result).dtype == wanted.dtype
        np.testing.assert_array_equal(np.asarray(result), wanted)


@CALLS
def test_torch(call):
    torch = pytest.importorskip("torch")
    same(call.with_operands(torch.from_numpy), call.with_operands(np.copy))


@CALLS
def test_jax(call):
    jax = pytest.importorskip("jax")
    from anydml.engines._jax import x64

    with x64():
        same(call.with_operands(jax.numpy.asarray), call.with_operands(np.copy))


@CALLS
def test_dask(call):
    dask = pytest.importorskip("dask.array")
    try:
        results = call.with_operands(dask.from_array)
    except dml.ArgumentError as error:
        pytest.skip(str(error))
    several = isinstance(results, tuple | list)
    computed = [x.compute() for x in results] if several else results.compute()
    same(computed, call.with_operands(np.copy))
