"""The judge finds what breaks a promise, names the case, and outlives what it judges."""

import itertools
import json
import textwrap
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import anydml as dml
from anydml import judge
from anydml.cli.command import commands
from anydml.judge import judging, promises
from anydml.judge.libraries import LIBRARIES


def verdicts(answers):
    return {answer.promise.name: answer.verdict for answer in answers}


def broken(answers):
    return {answer.promise.name for answer in answers if answer.verdict not in ("yes", "none")}


@pytest.mark.parametrize(
    ("judge_function", "function"),
    [
        (judge.top_k, dml.top_k),
        (judge.nonzero, dml.nonzero_coordinates),
        (judge.scatter, dml.scatter_elements),
        (judge.scatter_into, lambda x, *rest: dml.scatter_elements(x, *rest, out=x)),
        (judge.scatter_add, partial(dml.scatter_elements, reduction="add")),
        (judge.gather, dml.gather),
        (judge.split, dml.split),
        (judge.join, dml.join),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_every_promise_is_kept_here(judge_function, function):
    answers = judge_function(function)
    assert answers
    assert not broken(answers), answers


def test_a_library_is_judged_in_processes():
    answers = judge.judge(["anydml"], ["scatter_add"])
    expected = {"sums": "yes", "runs": "yes", "threads": "yes", "replay": "none"}
    assert expected.items() <= verdicts(answers).items()


# ---- planted faults


def by_key(key, x, k):
    """The k largest elements of each row by a sort key of (element, index)."""
    at = [
        sorted(range(row.size), key=lambda i, row=row: key(row[i].item(), i))[:k]
        for row in x.reshape(-1, x.shape[-1])
    ]
    indices = np.array(at, np.int64).reshape(*x.shape[:-1], k)
    return np.take_along_axis(x, indices, -1), indices


def is_nan(a):
    return a != a


def right(a, i):
    return not is_nan(a), 0 if is_nan(a) else -a, i


def checked(x, k):
    if k > x.shape[-1]:
        raise ValueError("k")
    return by_key(right, x, k)


def ties_backwards(x, k):
    checked(x, k)
    return by_key(lambda a, i: (*right(a, i)[:2], -i), x, k)


def nan_smallest(x, k):
    checked(x, k)
    return by_key(lambda a, i: (is_nan(a), *right(a, i)[1:]), x, k)


def negative_zero_less(x, k):
    checked(x, k)
    return by_key(lambda a, i: (*right(a, i)[:2], str(a).startswith("-0.0"), i), x, k)


def payload_lost(x, k):
    values, indices = checked(x, k)
    return np.where(is_nan(values), values.dtype.type(0) / 1 if values.dtype.kind != "f"
                    else values.dtype.type("nan"), values), indices  # fmt: skip


def flushed(x, k):
    y = x.copy()
    if y.dtype == np.float32:
        y[np.abs(y) < np.finfo(np.float32).tiny] = 0
    _, indices = checked(y, k)
    return np.take_along_axis(x, indices, -1), indices


def by_float64(x, k):
    if k > x.shape[-1]:
        raise ValueError("k")
    _, indices = by_key(right, x.astype(np.float64), k)
    return np.take_along_axis(x, indices, -1), indices


def never_zero(x, k):
    if k == 0:
        raise ValueError("k")
    return checked(x, k)


def clamped_k(x, k):
    return by_key(right, x, min(k, x.shape[-1]))


def strides_ignored(x, k):
    packed = np.lib.stride_tricks.as_strided(x, strides=x.copy().strides)
    return checked(packed if x.base is not None and x.ndim == 2 else x, k)


def unsorted(x, k):
    values, indices = checked(x, k)
    order = np.argsort(indices, axis=-1)
    return np.take_along_axis(values, order, -1), np.take_along_axis(indices, order, -1)


def misses_one(x, k):
    values, indices = checked(x, k)
    if k > 100:
        values[..., -1] = values[..., 0]
    return values, indices


class Unsteady:
    """Gives another order of ties in each seventh call of many rows."""

    calls = 0

    def __call__(self, x, k):
        self.calls += 1
        return (ties_backwards if self.calls % 7 == 0 and x.size > 4000 else checked)(x, k)


def depends_on_rows(x, k):
    return (ties_backwards if x.ndim == 2 and x.shape[0] > 1 else checked)(x, k)


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        (ties_backwards, "ties"),
        (ties_backwards, "boundary"),
        (nan_smallest, "NaN"),
        (negative_zero_less, "zeros"),
        (payload_lost, "bits"),
        (flushed, "denormals"),
        (by_float64, "types"),
        (never_zero, "k"),
        (clamped_k, "too much"),
        (strides_ignored, "strides"),
        (unsorted, "order"),
        (misses_one, "set"),
        (never_zero, "empty"),
        (depends_on_rows, "batch"),
        (Unsteady(), "runs"),
    ],
)
def test_a_planted_fault_of_top_k_is_found(fault, promise):
    (found,) = judge.top_k(fault, names=[promise])
    assert found.verdict in ("no", "refuses")
    assert found.example


