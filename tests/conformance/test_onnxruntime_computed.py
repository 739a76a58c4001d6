"""ONNX Runtime on special and random values: a judge of what operators make of NaN and infinity.

The node tests of the `onnx` package have ordinary numbers. An operator whose inputs have one type,
and whose attributes may be left out, runs here on pairs of special values and on random ones.
"""

from itertools import product

import numpy as np
import pytest
from test_onnx_computed import MAPPING

from support.computed import NAMES, device_named
from support.described import run_described

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

SPECIAL = [
    np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0, -3.25, 1e-3,
    88.0, -88.0, 1e4, -1e4,
]  # fmt: skip

TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int32)": np.int32,
         "tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(int64)": np.int64,
         "tensor(uint64)": np.uint64}  # fmt: skip

INTEGERS = (np.int32, np.int64)
DIFFERENT = {
    (
        "Sign",
        np.float32,
    ): "the sign of NaN is NaN there, but 0 in float16; the page's formula gives 0",
    ("Shrink", np.int32): "goes through float32 there",
    ("Hardmax", np.float32): "NaN is not the largest there",
    ("Hardmax", np.float16): "NaN is not the largest there",
    ("GlobalMaxPool", np.float32): "NaN is left out there",
    ("GlobalMaxPool", np.float16): "NaN is left out there",
    ("ConvTranspose", np.float32): "padding is not multiplied by infinite weights there",
    ("ConvTranspose", np.float16): "padding is not multiplied by infinite weights there",
    **dict.fromkeys(product(["ReduceL2", "ReduceMean"], INTEGERS), "DirectML has floats only"),
    **dict.fromkeys(
        product(["ReduceL1", "ReduceProd", "ReduceSum", "ReduceSumSquare"], INTEGERS),
        "integers saturate there",
    ),
}
"""What ONNX Runtime computes otherwise, and why."""


def types_of(schema):
    """The types of the first input that the operator has, and kernels may have."""
    return [kind for name, kind in TYPES.items() if name in schema.inputs[0].types]


def is_plain(schema):
    """Whether inputs that must be there have one type, and no attribute must."""
    required = [item for item in schema.inputs if item.option == item.option.Single]
    names = {item.type_str for item in required}
    attributes = any(attribute.required for attribute in schema.attributes.values())
    return 1 <= len(required) <= 2 and len(names) == 1 and not attributes


def schema_of(name):
    return onnx.defs.get_schema(name)


CASES = [
    (name, kind)
    for name in MAPPING
    if is_plain(schema_of(name))
    for kind in types_of(schema_of(name))
]


def values_of(name, kind):
    """One tensor or two: special values against special values, and random ones."""
    count = sum(item.option == item.option.Single for item in schema_of(name).inputs)
    generator = np.random.default_rng(1)
    if np.dtype(kind).kind == "f":
        pairs = [[*pair] for pair in product(SPECIAL, repeat=2)]
        pairs += generator.normal(0, 3, (300, 2)).tolist()
    else:
        limits = np.iinfo(kind)
        special = [limits.min, limits.max, 1, 2, 3, limits.max - 1, 7]  # no division by 0
        pairs = [[*pair] for pair in product(special, repeat=2)]
        pairs += generator.integers(1, 100, (300, 2)).tolist()
    with np.errstate(over="ignore"):
        columns = np.array(pairs, object).T
        return [column.astype(kind).reshape(1, 1, -1, 1) for column in columns[:count]]


def run_node(name, arrays):
    """What ONNX Runtime gives; skips what it has no kernel for."""
    helper = onnx.helper
    element = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
    inputs = [
        helper.make_tensor_value_info(f"x{i}", element, array.shape)
        for i, array in enumerate(arrays)
    ]
    node = helper.make_node(name, [item.name for item in inputs], ["y"])
    graph = helper.make_graph([node], name, inputs, [onnx.ValueInfoProto(name="y")])
    opset = helper.make_opsetid("", schema_of(name).since_version)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = runtime.InferenceSession(model.SerializeToString(), options)
        (result,) = session.run(
            None, {item.name: a for item, a in zip(inputs, arrays, strict=True)}
        )
    except Exception as error:
        pytest.skip(f"{name}: {str(error)[:80]}")
    return result


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize(("name", "kind"), CASES, ids=lambda part: getattr(part, "__name__", part))
def test_special_values(name, kind, device):
    if (name, kind) in DIFFERENT:
        pytest.skip(DIFFERENT[name, kind])
    arrays = values_of(name, kind)
    expected = run_node(name, arrays)
    operator, inputs, fields = MAPPING[name](arrays, {})
    (result, *_), (reference,) = run_described(
        operator, inputs, fields, [expected], device_named(device)
    )
    result = result.reshape(reference.shape)
    relative, absolute = (2e-3, 1e-3) if kind is np.float16 else (1e-5, 1e-6)
    near = np.isclose(result, reference, relative, absolute, equal_nan=True)
    assert near.all(), [(a[~near], result[~near], reference[~near]) for a in arrays]
