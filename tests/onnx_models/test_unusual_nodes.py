"""Nodes that are valid and rare, and nodes that no operator allows: the results of ONNX Runtime, or
a `ModelError`.
"""

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, compare, floats, model_of
from onnx import TensorProto

import anydml as dml

node = oh.make_node


@pytest.mark.parametrize("zero_points", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -2])
def test_4_bit_weights_with_a_scale_for_each_row_or_column(axis, zero_points):
    size = (4, 6)[axis]
    inputs = ["q", "s", "z"] if zero_points else ["q", "s"]
    model = model_of(
        [node("DequantizeLinear", inputs, ["d"], axis=axis), node("Add", ["d", "x"], ["y"])],
        {"x": [4, 6]}, {"y": FLOAT}, {"s": np.arange(1, size + 1, dtype=np.float32)}, opset=21,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    for name, shape in (("q", (4, 6)), ("z", (size,))):
        values = rng.integers(-8, 8, shape)
        model.graph.initializer.append(oh.make_tensor(name, TensorProto.INT4, shape, values))
    compare(model, {"x": floats(0, 4, 6)})


def test_overloads_of_a_function():
    model = model_of(
        [node("F", ["x"], ["t"], domain="f", overload="a"),
         node("F", ["t"], ["y"], domain="f", overload="b")],
        {"x": [2]}, {"y": FLOAT}, domains=["f"],
        functions=[
            oh.make_function("f", "F", ["a"], ["b"], [node(kind, ["a"], ["b"])],
                             [oh.make_opsetid("", 17)], overload=overload)
            for overload, kind in (("a", "Neg"), ("b", "Exp"))
        ],
    )  # fmt: skip
    compare(model, {"x": np.float32([1, 2])})


def test_a_product_of_einsum_that_broadcasts():
    nodes = [node("Einsum", ["a", "b"], ["t"], equation="bij,bjk->bik"), node("Relu", ["t"], ["y"])]
    model = model_of(nodes, {"a": [1, 1, 2], "b": [4, 2, 1]}, {"y": FLOAT})
    compare(model, {"a": floats(0, 1, 1, 2), "b": floats(1, 4, 2, 1)})


def test_squeezed_constants_of_old_opsets():
    nodes = [node("Squeeze", ["w"], ["t"], axes=[0]), node("Add", ["x", "t"], ["y"])]
    model = model_of(nodes, {"x": [3, 1]}, {"y": FLOAT}, {"w": floats(0, 1, 3, 1)}, opset=11)
    compare(model, {"x": floats(1, 3, 1)})


def test_a_range_that_uses_one_constant_twice():
    constants = {"one": np.int64(1), "n": np.int64(5)}
    nodes = [
        node("Range", ["one", "n", "one"], ["r"]),
        node("Cast", ["r"], ["f"], to=FLOAT),
        node("Add", ["f", "x"], ["y"]),
    ]
    model = model_of(nodes, {"x": [4]}, {"y": FLOAT}, constants)
    compare(model, {"x": floats(0, 4)})


def test_a_window_of_a_huge_tensor_is_found_at_once():
    constants = {"starts": np.int64([1]), "ends": np.int64([2**39]), "steps": np.int64([3])}
    slices = node("Slice", ["x", "starts", "ends", "", "steps"], ["y"])
    model = model_of([slices], {"x": [2**40]}, {"y": FLOAT}, constants)
    assert [item.place for item in dml.read_onnx(model).nodes] == ["refused"]  # its size


def if_of(**attributes):
    return model_of([node("If", ["c"], ["y"], **attributes)], {}, {"y": FLOAT}, {"c": np.True_})


DAMAGED = {
    "batch_dims": model_of(
        [node("GatherND", ["x", "i"], ["y"], batch_dims=-7)], {"x": [2, 3]}, {"y": FLOAT},
        {"i": np.zeros((2, 1), np.int64)},
    ),
    "num_outputs": model_of(
        [node("Split", ["x"], ["y", "b", "c", "d"], num_outputs=3)], {"x": [7, 2]}, {"y": FLOAT},
        opset=18,
    ),
    "axis": model_of(
        [node("LayerNormalization", ["x", "s"], ["y", "m"], axis=2**31)], {"x": [2, 3]},
        {"y": FLOAT}, {"s": floats(0, 3)},
    ),
    "elements": model_of(
        [node("Reshape", ["x", "s"], ["y"])], {"x": [2, 4]}, {"y": FLOAT},
        {"s": np.int64([1, 2, 2])},
    ),
    "sizes below 0": model_of(
        [node("ConvTranspose", ["x", "w"], ["y"], pads=[9, 9])], {"x": [1, 1, 4]}, {"y": FLOAT},
        {"w": floats(0, 1, 1, 3)},
    ),
    "sizes of a crop": model_of([node("Crop", ["x"], ["y"], border=[9, 9, 9, 9])],
                                {"x": [1, 1, 4, 4]}, {"y": FLOAT}, opset=1),
    "squeezed axes": model_of([node("Squeeze", ["x"], ["y"], axes=[9])], {"x": [1, 1, 4]},
                              {"y": FLOAT}, opset=11),
    "no outputs": model_of([node("Identity", ["x"], []), node("Relu", ["x"], ["y"])],
                           {"x": [2]}, {"y": FLOAT}),
    "a branch that is a number": if_of(then_branch=1, else_branch=1),
    "an empty condition": model_of([node("If", [""], ["y"])], {}, {"y": FLOAT}),
    "opset": model_of([node("Relu", ["x"], ["y"])], {"x": [2]}, {"y": FLOAT}, opset=2**31),
    "outputs of a function": model_of(
        [node("F", ["x"], ["y", "z"], domain="f")], {"x": [2]}, {"y": FLOAT}, domains=["f"],
        functions=[oh.make_function("f", "F", ["a"], ["b"], [node("Neg", ["a"], ["b"])],
                                    [oh.make_opsetid("", 17)])],
    ),
    "inputs": model_of([node("QuickGelu", [], ["y"], domain="com.microsoft")], {}, {"y": FLOAT},
                       domains=["com.microsoft"]),
    "heads": model_of(
        [node("MultiHeadAttention", ["x", "x", "x"], ["y"], domain="com.microsoft", num_heads=0)],
        {"x": [1, 2, 8]}, {"y": FLOAT}, domains=["com.microsoft"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_nodes_are_refused(name):
    with pytest.raises(dml.ModelError, match=r"Node|Operators of ai\.onnx"):
        dml.read_onnx(DAMAGED[name])


def test_a_region_that_is_left_out():
    resize = node("Resize", ["x", "", "s"], ["y"], mode="linear",
                  coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
    model = model_of([resize], {"x": [1, 1, 4]}, {"y": FLOAT}, {"s": np.float32([1, 1, 2])})
    (found,) = dml.read_onnx(model).check()
    assert str(found) == "y.roi: expected a tensor, got None"


def test_indices_out_of_range_are_not_folded():
    constants = {"w": floats(0, 2), "i": np.int64([2**62])}
    nodes = [node("GatherElements", ["w", "i"], ["t"]), node("Add", ["x", "t"], ["y"])]
    read = dml.read_onnx(model_of(nodes, {"x": [1]}, {"y": FLOAT}, constants))
    with pytest.raises(dml.AnyDMLError, match=r"IndicesTensor\[0\]: expected -2..1"):
        read.compile(dml.Device("cpu"))(x=floats(1, 1))


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(
    ("kernel", "stride", "pads"), [(1, 2, [0, 0]), (3, 3, [0, 1]), (2, 2, [1, 1])]
)
def test_windows_that_begin_behind_the_input(kind, kernel, stride, pads):
    pool = node(kind, ["x"], ["y"], kernel_shape=[kernel], strides=[stride], pads=pads, ceil_mode=1)
    for size in range(3, 9):
        compare(model_of([pool], {"x": [1, 1, size]}, {"y": FLOAT}), {"x": floats(0, 1, 1, size)})


def test_smaller_indices_of_a_version_that_the_provider_lacks():
    scatter = node("ScatterElements", ["x", "i", "u"], ["y"], axis=1)
    constants = {"i": np.int64([[0, 4, 1], [2, 3, 0]]), "u": floats(1, 2, 3)}
    model = model_of([scatter], {"x": [3, 5]}, {"y": FLOAT}, constants, opset=18)
    compare(model, {"x": floats(0, 3, 5)})


def test_bools_of_doubles():
    nodes = [
        node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
        node("Cast", ["d"], ["b"], to=TensorProto.BOOL),
        node("Cast", ["b"], ["y"], to=FLOAT),
    ]
    compare(model_of(nodes, {"x": [3]}, {"y": FLOAT}), {"x": np.float32([0, 0.5, -2])})


def test_an_axis_out_of_range():
    nodes = [node("CumSum", ["x", "a"], ["y"])]
    read = dml.read_onnx(model_of(nodes, {"x": [2, 3]}, {"y": FLOAT}, {"a": np.int64(5)}))
    with pytest.raises(dml.ModelError, match="axis"):
        read.compile(dml.Device("cpu"))(x=floats(0, 2, 3))


def test_results_whose_size_follows_from_data_are_limited():
    nodes = [
        node("NonZero", ["x"], ["p"]),
        node("Shape", ["p"], ["s"]),
        node("Mul", ["s", "n"], ["t"]),
        node("ConstantOfShape", ["t"], ["f"]),
        node("ReduceMax", ["f"], ["y"]),
    ]
    model = model_of(nodes, {"x": [4]}, {"y": FLOAT}, {"n": np.int64([2**9, 2**18])})
    read = dml.read_onnx(model, memory_limit=2**24)
    with pytest.raises(dml.ModelError, match=r"--memory-limit\), got 2147483648"):
        read.compile(dml.Device("cpu"))(x=np.ones(4, np.float32))
