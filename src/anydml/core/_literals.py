"""Words that public signatures take. Written by write_lists.py."""

from typing import Literal

AxisDirectionName = Literal[
    "INCREASING",
    "DECREASING",
    "DML_AXIS_DIRECTION_INCREASING",
    "DML_AXIS_DIRECTION_DECREASING",
]
ConvolutionDirectionName = Literal[
    "FORWARD",
    "BACKWARD",
    "DML_CONVOLUTION_DIRECTION_FORWARD",
    "DML_CONVOLUTION_DIRECTION_BACKWARD",
]
ConvolutionModeName = Literal[
    "CONVOLUTION",
    "CROSS_CORRELATION",
    "DML_CONVOLUTION_MODE_CONVOLUTION",
    "DML_CONVOLUTION_MODE_CROSS_CORRELATION",
]
DataTypeName = Literal[
    "FLOAT32",
    "FLOAT16",
    "UINT32",
    "UINT16",
    "UINT8",
    "INT32",
    "INT16",
    "INT8",
    "FLOAT64",
    "UINT64",
    "INT64",
    "UINT4",
    "INT4",
    "DML_TENSOR_DATA_TYPE_FLOAT32",
    "DML_TENSOR_DATA_TYPE_FLOAT16",
    "DML_TENSOR_DATA_TYPE_UINT32",
    "DML_TENSOR_DATA_TYPE_UINT16",
    "DML_TENSOR_DATA_TYPE_UINT8",
    "DML_TENSOR_DATA_TYPE_INT32",
    "DML_TENSOR_DATA_TYPE_INT16",
    "DML_TENSOR_DATA_TYPE_INT8",
    "DML_TENSOR_DATA_TYPE_FLOAT64",
    "DML_TENSOR_DATA_TYPE_UINT64",
    "DML_TENSOR_DATA_TYPE_INT64",
    "DML_TENSOR_DATA_TYPE_UINT4",
    "DML_TENSOR_DATA_TYPE_INT4",
]
DepthSpaceOrderName = Literal[
    "DEPTH_COLUMN_ROW",
    "COLUMN_ROW_DEPTH",
    "DML_DEPTH_SPACE_ORDER_DEPTH_COLUMN_ROW",
    "DML_DEPTH_SPACE_ORDER_COLUMN_ROW_DEPTH",
]
InterpolationModeName = Literal[
    "NEAREST_NEIGHBOR",
    "LINEAR",
    "DML_INTERPOLATION_MODE_NEAREST_NEIGHBOR",
    "DML_INTERPOLATION_MODE_LINEAR",
]
IsInfinityModeName = Literal[
    "EITHER",
    "POSITIVE",
    "NEGATIVE",
    "DML_IS_INFINITY_MODE_EITHER",
    "DML_IS_INFINITY_MODE_POSITIVE",
    "DML_IS_INFINITY_MODE_NEGATIVE",
]
MatrixTransformName = Literal[
    "NONE",
    "TRANSPOSE",
    "DML_MATRIX_TRANSFORM_NONE",
    "DML_MATRIX_TRANSFORM_TRANSPOSE",
]
MultiheadAttentionMaskTypeName = Literal[
    "NONE",
    "KEY_SEQUENCE_LENGTH",
    "KEY_SEQUENCE_END_START",
    "KEY_QUERY_SEQUENCE_LENGTH_START_END",
    "BOOLEAN",
    "DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE",
    "DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH",
    "DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START",
    "DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END",
    "DML_MULTIHEAD_ATTENTION_MASK_TYPE_BOOLEAN",
]
PaddingModeName = Literal[
    "CONSTANT",
    "EDGE",
    "REFLECTION",
    "SYMMETRIC",
    "WRAP",
    "DML_PADDING_MODE_CONSTANT",
    "DML_PADDING_MODE_EDGE",
    "DML_PADDING_MODE_REFLECTION",
    "DML_PADDING_MODE_SYMMETRIC",
    "DML_PADDING_MODE_WRAP",
]
QuantizationTypeName = Literal[
    "NONE",
    "SCALE",
    "SCALE_ZERO_POINT",
    "DML_QUANTIZATION_TYPE_NONE",
    "DML_QUANTIZATION_TYPE_SCALE",
    "DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT",
]
RandomGeneratorTypeName = Literal[
    "PHILOX_4X32_10",
    "DML_RANDOM_GENERATOR_TYPE_PHILOX_4X32_10",
]
RecurrentNetworkDirectionName = Literal[
    "FORWARD",
    "BACKWARD",
    "BIDIRECTIONAL",
    "DML_RECURRENT_NETWORK_DIRECTION_FORWARD",
    "DML_RECURRENT_NETWORK_DIRECTION_BACKWARD",
    "DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL",
]
ReduceFunctionName = Literal[
    "ARGMAX",
    "ARGMIN",
    "AVERAGE",
    "L1",
    "L2",
    "LOG_SUM",
    "LOG_SUM_EXP",
    "MAX",
    "MIN",
    "MULTIPLY",
    "SUM",
    "SUM_SQUARE",
    "DML_REDUCE_FUNCTION_ARGMAX",
    "DML_REDUCE_FUNCTION_ARGMIN",
    "DML_REDUCE_FUNCTION_AVERAGE",
    "DML_REDUCE_FUNCTION_L1",
    "DML_REDUCE_FUNCTION_L2",
    "DML_REDUCE_FUNCTION_LOG_SUM",
    "DML_REDUCE_FUNCTION_LOG_SUM_EXP",
    "DML_REDUCE_FUNCTION_MAX",
    "DML_REDUCE_FUNCTION_MIN",
    "DML_REDUCE_FUNCTION_MULTIPLY",
    "DML_REDUCE_FUNCTION_SUM",
    "DML_REDUCE_FUNCTION_SUM_SQUARE",
]
RoundingModeName = Literal[
    "HALVES_TO_NEAREST_EVEN",
    "TOWARD_ZERO",
    "TOWARD_INFINITY",
    "DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN",
    "DML_ROUNDING_MODE_TOWARD_ZERO",
    "DML_ROUNDING_MODE_TOWARD_INFINITY",
]
TensorFlagsName = Literal[
    "NONE",
    "OWNED_BY_DML",
    "DML_TENSOR_FLAG_NONE",
    "DML_TENSOR_FLAG_OWNED_BY_DML",
]
OutOfRange = Literal[
    "raise",
    "clamp",
]
GatherMode = Literal[
    "raise",
    "clamp",
    "wrap",
    "clip",
]
PadMode = Literal[
    "constant",
    "edge",
    "reflection",
    "symmetric",
    "wrap",
    "reflect",
]
Reduction = Literal[
    "none",
    "add",
    "mul",
    "min",
    "max",
    "sum",
    "prod",
    "amin",
    "amax",
    "mean",
]
IndexName = Literal[
    "int64",
    "int32",
    "uint32",
    "uint64",
    "INT64",
    "INT32",
    "UINT32",
    "UINT64",
]
TypeName = Literal[
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "FLOAT64",
    "FLOAT32",
    "FLOAT16",
    "INT64",
    "INT32",
    "INT16",
    "INT8",
    "UINT64",
    "UINT32",
    "UINT16",
    "UINT8",
]
