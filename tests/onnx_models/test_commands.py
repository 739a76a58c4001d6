"""`anydml check`, `run` and `show` with ONNX models."""

import json
import re

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from building import FLOAT, floats, model_of, session
from test_models import attention, classifier

from anydml.cli.command import main
from anydml.documents import onnx as documents_onnx
from anydml.onnx.run import CompiledModel

node = oh.make_node


RAN = "Ran on onnxruntime (--device chooses another)\n"


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a model as model.onnx in the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(model, name="model.onnx"):
        (tmp_path / name).write_bytes(model.SerializeToString())
        return name

    return write


def run(capsys, *arguments):
    status = main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_check_says_where_nodes_run_and_what_was_removed(capsys, written):
    status, out, _ = run(capsys, "check", written(classifier()), "--dim", "n=2")
    assert status == 0
    assert "Removed before nodes are placed: 4 nodes" in out
    assert "7 nodes: 7 in 1 graph, 0 alone, 0 on the CPU, 0 refused" in out
    assert "Lowest feature level that accepts the operators: 5_1 (DirectML 1.9.0" in out


def test_check_of_a_single_node(capsys, written):
    model = model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2])}, {"y": FLOAT})
    status, out, _ = run(capsys, "check", written(model))
    assert status == 0
    assert "\n1 node: 1 in 1 graph, 0 alone, 0 on the CPU, 0 refused" in f"\n{out}"


def test_check_of_a_lower_level_names_nodes_and_what_accepts_them(capsys, written):
    path = written(attention())
    status, out, _ = run(capsys, "check", path, "--windows", "11 22H2")
    assert status == 1
    assert "(Softmax): refused: DirectML refuses an operator (E_INVALIDARG)" in out
    assert "Lowest feature level that accepts it: 5_1 (DirectML 1.9.0; Windows 11 24H2)" in out
    assert run(capsys, "check", path, "--directml", "1.15")[0] == 0
    assert run(capsys, "check", path, "--directml", "1.9")[0] == 1  # LayerNormalization
    status, out, _ = run(capsys, "check", path, "--feature-level", "4_0")
    assert "cannot be created" in out
    for wrong in (("--directml", "9.1"), ("--windows", "XP"), ("--shape", "x"), ("--dim", "n=a")):
        assert run(capsys, "check", path, *wrong)[0] == 2
    assert run(capsys, "check", path, "--windows", "11 22H2", "--directml", "1.8")[0] == 2


def test_check_as_json_has_all_nodes(capsys, written):
    path = written(classifier())
    _, out, _ = run(capsys, "check", path, "--json", "--shape", "x=1,3,17,17")
    (report,) = json.loads(out)
    assert report["summary"] == {
        "nodes": 7, "graphs": 1, "graph": 7, "alone": 0, "cpu": 0, "refused": 0, "unchecked": 0,
    }  # fmt: skip
    assert report["minimum_feature_level"] == "5_1"
    assert report["minimum_directml"] == "1.9.0"
    (conv,) = [item for item in report["nodes"] if item["operator"] == "Conv"]
    assert conv["operators"] == ["CONVOLUTION"]
    assert {item["operator"] for item in report["removed"]} >= {"Shape", "Concat"}


def test_unchecked_nodes_leave_no_level_and_nothing_good(capsys, written):
    path = written(classifier())
    status, out, _ = run(capsys, "check", path, "--json")
    (report,) = json.loads(out)
    assert (status, report["good"], report["minimum_feature_level"]) == (1, False, None)
    nodes = {item["operator"]: item for item in report["nodes"]}
    assert nodes["Conv"]["place"] == "alone"
    assert nodes["Conv"]["code"] == "shape_not_known"
    count = sum(not item["checked"] for item in report["nodes"])
    assert report["summary"]["unchecked"] == count
    assert report["warnings"][0].startswith(f"{count} nodes not checked ('conv' (Conv), ")
    assert report["warnings"][1] == "Input 'x' has free dimensions n"
    status, out, _ = run(capsys, "check", path)
    assert status == 1
    assert "Lowest feature level" not in out
    assert "Give --dim n=1 or --shape x=1,3,17,17" in out


