"""Every array function against plain loops: any type, rank, layout, content, number of threads."""

import numpy as np
import pytest
from agreement import agree, native, writable_twin
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from support import Flavour, Poisoned, assert_same_bits, indices, references, strategies

NUMERIC = st.sampled_from((*strategies.NUMERIC, *strategies.ADDED_FLOATS))
MOVED = st.sampled_from((*strategies.MOVED, *strategies.ADDED_MOVED))
INDEX = st.sampled_from(strategies.INDEX)
REDUCTIONS = ("add", "mul", "min", "max")


def draw_array(data, shape, kind, flavour=None):
    return data.draw(strategies.arrays(shape, kind, flavour))


def draw_indices(data, shape, sizes):
    kind = data.draw(INDEX)
    values = indices(data.draw(strategies.generators()), shape, sizes, kind)
    tuples = not isinstance(sizes, int)
    layout = data.draw(strategies.layouts(len(shape), tuples=tuples))
    return Poisoned(shape, kind, layout, values)


def replaced(shape, axis, size):
    return (*shape[:axis], size, *shape[axis + 1 :])


def values_kind(kind):
    # Complex numbers and dates have no contents of their own: they are moved as their bits.
    return kind in ("bool", *strategies.NUMERIC, *strategies.ADDED_FLOATS)


def moved_array(data, shape, kind):
    if values_kind(kind):
        return draw_array(data, shape, kind)
    size = np.dtype(kind).itemsize
    raw = data.draw(strategies.generators()).bytes(int(np.prod(shape)) * size)
    values = np.frombuffer(raw, kind).reshape(shape)
    return Poisoned(shape, kind, data.draw(strategies.layouts(len(shape), plain=True)), values)


@given(st.data(), NUMERIC, strategies.shapes(min_rank=1), st.booleans())
def test_top_k(data, kind, shape, largest):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    x = draw_array(data, shape, kind)
    index_kind = data.draw(INDEX)
    values, chosen = references.top_k(native(x), k, axis, largest)

    def call(array, **out):
        return dml.top_k(array, k, axis=axis, largest=largest, index_dtype=index_kind, **out)

    agree(data, call, [x], [values, chosen.astype(index_kind)])


@given(
    st.data(),
    st.one_of(NUMERIC, st.just("bool")),
    strategies.shapes(),
)
def test_nonzero_coordinates(data, kind, shape):
    x = draw_array(data, shape, kind)
    expected = references.nonzero_coordinates(native(x))
    index_kind = data.draw(INDEX)

    def call(array, **out):
        return dml.nonzero_coordinates(array, index_dtype=index_kind, **out)

    agree(data, call, [x], [expected.astype(index_kind)])


@given(st.data(), MOVED, strategies.shapes(min_rank=1))
def test_scatter_elements(data, kind, shape):
    axis, x, lookup, updates = _scatter_case(data, kind, shape)
    expected = references.scatter_elements(native(x), native(lookup), native(updates), axis)

    def call(*arrays, **out):
        return dml.scatter_elements(*arrays, axis=axis, **out)

    agree(data, call, [x, lookup, updates], [expected])
    target = writable_twin(x)
    result = dml.scatter_elements(
        target.array, lookup.array, updates.array, axis=axis, out=target.array
    )
    assert result is target.array
    assert_same_bits(result, expected, "in place")
    assert target.gaps_intact()


def _scatter_case(data, kind, shape):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    positive = axis % len(shape)
    on_axis = data.draw(st.integers(0, 2 * shape[positive])) if shape[positive] else 0
    smaller = [data.draw(st.integers(0 if data.draw(st.booleans()) else size, size))
               for size in shape]  # fmt: skip
    looked_up = replaced(tuple(smaller), positive, on_axis)
    x = moved_array(data, shape, kind)
    lookup = draw_indices(data, looked_up, shape[positive])
    return axis, x, lookup, moved_array(data, looked_up, kind)


@given(st.data(), NUMERIC, strategies.shapes(min_rank=1), st.sampled_from(REDUCTIONS))
def test_scatter_elements_with_reduction(data, kind, shape, reduction):
    axis, x, lookup, updates = _scatter_case(data, kind, shape)
    expected = references.scatter_elements(
        native(x), native(lookup), native(updates), axis, reduction
    )

    def call(*arrays, **out):
        return dml.scatter_elements(*arrays, axis=axis, reduction=reduction, **out)

    agree(data, call, [x, lookup, updates], [expected])


