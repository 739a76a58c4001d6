"""``out=`` that shares memory with an operand: refused, or written as if it were apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml

BLOCK = 48
CALLS = {
    "gather": lambda x, at, out: dml.gather(x, at, out=out),
    "gather_elements": lambda x, at, out: dml.gather_elements(x, at, out=out),
    "scatter_elements": lambda x, at, out: dml.scatter_elements(x, at, x, out=out),
    "scatter_nd": lambda x, at, out: dml.scatter_nd(x, at[:, None], x, reduction="add", out=out),
    "join": lambda x, at, out: dml.join([x[:1], x[1:]], out=out),
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
    before = memory.copy()
    expected = call(x.copy(), at.copy(), np.zeros_like(out))
    written = before.copy()
    written[taken[2]] = np.ravel(expected)
    try:
        call(*map(like, (x, at, out)))
    except dml.ArgumentError:
        written = before
    assert np.array_equal(memory, written)
