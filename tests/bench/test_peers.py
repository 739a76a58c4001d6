"""Every installed peer does the table's jobs, small, or says that it cannot."""

import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from small_cases import shrunk

from benchmarks import machine, peers
from benchmarks.cases import table
from benchmarks.gate import Gate
from benchmarks.jobs import Job

MODULES = ("numpy", "torch", "onnxruntime", "openvino", "jax")


_INTO = {"NumPy": 6, "PyTorch": 9, "ONNX Runtime": 8, "OpenVINO": 8, "JAX": 0}
"""The operations that a peer does in arrays that are there."""


@pytest.fixture(scope="module", params=MODULES)
def peer(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other libraries warn of when they are imported
        found = peers.installed(2, only=(request.param,))
    if not found:
        pytest.skip(f"{request.param} is not installed")
    return found[0]


def one_of_each():
    """The first case of every operation and reduction."""
    return {
        (case.operation, case.parameters.get("reduction")): case for case in reversed(table())
    }.values()


@pytest.mark.filterwarnings("ignore")  # theirs
@pytest.mark.parametrize(
    "cases", [one_of_each(), pytest.param(table(), marks=pytest.mark.heavy)], ids=["some", "all"]
)
def test_its_results_are_right(peer, cases):
    done = set()
    for case in map(shrunk, cases):
        job = case.job()
        gate = Gate(job)
        for contestant in peer.contestants(job):
            if not contestant.problem:
                contestant.pass_gate(gate)
            assert not contestant.wrong, (case.name, contestant.label, contestant.problem)
            if not contestant.problem:
                done.add(job.operation)
    assert len(done) == 9, done  # every operation in some case


@pytest.mark.filterwarnings("ignore")
def test_its_results_are_right_in_arrays_that_are_there(peer):
    done = set()
    for case in map(shrunk, one_of_each()):
        job = case.job()
        for contestant in peer.contestants(job, Gate(job).outputs()):
            if not contestant.problem:
                contestant.pass_gate(Gate(job))
            assert not contestant.wrong, (case.name, contestant.label, contestant.problem)
            if not contestant.problem:
                done.add(job.operation)
    assert len(done) == _INTO[peer.name], done


@pytest.mark.filterwarnings("ignore")
def test_smallest_first_and_full_sorts(peer):
    x = np.random.default_rng(0).standard_normal((3, 40)).astype(np.float32)
    for k, axis, largest in ((5, 1, False), (40, 1, True), (2, 0, False)):
        job = Job("top_k", (x,), {"k": k, "axis": axis, "largest": largest})
        for contestant in peer.contestants(job):
            contestant.pass_gate(Gate(job))
            assert contestant.problem == ""


def test_a_refusal_is_told():
    numpy = peers.installed(1, only=("numpy",))[0]
    numpy.top_k = lambda *arguments, **options: iter([("fails", lambda: 1 / 0)])
    job = Job("top_k", (np.zeros(4, np.float32),), {"k": 2, "axis": 0, "largest": True})
    contestant = numpy.contestants(job)[0]
    contestant.pass_gate(Gate(job))
    assert contestant.problem == "refused: ZeroDivisionError: division by zero"
    assert not contestant.wrong
    numpy.top_k = lambda *arguments, **options: 1 / 0
    assert numpy.contestants(job)[0].problem.startswith("refused")


def test_what_is_not_installed_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr(
        peers, "find_spec", lambda name: None if name == "onnx" else find_spec(name)
    )
    assert [peer.name for peer in peers.installed(1, only=("numpy", "onnxruntime"))] == ["NumPy"]
    assert "ONNX Runtime" in peers.missing()
    text = machine.in_one_line(machine.describe([], peers.missing()))
    assert f"(not installed: {', '.join(peers.missing())})" in text
    assert "not installed" not in machine.in_one_line(machine.describe([]))


def test_the_newest_jax_selects_the_smallest_too():
    jax = pytest.importorskip("jax")
    (peer,) = peers.installed(1, only=("jax",))
    x = np.array([3, 1, 2], np.float32)
    job = Job("top_k", (x,), {"k": 2, "axis": 0, "largest": False})
    ways = [contestant.how for contestant in peer.contestants(job)]
    assert ways == ["top_k"] * hasattr(jax.numpy, "top_k")
