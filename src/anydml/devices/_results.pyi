"""Results of compiled operators. Written by write_lists.py."""

# fmt: off
# ruff: noqa: I001, E501, PLC0105
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, overload

from numpy.typing import NDArray
from typing_extensions import TypeVar

from anydml.ops import (
    ActivationCelu, ActivationElu, ActivationGelu, ActivationHardSigmoid, ActivationHardSwish,
    ActivationHardmax, ActivationHardmax1, ActivationIdentity, ActivationLeakyRelu,
    ActivationLinear, ActivationLogSoftmax, ActivationLogSoftmax1, ActivationParameterizedRelu,
    ActivationParametricSoftplus, ActivationRelu, ActivationReluGrad, ActivationScaledElu,
    ActivationScaledTanh, ActivationShrink, ActivationSigmoid, ActivationSoftmax,
    ActivationSoftmax1, ActivationSoftplus, ActivationSoftsign, ActivationSwish, ActivationTanh,
    ActivationThresholdedRelu, AdamOptimizer, ArgMax, ArgMin, AveragePooling, AveragePooling1,
    AveragePoolingGrad, BatchNormalization, BatchNormalizationGrad, BatchNormalizationTraining,
    BatchNormalizationTrainingGrad, Cast, Convolution, ConvolutionInteger, CumulativeProduct,
    CumulativeSummation, DepthToSpace, DepthToSpace1, Dequantize, DiagonalMatrix, DiagonalMatrix1,
    DynamicQuantizeLinear, ElementWiseAbs, ElementWiseAcos, ElementWiseAcosh, ElementWiseAdd,
    ElementWiseAdd1, ElementWiseAsin, ElementWiseAsinh, ElementWiseAtan, ElementWiseAtanYX,
    ElementWiseAtanh, ElementWiseBitAnd, ElementWiseBitCount, ElementWiseBitNot, ElementWiseBitOr,
    ElementWiseBitShiftLeft, ElementWiseBitShiftRight, ElementWiseBitXor, ElementWiseCeil,
    ElementWiseClip, ElementWiseClip1, ElementWiseClipGrad, ElementWiseClipGrad1,
    ElementWiseConstantPow, ElementWiseCos, ElementWiseCosh, ElementWiseDequantizeLinear,
    ElementWiseDifferenceSquare, ElementWiseDivide, ElementWiseErf, ElementWiseExp,
    ElementWiseFloor, ElementWiseIdentity, ElementWiseIf, ElementWiseIsInfinity, ElementWiseIsNan,
    ElementWiseLog, ElementWiseLogicalAnd, ElementWiseLogicalEquals, ElementWiseLogicalGreaterThan,
    ElementWiseLogicalGreaterThanOrEqual, ElementWiseLogicalLessThan,
    ElementWiseLogicalLessThanOrEqual, ElementWiseLogicalNot, ElementWiseLogicalOr,
    ElementWiseLogicalXor, ElementWiseMax, ElementWiseMean, ElementWiseMin, ElementWiseModulusFloor,
    ElementWiseModulusTruncate, ElementWiseMultiply, ElementWiseNegate, ElementWisePow,
    ElementWiseQuantizeLinear, ElementWiseQuantizedLinearAdd, ElementWiseRecip, ElementWiseRound,
    ElementWiseSign, ElementWiseSin, ElementWiseSinh, ElementWiseSqrt, ElementWiseSubtract,
    ElementWiseTan, ElementWiseTanh, ElementWiseThreshold, FillValueConstant, FillValueSequence,
    Fold, Gather, GatherElements, GatherND, GatherND1, Gemm, Join, LocalResponseNormalization,
    LocalResponseNormalizationGrad, LpNormalization, LpPooling, LpPooling1, MatrixMultiplyInteger,
    MatrixMultiplyIntegerToFloat, MaxPooling, MaxPoolingGrad, MaxUnpooling,
    MeanVarianceNormalization, MeanVarianceNormalization1, MeanVarianceNormalization2,
    NonzeroCoordinates, OneHot, Padding, Padding1, Quantize, QuantizedLinearAveragePooling,
    QuantizedLinearConvolution, QuantizedLinearMatrixMultiply, Reduce, Resample, Resample1,
    Resample2, Resample3, ResampleGrad, ResampleGrad1, ReverseSubsequences, RoiAlign, RoiAlign1,
    RoiPooling, Scatter, ScatterND, Slice, Slice1, SliceGrad, SpaceToDepth, SpaceToDepth1, Split,
    Tile, TopK, TopK1, Unfold, Upsample2D, ValueScale2D,
)
from anydml.ops._descriptor import Descriptor

