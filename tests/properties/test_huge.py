"""Around 2^31 and 2^32 elements, and beyond 2^32 bytes, by descriptors and array functions.

Gigabytes of memory (at most 14 GiB at a time) and minutes, so only with ``-m heavy``. An array of
so many bytes holds ``i % 251`` at i, so that what belongs anywhere is known without a second array.
"""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import anydml as dml

pytestmark = pytest.mark.heavy

COUNTS = [2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1]
PERIOD = 251  # a prime: no power of two is a multiple of it
SIDES = (1, 46342, 46341)  # two sides below 2^16, their product above 2^31


def pattern(count):
    x = np.empty(count, np.uint8)
    x[:PERIOD] = np.arange(PERIOD)
    done = PERIOD
    while done < count:
        more = min(done, count - done)
        x[done : done + more] = x[:more]
        done += more
    return x


def is_pattern(x, first=0, chunk=PERIOD << 20):
    """Whether a flat array goes on as the pattern does from `first`; without a copy of it all."""
    expected = pattern(min(len(x), chunk) + PERIOD)[first % PERIOD :][: min(len(x), chunk)]
    return all(
        np.array_equal(x[at : at + chunk], expected[: len(x[at : at + chunk])])
        for at in range(0, len(x), chunk)
    )


def places_in(count, seed=0):
    """The ends, the powers of two, and some anywhere; each once."""
    edges = [0, 1, 2**16, 2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, count // 2, count - 2, count - 1]
    anywhere = np.random.default_rng(seed).integers(0, count, 2000)
    found = np.unique([*(edge for edge in edges if edge < count), *anywhere])
    return np.random.default_rng(seed).permutation(found)


def compiled(desc):
    return dml.Device("cpu").create_operator(desc).compile()


def tensor(kind, *sizes):
    return dml.TensorDesc(kind, sizes)


@pytest.fixture(scope="module", params=COUNTS, ids=hex)
def x(request):
    return pattern(request.param)


@pytest.fixture(autouse=True)
def nothing_kept():
    """No pool beside arrays of gigabytes."""
    usual = dml.memory_pool().limit
    dml.set_memory_pool_limit(0)
    yield
    dml.set_memory_pool_limit(usual)


@pytest.mark.parametrize("kind", ["UINT32", "INT64"])
def test_gathers(x, kind):
    count = x.size
    places = places_in(count)
    lookup = places.astype(kind.lower())
    if kind == "INT64":
        lookup[::3] -= count
    expected = (places % PERIOD).astype(np.uint8)
    m = len(places)
    data, out = tensor("UINT8", count), tensor("UINT8", m)
    index, tuples = tensor(kind, m), tensor(kind, m, 1)
    ops = [
        dml.Gather(input_tensor=data, indices_tensor=index, output_tensor=out, axis=0,
                   index_dimensions=1),
        dml.GatherElements(input_tensor=data, indices_tensor=index, output_tensor=out, axis=0),
        dml.GatherND(input_tensor=tensor("UINT8", 1, count), indices_tensor=tuples,
                     output_tensor=tensor("UINT8", 1, m), input_dimension_count=1,
                     indices_dimension_count=2),
    ]  # fmt: skip
    for desc in ops:
        shaped = x.reshape(desc.input_tensor.sizes), lookup.reshape(desc.indices_tensor.sizes)
        run = compiled(desc)
        assert np.array_equal(run(*shaped).reshape(-1), expected)
        bad = shaped[1].copy()
        bad.flat[m // 2] = count
        with pytest.raises(dml.IndexOutOfRangeError) as error:
            run(shaped[0], bad)
        assert error.value.position[0] == m // 2
        clamped = dml.Device("cpu").create_operator(desc, out_of_range="clamp").compile()
        got = clamped(shaped[0], bad).reshape(-1)
        assert got[m // 2] == (count - 1) % PERIOD


def test_scatters(x):
    count = x.size
    places = places_in(count)
    m = len(places)
    updates = (255 - np.arange(m) % 4).astype(np.uint8)  # no value of the pattern
    data, index, update = tensor("UINT8", count), tensor("INT64", m), tensor("UINT8", m)
    flat = dml.Scatter(input_tensor=data, indices_tensor=index, updates_tensor=update,
                       output_tensor=data, axis=0)  # fmt: skip
    wide = tensor("UINT8", 1, count)
    nd = dml.ScatterND(input_tensor=wide, indices_tensor=tensor("INT64", m, 1),
                       updates_tensor=tensor("UINT8", 1, m), output_tensor=wide,
                       input_dimension_count=1, indices_dimension_count=2)  # fmt: skip
    for desc in (flat, nd):
        full = x.reshape(desc.input_tensor.sizes)
        lookup = places.reshape(desc.indices_tensor.sizes)
        arguments = updates.reshape(desc.updates_tensor.sizes)
        result = compiled(desc)(full, lookup, arguments).reshape(-1)
        assert np.array_equal(result[places], updates)
        result[places] = places % PERIOD
        assert is_pattern(result)
        # In place, with a bad index first: then nothing is written.
        bad = lookup.copy()
        bad.flat[-1] = -count - 1
        target = result.reshape(desc.input_tensor.sizes)
        names = {"InputTensor": target, "UpdatesTensor": arguments, "OutputTensor": target}
        with pytest.raises(dml.IndexOutOfRangeError):
            compiled(desc).dispatch(**names, IndicesTensor=bad)
        assert is_pattern(result)
        compiled(desc).dispatch(**names, IndicesTensor=lookup)
        assert np.array_equal(result[places], updates)
        result[places] = places % PERIOD
        assert is_pattern(result)
        del result, target, names


def test_split_and_join(x):
    count = x.size
    lengths = [1, count // 4, count - count // 4 - 3, 2]
    full, parts = tensor("UINT8", count), [tensor("UINT8", length) for length in lengths]
    pieces = compiled(dml.Split(input_tensor=full, output_tensors=parts, axis=0))(x)
    first = 0
    for piece, length in zip(pieces, lengths, strict=True):
        assert len(piece) == length
        assert is_pattern(piece, first)
        first += length
    joined = compiled(dml.Join(input_tensors=parts, output_tensor=full, axis=0))(pieces)
    del pieces
    assert is_pattern(joined)


@pytest.mark.parametrize("k", [5, 1_000_000])
def test_top_k(x, k):
    count = x.size
    out, index = tensor("UINT8", k), tensor("UINT32", k)
    for direction, value in (("DECREASING", PERIOD - 1), ("INCREASING", 0)):
        desc = dml.TopK1(input_tensor=tensor("UINT8", count), output_value_tensor=out,
                         output_index_tensor=index, axis=0, k=k,
                         axis_direction=direction)  # fmt: skip
        values, indices = compiled(desc)(x)
        assert np.all(values == value)
        assert np.array_equal(indices, value + PERIOD * np.arange(k))
    tail = [count - 1, count - 2, count // 2]
    kept = x[tail].copy()
    x[tail] = 253, 255, 254
    try:
        found = dml.top_k(x, 3)
    finally:
        x[tail] = kept
    assert found.values.tolist() == [255, 254, 253]
    assert found.indices.tolist() == [tail[1], tail[2], tail[0]]


def test_nonzero(x):
    """Few of many; all but every 251st by the descriptor, where its output is not too large."""
    sparse = np.zeros(x.size, np.int8)
    places = np.sort(places_in(x.size))
    sparse[places] = -1
    found = dml.nonzero_coordinates(sparse)
    assert found.dtype == np.int64
    assert np.array_equal(found[:, 0], places)
    del sparse, found
    if x.size > 2**31 + 1:
        return
    count, rows = np.zeros(1, np.uint32), np.zeros((x.size, 1), np.uint32)
    desc = dml.NonzeroCoordinates(
        input_tensor=tensor("UINT8", x.size), output_count_tensor=tensor("UINT32", 1),
        output_coordinates_tensor=tensor("UINT32", x.size, 1),
    )  # fmt: skip
    compiled(desc).dispatch(InputTensor=x, OutputCountTensor=count, OutputCoordinatesTensor=rows)
    assert count[0] == x.size - -(-x.size // PERIOD)
    for first in range(0, int(count[0]), 2**26):
        j = np.arange(first, min(first + 2**26, int(count[0])), dtype=np.int64)
        assert np.array_equal(rows[first : first + len(j), 0], j + j // (PERIOD - 1) + 1)
    assert not rows[count[0] :].any()


# ---- [1, 46342, 46341] --------------------------------------------------------------------------


def test_two_sides_whose_product_is_above_two_to_the_31():
    rows, columns = SIDES[1:]
    flat = pattern(rows * columns)
    x = flat.reshape(SIDES)

    def value(row, column):
        return (np.asarray(row, np.int64) * columns + column) % PERIOD

    data = tensor("UINT8", *SIDES)
    last = np.arange(rows)
    for axis in (1, 2):
        best = dml.top_k(x, 2, axis=axis)
        side = x if axis == 2 else x.transpose(0, 2, 1)
        places = [0, 1, side.shape[1] // 2, side.shape[1] - 1]
        for line in places:
            order = np.argsort(-side[0, line].astype(int), kind="stable")[:2]
            taken = best.indices[0, line] if axis == 2 else best.indices[0, :, line]
            assert taken.tolist() == order.tolist()
    lookup = np.array([[[columns - 1], [0]]], np.int64)
    picked = dml.gather_elements(x, np.broadcast_to(lookup[:, :1], (1, rows, 1)), axis=2)
    assert np.array_equal(picked[0, :, 0], value(last, columns - 1))
    taken = dml.gather(x, [-1, 0, rows - 2], axis=1)
    for i, row in enumerate((rows - 1, 0, rows - 2)):
        assert np.array_equal(taken[0, i], value(row, np.arange(columns)))
    taken = dml.gather(x, [-1, 0], axis=2)
    assert np.array_equal(taken[0, :, 0], value(last, columns - 1))
    corners = np.array([[0, rows - 1, columns - 1], [0, rows - 1, 0], [0, 0, columns - 1]])
    assert np.array_equal(dml.gather_nd(x, corners), value(corners[:, 1], corners[:, 2]))
    put = dml.scatter_nd(x, corners, np.array([255, 254, 253], np.uint8))
    assert put[tuple(corners.T)].tolist() == [255, 254, 253]
    put[tuple(corners.T)] = value(corners[:, 1], corners[:, 2])
    assert is_pattern(put.reshape(-1))
    desc = dml.Scatter(input_tensor=data, indices_tensor=tensor("UINT32", 1, rows, 1),
                       updates_tensor=tensor("UINT8", 1, rows, 1), output_tensor=data,
                       axis=2)  # fmt: skip
    indices = np.full((1, rows, 1), columns - 1, np.uint32)
    put = compiled(desc)(x, indices, np.full((1, rows, 1), 252, np.uint8))
    assert np.all(put[0, :, -1] == 252)
    put[0, :, -1] = value(last, columns - 1)
    assert is_pattern(put.reshape(-1))
    del put
    for axis in (1, 2):
        sizes = [1, 7, SIDES[axis] - 8]
        parts = dml.split(x, sizes, axis=axis)
        assert np.array_equal(parts[2][0, -1], x[0, -1, -parts[2].shape[2] :])
        assert is_pattern(dml.join(parts, axis=axis).reshape(-1))
    zeros = np.flatnonzero(flat[:1000] == 0)
    assert dml.nonzero_coordinates(x[:, :1, :300])[:2].tolist() == [[0, 0, 1], [0, 0, 2]]
    assert len(zeros) == 4
    mostly = np.zeros(SIDES, bool)
    mostly[tuple(corners.T)] = True
    assert dml.nonzero_coordinates(mostly).tolist() == sorted(corners.tolist())


# ---- offsets of more than 2^32 bytes ------------------------------------------------------------

FAR = 2**32 + 24  # bytes from row to row


@pytest.fixture(params=[FAR, -FAR], ids=["forwards", "backwards"])
def far(request):
    """Makes (3, 40) arrays whose rows are 4 GiB apart: few of their pages are ever touched."""

    def make(kind="float64", values=None):
        memory = np.zeros((2 * FAR + 4096) // 8, np.int64).view(np.uint8)
        first = 0 if request.param > 0 else 2 * FAR
        size = np.dtype(kind).itemsize
        view = np.ndarray((3, 40), kind, memory, first, (request.param, size))
        if values is not None:
            view[...] = values
        return view

    return make


def test_rows_four_gibibytes_apart(far):
    generator = np.random.default_rng(1)
    values = generator.permutation(np.arange(120.0)).reshape(3, 40)
    x = far(values=values)
    for axis, k in ((0, 2), (1, 5)):
        for one, other in zip(dml.top_k(x, k, axis=axis), dml.top_k(values, k, axis=axis),
                              strict=True):  # fmt: skip
            assert np.array_equal(one, other)
    assert np.array_equal(dml.nonzero_coordinates(x), np.argwhere(values))
    lookup = generator.integers(-3, 3, (3, 40))
    at = lookup % 3
    expected_values = np.take_along_axis(values, at, 0)
    for indices in (lookup, far("int64", lookup)):
        for out in (None, far()):
            assert np.array_equal(dml.gather_elements(x, indices, axis=0, out=out), expected_values)
            put = values.copy()
            np.put_along_axis(put, at, expected_values, 0)
            assert np.array_equal(
                dml.scatter_elements(x, indices, expected_values, axis=0, out=out), put
            )
            far_updates = far(values=expected_values)
            assert np.array_equal(
                dml.scatter_elements(x, indices, far_updates, axis=0, out=out), put
            )
    for out in (None, far()):
        assert np.array_equal(dml.gather(x, [2, 0, -2], axis=0, out=out), values[[2, 0, 1]])
        assert np.array_equal(dml.gather_nd(x, [[2], [0], [1]], out=out), values[[2, 0, 1]])
        put = dml.scatter_nd(x, [[2], [0]], values[[0, 1]], out=out)
        assert np.array_equal(put, values[[1, 1, 0]])
        assert np.array_equal(dml.join([x[:, :7], x[:, 7:]], axis=1, out=out), values)
    parts = dml.split(x, [1, 2], axis=0)
    assert np.array_equal(np.concatenate(parts), values)


def test_contiguous_elements_beyond_two_to_the_32_bytes():
    count = 2**29 + 5
    x = np.zeros(count)
    x[-2:] = 2, 1
    found = dml.top_k(x, 3)
    assert found.indices.tolist() == [count - 2, count - 1, 0]
    assert dml.nonzero_coordinates(x).tolist() == [[count - 2], [count - 1]]
    assert dml.gather(x, [-1, 0, -2]).tolist() == [1, 0, 2]
    assert dml.gather_elements(x, [count - 1, 0]).tolist() == [1, 0]
    assert dml.gather_nd(x, [[count - 2]]).tolist() == [2]
    target = dml.scatter_elements(x, [count - 3, -1], np.array([7.0, 8.0]))
    assert target[-3:].tolist() == [7, 2, 8]
    assert np.count_nonzero(target) == 3
    del target
    parts = dml.split(x, [count - 1, 1])
    assert parts[1].tolist() == [1]
    assert parts[0][-1] == 2
    joined = dml.join(parts)
    assert joined[-2:].tolist() == [2, 1]
    broadcast = as_strided(x[-2:], (2, 2**30), (8, 0))  # 16 GiB of elements in 16 bytes
    assert dml.gather(broadcast, [2**30 - 1, 0], axis=1).tolist() == [[2, 2], [1, 1]]