def _nd_case(data, kind, shape, batch=0):
    length = data.draw(st.integers(0, len(shape) - batch))
    empty = 0 in shape[batch : batch + length]
    outer = data.draw(strategies.shapes(max_rank=2, max_elements=20))
    if empty:
        outer = (0, *outer)
    lookup_shape = (*shape[:batch], *outer, length)
    lookup = draw_indices(data, lookup_shape, shape[batch : batch + length])
    return lookup, (*lookup_shape[:-1], *shape[batch + length :])


@given(st.data(), MOVED, strategies.shapes(max_rank=3, max_elements=100))
def test_scatter_nd(data, kind, shape):
    x = moved_array(data, shape, kind)
    lookup, updates_shape = _nd_case(data, kind, shape)
    updates = moved_array(data, updates_shape, kind)
    expected = references.scatter_nd(native(x), native(lookup), native(updates))
    agree(data, dml.scatter_nd, [x, lookup, updates], [expected])
    target = writable_twin(x)
    result = dml.scatter_nd(target.array, lookup.array, updates.array, out=target.array)
    assert_same_bits(result, expected, "in place")
    assert target.gaps_intact()


@given(
    st.data(),
    NUMERIC,
    strategies.shapes(max_rank=3, max_elements=60),
    st.sampled_from(REDUCTIONS),
)
def test_scatter_nd_with_reduction(data, kind, shape, reduction):
    x = draw_array(data, shape, kind)
    lookup, updates_shape = _nd_case(data, kind, shape)
    updates = draw_array(data, updates_shape, kind)
    expected = references.scatter_nd(native(x), native(lookup), native(updates), reduction)

    def call(*arrays, **out):
        return dml.scatter_nd(*arrays, reduction=reduction, **out)

    agree(data, call, [x, lookup, updates], [expected])


@given(st.data(), MOVED, strategies.shapes(min_rank=1))
def test_split_and_join(data, kind, shape):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    total = shape[axis]
    cuts = sorted(data.draw(st.lists(st.integers(0, total), max_size=6)))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)]
    x = moved_array(data, shape, kind)
    parts = references.split(native(x), sizes, axis)
    agree(data, lambda array, **out: dml.split(array, sizes, axis=axis, **out), [x], parts)
    pieces = [Poisoned(p.shape, p.dtype, data.draw(strategies.layouts(p.ndim)), p) for p in parts]
    joined = references.join([native(piece) for piece in pieces], axis)

    def call(*arrays, **out):
        return dml.join(arrays, axis=axis, **out)

    agree(data, call, pieces, [joined])


