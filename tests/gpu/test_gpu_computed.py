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
    compiled(x=values, i=bad)
    with pytest.raises(dml.IndexOutOfRangeError, match=r"IndicesTensor.*expected 0..3 .* got 9"):
        dml.synchronize()
    assert compiled(x=values, i=good)["y"].tolist() == [[36, 0]]


def test_a_model(tmp_path, capsys):
    from anydml.cli import command as cli

    assert cli.main(["run", "--device", "cuda", "--example", "gemm"]) == 0
    on_gpu = capsys.readouterr().out
    assert cli.main(["run", "--device", "cpu", "--example", "gemm"]) == 0
    assert on_gpu == capsys.readouterr().out


def on_jax(array):
    return jax.device_put(array, jax.devices("cuda")[0])


def as_numpy(result):
    if isinstance(result, np.ndarray | jax.Array):
        return np.asarray(result)
    return on_host(result)


@pytest.mark.parametrize("first", range(4))
def test_memory_of_every_library_in_turn(first):
    """Captured CUDA graphs are updated to memory that another library allocated."""
    libraries = [np.array, on_cupy, on_torch, on_jax]
    libraries = libraries[first:] + libraries[:first]
    desc, arrays = network()
    compiled = dml.Device("cuda").compile_graph(desc).initialize(w=arrays["w"])
    wanted = dml.Device("cpu").compile_graph(desc).initialize(w=arrays["w"])
    for turn in range(4):
        for library in libraries + libraries[::-1]:
            x = arrays["x"] + np.float32(turn)
            found, expected = compiled(x=library(x)), wanted(x=x)
            for name, result in found.items():
                assert type(result) is type(library(arrays["x"]))
                np.testing.assert_allclose(as_numpy(result), expected[name], 1e-4, 1e-4)


def test_arrays_of_jax_are_results():
    desc, arrays = network()
    compiled = dml.Device("cuda").compile_graph(desc).initialize(w=arrays["w"])
    x = on_jax(arrays["x"])
    found, on_the_host = compiled(x=x), compiled(x=arrays["x"])
    for name, result in found.items():
        assert isinstance(result, jax.Array)
        assert result.devices() == x.devices()
        np.testing.assert_array_equal(np.asarray(result), on_the_host[name])


def test_work_of_pytorch_before_and_after_a_call_is_in_order():
    torch = pytest.importorskip("torch")
    tensor = dml.TensorDesc("FLOAT32", (1 << 22,))
    graph = dml.GraphBuilder()
    x = graph.input("x", tensor)
    compiled = dml.Device("cuda").compile_graph(graph.build(y=graph.add(x, graph.multiply(x, x))))
    stream = torch.cuda.Stream()
    values = torch.zeros(1 << 22, device="cuda")
    torch.cuda.synchronize()
    for on in (torch.cuda.current_stream(), stream):
        with torch.cuda.stream(on):
            for step in range(30):
                torch.cuda._sleep(200_000)  # cycles: a call that does not wait reads too early
                values.fill_(step)
                y = compiled(x=values)["y"]
                values.fill_(-1)  # and one that is not waited for, too late
                total = y.double().sum()
                del y
                again = torch.full((1 << 22,), -7.0, device="cuda")  # which may take its memory
                assert total.item() == (step + step * step) * (1 << 22)
                del again


def test_a_bad_index_leaves_what_is_bound_as_it_was():
    torch = pytest.importorskip("torch")
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (1, 4)))
    i = graph.input("i", dml.TensorDesc("UINT32", (1, 2)))
    rows = graph.gather(graph.add(x, x), i, axis=1, index_dimensions=1)
    compiled = dml.Device("cuda").compile_graph(graph.build(y=graph.multiply(rows, rows), z=rows))
    values = torch.arange(4.0, device="cuda").reshape(1, 4)
    bad = torch.tensor([[3, 9]], dtype=torch.uint32, device="cuda")
    y, z = (torch.full((1, 2), 7.0, device="cuda") for _ in range(2))
    with pytest.raises(dml.IndexOutOfRangeError, match=r"IndicesTensor.*expected 0..3 .* got 9"):
        compiled.dispatch(x=values, i=bad, y=y, z=z)
    assert y.tolist() == z.tolist() == [[7, 7]]
    x, at = on_jax(np.arange(4, dtype=np.float32)[None]), on_jax(np.array([[3, 9]], np.uint32))

    def call_and_wait():
        jax.block_until_ready(compiled(x=x, i=at))
        dml.synchronize()

    with pytest.raises(dml.IndexOutOfRangeError, match="got 9"):
        call_and_wait()


