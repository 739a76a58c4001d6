"""Serialized graphs: what is written by the published schema is read back, whatever it is."""

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anydml as dml
from anydml.cli import command as cli
from anydml.graphs.serialized import graph_from_bytes
from anydml.models import Limits
from anydml.models.report import report
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from support.seconds import refusal_of, result_within
from support.serialized import Writer, serialized
from support.strategies import descriptors

T = dml.TensorDesc
F = T("FLOAT32", (2, 3))
X = np.arange(6, dtype=np.float32).reshape(2, 3)
KINDS = {kind.NAME: kind for kind in OPERATORS.values()}


def alone(desc):
    """A graph of one operator, every tensor an input or an output."""
    sides = {role: [] for role in (Role.INPUT, Role.OUTPUT)}
    for role, names in sides.items():
        at = 0
        for info in desc.tensor_fields(role):
            value = getattr(desc, info.attribute)
            for member in value if info.many else [value]:
                if member is not None:
                    names.append((at, f"{info.name} {at}"))
                at += 1
    return dml.GraphDesc(
        [dml.OperatorNode(desc, "node")],
        [dml.InputEdge(i, 0, at, name) for i, (at, name) in enumerate(sides[Role.INPUT])],
        output_edges=[
            dml.OutputEdge(0, at, i, name) for i, (at, name) in enumerate(sides[Role.OUTPUT])
        ],
    )


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=min(settings.default.max_examples, 6))
@given(data=st.data())
def test_every_operator_is_read_as_it_was(name, data):
    desc = data.draw(descriptors(KINDS[name]))
    graph = alone(desc)
    (node,) = graph_from_bytes(serialized(graph)).nodes
    for path, tensor, _ in desc.tensors():
        kept = next(other for at, other, _ in node.desc.tensors() if at == path)
        assert (kept.data_type, kept.sizes, kept.element_strides) == (
            tensor.data_type, tensor.sizes, tensor.element_strides,
        )  # fmt: skip
    assert node.desc.attributes() == desc.attributes()


def network():
    """A product with a constant, a sum with another, and both results."""
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    product = graph.multiply(x, graph.constant(X, name="factor"), name="times")
    total = graph.add(product, graph.constant(X + 1, name="addend"), name="plus")
    return graph.build(y=total, z=product)


def test_a_graph_runs_with_its_data():
    graph = graph_from_bytes(serialized(network()))
    result = dml.Device("cpu").compile_graph(graph)(x=X)
    assert result["z"].tolist() == (X * X).tolist()
    assert result["y"].tolist() == (X * X + X + 1).tolist()


def write(folder, files):
    """The graph with data of constants in files beside it, of which only some are there."""
    path = folder / "Partition_0.bin"
    path.write_bytes(serialized(network(), with_names=True))
    data = {node.name: node.data for node in network().nodes if isinstance(node, dml.ConstantNode)}
    for name in files:
        (folder / f"{name}.bin").write_bytes(data[name])
    return path


def test_data_are_found_in_files(tmp_path):
    graph = dml.read_serialized_graph(write(tmp_path, ["factor", "addend"]))
    assert [tensor.name for tensor in graph.inputs] == ["x"]
    assert dml.Device("cpu").compile_graph(graph)(x=X)["y"].tolist() == (X * X + X + 1).tolist()


def test_constants_without_files_are_owned_inputs(tmp_path):
    graph = dml.read_serialized_graph(write(tmp_path, ["factor"]))
    compiled = dml.Device("cpu").compile_graph(graph)
    with pytest.raises(dml.BindingError, match="addend"):
        compiled(x=X)
    compiled.initialize(addend=X)
    assert compiled(x=X)["y"].tolist() == (X * X + X).tolist()


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", ".hidden", "a/b", "a\\b"])
def test_no_constant_names_a_file_elsewhere(tmp_path, name):
    (tmp_path / "secret.bin").write_bytes(bytes(24))
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / ".hidden.bin").write_bytes(bytes(24))
    graph = dml.GraphBuilder()
    product = graph.multiply(graph.input("x", F), graph.constant(X, name=name))
    path = folder / "graph.bin"
    path.write_bytes(serialized(graph.build(y=product), with_names=True))
    assert [tensor.name for tensor in dml.read_serialized_graph(path).inputs] == ["x", name]


