"""Array functions in code that JAX traces: the results outside of it, and true gradients."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml as dml
from support import assert_same_bits, contents, indices, jax_64_bits, strategies

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

from jax.test_util import check_grads  # noqa: E402 (where there is JAX)

# Every example is compiled.
fewer_examples = settings(max_examples=min(settings.default.max_examples, 10))


@pytest.fixture(scope="module", autouse=True)
def _types_as_by_default():
    """Other tests' JAX may have 64-bit types."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", before)


SHAPES = strategies.shapes(min_rank=1, max_rank=3, max_elements=60)
KINDS = st.sampled_from(("float32", "float16", "int32", "int8", "uint8"))
MODES = st.sampled_from(("raise", "clamp", "wrap", "clip"))
REDUCTIONS = st.sampled_from((None, "add", "mul", "min", "max", "mean"))


def values(data, shape, kind):
    generator = data.draw(strategies.generators())
    return contents(generator, shape, np.dtype(kind), data.draw(strategies.flavours()))


def positions(data, shape, sizes):
    kind = data.draw(st.sampled_from(("int32", "uint32")))
    return indices(data.draw(strategies.generators()), shape, sizes, kind)


def same(function, *operands):
    """The function's results, traced or not, are those of NumPy's arrays."""
    arrays = [jnp.asarray(operand) for operand in operands]
    expected, got = function(*arrays), jax.jit(function)(*arrays)
    plain = [np.asarray(leaf) for leaf in jax.tree.leaves(function(*operands))]
    for ours, theirs in zip(_leaves(expected), plain, strict=True):
        wide = theirs.dtype == np.int64  # NumPy's indices
        assert_same_bits(ours, theirs.astype(ours.dtype) if wide else theirs)
    rows = [jnp.stack([array, array[::-1]]) for array in arrays]
    mapped = jax.vmap(function)(*rows)
    on_reversed = function(*(array[::-1] for array in arrays))
    for ours, theirs, both, second in zip(*map(_leaves, (got, expected, mapped, on_reversed)),
                                          strict=True):  # fmt: skip
        assert_same_bits(ours, theirs)
        assert_same_bits(both, np.stack([theirs, second]))


