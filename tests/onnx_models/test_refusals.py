"""What `anydml run` refuses, `anydml check` refuses; nothing ends the interpreter."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, bytes_of, compare, floats, model_of, one
from onnx import TensorProto

import anydml as dml
from anydml.cli.command import main
from anydml.core.levels import LATEST
from anydml.onnx.report import Report

node = oh.make_node

CHILD = """
import json, sys, warnings
warnings.simplefilter("ignore")
import anydml as dml
from anydml.core.levels import LATEST
from anydml.documents.onnx import made_inputs
from anydml.onnx.report import Report
from mutations import is_endless, mutants

def checked(data):
    report = Report(dml.read_onnx(data, memory_limit=2**26), LATEST)
    text = [*report.lines(), json.dumps(report.as_json())]
    return report.good and bool(text)

def run(data):
    model = dml.read_onnx(data, memory_limit=2**26)
    compiled = model.compile(dml.Device("cpu"))
    inputs = made_inputs(model, {}, 0)
    if not is_endless(model.source.proto):
        compiled(**inputs)

def outcome(call, data):
    try:
        return call(data), ""
    except dml.AnyDMLError as error:
        return False, f"{type(error).__name__}: {error}"

for number, model in mutants(int(sys.argv[1]), int(sys.argv[2])):
    data = model.SerializeToString()
    print(number, flush=True)
    (good, _), (_, error) = outcome(checked, data), outcome(run, data)
    print(number, json.dumps([good, error]), flush=True)
"""

OF_DATA = ("ONNX Runtime fails", "IndexOutOfRangeError", "expected --input for a tensor of")
"""What a run finds in the elements of its inputs, or a kernel of ONNX Runtime in a run."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1500, 500))
def test_what_a_run_refuses_a_check_refuses(first):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(first), "500"], capture_output=True, text=True,
        check=False, errors="replace", cwd=Path(__file__).parent,
    )  # fmt: skip
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines[-1:], done.stderr[-500:])
    found = {int(line[0]): json.loads(line[1]) for line in lines if len(line) == 2}
    assert len(found) == 500
    missed = {number: error for number, (good, error) in found.items()
              if good and error and not any(text in error for text in OF_DATA)}  # fmt: skip
    assert not missed
    assert sum(good and not error for good, error in found.values()) > 50
    assert sum(bool(error) for _, error in found.values()) > 200


AGAINST = """
import contextlib, io, json, sys, time
from anydml.cli.command import main
from mutations import is_endless, mutants

options = "--random 0 --device cpu --against CPUExecutionProvider --memory-limit 64MiB".split()
for number, model in mutants(0, 200):
    if is_endless(model):
        continue
    with open(sys.argv[1], "wb") as file:
        file.write(model.SerializeToString())
    print(number, flush=True)
    out, error, start = io.StringIO(), io.StringIO(), time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        status = main(["run", sys.argv[1], *options])
    taken = time.process_time() - start
    print(number, json.dumps([status, error.getvalue(), taken]), flush=True)
"""


@pytest.mark.slow
def test_damaged_models_against_a_provider(tmp_path):
    """An answer or a clear error for each, in bounded time and memory."""
    done = subprocess.run(
        [sys.executable, "-c", AGAINST, "model.onnx"], capture_output=True, text=True,
        check=False, errors="replace", cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
    )  # fmt: skip
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines[-1:], done.stderr[-500:])
    found = {int(line[0]): json.loads(line[1]) for line in lines if len(line) == 2}
    for number, (status, message, taken) in found.items():
        assert status in (0, 1, 2), (number, message)
        assert message, number
        assert "Traceback" not in message, (number, message)
        assert taken < 10, (number, message)
    assert sum("equal within the bounds" in message for _, message, _ in found.values()) > 20
    assert sum(status > 0 for status, _, _ in found.values()) > 50


def of_scale(operator, *order, **attributes):
    weights = {"s": np.float32(0.1), "z": np.uint8(128), "zero": np.uint8(0)}
    kinds = {"order": list(order), "kind": TensorProto.UINT8, **attributes}
    return one(operator, {"x": bytes_of(0, 2, 4)}, weights, **kinds)[0]


