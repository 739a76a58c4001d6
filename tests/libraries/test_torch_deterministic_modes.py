"""`deterministic` with PyTorch's compiler, other modes, transformations and threads."""

import threading

import pytest

torch = pytest.importorskip("torch")

from test_torch_deterministic import (  # noqa: E402 (PyTorch may be missing)
    Executed,
    index,
    numbers,
)

import anydml as dml  # noqa: E402 (PyTorch may be missing)
import anydml.torch  # noqa: E402 (PyTorch may be missing)

deterministic = dml.torch.deterministic


class Compiled:
    """A function of its own code, compiled: PyTorch keeps what it knows of one by its code."""

    def __init__(self, **options):
        self.runs = 0
        names = {}
        exec("def function(x):\n    return x.topk(2).values * 2\n", names)
        self.function = torch.compile(names["function"], backend=self.backend, **options)

    def backend(self, graph, examples):
        def run(*arguments):
            self.runs += 1
            return graph.forward(*arguments)

        return run

    def is_used(self):
        """Whether a call runs compiled code."""
        before = self.runs
        self.function(numbers(4, 5))
        return self.runs > before


def test_a_compiled_function_runs_as_it_is_written():
    torch.compiler.reset()
    x, first, second = numbers(4, 5), Compiled(), Compiled()
    expected = first.function(x)
    with Executed() as executed, deterministic():
        assert not first.is_used()
        assert not second.is_used()
        assert torch.equal(second.function(x), expected)
    assert "topk" not in executed.names
    assert "top_k_plain" in executed.names
    assert Compiled().is_used()
    torch.compiler.reset()  # until then PyTorch runs what was called in the block as it is written
    assert first.is_used()
    assert second.is_used()


@pytest.mark.parametrize("fullgraph", [False, True])
def test_pytorchs_own_switch_keeps_functions_compiled(fullgraph):
    torch.compiler.reset()
    compiled = Compiled(fullgraph=fullgraph)
    with torch.compiler.set_stance("force_eager"), deterministic():
        assert not compiled.is_used()
    assert compiled.is_used()


@pytest.mark.parametrize("first_out", [0, 1])
def test_blocks_of_threads_that_overlap(first_out):
    """Compilation stays on, for other threads meanwhile and for all of them afterwards."""
    torch.compiler.reset()
    old = Compiled()
    assert old.is_used()
    enter, entered, leave = ([threading.Event() for _ in range(2)] for _ in range(3))
    inside, after = {}, {}

    def run(thread):
        enter[thread].wait()
        with deterministic():
            entered[thread].set()
            leave[thread].wait()
            function = Compiled()
            inside[thread] = [function.is_used(), function.is_used()]
        after[thread] = [old.is_used(), Compiled().is_used()]

    threads = [threading.Thread(target=run, args=(thread,), daemon=True) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in range(2):
        enter[thread].set()
        entered[thread].wait()
        assert old.is_used()
        assert Compiled().is_used()
    for thread in (first_out, 1 - first_out):
        leave[thread].set()
        threads[thread].join()
        assert old.is_used()
        assert Compiled().is_used()
    assert inside == {0: [False, False], 1: [False, False]}
    assert after == {0: [True, True], 1: [True, True]}
    with deterministic():
        pass
    assert old.is_used()
    assert Compiled().is_used()


def test_inside_a_compiled_function():
    """The block ends PyTorch's graph: what stands in it runs as it is written."""
    torch.compiler.reset()
    x = numbers(4, 5)

    def inside(x):
        with deterministic():
            y = x.index_copy(0, torch.tensor([-1]), x[:1])  # an index that PyTorch refuses
        return y * 2

    expected = 2 * torch.cat([x[:-1], x[:1]])
    with pytest.raises(Exception, match=r"expected a block around|Observed exception"):
        torch.compile(inside, backend="eager", fullgraph=True)(x)
    torch.compiler.reset()
    assert torch.equal(torch.compile(inside, backend="eager")(x), expected)


def test_blocks_nest_and_end():
    x = numbers(4, 5)
    with Executed() as executed:
        with deterministic() as mode, mode, deterministic():
            x.topk(2)
        assert "topk" not in executed.names
        with pytest.raises(ValueError, match="out"), deterministic():
            raise ValueError("out")
        x.topk(2)
        assert "topk" in executed.names


def test_with_fake_tensors_and_transformations():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    x, at = numbers(4, 5), index(4, 6)
    with FakeTensorMode() as mode, deterministic():
        fake = mode.from_tensor(x)
        assert fake.topk(2).values.shape == (4, 2)
        fake.index_add_(0, mode.from_tensor(at), fake[:1].expand(6, 5).clone())
        assert fake.index_add(1, mode.from_tensor(at), fake[:, :1].expand(4, 6)).shape == (4, 5)
    with deterministic():
        rows = torch.vmap(lambda row: row.scatter_add(0, at, row[:1].expand(6)))(x)
        graph = make_fx(lambda t: t.index_add(0, at, t[at]))(x)
    assert torch.equal(rows, torch.stack([r.scatter_add(0, at, r[:1].expand(6)) for r in x]))
    torch.testing.assert_close(graph(x), x.index_add(0, at, x[at]))
