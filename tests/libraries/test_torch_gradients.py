"""Gradients of the functions: by finite differences, and as PyTorch's own operators have them."""

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402 (PyTorch may be missing)
from torch_calls import ALONG, CALLS, TUPLES, as_tuple, floats  # noqa: E402 (PyTorch may be missing)

import anydml as dml  # noqa: E402 (PyTorch may be missing)
import anydml.torch  # noqa: E402 (PyTorch may be missing)

# PyTorch's own code, when it first goes forward.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")


@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_those_of_finite_differences(name):
    x = floats(3, 4).requires_grad_()
    call = CALLS[name]
    assert gradcheck(call, (x,), check_forward_ad=True)
    assert gradgradcheck(call, (x,), check_fwd_over_rev=True, check_rev_over_rev=True)
    plain = as_tuple(call(x.detach()))
    for ours, expected in zip(as_tuple(call(x)), plain, strict=True):
        assert torch.equal(ours, expected)
        assert ours.requires_grad


ROWS = torch.tensor([2, 0, 2, 1])
ONCE = torch.tensor([[3, 0, 1], [2, 1, 0]])  # no two in one place

# Ours, and PyTorch's own.
PAIRS = {
    "top_k": (lambda x, u: dml.top_k(x, 2).values, lambda x, u: torch.topk(x, 2).values),
    "gather": (lambda x, u: dml.gather(x, ROWS), lambda x, u: x[ROWS]),
    "gather_elements": (
        lambda x, u: dml.gather_elements(x, ONCE, axis=1),
        lambda x, u: torch.gather(x, 1, ONCE),
    ),
    "gather_nd": (
        lambda x, u: dml.gather_nd(x, torch.stack([ROWS, ROWS], 1)),
        lambda x, u: x[ROWS, ROWS],
    ),
    "scatter_elements": (
        lambda x, u: dml.scatter_elements(x, ONCE, u, axis=1),
        lambda x, u: torch.scatter(x, 1, ONCE, u),
    ),
    "scatter_elements add": (
        lambda x, u: dml.scatter_elements(x, ALONG.abs(), u, axis=1, reduction="add"),
        lambda x, u: torch.scatter_add(x, 1, ALONG.abs(), u),
    ),
    "scatter_elements without self": (
        lambda x, u: dml.scatter_elements(
            x, ALONG.abs(), u, axis=1, reduction="add", include_self=False
        ),
        lambda x, u: torch.scatter_reduce(x, 1, ALONG.abs(), u, "sum", include_self=False),
    ),
    "scatter_nd": (
        lambda x, u: dml.scatter_nd(x, ROWS[:3:2, None], u.T[:2].repeat(1, 2), reduction="add"),
        lambda x, u: torch.index_add(x, 0, ROWS[:3:2], u.T[:2].repeat(1, 2)),
    ),
    "split": (lambda x, u: dml.split(x, [1, 3], axis=1)[1], lambda x, u: x.split([1, 3], 1)[1]),
    "join": (lambda x, u: dml.join([x.T, u.T[:2].repeat(2, 2)[:, :3]]),
             lambda x, u: torch.cat([x.T, u.T[:2].repeat(2, 2)[:, :3]])),
    "pad": (lambda x, u: dml.pad(x, 1), lambda x, u: torch.nn.functional.pad(x, (1, 1, 1, 1))),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_those_of_pytorch(name, dtype):
    results = []
    for call in PAIRS[name]:
        x = floats(3, 4).to(dtype).requires_grad_()
        u = floats(2, 3, seed=3).to(dtype).requires_grad_()
        y = call(x, u)
        weights = torch.arange(1.0, y.numel() + 1).to(dtype).reshape(y.shape)
        (y * weights).sum().backward()
        results.append((y.detach(), x.grad, u.grad))
    ours, theirs = results
    for got, expected in zip(ours, theirs, strict=True):
        assert (got is None) == (expected is None)
        assert got is None or torch.equal(got, expected)


def test_only_the_update_that_wins_has_a_gradient():
    u = torch.tensor([5.0, 6.0, 7.0, 8.0], requires_grad=True)
    x = torch.zeros(4, requires_grad=True)
    y = dml.scatter_elements(x, torch.tensor([3, 1, 3, -1]), u)
    (y * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert u.grad.tolist() == [0, 2, 0, 4]
    assert x.grad.tolist() == [1, 0, 3, 0]


@pytest.mark.parametrize(
    ("mode", "theirs"), [("edge", "replicate"), ("reflect", "reflect"), ("wrap", "circular")]
)
def test_padding_that_repeats(mode, theirs):
    x = floats(1, 3, 4, 5).requires_grad_()
    width = [(0, 0), (0, 0), (2, 1), (0, 3)]
    weights = floats(1, 3, 7, 8, seed=1)
    (ours,) = torch.autograd.grad((dml.pad(x, width, mode) * weights).sum(), x)
    padded = torch.nn.functional.pad(x, (0, 3, 2, 1), theirs)
    (expected,) = torch.autograd.grad((padded * weights).sum(), x)
    torch.testing.assert_close(ours, expected)
    assert gradgradcheck(lambda t: dml.pad(t, width, "symmetric") ** 2, (x,))


def test_types_and_values_that_have_no_gradient():
    x = floats(3, 4).requires_grad_()
    values, indices = dml.top_k(x, 2)
    assert values.requires_grad
    assert not indices.requires_grad
    assert not dml.nonzero_coordinates(x).requires_grad
    assert not dml.cast(x, "int32").requires_grad
    half = dml.cast(x, torch.float16)
    half.sum().backward()
    assert x.grad.dtype == torch.float64
    with torch.no_grad():
        assert not dml.top_k(x, 2).values.requires_grad


THEIRS = {"add": "sum", "mul": "prod", "mean": "mean", "min": "amin", "max": "amax"}


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", THEIRS)
def test_gradients_of_reductions_are_pytorchs(reduction, include_self):
    x, u = floats(3, 4), floats(2, 3, seed=1)
    x[0, 0] = u[1, 2] = 0  # what is multiplied by 0
    u[0, 1] = 7.0
    x[0, 3] = 7.0 if include_self else 6.0  # equal extremes share
    weights = floats(3, 4, seed=2)
    index = ALONG.remainder(4)
    grads = []
    for call in (
        lambda x, u: dml.scatter_elements(
            x, ALONG, u, axis=1, reduction=reduction, include_self=include_self
        ),
        lambda x, u: x.scatter_reduce(1, index, u, THEIRS[reduction], include_self=include_self),
    ):
        operands = [x.clone().requires_grad_(), u.clone().requires_grad_()]
        grads.append(torch.autograd.grad((call(*operands) * weights).sum(), operands))
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", THEIRS)
def test_derivatives_of_reductions_of_any_order(reduction, include_self):
    x, u = (floats(3, 4) + 5).requires_grad_(), (floats(3, seed=1) + 5.1).requires_grad_()

    def call(x, u):
        return dml.scatter_nd(x, TUPLES, u, reduction=reduction, include_self=include_self)

    assert gradcheck(call, (x, u), check_forward_ad=True)
    assert gradgradcheck(call, (x, u))


def complex_numbers(*shape, seed=0):
    return torch.complex(floats(*shape, seed=seed) + 0.3, floats(*shape, seed=seed + 1) - 0.2)


def takes_complex_numbers(call):
    try:
        call(complex_numbers(3, 4))
    except dml.ArgumentTypeError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in CALLS if takes_complex_numbers(CALLS[name])])
