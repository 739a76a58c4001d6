"""The functions that docs/names.md puts side by side give the same."""

import numpy as np
import pytest

import anydml as dml

X = np.array([[3.0, 9.0, 5.0], [7.0, 1.0, 2.0]])
ALONG = np.array([[2], [0]])
PAIRS = np.array([[0, 1], [1, 2]])
NEW = np.array([7.5, 8.5])
PADDINGS = [("edge", "replicate"), ("reflect", "reflect"), ("wrap", "circular")]


def lists(value):
    """Arrays of any library as lists."""
    if isinstance(value, tuple | list):
        return [lists(part) for part in value]
    return np.asarray(value).tolist()


def put(x):
    np.put_along_axis(x, ALONG, 0.5, axis=1)
    return x


def assigned(x):
    x[tuple(PAIRS.T)] = NEW
    return x


def added(x):
    np.add.at(x, ([0, 0],), 1.0)
    return x


NUMPY = {
    "nonzero": (lambda: dml.nonzero_coordinates(X), lambda: np.argwhere(X)),
    "gather": (lambda: dml.gather(X, [2, 0], axis=1), lambda: np.take(X, [2, 0], axis=1)),
    "gather_elements": (
        lambda: dml.gather_elements(X, ALONG, axis=1), lambda: np.take_along_axis(X, ALONG, 1),
    ),
    "gather_nd": (lambda: dml.gather_nd(X, PAIRS), lambda: X[tuple(PAIRS.T)]),
    "scatter_elements": (
        lambda: dml.scatter_elements(X, ALONG, np.full((2, 1), 0.5), axis=1),
        lambda: put(X.copy()),
    ),
    "scatter_nd": (lambda: dml.scatter_nd(X, PAIRS, NEW), lambda: assigned(X.copy())),
    "add": (
        lambda: dml.scatter_nd(X, [[0], [0]], np.ones((2, 3)), reduction="add"),
        lambda: added(X.copy()),
    ),
    "split": (lambda: dml.split(X, [1, 2], axis=1), lambda: np.split(X, [1], axis=1)),
    "join": (lambda: dml.join([X, X], axis=1), lambda: np.concatenate([X, X], axis=1)),
    "slice": (lambda: dml.slice_window(X, [0, 1], [2, 2]), lambda: X[0:2, 1:3]),
    "tile": (lambda: dml.tile(X, (2, 1, 3)), lambda: np.tile(X, (2, 1, 3))),
    "pad": (lambda: dml.pad(X, 1), lambda: np.pad(X, 1)),
    "symmetric": (lambda: dml.pad(X, 1, "symmetric"), lambda: np.pad(X, 1, "symmetric")),
    "cast": (lambda: dml.cast(X, "int8"), lambda: X.astype("int8")),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMPY)
def test_numpy(name):
    ours, theirs = NUMPY[name]
    assert lists(ours()) == lists(theirs())


@pytest.mark.parametrize(("own_name", "other_name"), PADDINGS)
def test_modes_of_pad(own_name, other_name):
    torch = pytest.importorskip("torch")
    widths = [(0, 0), (2, 1)]
    output = dml.pad(X, widths, own_name).tolist()
    assert output == np.pad(X, widths, own_name).tolist()
    assert output == torch.nn.functional.pad(torch.tensor(X), (2, 1), mode=other_name).tolist()


def test_torch():
    torch = pytest.importorskip("torch")
    x, positions, new = torch.tensor(X), torch.tensor(ALONG), torch.tensor(NEW)
    pairs = tuple(torch.tensor(PAIRS.T))
    half = torch.full((2, 1), 0.5, dtype=x.dtype)
    same = [
        (dml.top_k(x, 2), torch.topk(x, 2)),
        (dml.top_k(x, 2, axis=0, largest=False), torch.topk(x, 2, dim=0, largest=False)),
        (dml.nonzero_coordinates(x), torch.nonzero(x)),
        (dml.nonzero_coordinates(x), torch.argwhere(x)),
        (dml.gather(x, [2, 0], axis=1), torch.index_select(x, 1, torch.tensor([2, 0]))),
        (dml.gather_elements(x, positions, axis=1), torch.gather(x, 1, positions)),
        (dml.gather_nd(x, PAIRS), x[pairs]),
        (dml.scatter_elements(x, positions, half, axis=1), torch.scatter(x, 1, positions, half)),
        (dml.scatter_nd(x, PAIRS, NEW), torch.index_put(x, pairs, new)),
        (dml.split(x, [1, 2], axis=1), torch.split(x, [1, 2], dim=1)),
        (dml.join([x, x], axis=1), torch.cat([x, x], dim=1)),
        (dml.slice_window(x, [0, 1], [2, 2]), torch.narrow(x, 1, 1, 2)),
        (dml.tile(x, (2, 1, 3)), torch.tile(x, (2, 1, 3))),
        (dml.cast(x, "int32"), x.to(torch.int32)),
    ]
    for own_name, other_name in (("add", "sum"), ("mul", "prod"), ("min", "amin"), ("max", "amax")):
        ours = dml.scatter_elements(x, positions, half, axis=1, reduction=own_name)
        same.append((ours, torch.scatter_reduce(x, 1, positions, half, other_name)))
    for ours, theirs in same:
        assert lists(ours) == lists(theirs)


def test_jax():
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x, at = jnp.array(X, jnp.float32), tuple(PAIRS.T)
    half, new = np.full((2, 1), 0.5, np.float32), NEW.astype("f4")  # be JAX at 64 bits or not
    same = [
        (dml.top_k(x, 2), jax.lax.top_k(x, 2)),
        (dml.top_k(x, 2, largest=False).indices, jax.lax.top_k(-x, 2)[1]),
        (dml.nonzero_coordinates(x), jnp.argwhere(x)),
        (dml.gather(x, [2, 0], axis=1), jnp.take(x, np.array([2, 0]), axis=1)),
        (dml.gather_elements(x, ALONG, axis=1), jnp.take_along_axis(x, ALONG, 1)),
        (dml.gather_nd(x, PAIRS), x[at]),
        (
            dml.scatter_elements(x, ALONG, half, axis=1),
            jnp.put_along_axis(x, ALONG, half, 1, inplace=False),
        ),
        (dml.scatter_nd(x, PAIRS, new), x.at[at].set(new)),
        (dml.split(x, [1, 2], axis=1), jnp.split(x, [1], axis=1)),
        (dml.join([x, x], axis=1), jnp.concatenate([x, x], axis=1)),
        (dml.slice_window(x, [0, 1], [2, 2]), jax.lax.slice(x, (0, 1), (2, 3))),
        (dml.pad(x, 1), jnp.pad(x, 1)),
        (dml.tile(x, (2, 1, 3)), jnp.tile(x, (2, 1, 3))),
        (dml.cast(x, "int32"), x.astype("int32")),
    ]
    for own_name, other_name in (
        ("add", "add"),
        ("mul", "multiply"),
        ("min", "min"),
        ("max", "max"),
    ):
        ours = dml.scatter_nd(x, PAIRS, new, reduction=own_name)
        same.append((ours, getattr(x.at[at], other_name)(new)))
    for ours, theirs in same:
        assert lists(ours) == lists(theirs)
