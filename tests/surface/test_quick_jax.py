"""Arrays of JAX outside of its transformations: results, devices, memory, errors and programs."""

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from support import assert_same_bits, jax_64_bits

jax = pytest.importorskip("jax")
jnp = jax.numpy

from anydml.jax import _eager  # noqa: E402 (where there is JAX)

INDICES = np.array([1, 0, -1], np.int32)
KIND = type(jnp.zeros(0))


@pytest.fixture(scope="module", autouse=True)
def _types_as_by_default():
    """Other tests' JAX may have 64-bit types: the benchmark's does."""
    with jax_64_bits(False):
        yield


def plain():
    return jnp.array([5.0, 6.0, 7.0])


@pytest.fixture
def compilations():
    """The names of what JAX compiles from now on."""
    found = []

    def listen(name, seconds, **_):
        if "backend_compile" in name:
            found.append(name)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return found


@pytest.mark.parametrize(
    "dtype",
    ["bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
     "float32", "float64", "complex64", "complex128", "bfloat16", "float8_e4m3fn", "float8_e5m2",
     "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz"],
)  # fmt: skip
def test_types(dtype):
    with jax_64_bits(True):
        x = jnp.array([0, 1, 1, 0]).astype(dtype)
        lookup = jnp.asarray(INDICES)
        calls = [
            lambda x, i: dml.gather_elements(x, i, axis=0),
            lambda x, i: dml.scatter_elements(x, i, x[:3], axis=0),
            lambda x, i: dml.split(x, [1, 3])[1],
            lambda x, i: dml.join([x, x]),
            lambda x, i: dml.tile(x, 2),
        ]
        for call in calls:
            result = call(x, lookup)
            assert (type(result), result.dtype) == (KIND, x.dtype)
            assert_same_bits(np.asarray(result), call(np.asarray(x), INDICES))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_types_of_less_than_a_byte(dtype):
    with pytest.raises(dml.ArgumentTypeError, match=rf"^x: expected numbers .* got {dtype}"):
        dml.gather(plain().astype(dtype), jnp.array([0]))


def test_keys_of_random_numbers():
    with pytest.raises(dml.ArgumentTypeError, match=r"^x: "):
        dml.gather(jax.random.key(0)[None], jnp.array([0]))


def test_without_64_bits_nothing_becomes_narrower_silently():
    with jax_64_bits(True):
        assert dml.top_k(plain(), 1).indices.dtype == np.int64
        assert dml.nonzero_coordinates(plain()).dtype == np.int64
    with jax_64_bits(False):
        assert dml.top_k(plain(), 1, index_dtype="uint32").indices.dtype == np.uint32
        assert dml.top_k(plain(), 1).indices.dtype == np.int32
        assert dml.nonzero_coordinates(plain()).dtype == np.int32
        with pytest.raises(dml.ArgumentTypeError, match="a type that JAX has, got int64"):
            dml.top_k(plain(), 1, index_dtype="int64")


def test_a_call_waits_for_the_check_of_indices_of_numpy():
    x, indices = jnp.ones(2**22), np.full(2**22, 2**23)
    with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[0\]: .*got 8388608"):
        dml.gather(x, indices)


def test_a_bad_index():
    for large in (0, 1 << 20):  # JAX runs large programs on another thread
        lookup = jnp.concatenate([jnp.zeros(large + 1, np.int32), jnp.array([3, 0])])
        with pytest.raises(dml.IndexOutOfRangeError, match=rf"indices\[{large + 1}\]: exp") as one:
            dml.gather_elements(plain(), lookup, axis=0)
        assert (one.value.position, one.value.value, one.value.size) == ((large + 1,), 3, 3)
    with pytest.raises(dml.IndexOutOfRangeError, match=r"scatter_nd: indices\[0, 1\]: .*axis 1"):
        dml.scatter_nd(jnp.zeros((2, 3)), jnp.array([[1, -4]]), jnp.zeros(1))
    assert dml.gather(plain(), jnp.array([9]), mode="clamp").tolist() == [7]


