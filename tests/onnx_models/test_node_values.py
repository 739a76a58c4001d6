"""Nodes of rare attributes, versions and types: their values are those of ONNX Runtime."""

from itertools import permutations, product

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, bytes_of, compare, floats, model_of
from onnx import TensorProto

import anydml as dml
from anydml.core.levels import LATEST
from anydml.onnx.report import Report

node = oh.make_node
INT64 = TensorProto.INT64


def with_shape(nodes, inputs, weights=None, opset=17, **options):
    """Compare the value `y` and its shape, which must be known before the run."""
    declared = {
        name: (oh.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))
        for name, array in inputs.items()
    }
    nodes = [*nodes, node("Shape", ["y"], ["s"])]
    model = model_of(nodes, declared, {"y": FLOAT, "s": INT64}, weights, opset)
    return compare(model, inputs, **options)


@pytest.mark.parametrize(
    "name", ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_reduction_of_no_axes_is_elementwise(name, keepdims):
    x = np.float32([[-1, 2, 3], [4, -5, 6]])
    for axes in (["axes"], []):
        reduce = node(f"Reduce{name}", ["x", *axes], ["y"], noop_with_empty_axes=1,
                      keepdims=keepdims)  # fmt: skip
        weights = {"axes": np.zeros(0, np.int64)} if axes else None
        with_shape([reduce], {"x": np.abs(x) if name == "LogSum" else x}, weights, 18)


@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("group", [1, 2])
def test_shapes_of_transposed_convolutions(auto_pad, group):
    given = product(
        (None, [2], [3]), (None, [1], [2]), (None, [0], [1]), (None, [0, 1]), (None, 3, 2)
    )
    for strides, dilations, padding, pads, more in list(given)[group::4]:
        if padding == [1] and strides is None:
            continue  # the padding is smaller than a stride
        if auto_pad != "NOTSET" and pads is not None:
            continue
        attributes = {
            "strides": strides, "dilations": dilations, "output_padding": padding, "pads": pads,
        }  # fmt: skip
        if more is not None:
            step, dilation = (strides or [1])[0], (dilations or [1])[0]
            size = 3 * step + dilation + 1 + (padding or [0])[0]
            attributes |= {"output_shape": [size - 3 + more], "pads": None}
        kept = {name: value for name, value in attributes.items() if value is not None}
        transposed = node(
            "ConvTranspose", ["x", "w"], ["t"], auto_pad=auto_pad, group=group, **kept
        )
        inputs = {"x": floats(0, 1, 2, 4)}
        with_shape([transposed, node("Relu", ["t"], ["y"])], inputs, {"w": floats(1, 2, 3, 2)})


@pytest.mark.parametrize("opset", [9, 11, 13])
def test_squeezed_axes_in_any_order(opset):
    for axes in permutations([0, 2, 4], 2):
        squeeze = node("Squeeze", ["x"], ["t"], axes=axes)
        if opset >= 13:
            squeeze = node("Squeeze", ["x", "axes"], ["t"])
        weights = {"axes": np.int64(axes)} if opset >= 13 else None
        inputs = {"x": floats(0, 1, 3, 1, 2, 1)}
        with_shape([squeeze, node("Neg", ["t"], ["y"])], inputs, weights, opset)


@pytest.mark.parametrize("ratio", [0, 1, 2])
@pytest.mark.parametrize(
    ("opset", "mode"), [(10, None), (16, "half_pixel"), (16, "output_half_pixel")]
)
def test_small_regions(opset, mode, ratio):
    begins = np.float32([[0.2, 1.4], [3, 2], [2.5, 0.5]])
    ends = begins + np.float32([[0.1, 0.3], [0.4, 4], [5, 0.9]])
    attributes = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio}
    if mode is not None:
        attributes["coordinate_transformation_mode"] = mode
    for scale in (1.0, 0.5):
        align = node("RoiAlign", ["x", "r", "i"], ["y"], spatial_scale=scale, **attributes)
        inputs = {
            "x": floats(0, 2, 3, 8, 9), "r": np.hstack([begins, ends]), "i": np.int64([0, 1, 0])
        }  # fmt: skip
        with_shape([align], inputs, None, opset)


