"""Models with If, Loop and Scan: values are those of ONNX Runtime, and bodies are checked."""

import json

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from building import FLOAT, floats, model_of, session
from onnx import TensorProto, numpy_helper
from random_nodes import GENERATORS, random_node
from test_random_nodes import by_onnx_runtime, model_of_node

import anydml as dml
from anydml.cli.command import main
from anydml.core.levels import LATEST
from anydml.onnx.report import Report

node, info = oh.make_node, oh.make_tensor_value_info
BOOL, INT64, STRING = TensorProto.BOOL, TensorProto.INT64, TensorProto.STRING


def untyped(names):
    return [onnx.ValueInfoProto(name=name) for name in names]


def graph(nodes, inputs=(), outputs=("b",), weights=None):
    """A body; `inputs` are names, or complete descriptions."""
    inputs = [oh.make_empty_tensor_value_info(x) if isinstance(x, str) else x for x in inputs]
    constants = [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()]
    return oh.make_graph(nodes, "body", inputs, untyped(outputs), constants)


def loop(nodes, states=("a",), results=("b",), inputs=("n", "", "x"), outputs=("y",), **fields):
    """A Loop whose condition is passed on; `i` is the number of the run."""
    counters = [info("i", INT64, []), info("c", BOOL, [])]
    passed = node("Identity", ["c"], ["d"])
    body = graph([passed, *nodes], [*counters, *states], ["d", *results], **fields)
    return node("Loop", inputs, outputs, body=body, name="loop")


def branches(then, other, outputs=("y",), results=("b",), **fields):
    return node("If", ["c"], outputs, name="if",
                then_branch=graph([*then], (), results, **fields),
                else_branch=graph([*other], (), results, **fields))  # fmt: skip


COUNT, FLAG = {"n": (INT64, [])}, {"c": (BOOL, [])}


# Every operator in a body


def moved(model, kind):
    """The model with its nodes in a body, which reads the inputs from the graph around it."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    names = [item.name for item in model.graph.output]
    inner = [f"{name}_inside" for name in names]
    nodes = [onnx.NodeProto.FromString(item.SerializeToString()) for item in model.graph.node]
    for item in nodes:
        item.input[:] = [f"{name}_inside" if name in names else name for name in item.input]
        item.output[:] = [f"{name}_inside" if name in names else name for name in item.output]
    del found.graph.node[:]
    if kind == "If":
        other = [node("Identity", [name], [f"{name}_again"]) for name in inner]
        again = graph([*nodes, *other], (), [f"{name}_again" for name in inner])
        found.graph.node.append(node("If", ["flag"], names, then_branch=graph(nodes, (), inner),
                                     else_branch=again))  # fmt: skip
        found.graph.input.append(info("flag", BOOL, []))
        return found, {"flag": np.array(True)}
    body = graph([node("Identity", ["c"], ["d"]), *nodes],
                 [info("i", INT64, []), info("c", BOOL, [])], ["d", *inner])  # fmt: skip
    found.graph.node.append(node("Loop", ["count", ""], names, body=body))
    found.graph.input.append(info("count", INT64, []))
    return found, {"count": np.array(2)}


def check_inside(operator, seed):
    """Compare a node inside a body with one outside; whether it runs."""
    plain, inputs = model_of_node(random_node(operator, seed), "inputs")
    is_loop = seed % 2 and plain.opset_import[0].version > 10  # of two inputs
    model, more = moved(plain, "Loop" if is_loop else "If")
    try:
        outside = dml.read_onnx(plain).verdicts
    except dml.ModelError:
        assert any(item.node.misfit for item in dml.read_onnx(model).verdicts)
        return False
    inside = [item for item in dml.read_onnx(model).verdicts if item.node.is_inside]
    if operator in ("Identity", "Dropout"):  # which are removed unless they make an output
        outside = []
    for one, other in zip(outside, inside, strict=False):  # the branch for false follows
        assert one.node.title == other.node.title
        assert one.descriptors == other.descriptors
        assert len(one.violations) == len(other.violations)
        assert one.place == other.place or {one.place, other.place} == {"graph", "alone"}
        assert one.is_checked == other.is_checked
        assert other.place != "graph"
    inputs |= more
    expected = by_onnx_runtime(model, inputs)
    if expected is None or any(item.place == "refused" for item in inside):
        return False
    results = dml.read_onnx(model).compile(dml.Device("cpu"))(**inputs)
    for result, reference in zip(results.values(), expected, strict=True):
        if result.dtype.kind not in "biuf":  # an 8-bit float, whose bits ONNX Runtime returns
            assert result.tobytes() == reference.tobytes()
            continue
        assert result.dtype == reference.dtype
        np.testing.assert_allclose(result, reference, 1e-4, 1e-5)
    return True


@pytest.mark.parametrize("operator", sorted(GENERATORS))
def test_an_operator_in_a_body(operator):
    check_inside(operator, 0)


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted(GENERATORS))
def test_more_of_an_operator_in_a_body(operator):
    ran = [check_inside(operator, seed) for seed in range(1, 12)]
    assert any(ran) or operator in WITHOUT_KERNEL


WITHOUT_KERNEL = {"GRU", "OneHot"}
"""Operators for whose random versions and types ONNX Runtime's CPU has no kernel."""


