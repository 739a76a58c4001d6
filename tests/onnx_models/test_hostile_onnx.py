"""Hostile ONNX files: one clear error, in bounded time and memory, and nothing read elsewhere."""

import json
import subprocess
import sys
import time

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from building import FLOAT, floats, model_of
from onnx import TensorProto, numpy_helper

import anydml as dml

node = oh.make_node


def external(location, *, length=None, offset=None, shape=(2,)):
    """A model whose weight is in another file."""
    model = model_of([node("Add", ["x", "w"], ["y"])], {"x": [2]}, {"y": FLOAT})
    tensor = model.graph.initializer.add()
    tensor.name, tensor.data_type = "w", FLOAT
    tensor.dims.extend(shape)
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("length", length), ("offset", offset)):
        if value is not None:
            entry = tensor.external_data.add()
            entry.key, entry.value = key, str(value)
    return model


def read(folder, model, **options):
    path = folder / "model.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return dml.read_onnx(path, **options)


@pytest.fixture
def folder(tmp_path):
    """The folder of a model, beside which a secret lies."""
    (tmp_path / "secret").write_bytes(np.float32([1, 2]).tobytes())
    below = tmp_path / "model"
    below.mkdir()
    return below


def test_external_data_are_read_from_the_folder(folder):
    (folder / "w.bin").write_bytes(b"1234" + np.float32([3, 4]).tobytes())
    model = read(folder, external("w.bin", offset=4, length=8))
    result = model.compile(dml.Device("cpu"))(x=np.float32([1, 1]))
    np.testing.assert_array_equal(result["y"], [4, 5])


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", ".hidden", "", "a/../../secret"])
def test_nothing_is_read_outside_the_folder(folder, location):
    (folder / ".hidden").write_bytes(bytes(8))
    with pytest.raises(dml.ModelError, match="Initializer 'w': external data"):
        read(folder, external(location))


def test_links_are_not_followed(folder, tmp_path):
    (folder / "w.bin").symlink_to(tmp_path / "secret")
    with pytest.raises(dml.ModelError, match="links are not followed"):
        read(folder, external("w.bin"))
    (folder / "to").symlink_to(tmp_path)
    with pytest.raises(dml.ModelError, match="links are not followed"):
        read(folder, external("to/secret"))


def test_models_from_memory_read_no_files():
    with pytest.raises(dml.ModelError, match="has no folder"):
        dml.read_onnx(external("w.bin").SerializeToString())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": 4}, "expected a length of 8 bytes, got 4"),
        ({"offset": "x"}, "expected a number of bytes as offset"),
        ({"offset": -1}, "expected a number of bytes as offset"),
        ({"offset": 10**15}, "expected 8 bytes at offset"),
        ({"shape": (2**40, 2**40)}, "--memory-limit"),
        ({"shape": (2**30,)}, "--memory-limit"),
        ({"shape": (-2,)}, "expected sizes of at least 0"),
    ],
)
def test_wrong_places_and_absurd_sizes_of_external_data(folder, options, message):
    (folder / "w.bin").write_bytes(bytes(8))
    with pytest.raises(dml.ModelError, match=message):
        read(folder, external("w.bin", **options), memory_limit=2**28)


def absurd_initializer():
    model = external("w.bin", shape=(2**50,))
    tensor = model.graph.initializer[0]
    tensor.ClearField("data_location")
    tensor.raw_data = b"1234"
    return model


def few_elements():
    model = external("w.bin", shape=(5,))
    tensor = model.graph.initializer[0]
    tensor.ClearField("data_location")
    tensor.float_data.extend([1, 2])
    return model


def cycle():
    nodes = [node("Relu", ["b"], ["a"]), node("Relu", ["a"], ["b"])]
    return model_of(nodes, {"x": [2]}, {"b": FLOAT})


def deep(depth):
    graph = oh.make_graph([node("Relu", ["x"], ["y"])], "g", [], [])
    for _ in range(depth):
        graph = oh.make_graph([node("If", ["c"], ["y"], then_branch=graph)], "g", [], [])
    return oh.make_model(graph)


def nested(depth, grows=False):
    """Loops in loops; the innermost body may change the size of what all of them pass on."""
    kinds = (TensorProto.INT64, TensorProto.BOOL)
    inner = [node("Concat", ["a0", "a0"], ["b0"], axis=0) if grows else node("Abs", ["a0"], ["b0"])]
    for i in range(depth):
        counters = [oh.make_tensor_value_info(f"{name}{i}", kind, [])
                    for name, kind in zip("ic", kinds, strict=True)]  # fmt: skip
        body = oh.make_graph(
            [*inner, node("Identity", [f"c{i}"], [f"d{i}"])], "body",
            [*counters, oh.make_empty_tensor_value_info(f"a{i}")],
            [onnx.ValueInfoProto(name=f"d{i}"), onnx.ValueInfoProto(name=f"b{i}")],
        )  # fmt: skip
        inner = [node("Loop", ["n", "", f"a{i + 1}"], [f"b{i + 1}"], body=body)]
    inner[0].input[2], inner[0].output[0] = "x", "y"
    return model_of(inner, {"x": [2]}, {"y": FLOAT}, {"n": np.int64(1)})


