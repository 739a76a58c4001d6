"""`deterministic`: strides of results are PyTorch's, for operands of every layout."""

import itertools
import warnings

import pytest

torch = pytest.importorskip("torch")

import anydml.torch  # noqa: E402 (PyTorch may be missing)

SHAPES = [
    (), (1,), (5,), (0,), (1, 1), (3, 1), (1, 3), (2, 3), (0, 3), (3, 0), (1, 1, 1), (2, 1, 3),
    (1, 0, 1), (1, 1, 3), (2, 3, 4), (1, 3, 2, 2),
]  # fmt: skip


def layouts(shape):
    """Tensors of a shape: in any order of dimensions, with gaps, and with unusual strides."""
    rank = len(shape)
    for order in itertools.permutations(range(rank)):
        inverse = sorted(range(rank), key=order.__getitem__)
        yield torch.zeros([shape[i] for i in order]).permute(inverse)
        larger = torch.zeros([2 * shape[i] for i in order]).permute(inverse)
        yield larger[tuple(slice(size) for size in shape)]
    yield torch.zeros(5000).as_strided(shape, [11 * (i + 1) for i in range(rank)])
    yield torch.zeros(1).as_strided(shape, [0] * rank)


def calls(x):
    first, one = torch.tensor([0]), torch.tensor(1.0)
    for dim in range(max(x.ndim, 1)):
        index = torch.arange(x.shape[dim] if x.ndim else 1)
        places = torch.zeros(x.shape, dtype=torch.int64)
        updates = x.clone()
        yield lambda d=dim: x.sort(d)
        yield lambda d=dim: x.topk(1, d)
        yield lambda d=dim, i=index, u=updates: x.index_copy(d, i, u)
        yield lambda d=dim, i=index, u=updates: x.index_add(d, i, u)
        yield lambda d=dim, i=index, u=updates: x.index_reduce(d, i, u, "amax")
        yield lambda d=dim, i=places, u=updates: x.scatter(d, i, u)
        yield lambda d=dim, i=places: x.scatter(d, i, 1.0)
        yield lambda d=dim, i=places, u=updates: x.scatter_add(d, i, u)
        yield lambda d=dim, i=places, u=updates: x.scatter_reduce(d, i, u, "amax")
    yield lambda: x.put(first, one.reshape(1))
    yield lambda: x.index_put((first,), one)
    yield lambda: torch.ops.aten._unsafe_index_put(x, (first,), one)
    yield x.nonzero
    yield (x + 1).nonzero


def strides(result):
    return [r.stride() for r in result] if isinstance(result, tuple) else [result.stride()]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_strides_are_pytorchs(shape):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # index_reduce is in beta
        for x in layouts(shape):
            for number, call in enumerate(calls(x)):
                try:
                    expected = call()
                except (IndexError, RuntimeError):
                    continue  # PyTorch rejects the shape
                with anydml.torch.deterministic():
                    got = call()
                assert strides(got) == strides(expected), (number, x.stride())