# Kinds of bodies


def summing(name, count):
    """A body that adds up slices."""
    nodes = [node("Add", ["s", "e"], ["t"]), node("Mul", ["t", "w"], ["u"])]
    body = graph(nodes, ["s", "e"], ["t", "u"])
    return node("Scan", ["x0", "x"], ["y", "z"], body=body, num_scan_inputs=count, name=name)


def nested():
    inner = branches([node("Add", ["a", "w"], ["b"])], [node("Sub", ["a", "inner"], ["b"])],
                     ["e"])  # fmt: skip
    inner.input[0] = "odd"
    return loop([
        node("Mod", ["i", "two"], ["rest"]), node("Cast", ["rest"], ["odd"], to=BOOL),
        node("Mul", ["a", "a"], ["inner"]), inner, node("Identity", ["e"], ["b"]),
    ])  # fmt: skip


SCALED = oh.make_function(
    "mine", "Scaled", ["p", "q"], ["r"],
    [node("Mul", ["p", "q"], ["m"]),
     loop([node("Add", ["a", "q"], ["b"])], inputs=["three", "", "m"], outputs=["r"])],
    [oh.make_opsetid("", 17)],
)  # fmt: skip
SCALED.node.insert(0, node("Constant", [], ["three"], value_int=3))

W = {"w": floats(9, 3)}
MODELS = {
    "if": (model_of([branches([node("Add", ["x", "w"], ["b"])], [node("Abs", ["x"], ["b"])])],
                    {"x": [2, 3], **FLAG}, {"y": FLOAT}, W), [{"c": True}, {"c": False}]),
    "if of other shapes": (
        model_of([branches([node("Transpose", ["x"], ["b"])], [node("Abs", ["x"], ["b"])]),
                  node("Neg", ["y"], ["z"])], {"x": [2, 3], **FLAG}, {"z": FLOAT}),
        [{"c": True}, {"c": False}]),
    "if that depends on data": (
        model_of([node("ReduceSum", ["x"], ["sum"], keepdims=0),
                  node("Greater", ["sum", "zero"], ["c"]),
                  branches([node("Exp", ["x"], ["b"])], [node("Neg", ["x"], ["b"])]),
                  node("Relu", ["y"], ["z"])],
                 {"x": [2, 3]}, {"z": FLOAT}, {"zero": np.float32(0)}), [{}]),
    "loop": (model_of([loop([node("Mul", ["a", "w"], ["b"])])], {"x": [2, 3], **COUNT},
                      {"y": FLOAT}, W), [{"n": 0}, {"n": 1}, {"n": 4}]),
    "loop with results of every run": (
        model_of([loop([node("Mul", ["a", "w"], ["b"]), node("Cast", ["i"], ["f"], to=1)],
                       results=["b", "f", "b"], outputs=["y", "z", "v"])],
                 {"x": [2, 3], **COUNT}, {"y": FLOAT, "z": FLOAT}, W), [{"n": 3}]),
    "loop that grows": (
        model_of([loop([node("Concat", ["a", "x"], ["b"], axis=0)]), node("Neg", ["y"], ["z"])],
                 {"x": [2, 3], **COUNT}, {"z": FLOAT}), [{"n": 0}, {"n": 2}]),
    "loop that ends by itself": (
        model_of([node("Loop", ["", "true", "x"], ["y"], body=graph(
            [node("Add", ["a", "one"], ["b"]), node("ReduceMax", ["b"], ["m"], keepdims=0),
             node("Less", ["m", "ten"], ["d"])],
            [info("i", INT64, []), info("c", BOOL, []), "a"], ["d", "b"]))],
            {"x": [2, 3]}, {"y": FLOAT}, {"true": np.True_, "one": np.float32(1),
                                          "ten": np.float32(10)}), [{}]),
    "scan": (model_of([summing("scan", 1)], {"x": [4, 3], "x0": [3]}, {"y": FLOAT, "z": FLOAT}, W),
             [{}]),
    "nested": (model_of([nested()], {"x": [2, 3], **COUNT}, {"y": FLOAT},
                        {**W, "two": np.int64(2)}), [{"n": 5}]),
    "inputs that hide names": (
        model_of([node("Neg", ["x"], ["a"]), node("Abs", ["a"], ["k"]),
                  loop([node("Mul", ["a", "k"], ["b"])]), node("Add", ["y", "a"], ["z"])],
                 {"x": [3], **COUNT}, {"z": FLOAT}), [{"n": 2}]),
    "constants of bodies": (
        model_of([branches([node("Add", ["x", "k"], ["b"])], [node("Mul", ["x", "k"], ["b"])],
                           weights={"k": floats(5, 3)}), node("Neg", ["y"], ["z"])],
                 {"x": [2, 3], **FLAG}, {"z": FLOAT}), [{"c": True}, {"c": False}]),
    "removed nodes before": (
        model_of([node("Identity", ["x"], ["t"]), node("Identity", ["t"], ["u"]),
                  branches([node("Add", ["t", "x"], ["b"])], [node("Mul", ["u", "x"], ["b"])])],
                 {"x": [2, 3], **FLAG}, {"y": FLOAT}), [{"c": True}, {"c": False}]),
    "functions": (
        model_of([node("Scaled", ["x", "w"], ["s"], domain="mine"),
                  branches([node("Scaled", ["s", "x"], ["b"], domain="mine")],
                           [node("Abs", ["s"], ["b"])])],
                 {"x": [3], **FLAG}, {"y": FLOAT}, W, domains=["mine"], functions=[SCALED]),
        [{"c": True}, {"c": False}]),
    "a condition that is constant inside": (
        model_of([loop([branches([node("Add", ["a", "w"], ["b"])], [node("Neg", ["a"], ["b"])],
                                 ["e"]), node("Relu", ["e"], ["b2"])], results=["b2"])],
                 {"x": [3], **COUNT}, {"y": FLOAT}, W), [{"n": 2}]),
}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "onnxruntime"])
@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_onnx_runtime(name, device):
    model, feeds = MODELS[name]
    read = dml.read_onnx(model)
    compiled = read.compile(dml.Device(device))
    for given in feeds:  # one compiled model for all
        arrays = {key: np.asarray(value, np.int64 if key == "n" else bool)
                  for key, value in given.items()}  # fmt: skip
        arrays |= {key: floats(3, *value.sizes) for key, value in read.inputs.items()
                   if key not in arrays}  # fmt: skip
        expected = session(model).run(None, arrays)
        results = compiled(**arrays)
        for result, reference in zip(results.values(), expected, strict=True):
            assert result.dtype == reference.dtype
            assert result.shape == reference.shape
            np.testing.assert_allclose(result, reference, 1e-5, 1e-6)