PLACES = [
    "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn",
    "half_pixel_symmetric",
]  # fmt: skip


def resized(opset, places, x, scales, region=None, **attributes):
    if opset in (11, 18, 19):
        attributes["coordinate_transformation_mode"] = places
    names = ["x", "scales"] if opset < 11 else ["x", "region", "scales"]
    region = np.float32([0] * 4 + [1] * 4 if region is None else region)
    weights = {"scales": np.float32([1, 1, *scales]), "region": region}
    resize = node("Upsample" if opset < 10 else "Resize", names, ["y"], **attributes)
    return with_shape([resize], {"x": x}, {n: weights[n] for n in names[1:]}, opset)


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_positions_of_resized_elements(places, mode):
    opset = {"tf_half_pixel_for_nn": 11, "half_pixel_symmetric": 19}.get(places, 18)
    for height, width in product((0.7, 1.7), (0.3, 1, 2.3)):
        resized(opset, places, floats(0, 1, 2, 4, 7), [height, width], mode=mode)


@pytest.mark.parametrize(
    ("opset", "scales"), [(9, [1.5, 2]), (9, [1.4, 1]), (10, [1.5, 0.7]), (10, [0.6, 0.3])]
)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_positions_before_there_were_modes(opset, scales, mode):
    resized(opset, None, floats(0, 1, 2, 5, 7), scales, mode=mode)


@pytest.mark.parametrize("places", ["half_pixel", "asymmetric", "pytorch_half_pixel"])
def test_edges_of_antialiased_images(places):
    for size, scale in product((5, 6, 9), (0.2, 0.5, 0.6, 0.9, 1.4)):
        x = floats(size, 1, 1, size, 4)
        resized(18, places, x, [scale, 0.5], mode="linear", antialias=1)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("value", [0.0, 2.0])
def test_cropped_and_resized_images(mode, value):
    for begin, end in product((0.1, 0.5, -0.2), (0.6, 1, 1.3, 0.5)):
        resized(
            11, "tf_crop_and_resize", floats(0, 1, 2, 5, 6), [0.8, 1.5], mode=mode,
            region=[0, 0, begin, 0, 1, 1, end, 0.7], extrapolation_value=value,
        )  # fmt: skip
    # On the device unless an element lies outside of the input.
    places = [
        resized(11, "tf_crop_and_resize", floats(0, 1, 1, 5, 5), [0.8, 1], mode=mode,
                region=[0, 0, begin, 0, 1, 1, 1, 1]).judged_for_run(LATEST)[0]
        for begin in (0.1, -0.1)
    ]  # fmt: skip
    assert [item.on_device for item in places] == [True, False]


@pytest.mark.parametrize("name", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_the_scale_gives_the_type_of_old_layer_normalization(name):
    x, scale = floats(0, 2, 3).astype(np.float16), floats(1, 3)
    read = with_shape([node(name, ["x", "w"], ["y"])], {"x": x}, {"w": scale}, 11)
    assert [item.place for item in read.nodes] == ["graph"]


@pytest.mark.parametrize("scale", [None, [2, 2]])
def test_cropped_borders(scale):
    attributes = {} if scale is None else {"scale": scale}
    crop = node("Crop", ["x"], ["y"], border=[1, 0, 2, 1], **attributes)
    with_shape([crop], {"x": floats(0, 1, 2, 4, 6)}, None, 1)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (1, 2, 3, 2)])
def test_batch_normalization_of_each_element(shape):
    weights = {name: np.abs(floats(i, *shape[1:])) + 0.1 for i, name in enumerate("abmv")}
    norm = node("BatchNormalization", ["x", *"abmv"], ["y"], spatial=0)
    with_shape([norm], {"x": floats(9, *shape)}, weights, 7)


@pytest.mark.parametrize("slope", [(1, 1, 3), (2, 3), (2, 1), (4, 1, 1)])
def test_a_slope_of_a_higher_rank(slope):
    for opset in (7, 9, 16):
        with_shape([node("PRelu", ["x", "w"], ["y"])], {"x": floats(0, 3)},
                   {"w": floats(1, *slope)}, opset)  # fmt: skip


