"""`anydml convert`: graphs, JSON models and ONNX models as each other, and the files it writes."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from building import FLOAT, floats, model_of, session
from test_models import attention, classifier, detection, quantized, speech, upscaler

import anydml as dml
from anydml.cli import converting
from anydml.cli.command import main
from support.serialized import serialized

T = dml.TensorDesc


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def convert(capsys):
    def run(*arguments, status=0):
        assert main(["convert", *map(str, arguments)]) == status
        captured = capsys.readouterr()
        assert not (status == 0 and captured.err), captured.err
        return captured.err if status else captured.out

    return run


def network():
    """A graph with weights: two owned, a large constant, and a small one."""
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (1, 3, 9, 9)))
    w = graph.input("w", T("FLOAT32", (8, 3, 3, 3), flags="OWNED_BY_DML"))
    b = graph.input("b", T("FLOAT32", (1, 8, 1, 1), flags="OWNED_BY_DML"))
    y = graph.convolution(
        x, w, b, start_padding=(1, 1), end_padding=(1, 1), name="conv",
        fused_activation=dml.ActivationRelu(),
    )  # fmt: skip
    table = graph.constant(floats(5, 1, 8, 9, 9), name="table")
    half = graph.constant(np.float32([0.5]), name="half")
    half = graph.reinterpret(half, sizes=(1, 8, 9, 9), strides=(0,) * 4)
    y = graph.multiply(graph.add(y, table, name="sum"), half, name="halve")
    weights = {"w": floats(1, 8, 3, 3, 3), "b": floats(2, 1, 8, 1, 1)}
    return graph.build(y=y), weights


def write_network(kind):
    desc, weights = network()
    for name, array in weights.items():
        np.save(name, array)
    if kind == "bin":
        Path("net.bin").write_bytes(serialized(desc, with_names=True))
        for node in desc.nodes:
            if isinstance(node, dml.ConstantNode):
                Path(f"{node.name}.bin").write_bytes(node.data)
    else:
        Path("net.json").write_text(json.dumps(desc.to_json()))
    x = floats(9, 1, 3, 9, 9)
    return x, dml.Device("reference").compile_graph(desc).initialize(**weights)(x=x)["y"]


@pytest.mark.parametrize("kind", ["bin", "json"])
def test_a_graph_becomes_a_model_and_comes_back(convert, kind):
    x, expected = write_network(kind)
    # A serialized graph does not say which inputs it owns.
    given = ["--input", "w=w.npy", "--input", "b=b.npy"] if kind == "bin" else []
    convert(f"net.{kind}", "-o", "a.onnx", *given)
    onnx.checker.check_model("a.onnx", full_check=True)
    (got,) = session("a.onnx").run(["y"], {"x": x})
    np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
    Path("second").mkdir()
    convert("a.onnx", "-o", "second/b.json")
    assert {item.name for item in Path("second").iterdir()} >= {"b.json", "table.npy"}
    convert("second/b.json", "-o", "c.onnx")
    assert Path("c.onnx").read_bytes() == Path("a.onnx").read_bytes()
    convert(f"net.{kind}", "-o", "again.onnx", *given)
    assert Path("again.onnx").read_bytes() == Path("a.onnx").read_bytes()


MODELS = {
    "classifier": (classifier, {"n": 2}),
    "attention": (attention, {}),
    "recurrent": (speech, {}),
    "quantized": (quantized, {}),
    "upscaler": (upscaler, {}),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_becomes_json_and_comes_back(convert, name):
    make, dims = MODELS[name]
    original = make()
    onnx.save(original, "model.onnx")
    options = [part for n, size in dims.items() for part in ("--dim", f"{n}={size}")]
    convert("model.onnx", "-o", "a.json", *options)
    convert("a.json", "-o", "b.onnx")
    feeds = {}
    weights = {tensor.name for tensor in original.graph.initializer}
    for i, item in enumerate(original.graph.input):
        if item.name not in weights:
            kind = item.type.tensor_type
            sizes = [d.dim_value or dims[d.dim_param] for d in kind.shape.dim]
            feeds[item.name] = floats(i, *sizes).astype(oh.tensor_dtype_to_np_dtype(kind.elem_type))
    names = [item.name for item in original.graph.output]
    for got, expected in zip(
        session("b.onnx").run(names, feeds), session("model.onnx").run(names, feeds), strict=True
    ):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, 1e-4, 1e-5)
    onnx.checker.check_model("b.onnx", full_check=True)
    Path("second").mkdir()
    convert("b.onnx", "-o", "second/c.json")
    convert("second/c.json", "-o", "d.onnx")
    assert Path("d.onnx").read_bytes() == Path("b.onnx").read_bytes()


def test_a_model_for_dxdispatch_runs_and_comes_back(convert, capsys):
    x, expected = write_network("json")
    np.save("x", x)
    for folder, given in (("given", ("--input", "x=x.npy")), ("asked", ())):
        Path(folder).mkdir()
        convert("net.json", "-o", f"{folder}/m.json", "--form", "dxdispatch", *given)
        assert main(["check", f"{folder}/m.json"]) == 0
        capsys.readouterr()
        assert main(["run", f"{folder}/m.json", "--json"]) == 0
        values = json.loads(capsys.readouterr().out)["resources"]["y"]["values"]
        if given:
            np.testing.assert_allclose(values, expected.reshape(-1), 1e-5, 1e-5)
        convert(f"{folder}/m.json", "-o", f"{folder}.onnx")
        (got,) = session(f"{folder}.onnx").run(["y"], {} if given else {"x": x})
        np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
        Path(f"{folder}/second").mkdir()
        convert(f"{folder}.onnx", "-o", f"{folder}/second/m.json", "--form", "dxdispatch")
        convert(f"{folder}/second/m.json", "-o", f"{folder}2.onnx")
        assert Path(f"{folder}2.onnx").read_bytes() == Path(f"{folder}.onnx").read_bytes()


def test_a_graph_with_weights_is_checked_without_inputs(convert, capsys):
    onnx.save(classifier(), "model.onnx")
    convert("model.onnx", "-o", "m.json", "--dim", "n=1")
    weights = sorted(Path().glob("*.npy"))
    assert len(weights) > 1
    assert main(["check", "m.json"]) == 0
    capsys.readouterr()
    assert main(["run", "m.json"]) == 1
    assert "Input 'x': Expected a file 'x.npy' or 'x.bin'" in capsys.readouterr().err
    weights[0].unlink()
    assert main(["check", "m.json"]) == 1
    assert f"Expected a file '{weights[0].name}'" in capsys.readouterr().out


def test_recurrent_and_quantized_models_for_dxdispatch_run(convert, capsys):
    for make in (speech, quantized):
        onnx.save(make(), "model.onnx")
        convert("model.onnx", "-o", "m.json", "--form", "dxdispatch", "--overwrite")
        assert main(["check", "m.json"]) == 0
        assert main(["run", "m.json"]) == 0
    capsys.readouterr()


def test_a_json_model_becomes_what_its_commands_compute(convert):
    tensor = {"DataType": "FLOAT32", "Sizes": [2]}
    owned = {**tensor, "Flags": "OWNED_BY_DML"}
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2]}
    model = {
        "resources": {"a": resource, "w": resource, "out": resource},
        "dispatchables": {
            "add": {
                "type": "ELEMENT_WISE_ADD", "ATensor": tensor, "BTensor": owned,
                "OutputTensor": tensor, "bindings": {"BTensor": "w"},
            },
        },
        "commands": [
            {"type": "dispatch", "dispatchable": "add",
             "bindings": {"ATensor": "a", "OutputTensor": "out"}},
            {"type": "print", "resource": "out"},
            {"type": "dispatch", "dispatchable": "add",
             "bindings": {"ATensor": "out", "OutputTensor": "a"}},
            {"type": "print", "resource": "a"},
        ],
    }  # fmt: skip
    Path("m.json").write_text(json.dumps(model))
    convert("m.json", "-o", "m.onnx")
    found = session("m.onnx").run(["out", "a_2"], {"a": np.float32([10, 20])})
    np.testing.assert_array_equal(found, [[11, 22], [12, 24]])
    model["commands"][0]["bindings"]["ATensor"] = {"name": "a", "elementOffset": 1}
    Path("m.json").write_text(json.dumps(model))
    error = convert("m.json", "-o", "n.onnx", status=1)
    assert "Command at index 0: ATensor: expected a resource from its first element on" in error


def test_weights_of_large_models_are_in_another_file(convert, monkeypatch):
    x, expected = write_network("json")
    convert("net.json", "-o", "a.onnx")
    convert("net.json", "-o", "b.onnx", "--external-data")
    assert Path("b.onnx").stat().st_size < Path("a.onnx").stat().st_size
    with monkeypatch.context() as patch:
        patch.setattr(converting, "LARGEST_INSIDE", 1000)
        convert("net.json", "-o", "c.onnx")
    for name in ("b.onnx", "c.onnx"):
        onnx.checker.check_model(name, full_check=True)
        (got,) = session(name).run(["y"], {"x": x})
        np.testing.assert_allclose(got, expected, 1e-5, 1e-5)
        assert Path(f"{name}.data").exists()
    Path("second").mkdir()
    convert("b.onnx", "-o", "second/d.json")
    convert("second/d.json", "-o", "second/d.onnx")
    assert Path("second/d.onnx").read_bytes() == Path("a.onnx").read_bytes()


def test_nothing_is_replaced_and_nothing_is_left_after_an_error(convert, folder):
    write_network("json")
    convert("net.json", "-o", "a.onnx")
    before = Path("a.onnx").read_bytes()
    assert "exists (--overwrite" in convert("net.json", "-o", "a.onnx", status=1)
    convert("net.json", "-o", "a.onnx", "--overwrite")
    assert Path("a.onnx").read_bytes() == before
    Path("out").mkdir()
    Path("out/table.npy").write_bytes(b"mine")
    assert "table.npy" in convert("a.onnx", "-o", "out/b.json", status=1)
    assert [item.name for item in Path("out").iterdir()] == ["table.npy"]
    assert Path("out/table.npy").read_bytes() == b"mine"
    Path("out/link.json").symlink_to(folder / "a.onnx")
    for name in ("link.json", ".hidden.json"):
        error = convert("a.onnx", "-o", f"out/{name}", "--overwrite", status=1)
        assert "links are not followed" in error or "not hidden" in error
    assert Path("a.onnx").read_bytes() == before
    assert "expected a folder that exists" in convert("a.onnx", "-o", "no/b.json", status=1)
    assert not Path("no").exists()


def test_a_failure_in_the_middle_withdraws_the_files_before(convert, monkeypatch):
    write_network("json")
    convert("net.json", "-o", "a.onnx")
    Path("out").mkdir()
    Path("out/w.npy").write_bytes(b"mine")
    write = converting.Output.write

    def failing(self, name, pieces):
        if name.endswith(".json"):
            raise dml.ModelError("File: the disk is full.")
        write(self, name, pieces)

    monkeypatch.setattr(converting.Output, "write", failing)
    convert("a.onnx", "-o", "out/b.json", "--overwrite", status=1)
    assert [item.name for item in Path("out").iterdir()] == ["w.npy"]  # replaced as was asked


def test_what_cannot_be_converted_is_named(convert):
    onnx.save(detection(), "model.onnx")
    error = convert("model.onnx", "-o", "m.json", status=1)
    for name in ("'kept' (NonMaxSuppression)", "'places' (NonZero)"):
        assert f"Node {name}: expected a DirectML operator" in error
    onnx.save(classifier(), "free.onnx")
    assert "has free dimensions n" in convert("free.onnx", "-o", "m.json", status=1)
    nodes = [oh.make_node("Relu", ["x"], ["r"]), oh.make_node("Identity", ["x"], ["y"])]
    onnx.save(model_of(nodes, {"x": [2]}, {"r": FLOAT}), "fine.onnx")
    convert("fine.onnx", "-o", "fine.json")
    assert not Path("m.json").exists()


def test_weights_that_are_missing_are_named(convert):
    desc, _ = network()
    Path("net.json").write_text(json.dumps(desc.to_json()))
    error = convert("net.json", "-o", "a.onnx", status=1)
    for name in "wb":
        assert f"Input '{name}': expected --input NAME=FILE.npy, or a file '{name}.npy'" in error
    np.save("given", floats(1, 8, 3, 3, 3))
    np.save("bias", floats(2, 1, 8, 1, 1))
    given = "--input", "w=given.npy", "--input"
    convert("net.json", "-o", "a.onnx", *given, "b=bias.npy")
    assert "got 'v'" in convert("net.json", "-o", "b.onnx", *given, "b=bias.npy", "--input",
                                "v=bias.npy", status=1)  # fmt: skip
    assert "b: expected float32 of shape" in convert("net.json", "-o", "b.onnx", *given,
                                                     "b=given.npy", status=1)  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "a.txt"), "expected OUT.onnx or OUT.json"),
        (("-o", "a.onnx", "--form", "graph"), "--form: expected OUT.json"),
        (("-o", "a.json", "--external-data"), "--external-data: expected OUT.onnx"),
        (("-o", "a.onnx", "--shape", "x=1"), "expected an ONNX model"),
        (("-o", "a.onnx", "--form", "x"), "'x' is not one of"),
        ((), "Missing option '-o'"),
    ],
)
def test_wrong_usage(convert, arguments, message):
    write_network("json")
    assert message in convert("net.json", *arguments, status=2)


def test_names_that_no_file_can_have(convert):
    graph = dml.GraphBuilder()
    names = ["../w", "/a/b", ".c", "e" * 300, "W", "w", "weight::0"]
    y = graph.input("x", T("FLOAT32", (200,)))
    for name in names:
        y = graph.add(y, graph.constant(floats(1, 200), name=name))
    onnx.save(dml.to_onnx(graph.build(y=y)), "a.onnx")
    Path("out").mkdir()
    convert("a.onnx", "-o", "out/b.json")
    found = sorted(item.name for item in Path("out").iterdir())
    assert len(found) == len(names) + 1
    assert all(not name.startswith(".") and len(name) < 255 for name in found)
    convert("out/b.json", "-o", "c.onnx")
    feeds = {"x": floats(3, 200)}
    one, other = (session(name).run(None, feeds)[0] for name in ("a.onnx", "c.onnx"))
    np.testing.assert_array_equal(one, other)


def test_a_graph_that_is_too_large_for_the_limit(convert):
    tensor = T("FLOAT32", (2**16, 2**14))
    desc = dml.ElementWiseIdentity(input_tensor=tensor, output_tensor=tensor)
    graph = dml.GraphDesc([dml.OperatorNode(desc)], [dml.InputEdge(0, 0, 0)], (),
                          [dml.OutputEdge(0, 0, 0)])  # fmt: skip
    Path("net.json").write_text(json.dumps(graph.to_json()))
    assert "(--memory-limit)" in convert("net.json", "-o", "a.onnx", status=1)
    convert("net.json", "-o", "a.onnx", "--memory-limit", "9GiB")


def test_damaged_models_give_an_error_or_a_graph(convert, capsys):
    write_network("json")
    convert("net.json", "-o", "a.onnx")
    data = Path("a.onnx").read_bytes()
    generator = np.random.default_rng(0)
    outcomes = set()
    for _ in range(30):
        damaged = bytearray(data)
        for at in generator.integers(0, len(data), 3):
            damaged[at] = generator.integers(256)
        Path("damaged.onnx").write_bytes(damaged)
        outcomes.add(main(["convert", "damaged.onnx", "-o", "d.json", "--overwrite"]))
        error = capsys.readouterr().err
        assert "internal error" not in error, error
    assert outcomes == {0, 1}
