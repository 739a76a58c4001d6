"""Array functions on PyTorch's and CuPy's arrays on a GPU: the CPU's results, to the bit."""

import pickle
from itertools import pairwise

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

# What PyTorch has in common with NumPy.
TYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8")
LAYOUTS = ("packed", "transposed", "every other", "repeated", "offset")


def on_gpu(array, layout="packed"):
    """The array's values on the GPU, laid out in some way."""
    tensor = torch.from_numpy(array).cuda()
    if layout == "transposed" and array.ndim > 1:
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if layout == "every other" and array.ndim:
        wide = torch.full((*array.shape[:-1], 2 * array.shape[-1]), 77, device="cuda").to(
            tensor.dtype
        )
        wide[..., ::2] = tensor
        return wide[..., ::2]
    if layout == "offset":
        flat = torch.zeros(array.size + 3, dtype=tensor.dtype, device="cuda")
        flat[3:] = tensor.reshape(-1)
        return flat[3:].reshape(array.shape)
    return tensor


def to_numpy(value):
    return value.cpu().numpy()


def values(data, shape, kind):
    generator = data.draw(strategies.generators())
    return contents(generator, shape, np.dtype(kind), data.draw(strategies.flavours()))


def same(got, expected):
    got = got if isinstance(got, tuple) else (got,)
    expected = expected if isinstance(expected, tuple) else (expected,)
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.is_cuda
        assert_same_bits(to_numpy(ours), theirs)


SHAPES = strategies.shapes(min_rank=1)
KINDS = st.sampled_from(TYPES)
HOW = st.sampled_from(LAYOUTS)


@given(st.data(), KINDS, SHAPES, HOW, st.booleans())
def test_top_k(data, kind, shape, layout, largest):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    x = values(data, shape, kind)
    index_dtype = data.draw(st.sampled_from(("int64", "uint32")))
    options = {"axis": axis, "largest": largest, "index_dtype": index_dtype}
    same(dml.top_k(on_gpu(x, layout), k, **options), dml.top_k(x, k, **options))


@pytest.mark.parametrize("flavour", list(Flavour))
@pytest.mark.parametrize(
    ("rows", "n", "k"), [(1, 1 << 20, 1000), (3, 200_003, 1024), (5, 70000, 300)]
)
def test_top_k_of_few_long_rows(flavour, rows, n, k):
    x = contents(np.random.default_rng(k), (rows, n), np.float32, flavour)
    for largest in (True, False):
        options = {"largest": largest, "index_dtype": "int64"}
        same(dml.top_k(on_gpu(x, "offset"), k, **options), dml.top_k(x, k, **options))


@given(st.data(), KINDS, strategies.shapes(), HOW)
def test_nonzero_coordinates(data, kind, shape, layout):
    x = values(data, shape, kind)
    same(dml.nonzero_coordinates(on_gpu(x, layout)), dml.nonzero_coordinates(x))


@given(st.data(), KINDS, strategies.shapes(), HOW, st.integers(0, 40))
def test_so_many_rows_of_nonzero_coordinates(data, kind, shape, layout, size):
    x = values(data, shape, kind)
    options = {"size": size, "fill_value": data.draw(st.integers(-2, 99))}
    same(
        dml.nonzero_coordinates(on_gpu(x, layout), **options), dml.nonzero_coordinates(x, **options)
    )


@given(st.data(), KINDS, SHAPES, HOW)
def test_split_and_join(data, kind, shape, layout):
    axis = data.draw(st.integers(0, len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), max_size=5)))
    edges = [0, *cuts, shape[axis]]
    sizes = [end - begin for begin, end in pairwise(edges)]
    x = values(data, shape, kind)
    parts = dml.split(on_gpu(x, layout), sizes, axis=axis)
    same(parts, dml.split(x, sizes, axis=axis))
    same(dml.join(parts, axis=axis), x)


@given(st.data(), KINDS, KINDS, SHAPES, HOW)
def test_cast(data, kind, to, shape, layout):
    x = values(data, shape, kind)
    same(dml.cast(on_gpu(x, layout), to), dml.cast(x, to))