def commanded(capsys, *arguments):
    status = cli.main([*map(str, arguments)])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_line(tmp_path, capsys):
    path = write(tmp_path, ["factor", "addend"])
    missing = "Input 'x': Expected a file 'x.npy' or 'x.bin' beside the graph (or in --input-dir), "
    status, out, _ = commanded(capsys, "check", path)
    assert (status, out.splitlines()) == (
        1,
        [
            "Dispatchable 'Partition_0' (graph): accepted at feature level 6_4",
            "  Lowest feature level that accepts it: 3_0 (below 6_2, constants count as inputs)",
            f"{missing}got neither.",
        ],
    )
    status, _, err = commanded(capsys, "run", path)
    assert status == 1
    assert "Input 'x': Expected a file 'x.npy' or 'x.bin'" in err
    np.save(tmp_path / "x.npy", X)
    assert commanded(capsys, "check", path)[0] == 0
    status, out, _ = commanded(capsys, "run", "--json", path)
    text = json.loads(out)["resources"]
    assert (status, text["z"]["values"]) == (0, (X * X).ravel().tolist())
    np.save(tmp_path / "wanted.npy", X * X + X + 1)
    assert commanded(capsys, "run", "--expect", f"y={tmp_path / 'wanted.npy'}", path)[0] == 0
    for level, accepted in (("5_0", True), ("1_0", False)):
        for command in ("check", "run"):
            assert commanded(capsys, command, "--feature-level", level, path)[0] == (not accepted)


def test_a_check_names_the_files_that_are_missing(tmp_path, capsys):
    path = write(tmp_path, ["factor"])
    status, out, _ = commanded(capsys, "check", "--json", path)
    (found,) = json.loads(out)
    assert (status, found["good"]) == (1, False)
    assert [item["code"] for item in found["details"]] == ["missing_file"] * 2
    for name, problem in zip(["x", "addend"], found["problems"], strict=True):
        assert f"Input '{name}': Expected a file '{name}.npy' or '{name}.bin'" in problem
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "addend.bin").write_bytes(X.tobytes())
    assert commanded(capsys, "check", path)[0] == 0


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x08\x0a:\x02\x0a\x00", "an ONNX model"),
        (b"\x93NUMPY\x01\x00", "a NumPy array"),
        (b"", "an empty file"),
        (b"no graph at all", "something else"),
    ],
)
def test_other_files_are_recognized(tmp_path, data, kind):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(dml.ModelError, match=f"^Expected a serialized graph, got {kind}"):
        dml.read_serialized_graph(tmp_path / "file")


def test_a_graph_as_json_is_checked_and_run(tmp_path, capsys):
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(network().to_json()))
    np.save(tmp_path / "x.npy", X)
    assert commanded(capsys, "check", path)[0] == 0
    status, out, _ = commanded(capsys, "run", path)
    assert (status, out) == (
        0,
        "Resource 'y': 1, 3, 7, 13, 21, 31\nResource 'z': 0, 1, 4, 9, 16, 25\n",
    )


@pytest.mark.parametrize("serialize", [False, True])
@pytest.mark.parametrize(
    ("file", "array", "message"),
    [
        ("x.npy", np.ones((3, 4), "f4"), "expected FLOAT32 {2, 3} in 'x.npy', got FLOAT32 {3, 4}"),
        ("x.npy", np.zeros((3, 2), "f4"), "expected FLOAT32 {2, 3} in 'x.npy', got FLOAT32 {3, 2}"),
        ("x.npy", np.zeros(6, "f4"), "expected FLOAT32 {2, 3} in 'x.npy', got FLOAT32 {6}"),
        ("x.npy", np.zeros((2, 3)), "expected FLOAT32 in 'x.npy', got float64"),
        ("x.npy", np.zeros((2, 3), ">i2"), "expected FLOAT32 in 'x.npy', got int16"),
        ("x.npy", b"text", "File 'x.npy': Expected an .npy file, got something else"),
        ("x.bin", bytes(60), "expected 24 bytes (FLOAT32 {2, 3}) in 'x.bin', got 60"),
        ("x.bin", bytes(20), "expected 24 bytes (FLOAT32 {2, 3}) in 'x.bin', got 20"),
        ("x.npy", np.zeros((1, 1, 2, 3), ">f4"), None),
        ("x.bin", bytes(24), None),
    ],
)  # fmt: skip
def test_the_file_of_an_input(tmp_path, capsys, monkeypatch, serialize, file, array, message):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(network().to_json()))
    if serialize:
        write(tmp_path, ["factor", "addend"])
    if isinstance(array, bytes):
        (tmp_path / file).write_bytes(array)
    else:
        np.save(tmp_path / file, array)
    status, _, err = commanded(capsys, "run", "Partition_0.bin" if serialize else "graph.json")
    wanted = "" if message is None else f"Error: Input 'x': {message}.\n"
    assert (status, err) == (bool(wanted), wanted)


def test_a_model_dispatches_it(tmp_path, capsys):
    (tmp_path / "graphs").mkdir()
    write(tmp_path / "graphs", ["factor"])
    one = {"initialValuesDataType": "FLOAT32", "initialValues": {"value": 2, "valueCount": 6}}
    model = {
        "resources": dict.fromkeys("xwyz", one),
        "dispatchables": {
            "net": {
                "type": "dmlSerializedGraph",
                "sourcePath": "graphs/Partition_0.bin",
                "bindings": {"addend": "w"},
            }
        },
        "commands": [
            {"type": "dispatch", "dispatchable": "net",
             "bindings": {"x": "x", "y": "y", "z": "z"}},
            {"type": "print", "resource": "y"},
        ],
    }  # fmt: skip
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    assert commanded(capsys, "check", path)[0] == 0
    assert commanded(capsys, "run", path) == (0, "Resource 'y': 2, 4, 6, 8, 10, 12\n", "")
    del model["commands"][0]["bindings"]["z"]
    path.write_text(json.dumps(model))
    status, _, err = commanded(capsys, "run", path)
    assert status == 1
    assert "Bind point 'z'" in err


