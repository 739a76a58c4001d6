"""Regions and columns against ONNX Runtime, on random descriptors."""

import numpy as np
import pytest
from onnx_mappings import columns, regions

import anydml as dml
from support.computed import NAMES, device_named
from support.described import run_described

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")


def run_node(name, arrays, attributes):
    """What ONNX Runtime gives."""
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for i, a in enumerate(arrays)
    ]
    node = helper.make_node(name, [item.name for item in inputs], ["y"], **attributes)
    graph = helper.make_graph([node], name, inputs, [onnx.ValueInfoProto(name="y")])
    opset = helper.make_opsetid("", 18)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    session = runtime.InferenceSession(model.SerializeToString())
    return session.run(None, {f"x{i}": array for i, array in enumerate(arrays)})[0]


def random_regions(rng):
    """Attributes of RoiAlign, images, corners inside and outside of them, and batches."""
    batches, height, width, count = rng.integers(1, (3, 9, 9, 5))
    half = rng.random() < 0.5
    corners = rng.uniform(-4, 12, (count, 4)).astype("f4")
    if not half:  # ONNX makes smaller regions larger in this mode
        corners[:, 2:] = corners[:, :2] + rng.uniform(3, 9, (count, 2))
    else:  # and has no samples in a mirrored one
        corners = np.concatenate([np.sort(corners[:, i::2], axis=1) for i in (0, 1)], axis=1)
        corners = corners[:, [0, 2, 1, 3]]
    images = rng.normal(size=(batches, 2, height, width)).astype("f4")
    attributes = {
        "output_height": int(rng.integers(1, 5)), "output_width": int(rng.integers(1, 5)),
        "sampling_ratio": int(rng.integers(0, 4)), "spatial_scale": float(rng.choice([0.5, 1, 2])),
        "coordinate_transformation_mode": "half_pixel" if half else "output_half_pixel",
    }  # fmt: skip
    return attributes, [images, corners, rng.integers(0, batches, count)]


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("seed", range(12))
def test_means_of_regions(seed, device):
    attributes, arrays = random_regions(np.random.default_rng(seed))
    expected = run_node("RoiAlign", arrays, attributes)
    encoded = {name: v.encode() if isinstance(v, str) else v for name, v in attributes.items()}
    kind, inputs, fields = regions(arrays, encoded)
    (got,), _ = run_described(kind, inputs, fields, [expected], device_named(device))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("seed", range(12))
def test_maxima_of_regions(seed, device):
    """Corners halfway between elements and out of order, cells without elements."""
    rng = np.random.default_rng(seed)
    images = rng.normal(size=(2, 3, *rng.integers(1, 9, 2))).astype("f4")
    corners = rng.integers(-8, 24, (6, 4)) / 2
    arguments = np.concatenate([rng.integers(0, 2, (6, 1)), corners], axis=1).astype("f4")
    height, width = map(int, rng.integers(1, 5, 2))
    scale = float(rng.choice([0.5, 1, 2]))
    attributes = {"pooled_shape": [height, width], "spatial_scale": scale}
    expected = run_node("MaxRoiPool", [images, arguments], attributes)
    fields = {"spatial_scale": scale, "pooled_size": (width, height)}
    inputs = [images, arguments[None, None]]
    (got,), _ = run_described(dml.RoiPooling, inputs, fields, [expected], device_named(device))
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("seed", range(12))
def test_columns(seed, device):
    """Of images: with volumes ONNX Runtime 1.32 differs from the reference of the onnx package."""
    rng = np.random.default_rng(seed)
    block, strides, dilations = rng.integers(1, 4, (3, 2))
    pads = rng.integers(0, 3, 4)
    image = (block - 1) * dilations + 1 + rng.integers(0, 4, 2)
    span = image + pads[:2] + pads[2:] - (block - 1) * dilations - 1
    x = rng.normal(size=(2, 3 * block.prod(), (span // strides + 1).prod())).astype("f4")
    attributes = {
        name: value.tolist()
        for name, value in (("strides", strides), ("dilations", dilations), ("pads", pads))
    }
    expected = run_node("Col2Im", [x, image, block], attributes)
    kind, inputs, fields = columns([x, image, block], attributes)
    (got,), _ = run_described(kind, inputs, fields, [expected], device_named(device))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
