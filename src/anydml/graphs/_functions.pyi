"""Functions of `GraphBuilder`. Written by write_lists.py."""

# fmt: off
# ruff: noqa: A003, I001, E501
from collections.abc import Sequence
from typing import Literal, NamedTuple, overload

from anydml.core._literals import AxisDirectionName
from anydml.core._literals import ConvolutionDirectionName
from anydml.core._literals import ConvolutionModeName
from anydml.core._literals import DataTypeName
from anydml.core._literals import DepthSpaceOrderName
from anydml.core._literals import InterpolationModeName
from anydml.core._literals import IsInfinityModeName
from anydml.core._literals import MatrixTransformName
from anydml.core._literals import MultiheadAttentionMaskTypeName
from anydml.core._literals import PaddingModeName
from anydml.core._literals import QuantizationTypeName
from anydml.core._literals import RandomGeneratorTypeName
from anydml.core._literals import RecurrentNetworkDirectionName
from anydml.core._literals import ReduceFunctionName
from anydml.core._literals import RoundingModeName
from anydml.core.dtypes import DataType
from anydml.graphs.build import Expression
from anydml.ops._fields import ScaleBias
from anydml.ops._fields import Size2D
from anydml.ops.activations import Fusable
from anydml.ops.block_quantize import QuantizationType
from anydml.ops.convolution import ConvolutionDirection
from anydml.ops.convolution import ConvolutionMode
from anydml.ops.elementwise import ElementWiseClip
from anydml.ops.elementwise import RoundingMode
from anydml.ops.enumerations import AxisDirection
from anydml.ops.enumerations import InterpolationMode
from anydml.ops.enumerations import MultiheadAttentionMaskType
from anydml.ops.enumerations import ReduceFunction
from anydml.ops.logic import IsInfinityMode
from anydml.ops.matrix import MatrixTransform
from anydml.ops.padding1 import PaddingMode
from anydml.ops.random_generator import RandomGeneratorType
from anydml.ops.rearrange import DepthSpaceOrder
from anydml.ops.recurrent import RecurrentNetworkDirection
from anydml.ops.softmax import ActivationSoftmax
from anydml.ops.softmax import ActivationSoftmax1

class _CountCoordinates(NamedTuple):
    count: Expression  # type: ignore[assignment]
    coordinates: Expression
class _GradientRoiGradient(NamedTuple):
    gradient: Expression
    roi_gradient: Expression
class _GradientScaleGradientBiasGradient(NamedTuple):
    gradient: Expression
    scale_gradient: Expression
    bias_gradient: Expression
class _OutputIndices(NamedTuple):
    output: Expression
    indices: Expression
class _OutputMeanVariance(NamedTuple):
    output: Expression
    mean: Expression
    variance: Expression
class _OutputPresentKey(NamedTuple):
    output: Expression
    present_key: Expression
class _OutputPresentKeyPresentValue(NamedTuple):
    output: Expression
    present_key: Expression
    present_value: Expression
class _OutputPresentValue(NamedTuple):
    output: Expression
    present_value: Expression
class _OutputScaleZeroPoint(NamedTuple):
    output: Expression
    scale: Expression
    zero_point: Expression
class _OutputState(NamedTuple):
    output: Expression
    state: Expression
class _ParametersFirstMomentSecondMoment(NamedTuple):
    parameters: Expression
    first_moment: Expression
    second_moment: Expression
class _SequenceCellSingle(NamedTuple):
    sequence: Expression
    cell_single: Expression
class _SequenceSingle(NamedTuple):
    sequence: Expression
    single: Expression
class _SequenceSingleCellSingle(NamedTuple):
    sequence: Expression
    single: Expression
    cell_single: Expression
class _SingleCellSingle(NamedTuple):
    single: Expression
    cell_single: Expression
class _ValueIndex(NamedTuple):
    value: Expression
    index: Expression  # type: ignore[assignment]
