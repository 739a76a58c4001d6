"""Means of 16-bit floats and of small integers: sums are accumulated in a wider type."""

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

NARROW = ("float16", "int8", "uint8", "int16", "uint16", "int32", "uint32")
ALONE = {"reduction": "mean", "include_self": False}


def narrow_types():
    types = [np.dtype(kind) for kind in NARROW]
    try:
        import ml_dtypes
    except ImportError:
        return types
    return [*types, np.dtype(ml_dtypes.bfloat16)]


def many(kind, generator, count=5000):
    """Few elements with many updates, whose sums are far beyond the type."""
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        x, updates = (generator.integers(limits.max // 2, limits.max, n, kind) for n in (5, count))
    else:
        x, updates = (generator.random(n, np.float32).astype(kind) for n in (5, count))
    return x, generator.integers(0, 4, count), updates


def expected_means(x, indices, updates, include_self):
    """In Python's integers; floats in float32, one update after the other, rounded once."""
    result = x.copy()
    for at in np.unique(indices):
        terms = [*([x[at]] if include_self else []), *updates[indices == at]]
        if x.dtype.kind in "iu":
            result[at] = sum(map(int, terms)) // len(terms)
        else:
            total = np.add.accumulate(np.array([0, *terms], np.float32), dtype=np.float32)[-1]
            result[at] = (total / np.float32(len(terms))).astype(x.dtype)
    return result


@pytest.mark.parametrize("kind", narrow_types(), ids=str)
@pytest.mark.parametrize("include_self", [True, False])
def test_many_updates(kind, include_self):
    x, indices, updates = many(kind, np.random.default_rng(1))
    options = {"reduction": "mean", "include_self": include_self}
    expected = expected_means(x, indices, updates, include_self)
    assert_same_bits(dml.scatter_elements(x, indices, updates, **options), expected)
    assert_same_bits(dml.scatter_nd(x, indices[:, None], updates, **options), expected)
    written = x.copy()
    assert dml.scatter_elements(written, indices, updates, **options, out=written) is written
    assert_same_bits(written, expected)
    other = np.zeros_like(x)
    dml.scatter_nd(x, indices[:, None], updates, **options, out=other)
    assert_same_bits(other, expected)


@pytest.mark.parametrize("kind", narrow_types(), ids=str)
@pytest.mark.parametrize("include_self", [True, False])
def test_dask(kind, include_self):
    array = pytest.importorskip("dask.array")
    x, indices, updates = many(kind, np.random.default_rng(2), 500)
    options = {"reduction": "mean", "include_self": include_self}
    got = dml.scatter_elements(
        array.from_array(x, chunks=2), indices, array.from_array(updates, chunks=100), **options
    )
    assert got.dtype == kind
    assert_same_bits(got.compute(), expected_means(x, indices, updates, include_self))


@pytest.mark.parametrize("kind", narrow_types(), ids=str)
@pytest.mark.parametrize("include_self", [True, False])
def test_jax(kind, include_self):
    jax = pytest.importorskip("jax")
    x, indices, updates = many(kind, np.random.default_rng(3))
    expected = expected_means(x, indices, updates, include_self)

    def call(x, indices, updates):
        options = {"reduction": "mean", "include_self": include_self}
        return dml.scatter_elements(x, indices, updates, **options)

    operands = jax.numpy.asarray(x), jax.numpy.asarray(indices), jax.numpy.asarray(updates)
    for got in (call(*operands), jax.jit(call)(*operands)):
        assert got.dtype == kind
        assert_same_bits(np.asarray(got), expected)
    batches = [jax.numpy.stack([operand] * 2) for operand in operands]
    assert_same_bits(np.asarray(jax.vmap(call)(*batches))[1], expected)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int8", "uint8", "int16", "int32"])
@pytest.mark.parametrize("include_self", [True, False])
def test_torch(kind, include_self):
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(4)
    dtype = getattr(torch, kind)
    if dtype.is_floating_point:
        x, updates = (torch.rand(n, generator=generator).to(dtype) for n in (5, 3000))
    else:  # sums that PyTorch's own mean of the type can hold
        x, updates = (torch.randint(0, 2, (n,), generator=generator).to(dtype) for n in (50, 300))
    indices = torch.randint(0, len(x), updates.shape, generator=generator)
    options = {"include_self": include_self}
    expected = x.scatter_reduce(0, indices, updates, "mean", **options)
    got = dml.scatter_elements(x, indices, updates, reduction="mean", **options)
    assert got.dtype == dtype
    # Where PyTorch rounds to the type before it divides, the last bit may differ.
    tolerance = torch.finfo(dtype).eps if dtype.is_floating_point else 0
    assert torch.allclose(got.double(), expected.double(), rtol=2 * tolerance, atol=0)


def test_torch_examples():
    torch = pytest.importorskip("torch")
    for kind, count in (("float16", 3000), ("bfloat16", 3000), ("int8", 128), ("uint8", 300)):
        dtype = getattr(torch, kind)
        operands = torch.zeros(2, dtype=dtype), torch.zeros(count, dtype=torch.int64)
        got = dml.scatter_elements(*operands, torch.ones(count, dtype=dtype), **ALONE)
        assert got.tolist() == [1, 0]


def test_other_elements_keep_their_bits():
    """A NaN with a payload that no update names; one that is combined becomes canonical."""
    x = np.array([0x7E01, 0xFE23, 0x0001], np.uint16).view(np.float16)
    for call in (dml.scatter_elements, dml.scatter_nd):
        indices = [1] if call is dml.scatter_elements else [[1]]
        got = call(x, indices, np.ones(1, np.float16), reduction="mean")
        assert got.view(np.uint16).tolist() == [0x7E01, 0x7E00, 0x0001]
        got = call(x, indices, np.ones(1, np.float16), **ALONE)
        assert got.view(np.uint16).tolist() == [0x7E01, 0x3C00, 0x0001]


def test_shapes_and_errors():
    x = np.ones((2, 3), np.float16)
    got = dml.scatter_elements(x, [[0, 1]], 3.0, axis=1, reduction="mean")
    assert got.tolist() == [[2, 2, 1], [1, 1, 1]]
    assert dml.scatter_nd(x, [[1], [1]], 4, reduction="mean").tolist() == [[1] * 3, [3] * 3]
    assert dml.scatter_elements(np.int8(3), [0, 0], [4, 6], reduction="mean").shape == ()
    assert (
        dml.scatter_nd(x, np.zeros((0, 1), int), np.zeros((0, 3), "f2"), **ALONE).tolist()
        == x.tolist()
    )
    out = np.zeros_like(x)
    with pytest.raises(dml.IndexOutOfRangeError, match=r"scatter_nd: indices\[1, 0\].* got 2"):
        dml.scatter_nd(x, [[0], [2]], 4, reduction="mean", out=out)
    assert not out.any()


def test_gradients_of_means_of_many_halves():
    """The number of updates is counted exactly, which float16 could not from 2048 on."""
    torch = pytest.importorskip("torch")
    x = torch.zeros(1, dtype=torch.float16)
    updates = torch.ones(3000, dtype=torch.float16, requires_grad=True)
    indices = torch.zeros(3000, dtype=torch.int64)
    mean = dml.scatter_elements(x, indices, updates, reduction="mean", include_self=False)
    mean.backward()
    assert mean.item() == 1
    assert updates.grad.unique().tolist() == [torch.tensor(1 / 3000).half().item()]