def test_complex_gradients_are_those_of_finite_differences(name):
    x = complex_numbers(3, 4).requires_grad_()
    assert gradcheck(CALLS[name], (x,), check_forward_ad=True)
    assert gradgradcheck(CALLS[name], (x,))


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", [None, "add", "mul", "mean"])
def test_complex_gradients_of_reductions(reduction, include_self):
    options = {"reduction": reduction, "include_self": include_self}
    x, x_with_zeros = complex_numbers(3, 4), complex_numbers(3, 4)
    x_with_zeros[0, 1] = x_with_zeros[2, 0] = 0
    for values in (x, x_with_zeros):
        operands = [values.clone(), complex_numbers(3, seed=2)]
        assert gradcheck(lambda x, u: dml.scatter_nd(x, TUPLES, u, **options),
                         [y.requires_grad_() for y in operands], check_forward_ad=True)  # fmt: skip
        operands = [values.clone(), complex_numbers(2, 3, seed=4)]
        assert gradcheck(lambda x, u: dml.scatter_elements(x, ALONG, u, axis=1, **options),
                         [y.requires_grad_() for y in operands], check_forward_ad=True)  # fmt: skip


def test_complex_products_have_the_gradient_of_pytorch():
    x, u = (torch.tensor([z], requires_grad=True) for z in (1 + 2j, 3 - 1j))
    expected = torch.autograd.grad((x * u).imag.sum(), (x, u))
    scattered = dml.scatter_elements(x, torch.tensor([0]), u, reduction="mul")
    torch.testing.assert_close(torch.autograd.grad(scattered.imag.sum(), (x, u)), expected)