@given(st.data(), KINDS, st.sampled_from(("int64", "int32")), SHAPES, HOW, st.integers(0, 6))
def test_one_hot(data, kind, index_kind, shape, layout, depth):
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    generator = data.draw(strategies.generators())
    indices = generator.integers(-depth - 2, depth + 2, shape).astype(index_kind)
    table = values(data, (2,), kind)
    expected = dml.one_hot(indices, depth, table, axis=axis)
    same(dml.one_hot(on_gpu(indices, layout), depth, on_gpu(table), axis=axis), expected)


def test_one_hot_of_plain_values_and_over_many_blocks():
    indices = np.random.default_rng(5).integers(-2000, 2000, (300, 70))
    for axis in (0, 1, 2):
        found = dml.one_hot(on_gpu(indices), 1999, axis=axis)
        same(found, dml.one_hot(indices, 1999, axis=axis))


@given(st.data(), KINDS, strategies.shapes(min_rank=1, max_elements=200), HOW)
def test_pad_and_slice_window(data, kind, shape, layout):
    x = values(data, shape, kind)
    width = [tuple(data.draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))) for _ in shape]
    mode = data.draw(st.sampled_from(("constant", "edge", "reflection", "symmetric", "wrap")))
    if 0 in shape:
        mode = "constant"
    if mode == "reflection":
        width = [(min(a, n - 1), min(b, n - 1)) for (a, b), n in zip(width, shape, strict=True)]
    x_gpu = on_gpu(x, layout)
    same(dml.pad(x_gpu, width, mode), dml.pad(x, width, mode))
    repeats = [data.draw(st.integers(0, 3)) for _ in shape]
    same(dml.tile(x_gpu, repeats), dml.tile(x, repeats))
    starts = [data.draw(st.integers(0, n)) for n in shape]
    sizes = [data.draw(st.integers(0, n - s)) for n, s in zip(shape, starts, strict=True)]
    steps = [data.draw(st.sampled_from((-3, -2, -1, 1, 2, 3))) for _ in shape]
    same(dml.slice_window(x_gpu, starts, sizes, steps), dml.slice_window(x, starts, sizes, steps))


