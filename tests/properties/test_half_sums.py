"""Sums and products of 16-bit floats: in float32, in the order of the updates, rounded once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml as dml
from anydml._native import native
from anydml.libraries import as_operand
from anydml.portable import bindings
from support import assert_same_bits, strategies

NAN = {"float16": 0x7E00, "bfloat16": 0x7FC0}
MANY = 1 << 20


def half_types():
    types = [np.dtype(np.float16)]
    try:
        import ml_dtypes
    except ImportError:
        return types
    return [*types, np.dtype(ml_dtypes.bfloat16)]


HALVES = half_types()


def elements(generator, shape, kind):
    """Numbers of any size; among any bits there are NaN with a payload."""
    numbers = generator.standard_normal(shape) * 10.0 ** generator.integers(-3, 5, shape)
    with np.errstate(over="ignore"):
        x = numbers.astype(np.float32).astype(kind)
    anything = generator.integers(0, 1 << 16, shape).astype(np.uint16).view(kind)
    return np.where(generator.random(shape) < 0.05, anything, x).astype(kind)


def combined(x, tuples, updates, reduction, include_self):
    """One update after the other on float32; only the elements that they name are rounded."""
    wide, named = x.astype(np.float32), np.zeros(x.shape, bool)
    where = tuple(np.moveaxis(tuples, -1, 0))
    named[where] = True
    if not include_self:
        wide[named] = reduction == "mul"
    with np.errstate(all="ignore"):
        combine = np.multiply if reduction == "mul" else np.add
        combine.at(wide, where, updates.astype(np.float32))
        rounded = wide.astype(x.dtype)
    bits = np.where(np.isnan(wide), np.uint16(NAN[x.dtype.name]), rounded.view(np.uint16))
    return np.where(named, bits, x.view(np.uint16)).view(x.dtype)


@st.composite
def scatters(draw):
    """A function, its operands and options, and the expected result."""
    kind = draw(st.sampled_from(HALVES))
    generator = draw(strategies.generators())
    shape = draw(strategies.shapes(min_rank=1, max_rank=3, min_side=1))
    options = {
        "reduction": draw(st.sampled_from(["add", "mul"])), "include_self": draw(st.booleans())
    }  # fmt: skip
    x = elements(generator, shape, kind)
    if draw(st.booleans()):
        length = draw(st.integers(1, len(shape)))
        indices = generator.integers(0, shape[:length], (draw(st.integers(0, 30)), length))
        updates = elements(generator, (len(indices), *shape[length:]), kind)
        function, tuples = dml.scatter_nd, indices
    else:
        axis = draw(st.integers(0, len(shape) - 1))
        looked_up = (*shape[:axis], draw(st.integers(0, 30)), *shape[axis + 1 :])
        indices = generator.integers(0, shape[axis], looked_up)
        updates = elements(generator, looked_up, kind)
        places = [*np.indices(looked_up, sparse=True)]
        places[axis] = indices
        function, tuples = dml.scatter_elements, np.stack(np.broadcast_arrays(*places), -1)
        options["axis"] = axis
    expected = combined(x, tuples, updates, options["reduction"], options["include_self"])
    return function, (x, indices, updates), options, expected


@given(scatters())
def test_numpy(case):
    function, operands, options, expected = case
    assert_same_bits(function(*operands, **options), expected)
    written = operands[0].copy()
    function(written, *operands[1:], **options, out=written)
    assert_same_bits(written, expected)


@given(scatters())
def test_torch(case):
    torch = pytest.importorskip("torch")
    function, operands, options, expected = case
    dtype = getattr(torch, expected.dtype.name)
    x, updates = (torch.from_numpy(operands[i].view(np.int16)).view(dtype) for i in (0, 2))
    got = function(x, torch.from_numpy(operands[1]), updates, **options)
    assert_same_bits(got.view(torch.int16).numpy().view(expected.dtype), expected)


@settings(max_examples=20)
@given(scatters())
def test_jax(case):
    jax = pytest.importorskip("jax")
    function, operands, options, expected = case
    x, indices, updates = map(jax.numpy.asarray, operands)
    assert_same_bits(np.asarray(function(x, indices, updates, **options)), expected)


@given(st.data(), scatters())
def test_dask(data, case):
    array = pytest.importorskip("dask.array")
    function, operands, options, expected = case
    lazy = [
        array.from_array(x, chunks=tuple(data.draw(st.integers(1, max(n, 1))) for n in x.shape))
        for x in operands
    ]
    got = function(*lazy, **options).compute(scheduler="synchronous")
    assert_same_bits(got, expected)


@pytest.mark.parametrize("kind", HALVES, ids=str)
@pytest.mark.parametrize("module", [native, bindings])
def test_kernels_round_once(kind, module):
    """Rows and single elements, of which some take many updates, by native code and by NumPy."""
    generator = np.random.default_rng(5)
    for shape, length in (((300,), 1), ((40, 60), 2), ((90, 70), 1), ((3000, 9), 1)):
        x = elements(generator, shape, kind)
        for count in (1, 20, 5000):
            indices = generator.integers(0, shape[:length], (count, length))
            indices[::2] //= 5
            updates = elements(generator, (count, *shape[length:]), kind)
            result = np.empty_like(x)
            attributes = {"reduction": "add", "include_self": True}
            arrays = [as_operand(array, "x")[0] for array in (x, updates, result)]
            inputs, outputs = [arrays[0], indices, arrays[1]], arrays[2:]
            module.run("scatter_nd", inputs, outputs, attributes, True, 2)
            assert_same_bits(result, combined(x, indices, updates, "add", True))


@pytest.mark.parametrize("kind", HALVES, ids=str)
@pytest.mark.parametrize("width", [1, 4, 64])
@pytest.mark.parametrize("count", [100, 4000, MANY // 64])
def test_scratch_is_that_of_the_updates_widened(count, width, kind):
    """The output is much larger; 1 MiB and 16 bytes an update are for blocks and indices."""
    x = np.zeros((16 * MANY // width, width), kind)
    indices = np.random.default_rng(1).integers(0, len(x), (count, 1))
    updates = np.ones((count, width), kind)
    usual = dml.memory_pool().limit
    dml.set_memory_pool_limit(0)
    try:
        with dml.num_threads(1):
            for out in (x, np.empty_like(x)):
                native.pool_peak()
                dml.scatter_nd(x, indices, updates, reduction="add", out=out)
                taken = native.pool_peak() - dml.memory_pool().lent
                assert taken <= 4 * updates.size + 16 * count + MANY
    finally:
        dml.set_memory_pool_limit(usual)


def test_rows_are_those_of_torch():
    """PyTorch rounds index_add of rows once, too; in one dimension it rounds every sum."""
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(1)
    for kind in (torch.float16, torch.bfloat16):
        for count in (8, 1000):
            rows = torch.randn(count, 64, generator=generator).to(kind)
            places = torch.randint(0, 3, (count,), generator=generator)
            x = torch.randn(3, 64, generator=generator).to(kind)
            got = dml.scatter_nd(x, places[:, None], rows, reduction="add")
            assert torch.equal(got, x.index_add(0, places, rows))
