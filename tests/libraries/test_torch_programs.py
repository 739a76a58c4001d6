"""The functions inside torch.compile, torch.export, torch.vmap and the other transformations."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402 (PyTorch may be missing)
from torch_calls import (  # noqa: E402 (PyTorch may be missing)
    ALONG,
    BATCHED,
    CALLS,
    OPERATORS,
    OTHERS,
    TUPLES,
    as_tuple,
    can_have_a_gradient,
    floats,
)

import anydml as dml  # noqa: E402 (PyTorch may be missing)
from anydml.functions._function import SPECS  # noqa: E402 (PyTorch may be missing)
from anydml.torch import _operators  # noqa: E402 (PyTorch may be missing)

ALL = {**CALLS, **OTHERS}


def same(ours, expected):
    for got, reference in zip(as_tuple(ours), as_tuple(expected), strict=True):
        assert got.dtype == reference.dtype
        assert torch.equal(got, reference)


@pytest.fixture
def fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")  # PyTorch 2.15
@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("asks", [False, True], ids=["", "with a gradient"])
def test_pytorchs_own_check_of_operators(name, asks):
    arguments = [*OPERATORS[name]]
    i = next(i for i, x in enumerate(arguments) if can_have_a_gradient(x))
    operands = arguments[i] if isinstance(arguments[i], list) else [arguments[i]]
    operands = [operand.clone().requires_grad_(asks) for operand in operands]
    arguments[i] = operands if isinstance(arguments[i], list) else operands[0]
    torch.library.opcheck(getattr(torch.ops.anydml, name).default, (*arguments,))


def test_every_operator_is_checked():
    functions = {
        name
        for name in dml.__all__
        if getattr(getattr(dml, name), "__module__", "").startswith("anydml.functions")
        and not isinstance(getattr(dml, name), type)
    }
    named = {spec.name for spec in _operators.OPERATORS if spec.function.__name__ == spec.name}
    assert named == set(OPERATORS) == functions


def test_functions_are_named_nowhere_in_the_integration():
    folder = Path(_operators.__file__).parent
    names = re.compile(rf"\b({'|'.join(OPERATORS)})\b")
    for file in ("_operators", "_memory", "_namespace", "__init__"):
        tree = ast.parse((folder / f"{file}.py").read_text())
        code = [node for node in ast.walk(tree) if not isinstance(node, ast.Constant)]
        found = {getattr(node, "id", getattr(node, "attr", "")) for node in code} - {*dir(str)}
        assert not [name for name in found if names.fullmatch(name)], file


@pytest.mark.parametrize("name", ALL)
def test_whole_graphs(name, fresh):
    x = floats(3, 4)
    compiled = torch.compile(ALL[name], fullgraph=True, backend="aot_eager")
    same(compiled(x), ALL[name](x))


def test_the_first_call_of_a_function_is_in_a_whole_graph(fresh):
    SPECS["tile"].calls.clear()
    x = floats(3, 4)
    compiled = torch.compile(lambda x: dml.tile(x, 2), fullgraph=True, backend="eager")
    same(compiled(x), dml.tile(x, 2))


@pytest.mark.parametrize("name", ["top_k", "scatter_elements", "gather", "split", "join"])
def test_gradients_of_whole_graphs(name, fresh):
    call = CALLS[name]
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    grads = []
    for function in (call, compiled):
        x = floats(3, 4).requires_grad_()
        sum((y * y).sum() for y in as_tuple(function(x))).backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_sizes_that_are_symbols(fresh):
    """One graph serves every size: nothing of the shapes is fixed while it is traced."""
    graphs = []

    def backend(graph, examples):
        graphs.append(graph)
        return graph.forward

    def call(x):
        n = x.shape[0]
        values, indices = dml.top_k(x, n // 2, axis=0)
        halves = dml.split(x, [n // 2, n - n // 2])
        scattered = dml.scatter_elements(torch.zeros_like(x), indices, values, axis=0)
        picked = dml.gather_elements(x, indices, axis=0)
        gathered = dml.gather_nd(x, dml.nonzero_coordinates(x > 0))
        return dml.join([scattered, picked, *halves, dml.pad(x, 1)[1:-1, 1:-1]]), gathered

    compiled = torch.compile(call, fullgraph=True, backend=backend, dynamic=True)
    for n, m in ((6, 4), (7, 5), (20, 3)):
        x = floats(n, m)
        same(compiled(x), call(x))
    assert len(graphs) == 1


def test_a_graph_that_breaks_at_a_size_of_the_data(fresh):
    """PyTorch runs the call outside of its graphs, and warns of nothing."""
    compiled = torch.compile(lambda x: dml.nonzero_coordinates(x) + 1, backend="eager")
    x = floats(3, 4)
    same(compiled(x), dml.nonzero_coordinates(x) + 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own code
def test_the_default_backend(fresh):
    compiled = torch.compile(lambda x: dml.top_k(dml.join([x, x]), 3), fullgraph=True)
    x = floats(3, 4).float().T  # strides of its own
    result = compiled(x)
    assert isinstance(result, dml.TopKResult)
    same(result, dml.top_k(dml.join([x, x]), 3))


@pytest.mark.filterwarnings("ignore")  # PyTorch's own code, and that it is not compiled
@pytest.mark.parametrize("transform", [
    lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1],
    lambda f: torch.func.grad(lambda x: f(x).sum()),
])  # fmt: skip
def test_derivatives_inside_of_compiled_functions(transform, fresh):
    """PyTorch has no public interface for an operator's: the function runs as it is written."""
    call = transform(lambda y: dml.gather(dml.top_k(y * y, 2).values, [1]))
    x = floats(3, 4)
    assert call(x).abs().sum() > 0
    same(torch.compile(call, backend="aot_eager")(x), call(x))
    torch._dynamo.reset()
    with pytest.raises(Exception, match="anydml"):  # never a wrong derivative
        torch.compile(call, backend="aot_eager", fullgraph=True)(x)


