"""What calls on tensors say that cannot run, and what the integrations name as public."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import anydml as dml  # noqa: E402 (PyTorch may be missing)
import anydml.torch  # noqa: E402 (PyTorch may be missing)

ONES = torch.ones(3)

OF_ONE_TENSOR = {
    "top_k": lambda x: dml.top_k(x, 1),
    "top_k to out": lambda x: dml.top_k(x, 1, out=(torch.ones(1), None)),
    "nonzero_coordinates": dml.nonzero_coordinates,
    "gather": lambda x: dml.gather(x, [0]),
    "gather by": lambda x: dml.gather(ONES, x),
    "join": lambda x: dml.join([ONES, x]),
    "split": lambda x: dml.split(x, 1),
    "pad": lambda x: dml.pad(x, 1),
    "tile": lambda x: dml.tile(x, 2),
    "cast": lambda x: dml.cast(x, "float64"),
    "one_hot": lambda x: dml.one_hot(x, 2),
    "slice_window": lambda x: dml.slice_window(x, (0,), (1,)),
}


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
@pytest.mark.parametrize("name", OF_ONE_TENSOR)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_rejected_with_advice(name, layout):
    x = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)
    message = r"expected a dense tensor, got a nested tensor; use \.to_padded_tensor"
    with pytest.raises(dml.ArgumentTypeError, match=message):
        OF_ONE_TENSOR[name](x)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dml.one_hot(torch.tensor([1]), 2**46),
        lambda: dml.tile(torch.ones(4), 2**59),
        lambda: dml.tile(torch.ones(4), 2**61),
        lambda: dml.tile(torch.ones(4, requires_grad=True), 2**45),
        lambda: dml.pad(torch.ones(4), 2**47),
    ],
)
def test_results_that_are_too_large(call):
    with pytest.raises(dml.AllocationError, match="could not be allocated"):
        call()


def test_gradients_need_a_tensor_as_first_argument():
    message = "requires grad; use .* with a tensor as the first argument"
    with pytest.raises(dml.ArgumentTypeError, match=message):
        dml.one_hot([0, 1], 2, torch.ones(2, requires_grad=True))
    with pytest.raises(dml.ArgumentTypeError, match=message):
        dml.scatter_elements(np.zeros(3, np.float32), [0], torch.ones(1, requires_grad=True))
    with pytest.raises(dml.ArgumentTypeError, match=r"x: .*use tensor\.detach|x: .*requires grad"):
        dml.top_k([torch.tensor(1.0, requires_grad=True), torch.tensor(2.0)], 1)


# ---- out= in a graph ----------------------------------------------------------------------------


def compiled(function, **options):
    torch.compiler.reset()
    return torch.compile(function, backend="aot_eager", fullgraph=True, **options)


def test_out_in_a_graph():
    x = torch.tensor([3.0, 1.0, 2.0])

    def gather(x, out):
        return dml.gather(x, torch.tensor([2, 0]), out=out) + 1

    out = torch.empty(2)
    assert compiled(gather)(x, out).tolist() == [3, 4]
    assert out.tolist() == [2, 3]

    def top_k(x, values, indices):
        return dml.top_k(x, 2, out=(values, indices))

    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int32)
    found = compiled(top_k)(x, values, indices)
    assert isinstance(found, dml.TopKResult)
    assert (values.tolist(), indices.tolist()) == ([3, 2], [0, 2])
    found = compiled(top_k)(x, values.zero_(), None)
    assert (values.tolist(), found.indices.tolist()) == ([3, 2], [0, 2])

    def split(x, first, second):
        return dml.split(x, [1, 2], out=[first, second])

    first, second = torch.empty(1), torch.empty(2)
    assert len(compiled(split)(x, first, second)) == 2
    assert (first.tolist(), second.tolist()) == ([3], [1, 2])


@pytest.mark.parametrize(
    ("x", "out", "message"),
    [
        (ONES, torch.empty(3), "out: expected a tensor of the result's shape"),
        (ONES, torch.empty(2).double(), "out: expected torch.float32"),
        (ONES.clone().requires_grad_(), torch.empty(2), "requires grad"),
    ],
)
def test_out_that_does_not_fit_a_graph(x, out, message):
    def gather(x, out):
        return dml.gather(x, torch.tensor([2, 0]), out=out)

    with pytest.raises(Exception, match=message):
        compiled(gather)(x, out)
    with pytest.raises((dml.ArgumentError, dml.ArgumentTypeError)):
        gather(x, out)


# ---- public names -------------------------------------------------------------------------------


def test_public_names():
    assert dir(anydml.torch) == anydml.torch.__all__ == ["deterministic"]


@pytest.mark.parametrize("library", ["jax", "dask"])
def test_public_names_of_other_integrations(library):
    pytest.importorskip(library)
    module = pytest.importorskip(f"anydml.{library}")
    assert "top_k" in dir(module)
    assert all(getattr(module, name) is not None for name in dir(module))
    assert not {"call_of", "function_of", "SPECS"} & {*dir(module), *module.__all__}
