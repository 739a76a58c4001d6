"""``out=`` that shares memory with an operand: refused, or written as if it were apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml._native import has_extension
from anydml.functions._memory import Memory

BLOCK = 48
CALLS = {
    "gather": lambda x, at, out: dml.gather(x, at, out=out),
    "gather_elements": lambda x, at, out: dml.gather_elements(x, at, out=out),
    "scatter_elements": lambda x, at, out: dml.scatter_elements(x, at, x, out=out),
    "scatter_nd": lambda x, at, out: dml.scatter_nd(x, at[:, None], x, reduction="add", out=out),
    "join": lambda x, at, out: dml.join([x[:1], x[1:]], out=out),
    "split": lambda x, at, out: dml.split(x, [1, len(x) - 1], out=[out[:1], out[1:]]),
    "nonzero_coordinates": lambda x, at, out: dml.nonzero_coordinates(x, out=out[:, None]),
    "tile": lambda x, at, out: dml.tile(x, 1, out=out),
    "one_hot": lambda x, at, out: dml.one_hot(at[:1], depth=len(x), out=out[None]),
}


@st.composite
def views(draw, count):
    """A slice of the block: its start and step."""
    step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
    reach = (count - 1) * step
    return draw(st.integers(max(0, -reach), min(BLOCK - 1, BLOCK - 1 - reach))), step


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("like", [np.asarray, pytest.param("torch", id="torch")])
@given(data=st.data())
def test_memory_that_is_shared(call, like, data):
    if like == "torch":
        like = pytest.importorskip("torch").from_numpy
    count = data.draw(st.integers(1, 12), "count")
    memory = np.random.default_rng(data.draw(st.integers(0, 9), "seed")).integers(0, count, BLOCK)
    taken = [
        np.arange(BLOCK)[start::step][:count]
        for start, step in (data.draw(views(count), name) for name in ("x", "indices", "out"))
    ]
    if any(places[0] > places[-1] for places in taken):
        like = np.asarray  # PyTorch has no negative strides
    x, at, out = (
        memory[places[0] :: places[1] - places[0] if count > 1 else 1][:count] for places in taken
    )
    before, written = memory.copy(), memory.copy()
    try:
        expected = call(x.copy(), at.copy(), np.zeros_like(out))
        parts = expected if isinstance(expected, tuple) else (expected,)
        written[taken[2]] = np.concatenate([*map(np.ravel, parts)])
    except dml.ArgumentError:  # as many elements that are not zero as `out` has not
        assert len(np.flatnonzero(x)) != count
    try:
        call(*map(like, (x, at, out)))
    except dml.ArgumentError:
        written = before
    assert np.array_equal(memory, written)


@pytest.mark.parametrize("like", [np.asarray, pytest.param("torch", id="torch")])
@given(data=st.data())
def test_parts_that_share_memory(like, data):
    if like == "torch":
        like = pytest.importorskip("torch").from_numpy
    count = data.draw(st.integers(2, 20), "parts")
    starts = data.draw(st.permutations(range(count)), "order")
    if data.draw(st.booleans(), "shared"):
        i, j = data.draw(st.permutations(range(count)))[:2]
        starts[i] = starts[j]
    memory, x = np.zeros(2 * count, np.int64), np.arange(1, 2 * count + 1)
    outs = [like(memory[2 * start : 2 * start + 2]) for start in starts]
    if len({*starts}) < count:
        with pytest.raises(dml.ArgumentError, match="overlap"):
            dml.split(like(x), count, out=outs)
        assert not memory.any()
    else:
        dml.split(like(x), count, out=outs)
        assert np.array_equal(memory.reshape(-1, 2)[starts].ravel(), x)


SMALL = {
    "top_k": (lambda x, at, out: dml.top_k(x, 4, out=(out[0], out[1])), "fi"),
    "scatter_elements": (lambda x, at, out: dml.scatter_elements(x, at, x, out=out[0]), "f"),
    "gather": (lambda x, at, out: dml.gather(x, at, out=out[0]), "f"),
    "nonzero_coordinates": (lambda x, at, out: dml.nonzero_coordinates(x, out=out[0]), "n"),
    "cast": (lambda x, at, out: dml.cast(x, "int64", out=out[0]), "i"),
    "join": (lambda x, at, out: dml.join([x], out=out[0]), "f"),
    "split": (lambda x, at, out: dml.split(x, 2, out=out), "hh"),
}


@pytest.mark.parametrize(("call", "outs"), SMALL.values(), ids=SMALL)
@pytest.mark.parametrize("like", [np.asarray, pytest.param("torch", id="torch")])
def test_results_are_written_by_the_native_call(monkeypatch, like, call, outs):
    if like == "torch":
        like = pytest.importorskip("torch").from_numpy
    if not has_extension():
        pytest.skip("the kernels on NumPy have no native calls")
    x, at = np.arange(1, 5, dtype=np.float32), np.arange(4)
    kinds = {"f": (4, "f4"), "h": (2, "f4"), "i": (4, "i8"), "n": ((4, 1), "i8")}
    made = [np.zeros(*kinds[kind]) for kind in outs]
    call(like(x), like(at), [*map(like, made)])  # a type is known from its first call on
    for array in made:
        array[...] = 0
    monkeypatch.setattr(Memory, "__init__", None)  # the general path
    call(like(x), like(at), [*map(like, made)])
    assert all(array.any() for array in made)
