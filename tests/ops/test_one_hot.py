"""`one_hot` and ONE_HOT against NumPy's own comparison, for every way that the kernel goes."""

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits, references


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["u1", "f2", "i4", "f8", "c16", "?", "M8[s]"])
def test_every_axis_type_and_layout(axis, dtype):
    rng = np.random.default_rng(24)
    values = np.array([0, 1]).astype(dtype)
    for shape, depth in (((1, 1), 1), ((4, 5), 3), ((70, 3), 40), ((2, 0), 3), ((3, 300), 700)):
        indices = rng.integers(-depth - 1, depth + 1, shape)
        for laid in (indices, np.asfortranarray(indices), indices[..., ::-1], indices[::2]):
            kind = rng.choice(["i4", "i8", "i2"])
            expected = references.one_hot(laid, depth, values, axis)
            with dml.num_threads(int(rng.integers(1, 4))):
                found = dml.one_hot(laid.astype(kind), depth, values, axis=axis)
                assert_same_bits(found, expected)
                out = np.zeros(expected.shape[::-1], dtype).T
                assert dml.one_hot(laid, depth, values, axis=axis, out=out) is out
            assert_same_bits(out, expected)


def test_unsigned_indices_never_count_from_the_end():
    for kind in ("u1", "u2", "u4", "u8"):
        maximum = np.iinfo(kind).max
        found = dml.one_hot(np.array([0, 2, maximum, maximum - 1], kind), 3)
        assert found.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_extreme_indices_name_no_place():
    for kind in ("i4", "i8"):
        limits = np.iinfo(kind)
        found = dml.one_hot(np.array([limits.min, limits.max, -4, 3, -3], kind), 3)
        assert found.tolist() == [[0] * 3] * 4 + [[1, 0, 0]]


def test_the_first_two_of_more_values():
    values = np.arange(24.0).reshape(2, 3, 4)
    for table in (values, values[1:, ::2], values.T):
        flat = table.reshape(-1)
        assert dml.one_hot([0], 2, table).tolist() == [[flat[1], flat[0]]]


def test_scalars_and_nothing():
    assert dml.one_hot(1, 3).tolist() == [0, 1, 0]
    assert dml.one_hot(np.array(-1), 3, axis=0).tolist() == [0, 0, 1]
    assert dml.one_hot([], 3).shape == (0, 3)
    assert dml.one_hot([[1], [2]], 0, axis=0).shape == (0, 2, 1)


def test_past_the_cache_and_on_several_threads():
    rng = np.random.default_rng(25)
    for shape, depth, axis in (((20_000,), 300, 1), ((20_000,), 300, 0), ((70, 90), 500, 1)):
        indices = rng.integers(-depth - 5, depth + 5, shape)
        expected = references.one_hot(indices, depth, np.array([7, 9], "f4"), axis)
        for threads in (1, 3):
            with dml.num_threads(threads):
                found = dml.one_hot(indices, depth, np.array([7, 9], "f4"), axis=axis)
            assert_same_bits(found, expected)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_descriptor_keeps_the_axis_of_size_1(device):
    indices = np.array([[[0], [2]], [[-1], [5]]], np.int64).transpose(0, 2, 1)
    values = np.array([[[3, 4]]], np.uint16)
    desc = dml.OneHot(
        indices_tensor=dml.TensorDesc("INT64", (2, 1, 2)),
        values_tensor=dml.TensorDesc("UINT16", (1, 1, 2)),
        output_tensor=dml.TensorDesc("UINT16", (2, 3, 2)),
        axis=1,
    )
    found = dml.Device(device).create_operator(desc).compile()(indices, values)
    assert_same_bits(found, references.one_hot(indices[:, 0], 3, values.reshape(-1), 1))


def test_signed_indices_came_with_level_3_0():
    tensors = {
        "values_tensor": dml.TensorDesc("FLOAT32", (1, 1, 1, 2)),
        "output_tensor": dml.TensorDesc("FLOAT32", (1, 1, 3, 4)),
        "axis": 3,
    }
    lowest = dml.Device("cpu").minimum_feature_level
    for kind, level in (("UINT32", "2_0"), ("INT32", "3_0"), ("UINT64", "3_0")):
        desc = dml.OneHot(indices_tensor=dml.TensorDesc(kind, (1, 1, 3, 1)), **tensors)
        assert lowest(desc) == dml.FeatureLevel.parse(level)