def _leaves(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


@fewer_examples
@given(st.data(), KINDS, SHAPES, st.booleans())
def test_top_k(data, kind, shape, largest):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    same(partial(dml.top_k, k=k, axis=axis, largest=largest), values(data, shape, kind))


@fewer_examples
@given(st.data(), KINDS, SHAPES, st.integers(0, 20), st.integers(-3, 3))
def test_nonzero_coordinates(data, kind, shape, size, fill):
    x = values(data, shape, kind)
    same(partial(dml.nonzero_coordinates, size=size, fill_value=fill), x)
    found = dml.nonzero_coordinates(x)[:size]
    got = dml.nonzero_coordinates(x, size=size, fill_value=fill)
    missing = np.full((size - len(found), x.ndim), fill)
    assert_same_bits(got, np.concatenate([found, missing]))


@fewer_examples
@given(st.data(), KINDS, SHAPES, MODES)
def test_gathers(data, kind, shape, mode):
    x = values(data, shape, kind)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    index_shape = (0,) if not shape[axis] else data.draw(strategies.shapes(min_rank=1, max_rank=2,
                                                                   max_elements=9))  # fmt: skip
    lookup = positions(data, index_shape, shape[axis])
    same(partial(dml.gather, axis=axis, mode=mode), x, lookup)
    fixed = jnp.asarray(lookup)  # not mapped
    same(lambda x: dml.gather(x, fixed, axis=axis, mode=mode), x)
    looked_up = list(shape)
    looked_up[axis] = 2 * shape[axis]
    lookup = positions(data, tuple(looked_up), shape[axis])
    same(partial(dml.gather_elements, axis=axis, mode=mode), x, lookup)


def tuples(data, shape, batch=0):
    length = data.draw(st.integers(0, len(shape) - batch))
    outer = (0,) if 0 in shape[batch : batch + length] else (3,)
    return positions(data, (*shape[:batch], *outer, length), shape[batch : batch + length])


@fewer_examples
@given(st.data(), KINDS, SHAPES, MODES)
def test_gather_nd(data, kind, shape, mode):
    batch = data.draw(st.integers(0, len(shape)))
    lookup = tuples(data, shape, batch)
    # Turned round for another row, a batch must still fit: so must its indices.
    function = partial(dml.gather_nd, batch_dims=batch, mode=mode)
    same(function, values(data, shape, kind), lookup)


@fewer_examples
@given(st.data(), KINDS, SHAPES, REDUCTIONS, st.booleans())
def test_scatters(data, kind, shape, reduction, include_self):
    x = values(data, shape, kind)
    options = {"reduction": reduction, "include_self": include_self}
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    looked_up = list(shape)
    looked_up[axis] = 2 * shape[axis]
    lookup = positions(data, tuple(looked_up), shape[axis])
    updates = values(data, lookup.shape, kind)
    same(partial(dml.scatter_elements, axis=axis, **options), x, lookup, updates)
    lookup = tuples(data, shape)
    updates = values(data, (*lookup.shape[:-1], *shape[lookup.shape[-1] :]), kind)
    if updates.ndim:
        same(partial(dml.scatter_nd, **options), x, lookup, updates)


@fewer_examples
@given(st.data(), KINDS, SHAPES)
def test_movers(data, kind, shape):
    x = values(data, shape, kind)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    points = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=3)))
    same(partial(dml.split, points=points, axis=axis), x)
    same(lambda x, y: dml.join([x, y, x], axis=axis), x, x)
    same(lambda x: dml.join([x, x], axis=None), x)
    starts = [data.draw(st.integers(0, size)) for size in shape]
    sizes = [data.draw(st.integers(0, n - start)) for n, start in zip(shape, starts, strict=True)]
    strides = [data.draw(st.sampled_from((1, 2, -1, -3))) for _ in shape]
    same(lambda x: dml.slice_window(x, starts, sizes, strides), x)
    same(lambda x: dml.tile(x, 2), x)
    if x.size:
        one = [1 if i == axis % x.ndim else size for i, size in enumerate(shape)]
        lengths = data.draw(strategies.generators()).integers(0, 5, one, np.int32)
        same(partial(dml.reverse_subsequences, axis=axis), x, lengths)
        same(lambda i, v: dml.one_hot(i - 2, 3, v, axis=axis), lengths, x.reshape(-1)[[0, -1]])
    same(lambda x: dml.cast(x, "int16"), x)
    width = [(data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))) for _ in shape]
    mode = data.draw(st.sampled_from(("constant", "edge", "reflect", "symmetric", "wrap")))
    if x.size or mode == "constant":
        same(lambda x: dml.pad(x, width, mode, 1), x)


X = np.arange(12, dtype=np.float32).reshape(3, 4) % 5
ROWS = np.array([[2, 0, 2], [-1, 3, 3], [1, 1, 1]])
TUPLES = np.array([[0, 1], [2, -1], [0, 1]])
U = np.arange(9, dtype=np.float32).reshape(3, 3) / 4

