"""What comes back, and where results are written: kinds of arrays, `out=`, rank 0."""

from __future__ import annotations

import numpy as np
import pytest

import anydml as dml
from support import jax_64_bits

X = np.array([3.0, 1.0, 2.0])


def test_numpy_scalars_are_no_arrays():
    for call in (
        lambda out: dml.gather(X, 2, out=out),
        lambda out: dml.gather_elements(X, [2], out=out),
        lambda out: dml.join([X], out=out),
        lambda out: dml.top_k(X, 1, out=(out, None)),
        lambda out: dml.split(X, 1, out=[out]),
    ):
        with pytest.raises(dml.ArgumentTypeError, match=r"expected an array, got the scalar"):
            call(np.float64(-1))


def test_members_of_out_that_are_left_to_the_call():
    values, indices = dml.top_k(X, 2, out=(None, None))
    assert values.tolist() == [3, 2]
    assert indices.tolist() == [0, 2]
    arguments = np.zeros(2)
    result = dml.top_k(X, 2, out=(arguments, None))
    assert result.values is arguments
    assert arguments.tolist() == [3, 2]
    assert result.indices.tolist() == [0, 2]
    part = np.zeros(1)
    parts = dml.split(X, 3, out=(None, part, None))
    assert parts[1] is part
    assert [p.tolist() for p in parts] == [[3], [1], [2]]


@pytest.mark.parametrize("indices", [0, -1, [0, 0], [[0], [-1]], np.zeros((2, 0, 3), np.int64)])
def test_rank_0_is_one_element_on_one_axis(indices):
    shape = np.shape(indices)
    for x in (3.0, np.array(3.0, ">f8")):
        for function in (dml.gather, dml.gather_elements):
            for axis in (0, -1):
                result = function(x, indices, axis=axis)
                assert result.shape == shape
                assert (result == 3).all()
            out = np.zeros((*shape, 2))[..., 0]  # with gaps
            assert function(x, indices, out=out) is out
            assert (out == 3).all()
            with pytest.raises(dml.ArgumentError, match=r"^axis"):
                function(x, indices, axis=1)
    updates = np.full(shape, 5.0)
    assert dml.scatter_elements(3.0, indices, updates) == (5 if updates.size else 3)


def test_rank_0_and_bad_indices():
    for function in (dml.gather, dml.gather_elements):
        for bad in (1, -2, [0, 1]):
            with pytest.raises(dml.IndexOutOfRangeError):
                function(3.0, bad)
            assert np.all(function(3.0, bad, mode="clamp") == 3)


def test_top_k_of_rank_0():
    values, indices = dml.top_k(3.0, 1)
    assert (values.shape, indices.shape) == ((), ())
    assert (values, indices) == (3, 0)
    assert [r.shape for r in dml.top_k(3.0, 0, axis=0)] == [(0,), (0,)]
    out = np.zeros(()), np.zeros((), np.uint32)
    dml.top_k(3.0, 1, out=out)
    assert out[0] == 3
    with pytest.raises(dml.ArgumentError, match="expected at most 1"):
        dml.top_k(3.0, 2)


def test_sizes_by_anything_that_holds_integers():
    torch = pytest.importorskip("torch")
    for sizes in (range(1, 3), torch.tensor([1, 2]), torch.Size([1, 2]), np.array([1, 2])):
        assert [p.tolist() for p in dml.split(X, sizes)] == [[3], [1, 2]]
    for sections in (torch.tensor(3), np.array(3)):
        assert len(dml.split(X, sections)) == 3
    for wrong in ({1, 2}, "12", {1: 2}, iter([1, 2])):
        with pytest.raises(dml.ArgumentTypeError, match=r"^sections_or_sizes"):
            dml.split(X, wrong)


def test_a_tensor_that_was_written_knows_it():
    torch = pytest.importorskip("torch")
    x, i = torch.arange(3.0), torch.tensor([2, 0])
    for write in (
        lambda out: dml.gather(x, i, out=out),
        lambda out: dml.join([x[:1], x[:1]], out=out),
        lambda out: dml.split(x[:2], 1, out=[out]),
        lambda out: dml.top_k(x, 2, out=(out, None)),
        lambda out: dml.scatter_elements(x[:2], i[1:], x[:1], out=out),
        lambda out: dml.cast(i, "float32", out=out),
        lambda out: dml.pad(x[:1], (0, 1), out=out),
        lambda out: dml.slice_window(x, (0,), (2,), out=out),
        lambda out: compiled().dispatch(InputTensor=x, IndicesTensor=i, OutputTensor=out),
    ):
        weight, factor = torch.ones(2, requires_grad=True), torch.ones(2)
        loss = (weight * factor).sum()  # keeps the factor for its gradient
        write(factor)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def compiled():
    desc = dml.Gather(
        input_tensor=dml.TensorDesc("FLOAT32", (3,)),
        indices_tensor=dml.TensorDesc("INT64", (2,)),
        output_tensor=dml.TensorDesc("FLOAT32", (2,)),
        axis=0,
        index_dimensions=1,
    )
    return dml.Device("cpu").create_operator(desc).compile()


def test_the_pages_first_input_decides_the_kind():
    torch = pytest.importorskip("torch")
    array, tensor = np.arange(3, dtype="f4"), torch.arange(3, dtype=torch.float32)
    positions = np.array([0, 1])
    result = compiled()(IndicesTensor=positions, InputTensor=tensor)
    assert isinstance(result, torch.Tensor)
    result = compiled()(IndicesTensor=torch.tensor(positions), InputTensor=array)
    assert isinstance(result, np.ndarray)


def test_jax_changes_no_type_silently():
    jax = pytest.importorskip("jax")
    x = jax.numpy.arange(4.0)
    assert dml.top_k(x, 2, index_dtype="uint32").indices.dtype == np.uint32
    with jax_64_bits(False), pytest.raises(dml.ArgumentTypeError, match="jax_enable_x64"):
        dml.top_k(x, 2, index_dtype="int64")
    with jax_64_bits(True):
        assert dml.top_k(x, 2, index_dtype="int64").indices.dtype == np.int64
