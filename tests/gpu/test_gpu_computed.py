"""Operators that calculate, and graphs, on a GPU: compiled by XLA between the CUDA kernels."""

import numpy as np
import pytest

import anydml as dml
from support import Flavour
from support.computed import KINDS
from support.on_xla import check

jax = pytest.importorskip("jax")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX has no GPU here"),
]


@pytest.mark.parametrize("device", ["cuda", "xla:cuda"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_every_kind(device, kind):
    for seed in range(2):
        check(device, kind, seed, Flavour)


def network(rows=64):
    """A graph with computed and native nodes, and reinterpreted edges."""
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (1, 1, rows, 96)))
    w = graph.input("w", dml.TensorDesc("FLOAT32", (1, 1, 96, 32), flags="OWNED_BY_DML"))
    hidden = graph.activation_relu(graph.gemm(x, w))
    best = graph.top_k(graph.activation_softmax1(hidden, axes=(3,)), axis=3, k=4)
    turned = graph.reinterpret(hidden, sizes=(1, 1, 32, rows), strides=(0, 0, 1, 32))
    chosen = graph.gather(turned, best.index, axis=2, index_dimensions=2)
    desc = graph.build(values=best.value, chosen=graph.multiply(chosen, chosen), hidden=hidden)
    rng = np.random.default_rng(0)
    return desc, {
        "x": rng.standard_normal((1, 1, rows, 96), np.float32),
        "w": rng.standard_normal((1, 1, 96, 32), np.float32),
    }


def on_torch(array):
    torch = pytest.importorskip("torch")
    return torch.from_numpy(array).cuda()


def on_cupy(array):
    return pytest.importorskip("cupy").asarray(array)


def on_host(array):
    return array.get() if hasattr(array, "get") else np.asarray(array.cpu())


@pytest.mark.parametrize("library", [np.array, on_torch, on_cupy])
def test_a_graph(library):
    desc, arrays = network()
    compiled = dml.Device("cuda").compile_graph(desc)
    compiled.initialize(w=library(arrays["w"]))
    wanted = dml.Device("cpu").compile_graph(desc)
    wanted.initialize(w=arrays["w"])
    expected = wanted(x=arrays["x"])
    for _ in range(3):
        found = compiled(x=library(arrays["x"]))
        for name, result in found.items():
            assert type(result) is type(library(arrays["x"]))
            on = result if isinstance(result, np.ndarray) else on_host(result)
            np.testing.assert_allclose(on, expected[name], 1e-5, 1e-5)


def test_what_is_bound_is_strided_and_in_place():
    torch = pytest.importorskip("torch")
    x = torch.arange(48.0, device="cuda").reshape(6, 8)
    tensor = dml.TensorDesc("FLOAT32", (8, 3))
    desc = dml.ActivationRelu(input_tensor=tensor, output_tensor=tensor)
    compiled = dml.Device("cuda").create_operator(desc).compile()
    view = (x - 20)[::2].T
    expected = view.clamp(min=0)
    assert torch.equal(compiled(view), expected)
    compiled.dispatch(InputTensor=view, OutputTensor=view)
    dml.synchronize()
    assert torch.equal(view, expected)
    odd = torch.arange(25.0, device="cuda")[1:].reshape(8, 3) - 9  # its own memory is aligned
    moved = torch.empty(25, device="cuda")[1:].reshape(8, 3)
    moved.copy_(odd)
    assert torch.equal(compiled(moved), odd.clamp(min=0))


def test_a_bad_index_between_two_runs():
    torch = pytest.importorskip("torch")
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (1, 4)))
    i = graph.input("i", dml.TensorDesc("UINT32", (1, 2)))
    rows = graph.gather(graph.add(x, x), i, axis=1, index_dimensions=1)
    compiled = dml.Device("cuda").compile_graph(graph.build(y=graph.multiply(rows, rows)))
    values = torch.arange(4.0, device="cuda").reshape(1, 4)
    good, bad = (torch.tensor([[3, last]], dtype=torch.uint32, device="cuda") for last in (0, 9))
    assert compiled(x=values, i=good)["y"].tolist() == [[36, 0]]
    with pytest.raises(dml.IndexOutOfRangeError, match=r"expected 0..3 .* got 9"):
        compiled(x=values, i=bad)
    assert compiled(x=values, i=good)["y"].tolist() == [[36, 0]]


def test_a_model(tmp_path, capsys):
    from anydml.cli import command as cli

    assert cli.main(["run", "--device", "cuda", "--example", "gemm"]) == 0
    on_gpu = capsys.readouterr().out
    assert cli.main(["run", "--device", "cpu", "--example", "gemm"]) == 0
    assert on_gpu == capsys.readouterr().out