def scatter(x, indices, updates, *, keeps="last", bad="raises", negative=True):
    """Updates one after the other, with a fault."""
    y = x.copy()
    size = len(x)
    for at, update in zip(indices.tolist(), updates, strict=True):
        if not -size <= at < size or (at < 0 and not negative):
            if bad == "raises":
                raise IndexError(at)
            continue
        if keeps == "last" or y[at] == x[at]:
            y[at] = update
    return y


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ({"keeps": "first"}, "last wins"),
        ({"bad": "ignored"}, "bad index"),
        ({"negative": False}, "negative"),
    ],
)
def test_a_planted_fault_of_scatter_is_found(fault, promise):
    (found,) = judge.scatter(partial(scatter, **fault), names=[promise])
    assert found.verdict in ("no", "refuses")
    assert not broken(judge.scatter(scatter, names=["places", "bad index", "negative"]))


def test_the_array_after_an_error_is_looked_at():
    def writes_first(x, indices, updates):
        x[indices[:-1]] = updates[:-1]
        x[indices[-1]] = updates[-1]

    (found,) = judge.scatter_into(writes_first)
    assert found.verdict == "no"
    assert "got [1.0, 1.0, 1.0, 0.0]" in found.example


def test_sums_that_differ_between_runs_are_found():
    random = np.random.default_rng()

    def in_any_order(x, indices, updates):
        y = x.copy()
        order = random.permutation(len(indices))
        np.add.at(y, indices[order], updates[order])
        return y

    answers = judge.scatter_add(in_any_order)
    assert broken(answers) == {"runs"}
    assert verdicts(answers)["threads"] == "none"  # nobody knows how to set those of a function


@pytest.mark.parametrize(
    ("judge_function", "fault", "promise"),
    [
        (judge.nonzero, lambda x: np.argwhere(np.nan_to_num(x)), "NaN"),
        (judge.nonzero, lambda x: np.argwhere(x)[::-1], "order"),
        (judge.gather, lambda x, at: np.take(x, at, 0, mode="clip"), "bad index"),
        (judge.gather, lambda x, at: np.nan_to_num(x)[at], "bits"),
        (judge.split, np.split, "own memory"),
        (judge.split, lambda x, count: np.split(x, count)[::-1], "parts"),
        (judge.join, lambda arrays: np.concatenate([x for x in arrays if x.size]), "parts"),
    ],
)
def test_a_planted_fault_of_another_function_is_found(judge_function, fault, promise):
    assert promise in broken(judge_function(fault))


# ---- gradients, replays and large arrays


@pytest.mark.parametrize("library", ["torch", "jax", "anydml"])
@pytest.mark.parametrize("function", ["top_k", "gather", "scatter", "scatter_add"])
def test_gradients(library, function):
    pytest.importorskip("torch" if library == "anydml" else library)
    answer = judged(library, function, "gradient")
    # PyTorch gives an update that is written over the gradient of the one that remains.
    expected = "no" if (library, function) == ("torch", "scatter") else "yes"
    assert answer.verdict == expected, answer.example