def layer(operator, gates, hidden, *, steps=2, **attributes):
    """A recurrent layer with weights of four hidden elements."""
    weights = {"w": floats(0, 1, gates * 4, 3), "r": floats(1, 1, gates * 4, 4)}
    layers = node(operator, ["x", "w", "r"], ["y"], hidden_size=hidden, **attributes)
    return model_of([layers], {"x": [steps, 1, 3]}, {"y": FLOAT}, weights)


def unary(operator="Relu", shape=(2,), kind=FLOAT, **fields):
    domain = fields.pop("domain", "")
    made = node(operator, ["x"], ["y"], domain=domain)
    return model_of([made], {"x": (kind, list(shape))}, {"y": kind},
                    domains=[domain] if domain else (), **fields)  # fmt: skip


def top_k(*shape):
    return model_of([node("TopK", ["x", "k"], ["y", "i"])], {"x": list(shape)},
                    {"y": FLOAT, "i": TensorProto.INT64}, {"k": np.int64([9])})  # fmt: skip


def convolution(kind=FLOAT, channels=1, bias=2, **attributes):
    dtype = oh.tensor_dtype_to_np_dtype(kind)
    weights = {"w": floats(0, 2, 1, 3, 3).astype(dtype), "b": floats(1, bias).astype(dtype)}
    return model_of([node("Conv", ["x", "w", "b"], ["y"], **attributes)],
                    {"x": (kind, [1, channels, 5, 5])}, {"y": kind}, weights)  # fmt: skip


