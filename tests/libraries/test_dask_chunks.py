"""Which chunks array functions on dask arrays read, make and give back."""

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

from anydml.dask import _graphs  # noqa: E402 (it needs Dask)

X = np.arange(24, dtype="f4").reshape(6, 4)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.mark.parametrize("places", [[5, 3, 4], [0, 5, 2], [-1, -3], [2]])
def test_positions_of_one_chunk_and_of_several(places):
    lazy, at = da.from_array(X, chunks=3), np.array(places)
    assert_same_bits(dml.gather(lazy, at).compute(), X[at])
    assert_same_bits(dml.gather_nd(lazy, at[:, None]).compute(), X[at])
    rows = np.repeat(at[:, None], 4, axis=1)
    found = dml.gather_elements(lazy, rows, axis=0).compute()
    assert_same_bits(found, np.take_along_axis(X, rows, axis=0))


@pytest.mark.parametrize(
    ("shape", "chunks", "expected"),
    [
        ((6, 6), (2, 3), ((1,) * 6, (6,))),
        ((4, 8), (4, 1), ((1,) * 4, (4, 4))),
        ((6, 6), ((3, 3), (1, 5)), ((2,) * 3, (6,))),
        ((4, 4), (1, 2), None),
        ((4, 4), (2, 4), None),
        ((4, 4), (4, 2), ((2, 2), (4,))),
        ((0, 4), (0, 2), None),
    ],
)
def test_blocks_follow_one_another_and_are_no_larger(shape, chunks, expected):
    lazy = da.zeros(shape, chunks=chunks)
    assert _graphs.is_in_order(lazy.chunks) == (expected is None)
    assert _graphs.in_order(lazy, 2).chunks == (expected or lazy.chunks)


def test_indices_in_memory_are_cut_where_each_names_much():
    assert _graphs.choose_chunks((4,), 2**60, 1) == ((1,) * 4,)
    assert _graphs.choose_chunks((4,), 1, 2**30) == ((4,),)


@pytest.mark.parametrize("chunks", [-1, 3])
def test_results_have_memory_of_their_own(chunks):
    """Dask copies a result of one block; before 2025.7 it may not have."""
    source = X.copy()
    lazy = da.from_array(source, chunks=chunks, asarray=False)
    for result in (
        dml.slice_window(lazy, [0, 0], [6, 4]), dml.slice_window(lazy, [0, 0], [3, 4]),
        dml.pad(lazy, 0), dml.join([lazy]), *dml.split(lazy, 1), *dml.split(lazy, 2),
        dml.tile(lazy, (1, 1)),
    ):  # fmt: skip
        assert not np.shares_memory(result.compute(), source)


@pytest.mark.parametrize(
    ("shape", "chunks", "axis", "largest"),
    [
        ((4, 2**14), (2, 2**13), 0, 16),  # rows of 64 KiB: a MiB
        ((4, 2**10), (2, 2**9), 0, 256),
        ((4, 8), (4, 3), 1, 2**15),
        ((2, 2**18), (1, 2**18), 0, 1),  # a row is more
        ((2**19,), (2**18,), 0, 2**18),
    ],
)
def test_what_is_padded_with_comes_in_blocks_of_some_size(shape, chunks, axis, largest):
    filled = _graphs.filled(da.zeros(shape, chunks=chunks), axis, 2**19, np.float64(3))
    assert max(filled.chunks[axis]) == largest
    assert filled.shape == (*shape[:axis], 2**19, *shape[axis + 1 :])


def test_foreign_byte_order_becomes_this_machines():
    lazy = da.from_array(X.astype(">f4"), chunks=3)
    for result in (dml.tile(lazy, (1, 1)), dml.slice_window(lazy, [0, 0], [6, 4])):
        assert result.dtype.isnative
        assert_same_bits(result.compute(), X)


def test_what_says_the_kind_of_blocks_has_no_elements():
    lazy = da.from_array(X, chunks=3)
    for result in (dml.gather(lazy, [1]), dml.top_k(lazy, 2).values, dml.tile(lazy, (1, 2))):
        assert result._meta.size == 0
        assert (result._meta.ndim, result._meta.dtype) == (result.ndim, result.dtype)


def test_arrays_without_elements():
    empty = da.zeros((0, 3), chunks=(0, 2))
    assert dml.join([empty]).compute().shape == (0, 3)
    assert dml.join([empty, empty], axis=1).compute().shape == (0, 6)
    assert dml.reverse_subsequences(empty, np.zeros((0, 1), "i8"), axis=1).compute().shape == (0, 3)
    for mode in ("wrap", "clip"):
        assert dml.gather(empty, np.zeros((0, 2), "i8"), mode=mode).compute().shape == (0, 2, 3)
        assert dml.gather(empty, da.zeros(0, dtype="u8"), mode=mode).compute().shape == (0, 3)


def test_nothing_is_spread_to_less():
    for shape, expected in (((2, 0), (0,)), ((3, 1), (1, 1)), ((2,), (3,))):
        with pytest.raises(ValueError, match="shape"):
            _graphs.broadcast(da.zeros(shape), expected)
    assert _graphs.broadcast(da.zeros((1, 3)), (2, 3)).shape == (2, 3)
    assert _graphs.broadcast(da.zeros((1,)), (0,)).shape == (0,)
