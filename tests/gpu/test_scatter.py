"""Scatters on PyTorch's arrays on a GPU: the CPU's results, to the bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml as dml
from support import Flavour, assert_same_bits, contents, strategies

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

TYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8")
HOW = (None, "add", "mul", "min", "max", "mean")


def to_gpu(array, transposed):
    tensor = torch.from_numpy(array).cuda()
    return tensor.mT.contiguous().mT if transposed and array.ndim > 1 else tensor


def same(got, expected):
    assert got.is_cuda
    assert_same_bits(got.cpu().numpy(), expected)


def drawn(data, kind, shape):
    generator = data.draw(strategies.generators())
    return contents(generator, shape, np.dtype(kind), data.draw(strategies.flavours()))


def places(data, shape, sizes):
    """Indices of a shape into axes of these sizes, negative ones too."""
    generator = data.draw(strategies.generators())
    size = np.broadcast_to(sizes, shape)
    found = (generator.random(shape) * size).astype(np.int64)
    return np.where(generator.random(shape) < 0.2, found - size, found)


@given(st.data(), st.sampled_from(TYPES), strategies.shapes(min_rank=1), st.sampled_from(HOW))
def test_scatter_elements(data, kind, shape, reduction):
    axis = data.draw(st.integers(0, len(shape) - 1))
    count = data.draw(st.integers(0, 2 * shape[axis])) if shape[axis] else 0
    lookup = (*shape[:axis], count, *shape[axis + 1 :])
    x, updates = drawn(data, kind, shape), drawn(data, kind, lookup)
    indices = places(data, lookup, shape[axis])
    transposed, include_self = data.draw(st.booleans()), data.draw(st.booleans())
    options = {"axis": axis, "reduction": reduction, "include_self": include_self}
    expected = dml.scatter_elements(x, indices, updates, **options)
    on_gpu = [to_gpu(array, transposed) for array in (x, indices, updates)]
    same(dml.scatter_elements(*on_gpu, **options), expected)
    dml.scatter_elements(*on_gpu, **options, out=on_gpu[0])
    same(on_gpu[0], expected)


@given(st.data(), st.sampled_from(TYPES), strategies.shapes(min_rank=1), st.sampled_from(HOW))
def test_scatter_nd(data, kind, shape, reduction):
    if 0 in shape:
        return
    length = data.draw(st.integers(1, len(shape)))
    count = data.draw(st.integers(0, 50))
    x, updates = drawn(data, kind, shape), drawn(data, kind, (count, *shape[length:]))
    indices = places(data, (count, length), np.array(shape[:length]))
    transposed, include_self = data.draw(st.booleans()), data.draw(st.booleans())
    options = {"reduction": reduction, "include_self": include_self}
    expected = dml.scatter_nd(x, indices, updates, **options)
    on_gpu = [to_gpu(array, transposed) for array in (x, indices, updates)]
    same(dml.scatter_nd(*on_gpu, **options), expected)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(TYPES), st.integers(1, 50_000), st.sampled_from((50, 10**6)))
def test_few_updates_of_many_elements(data, kind, count, targets):
    generator = data.draw(strategies.generators())
    size = data.draw(st.integers(4 * count, 250_000))
    x, updates = drawn(data, kind, (size,)), drawn(data, kind, (count,))
    indices = generator.integers(0, min(size, targets), count) - size * generator.integers(0, 2)
    expected = dml.scatter_elements(x, indices, updates)
    on_gpu = [to_gpu(array, False) for array in (x, indices, updates)]
    same(dml.scatter_elements(*on_gpu), expected)
    other = torch.empty_like(on_gpu[0])
    dml.scatter_elements(*on_gpu, out=other)
    same(other, expected)
    dml.scatter_elements(*on_gpu, out=on_gpu[0])
    same(on_gpu[0], expected)
    on_gpu[1][count // 2] = size
    kept = other.clone()
    zeros = dml.scatter_elements(*on_gpu)
    with pytest.raises(dml.IndexOutOfRangeError, match=rf"\[{count // 2}\]"):
        dml.synchronize()
    assert not zeros.any()
    dml.scatter_elements(*on_gpu, out=other)
    with pytest.raises(dml.IndexOutOfRangeError, match=rf"\[{count // 2}\]"):
        dml.synchronize()
    assert_same_bits(other.cpu().numpy(), kept.cpu().numpy())


class TestCalls:
    x = torch.arange(12.0).reshape(3, 4)
    indices = torch.tensor([[2, 0], [0, 1], [-1, 1]])

    def both(self, *operands, **options):
        expected = dml.scatter_elements(*operands, **options)
        moved = [a.cuda() if isinstance(a, torch.Tensor) else a for a in operands]
        same(dml.scatter_elements(*moved, **options), expected.numpy())

    def test_one_number_for_all(self):
        self.both(self.x, self.indices, 7, axis=1)
        self.both(self.x, self.indices, 2, axis=1, reduction="mul", include_self=False)

    def test_broadcast(self):
        self.both(self.x, self.indices[:1], torch.ones(3, 1), axis=1, broadcast=True)

    def test_rank_0(self):
        indices = torch.tensor([[0, -1], [0, 0]]).mT
        self.both(torch.tensor(5.0), indices, torch.arange(4.0).reshape(2, 2), reduction="add")

    def test_bools(self):
        x, updates = self.x > 5, self.indices > 0
        self.both(x, self.indices.to(torch.int32), updates, axis=1, reduction="add")

    def test_bad_indices(self):
        x, updates = self.x.cuda(), torch.ones(3, 2, device="cuda")
        indices = self.indices.cuda()
        indices[1, 1] = 4
        out = x.clone()
        for options in ({}, {"out": out}, {"out": out, "reduction": "add"}):
            dml.scatter_elements(x, indices, updates, axis=1, **options)
            with pytest.raises(dml.IndexOutOfRangeError, match=r"\[1, 1\].* got 4"):
                dml.synchronize()
        assert torch.equal(out, x)
        zeros = dml.scatter_elements(x, indices, updates, axis=1)
        with pytest.raises(dml.IndexOutOfRangeError):
            dml.synchronize()
        assert not zeros.any()

    def test_in_a_graph(self):
        x, updates = self.x.cuda(), torch.ones(3, 2, device="cuda")
        indices = self.indices.cuda()
        dml.scatter_elements(x, indices, updates, axis=1, reduction="add")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = dml.scatter_elements(x, indices, updates, axis=1, reduction="add")
        for last in (0, 3):
            indices[2, 0] = last
            graph.replay()
            expected = dml.scatter_elements(
                self.x, indices.cpu(), updates.cpu(), axis=1, reduction="add"
            )
            same(result, expected.numpy())

    @pytest.mark.parametrize("kind", ["complex64", "complex128"])
    @pytest.mark.parametrize("include_self", [True, False])
    @pytest.mark.parametrize("reduction", ["add", "mul", "mean"])
    def test_complex_numbers(self, kind, include_self, reduction):
        generator = np.random.default_rng(5)
        part = np.dtype(f"f{np.dtype(kind).itemsize // 2}")
        x, updates = (
            contents(generator, (rows, 18), part, Flavour.RANDOM).view(kind) for rows in (40, 60)
        )
        indices = generator.integers(-40, 40, (60, 9))
        options = {"reduction": reduction, "include_self": include_self}
        on_gpu = [to_gpu(array, False) for array in (x, indices, updates)]
        expected = dml.scatter_elements(x, indices, updates, **options)
        same(dml.scatter_elements(*on_gpu, **options), expected)
        dml.scatter_elements(*on_gpu, **options, out=on_gpu[0])
        same(on_gpu[0], expected)
        rows = indices[:, :1]
        expected = dml.scatter_nd(x, rows, updates, **options)
        on_gpu[0] = to_gpu(x, False)
        same(dml.scatter_nd(on_gpu[0], to_gpu(rows, False), on_gpu[2], **options), expected)

    def test_rows_of_which_some_repeat_an_index(self):
        generator = np.random.default_rng(7)
        x, updates = (generator.random((4, 2048)).astype("f4") for _ in range(2))
        indices = np.arange(4 * 2048).reshape(4, 2048) // 4 % 7  # four alike, mostly
        indices -= np.where(generator.random(indices.shape) < 0.1, 2048, 0)
        on_gpu = [to_gpu(array, False) for array in (x, indices, updates)]
        same(
            dml.scatter_elements(*on_gpu, axis=1), dml.scatter_elements(x, indices, updates, axis=1)
        )

    @pytest.mark.parametrize("kind", [*TYPES, "complex64"])
    @pytest.mark.parametrize("reduction", ["mean", "min", "max"])
    def test_many_updates_of_few_elements(self, kind, reduction):
        if kind == "complex64" and reduction != "mean":
            return
        generator = np.random.default_rng(6)
        part = np.dtype("f4" if kind == "complex64" else kind)
        for flavour in (Flavour.RANDOM, Flavour.TIED):
            x, updates = (contents(generator, (n,), part, flavour) for n in (18, 160_000))
            x, updates = x.view(kind), updates.view(kind)
            for places in (len(x), 2):
                indices = generator.integers(0, places, len(updates))
                for include_self in (True, False):
                    options = {"reduction": reduction, "include_self": include_self}
                    expected = dml.scatter_elements(x, indices, updates, **options)
                    on_gpu = [to_gpu(array, False) for array in (x, indices, updates)]
                    same(dml.scatter_elements(*on_gpu, **options), expected)

    def test_a_mean_with_a_bad_index_is_told_once(self):
        x, updates = torch.ones(4, device="cuda"), torch.ones(2, device="cuda")
        indices = torch.tensor([1, 4], device="cuda")
        for options in ({}, {"out": x}):
            for include_self in (True, False):
                result = dml.scatter_elements(
                    x, indices, updates, reduction="mean", include_self=include_self, **options
                )
                with pytest.raises(
                    dml.IndexOutOfRangeError, match=r"indices\[1\].* got 4"
                ) as raised:
                    dml.synchronize()
                assert "more call" not in str(raised.value)
                assert result.tolist() == [1.0 if options else 0.0] * 4


class TestFewUpdates:
    """At most 2048, of a large output: a copy and one kernel."""

    @pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int8"])
    @pytest.mark.parametrize("count", [1, 31, 1000, 2048, 2049])
    def test_elements(self, kind, count):
        generator = np.random.default_rng(count)
        x, updates = (
            contents(generator, (n,), np.dtype(kind), Flavour.RANDOM) for n in (70000, count)
        )
        indices = generator.integers(-70000, 70000, count)
        indices[count // 2 :: 3] = indices[0]  # of several, the last is kept
        expected = dml.scatter_elements(x, indices, updates)
        x, updates, indices = (torch.from_numpy(array).cuda() for array in (x, updates, indices))
        same(dml.scatter_elements(x, indices, updates), expected)
        same(dml.scatter_elements(x, indices.int(), updates), expected)
        out = torch.empty(140000, dtype=x.dtype, device="cuda")[::2]
        dml.scatter_elements(x, indices, updates, out=out)
        same(out, expected)
        dml.scatter_elements(x, indices, updates, out=x)
        same(x, expected)

    @pytest.mark.parametrize("transposed", [False, True])
    @pytest.mark.parametrize("length", [1, 2, 3])
    def test_rows(self, length, transposed):
        generator = np.random.default_rng(length)
        shape = (40, 50, 36)
        x = generator.standard_normal(shape, np.float32)
        updates = generator.standard_normal((2, 30, *shape[length:]), np.float32)[:, ::3]
        indices = generator.integers(0, shape[:length], (2, 10, length))
        indices[1, 5] = indices[0, 0]
        expected = dml.scatter_nd(x, indices, updates)
        on_gpu = [
            to_gpu(np.ascontiguousarray(array), transposed) for array in (x, indices, updates)
        ]
        same(dml.scatter_nd(*on_gpu), expected)
        dml.scatter_nd(*on_gpu, out=on_gpu[0])
        same(on_gpu[0], expected)

    def test_bad_indices(self):
        x, updates = torch.ones(70000, device="cuda"), torch.zeros(300, device="cuda")
        indices = torch.arange(300, device="cuda")
        indices[[70, 200]] = torch.tensor([70000, -70001], device="cuda")
        out = x.clone()
        for options in ({}, {"out": out}, {"out": x}):
            result = dml.scatter_elements(x, indices, updates, **options)
            with pytest.raises(dml.IndexOutOfRangeError, match=r"\[70\].* got 70000"):
                dml.synchronize()
            assert result.sum() == (70000 if options else 0)

    def test_in_a_graph(self):
        x, updates = torch.zeros(70000, device="cuda"), torch.arange(1.0, 4, device="cuda")
        indices = torch.tensor([5, 7, 5], device="cuda")
        dml.scatter_elements(x, indices, updates)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = dml.scatter_elements(x, indices, updates)
        for first in (5, 6):
            indices[2] = first
            graph.replay()
            assert torch.equal(
                result, dml.scatter_elements(x.cpu(), indices.cpu(), updates.cpu()).cuda()
            )


class TestSparseUpdates:
    """Too many for one kernel that reads all indices, of a 16 times larger output."""

    @pytest.mark.parametrize("count", [2049, 10_000, 70_000])
    @pytest.mark.parametrize("kind", ["float64", "float32", "int8"])
    def test_elements(self, kind, count):
        generator = np.random.default_rng(count)
        size = 16 * count + 5
        x, updates = (
            contents(generator, (n,), np.dtype(kind), Flavour.RANDOM) for n in (size + 1, count)
        )
        indices = generator.integers(-size, size, count)
        indices[count // 2 :: 3] = indices[0]  # of several, the last is kept
        moved, values, places = (torch.from_numpy(a).cuda() for a in (x, updates, indices))
        for start in (0, 1):  # of an input at a whole line of 16 bytes, or not
            part = moved[start : start + size]
            expected = dml.scatter_elements(x[start : start + size], indices, updates)
            same(dml.scatter_elements(part, places, values), expected)
            same(dml.scatter_elements(part, places.int(), values), expected)
            out = torch.empty(2 * size, dtype=moved.dtype, device="cuda")[::2]
            same(dml.scatter_elements(part, places, values, out=out), expected)
            out = torch.empty(size, dtype=moved.dtype, device="cuda")
            same(dml.scatter_elements(part, places, values, out=out), expected)
            out.copy_(part)
            same(dml.scatter_elements(out, places, values, out=out), expected)
            one = np.full(count, size - 1)
            expected = dml.scatter_elements(x[start : start + size], one, updates)
            same(dml.scatter_elements(part, torch.from_numpy(one).cuda(), values), expected)

    @pytest.mark.parametrize("length", [1, 2])
    def test_rows(self, length):
        generator = np.random.default_rng(length)
        shape = (200, 300, 5) if length == 2 else (60_000, 5)
        x = generator.standard_normal(shape, np.float32)
        updates = generator.standard_normal((3000, 5), np.float32)
        indices = generator.integers(0, shape[:length], (3000, length))
        indices[2000:2500] = indices[7]
        expected = dml.scatter_nd(x, indices, updates)
        on_gpu = [to_gpu(array, False) for array in (x, indices, updates)]
        same(dml.scatter_nd(*on_gpu), expected)
        dml.scatter_nd(*on_gpu, out=on_gpu[0])
        same(on_gpu[0], expected)

    @pytest.mark.parametrize("count", [2049, 70_000])
    def test_bad_indices(self, count):
        size = 16 * count
        x, updates = torch.ones(size + 1, device="cuda"), torch.zeros(count, device="cuda")
        indices = torch.arange(count, device="cuda")
        indices[[700, 2000]] = torch.tensor([size, -size - 1], device="cuda")
        for start in (0, 1):
            part = x[start : start + size]
            for options in ({}, {"out": torch.full_like(part, 2)}, {"out": part}):
                before = options["out"].clone() if options else torch.zeros_like(part)
                result = dml.scatter_elements(part, indices, updates, **options)
                with pytest.raises(dml.IndexOutOfRangeError, match=rf"\[700\].* got {size}"):
                    dml.synchronize()
                assert torch.equal(result, before)

    @pytest.mark.parametrize("start", [0, 1])
    def test_in_a_graph(self, start):
        x, updates = torch.zeros(50_001, device="cuda")[start:], torch.arange(1.0, 3001).cuda()
        indices = torch.randint(0, 50_000, (3000,), device="cuda")
        dml.scatter_elements(x, indices, updates)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = dml.scatter_elements(x, indices, updates)
        for target in (5, 6):
            indices[1000:1500] = target
            graph.replay()
            expected = dml.scatter_elements(x.cpu(), indices.cpu(), updates.cpu())
            same(result, expected.numpy())
