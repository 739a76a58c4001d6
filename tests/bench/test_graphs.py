"""The benchmark of graphs: everybody computes the same, and a wrong result gets no time."""

import time

import numpy as np
import pytest

import anydml as dml
from benchmarks import graphs
from benchmarks.measure import Budget, Contestant


def assert_all_pass(found, expected):
    for contestant in found:
        contestant.pass_gate(expected)
        assert contestant.problem == "", contestant.label


def test_everybody_passes_the_gate():
    assert_all_pass(*graphs.on_arrays((3, 5), 1))


@pytest.mark.slow
@pytest.mark.parametrize("title", graphs.CASES)
def test_networks_pass_the_gate(title):
    found, expected = graphs.contestants(title, 1, scale=4)
    assert_all_pass(found, expected)
    assert {"anydml", "ONNX Runtime"} <= {contestant.name for contestant in found}


def test_the_chain_is_eight_nodes():
    nodes = dml.to_onnx(graphs.chain((30,))).graph.node
    assert [node.op_type for node in nodes] == [
        "Mul",
        "Add",
        "Clip",
        "Sub",
        "Mul",
        "Relu",
        "Add",
        "Sub",
    ]


def test_a_wrong_result_gets_no_time(monkeypatch, capsys):
    monkeypatch.setattr(graphs, "ELEMENTS", 30)
    monkeypatch.setattr(graphs, "MEASUREMENTS", 1)
    monkeypatch.setattr(graphs, "CASES", {})
    monkeypatch.setattr(graphs, "eager", lambda x, y, clip, relu: x)
    graphs.main(Budget(runs=1, seconds=0))
    text = capsys.readouterr().out
    assert "NumPy                  wrong: wrong values" in text
    assert "anydml (dispatch)" in text


def test_processor_time_leaves_out_what_the_first_calls_take(monkeypatch):
    monkeypatch.setattr(graphs, "SECONDS", 0.05)
    seconds = iter([0.005] * 7)

    def call():
        end = time.process_time() + next(seconds, 0.001)
        while time.process_time() < end:
            pass

    assert 0.001 <= graphs.processor_seconds(Contestant("busy", call=call)) < 0.0015


@pytest.mark.parametrize("off", [0, 1e-3])
def test_the_gate(off):
    expected = graphs.Expected(np.ones(3, np.float32))
    got = expected.result + np.float32(off)
    assert (expected.problem((got,), False) is None) is (off == 0)
    assert expected.problem((got[:2],), True).startswith("expected float32(3,), got float32(2,)")