def laughs_in_a_branch():
    """Functions as in `laughs`, called by a branch that never runs."""
    model = laughs()
    call = node("F11", ["x"], ["y"], domain="f")
    branches = [oh.make_graph([item], "b", [], [onnx.ValueInfoProto(name="y")])
                for item in (node("Abs", ["x"], ["y"]), call)]  # fmt: skip
    outer = node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model.graph.node[0].CopyFrom(outer)
    model.graph.initializer.append(numpy_helper.from_array(np.bool_(True), "c"))
    return model


def cut_body(field):
    """A loop whose body lacks an input, an output or a node."""
    model = nested(1)
    del getattr(model.graph.node[0].attribute[0].g, field)[-1 if field != "node" else 0]
    return model


def laughs():
    """Functions that call the one before them ten times each."""
    functions = []
    for i in range(12):
        name, domain = ("Relu", "") if i == 0 else (f"F{i - 1}", "f")
        calls = [node(name, ["a" if j == 0 else f"t{j - 1}"], [f"t{j}"], domain=domain)
                 for j in range(10)]  # fmt: skip
        imports = [oh.make_opsetid("", 17), oh.make_opsetid("f", 1)]
        functions.append(oh.make_function("f", f"F{i}", ["a"], ["t9"], calls, imports))
    call = node("F11", ["x"], ["y"], domain="f")
    return model_of([call], {"x": [2]}, {"y": FLOAT}, domains=["f"], functions=functions)


def endless():
    """A function that calls itself."""
    imports = [oh.make_opsetid("f", 1)]
    call = [node("F", ["a"], ["b"], domain="f")]
    function = oh.make_function("f", "F", ["a"], ["b"], call, imports)
    nodes = [node("F", ["x"], ["y"], domain="f")]
    return model_of(nodes, {"x": [2]}, {"y": FLOAT}, domains=["f"], functions=[function])


def twice():
    nodes = [node("Relu", ["x"], ["y"]), node("Abs", ["x"], ["y"])]
    return model_of(nodes, {"x": [2]}, {"y": FLOAT})


def operands():
    """A node of which each input may become an operator."""
    return model_of([node("Sum", ["x"] * 200_000, ["y"])], {"x": [2]}, {"y": FLOAT})


def attributes():
    made = node("Relu", ["x"], ["y"])
    made.attribute.extend(oh.make_attribute(f"a{i}", i) for i in range(20_000))
    return model_of([made], {"x": [2]}, {"y": FLOAT})


def growing():
    """Constants that are four times as large from node to node."""
    nodes = [node("Concat", [f"t{i}"] * 4, [f"t{i + 1}"], axis=0) for i in range(16)]
    nodes.append(node("Add", ["t16", "x"], ["y"]))
    return model_of(nodes, {"x": [1]}, {"y": FLOAT}, {"t0": floats(0, 2**14)})


def sparse():
    model = model_of([node("Add", ["x", "w"], ["y"])], {"x": [2]}, {"y": FLOAT})
    values, places = oh.make_tensor("w", FLOAT, [1], [1.0]), oh.make_tensor("", 7, [1], [0])
    model.graph.sparse_initializer.append(oh.make_sparse_tensor(values, places, [2**29]))
    return model


def many():
    """A model with too many nodes."""
    model = model_of([], {"x": [2]}, {"y": FLOAT})
    model.graph.node.extend([node("Relu", ["x"], ["y"])] * 100_001)
    return model


def absurd(operator, *inputs):
    """A node that makes a large tensor of small ones."""
    weights = {
        "s": np.int64([2**20, 2**20]), "one": np.float32(1), "vector": floats(0, 4),
        "s1": np.int64([2**40]), "zero": np.int64(0), "end": np.int64(2**40),
        "step": np.int64(1), "index": np.int64([0]), "pair": np.float32([0, 1]),
    }  # fmt: skip
    kind = TensorProto.INT64 if operator == "Range" else FLOAT
    return model_of([node(operator, inputs, ["y"])], {"x": [1]}, {"y": kind}, weights)


