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


@pytest.mark.filterwarnings("ignore:torch.compile with fullgraph:UserWarning")  # PyTorch 2.12
@pytest.mark.parametrize("fullgraph", [False, True])
def test_pytorchs_own_switch_keeps_functions_compiled(fullgraph):
    torch.compiler.reset()
    compiled = Compiled(fullgraph=fullgraph)
    with torch.compiler.set_stance("force_eager"), deterministic():
        assert not compiled.is_used()
    assert compiled.is_used()


@pytest.mark.skipif(
    torch.__version__.startswith("2.10."),
    reason="PyTorch 2.10 has one flag for all threads, which blocks that overlap leave set",
)
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


def run_several():
    x, at = numbers(4, 5), index(4, 6)
    x.clone().index_add_(0, at, x[at])
    x.clone()[at] = numbers(6, 5)
    x.topk(2)
    return x.argsort()


@pytest.mark.parametrize("only", [{"topk"}, ["sort", "index_put"], frozenset(), {"index_add"}])
def test_named_operators_alone_are_replaced(only):
    names = {"index_add", "index_put", "topk", "sort"}
    with Executed() as executed, deterministic(only=only):
        run_several()
    ran = {name.rstrip("_").replace("_index_put_impl", "index_put") for name in executed.names}
    assert ran & names == names - set(only)


def test_the_gradient_of_an_embedding_by_its_name():
    words = torch.nn.Embedding(10, 4)
    with deterministic(only={"embedding"}, report=True) as block:
        words(index(10, 20)).sum().backward()
    assert block.report.replaced == {"embedding": 1}
    assert "embedding" in block.report.others  # itself, which adds nothing
    with deterministic(report=True, only={"topk"}) as block:
        words(index(10, 20)).sum().backward()
    assert block.report.excluded == {"embedding": 1}


def test_a_report_counts_what_ran():
    with deterministic(only={"topk", "index_add"}, report=True) as block:
        run_several().view(-1)
        run_several().cumsum(0)
    report = block.report
    assert report.replaced == {"index_add": 2, "topk": 2}
    assert report.excluded == {"index_put": 2, "sort": 2}
    assert report.others["cumsum"] == 1
    assert "view" not in report.others
    assert str(report).startswith("replaced: index_add 2, topk 2\nexcluded: index_put 2, sort 2\n")
    assert deterministic().report is None


def test_pytorch_warns_of_others_without_a_deterministic_kernel():
    y, where = torch.nn.functional.max_pool2d(numbers(1, 1, 4, 4), 2, return_indices=True)
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with deterministic(report=True) as block:
            torch.zeros(3).put_(torch.tensor([0, 0]), torch.ones(2))
            with pytest.warns(UserWarning, match="unpool"):
                torch.nn.functional.max_unpool2d(y, where, 2)
    finally:
        torch.use_deterministic_algorithms(False)
    assert block.report.replaced == {"put": 1}
    assert block.report.others["max_unpool2d"] == 1


def test_a_report_in_inference_mode_names_parts():
    with torch.inference_mode(), deterministic(report=True) as block:
        numbers(4, 5).argsort()
    assert block.report.replaced == {"sort": 1}
    assert "argsort" not in block.report.others


def test_a_decorated_function_keeps_the_options():
    counted = deterministic(only={"topk"}, report=True)(run_several)
    counted()
    counted()
    assert counted.report.replaced == {"topk": 2}
    assert counted.report.excluded == {"index_add": 2, "index_put": 2, "sort": 2}


def test_the_flag_of_pytorch_is_followed():
    with deterministic(follow_flag=True, report=True) as block:
        numbers(4, 5).topk(2)
        assert not block.report.replaced
        torch.use_deterministic_algorithms(True)
        try:
            numbers(4, 5).topk(2)
            deterministic(follow_flag=True)(run_several)()
        finally:
            torch.use_deterministic_algorithms(False)
        assert block.report.replaced == {"topk": 1}
        assert block.report.excluded == {"topk": 1}


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"only": {"topkk"}}, dml.ArgumentError, "got 'topkk'; did you mean 'topk'?"),
        ({"only": ["mm", "scater", 3]}, dml.ArgumentError,
         "got 'mm', 'scater'; did you mean 'scatter'?, 3"),
        ({"only": "topk"}, dml.ArgumentTypeError, "got 'topk'; write only={'topk'}"),
        ({"only": 3}, dml.ArgumentTypeError, "only: expected a set of names"),
        ({"report": "yes"}, dml.ArgumentTypeError, "report: expected a bool, got 'yes'"),
        ({"follow_flag": 1}, dml.ArgumentTypeError, "follow_flag: expected a bool, got 1"),
    ],
)  # fmt: skip
def test_bad_options(options, error, message):
    with pytest.raises(error) as refused:
        deterministic(**options)
    assert message in str(refused.value)
