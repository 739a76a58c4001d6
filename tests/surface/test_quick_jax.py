"""JAX's arrays in quick calls: which are taken, what becomes of their memory, and of 64 bits."""

import gc
import resource
import sys
import threading

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from support import assert_same_bits

jax = pytest.importorskip("jax")
jnp = jax.numpy

dml.gather(jnp.zeros(2), jnp.array([0]))  # tells the quick calls of it
elements = native.quick("gather_elements")
TESTED = "0.10.2"  # with this version, which CI installs, nothing is left out
if jax.__version__ != TESTED and elements(None, jnp.zeros(1), jnp.array([0]), 0, "raise") is None:
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


# ---- splits that come again and again -----------------------------------------------------------

OFTEN = 1000  # native/python/jax_split.cpp


@pytest.mark.parametrize(
    ("shape", "sizes", "axis"),
    [((16,), 4, 0), ((3, 10), [2, 0, 7, 1], 1), ((3, 10), [2, 0, 7, 1], -1), ((6, 0, 2), 2, 0)],
    ids=str,
)
def test_splits_that_come_often_are_the_same(shape, sizes, axis):
    """NaNs keep their bits; kinds of arrays do not change from one call to the next."""
    split = native.quick("split")
    bits = np.random.default_rng(5).integers(0, 2**32, shape, np.uint32)
    bits[bits % 3 == 0] |= 0x7F800001
    x = jnp.asarray(bits.view(np.float32))
    first = split(None, x, sizes, axis)
    made = [split(None, x, sizes, axis) for _ in range(OFTEN + 5)]
    for parts in (made[0], made[-1]):
        assert type(parts) is tuple
        for part, wanted in zip(parts, first, strict=True):
            assert type(part) is type(wanted)
            assert part.aval == wanted.aval
            assert part.weak_type is wanted.weak_type is False
            assert part.committed is wanted.committed
            assert part.sharding == wanted.sharding
            assert_same_bits(np.asarray(part), np.asarray(wanted))
    # Others of the same size, and what is weak, deleted or another type.
    other = jnp.asarray(bits.view(np.int32))
    for value in (x + 1, other, other.astype("int16")):
        parts = split(None, value, sizes, axis)
        points = np.cumsum([len(np.asarray(part)) if axis == 0 else part.shape[-1]
                            for part in parts])[:-1]  # fmt: skip
        for part, wanted in zip(parts, np.split(np.asarray(value), points, axis), strict=True):
            assert_same_bits(np.asarray(part), wanted)


@pytest.mark.parametrize(
    ("x", "sizes"),
    [(np.zeros(2000, "f4"), 4), (np.zeros(9, "f4"), 9), (np.zeros(8, "f4"), 1),
     (np.zeros((1, 1, 1, 1, 1, 1, 4), "f4"), 1)],
    ids=["large", "many", "one", "rank"],
)  # fmt: skip
def test_splits_for_which_no_program_is_made(x, sizes):
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, seconds, **_: compiled.append(name) if "backend_compile" in name else None
    )
    x = jax.block_until_ready(jnp.asarray(x))
    del compiled[:]
    for _ in range(OFTEN + 1):
        dml.split(x, sizes)
    assert not compiled


def test_a_split_that_comes_often_inside_of_a_trace():
    """Values that are known are split at once there too."""
    x = jnp.arange(10.0)
    seen = []

    @jax.jit
    def traced(y):
        seen.extend(dml.split(x, 5) for _ in range(OFTEN + 5))
        return y

    traced(x)
    assert {type(part) for parts in seen for part in parts} == {type(x)}
    assert [part.tolist() for part in seen[-1]] == [part.tolist() for part in seen[0]]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_program_that_jax_does_not_make(error, monkeypatch):
    """JAX's errors leave the split as it was; an interrupt is the caller's."""
    asked = []

    def refused(*_, **__):
        asked.append(error)
        raise error("no program")

    monkeypatch.setattr(jax, "jit", refused)
    split, x = native.quick("split"), jnp.arange(22.0 if error is RuntimeError else 26.0)
    for _ in range(OFTEN - 1):
        split(None, x, 2, 0)
    assert not asked
    if error is RuntimeError:
        assert len(split(None, x, 2, 0)) == 2
    else:
        with pytest.raises(KeyboardInterrupt, match="no program"):
            split(None, x, 2, 0)
    assert [part.shape[0] for part in split(None, x, 2, 0)] == [x.size // 2] * 2
    assert asked == [error]


class Made:
    """What stands for a program that JAX has compiled, in the steps of making one."""

    def __init__(self, run):
        self.run = run

    def lower(self, _):
        return self

    def compile(self):
        return self.run


@pytest.mark.parametrize("size", [34, 38, 42, 46])
def test_a_program_that_does_not_give_the_parts(size, monkeypatch):
    """Its errors leave the split as it was, and so does another result; an interrupt is told."""
    given = {34: RuntimeError("broken"), 38: KeyboardInterrupt("stop"), 42: [1, 2], 46: (1, 2, 3)}
    result = given[size]

    def program(_):
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr(jax, "jit", lambda *_, **__: Made(program))
    split, x = native.quick("split"), jnp.arange(float(size))
    for _ in range(OFTEN):
        split(None, x, 2, 0)
    if size == 38:
        with pytest.raises(KeyboardInterrupt, match="stop"):
            split(None, x, 2, 0)
    else:
        assert [part.tolist() for part in split(None, x, 2, 0)] == x.reshape(2, -1).tolist()


def test_weak_types_stay_out_of_results():
    x = jnp.ones(8) * 1.0
    weak = jax.lax.full((8,), 2.0)  # a Python number's type
    assert weak.weak_type
    for _ in range(OFTEN + 2):
        dml.split(x, 2)
    assert [part.weak_type for part in dml.split(weak, 2)] == [False, False]
