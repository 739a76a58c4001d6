"""Sizes around the thresholds of every algorithm, against NumPy, at several numbers of threads."""

import numpy as np
import pytest

import anydml as dml
from support import Flavour, Poisoned, assert_same_bits, contents, indices, strategies

FLAVOURS = list(Flavour)
THREADS = (1, 2, 4)  # in a loop where what is expected takes long to find


@pytest.fixture(autouse=True)
def poisoned_pool():
    """Memory that the library allocates holds a pattern, not the zeros of fresh pages."""
    blocks = [dml.split(np.zeros(1 << shift, np.uint8), 1)[0] for shift in range(16, 24)]
    for block in blocks:
        block.fill(0xA5)


def keys(x, largest):
    """Integers in the order of the elements: NaN on top, -0.0 with 0.0."""
    if x.dtype.kind == "f":
        width = x.dtype.itemsize
        raw = x.view(f"i{width}")
        minimum, maximum = np.iinfo(raw.dtype).min, np.iinfo(raw.dtype).max
        ordered = np.where(raw < 0, minimum - raw, raw)
        ordered = np.where(np.isnan(x), maximum, ordered)
    else:
        ordered = x
    return ordered if not largest else ~ordered


def top_k(x, k, axis, largest):
    order = np.argsort(keys(x, largest), axis=axis, kind="stable")
    chosen = np.take(order, range(k), axis=axis)
    return np.take_along_axis(x, chosen, axis), chosen


# shape, axis, k: rows of every length class, few and many, other axes, a sort.
TOP_K = [
    ((3000, 17), 1, 3), ((2000, 64), 1, 8), ((500, 161), 1, 20), ((64, 4096), 1, 8),
    ((40, 5000), 1, 1200), ((3, 40_000), 1, 100), ((2, 70_001), 1, 5000), ((120_000,), 0, 3),
    ((120_000,), 0, 119_999), ((100_000,), 0, 100_000), ((700, 90), 0, 10), ((5000, 33), 0, 2),
    ((40, 30, 50), 1, 7), ((300_000,), 0, 40_000), ((1, 262_144), 1, 4000),
]  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["float32", "float16", "float64", "int8", "uint16", "int32", "uint64"]
)
@pytest.mark.parametrize(("shape", "axis", "k"), TOP_K, ids=str)
def test_top_k(shape, axis, k, kind):
    generator = np.random.default_rng(k)
    for i, flavour in enumerate(FLAVOURS):
        x = contents(generator, shape, kind, flavour)
        largest = bool((i + k) % 2)
        values, chosen = top_k(x, k, axis, largest)
        with dml.num_threads(1 + i % 4):
            got = dml.top_k(x, k, axis=axis, largest=largest)
        assert_same_bits(got.indices, chosen, f"indices, {flavour}")
        assert_same_bits(got.values, values, f"values, {flavour}")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "int8", "int32", "bool"])
@pytest.mark.parametrize(
    "shape",
    [(100_000,), (40_000, 7), (700, 900), (3, 5, 32_768), (32_767, 2), (65, 64, 63), (200_001, 1)],
    ids=str,
)
def test_nonzero_coordinates(shape, kind):
    generator = np.random.default_rng(len(shape))
    for i, flavour in enumerate(FLAVOURS):
        x = contents(generator, shape, kind, flavour)
        for array in (x, x.T, x[::-1]):
            expected = np.argwhere(array != 0)
            with dml.num_threads(1 + i % 4):
                assert_same_bits(dml.nonzero_coordinates(array), expected, str(flavour))
            kind = strategies.INDEX[i % 4]
            out = Poisoned(expected.shape, kind)
            dml.nonzero_coordinates(array, out=out.array)
            assert_same_bits(out.array, expected.astype(kind))
            assert out.gaps_intact()


