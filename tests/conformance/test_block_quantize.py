"""Quantization in blocks against ONNX's node tests and ONNX Runtime, and four-bit elements."""

import dataclasses
import json
from itertools import product

import numpy as np
import pytest
from onnx_nodes import attributes_of, node_cases

import anydml as dml
from anydml.models.check import model_from_text
from anydml.models.run import run_model
from support.computed import NAMES, bindings, device_named

T = dml.TensorDesc
KINDS = {"QuantizeLinear": dml.Quantize, "DequantizeLinear": dml.Dequantize}
FOUR_BITS = {21: "UINT4", 22: "INT4"}
"""ONNX's numbers of types."""


def stored(value):
    """A value of a node test as data type, sizes and array; four-bit elements as their bytes."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return dml.DataType.from_numpy(array.dtype).suffix, array.shape, array
    if value.data_type not in FOUR_BITS:
        pytest.skip(f"DirectML has no type {value.data_type}")
    octets = value.raw_data or bytes(value.int32_data)
    array = np.frombuffer(octets, np.uint8)
    return FOUR_BITS[value.data_type], tuple(value.dims), array


def accepted(kind, info, data_type):
    if dml.DataType[data_type] not in kind.SUPPORT[-1].tensors[info].data_types:
        pytest.skip(f"{kind.NAME} has no {data_type}")
    return data_type


CASES = node_cases(KINDS)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_node(case, device):
    (node,) = case.model.graph.node
    kind, axis = KINDS[node.op_type], attributes_of(case).get("axis", 1)
    if not case.data_sets[0][1]:
        pytest.skip("no data")
    for arguments, (reference,) in case.data_sets:
        values = [*map(stored, arguments)]
        made_type, made_sizes, expected = stored(reference)
        rank = len(values[0][1])
        tensors, arrays = [], []
        for data_type, given_sizes, array in values:
            sizes = given_sizes
            if tensors and len(sizes) < 2:  # one value, or one for each place on the axis
                (count,) = given_sizes or (1,)
                sizes = [count if i == axis % rank else 1 for i in range(rank)]
            info = "QuantizationTensors" if tensors else "InputTensor"
            tensors.append(T(accepted(kind, info, data_type), sizes))
            stored_as = tensors[-1].storage
            arrays.append(array.reshape(stored_as.sizes))
        desc = kind(
            input_tensor=tensors[0], quantization_tensors=tensors[1:],
            quantization_type=("SCALE", "SCALE_ZERO_POINT")[len(tensors) - 2],
            output_tensor=T(accepted(kind, "OutputTensor", made_type), made_sizes),
        )  # fmt: skip
        compiled = device_named(device).create_operator(desc).compile()
        result = compiled(**bindings(desc, arrays))
        np.testing.assert_array_equal(result, expected.reshape(result.shape))


def run_onnx_runtime(operator, arrays, types, sizes, **attributes):
    """What ONNX Runtime's QuantizeLinear or DequantizeLinear of opset 21 gives."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    helper, kinds = onnx.helper, onnx.TensorProto
    names = [f"x{i}" for i in range(len(arrays))]
    constants = [
        helper.make_tensor(name, getattr(kinds, kind), size, array.tobytes(), raw=True)
        for name, array, kind, size in zip(names, arrays, types, sizes, strict=True)
    ]
    node = helper.make_node(operator, names, ["y"], **attributes)
    graph = helper.make_graph([node], "one", [], [onnx.ValueInfoProto(name="y")], constants)
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (value,) = session.run_with_ort_values(["y"], {})
    return value


@pytest.mark.parametrize("block", [1, 2, 6])
@pytest.mark.parametrize("data_type", ["INT8", "UINT8", "INT4", "UINT4"])
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_as_onnx_runtime(axis, data_type, block):
    """Elements of every kind dequantized; four-bit operands are the same bytes on both sides."""
    rng = np.random.default_rng(5)
    sizes, scales = [6, 6], [6, 6]
    scales[axis] //= block
    x, zero = (T(data_type, size) for size in (sizes, scales))
    arrays = [
        rng.integers(0, 256, x.storage.sizes, np.uint8),
        rng.normal(size=scales).astype(np.float32),
        rng.integers(0, 256, zero.storage.sizes, np.uint8),
    ]
    desc = dml.Dequantize(
        input_tensor=x, quantization_type="SCALE_ZERO_POINT",
        quantization_tensors=[T("FLOAT32", scales), zero], output_tensor=T("FLOAT32", sizes),
    )  # fmt: skip
    views = [a.view(np.int8) if a.dtype == np.uint8 and data_type == "INT8" else a for a in arrays]
    got = dml.Device("cpu").create_operator(desc).compile()(**bindings(desc, views))
    value = run_onnx_runtime(
        "DequantizeLinear", arrays, (data_type, "FLOAT", data_type), (sizes, scales, scales),
        axis=axis, block_size=block,
    )  # fmt: skip
    np.testing.assert_array_equal(got, value.numpy())


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize(
    ("data_type", "low", "high"),
    [("INT8", -128, 127), ("UINT8", 0, 255), ("INT4", -8, 7), ("UINT4", 0, 15)],
)
def test_special_values(data_type, low, high, device):
    """Halves to even, saturating at both ends, NaN as 0."""
    values = [np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, -1.5, 1e30, -1e30, low - 1, high + 1, 3]
    expected = [0, high, low, 0, 2, 2, 0, max(low, -2), high, low, low, high, 3]
    x, quantized = T("FLOAT32", (13,)), T(data_type, (13,))
    desc = dml.Quantize(
        input_tensor=x, quantization_type="SCALE", quantization_tensors=[T("FLOAT32", (1,))],
        output_tensor=quantized,
    )  # fmt: skip
    compiled = device_named(device).create_operator(desc).compile()
    got = compiled(np.array(values, np.float32), [np.ones(1, np.float32)])
    assert elements(got, quantized) == expected