REFUSED = {
    **{f"{name} without an input": (
        model_of([node(name, ["x", ""], ["y"])], {"x": [2]}, {"y": FLOAT}),
        rf"\({name}\): expected input 1, got none")
       for name in ("Max", "Min", "Sum", "Mean")},
    "einsum": (model_of([node("Einsum", ["x", ""], ["y"], equation="ij,jk->ik")], {"x": [2, 2]},
                        {"y": FLOAT}), "expected input 1, got none"),
    "concat of quantized": (of_scale("QLinearConcat", "s", "z", "x", "", "z", axis=0),
                            "expected input 3, got none"),
    "two missing inputs": (of_scale("QLinearConcat", "s", "z", "x", "", "", axis=0),
                           "expected input 4, got none"),
    "sigmoid without scale": (of_scale("QLinearSigmoid", "x", "s"), "expected input 3, got none"),
    **{f"hidden_size of {name}": (layer(name, gates, 5),
                                  rf"W: expected the shape \(1, {5 * gates}, 3\), got")
       for name, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4))},
    "directions": (layer("LSTM", 4, 4, direction="bidirectional"), "W: expected the shape"),
    "layout": (layer("LSTM", 4, 4, layout=1), "Batchwise recurrent operations"),
    "an operator": (unary("Reluu"), "did you mean 'Relu'"),
    "an operator of com.microsoft": (unary("Foo", domain="com.microsoft"), "com.microsoft"),
    "a domain": (unary("Foo", domain="foo"), "expected a function of the model, or an operator of"),
    "opset -1": (unary(opset=-1), r"expected version 1\.\."),
    "opset 99": (unary(opset=99), r"expected version 1\.\."),
    "opset of a function": (
        model_of([node("F", ["x"], ["y"], domain="f")], {"x": [2]}, {"y": FLOAT}, domains=["f"],
                 functions=[oh.make_function("f", "F", ["a"], ["b"], [node("Neg", ["a"], ["b"])],
                                             [oh.make_opsetid("", -3)])]),
        r"expected version 1\.\."),
    "a deprecated operator": (model_of([node("Upsample", ["x", "s"], ["y"])], {"x": [1, 1, 2, 2]},
                                       {"y": FLOAT}, {"s": np.float32([1, 1, 2, 2])}),
                              "opset 17 has no 'Upsample'"),
    "a convolution of float64": (convolution(TensorProto.DOUBLE), "Could not find an implemen"),
    "channels": (convolution(channels=3), r"X: expected the shape \(\?, 1, \?, \?\), got"),
    "bias": (convolution(bias=3), r"B: expected the shape \(2,\), got \(3,\)"),
    "kernel_shape": (convolution(kernel_shape=[3, 2]), r"W: expected the shape \(\?, \?, 3, 2\)"),
    "k": (top_k(2, 4), "less than the requested k elements"),
    "k with a free dimension": (top_k("n", 4), "less than the requested k elements"),
    "text in another encoding": (
        model_of([node("Cast", ["x"], ["y"], to=1, **{"round_mode": b"\xff"})], {"x": [2]},
                 {"y": FLOAT}, opset=24), "can't decode byte"),
    "outputs": (model_of([node("FastGelu", ["x"], ["y", "z"], domain="com.microsoft")],
                         {"x": [2]}, {"y": FLOAT, "z": FLOAT}, domains=["com.microsoft"]),
                "output"),
    "a subgraph": (model_of([node("Cast", ["x"], ["y"], to=1, body=oh.make_graph([], "b", [], []))],
                            {"x": [2]}, {"y": FLOAT}), "expected no subgraph"),
    "a type": (model_of([node("Relu", ["x"], ["y"])], {"x": (TensorProto.STRING, [2])},
                        {"y": FLOAT}), r"tensor\(string\)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_check_and_a_run_refuse_it(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    model, message = REFUSED[name]
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    sizes = ["--dim", "n=2"] if "free" in name else []
    for command in (["check"], ["run", "--random", "0", *sizes]):
        assert main([*command, "model.onnx"]) == 1
        out, err = capsys.readouterr()
        assert "internal error" not in err
        assert re.search(message, out + err)


def test_every_node_that_is_wrong_is_named():
    nodes = [
        node("Add", ["x", ""], ["a"]), node("Relu", ["a"], ["b"]), node("Gemm", ["b", "x"], ["c"]),
        node("MatMul", ["w", "w"], ["y"]),
    ]  # fmt: skip
    model = model_of(nodes, {"x": [2]}, {"y": FLOAT, "c": FLOAT}, {"w": floats(0, 2, 3)})
    with pytest.raises(dml.ModelError) as caught:
        dml.read_onnx(model)
    assert [text.split(":")[0] for text in caught.value.problems] == [
        "Node 'a' (Add)", "Node 'y' (MatMul)",
    ]  # fmt: skip


def test_a_model_of_more_memory_than_allowed_is_not_good(tmp_path, capsys):
    path = tmp_path / "model.onnx"
    path.write_bytes(unary(shape=(2**20,)).SerializeToString())
    for command in ("check", "run --random 0"):
        assert main([*command.split(), str(path), "--memory-limit", "1M"]) == 1
        assert "--memory-limit), got 8388608" in "".join(capsys.readouterr())
    assert main(["check", str(path), "--memory-limit", "8M"]) == 0


@pytest.mark.parametrize("operator", ["QLinearSigmoid", "QLinearLeakyRelu"])
@pytest.mark.parametrize(
    ("left_out", "explicit"),
    [(["", "s"], ["zero", "s", "zero"]), (["z", "s"], ["z", "s", "zero"]),
     (["", "s", ""], ["zero", "s", "zero"]), (["z", "s", ""], ["z", "s", "zero"])],
)  # fmt: skip
def test_a_zero_point_that_is_left_out_is_0(operator, left_out, explicit):
    x, results = bytes_of(3, 2, 4), []
    for names in (left_out, explicit):
        read = dml.read_onnx(of_scale(operator, "x", "s", *names))
        assert Report(read, LATEST).good
        results.append(read.compile(dml.Device("cpu"))(x=x)["y0"])
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("inputs", [["x", "s", ""], ["x", "s"]])
def test_empty_names_behind_the_others(inputs):
    """ONNX Runtime ends the interpreter if a kernel on the CPU gets them."""
    nodes = [node("LayerNormalization", inputs, ["y", "m"])]
    model = model_of(nodes, {"x": [2, 4]}, {"y": FLOAT, "m": FLOAT}, {"s": floats(0, 4)})
    plain = model_of([node("LayerNormalization", ["x", "s"], ["y", "m"])], {"x": [2, 4]},
                     {"y": FLOAT, "m": FLOAT}, {"s": floats(0, 4)})  # fmt: skip
    x = floats(1, 2, 4)
    compare(plain, {"x": x})
    result = dml.read_onnx(model).compile(dml.Device("cpu"))(x=x)
    expected = dml.read_onnx(plain).compile(dml.Device("cpu"))(x=x)
    np.testing.assert_array_equal(result["y"], expected["y"])
