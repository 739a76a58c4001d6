"""Reductions as PyTorch has them, and as NumPy has those that PyTorch has not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.functions._memory import Memory
from support import assert_same_bits, strategies

NAMES = {"sum": "add", "prod": "mul", "amin": "min", "amax": "max"}
EACH = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
TYPES = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8")


def case(data, kind, maximum=4):
    """Few places and small numbers: sums of floats are exact, and many updates meet."""
    shape = data.draw(strategies.shapes(min_rank=1, min_side=1, max_rank=3))
    axis = data.draw(st.integers(0, len(shape) - 1))
    generator = data.draw(strategies.generators())
    looked_up = (*shape[:axis], data.draw(st.integers(0, 9)), *shape[axis + 1 :])
    low = 0 if kind.startswith("u") else -maximum
    x = generator.integers(low, maximum, shape).astype(kind)
    updates = generator.integers(low, maximum, looked_up).astype(kind)
    return axis, x, generator.integers(0, shape[axis], looked_up), updates


class TestAgainstTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch")

    @given(
        st.data(),
        st.sampled_from(TYPES),
        st.sampled_from((*NAMES, "mean")),
        st.booleans(),
    )
    def test_scatter_reduce(self, data, kind, name, include_self):
        import torch

        axis, x, lookup, updates = case(data, kind)
        x, lookup, updates = map(torch.from_numpy, (x, lookup, updates))
        expected = x.scatter_reduce(axis, lookup, updates, name, include_self=include_self)
        for reduction in (name, NAMES.get(name, name)):
            got = dml.scatter_elements(
                x, lookup, updates, axis=axis, reduction=reduction, include_self=include_self
            )
            assert_same_bits(got.numpy(), expected.numpy())
            written = x.clone()
            dml.scatter_elements(written, lookup, updates, axis=axis, reduction=reduction,
                                 include_self=include_self, out=written)  # fmt: skip
            assert_same_bits(written.numpy(), expected.numpy())

    @pytest.mark.parametrize("name", [*NAMES, "mean"])
    @pytest.mark.parametrize("include_self", [True, False])
    def test_infinities_and_nan(self, torch, name, include_self):
        x = torch.tensor([1.0, np.inf, -np.inf, np.nan, -0.0, 5.0])
        updates = torch.tensor([np.nan, 2.0, np.inf, 1.0, -0.0, -np.inf, 3.0])
        lookup = torch.tensor([0, 1, 2, 3, 4, 1, 2])
        expected = x.scatter_reduce(0, lookup, updates, name, include_self=include_self)
        got = dml.scatter_elements(x, lookup, updates, reduction=name, include_self=include_self)
        assert np.array_equal(got.numpy(), expected.numpy(), equal_nan=True)
        assert got[5] == 5

    def test_a_scalar_for_all(self, torch):
        x, lookup = torch.zeros(2, 3), torch.tensor([[0, 2], [1, 1]])
        got = dml.scatter_elements(x, lookup, 7.0, axis=1)
        assert torch.equal(got, x.scatter(1, lookup, 7.0))
        assert torch.equal(dml.scatter_elements(x, lookup, torch.tensor(7.0), axis=1), got)
        got = dml.scatter_nd(x, torch.tensor([[1], [0]]), 3.0)
        assert got.tolist() == [[3, 3, 3], [3, 3, 3]]


@given(
    st.data(),
    st.sampled_from(("bool", "complex64", "complex128")),
    st.sampled_from(("scatter_elements", "scatter_nd")),
)
def test_against_ufunc_at(data, kind, function):
    """Bools: or, and. Complex numbers: sums and products, one update after the other."""
    axis, x, lookup, updates = case(data, "int8")
    if kind == "bool":
        x, updates = x > 0, updates > 0
    else:
        x, updates = (x + 1j * x[::-1]).astype(kind), (updates - 1j * updates[::-1]).astype(kind)
    names = ("add", "mul", "min", "max") if kind == "bool" else ("add", "mul")
    grid = list(np.indices(lookup.shape, sparse=True))
    grid[axis] = lookup
    for name in names:
        for source in (x, x[::-1].copy()[::-1]):
            expected = x.copy()
            EACH[name].at(expected, tuple(grid), updates)
            if function == "scatter_elements":
                got = dml.scatter_elements(source, lookup, updates, axis=axis, reduction=name)
            else:
                tuples = np.stack(np.broadcast_arrays(*grid), -1)
                got = dml.scatter_nd(source, tuples, updates, reduction=name)
            assert got.dtype == x.dtype
            assert np.array_equal(got, expected)


@given(st.data(), st.sampled_from(("add", "mul", "min", "max", "mean")), st.sampled_from(TYPES))
def test_scatter_nd_is_scatter_elements_where_they_meet(data, name, kind):
    axis, x, lookup, updates = case(data, kind)
    grid = list(np.indices(lookup.shape, sparse=True))
    grid[axis] = lookup
    tuples = np.stack(np.broadcast_arrays(*grid), -1)
    for include_self in (True, False):
        options = {"reduction": name, "include_self": include_self}
        expected = dml.scatter_elements(x, lookup, updates, axis=axis, **options)
        assert_same_bits(dml.scatter_nd(x, tuples, updates, **options), expected)


def test_rows_of_scatter_nd():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    rows, updates = [[1], [1], [-1]], np.full((3, 3), 10, np.float32)
    got = dml.scatter_nd(x, rows, updates, reduction="mean", include_self=False)
    assert got.tolist() == [[0, 1, 2], [10, 10, 10], [6, 7, 8], [10, 10, 10]]
    got = dml.scatter_nd(x, rows, updates, reduction="mean")
    assert_same_bits(got[1], (x[1] + 20) / np.float32(3))
    assert_same_bits(got[3], (x[3] + 10) / np.float32(2))


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_means_of_complex_numbers(kind):
    x = np.array([1 + 1j, 2 - 2j, 3j], kind)
    updates = np.array([4 + 2j, 5, 7 - 1j], kind)
    got = dml.scatter_elements(x, [0, 0, 2], updates, reduction="mean")
    assert got.tolist() == [(10 + 3j) / 3 if kind == "complex128" else got[0], 2 - 2j, 3.5 + 1j]
    assert np.allclose(got[0], (10 + 3j) / 3)
    got = dml.scatter_elements(x, [0, 0, 2], updates, reduction="mean", include_self=False)
    assert got.tolist() == [4.5 + 1j, 2 - 2j, 7 - 1j]


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_each_part_of_a_complex_product_is_rounded_by_itself(kind):
    generator = np.random.default_rng(3)
    part = np.dtype(kind).type(0).real.dtype
    x, updates = (generator.standard_normal(2 * n).astype(part).view(kind) for n in (9, 200))
    updates[5], updates[6] = complex(np.inf, 0), complex(np.nan, 1)
    lookup = generator.integers(0, len(x), len(updates))
    expected = x.copy()
    with np.errstate(all="ignore"):
        for at, b in zip(lookup, updates, strict=True):
            a = expected[at]
            real = part.type(a.real * b.real) - part.type(a.imag * b.imag)
            imaginary = part.type(a.real * b.imag) + part.type(a.imag * b.real)
            expected.real[at], expected.imag[at] = real, imaginary
    numbers = expected.view(part)
    numbers[np.isnan(numbers)] = np.nan  # the canonical one
    assert_same_bits(dml.scatter_elements(x, lookup, updates, reduction="mul"), expected)
    assert_same_bits(dml.scatter_nd(x, lookup[:, None], updates, reduction="mul"), expected)


def test_rank_0():
    for name, include_self, expected in (
        ("mean", False, 3),
        ("mean", True, 7 / 3),
        ("max", False, 4),
    ):
        got = dml.scatter_elements(1.0, [0, -1], [2.0, 4.0], reduction=name,
                                   include_self=include_self)  # fmt: skip
        assert got.shape == ()
        assert got == expected
    assert dml.gather(5, [3, -3], mode="wrap").tolist() == [5, 5]
    assert dml.gather_elements(5, [[3], [-3]], mode="clip").tolist() == [[5], [5]]


def test_elements_that_nothing_names_keep_their_bits():
    # NaNs of both kinds, and a negative zero.
    kept = np.array([0x7FC00001, 0xFFA00002, 0x80000000, 0x3F800000], np.uint32).view("f4")
    for name in ("add", "mul", "min", "max", "mean"):
        for include_self in (True, False):
            got = dml.scatter_elements(kept, [3], np.float32([2]), reduction=name,
                                       include_self=include_self)  # fmt: skip
            assert_same_bits(got[:3], kept[:3])
    sums = dml.scatter_elements(kept, [3, 3], np.float32([2, 4]), reduction="mean")
    assert sums[3] == np.float32(7) / np.float32(3)


def test_indices_that_are_read_twice_are_read_from_a_copy(monkeypatch):
    kind = "float32"
    lookup, arguments, run = np.array([0, 1]), [], Memory.run

    def watched(lib, operator, operands, *rest):
        arguments.append(operands[1])
        return run(lib, operator, operands, *rest)

    monkeypatch.setattr(Memory, "run", watched)
    dml.scatter_elements(np.zeros(2, kind), lookup, np.ones(2, kind), reduction="add",
                         include_self=False, out=np.zeros(2, kind))  # fmt: skip
    assert len(arguments) > 1
    assert not any(np.shares_memory(indices, lookup) for indices in arguments)
    arguments.clear()  # where the kernel combines, it reads them once
    dml.scatter_elements([0.0, 0.0], lookup, [1.0, 1.0], reduction="add")
    assert len(arguments) == 1
    assert np.shares_memory(arguments[0], lookup)


@pytest.mark.parametrize("kind", ["float32", "complex64", "bool", "int8"])
@pytest.mark.parametrize("name", ["add", "mean", "mul"])
@pytest.mark.parametrize("include_self", [True, False])
def test_a_bad_index_leaves_everything(kind, name, include_self):
    if (kind, name) == ("bool", "mean"):
        return
    x = np.ones((2, 3), kind)
    for bad in ([[0, 3]], [[-4, 0]], np.array([[0, 2**63]], np.uint64)):
        out = np.zeros_like(x)
        for target in (None, out):
            with pytest.raises(
                dml.IndexOutOfRangeError, match=r"scatter_elements: indices\[0, \d\]"
            ):
                dml.scatter_elements(x, bad, np.ones((1, 2), kind), axis=1, reduction=name,
                                     include_self=include_self, out=target)  # fmt: skip
        with pytest.raises(dml.IndexOutOfRangeError, match=r"scatter_nd: indices\[0, \d\]"):
            dml.scatter_nd(x, bad, np.ones(1, kind), reduction=name, include_self=include_self,
                           out=out)  # fmt: skip
        assert not out.any()


def test_what_has_no_such_reduction():
    for kind, name in (
        ("complex64", "min"),
        ("complex64", "max"),
        ("bool", "mean"),
        ("M8[s]", "add"),
    ):
        x = np.zeros(2, kind)
        with pytest.raises(dml.ArgumentTypeError, match=f"x: reduction '{name}' expected one of f"):
            dml.scatter_elements(x, [0], x[:1], reduction=name)
    with pytest.raises(dml.ArgumentTypeError, match="include_self: expected a bool, got 1"):
        dml.scatter_elements([1], [0], [1], include_self=1)


@given(st.data(), st.sampled_from(TYPES))
def test_broadcast_is_put_and_take_along_axis(data, kind):
    axis, x, lookup, _ = case(data, kind)
    off = data.draw(st.integers(0, x.ndim - 1))
    thin = lookup if off == axis else np.take(lookup, [0], off)
    assert_same_bits(dml.gather_elements(x, thin, axis=axis, broadcast=True),
                     np.take_along_axis(x, thin, axis))  # fmt: skip
    if off != axis:
        one = np.take(x, [0], off)
        assert_same_bits(dml.gather_elements(one, lookup, axis=axis, broadcast=True),
                         np.take_along_axis(one, lookup, axis))  # fmt: skip
    thin = np.zeros_like(thin[tuple(slice(1) if d == axis else slice(None) for d in range(x.ndim))])
    for values in (np.asarray(3, kind), np.ones((1,) * x.ndim, kind)):
        expected = x.copy()
        np.put_along_axis(expected, thin, values, axis)
        got = dml.scatter_elements(x, thin, values, axis=axis, broadcast=True)
        assert_same_bits(got, expected)


def test_shapes_that_do_not_broadcast():
    x = np.zeros((2, 3))
    with pytest.raises(dml.ArgumentError, match="indices: expected rank 2"):
        dml.gather_elements(x, [0], broadcast=True)
    with pytest.raises(dml.ArgumentError, match=r"indices: .*broadcast"):
        dml.gather_elements(x, [[0, 0]], broadcast=True)
    with pytest.raises(dml.ArgumentError, match=r"updates: .*broadcast"):
        dml.scatter_elements(x, [[0, 0, 0]], [[1.0, 2.0]], broadcast=True)
    for call in (
        lambda: dml.gather_elements(x, [[0]], broadcast=1),
        lambda: dml.scatter_elements(x, [[0]], [[1.0]], broadcast=None),
    ):
        with pytest.raises(dml.ArgumentTypeError, match="broadcast: expected a bool"):
            call()


@given(st.data(), st.sampled_from(("float32", "int8", "bool")), st.sampled_from(strategies.INDEX))
def test_wrap_and_clip_are_numpys(data, kind, index_kind):
    axis, x, lookup, _ = case(data, "int8")
    x = x.astype(kind)
    generator = data.draw(strategies.generators())
    low = 0 if index_kind.startswith("u") else -20
    positions = generator.integers(low, 20, (2, 3)).astype(index_kind)
    indices = generator.integers(low, 20, lookup.shape).astype(index_kind)
    for mode in ("wrap", "clip"):
        expected = np.take(x, positions.astype(np.int64), axis, mode=mode)
        assert_same_bits(dml.gather(x, positions, axis=axis, mode=mode), expected)
        out = np.zeros_like(expected)
        dml.gather(x, positions, axis=axis, mode=mode, out=out)
        assert_same_bits(out, expected)
        size = x.shape[axis]
        wide = indices.astype(np.int64)
        inside = wide % size if mode == "wrap" else np.clip(wide, 0, size - 1)
        assert_same_bits(dml.gather_elements(x, indices, axis=axis, mode=mode),
                         np.take_along_axis(x, inside, axis))  # fmt: skip
        tuples = generator.integers(low, 20, (5, x.ndim)).astype(index_kind)
        wide, sizes = tuples.astype(np.int64), np.array(x.shape)
        inside = wide % sizes if mode == "wrap" else np.clip(wide, 0, sizes - 1)
        assert_same_bits(dml.gather_nd(x, tuples, mode=mode), x[tuple(inside.T)])


def test_wrap_and_clip_at_the_ends_of_the_types():
    x = np.arange(3)
    for kind in strategies.INDEX:
        limits = np.iinfo(kind)
        for value in (limits.min, limits.max):
            index = np.array([value], kind)
            assert dml.gather(x, index, mode="wrap").tolist() == [value % 3]
            assert dml.gather(x, index, mode="clip").tolist() == [min(max(value, 0), 2)]
    assert dml.gather_nd(np.ones((2, 3)), np.zeros((4, 0), "i8"), mode="wrap").shape == (4, 2, 3)
    empty = np.zeros((0, 3))
    for mode in ("wrap", "clip"):
        assert dml.gather(empty, np.zeros(0, "i8"), mode=mode).shape == (0, 3)
        with pytest.raises(dml.ArgumentError, match="axis 0 has no elements"):
            dml.gather(empty, [0], mode=mode)
        with pytest.raises(dml.ArgumentError, match=r"indices.shape\[-1\]: expected at most 2"):
            dml.gather_nd(np.ones((2, 3)), [[0, 0, 0]], mode=mode)
        with pytest.raises(dml.ArgumentError, match="batch_dims: expected 0"):
            dml.gather_nd(np.ones((2, 3)), [[0, 0]], batch_dims=-3, mode=mode)


@given(st.data(), strategies.shapes(min_rank=1, min_side=1), st.booleans())
def test_top_k_of_bools(data, shape, largest):
    x = data.draw(strategies.generators()).integers(0, 2, shape).astype(bool)
    axis = data.draw(st.integers(0, len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    order = np.argsort(~x if largest else x, axis, kind="stable").take(range(k), axis)
    values, places = dml.top_k(x, k, axis=axis, largest=largest)
    assert_same_bits(places, order)
    assert_same_bits(values, np.take_along_axis(x, order, axis))
    out = np.zeros_like(values), np.zeros_like(places)
    dml.top_k(x, k, axis=axis, largest=largest, out=out)
    assert_same_bits(out[0], values)
    assert_same_bits(out[1], places)
    assert dml.top_k(np.True_, 1).values.dtype == bool


@given(st.data(), st.sampled_from(("complex64", "complex128")), strategies.shapes())
def test_nonzero_of_complex_numbers(data, kind, shape):
    generator = data.draw(strategies.generators())
    parts = generator.choice(np.array([0.0, -0.0, 1.0, np.nan]), (2, *shape))
    x = np.zeros(shape, kind)
    x.real, x.imag = parts
    assert_same_bits(dml.nonzero_coordinates(x), np.argwhere(x).astype(np.intp))


def test_signalling_nans_are_not_zero_and_nothing_is_warned_of():
    x = np.array([0x7F800001, 0, 0, 0], np.uint32).view("c8")
    assert dml.nonzero_coordinates(x).tolist() == [[0]]


@given(st.data(), st.lists(strategies.shapes(max_rank=3), min_size=1, max_size=4))
def test_join_of_all_elements(data, shapes):
    generator = data.draw(strategies.generators())
    arrays = [generator.integers(0, 99, shape).T for shape in shapes]
    assert_same_bits(dml.join(arrays, axis=None), np.concatenate(arrays, axis=None))
    out = np.zeros(sum(a.size for a in arrays), np.int64)
    assert dml.join(arrays, axis=None, out=out) is out
    assert_same_bits(out, np.concatenate(arrays, axis=None))


JOINED = ("float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool", "complex64")


@given(st.lists(st.sampled_from((*JOINED, "uint64", "uint32")), min_size=1, max_size=3))
def test_promotion_is_numpys(kinds):
    arrays = [np.array([0, 1, 100], kind) for kind in kinds]
    assert_same_bits(dml.join(arrays, promote=True), np.concatenate(arrays))
    if len(set(kinds)) > 1:
        with pytest.raises(dml.ArgumentTypeError, match=r"arrays\[[12]\]: expected"):
            dml.join(arrays)


@given(st.lists(st.sampled_from(JOINED), min_size=1, max_size=3))
def test_promotion_is_torchs(kinds):
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor([0, 1, 100]).to(getattr(torch, kind)) for kind in kinds]
    got, expected = dml.join(tensors, promote=True), torch.cat(tensors)
    assert got.dtype == expected.dtype
    assert torch.equal(got, expected)


def test_promotion_is_jaxs():
    jax = pytest.importorskip("jax")
    for kinds in (("int32", "float32"), ("float16", "int8"), ("uint8", "int8"), ("bool", "int32")):
        arrays = [jax.numpy.asarray([0, 1, 100], kind) for kind in kinds]
        got, expected = dml.join(arrays, promote=True), jax.numpy.concatenate(arrays)
        assert got.dtype == expected.dtype
        assert np.array_equal(got, expected)


def test_promotion_that_there_is_not():
    with pytest.raises(dml.ArgumentTypeError, match=r"^arrays: expected types that can be promote"):
        dml.join([np.zeros(1, "M8[s]"), np.zeros(1, "f4")], promote=True)
    with pytest.raises(dml.ArgumentTypeError, match=r"promote: .*bool"):
        dml.join([[1]], promote="yes")


@given(st.data(), strategies.shapes(min_rank=1, max_rank=3), st.integers(1, 6))
def test_split_is_numpys_and_torchs(data, shape, sections):
    x = data.draw(strategies.generators()).integers(0, 99, shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    points = data.draw(st.lists(st.integers(-7, 7), max_size=4))
    size = shape[axis]
    points.sort(key=lambda p: min(max(p + size if p < 0 else p, 0), size))
    cases = [
        (dml.split(x, sections, axis=axis, near_equal=True), np.array_split(x, sections, axis)),
        (dml.split(x, points=points, axis=axis), np.split(x, points, axis)),
        (dml.split(x, points=np.array(points, int), axis=axis), np.split(x, points, axis)),
    ]
    if size % sections == 0:
        cases.append((dml.split(x, sections, axis=axis), np.split(x, sections, axis)))
    for got, expected in cases:
        assert len(got) == len(expected)
        for part, reference in zip(got, expected, strict=True):
            assert_same_bits(part, reference)
            assert part.base is None or not np.shares_memory(part, x)


def test_near_equal_parts_of_one():
    (part,) = dml.split(np.arange(3), 1, near_equal=True)
    assert part.tolist() == [0, 1, 2]
    assert [part.tolist() for part in dml.split([4, 5], [0, 2])] == [[], [4, 5]]
    for sections in (0, -1):
        with pytest.raises(dml.ArgumentError, match="expected at least 1 section, got"):
            dml.split(np.arange(3), sections, near_equal=True)


def test_wrong_points():
    x = np.arange(4)
    for points, message in (
        ([3, 1], r"points\[1\]: expected a value of at least points\[0\], got 1 after 3"),
        ([1.5], r"points\[0\]: expected an integer, got 1.5"),
        (2, "points: expected a sequence of integers, got 2"),
    ):
        with pytest.raises(dml.AnyDMLError, match=message):
            dml.split(x, points=points)
    with pytest.raises(dml.ArgumentError, match=r"points: .*both"):
        dml.split(x, 2, points=[1])
    with pytest.raises(dml.ArgumentTypeError, match="sections_or_sizes: expected an integer"):
        dml.split(x)
    for sections in (0, -1):
        with pytest.raises(dml.ArgumentError, match="expected at least 1 section, got"):
            dml.split(x, sections, near_equal=True)
    with pytest.raises(dml.ArgumentTypeError, match="near_equal: expected a bool"):
        dml.split(x, 2, near_equal=1)


def test_memory_that_is_not_there():
    many, one = np.broadcast_to(0, (2**45,)), np.ones(1)
    for call, name in (
        (lambda: dml.gather(one, many, mode="wrap"), "gather: 281.5 TB"),
        (
            lambda: dml.gather_elements(one, many, mode="clip"),
            "gather_elements: 281.5 TB",
        ),
        (lambda: dml.join([many, many], axis=None), "join: 562.9 TB"),
        (
            lambda: dml.nonzero_coordinates(np.broadcast_to(1j, (2**45,))),
            "nonzero_coordinates: mem",
        ),
        (
            lambda: dml.scatter_elements(one, many, 1.0, reduction="add", include_self=False),
            "scatter_elements: memory",
        ),
        (lambda: dml.join([many, one], promote=True), "arrays"),
    ):
        with pytest.raises(dml.AllocationError, match=f"^{name}"):
            call()


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.filterwarnings("error")
def test_complex_products_of_all_of_x(shape):
    """Tuples without coordinates name the whole of x; an overflow is no warning."""
    x = np.full(shape, 2, np.complex64)
    none = np.zeros((2, 0), np.int64)
    updates = np.array([3j, 3e38]).astype(np.complex64).reshape(2, *(1 for _ in shape))
    updates = np.broadcast_to(updates, (2, *shape)).copy()
    result = dml.scatter_nd(x, none, updates, reduction="mul")
    assert result.shape == shape
    assert np.isinf(result.imag).all()
    kept = dml.scatter_nd(x, none[:1], updates[:1], reduction="mul", include_self=False)
    assert (kept == 3j).all()
