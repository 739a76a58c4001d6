"""Public reports of failures with DirectML since 2024, and what `check` answers to each.

`tests/conformance/reports.tsv` has the thread, what it reports, the kind of answer, a model that is
rebuilt here, and a part of the answer. A report is out of reach if its model is not public, or if
the model is not the cause.
"""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, FLOAT16, UINT8, model_of
from onnx import TensorProto

import anydml as dml
from anydml.core.levels import LATEST
from anydml.core.releases import level_of_windows
from anydml.onnx.report import Report

TABLE = Path(__file__).parents[1] / "conformance" / "reports.tsv"
REPORTS = list(csv.DictReader(TABLE.read_text(encoding="utf-8").splitlines(), delimiter="\t"))
INT64 = TensorProto.INT64


def one(operator, inputs, weights=None, kind=FLOAT, opset=17, **attributes):
    """A model of one node, whose inputs without a shape are weights."""
    weights = weights or {}
    nodes = [oh.make_node(operator, [*inputs, *weights], ["y"], **attributes)]
    return model_of(nodes, inputs, {"y": kind}, weights, opset)


def between(operator, **attributes):
    """A node between a dequantization and a quantization."""
    weights = {"s": np.float32(0.1), "z": np.uint8(0)}
    nodes = [
        oh.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
        oh.make_node(operator, ["a"], ["b"], **attributes),
        oh.make_node("QuantizeLinear", ["b", "s", "z"], ["y"]),
    ]
    return model_of(nodes, {"x": (UINT8, [2, 8])}, {"y": UINT8}, weights)


def ones(*shape):
    return np.ones(shape, np.float32)


MODELS = {
    "transposed 1-D": lambda: one(
        "ConvTranspose", {"x": [1, 4, 8]}, {"w": ones(4, 1, 3)}, group=4, strides=[2], pads=[1, 1],
        output_padding=[1],
    ),
    "view": lambda: one(
        "Reshape", {"x": [1, 8, 4]}, {"s": np.array([1, 2, -1])}, opset=18, allowzero=1
    ),
    "window attention": lambda: one(
        "Einsum", {"q": [2, 1, 4, 6, 8], "k": [2, 1, 4, 6, 8]}, equation="hbwpc,hbwqc->hbwpq"
    ),
    "MatMul 5-D": lambda: one("MatMul", {"x": [1, 2, 3, 4, 5], "w": [1, 2, 3, 5, 4]}),
    "Trilu 5-D": lambda: one("Trilu", {"x": [1, 2, 3, 4, 5]}),
    "PRelu INT64": lambda: one("PRelu", {"x": (INT64, [4]), "s": (INT64, [4])}, kind=INT64),
    "Relu INT64": lambda: one("Relu", {"x": (INT64, [4])}, kind=INT64),
    "quantized Softmax": lambda: between("Softmax"),
    "quantized LeakyRelu": lambda: between("LeakyRelu"),
    "LpPool padded": lambda: one(
        "LpPool", {"x": (FLOAT16, [1, 2, 8, 8])}, kind=FLOAT16, kernel_shape=[2, 2],
        pads=[1, 1, 1, 1],
    ),
    "ReduceLogSumExp": lambda: one("ReduceLogSumExp", {"x": [2, 8]}),
    "GEMM channels": lambda: one("MatMul", {"x": [1, 65_536, 2, 2], "w": [1, 65_536, 2, 2]}),
    "Relu": lambda: one("Relu", {"x": [2]}),
    "LayerNormalization": lambda: one("LayerNormalization", {"x": [1, 4, 8]}, {"s": ones(8)}),
    "Squeeze": lambda: one("Squeeze", {"x": [1, 4]}),
    "Resize free": lambda: one(
        "Resize", {"x": [1, 3, "h", "w"]}, {"r": ones(0), "s": ones(4)}, mode="nearest"
    ),
}  # fmt: skip
HARMLESS = {
    "ConvTranspose of images": lambda: one(
        "ConvTranspose", {"x": [1, 4, 1, 8]}, {"w": ones(4, 1, 1, 3)}, group=4
    ),
    "sizes without -1": lambda: one(
        "Reshape", {"x": [1, 8, 4]}, {"s": np.array([1, 2, 16])}, opset=18, allowzero=1
    ),
    "-1 without allowzero": lambda: one("Reshape", {"x": [1, 8, 4]}, {"s": np.array([1, 2, -1])}),
    "Einsum of 4 dimensions": lambda: one(
        "Einsum", {"q": [2, 4, 6, 8], "k": [2, 4, 6, 8]}, equation="bhid,bhjd->bhij"
    ),
    "LpPool unpadded": lambda: one(
        "LpPool", {"x": (FLOAT16, [1, 2, 8, 8])}, kind=FLOAT16, kernel_shape=[2, 2]
    ),
    "Softmax": lambda: one("Softmax", {"x": [2, 8]}),
}


