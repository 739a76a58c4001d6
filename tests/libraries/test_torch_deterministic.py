"""`deterministic`: PyTorch's results from this library's kernels, the backward pass included."""

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402 (PyTorch may be missing)

import anydml as dml  # noqa: E402 (PyTorch may be missing)
import anydml.torch  # noqa: E402 (PyTorch may be missing)

deterministic = dml.torch.deterministic

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
NUMBERS = (*FLOATS, torch.int64, torch.int32, torch.int8, torch.uint8)
COMPLEX = (torch.complex64, torch.complex128)


class Executed(TorchDispatchMode):
    """What PyTorch itself runs, when the block inside has replaced what it replaces."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def numbers(*shape, dtype=torch.float32, seed=0):
    """Small whole numbers: sums of them are exact in every type and any order."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(0 if dtype == torch.uint8 else -3, 4, shape, generator=generator)
    return values.to(dtype)


def index(limit, *shape, seed=1):
    return torch.randint(0, limit, shape, generator=torch.Generator().manual_seed(seed))


def as_tuple(result):
    return result if isinstance(result, tuple) else (result,)


def both(call, *, replaced):
    """A call's results with and without the block; the block has run in place of `replaced`."""
    expected = as_tuple(call())
    with Executed() as executed, deterministic():
        got = as_tuple(call())
    assert not set(executed.names) & set(replaced.split()), executed.names
    for ours, theirs in zip(got, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
    return got


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(dtype, reduce, include_self):
    x, src, at = numbers(5, 4, dtype=dtype), numbers(6, 5, dtype=dtype, seed=2), index(5, 6, 3)
    both(lambda: x.scatter_reduce(0, at, src, reduce, include_self=include_self),
         replaced="scatter_reduce")  # fmt: skip
    both(lambda: x.clone().scatter_reduce_(0, at, src, reduce, include_self=include_self),
         replaced="scatter_reduce_")  # fmt: skip


@pytest.mark.parametrize("dtype", [*NUMBERS, *COMPLEX, torch.bool])
def test_sums(dtype):
    x, src, at = numbers(5, 4, dtype=dtype), numbers(6, 5, dtype=dtype, seed=2), index(4, 5, 3)
    rows = index(5, 6)
    names = "scatter_add scatter_add_ index_add index_add_ index_put index_put_ _index_put_impl_"
    for call in (
        lambda: x.scatter_add(1, at, src),
        lambda: x.clone().scatter_add_(1, at, src),
        lambda: x.T.contiguous().T.scatter_add_(-1, at, src),
        lambda: torch.scatter_add(x, 1, at, src, out=torch.empty(0, dtype=dtype)),
        lambda: x.index_add(0, rows, src[:, :4]),
        lambda: x.clone().index_add_(1, index(4, 6), src[:5, :1].expand(5, 6)),
        lambda: x.index_put((rows,), src[:, :4], accumulate=True),
        lambda: x.clone().index_put_((rows, index(4, 6)), src[:, 0], accumulate=True),
        lambda: x.clone().index_put_((rows,), src[0, 0], accumulate=True),
    ):
        both(call, replaced=names)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_in_any_order_up_to_rounding(dtype):
    generator = torch.Generator().manual_seed(0)
    x, src = (torch.rand(n, 7, generator=generator).to(dtype) for n in (5, 400))
    at = index(5, 400)
    with deterministic():
        ours = [x.index_add(0, at, src) for _ in range(2)]
    assert torch.equal(*ours)
    exact = x.double().index_add(0, at, src.double())
    torch.testing.assert_close(ours[0].double(), exact, rtol=100 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [*NUMBERS, *COMPLEX, torch.bool])
def test_replacing(dtype):
    x, src = numbers(5, 4, dtype=dtype), numbers(5, 5, dtype=dtype, seed=2)
    once = torch.stack([torch.randperm(4) for _ in range(3)])
    names = "scatter scatter_ index_copy index_copy_ index_put index_put_ put put_"
    for call in (
        lambda: x.scatter(1, once, src),
        lambda: x.clone().scatter_(1, once, src),
        lambda: x.scatter(1, once, 1),
        lambda: x.clone().scatter_(1, once[:, :2], 0),
        lambda: x.index_copy(0, torch.tensor([3, 0]), src[:2, :4]),
        lambda: x.clone().index_copy_(1, torch.tensor([3, 0]), src[:, :2]),
        lambda: x.index_put((torch.tensor([3, 0]), torch.tensor([1, 1])), src[0, :2]),
        lambda: x.put(torch.tensor([[19, -1], [3, 4]])[:, :1], src[:2, :1]),
    ):
        both(call, replaced=names)


def test_the_last_update_wins():
    x, at, src = torch.zeros(3), torch.tensor([1, 1, 0, 1]), torch.tensor([1.0, 2, 3, 4])
    with deterministic():
        assert x.scatter(0, at, src).tolist() == [3, 4, 0]
        assert x.index_copy(0, at, src).tolist() == [3, 4, 0]
        assert x.index_put((at,), src).tolist() == [3, 4, 0]
        y = x.clone()
        y[at] = src
        assert y.tolist() == [3, 4, 0]


@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.filterwarnings("ignore::UserWarning")  # deprecated by PyTorch
def test_older_reductions(reduce):
    x, src, at = numbers(5, 4), numbers(6, 4, seed=2), index(5, 6, 4)
    both(lambda: x.scatter(0, at, src, reduce=reduce), replaced="scatter")
    both(lambda: x.clone().scatter_(0, at, 3.0, reduce=reduce), replaced="scatter_")


@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.filterwarnings("ignore::UserWarning")  # in beta, says PyTorch
def test_index_reduce(reduce, include_self):
    x, at = numbers(5, 4), torch.tensor([4, 0, 4])
    both(lambda: x.index_reduce(0, at, numbers(3, 4, seed=2), reduce, include_self=include_self),
         replaced="index_reduce")  # fmt: skip
    source = numbers(5, 3, seed=2)
    both(lambda: x.clone().index_reduce_(1, index(4, 3), source, reduce, include_self=include_self),
         replaced="index_reduce_")  # fmt: skip


@pytest.mark.parametrize("accumulate", [True, False])
def test_index_put_by_every_kind_of_index(accumulate):
    x = numbers(3, 4, 5)
    a, b = torch.tensor([[0], [2]]), torch.tensor([3, -1])
    mask = torch.tensor([True, False, True])
    kinds = {
        "slices between": ((a, None, b), (2, 2, 4)),
        "behind a slice": ((None, a, b), (3, 2, 2)),
        "mask": ((mask,), (2, 4, 5)),
        "mask and index": ((mask, torch.tensor([3, 1])), (2, 5)),
        "mask of two axes": ((torch.ones(3, 4, dtype=torch.bool).tril(),), (6, 5)),
        "last": ((None, None, b), (3, 4, 2)),
        "broadcast values": ((None, a, b), (3, 1, 1)),
        "none at all": ((torch.zeros(0, dtype=torch.int64),), (0, 4, 5)),
    }
    for indices, shape in kinds.values():
        values = numbers(*shape, seed=4)
        for call in (
            lambda i=indices, v=values: torch.ops.aten.index_put(x, i, v, accumulate),
            lambda i=indices, v=values: torch.ops.aten.index_put_(x.clone(), i, v, accumulate),
            lambda i=indices, v=values: torch.ops.aten._unsafe_index_put(x, i, v, accumulate),
            lambda i=indices, v=values: torch.ops.aten._index_put_impl_(
                x.clone(), i, v, accumulate
            ),
        ):
            both(call, replaced="index_put index_put_ _unsafe_index_put _index_put_impl_")
    with deterministic(), pytest.raises(dml.ArgumentError, match="at least one tensor"):
        torch.ops.aten.index_put(x, (), x, accumulate)


@pytest.mark.parametrize("dtype", [*NUMBERS, torch.bool])
def test_selection(dtype):
    x = numbers(6, 9, dtype=dtype)
    x[2, 3] = float("nan") if dtype.is_floating_point else 1
    for dim in (0, -1):
        for largest in (True, False):
            options = {"dim": dim, "descending": largest, "stable": True}
            if dtype != torch.bool:  # which PyTorch rejects
                with deterministic():
                    ours = x.topk(4, dim, largest)
                expected = x.sort(**options)[0].narrow(dim, 0, 4)
                torch.testing.assert_close(ours[0], expected, rtol=0, atol=0, equal_nan=True)
            both(lambda options=options: x.sort(**options), replaced="sort")
            both(lambda options=options: x.argsort(**options), replaced="sort argsort")
    both(x.nonzero, replaced="nonzero")
    both(x[0, 0].nonzero, replaced="nonzero")
    both(x[0, 0].sort, replaced="sort")


def test_variants_that_write_to_out():
    x = numbers(6, 9)
    both(lambda: torch.sort(x, stable=True, out=(torch.empty(0), torch.empty(0).long())),
         replaced="sort")  # fmt: skip
    both(lambda: torch.nonzero(x, out=torch.empty(0).long()), replaced="nonzero")
    out = torch.empty(6, 9)
    with deterministic():
        assert torch.index_add(x, 0, index(6, 6), x, out=out) is out
    assert torch.equal(out, x.index_add(0, index(6, 6), x))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.zeros(()).scatter_add(0, torch.tensor([0, 0]), x),
        lambda x: torch.zeros(()).index_add(0, torch.tensor([0]), x[0]),
        lambda x: x.scatter(0, torch.tensor(1), torch.tensor(9.0)),
        lambda x: x.index_copy(0, torch.tensor([1]), torch.tensor(9.0)),
        lambda x: x.scatter_add(0, torch.zeros(0, dtype=torch.int64), x),
        lambda x: torch.zeros(0, 2).index_add(0, torch.zeros(0).long(), torch.zeros(0, 2)),
        lambda x: torch.zeros(3, 0).index_add(0, torch.tensor([2]), torch.zeros(1, 0)),
        lambda x: x.index_add(0, torch.tensor([1]), x[:1], alpha=3),
        lambda x: x.clone().scatter_add_(0, torch.tensor([1, 1]), x.clone()),
        lambda x: (y := x.clone()).index_add_(0, torch.tensor([0, 0]), y.clone()),
    ],
)
def test_small_and_empty(call):
    expected = call(torch.tensor([5.0, 6.0]))
    with deterministic():
        assert torch.equal(call(torch.tensor([5.0, 6.0])), expected)


