"""Tensors' memory: what calls leave of it, what other threads do to it, and what traces record."""

import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_calls import CALLS, as_tuple, floats  # noqa: E402 (PyTorch may be missing)

import anydml as dml  # noqa: E402 (PyTorch may be missing)
from anydml._native import native  # noqa: E402 (PyTorch may be missing)
from anydml.torch import _memory  # noqa: E402 (PyTorch may be missing)


@pytest.fixture(params=["table", "general"])
def way(request):
    """How tensors are read: by DLPack's exchange table, or without it by the general call."""
    if request.param == "table" and _memory.TABLE is None:
        pytest.skip("this PyTorch has no exchange table")
    table = _memory.TABLE if request.param == "table" else None
    native.use_tensors(torch.empty_strided, _memory.CODES, table)
    yield request.param
    native.use_tensors(torch.empty_strided, _memory.CODES, _memory.TABLE)


TYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64",
         "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
         "float8_e4m3fn", "float8_e5m2"]  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES)
def test_types_and_layouts(dtype, way):
    values = torch.tensor([[0, 1, 1], [1, 0, 0]]).to(getattr(torch, dtype))
    for x in (values, values.t(), values[:, 1:], values[1], values[::2, ::2], values[:0],
              values.expand(4, 2, 3), torch.zeros((), dtype=values.dtype)):  # fmt: skip
        result = dml.join([x, x]) if x.ndim else dml.gather_elements(x, torch.tensor([0, 0]))
        expected = torch.cat([x, x]) if x.ndim else torch.zeros(2, dtype=values.dtype)
        assert result.dtype == x.dtype
        assert result.shape == expected.shape
        assert result.is_contiguous()
        assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_both_ways_give_the_same(name, way):
    x = floats(3, 4)
    expected = as_tuple(CALLS[name](x.clone().requires_grad_()))
    for got, reference in zip(as_tuple(CALLS[name](x)), expected, strict=True):
        assert torch.equal(got, reference.detach())


def test_bits_are_resolved_by_the_dispatcher(way):
    z = torch.tensor([1 + 2j, 3 - 1j, 0])
    at = torch.tensor([2, 0])
    assert dml.gather(z.conj(), at).tolist() == [0, 1 - 2j]
    assert dml.gather(z.conj().imag, at).tolist() == [0, -2]
    assert dml.gather(torch._efficientzerotensor(3), at).tolist() == [0, 0]


@pytest.mark.parametrize("size", [8, 300_000])
def test_storages_stay_resizable(size, way):
    asks = torch.zeros(size, requires_grad=True)
    x, at, out = asks.detach(), torch.zeros(size, dtype=torch.int64), torch.zeros(size)
    results = [
        dml.gather(x, at), dml.gather(x, at, out=out), *dml.top_k(x, size),
        *dml.split(x, [size - 3, 3]), dml.cast(x, "float16"), dml.pad(x, 1, "edge"),
        dml.nonzero_coordinates(at.to(torch.complex64)),
        dml.scatter_nd(x, at[:, None], x, reduction="mean"),
    ]  # fmt: skip
    for tensor in (asks, x, at, out, *results):
        tensor.untyped_storage().resize_(0)


@pytest.mark.parametrize("change", ["data", "set_"])
def test_another_thread_gives_other_memory(change, way):
    x, done = torch.rand(100, 1000), threading.Event()

    def other():
        while not done.is_set():
            fresh = torch.rand(100, 1000)
            if change == "data":
                x.data = fresh
            else:
                x.set_(fresh)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        for _ in range(200):
            values, indices = dml.top_k(x, 3)
            assert bool((values[:, 0] >= values[:, 1]).all())
            assert bool((indices < 1000).all())
    finally:
        done.set()
        thread.join()


def test_elements_outside_of_the_storage_are_refused(way):
    x = torch.arange(6.0)
    x.untyped_storage().resize_(16)
    with pytest.raises(
        dml.ArgumentTypeError, match=r"x: .* storage holds its elements, got one of"
    ):
        dml.gather(x, torch.tensor([5]))
    assert dml.gather(x[:4], torch.tensor([3])).tolist() == [3]


@pytest.mark.filterwarnings("ignore")  # PyTorch is about to drop torch.jit
@pytest.mark.parametrize("name", [n for n in CALLS if "list" not in n and "of a scalar" not in n])
def test_traces_record_calls(name):
    call = CALLS[name]
    traced = torch.jit.trace(lambda x: as_tuple(call(x)), (floats(3, 4),), check_trace=False)
    x = floats(3, 4, seed=7)
    for got, expected in zip(traced(x), as_tuple(call(x)), strict=True):
        assert torch.equal(got, expected)


