"""JAX's arrays in quick calls: which are taken, what becomes of their memory, and of 64 bits."""

import gc
import resource
import sys
import threading

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from anydml.testing import assert_same_bits

jax = pytest.importorskip("jax")
jnp = jax.numpy

dml.gather(jnp.zeros(2), jnp.array([0]))  # tells the quick calls of it
elements = native.quick("gather_elements")
if elements(None, jnp.zeros(1), jnp.array([0]), 0, "raise") is None:
    pytest.skip("this JAX makes arrays in another way", allow_module_level=True)

INDICES = np.array([1, 0, -1], np.int32)


def taken(x, indices=None):
    """What the quick call gives; None where it leaves the call to the general path."""
    return elements(None, x, jnp.asarray(INDICES if indices is None else indices), 0, "raise")


def plain():
    return jnp.array([5.0, 6.0, 7.0])


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
     "float32", "float64", "complex64", "complex128"],
)  # fmt: skip
def test_plain_arrays_are_taken(dtype):
    with jax.enable_x64(True):
        x = jnp.array([0, 1, 1, 0]).astype(dtype)
        result = taken(x)
        assert type(result) is type(x)
        assert result.dtype == x.dtype
        assert result.shape == (3,)
        assert_same_bits(np.asarray(result), np.asarray(x)[INDICES])


def test_without_64_bits_nothing_becomes_narrower_without_a_word():
    with jax.enable_x64(True):
        wide = jnp.zeros(3, "float64"), jnp.zeros(3, "complex128")
        complex64 = jnp.zeros(3, "complex64")
        assert dml.top_k(plain(), 1).indices.dtype == np.int64
        assert dml.nonzero_coordinates(plain()).dtype == np.int64
    with jax.enable_x64(False):
        assert [taken(x) for x in wide] == [None, None]
        assert taken(complex64) is not None
        top_k = native.quick("top_k")
        assert top_k(dml.TopKResult, plain(), -1, 1, True, "int64") is None
        assert top_k(dml.TopKResult, plain(), -1, 1, True, "uint32").indices.dtype == np.uint32
        assert top_k(dml.TopKResult, plain(), -1, 1, True, None).indices.dtype == np.int32
        assert dml.nonzero_coordinates(plain()).dtype == np.int32
        with pytest.raises(dml.ArgumentTypeError, match="a type that JAX has, got int64"):
            dml.top_k(plain(), 1, index_dtype="int64")


def deleted():
    x = plain()
    x.delete()
    return x


@pytest.mark.parametrize(
    "make",
    [
        deleted,
        lambda: plain().astype("bfloat16"),
        lambda: np.asarray(plain()),
        lambda: [5.0, 6.0, 7.0],
        lambda: jax.random.key(0),
    ],
    ids=["deleted", "bfloat16", "an array of NumPy's", "a list", "a key"],
)
def test_others_are_left_alone(make):
    assert taken(make()) is None


def test_tracers_and_other_kinds_are_left_alone():
    seen = []

    def look(x):
        seen.append(taken(x))
        return x

    jax.jit(look)(plain())
    jax.vmap(look)(jnp.stack([plain(), plain()]))
    jax.grad(lambda x: look(x).sum())(plain())
    seen.append(elements(None, plain(), INDICES, 0, "raise"))
    seen.append(native.quick("join")(None, [plain(), np.asarray(plain())], 0))
    assert seen == [None] * 5


def test_a_bad_index_is_left_to_the_general_path():
    assert taken(plain(), [0, 3, 0]) is None
    with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[1\]: expected -3..2"):
        dml.gather_elements(plain(), jnp.array([0, 3, 0]), axis=0)


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (0, 3), (1,), (40, 900)])
def test_results_are_those_of_arrays(shape):
    rng = np.random.default_rng(5)
    array = rng.integers(-3, 3, shape).astype(np.float32)
    x = jnp.asarray(array)
    calls = [
        lambda a: dml.top_k(a, min(2, shape[-1]), index_dtype="int32"),
        lambda a: dml.nonzero_coordinates(a, index_dtype="int32"),
        lambda a: dml.split(a, shape[0] or 1),
        lambda a: dml.join([a] * 11, axis=-1),
        lambda a: dml.split(a, [0, shape[0]]),
        lambda a: dml.cast(a, "int32"),
        lambda a: dml.pad(a, (2, 1), constant=1.5),
        lambda a: dml.slice_window(a, (0,) * a.ndim, shape, (-1,) * a.ndim),
        lambda a: dml.tile(a, 2),
    ]
    for call in calls:
        ours, theirs = call(x), call(array)
        ours = ours if isinstance(ours, tuple) else (ours,)
        theirs = theirs if isinstance(theirs, tuple) else (theirs,)
        for got, expected in zip(ours, theirs, strict=True):
            assert type(got) is type(x)
            assert_same_bits(np.asarray(got), expected)


def test_results_outlive_their_operands_and_give_their_memory_back():
    gc.collect()
    before = native.pool()[2]  # lent
    x = jnp.arange(30_000.0)
    results = dml.split(x, 1) + dml.split(x, 1)
    lent = native.pool()[2] - before
    assert lent >= 2 * x.nbytes
    expected = np.asarray(x).copy()
    x.delete()
    doubled = jax.jit(lambda a: a * 2)(results[0])
    assert_same_bits(np.asarray(results[0]), expected)
    assert_same_bits(np.asarray(doubled), expected * 2)
    del results, doubled
    gc.collect()
    assert native.pool()[2] == before


def test_operands_that_nobody_else_holds_any_more():
    # Deleted or donated meanwhile is another thing: there JAX ends the process, whoever reads.
    stop = threading.Event()
    current = [jnp.arange(200_000, dtype="float32")]

    def replace():
        while not stop.is_set():
            current[0] = jnp.arange(200_000, dtype="float32")

    thread = threading.Thread(target=replace)
    thread.start()
    expected = np.arange(200_000, dtype=np.float32)
    try:
        for _ in range(100):
            (result,) = dml.split(current[0], 1)
            assert_same_bits(np.asarray(result), expected)
    finally:
        stop.set()
        thread.join()


def test_nothing_is_left_behind():
    x, bad = plain(), jnp.array([0, 3, 0])
    taken(x)
    counts = [sys.getrefcount(value) for value in (x, bad, type(x), None)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(20_000):
        taken(x)
        elements(None, x, bad, 0, "raise")
    # An array is some 1,000 bytes, beside its 200 of memory.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8_000
    now = [sys.getrefcount(value) for value in (x, bad, type(x), None)]
    assert [b - a for a, b in zip(counts, now, strict=True)] == pytest.approx([0] * 4, abs=50)