@pytest.mark.parametrize("sizes", [[1, 1, 2, 3], [2, 1, 1, 3], [1, 1, 1, 2, 3], [2, 1, 2, 2, 2]])
def test_grids_of_single_images(sizes):
    rank = len(sizes) - 2
    for align in (0, 1):
        if align and 1 in sizes[2:]:
            continue  # ONNX divides by zero
        grid = node("AffineGrid", ["x", "n"], ["y"], align_corners=align)
        with_shape([grid], {"x": floats(0, sizes[0], rank, rank + 1)}, {"n": np.int64(sizes)}, 20)


UNUSUAL = [
    TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E4M3FNUZ,
    TensorProto.FLOAT8E5M2, TensorProto.FLOAT8E5M2FNUZ, TensorProto.UINT4, TensorProto.INT4,
    *(getattr(TensorProto, name) for name in ("UINT2", "INT2") if hasattr(TensorProto, name)),
]  # fmt: skip


@pytest.mark.parametrize("kind", UNUSUAL, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("size", [1, 4, 5])
def test_tensors_of_types_that_numpy_lacks(kind, size):
    opset = 25 if kind > TensorProto.FLOAT4E2M1 else 21
    x = np.float32([[1, -2, 1, 0.5, 0]])[:, :size]
    nodes = [
        node("Cast", ["x"], ["a"], to=kind),
        node("Transpose", ["a"], ["b"]),
        node("Cast", ["b"], ["y"], to=FLOAT),
        node("Transpose", ["c"], ["d"]),
        node("Cast", ["d"], ["z"], to=FLOAT),
    ]
    constant = oh.make_tensor("c", kind, [3, 1], [1, 0, 1])
    model = model_of(nodes, {"x": [1, size]}, {"y": FLOAT, "z": FLOAT}, opset=opset)
    model.graph.initializer.append(constant)
    compare(model, {"x": x})
    # The tensors themselves, as inputs and outputs.
    dtype = oh.tensor_dtype_to_np_dtype(kind)
    model = model_of(nodes[1:2], {"a": (kind, [1, size])}, {"b": kind, "c": kind}, opset=opset)
    model.graph.initializer.append(constant)
    given = x.astype(dtype)
    found = dml.read_onnx(model).compile(dml.Device("cpu"), outputs=["a"])(a=given)
    expected = {"a": given, "b": given.T, "c": np.float32([[1], [0], [1]]).astype(dtype)}
    for name, array in expected.items():
        assert found[name].dtype == dtype
        np.testing.assert_array_equal(found[name], array)


def test_quantization_to_8_bit_floats():
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    model = model_of(nodes, {"x": [2, 3]}, {"y": FLOAT}, {"s": np.float32(0.5)}, opset=19)
    zero = oh.make_tensor("z", TensorProto.FLOAT8E4M3FN, [], [0])
    model.graph.initializer.append(zero)
    compare(model, {"x": floats(0, 2, 3)})


@pytest.mark.parametrize("kind", [TensorProto.UINT4, TensorProto.INT4])
def test_4_bits_between_nodes_of_unknown_sizes(kind):
    """DirectML's operators and ONNX Runtime's take turns, with an odd number of elements."""
    nodes = [
        node("Reshape", ["x", "n"], ["a"]),
        node("QuantizeLinear", ["a", "s", "z"], ["q"]),
        node("Transpose", ["q"], ["t"]),
        node("DequantizeLinear", ["t", "s", "z"], ["y"]),
    ]
    inputs = {"x": np.float32([1, 2, -3, 4, 5]), "n": np.int64([5, 1])}
    model = model_of(
        nodes, {"x": [5], "n": (INT64, [2])}, {"y": FLOAT}, {"s": np.float32(1)}, opset=21
    )
    model.graph.initializer.append(oh.make_tensor("z", kind, [], [0]))
    compare(model, inputs)


def test_notes_name_the_values_of_the_provider():
    """Nodes for which the provider's values are others than ONNX's, by its source."""
    shapes = {"x": [1, 1, 4, 4]}
    region = {"r": np.zeros((1, 4), np.float32), "i": np.int64([0])}
    sizes = {"e": np.zeros(0, np.float32), "s": np.float32([1, 1, 0.5, 0.5])}
    crop = {"e": np.float32([0, 0, 0, 0, 1, 1, 1, 1]), "s": sizes["s"]}
    linear = {"mode": "linear"}
    cases = [
        ("MeanVarianceNormalization", ["x"], {}, 13, {}, "1e-5"),
        ("RoiAlign", ["x", "r", "i"], region, 10, {}, "enlarge"),
        ("Upsample", ["x", "s"], {"s": np.float32([1, 1, 2, 2])}, 9, linear, "half_pixel"),
        ("Upsample", ["x", "s"], {"s": np.float32([1, 1, 2, 1.5])}, 9, {}, "half_pixel"),
        ("Resize", ["x", "e", "s"], crop, 11,
         {"coordinate_transformation_mode": "tf_crop_and_resize"}, "extrapolation_value"),
        ("Resize", ["x", "e", "s"], sizes, 18, {**linear, "antialias": 1}, "edge"),
    ]  # fmt: skip
    for name, inputs, weights, opset, attributes, text in cases:
        made = model_of([node(name, inputs, ["y"], **attributes)], shapes, {"y": FLOAT}, weights,
                        opset)  # fmt: skip
        assert text in "\n".join(Report(dml.read_onnx(made), LATEST).lines()), name


@pytest.mark.parametrize("pads", [{"auto_pad": "VALID"}, {"pads": [0, 1]}, {"pads": [1, 1]}])
@pytest.mark.parametrize("last", [0, 1])
def test_windows_of_quantized_pooling_that_end_behind_the_input(pads, last):
    pool = node(
        "QLinearAveragePool", ["x", "s", "z", "s", "z"], ["y"], domain="com.microsoft",
        kernel_shape=[3], strides=[3], ceil_mode=1, channels_last=last, **pads,
    )  # fmt: skip
    for size in range(3, 9):
        shape = [1, size, 2] if last else [1, 2, size]
        constants = {"s": np.float32(0.5), "z": np.uint8(3)}
        model = model_of([pool], {"x": (TensorProto.UINT8, shape)}, {"y": TensorProto.UINT8},
                         constants, domains=["com.microsoft"])  # fmt: skip
        compare(model, {"x": bytes_of(size, *shape)}, atol=1)


@pytest.mark.parametrize("name", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_what_skipped_normalization_adds(name):
    skip = node(name, ["x", "t", "w"], ["y"], domain="com.microsoft")
    model = model_of([skip], {"x": [1, 2, 4], "t": [1, 2, 4]}, {"y": FLOAT}, {"w": floats(2, 4)},
                     domains=["com.microsoft"])  # fmt: skip
    compare(
        model, {"x": floats(0, 1, 2, 4) * np.float32(1e-4), "t": np.zeros_like(floats(1, 1, 2, 4))}
    )


@pytest.mark.parametrize("name", ["MeanVarianceNormalization", "LpNormalization"])
def test_small_norms(name):
    x = np.float32(np.linspace(0, 1e-6, 8).reshape(1, 1, 2, 4))
    # ONNX Runtime divides 0 by 0 in MeanVarianceNormalization.
    for scale in (0, 1, 1e3) if name == "LpNormalization" else (1, 1e3):
        with_shape([node(name, ["x"], ["y"])], {"x": x * np.float32(scale)}, None, 13)


def test_the_provider_adds_to_small_variances():
    x = np.float32(np.linspace(0, 1e-3, 8).reshape(1, 1, 2, 4))
    norm = node("MeanVarianceNormalization", ["x"], ["y"])
    model = model_of([norm], {"x": x.shape}, {"y": FLOAT}, opset=13)
    found = dml.read_onnx(model, as_onnxruntime=True).compile(dml.Device("cpu"))(x=x)["y"]
    expected = (x - x.mean()) / np.sqrt(x.var(dtype=np.float64) + 1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