@given(st.data())
def test_damaged_files_are_refused(data):
    octets = bytearray(serialized(network()))
    for _ in range(data.draw(st.integers(1, 4))):
        octets[data.draw(st.integers(0, len(octets) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(dml.AnyDMLError):
        graph_from_bytes(bytes(octets[: data.draw(st.integers(0, len(octets)))]))


def finished(writer, nodes, outputs):
    root = writer.table(writer.offsets(nodes), writer.texts(["x"]), outputs)
    writer.builder.Finish(root)
    return bytes(writer.builder.Output())


@pytest.mark.parametrize("kind", [dml.OperatorNode, dml.ConstantNode])
def test_shared_parts_do_not_take_time(kind):
    writer = Writer()
    if kind is dml.OperatorNode:
        names = writer.texts(["x"])
        relu = dml.ActivationRelu(input_tensor=F, output_tensor=F)
        node = writer.table(("B", 1), writer.operator(relu), None, names, names)
    else:
        names = writer.texts(["x"] * 4096)
        data = writer.table(("B", 2), writer.table(writer.builder.CreateByteVector(bytes(4))))
        node = writer.table(("B", 2), data, None, names, names)
    octets = finished(writer, [node] * 60_000, names)
    # 4.4 s where each byte may be read 64 times.
    assert "shared" in result_within(2, lambda: refusal_of(graph_from_bytes, octets))


def test_many_outputs_of_one_name_do_not_take_time():
    writer = Writer()
    names = writer.offsets([writer.builder.CreateString("y")] * 32_000)
    data = writer.table(("B", 2), writer.table(writer.builder.CreateByteVector(bytes(4))))
    octets = finished(writer, [writer.table(("B", 2), data, None, None, names)], names)
    graph = result_within(5, lambda: graph_from_bytes(octets))  # 20 s where a list is searched
    assert {edge.graph_output_index for edge in graph.output_edges} == {0}


@pytest.mark.parametrize("depth", [2, 400])
def test_only_activations_are_fused(depth):
    writer = Writer()
    name = writer.builder.CreateString("DML_OPERATOR_CONVOLUTION")
    nested = writer.nested(dml.ActivationRelu())
    for _ in range(depth):
        fused = writer.table(writer.builder.CreateString("FusedActivation"), ("B", 1), nested)
        empty = writer.table(writer.builder.CreateString(""), ("B", 0))
        nested = writer.table(name, writer.offsets([empty] * 9 + [fused]))
    operator = writer.table(name, None, None, writer.offsets([empty] * 9 + [fused]))
    node = writer.table(("B", 1), operator, writer.builder.CreateString("conv"))
    octets = finished(writer, [node], writer.texts(["y"]))
    with pytest.raises(dml.ModelError, match=r"^Node 'conv': FusedActivation: .*, got Convolution"):
        graph_from_bytes(octets)


def test_what_is_wrong_names_the_node():
    graph = dml.GraphDesc(
        [dml.OperatorNode(dml.ActivationRelu(input_tensor=F, output_tensor=F), "relu")],
        output_edges=[dml.OutputEdge(0, 0, 0, "y")],
    )
    data = serialized(graph).replace(
        b"DML_OPERATOR_ACTIVATION_RELU", b"DML_OPERATOR_ACTIVATION_RELO"
    )
    with pytest.raises(dml.ModelError, match=r"^Node 'relu': .*ACTIVATION_RELO"):
        graph_from_bytes(data)
    graph = dml.GraphDesc(graph.nodes, [dml.InputEdge(0, 0, 0, "x")], (), graph.output_edges)
    data = serialized(graph).replace(b"\x01\x00\x00\x00x\x00", b"\x01\x00\x00\x00w\x00", 1)
    with pytest.raises(dml.ModelError, match=r"^Node 'relu': Expected an edge .* got '[xw]'"):
        graph_from_bytes(data)


def test_a_check_validates_each_node_twice(tmp_path, monkeypatch):
    """Once for its report and to compile it, and once for the lowest level."""
    graph = dml.GraphBuilder()
    x = graph.input("x", F)
    for _ in range(20):
        x = graph.activation_relu(x)
    path = tmp_path / "graph.bin"
    path.write_bytes(serialized(graph.build(y=x)))
    np.save(tmp_path / "x.npy", X)
    validated = []
    violations = dml.ActivationRelu.violations

    def counted(desc, level):
        validated.append(desc)
        return violations(desc, level)

    monkeypatch.setattr(dml.ActivationRelu, "violations", counted)
    found = report(path, dml.Device("cpu"), Limits())
    assert found.good
    assert len([*found.lines()]) == 1
    assert 2 * 20 <= len(validated) < 3 * 20  # and the search of one level
