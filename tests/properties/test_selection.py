"""Options of `top_k` against a sort in Python, in every library, and row by row."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml

TYPES = ["float16", "float32", "float64", "int8", "uint8", "int64", "uint64", "bool"]


def expected(row, k, largest, nan, tie_break, ordered, length, fill):
    """Select from one row by a sort."""

    def key(i):
        value = row[i]
        is_nan = isinstance(value, float) and math.isnan(value)
        number = (math.inf, 1) if is_nan else (value, 0)  # NaN is larger than infinity
        if largest:
            number = (math.inf, 1) if is_nan and nan == "last" else (-number[0], -number[1])
        return number, i if tie_break == "first" else -i

    chosen = sorted(range(length), key=key)[:k]
    if not ordered:
        chosen.sort()
    missing = k - len(chosen)
    return [row[i] for i in chosen] + [fill] * missing, chosen + [-1] * missing


@st.composite
def calls(draw):
    kind = draw(st.sampled_from(TYPES))
    rows, size = draw(st.integers(1, 4)), draw(st.integers(0, 9))
    values = [0, 1, 2, 3] + ([float("nan"), -0.0, float("-inf")] if kind.startswith("f") else [])
    x = np.array(
        draw(st.lists(st.lists(st.sampled_from(values), min_size=size, max_size=size),
                      min_size=rows, max_size=rows)), kind,
    ).reshape(rows, size)  # fmt: skip
    options = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "mode": st.sampled_from(["largest", "smallest"]),
                "nan": st.sampled_from(["largest", "last"]),
                "tie_break": st.sampled_from(["first", "last"]),
                "sorted": st.booleans(),
                "lengths": st.lists(st.integers(0, size), min_size=rows, max_size=rows),
                "fill_value": st.just(1),
            },
        )
    )
    return x, draw(st.integers(0, size)), options


@pytest.mark.parametrize("axis", [0, 1])
def test_long_rows(axis):
    x = np.arange(6000, dtype=np.float32).reshape(2, 3000) % 7
    lengths = [2500, 3]
    wanted = [
        expected(row, 5, True, "largest", "last", False, length, -2)
        for row, length in zip(x.tolist(), lengths, strict=True)
    ]
    found = dml.top_k(
        x if axis else x.T, 5, axis=axis, tie_break="last", sorted=False, lengths=lengths,
        fill_value=-2,
    )  # fmt: skip
    values, indices = (y if axis else y.T for y in found)
    assert (values.tolist(), indices.tolist()) == ([w[0] for w in wanted], [w[1] for w in wanted])


@given(calls())
def test_as_a_sort_selects(call):
    x, k, options = call
    values, indices = dml.top_k(x, k, **options)
    assert (values.dtype, indices.dtype) == (x.dtype, np.intp)
    for i, row in enumerate(x.tolist()):
        length = options.get("lengths", [len(row)] * len(x))[i]
        wanted, places = expected(
            row, k, options.get("mode") != "smallest", options.get("nan", "largest"),
            options.get("tie_break", "first"), options.get("sorted", True), length,
            options.get("fill_value", 0),
        )  # fmt: skip
        assert indices[i].tolist() == places
        assert values[i].tobytes() == np.array(wanted, x.dtype).tobytes()
        alone = dml.top_k(
            x[i], k, **{**options, **({"lengths": length} if "lengths" in options else {})}
        )
        assert alone.indices.tolist() == places  # whatever the other rows are
        assert alone.values.tobytes() == values[i].tobytes()


@pytest.mark.parametrize("library", ["torch", "jax", "dask"])
@given(call=calls())
def test_in_every_library(library, call):
    pytest.importorskip(library)
    x, k, options = call
    wanted = dml.top_k(x.T, k, axis=0, **options)
    if library == "torch":
        import torch

        found = [y.numpy() for y in dml.top_k(torch.tensor(x).T, k, axis=0, **options)]
    elif library == "jax":
        import jax.numpy as jnp

        if x.dtype.itemsize == 8:
            return  # no 64-bit types by default
        found = [np.asarray(y) for y in dml.top_k(jnp.asarray(x).T, k, axis=0, **options)]
    else:
        import dask.array as da

        if x.size == 0:
            return
        found = [y.compute() for y in dml.top_k(da.from_array(x.T, (2, 1)), k, axis=0, **options)]
    assert found[0].tobytes() == wanted.values.tobytes()
    np.testing.assert_array_equal(found[1], wanted.indices)


OPTIONS = {"nan": "last", "tie_break": "last", "sorted": False, "lengths": [3, 1], "fill_value": 9}
X = [[1.0, 5.0, 5.0, 2.0], [4.0, 8.0, 0.0, 3.0]]


def test_gradients_reach_the_selected_elements():
    torch = pytest.importorskip("torch")
    x = torch.tensor(X, requires_grad=True)
    dml.top_k(x, 2, **OPTIONS).values.sum().backward()
    assert x.grad.tolist() == [[0, 1, 1, 0], [1, 0, 0, 0]]


@pytest.mark.slow
def test_compiled_batched_and_exported():
    torch = pytest.importorskip("torch")
    x, lengths = torch.tensor(X), torch.tensor([3, 1])

    def select(x, lengths):
        return tuple(dml.top_k(x, 2, **{**OPTIONS, "lengths": lengths}))

    class Module(torch.nn.Module):
        def forward(self, x, lengths):
            return select(x, lengths)

    wanted = [y.tolist() for y in select(x, lengths)]
    for other in (
        torch.compile(select, fullgraph=True, backend="aot_eager"),
        torch.vmap(select),
        torch.export.export(Module(), (x, lengths)).module(),
    ):
        assert [y.tolist() for y in other(x, lengths)] == wanted
    assert wanted == [[[5, 5], [4, 9]], [[1, 2], [0, -1]]]


def test_traced_by_jax():
    jax = pytest.importorskip("jax")
    x, lengths = jax.numpy.asarray(X), jax.numpy.asarray([3, 1])

    def select(x, lengths):
        return dml.top_k(x, 2, **{**OPTIONS, "lengths": lengths})

    wanted = select(x, lengths).indices.tolist()
    assert jax.jit(select)(x, lengths).indices.tolist() == wanted
    assert jax.vmap(select)(x, lengths).indices.tolist() == wanted
    grad = jax.grad(lambda x: select(x, lengths).values.sum())(x)
    assert grad.tolist() == [[0, 1, 1, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"mode": "most"}, "mode"),
        ({"nan": "first"}, "nan"),
        ({"tie_break": True}, "tie_break"),
        ({"mode": "largest", "largest": False}, "largest"),
        ({"lengths": [5, 0]}, "lengths"),
        ({"lengths": [-1, 0]}, "lengths"),
        ({"lengths": [1]}, "lengths"),
        ({"lengths": [1.0, 2.0]}, "lengths"),
        ({"lengths": [1, 1], "index_dtype": "uint32"}, "index_dtype"),
        ({"k": 5, "sorted": False}, "k"),
    ],
)
def test_wrong_options(options, name):
    with pytest.raises(dml.AnyDMLError, match=rf"^{name}\b|\bk\b"):
        dml.top_k(X, **{"k": 2, **options})


def test_results_go_to_existing_arrays():
    out = np.empty(2, np.float32), np.empty(2, np.int32)
    values, indices = dml.top_k(np.float32([1, 2, 3]), 2, lengths=1, fill_value=7, out=out)
    assert values is out[0]
    assert indices is out[1]
    assert (out[0].tolist(), out[1].tolist()) == ([1, 7], [0, -1])
    with pytest.raises(dml.AnyDMLError, match="out"):
        dml.top_k(np.float32([1, 2, 3]), 2, lengths=1, out=(np.empty(3, np.float32), None))