# What is not a tensor


def of_sequences():
    kind = oh.make_sequence_type_proto(oh.make_tensor_type_proto(FLOAT, None))
    pushing = [node("SequenceInsert", ["s", "x"], ["t"])]
    nodes = [node("SequenceConstruct", ["x"], ["made"]),
             loop(pushing, ["s"], ["t"], ["n", "", "made"], ["all"]),
             node("SequenceLength", ["all"], ["count"]),
             node("ConcatFromSequence", ["all"], ["joined"], axis=0),
             node("Abs", ["joined"], ["y"])]  # fmt: skip
    model = model_of(nodes, {"x": [2], **COUNT}, {"y": FLOAT, "count": INT64})
    model.graph.output.append(oh.make_value_info("all", kind))
    return model


def of_strings():
    nodes = [node("StringNormalizer", ["x"], ["upper"], case_change_action="UPPER",
                  locale="C"),
             node("StringConcat", ["upper", "tail"], ["y"]),
             node("Equal", ["x", "x"], ["same"])]  # fmt: skip
    return model_of(nodes, {"x": (STRING, [2])}, {"y": STRING, "same": BOOL},
                    {"tail": np.array(["-é"], object)}, opset=20)  # fmt: skip


def of_optionals():
    kind = oh.make_optional_type_proto(oh.make_tensor_type_proto(FLOAT, [2]))
    then = [node("OptionalGetElement", ["o"], ["b"])]
    nodes = [node("OptionalHasElement", ["o"], ["c"]),
             branches(then, [node("Neg", ["x"], ["b"])])]  # fmt: skip
    model = model_of(nodes, {"x": [2]}, {"y": FLOAT, "c": BOOL}, opset=18)
    model.graph.input.append(oh.make_value_info("o", kind))
    return model


