"""`deterministic` keeps PyTorch's rules: its errors, its strides, and the precision of its sums."""

import pytest

torch = pytest.importorskip("torch")

from test_torch_deterministic import as_tuple, both, numbers, outcome  # noqa: E402 (PyTorch may be missing)

import anydml as dml  # noqa: E402 (PyTorch may be missing)
import anydml.torch  # noqa: E402 (PyTorch may be missing)

deterministic = dml.torch.deterministic

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # in beta, says PyTorch

AT = torch.zeros(3000, dtype=torch.int64)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_16_bit_floats_are_combined_in_float32(dtype):
    zero, ones = torch.zeros(1, dtype=dtype), torch.ones(3000, dtype=dtype)
    total = torch.tensor([3000.0]).to(dtype)
    with deterministic():
        for got in (
            zero.scatter_add(0, AT, ones),
            zero.clone().scatter_add_(0, AT, ones),
            zero.scatter_reduce(0, AT, ones, "sum"),
            zero.index_add(0, AT, ones),
            zero.index_put((AT,), ones, accumulate=True),
        ):
            assert torch.equal(got, total)
        for reduce in ("scatter_reduce", "index_reduce"):
            assert getattr(zero, reduce)(0, AT, ones, "mean", include_self=False).item() == 1
        factors = torch.full((40,), 1.01).to(dtype)
        product = torch.ones(1, dtype=dtype).scatter_reduce(0, AT[:40], factors, "prod")
        assert product.item() == factors.double().prod().to(dtype)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("count", [3, 100, 127, 128, 255, 256, 300, 40000])
def test_means_of_small_integers(dtype, include_self, count):
    """Sums and counts wrap around in PyTorch."""
    at = torch.zeros(count, dtype=torch.int64)
    for value in (1, 2, 5):
        x, source = torch.full((3,), 7, dtype=dtype), torch.full((count,), value, dtype=dtype)
        for name in ("scatter_reduce", "index_reduce"):
            both(lambda name=name, x=x, source=source: getattr(x, name)(
                0, at, source, "mean", include_self=include_self), replaced=name)  # fmt: skip


def bfloat16():
    return torch.zeros(3).bfloat16()


ROWS = torch.tensor([0, 1])