class Exporter(Protocol):
    def __dlpack__(self) -> Any: ...

Plain: TypeAlias = NDArray[Any] | bytes | bytearray | memoryview
Other = TypeVar("Other", bound=Exporter)
Desc = TypeVar("Desc", bound=Descriptor, covariant=True, default=Descriptor)
_Member = TypeVar("_Member")

class _OutputParametersTensorOutputFirstMomentTensorOutputSecondMomentTensor(NamedTuple, Generic[_Member]):
    output_parameters_tensor: _Member
    output_first_moment_tensor: _Member
    output_second_moment_tensor: _Member
class _OutputGradientTensorOutputScaleGradientTensorOutputBiasGradientTensor(NamedTuple, Generic[_Member]):
    output_gradient_tensor: _Member
    output_scale_gradient_tensor: _Member
    output_bias_gradient_tensor: _Member
class _OutputTensorOutputMeanTensorOutputVarianceTensor(NamedTuple, Generic[_Member]):
    output_tensor: _Member
    output_mean_tensor: _Member
    output_variance_tensor: _Member
class _OutputTensorOutputScaleTensorOutputZeroPointTensor(NamedTuple, Generic[_Member]):
    output_tensor: _Member
    output_scale_tensor: _Member
    output_zero_point_tensor: _Member
class _OutputCountTensorOutputCoordinatesTensor(NamedTuple, Generic[_Member]):
    output_count_tensor: _Member
    output_coordinates_tensor: _Member
class _OutputValueTensorOutputIndexTensor(NamedTuple, Generic[_Member]):
    output_value_tensor: _Member
    output_index_tensor: _Member