def test_wrong_arguments_of_operators():
    x = floats(3, 4)
    with pytest.raises(dml.ArgumentTypeError, match=r"index_dtype: expected .*, got torch\.int8"):
        torch.ops.anydml.top_k(x, 1, 2, True, torch.int8)
    for starts, ends in (([1], [1, 1]), ([1, 1], [1])):
        with pytest.raises(dml.ArgumentError, match=r"pad_width: expected 2 values"):
            torch.ops.anydml.pad(x, "constant", 0, starts, ends)


@pytest.mark.slow
def test_nothing_has_to_be_imported():
    script = """
import torch, sys
import anydml as dml
assert "anydml.torch" not in sys.modules
f = torch.compile(lambda x: dml.top_k(x, 5), fullgraph=True, backend="eager")
print(f(torch.arange(9.0)).indices.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "[8, 7, 6, 5, 4]\n", done.stderr


def test_a_first_call_imports_no_compiler():
    """It takes a second and more."""
    script = """
import sys, torch
before = set(sys.modules)
import anydml as dml
for x in (torch.ones(3, 4), torch.ones(3, 4, requires_grad=True)):
    dml.top_k(x, 2)
    dml.gather(x, torch.tensor([1]))
    dml.nonzero_coordinates(x)
print([name for name in sys.modules.keys() - before if name.startswith(("torch.", "sympy"))])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.filterwarnings("ignore::UserWarning")  # of what is not traced
def test_arrays_that_are_none_of_pytorchs_break_the_graph(fresh):
    def call(x):
        return x + 1, dml.gather_elements([1.0, 2.0], [1, 0]).tolist()

    y, joined = torch.compile(call, backend="eager")(torch.ones(2))
    assert (y.tolist(), joined) == ([2, 2], [2.0, 1.0])


def test_wrong_arguments_in_graphs(fresh):
    x = floats(3, 4)
    with pytest.raises(Exception, match=r"k: expected at most 4 \(x.shape\[1\]\), got 9"):
        torch.compile(lambda t: dml.top_k(t, 9), fullgraph=True, backend="eager")(x)
    with pytest.raises(Exception, match=r"axis: expected -2\.\.1"):
        torch.compile(lambda t: dml.top_k(t, 1, axis=2), fullgraph=True, backend="eager")(x)
    gather = torch.compile(dml.gather, fullgraph=True, backend="eager")
    with pytest.raises(dml.IndexOutOfRangeError, match=r"indices\[1\]: expected -3\.\.2"):
        gather(x, torch.tensor([0, 3]))


class Module(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.call = ALL[name]

    def forward(self, x):
        return self.call(x)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["top_k", "gather list", "scatter_elements number",
                                  "nonzero then gather", "split"])  # fmt: skip