# What anydml's kernels would run.
INVALID = {
    "scatter_add of two types": lambda: bfloat16().scatter_add(0, ROWS, torch.ones(2)),
    "scatter_add_ of two types": lambda: bfloat16().scatter_add_(0, ROWS, torch.ones(2)),
    "scatter_reduce of two types": lambda: bfloat16().scatter_reduce(
        0, ROWS, torch.ones(2), "sum"),
    "index_add of two types": lambda: bfloat16().index_add(0, ROWS, torch.ones(2)),
    "index_reduce of two types": lambda: bfloat16().index_reduce(
        0, ROWS, torch.ones(2), "prod"),
    "index_put of two types": lambda: bfloat16().index_put((ROWS,), torch.ones(2), True),
    "put of two types": lambda: bfloat16().put(ROWS, torch.ones(2), True),
    "index_add by a matrix": lambda: torch.zeros(3).index_add(0, ROWS[None], torch.ones(2)),
    "index_add of rank 0": lambda: torch.tensor(0.0).index_add(0, ROWS[:1], torch.ones(1)),
    "index_copy by a matrix": lambda: torch.zeros(3).index_copy(0, ROWS[None], torch.ones(2)),
    "index_reduce by a matrix": lambda: torch.zeros(3).index_reduce(
        0, ROWS[None], torch.ones(2), "prod"),
    "mean of bools": lambda: torch.zeros(3).bool().scatter_reduce(
        0, ROWS, torch.ones(2).bool(), "mean"),
    "index_reduce of bools": lambda: torch.zeros(3).bool().index_reduce(
        0, ROWS, torch.ones(2).bool(), "mean"),
    "topk of bools": lambda: torch.tensor([True, False]).topk(1),
    "a mask of uint8": lambda: torch.zeros(2).index_put(
        (torch.tensor([1, 0], dtype=torch.uint8),), torch.ones(1)),
    "scatter by float indices": lambda: torch.zeros(3).scatter(0, ROWS.float(), torch.ones(2)),
    "put by int32": lambda: torch.zeros(3).put(ROWS.int(), torch.ones(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALID)
def test_what_pytorch_rejects_is_rejected_with_its_error(name):
    expected = outcome(INVALID[name])
    with deterministic():
        assert outcome(INVALID[name]) == expected


def test_negative_indices_count_from_the_end_in_unusual_calls_too():
    with deterministic():
        got = torch.zeros(3).scatter(0, torch.tensor(-1), torch.tensor(2.0))
    assert got.tolist() == [0, 0, 2]


def image(dtype=torch.float32):
    return numbers(2, 4, 3, 5, dtype=dtype).to(memory_format=torch.channels_last)


LAYOUTS = {
    "transposed": lambda: numbers(4, 6).T,
    "channels last": image,
    "permuted": lambda: numbers(2, 3, 4).permute(2, 0, 1),
    "steps": lambda: numbers(8, 6)[::2, ::3],
    "expanded": lambda: numbers(1, 4).expand(5, 4),
    "contiguous": lambda: numbers(4, 5, 2),
    "packed, of one column": lambda: numbers(4, 1),
}
OPERATIONS = {
    "index_add": lambda x, at: x.index_add(0, at, x[:2]),
    "index_add last": lambda x, at: x.index_add(-1, at[:1], x[..., :1]),
    "index_copy": lambda x, at: x.index_copy(0, at, x[:2]),
    "index_reduce": lambda x, at: x.index_reduce(0, at, x[:2], "amax"),
    "scatter": lambda x, at: x.scatter(0, torch.zeros(x.shape).long()[:1], x[:1]),
    "scatter value": lambda x, at: x.scatter(0, torch.zeros(x.shape).long()[:1], 3),
    "scatter_add": lambda x, at: x.scatter_add(0, torch.zeros(x.shape).long(), x),
    "scatter_reduce": lambda x, at: x.scatter_reduce(
        0, torch.zeros(x.shape).long(), x, "mean", include_self=False),
    "index_put": lambda x, at: x.index_put((at,), x[:2]),
    "index_put added": lambda x, at: x.index_put((at,), x[:2], accumulate=True),
    "index_put by masks": lambda x, at: x.index_put((x > 0,), torch.tensor(2.0)),
    "put": lambda x, at: x.put(at, x.flatten()[:2]),
    "sort": lambda x, at: x.sort(dim=0, stable=True),
    "msort": lambda x, at: x.msort(),
    "topk": lambda x, at: x.topk(1)[0],
    "nonzero": lambda x, at: x.nonzero(),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_have_the_strides_of_pytorch(layout, operation):
    x = LAYOUTS[layout]()
    at = torch.arange(2)
    expected = as_tuple(OPERATIONS[operation](x, at))
    with deterministic():
        got = as_tuple(OPERATIONS[operation](x, at))
    for ours, theirs in zip(got, expected, strict=True):
        assert torch.equal(ours, theirs)
        assert ours.stride() == theirs.stride()


def test_views_of_results_as_outside():
    x = torch.arange(6.0).view(2, 3).T
    with deterministic():
        assert x.index_add(0, torch.tensor([0, 2]), torch.ones(2, 2)).view(-1).shape == (6,)


def test_no_argument_is_accepted():
    for argument, got in ((True, "True"), (len, "a function")):
        message = rf"deterministic: expected no argument, got {got}; write `with determ"
        with pytest.raises(dml.ArgumentTypeError, match=message):
            deterministic(argument)


def test_as_a_decorator():
    @deterministic()
    def last(x, *, value):
        """Documented."""
        return x.scatter(0, torch.tensor([-1]), value)  # an index that PyTorch rejects

    assert last.__name__ == "last"
    for _ in range(2):
        assert last(torch.zeros(2), value=5).tolist() == [0, 5]
    with pytest.raises(RuntimeError):
        torch.zeros(2).scatter(0, torch.tensor([-1]), 5)