class TestCalls:
    def test_the_current_stream_is_used(self):
        side = torch.cuda.Stream()
        x = torch.zeros(1 << 22, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(200_000_000)  # on another stream the call would see zeros
            x.fill_(1)
            coordinates = dml.nonzero_coordinates(x)
        assert len(coordinates) == x.numel()

    def test_out(self):
        x = torch.tensor([3.0, 1.0, 2.0], device="cuda")
        v, i = torch.empty(2, device="cuda"), torch.empty(2, dtype=torch.int64, device="cuda")
        result = dml.top_k(x, 2, index_dtype="int64", out=(v, i))
        assert result.values is v
        assert i.tolist() == [0, 2]

    def test_out_on_another_device(self):
        x = torch.tensor([3.0, 1.0, 2.0], device="cuda")
        with pytest.raises(dml.ArgumentError, match="cuda:0"):
            dml.join([x, x], out=torch.empty(6))
        with pytest.raises(dml.ArgumentError, match="cuda:0"):
            dml.join([torch.ones(3), x])

    def test_overlap_is_refused(self):
        x = torch.arange(12.0, device="cuda")
        with pytest.raises(dml.ArgumentError, match="memory that does not overlap"):
            dml.split(x, 2, out=(x[6:], torch.empty(6, device="cuda")))

    def test_gradients(self):
        x = torch.ones(3, device="cuda", requires_grad=True)
        assert dml.top_k(x, 1).values.requires_grad
        with pytest.raises(dml.ArgumentTypeError, match="detach"):
            dml.top_k(x.detach(), 1, out=(x[:1], None))
        with torch.no_grad():
            assert dml.top_k(x, 1).values.tolist() == [1]

    def test_memory_outlives_its_stream_when_recorded(self):
        side = torch.cuda.Stream()
        values, _ = dml.top_k(torch.rand(1 << 20, device="cuda"), 1000)
        expected = values.clone()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000_000)
            later = values * 1
        values.record_stream(side)
        del values
        again = [torch.full((1000,), -1.0, device="cuda") for _ in range(50)]
        torch.cuda.synchronize()
        assert torch.equal(later, expected)
        assert len(again) == 50

    def test_in_a_graph(self):
        x = torch.rand(64, 1000, device="cuda")
        dml.top_k(x, 10)  # compiled before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            values, indices = dml.top_k(x, 10)
        for seed in range(3):
            x.copy_(torch.rand(64, 1000, generator=torch.Generator().manual_seed(seed)))
            graph.replay()
            torch.cuda.synchronize()
            expected = dml.top_k(x.cpu().numpy(), 10)
            assert_same_bits(to_numpy(values), expected.values)
            assert (to_numpy(indices) == expected.indices).all()

    def test_writing_in_a_graph(self):
        x, indices = torch.rand(1000, 8, device="cuda"), torch.arange(0, 1000, 3, device="cuda")
        rows, cache = torch.empty(len(indices), 8, device="cuda"), torch.zeros_like(x)

        def write():
            dml.gather(x, indices, out=rows)
            dml.scatter_nd(cache, indices[:, None], rows, out=cache)

        write()  # compiled before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            write()
        x.copy_(torch.rand(1000, 8))
        graph.replay()
        assert torch.equal(rows, x[indices])
        assert torch.equal(cache[indices], rows)
        assert cache.count_nonzero() == rows.count_nonzero()

    @pytest.mark.parametrize("unfit", ["overlap", "type", "sizes", "device"])
    def test_what_does_not_fit_is_not_written(self, unfit):
        x, indices = torch.arange(40.0, device="cuda").reshape(8, 5), torch.tensor([7, 0]).cuda()
        out = {
            "overlap": x[1:3],
            "type": torch.zeros(2, 5, device="cuda", dtype=torch.int32),
            "sizes": torch.zeros(3, 5, device="cuda"),
            "device": torch.zeros(2, 5),
        }[unfit]
        before = out.clone()
        named = "one device" if unfit == "device" else "out"
        with pytest.raises(dml.AnyDMLError, match=named):
            dml.gather(x, indices, out=out)
        assert torch.equal(out, before)

    def test_nonzero_in_a_graph_is_refused(self):
        x = torch.ones(10, device="cuda")
        dml.nonzero_coordinates(x)
        with (
            pytest.raises(dml.DeviceError, match="CUDA graph"),
            torch.cuda.graph(torch.cuda.CUDAGraph()),
        ):
            dml.nonzero_coordinates(x)

    def test_owned_by_an_operator(self):
        x = torch.arange(24.0, device="cuda").reshape(1, 2, 3, 4).transpose(2, 3)
        sizes = tuple(x.shape)
        owned = dml.TensorDesc("FLOAT32", sizes, flags="OWNED_BY_DML")
        tensor = dml.TensorDesc("FLOAT32", sizes)
        desc = dml.ElementWiseIdentity(input_tensor=owned, output_tensor=tensor)
        compiled = dml.Device("cuda").create_operator(desc).compile()
        operator = compiled.initialize(InputTensor=x)
        expected = x.clone()
        x.zero_()
        for one in (operator, pickle.loads(pickle.dumps(operator))):
            y = torch.empty(sizes, device="cuda")
            one.dispatch(OutputTensor=y)
            assert torch.equal(y, expected)

    def test_cupy(self):
        cupy = pytest.importorskip("cupy")
        x = contents(np.random.default_rng(1), (50, 60), np.float32, Flavour.RANDOM)
        values, indices = dml.top_k(cupy.asarray(x)[:, ::2], 7)
        expected = dml.top_k(x[:, ::2], 7)
        assert isinstance(values, cupy.ndarray)
        assert_same_bits(values.get(), expected.values)
        assert (indices.get() == expected.indices).all()

    def test_jax(self):
        jax = pytest.importorskip("jax")
        if jax.default_backend() != "gpu":
            pytest.skip("JAX has no GPU here")
        x = contents(np.random.default_rng(2), (50, 60), np.float32, Flavour.RANDOM)
        values, indices = dml.top_k(jax.numpy.asarray(x), 7, index_dtype="uint32")
        expected = dml.top_k(x, 7, index_dtype="uint32")
        assert isinstance(values, jax.Array)
        assert values.device.platform == "gpu"
        assert_same_bits(np.asarray(values), expected.values)
        assert (np.asarray(indices) == expected.indices).all()

    def test_no_memory(self):
        x = torch.zeros(1, device="cuda").expand(1 << 45)
        with pytest.raises(dml.AllocationError):
            dml.join([x, x])
