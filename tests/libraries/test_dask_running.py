"""How dask arrays are computed: when, in how much memory, on which machines, and what fails."""

import os

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

X = np.random.default_rng(3).integers(0, 50, (12, 16)).astype(np.float32)
ROWS = np.random.default_rng(4).integers(-12, 12, (30, 16))
TUPLES = np.random.default_rng(5).integers(0, 12, (9, 5, 1))
UPDATES = np.random.default_rng(6).random((30, 16), np.float32)


def chunked(array, *chunks):
    return da.from_array(array, chunks=chunks)


def every_function(x, rows, tuples, updates):
    """Lazy results, or those in memory, of all functions."""
    yield from dml.top_k(x, 3, axis=0)
    yield dml.nonzero_coordinates(x)
    yield from dml.split(x, [5, 7])
    yield dml.join([x, x], axis=1)
    yield dml.join([x, updates], axis=None)
    yield dml.slice_window(x, (1, 2), (9, 9), (2, -1))
    yield dml.pad(x, (3, 20), "wrap")
    yield dml.tile(x, (2, 1))
    yield dml.cast(x, "int8")
    yield dml.gather(x, tuples)
    yield dml.gather_elements(x, rows)
    yield dml.gather_nd(x, tuples)
    for reduction in (None, "add", "mean"):
        yield dml.scatter_elements(x, rows, updates, reduction=reduction, include_self=False)
        yield dml.scatter_nd(x, tuples, updates[:9, None].repeat(5, 1), reduction=reduction)


def lazy_operands(x=X):
    return (x if isinstance(x, da.Array) else chunked(x, 5, 6), chunked(ROWS, 7, 9),
            chunked(TUPLES, 4, 2, 1), chunked(UPDATES, 11, 5))  # fmt: skip


EXPECTED = list(every_function(X, ROWS, TUPLES, UPDATES))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_schedulers(scheduler):
    results = list(every_function(*lazy_operands()))
    assert all(isinstance(result, da.Array) for result in results)
    for got, expected in zip(dask.compute(*results, scheduler=scheduler), EXPECTED, strict=True):
        assert_same_bits(got, expected)


@pytest.mark.parametrize("chunks", [(2, 2, 2), (1, 3, 2), (4, 1, 4), (3, 4, 1), (2, 5, 4)])
def test_rows_are_in_order_of_the_whole_array(chunks):
    x = np.ones((4, 5, 4), bool)
    found = dml.nonzero_coordinates(chunked(x, *chunks))
    assert_same_bits(found.compute(scheduler="synchronous"), np.argwhere(x))
    order = np.arange(80).reshape(x.shape)
    joined = dml.join([chunked(order, *chunks)], axis=None)
    assert_same_bits(joined.compute(scheduler="synchronous"), np.arange(80))
    # Each tuple comes again and again, in blocks along both axes: the last one wins.
    tuples = np.arange(80).reshape(4, 20, 1) % 3
    lazy = dml.scatter_nd(np.zeros(3), chunked(tuples, 3, 7, 1), order.reshape(4, 20) * 1.0)
    assert lazy.compute(scheduler="synchronous").tolist() == [78, 79, 77]


def test_padding_of_small_chunks_is_in_few():
    padded = dml.pad(da.ones(3, chunks=1), 10**7)
    assert padded.shape == (20_000_003,)
    assert padded.npartitions < 200


def test_nothing_is_computed_before_it_is_asked_for():
    def never(block):
        raise AssertionError("computed")

    x = chunked(X, 5, 6).map_blocks(never, meta=np.zeros((0, 0), np.float32))
    results = list(every_function(*lazy_operands(x)))
    assert [r.dtype for r in results] == [e.dtype for e in EXPECTED]
    with pytest.raises(AssertionError, match="computed"):
        results[0].compute(scheduler="synchronous")


def test_the_same_call_has_the_same_name():
    first, second = (list(every_function(*lazy_operands())) for _ in range(2))
    assert [one.name for one in first] == [other.name for other in second]
    other = dml.top_k(chunked(X, 5, 6), 2, axis=0).values
    assert other.name != first[0].name


def only(*blocks):
    """The array in blocks of which only some may be computed."""

    def look(block, block_info=None):
        assert not block_info or tuple(block_info[0]["chunk-location"]) in blocks
        return block

    return chunked(X, 3, 4).map_blocks(look, dtype=X.dtype)