def test_a_clean_report_says_what_to_give_for_other_machines(capsys, written):
    path = written(classifier())
    status, out, _ = run(capsys, "check", path, "--dim", "n=1")
    assert status == 0
    assert '(--windows "11 24H2" or later, and --directml 1.9.0 or later, accept the model)' in out
    for options, status in (
        (("--windows", "11 24H2"), 0), (("--windows", "11 23H2"), 1), (("--directml", "1.9.0"), 0),
        (("--directml", "1.8"), 1),
    ):  # fmt: skip
        assert run(capsys, "check", path, "--dim", "n=1", *options)[0] == status
    _, out, _ = run(capsys, "check", written(attention()))
    assert "(no Windows alone, and --directml 1.15.0 or later, accept the model)" in out


def test_nodes_that_wait_for_a_dimension_have_no_line(capsys, written):
    nodes = [node("Relu", ["x"], ["y"]), node("Reluu", ["y"], ["z"])]
    path = written(model_of(nodes, {"x": (FLOAT, ["n"])}, {"z": FLOAT}))
    status, out, _ = run(capsys, "check", path)
    assert status == 1
    assert "'y' (Relu):" not in out
    assert "'z' (Reluu): refused" in out
    assert "Nodes that wait for a size have no line (--json has all)" in out


@pytest.mark.parametrize(
    ("shape", "options"),
    [(["n", 3], "--dim n=1 or --shape x=1,3"), ([None, 3], "--shape x=1,3"),
     (["a b", "n"], "--dim 'a b=1' --dim n=1 or --shape x=1,1"), (None, "--shape x=1,3,224,224")],
)  # fmt: skip
def test_the_options_for_free_dimensions_name_them(capsys, written, shape, options):
    path = written(model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, [1])}, {"y": FLOAT}))
    model = onnx.load(path)
    kind = oh.make_tensor_type_proto(FLOAT, shape)
    model.graph.input[0].type.CopyFrom(kind)
    written(model)
    for command in (("check",), ("run", "--random", "0"), ("convert", "-o", "out.json")):
        status, out, err = run(capsys, command[0], path, *command[1:])
        assert status == 1
        assert f"Give {options} (dims= or shapes=)" in out + err


def test_check_of_a_file_that_is_no_model(capsys, written, tmp_path):
    (tmp_path / "broken.onnx").write_bytes(b"\xff" * 100)
    status, _, err = run(capsys, "check", "broken.onnx")
    assert status == 1
    assert "Expected an ONNX model, got 'broken.onnx'" in err
    status, out, _ = run(
        capsys, "check", "broken.onnx", written(classifier()), "--json", "--dim", "n=1"
    )
    assert status == 1
    assert [item["good"] for item in json.loads(out)] == [False, True]


def test_a_model_is_recognized_by_its_content(capsys, written):
    path = written(classifier(), "model.dat")
    assert "7 nodes" in run(capsys, "check", path, "--dim", "n=1")[1]


@pytest.mark.parametrize("sizes", [[], [1], [2, 3], [0]])
def test_files_of_outputs_have_their_shapes(capsys, written, sizes):
    path = written(model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, sizes)}, {"y": FLOAT}))
    status, out, err = run(capsys, "run", path, "--random", 1, "--output-dir", "out")
    assert (status, err) == (0, RAN)
    assert out.startswith(f"y: float32 {tuple(sizes)}\n")
    assert np.load("out/y.npy").shape == tuple(sizes)


def test_run_prints_and_writes_outputs(capsys, written, tmp_path):
    x = floats(0, 2, 3, 17, 17)
    np.save("x.npy", x)
    path = written(classifier())
    status, out, err = run(capsys, "run", path, "--input", "x=x.npy", "--output-dir", "out")
    assert (status, err) == (0, RAN)
    assert "z: float32 (2, 10)" in out
    (expected,) = session(path).run(["z"], {"x": x})
    np.testing.assert_allclose(np.load("out/z.npy"), expected, rtol=1e-4, atol=1e-6)
    np.save("z.npy", expected)
    arguments = ("run", path, "--input", "x=x.npy", "--expect", "z=z.npy")
    assert run(capsys, *arguments, "--atol", "1e-5")[0] == 0
    np.save("z.npy", expected + 1)
    assert run(capsys, *arguments, "--atol", "1e-5")[0] == 1
    _, out, _ = run(capsys, "run", path, "--input", "x=x.npy", "--json")
    assert json.loads(out)["outputs"]["z"]["sizes"] == [2, 10]


