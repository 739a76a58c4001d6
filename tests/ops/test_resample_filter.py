"""The filter of RESAMPLE3, against its definition as a matrix and against ONNX Runtime."""

import tracemalloc

import numpy as np
import pytest

import anydml as dml
from anydml.core.tolerance import first_difference
from support.computed import NAMES, device_named

RNG = np.random.default_rng(0)


def row(size, count, scale, start=0.5, end=-0.5, data_type="FLOAT32"):
    return dml.Resample3(
        input_tensor=dml.TensorDesc(data_type, (size,)),
        output_tensor=dml.TensorDesc(data_type, (count,)),
        interpolation_mode="LINEAR", rounding_direction="DECREASING", antialiased=True,
        scales=[scale], input_pixel_offsets=[start], output_pixel_offsets=[end],
    )  # fmt: skip


def compiled(desc, device="cpu"):
    return device_named(device).create_operator(desc).compile()


def weights(size, count, scale, start, end):
    """Of each input element in each output element."""
    scale, start, end = np.float32([scale, start, end])
    with np.errstate(over="ignore"):
        at = ((np.arange(count, dtype=np.float32) - end) / scale - start).astype(np.float64)
    reach = max(1.0, 1 / float(scale))
    found = np.maximum(1 - np.abs(np.arange(size) - at[:, None]) / reach, 0)
    nearest = np.clip(at, 0, size - 1)
    found = np.where(found.any(1, keepdims=True), found, np.arange(size) == nearest[:, None])
    if scale >= 1:  # positions beyond an edge are on the edge
        found = np.maximum(1 - np.abs(np.arange(size) - nearest[:, None]), 0)
    return found / found.sum(1, keepdims=True)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize(
    "place",
    [
        (8, 2, 1 / 4, 0.5, -0.5),
        (8, 5, 2 / 3, 0.5, -0.5),
        (9, 9, 0.99, 0.5, -0.5),
        (9, 4, 1.5, 0.5, -0.5),
        (8, 1, 1 / 4, 0.5, 0.5),  # a position outside, whose filter reaches into the input
        (8, 1, 1 / 4, 0.0, 3.0),  # one whose filter does not
        (8, 9, 1 / 4, 0.0, 0.0),
        (5, 7, 1e-30, 0.5, -0.5),
        (5, 7, 1e-30, 0.5, 3.0),
        (5, 4, 2.0**-140, 0.0, 0.0),
        (1, 3, 1 / 3, 0.5, -0.5),
        (3001, 10, 1 / 300, 0.5, -0.5),
        (300, 2000, 1 / 600, 0.5, -0.5),
    ],
    ids=str,
)
def test_the_weights_of_the_filter(place, device):
    size, _, scale, *_ = place
    if device == "xla" and scale < float(np.finfo(np.float32).smallest_normal):
        pytest.skip("a denormal number")
    x = RNG.normal(size=size).astype(np.float32)
    got = compiled(row(*place), device)(x)
    wide, matrix = x.astype(np.float64), weights(*place)
    where = first_difference(got, matrix @ wide, matrix @ np.abs(wide), dml.Resample3.TOLERANCE)
    assert where is None, (got[where], (matrix @ wide)[where])


def test_a_position_before_the_first_element():
    got = compiled(row(8, 1, 1 / 4, 0.5, 0.5))(np.eye(1, 8, dtype=np.float32)[0])
    assert got.tolist() == [0.75]


def test_elements_of_weight_0_are_ignored():
    x = np.float32([np.inf, 1, 1, 1, np.nan])
    assert compiled(row(5, 1, 0.5, 0.0, -1.0))(x).tolist() == [1]


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric"])
@pytest.mark.parametrize("scale", [0.1, 0.3, 0.5, 0.6, 0.9, 1.0, 1.7])
def test_onnx_runtime_has_the_same_filter(scale, mode):
    """With `exclude_outside`, as PyTorch has it."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    helper, size = onnx.helper, 20
    node = helper.make_node(
        "Resize", ["x", "", "scales"], ["y"], mode="linear", antialias=1, exclude_outside=1,
        coordinate_transformation_mode=mode,
    )  # fmt: skip
    tensors = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 1, 1, n])
        for name, n in (("x", size), ("y", None))
    ]
    scales = helper.make_tensor("scales", onnx.TensorProto.FLOAT, [4], [1, 1, 1, scale])
    graph = helper.make_graph([node], "filter", tensors[:1], tensors[1:], [scales])
    opset = [helper.make_opsetid("", 19)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    session = runtime.InferenceSession(model.SerializeToString())
    x = RNG.random((1, 1, 1, size), np.float32)
    (expected,) = session.run(None, {"x": x})
    offsets = (0.5, -0.5) if mode == "half_pixel" else (0.0, 0.0)
    got = compiled(row(size, expected.size, scale, *offsets))(x.ravel())
    np.testing.assert_allclose(got, expected.ravel(), rtol=2e-6)


@pytest.mark.parametrize("case", [(100_000, 100, 1e-3), (1_000, 20_000, 1e-30)], ids=str)
def test_memory_of_many_samples(case):
    """It is in proportion to the elements, not to the samples."""
    call = compiled(row(*case))
    x, y = (np.ones(n, np.float32) for n in case[:2])
    tracemalloc.start()
    call.dispatch(InputTensor=x, OutputTensor=y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak <= call.working_nbytes
    assert (y == 1).all()


def test_xla_compiles_the_filter_as_a_loop():
    """The program is as long for 40 as for 40,000 elements."""
    jax = pytest.importorskip("jax")
    from anydml.engines._jax import JaxEngine, x64

    def length(size):
        attributes = row(size, 10, 10 / size).attributes()
        with x64():
            traced = jax.make_jaxpr(lambda x: dml.Resample3.compute(JaxEngine(), x, **attributes))(
                jax.ShapeDtypeStruct((size,), np.float32)
            )
        return str(traced.jaxpr).count(" = ")

    assert length(40) == length(40_000) < 100
