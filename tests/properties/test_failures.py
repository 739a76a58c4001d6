"""A call that fails changes nothing, wherever the bad index stands and whatever it is."""

import numpy as np
import pytest
from agreement import Subclass, native
from hypothesis import assume, given
from hypothesis import strategies as st

import anydml as dml
from support import Flavour, Poisoned, contents, indices, strategies

INDEX = st.sampled_from(strategies.INDEX)


def bad_value(data, kind, size):
    """A value that the type can hold and the axis cannot."""
    limits = np.iinfo(kind)
    candidates = [size, size + 1, limits.max, limits.max - 1]
    if np.dtype(kind).kind == "i":
        candidates += [-size - 1, limits.min, limits.min + 1]
    else:
        candidates += [limits.max // 2 + 1]  # minus something, were it signed
    return data.draw(st.sampled_from([c for c in candidates if limits.min <= c <= limits.max]))


def first_bad(lookup, sizes):
    """Position, value and size of the first bad index in row-major order."""
    for at in np.ndindex(lookup.shape):
        size = sizes[at[-1]] if isinstance(sizes, tuple) else sizes
        value = int(lookup[at])
        low = -size if lookup.dtype.kind == "i" else 0
        if not low <= value < size:
            return at, value, size
    return None


def spoiled(data, shape, sizes):
    """Valid indices in any layout, with one to three bad ones among them."""
    kind = data.draw(INDEX)
    values = indices(data.draw(strategies.generators()), shape, sizes, kind)
    for _ in range(data.draw(st.integers(1, 3))):
        at = tuple(data.draw(st.integers(0, side - 1)) for side in shape)
        size = sizes[at[-1]] if isinstance(sizes, tuple) else sizes
        values[at] = bad_value(data, kind, size)
    layout = data.draw(strategies.layouts(len(shape), tuples=isinstance(sizes, tuple)))
    return Poisoned(shape, kind, layout, values)


def fails(data, call, x, lookup, sizes, shape, updates=None):
    """Check that the call raises for the first bad index and writes nothing, however it is made."""
    where = first_bad(native(lookup), sizes)
    assume(where is not None)  # a repeated layout may have overwritten it
    position, value, size = where
    out = Poisoned(shape, x.array.dtype.newbyteorder("="),
                   data.draw(strategies.layouts(len(shape), output=True)))  # fmt: skip
    operands = [x, lookup, *([updates] if updates else [])]
    arrays = [operand.array for operand in operands]
    with dml.num_threads(data.draw(st.integers(1, 4))):
        for given_arrays, out_argument in (
            (arrays, {}),
            ([array.view(Subclass) for array in arrays], {}),
            (arrays, {"out": out.array}),
        ):
            with pytest.raises(dml.IndexOutOfRangeError) as error:
                call(*given_arrays, **out_argument)
            assert error.value.position == position
            assert error.value.value == value
            assert error.value.size == size
            message = str(error.value)
            at = f"[{', '.join(map(str, position))}]" if position else ""
            assert f"indices{at}: expected" in message
            assert f"got {value}" in message
            low = -size if native(lookup).dtype.kind == "i" else 0
            assert f"expected {low}..{size - 1} " in message if size else "nothing" in message
    assert out.untouched()
    assert all(operand.untouched() for operand in operands)


SHAPES = strategies.shapes(min_rank=1, max_rank=3, min_side=1, max_elements=300)
KIND = st.sampled_from(("float32", "int8", "uint16", "float64", "complex128"))


def plain(data, shape, kind):
    values = np.zeros(shape, kind)
    return Poisoned(shape, kind, data.draw(strategies.layouts(len(shape), plain=True)), values)


def on_axis(data, shape):
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(1, 40))
    return axis, (*shape[:axis], count, *shape[axis + 1 :])


@given(st.data(), KIND, SHAPES, st.sampled_from((None, "add", "max")))
def test_scatter_elements(data, kind, shape, reduction):
    reduction = None if kind == "complex128" else reduction
    axis, looked_up = on_axis(data, shape)
    x, updates = plain(data, shape, kind), plain(data, looked_up, kind)
    lookup = spoiled(data, looked_up, shape[axis])

    def call(*arrays, **out):
        return dml.scatter_elements(*arrays, axis=axis, reduction=reduction, **out)

    fails(data, call, x, lookup, shape[axis], shape, updates)


@given(st.data(), KIND, SHAPES)
def test_gather_elements(data, kind, shape):
    axis, looked_up = on_axis(data, shape)
    x, lookup = plain(data, shape, kind), spoiled(data, looked_up, shape[axis])

    def call(*arrays, **out):
        return dml.gather_elements(*arrays, axis=axis, **out)

    fails(data, call, x, lookup, shape[axis], looked_up)