def of_maps():
    nodes = [node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_int64s=[3, 7])]
    model = model_of(nodes, {"x": [2, 2]}, {}, domains=["ai.onnx.ml"])
    model.graph.output.extend(untyped(["y"]))
    return model


X = floats(4, 2)
OBJECTS = {
    "sequences": (of_sequences(), {"x": X, "n": np.array(3)}),
    "an empty loop": (of_sequences(), {"x": X, "n": np.array(0)}),
    "strings": (of_strings(), {"x": np.array(["a", "b\x1b"], object)}),
    "an optional": (of_optionals(), {"x": X, "o": X}),
    "an empty optional": (of_optionals(), {"x": X, "o": None}),
    "maps": (of_maps(), {"x": floats(5, 2, 2)}),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_values_that_are_no_numbers(name):
    model, inputs = OBJECTS[name]
    read = dml.read_onnx(model)
    assert not Report(read, LATEST).counts()["refused"]
    results = read.compile(dml.Device("cpu"))(**inputs)
    expected = session(model).run(None, inputs)
    for result, reference in zip(results.values(), expected, strict=True):
        np.testing.assert_equal(result, reference)


def test_sequences_of_a_caller():
    kind = oh.make_sequence_type_proto(oh.make_tensor_type_proto(FLOAT, None))
    model = model_of([node("ConcatFromSequence", ["s"], ["t"], axis=0), node("Neg", ["t"], ["y"])],
                     {}, {"y": FLOAT})  # fmt: skip
    model.graph.input.append(oh.make_value_info("s", kind))
    compiled = dml.read_onnx(model).compile(dml.Device("cpu"))
    np.testing.assert_array_equal(compiled(s=[X, X[:1]])["y"], -np.append(X, X[:1]))
    for wrong in [X.tolist()], [1, 2], [np.int64([1])], X, None, {}, ["a"], [None], object(), [[X]]:
        with pytest.raises(dml.AnyDMLError, match=r"^(Node 't' \(ConcatFromSequence\)|s\b)"):
            compiled(s=wrong)


# What a check says


def top_k(name="x"):
    """A node that DirectML refuses: its 9 elements of 4."""
    return [node("Constant", [], ["k"], value_ints=[9]),
            node("TopK", [name, "k"], ["b", "index"], name="top")]  # fmt: skip


def test_nodes_of_bodies_are_checked_with_the_shapes_around_them():
    kinds = {"y": FLOAT}
    softmax = node("Softmax", ["a"], ["b"], name="soft")
    model = model_of([loop([softmax])], {"x": [2, 4], **COUNT}, kinds)
    read = dml.read_onnx(model)
    (inner, outer) = read.verdicts
    assert (inner.node.name, inner.place, inner.code) == ("loop/soft", "alone", "control_flow")
    assert inner.descriptors[0].output_tensor.sizes[-2:] == (2, 4)
    assert [violation.path for violation in read.check("3_0")] == [
        "loop/soft.ACTIVATION_SOFTMAX1.FeatureLevel"
    ]
    assert (outer.place, outer.code, outer.is_checked) == ("cpu", "control_flow", True)
    report = Report(read, LATEST)
    assert report.good
    assert "nodes of bodies are judged one by one" in "\n".join(report.lines())
    assert not read.graphs


@pytest.mark.parametrize("wrap", [loop, lambda nodes: branches([node("Abs", ["x"], ["b"])], nodes)])
def test_a_node_of_a_body_that_is_wrong_is_named(wrap):
    """It is not refused: a body may never run."""
    read = dml.read_onnx(model_of([wrap(top_k())], {"x": [2, 4], **COUNT, **FLAG}, {"y": FLOAT}))
    report = Report(read, LATEST)
    (wrong,) = report.unchecked
    assert wrong.node.name in ("loop/top", "if/top")
    assert "less than the requested k elements" in "".join(report.lines())
    compiled = read.compile(dml.Device("cpu"))
    x = floats(0, 2, 4)
    never = {"x": x, "n": np.array(0), "c": np.array(True)}
    np.testing.assert_array_equal(compiled(**never)["y"], x if wrap is loop else np.abs(x))
    with pytest.raises(dml.ModelError, match=r"Node '(loop|if)' .*TopK"):
        compiled(x=x, n=np.array(1), c=np.array(False))


def test_branches_for_several_sizes():
    """The branch that does not run has a product that does not fit the input."""
    both = branches([node("MatMul", ["x", "v"], ["b"])], [node("MatMul", ["x", "w"], ["b"])])
    weights = {"v": floats(1, 3, 2), "w": floats(2, 5, 2)}
    for size, flag in ((3, True), (5, False)):
        model = model_of([both], {"x": [4, size], **FLAG}, {"y": FLOAT}, weights)
        inputs = {"x": floats(0, 4, size), "c": np.array(flag)}
        read = dml.read_onnx(model)
        result = read.compile(dml.Device("cpu"))(**inputs)["y"]
        np.testing.assert_allclose(result, inputs["x"] @ weights["v" if flag else "w"], 1e-5)
        assert [item.node.outputs for item in Report(read, LATEST).unchecked] == [
            ["if/b" if not flag else "if/b'1"]
        ]


def test_a_node_that_directml_refuses_in_a_body_is_refused():
    both = branches([node("Abs", ["x"], ["b"], name="deep")], [node("Neg", ["x"], ["b"])])
    model = model_of([both], {"x": [1] * 9, **FLAG}, {"y": FLOAT})
    read = dml.read_onnx(model)
    assert [item.place for item in read.nodes] == ["refused", "refused", "cpu"]
    assert not Report(read, LATEST).good
    with pytest.raises(dml.ModelError, match=r"Node if/deep\..*DimensionCount"):
        read.compile(dml.Device("cpu"))


def test_sizes_that_a_loop_changes_are_not_known_before_a_run():
    growing = [node("Concat", ["a", "x"], ["g"], axis=0), node("Neg", ["g"], ["b"], name="neg")]
    read = dml.read_onnx(model_of([loop(growing)], {"x": [2, 3], **COUNT}, {"y": FLOAT}))
    by_name = {item.node.name: item for item in read.verdicts}
    assert by_name["loop/neg"].code == "shape_not_known"
    assert not Report(read, LATEST).good  # the nodes that wait for a size are not checked
    assert read.graph.values["y"].shape == (None, 3)
    assert not [name for name in read.graph.values if "'" in name]  # of what was read again


def test_shapes_of_results():
    model, _ = MODELS["scan"]
    values = dml.read_onnx(model).graph.values
    assert (values["y"].sizes, values["z"].sizes) == ((3,), (4, 3))
    model, _ = MODELS["if of other shapes"]
    assert dml.read_onnx(model).graph.values["y"].shape == (None, None)
    model, _ = MODELS["nested"]
    assert dml.read_onnx(model).graph.values["y"].sizes == (2, 3)


# The command


def run(capsys, *arguments):
    status = main(list(map(str, arguments)))
    return status, *capsys.readouterr()


def test_a_run_compares_all_tensors_outside_of_bodies(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = model_of([node("Neg", ["x"], ["t"]), loop([node("Mul", ["a", "t"], ["b"])]),
                      node("Abs", ["y"], ["z"])], {"x": [3], **COUNT}, {"z": FLOAT})  # fmt: skip
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    x, n = floats(1, 3), np.array(2)
    values = {"t": -x, "y": x * x * x, "z": np.abs(x * x * x), "loop/b": -x * x}
    (tmp_path / "all").mkdir()
    for name, array in {"x": x, "n": n}.items():
        np.save(tmp_path / f"{name}.npy", array)
    for name, array in values.items():
        np.save(tmp_path / "all" / f"{name.replace('/', '_')}.npy", array)
    command = ("run", "m.onnx", "--input", "x=x.npy", "--input", "n=n.npy", "--expect-all", "all",
               "--rtol", "1e-6")  # fmt: skip
    status, _, err = run(capsys, *command)
    assert (status, err.splitlines()[-1]) == (0, "3 tensors are equal within the bounds")
    np.save(tmp_path / "all" / "y.npy", x)
    status, _, err = run(capsys, *command)
    assert status == 1
    assert "The first tensor that differs is 'y', of node 'loop' (Loop)" in err
    with pytest.raises(dml.ModelError, match="expected names of tensors of the model"):
        dml.read_onnx(model).compile(dml.Device("cpu"), ["loop/b"])


def test_sequences_and_strings_are_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = [node("SequenceConstruct", ["x", "x"], ["s"]),
             node("Constant", [], ["text"], value_strings=["a\x1b"]),
             node("Identity", ["text"], ["y"])]  # fmt: skip
    model = model_of(nodes, {"x": [2]}, {"y": STRING})
    model.graph.output.extend(untyped(["s"]))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    command = ("run", "m.onnx", "--random", "1")
    status, out, _ = run(capsys, *command)
    assert status == 0
    assert "y: string (1,)\n['a\\x1b']\ns: sequence of 2\ns[0]: float32 (2,)" in out
    found = json.loads(run(capsys, *command, "--json")[1])["outputs"]
    assert found["y"] == {"dataType": "string", "sizes": [1], "values": ["a\x1b"]}
    assert [item["sizes"] for item in found["s"]] == [[2], [2]]
    status, _, err = run(capsys, *command, "--output-dir", "out")
    assert status == 1
    assert "Output 'y': expected a tensor of numbers for a file, got a string." in err
    assert "Output 's': expected a tensor of numbers for a file, got a sequence." in err
    assert not (tmp_path / "out").exists()
