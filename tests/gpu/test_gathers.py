"""Gathers on arrays on a GPU: the CPU's results and errors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from support import Flavour, assert_same_bits, contents, strategies

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

TYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "complex128")
INDEX_TYPES = ("int64", "int32")


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    dml.synchronize()  # a test that leaves an error behind fails here


def on_gpu(array, step=1):
    """The array's values on the GPU, every `step`-th element of the last axis."""
    tensor = torch.from_numpy(np.ascontiguousarray(array)).cuda().reshape(array.shape)
    if step == 1 or not array.ndim:
        return tensor
    wide = torch.full((*array.shape[:-1], step * array.shape[-1]), 77, device="cuda")
    wide = wide.to(tensor.dtype)
    wide[..., ::step] = tensor
    return wide[..., ::step]


def to_numpy(value):
    return value.cpu().numpy()


@given(st.data(), st.sampled_from(TYPES), strategies.shapes(min_rank=1),
       st.sampled_from(("gather", "elements", "nd")), st.booleans(), st.booleans(),
       st.sampled_from((1, 2)))  # fmt: skip
def test_results_and_errors_are_the_cpus(data, kind, shape, which, bad, bound, step):
    generator = data.draw(strategies.generators())
    if kind == "complex128":
        x = generator.random(shape) + 1j * generator.random(shape)
    else:
        x = contents(generator, shape, np.dtype(kind), Flavour.RANDOM)
    rank = len(shape)
    axis = data.draw(st.integers(0, rank - 1))
    if which == "gather":
        lookup_shape, sizes = data.draw(strategies.shapes(max_elements=60)), shape[axis]
        call, options = dml.gather, {"axis": axis}
    elif which == "elements":
        maximum = [9 if i == axis else n for i, n in enumerate(shape)]
        lookup_shape = tuple(data.draw(st.integers(0, n)) for n in maximum)
        call, options, sizes = dml.gather_elements, {"axis": axis}, shape[axis]
    else:
        width = data.draw(st.integers(1, rank))
        lookup_shape = (data.draw(st.integers(0, 20)), width)
        call, options, sizes = dml.gather_nd, {}, np.array(shape[:width])
    signed = np.dtype(data.draw(st.sampled_from(INDEX_TYPES)))
    high = np.maximum(sizes, 1)
    lookup = generator.integers(-high, high, lookup_shape).astype(signed)
    if bad and lookup.size:
        lookup.flat[generator.integers(lookup.size)] = -(2**31) if bound else 2**31 - 1
    expected = error = None
    try:
        expected = call(x, lookup, **options)
    except dml.IndexOutOfRangeError as raised:
        error = raised
    on_device, at = on_gpu(x, step), on_gpu(lookup, step)
    out = None
    if bound:
        reference = (
            call(np.zeros(shape, x.dtype), np.zeros_like(lookup), **options)
            if (lookup.size == 0 or np.all(sizes))
            else None
        )
        if reference is None:
            return
        out = torch.full(reference.shape, 3, device="cuda").to(on_device.dtype)
        kept = to_numpy(out)
        options |= {"out": out}
    result = call(on_device, at, **options)
    if error is None:
        dml.synchronize()
        assert_same_bits(to_numpy(result), expected)
        return
    with pytest.raises(dml.IndexOutOfRangeError) as raised:
        dml.synchronize()
    assert str(raised.value).startswith(str(error) + "; found on cuda:0")
    assert raised.value.position == error.position
    if bound:
        assert_same_bits(to_numpy(out), kept)
    else:
        assert not to_numpy(result).any()


@pytest.mark.parametrize("rows", [3, 5000])  # one block, and many
def test_in_a_graph(rows):
    x = torch.rand(100, 64, device="cuda")
    at = torch.randint(0, 100, (rows,), device="cuda")
    dml.gather(x, at)  # compiled before
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = dml.gather(x, at)
    graph.replay()
    dml.synchronize()
    assert torch.equal(y, x[at])
    for _ in range(2):
        at[2] = 100
        graph.replay()
        with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[2\].*captured in a graph"):
            dml.synchronize()
        assert not y.any()
        at[2] = 99
        graph.replay()
        dml.synchronize()
        assert torch.equal(y, x[at])


def test_a_call_that_blocks(monkeypatch):
    monkeypatch.setenv("ANYDML_BLOCKING", "1")
    x = torch.rand(10, device="cuda")
    with pytest.raises(dml.IndexOutOfRangeError) as raised:
        dml.gather(x, torch.tensor([1, -11], device="cuda"))
    assert str(raised.value) == ("gather: indices[1]: expected -10..9 (axis 0 of size 10), got -11")


def test_errors_on_side_streams_do_not_mix():
    x = torch.rand(1000, 100, device="cuda")
    good = torch.randint(0, 1000, (20000,), device="cuda")
    bad = good.clone()
    bad[12345] = 1000
    torch.cuda.synchronize()
    results, found = [], []
    for turn in range(20):
        with torch.cuda.stream(torch.cuda.Stream()):
            out = torch.empty(20000, 100, device="cuda") if turn % 4 == 3 else None
            try:
                results.append((turn, dml.gather(x, bad if turn == 10 else good, out=out)))
            except dml.IndexOutOfRangeError as error:
                found.append(error.position)
                results.append((turn, dml.gather(x, good, out=out)))
    try:
        dml.synchronize()
    except dml.IndexOutOfRangeError as error:
        found.append(error.position)
    assert found == [(12345,)]
    for turn, result in results:
        assert torch.equal(result, torch.zeros_like(result) if turn == 10 else x[good])


@pytest.mark.parametrize("index_type", ["int64", "int32", "uint64", "uint32"])
@pytest.mark.parametrize("mode", ["clamp", "wrap", "clip"])
def test_modes(mode, index_type):
    x = np.random.default_rng(1).random((50, 37))
    limits = np.iinfo(index_type)
    odd = [limits.min, limits.max, 0, 49, 50, 51, 37, 36, 100, 127]
    odd += [-1, -36, -37, -38, -50, -51, -100] if limits.min else []
    at = np.random.default_rng(2).permutation(np.tile(np.array(odd, index_type), 40))
    for call, shape in (
        (dml.gather, (-1,)), (dml.gather, (20, -1)), (dml.gather_nd, (-1, 1)),
        (dml.gather_nd, (-1, 2)), (dml.gather_elements, (-1, 10)),
    ):  # fmt: skip
        lookup = at[: at.size // 20 * 20].reshape(shape)
        results = [call(*map(kind, (x, lookup)), mode=mode) for kind in (np.asarray, on_gpu)]
        assert_same_bits(to_numpy(results[1]), results[0])


def test_cupy():
    cupy = pytest.importorskip("cupy")
    x = np.random.default_rng(1).random((50, 60))
    at = np.random.default_rng(2).integers(-50, 50, (7, 9)).astype(np.uint32) % 50
    result = dml.gather(cupy.asarray(x)[:, ::2], cupy.asarray(at))
    assert isinstance(result, cupy.ndarray)
    assert_same_bits(result.get(), dml.gather(x[:, ::2], at))


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    x = np.random.default_rng(1).random((50, 60)).astype(np.float32)
    at = np.random.default_rng(2).integers(-50, 50, (7, 60)).astype(np.int32)
    result = dml.gather_elements(jax.numpy.asarray(x), jax.numpy.asarray(at))
    assert isinstance(result, jax.Array)
    assert_same_bits(np.asarray(result), dml.gather_elements(x, at))
    at[3, 4] = 50
    with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[3, 4\].*got 50$"):
        dml.gather_elements(jax.numpy.asarray(x), jax.numpy.asarray(at))
