"""Hostile ONNX files: one clear error, in bounded time and memory, and nothing read elsewhere."""

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


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (absurd_initializer, "--memory-limit"),
        (few_elements, "expected 5 elements"),
        (cycle, "a cycle"),
        (lambda: deep(20), "expected an input that a node before it computes"),
        (laughs, "at most 100000 nodes"),
        (endless, "at most 50 deep"),
        (twice, "'y' twice"),
        (onnx.ModelProto, "it has no graph"),
        (lambda: b"\x3a\xff\xff\xff\xff\x0f", "Expected an ONNX model"),
    ],
    ids=["size", "elements", "cycle", "depth", "laughs", "endless", "twice", "empty", "cut"],
)
def test_one_clear_error(folder, make, message):
    made = make()
    start = time.process_time()
    with pytest.raises(dml.ModelError, match=message):
        read(folder, made).compile(dml.Device("cpu"))
    assert time.process_time() - start < 5  # seconds, on a machine that does other work


@pytest.mark.parametrize(
    "nodes",
    [
        [node("ConstantOfShape", ["s"], ["y"])],
        [node("Expand", ["one", "s"], ["y"])],
        [node("Tile", ["vector", "s1"], ["y"])],
        [node("Range", ["zero", "end", "step"], ["y"])],
        [node("OneHot", ["index", "end", "pair"], ["y"])],
    ],
    ids=lambda nodes: nodes[0].op_type,
)
def test_constants_of_absurd_sizes_are_not_computed(folder, nodes):
    weights = {
        "s": np.int64([2**20, 2**20]), "one": np.float32(1), "vector": floats(0, 4),
        "s1": np.int64([2**40]), "zero": np.int64(0), "end": np.int64(2**40),
        "step": np.int64(1), "index": np.int64([0]), "pair": np.float32([0, 1]),
    }  # fmt: skip
    kind = TensorProto.INT64 if nodes[0].op_type == "Range" else FLOAT
    model = model_of(nodes, {"x": [1]}, {"y": kind}, weights)
    start = time.process_time()
    with pytest.raises(dml.AnyDMLError):
        read(folder, model).compile(dml.Device("cpu"))
    assert time.process_time() - start < 5


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