def test_a_graph_is_one_compiled_function():
    desc, _ = network()
    compiled = dml.Device("cuda").compile_graph(desc)
    assert [call.kernel for call in compiled._compiled._program.calls] == ["run 0"]


def exact_product(device, allowed, kind="FLOAT32"):
    """The largest differences from float64, in half-ULPs of FLOAT16 of sums of absolute values."""
    graph = dml.GraphBuilder()
    a = graph.input("a", dml.TensorDesc(kind, (1, 1, 128, 512)))
    b = graph.input("b", dml.TensorDesc(kind, (1, 1, 512, 64)))
    image = graph.input("image", dml.TensorDesc(kind, (1, 32, 20, 20)))
    filters = graph.input("filters", dml.TensorDesc(kind, (64, 32, 3, 3)))
    desc = graph.build(product=graph.gemm(a, b), picture=graph.convolution(image, filters))
    compiled = dml.Device(device).compile_graph(desc, allow_half_precision=allowed)
    rng = np.random.default_rng(0)
    arrays = {
        slot.name: rng.standard_normal(slot.declared).astype(slot.spec.dtype)
        for slot in compiled.program.inputs
    }
    found = compiled(**arrays)
    wide = {name: array.astype(np.float64) for name, array in arrays.items()}
    absolute = {name: np.abs(array) for name, array in wide.items()}
    errors = []
    for name, result in found.items():
        exact, magnitude = (
            x["a"] @ x["b"] if name == "product" else windows(x["image"], x["filters"])
            for x in (wide, absolute)
        )
        errors.append(np.max(np.abs(result - exact) / (magnitude * 2.0**-11)))
    return errors


def windows(image, filters):
    """A convolution in float64."""
    parts = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
    return np.einsum("ncijhw,kchw->nkij", parts, filters)


@pytest.mark.parametrize("device", ["cuda", "xla:cuda"])
def test_only_the_flag_makes_products_less_precise(device):
    assert max(exact_product(device, False)) < 2.0**-8
    assert all(2.0**-8 < error <= 8 for error in exact_product(device, True))
    for allowed in (False, True):  # which is rounded at the end
        assert max(exact_product(device, allowed, "FLOAT16")) <= 2


def test_halves_are_multiplied_as_they_are():
    """Sums are in float32: in float16, 1 is lost beside 4096."""
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT16", (1, 1, 8, 4097)))
    y = graph.input("y", dml.TensorDesc("FLOAT16", (1, 1, 4097, 8)))
    compiled = dml.Device("cuda").compile_graph(graph.build(z=graph.gemm(x, y)))
    ones = np.ones((1, 1, 8, 4097), np.float16)
    values = np.ones((1, 1, 4097, 8), np.float16)
    values[..., 0, :] = -4096
    assert (compiled(x=ones, y=values)["z"] == 0).all()
    values[..., 0, :] = 60000  # a sum beyond float16, and products beyond it that cancel
    values[..., 1, :] = 60000
    values[..., 2, :] = -60000
    assert (compiled(x=ones, y=values)["z"] == np.float16(60000 + 4094)).all()


def test_arrays_of_jax_on_xla():
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (1, 1, 64, 64)))
    compiled = dml.Device("xla:cuda").compile_graph(graph.build(y=graph.gemm(x, x)))
    values = np.arange(4096, dtype=np.float32).reshape(1, 1, 64, 64) % 7
    bound = on_jax(values)
    expected = compiled(x=values)["y"]
    with jax.transfer_guard("disallow"):
        found = compiled(x=bound)["y"]
    assert found.devices() == bound.devices()
    np.testing.assert_array_equal(np.asarray(found), expected)