def test_blocks_that_no_index_in_memory_names_are_not_computed():
    """Of X in 4 × 4 blocks of 3 × 4 elements."""
    rows = [0, 11, -1, 10]
    last = only(*((i, j) for i in (0, 3) for j in range(4)))
    for mode in ("raise", "clamp", "wrap", "clip"):
        found = dml.gather(last, rows, mode=mode)
        expected = dml.gather(X, rows, mode=mode)
        assert_same_bits(found.compute(scheduler="synchronous"), expected)
    beyond = dml.gather(only(*((3, j) for j in range(4))), [90], mode="clamp")
    assert_same_bits(beyond.compute(scheduler="synchronous"), X[[-1]])
    picked = np.array([[1, 9], [2, 10]])
    got = dml.gather_elements(only((0, 0), (0, 2)), picked, axis=1)
    assert_same_bits(got.compute(scheduler="synchronous"), np.take_along_axis(X[:2], picked, 1))
    got = dml.gather_nd(only((0, 1), (3, 3)), [[2, 4], [-1, -1]])
    assert_same_bits(got.compute(scheduler="synchronous"), X[[2, -1], [4, -1]])
    columns = np.array([[5], [7]] * 6)
    got = dml.gather_nd(only(*((i, 1) for i in range(4))), columns, batch_dims=1)
    assert_same_bits(got.compute(scheduler="synchronous"), X[np.arange(12), columns[:, 0]])
    assert dml.gather(only(), []).compute(scheduler="synchronous").shape == (0, 16)
    full = dml.gather_elements(only((0, 0), (1, 0), (2, 0), (3, 0)), [[1]], axis=1, broadcast=True)
    assert_same_bits(full.compute(scheduler="synchronous"), X[:, [1]])


def test_updates_come_only_to_blocks_that_an_index_in_memory_names():
    def steps(array):
        return sorted(key[2:] for key in array.dask if str(key[0]).endswith("-step"))

    x = chunked(X, 3, 4)
    many = np.zeros((1, 16), np.float32)
    assert steps(dml.scatter_nd(x, [[-1]], many)) == [(3, j) for j in range(4)]
    assert steps(dml.scatter_nd(x, [[2, 4], [3, 4], [2, 7]], [1, 2, 3])) == [(0, 1), (1, 1)]
    assert steps(dml.scatter_elements(x, [[1, 15]], [[0.0, 1.0]], axis=1)) == [(0, 0), (0, 3)]
    assert steps(dml.scatter_nd(x, np.zeros((0, 2), int), [])) == []
    lazy = dml.scatter_nd(x, da.from_array([[-1]]), many)
    assert len(steps(lazy)) == 16
    assert len(steps(dml.scatter_nd(x, np.zeros((1, 0), int), X[None]))) == 16


def test_indices_in_memory_are_cut_so_that_results_are_in_chunks():
    """However many there are: a chunk of the result is as large as Dask's, or as one of x."""
    x, rows = chunked(X, 3, 16), np.arange(3000) // 250  # not each block in each chunk
    with dask.config.set({"array.chunk-size": "8KiB"}):
        found = dml.gather(x, rows)
        assert max(found.chunks[0]) == 128
        assert_same_bits(found.compute(scheduler="synchronous"), X[rows])
        assert most_held(found) <= 2 * 8192 + 128 * 8
        found = dml.gather_nd(x, rows[:, None])
        assert max(found.chunks[0]) == 128
        assert_same_bits(found.compute(scheduler="synchronous"), X[rows])
        added = dml.scatter_nd(x, rows[:, None], X[rows], reduction="add")
        assert most_held(added) <= 2 * 8192
        assert_same_bits(added.compute(scheduler="synchronous"),
                         dml.scatter_nd(X, rows[:, None], X[rows], reduction="add"))  # fmt: skip
    with dask.config.set({"array.chunk-size": "16B"}):
        assert max(dml.gather(x, rows).chunks[0]) == 3  # a block of x
    with dask.config.set({"array.chunk-size": "1B"}):
        assert dml.gather(da.ones(3, chunks=1), [0, 1]).chunks == ((1, 1),)


def test_bad_indices_in_memory_are_told_at_once():
    """And the first one of all, be it in a later block."""
    x = chunked(X, 3, 4)
    bad = np.zeros((30, 16), int)
    bad[17, 3] = bad[18, 0] = 99
    calls = {
        "gather": lambda: dml.gather(x, bad),
        "gather_elements": lambda: dml.gather_elements(x, bad),
        "gather_nd": lambda: dml.gather_nd(x, bad[..., None]),
        "scatter_elements": lambda: dml.scatter_elements(x, bad, UPDATES),
        "scatter_nd": lambda: dml.scatter_nd(x, bad[..., None], np.zeros((30, 16, 16), "f4")),
    }
    for name, call in calls.items():
        with pytest.raises(dml.IndexOutOfRangeError, match=rf"{name}: indices\[17, 3") as raised:
            call()
        assert raised.value.value == 99


