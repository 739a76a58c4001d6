"""Gaps of ONNX Runtime on the CPU, and where it differs; tried with 1.32 and with `OLDEST`.

What can be stated as data is here. The rest is computed around the nodes:

- Maxima lose NaN, and are the lowest number where all are -infinity; pooling needs padding that is
  smaller than the window: `OnnxEngine.reduce_window`, `_onnx_namespace._with_nan`, and the guards.
- FLOAT64 is rounded to FLOAT32 on the way to FLOAT16: `_onnx._rounded_to_half`.
- Conversions in a row become one, which rounds or saturates once: `Traced.astype`.
- A signalling NaN to the power of 0 is NaN: `_onnx_arrays.power`.
- Sums and products of integers do not wrap around: `_onnx_arrays._reduced_integers`.
- With a bias, LSTM and GRU lose NaN; DynamicQuantizeLinear loses it too: `_onnx_operators`.
- Products of bytes are added in INT16 on x86 without VNNI: `adds_exactly` of the backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OLDEST: Final = (1, 28)
"""The oldest version of ONNX Runtime that is tested; 1.24 lacks kernels, 1.22 loses NaN, too."""

_FLOATS: Final = "float32 float64"
_INTEGERS: Final = "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
_NUMBERS: Final = f"{_FLOATS} {_INTEGERS}"
_BYTES: Final = f"{_FLOATS} int8 uint8"
_ALL: Final = f"{_NUMBERS} float16 bool"
_SUMMED: Final = f"{_FLOATS} int32 int64"

TYPES: Final[Mapping[str, frozenset[str]]] = {
    name: frozenset(types.split())
    for names, types in {
        "Add Sub Mul Div Abs": _NUMBERS,
        "Less LessOrEqual Greater GreaterOrEqual": _NUMBERS,
        "Equal": f"{_NUMBERS} bool",
        "Neg": f"{_FLOATS} int8 int16 int32 int64",
        "Pow": _SUMMED,
        "Mod Sqrt Exp Log Sin Tanh Ceil Floor Round Softmax": _FLOATS,
        "Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Erf Conv ConvTranspose AveragePool "
        "GlobalAveragePool":
            "float32",
        "IsNaN": f"{_FLOATS} float16",
        "IsInf": _FLOATS,
        "Relu": f"{_FLOATS} int8 int32",
        "Max Min": f"{_FLOATS} int32 int64 uint32 uint64",
        "Clip": f"{_FLOATS} int8 int32 int64 uint8 uint32 uint64",
        "Where": f"{_FLOATS} int32 int64 uint8",
        "BitShift": "uint8 uint32 uint64",
        "BitwiseAnd BitwiseOr BitwiseXor BitwiseNot": _INTEGERS,
        "And Or Xor Not": "bool",
        "ReduceSum ReduceProd CumSum": _SUMMED,
        "ReduceMax ArgMax": f"{_BYTES} int32 int64",
        "MatMul": f"{_SUMMED} uint32 uint64",
        "MaxPool": _BYTES,
        "ConvInteger MatMulInteger QLinearConv QLinearMatMul": "uint8",
        "QuantizeLinear": "float32",
        "DequantizeLinear": "int8 uint8",
        "Pad": f"{_FLOATS} int8 int32 int64 uint8 uint32 uint64 bool",
        "Gather GatherElements Slice Concat Expand Reshape Transpose Cast Identity": _ALL,
        "ScatterElements": _NUMBERS,
    }.items()
    for name in names.split()
}  # fmt: skip
"""The types that ONNX Runtime's CPU takes for each operator in use."""

WIDER: Final = {
    "bool": "uint8 int32",
    "float16": _FLOATS,
    "float32": "float64",
    "int8": "int16 int32 int64",
    "int16": "int32 int64",
    "int32": "int64",
    "uint8": "uint16 int32 uint32 int64",
    "uint16": "int32 uint32 int64",
    "uint32": "int64",
}
WRAPPING: Final = frozenset(
    ("Where", "Add", "Sub", "Mul", "Neg", "CumSum", "Pad", "MatMul", "ScatterElements")
)
"""Operators that give the same bits for signed and unsigned integers."""

MOST_ROWS: Final = 32
"""Most rows of a matrix that is the second factor of a transposed product: ONNX Runtime copies it
each time, and float64 matrices are not prepared, even if they are constant."""

MOST_POOLED: Final = 5
"""The most axes of an array that ONNX Runtime pools."""

DISABLED: Final = ["DivMulFusion", "MatMulScaleFusion", "MatMulIntegerToFloatFusion"]
"""Optimizations that fail on some graphs or numbers; the first and the last round differently."""

FUSIONS: Final = ["ConvMulFusion", "ConvAddFusion"]
"""The options that change the weights of convolutions."""

SETTINGS: Final = {
    "intra_op.allow_spinning": "0",
    "disable_quant_qdq": "1",  # quantized operators round in another way than those around them
    "disable_double_qdq_remover": "1",
}
"""The options of a session."""

COPIES_OF_CONSTANTS: Final = 2
"""ONNX Runtime keeps a copy of weights in the order in which its kernels read them."""
