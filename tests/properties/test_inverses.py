"""What was taken apart is put together again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from support import Flavour, assert_same_bits, contents, strategies

NUMERIC = st.sampled_from(strategies.NUMERIC)
SHAPES = strategies.shapes(min_rank=1)


def drawn(data, shape, kind):
    generator, flavour = data.draw(strategies.generators()), data.draw(st.sampled_from(Flavour))
    return contents(generator, shape, kind, flavour)


@given(st.data(), NUMERIC, SHAPES)
def test_join_of_split(data, kind, shape):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=5)))
    sizes = np.diff([0, *cuts, shape[axis]]).tolist()
    x = drawn(data, shape, kind)
    parts = dml.split(x, sizes, axis=axis)
    assert_same_bits(dml.join(parts, axis=axis), x)
    again = dml.split(dml.join(parts, axis=axis), sizes, axis=axis)
    for part, other in zip(parts, again, strict=True):
        assert_same_bits(other, part)


@given(st.data(), NUMERIC, SHAPES, st.sampled_from(strategies.INDEX))
def test_gather_elements_of_scatter_elements(data, kind, shape, index_kind):
    axis = data.draw(st.integers(0, len(shape) - 1))
    x, updates = drawn(data, shape, kind), drawn(data, shape, kind)
    generator = data.draw(strategies.generators())
    order = np.argsort(generator.random(shape), axis=axis)  # a permutation on every line
    if index_kind.startswith("int"):
        order = np.where(generator.random(shape) < 0.5, order - shape[axis], order)
    order = order.astype(index_kind)
    scattered = dml.scatter_elements(x, order, updates, axis=axis)
    assert_same_bits(dml.gather_elements(scattered, order, axis=axis), updates)
    gathered = dml.gather_elements(x, order, axis=axis)
    assert_same_bits(dml.scatter_elements(updates, order, gathered, axis=axis), x)


@given(st.data(), NUMERIC, SHAPES, st.booleans())
def test_values_of_top_k_are_what_its_indices_gather(data, kind, shape, largest):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = drawn(data, shape, kind)
    k = data.draw(st.integers(0, shape[axis]))
    values, chosen = dml.top_k(x, k, axis=axis, largest=largest)
    assert_same_bits(dml.gather_elements(x, chosen, axis=axis), values)
    full, order = dml.top_k(x, shape[axis], axis=axis, largest=largest)
    assert_same_bits(np.take(full, range(k), axis), values)
    assert_same_bits(dml.scatter_elements(np.zeros_like(x), order, full, axis=axis), x)


@given(st.data(), NUMERIC, strategies.shapes())
def test_nonzero_coordinates_and_the_nd_operators(data, kind, shape):
    x = drawn(data, shape, kind)
    # Zeros are lost but for their value: a negative one comes back as a positive one.
    x = np.where(x == 0, np.zeros((), x.dtype), x)
    coordinates = dml.nonzero_coordinates(x)
    values = dml.gather_nd(x, coordinates)
    assert_same_bits(dml.scatter_nd(np.zeros_like(x), coordinates, values), x)


@given(st.data(), NUMERIC, strategies.shapes(min_rank=1, min_side=1, max_rank=3))
def test_scatter_nd_of_gather(data, kind, shape):
    """Rows that are gathered and scattered back to where they were."""
    x = drawn(data, shape, kind)
    generator = data.draw(strategies.generators())
    rows = generator.permutation(shape[0])
    gathered = dml.gather(x, rows, axis=0)
    assert_same_bits(dml.scatter_nd(np.zeros_like(x), rows[:, None], gathered), x)


@given(st.data(), NUMERIC, SHAPES)
def test_scatter_of_zeros_with_add_counts(data, kind, shape):
    """A histogram: adding ones counts every index."""
    generator = data.draw(strategies.generators())
    lookup = generator.integers(0, 7, shape[0])
    counts = dml.scatter_elements(
        np.zeros(7, np.int64), lookup, np.ones_like(lookup), reduction="add"
    )
    assert_same_bits(counts, np.bincount(lookup, minlength=7))


@pytest.mark.parametrize("rows", [1, 2, 100, 5000])
def test_more_parts_than_bytes_in_a_row(rows):
    x = np.arange(rows * 3, dtype="u1").reshape(rows, 3)
    parts = dml.split(x, [0] * 20 + [1, 0, 1, 0, 1] + [0] * 20, axis=1)
    assert [part.shape[1] for part in parts] == [0] * 20 + [1, 0, 1, 0, 1] + [0] * 20
    assert np.array_equal(np.concatenate(parts, axis=1), x)
    assert np.array_equal(dml.join(parts, axis=1), x)
