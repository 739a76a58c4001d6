"""What is done to indices outside of a kernel, against a loop over Python's integers."""

import numpy as np
import pytest

import anydml as dml
from anydml.functions._block_tasks import resolve
from anydml.portable import kernels

SIZES = (1, 2, 5)
KINDS = ("i1", "i4", "i8", "u1", "u4", "u8")


def indices_of(kind, size):
    info = np.iinfo(kind)
    near = {m + d for m in (0, size, -size, info.min, info.max) for d in (-2, -1, 0, 1, 2)}
    return np.array(sorted(v for v in near if info.min <= v <= info.max), kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_one_axis(kind, size):
    lookup = indices_of(kind, size)
    values = [int(v) for v in lookup]
    from_start = [v + size if v < 0 else v for v in values]
    clamped = [min(max(v, 0), size - 1) for v in from_start]
    assert resolve(lookup, "f", [size], [3], True, []).tolist() == clamped
    assert kernels.resolve(lookup, size, "wrap")[0].tolist() == [v % size for v in values]
    clipped = [min(max(v, 0), size - 1) for v in values]
    assert kernels.resolve(lookup, size, "clip")[0].tolist() == clipped
    for value, position in zip(lookup, from_start, strict=True):
        alone = np.array([0, value], kind)
        if 0 <= position < size:
            assert resolve(alone, "f", [size], [3], False, []).tolist() == [0, position]
        else:
            with pytest.raises(dml.IndexOutOfRangeError) as caught:
                resolve(alone, "f", [size], [3], False, [])
            error = caught.value
            assert (error.position, error.value, error.size) == ((1,), int(value), size)
            assert "(axis 3 of size" in str(error)


def test_tuples():
    lookup = np.array([[1, -3], [-3, 5], [1, 2]])
    assert resolve(lookup, "f", [2, 3], [4, 6], True, []).tolist() == [[1, 0], [0, 2], [1, 2]]
    with pytest.raises(dml.IndexOutOfRangeError) as caught:
        resolve(lookup, "f", [2, 3], [4, 6], False, [7, 0])
    error = caught.value
    assert (error.position, error.value, error.size) == ((8, 0), -3, 2)
    assert "(axis 4 of size 2)" in str(error)
    found = resolve(lookup[[0, 2]], "f", [2, 3], [4, 6], False, [])
    assert found.tolist() == [[1, 0], [1, 2]]
    assert resolve(np.zeros((0, 2), "i4"), "f", [0, 3], [4, 6], False, []).shape == (0, 2)


@pytest.mark.parametrize(
    ("expected", "values", "fits"),
    [
        ("f4", [1], True), ("f4", [1.5], True), ("f4", [1e300], False), ("f4", [1j], False),
        ("f4", [True], False), ("f4", [np.inf, -np.inf], True), ("c8", [1j], True),
        ("c8", [True], False), ("i1", [127, -128], True), ("i1", [128], False),
        ("i1", [-129], False), ("i1", [1.0], True), ("i1", [1.5], False),
        ("u1", [255, 0], True), ("u1", [-1], False),
        ("u1", [256], False), ("i4", [True], False), ("?", [0, 1], True), ("?", [2], False),
        ("?", [-1], False), ("?", [0.0], True), ("?", [0.5], False), ("f4", ["1"], False),
    ],
)  # fmt: skip
def test_lists_that_take_the_type_of_the_data(expected, values, fits):
    x = np.zeros(3, expected)

    def call():
        return dml.scatter_elements(x, list(range(len(values))), values)

    if fits:
        assert call()[: len(values)].tolist() == np.array(values).astype(expected).tolist()
    else:
        with pytest.raises((dml.ArgumentError, dml.ArgumentTypeError), match="updates: "):
            call()


def test_an_index_of_no_rank():
    with pytest.raises(dml.ArgumentError, match=r"indices.ndim: expected 1 or more \(tuples"):
        dml.scatter_nd(np.zeros(3), np.array(1), 5.0)


@pytest.mark.parametrize("include_self", [True, False])
def test_without_a_reduction_the_data_stay(include_self):
    x = np.arange(4.0)
    for call in (
        lambda at: dml.scatter_elements(x, at, x[:2], include_self=include_self),
        lambda at: dml.scatter_nd(x, at[:, None], x[:2], include_self=include_self),
    ):
        assert call(np.array([3, 1])).tolist() == [0, 1, 2, 0]


def test_numbers_of_rows():
    x = np.array([0, 3, 0])
    for size, rows in ((0, []), (1, [[1]]), (3, [[1], [9], [9]])):
        assert dml.nonzero_coordinates(x, size=size, fill_value=9).tolist() == rows
    for size in (-1, 2**48 + 1):
        with pytest.raises(dml.ArgumentError, match=r"size: expected 0\.\.2\^48 rows"):
            dml.nonzero_coordinates(x, size=size)
    info = np.iinfo(dml.nonzero_coordinates(x).dtype)
    for fill in (info.min, info.max):
        assert dml.nonzero_coordinates(x, size=2, fill_value=fill)[1, 0] == fill
    for fill in (info.min - 1, info.max + 1):
        with pytest.raises(dml.ArgumentError, match="fill_value: "):
            dml.nonzero_coordinates(x, size=2, fill_value=fill)


@pytest.mark.parametrize("mode", ["wrap", "clip"])
@pytest.mark.parametrize("batch", [0, 1])
def test_tuples_that_are_moved_into_their_axes(mode, batch):
    x = np.arange(2 * 3 * 5).reshape(2, 3, 5)
    lookup = np.array([[[7, -9], [-1, 4]], [[0, 5], [3, 12]]])
    sizes = x.shape[batch : batch + 2]
    at = lookup % sizes if mode == "wrap" else np.clip(lookup, 0, np.array(sizes) - 1)
    first, second = at[..., 0], at[..., 1]
    expected = x[np.arange(2)[:, None], first, second] if batch else x[first, second]
    assert dml.gather_nd(x, lookup, batch_dims=batch, mode=mode).tolist() == expected.tolist()
    with pytest.raises(dml.ArgumentError, match=r"indices\.shape"):  # tuples too long for the axes
        dml.gather_nd(x[0], np.zeros((2, 3), int), mode=mode)