def test_what_else_is_refused():
    x = floats(3, 4).requires_grad_()
    with pytest.raises(dml.ArgumentTypeError, match=r"x: .* got one that requires grad; use"):
        dml.gather(x, ALONG, out=torch.empty(2, 3, 4))
    with pytest.raises(dml.ArgumentTypeError, match=r"updates: .* got one that requires grad"):
        dml.scatter_elements(x.detach().numpy(), ALONG, x[:2, :3], axis=1)
    with pytest.raises(dml.ArgumentTypeError, match="requires grad"):
        dml.gather(x.detach(), ALONG, axis=1, out=torch.zeros(3, 2, 3).double().requires_grad_())
    with pytest.raises(dml.ArgumentTypeError, match=r"updates: expected float64"):
        dml.scatter_elements(x, ALONG, torch.ones(2, 3), axis=1)
    with pytest.raises(dml.ArgumentTypeError, match="index_dtype: expected one of int64"):
        dml.top_k(x, 1, index_dtype="int46")
    with pytest.raises(dml.ArgumentError, match="mode: expected one of 'raise'"):
        dml.gather(x, ALONG, mode="clump")
    with pytest.raises(dml.ArgumentError, match="reduction: expected one of None"):
        dml.scatter_elements(x, ALONG, 1.0, reduction="ad")
    with pytest.raises(dml.ArgumentError, match=r"indices\.ndim: expected 2"):
        dml.gather_elements(x, ALONG[0])
    with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[0, 1\]: expected -3..2"):
        dml.gather(x, ALONG)
    with pytest.raises(dml.ArgumentTypeError, match=r"arrays\[1\]: expected float64"):
        dml.join([x, x.float()])
    with pytest.raises(dml.ArgumentError, match=r"k: expected at most 4"):
        dml.top_k(x, 5)


def test_operands_of_other_kinds_beside_a_tensor():
    x = floats(3, 4).requires_grad_()
    y = dml.scatter_elements(x, ALONG.numpy(), [[1, 2, 3], [4, 5, 6]], axis=1, reduction="add")
    assert torch.equal(y.detach(), x.detach().scatter_add(
        1, ALONG.remainder(4), torch.tensor([[1.0, 2, 3], [4, 5, 6]]).double()))  # fmt: skip
    integers = dml.scatter_nd(floats(4), [[0]], [x.detach().numpy()[0, 0]])
    assert integers[0] == x[0, 0]
    with pytest.raises(dml.ArgumentTypeError, match="updates: expected float64"):
        dml.scatter_nd(x, [[0, 0]], [1j])


def test_unsigned_indices_beyond_all_axes():
    x = floats(3, 4).requires_grad_()
    huge = torch.tensor([2**63 + 5, 2**64 - 1, 7], dtype=torch.uint64)
    for mode in ("wrap", "clip", "clamp"):
        plain = dml.gather(x.detach(), huge, axis=0, mode=mode)
        y = dml.gather(x, huge, axis=0, mode=mode)
        assert torch.equal(y, plain)
        (grad,) = torch.autograd.grad(y.sum(), x)
        chosen = dml.gather(torch.eye(3), huge, axis=0, mode=mode).sum(0)
        assert torch.equal(grad, chosen[:, None].expand(3, 4).double())


