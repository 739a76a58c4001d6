"""More elements than 31 or 32 bits count: gigabytes of memory, so only with ``-m heavy``."""

import numpy as np
import pytest

import anydml as dml

pytestmark = pytest.mark.heavy

# Each side fits in 16 bits, the product is just above 2^31.
SIDES = (46342, 46341)


@pytest.fixture(scope="module")
def square():
    x = np.zeros(SIDES, np.int8)
    x[0, 0] = x[-1, -1] = 1
    x[46340, 46339] = -1
    return x


def test_more_than_two_to_the_31(square):
    found = [[0, 0], [46340, 46339], [46341, 46340]]
    assert dml.nonzero_coordinates(square).tolist() == found
    assert dml.nonzero_coordinates(square.T).tolist() == [[b, a] for a, b in found]
    assert dml.gather_nd(square, np.array(found)).tolist() == [1, -1, 1]
    values, chosen = dml.top_k(square.reshape(-1), 3)
    assert values.tolist() == [1, 1, 0]
    assert chosen.tolist() == [0, square.size - 1, 1]
    rows = dml.gather(square, [-1, 46340], axis=0)
    assert rows[:, -2:].tolist() == [[0, 1], [-1, 0]]
    corner = dml.scatter_nd(square, [[-1, -1], [46341, 46339]], np.array([5, 6], np.int8))
    assert corner[-1, -2:].tolist() == [6, 5]
    assert np.count_nonzero(corner) == 4
    lookup = np.full((SIDES[0], 1), -1)
    column = dml.gather_elements(square, lookup, axis=1)
    assert np.flatnonzero(column).tolist() == [46341]
    put = dml.scatter_elements(square, lookup, np.full((SIDES[0], 1), 3, np.int8), axis=1)
    assert put[:, -1].tolist() == [3] * SIDES[0]


def test_split_and_join_more_than_two_to_the_31(square):
    parts = dml.split(square, [1, 46340], axis=1)
    assert parts[1][-1, -1] == 1
    assert np.array_equal(dml.join(parts, axis=1), square)


def test_an_axis_of_more_than_two_to_the_32():
    size = 2**32 + 5
    x = np.zeros(size, np.int8)
    x[[3, -2]] = 1, 2
    values, chosen = dml.top_k(x, 3)
    assert chosen.dtype == np.int64
    assert chosen.tolist() == [size - 2, 3, 0]
    assert values.tolist() == [2, 1, 0]
    for kind in ("uint32", "int32"):
        for call in (lambda t: dml.top_k(x, 3, index_dtype=t),
                     lambda t: dml.nonzero_coordinates(x, index_dtype=t)):  # fmt: skip
            with pytest.raises(dml.ArgumentError, match=rf"index_dtype: .*positions.*got {kind}"):
                call(kind)
    coordinates = dml.nonzero_coordinates(x)
    assert coordinates.dtype == np.int64
    assert coordinates.tolist() == [[3], [size - 2]]
    assert dml.gather(x, [-2, 3]).tolist() == [2, 1]
    with pytest.raises(dml.IndexOutOfRangeError):
        dml.gather(x, [size])


@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_large_random_cases(kind):
    """Past the cache and past every threshold, non-temporal writes among them."""
    generator = np.random.default_rng(0)
    x = generator.integers(-100, 100, (6000, 8000)).astype(kind)
    order = generator.integers(0, 8000, x.shape, np.int64)
    for count in (1, 2, 4):
        with dml.num_threads(count):
            assert np.array_equal(
                dml.gather_elements(x, order, axis=1), np.take_along_axis(x, order, 1)
            )
            for axis in (0, 1):
                assert np.array_equal(dml.join(dml.split(x, 8, axis=axis), axis=axis), x)
            assert np.array_equal(dml.nonzero_coordinates(x), np.argwhere(x))
            rows = generator.permutation(6000)
            assert np.array_equal(dml.gather(x, rows), x[rows])
            assert np.array_equal(dml.scatter_nd(x, rows[:, None], x), x[np.argsort(rows)])