def elements(array, tensor):
    """A list of the elements of a packed tensor."""
    if tensor.data_type.bits == 8:
        return array.ravel().tolist()
    signed = tensor.data_type is dml.DataType.INT4
    low_first = [n for octet in array.tolist() for n in (octet & 15, octet >> 4)]
    return [n - 16 if signed and n > 7 else n for n in low_first][: tensor.element_count]


@pytest.mark.parametrize(
    "device", ["cpu", "reference", pytest.param("xla", marks=pytest.mark.slow)]
)
def test_every_four_bit_element(device):
    """From floats and back, through bytes, of each type and an odd number of elements."""
    compute = device_named(device)
    for data_type, first in (("UINT4", 0), ("INT4", -8)):
        values = np.arange(first, first + 15, dtype=np.float32).reshape(5, 3)
        floats, ints, one = T("FLOAT32", (5, 3)), T(data_type, (5, 3)), [T("FLOAT32", (1, 1))]
        arguments = {"quantization_type": "SCALE", "quantization_tensors": one}
        forward = dml.Quantize(input_tensor=floats, output_tensor=ints, **arguments)
        restored = dml.Dequantize(input_tensor=ints, output_tensor=floats, **arguments)
        scale = [np.ones((1, 1), np.float32)]
        octets = compute.create_operator(forward).compile()(values, scale)
        assert (octets.dtype, octets.shape) == (np.uint8, (8,))
        assert elements(octets, ints) == values.ravel().tolist()
        assert octets[7] < 16  # what fills the last byte
        for bound in (octets, bytes(octets)):
            result = compute.create_operator(restored).compile()(bound, scale)
            np.testing.assert_array_equal(result, values)


@pytest.mark.parametrize("device", NAMES)
def test_four_bit_strides(device):
    """Rows that begin at whole bytes, and repeated rows, as ONNX Runtime describes them."""
    rng = np.random.default_rng(2)
    octets = rng.integers(0, 256, 6, np.uint8)
    rows = [[octets[2 * i] & 15, octets[2 * i] >> 4, octets[2 * i + 1] & 15] for i in range(3)]
    x = rng.integers(0, 256, 18, np.uint8)
    data = np.array(elements(x, T("UINT4", (2, 3, 6)))).reshape(2, 3, 6)
    desc = dml.Dequantize(
        input_tensor=T("UINT4", (2, 3, 6)), quantization_type="SCALE_ZERO_POINT",
        quantization_tensors=[T("FLOAT16", (2, 3, 3)), T("UINT4", (2, 3, 3), (0, 4, 1))],
        output_tensor=T("FLOAT16", (2, 3, 6)),
    )  # fmt: skip
    scale = rng.normal(size=(2, 3, 3)).astype(np.float16)
    compiled = device_named(device).create_operator(desc).compile()
    got = compiled(x, [scale, octets])
    zeros = np.repeat(np.array(rows, np.int32)[None], 2, -1)
    expected = ((data - zeros) * np.repeat(scale, 2, -1)).astype(np.float16)
    np.testing.assert_array_equal(got, expected)


def test_four_bit_outputs_are_packed():
    desc = dml.Quantize(
        input_tensor=T("FLOAT32", (2, 3)), quantization_type="SCALE",
        quantization_tensors=[T("FLOAT32", (1, 3))], output_tensor=T("INT4", (2, 3), (4, 1)),
    )  # fmt: skip
    (found,) = dml.Device("cpu").check(desc)
    assert str(found) == (
        "QUANTIZE.OutputTensor.Strides: expected (3, 1), or none (four-bit outputs are packed), "
        "got (4, 1)"
    )
    packed = dataclasses.replace(desc, output_tensor=T("INT4", (2, 3), (3, 1)))
    assert not dml.Device("cpu").check(packed)