def test_results_own_their_memory():
    full = da.from_array(X, chunks=-1)
    none = np.zeros((0, 1), int), np.zeros((0, 16), "f4")
    for got in (*dml.split(full, 2), dml.join([full]), dml.slice_window(full, (0, 0), (2, 2)),
                dml.pad(full, 0), dml.tile(full, 1),
                dml.scatter_nd(full, *none),
                dml.scatter_elements(full, ROWS[:0], none[1])):  # fmt: skip
        assert not np.shares_memory(got.compute(scheduler="synchronous"), X)


class Largest(dask.callbacks.Callback):
    """The most bytes that any task had: what it was given, and what it made."""

    def __init__(self):
        self.maximum = 0
        self.input_bytes = {}

    def _pretask(self, key, dsk, state):
        self.input_bytes[key] = sum(_bytes(state["cache"][name]) for name in dsk[key].dependencies)

    def _posttask(self, key, value, dsk, state, worker_id):
        if "finalize" not in str(key):
            self.maximum = max(self.maximum, self.input_bytes[key] + _bytes(value))


def _bytes(value):
    if isinstance(value, tuple | list):
        return sum(map(_bytes, value))
    return getattr(value, "nbytes", 0)


def most_held(array):
    with Largest() as largest:
        dask.compute(*array.to_delayed().ravel(), scheduler="synchronous", optimize_graph=False)
    return largest.maximum


def test_no_task_holds_more_than_the_documented_chunks():
    chunk = 64 * 64 * 8
    random = da.random.default_rng(1)
    big, rows, tuples, one = dask.persist(
        random.random((640, 640), chunks=(64, 64)),
        random.integers(0, 640, (640, 640), chunks=(64, 64)),
        random.integers(0, 640, (4096, 2), chunks=(2048, 2)),
        random.random(4096, chunks=2048),
        scheduler="synchronous",
    )
    assert most_held(dml.top_k(big, 8, axis=0).values) <= 1.5 * chunk
    assert most_held(dml.nonzero_coordinates(big)) <= 4 * chunk  # all, in two columns, and a copy
    assert most_held(dml.gather(big, rows[:, 0])) <= 3 * chunk
    assert most_held(dml.gather_elements(big, rows)) <= 3.5 * chunk
    assert most_held(dml.gather_nd(big, tuples)) <= 3 * chunk
    assert most_held(dml.scatter_elements(big, rows, big)) <= 4.5 * chunk
    assert most_held(dml.scatter_elements(big, rows, big, reduction="mean")) <= 4.5 * chunk
    assert most_held(dml.scatter_nd(big, tuples, one)) <= 4.5 * chunk
    for moved in (dml.join([big, big], axis=None), dml.pad(big, 100, "reflect"),
                  dml.slice_window(big, (5, 5), (600, 600), (-1, 2)), *dml.split(big, 7,
                  near_equal=True), dml.cast(big, "float32"), dml.tile(big, 2)):  # fmt: skip
        assert most_held(moved) <= 3 * chunk


BAD = ROWS.copy()
BAD[17, 11] = 12


@pytest.mark.parametrize(
    ("call", "position", "name"),
    [
        (dml.gather_elements, (17, 11), "gather_elements"),
        (lambda x, i: dml.gather(x, i[:, 11]), (17,), "gather"),
        (lambda x, i: dml.gather_nd(x, i[:, 11, None]), (17, 0), "gather_nd"),
        (lambda x, i: dml.scatter_elements(x, i, UPDATES), (17, 11), "scatter_elements"),
        (lambda x, i: dml.scatter_nd(x, i[:, 11, None], UPDATES), (17, 0), "scatter_nd"),
    ],
    ids=["gather_elements", "gather", "gather_nd", "scatter_elements", "scatter_nd"],
)
def test_a_bad_index_is_told_with_its_place_among_all(call, position, name):
    lazy = call(chunked(X, 5, 6), chunked(BAD, 7, 9))
    with pytest.raises(dml.IndexOutOfRangeError) as raised:
        lazy.compute(scheduler="synchronous")
    assert (raised.value.position, raised.value.value) == (position, 12)
    with pytest.raises(dml.IndexOutOfRangeError) as alone:
        call(X, BAD)
    assert str(raised.value) == str(alone.value)
    assert str(raised.value).startswith(f"{name}: indices[")


