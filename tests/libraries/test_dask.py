"""Array functions on dask arrays, chunked along every axis: the result in memory, to the bit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml as dml
from support import assert_same_bits, contents, indices, strategies

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

# Every example is a graph for each call.
fewer_examples = settings(max_examples=min(settings.default.max_examples, 30))

SHAPES = strategies.shapes(max_rank=3, max_elements=150)
WITH_AXIS = strategies.shapes(min_rank=1, max_rank=3, max_elements=150)
NUMERIC = (*strategies.NUMERIC, *strategies.ADDED_FLOATS)
REDUCTIONS = (None, "add", "mul", "min", "max", "mean")
MODES = ("raise", "clamp", "wrap", "clip")


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def chunked(data, array):
    """The array in chunks of any sizes, empty ones too."""
    chunks = []
    for size in array.shape:
        cuts = data.draw(st.lists(st.integers(0, size), max_size=3))
        ends = [0, *sorted(cuts), size]
        chunks.append(tuple(b - a for a, b in pairwise(ends)))
    return da.from_array(array, chunks=tuple(chunks)) if array.ndim else da.from_array(array)


def values(data, shape, kind):
    generator = data.draw(strategies.generators())
    return contents(generator, shape, np.dtype(kind), data.draw(strategies.flavours()))


def positions(data, shape, sizes):
    kind = data.draw(st.sampled_from(strategies.INDEX))
    return indices(data.draw(strategies.generators()), shape, sizes, kind)


def maybe(data, array):
    """An operand besides `x`: lazy or in memory."""
    return chunked(data, array) if data.draw(st.booleans()) else array


def same(got, expected):
    """Lazy, with the shape and type that come out, which are those in memory."""
    got = got if isinstance(got, tuple) else (got,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert isinstance(ours, da.Array)
        assert (ours.dtype, ours.ndim) == (theirs.dtype, theirs.ndim)
        assert (ours._meta.dtype, ours._meta.ndim) == (theirs.dtype, theirs.ndim)
        known = [size for size in ours.shape if not np.isnan(size)]
        assert known == list(theirs.shape)[ours.ndim - len(known) :]
        blocks = dask.compute(*ours.to_delayed().ravel(), optimize_graph=False)
        for at, block in zip(np.ndindex(ours.numblocks), blocks, strict=True):
            reference = [sizes[i] for sizes, i in zip(ours.chunks, at, strict=True)]
            assert all(np.isnan(w) or w == s for w, s in zip(reference, block.shape, strict=True))
            assert block.dtype == theirs.dtype
        assert_same_bits(ours.compute(), theirs)


@fewer_examples
@given(st.data(), st.sampled_from((*NUMERIC, "bool")), WITH_AXIS, st.booleans())
def test_top_k(data, kind, shape, largest):
    x = values(data, shape, kind)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    options = {"k": data.draw(st.integers(0, shape[axis])), "axis": axis, "largest": largest,
           "index_dtype": data.draw(st.sampled_from((None, *strategies.INDEX)))}  # fmt: skip
    same(dml.top_k(chunked(data, x), **options), dml.top_k(x, **options))


@fewer_examples
@given(st.data(), st.sampled_from((*NUMERIC, "bool", "complex64")), SHAPES)
def test_nonzero_coordinates(data, kind, shape):
    x = values(data, shape, "float32" if kind == "complex64" else kind).astype(kind)
    options = {"index_dtype": data.draw(st.sampled_from((None, *strategies.INDEX)))}
    same(
        dml.nonzero_coordinates(chunked(data, x), **options), dml.nonzero_coordinates(x, **options)
    )


@fewer_examples
@given(st.data(), st.sampled_from(strategies.NUMERIC), WITH_AXIS)
def test_split_and_join(data, kind, shape):
    x = values(data, shape, kind)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    lazy = chunked(data, x)
    points = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=3)))
    parts = dml.split(x, points=points, axis=axis)
    same(dml.split(lazy, points=points, axis=axis), parts)
    operands = [lazy, *(maybe(data, part) for part in parts)]
    same(dml.join(operands, axis=axis), dml.join([x, *parts], axis=axis))
    same(dml.join(operands, axis=None), dml.join([x, *parts], axis=None))
    others = [maybe(data, part.astype("float64")) for part in parts]
    expected = dml.join([x, *(part.astype("float64") for part in parts)], axis=axis, promote=True)
    same(dml.join([lazy, *others], axis=axis, promote=True), expected)


@fewer_examples
@given(st.data(), st.sampled_from(NUMERIC), SHAPES)
def test_movers(data, kind, shape):
    x = values(data, shape, kind)
    lazy = chunked(data, x)
    starts = [data.draw(st.integers(0, size)) for size in shape]
    sizes = [data.draw(st.integers(0, n - start)) for n, start in zip(shape, starts, strict=True)]
    strides = [data.draw(st.sampled_from((1, 2, 5, -1, -3))) for _ in shape]
    window = (starts, sizes, strides)
    same(dml.slice_window(lazy, *window), dml.slice_window(x, *window))
    if shape:
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        one = [1 if data.draw(st.booleans()) else size for size in shape]
        one[axis] = 1
        lengths = data.draw(strategies.generators()).integers(0, 12, one)
        same(dml.reverse_subsequences(lazy, maybe(data, lengths), axis=axis),
             dml.reverse_subsequences(x, lengths, axis=axis))  # fmt: skip
    if kind in strategies.INDEX:
        where, depth = (
            data.draw(st.integers(-len(shape) - 1, len(shape))),
            data.draw(st.integers(0, 5)),
        )
        table = data.draw(st.sampled_from((np.array([2.5, 7.5]), (0, 1))))
        same(dml.one_hot(lazy, depth, table, axis=where), dml.one_hot(x, depth, table, axis=where))
    repeats = data.draw(st.lists(st.integers(0, 3), max_size=4))
    same(dml.tile(lazy, repeats), dml.tile(x, repeats))
    to = data.draw(st.sampled_from(NUMERIC))
    same(dml.cast(lazy, to), dml.cast(x, to))
    width = [(data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))) for _ in shape]
    mode = data.draw(st.sampled_from(("constant", "edge", "reflect", "symmetric", "wrap")))
    try:
        expected = dml.pad(x, width, mode, 1)
    except dml.ArgumentError:  # nothing to repeat
        with pytest.raises(dml.ArgumentError):
            dml.pad(lazy, width, mode, 1)
        return
    same(dml.pad(lazy, width, mode, 1), expected)


@fewer_examples
@given(st.data(), st.sampled_from(NUMERIC), SHAPES, st.sampled_from(MODES))
def test_gather(data, kind, shape, mode):
    x = values(data, shape, kind)
    axis = data.draw(st.integers(-max(1, len(shape)), max(1, len(shape)) - 1))
    size = shape[axis] if shape else 1
    looked_up = data.draw(strategies.shapes(max_rank=2, max_elements=20))
    lookup = positions(data, (0,) if not size else looked_up, size)
    got = dml.gather(chunked(data, x), maybe(data, lookup), axis=axis, mode=mode)
    same(got, dml.gather(x, lookup, axis=axis, mode=mode))


@fewer_examples
@given(st.data(), st.sampled_from(NUMERIC), SHAPES, st.sampled_from(MODES))
def test_gather_elements(data, kind, shape, mode):
    x = values(data, shape, kind)
    axis = data.draw(st.integers(-max(1, len(shape)), max(1, len(shape)) - 1))
    looked_up = [data.draw(st.integers(0, size)) for size in shape]
    if shape:
        looked_up[axis] = data.draw(st.integers(0, 2 * shape[axis]))
    lookup = positions(data, tuple(looked_up), shape[axis] if shape else 1)
    lazy = chunked(data, x)
    got = dml.gather_elements(lazy, maybe(data, lookup), axis=axis, mode=mode)
    same(got, dml.gather_elements(x, lookup, axis=axis, mode=mode))
    one = [1] * len(shape)
    if shape:
        one[axis] = lookup.shape[axis]
    narrow = positions(data, tuple(one), shape[axis] if shape else 1)
    options = {"axis": axis, "mode": mode, "broadcast": True}
    same(dml.gather_elements(lazy, maybe(data, narrow), **options),
         dml.gather_elements(x, narrow, **options))  # fmt: skip


def tuples(data, shape, batch=0):
    length = data.draw(st.integers(0, len(shape) - batch))
    outer = data.draw(strategies.shapes(max_rank=2, max_elements=20))
    if 0 in shape[batch : batch + length]:
        outer = (0, *outer)
    return positions(data, (*shape[:batch], *outer, length), shape[batch : batch + length])


@fewer_examples
@given(st.data(), st.sampled_from(NUMERIC), SHAPES, st.sampled_from(MODES))
def test_gather_nd(data, kind, shape, mode):
    x = values(data, shape, kind)
    batch = data.draw(st.integers(0, len(shape)))
    lookup = tuples(data, shape, batch)
    got = dml.gather_nd(chunked(data, x), maybe(data, lookup), batch_dims=batch, mode=mode)
    same(got, dml.gather_nd(x, lookup, batch_dims=batch, mode=mode))


@fewer_examples
@given(st.data(), st.sampled_from((*NUMERIC, "bool", "complex64")), SHAPES,
       st.sampled_from(REDUCTIONS), st.booleans())  # fmt: skip
def test_scatter_elements(data, kind, shape, reduction, include_self):
    x = values(data, shape, "float32" if kind == "complex64" else kind).astype(kind)
    axis = data.draw(st.integers(-max(1, len(shape)), max(1, len(shape)) - 1))
    looked_up = [data.draw(st.integers(0, size)) for size in shape]
    if shape:
        looked_up[axis] = data.draw(st.integers(0, 2 * shape[axis]))
    lookup = positions(data, tuple(looked_up), shape[axis] if shape else 1)
    updates = values(data, lookup.shape, "int8").astype(kind)
    _scatters(data, dml.scatter_elements, x, lookup, updates,
              {"axis": axis, "reduction": reduction, "include_self": include_self})  # fmt: skip


@fewer_examples
@given(st.data(), st.sampled_from((*NUMERIC, "bool", "complex64")), SHAPES,
       st.sampled_from(REDUCTIONS), st.booleans())  # fmt: skip
def test_scatter_nd(data, kind, shape, reduction, include_self):
    x = values(data, shape, "float32" if kind == "complex64" else kind).astype(kind)
    lookup = tuples(data, shape)
    blocks = (*lookup.shape[:-1], *shape[lookup.shape[-1] :])
    updates = values(data, blocks, "int8").astype(kind)
    _scatters(data, dml.scatter_nd, x, lookup, updates,
              {"reduction": reduction, "include_self": include_self})  # fmt: skip


def _scatters(data, scatter, x, lookup, updates, options):
    operands = chunked(data, x), maybe(data, lookup), maybe(data, updates)
    try:
        expected = scatter(x, lookup, updates, **options)
    except dml.ArgumentTypeError:  # a reduction that the type has not
        with pytest.raises(dml.ArgumentTypeError):
            scatter(*operands, **options)
        return
    same(scatter(*operands, **options), expected)


def test_top_k_of_many_blocks():
    """More than are merged at once, at three levels."""
    x = (np.arange(40) * 7 % 41).astype(np.float32)
    same(dml.top_k(da.from_array(x, chunks=2), 3), dml.top_k(x, 3))


def test_one_hot_of_values_that_alone_are_lazy():
    values = da.from_array(np.array([0.0, 1.0]))
    assert dml.one_hot(np.array([0, 1]), 2, values).compute().tolist() == [[1, 0], [0, 1]]


def test_the_last_key_of_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = da.from_array(np.array([3, 1, 2, 0], ml_dtypes.bfloat16))
    values, indices = dml.top_k(x, 2, lengths=3, largest=False)
    assert (values.compute().tolist(), indices.compute().tolist()) == ([1, 2], [1, 2])
