"""One row for each ONNX operator for which ONNX Runtime's DirectML provider has a kernel.

Versions, types and constant inputs are those of the provider's registrations. A row says how a node
becomes DirectML operators; `lower` has the functions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from anydml.core.errors import ModelError
from anydml.onnx.contrib import CONTRIB, DOMAIN, OTHERS
from anydml.onnx.lower import (
    elementwise,
    matrices,
    normalization,
    quantized,
    rearrange,
    recurrent,
    resize,
    select,
    windows,
)
from anydml.onnx.lower.elementwise import activation, binary, softmax, unary, variadic
from anydml.onnx.lower.node import Lower
from anydml.onnx.lower.select import reduce
from anydml.onnx.nodes import Node
from anydml.onnx.rows import Row, Types
from anydml.onnx.types import ALL, FLOATS, NUMBERS, Value

_T: Final[Types] = {1: f"T={FLOATS}"}
_ANY: Final[Types] = {1: f"T={ALL}"}
_ANY_AND_INDEX: Final[Types] = {1: f"T={ALL}; Tind=i32 i64"}
_BOOL: Final[Types] = {1: "T=bool"}
_COMPARED: Final[Types] = {7: f"T={FLOATS}; T1=bool", 9: f"T={NUMBERS}; T1=bool"}
_COUNTED: Final[Types] = {1: f"T={FLOATS} u32 i32 u64 i64"}
_REDUCED: Final[Types] = {1: f"T={FLOATS}", 18: f"T={FLOATS} u32 i32 u64 i64"}
_EXTREME: Final[Types] = {
    1: f"T={FLOATS}", 12: f"T={NUMBERS}", 18: f"T={FLOATS} u32 i32 u64 i64", 20: f"T={ALL}",
}  # fmt: skip
_INTEGERS: Final[Types] = {1: "T=u8 i8 u16 i16 u32 i32 u64 i64"}
_PAIRS: Final = {1: f"T={NUMBERS}"}
_AXES: Final = {18: (1,)}


def _rows() -> Iterable[Row]:
    def row(
        name: str, versions: str, types: Types, lower: Lower | None, *,
        constants: Mapping[int, Sequence[int]] | None = None, graph: bool | str = True,
        query: Any = None, infer: Any = None,
    ) -> Row:  # fmt: skip
        return Row(name, tuple(map(int, versions.split())), types, lower, constants or {}, graph,
                   query, infer=infer)  # fmt: skip

    return (
        row("Conv", "1 11", _T, windows.convolution("FORWARD")),
        row("ConvTranspose", "1 11", _T, windows.convolution("BACKWARD")),
        row("AveragePool", "7 10 11 19", _T, windows.pooling(
            "AVERAGE_POOLING", "AVERAGE_POOLING1", include_padding=("count_include_pad", False))),
        row("GlobalAveragePool", "1", _T, windows.pooling(
            "AVERAGE_POOLING", globally=True, include_padding=("count_include_pad", False))),
        row("MaxPool", "1 8 10 11 12", {1: f"T={FLOATS}", 8: f"T={FLOATS} u8 i8; I=i64"},
            windows.pooling("MAX_POOLING", "MAX_POOLING2"), query=_max_pool),
        row("GlobalMaxPool", "1", _T, windows.pooling("MAX_POOLING", globally=True)),
        row("LpPool", "2 11 18", _T, windows.pooling("LP_POOLING", "LP_POOLING1", p=("p", 2))),
        row("GlobalLpPool", "2", _T, windows.pooling("LP_POOLING", globally=True, p=("p", 2))),
        row("MaxRoiPool", "1", _T, windows.roi_pool),
        row("RoiAlign", "10 16", {10: f"T1={FLOATS}; T2=i32 i64"}, windows.roi_align),
        row("InstanceNormalization", "6", _T, normalization.instance_normalization),
        row("BatchNormalization", "7 9 14 15", _T, normalization.batch_normalization,
            query=_batch_normalization),
        row("LayerNormalization", "1 17",
            {1: f"T={FLOATS}; U={FLOATS}; V={FLOATS}", 17: f"T={FLOATS}; U=f32"},
            normalization.layer_normalization(True), query=_one_output, infer=_typed_by_scale),
        row("SimplifiedLayerNormalization", "1", {1: f"T={FLOATS}; U={FLOATS}; V={FLOATS}"},
            normalization.layer_normalization(False), query=_one_output, infer=_typed_by_scale),
        row("LRN", "1 13", _T, normalization.local_response),
        row("MeanVarianceNormalization", "1 9 13", _T, normalization.mean_variance),
        row("LpNormalization", "1", _T, normalization.lp_normalization),
        row("RNN", "7 14", _T, recurrent.layer("RNN"), graph=False, query=_layout),
        row("GRU", "7 14", _T, recurrent.layer("GRU"), graph=False, query=_layout),
        row("LSTM", "7 14", _T, recurrent.layer("LSTM"), graph=False, query=_layout),
        row("Split", "2 11 13 18", _ANY, rearrange.split, constants={13: (1,)}),
        row("Transpose", "1 13 21", _ANY, rearrange.transpose),
        row("Concat", "4 11 13", _ANY, rearrange.concat),
        row("Slice", "1 10 11 13", {1: f"T={ALL}", 10: f"T={ALL}; Tind=i32 i64"},
            rearrange.slice_, constants={10: (1, 2, 3, 4)}, query=_slice),
        row("Pad", "2 11 13 18 19 21", _ANY, rearrange.pad,
            constants={11: (1, 2), 18: (1, 2, 3)}, query=_pad),
        row("SpaceToDepth", "1 13", _ANY, rearrange.space_to_depth),
        row("DepthToSpace", "1 11 13", _ANY, rearrange.depth_to_space),
        row("Tile", "6 13", _ANY, rearrange.tile, constants={6: (1,)}),
        row("Expand", "8 13", _ANY, rearrange.expand, constants={8: (1,)}),
        row("ConstantOfShape", "9 21", {9: f"T1=i64; T2={ALL}"}, rearrange.fill,
            constants={9: (0,)}),
        row("Gather", "1 11 13", _ANY_AND_INDEX, select.gather),
        row("GatherElements", "11 13", _ANY_AND_INDEX, select.gather_elements),
        row("GatherND", "11 12 13", _ANY, select.gather_nd),
        row("Scatter", "9 11 13", _ANY_AND_INDEX, select.scatter),
        row("ScatterElements", "11 13 16", _ANY_AND_INDEX, select.scatter, query=_scatter),
        row("ScatterND", "11 13 16", _ANY, select.scatter_nd, query=_scatter),
        row("EyeLike", "9", {9: f"T1={ALL}; T2={ALL}"}, rearrange.eye),
        row("Trilu", "14", _ANY, rearrange.triangle, constants={14: (1,)}),
        row("Col2Im", "18", _ANY, windows.columns, constants={18: (1, 2)}),
        row("Identity", "1 13 14 16 19 21", {1: f"T={ALL}", 14: f"V={ALL}"}, rearrange.copy),
        row("Flatten", "1 9 11 13 21", _ANY, rearrange.copy),
        row("Squeeze", "1 11 13 21", _ANY, rearrange.copy, constants={13: (1,)}),
        row("Unsqueeze", "1 11 13 21", _ANY, rearrange.copy, constants={13: (1,)}),
        row("Reshape", "5 13 14 19 21", _ANY, rearrange.reshape, constants={5: (1,)}),
        row("Sqrt", "6 13", _T, unary("ELEMENT_WISE_SQRT")),
        row("Reciprocal", "6 13", _T, unary("ELEMENT_WISE_RECIP")),
        row("Pow", "7 12 13 15", {
            7: f"T={FLOATS}", 12: f"T=i32 {FLOATS}; T1=u8 i8 u16 i16 u32 i32 {FLOATS}",
        }, elementwise.power),
        row("Exp", "6 13", _T, unary("ELEMENT_WISE_EXP")),
        row("Log", "6 13", _T, unary("ELEMENT_WISE_LOG")),
        row("Abs", "6 13", {6: f"T={FLOATS} i64 i32 i16 i8"}, unary("ELEMENT_WISE_ABS")),
        row("Ceil", "6 13", _T, unary("ELEMENT_WISE_CEIL")),
        row("Floor", "6 13", _T, unary("ELEMENT_WISE_FLOOR")),
        row("Clip", "6 11 12 13", {6: f"T={FLOATS}", 12: f"T={NUMBERS}"}, elementwise.clip,
            constants={11: (1, 2)}),
        row("Add", "7 13 14", _PAIRS, binary("ELEMENT_WISE_ADD")),
        row("Sub", "7 13 14", _PAIRS, binary("ELEMENT_WISE_SUBTRACT")),
        row("Mul", "7 13 14", _PAIRS, binary("ELEMENT_WISE_MULTIPLY")),
        row("Div", "7 13 14", _PAIRS, binary("ELEMENT_WISE_DIVIDE")),
        row("Sum", "6 8 13", _T, variadic("ELEMENT_WISE_ADD"), graph="pair"),
        row("Mean", "6 8 13", _T, variadic("ELEMENT_WISE_MEAN"), graph="pair"),
        row("Max", "6 8 12 13", {6: f"T={FLOATS}", 12: f"T={NUMBERS}"},
            variadic("ELEMENT_WISE_MAX"), graph="pair"),
        row("Min", "6 8 12 13", {6: f"T={FLOATS}", 12: f"T={NUMBERS}"},
            variadic("ELEMENT_WISE_MIN"), graph="pair"),
        row("Cos", "7", _T, unary("ELEMENT_WISE_COS")),
        row("Sin", "7", _T, unary("ELEMENT_WISE_SIN")),
        row("Tan", "7", _T, unary("ELEMENT_WISE_TAN")),
        row("Acos", "7", _T, unary("ELEMENT_WISE_ACOS")),
        row("Asin", "7", _T, unary("ELEMENT_WISE_ASIN")),
        row("Atan", "7", _T, unary("ELEMENT_WISE_ATAN")),
        row("Sinh", "9", _T, unary("ELEMENT_WISE_SINH")),
        row("Cosh", "9", _T, unary("ELEMENT_WISE_COSH")),
        row("Asinh", "9", _T, unary("ELEMENT_WISE_ASINH")),
        row("Acosh", "9", _T, unary("ELEMENT_WISE_ACOSH")),
        row("Atanh", "9", _T, unary("ELEMENT_WISE_ATANH")),
        row("Affine", "1", _T, elementwise.affine),
        row("QuantizeLinear", "10 13 19 21", {
            10: "T1=f32 i32; T2=u8 i8", 19: "T1=f16 f32 i32; T2=u8 i8",
            21: "T1=f16 f32; T2=u4 i4 u8 i8",
        }, quantized.linear("QUANTIZE")),
        row("DequantizeLinear", "10 13 19 21", {
            10: "T=u8 i8 i32", 19: "T1=u8 i8 i32; T2=f16 f32", 21: "T1=u4 i4 u8 i8; T2=f16 f32",
        }, quantized.linear("DEQUANTIZE")),
        row("Sign", "9 13", _PAIRS, unary("ELEMENT_WISE_SIGN")),
        row("IsNaN", "9 13 20", {9: f"T1={FLOATS}; T2=bool"}, unary("ELEMENT_WISE_IS_NAN")),
        row("IsInf", "10 20", {10: "T1=f32; T2=bool"}, elementwise.is_infinity),
        row("Erf", "9 13", _T, unary("ELEMENT_WISE_ERF")),
        row("Where", "9 16", {9: f"B=bool; T={ALL}"}, elementwise.choice),
        row("ReduceSum", "1 11 13", _COUNTED, reduce("SUM"), constants={13: (1,)}),
        row("Einsum", "12", _T, matrices.einsum),
        row("ReduceMean", "1 11 13 18", _REDUCED, reduce("AVERAGE"), constants=_AXES),
        row("ReduceProd", "1 11 13 18", _COUNTED, reduce("MULTIPLY"), constants=_AXES),
        row("ReduceLogSum", "1 11 13 18", _REDUCED, reduce("LOG_SUM"), constants=_AXES),
        row("ReduceLogSumExp", "1 11 13 18", _REDUCED, reduce("LOG_SUM_EXP"), constants=_AXES),
        row("ReduceSumSquare", "1 11 13 18", _COUNTED, reduce("SUM_SQUARE"), constants=_AXES),
        row("ReduceL1", "1 11 13 18", _COUNTED, reduce("L1"), constants=_AXES),
        row("ReduceL2", "1 11 13 18", _REDUCED, reduce("L2"), constants=_AXES),
        row("ReduceMax", "1 11 12 13 18 20", _EXTREME, reduce("MAX"), constants=_AXES),
        row("ReduceMin", "1 11 12 13 18 20", _EXTREME, reduce("MIN"), constants=_AXES),
        row("ArgMax", "1 11 12 13", _PAIRS, select.position("ARGMAX")),
        row("ArgMin", "1 11 12 13", _PAIRS, select.position("ARGMIN")),
        row("Gemm", "7 9 11 13", _T, matrices.gemm),
        row("MatMul", "1 9 13", _T, matrices.matmul),
        row("Neg", "6 13", {6: f"T={FLOATS} i64 i32 i16 i8"}, unary("ELEMENT_WISE_NEGATE")),
        row("Greater", "7 9 13", _COMPARED, binary("ELEMENT_WISE_LOGICAL_GREATER_THAN")),
        row("Less", "7 9 13", _COMPARED, binary("ELEMENT_WISE_LOGICAL_LESS_THAN")),
        row("GreaterOrEqual", "12 16", {12: f"T={NUMBERS}; T1=bool"},
            binary("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL")),
        row("LessOrEqual", "12 16", {12: f"T={NUMBERS}; T1=bool"},
            binary("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL")),
        row("Equal", "7 11 13 19", {7: f"T={FLOATS}; T1=bool", 11: f"T={NUMBERS}; T1=bool"},
            binary("ELEMENT_WISE_LOGICAL_EQUALS")),
        row("Not", "1", _BOOL, unary("ELEMENT_WISE_LOGICAL_NOT")),
        row("And", "7", _BOOL, binary("ELEMENT_WISE_LOGICAL_AND")),
        row("Or", "7", _BOOL, binary("ELEMENT_WISE_LOGICAL_OR")),
        row("Xor", "7", _BOOL, binary("ELEMENT_WISE_LOGICAL_XOR")),
        row("BitwiseAnd", "18", _INTEGERS, binary("ELEMENT_WISE_BIT_AND")),
        row("BitwiseOr", "18", _INTEGERS, binary("ELEMENT_WISE_BIT_OR")),
        row("BitwiseXor", "18", _INTEGERS, binary("ELEMENT_WISE_BIT_XOR")),
        row("BitwiseNot", "18", _INTEGERS, unary("ELEMENT_WISE_BIT_NOT")),
        row("Mod", "10 13", {10: f"T=u8 i8 u16 i16 u32 i32 {FLOATS}"}, elementwise.modulus),
        row("BitShift", "11", {11: "T=u8 u16 u32 u64"}, elementwise.shift),
        row("Round", "11", _T,
            unary("ELEMENT_WISE_ROUND", rounding_mode_="HALVES_TO_NEAREST_EVEN")),
        row("Crop", "1", _T, rearrange.crop, infer=_cropped),
        row("ImageScaler", "1", _T, rearrange.scale_image),
        row("Upsample", "7 9 10", _T, resize.resize, constants={9: (1,)}),
        row("Resize", "10 11 13 18 19", {10: f"T={FLOATS}", 11: f"T1={FLOATS} i8 u8; T2={FLOATS}"},
            resize.resize, constants={10: (1,), 11: (1, 2, 3)}, query=_resize),
        row("Sigmoid", "6 13", _T, activation("Sigmoid")),
        row("HardSigmoid", "6", _T, activation("HardSigmoid")),
        row("Tanh", "6 13", _T, activation("Tanh")),
        row("ScaledTanh", "1", _T, activation("ScaledTanh")),
        row("Relu", "6 13 14", {6: f"T={FLOATS}", 14: f"T={FLOATS} i8 i16 i32"},
            activation("Relu")),
        row("LeakyRelu", "6 16", _T, activation("LeakyRelu")),
        row("PRelu", "7 9 16", {7: f"T={FLOATS}", 9: f"T={FLOATS} i8 i16 i32"},
            binary("ACTIVATION_PARAMETERIZED_RELU")),
        row("ThresholdedRelu", "1 10", _T, activation("ThresholdedRelu")),
        row("Elu", "6", _T, activation("Elu")),
        row("Celu", "12", _T, unary("ACTIVATION_CELU", alpha=1.0)),
        row("Selu", "6", _T, activation("Selu")),
        row("Softmax", "1 11 13", _T, softmax("ACTIVATION_SOFTMAX1")),
        row("LogSoftmax", "1 11 13", _T, softmax("ACTIVATION_LOG_SOFTMAX1")),
        row("Hardmax", "1 11 13", _T, softmax("ACTIVATION_HARDMAX1")),
        row("Softsign", "1", _T, activation("Softsign")),
        row("Softplus", "1", _T, activation("Softplus")),
        row("ParametricSoftplus", "1", _T, activation("ParametricSoftplus")),
        row("Dropout", "7", _T, rearrange.dropout, query=_no_mask),
        row("Shrink", "9", {9: f"T=u8 i8 u16 i16 u32 i32 {FLOATS}"},
            unary("ACTIVATION_SHRINK", bias=0.0, threshold=0.5)),
        row("Cast", "6 9 13 19 21", {6: f"T1={ALL}; T2={ALL}"}, elementwise.cast),
        row("CastLike", "15 19 21", {15: f"T1={ALL}; T2={ALL}"}, elementwise.cast),
        row("TopK", "1 10 11", {1: f"T={NUMBERS}; I=i64"}, select.top_k, constants={10: (1,)}),
        row("OneHot", "9 11", {9: f"T1=u32 i32 u64 i64; T2={ALL}; T3={ALL}"}, select.one_hot,
            constants={9: (1,)}),
        row("NonZero", "9 13", {9: f"T=u8 i8 u16 i16 u32 i32 {FLOATS} bool"}, select.nonzero,
            graph=False),
        row("ReverseSequence", "10", _ANY, rearrange.reverse),
        row("CumSum", "11 14", _COUNTED, rearrange.cumulative_sum, constants={11: (1,)}),
        row("Range", "11", {11: "T=i16 i32 i64 f32"}, rearrange.fill_range,
            constants={11: (0, 1, 2)}),
        row("MaxUnpool", "9 11", {9: f"T1={FLOATS}; T2=i64"}, windows.unpool,
            constants={9: (2,)}),
        row("QLinearConv", "10", {10: "T1=u8 i8; T2=u8 i8; T3=u8 i8; T4=i32"},
            windows.quantized_convolution),
        row("QLinearMatMul", "10 21", {10: "T1=u8 i8; T2=u8 i8; T3=u8 i8"},
            matrices.quantized_product),
        row("MatMulInteger", "10", {10: "T1=i8 u8; T2=i8 u8; T3=i32"}, matrices.integer_product),
        row("ConvInteger", "10", {10: "T1=i8 u8; T2=i8 u8; T3=i32"}, windows.integer_convolution),
        row("DynamicQuantizeLinear", "11", {11: "T1=f32; T2=u8 i8"}, quantized.dynamic),
        # No DirectML operator: written by the CPU, or handled without a tensor's elements.
        row("Shape", "1 13 15 19 21", {1: "T=all; T1=i64"}, None, graph=False),
        row("Size", "1 13 19 21", {1: "T=all; T1=i64"}, None, graph=False),
    )  # fmt: skip


# Support queries: why the provider leaves a node to the CPU, or an empty string.

Operands = Sequence[Value | None]


def _max_pool(node: Node, _: Operands) -> str:
    column = node.attributes.get("storage_order", 0)
    return "column-major indices (storage_order 1)" if column else ""


def _batch_normalization(node: Node, inputs: Operands) -> str:
    if node.attributes.get("training_mode", 0) or sum(map(bool, node.outputs)) > 1:
        return "training_mode 1"
    types = {value.type for value in inputs if value is not None}
    return "parameters of another type than the input" if len(types) > 1 else ""


def _one_output(node: Node, _: Operands) -> str:
    return "more than one output" if any(node.outputs[1:]) else ""


def _layout(node: Node, _: Operands) -> str:
    return "layout 1 (the batch first)" if node.attributes.get("layout", 0) else ""


def _slice(node: Node, _: Operands) -> str:
    return "more than 5 inputs" if len(node.inputs) > 5 else ""


def _pad(node: Node, _: Operands) -> str:
    negative = node.version < 11 and any(n < 0 for n in node.attributes.get("pads", ()))
    return "negative paddings" if negative else ""


def _scatter(node: Node, _: Operands) -> str:
    reduction = node.attributes.get("reduction", "none")
    return f"reduction {reduction}" if reduction != "none" else ""


def _resize(node: Node, _: Operands) -> str:
    attributes = node.attributes
    if attributes.get("mode") == "cubic":
        return "cubic interpolation"
    if attributes.get("exclude_outside", 0):
        return "exclude_outside 1"
    return "extrapolation" if attributes.get("extrapolation_value", 0.0) else ""


# Types and shapes of outputs, for operators of which the `onnx` package has no such version.


def _typed_by_scale(_: Node, inputs: Operands) -> Any:
    x, scale = inputs[:2]
    return [] if x is None or scale is None else [(scale.type, x.shape)]


def _cropped(node: Node, inputs: Operands) -> Any:
    x = inputs[0]
    if x is None or x.sizes is None:
        return []
    *others, height, width = x.sizes
    left, top, right, bottom = node.attributes["border"]
    sizes = node.attributes.get("scale") or (height - top - bottom, width - left - right)
    return [(x.type, (*others, *sizes))]


def _no_mask(node: Node, _: Operands) -> str:
    return "its mask is read" if any(node.outputs[1:]) else ""


ROWS: Final[Mapping[tuple[str, str], Row]] = {
    (row.domain, row.name): row for row in (*_rows(), *CONTRIB)
}
"""The rows by domain and operator."""


def row_of(node: Node) -> Row | None:
    """The row of an operator, whatever its version."""
    return ROWS.get((node.domain, node.operator))


def version_of(row: Row, version: int) -> int | None:
    """The newest version of a row that is not above a version."""
    at = bisect_right(row.versions, version)
    return row.versions[at - 1] if at else None


def formals(node: Node) -> tuple[list[str], list[str]]:
    """The type parameters of inputs and outputs, marked as in `Row.formals`; none if not known."""
    if node.schema is not None:
        return _formals_of(node.schema)
    row = row_of(node)
    if row is not None and row.formals:
        at = row.formals.index("->")
        return list(row.formals[:at]), list(row.formals[at + 1 :])
    known = OTHERS.get(node.operator) if node.domain == DOMAIN else None
    return ([] if known is None else known[0].split()), []


def operand_names(node: Node) -> list[str]:
    """The names of a node's inputs with as many empty ones behind them as kernels expect.

    Some kernels of ai.onnx take an empty name behind the others for an input, and some of
    com.microsoft read an input that is not even listed.
    """
    if node.schema is None:
        return node.inputs + [""] * (len(formals(node)[0]) - len(node.inputs))
    count = max((i + 1 for i, name in enumerate(node.inputs) if name), default=0)
    return node.inputs[:count]


@lru_cache(1024)
def _formals_of(schema: Any) -> tuple[list[str], list[str]]:
    return _marked(schema.inputs), _marked(schema.outputs)


def _marked(parameters: Iterable[Any]) -> list[str]:
    marks = {"Optional": "?", "Variadic": "*"}
    return [f"{item.type_str}{marks.get(item.option.name, '')}" for item in parameters]


def _refuse_missing(node: Node) -> None:
    """Raise if an input that the operator needs has no name: some kernels read it unseen."""
    known = formals(node)[0]
    several = [item for item in known[-1:] if item.endswith("*")]
    least = max((i + 1 for i, item in enumerate(known) if item[-1] not in "?*"), default=0)
    names = node.inputs + [""] * (least - len(node.inputs))
    marks = known + several * (len(names) - len(known))
    problems = [
        f"{node.label}: expected input {i}, got none."
        for i, (name, mark) in enumerate(zip(names, marks, strict=False))
        if not name and not mark.endswith("?")
    ]
    if problems:
        raise ModelError(*problems)


def infer_without_schema(node: Node, inputs: Sequence[Value | None] | None) -> Any:
    """Type and shape of each output of an operator that the `onnx` package does not define.

    Parameters
    ----------
    node : Node
        The node.
    inputs : sequence of Value, or None
        Its inputs; None asks only whether the provider has the operator.

    Returns
    -------
    list of (str, tuple or None), or None
        None for an operator that the `onnx` package defines or that is not known.

    Raises
    ------
    ModelError
        An input is missing, of any operator.
    """
    row = row_of(node)
    known = OTHERS.get(node.operator) if node.domain == DOMAIN else None
    if inputs is None:
        return row is not None or known is not None or (not node.domain and node.operator in HOST)
    _refuse_missing(node)
    if row is None and known is not None:
        return known[1](node, inputs)
    if row is None or node.schema is not None:
        return None
    if row.infer is not None:
        return row.infer(node, inputs)
    first = inputs[0] if inputs else None
    return None if first is None else [(first.type, first.shape)]


HOST: Final = frozenset((
    "If", "Loop", "Scan", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceLength",
    "SequenceErase", "SequenceInsert", "SequenceMap", "SplitToSequence", "ConcatFromSequence",
    "Optional", "OptionalHasElement", "OptionalGetElement",
))  # fmt: skip
"""Operators on sequences and optionals, and control flow: no tensors that DirectML computes."""

SHADERS: Final[Mapping[str, tuple[Sequence[int], Sequence[str]]]] = {
    "DFT": ((17, 20), ("f16", "f32")), "STFT": ((17,), ("f16", "f32")), "GridSample": ((16,), ()),
}  # fmt: skip
"""Operators that are shaders of the provider: their versions, and types of the first input."""


def described_operator(name: str) -> str | None:
    """Describe an operator of ONNX that no DirectML operator stands for; None for others."""
    if name in SHADERS:
        return (
            f"{name} is an operator of ONNX, which ONNX Runtime's DirectML provider computes with "
            "compute shaders of its own."
        )
    row = ROWS.get(("", name)) or ROWS.get(("com.microsoft", name))
    if name in HOST or (row is not None and row.lower is None):
        return f"{name} is an operator of ONNX, which ONNX Runtime computes without DirectML."
    if row is not None:
        return (
            f"{name} is an operator of ONNX, which ONNX Runtime composes from other operators of "
            "DirectML (`anydml check MODEL.onnx` reports on a model)."
        )
    return None