def test_run_repeats_and_times_a_model(capsys, written, monkeypatch):
    runs = []
    call = CompiledModel.__call__
    monkeypatch.setattr(
        CompiledModel, "__call__", lambda self, **inputs: runs.append(1) or call(self, **inputs)
    )
    arguments = ("run", written(classifier()), "--random", "1", "--dim", "n=1")
    status, once, _ = run(capsys, *arguments)
    assert (status, len(runs)) == (0, 1)
    status, out, err = run(capsys, *arguments, "--timing", "--repeat", "3")
    assert (status, err, len(runs)) == (0, RAN, 4)
    line, _, printed = out.partition("\n")
    time = r"\d[\d.]* (?:ns|µs|ms|s)"
    what = r"Run of 'model.onnx', 3 times: "
    assert re.fullmatch(rf"{what}median {time}, fastest {time}, first {time}", line)
    assert printed == once
    _, out, _ = run(capsys, *arguments, "--timing")
    assert re.match(rf"Run of 'model.onnx': {time}\n", out)
    assert run(capsys, *arguments, "--repeat", "2") == (0, once, RAN)
    assert run(capsys, *arguments, "--timing", "--json")[0] == 2


def test_run_needs_inputs_and_shapes(capsys, written):
    path = written(classifier())
    status, _, err = run(capsys, "run", path)
    assert status == 2
    assert "--random SEED for 'x'" in err
    status, _, err = run(capsys, "run", path, "--random", "1")
    assert status == 1
    assert "has free dimensions n" in err
    results = [run(capsys, "run", path, "--random", "1", "--dim", "n=1") for _ in range(2)]
    assert results[0] == results[1]
    assert results[0][0] == 0


def test_expect_all_names_the_first_node_that_differs(capsys, written, tmp_path):
    """A planted wrong node in the middle of a network."""
    model = classifier()
    x = floats(0, 2, 3, 17, 17)
    np.save("x.npy", x)
    wrong = onnx.ModelProto.FromString(model.SerializeToString())
    relu = next(item for item in wrong.graph.node if item.op_type == "Relu")
    relu.op_type = "Abs"
    names = ["c", "n", "r", "p", "y", "z"]
    folder = tmp_path / "dump"
    folder.mkdir()
    for name in names[:-1]:
        wrong.graph.output.add().name = name
    for name, array in zip(names, session(wrong).run(names, {"x": x}), strict=True):
        np.save(folder / f"{name}.npy", array)
    arguments = ("run", written(model), "--input", "x=x.npy", "--expect-all", folder)
    status, _, err = run(capsys, *arguments, "--atol", "1e-4")
    assert status == 1
    assert "The first tensor that differs is 'r', of node 'relu' (Relu)" in err
    for name, array in zip(names, session_outputs(model, names, x), strict=True):
        np.save(folder / f"{name}.npy", array)
    status, _, err = run(capsys, *arguments, "--atol", "1e-4")
    assert status == 0
    assert "6 tensors are equal" in err


def session_outputs(model, names, x):
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for name in names[:-1]:
        model.graph.output.add().name = name
    return session(model).run(names, {"x": x})


def test_options_of_onnx_models_are_refused_for_others(capsys, written, tmp_path):
    (tmp_path / "model.json").write_text("{}")
    status, _, err = run(capsys, "run", "model.json", "--random", "1")
    assert status == 2
    assert "--random: expected an ONNX model" in err


def test_show_draws_the_nodes(capsys, written):
    pytest.importorskip("igraph")
    status, out, _ = run(capsys, "show", written(classifier()), "--dim", "n=1")
    assert status == 0
    assert out.startswith("<svg")
    assert "BatchNormalization" in out


