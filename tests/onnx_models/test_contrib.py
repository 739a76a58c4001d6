"""Operators of com.microsoft against ONNX Runtime, and against NumPy where its CPU lacks them."""

import numpy as np
import onnx.helper as oh
import pytest
from building import FLOAT, UINT8, bytes_of, compare, floats, model_of, one, signed

import anydml as dml

SCALE, ZERO = np.float32(0.5), np.uint8(100)
PAIR = {"xs": np.float32(0.25), "xz": np.uint8(128), "ys": np.float32(0.5), "yz": np.uint8(110)}

CASES = {
    "Gelu": one("Gelu", {"x": floats(0, 3, 4)}),
    "BiasGelu": one("BiasGelu", {"x": floats(0, 3, 4)}, {"b": floats(1, 4)}),
    "QuickGelu": one("QuickGelu", {"x": floats(0, 3, 4)}, alpha=1.5),
    "FusedMatMul": one(
        "FusedMatMul", {"a": floats(0, 2, 5, 3), "b": floats(1, 2, 4, 5)}, transA=1, transB=1,
        alpha=0.5,
    ),
    "FusedMatMul batch": one(
        "FusedMatMul", {"a": floats(0, 5, 2, 3), "b": floats(1, 2, 3, 4)}, transBatchA=1
    ),
    "DynamicQuantizeMatMul": one(
        "DynamicQuantizeMatMul", {"a": floats(0, 3, 8)},
        {"b": bytes_of(1, 8, 4), "s": np.float32([0.25]), "z": np.uint8([120]),
         "bias": floats(2, 4)},
    ),
    "MatMulIntegerToFloat": one(
        "MatMulIntegerToFloat", {"a": bytes_of(0, 2, 3, 8)},
        {"b": bytes_of(1, 8, 4), "as": np.float32(0.5), "bs": floats(2, 4), "az": np.uint8(3),
         "bz": bytes_of(3, 4), "bias": floats(4, 4)},
    ),
    "SkipLayerNormalization": one(
        "SkipLayerNormalization", {"x": floats(0, 2, 3, 8), "s": floats(1, 2, 3, 8)},
        {"g": floats(2, 8), "b": floats(3, 8), "bias": floats(4, 8)}, outputs=4,
    ),
    "SkipSimplifiedLayerNormalization": one(
        "SkipSimplifiedLayerNormalization", {"x": floats(0, 2, 3, 8), "s": floats(1, 2, 3, 8)},
        {"g": floats(2, 8)},
    ),
    "QuantizeLinear": one(
        "QuantizeLinear", {"x": 40 * floats(0, 3, 4)}, {"s": SCALE, "z": ZERO}, UINT8
    ),
    "DequantizeLinear": one(
        "DequantizeLinear", {"x": bytes_of(0, 3, 4)}, {"s": SCALE, "z": ZERO}
    ),
    "QLinearSigmoid": one(
        "QLinearSigmoid", {"x": bytes_of(0, 3, 40)},
        {"s": np.float32(2**-5), "z": np.uint8(128), "t": np.float32(2**-8), "w": np.uint8(0)},
        UINT8,
    ),
    "QLinearAdd": one(
        "QLinearAdd", {"x": bytes_of(0, 2, 3, 4), "u": bytes_of(1, 3, 1)}, {**PAIR, "t": SCALE,
        "v": ZERO}, UINT8, order=["x", "xs", "xz", "u", "ys", "yz", "t", "v"],
    ),
    "QLinearAveragePool": one(
        "QLinearAveragePool", {"x": bytes_of(0, 1, 2, 5, 6)}, PAIR, UINT8, kernel_shape=[2, 3],
        strides=[1, 2],
    ),
    "QLinearGlobalAveragePool last": one(
        "QLinearGlobalAveragePool", {"x": bytes_of(0, 1, 5, 6, 2)}, PAIR, UINT8, channels_last=1
    ),
    "QLinearConcat": one(
        "QLinearConcat", {"x": bytes_of(0, 2, 3), "u": bytes_of(1, 2, 2)}, {**PAIR, "t": SCALE,
        "v": ZERO}, UINT8, axis=1,
        order=["t", "v", "x", "xs", "xz", "u", "ys", "yz"],
    ),
    "MultiHeadAttention": one(
        "MultiHeadAttention", {"q": floats(0, 2, 3, 8), "k": floats(1, 2, 5, 8),
        "v": floats(2, 2, 5, 8)}, {"bias": floats(3, 24)}, num_heads=2,
    ),
    "MultiHeadAttention lengths": one(
        "MultiHeadAttention", {"q": floats(0, 2, 3, 8), "k": floats(1, 2, 5, 8),
        "v": floats(2, 2, 5, 8)}, {"bias": floats(3, 24), "mask": np.int32([3, 5])}, num_heads=2,
    ),
    "MultiHeadAttention past": one(
        "MultiHeadAttention", {"q": floats(0, 2, 3, 8), "k": floats(1, 2, 3, 8),
        "v": floats(2, 2, 3, 8), "pk": floats(3, 2, 2, 4, 4), "pv": floats(4, 2, 2, 4, 4)},
        {"m": np.int32([[1] * 6 + [0], [1] * 5 + [0] * 2])}, num_heads=2, outputs=3, middle=True,
        order=["q", "k", "v", "", "m", "", "pk", "pv"],
    ),
    "MatMulNBits": one(
        "MatMulNBits", {"a": floats(0, 2, 3, 64)},
        {"b": bytes_of(1, 5, 2, 16), "s": floats(2, 10)}, K=64, N=5, bits=4, block_size=32,
    ),
    "MatMulNBits zero points": one(
        "MatMulNBits", {"a": floats(0, 3, 96)},
        {"b": bytes_of(1, 5, 3, 16), "s": floats(2, 15), "z": bytes_of(3, 10)}, K=96, N=5, bits=4,
        block_size=32,
    ),
    **{
        f"SkipLayerNormalization {name}": one(
            "SkipLayerNormalization", {"x": floats(0, *shape), "s": floats(1, *skip)},
            {name: floats(i, 8) for i, name in enumerate(order, 2) if name},
            order=["x", "s", *order], epsilon=0.1,
        )
        for name, shape, skip, order in (
            ("one skip", (2, 3, 8), (1, 3, 8), ("g", "b")),
            ("skip of rank 2", (2, 3, 8), (3, 8), ("g", "b")),
            ("rank 2", (3, 8), (3, 8), ("g", "b")),
            ("no beta", (2, 3, 8), (2, 3, 8), ("g",)),
            ("no beta, a bias", (2, 3, 8), (2, 3, 8), ("g", "", "bias")),
        )
    },
    "SkipSimplifiedLayerNormalization bias": one(
        "SkipSimplifiedLayerNormalization", {"x": floats(0, 2, 3, 8), "s": floats(1, 2, 3, 8)},
        {"g": floats(2, 8), "b": floats(3, 8)}, outputs=4,
    ),
    "FusedMatMul ranks": one("FusedMatMul", {"a": floats(0, 3, 4), "b": floats(1, 2, 4, 5)}),
    "FusedMatMul batches": one(
        "FusedMatMul", {"a": floats(0, 4, 2, 3), "b": floats(1, 5, 2, 4)}, transBatchA=1,
        transBatchB=1, transA=1, transB=1,
    ),
    "MatMulNBits 8 bits": one(
        "MatMulNBits", {"a": floats(0, 2, 64)},
        {"b": bytes_of(1, 5, 2, 32), "s": floats(2, 10), "z": bytes_of(3, 10)}, K=64, N=5, bits=8,
        block_size=32,
    ),
    "DynamicQuantizeMatMul columns": one(
        "DynamicQuantizeMatMul", {"a": floats(0, 2, 3, 8)},
        {"b": bytes_of(1, 8, 4), "s": floats(2, 4)},
    ),
    "MatMulIntegerToFloat signed": one(
        "MatMulIntegerToFloat", {"a": bytes_of(0, 3, 8)},
        {"b": signed(1, 8, 4), "as": np.float32(0.5), "bs": np.float32(0.25)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_an_operator_gives_what_onnx_runtime_gives(name):
    model, inputs = CASES[name]
    kind = model.graph.output[0].type.tensor_type.elem_type
    # The quotient of a quantization may be half way, where the two round differently.
    read = compare(model, inputs, atol=1 if kind == UINT8 else 1e-4)
    assert {item.place for item in read.nodes} == {"graph"}


LEFT_TO_THE_CPU = {
    "mean": one(
        "SkipLayerNormalization", {"x": floats(0, 2, 3, 8), "s": floats(1, 2, 3, 8)},
        {"g": floats(2, 8), "b": floats(3, 8)}, outputs=3, middle=True,
    ),
    "2 bits": one(
        "MatMulNBits", {"a": floats(0, 2, 64)}, {"b": bytes_of(1, 5, 2, 8), "s": floats(2, 10)},
        K=64, N=5, bits=2, block_size=32,
    ),
    "zero points that are floats": one(
        "MatMulNBits", {"a": floats(0, 2, 64)},
        {"b": bytes_of(1, 5, 2, 16), "s": floats(2, 10), "z": floats(3, 10)}, K=64, N=5, bits=4,
        block_size=32,
    ),
}  # fmt: skip


@pytest.mark.parametrize("reason", LEFT_TO_THE_CPU)
def test_forms_without_a_kernel_run_on_the_cpu(reason):
    (node,) = compare(*LEFT_TO_THE_CPU[reason], atol=1e-4).nodes
    assert node.place == "cpu"
    assert reason in node.reason


def run(operator, *arrays, **attributes):
    inputs = {f"x{i}": array for i, array in enumerate(arrays)}
    model, inputs = one(operator, inputs, **attributes)
    return dml.read_onnx(model).compile(dml.Device("cpu"))(**inputs)["y0"]


def gelu(x):
    from math import erf, sqrt

    return np.vectorize(lambda v: v / 2 * (1 + erf(v / sqrt(2))))(x.astype(float))


def test_operators_that_the_cpu_of_onnx_runtime_lacks():
    x, b, s = floats(0, 2, 3, 8), floats(1, 8), floats(2, 2, 3, 8)
    np.testing.assert_allclose(run("BiasAdd", x, b, s), x + b + s, rtol=1e-6, atol=1e-6)
    left, right = np.split(x + b, 2, axis=-1)
    expected = left * gelu(right)
    np.testing.assert_allclose(run("BiasSplitGelu", x, b), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run("FastGelu", x, b), gelu(x + b), rtol=1e-5, atol=1e-6)
    query, key, value = (floats(seed, 2, 3, 8) for seed in (5, 6, 7))
    packed = np.stack([a.reshape(2, 3, 2, 4) for a in (query, key, value)], axis=3)
    expected = run("MultiHeadAttention", query, key, value, num_heads=2)
    found = run("MultiHeadAttention", packed, num_heads=2)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
    image, weights = floats(3, 1, 5, 6, 2), floats(4, 3, 3, 3, 2)
    moved = [np.moveaxis(array, -1, 1).copy() for array in (image, weights)]
    graph = model_of([oh.make_node("Conv", ["x0", "x1"], ["y0"], pads=[1, 1, 1, 1])],
                     {"x0": [1, 2, 5, 6], "x1": [3, 2, 3, 3]}, {"y0": FLOAT})  # fmt: skip
    results = dml.read_onnx(graph).compile(dml.Device("cpu"))
    expected = results(x0=moved[0], x1=moved[1])["y0"]
    found = run("NhwcConv", image, weights, pads=[1, 1, 1, 1])
    np.testing.assert_allclose(found, np.moveaxis(expected, 1, -1), rtol=1e-5, atol=1e-5)