class Functions:
    def activation_celu(self, input: Expression, *, alpha: float = 1.0,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_elu(self, input: Expression, *, alpha: float = 1.0,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_gelu(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def activation_hardmax(self, input: Expression, *, axes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_hardmax1(self, input: Expression, *, axes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_hard_sigmoid(self, input: Expression, *, alpha: float = 0.2, beta: float = 0.5,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_hard_swish(self, input: Expression, *, alpha: float, beta: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_identity(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def activation_leaky_relu(self, input: Expression, *, alpha: float = 0.01,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_linear(self, input: Expression, *, alpha: float, beta: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_log_softmax(self, input: Expression, *, axes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_log_softmax1(self, input: Expression, *, axes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_parameterized_relu(self, input: Expression, slope: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_parametric_softplus(self, input: Expression, *, alpha: float, beta: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_relu(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def activation_relu_grad(self, input: Expression, input_gradient: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_scaled_elu(self, input: Expression, *, alpha: float = 1.6732631921768188,
        gamma: float = 1.0507010221481323, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def activation_scaled_tanh(self, input: Expression, *, alpha: float = 1.0, beta: float = 0.5,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_shrink(self, input: Expression, *, bias: float = 0.0, threshold: float = 0.5,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_sigmoid(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def activation_softmax(self, input: Expression, *, axes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_softmax1(self, input: Expression, *, axes: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_softplus(self, input: Expression, *, steepness: float = 1.0,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_softsign(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def activation_swish(self, input: Expression, *, sigmoid_input_scale: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def activation_tanh(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def activation_thresholded_relu(self, input: Expression, *, alpha: float = 1.0,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def adam_optimizer(self, input_parameters: Expression, input_first_moment: Expression,
        input_second_moment: Expression, gradient: Expression, training_step: Expression, *,
        learning_rate: float, beta1: float, beta2: float, epsilon: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _ParametersFirstMomentSecondMoment: ...
    def argmax(self, input: Expression, *, axes: Sequence[int],
        axis_direction: AxisDirection | AxisDirectionName, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def argmin(self, input: Expression, *, axes: Sequence[int],
        axis_direction: AxisDirection | AxisDirectionName, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def average_pooling(self, input: Expression, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, include_padding: bool,
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def average_pooling1(self, input: Expression, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, dilations: Sequence[int] | None = None,
        include_padding: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def average_pooling_grad(self, input_gradient: Expression, *,
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        include_padding: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def batch_normalization(self, input: Expression, mean: Expression, variance: Expression,
        scale: Expression, bias: Expression, *, spatial: bool, epsilon: float,
        fused_activation: Fusable | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def batch_normalization_grad(self, input: Expression, input_gradient: Expression,
        mean: Expression, variance: Expression, scale: Expression, *, epsilon: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _GradientScaleGradientBiasGradient: ...
    def batch_normalization_training(self, input: Expression, scale: Expression, bias: Expression,
        fused_add: Expression | None = None, *, epsilon: float,
        fused_activation: Fusable | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> _OutputMeanVariance: ...
    def batch_normalization_training_grad(self, input: Expression, input_gradient: Expression,
        mean: Expression, variance: Expression, scale: Expression, *, epsilon: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _GradientScaleGradientBiasGradient: ...
    def cast(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def convolution(self, input: Expression, filter: Expression, bias: Expression | None = None, *,
        mode: ConvolutionMode | ConvolutionModeName = "CROSS_CORRELATION",
        direction: ConvolutionDirection | ConvolutionDirectionName = "FORWARD",
        strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None,
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        output_padding: Sequence[int] | None = None, group_count: int = 1,
        fused_activation: Fusable | ElementWiseClip | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def convolution_integer(self, input: Expression, input_zero_point: Expression | None = None,
        filter: Expression | None = None, filter_zero_point: Expression | None = None, *,
        strides: Sequence[int] | None = None, dilations: Sequence[int] | None = None,
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        group_count: int = 1, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def cumulative_product(self, input: Expression, *, axis: int,
        axis_direction: AxisDirection | AxisDirectionName, has_exclusive_product: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def cumulative_summation(self, input: Expression, *, axis: int,
        axis_direction: AxisDirection | AxisDirectionName, has_exclusive_sum: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def depth_to_space(self, input: Expression, *, block_size: int,
        order: DepthSpaceOrder | DepthSpaceOrderName = "DEPTH_COLUMN_ROW",
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def depth_to_space1(self, input: Expression, *, block_size: int,
        order: DepthSpaceOrder | DepthSpaceOrderName = "DEPTH_COLUMN_ROW",
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def dequantize(self, input: Expression, quantization_tensors: Sequence[Expression], *,
        quantization_type: QuantizationType | QuantizationTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def diagonal_matrix(self, input: Expression | None = None, *, offset: int | None = None,
        value: int | float, value_data_type: DataType | DataTypeName | None = None,
        diagonal_fill_begin: int | None = None, diagonal_fill_end: int | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def diagonal_matrix1(self, input: Expression | None = None, *,
        value_data_type: DataType | DataTypeName | None = None, value: int | float,
        diagonal_fill_begin: int, diagonal_fill_end: int, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def dynamic_quantize_linear(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> _OutputScaleZeroPoint: ...
    def abs(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_abs = abs
    def acos(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_acos = acos
    def acosh(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_acosh = acosh
    def add(self, a: Expression, b: Expression, *, fused_activation: Fusable | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_add = add
    def add1(self, a: Expression, b: Expression, *, fused_activation: Fusable | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_add1 = add1
    def asin(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_asin = asin
    def asinh(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_asinh = asinh
    def atan(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_atan = atan
    def atanh(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_atanh = atanh
    def atan_yx(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_atan_yx = atan_yx
    def bit_and(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_bit_and = bit_and
    def bit_count(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_bit_count = bit_count
    def bit_not(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_bit_not = bit_not
    def bit_or(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_bit_or = bit_or
    def bit_shift_left(self, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_bit_shift_left = bit_shift_left
    def bit_shift_right(self, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_bit_shift_right = bit_shift_right
    def bit_xor(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_bit_xor = bit_xor
    def ceil(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_ceil = ceil
    def clip(self, input: Expression, *, scale_bias: ScaleBias | None = None, min: int | float,
        max: int | float, min_max_data_type: DataType | DataTypeName | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_clip = clip
    def clip1(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        min_max_data_type: DataType | DataTypeName | None = None, min: int | float, max: int | float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_clip1 = clip1
    def clip_grad(self, input: Expression, input_gradient: Expression, *, min: int | float,
        max: int | float, min_max_data_type: DataType | DataTypeName | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_clip_grad = clip_grad
    def clip_grad1(self, input: Expression, input_gradient: Expression, *,
        min_max_data_type: DataType | DataTypeName | None = None, min: int | float, max: int | float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_clip_grad1 = clip_grad1
    def constant_pow(self, input: Expression, *, scale_bias: ScaleBias | None = None, exponent: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_constant_pow = constant_pow
    def cos(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_cos = cos
    def cosh(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_cosh = cosh
    def dequantize_linear(self, input: Expression, scale: Expression,
        zero_point: Expression | None = None, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_dequantize_linear = dequantize_linear
    def difference_square(self, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_difference_square = difference_square
    def divide(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_divide = divide
    def erf(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_erf = erf
    def exp(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_exp = exp
    def floor(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_floor = floor
    def identity(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_identity = identity
    def if_(self, condition: Expression, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_if = if_
    def is_infinity(self, input: Expression, *, infinity_mode: IsInfinityMode | IsInfinityModeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_is_infinity = is_infinity
    def is_nan(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_is_nan = is_nan
    def log(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_log = log
    def and_(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    logical_and = and_
    element_wise_logical_and = and_
    def equals(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    logical_equals = equals
    element_wise_logical_equals = equals
    def greater_than(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    logical_greater_than = greater_than
    element_wise_logical_greater_than = greater_than
    def greater_than_or_equal(self, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    logical_greater_than_or_equal = greater_than_or_equal
    element_wise_logical_greater_than_or_equal = greater_than_or_equal
    def less_than(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    logical_less_than = less_than
    element_wise_logical_less_than = less_than
    def less_than_or_equal(self, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    logical_less_than_or_equal = less_than_or_equal
    element_wise_logical_less_than_or_equal = less_than_or_equal
    def not_(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    logical_not = not_
    element_wise_logical_not = not_
    def or_(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    logical_or = or_
    element_wise_logical_or = or_
    def xor(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    logical_xor = xor
    element_wise_logical_xor = xor
    def max(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_max = max
    def mean(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_mean = mean
    def min(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_min = min
    def modulus_floor(self, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_modulus_floor = modulus_floor
    def modulus_truncate(self, a: Expression, b: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_modulus_truncate = modulus_truncate
    def multiply(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_multiply = multiply
    def negate(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_negate = negate
    def pow(self, input: Expression, exponent: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_pow = pow
    def quantized_linear_add(self, a: Expression, a_scale: Expression,
        a_zero_point: Expression | None = None, b: Expression | None = None,
        b_scale: Expression | None = None, b_zero_point: Expression | None = None,
        output_scale: Expression | None = None, output_zero_point: Expression | None = None, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_quantized_linear_add = quantized_linear_add
    def quantize_linear(self, input: Expression, scale: Expression,
        zero_point: Expression | None = None, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_quantize_linear = quantize_linear
    def recip(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_recip = recip
    def round(self, input: Expression, *,
        rounding_mode: RoundingMode | RoundingModeName = "HALVES_TO_NEAREST_EVEN",
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_round = round
    def sign(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_sign = sign
    def sin(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_sin = sin
    def sinh(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_sinh = sinh
    def sqrt(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_sqrt = sqrt
    def subtract(self, a: Expression, b: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    element_wise_subtract = subtract
    def tan(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_tan = tan
    def tanh(self, input: Expression, *, scale_bias: ScaleBias | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_tanh = tanh
    def threshold(self, input: Expression, *, scale_bias: ScaleBias | None = None, min: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    element_wise_threshold = threshold
    def fill_value_constant(self, *, value_data_type: DataType | DataTypeName | None = None,
        value: int | float, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def fill_value_sequence(self, *, value_data_type: DataType | DataTypeName | None = None,
        value_start: int | float, value_delta: int | float, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def fold(self, input: Expression, *, window_sizes: Sequence[int], strides: Sequence[int],
        dilations: Sequence[int], start_padding: Sequence[int], end_padding: Sequence[int],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def gather(self, input: Expression, indices: Expression, *, axis: int, index_dimensions: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def gather_elements(self, input: Expression, indices: Expression, *, axis: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def gather_nd(self, input: Expression, indices: Expression, *, input_dimension_count: int,
        indices_dimension_count: int, batch_dimension_count: int | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def gather_nd1(self, input: Expression, indices: Expression, *, input_dimension_count: int,
        indices_dimension_count: int, batch_dimension_count: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def gemm(self, a: Expression, b: Expression, c: Expression | None = None, *,
        trans_a: MatrixTransform | MatrixTransformName = "NONE",
        trans_b: MatrixTransform | MatrixTransformName = "NONE", alpha: float = 1.0,
        beta: float = 1.0,
        fused_activation: Fusable | ElementWiseClip | ActivationSoftmax | ActivationSoftmax1 | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def gru(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: Literal[False] = False,
        output_single: Literal[True], activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        linear_before_reset: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    @overload
    def gru(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[False] = False, activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        linear_before_reset: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    @overload
    def gru(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[True], activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        linear_before_reset: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> _SequenceSingle: ...
    @overload
    def gru(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: bool = False,
        output_single: bool = False, activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        linear_before_reset: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _SequenceSingle: ...
    def join(self, input_tensors: Sequence[Expression], *, axis: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def local_response_normalization(self, input: Expression, *, cross_channel: bool, local_size: int,
        alpha: float, beta: float, bias: float, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def local_response_normalization_grad(self, input: Expression, input_gradient: Expression, *,
        cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def lp_normalization(self, input: Expression, *, axis: int, epsilon: float, p: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def lp_pooling(self, input: Expression, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, p: int, dilations: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def lp_pooling1(self, input: Expression, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, dilations: Sequence[int] | None = None, p: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: Literal[False] = False,
        output_single: Literal[False] = False, output_cell_single: Literal[True],
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: Literal[False] = False,
        output_single: Literal[True], output_cell_single: Literal[False] = False,
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: Literal[False] = False,
        output_single: Literal[True], output_cell_single: Literal[True],
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _SingleCellSingle: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[False] = False, output_cell_single: Literal[False] = False,
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[False] = False, output_cell_single: Literal[True],
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _SequenceCellSingle: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[True], output_cell_single: Literal[False] = False,
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _SequenceSingle: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[True], output_cell_single: Literal[True],
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _SequenceSingleCellSingle: ...
    @overload
    def lstm(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        cell_mem_init: Expression | None = None, sequence_lengths: Expression | None = None,
        peephole: Expression | None = None, *, output_sequence: bool = False,
        output_single: bool = False, output_cell_single: bool = False,
        activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName, clip_threshold: float,
        use_clip_threshold: bool, couple_input_forget: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _SingleCellSingle | _SequenceCellSingle | _SequenceSingle | _SequenceSingleCellSingle: ...
    def matrix_multiply_integer(self, a: Expression, a_zero_point: Expression | None = None,
        b: Expression | None = None, b_zero_point: Expression | None = None, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def matrix_multiply_integer_to_float(self, a: Expression, a_scale: Expression,
        a_zero_point: Expression | None = None, b: Expression | None = None,
        b_scale: Expression | None = None, b_zero_point: Expression | None = None,
        bias: Expression | None = None, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    @overload
    def max_pooling(self, input: Expression, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, output_indices: Literal[False] = False,
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    @overload
    def max_pooling(self, input: Expression, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, output_indices: Literal[True],
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> _OutputIndices: ...
    @overload
    def max_pooling(self, input: Expression, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, output_indices: bool = False,
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _OutputIndices: ...
    @overload
    def max_pooling1(self, input: Expression, *, output_indices: Literal[False] = False,
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def max_pooling1(self, input: Expression, *, output_indices: Literal[True],
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputIndices: ...
    @overload
    def max_pooling1(self, input: Expression, *, output_indices: bool = False,
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _OutputIndices: ...
    @overload
    def max_pooling2(self, input: Expression, *, output_indices: Literal[False] = False,
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    @overload
    def max_pooling2(self, input: Expression, *, output_indices: Literal[True],
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> _OutputIndices: ...
    @overload
    def max_pooling2(self, input: Expression, *, output_indices: bool = False,
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _OutputIndices: ...
    def max_pooling_grad(self, input: Expression, input_gradient: Expression, *,
        strides: Sequence[int] | None = None, window_size: Sequence[int],
        start_padding: Sequence[int] | None = None, end_padding: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def max_unpooling(self, input: Expression, indices: Expression, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def mean_variance_normalization(self, input: Expression, scale: Expression | None = None,
        bias: Expression | None = None, *, cross_channel: bool | None = None,
        normalize_variance: bool | None = None, epsilon: float,
        fused_activation: Fusable | None = None, axes: Sequence[int] | None = None,
        use_mean: bool | None = None, use_variance: bool | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def mean_variance_normalization1(self, input: Expression, scale: Expression | None = None,
        bias: Expression | None = None, *, axes: Sequence[int], normalize_variance: bool,
        epsilon: float, fused_activation: Fusable | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def mean_variance_normalization2(self, input: Expression, scale: Expression | None = None,
        bias: Expression | None = None, *, axes: Sequence[int], use_mean: bool, use_variance: bool,
        epsilon: float, fused_activation: Fusable | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def multihead_attention(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *,
        output_present_key: Literal[False] = False, output_present_value: Literal[False] = False,
        scale: float, mask_filter_value: float, head_count: int | None = None,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        query_head_count: int | None = None, key_value_head_count: int | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def multihead_attention(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *,
        output_present_key: Literal[False] = False, output_present_value: Literal[True], scale: float,
        mask_filter_value: float, head_count: int | None = None,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        query_head_count: int | None = None, key_value_head_count: int | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputPresentValue: ...
    @overload
    def multihead_attention(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *, output_present_key: Literal[True],
        output_present_value: Literal[False] = False, scale: float, mask_filter_value: float,
        head_count: int | None = None,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        query_head_count: int | None = None, key_value_head_count: int | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputPresentKey: ...
    @overload
    def multihead_attention(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *, output_present_key: Literal[True],
        output_present_value: Literal[True], scale: float, mask_filter_value: float,
        head_count: int | None = None,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        query_head_count: int | None = None, key_value_head_count: int | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputPresentKeyPresentValue: ...
    @overload
    def multihead_attention(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *, output_present_key: bool = False,
        output_present_value: bool = False, scale: float, mask_filter_value: float,
        head_count: int | None = None,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        query_head_count: int | None = None, key_value_head_count: int | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _OutputPresentValue | _OutputPresentKey | _OutputPresentKeyPresentValue: ...
    @overload
    def multihead_attention1(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *,
        output_present_key: Literal[False] = False, output_present_value: Literal[False] = False,
        scale: float, mask_filter_value: float, query_head_count: int, key_value_head_count: int,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def multihead_attention1(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *,
        output_present_key: Literal[False] = False, output_present_value: Literal[True], scale: float,
        mask_filter_value: float, query_head_count: int, key_value_head_count: int,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputPresentValue: ...
    @overload
    def multihead_attention1(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *, output_present_key: Literal[True],
        output_present_value: Literal[False] = False, scale: float, mask_filter_value: float,
        query_head_count: int, key_value_head_count: int,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputPresentKey: ...
    @overload
    def multihead_attention1(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *, output_present_key: Literal[True],
        output_present_value: Literal[True], scale: float, mask_filter_value: float,
        query_head_count: int, key_value_head_count: int,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputPresentKeyPresentValue: ...
    @overload
    def multihead_attention1(self, query: Expression | None = None, key: Expression | None = None,
        value: Expression | None = None, stacked_query_key: Expression | None = None,
        stacked_key_value: Expression | None = None,
        stacked_query_key_value: Expression | None = None, bias: Expression | None = None,
        mask: Expression | None = None, relative_position_bias: Expression | None = None,
        past_key: Expression | None = None, past_value: Expression | None = None,
        past_sequence_lengths: Expression | None = None, *, output_present_key: bool = False,
        output_present_value: bool = False, scale: float, mask_filter_value: float,
        query_head_count: int, key_value_head_count: int,
        mask_type: MultiheadAttentionMaskType | MultiheadAttentionMaskTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _OutputPresentValue | _OutputPresentKey | _OutputPresentKeyPresentValue: ...
    def nonzero_coordinates(self, input: Expression, *, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> _CountCoordinates: ...
    non_zero_coordinates = nonzero_coordinates
    def one_hot(self, indices: Expression, values: Expression, *, axis: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def padding(self, input: Expression, *, padding_mode: PaddingMode | PaddingModeName,
        padding_value: int | float, start_padding: Sequence[int], end_padding: Sequence[int],
        padding_value_data_type: DataType | DataTypeName | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def padding1(self, input: Expression, *, padding_mode: PaddingMode | PaddingModeName,
        padding_value_data_type: DataType | DataTypeName | None = None, padding_value: int | float,
        start_padding: Sequence[int], end_padding: Sequence[int],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def quantize(self, input: Expression, quantization_tensors: Sequence[Expression], *,
        quantization_type: QuantizationType | QuantizationTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def quantized_linear_average_pooling(self, input: Expression, input_scale: Expression,
        input_zero_point: Expression | None = None, output_scale: Expression | None = None,
        output_zero_point: Expression | None = None, *, strides: Sequence[int] | None = None,
        window_size: Sequence[int], start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, dilations: Sequence[int] | None = None,
        include_padding: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def quantized_linear_convolution(self, input: Expression, input_scale: Expression,
        input_zero_point: Expression | None = None, filter: Expression | None = None,
        filter_scale: Expression | None = None, filter_zero_point: Expression | None = None,
        bias: Expression | None = None, output_scale: Expression | None = None,
        output_zero_point: Expression | None = None, *, strides: Sequence[int] | None = None,
        dilations: Sequence[int] | None = None, start_padding: Sequence[int] | None = None,
        end_padding: Sequence[int] | None = None, group_count: int = 1,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def quantized_linear_matrix_multiply(self, a: Expression, a_scale: Expression,
        a_zero_point: Expression | None = None, b: Expression | None = None,
        b_scale: Expression | None = None, b_zero_point: Expression | None = None,
        output_scale: Expression | None = None, output_zero_point: Expression | None = None, *,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def random_generator(self, input_state: Expression, *, output_state: Literal[False] = False,
        type: RandomGeneratorType | RandomGeneratorTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def random_generator(self, input_state: Expression, *, output_state: Literal[True],
        type: RandomGeneratorType | RandomGeneratorTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _OutputState: ...
    @overload
    def random_generator(self, input_state: Expression, *, output_state: bool = False,
        type: RandomGeneratorType | RandomGeneratorTypeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _OutputState: ...
    def reduce(self, input: Expression, *, function: ReduceFunction | ReduceFunctionName,
        axes: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def resample(self, input: Expression, *,
        interpolation_mode: InterpolationMode | InterpolationModeName, scales: Sequence[float],
        input_pixel_offsets: Sequence[float] | None = None,
        output_pixel_offsets: Sequence[float] | None = None,
        rounding_direction: AxisDirection | AxisDirectionName | None = None,
        antialiased: bool | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def resample1(self, input: Expression, *,
        interpolation_mode: InterpolationMode | InterpolationModeName, scales: Sequence[float],
        input_pixel_offsets: Sequence[float], output_pixel_offsets: Sequence[float],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def resample2(self, input: Expression, *,
        interpolation_mode: InterpolationMode | InterpolationModeName,
        rounding_direction: AxisDirection | AxisDirectionName, scales: Sequence[float],
        input_pixel_offsets: Sequence[float], output_pixel_offsets: Sequence[float],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def resample3(self, input: Expression, *,
        interpolation_mode: InterpolationMode | InterpolationModeName,
        rounding_direction: AxisDirection | AxisDirectionName, scales: Sequence[float],
        input_pixel_offsets: Sequence[float], output_pixel_offsets: Sequence[float],
        antialiased: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def resample_grad(self, input_gradient: Expression, *,
        interpolation_mode: InterpolationMode | InterpolationModeName, scales: Sequence[float],
        input_pixel_offsets: Sequence[float], output_pixel_offsets: Sequence[float],
        rounding_direction: AxisDirection | AxisDirectionName | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def resample_grad1(self, input_gradient: Expression, *,
        interpolation_mode: InterpolationMode | InterpolationModeName,
        rounding_direction: AxisDirection | AxisDirectionName, scales: Sequence[float],
        input_pixel_offsets: Sequence[float], output_pixel_offsets: Sequence[float],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def reverse_subsequences(self, input: Expression, sequence_lengths: Expression, *, axis: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def rnn(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: Literal[False] = False,
        output_single: Literal[True], activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def rnn(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[False] = False, activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def rnn(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: Literal[True],
        output_single: Literal[True], activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _SequenceSingle: ...
    @overload
    def rnn(self, input: Expression, weight: Expression, recurrence: Expression,
        bias: Expression | None = None, hidden_init: Expression | None = None,
        sequence_lengths: Expression | None = None, *, output_sequence: bool = False,
        output_single: bool = False, activation_descs: Sequence[Fusable],
        direction: RecurrentNetworkDirection | RecurrentNetworkDirectionName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _SequenceSingle: ...
    def roi_align(self, input: Expression, roi: Expression, batch_indices: Expression, *,
        reduction_function: ReduceFunction | ReduceFunctionName,
        interpolation_mode: InterpolationMode | InterpolationModeName, spatial_scale_x: float,
        spatial_scale_y: float, out_of_bounds_input_value: float, minimum_samples_per_output: int,
        maximum_samples_per_output: int, input_pixel_offset: float | None = None,
        output_pixel_offset: float | None = None, align_regions_to_corners: bool | None = None,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def roi_align1(self, input: Expression, roi: Expression, batch_indices: Expression, *,
        reduction_function: ReduceFunction | ReduceFunctionName,
        interpolation_mode: InterpolationMode | InterpolationModeName, spatial_scale_x: float,
        spatial_scale_y: float, input_pixel_offset: float, output_pixel_offset: float,
        out_of_bounds_input_value: float, minimum_samples_per_output: int,
        maximum_samples_per_output: int, align_regions_to_corners: bool,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    @overload
    def roi_align_grad(self, input: Expression | None = None,
        input_gradient: Expression | None = None, roi: Expression | None = None,
        batch_indices: Expression | None = None, *, output_gradient: Literal[False] = False,
        output_roi_gradient: Literal[True], reduction_function: ReduceFunction | ReduceFunctionName,
        interpolation_mode: InterpolationMode | InterpolationModeName, spatial_scale_x: float,
        spatial_scale_y: float, input_pixel_offset: float, output_pixel_offset: float,
        minimum_samples_per_output: int, maximum_samples_per_output: int,
        align_regions_to_corners: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    @overload
    def roi_align_grad(self, input: Expression | None = None,
        input_gradient: Expression | None = None, roi: Expression | None = None,
        batch_indices: Expression | None = None, *, output_gradient: Literal[True],
        output_roi_gradient: Literal[False] = False,
        reduction_function: ReduceFunction | ReduceFunctionName,
        interpolation_mode: InterpolationMode | InterpolationModeName, spatial_scale_x: float,
        spatial_scale_y: float, input_pixel_offset: float, output_pixel_offset: float,
        minimum_samples_per_output: int, maximum_samples_per_output: int,
        align_regions_to_corners: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    @overload
    def roi_align_grad(self, input: Expression | None = None,
        input_gradient: Expression | None = None, roi: Expression | None = None,
        batch_indices: Expression | None = None, *, output_gradient: Literal[True],
        output_roi_gradient: Literal[True], reduction_function: ReduceFunction | ReduceFunctionName,
        interpolation_mode: InterpolationMode | InterpolationModeName, spatial_scale_x: float,
        spatial_scale_y: float, input_pixel_offset: float, output_pixel_offset: float,
        minimum_samples_per_output: int, maximum_samples_per_output: int,
        align_regions_to_corners: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> _GradientRoiGradient: ...
    @overload
    def roi_align_grad(self, input: Expression | None = None,
        input_gradient: Expression | None = None, roi: Expression | None = None,
        batch_indices: Expression | None = None, *, output_gradient: bool = False,
        output_roi_gradient: bool = False, reduction_function: ReduceFunction | ReduceFunctionName,
        interpolation_mode: InterpolationMode | InterpolationModeName, spatial_scale_x: float,
        spatial_scale_y: float, input_pixel_offset: float, output_pixel_offset: float,
        minimum_samples_per_output: int, maximum_samples_per_output: int,
        align_regions_to_corners: bool, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None,
        name: str = "") -> Expression | _GradientRoiGradient: ...
    def roi_pooling(self, input: Expression, roi: Expression, *, spatial_scale: float,
        pooled_size: Size2D, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def scatter(self, input: Expression, indices: Expression, updates: Expression, *, axis: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    scatter_elements = scatter
    def scatter_nd(self, input: Expression, indices: Expression, updates: Expression, *,
        input_dimension_count: int, indices_dimension_count: int,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def slice(self, input: Expression, *, offsets: Sequence[int] | None = None,
        sizes: Sequence[int] | None = None, strides: Sequence[int] | None = None,
        input_window_offsets: Sequence[int] | None = None,
        input_window_sizes: Sequence[int] | None = None,
        input_window_strides: Sequence[int] | None = None, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None, name: str = "") -> Expression: ...
    def slice1(self, input: Expression, *, input_window_offsets: Sequence[int],
        input_window_sizes: Sequence[int], input_window_strides: Sequence[int],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def slice_grad(self, input_gradient: Expression, *, input_window_offsets: Sequence[int],
        input_window_sizes: Sequence[int], input_window_strides: Sequence[int],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def space_to_depth(self, input: Expression, *, block_size: int,
        order: DepthSpaceOrder | DepthSpaceOrderName = "DEPTH_COLUMN_ROW",
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def space_to_depth1(self, input: Expression, *, block_size: int,
        order: DepthSpaceOrder | DepthSpaceOrderName = "DEPTH_COLUMN_ROW",
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def split(self, input: Expression, *, axis: int, output_sizes: Sequence[int] | None = None,
        output_data_type: DataType | str | None = None,
        output_axis_sizes: Sequence[int] | None = None, name: str = "") -> tuple[Expression, ...]: ...
    def tile(self, input: Expression, *, repeats: Sequence[int],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def top_k(self, input: Expression, *, axis: int, k: int,
        axis_direction: AxisDirection | AxisDirectionName = "DECREASING",
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _ValueIndex: ...
    def top_k1(self, input: Expression, *, axis: int, k: int,
        axis_direction: AxisDirection | AxisDirectionName = "DECREASING",
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> _ValueIndex: ...
    def unfold(self, input: Expression, *, window_sizes: Sequence[int], strides: Sequence[int],
        dilations: Sequence[int], start_padding: Sequence[int], end_padding: Sequence[int],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def upsample_2d(self, input: Expression, *, scale_size: Size2D,
        interpolation_mode: InterpolationMode | InterpolationModeName,
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
    def value_scale_2d(self, input: Expression, *, scale: float, bias: Sequence[float],
        output_sizes: Sequence[int] | None = None, output_data_type: DataType | str | None = None,
        name: str = "") -> Expression: ...