def test_arguments_are_checked_at_once():
    x = chunked(X, 5, 6)

    def refused(call, message, error=dml.ArgumentError):
        with pytest.raises(error, match=message):
            call()

    kind = dml.ArgumentTypeError
    unknown = x[x[:, 0] > 3]
    refused(lambda: dml.top_k(unknown, 1), r"x: .* unknown .* axis 0; call x\.compute_chunk_sizes")
    refused(lambda: dml.gather(X, dml.nonzero_coordinates(x)), "indices: expected known sizes")
    refused(lambda: dml.split(x, 2, out=[None, None]), "out: expected None for dask arrays", kind)
    refused(lambda: dml.top_k(x, 17), "k: expected at most 16")
    refused(lambda: dml.gather(x, [0.5]), "indices: expected one of", kind)
    refused(lambda: dml.gather(x, x), "indices: expected one of", kind)
    refused(lambda: dml.gather(x, [0], mode="clmap"), "mode: expected .* did you mean 'clamp'")
    refused(lambda: dml.scatter_nd(x, TUPLES, chunked(UPDATES.astype("f8"), 5, 5)),
            "updates: expected float32", kind)  # fmt: skip
    refused(lambda: dml.scatter_elements(x, ROWS, UPDATES[:3]), "updates.shape: expected")
    refused(lambda: dml.join([x, x.astype("f8")]), r"arrays\[1\]: expected float32", kind)
    refused(lambda: dml.nonzero_coordinates(x, size=3), "size: expected None for a dask array")
    refused(lambda: dml.top_k(x.astype(object), 1), "x: expected numbers", kind)
    refused(lambda: dml.top_k(x.astype("c8"), 1), "x: expected one of", kind)


@pytest.mark.parametrize("mode", ["raise", "clamp", "wrap", "clip"])
def test_an_axis_without_elements_is_as_in_memory(mode):
    calls = {
        "gather": lambda x: dml.gather(x, [0], mode=mode),
        "gather_elements": lambda x: dml.gather_elements(x, [[0, 0, 0]], mode=mode),
        "gather_nd": lambda x: dml.gather_nd(x, [[0]], mode=mode),
    }
    for call in calls.values():
        with pytest.raises(dml.AnyDMLError) as alone:
            call(np.zeros((0, 3)))
        with pytest.raises(dml.AnyDMLError) as lazy:
            call(da.zeros((0, 3)))
        assert (type(lazy.value), str(lazy.value)) == (type(alone.value), str(alone.value))


def test_indices_of_any_rank_into_one_element():
    lookup = np.array([[0, -1, 0], [0, 0, -1]])
    got = dml.gather_elements(np.float32(5), da.from_array(lookup, chunks=(1, 2)))
    assert_same_bits(got.compute(), np.full((2, 3), 5, np.float32))


@pytest.mark.parametrize("mode", ["raise", "clamp", "wrap", "clip"])
@pytest.mark.parametrize("x", [np.float32(5), X[:, 0]], ids=["one", "row"])
def test_one_index_without_axes(x, mode):
    index = da.from_array(np.array(-1), chunks=-1)
    got = dml.gather(da.from_array(x, chunks=1), index, mode=mode)
    assert_same_bits(got.compute(), dml.gather(x, -1, mode=mode))


def test_foreign_byte_order_and_small_indices():
    foreign = dml.gather(X.astype(">f4"), da.from_array([1, 0], chunks=1))
    assert_same_bits(foreign.compute(), X[[1, 0]])
    swapped = chunked(X.astype(">f4"), 5, 6)
    assert_same_bits(dml.top_k(swapped, 2).values.compute(), dml.top_k(X, 2).values)
    small = chunked(ROWS.astype("i1"), 7, 9)
    assert_same_bits(dml.gather_elements(chunked(X, 5, 6), small).compute(),
                     dml.gather_elements(X, ROWS))  # fmt: skip


def dies_once(block, flag, block_info=None):
    """Ends the process that computes one of the blocks, the first time."""
    if block_info and block_info[0]["chunk-location"] == (2, 1):
        try:
            os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return block
        os._exit(1)
    return block


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the cluster's own
def test_a_cluster_of_which_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    flag = tmp_path / "killed"
    x = chunked(X, 3, 4).map_blocks(dies_once, str(flag), dtype=X.dtype)
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.admin.tick.limit": "1h"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
            local_directory=str(tmp_path), silence_logs="CRITICAL",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        workers = set(client.scheduler_info()["workers"])
        futures = client.compute(list(every_function(*lazy_operands(x))))
        for got, expected in zip(client.gather(futures), EXPECTED, strict=True):
            assert_same_bits(got, expected)
        assert flag.exists()
        assert set(client.scheduler_info()["workers"]) != workers
        bad = client.compute(dml.gather_elements(x, chunked(BAD, 7, 9)))
        with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[17, 11\]"):
            bad.result()
