"""`--runtime`: the kernels and the DirectML of each package of ONNX Runtime for Windows.

`kernels.tsv` has the tables of kernels in the Windows wheels of onnxruntime-directml from 1.15.0 to
1.24.4 (all but 1.24.2 and 1.24.3): each operator's versions, and the wheel that has one first.
"""

import csv
import json
from pathlib import Path

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, model_of

import anydml as dml
from anydml.cli.command import main
from anydml.core.releases import RUNTIMES, runtime_of
from anydml.onnx.table import HOST, ROWS

KERNELS = list(
    csv.reader(
        Path(__file__).with_name("kernels.tsv").read_text(encoding="utf-8").splitlines()[1:],
        delimiter="\t",
    )
)
ABSENT = {("", "GroupNorm")}
"""An operator that the provider registers under a name that ONNX does not have."""


def number(version):
    return tuple(map(int, version.split(".")))


def registered(version):
    """The kernels of a wheel, by operator."""
    found = {}
    for domain, operator, versions in KERNELS:
        since = (text.partition("@") for text in versions.split())
        numbers = [int(n) for n, _, first in since if number(first or "1.15.0") <= number(version)]
        if numbers and operator not in HOST and (domain, operator) not in ABSENT:
            found[domain, operator] = tuple(numbers)
    return found


@pytest.mark.parametrize("runtime", RUNTIMES, ids=lambda item: item.versions[-1])
def test_kernels_are_those_of_the_package(runtime):
    known = {}
    for (domain, operator), row in ROWS.items():
        title = f"{domain}.{operator}" if domain else operator
        numbers = [n for n in row.versions if f"{title}-{n}" not in runtime.missing]
        if numbers:
            known[domain, operator] = tuple(numbers)
    for version in runtime.versions:
        assert known == registered(version), version


def padded(opset):
    nodes = [oh.make_node("Pad", ["x", "p"], ["y"])]
    return model_of(nodes, {"x": [1, 4]}, {"y": FLOAT}, {"p": np.array([0, 0, 0, 1])}, opset)


@pytest.mark.parametrize(
    ("runtime", "opset", "place"),
    [(None, 21, "graph"), ("1.24.4", 21, "graph"), ("1.20.1", 21, "cpu"), ("1.20.1", 19, "graph"),
     ("1.18", 19, "cpu"), ("1.18", 18, "graph"), ("1.15.1", 18, "cpu"), ("1.15.1", 13, "graph")],
)  # fmt: skip
def test_a_model_is_judged_by_the_kernels_of_a_runtime(runtime, opset, place):
    (node,) = dml.read_onnx(padded(opset), runtime=runtime).nodes
    assert node.place == place


def test_an_operator_that_a_runtime_does_not_have_runs_on_the_cpu():
    nodes = [oh.make_node("FastGelu", ["x"], ["y"], domain="com.microsoft")]
    model = model_of(nodes, {"x": [4]}, {"y": FLOAT}, domains=["com.microsoft"])
    assert dml.read_onnx(model, runtime="1.18.0").nodes[0].place == "graph"
    (node,) = dml.read_onnx(model, runtime="1.17.3").nodes
    assert node.place == "cpu"
    assert node.reason == "the provider has no kernel for com.microsoft.FastGelu"


def test_a_run_does_not_depend_on_the_runtime():
    x = np.ones((1, 4), np.float32)
    for runtime in ("1.15.1", "1.24.4"):
        compiled = dml.read_onnx(padded(21), runtime=runtime).compile(dml.Device("cpu"))
        np.testing.assert_array_equal(compiled(x=x)["y"], [[1, 1, 1, 1, 0]])


def test_the_command_says_up_to_which_opset_there_are_kernels(tmp_path, capsys):
    path = tmp_path / "model.onnx"
    path.write_bytes(padded(18).SerializeToString())
    assert main(["check", str(path), "--runtime", "1.16.3"]) == 0
    out = capsys.readouterr().out
    assert "Kernels of onnxruntime-directml 1.16 (DirectML 1.12.1), up to those of opset 18" in out
    assert main(["check", str(path), "--runtime", "1.16.3", "--windows", "11 22H2", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert report["feature_level"] == "5_0"
    assert report["newest_opset"] == 18


def test_an_older_runtime_does_not_refuse_what_its_own_directml_computes(tmp_path, capsys):
    """LayerNormalization is another operator there than in 1.21."""
    nodes = [oh.make_node("LayerNormalization", ["x", "s"], ["y"])]
    model = model_of(nodes, {"x": [2, 8]}, {"y": FLOAT}, {"s": np.ones(8, np.float32)})
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    assert main(["check", str(path), "--runtime", "1.17.3"]) == 0
    assert " 0 refused" in capsys.readouterr().out


@pytest.mark.parametrize("version", ["1.25.0", "1.24.5", "1.14.1", "1.22.1", "", "latest", "1"])
def test_other_versions_are_refused_with_those_that_are_known(version, tmp_path, capsys):
    assert main(["check", str(tmp_path / "x.onnx"), "--runtime", version]) == 2
    error = capsys.readouterr().err
    assert "1.15.0, 1.15.1, 1.16.0" in error
    assert f"1.24.4, the last one), got '{version}'" in error
    with pytest.raises(dml.ArgumentError, match=r"expected a version of ONNX Runtime"):
        runtime_of(version)


def test_only_onnx_models_take_a_runtime(tmp_path, capsys):
    (tmp_path / "x.json").write_text("{}")
    assert main(["check", str(tmp_path / "x.json"), "--runtime", "1.24"]) == 2
    assert "--runtime: expected an ONNX model (.onnx)" in capsys.readouterr().err
