"""Whole ONNX models against ONNX Runtime: networks of several kinds."""

from pathlib import Path

import numpy as np
import pytest

import anydml as dml
from anydml.core.levels import LATEST
from anydml.onnx.partition import partitions

onnx = pytest.importorskip("onnx")  # `.ci/libraries` has JAX alone
oh = pytest.importorskip("onnx.helper")

from building import FLOAT, compare, floats, model_of, session, signed  # noqa: E402  # needs onnx
from onnx import TensorProto  # noqa: E402  # after the skip

node = oh.make_node
INT64 = TensorProto.INT64


def classifier():
    """Convolution, normalization, pooling, a shape that is computed, and a matrix product."""
    return model_of(
        [
            node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], strides=[2, 2], name="conv"),
            node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"], name="norm"),
            node("Relu", ["n"], ["r"], name="relu"),
            node("MaxPool", ["r"], ["p"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
            node("Shape", ["p"], ["shape"]),
            node("Gather", ["shape", "zero"], ["batch"]),
            node("Unsqueeze", ["batch", "axes"], ["one"]),
            node("Concat", ["one", "rest"], ["to"], axis=0),
            node("Reshape", ["p", "to"], ["flat"], name="flatten"),
            node("Gemm", ["flat", "g", "h"], ["y"], transB=1, name="gemm"),
            node("Softmax", ["y"], ["z"], name="softmax"),
        ],
        {"x": ["n", 3, 17, 17]},
        {"z": FLOAT},
        {
            "w": floats(1, 8, 3, 3, 3), "b": floats(2, 8), "s": floats(3, 8), "o": floats(4, 8),
            "m": floats(5, 8), "v": np.abs(floats(6, 8)) + 0.5, "zero": np.int64(0),
            "axes": np.int64([0]), "rest": np.int64([-1]), "g": floats(7, 10, 128),
            "h": floats(8, 10),
        },
    )  # fmt: skip


def attention():
    """Attention of primitive operators, with layer normalization and GELU by Erf."""
    return model_of(
        [
            node("LayerNormalization", ["x", "s", "o"], ["n"], axis=-1),
            node("MatMul", ["n", "wq"], ["q"]),
            node("MatMul", ["n", "wk"], ["k"]),
            node("Reshape", ["q", "to"], ["q4"]),
            node("Reshape", ["k", "to"], ["k4"]),
            node("Transpose", ["q4"], ["qt"], perm=[0, 2, 1, 3]),
            node("Transpose", ["k4"], ["kt"], perm=[0, 2, 3, 1]),
            node("MatMul", ["qt", "kt"], ["scores"]),
            node("Div", ["scores", "root"], ["scaled"]),
            node("Softmax", ["scaled"], ["weights"], axis=-1),
            node("MatMul", ["weights", "qt"], ["mixed"]),
            node("Transpose", ["mixed"], ["back"], perm=[0, 2, 1, 3]),
            node("Reshape", ["back", "from"], ["joined"]),
            node("Add", ["joined", "x"], ["sum"]),
            node("Erf", ["sum"], ["e"]),
            node("Add", ["e", "one"], ["e1"]),
            node("Mul", ["sum", "e1"], ["y"]),
        ],
        {"x": [2, 5, 16]},
        {"y": FLOAT},
        {
            "s": floats(1, 16), "o": floats(2, 16), "wq": floats(3, 16, 16),
            "wk": floats(4, 16, 16), "to": np.int64([0, 0, 4, 4]), "from": np.int64([0, 0, 16]),
            "root": np.float32(2), "one": np.float32(1),
        },
    )  # fmt: skip