def test_updates_in_the_memory_that_is_written():
    ours, theirs = torch.arange(4.0), torch.arange(4.0)
    theirs[:2].scatter_add_(0, torch.tensor([1, 1]), theirs[2:])
    with deterministic():
        ours[:2].scatter_add_(0, torch.tensor([1, 1]), ours[2:])
    assert torch.equal(ours, theirs)
    with deterministic(), pytest.raises(dml.ArgumentError, match="overlap"):
        ours.scatter_add_(0, torch.tensor([1, 1]), ours[2:])


def test_results_are_laid_out_as_pytorchs():
    x = numbers(5, 4, 3)
    with deterministic():
        assert x.index_add(1, index(4, 4), x).is_contiguous()
        assert torch.ops.aten.index_put(x, (None, index(4, 4)), x, True).is_contiguous()
        assert x.sort(0)[0].is_contiguous()


def gradients(call, *operands):
    operands = [operand.clone().requires_grad_() for operand in operands]
    result = call(*operands)
    weights = torch.arange(result.numel(), dtype=result.dtype).reshape(result.shape)
    (result * weights.remainder(5)).sum().backward()
    return [operand.grad for operand in operands]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    ("call", "replaced"),
    [
        (lambda x, u: x.topk(2).values, "topk scatter_ scatter"),
        (lambda x, u: x.sort(0).values, "sort scatter_ scatter"),
        (lambda x, u: x.gather(0, index(6, 9, 4)), "scatter_add scatter_add_"),
        (lambda x, u: x[index(6, 30)], "index_put index_put_ _index_put_impl_"),
        (lambda x, u: x[:, index(4, 30)], "index_put index_put_ _index_put_impl_"),
        (lambda x, u: x.index_select(1, index(4, 30)), "index_add index_add_"),
        (lambda x, u: x.take(index(24, 30)), "put put_"),
        (lambda x, u: x.take_along_dim(index(4, 6, 9), 1), "scatter_add scatter_add_"),
        (lambda x, u: torch.nn.functional.embedding(index(6, 3, 9), x), "embedding_dense_backward"),
        (lambda x, u: torch.nn.functional.embedding(index(6, 30), x, padding_idx=2,
                                                    scale_grad_by_freq=False),
         "embedding_dense_backward"),
        (lambda x, u: x.scatter_add(0, index(6, 5, 4), u), "scatter_add"),
        (lambda x, u: x.index_add(0, index(6, 5), u), "index_add"),
        (lambda x, u: x.index_put((index(6, 5),), u, accumulate=True), "index_put"),
        (lambda x, u: x.scatter_reduce(0, index(6, 5, 4), u, "amax"), "scatter_reduce"),
        (lambda x, u: x.scatter_reduce(0, index(6, 5, 4), u, "mean"), "scatter_reduce"),
    ],
)  # fmt: skip
def test_gradients(call, replaced, dtype):
    x = torch.arange(24.0).reshape(6, 4).to(dtype)  # no two alike, for topk
    u = numbers(5, 4, dtype=dtype, seed=3) + 0.5
    expected = gradients(call, x, u)
    with Executed() as executed, deterministic():
        got = gradients(call, x, u)
    assert not set(executed.names) & set(replaced.split())
    for ours, theirs in zip(got, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            torch.testing.assert_close(ours, theirs, rtol=8 * torch.finfo(dtype).eps, atol=0)


def test_embedding_by_frequency():
    weight = torch.arange(24.0).reshape(6, 4)

    def call(w):
        return torch.nn.functional.embedding(index(6, 30), w, padding_idx=2,
                                             scale_grad_by_freq=True)  # fmt: skip

    (expected,) = gradients(call, weight)
    with deterministic():
        (got,) = gradients(call, weight)
    torch.testing.assert_close(got, expected)
    assert not got[2].any()


def test_inference_mode():
    x = numbers(6, 9)
    with torch.inference_mode(), Executed() as executed, deterministic():
        order = x.argsort(stable=True)
        x.msort()
        x.take_along_dim(order, 1)
    assert torch.equal(order, x.argsort(stable=True))
    assert not {"sort", "argsort", "msort"} & set(executed.names)


# ---- together with other ways to the same -------------------------------------------------------


def test_with_pytorchs_own_switch():
    x, at = numbers(5, 4), index(5, 30)
    expected = x.index_add(0, at, numbers(30, 4, seed=2))
    torch.use_deterministic_algorithms(True)
    try:
        got = both(lambda: x.index_add(0, at, numbers(30, 4, seed=2)), replaced="index_add")
        with deterministic(), pytest.raises(RuntimeError, match="deterministic"):
            torch.nn.functional.max_unpool1d(torch.ones(1, 1, 2), torch.tensor([[[0, 2]]]), 2)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.equal(got[0], expected)


def test_what_is_wrong_is_told():
    x = numbers(4, 5)
    with deterministic():
        with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[1, 0\]: expected -4\.\.3"):
            x.index_add(0, torch.tensor([0, 4]), x[:2])
        y = x.clone()
        with pytest.raises(dml.IndexOutOfRangeError):
            y.scatter_(0, torch.tensor([[0, 9]]), y[:1].clone())
        assert torch.equal(y, x)


def outcome(call):
    """What a call returns, or the error that it ends in."""
    try:
        result = call()
    except Exception as error:
        return type(error), str(error)
    return result.dtype, result.tolist()


@pytest.mark.parametrize("dtype", [*NUMBERS, *COMPLEX, torch.bool])
@pytest.mark.parametrize("alpha", [2, 0, -1, True, False, 2.0, 2.5, 0.5, 300, 1 + 0j, 2 + 1j])
def test_the_factor_of_index_add(dtype, alpha):
    """It is truncated to the type of the elements, and one that does not fit is refused."""
    for shape in ((4,), (4, 2), ()):
        x, source = torch.ones(shape).to(dtype), torch.full(shape, 3).to(dtype)
        at = torch.zeros(shape[:1] or 1, dtype=torch.int64)
        for call in (
            lambda x=x, source=source, at=at: x.index_add(0, at, source, alpha=alpha),
            lambda x=x, source=source, at=at: x.clone().index_add_(0, at, source, alpha=alpha),
        ):
            expected = outcome(call)
            with deterministic():
                assert outcome(call) == expected


@pytest.mark.parametrize("dtype", [*NUMBERS, *COMPLEX, torch.bool])
def test_rank_0_in_place(dtype):
    for at in (torch.tensor(0), torch.tensor([0])):
        source = torch.full(at.shape, 3).to(dtype)
        for call in (
            lambda at=at, source=source: torch.ones(()).to(dtype).scatter_(0, at, source),
            lambda at=at, source=source: torch.ones(()).to(dtype).scatter_add_(0, at, source),
            lambda at=at, source=source: torch.ones(()).to(dtype).scatter_reduce_(
                0, at, source, "prod"),
            lambda at=at, source=source: torch.ones(()).to(dtype).index_copy_(
                0, at.reshape(1), source),
        ):  # fmt: skip
            expected = outcome(call)
            if isinstance(expected[0], torch.dtype):
                with deterministic():
                    assert outcome(call) == expected


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("include_self", [True, False])
def test_complex_products(dtype, include_self):
    x, src, at = numbers(5, 4, dtype=dtype), numbers(6, 5, dtype=dtype, seed=2), index(5, 6, 3)
    x, src = x * (1 + 1j), src * (2 - 1j)
    both(lambda: x.scatter_reduce(0, at, src, "prod", include_self=include_self),
         replaced="scatter_reduce")  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")  # experimental, says PyTorch
def test_halves_of_complex_numbers():
    x = numbers(5, 4, dtype=torch.complex32)
    both(x.nonzero, replaced="nonzero")
    both(lambda: x.index_copy(0, torch.tensor([3, 0]), x[:2]), replaced="index_copy")
    both(lambda: x.index_put((torch.tensor([3, 0]),), x[:2]), replaced="index_put")


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.scatter_reduce(0, index(4, 4, 5), x.double(), "sum"),
        lambda x: x.cfloat().scatter_reduce(0, index(4, 4, 5), x.cfloat(), "amax"),
        lambda x: x.scatter(0, index(4, 4), x),
        lambda x: x.scatter_add(0, index(4, 9, 5), x),
        lambda x: x.scatter(0, index(4, 4, 5).float(), x),
        lambda x: x.index_add(0, index(4, 4, 2), x),
        lambda x: x.index_add(0, index(4, 3), x),
        lambda x: x.index_add(0, index(4, 4), x.double()),
        lambda x: x.index_copy(7, index(4, 4), x),
        lambda x: x.index_put((index(4, 3),), x),
        lambda x: x.long().index_add(0, index(4, 4), x.long(), alpha=float("nan")),
        lambda x: x.sort(5),
        lambda x: x.topk(9),
        lambda x: x.topk(-1),
        lambda x: x.cfloat().sort(),
        lambda x: x.put(index(20, 3), x),
        lambda x: x.clone().scatter_(0, index(4, 4, 5), x.int()),
    ],
)
def test_what_pytorch_refuses_ends_in_its_own_error(call):
    x = numbers(4, 5)
    expected = outcome(lambda: call(x))
    assert issubclass(expected[0], Exception)
    with deterministic():
        assert outcome(lambda: call(x)) == expected


def test_bfloat16_is_added_in_float32():
    ones = torch.ones(300, dtype=torch.bfloat16)
    places = torch.zeros(300, dtype=torch.int64)
    with deterministic():
        for name in ("index_add", "scatter_add"):
            assert getattr(torch.zeros(1).bfloat16(), name)(0, places, ones).tolist() == [300]


def test_floats_of_8_bits_are_compared_and_added_as_float32():
    x = torch.tensor([1.0, 3.0, -2.0]).to(torch.float8_e4m3fn)
    with dml.torch.deterministic():
        values, indices = torch.topk(x, 2)
        summed = x.index_add(0, torch.tensor([2, 2]), x[:2])
        found = torch.nonzero(x.float().sub(1).to(x.dtype))
        put = x.scatter(0, torch.tensor([1]), x[2:])
    assert found.tolist() == [[1], [2]]
    assert put.float().tolist() == [1, -2, -2]
    assert (values.float().tolist(), indices.tolist()) == ([3, 1], [1, 0])
    assert summed.float().tolist() == [1, 3, 2]
    assert values.dtype == summed.dtype == x.dtype