SCATTER = [
    ((200_000,), 0, 60_000), ((200_000,), 0, 400_000), ((700, 800), 1, 800), ((700, 800), 0, 700),
    ((700, 800), 0, 90), ((50, 40, 60), 1, 70), ((30_000, 3), 0, 40_000), ((4, 90_000), 1, 1000),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(("shape", "axis", "count"), SCATTER, ids=str)
def test_scatter_and_gather_elements(shape, axis, count, kind):
    generator = np.random.default_rng(count)
    looked_up = (*shape[:axis], count, *shape[axis + 1 :])
    x = np.frombuffer(generator.bytes(int(np.prod(shape)) * np.dtype(kind).itemsize), kind)
    x = x.reshape(shape)
    updates = np.frombuffer(
        generator.bytes(int(np.prod(looked_up)) * np.dtype(kind).itemsize), kind
    ).reshape(looked_up)
    index_kind = ("int64", "int32", "uint64", "uint32")[count % 4]
    lookup = indices(generator, looked_up, shape[axis], index_kind)
    wrapped = np.where(lookup < 0, lookup + shape[axis], lookup).astype(np.int64)
    taken = np.take_along_axis(x, wrapped, axis)
    # Duplicates: NumPy's assignment goes in order, so the last one stays.
    expected = x.copy()
    np.put_along_axis(expected, wrapped, updates, axis)
    for threads in THREADS:
        with dml.num_threads(threads):
            assert_same_bits(dml.gather_elements(x, lookup, axis=axis), taken)
            assert_same_bits(dml.scatter_elements(x, lookup, updates, axis=axis), expected)
            target = Poisoned(shape, kind, values=x)
            dml.scatter_elements(target.array, lookup, updates, axis=axis, out=target.array)
        assert_same_bits(target.array, expected)
        assert target.gaps_intact()


REDUCED = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


@pytest.mark.parametrize("kind", ["int16", "uint8", "float32", "float64"])
@pytest.mark.parametrize("reduction", REDUCED)
@pytest.mark.parametrize(("shape", "axis", "count"), SCATTER, ids=str)
def test_reductions_in_row_major_order(shape, axis, count, reduction, kind):
    """`ufunc.at` goes in order too, so that floats agree to the bit."""
    generator = np.random.default_rng(count)
    looked_up = (*shape[:axis], count, *shape[axis + 1 :])
    draw = generator.normal if kind.startswith("f") else (
        lambda size: generator.integers(0, 100, size))  # fmt: skip
    x, updates = draw(size=shape).astype(kind), draw(size=looked_up).astype(kind)
    lookup = indices(generator, looked_up, shape[axis], "int64")
    wrapped = np.where(lookup < 0, lookup + shape[axis], lookup)
    at = list(np.meshgrid(*map(np.arange, looked_up), indexing="ij", sparse=True))
    at[axis] = wrapped
    expected = x.copy()
    with np.errstate(over="ignore"):
        REDUCED[reduction].at(expected, tuple(at), updates)
    for threads in THREADS:
        with dml.num_threads(threads):
            got = dml.scatter_elements(x, lookup, updates, axis=axis, reduction=reduction)
        assert_same_bits(got, expected)


ND = [
    ((40_000, 64), (30_000, 1)), ((40_000, 64), (90_000, 1)), ((600, 700), (100_000, 2)),
    ((600, 700), (500_000, 2)), ((60, 50, 40), (20_000, 2)), ((300_000,), (50_000, 1)),
    ((10, 100_000), (8, 1)),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize(("shape", "looked_up"), ND, ids=str)
def test_scatter_nd_and_gather_nd(shape, looked_up, kind, threads):
    generator = np.random.default_rng(looked_up[0])
    length = looked_up[1]
    x = contents(generator, shape, kind, Flavour.RANDOM)
    updates = contents(generator, looked_up[:-1] + shape[length:], kind, Flavour.RANDOM)
    lookup = indices(generator, looked_up, shape[:length], "int32")
    wrapped = np.where(lookup < 0, lookup + np.array(shape[:length]), lookup)
    at = tuple(np.moveaxis(wrapped, -1, 0))
    assert_same_bits(dml.gather_nd(x, lookup), x[at])
    expected = x.copy()
    expected[at] = updates
    assert_same_bits(dml.scatter_nd(x, lookup, updates), expected)
    target = Poisoned(shape, kind, values=x)
    dml.scatter_nd(target.array, lookup, updates, out=target.array)
    assert_same_bits(target.array, expected)
    assert target.gaps_intact()


@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "complex128"])
@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [
        ((40_000, 20), 0, 50_000),
        ((300, 900), 1, 700),
        ((20, 300, 40), 1, 900),
        ((90_000,), 0, 70_000),
    ],
    ids=str,
)
def test_gather(shape, axis, count, kind, threads):
    generator = np.random.default_rng(count)
    x = np.frombuffer(generator.bytes(int(np.prod(shape)) * np.dtype(kind).itemsize), kind)
    x = x.reshape(shape)
    lookup = indices(generator, (count // 10, 10), shape[axis], "int64")
    assert_same_bits(dml.gather(x, lookup, axis=axis), np.take(x, lookup, axis=axis))


@pytest.mark.parametrize("kind", ["int8", "float16", "float32", "float64", "complex128"])
@pytest.mark.parametrize(
    ("shape", "axis", "sizes"),
    [
        ((1024, 1536), 1, [512] * 3), ((4096, 256), 0, [512] * 8), ((64, 64, 256), 1, [1] * 64),
        ((1024, 1024), 1, [4] * 256), ((1000, 999), 1, [1] * 999), ((500, 600), 1, [599, 1]),
        ((300, 700), 1, [1, 2, 3, 694]), ((3_000_000,), 0, [1_000_001, 1_999_999]),
    ],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_split_and_join(shape, axis, sizes, kind, threads):
    generator = np.random.default_rng(len(sizes))
    x = np.frombuffer(generator.bytes(int(np.prod(shape)) * np.dtype(kind).itemsize), kind)
    x = x.reshape(shape)
    parts = dml.split(x, sizes, axis=axis)
    expected = np.split(x, np.cumsum(sizes)[:-1], axis)
    for part, reference in zip(parts, expected, strict=True):
        assert_same_bits(part, reference)
    assert_same_bits(dml.join(parts, axis=axis), x)
