"""`tile` and TILE against NumPy's own, for every way that rows are repeated."""

import itertools

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits


def tiled(x, repeats):
    """A tile beside the other, along one axis after the other."""
    x = x.reshape((1,) * (len(repeats) - x.ndim) + x.shape)
    for axis, repeat in enumerate((1,) * (x.ndim - len(repeats)) + tuple(repeats)):
        x = np.concatenate([x] * repeat, axis) if repeat else np.take(x, [], axis)
    return x


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 255, 1024, 1025])
def test_every_length_of_a_row(size):
    """Up to and beyond what is held in the nearest cache, from any layout."""
    for itemsize, repeat in itertools.product((1, 2, 4, 8, 16), (0, 1, 2, 3, 5, 70, 301)):
        x = np.arange(2 * size * itemsize).astype("u1").view(f"V{itemsize}").reshape(2, size)
        x = x.view("c16") if itemsize == 16 else x.view(f"u{itemsize}")
        for laid in (x, x[:, ::-1], np.asfortranarray(x), x[::-1, : size // 2 + 1]):
            expected = tiled(laid, (1, repeat))
            assert_same_bits(dml.tile(laid, repeat), expected)
            out = np.zeros(expected.shape[::-1], x.dtype).T
            assert dml.tile(laid, (1, repeat), out=out) is out
            assert_same_bits(out, expected)


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "c16", "?", "M8[s]"])
def test_several_axes(dtype):
    rng = np.random.default_rng(3)
    for shape in ((), (5,), (2, 3), (4, 1, 6), (2, 3, 1, 2), (40, 33), (0, 3)):
        x = rng.integers(0, 2, shape).astype(dtype)
        for laid in (x, np.asfortranarray(x), x[..., ::-1] if shape else x):
            repeats = tuple(rng.integers(0 if rng.random() < 0.1 else 1, 5, rng.integers(0, 6)))
            expected = tiled(laid, repeats)
            assert_same_bits(expected, np.tile(laid, repeats).astype(dtype))
            with dml.num_threads(int(rng.integers(1, 4))):
                assert_same_bits(dml.tile(laid, repeats), expected)


@pytest.mark.parametrize("dtype", ["u1", "f4"])
def test_past_the_cache(dtype):
    rng = np.random.default_rng(4)
    for shape, repeats in (((7,), (3_000_001,)), ((600, 3), (2, 2500)), ((50, 200), (40, 30)),
                           ((1500, 1600), (3, 2)), ((300_000, 2), (1, 9))):  # fmt: skip
        x = rng.integers(0, 200, shape).astype(dtype)
        expected = tiled(x, repeats)
        for threads in (1, 3):
            with dml.num_threads(threads):
                assert_same_bits(dml.tile(x, repeats), expected)


def test_repeats_and_axes_of_other_numbers():
    x = np.arange(6).reshape(2, 3)
    for repeats in (2, np.int64(2), (2,), [1, 2], np.array([2, 1, 1]), (), (3, 1, 2, 1)):
        assert_same_bits(dml.tile(x, repeats), np.tile(x, repeats))
    assert_same_bits(dml.tile(7, ()), np.int64(7))
    torch = pytest.importorskip("torch")
    t = torch.arange(6).reshape(2, 3)
    for repeats in ((2,), (2, 3), (2, 1, 2)):
        got = dml.tile(t, repeats)
        assert type(got) is torch.Tensor
        assert torch.equal(got, torch.tile(t, repeats))


@pytest.mark.parametrize(
    ("repeats", "message"),
    [
        (-1, r"repeats\[1\]: expected at least 0, got -1"),
        ((1, 2, -3), r"repeats\[2\]: expected at least 0, got -3"),
        (1.5, "repeats: expected an integer or a sequence of integers, got 1.5"),
        (True, "repeats: expected an integer, got True"),
        ([1, 2.0], r"repeats\[1\]: expected an integer, got 2.0"),
        ("12", "repeats: expected an integer or a sequence"),
        (itertools.count(), "repeats: expected at most"),
        ((1,) * 65, "repeats: expected at most"),
        (2**70, "tile: .* could not be allocated|expected sizes"),
        ((2**32, 2**32), "tile: .* could not be allocated|expected sizes"),
        ((1, 1), r"out: expected shape \(2, 3\)"),
    ],
)
def test_what_does_not_fit(repeats, message):
    out = np.full(5, 7, "i1")
    arguments = {} if "could not" in message else {"out": out}
    with pytest.raises(dml.AnyDMLError, match=message):
        dml.tile(np.zeros((2, 3), "i1"), repeats, **arguments)
    assert (out == 7).all()


def test_more_axes_than_numpy_has():
    torch = pytest.importorskip("torch")
    for gradient in (False, True):
        x = torch.ones((1,) * 65, requires_grad=gradient)
        with pytest.raises(dml.AnyDMLError, match=r"^x: .*axes"):
            dml.tile(x, 2)