def judged(library, function, promise):
    made = LIBRARIES[library][0]()
    (asked,) = (p for p in judge.PROMISES if (p.function, p.name) == (function, promise))
    return judging._ask(library, asked, judging.Judged(made, made.functions[function]))


@pytest.mark.parametrize(
    ("judge_function", "fault"),
    [
        (judge.top_k, lambda x, k: (x.topk(k)[0].detach() + 0 * x.sum(), x.topk(k)[1])),
        (judge.gather, lambda x, at: x[at] / 2 + x[at].detach() / 2),
        (judge.scatter_add, lambda x, at, y: x.scatter_add(0, at, y.flip(0)).detach() + y.sum()),
    ],
)
def test_a_wrong_gradient_is_found(judge_function, fault):
    pytest.importorskip("torch")
    (found,) = judge_function(fault, library="torch", names=["gradient"])
    assert found.verdict == "no"
    assert "the gradients" in found.example


@pytest.mark.parametrize("function", ["top_k", "gather", "scatter", "scatter_add"])
@pytest.mark.parametrize("fault", [None, "elements of the capture", "raises"])
def test_a_replay_is_compared_with_a_call(function, fault, monkeypatch):
    library = LIBRARIES["anydml"][0]()

    def replay(called, other, given):
        if fault == "raises":
            raise RuntimeError("capture")
        return called(given[0] if fault else other, *given[1:])

    monkeypatch.setattr(library, "replay", replay)
    (asked,) = (p for p in judge.PROMISES if (p.function, p.name) == (function, "replay"))
    answer = judging._ask("", asked, judging.Judged(library, library.functions[function]))
    assert answer.verdict == {None: "yes", "raises": "refuses"}.get(fault, "no")


def test_large_arrays_are_tried_on_request_and_where_they_fit(monkeypatch):
    large = [(p.function, p.name) for p in judge.PROMISES if p.is_large]
    assert large == [("top_k", "large"), ("nonzero", "large"), ("gather", "large")]
    assert "large" not in verdicts(judge.gather(np.take))
    asked = []
    monkeypatch.setattr(
        judging, "_ask_process", lambda _, n, *__: (asked.append(n), ([], ("none", "")))[1]
    )
    for is_large in (False, True):
        asked.clear()
        judging.judge(["anydml"], ["nonzero"], large=is_large)
        names = {judge.PROMISES[i].name for i in itertools.chain(*asked)}
        assert ("large" in names) == is_large
    little = SimpleNamespace(read_text=lambda: "MemAvailable: 16000000 kB")
    monkeypatch.setattr(promises, "Path", lambda _: little)
    assert judged("anydml", "gather", "large").verdict == "none"


@pytest.mark.heavy
@pytest.mark.parametrize("function", ["top_k", "nonzero", "gather"])
def test_large_arrays(function):
    answers = verdicts(judge.judge(["anydml"], [function], large=True))
    assert answers["large"] in ("yes", "none")  # none where memory is short


# ---- on a GPU, by stand-ins


def test_errors_that_kernels_report_later_are_waited_for(monkeypatch):
    library = LIBRARIES["anydml"][0]()
    library.device = "cuda"

    def synchronize():
        raise IndexError("found in an earlier call")

    monkeypatch.setattr(dml, "synchronize", synchronize)
    with pytest.raises(promises.RefusedError, match="found in an earlier call"):
        judging.Judged(library, lambda x: x)(np.zeros(3))


def test_promises_behind_an_error_are_asked_in_another_process(monkeypatch):
    asked = []

    def answer_to_the_first(_, numbers, *__):
        asked.append(len(numbers))
        return [["yes", "", None]], judging.ENDED

    monkeypatch.setattr(judging, "_ask_process", answer_to_the_first)
    answers = judge.judge(["anydml"], ["gather"])
    assert asked == [*range(len(answers), 0, -1)]
    assert {answer.verdict for answer in answers} == {"yes"}


