"""A wrong argument is told in the same words whatever library the arrays are from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import anydml as dml

Take = Callable[[np.ndarray], Any]
Wrong = Callable[[Any, Take], Any]

X = np.zeros((3, 4), np.float32)
NOTHING = np.zeros((0, 4), np.float32)
AT = np.zeros((3, 2), np.int64)
U = np.zeros((3, 2), np.float32)
DOUBLE = np.float64
TOO_MANY = np.zeros((5, 2), np.int64)

WRONG: dict[str, Wrong] = {
    "top_k: k too large": lambda f, a: f.top_k(a(X), 9),
    "top_k: k no integer": lambda f, a: f.top_k(a(X), 1.5),
    "top_k: axis": lambda f, a: f.top_k(a(X), 1, axis=4),
    "top_k: largest": lambda f, a: f.top_k(a(X), 1, largest=2),
    "top_k: type of indices": lambda f, a: f.top_k(a(X), 1, index_dtype="float32"),
    "nonzero_coordinates: type": lambda f, a: f.nonzero_coordinates(
        a(X), index_dtype="int7", size=2
    ),
    "nonzero_coordinates: size": lambda f, a: f.nonzero_coordinates(a(X), size=-1),
    "gather: mode": lambda f, a: f.gather(a(X), a(AT), mode="wrp"),
    "gather: nothing to wrap to": lambda f, a: f.gather(a(NOTHING), a(AT), mode="wrap"),
    "gather: axis": lambda f, a: f.gather(a(X), a(AT), axis=5),
    "gather: axis no integer": lambda f, a: f.gather(a(X), a(AT), axis="a"),
    "gather_elements: rank": lambda f, a: f.gather_elements(a(X), a(AT[0])),
    "gather_elements: rank, broadcast": lambda f, a: f.gather_elements(
        a(X), a(AT[0]), broadcast=True
    ),
    "gather_elements: broadcast": lambda f, a: f.gather_elements(
        a(X), a(AT[:2]), axis=1, broadcast=True
    ),
    "gather_elements: sizes": lambda f, a: f.gather_elements(
        a(X), a(np.zeros((5, 2), int)), axis=1
    ),
    "gather_nd: batch_dims": lambda f, a: f.gather_nd(a(X), a(AT), batch_dims=3),
    "gather_nd: batch_dims below 0": lambda f, a: f.gather_nd(a(X), a(AT), batch_dims=-1),
    "gather_nd: tuples": lambda f, a: f.gather_nd(a(X), a(np.zeros((2, 5), int)), mode="wrap"),
    "gather_nd: nothing to wrap to": lambda f, a: f.gather_nd(a(NOTHING), a(AT), mode="wrap"),
    "gather_nd: batches below 0, no elements": lambda f, a: f.gather_nd(
        a(np.zeros((0, 0), np.float32)), a(np.zeros((1, 1), int)), batch_dims=-1, mode="wrap"
    ),
    "gather_nd: no axes": lambda f, a: f.gather_nd(a(X), a(np.zeros((), int)), mode="wrap"),
    "scatter_nd: one update without axes": lambda f, a: f.scatter_nd(
        a(X), a(np.zeros((), int)), a(U[0, 0])
    ),
    "scatter_nd: one update by long tuples": lambda f, a: f.scatter_nd(
        a(X), a(np.zeros((2, 5), int)), a(U[0, 0])
    ),
    "top_k: two of one element": lambda f, a: f.top_k(a(X[0, 0]), 2),
    "scatter_elements: reduction": lambda f, a: f.scatter_elements(
        a(X), a(AT), a(U), axis=1, reduction="ad"
    ),
    "scatter_elements: reduction, a list": lambda f, a: f.scatter_elements(
        a(X), a(AT), a(U), axis=1, reduction=["add"]
    ),
    "scatter_elements: sizes": lambda f, a: f.scatter_elements(a(X), a(AT), a(U[:2]), axis=1),
    "scatter_elements: rank": lambda f, a: f.scatter_elements(a(X), a(AT[0]), a(U[0]), axis=1),
    "scatter_elements: rank, broadcast": lambda f, a: f.scatter_elements(
        a(X), a(AT[0]), a(U[0]), axis=1, broadcast=True
    ),
    "scatter_elements: broadcast indices": lambda f, a: f.scatter_elements(
        a(X), a(AT[:2]), a(U), axis=1, broadcast=True
    ),
    "scatter_elements: broadcast updates": lambda f, a: f.scatter_elements(
        a(X), a(AT), a(U[:2]), axis=1, broadcast=True
    ),
    "scatter_elements: one element": lambda f, a: f.scatter_elements(a(X[0, 0]), a(AT), a(U[:2])),
    "scatter_elements: type": lambda f, a: f.scatter_elements(
        a(X), a(AT), a(U.astype(DOUBLE)), axis=1
    ),
    "scatter_nd: sizes": lambda f, a: f.scatter_nd(a(X), a(AT), a(U[0])),
    "split: sections": lambda f, a: f.split(a(X), 3, axis=1),
    "split: sizes": lambda f, a: f.split(a(X), (1, 2), axis=1),
    "join: sizes": lambda f, a: f.join([a(X), a(X[:, :3])]),
    "join: types": lambda f, a: f.join([a(X), a(X.astype(DOUBLE))]),
    "join: axis": lambda f, a: f.join([a(X), a(X)], axis=3),
    "cast: type": lambda f, a: f.cast(a(X), "flot32"),
    "pad: pairs": lambda f, a: f.pad(a(X), ((1, 2),) * 3),
    "pad: mode": lambda f, a: f.pad(a(X), 1, mode="wrp"),
    "slice_window: sizes": lambda f, a: f.slice_window(a(X), (0, 0), (4, 4)),
    "tile: repeats": lambda f, a: f.tile(a(X), "a"),
    "one_hot: axis": lambda f, a: f.one_hot(a(np.zeros(3, np.int32)), 3, axis=2),
    "one_hot: depth": lambda f, a: f.one_hot(a(np.zeros(3, np.int32)), -1),
    "one_hot: values": lambda f, a: f.one_hot(a(np.zeros(3, np.int32)), 3, a(X[0, :1])),
    "reverse_subsequences: lengths": lambda f, a: f.reverse_subsequences(
        a(X), a(np.zeros(5, np.int32)), axis=0
    ),
}


def error_of(call: Callable[[], Any]) -> str:
    """The error of a wrong call."""
    with pytest.raises(dml.AnyDMLError) as caught:
        call()
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_tensors_with_a_gradient(wrong: Wrong) -> None:
    torch = pytest.importorskip("torch")

    def take(array: np.ndarray) -> Any:
        tensor = torch.from_numpy(np.array(array))
        return tensor.requires_grad_(tensor.is_floating_point())

    assert error_of(lambda: wrong(dml, take)) == error_of(lambda: wrong(dml, lambda array: array))


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_traced_arrays(wrong: Wrong) -> None:
    jax = pytest.importorskip("jax")
    enabled = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:

        def take(array: np.ndarray) -> Any:
            arguments.append(array)
            return array

        def traced(*arrays: Any) -> Any:
            left = iter(arrays)
            return wrong(dml, lambda _: next(left))

        arguments: list[np.ndarray] = []
        plain = error_of(lambda: wrong(dml, take))
        assert error_of(lambda: jax.jit(traced)(*arguments)) == plain
    finally:
        jax.config.update("jax_enable_x64", enabled)


LAZY = {name: wrong for name, wrong in WRONG.items() if not name.startswith("nonzero")}  # no size


@pytest.mark.parametrize("wrong", LAZY.values(), ids=LAZY)
def test_lazy_arrays(wrong: Wrong) -> None:
    dask = pytest.importorskip("dask.array")

    def take(array: np.ndarray) -> Any:
        return dask.from_array(array, chunks=2)

    assert error_of(lambda: wrong(dml, take)) == error_of(lambda: wrong(dml, lambda array: array))


def test_join_of_nothing() -> None:
    libraries = [
        pytest.importorskip(name, exc_type=ImportError) for name in ("anydml.jax", "anydml.dask")
    ]
    messages = {error_of(lambda module=module: module.join([])) for module in (dml, *libraries)}
    assert messages == {"ArgumentError: arrays: expected at least one, got none"}