def test_export(name, strict, fresh):
    x = floats(3, 4)
    program = torch.export.export(Module(name), (x,), strict=strict)
    assert "torch.ops.anydml." in program.graph_module.code
    same(program.module()(x), ALL[name](x))


def test_export_with_sizes_that_are_symbols(fresh):
    n = torch.export.Dim("n", min=3, max=4096)
    program = torch.export.export(Module("top_k"), (floats(5, 4),), dynamic_shapes={"x": {0: n}})
    x = floats(300, 4)
    same(program.module()(x), ALL["top_k"](x))


class Halves(torch.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return dml.split(x, [n // 2, n - n // 2]), dml.slice_window(x, (0, 1), (n // 2, 2))


def test_arguments_that_are_symbols():
    auto = {"x": {0: torch.export.Dim.AUTO}}
    program = torch.export.export(Halves(), (floats(10, 4),), dynamic_shapes=auto)
    x = floats(9, 4)
    parts, window = program.module()(x)
    same(parts, (x[:4], x[4:]))
    same(window, x[:4, 1:3])


# ---- vmap ---------------------------------------------------------------------------------------

X = floats(3, 4)

BATCHES = {
    "top_k": (lambda x: dml.top_k(x, 2, axis=0), (0,), floats(5, 3, 4)),
    "top_k, last": (lambda x: dml.top_k(x, 2), (2,), floats(3, 4, 5)),
    "gather, x": (lambda x: dml.gather(x, ALONG, axis=1), (1,), floats(3, 5, 4)),
    "gather, indices": (lambda i: dml.gather(X, i, axis=1), (2,),
                        torch.randint(-4, 4, (2, 3, 5))),
    "gather, both": (lambda x, i: dml.gather(x, i, axis=1), (1, 2), floats(3, 5, 4),
                     torch.randint(-4, 4, (2, 3, 5))),
    "gather, one each": (lambda x, i: dml.gather(x, i, axis=-1), (0, 0), floats(5, 3, 4),
                         torch.randint(-4, 4, (5,))),
    "gather, clamped": (lambda x, i: dml.gather(x, i, mode="clamp"), (0, 0), floats(5, 3, 4),
                        torch.randint(-9, 9, (5, 6))),
    "gather_elements": (lambda x, i: dml.gather_elements(x, i, axis=1), (0, 1), floats(5, 3, 4),
                        torch.randint(-4, 4, (2, 5, 3))),
    "gather_elements, x": (lambda x: dml.gather_elements(x, ALONG, axis=1), (2,), floats(3, 4, 5)),
    "gather_nd": (dml.gather_nd, (1, 0), floats(3, 5, 4),
                  torch.randint(-3, 3, (5, 6, 2))),
    "gather_nd, batched": (lambda x: dml.gather_nd(x, BATCHED, batch_dims=1), (2,),
                           floats(3, 4, 5)),
    "scatter_elements": (lambda x, i, u: dml.scatter_elements(x, i, u, axis=1), (0, 1, 2),
                         floats(5, 3, 4), torch.randint(-4, 4, (2, 5, 3)), floats(2, 3, 5)),
    "scatter_elements, updates": (
        lambda u: dml.scatter_elements(X, ALONG, u, axis=1, reduction="add"), (0,),
        floats(5, 2, 3)),
    "scatter_nd": (dml.scatter_nd, (1, 0, 0), floats(3, 5, 4),
                   torch.randint(-3, 3, (5, 6, 2)), floats(5, 6)),
    "scatter_nd, x": (lambda x: dml.scatter_nd(x, TUPLES, 3.0, reduction="add"), (0,),
                      floats(5, 3, 4)),
    "split": (lambda x: dml.split(x, [1, 2]), (1,), floats(3, 5, 4)),
    "join": (lambda x, y: dml.join([x, y, x], axis=1), (0, 2), floats(5, 3, 4), floats(3, 4, 5)),
    "join, one": (lambda x: dml.join([x, X]), (0,), floats(5, 3, 4)),
    "cast": (lambda x: dml.cast(x, "int16"), (1,), floats(3, 5)),
    "pad": (lambda x: dml.pad(x, [(1, 0), (0, 2)], "edge"), (1,), floats(3, 5, 4)),
    "reverse_subsequences": (lambda x, n: dml.reverse_subsequences(x, n, axis=0), (1, 0),
                             floats(3, 5, 4), torch.randint(4, (5, 1, 4))),
    "one_hot": (lambda i: dml.one_hot(i, 3, axis=1), (1,), torch.randint(-4, 4, (2, 5, 3))),
    "one_hot, values": (lambda v: dml.one_hot(ALONG, 4, v, axis=0), (1,), floats(2, 5)),
    "one_hot, both": (lambda i, v: dml.one_hot(i, 3, v), (1, 0),
                      torch.randint(-4, 4, (2, 5)), floats(5, 2)),
    "tile": (lambda x: dml.tile(x, (2, 3)), (1,), floats(3, 5, 4)),
    "slice_window": (lambda x: dml.slice_window(x, (0, 1), (3, 3), (2, -2)), (2,),
                     floats(3, 4, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", BATCHES)
def test_vmap(name):
    call, dims, *operands = BATCHES[name]
    pairs = [*zip(operands, dims, strict=True)]
    one_by_one = [as_tuple(call(*(t.select(d, b) for t, d in pairs))) for b in range(5)]
    expected = tuple(torch.stack(results) for results in zip(*one_by_one, strict=True))
    same(as_tuple(torch.vmap(call, in_dims=dims)(*operands)), expected)


def test_vmap_of_vmap_and_of_gradients():
    x = floats(2, 5, 3, 4)

    def loss(t):
        values, indices = dml.top_k(t, 2)
        return (dml.scatter_elements(t * 2, indices, values**2, axis=1) * t).sum()

    grads = torch.vmap(torch.vmap(torch.func.grad(loss)))(x)
    asked = x.clone().requires_grad_()
    sum(loss(t) for t in asked.flatten(0, 1)).backward()
    torch.testing.assert_close(grads, asked.grad)
    jacobian = torch.func.jacrev(lambda t: dml.gather(t, ALONG[0], axis=1))(x[0, 0])
    assert torch.equal(jacobian.sum((0, 1)), torch.tensor([[1.0, 0, 0, 2]] * 3).double())


def test_counts_that_differ_between_batches_are_refused():
    with pytest.raises(
        dml.ArgumentTypeError, match=r"size: expected an integer under vmap, .*; pass size="
    ):
        torch.vmap(dml.nonzero_coordinates)(floats(2, 3))


# ---- tensors that stand for others --------------------------------------------------------------


def test_fake_functional_and_traced_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    x = floats(3, 4)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(x)
        values, indices = dml.top_k(fake, 2)
        assert (values.shape, indices.dtype) == ((3, 2), torch.int64)
        with pytest.raises(dml.ArgumentError, match="k: expected at most 4"):
            dml.top_k(fake, 5)
    for call in (CALLS["scatter_nd rows"], CALLS["join"], CALLS["top_k"]):
        same(torch.func.functionalize(call)(x), call(x))
        graph = make_fx(call)(x)
        assert "anydml" in graph.code
        same(graph(x + 1), call(x + 1))
    meta = torch.ops.anydml.gather(x.to("meta"), ALONG.to("meta"), 1, False)
    assert meta.shape == (3, 2, 3)


class Seen(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(str(function))
        return function(*args, **(kwargs or {}))


def test_modes_see_the_operators():
    x = floats(3, 4)
    with Seen() as outer, Seen() as inner:
        dml.top_k(x, 2)
        dml.top_k([1.0, 2.0], 2)
    assert outer.names == inner.names == ["anydml.top_k_plain.default"]


def test_a_batch_of_coordinates_of_a_size():
    x = torch.tensor([[0, 1, 0], [1, 1, 0]])
    found = torch.vmap(lambda row: dml.nonzero_coordinates(row, size=3, fill_value=-1))(x)
    assert found.tolist() == [[[1], [-1], [-1]], [[0], [1], [-1]]]


def test_nonzero_coordinates_of_a_size():
    x = torch.tensor([0.0, 2.0, 3.0], requires_grad=True)
    for tensor in (x, x.detach()):
        found = dml.nonzero_coordinates(tensor, size=3, fill_value=-1)
        assert found.tolist() == [[1], [2], [-1]]
        assert dml.nonzero_coordinates(tensor, size=1).tolist() == [[1]]
