"""The node tests of the `onnx` package through computed operators: a judge from outside.

A node becomes a descriptor by a small mapping (`onnx_operators`, `onnx_mappings`).
"""

import numpy as np
import pytest
from onnx_mappings import FURTHER, FURTHER_DIFFERENT, integer_convolution, quantized_convolution
from onnx_nodes import attributes_of, node_cases
from onnx_operators import (
    batch_normalization,
    binary,
    clip,
    convolution,
    gemm,
    gru_attributes,
    instance_normalization,
    is_infinity,
    layer,
    layer_normalization,
    leaky_relu,
    linear,
    lp_normalization,
    lrn,
    lstm_attributes,
    matmul,
    modulus,
    mvn,
    pooling,
    position,
    reduce,
    reduce_axis,
    running,
    shift,
    unary,
    with_defaults,
)

import anydml as dml
from support.computed import NAMES, device_named
from support.described import run_described

pytest.importorskip("onnx")

MAPPING = {
    **{
        name: unary(getattr(dml, f"ElementWise{name}"))
        for name in (
            "Abs",
            "Acos",
            "Acosh",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "Ceil",
            "Cos",
            "Cosh",
            "Erf",
            "Exp",
            "Floor",
            "Log",
            "Sign",
            "Sin",
            "Sinh",
            "Sqrt",
            "Tan",
        )
    },
    "Neg": unary(dml.ElementWiseNegate),
    "Reciprocal": unary(dml.ElementWiseRecip),
    "IsNaN": unary(dml.ElementWiseIsNan),
    "IsInf": is_infinity,
    "Round": unary(dml.ElementWiseRound, rounding_mode="HALVES_TO_NEAREST_EVEN"),
    "BitwiseNot": unary(dml.ElementWiseBitNot),
    "Not": unary(dml.ElementWiseLogicalNot),
    "And": binary(dml.ElementWiseLogicalAnd),
    "Or": binary(dml.ElementWiseLogicalOr),
    "Xor": binary(dml.ElementWiseLogicalXor),
    "Equal": binary(dml.ElementWiseLogicalEquals),
    "Greater": binary(dml.ElementWiseLogicalGreaterThan),
    "GreaterOrEqual": binary(dml.ElementWiseLogicalGreaterThanOrEqual),
    "Less": binary(dml.ElementWiseLogicalLessThan),
    "LessOrEqual": binary(dml.ElementWiseLogicalLessThanOrEqual),
    "BitwiseAnd": binary(dml.ElementWiseBitAnd),
    "BitwiseOr": binary(dml.ElementWiseBitOr),
    "BitwiseXor": binary(dml.ElementWiseBitXor),
    "BitShift": shift,
    "Mod": modulus,
    "Pow": binary(dml.ElementWisePow),
    "PRelu": binary(dml.ActivationParameterizedRelu),
    "Where": binary(dml.ElementWiseIf),
    "QuantizeLinear": linear(dml.ElementWiseQuantizeLinear),
    "DequantizeLinear": linear(dml.ElementWiseDequantizeLinear),
    "Elu": with_defaults(dml.ActivationElu, alpha=1.0),
    "Celu": with_defaults(dml.ActivationCelu, alpha=1.0),
    "Selu": with_defaults(
        dml.ActivationScaledElu, alpha=1.6732632423543772, gamma=1.0507009873554805
    ),
    "Softplus": with_defaults(dml.ActivationSoftplus, steepness=1.0),
    "Softsign": unary(dml.ActivationSoftsign),
    "HardSigmoid": with_defaults(dml.ActivationHardSigmoid, alpha=0.2, beta=0.5),
    "HardSwish": with_defaults(dml.ActivationHardSwish, alpha=1 / 6, beta=0.5),
    "Swish": lambda inputs, attributes: (
        dml.ActivationSwish,
        inputs,
        {"sigmoid_input_scale": attributes.get("alpha", 1.0)},
    ),
    "ThresholdedRelu": with_defaults(dml.ActivationThresholdedRelu, alpha=1.0),
    "Shrink": lambda inputs, attributes: (
        dml.ActivationShrink,
        inputs,
        {"bias": attributes.get("bias", 0.0), "threshold": attributes.get("lambd", 0.5)},
    ),
    "Add": binary(dml.ElementWiseAdd),
    "Sub": binary(dml.ElementWiseSubtract),
    "Mul": binary(dml.ElementWiseMultiply),
    "Div": binary(dml.ElementWiseDivide),
    "Clip": clip,
    "Relu": unary(dml.ActivationRelu),
    "LeakyRelu": leaky_relu,
    "Sigmoid": unary(dml.ActivationSigmoid),
    "Tanh": unary(dml.ActivationTanh),
    "Softmax": reduce_axis(dml.ActivationSoftmax1),
    "LogSoftmax": reduce_axis(dml.ActivationLogSoftmax1),
    "Hardmax": reduce_axis(dml.ActivationHardmax1),
    "ReduceL1": reduce("L1"),
    "ReduceL2": reduce("L2"),
    "ReduceLogSum": reduce("LOG_SUM"),
    "ReduceLogSumExp": reduce("LOG_SUM_EXP"),
    "ReduceMax": reduce("MAX"),
    "ReduceMean": reduce("AVERAGE"),
    "ReduceMin": reduce("MIN"),
    "ReduceProd": reduce("MULTIPLY"),
    "ReduceSum": reduce("SUM"),
    "ReduceSumSquare": reduce("SUM_SQUARE"),
    "ArgMax": position(dml.ArgMax),
    "ArgMin": position(dml.ArgMin),
    "BatchNormalization": batch_normalization,
    "InstanceNormalization": instance_normalization,
    "LayerNormalization": layer_normalization(True),
    "RMSNormalization": layer_normalization(False),
    "MeanVarianceNormalization": mvn,
    "LpNormalization": lp_normalization,
    "LRN": lrn,
    "RNN": layer(dml.Rnn),
    "GRU": layer(dml.Gru, gru_attributes),
    "LSTM": layer(dml.Lstm, lstm_attributes),
    "CumSum": running(dml.CumulativeSummation, "has_exclusive_sum"),
    "CumProd": running(dml.CumulativeProduct, "has_exclusive_product"),
    "Gemm": gemm,
    "MatMul": matmul,
    "Conv": convolution("FORWARD"),
    "MaxPool": pooling(dml.MaxPooling2),
    "GlobalMaxPool": pooling(dml.MaxPooling2),
    "AveragePool": pooling(dml.AveragePooling1, include_padding=("count_include_pad", False)),
    "GlobalAveragePool": pooling(dml.AveragePooling1, include_padding=("count_include_pad", False)),
    "LpPool": pooling(dml.LpPooling1, p=("p", 2)),
    "ConvTranspose": convolution("BACKWARD"),
    "ConvInteger": integer_convolution,
    "QLinearConv": quantized_convolution,
    **FURTHER,
}


