"""Sizes that are symbols, or that data decide, in whole graphs."""

import pytest

torch = pytest.importorskip("torch")

import anydml as dml  # noqa: E402 (PyTorch may be missing)

X, Y = torch.arange(12.0).reshape(6, 2), torch.arange(8.0).reshape(4, 2)

CALLS = {
    "split by a size": (lambda x: dml.split(x, x.shape[0]), (X,), (Y,)),
    "split by a number": (dml.split, (X, 2), (X, 3)),
    "split by points": (lambda x, n: dml.split(x, points=[n]), (X, 2), (Y, 3)),
    "split by points from the end": (lambda x: dml.split(x, points=[1, -1]), (X,), (Y,)),
    "pad by a number": (dml.pad, (X, 2), (Y, 3)),
    "tile by a number": (dml.tile, (X, 2), (Y, 3)),
    "window of a size": (lambda x: dml.slice_window(x, (1, 0), (x.shape[0] - 1, 1)), (X,), (Y,)),
    "split by data": (lambda x, i: dml.split(x, i.tolist()), (X, torch.tensor([2, 4])),
                      (X, torch.tensor([1, 5]))),
    "split by points of data": (lambda x, i: dml.split(x, points=i.tolist()),
                                (X, torch.tensor([2, 4])), (X, torch.tensor([1, 5]))),
    "top_k by data": (lambda x, i: dml.top_k(x, i[0].item(), axis=0).values,
                      (X, torch.tensor([2])), (Y, torch.tensor([3]))),
}  # fmt: skip


def parts(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("name", CALLS)
def test_whole_graphs(name):
    call, *operands = CALLS[name]
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    for arguments in operands:
        pairs = zip(parts(compiled(*arguments)), parts(call(*arguments)), strict=True)
        assert all(torch.equal(*pair) for pair in pairs)


class Padded(torch.nn.Module):
    def forward(self, x):
        return dml.pad(x, x.shape[0])


def test_export_of_a_padding_by_a_size():
    shapes = {"x": {0: torch.export.Dim.AUTO}}
    program = torch.export.export(Padded(), (X,), dynamic_shapes=shapes)
    assert torch.equal(program.module()(Y), dml.pad(Y, 4))


def test_what_data_decide_is_checked_when_the_graph_runs():
    call, arguments, _ = CALLS["top_k by data"]
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    compiled(*arguments)
    with pytest.raises((RuntimeError, dml.ArgumentError)):
        compiled(X, torch.tensor([7]))


def test_no_warning_and_no_trace_left_behind():
    def call(x):
        return dml.top_k(x, 1).values + 1

    assert torch.equal(torch.compile(call, backend="aot_eager")(X), call(X))  # warnings are errors
    torch._dynamo.reset()
    assert torch.equal(torch.compile(call, fullgraph=True, backend="aot_eager")(X), call(X))
