"""Messages of the array functions about frequent slips say what to do."""

import numpy as np
import pytest

import anydml as dml

X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: dml.gather([1, 2], [2**70]), f"got {2**70}, which is out of range"),
        (lambda: dml.gather([1, 2], -(2**70)), f"got {-(2**70)}, which is out of range"),
        (lambda: dml.cast(X, "bool"), "use x != 0"),
        (lambda: dml.cast(X, bool), "use x != 0"),
        (lambda: dml.pad(X, 1, "replicate"), "'reflect', got 'replicate'; use 'edge'"),
        (lambda: dml.pad(X, 1, "circular"), "use 'wrap'"),
        (
            lambda: dml.split(X),
            "sections_or_sizes: expected an integer (a number of sections), the sizes of",
        ),
    ],
)
def test_advice(call, text):
    with pytest.raises(dml.AnyDMLError) as raised:
        call()
    assert text in str(raised.value)


def test_numpy_scalars_are_numbers():
    for number in (np.float64(2.5), np.float32(2.5), np.int8(2), np.float16(2.5)):
        for kind in ("float32", "float16", "float64"):
            x = np.zeros(3, kind)
            got = dml.scatter_elements(x, [0, 1], number)
            assert got.dtype == x.dtype
            assert got.tolist() == [number, number, 0]
            assert dml.pad(x, 1, constant=number).tolist() == [number, 0, 0, 0, number]
    with pytest.raises(dml.ArgumentTypeError, match=r"^updates: .* do not fit: 2\.5"):
        dml.scatter_elements(np.zeros(3, int), [0], np.float64(2.5))
    with pytest.raises(dml.ArgumentTypeError, match=r"^updates: expected float32"):
        dml.scatter_elements(np.zeros(3, np.float32), [0], np.array([2.5]))


def test_torch():
    torch = pytest.importorskip("torch")
    for dtype in (bool, torch.bool, "bool"):
        with pytest.raises(dml.ArgumentTypeError, match="use x != 0"):
            dml.cast(torch.zeros(2), dtype)
    assert dml.scatter_elements(torch.zeros(2), [0], np.float64(2.5)).tolist() == [2.5, 0]


def test_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    if not jax.config.jax_enable_x64:
        with pytest.raises(dml.ArgumentError, match=f"got {2**40}, which is out of range"):
            dml.gather(jnp.arange(3.0), [2**40])
    with pytest.raises(dml.ArgumentTypeError, match=r"^k: .*use static_argnums"):
        jax.jit(dml.top_k)(jnp.arange(3.0), 2)
    assert dml.scatter_elements(jnp.zeros(2), [0], np.float64(2.5)).tolist() == [2.5, 0]


def test_functions_of_other_libraries():
    for name, use in {
        "histogram": 'anydml.scatter_elements(bins, indices, 1, reduction="add")',
        "scatter_add": "anydml.scatter_elements with a reduction",
        "topk": "anydml.top_k",
    }.items():
        with pytest.raises(AttributeError) as raised:
            getattr(dml, name)
        assert str(raised.value) == f"module 'anydml' has no attribute {name!r}; use {use}"
    with pytest.raises(AttributeError, match=r"'frobnicate'$"):
        _ = dml.frobnicate
