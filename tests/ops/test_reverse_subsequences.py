"""`reverse_subsequences` against NumPy's own gathers, for every way that a kernel goes."""

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits, references


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["u1", "f2", "i4", "f8", "c16", "?", "M8[s]"])
def test_every_axis_type_and_layout(axis, dtype):
    rng = np.random.default_rng(6)
    for shape in ((1, 1, 1), (4, 5, 3), (3, 1, 70), (2, 300, 2), (40, 3, 33), (2, 0, 3), (5, 2, 0)):
        x = rng.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
        kept = list(shape)
        kept[axis] = 1
        for laid in (x, np.asfortranarray(x), x[..., ::-1], np.repeat(x, 2, 1)[:, ::2]):
            lengths = rng.integers(0, shape[axis] + 3, kept).astype(rng.choice(["u4", "i8", "u1"]))
            expected = references.reverse_subsequences(laid, lengths, axis)
            with dml.num_threads(int(rng.integers(1, 4))):
                assert_same_bits(dml.reverse_subsequences(laid, lengths, axis=axis), expected)
                out = np.zeros(shape[::-1], dtype).T
                assert dml.reverse_subsequences(laid, lengths, axis=axis, out=out) is out
            assert_same_bits(out, expected)


def test_lengths_that_are_broadcast_or_of_other_types():
    x = np.arange(24).reshape(2, 3, 4)
    for lengths, axis in (
        (2, 0), ([3], 1), ([[[2], [1], [4]]], 2), (np.int8(2), 1), ([[1, 2, 3, 0]], 1),
        (np.array([[[2**63]]], "u8"), 2), (np.array(2**32 + 1), 1), (np.zeros((2, 1, 1), "i2"), 1),
    ):  # fmt: skip
        expected = references.reverse_subsequences(x, np.asarray(lengths), axis)
        assert_same_bits(dml.reverse_subsequences(x, lengths, axis=axis), expected)
    empty = dml.reverse_subsequences(np.zeros((0, 3)), np.zeros((0, 1), "u4"), axis=1)
    assert empty.shape == (0, 3)


def test_past_the_cache():
    rng = np.random.default_rng(7)
    for shape, axis, dtype in (
        ((3000, 1100), 1, "f4"), ((1100, 3000), 0, "f4"), ((5_000_000,), 0, "i2"),
        ((60, 500, 301), 1, "u1"), ((7, 30, 20_011), 1, "f4"), ((12_000_001,), 0, "u1"),
    ):  # fmt: skip
        x = rng.integers(0, 200, shape).astype(dtype)
        kept = list(shape)
        kept[axis] = 1
        for lengths in (rng.integers(0, shape[axis] + 9, kept), np.array(shape[axis] - 3)):
            expected = references.reverse_subsequences(x, lengths, axis)
            for threads in (1, 3):
                with dml.num_threads(threads):
                    assert_same_bits(dml.reverse_subsequences(x, lengths, axis=axis), expected)


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.arange(12.0).reshape(3, 4)
    got = dml.reverse_subsequences(x, torch.tensor([[2], [4], [9]]), axis=1)
    assert type(got) is torch.Tensor
    assert got.tolist() == [[1, 0, 2, 3], [7, 6, 5, 4], [11, 10, 9, 8]]


@pytest.mark.parametrize(
    ("lengths", "axis", "message"),
    [
        ([[1], [2]], 2, r"axis: expected -2..1 \(x has rank 2\), got 2"),
        ([[1], [2]], None, "axis: expected an integer, got None"),
        ([[1, 2]], 1, r"lengths: expected a shape that can be broadcast to \(2, 1\), got \(1, 2\)"),
        ([1, 2], 1, r"lengths: expected a shape that can be broadcast to \(2, 1\), got \(2,\)"),
        ([[1], [-2]], 1, "lengths: expected 0 or more, got -2"),
        ([[1.0], [2.0]], 1, "lengths: expected one of int64, .*, got float64"),
        ([[True], [False]], 1, "lengths: expected one of int64, .*, got bool"),
        (None, 1, "lengths: expected"),
        ([[2**70], [1]], 1, "lengths: expected"),
    ],
)
def test_what_does_not_fit(lengths, axis, message):
    out = np.full((2, 3), 7, "i1")
    with pytest.raises(dml.AnyDMLError, match=message):
        dml.reverse_subsequences(np.zeros((2, 3), "i1"), lengths, axis=axis, out=out)
    assert (out == 7).all()
    with pytest.raises(dml.ArgumentError, match=r"x: .*axis"):
        dml.reverse_subsequences(np.float32(3), 1, axis=0)


def test_overlaps_are_refused():
    x = np.arange(6).reshape(2, 3)
    with pytest.raises(dml.ArgumentError, match=r"out: .* overlap x"):
        dml.reverse_subsequences(x, 2, axis=1, out=x)


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("dtype", ["f8", "i8", "u8", "u1"])
def test_descriptors_of_every_rank_with_64_bit_types(device, dtype):
    rng = np.random.default_rng(8)
    for rank in range(1, 9):
        shape = tuple(rng.integers(1, 4, rank - 1)) + (5,)
        x = rng.integers(0, 100, shape).astype(dtype)
        lengths = rng.choice(
            np.array([0, 1, 3, 5, 6, 2**32 + 2, 2**64 - 1], "u8"), (*shape[:-1], 1)
        )
        tensor = dml.TensorDesc.from_array(x)
        desc = dml.ReverseSubsequences(
            input_tensor=tensor, output_tensor=tensor, axis=rank - 1,
            sequence_lengths_tensor=dml.TensorDesc.from_array(lengths))  # fmt: skip
        operator = dml.Device(device, feature_level="5_0").create_operator(desc)
        assert_same_bits(
            operator.compile()(x, lengths), references.reverse_subsequences(x, lengths, rank - 1)
        )