def speech():
    """A one-dimensional convolution and a bidirectional LSTM."""
    return model_of(
        [
            node("Conv", ["x", "w"], ["c"], kernel_shape=[5], pads=[2, 2], dilations=[1]),
            node("Transpose", ["c"], ["t"], perm=[2, 0, 1]),
            node("LSTM", ["t", "W", "R", "B"], ["y", "h", ""], hidden_size=4,
                 direction="bidirectional"),
            node("ReduceMean", ["y"], ["mean"], axes=[1], keepdims=0),
        ],
        {"x": [2, 3, 11]},
        {"mean": FLOAT, "h": FLOAT},
        {
            "w": floats(1, 6, 3, 5), "W": floats(2, 2, 16, 6), "R": floats(3, 2, 16, 4),
            "B": floats(4, 2, 32),
        },
    )  # fmt: skip


def detection():
    """Boxes by thresholds: sizes that are known at run time only, and a node on the CPU."""
    return model_of(
        [
            node("Sigmoid", ["scores"], ["p"]),
            node("NonMaxSuppression", ["boxes", "p", "count", "overlap", "least"], ["kept"]),
            node("Gather", ["kept", "two"], ["index"], axis=1),
            node("Reshape", ["boxes", "to"], ["flat"]),
            node("Gather", ["flat", "index"], ["chosen"]),
            node("Greater", ["p", "half"], ["is_high"]),
            node("NonZero", ["is_high"], ["places"]),
        ],
        {"boxes": [1, 6, 4], "scores": [1, 1, 6]},
        {"chosen": FLOAT, "places": INT64},
        {
            "count": np.int64([3]), "overlap": np.float32([0.5]), "least": np.float32([0.4]),
            "two": np.int64([2]), "to": np.int64([6, 4]), "half": np.float32(0.5),
        },
    )  # fmt: skip


def quantized():
    """Pairs of quantization and its inverse, and an integer convolution."""
    return model_of(
        [
            node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
            node("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"], ["c"],
                 pads=[1, 1, 1, 1]),
            node("DequantizeLinear", ["c", "ys", "yz"], ["f"]),
            node("DynamicQuantizeLinear", ["f"], ["d", "ds", "dz"]),
            node("DequantizeLinear", ["d", "ds", "dz"], ["y"]),
        ],
        {"x": [1, 3, 6, 6]},
        {"y": FLOAT},
        {
            "xs": np.float32(2**-6), "xz": np.uint8(128), "ws": np.float32([2**-7, 2**-6]),
            "w": signed(1, 2, 3, 3, 3), "wz": np.int8([0, 0]),
            "ys": np.float32(2**-4), "yz": np.uint8(120), "b": np.int32([30, -7]),
        },
    )  # fmt: skip


def upscaler():
    """Resize, a transposed convolution, padding, slices and depth to space."""
    return model_of(
        [
            node("Pad", ["x", "pads"], ["p"], mode="reflect"),
            node("Conv", ["p", "w"], ["c"]),
            node("DepthToSpace", ["c"], ["d"], blocksize=2, mode="CRD"),
            node("Resize", ["d", "", "scales"], ["r"], mode="linear",
                 coordinate_transformation_mode="half_pixel"),
            node("ConvTranspose", ["r", "t"], ["u"], strides=[2, 2], output_padding=[1, 1],
                 pads=[1, 1, 1, 1]),
            node("Slice", ["u", "starts", "ends", "axes", "steps"], ["y"]),
        ],
        {"x": [1, 2, 5, 6]},
        {"y": FLOAT},
        {
            "pads": np.int64([0, 0, 1, 1, 0, 0, 1, 1]), "w": floats(1, 8, 2, 3, 3),
            "scales": np.float32([1, 1, 1.5, 2]), "t": floats(2, 2, 3, 3, 3),
            "starts": np.int64([1, -1]), "ends": np.int64([20, -100]), "axes": np.int64([2, 3]),
            "steps": np.int64([2, -3]),
        },
    )  # fmt: skip