# ---- processes

FAULTY = """
    import os, time
    import numpy as np

    def right(x, k):
        if k > x.shape[-1]:
            raise ValueError("k")
        at = np.argsort(-x, axis=-1, kind="stable")[..., :k]
        return np.take_along_axis(x, at, -1), at

    def crash(x, k):
        if k == 0:
            os.abort()
        return right(x, k)

    def hang(x, k):
        if k > x.shape[-1]:
            time.sleep(1000)
        return right(x, k)

    def rubbish(x, k):
        print("[1, 2")
        return right(x, k)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "promise", "verdict"), [("crash", "k", "crashes"), ("hang", "too much", "hangs")]
)
def test_a_crash_and_a_hang_are_answers(tmp_path, monkeypatch, name, promise, verdict):
    (tmp_path / "faulty.py").write_text(textwrap.dedent(FAULTY))
    monkeypatch.chdir(tmp_path)
    answers = judge.judge([f"faulty:{name}"], ["top_k"], seconds=20)
    found = verdicts(answers)
    assert found[promise] == verdict
    assert found["order"] == found["batch"] == "yes"  # before it, and behind it
    tried = [p for p in judge.PROMISES if p.function == "top_k" and not p.is_large]
    assert len(found) == len(tried)


def test_what_a_function_prints_is_no_answer(tmp_path, monkeypatch):
    (tmp_path / "faulty.py").write_text(textwrap.dedent(FAULTY))
    monkeypatch.chdir(tmp_path)
    assert verdicts(judge.judge(["faulty:rubbish"], ["top_k"]))["set"] == "yes"


# ---- what is known of libraries


@pytest.mark.slow
def test_torch():
    pytest.importorskip("torch")
    found = {a.promise.name: a for a in judge.judge(["torch"], ["top_k"])}
    assert found["ties"].verdict == found["boundary"].verdict == "no"
    assert found["ties"].page is None  # PyTorch does not promise it
    (after,) = judge.judge(["torch"], ["scatter_into"])
    assert after.verdict == "no"


@pytest.mark.slow
def test_jax():
    pytest.importorskip("jax")
    found = {a.promise.name: a for a in judge.judge(["jax"], ["top_k"])}
    assert found["ties"].verdict == "yes"
    assert found["zeros"].verdict == "no"
    assert found["zeros"].page
    assert verdicts(judge.judge(["jax"], ["scatter"]))["bad index"] == "no"


@pytest.mark.slow
def test_onnxruntime():
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    found = verdicts(judge.judge(["onnxruntime"], ["top_k"]))
    old = tuple(map(int, runtime.__version__.split(".")[:2])) < (1, 32)
    assert found["NaN"] == ("no" if old else "yes")
    assert found["ties"] == "yes"


# ---- the command


def test_the_command_prints_a_table_and_json():
    run = partial(CliRunner().invoke, commands)
    text = run(["judge", "anydml", "numpy", "--function", "split"])
    assert text.exit_code == 0
    assert "numpy, own memory: split([0, 1, 2, 3], 2): parts are views" in text.output
    data = json.loads(run(["judge", "numpy", "--function", "split", "--json"]).output)
    assert {row["promise"]["name"]: row["verdict"] for row in data} == {
        "parts": "yes", "own memory": "no", "empty": "yes",
    }  # fmt: skip
    table = run(["judge", "numpy", "--function", "join", "--markdown"]).output
    assert "| join | numpy " in table


@pytest.mark.parametrize(
    ("arguments", "known"),
    [
        (["judge", "nump"], "numpy"),
        (["judge", "--function", "topk"], "top_k"),
        (["judge", "--device", "tpu"], "cuda"),
        (["judge", "module:function"], "functions"),
    ],
)
def test_unknown_names_list_the_known_ones(arguments, known):
    result = CliRunner().invoke(commands, arguments)
    assert result.exit_code == 2
    assert known in result.output
