"""Quantized windows: convolution and pooling of integers with scales and zero points.

An integer represents the number ``(integer - zero point) * scale``; an omitted zero point is 0.
Elements of the padding represent 0: they equal the zero point. Sums of integers are exact. A scaled
result is computed in FLOAT64, rounded once, with ties to even, and clamped to the range of its
type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import boolean, count_of, input_field, output_field, uint, uints
from anydml.ops._quantized import (
    align_to_axis,
    centred,
    named_specs,
    parameters,
    quantized,
    type_of_output,
    wrapped,
)
from anydml.ops._rules import rank_of, same_ranks
from anydml.ops._windows import window_of
from anydml.ops.convolution import Convolution, ConvolutionDirection
from anydml.ops.pooling import AveragePooling, AveragePooling1, Dilated

FAMILY = Family.QUANTIZED


class Filtered(Computed):
    """The positions of a sliding filter.

    Parameters
    ----------
    dimension_count : int, optional
        The number of spatial dimensions; by default the length of `strides`.
    strides : sequence of int
        The step from one window to the next, for each spatial dimension.
    dilations : sequence of int
        The step from one filter element to the next.
    start_padding : sequence of int
        The number of elements, equal to the zero point, before each spatial dimension.
    end_padding : sequence of int
        The number of elements, equal to the zero point, after each spatial dimension.
    group_count : int
        The number of groups of channels.
    """

    dimension_count: int = count_of("strides")
    strides: Sequence[int] = uints()
    dilations: Sequence[int] = uints()
    start_padding: Sequence[int] = uints()
    end_padding: Sequence[int] = uints()
    group_count: int = uint()

    WORKING_BYTES = 48
    IN_PIECES = True

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        specs = named_specs(cls, inputs)
        data, filters = specs["InputTensor"], specs["FilterTensor"]
        plain = [data, filters, specs.get("BiasTensor")]
        plain = [spec and ArraySpec(spec.shape, data.dtype) for spec in plain]
        forward = {**attributes, "direction": ConvolutionDirection.FORWARD}
        inferred = Convolution.infer(plain, forward)
        rank, channels = rank_of(data), known(lambda: filters.shape[0])
        dtype = type_of_output(specs) if "OutputZeroPointTensor" in specs else np.dtype(np.int32)
        return Inferred.of(
            (ArraySpec(inferred.outputs[0].shape, dtype),),
            inferred.violations,
            parameters(specs, "Input", rank, None, 1),
            parameters(specs, "Filter", rank, 1 - rank, channels),
            parameters(specs, "Output", rank, None, 1),
        )


_WINDOW: Final[dict[str, Any]] = {
    "input_tensor": [[[[2, 3, 4], [5, 6, 7], [8, 9, 10]]]], "input_zero_point_tensor": [[[[1]]]],
    "filter_tensor": [[[[1, 1], [1, 1]]]],
    "strides": (1, 1), "dilations": (1, 1), "start_padding": (0, 0), "end_padding": (0, 1),
    "group_count": 1,
}  # fmt: skip


class IntegerTensors(Computed):
    """The tensors of a convolution of integers.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, ..}``.
    input_zero_point_tensor : TensorDesc, optional
        One element with the type of the input.
    filter_tensor : TensorDesc
        ``{output channels, channels / groups, ..}``.
    filter_zero_point_tensor : TensorDesc, optional
        One element, or one element for each output channel, with the type of the filter.
    output_tensor : TensorDesc
        ``{batches, output channels, ..}``.
    """

    input_tensor: TensorDesc = input_field()
    input_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    filter_tensor: TensorDesc = input_field()
    filter_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()


class ConvolutionInteger(Filtered, IntegerTensors):
    """The convolution of integers, after subtraction of their zero points."""

    NAME = "CONVOLUTION_INTEGER"
    EXAMPLES = (_WINDOW,)
    ALSO_KNOWN_AS = "onnx.ConvInteger"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        inferred, specs = super().infer(inputs, attributes), named_specs(cls, inputs)
        first, second = (
            (name, specs[name]) for name in ("FilterZeroPointTensor", "InputZeroPointTensor")
        )
        return Inferred.of(inferred.outputs, inferred.violations, same_ranks(first, second))

    @staticmethod
    def compute(
        e: Engine, x: Array, x_zero: Array | None, w: Array, w_zero: Array | None, **attributes: Any
    ) -> Array:
        return wrapped(e, _convolved(e, x, x_zero, w, w_zero, attributes))


class QuantizedTensors(Computed):
    """The tensors of a quantized convolution.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, ..}``.
    input_scale_tensor : TensorDesc
        One element.
    input_zero_point_tensor : TensorDesc, optional
        One element with the type of the input.
    filter_tensor : TensorDesc
        ``{output channels, channels / groups, ..}``.
    filter_scale_tensor : TensorDesc
        One element, or one element for each output channel.
    filter_zero_point_tensor : TensorDesc, optional
        One element, or one element for each output channel, with the type of the filter.
    bias_tensor : TensorDesc, optional
        ``{1, output channels, 1, ..}``, in units of the input scale times the filter scale.
    output_scale_tensor : TensorDesc
        One element.
    output_zero_point_tensor : TensorDesc, optional
        One element with the type of the output.
    output_tensor : TensorDesc
        ``{batches, output channels, ..}``.
    """

    input_tensor: TensorDesc = input_field()
    input_scale_tensor: TensorDesc = input_field()
    input_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    filter_tensor: TensorDesc = input_field()
    filter_scale_tensor: TensorDesc = input_field()
    filter_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    bias_tensor: TensorDesc | None = input_field(optional=True)
    output_scale_tensor: TensorDesc = input_field()
    output_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()


class QuantizedLinearConvolution(Filtered, QuantizedTensors):
    """The quantized convolution of a quantized tensor with a quantized filter."""

    NAME = "QUANTIZED_LINEAR_CONVOLUTION"
    EXAMPLES = ({
        **_WINDOW, "input_scale_tensor": [[[[0.5]]]], "filter_scale_tensor": [[[[2.0]]]],
        "bias_tensor": [[[[1]]]], "output_scale_tensor": [[[[2.0]]]],
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.QLinearConv torch.ao.nn.quantized.functional.conv2d"

    @staticmethod
    def compute(
        e: Engine, x: Array, x_scale: Array, x_zero: Array | None, w: Array, w_scale: Array,
        w_zero: Array | None, bias: Array | None, scale: Array, zero: Array | None,
        **attributes: Any,
    ) -> Array:  # fmt: skip
        total = _convolved(e, x, x_zero, w, w_zero, attributes)
        if bias is not None:
            total = total + bias
        real = total * align_to_axis(x_scale, -1) * align_to_axis(w_scale, 1 - w.ndim)
        return quantized(e, real, align_to_axis(scale, -1), zero)


def _convolved(
    e: Engine,
    x: Array,
    x_zero: Array | None,
    w: Array,
    w_zero: Array | None,
    attributes: Attributes,
) -> Array:
    window, groups = window_of(attributes, w.shape[2:]), attributes["group_count"]
    return e.conv(centred(x, x_zero), centred(w, w_zero, -w.ndim), window, groups)


class PooledTensors(Computed):
    """The tensors of quantized pooling.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, ..}`` with 2 or 3 spatial dimensions.
    input_scale_tensor : TensorDesc
        One element, or one element for each channel.
    input_zero_point_tensor : TensorDesc, optional
        One element, or one element for each channel, with the type of the input.
    output_scale_tensor : TensorDesc
        One element, or one element for each channel.
    output_zero_point_tensor : TensorDesc, optional
        One element, or one element for each channel, with the type of the output.
    output_tensor : TensorDesc
        ``{batches, channels, ..}``.
    """

    input_tensor: TensorDesc = input_field()
    input_scale_tensor: TensorDesc = input_field()
    input_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_scale_tensor: TensorDesc = input_field()
    output_zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()


class QuantizedLinearAveragePooling(Dilated, PooledTensors):
    """The quantized mean of each window of a quantized tensor.

    Parameters
    ----------
    include_padding : bool
        Whether the mean includes padding, as zeros.
    """

    ONE_DIMENSION_COUNT = False

    include_padding: bool = boolean()

    NAME = "QUANTIZED_LINEAR_AVERAGE_POOLING"
    WORKING_BYTES = 48
    EXAMPLES = ({
        **Dilated.EXAMPLES[0], "include_padding": False,
        "input_scale_tensor": [[[[0.5]]]], "output_scale_tensor": [[[[0.25]]]],
    },)  # fmt: skip
    ALSO_KNOWN_AS = "com.microsoft.QLinearAveragePool torch.ao.nn.quantized.functional.avg_pool2d"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        specs = named_specs(cls, inputs)
        data = specs["InputTensor"]
        inferred = AveragePooling1.infer((data,), attributes)
        rank, channels = rank_of(data), known(lambda: data.shape[1])
        return Inferred.of(
            (ArraySpec(inferred.outputs[0].shape, type_of_output(specs)),),
            inferred.violations,
            parameters(specs, "Input", rank, 1 - rank, channels),
            parameters(specs, "Output", rank, 1 - rank, channels),
        )

    @staticmethod
    def compute(
        e: Engine, x: Array, x_scale: Array, x_zero: Array | None, scale: Array,
        zero: Array | None, **attributes: Any,
    ) -> Array:  # fmt: skip
        channel = 1 - x.ndim
        mean = AveragePooling.compute(e, centred(x, x_zero, channel), **attributes)
        return quantized(
            e, mean * align_to_axis(x_scale, channel), align_to_axis(scale, channel), zero, channel
        )