MODELS = {
    "classifier": (classifier, {"x": floats(0, 2, 3, 17, 17)}, {"dims": {"n": 2}}),
    "attention": (attention, {"x": floats(0, 2, 5, 16)}, {}),
    "speech": (speech, {"x": floats(0, 2, 3, 11)}, {}),
    "detection": (
        detection,
        {"boxes": np.abs(floats(0, 1, 6, 4)), "scores": floats(1, 1, 1, 6)},
        {},
    ),
    "quantized": (quantized, {"x": floats(0, 1, 3, 6, 6)}, {}),
    "upscaler": (upscaler, {"x": floats(0, 1, 2, 5, 6)}, {}),
}


DEVICES = (
    "cpu", "reference", "onnxruntime", pytest.param("xla", marks=pytest.mark.slow),
    pytest.param("cuda", marks=pytest.mark.gpu),
)  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_gives_what_onnx_runtime_gives(name, device):
    if device == "xla":
        pytest.importorskip("jax")
    make, inputs, options = MODELS[name]
    compare(make(), inputs, device=device, **options)


def test_the_quantized_model_gives_the_same_integers():
    make, inputs, _ = MODELS["quantized"]
    model = make()
    results = dml.read_onnx(model).compile(dml.Device("cpu"), ["q", "c", "d"])(**inputs)
    for name in ("q", "c", "d"):
        model.graph.output.add().name = name
    expected = session(model).run(["q", "c", "d"], inputs)
    for name, reference in zip(("q", "c", "d"), expected, strict=True):
        np.testing.assert_array_equal(results[name], reference)


def test_constants_shapes_and_copies_are_removed_before_nodes_are_placed():
    read = dml.read_onnx(classifier(), dims={"n": 2})
    assert [item.operator for item in read.nodes] == [
        "Conv", "BatchNormalization", "Relu", "MaxPool", "Reshape", "Gemm", "Softmax",
    ]  # fmt: skip
    assert {item.place for item in read.nodes} == {"graph"}
    assert {item.operator for item in read.removed} == {"Shape", "Gather", "Unsqueeze", "Concat"}
    (graph,) = read.graphs
    assert dml.Device("cpu").check(graph) == []
    names = [item.name for item in graph.nodes]
    assert "c_dmlEp_0" in names


def test_a_free_dimension_is_named_and_never_guessed():
    read = dml.read_onnx(classifier())
    with pytest.raises(dml.ModelError, match=r"Input 'x' has free dimensions n") as caught:
        read.compile(dml.Device("cpu"))
    assert "--dim n=1" in str(caught.value)
    places = {item.operator: (item.place, item.reason) for item in read.nodes}
    assert places["Conv"][0] == "alone"
    assert places["Shape"][0] == "alone"
    assert places["Gather"][0] == "cpu"  # which computes a shape
    with pytest.raises(dml.ModelError, match=r"^The model has no free dimension 'm'; it has 'n'"):
        dml.read_onnx(classifier(), dims={"m": 1})
    with pytest.raises(dml.ModelError, match="expected 3 as size 1, got 4"):
        dml.read_onnx(classifier(), shapes={"x": (1, 4, 17, 17)})


def test_nodes_of_their_own_and_on_the_cpu_have_reasons():
    read = dml.read_onnx(detection())
    by_operator = {item.operator: item for item in read.nodes}
    assert by_operator["NonMaxSuppression"].place == "cpu"
    assert "no kernel" in by_operator["NonMaxSuppression"].reason
    assert by_operator["NonZero"].place == "alone"
    lstm = {item.operator: item for item in dml.read_onnx(speech()).nodes}["LSTM"]
    assert (lstm.place, lstm.descriptors[0].NAME) == ("alone", "LSTM")


def test_versions_are_exact_for_the_provider_and_useful_for_a_run():
    model = model_of([node("Elu", ["x"], ["y"])], {"x": [3]}, {"y": FLOAT}, opset=22)
    read = dml.read_onnx(model)
    assert read.nodes[0].place == "cpu"
    assert "version 22" in read.nodes[0].reason
    (usual,) = read.judged_for_run(LATEST)
    assert usual.on_device
    (exact,) = dml.read_onnx(model, as_onnxruntime=True).judged_for_run(LATEST)
    assert not exact.on_device
    compare(model, {"x": floats(0, 3)})


