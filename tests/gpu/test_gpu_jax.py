"""JAX on a GPU: kernels inside and outside of its programs, on its stream."""

import threading

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

jax = pytest.importorskip("jax")
jnp = jax.numpy

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX has no GPU here"),
]

TYPES = ("float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool", "complex64")
CALLS = {
    "top_k": lambda x, i: dml.top_k(x, 3, index_dtype="int32"),
    "smallest": lambda x, i: dml.top_k(x, 2, axis=0, largest=False, index_dtype="uint32"),
    "nonzero": lambda x, i: dml.nonzero_coordinates(x, index_dtype="int32", size=11, fill_value=-1),
    "gather": lambda x, i: dml.gather(x, i, axis=0),
    "wrapped": lambda x, i: dml.gather_elements(x, i * 5, axis=0, mode="wrap"),
    "gather_elements": lambda x, i: dml.gather_elements(x, i, axis=0),
    "gather_nd": lambda x, i: dml.gather_nd(x, i[:, :2]),
    "scatter": lambda x, i: dml.scatter_elements(x, i, x, axis=0),
    "scatter_nd": lambda x, i: dml.scatter_nd(x, i[:, :1], x),
    "split": lambda x, i: dml.split(x, [1, 3], axis=0),
    "join": lambda x, i: dml.join([x, x, x], axis=1),
    "cast": lambda x, i: dml.cast(x, "float32"),
    "pad": lambda x, i: dml.pad(x, [(1, 0), (0, 2)], "edge"),
    "tile": lambda x, i: dml.tile(x, (2, 1)),
    "window": lambda x, i: dml.slice_window(x, (0, 1), (4, 3), (-1, 2)),
    "one_hot": lambda x, i: dml.one_hot(i, 3, x[0], axis=1),
    "reversed": lambda x, i: dml.reverse_subsequences(x, abs(i[:1]), axis=0),
}


def arrays(dtype):
    rng = np.random.default_rng(7)
    array = np.asarray(jnp.asarray(rng.integers(0, 3, (4, 5))).astype(dtype))
    return array, rng.integers(-4, 4, (4, 5)).astype(np.int32)


@pytest.mark.parametrize("transform", ["eager", "jit", "vmap"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("dtype", TYPES)
def test_results(transform, call, dtype):
    if dtype == "complex64" and call in ("top_k", "smallest", "cast"):
        pytest.skip("of real types")
    array, places = arrays(dtype)
    x, i = jnp.asarray(array), jnp.asarray(places)
    expected = CALLS[call](array, places)
    if transform == "vmap":
        got = jax.tree.map(lambda y: y[1], jax.vmap(CALLS[call])(jnp.stack([x[::-1], x]),
                                                                 jnp.stack([i, i])))  # fmt: skip
    else:
        got = (jax.jit(CALLS[call]) if transform == "jit" else CALLS[call])(x, i)
    expected, got = (v if isinstance(v, tuple) else (v,) for v in (expected, got))
    assert len(expected) == len(got)
    for theirs, ours in zip(expected, got, strict=True):
        assert {device.platform for device in ours.devices()} == {"gpu"}
        assert_same_bits(np.asarray(ours), theirs)


@pytest.mark.parametrize("dtype", TYPES)
def test_as_many_rows_as_there_are(dtype):
    array, _ = arrays(dtype)
    if dtype == "complex64":
        with pytest.raises(dml.ArgumentTypeError, match="real numbers"):
            dml.nonzero_coordinates(jnp.asarray(array))
        return
    rows = dml.nonzero_coordinates(jnp.asarray(array))
    assert {device.platform for device in rows.devices()} == {"gpu"}
    assert np.array_equal(rows, dml.nonzero_coordinates(array))


@pytest.mark.parametrize("shape", [(64, 50_257), (300, 4000), (3, 1_000_000)])
def test_large_selections(shape):
    array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    traced = jax.jit(lambda x: dml.top_k(x * 2, 50, index_dtype="int32"))
    values, indices = traced(jnp.asarray(array))
    expected = dml.top_k(array * 2, 50, index_dtype="int32")
    assert_same_bits(np.asarray(values), expected.values)
    assert_same_bits(np.asarray(indices), expected.indices)


def test_order_on_the_stream():
    """What comes before and after a call in a program is waited for."""

    @jax.jit
    def program(x):
        for _ in range(20):
            x = dml.scatter_elements(jnp.sin(x), jnp.arange(x.shape[0])[::-1], x, reduction="add")
            x = x / 2
        return x

    def by_jax(x):
        for _ in range(20):
            x = (jnp.sin(x) + x[::-1]) / 2
        return x

    x = jnp.asarray(np.random.default_rng(2).standard_normal(1 << 22).astype(np.float32))
    np.testing.assert_allclose(program(x), jax.jit(by_jax)(x), rtol=1e-5, atol=1e-6)


def test_bad_indices():
    x, bad = jnp.arange(9.0), jnp.array([3, 9])
    with pytest.raises(dml.IndexOutOfRangeError, match=r"gather: indices\[1\]: expected -9..8"):
        dml.gather(x, bad)
    jax.block_until_ready(jax.jit(dml.gather)(x, bad))  # nobody waits for it inside of jit
    with pytest.raises(dml.IndexOutOfRangeError, match=r"gather: indices\[1\]: expected -9..8"):
        dml.synchronize()
    dml.synchronize()


def test_operands_in_host_memory():
    """They go to the GPU of the JAX arrays; calls that check indices wait."""
    array, places = arrays("float32")
    calls = [
        lambda x: dml.gather(x, places[0]),
        lambda x: dml.gather(x, places[0].tolist(), mode="wrap"),
        lambda x: dml.scatter_elements(x, places[:1], 1.0),
        lambda x: dml.join([x, array[::2]]),
        lambda x: dml.reverse_subsequences(x, [[1, 2, 3, 4, 0]], axis=0),
    ]
    for call in calls:
        for _ in range(2):
            got = call(jnp.asarray(array))
            assert {device.platform for device in got.devices()} == {"gpu"}
            assert_same_bits(np.asarray(got), call(array))
    large = 1 << 22
    with pytest.raises(dml.IndexOutOfRangeError, match=rf"got {large}"):
        dml.gather(jnp.ones(large), np.full(large, large, np.int32))


def test_gradients():
    array = np.random.default_rng(3).standard_normal((40, 300)).astype(np.float32)
    x = jnp.asarray(array)
    ours = jax.jit(jax.grad(lambda x: (dml.top_k(x, 5).values ** 2).sum()))(x)
    theirs = jax.jit(jax.grad(lambda x: (jax.lax.top_k(x, 5)[0] ** 2).sum()))(x)
    assert np.array_equal(ours, theirs)


def test_memory_is_given_back():
    x = jnp.ones(1 << 24)
    for _ in range(300):  # 128 MB each
        result = dml.join([x, x])
    assert float(result[-1]) == 1


def test_threads():
    array = np.random.default_rng(1).standard_normal((64, 300)).astype(np.float32)
    x = jnp.asarray(array)
    expected = dml.top_k(array, 5, index_dtype="int32")
    failed = []

    def work():
        for _ in range(50):
            got = dml.top_k(x, 5, index_dtype="int32")
            if not all(map(np.array_equal, got, expected)):
                failed.append(got)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