def into(call, *outs):
    """The results that a call writes to new tensors."""

    def run(x):
        targets = [x.new_empty(shape, dtype=dtype) for shape, dtype in outs]
        call(x, targets[0] if len(targets) == 1 else targets)
        return tuple(targets)

    return run


WRITES = {
    "cast": into(lambda x, out: dml.cast(x, "float64", out=out), ((3, 4), torch.float64)),
    "nonzero": into(
        lambda x, out: dml.nonzero_coordinates(x, out=out), ((12, 2), torch.int64)
    ),
    "split": into(
        lambda x, out: dml.split(x, 2, axis=1, out=out), *[((3, 2), torch.float32)] * 2
    ),
    "tile": into(lambda x, out: dml.tile(x, (2, 1), out=out), ((6, 4), torch.float32)),
    "top_k": into(
        lambda x, out: dml.top_k(x, 2, out=out), ((3, 2), torch.float32), ((3, 2), torch.int32)
    ),
    "top_k of indices": into(
        lambda x, out: dml.top_k(x, 2, out=(None, out)), ((3, 2), torch.uint32)
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # PyTorch is about to drop torch.jit
@pytest.mark.parametrize("call", WRITES.values(), ids=WRITES)
def test_calls_that_write_are_recorded(call):
    from torch.fx.experimental.proxy_tensor import make_fx

    x, y = (torch.randn(3, 4, generator=torch.Generator().manual_seed(i)) for i in (1, 7))
    for traced in (torch.jit.trace(call, (x,), check_trace=False), make_fx(call)(x)):
        for got, expected in zip(traced(y), call(y), strict=True):
            assert torch.equal(got, expected)


SIZED = {
    "top_k": lambda x: dml.top_k(x, x.shape[1]).values,
    "one_hot": lambda x: dml.one_hot(x.argmax(1), x.shape[1]),
    "slice_window": lambda x: dml.slice_window(x, [1, 1], [x.shape[0] - 1, 2]),
    "pad": lambda x: dml.pad(x, x.shape[0]),
    "pad with a pair": lambda x: dml.pad(x, (1, x.shape[0])),
    "tile": lambda x: dml.tile(x, x.shape[0]),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("call", SIZED.values(), ids=SIZED)
def test_traces_warn_of_sizes_that_become_constants(call):
    x = floats(3, 4)
    with pytest.warns(torch.jit.TracerWarning, match="integer might cause the trace"):
        traced = torch.jit.trace(call, (x,), check_trace=False)
    assert torch.equal(traced(x), call(x))


def test_results_that_are_allocated_beside_those_given():
    x = floats(3, 4)
    indices = torch.empty(3, 2, dtype=torch.int32)
    found = dml.top_k(x, 2, out=(None, indices))
    assert found.indices is indices
    for got, expected in zip(found, dml.top_k(x, 2, index_dtype="int32"), strict=True):
        assert torch.equal(got, expected)


def test_lists_of_many_tensors():
    parts = [torch.full((2,), float(i)) for i in range(1500)]
    assert torch.equal(dml.join(parts), torch.cat(parts))
    slabs = dml.split(torch.cat(parts), 1500)
    assert all(torch.equal(*pair) for pair in zip(slabs, parts, strict=True))
    sizes = [i % 3 for i in range(1500)]
    slabs = dml.split(torch.arange(sum(sizes)), sizes)
    assert [slab.numel() for slab in slabs] == sizes
    assert len(dml.split(torch.zeros(0, 3), 2**16)) == 2**16


def test_out_and_modes():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    x, out = torch.arange(4.0), torch.zeros(2)
    before = out._version
    with Seen():
        assert dml.gather(x, torch.tensor([3, 1]), out=out) is out
    assert "gather_out.default" in seen
    assert out.tolist() == [3, 1]
    assert out._version > before
    into = np.zeros(2, np.float32)
    assert dml.gather(x, [0, 2], out=into) is into
    assert into.tolist() == [0, 2]


def test_gradients_that_come_in_batches():
    x = torch.arange(6.0, requires_grad=True)
    for call in (
        lambda x: dml.join([x, x * 2, x[:1]]),
        lambda x: dml.join([x * x]),
        lambda x: dml.join([x, x[:0]]),
        lambda x: dml.split(x * x, [6, 0])[0],
        lambda x: sum(dml.split(x * x, [2, 2, 2])),
        lambda x: dml.top_k(x * x, 3).values,
    ):
        y = call(x)
        (batch,) = torch.autograd.grad(y, x, torch.eye(len(y)), is_grads_batched=True)
        expected = torch.autograd.functional.jacobian(call, x.detach())
        assert torch.equal(batch, expected)
        fast = torch.autograd.functional.jacobian(call, x.detach(), vectorize=True)
        assert torch.equal(fast, expected)