def test_an_if_with_a_constant_condition_becomes_its_branch():
    def branch(operator):
        return oh.make_graph(
            [node(operator, ["x"], ["inner"])], operator, [],
            [oh.make_value_info("inner", oh.make_tensor_type_proto(FLOAT, None))],
        )  # fmt: skip

    nodes = [
        node("If", ["c"], ["y"], then_branch=branch("Abs"), else_branch=branch("Neg")),
        node("Relu", ["y"], ["z"]),
    ]
    model = model_of(nodes, {"x": [4]}, {"z": FLOAT}, {"c": np.bool_(False)})
    read = compare(model, {"x": floats(0, 4)})
    assert [item.operator for item in read.nodes] == ["Neg", "Relu"]
    inputs = {"x": [4], "c": (TensorProto.BOOL, [])}
    read = dml.read_onnx(model_of(nodes, inputs, {"z": FLOAT}))
    assert [(item.name, item.operator, item.place) for item in read.nodes] == [
        ("y/inner", "Abs", "alone"), ("y/inner", "Neg", "alone"), ("y", "If", "cpu"),
        ("z", "Relu", "alone"),
    ]  # fmt: skip


def test_functions_of_the_model_are_expanded():
    function = oh.make_function(
        "mine", "Scaled", ["a"], ["b"],
        [
            oh.make_node("Constant", [], ["k"]),
            oh.make_node("Mul", ["a", "k"], ["b"]),
        ],
        [oh.make_opsetid("", 17)], ["factor"],
    )  # fmt: skip
    reference = function.node[0].attribute.add()
    reference.name, reference.ref_attr_name = "value_float", "factor"
    reference.type = 1
    nodes = [
        node("Scaled", ["x"], ["t"], domain="mine", factor=2.5),
        node("Scaled", ["t"], ["y"], domain="mine", factor=-1.0),
    ]
    model = model_of(nodes, {"x": [3]}, {"y": FLOAT}, domains=["mine"], functions=[function])
    read = compare(model, {"x": floats(0, 3)})
    assert [item.operator for item in read.nodes] == ["Mul", "Mul"]


def test_what_a_feature_level_refuses_has_the_name_of_its_node():
    read = dml.read_onnx(attention())
    found = read.check("5_0")
    assert found
    assert all(item.path.split(".")[0] for item in found)
    assert {item.path.split(".")[1] for item in found} == {
        "ACTIVATION_SOFTMAX1", "MEAN_VARIANCE_NORMALIZATION2",
    }  # fmt: skip
    assert read.check("6_4") == []
    with pytest.raises(dml.ModelError, match="ACTIVATION_SOFTMAX1"):
        read.compile(dml.Device("cpu", feature_level="5_0"))


LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(LIGHT.glob("*.onnx")), ids=lambda path: path.stem)
def test_networks_of_the_onnx_package(path):
    model = onnx.load(path)
    last = model.graph.node[-1]
    if last.op_type == "Softmax":  # of numbers beyond 10**9, whose last bits decide
        model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name=last.input[0]))
        model.graph.node.pop()
    read = dml.read_onnx(model)
    inputs = {name: np.abs(floats(0, *value.sizes)) for name, value in read.inputs.items()}
    results = read.compile(dml.Device("cpu"))(**inputs)
    expected = session(model).run(list(results), inputs)
    assert {item.place for item in read.nodes} == {"graph"}
    for result, reference in zip(results.values(), expected, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-4, atol=1e-6)