class Results(Generic[Desc]):
    @overload
    def __call__(
        self: Results[ActivationCelu | ActivationElu | ActivationGelu | ActivationHardmax |
        ActivationHardmax1 | ActivationHardSigmoid | ActivationHardSwish | ActivationIdentity |
        ActivationLeakyRelu | ActivationLinear | ActivationLogSoftmax | ActivationLogSoftmax1 |
        ActivationParameterizedRelu | ActivationParametricSoftplus | ActivationRelu |
        ActivationReluGrad | ActivationScaledElu | ActivationScaledTanh | ActivationShrink |
        ActivationSigmoid | ActivationSoftmax | ActivationSoftmax1 | ActivationSoftplus |
        ActivationSoftsign | ActivationSwish | ActivationTanh | ActivationThresholdedRelu | ArgMax |
        ArgMin | AveragePooling | AveragePooling1 | AveragePoolingGrad | BatchNormalization | Cast |
        Convolution | ConvolutionInteger | CumulativeProduct | CumulativeSummation | DepthToSpace |
        DepthToSpace1 | Dequantize | DiagonalMatrix | DiagonalMatrix1 | ElementWiseAbs |
        ElementWiseAcos | ElementWiseAcosh | ElementWiseAdd | ElementWiseAdd1 | ElementWiseAsin |
        ElementWiseAsinh | ElementWiseAtan | ElementWiseAtanh | ElementWiseAtanYX |
        ElementWiseBitAnd | ElementWiseBitCount | ElementWiseBitNot | ElementWiseBitOr |
        ElementWiseBitShiftLeft | ElementWiseBitShiftRight | ElementWiseBitXor | ElementWiseCeil |
        ElementWiseClip | ElementWiseClip1 | ElementWiseClipGrad | ElementWiseClipGrad1 |
        ElementWiseConstantPow | ElementWiseCos | ElementWiseCosh | ElementWiseDequantizeLinear |
        ElementWiseDifferenceSquare | ElementWiseDivide | ElementWiseErf | ElementWiseExp |
        ElementWiseFloor | ElementWiseIdentity | ElementWiseIf | ElementWiseIsInfinity |
        ElementWiseIsNan | ElementWiseLog | ElementWiseLogicalAnd | ElementWiseLogicalEquals |
        ElementWiseLogicalGreaterThan | ElementWiseLogicalGreaterThanOrEqual |
        ElementWiseLogicalLessThan | ElementWiseLogicalLessThanOrEqual | ElementWiseLogicalNot |
        ElementWiseLogicalOr | ElementWiseLogicalXor | ElementWiseMax | ElementWiseMean |
        ElementWiseMin | ElementWiseModulusFloor | ElementWiseModulusTruncate | ElementWiseMultiply
        | ElementWiseNegate | ElementWisePow | ElementWiseQuantizedLinearAdd |
        ElementWiseQuantizeLinear | ElementWiseRecip | ElementWiseRound | ElementWiseSign |
        ElementWiseSin | ElementWiseSinh | ElementWiseSqrt | ElementWiseSubtract | ElementWiseTan |
        ElementWiseTanh | ElementWiseThreshold | FillValueConstant | FillValueSequence | Fold |
        Gather | GatherElements | GatherND | GatherND1 | Gemm | Join | LocalResponseNormalization |
        LocalResponseNormalizationGrad | LpNormalization | LpPooling | LpPooling1 |
        MatrixMultiplyInteger | MatrixMultiplyIntegerToFloat | MaxPooling | MaxPoolingGrad |
        MaxUnpooling | MeanVarianceNormalization | MeanVarianceNormalization1 |
        MeanVarianceNormalization2 | OneHot | Padding | Padding1 | Quantize |
        QuantizedLinearAveragePooling | QuantizedLinearConvolution | QuantizedLinearMatrixMultiply |
        Reduce | Resample | Resample1 | Resample2 | Resample3 | ResampleGrad | ResampleGrad1 |
        ReverseSubsequences | RoiAlign | RoiAlign1 | RoiPooling | Scatter | ScatterND | Slice |
        Slice1 | SliceGrad | SpaceToDepth | SpaceToDepth1 | Tile | Unfold | Upsample2D |
        ValueScale2D], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> NDArray[Any]: ...
    @overload
    def __call__(
        self: Results[ActivationCelu | ActivationElu | ActivationGelu | ActivationHardmax |
        ActivationHardmax1 | ActivationHardSigmoid | ActivationHardSwish | ActivationIdentity |
        ActivationLeakyRelu | ActivationLinear | ActivationLogSoftmax | ActivationLogSoftmax1 |
        ActivationParameterizedRelu | ActivationParametricSoftplus | ActivationRelu |
        ActivationReluGrad | ActivationScaledElu | ActivationScaledTanh | ActivationShrink |
        ActivationSigmoid | ActivationSoftmax | ActivationSoftmax1 | ActivationSoftplus |
        ActivationSoftsign | ActivationSwish | ActivationTanh | ActivationThresholdedRelu | ArgMax |
        ArgMin | AveragePooling | AveragePooling1 | AveragePoolingGrad | BatchNormalization | Cast |
        Convolution | ConvolutionInteger | CumulativeProduct | CumulativeSummation | DepthToSpace |
        DepthToSpace1 | Dequantize | DiagonalMatrix | DiagonalMatrix1 | ElementWiseAbs |
        ElementWiseAcos | ElementWiseAcosh | ElementWiseAdd | ElementWiseAdd1 | ElementWiseAsin |
        ElementWiseAsinh | ElementWiseAtan | ElementWiseAtanh | ElementWiseAtanYX |
        ElementWiseBitAnd | ElementWiseBitCount | ElementWiseBitNot | ElementWiseBitOr |
        ElementWiseBitShiftLeft | ElementWiseBitShiftRight | ElementWiseBitXor | ElementWiseCeil |
        ElementWiseClip | ElementWiseClip1 | ElementWiseClipGrad | ElementWiseClipGrad1 |
        ElementWiseConstantPow | ElementWiseCos | ElementWiseCosh | ElementWiseDequantizeLinear |
        ElementWiseDifferenceSquare | ElementWiseDivide | ElementWiseErf | ElementWiseExp |
        ElementWiseFloor | ElementWiseIdentity | ElementWiseIf | ElementWiseIsInfinity |
        ElementWiseIsNan | ElementWiseLog | ElementWiseLogicalAnd | ElementWiseLogicalEquals |
        ElementWiseLogicalGreaterThan | ElementWiseLogicalGreaterThanOrEqual |
        ElementWiseLogicalLessThan | ElementWiseLogicalLessThanOrEqual | ElementWiseLogicalNot |
        ElementWiseLogicalOr | ElementWiseLogicalXor | ElementWiseMax | ElementWiseMean |
        ElementWiseMin | ElementWiseModulusFloor | ElementWiseModulusTruncate | ElementWiseMultiply
        | ElementWiseNegate | ElementWisePow | ElementWiseQuantizedLinearAdd |
        ElementWiseQuantizeLinear | ElementWiseRecip | ElementWiseRound | ElementWiseSign |
        ElementWiseSin | ElementWiseSinh | ElementWiseSqrt | ElementWiseSubtract | ElementWiseTan |
        ElementWiseTanh | ElementWiseThreshold | FillValueConstant | FillValueSequence | Fold |
        Gather | GatherElements | GatherND | GatherND1 | Gemm | Join | LocalResponseNormalization |
        LocalResponseNormalizationGrad | LpNormalization | LpPooling | LpPooling1 |
        MatrixMultiplyInteger | MatrixMultiplyIntegerToFloat | MaxPooling | MaxPoolingGrad |
        MaxUnpooling | MeanVarianceNormalization | MeanVarianceNormalization1 |
        MeanVarianceNormalization2 | OneHot | Padding | Padding1 | Quantize |
        QuantizedLinearAveragePooling | QuantizedLinearConvolution | QuantizedLinearMatrixMultiply |
        Reduce | Resample | Resample1 | Resample2 | Resample3 | ResampleGrad | ResampleGrad1 |
        ReverseSubsequences | RoiAlign | RoiAlign1 | RoiPooling | Scatter | ScatterND | Slice |
        Slice1 | SliceGrad | SpaceToDepth | SpaceToDepth1 | Tile | Unfold | Upsample2D |
        ValueScale2D], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> Other: ...
    @overload
    def __call__(
        self: Results[AdamOptimizer], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> _OutputParametersTensorOutputFirstMomentTensorOutputSecondMomentTensor[NDArray[Any]]: ...
    @overload
    def __call__(
        self: Results[AdamOptimizer], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> _OutputParametersTensorOutputFirstMomentTensorOutputSecondMomentTensor[Other]: ...
    @overload
    def __call__(
        self: Results[BatchNormalizationGrad | BatchNormalizationTrainingGrad], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> _OutputGradientTensorOutputScaleGradientTensorOutputBiasGradientTensor[NDArray[Any]]: ...
    @overload
    def __call__(
        self: Results[BatchNormalizationGrad | BatchNormalizationTrainingGrad], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> _OutputGradientTensorOutputScaleGradientTensorOutputBiasGradientTensor[Other]: ...
    @overload
    def __call__(
        self: Results[BatchNormalizationTraining], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> _OutputTensorOutputMeanTensorOutputVarianceTensor[NDArray[Any]]: ...
    @overload
    def __call__(
        self: Results[BatchNormalizationTraining], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> _OutputTensorOutputMeanTensorOutputVarianceTensor[Other]: ...
    @overload
    def __call__(
        self: Results[DynamicQuantizeLinear], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> _OutputTensorOutputScaleTensorOutputZeroPointTensor[NDArray[Any]]: ...
    @overload
    def __call__(
        self: Results[DynamicQuantizeLinear], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> _OutputTensorOutputScaleTensorOutputZeroPointTensor[Other]: ...
    @overload
    def __call__(
        self: Results[NonzeroCoordinates], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> _OutputCountTensorOutputCoordinatesTensor[NDArray[Any]]: ...
    @overload
    def __call__(
        self: Results[NonzeroCoordinates], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> _OutputCountTensorOutputCoordinatesTensor[Other]: ...
    @overload
    def __call__(
        self: Results[Split], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> tuple[NDArray[Any], ...]: ...
    @overload
    def __call__(
        self: Results[Split], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> tuple[Other, ...]: ...
    @overload
    def __call__(
        self: Results[TopK | TopK1], /,
        *inputs: Plain | Sequence[Plain],
        **bindings: Plain | Sequence[Plain],
    ) -> _OutputValueTensorOutputIndexTensor[NDArray[Any]]: ...
    @overload
    def __call__(
        self: Results[TopK | TopK1], /,
        *inputs: Other | Sequence[Other],
        **bindings: Other | Sequence[Other],
    ) -> _OutputValueTensorOutputIndexTensor[Other]: ...
    @overload
    def __call__(
        self, /,
        *inputs: Plain | Exporter | Sequence[Plain | Exporter],
        **bindings: Plain | Exporter | Sequence[Plain | Exporter],
    ) -> Any: ...