# Where ONNX means something else than DirectML's pages, or its test data does.
DIFFERENT = {
    "test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True": (
        "what ceil_mode adds to the padding is not counted; DirectML has one kind of padding"
    ),
    "test_maxpool_with_argmax_2d_precomputed_strides": "indices in column-major order",
    "test_clip_min_greater_than_max": "CLIP is max(Min, min(x, Max)); ONNX gives Max",
    **dict.fromkeys(
        ("test_div_int8", "test_div_int16"),
        "integers are divided towards zero; the data are of NumPy's division, which rounds down",
    ),
    **FURTHER_DIFFERENT,
}

ROUNDED = {
    "test_averagepool_2d_ceil_last_window_starts_on_pad",
    "test_roialign_aligned_false",
    "test_roialign_aligned_true",
}
"""Cases whose data have 4 digits."""


def describable(case):
    """Without empty arrays and bools, which no descriptor has, and not of a training step."""
    arrays = [np.asarray(array) for arguments, _ in case.data_sets for array in arguments]
    if attributes_of(case).get("training_mode"):
        return False
    return all(array.size and array.dtype != bool for array in arrays)


CASES = [case for case in node_cases(MAPPING) if describable(case)]


def test_the_differences_are_of_cases_that_are_there():
    assert DIFFERENT.keys() | ROUNDED <= {case.name for case in CASES}


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_node(case, device):
    compute = device_named(device)
    if case.name in DIFFERENT:
        pytest.skip(DIFFERENT[case.name])
    (node,) = case.model.graph.node
    for arguments, expected in case.data_sets:
        present = iter(arguments)
        arrays = [np.asarray(next(present)) if name else None for name in node.input]
        kind, inputs, fields = MAPPING[node.op_type](arrays, attributes_of(case))
        results, reference = run_described(kind, inputs, fields, map(np.asarray, expected), compute)
        named_results = [got for name, got in zip(node.output, results, strict=False) if name]
        for result, output in zip(named_results, reference, strict=False):
            # With this attribute the batch comes first.
            got = np.moveaxis(result, 2, 0) if attributes_of(case).get("layout") else result
            near = 1e-4 if case.name in ROUNDED else 5e-7
            np.testing.assert_allclose(got.reshape(output.shape), output, rtol=1e-6, atol=near)
            assert got.dtype.kind == "u" or got.dtype == output.dtype  # indices are unsigned