def test_non_contiguous_and_complex():
    z = torch.complex(floats(4, 3), floats(4, 3, seed=2)).T.requires_grad_()
    for call in (
        lambda t: dml.gather_elements(t, ALONG, axis=1),
        lambda t: dml.scatter_elements(t, ALONG, t[:2, 1:], axis=1),
        lambda t: dml.join([t, t.conj()]),
    ):
        assert gradcheck(call, (z,))


def test_tangents_in_eager_mode():
    """Also of a tensor that asks for no other gradient, for which there is a quick way."""
    forward = torch.autograd.forward_ad
    x, t = torch.arange(6.0), torch.arange(6.0) + 1
    dml.gather(x, [0])  # the quick way is known from here on
    with forward.dual_level():
        dual = forward.make_dual(x, t)
        calls = {
            "gather": (dml.gather(dual, [1, 4]), [2, 5]),
            "top_k": (dml.top_k(dual, 2).values, [6, 5]),
            "join": (dml.join([x, dual])[-1:], [6]),
            "split": (dml.split(dual, 2)[1], [4, 5, 6]),
            "cast": (dml.cast(dual, "float64")[:1], [1]),
            "pad": (dml.pad(dual, 1, "constant", 7)[:2], [0, 1]),
            "edge": (dml.pad(dual, 1, "edge")[:2], [1, 1]),
            "scatter": (dml.scatter_nd(x[:2], [[0], [0]], dual[4:]), [6, 0]),
            "added": (dml.scatter_elements(dual[:2], [0, 0], x[:2], reduction="add"), [1, 2]),
        }
        for result, expected in calls.values():
            assert forward.unpack_dual(result).tangent.tolist() == expected
        assert forward.unpack_dual(dml.gather(x, [1])).tangent is None
        assert forward.unpack_dual(dml.cast(dual, "int32")).tangent is None
        assert not dml.nonzero_coordinates(dual).is_floating_point()
        product = dml.scatter_nd(dual[:2], [[0]], [2.0], reduction="mul")
        assert forward.unpack_dual(product).tangent.tolist() == [2, 2]
        with pytest.raises(dml.ArgumentTypeError, match="got one with a tangent"):
            dml.gather(x, [0], out=dual[:1])
        with pytest.raises(dml.ArgumentTypeError, match="got one with a tangent"):
            dml.gather(dual, [0], out=torch.empty(1))
    assert not dml.gather(x, [1]).requires_grad


def test_transformations_of_transformations():
    """Every level has its own gradients, be they forward or backward."""
    func, x, rows = torch.func, floats(3, 4), torch.tensor([[0, 2, 0, 1]])

    def ours(x):
        picked = dml.scatter_elements(x**2, rows, x[:1] ** 3, reduction="add")
        return (dml.top_k(picked, 2).values * dml.gather_elements(x, rows)[:, :2]).sum()

    def theirs(x):
        picked = (x**2).scatter_add(0, rows, x[:1] ** 3)
        return (torch.topk(picked, 2).values * x.gather(0, rows)[:, :2]).sum()

    for transform in (func.jacfwd, func.jacrev, func.hessian, lambda f: func.jacfwd(func.jacfwd(f)),
                      lambda f: func.jacrev(func.jacfwd(f)),
                      lambda f: func.jacrev(func.jacrev(f))):  # fmt: skip
        torch.testing.assert_close(transform(ours)(x), transform(theirs)(x))
    moved = torch.vmap(lambda row: func.jvp(lambda r: dml.gather(r, [3, 3]), (row,), (row,))[1])(x)
    assert torch.equal(moved, x[:, [3, 3]])


def test_tangents_in_a_deterministic_block():
    x = floats(3, 4)
    with anydml.torch.deterministic():
        got = torch.func.jvp(lambda y: torch.topk(y, 2).values ** 2, (x,), (x,))[1]
        added = torch.func.jvp(lambda y: y.index_add(0, torch.tensor([1]), y[:1]), (x,), (x,))[1]
    torch.testing.assert_close(got, 2 * torch.topk(x, 2).values * x.gather(1, torch.topk(x, 2)[1]))
    torch.testing.assert_close(added, x.index_add(0, torch.tensor([1]), x[:1]))