def test_a_run_leaves_out_copies_that_the_graphs_of_the_provider_have():
    nodes = [
        node("Reshape", ["x", "to"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Flatten", ["b"], ["y"]),
    ]
    model = model_of(nodes, {"x": [2, 3, 4]}, {"y": FLOAT}, {"to": np.int64([4, 6])})
    read = compare(model, {"x": floats(0, 2, 3, 4)})
    (graph,) = read.graphs
    assert [item.desc.NAME for item in graph.nodes] == [
        "ELEMENT_WISE_IDENTITY", "ACTIVATION_RELU", "ELEMENT_WISE_IDENTITY",
    ]  # fmt: skip
    (part,) = partitions(read.verdicts, read.graph, False, literal=False)
    assert [item.desc.NAME for item in part.desc.nodes] == [
        "ACTIVATION_RELU", "ELEMENT_WISE_IDENTITY",
    ]  # fmt: skip


@pytest.mark.parametrize("linear", [False, True])
def test_sparse_initializers_are_read_with_their_zeros(linear):
    model = model_of([node("Add", ["x", "w"], ["y"])], {"x": [2, 3]}, {"y": FLOAT})
    values = oh.make_tensor("w", FLOAT, [2], [5.0, 7.0])
    places = [1, 5] if linear else [0, 1, 1, 2]
    indices = oh.make_tensor("", INT64, [2] if linear else [2, 2], places)
    model.graph.sparse_initializer.append(oh.make_sparse_tensor(values, indices, [2, 3]))
    found = dml.read_onnx(model).compile(dml.Device("cpu"))(x=np.zeros((2, 3), np.float32))
    assert found["y"].tolist() == [[0, 5, 0], [0, 0, 7]]
    for wrong in ([1, 6], [-1, 0]) if linear else ([0, 3, 0, 0], [0, -1, 0, 0]):
        indices = oh.make_tensor("", INT64, [2] if linear else [2, 2], wrong)
        model.graph.sparse_initializer[0].indices.CopyFrom(indices)
        with pytest.raises(dml.ModelError, match="expected indices in the shape"):
            dml.read_onnx(model)
    model.graph.sparse_initializer[0].dims[:] = [2**40, 3]
    with pytest.raises(dml.ModelError, match="--memory-limit"):
        dml.read_onnx(model)


def pairs(scales, kind=np.uint8):
    """Pairs of quantization and its inverse, each with its own scale."""
    nodes, weights, name = [], {"z": kind(100)}, "x"
    for i, scale in enumerate(scales):
        weights[f"s{i}"] = np.float32(scale)
        nodes += [
            node("QuantizeLinear", [name, f"s{i}", "z"], [f"q{i}"]),
            node("DequantizeLinear", [f"q{i}", f"s{i}", "z"], [f"d{i}"]),
        ]
        name = f"d{i}"
    nodes.append(node("Neg", [name], ["y"]))
    return model_of(nodes, {"x": [1, 1, 5, 300]}, {"y": FLOAT}, weights)


@pytest.mark.parametrize(
    ("scales", "expected"),
    [
        ((0.1, 0.1, 0.1), 1), ((-0.3, -0.3), 1), ((0.1, 0.2), 2), ((2.0**-130, 2.0**-130), 2),
        ((2.0**120, 2.0**120), 2), ((2.0**-126, 2.0**-126), 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_a_quantization_that_undoes_the_inverse_before_it_is_left_out(scales, expected, kind):
    model = pairs(scales, kind)
    read = dml.read_onnx(model)
    (part,) = partitions(read.verdicts, read.graph, False, literal=False)
    names = [item.desc.NAME for item in part.desc.nodes if isinstance(item, dml.OperatorNode)]
    assert names.count("ELEMENT_WISE_QUANTIZE_LINEAR") == expected
    x = (200 * scales[0] * floats(0, 1, 1, 5, 300)).astype(np.float32)
    (short, whole) = (
        dml.read_onnx(model, as_onnxruntime=exact).compile(dml.Device("cpu"))(x=x)["y"]
        for exact in (False, True)
    )
    np.testing.assert_array_equal(short, whole)
    assert np.unique(whole).size > 100


def test_operators_that_are_shaders_run_on_the_gpu_there_and_on_the_cpu_here():
    sampled = [node("GridSample", ["x", "g"], ["y"])]
    inputs = {"x": [1, 2, 4, 4], "g": [1, 3, 3, 2]}
    model = model_of(sampled, inputs, {"y": FLOAT})
    read = compare(model, {"x": floats(0, 1, 2, 4, 4), "g": floats(1, 1, 3, 3, 2)})
    assert [(item.place, "shader" in item.reason) for item in read.nodes] == [("alone", True)]
    newer = dml.read_onnx(model_of(sampled, inputs, {"y": FLOAT}, opset=20))
    assert newer.nodes[0].place == "cpu"


def test_sparse_constants_of_nodes_are_read():
    values = oh.make_tensor("w", FLOAT, [1], [5.0])
    sparse = oh.make_sparse_tensor(values, oh.make_tensor("", INT64, [1], [2]), [3])
    nodes = [
        node("Constant", [], ["w"], sparse_value=sparse),
        node("Add", ["x", "w"], ["y"]),
    ]
    found = dml.read_onnx(model_of(nodes, {"x": [3]}, {"y": FLOAT}))
    result = found.compile(dml.Device("cpu"))(x=np.float32([1, 1, 1]))
    assert result["y"].tolist() == [1, 1, 6]


def test_dimensions_that_a_question_mark_names_may_differ():
    model = model_of([node("Relu", ["x"], ["y"])], {"x": ["?", "?"]}, {"y": FLOAT})
    compare(model, {"x": floats(0, 2, 3)}, shapes={"x": (2, 3)})
    with pytest.raises(dml.ModelError, match=r"free dimensions \?, \?"):
        dml.read_onnx(model).compile(dml.Device("cpu"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, _: dml.read_onnx(m, dims=3), "dims: expected a mapping by name, got 3"),
        (lambda m, _: dml.read_onnx(m, shapes={"x": 3}), r"shapes\['x'\]: expected a sequence of"),
        (lambda m, _: dml.read_onnx(m, dims={"n": 1}).compile("cpu"), "device: expected a Device"),
        (
            lambda _, run: run(x=np.ma.masked_array(floats(0, 1, 3, 17, 17))),
            "x: expected an array ",
        ),
        (lambda _, run: run(x="abc"), "x: expected numbers, got strings"),
    ],
)
def test_values_of_wrong_kinds(call, message):
    run = dml.read_onnx(classifier(), dims={"n": 1}).compile(dml.Device("cpu"))
    with pytest.raises((dml.ArgumentTypeError, dml.BindingError), match=f"^{message}"):
        call(classifier(), run)


def test_nodes_are_sorted_as_onnx_runtime_sorts_them():
    """The conversion of ONNX Runtime to float16 appends casts of inputs at the end."""
    model = classifier()
    branch = oh.make_graph(
        [node("Neg", ["before"], ["inner"])], "b", [],
        [oh.make_value_info("inner", oh.make_tensor_type_proto(FLOAT, None))],
    )  # fmt: skip
    nodes = [
        node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),  # which reads `before`
        node("Relu", ["y"], ["z"]),
        node("Abs", ["x"], ["before"]),
    ]
    mixed = model_of(nodes, {"x": [4]}, {"z": FLOAT}, {"c": np.bool_(True)})
    assert [item.operator for item in compare(mixed, {"x": floats(0, 4)}).nodes] == [
        "Abs", "Neg", "Relu",
    ]  # fmt: skip
    order = [item.name for item in dml.read_onnx(model).nodes]
    reverse = list(model.graph.node)[::-1]
    del model.graph.node[:]
    model.graph.node.extend(reverse)
    read = dml.read_onnx(model)
    assert sorted(item.name for item in read.nodes) == sorted(order)
    compare(model, {"x": floats(0, 1, 3, 17, 17)}, dims={"n": 1})


def test_a_cycle_is_named():
    nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])]
    with pytest.raises(dml.ModelError, match=r"\(Relu\): .*got 'a' \(a cycle, or a value"):
        dml.read_onnx(model_of(nodes, {"x": [2]}, {"b": FLOAT}))