def answered(report):
    answer = report["answer"]
    level = level_of_windows(answer[6:]) if answer.startswith("level ") else LATEST
    found = Report(dml.read_onnx(MODELS[report["model"]]()), level)
    return found, "\n".join(found.lines())


@pytest.mark.parametrize(
    "report", [item for item in REPORTS if item["model"]], ids=lambda item: item["thread"]
)
def test_reported_failures_are_answered(report):
    found, text = answered(report)
    assert report["text of the answer"] in text
    places = {item.place for item in found.judged}
    expected = {"refused": "refused", "cpu": "cpu"}.get(report["answer"])
    assert expected is None or expected in places
    if report["answer"] == "note":
        assert "\n  Note: " in text
        assert found.good
    if report["answer"] == "unchecked":
        assert not found.good


@pytest.mark.parametrize("name", HARMLESS)
def test_models_beside_the_reported_ones_have_no_note(name):
    found = Report(dml.read_onnx(HARMLESS[name]()), LATEST)
    assert found.good
    assert "Note: E_INVALIDARG" not in "\n".join(found.lines())
    assert found._node_json(found.judged[0])["notes"] == []


def test_sizes_of_a_run_are_named():
    nodes = [oh.make_node("Reshape", ["x", "s"], ["y"], name="view", allowzero=1)]
    model = model_of(nodes, {"x": [1, 8, 4], "s": (INT64, [3])}, {"y": FLOAT}, opset=18)
    lines = list(Report(dml.read_onnx(model), LATEST).lines())
    assert lines[0].startswith("'view' (Reshape): alone: input 1 ('s') is not constant")
    assert lines[1].startswith("  Note: E_INVALIDARG if a size is -1 in the run")


def test_notes_do_not_wait_for_sizes():
    nodes = [
        oh.make_node("ConvTranspose", ["x", "w"], ["a"], name="up"),
        oh.make_node("Reshape", ["a", "s"], ["y"], name="view", allowzero=1),
    ]
    weights = {"w": ones(4, 4, 3), "s": np.array([4, -1])}
    model = model_of(nodes, {"x": [1, 4, "t"]}, {"y": FLOAT}, weights, opset=18)
    text = "\n".join(Report(dml.read_onnx(model), LATEST).lines())
    assert "Note: E_INVALIDARG is reported for one spatial dimension" in text
    assert "Note: E_INVALIDARG: with allowzero=1" in text
    report = Report(dml.read_onnx(model, dims={"t": 3}), LATEST)
    assert [item.place for item in report.judged] == ["graph", "refused"]
    assert "Note: E_INVALIDARG: with allowzero=1" not in "\n".join(report.lines())


def test_the_table_is_whole():
    threads = [item["thread"] for item in REPORTS]
    assert len(set(threads)) == len(threads)
    kinds = Counter(item["answer"].split()[0] for item in REPORTS)
    assert set(kinds) <= {"note", "refused", "cpu", "level", "unchecked", "out"}
    assert len(REPORTS) - kinds["out"] >= 20
    assert {item["model"] for item in REPORTS} - {""} == MODELS.keys()