HOSTILE = {
    "size": (absurd_initializer, "--memory-limit"),
    "sparse": (sparse, "--memory-limit"),
    "elements": (few_elements, "expected 5 elements"),
    "cycle": (cycle, "a cycle"),
    "depth": (lambda: deep(20), "expected an input that another node computes"),
    "laughs": (laughs, "at most 10000 nodes"),
    "laughs in a branch": (laughs_in_a_branch, "at most 10000 nodes"),
    "body inputs": (lambda: cut_body("input"), "expected a body of 3 inputs and 2 outputs, got 2"),
    "body outputs": (lambda: cut_body("output"), "of 3 inputs and 2 outputs, got 3 and 1"),
    "body nodes": (lambda: cut_body("node"), "expected a body that computes 'b0'"),
    "nodes": (many, "at most 100000 nodes"),
    "operands": (operands, "at most 4096 inputs"),
    "attributes": (attributes, "Unrecognized attribute"),
    "growing": (growing, "expected 1..2^32 - 1"),
    "endless": (endless, "at most 50 deep"),
    "twice": (twice, "'y' twice"),
    "empty": (onnx.ModelProto, "it has no graph"),
    "cut": (lambda: b"\x3a\xff\xff\xff\xff\x0f", "Expected an ONNX model"),
    "rank": (lambda: model_of([node("Relu", ["x"], ["y"])], {"x": [1] * 20_000}, {"y": FLOAT}),
             "expected a sequence of at most 8 integers"),
    "fill": (lambda: absurd("ConstantOfShape", "s"), ""),
    "expand": (lambda: absurd("Expand", "one", "s"), ""),
    "tile": (lambda: absurd("Tile", "vector", "s1"), ""),
    "range": (lambda: absurd("Range", "zero", "end", "step"), ""),
    "one_hot": (lambda: absurd("OneHot", "index", "end", "pair"), ""),
}  # fmt: skip

LIMIT = 2**26
"""The memory limit of the tests, in bytes."""

CHILD = f"""
import json, resource, sys, time
import anydml as dml
from pathlib import Path

def read(path):
    dml.read_onnx(path, memory_limit={LIMIT}).compile(dml.Device("cpu"))

paths = sorted(Path(sys.argv[1]).glob("*.onnx"))
read(next(path for path in paths if path.stem == "_good"))
(pages, *_) = Path("/proc/self/statm").read_text().split()
most = int(pages) * resource.getpagesize() + 3 * {LIMIT}
resource.setrlimit(resource.RLIMIT_AS, (most, most))
found = {{}}
for path in paths:
    start = time.process_time()
    try:
        read(path)
        error = ""
    except dml.AnyDMLError as caught:
        error = str(caught)
    except MemoryError:
        error = "no memory"
    found[path.stem] = time.process_time() - start, error
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """The time and the error of each hostile model, in a process with little memory."""
    folder = tmp_path_factory.mktemp("hostile")
    good = model_of([node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": FLOAT})
    for name, (make, _) in {"_good": (lambda: good, ""), **HOSTILE}.items():
        made = make()
        data = made if isinstance(made, bytes) else made.SerializeToString()
        (folder / f"{name}.onnx").write_bytes(data)
    run = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", HOSTILE)
def test_one_clear_error_in_a_second_and_the_memory_limit(outcomes, name):
    seconds, error = outcomes[name]
    assert seconds < 1
    assert error != "no memory"
    assert error
    assert HOSTILE[name][1] in error
    assert outcomes["_good"][1] == ""


@pytest.mark.parametrize("grows", [False, True])
def test_nested_loops_are_read_in_linear_time(grows):
    def seconds(depth):
        start = time.process_time()
        dml.read_onnx(nested(depth, grows))
        return time.process_time() - start

    seconds(2)
    assert seconds(20) < 1
    read = dml.read_onnx(nested(3, grows))
    assert read.graph.values["y"].shape == ((None,) if grows else (2,))
    x = floats(0, 2)
    expected = np.tile(x, 2) if grows else np.abs(x)
    np.testing.assert_array_equal(read.compile(dml.Device("cpu"))(x=x)["y"], expected)


def test_huge_attributes_are_bounded(folder):
    big = numpy_helper.from_array(np.zeros(2**16, np.float32), "t")
    nodes = [node("Constant", [], [f"c{i}"], value=big) for i in range(8)]
    model = model_of([*nodes, node("Add", ["c0", "x"], ["y"])], {"x": [1]}, {"y": FLOAT})
    with pytest.raises(dml.ModelError, match="--memory-limit"):
        read(folder, model, memory_limit=2**20)
    long = model_of([node("Conv", ["x", "x"], ["y"], pads=[0] * 10**5)], {"x": [1, 1, 4, 4]},
                    {"y": FLOAT})  # fmt: skip
    with pytest.raises(dml.ModelError):
        read(folder, long).compile(dml.Device("cpu"))


def test_any_damage_gives_a_clear_error_or_a_model(folder):
    data = model_of([node("Conv", ["x", "w"], ["y"])], {"x": [1, 2, 5, 5]}, {"y": FLOAT},
                    {"w": floats(0, 3, 2, 3, 3)}).SerializeToString()  # fmt: skip
    generator = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        damaged = bytearray(data)
        for at in generator.integers(0, len(data), 3):
            damaged[at] = generator.integers(256)
        try:
            read(folder, bytes(damaged)).compile(dml.Device("cpu"))
            outcomes.add("read")
        except dml.AnyDMLError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}
