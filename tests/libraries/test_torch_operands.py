"""Operands of calls with tensors that are lists, numbers or lazy arrays."""

import numpy as np
import pytest

import anydml as dml

torch = pytest.importorskip("torch")


def test_one_hot_of_a_list_of_floats():
    """PyTorch's default type, as `torch.tensor` makes of a list."""
    indices = torch.tensor([0, 2])
    assert dml.one_hot(indices, 3, [0.0, 1.0]).dtype == torch.float32
    assert dml.one_hot(indices, 3, [0, 1]).dtype == torch.int64
    assert dml.one_hot(indices, 3, np.array([0.0, 1.0])).dtype == torch.float64
    torch.set_default_dtype(torch.float64)
    try:
        assert dml.one_hot(indices, 3, [0.0, 1.0]).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    out = torch.zeros(2, 3)
    assert dml.one_hot(indices, 3, [0.0, 1.0], out=out) is out
    assert out.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_dask_arrays_beside_tensors():
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(np.array([0, 1]))
    x = torch.arange(3.0)
    advice = "expected an array in memory, got a dask array; call .*compute"
    for call in (
        lambda: dml.gather(x, lazy),
        lambda: dml.gather(x, lazy, out=torch.zeros(2)),
        lambda: dml.scatter_elements(x, [0, 1], lazy.astype(np.float32)),
        lambda: dml.join([x, lazy.astype(np.float32)]),
        lambda: dml.join([x, lazy], promote=True),
    ):
        with pytest.raises(dml.ArgumentTypeError, match=advice):
            call()
