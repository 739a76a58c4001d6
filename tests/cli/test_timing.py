"""`anydml run --repeat N --timing`: what it prints, and that it changes no result."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from anydml import ArgumentError, CompiledOperator, ModelError
from anydml.cli import command as cli
from anydml.models import Limits, load_model, run, run_model
from anydml.models.run import duration, timed

TENSOR = {"DataType": "FLOAT32", "Sizes": [3]}
MODEL = {
    "resources": {"x": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3]}},
    "dispatchables": {
        "twice": {
            "type": "ELEMENT_WISE_IDENTITY",
            "InputTensor": TENSOR,
            "OutputTensor": TENSOR,
            "ScaleBias": {"Scale": 2, "Bias": 0},
        }
    },
    "commands": [
        {"type": "dispatch", "dispatchable": "twice",
         "bindings": {"InputTensor": "x", "OutputTensor": "x"}},
        {"type": "print", "resource": "x"},
    ],
}  # fmt: skip
PRINTED = "Resource 'x': 2, 4, 6\n"
TIME = r"\d[\d.]* (?:ns|µs|ms|s)"


@pytest.fixture
def call(tmp_path, capsys):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(MODEL))

    def run(*options):
        status = cli.main(["run", str(path), *options])
        return status, *capsys.readouterr()

    return run


def test_one_time(call):
    status, out, err = call("--timing")
    assert (status, err) == (0, "")
    first, *rest = out.splitlines(keepends=True)
    assert rest == [PRINTED]
    name = r"Command at index 0: dispatch of 'twice' \(ELEMENT_WISE_IDENTITY\)"
    assert re.fullmatch(rf"{name}: {TIME}\n", first)


def test_several_times(call, monkeypatch):
    calls = []
    dispatch = CompiledOperator.dispatch
    monkeypatch.setattr(
        CompiledOperator,
        "dispatch",
        lambda self, **bound: calls.append(1) or dispatch(self, **bound),
    )
    status, out, err = call("--timing", "--repeat", "5")
    assert (status, err, len(calls)) == (0, "", 5)
    assert out.endswith(PRINTED)  # not 32, 64, 96: in place, but every time from the same values
    assert re.search(rf", 5 times: median {TIME}, fastest {TIME}, first {TIME}\n", out)


def test_repeating_without_timing_prints_what_one_run_does(call):
    assert call("--repeat", "3") == (0, PRINTED, "")


@pytest.mark.parametrize("count", ["0", "-1", "x", "1.5", "1000001"])
def test_wrong_counts(call, count):
    status, out, err = call("--repeat", count)
    assert (status, out) == (2, "")
    assert "--repeat" in err


def test_copies_count_as_memory(call):
    assert call("--repeat", "2", "--memory-limit", "24") == (0, PRINTED, "")
    status, out, err = call("--repeat", "2", "--memory-limit", "23")
    assert (status, out) == (1, "")
    assert "copies of those that --repeat puts back, got 24." in err
    assert call("--memory-limit", "23")[0] == 0


def test_from_python(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(MODEL))
    pieces = []
    buffers = run_model(load_model(path), write=pieces.append, repeat=4, timing=True)
    assert np.frombuffer(buffers["x"], "f4").tolist() == [2, 4, 6]
    assert "4 times" in pieces[0]
    once = []
    run_model(load_model(path), write=once.append, timing=True)
    assert " times" not in once[0]
    with pytest.raises(ArgumentError, match="repeat: expected at least 1, got 0"):
        run_model(load_model(path), repeat=0)
    with pytest.raises(ModelError, match="--repeat"):
        run_model(load_model(path), limits=Limits(memory_limit=20), repeat=2)


def test_what_is_measured(tmp_path, monkeypatch):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(MODEL))
    times = iter((5.0, 5.5, 7.0, 7.25))
    monkeypatch.setattr(run, "time", SimpleNamespace(perf_counter=times.__next__))
    pieces = []
    run_model(load_model(path), write=pieces.append, repeat=2, timing=True)
    assert pieces[0].endswith("2 times: median 375 ms, fastest 250 ms, first 500 ms\n")


def test_the_line():
    output = timed(3, "a", "CAST", [4e-3, 1e-6, 3e-6])
    assert output == (
        "Command at index 3: dispatch of 'a' (CAST), 3 times: median 3.00 µs, fastest 1.00 µs, "
        "first 4.00 ms"
    )


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.5, "1.50 s"), (0.0123, "12.3 ms"), (123e-6, "123 µs"), (1e-6, "1.00 µs"),
     (4.2e-8, "42.0 ns"), (0.0, "0.00 ns")],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text
