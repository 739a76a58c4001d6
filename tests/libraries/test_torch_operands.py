"""Operands of calls with tensors that are lists, numbers or lazy arrays."""

import numpy as np
import pytest

import anydml as dml

torch = pytest.importorskip("torch")


def test_one_hot_of_a_list_of_floats():
    """PyTorch's default type, as `torch.tensor` makes of a list."""
    indices = torch.tensor([0, 2])
    assert dml.one_hot(indices, 3, [0.0, 1.0]).dtype == torch.float32
    assert dml.one_hot(indices, 3, [0, 1]).dtype == torch.int64
    assert dml.one_hot(indices, 3, np.array([0.0, 1.0])).dtype == torch.float64
    torch.set_default_dtype(torch.float64)
    try:
        assert dml.one_hot(indices, 3, [0.0, 1.0]).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    out = torch.zeros(2, 3)
    assert dml.one_hot(indices, 3, [0.0, 1.0], out=out) is out
    assert out.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_numbers_beside_tensors_of_a_device():
    """They are filled in there: a copy from the host cannot be part of a CUDA graph."""
    from torch.utils._python_dispatch import TorchDispatchMode

    from anydml.torch._namespace import Namespace

    class Names(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            called.append(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    lib, called = Namespace(None), []
    x = torch.empty(4, device="meta")
    with Names():
        made = [lib.indices(3, x), lib.indices(np.uint8(3), x), lib.same_type(2.5, x, "updates")]
    assert [(y.device, y.dtype, y.shape) for y in made] == [
        (x.device, torch.int64, ()), (x.device, torch.int64, ()), (x.device, torch.float32, ())
    ]  # fmt: skip
    assert not {"copy_", "_to_copy"} & {*called}, called


def test_dask_arrays_beside_tensors():
    array = pytest.importorskip("dask.array")
    lazy = array.from_array(np.array([0, 1]))
    x = torch.arange(3.0)
    advice = "expected an array in memory, got a dask array; call .*compute"
    for call in (
        lambda: dml.gather(x, lazy),
        lambda: dml.gather(x, lazy, out=torch.zeros(2)),
        lambda: dml.scatter_elements(x, [0, 1], lazy.astype(np.float32)),
        lambda: dml.join([x, lazy.astype(np.float32)]),
        lambda: dml.join([x, lazy], promote=True),
    ):
        with pytest.raises(dml.ArgumentTypeError, match=advice):
            call()


def test_arrays_of_numpy_with_negative_strides():
    indices = np.array([2, 0])[::-1]
    assert dml.gather(torch.arange(3.0), indices).tolist() == [0, 2]
    assert dml.one_hot(torch.tensor([0]), 2, np.array([1.0, 2.0])[::-1]).tolist() == [[1, 2]]
    joined = dml.join([torch.zeros(2), np.array([1.0, 2.0])[::-1]], promote=True)
    assert joined.tolist() == [0, 0, 2, 1]
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = torch.zeros(3, dtype=torch.bfloat16)
    updates = np.arange(2).astype(ml_dtypes.bfloat16)[::-1]
    assert dml.scatter_elements(x, [0, 1], updates).tolist() == [1, 0, 0]


def test_a_type_that_pytorch_lacks():
    with pytest.raises(dml.ArgumentTypeError, match="type that PyTorch has, got datetime64"):
        dml.join([torch.zeros(2), np.array(["2026"], "M8[D]")], promote=True)
    with pytest.raises(dml.IndexOutOfRangeError, match=str(2**63)):
        dml.gather(torch.arange(3.0), [2**63])


def test_a_gradient_does_not_depend_on_later_writes():
    x, indices = torch.zeros(4, requires_grad=True), np.array([0, 1])
    y = dml.gather(x, indices)
    indices[:] = 3
    y.sum().backward()
    assert x.grad.tolist() == [1, 1, 0, 0]


def test_numbers_that_pytorch_does_not_take():
    x = torch.arange(2.0)
    assert dml.pad(x, 1, constant=np.float32(7)).tolist() == [7, 0, 1, 7]
    assert dml.top_k(x, 2, lengths=1, fill_value=np.float32(5)).values.tolist() == [0, 5]
    with pytest.raises(dml.ArgumentError, match="k: expected at most 2"):
        dml.top_k(x, 2**63)
    with pytest.raises(dml.ArgumentTypeError, match="fill_value"):
        dml.top_k(x, 1, lengths=0, fill_value="a")
    for call in (lambda: dml.tile(x, 2**63), lambda: dml.pad(x, 1, constant=2**70)):
        with pytest.raises(dml.AnyDMLError):
            call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: dml.gather(x, [0.0, 1.9]),
        lambda x: dml.gather(x, [True]),
        lambda x: dml.top_k(x, 1, lengths=1.9).values,
        lambda x: dml.scatter_elements(x, [0], 1e39),
        lambda x: dml.scatter_elements(x, [0], True),
    ],
)
def test_values_that_do_not_fit_are_refused_in_graphs_too(call):
    x = torch.arange(3.0)
    with pytest.raises(dml.ArgumentTypeError):
        call(x)
    with pytest.raises(Exception, match="expected"):
        torch.compile(call, fullgraph=True, backend="aot_eager")(x)


@pytest.mark.parametrize("mode", ["wrap", "clip", "clamp"])
def test_modes_of_tuples_of_symbolic_sizes(mode):
    def call(x, indices):
        return dml.gather_nd(x, indices, mode=mode)

    x, indices = torch.arange(12.0).reshape(3, 4), torch.tensor([[-9, 1], [2, -9], [1, 9]])
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager", dynamic=True)
    if mode == "clamp":
        indices = indices.clamp(0, 2)
    assert compiled(x, indices).tolist() == call(x, indices).tolist()


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.filterwarnings("ignore:While compiling")
def test_exported_options_of_top_k(strict, tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x):
            return tuple(dml.top_k(x, 2, sorted=False))

    x = torch.arange(3.0)
    exported = torch.export.export(Model(), (x,), strict=strict)
    torch.export.save(exported, tmp_path / "a.pt2")
    values, indices = torch.export.load(tmp_path / "a.pt2").module()(x)
    assert (values.tolist(), indices.tolist()) == ([1, 2], [1, 2])


@pytest.mark.parametrize(
    "options", [{}, {"sorted": False}, {"nan": "last"}, {"tie_break": "last"}, {"largest": False}]
)
def test_options_of_top_k_copy_nothing(options):
    """A copy of an empty array costs more than the call, most of all to a GPU."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Recorded(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            calls.append(function.overloadpacket.__name__)
            return function(*arguments, **(keywords or {}))

    calls = []
    with Recorded():
        values, _ = dml.top_k(torch.tensor([1.0, 3.0, 2.0]), 2, **options)
    assert len(values) == 2
    made = ["empty"] if {*options} - {"largest"} else []
    assert calls[-1 - len(made) : -1] == made
    assert calls[-1] == ("top_k_rows_plain" if made else "top_k_plain")
