"""The functions in PyTorch's programs on a GPU: the CPU's results, and steps that repeat."""

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parents[1] / "libraries"))

import deterministic_step  # noqa: E402 (PyTorch may be missing)
import torch_calls  # noqa: E402 (PyTorch may be missing)

import anydml as dml  # noqa: E402 (PyTorch may be missing)
import anydml.torch  # noqa: E402 (PyTorch may be missing)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"),
]

deterministic = dml.torch.deterministic


# A list of indices lies in host memory, as do new tensors that a call makes itself.
IN_HOST_MEMORY = ("list", "scalar", "no tuple", "gather one")
ON_GPU = [name for name in torch_calls.CALLS if not any(part in name for part in IN_HOST_MEMORY)]


@pytest.mark.parametrize("name", ON_GPU)
def test_results_and_gradients(name):
    call, results = torch_calls.CALLS[name], []
    for device in ("cpu", "cuda"):
        with pytest.MonkeyPatch.context() as patch:
            for index in ("ALONG", "TUPLES", "BATCHED"):
                patch.setattr(torch_calls, index, getattr(torch_calls, index).to(device))
            x = torch_calls.floats(3, 4).to(device).requires_grad_()
            outputs = torch_calls.as_tuple(call(x))
            sum((y * y).sum() for y in outputs).backward()
            results.append([*(y.detach().cpu() for y in outputs), x.grad.cpu()])
    for ours, expected in zip(*results, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", ["top_k", "gather", "scatter_elements", "split", "join"])
def test_pytorchs_own_check_of_operators(name):
    first, *arguments = torch_calls.OPERATORS[name]
    tensors = first if isinstance(first, list) else [first]
    tensors = [tensor.cuda().requires_grad_() for tensor in tensors]
    arguments = [value.cuda() if isinstance(value, torch.Tensor) else value for value in arguments]
    first = tensors if isinstance(first, list) else tensors[0]
    torch.library.opcheck(getattr(torch.ops.anydml, name).default, (first, *arguments))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # its own
def test_compiled_with_the_default_backend():
    compiled = torch.compile(lambda x: dml.top_k(x * 2, 3).values + 1, fullgraph=True)
    x = torch.rand(64, 100, device="cuda")
    torch.testing.assert_close(compiled(x), (x * 2).topk(3).values + 1)


REPLACED = {
    "index_add": lambda x, at, u: x.index_add(0, at, u),
    "index_add_": lambda x, at, u: x.clone().index_add_(0, at, u),
    "scatter_add": lambda x, at, u: x.scatter_add(0, at[:, None].expand_as(u), u),
    "mean": lambda x, at, u: x.scatter_reduce(0, at[:, None].expand_as(u), u, "mean"),
    "amax": lambda x, at, u: x.scatter_reduce(0, at[:, None].expand_as(u), u, "amax",
                                              include_self=False),
    "index_put": lambda x, at, u: x.index_put((at,), u, accumulate=True),
    "mask": lambda x, at, u: x.index_put((x > 0,), u[0, 0], accumulate=True),
    "topk": lambda x, at, u: u.topk(5, 0).values,
    "sort": lambda x, at, u: torch.stack([t.to(u.dtype) for t in u.sort(dim=0, stable=True)]),
    "nonzero": lambda x, at, u: (u > 0).nonzero(),
    "embedding": lambda x, at, u: torch.ops.aten.embedding_dense_backward(u, at, 100, 3, False),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", REPLACED)
def test_replaced_operators_repeat(name, dtype):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(100, 32, generator=generator).cuda().to(dtype)
    at = torch.randint(100, (20000,), generator=generator).cuda()
    u = torch.randn(20000, 32, generator=generator).cuda().to(dtype)
    call = REPLACED[name]
    with deterministic():
        results = [call(x, at, u) for _ in range(5)]
    assert all(torch.equal(results[0], other) for other in results)
    wide = call(x.double(), at, u.double())
    if dtype == torch.float32 or name in ("topk", "amax", "nonzero"):
        torch.testing.assert_close(results[0].to(wide.dtype), wide, rtol=1e-3, atol=1e-3)


def test_with_pytorchs_own_switch():
    x, at = torch.rand(40, device="cuda"), torch.randint(40, (50,), device="cuda")
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(RuntimeError, match="deterministic"):
            x.clone().put_(at, torch.rand(50, device="cuda"))
        with deterministic():
            x.clone().put_(at, torch.rand(50, device="cuda"))
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("kind", [deterministic_step.Experts, deterministic_step.Graph])
def test_training_repeats(kind):
    with deterministic():
        results = [deterministic_step.trained(kind, "cuda")[0] for _ in range(4)]
    assert deterministic_step.distinct(results) == 1
    plain, _ = deterministic_step.trained(kind, "cuda")
    torch.testing.assert_close(results[0], plain, rtol=1e-2, atol=1e-3)