# Ours, and the same in JAX's own operations, with its gradients.
PAIRS = {
    "top_k": (lambda x: dml.top_k(x, 2).values, lambda x: jax.lax.top_k(x, 2)[0]),
    "gather": (lambda x: dml.gather(x, [2, 0], axis=0),
               lambda x: x[jnp.array([2, 0])]),
    "gather on axis 1": (lambda x: dml.gather(x, [5, -9], axis=1, mode="clamp"),
                         lambda x: x[:, jnp.array([3, 0])]),
    "gather_elements": (lambda x: dml.gather_elements(x, ROWS, axis=1),
                        lambda x: jnp.take_along_axis(x, jnp.asarray(ROWS), 1)),
    "gather_nd": (lambda x: dml.gather_nd(x, TUPLES),
                  lambda x: x[tuple(jnp.asarray(TUPLES).T)]),
    "gather_nd in batches": (
        lambda x: dml.gather_nd(x, ROWS[..., None], batch_dims=1),
        lambda x: jnp.take_along_axis(x, jnp.asarray(ROWS), 1)),
    "scatter_elements": (
        lambda x, u: dml.scatter_elements(x, ROWS, u, axis=1),
        lambda x, u: x.at[jnp.arange(3)[:, None], jnp.asarray(ROWS)].set(u)),
    "scatter_elements, add": (
        lambda x, u: dml.scatter_elements(x, ROWS, u, axis=1, reduction="add"),
        lambda x, u: x.at[jnp.arange(3)[:, None], jnp.asarray(ROWS)].add(u)),
    "scatter_nd": (
        lambda x, u: dml.scatter_nd(x, TUPLES, u[0]),
        lambda x, u: x.at[tuple(jnp.asarray(TUPLES).T)].set(u[0])),
    "scatter_nd, add, of rows": (
        lambda x, u: dml.scatter_nd(x, [[1], [1]], dml.pad(u[:2], [(0, 0), (0, 1)]),
                                    reduction="add"),
        lambda x, u: x.at[jnp.array([1, 1])].add(jnp.pad(u[:2], [(0, 0), (0, 1)]))),
    "reverse_subsequences": (
        lambda x: dml.reverse_subsequences(x, [[3], [4], [0]], axis=1),
        lambda x: jnp.stack([x[0][jnp.array([2, 1, 0, 3])], x[1][::-1], x[2]])),
    "one_hot": (
        lambda x: dml.one_hot(ROWS, 3, x[0], axis=1),
        lambda x: jnp.where(
            jnp.asarray(np.where(ROWS < 0, ROWS + 3, ROWS))[:, None] == jnp.arange(3)[:, None],
            x[0, 1], x[0, 0])),
    "split": (lambda x: dml.split(x, [1, 3], axis=1)[1] * 2, lambda x: x[:, 1:] * 2),
    "join": (lambda x: dml.join([x, x * 2], axis=1), lambda x: jnp.concatenate([x, x * 2], 1)),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_gradients_are_those_of_jax(name):
    ours, theirs = PAIRS[name]
    operands = [jnp.asarray(X), jnp.asarray(U)][: ours.__code__.co_argcount]

    def loss(function, *operands):
        result = function(*operands)
        weights = jnp.sin(jnp.arange(result.size)).reshape(result.shape)
        return (result * weights * result).sum()

    arguments = tuple(range(len(operands)))
    pairs = [jax.grad(partial(loss, function), arguments) for function in (ours, theirs)]
    rows = [jnp.stack([operand, operand[::-1]]) for operand in operands]
    for transform, arrays in ((jax.jit, operands), (jax.vmap, rows)):
        got, expected = (transform(gradient)(*arrays) for gradient in pairs)
        for mine, reference in zip(got, expected, strict=True):
            np.testing.assert_allclose(mine, reference, rtol=1e-6)
    tangents = [jnp.cos(jnp.arange(operand.size)).reshape(operand.shape) for operand in operands]
    for got, expected in zip(
        jax.jvp(ours, operands, tangents), jax.jvp(theirs, operands, tangents), strict=True
    ):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
    if name not in ("gather_elements", "scatter_nd"):
        return
    curves = [jax.hessian(partial(loss, function), arguments)(*operands)
              for function in (ours, theirs)]  # fmt: skip
    for got, expected in zip(*map(_leaves, curves), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_forward_gradients_where_only_one_operand_has_one():
    """What an update replaced has no tangent; the others' go where they were written."""
    one = jnp.ones(3)
    for reduction, expected in ((None, [1, 0, 1]), ("add", [1, 1, 1])):
        way = partial(dml.scatter_elements, reduction=reduction)
        got = jax.jvp(lambda x, w=way: w(x, [1], [5.0]), (one,), (one,))[1]
        assert got.tolist() == expected
    got = jax.jvp(lambda u: dml.scatter_nd(one, [[1], [1]], u), (one[:2],), (jnp.array([2.0, 7]),))
    assert got[1].tolist() == [0, 7, 0]
    _, moved = jax.jvp(lambda x: dml.top_k(x, 2), (jnp.array([1.0, 5, 3]),), (one,))
    assert moved.values.tolist() == [1, 1]
    assert moved.indices.dtype == jax.dtypes.float0


def test_operands_that_are_spread():
    for axis, shape in ((1, (1, 2)), (0, (5, 1))):
        rows = jnp.asarray(np.random.default_rng(axis).integers(-3, 3, shape, np.int32))
        same(lambda x, r=rows, a=axis: dml.gather_elements(x, r, axis=a, broadcast=True), X)
        same(lambda x, r=rows, a=axis: dml.scatter_elements(x, r, 7.0, axis=a, broadcast=True), X)
    one = jnp.ones((1, 4), jnp.float32)
    same(lambda x: dml.gather_elements(x, [[1], [2]], axis=1, broadcast=True), one)


def test_one_element():
    """Of rank 0: one element on one axis."""
    x = jnp.float32(3)
    calls = {
        lambda x: dml.top_k(x, 1).values: 1,
        lambda x: dml.gather(x, [[0, -1]]): 2,
        lambda x: dml.gather_elements(x, [0, 0, 0]): 3,
        lambda x: dml.gather_elements(x, 0): 1,
        lambda x: dml.gather_elements(x, [[0, -1], [0, 0]]): 4,
        lambda x: dml.top_k(x, 0).values: 0,
        lambda x: dml.scatter_elements(x, [0, 0], [5.0, 6.0], reduction="add"): 1,
    }
    for call, slope in calls.items():
        assert_same_bits(jax.jit(call)(x), call(x))
        assert jax.grad(lambda x, call=call: call(x).sum())(x) == slope
    with pytest.raises(Exception, match=r"indices\[0\]: expected -1\.\.0 .* got 1"):
        jax.jit(lambda x: dml.gather_elements(x, [1]))(x).block_until_ready()


def test_integers_of_64_bits_that_fit():
    """What is not traced has NumPy's types; lists without elements too."""
    one = jnp.ones(3)
    for empty in ([], np.zeros(0, np.int64), np.zeros(0, np.uint64)):
        assert jax.jit(lambda x, i=empty: dml.gather(x, i))(one).shape == (0,)
    at = jnp.array([0, 1])
    ends = np.array([-(2**31), 2**31 - 1])
    assert_same_bits(jax.jit(lambda i: dml.gather(ends, i))(at), ends.astype(np.int32))
    for wrong in (ends - [1, 0], ends + [0, 1], ends / 2):
        with pytest.raises(dml.ArgumentTypeError, match=r"x: .*type"):
            jax.jit(lambda i, x=wrong: dml.gather(x, i))(at)


def test_lists_for_bfloat16():
    x = jnp.ones(3, jnp.bfloat16)
    for update in ([2.0], np.array([2.0], jnp.bfloat16)):
        got = jax.jit(lambda x, u=update: dml.scatter_elements(x, [1], u))(x)
        assert (got.dtype, got.tolist()) == (x.dtype, [1, 2, 1])


def test_gradients_of_what_is_replaced():
    x, u = jnp.arange(12.0).reshape(3, 4), jnp.ones((2, 4))
    kept, new = jax.grad(lambda x, u: (dml.scatter_nd(x, [[2], [0]], u) * x).sum(), (0, 1))(x, u)
    assert kept.tolist() == (jnp.array([[1, 1, 1, 1], [8, 10, 12, 14], [1, 1, 1, 1]])).tolist()
    assert new.tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    left = jax.grad(lambda x: dml.scatter_elements(x, [1], [5.0]).sum())(x[0])
    assert left.tolist() == [1, 0, 1, 1]
    none = np.zeros((2, 0), np.int32)
    assert jax.grad(lambda x: dml.gather_nd(x, none).sum())(u).tolist() == [[2] * 4] * 2


def test_gradients_in_batches_of_indices():
    x = jnp.arange(6.0).reshape(2, 3)
    rows = jnp.array([[2, 0], [1, 1]])
    for gather in (
        dml.gather,
        dml.gather_elements,
        lambda x, i: dml.gather_nd(x, i[:, None]),
    ):
        slope = jax.grad(lambda x, i, f=gather: (f(x, i) * jnp.array([2.0, 3.0])).sum())
        assert jax.vmap(slope)(x, rows).tolist() == [[3, 0, 2], [0, 5, 0]]


def test_batches_of_narrow_tuples():
    """Numbers of batches are put in front of them, in a type that holds both."""
    x, one = jnp.zeros((200, 3)), jnp.ones(1)
    got = jax.vmap(lambda x, i: dml.scatter_nd(x, i, one))(x, jnp.full((200, 1, 1), 1, jnp.int8))
    assert (np.asarray(got) == [0, 1, 0]).all()
    beyond = jnp.full((2, 1, 1), 2**32 - 1, jnp.uint32)
    with pytest.raises(Exception, match=r"expected 0\.\.2 .* got 4294967295"):
        jax.vmap(lambda x, i: dml.scatter_nd(x, i, one))(x[:2], beyond).block_until_ready()


def test_of_casts_those_between_floats_have_a_gradient():
    x = jnp.array([1.5, -2.5])
    assert jax.grad(lambda x: dml.cast(x, "float16").sum().astype("float32"))(x).tolist() == [1, 1]
    assert jax.grad(lambda x: dml.cast(x, "float16").sum().astype("float32"))(x).dtype == x.dtype
    assert jax.jvp(lambda x: dml.cast(x, "float16"), (x,), (x,))[1].dtype == jnp.float16
    gradient = jax.grad(lambda x: (dml.cast(x, "int32") * x).sum())(x)
    assert gradient.tolist() == [1, -2]


def test_gradients_in_loops_and_checkpoints():
    def step(carry, row):
        return dml.scatter_nd(carry, [[0]], row[:1], reduction="add"), dml.top_k(row, 2).values

    def loss(x):
        carry, values = jax.lax.scan(jax.checkpoint(step), jnp.zeros(2), x)
        return carry.sum() + (values**2).sum()

    x = jnp.arange(6.0).reshape(2, 3)
    assert jax.grad(loss)(x).tolist() == [[1, 2, 4], [1, 8, 10]]
    assert jax.jvp(loss, (x,), (x,))[1] == (jax.grad(loss)(x) * x).sum()


def stacked(function, *operands):
    """The results for every row of two axes of batches, one after the other."""
    rows = [[function(*(o[i, j] for o in operands)) for j in range(3)] for i in range(2)]
    return np.stack([np.stack(list(map(np.asarray, row))) for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["gather", "gather_nd", "scatter_nd", "nonzero_coordinates", "tiny"]
)
def test_vmap_in_vmap(name):
    """One axis of batches anywhere, of some operands only, and one more around it."""
    x = jnp.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5) % 7
    rows = jnp.asarray(np.random.default_rng(1).integers(-4, 4, (2, 3, 6, 1), np.int32))
    calls = {
        "gather": lambda x, i: dml.gather(x, i, axis=0),
        "gather_nd": dml.gather_nd,
        "scatter_nd": lambda x, i: dml.scatter_nd(x, i, jnp.arange(30.0).reshape(6, 5)),
        "nonzero_coordinates": lambda x, i: dml.nonzero_coordinates(
            x - i[0], size=9, fill_value=-1
        ),
        "tiny": lambda x, i: dml.scatter_nd(
            x, i.astype(jnp.int8), jnp.ones((6, 5)), reduction="add"
        ),
    }
    call = calls[name]
    expected = stacked(call, x, rows)
    assert_same_bits(jax.vmap(jax.vmap(call))(x, rows), expected)
    other = jax.vmap(jax.vmap(call, (0, 1), 1), (3, 0), 0)
    mapped = other(jnp.moveaxis(x, 0, 3), jnp.moveaxis(rows, 1, 2))
    assert_same_bits(np.moveaxis(mapped, 2, 1), expected)
    alone = jax.vmap(jax.vmap(call, (None, 0)), (0, 0))(x[:, 0], rows)
    assert_same_bits(alone, stacked(call, jnp.repeat(x[:, :1], 3, 1), rows))
    alone = jax.vmap(jax.vmap(call, (0, None)), (0, 0))(x, rows[:, 0])
    assert_same_bits(alone, stacked(call, x, jnp.repeat(rows[:, :1], 3, 1)))


def test_vmap_of_gathers_along_the_last_axis():
    x = jnp.arange(24.0).reshape(2, 3, 4)
    rows = jnp.array([[[0, 3]], [[2, -1]]])
    call = partial(dml.gather, axis=1, mode="clamp")
    for dims in ((0, 0), (None, 0), (0, None)):
        operands = [a if d == 0 else a[0] for a, d in zip((x, rows), dims, strict=True)]
        single = [call(*(o if d is None else o[n] for o, d in zip(operands, dims, strict=True)))
                for n in range(2)]  # fmt: skip
        assert_same_bits(jax.vmap(call, dims)(*operands), np.stack(single))


def test_of_updates_that_meet_the_last_one_has_the_gradient():
    def loss(u):
        return dml.scatter_elements(jnp.zeros(3), [1, 1, 2], u).sum()

    assert jax.grad(loss)(jnp.ones(3)).tolist() == [0, 1, 1]
    assert jax.grad(lambda x: dml.scatter_nd(x, [[1]], [5.0]).sum())(jnp.ones(3)).tolist() == [
        1, 0, 1,
    ]  # fmt: skip


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", ["add", "mul", "min", "max", "mean"])
def test_every_reduction_has_gradients(reduction, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    x, u = jnp.array([2.0, 3.0, 5.0]), jnp.array([4.0, 1.5, 7.0])

    @jax.jit
    def loss(x, u):
        elements = dml.scatter_elements(x, [1, 1, -1], u, **options)
        blocks = dml.scatter_nd(x, [[0], [2], [2]], u, **options)
        return (elements * blocks).sum()

    check_grads(loss, (x, u), order=1, rtol=2e-2)


@pytest.mark.parametrize("reduction", ["add", "mul"])
def test_complex_gradients_are_those_of_jax(reduction):
    x, u = jnp.array([1 + 2j]), jnp.array([3 - 1j])
    expected = jax.grad(
        lambda x, u: (x + u if reduction == "add" else x * u).imag.sum(), argnums=(0, 1)
    )(x, u)
    got = jax.grad(
        lambda x, u: dml.scatter_elements(x, [0], u, reduction=reduction).imag.sum(),
        argnums=(0, 1),
    )(x, u)
    assert [y.item() for y in got] == [y.item() for y in expected]


def test_arguments_are_checked_while_tracing():
    x = jnp.zeros((2, 3))

    def refused(call, message, error=dml.ArgumentError):
        with pytest.raises(error, match=message):
            jax.jit(call)(x)

    refused(lambda x: dml.top_k(x, 4), "k: expected at most 3")
    refused(dml.nonzero_coordinates, "size: expected a number of rows, which traced code must")
    refused(lambda x: dml.gather(x, [0], axis=2), "axis: expected -2..1")
    refused(lambda x: dml.gather(x, [0.5]), "indices: expected one of", dml.ArgumentTypeError)
    refused(lambda x: dml.scatter_nd(x, [[0, 0]], np.zeros(1)), "updates: expected float32",
            dml.ArgumentTypeError)  # fmt: skip
    refused(lambda x: dml.gather(x, x), "indices: expected one of", dml.ArgumentTypeError)
    refused(lambda x: dml.split(x, 2, out=[None, None]), "out: expected None in traced code",
            dml.ArgumentTypeError)  # fmt: skip
    refused(lambda x: dml.top_k(x, 1, index_dtype="int64"), "jax_enable_x64",
            dml.ArgumentTypeError)  # fmt: skip
    refused(lambda x: dml.gather(x, np.array([2**40])), "jax_enable_x64", dml.ArgumentTypeError)


def test_join_promotes_as_outside():
    x = jnp.arange(2)
    for other in (np.ones(1, "f4"), np.array([3], "i1"), jnp.ones(1, "float16")):
        joined = jax.jit(lambda x, other=other: dml.join([x, other], promote=True))(x)
        assert_same_bits(joined, dml.join([x, other], promote=True))
    for transform in (lambda f: f, jax.jit):
        with pytest.raises(dml.ArgumentTypeError, match=r"arrays: .*type"):
            transform(lambda x: dml.join([x, np.ones(1)], promote=True))(x)


def test_bad_indices_are_told_when_the_code_runs():
    with pytest.raises(Exception, match=r"gather: indices\[1\]: expected -3\.\.2 .* got 7"):
        jax.jit(lambda x: dml.gather(x, [0, 7]))(jnp.zeros(3)).block_until_ready()


@pytest.mark.parametrize("kind", ["float64", "int64"])
def test_64_bits(kind):
    with jax_64_bits(True):
        x = np.arange(5, dtype=kind) * 2**40
        values, places = jax.jit(lambda x: dml.top_k(x, 2))(jnp.asarray(x))
        assert_same_bits(values, x[:2:-1])
        assert_same_bits(places, np.array([4, 3]))


def test_large_arrays_do_not_wait_for_themselves():
    x = jnp.asarray(np.random.default_rng(0).random((64, 65536), np.float32))
    found = jax.jit(lambda x: dml.top_k(x * 2, 3).indices + 0)(x)
    assert_same_bits(np.asarray(found), np.asarray(dml.top_k(np.asarray(x), 3).indices, np.int32))