def test_four_bit_bindings_that_do_not_fit():
    tensor = T("UINT4", (3, 3))
    desc = dml.Dequantize(
        input_tensor=tensor, quantization_type="SCALE",
        quantization_tensors=[T("FLOAT32", (1, 1))], output_tensor=T("FLOAT32", (3, 3)),
    )  # fmt: skip
    compiled = dml.Device("cpu").create_operator(desc).compile()
    for wrong in (np.zeros((3, 3), np.uint8), np.zeros(4, np.uint8), np.zeros(5, np.float32)):
        with pytest.raises(dml.BindingError, match="InputTensor: expected"):
            compiled(wrong, [np.ones((1, 1), np.float32)])
    assert compiled(np.zeros(8, np.uint8), [np.ones((1, 1), np.float32)]).shape == (3, 3)


@pytest.mark.parametrize("device", NAMES)
def test_four_bits_in_graphs(device):
    """Constants, inputs, outputs and edges of four-bit types connect bytes."""
    graph = dml.GraphBuilder()
    x = graph.input("x", T("FLOAT32", (1, 1, 2, 6)))
    scale = graph.constant(np.array([[[[0.5, 1, 2], [1, 1, 4]]]], np.float32))
    arguments = {"quantization_type": "SCALE"}
    y = graph.quantize(x, [scale], output_data_type="INT4", **arguments)
    z = graph.dequantize(y, [scale], **arguments)
    pairs = graph.reinterpret(y, "UINT8", (1, 1, 1, 8))
    compiled = device_named(device).compile_graph(graph.build(y=y, z=z, flat=graph.bit_not(pairs)))
    values = np.arange(-6, 6, dtype=np.float32).reshape(1, 1, 2, 6)
    results = compiled(x=values)
    blocks = np.repeat([[0.5, 1, 2], [1, 1, 4]], 2, -1)
    expected = np.clip(np.rint(values[0, 0] / blocks), -8, 7)
    assert elements(results["y"], T("INT4", (12,))) == expected.ravel().tolist()
    np.testing.assert_array_equal(results["z"][0, 0], expected * blocks)
    np.testing.assert_array_equal(results["flat"].ravel()[:6], ~results["y"])


def test_four_bits_in_models():
    """A resource of bytes is bound to a tensor of four-bit elements."""
    desc = dml.Dequantize(
        input_tensor=T("UINT4", (2, 4)), quantization_type="SCALE",
        quantization_tensors=[T("FLOAT32", (2, 2))], output_tensor=T("FLOAT32", (2, 4)),
    )  # fmt: skip
    resources = {
        "x": {"initialValuesDataType": "UINT8", "initialValues": [0x10, 0x32, 0x54, 0x76]},
        "scale": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 4]},
        "y": {
            "initialValuesDataType": "FLOAT32", "initialValues": {"value": 0, "valueCount": 8},
        },
    }  # fmt: skip
    bound = {"InputTensor": "x", "QuantizationTensors": ["scale"], "OutputTensor": "y"}
    model = {
        "resources": resources,
        "dispatchables": {"d": desc.to_json()},
        "commands": [{"type": "dispatch", "dispatchable": "d", "bindings": bound}],
    }
    results = run_model(model_from_text(json.dumps(model).encode(), "four bits"))
    assert results["y"].tolist() == [[0, 1, 4, 6], [12, 15, 24, 28]]
    assert results["x"].tolist() == [0x10, 0x32, 0x54, 0x76]


def test_each_divisor_is_a_block():
    """Every element has the scale and the zero point of its own block, whatever their sizes."""
    rng = np.random.default_rng(9)
    x = rng.integers(-128, 128, (4, 6), np.int8)
    for scales, zeros in product(product((1, 2, 4), (1, 2, 3, 6)), repeat=2):
        scale = rng.normal(size=scales).astype(np.float32)
        zero = rng.integers(-128, 128, zeros, np.int8)
        desc = dml.Dequantize.with_outputs(
            input_tensor=T.from_array(x), quantization_type="SCALE_ZERO_POINT",
            quantization_tensors=[T.from_array(scale), T.from_array(zero)],
        )  # fmt: skip
        got = dml.Device("cpu").create_operator(desc).compile()(x, [scale, zero])
        for i, j in np.ndindex(4, 6):
            of_scale, of_zero = ((i // (4 // n), j // (6 // m)) for n, m in (scales, zeros))
            expected = np.float32(int(x[i, j]) - int(zero[of_zero])) * scale[of_scale]
            assert got[i, j] == expected