@given(st.data(), KIND, SHAPES)
def test_gather(data, kind, shape):
    axis = data.draw(st.integers(0, len(shape) - 1))
    looked_up = data.draw(strategies.shapes(max_rank=2, min_side=1, max_elements=40))
    x, lookup = plain(data, shape, kind), spoiled(data, looked_up, shape[axis])

    def call(*arrays, **out):
        return dml.gather(*arrays, axis=axis, **out)

    fails(data, call, x, lookup, shape[axis], shape[:axis] + looked_up + shape[axis + 1 :])


def tuples(data, shape):
    length = data.draw(st.integers(1, len(shape)))
    outer = data.draw(strategies.shapes(max_rank=2, min_side=1, max_elements=30))
    return length, (*outer, length), outer + shape[length:]


@given(st.data(), KIND, SHAPES, st.sampled_from((None, "mul", "min")))
def test_scatter_nd(data, kind, shape, reduction):
    reduction = None if kind == "complex128" else reduction
    length, looked_up, block = tuples(data, shape)
    x, updates = plain(data, shape, kind), plain(data, block, kind)
    lookup = spoiled(data, looked_up, shape[:length])

    def call(*arrays, **out):
        return dml.scatter_nd(*arrays, reduction=reduction, **out)

    fails(data, call, x, lookup, shape[:length], shape, updates)


@given(st.data(), KIND, SHAPES)
def test_gather_nd(data, kind, shape):
    length, looked_up, block = tuples(data, shape)
    x, lookup = plain(data, shape, kind), spoiled(data, looked_up, shape[:length])
    fails(data, dml.gather_nd, x, lookup, shape[:length], block)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize("reduction", [None, "add"])
@pytest.mark.parametrize("kind", ["int64", "uint32"])
@pytest.mark.parametrize("axis", [0, 1])
def test_large_in_place_scatter_writes_nothing(place, reduction, kind, axis, threads):
    """Large enough for every blocked and threaded way of a kernel."""
    generator = np.random.default_rng(3)
    shape = (700, 900)
    before = contents(generator, shape, "float32", Flavour.RANDOM)
    lookup = indices(generator, shape, shape[axis], kind)
    flat = {"first": 0, "middle": lookup.size // 2 + 17, "last": lookup.size - 1}[place]
    lookup.flat[flat] = shape[axis]
    x = Poisoned(shape, "float32", values=before)
    updates = np.zeros(shape, np.float32)
    with pytest.raises(dml.IndexOutOfRangeError) as error:
        dml.scatter_elements(x.array, lookup, updates, axis=axis, reduction=reduction, out=x.array)
    assert error.value.position == tuple(map(int, np.unravel_index(flat, shape)))
    assert x.untouched()
    out = Poisoned(shape, "float32")
    with pytest.raises(dml.IndexOutOfRangeError):
        dml.gather_elements(x.array, lookup, axis=axis, out=out.array)
    assert out.untouched()


@pytest.mark.parametrize("place", ["first", "middle", "last"])
@pytest.mark.parametrize(("width", "length"), [(1, 2), (64, 1)])
def test_large_in_place_scatter_nd_writes_nothing(place, width, length, threads):
    generator = np.random.default_rng(4)
    rows = 20_000
    shape = (rows, width)
    lookup = indices(generator, (rows, length), shape[:length], "int64")
    flat = {"first": 0, "middle": lookup.size // 2, "last": lookup.size - 1}[place]
    lookup.flat[flat] = -shape[flat % length] - 1
    x = Poisoned(shape, "float32")
    updates = np.zeros((rows, *shape[length:]), np.float32)
    with pytest.raises(dml.IndexOutOfRangeError) as error:
        dml.scatter_nd(x.array, lookup, updates, out=x.array)
    assert error.value.position == (flat // length, flat % length)
    assert x.untouched()


@pytest.mark.parametrize("owned", [False, True], ids=["bound", "given at initialization"])
@pytest.mark.parametrize("kind", [dml.GatherND, dml.Gather])
def test_operators_report_positions_in_the_declared_sizes(kind, owned):
    lookup = np.array([0, 2, 7, 1], np.uint32)
    flags = "OWNED_BY_DML" if owned else "NONE"
    given_fields = (
        {"input_dimension_count": 1, "indices_dimension_count": 2}
        if kind is dml.GatherND
        else {"axis": 3, "index_dimensions": 1}
    )
    shape = (1, 1, 4, 1) if kind is dml.GatherND else (1, 1, 1, 4)
    desc = kind(
        input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 1, 3), flags=flags),
        indices_tensor=dml.TensorDesc("UINT32", shape, flags=flags),
        output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 1, 4)),
        **given_fields,
    )
    compiled = dml.Device("cpu").create_operator(desc).compile()
    operands = {
        "InputTensor": np.ones((1, 1, 1, 3), np.float32),
        "IndicesTensor": lookup.reshape(shape),
    }
    if owned:
        compiled, operands = compiled.initialize(**operands), {}
    with pytest.raises(dml.IndexOutOfRangeError, match="got 7") as error:
        compiled(**operands)
    assert error.value.position == ((0, 0, 2, 0) if kind is dml.GatherND else (0, 0, 0, 2))