def test_notes_name_what_the_provider_gets_wrong(capsys, written):
    nodes = [
        node("Cast", ["x"], ["b"], to=onnx.TensorProto.BOOL),
        node("Cast", ["b"], ["y"], to=FLOAT),
    ]
    _, out, _ = run(capsys, "check", written(model_of(nodes, {"x": [3]}, {"y": FLOAT})))
    assert "0.5 becomes false" in out


def test_check_marks_what_no_page_allows(capsys, written):
    attended = oh.make_node(
        "GroupQueryAttention", ["q", "k", "v", "pk", "pv", "lengths", "total"], ["a", "b", "c"],
        domain="com.microsoft", num_heads=2, kv_num_heads=1,
    )  # fmt: skip
    nodes = [
        node("AveragePool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        node("Cast", ["p"], ["y"], to=9),
        attended,
    ]
    inputs = {
        "x": [1, 1, 6, 6], "q": [1, 1, 16], "k": [1, 1, 8], "v": [1, 1, 8], "pk": [1, 1, 4, 8],
        "pv": [1, 1, 4, 8], "lengths": (onnx.TensorProto.INT32, [1]),
    }  # fmt: skip
    outputs = {"y": onnx.TensorProto.BOOL, "a": FLOAT, "b": FLOAT, "c": FLOAT}
    model = model_of(
        nodes, inputs, outputs, {"total": np.int32([4])}, domains=["com.microsoft"]
    )  # fmt: skip
    status, out, _ = run(capsys, "check", written(model))
    assert status == 0
    marks = [line.strip() for line in out.splitlines() if "not on its page" in line]
    assert [mark.split(": ")[1] for mark in marks] == [
        "AVERAGE_POOLING", "ELEMENT_WISE_CLIP1", "MULTIHEAD_ATTENTION1", "MULTIHEAD_ATTENTION1",
    ]  # fmt: skip
    for text in ("a partial window", "MinMaxDataType 0", "INT32", "memory of the present outputs"):
        assert any(text in mark for mark in marks)


def test_all_names_that_a_model_lacks_are_reported(capsys, written, tmp_path):
    path = written(classifier())
    np.save("x.npy", floats(0, 2, 3, 17, 17))
    status, _, err = run(capsys, "run", path, "--input", "q=x.npy", "--dim", "m=1", "--dim", "k=2")
    assert status == 1
    assert err.splitlines() == [
        "Error: The model has no input 'q'; it has 'x'.",
        "The model has no free dimension 'm'; it has 'n'.",
        "The model has no free dimension 'k'; it has 'n'.",
    ]


def test_an_operator_that_onnx_lacks_gets_a_suggestion(capsys, written):
    model = model_of([node("Reluu", ["x"], ["y"])], {"x": (FLOAT, [2])}, {"y": FLOAT})
    status, out, _ = run(capsys, "check", written(model))
    assert status == 1
    assert "has no 'Reluu' in the installed version of ONNX; did you mean 'Relu'?" in out
    assert "Lowest feature level" not in out  # of no operator


def test_the_device_of_a_run_is_onnxruntime_if_it_is_installed(capsys, written, monkeypatch):
    names = []
    made = CompiledModel.__init__

    def compiled(self, model, device, *others):
        names.append(device.kind)
        made(self, model, device, *others)

    monkeypatch.setattr(CompiledModel, "__init__", compiled)
    path = written(model_of([node("Relu", ["x"], ["y"])], {"x": (FLOAT, [2])}, {"y": FLOAT}))
    arguments = ("run", path, "--random", "1")
    assert run(capsys, *arguments)[2] == RAN
    for chosen in ("cpu", "onnxruntime"):
        assert run(capsys, *arguments, "--device", chosen)[2] == ""
    monkeypatch.setattr(documents_onnx, "is_available", lambda: False)
    assert run(capsys, *arguments)[2] == ""
    assert names == ["onnxruntime", "cpu", "onnxruntime", "cpu"]
    example = ("run", "--example", "TOP_K1")  # a JSON model, on the CPU as before
    assert run(capsys, *example)[1:] == run(capsys, *example, "--device", "cpu")[1:]
    assert len(names) == 4