def test_a_length_below_0():
    with pytest.raises(dml.ArgumentError, match=r"^lengths: expected 0 or more, got -1$"):
        dml.reverse_subsequences(plain(), jnp.array([-1]), axis=0)
    traced = jax.jit(lambda x, n: dml.reverse_subsequences(x, n, axis=0))
    assert traced(plain(), jnp.array([-1])).tolist() == [5, 6, 7]


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 4), (0, 3), (1,), (40, 900)])
def test_results_are_those_of_arrays(shape):
    rng = np.random.default_rng(5)
    array = rng.integers(-3, 3, shape).astype(np.float32)
    x = jnp.asarray(array)
    calls = [
        lambda a: dml.top_k(a, min(2, shape[-1]), index_dtype="int32"),
        lambda a: dml.nonzero_coordinates(a, index_dtype="int32"),
        lambda a: dml.nonzero_coordinates(a, index_dtype="int32", size=5, fill_value=-1),
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
            assert type(got) is KIND
            assert_same_bits(np.asarray(got), expected)


def test_subnormal_numbers_stay():
    """XLA flushes them to zero on its own threads."""
    x = np.array([1e-40, -2e-39, 3e-41, 0], np.float32)
    half = np.array([1e-7, 6e-8, 3e-8, 0], np.float32)  # subnormal as float16
    calls = [
        (x, lambda x: dml.scatter_elements(x, INDICES % 4, x[:3], reduction="add")),
        (half, lambda x: dml.cast(x, "float16")),
        (x, lambda x: dml.top_k(x, 4, index_dtype="int32").indices),
        (x, lambda x: dml.nonzero_coordinates(x, size=4, index_dtype="int32")),
        (x + 1j * x[::-1], lambda x: dml.nonzero_coordinates(x, size=4, index_dtype="int32")),
    ]
    for array, call in calls:
        for transform in (lambda call: call, jax.jit):
            assert_same_bits(np.asarray(transform(call)(jnp.asarray(array))), call(array))


@pytest.mark.parametrize(
    ("first", "second"),
    [(1, True), (True, 1), (1, 1.0)],
)
def test_arguments_that_compare_equal_are_told_apart(first, second):
    x = plain()
    results = []
    for k in (first, second):
        try:
            results.append(dml.top_k(x, k).values.tolist())
        except dml.ArgumentTypeError:
            results.append(None)
    assert results == [[7.0] if type(k) is int else None for k in (first, second)]


def test_constants_that_compare_equal_are_told_apart(compilations):
    x = plain()
    for constant in (0.0, -0.0, 0, -0.0, 0.0):
        bits = np.asarray(dml.pad(x, 1, constant=constant)).view(np.uint32)
        assert bits[0] == (1 << 31 if str(constant) == "-0.0" else 0)
    dml.pad(x, 1, constant=float("nan"))
    del compilations[:]
    padded = dml.pad(x, 1, constant=float("nan"))
    assert not compilations
    assert np.isnan(padded[0])


def test_a_program_is_compiled_once(compilations):
    x, lookup = jnp.arange(12.0), jnp.array([1, 2])
    calls = [
        lambda: dml.top_k(x, 2),
        lambda: dml.gather(x, lookup),
        lambda: dml.split(x, [5, 7]),
        lambda: dml.pad(x, [(1, 2)], "edge"),
        lambda: dml.slice_window(x, [1], [4], [2]),
        lambda: dml.cast(x, np.dtype("int32")),
        lambda: dml.cast(x, np.int32),
        lambda: dml.join([x, x], axis=np.int64(0)),
        lambda: dml.nonzero_coordinates(x, size=3),
    ]
    for call in calls:
        call()
        del compilations[:]
        call()
        assert not compilations


def test_num_threads_of_a_block():
    def threads_of(call):
        with dml.num_threads(3):
            return "threads=3" in str(jax.make_jaxpr(call)(plain()))

    with dml.num_threads(3):  # what a call in a block compiles
        program = _eager.program_of(lambda x: dml.top_k(x, 1))
    assert threads_of(program)
    assert not threads_of(lambda x: dml.top_k(x, 1))


def test_results_outlive_their_operands():
    x = jnp.arange(30_000.0)
    results = dml.split(x, 1) + dml.split(x, 1)
    rows = dml.nonzero_coordinates(x)
    expected = np.asarray(x).copy()
    x.delete()
    doubled = jax.jit(lambda a: a * 2)(results[0])
    assert_same_bits(np.asarray(results[0]), expected)
    assert_same_bits(np.asarray(doubled), expected * 2)
    assert rows[:, 0].tolist() == list(range(1, 30_000))
    with pytest.raises(dml.ArgumentTypeError, match=r"^x: .* got one that was deleted"):
        dml.split(x, 3)
    with pytest.raises(dml.ArgumentTypeError, match=r"^arrays\[1\]: .* got one that was deleted"):
        dml.join([results[0], x])


def test_memory_of_results_is_given_back():
    x = jnp.arange(30_000.0)
    dml.nonzero_coordinates(x)
    gc.collect()
    before = native.pool()[2]  # lent
    rows = dml.nonzero_coordinates(x)
    assert rows.shape == (29_999, 1)
    del rows
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
    expected = np.arange(199_999, -1, -1, dtype=np.float32)
    try:
        for _ in range(20):
            result = dml.top_k(current[0], 200_000)
            assert_same_bits(np.asarray(result.values), expected)
    finally:
        stop.set()
        thread.join()


def test_threads():
    x = jnp.asarray(np.random.default_rng(1).standard_normal((64, 3000)).astype(np.float32))
    expected = dml.top_k(np.asarray(x), 5, index_dtype="int32")
    failed = []

    def work():
        for _ in range(20):
            got = dml.top_k(x, 5)
            if not all(map(np.array_equal, got, expected)):
                failed.append(got)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_out():
    x, out = plain(), np.zeros(3, np.float32)
    assert dml.gather(x, jnp.asarray(INDICES), out=out) is out
    assert out.tolist() == [6, 5, 7]
    parts = dml.split(x, [1, 2], out=[None, np.zeros(2, np.float32)])
    assert [part.tolist() for part in parts] == [[5], [6, 7]]
    both = np.zeros(6, np.float32)
    assert dml.join([x, x], out=both) is both
    assert both.tolist() == [5, 6, 7, 5, 6, 7]
    with pytest.raises(dml.ArgumentError, match=r"^out: expected a writable array"):
        dml.tile(x, 1, out=plain())


def test_other_operands():
    """Lists and arrays of NumPy beside an array of JAX; such an array beside one of NumPy."""
    x = plain()
    for lookup in (INDICES, INDICES.tolist(), INDICES.astype(np.int64), INDICES.astype(np.int8)):
        result = dml.gather(x, lookup)
        assert type(result) is KIND
        assert result.tolist() == [6, 5, 7]
        with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[0\]"):
            dml.gather(x[:1], lookup)
    assert type(dml.gather(np.asarray(x), jnp.asarray(INDICES))) is np.ndarray
    joined = dml.join([x, np.zeros(1, np.float32), [1]])
    assert type(joined) is KIND
    assert joined.tolist() == [5, 6, 7, 0, 1]


def test_results_have_the_weak_types_of_operands():
    weak = jax.lax.full((8,), 2.0)  # a Python number's type
    plain, first = jnp.ones(8), jnp.arange(2)
    calls = {
        jnp.pad: (dml.pad, (weak, 1)),
        jnp.take: (dml.gather, (weak, first)),
        jnp.tile: (dml.tile, (weak, 2)),
        jnp.concatenate: (dml.join, ([weak, weak],)),
        lambda *_: jnp.concatenate([weak, plain]): (dml.join, ([weak, plain],)),
        lambda *_: weak[:2]: (dml.slice_window, (weak, (0,), (2,))),
        lambda *_: jnp.split(weak, 2)[0]: (lambda *x: dml.split(*x)[0], (weak, 2)),
        lambda *_: weak.at[first].set(plain[:2]): (dml.scatter_elements, (weak, first, plain[:2])),
        lambda *_: plain.at[first].set(weak[:2]): (dml.scatter_elements, (plain, first, weak[:2])),
        lambda *_: jax.lax.top_k(weak, 2)[0]: (lambda *x: dml.top_k(*x).values, (weak, 2)),
        lambda *_: first: (lambda *x: dml.top_k(*x).indices, (weak, 2)),
        lambda *_: weak.astype("float32"): (dml.cast, (weak, "float32")),
    }
    assert weak.weak_type
    for theirs, (ours, arguments) in calls.items():
        expected = theirs(*arguments).weak_type
        assert ours(*arguments).weak_type == expected, ours
        assert jax.jit(lambda ours=ours, a=arguments: ours(*a))().weak_type == expected, ours
        (mapped,) = (jax.vmap(lambda _, ours=ours, a=arguments: ours(*a))(first).weak_type,)
        assert mapped == expected, ours


def test_inside_of_a_trace():
    x = jnp.arange(10.0)

    @jax.jit
    def traced(y):
        return y + dml.split(x, 5)[1] + dml.gather(x, jnp.array([1, 2]))

    assert traced(jnp.zeros(2)).tolist() == [3, 5]


def test_the_first_call_inside_of_a_trace():
    code = """
import jax, anydml as dml, jax.numpy as jnp
traced = jax.jit(lambda x, i: dml.gather(x, i))
assert traced(jnp.arange(3.0), jnp.array([2])).tolist() == [2]
assert dml.gather(jnp.arange(3.0), jnp.array([1])).tolist() == [1]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


DEVICES = """
import jax, numpy as np, anydml as dml
import jax.numpy as jnp
first, second = jax.devices()
array, rows = np.arange(12, dtype="f4").reshape(3, 4), np.array([2, 0])
calls = [
    lambda x, i: dml.top_k(x, 2).values,
    lambda x, i: dml.top_k(x, 2).indices,
    lambda x, i: dml.nonzero_coordinates(x),
    lambda x, i: dml.nonzero_coordinates(x, size=2),
    lambda x, i: dml.gather(x, i),
    lambda x, i: dml.gather(x, [1]),
    lambda x, i: dml.scatter_nd(x, i[:, None], x[:2]),
    lambda x, i: dml.split(x, 3)[2],
    lambda x, i: dml.join([x, x]),
    lambda x, i: dml.pad(x, 1),
    lambda x, i: dml.cast(x, "int32"),
    lambda x, i: dml.reverse_subsequences(x, i[:1, None], axis=0),
]
for device, committed in ((first, True), (second, True), (first, False)):
    place = lambda a: jax.device_put(a, device) if committed else jnp.asarray(a)
    x, i = place(array), place(rows)
    for number, call in enumerate(calls):
        result = call(x, i)
        assert result.devices() == {device}, (number, device, result.devices())
        assert result.committed == committed, (number, device, result.committed)
        assert np.array_equal(result, call(array, rows)), number
x, y = jax.device_put(array, first), jax.device_put(array, second)
for call in (lambda: dml.join([x, y]), lambda: dml.gather(x, jax.device_put(rows, second))):
    try:
        call()
    except dml.ArgumentError as error:
        assert str(error).startswith("arrays: expected all on one device, got "), error
    else:
        raise SystemExit("accepted")
sharding = jax.sharding.NamedSharding(
    jax.sharding.Mesh(np.array([first, second]), "d"), jax.sharding.PartitionSpec(None, "d"))
split = jax.device_put(array, sharding)
assert np.array_equal(dml.top_k(split, 2).values, dml.top_k(array, 2).values)
assert np.array_equal(dml.nonzero_coordinates(split, size=11), dml.nonzero_coordinates(array))
mapped = jax.pmap(lambda x: dml.top_k(x, 1).values)(np.arange(6, dtype="f4").reshape(2, 3))
assert mapped.tolist() == [[2], [5]]
"""


def test_devices():
    """Results are where their operands are, and as committed as these."""
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", DEVICES], check=True, env={**os.environ, **flags})