@given(st.data(), MOVED, strategies.shapes(min_rank=1), st.integers(1, 6))
def test_split_into_sections(data, kind, shape, sections):
    axis = data.draw(st.integers(0, len(shape) - 1))
    shape = replaced(shape, axis, sections * min(shape[axis], 3))
    x = moved_array(data, shape, kind)
    parts = references.split(native(x), [shape[axis] // sections] * sections, axis)
    agree(data, lambda array, **out: dml.split(array, sections, axis=axis, **out), [x], parts)


@given(st.data(), MOVED, strategies.shapes(min_rank=1))
def test_reverse_subsequences(data, kind, shape):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = moved_array(data, shape, kind)
    lengths = draw_array(data, replaced(shape, axis % len(shape), 1), "uint32")
    expected = references.reverse_subsequences(native(x), native(lengths), axis)

    def call(*arrays, **out):
        return dml.reverse_subsequences(*arrays, axis=axis, **out)

    agree(data, call, [x, lengths], [expected])


@given(st.data(), MOVED, strategies.shapes(max_rank=3, max_elements=60), st.integers(0, 6))
def test_one_hot(data, kind, shape, depth):
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    lookup = draw_indices(data, shape, depth + 1)  # one more than there are
    values = moved_array(data, (2,), kind)
    expected = references.one_hot(native(lookup), depth, native(values), axis)

    def call(indices, values, **out):
        return dml.one_hot(indices, depth, values, axis=axis, **out)

    agree(data, call, [lookup, values], [expected])


@given(st.data(), MOVED, strategies.shapes(max_elements=60))
def test_tile(data, kind, shape):
    x = moved_array(data, shape, kind)
    repeats = data.draw(strategies.shapes(len(shape), len(shape), max_elements=20))
    expected = np.tile(native(x), repeats)
    agree(data, lambda array, **out: dml.tile(array, repeats, **out), [x], [expected])


@given(st.data(), MOVED, strategies.shapes(min_rank=1, max_rank=3, max_elements=100))
def test_gather(data, kind, shape):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    lookup_shape = data.draw(strategies.shapes(max_rank=2, max_elements=20))
    if shape[axis] == 0:
        lookup_shape = (0, *lookup_shape)
    x = moved_array(data, shape, kind)
    lookup = draw_indices(data, lookup_shape, shape[axis])
    expected = references.gather(native(x), native(lookup), axis)

    def call(*arrays, **out):
        return dml.gather(*arrays, axis=axis, **out)

    agree(data, call, [x, lookup], [expected])


@given(st.data(), MOVED, strategies.shapes(min_rank=1))
def test_gather_elements(data, kind, shape):
    axis, x, lookup, _ = _scatter_case(data, kind, shape)
    expected = references.gather_elements(native(x), native(lookup), axis)

    def call(*arrays, **out):
        return dml.gather_elements(*arrays, axis=axis, **out)

    agree(data, call, [x, lookup], [expected])


@given(st.data(), MOVED, strategies.shapes(max_rank=4, max_elements=60))
def test_gather_nd(data, kind, shape):
    batch = data.draw(st.integers(0, min(2, len(shape))))
    x = moved_array(data, shape, kind)
    lookup, _ = _nd_case(data, kind, shape, batch)
    expected = references.gather_nd(native(x), native(lookup), batch)

    def call(*arrays, **out):
        return dml.gather_nd(*arrays, batch_dims=batch, **out)

    agree(data, call, [x, lookup], [expected])


@given(st.data(), NUMERIC, strategies.shapes(min_rank=1, min_side=1, max_elements=60), INDEX)
def test_clamped_gathers(data, kind, shape, index_kind):
    """Any index at all, however far outside."""
    axis = data.draw(st.integers(0, len(shape) - 1))
    x = draw_array(data, shape, kind)

    def any_indices(shape):
        return data.draw(
            strategies.arrays(shape, index_kind, data.draw(st.sampled_from(
                (Flavour.RANDOM, Flavour.SPECIAL, Flavour.TIED))))
        )  # fmt: skip

    lookup = any_indices(data.draw(strategies.shapes(max_rank=2, max_elements=20)))
    expected = references.gather(native(x), native(lookup), axis, clamp=True)
    agree(data, lambda *a, **out: dml.gather(*a, axis=axis, mode="clamp", **out),
          [x, lookup], [expected])  # fmt: skip
    lookup = any_indices(replaced(shape, axis, data.draw(st.integers(0, 9))))
    expected = references.gather_elements(native(x), native(lookup), axis, clamp=True)
    agree(data, lambda *a, **out: dml.gather_elements(*a, axis=axis, mode="clamp", **out),
          [x, lookup], [expected])  # fmt: skip
    lookup = any_indices((3, data.draw(st.integers(0, len(shape)))))
    expected = references.gather_nd(native(x), native(lookup), clamp=True)
    agree(data, lambda *a, **out: dml.gather_nd(*a, mode="clamp", **out),
          [x, lookup], [expected])  # fmt: skip


@pytest.mark.parametrize("rank", [0, 1, 7, 8, 9, 16, 32])
def test_any_rank(rank):
    generator = np.random.default_rng(rank)
    shape = tuple(generator.permutation([3, 2, 2][: min(rank, 3)] + [1] * (rank - 3)))
    x = generator.integers(-3, 3, shape)
    assert_same_bits(dml.nonzero_coordinates(x), references.nonzero_coordinates(x))
    axis = int(np.argmax(shape)) if rank else 0
    values, chosen = dml.top_k(x, 1, axis=axis if rank else -1)
    if rank == 0:
        assert (values.shape, chosen.shape) == ((), ())
        assert values == x
        assert_same_bits(dml.scatter_elements(x, np.int64(0), np.int64(7)), np.int64(7))
    else:
        expected, places = references.top_k(x, 1, axis)
        assert_same_bits(values, expected)
        assert_same_bits(chosen, places)
        assert_same_bits(dml.gather_elements(x, chosen, axis=axis), expected)
        assert_same_bits(
            dml.scatter_elements(x, chosen, expected - 50, axis=axis),
            references.scatter_elements(x, chosen, expected - 50, axis),
        )
        assert_same_bits(dml.join(dml.split(x, x.shape[axis], axis=axis), axis=axis), x)
        assert_same_bits(dml.gather(x, np.array([0, -1]), axis=axis),
                         references.gather(x, np.array([0, -1]), axis))  # fmt: skip
    coordinates = dml.nonzero_coordinates(x)
    assert_same_bits(dml.gather_nd(x, coordinates), x[x != 0])
    assert_same_bits(dml.scatter_nd(np.zeros_like(x), coordinates, x[x != 0]), x)
