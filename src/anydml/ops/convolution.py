"""Convolution: convolution and transposed convolution of images and volumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anydml.core._literals import ConvolutionDirectionName, ConvolutionModeName
from anydml.core.enums import NamedEnum
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import products
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed, same_as, same_rank
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import (
    count_of,
    enumeration,
    input_field,
    nested,
    output_field,
    uint,
    uints,
)
from anydml.ops._shapes import spec_of
from anydml.ops._windows import check_arrays, check_sizes, count_windows
from anydml.ops.activations import FUSABLE, Fusable
from anydml.ops.elementwise import ElementWiseClip

FAMILY = Family.NETWORKS


class ConvolutionMode(NamedEnum):
    """``DML_CONVOLUTION_MODE``: whether the filter is flipped along its spatial dimensions."""

    CONVOLUTION = 0
    CROSS_CORRELATION = 1

    @classmethod
    def prefix(cls) -> str:
        return "DML_CONVOLUTION_MODE_"


class ConvolutionDirection(NamedEnum):
    """``DML_CONVOLUTION_DIRECTION``: a convolution, or the transpose of one."""

    FORWARD = 0
    BACKWARD = 1

    @classmethod
    def prefix(cls) -> str:
        return "DML_CONVOLUTION_DIRECTION_"


@dataclass(frozen=True, kw_only=True, repr=False)
class Convolution(Computed):
    """``activation(filter * input + bias)``, or the transpose of that convolution.

    FORWARD: the output size of each spatial dimension is ``(padded - span) // stride + 1 + output
    padding``, where ``span = (window - 1) * dilation + 1``. The elements of the output padding are
    the bias, or 0 without a bias.

    BACKWARD: the output size is ``(size - 1) * stride + span - start - end + output padding``;
    padding is cropped from the result. A declared output may be up to ``stride - 1`` elements
    larger, as with output padding.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, ..}`` with 2 or 3 spatial dimensions; from feature level 4_0, also 1.
    filter_tensor : TensorDesc
        FORWARD: ``{output channels, channels / groups, ..}``. BACKWARD:
        ``{channels, output channels / groups, ..}``.
    bias_tensor : TensorDesc, optional
        ``{1, output channels, 1, ..}``: added to each element of a channel.
    output_tensor : TensorDesc
        ``{batches, output channels, ..}``.
    mode : ConvolutionMode or str
        CROSS_CORRELATION, as in neural networks, or CONVOLUTION, which flips the filter.
    direction : ConvolutionDirection or str
        FORWARD, or BACKWARD for the transposed convolution.
    dimension_count : int, optional
        The number of spatial dimensions; by default the length of `strides`.
    strides : sequence of int
        The step from one window to the next, for each spatial dimension.
    dilations : sequence of int
        The step from one filter element to the next.
    start_padding : sequence of int
        The number of zeros before each spatial dimension.
    end_padding : sequence of int
        The number of zeros after each spatial dimension.
    output_padding : sequence of int
        The number of elements to add after each spatial dimension of the output.
    group_count : int
        The number of groups of channels.
    fused_activation : Activation, optional
        The activation that is applied to the result; its tensors are omitted.
    """

    input_tensor: TensorDesc = input_field()
    filter_tensor: TensorDesc = input_field()
    bias_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()
    mode: ConvolutionMode | ConvolutionModeName = enumeration(ConvolutionMode)
    direction: ConvolutionDirection | ConvolutionDirectionName = enumeration(ConvolutionDirection)
    dimension_count: int = count_of("strides")
    strides: Sequence[int] = uints()
    dilations: Sequence[int] = uints()
    start_padding: Sequence[int] = uints()
    end_padding: Sequence[int] = uints()
    output_padding: Sequence[int] = uints()
    group_count: int = uint()
    fused_activation: Fusable | ElementWiseClip | None = nested(*FUSABLE, ElementWiseClip)

    NAME = "CONVOLUTION"
    TOLERANCE = products(8)
    WORKING_BYTES = 24
    IN_PIECES = True
    ALSO_KNOWN_AS = (
        "onnx.Conv onnx.ConvTranspose torch.nn.functional.conv2d "
        "torch.nn.functional.conv_transpose2d jax.lax.conv_general_dilated"
    )
    EXAMPLES = ({
        "input_tensor": [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]],
        "filter_tensor": [[[[1, 0], [0, -1]]]],
        "bias_tensor": [[[[10]]]],
        "mode": "CROSS_CORRELATION", "direction": "FORWARD",
        "strides": (1, 1), "dilations": (1, 1), "start_padding": (0, 0), "end_padding": (0, 1),
        "output_padding": (0, 0), "group_count": 1,
    },)  # fmt: skip

    def attributes(self) -> Attributes:
        attributes = super().attributes()
        if attributes["direction"] is ConvolutionDirection.BACKWARD:
            return {**attributes, "output_padding": self._kept(attributes)}
        return attributes

    def _kept(self, attributes: Attributes) -> tuple[int, ...]:
        """The output padding, increased if the declared output is larger by less than a stride."""
        padding: tuple[int, ...] = attributes["output_padding"]
        tensors = self.input_tensor, self.filter_tensor, self.output_tensor
        arrays = (tensor.sizes[2:] for tensor in tensors)
        names = ("strides", "dilations", "start_padding", "end_padding", "output_padding")
        if len({len(array) for array in (*arrays, *(attributes[name] for name in names))}) != 1:
            return padding
        sizes, _ = _transposed_sizes(spec_of(tensors[0]), spec_of(tensors[1]), attributes)
        steps = zip(
            padding, self.output_tensor.sizes[2:], sizes, attributes["strides"], strict=True
        )
        return tuple(
            padded + size - n if n < size and padded + size - n < stride else padded
            for padded, size, n, stride in steps
        )

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, filters, bias = inputs
        named_operands = ("InputTensor", data), ("FilterTensor", filters), ("BiasTensor", bias)
        arrays = list(check_arrays(data, attributes))
        found = [*same_as(*named_operands, sizes=False), *same_rank(*named_operands), *arrays]
        if len(data.shape) != len(filters.shape):
            return Inferred((data,), tuple(found))
        found += _channel_violations(data, filters, attributes)
        backward = attributes["direction"] is ConvolutionDirection.BACKWARD
        channels = filters.shape[1] * attributes["group_count"] if backward else filters.shape[0]
        if bias is not None and len(bias.shape) == len(data.shape):
            bias_shape = (1, channels, *(1 for _ in data.shape[2:]))
            for axis, (expected, got) in enumerate(zip(bias_shape, bias.shape, strict=True)):
                if expected != got:
                    rule = f"{expected} (the output's channels)" if axis == 1 else "1"
                    found.append(Violation(f"BiasTensor.Sizes[{axis}]", rule, got))
        if arrays:
            return Inferred((data,), tuple(found))
        if backward:
            sizes, violations = _transposed_sizes(data, filters, attributes)
        else:
            paths = [f"FilterTensor.Sizes[{axis}]" for axis in range(2, len(data.shape))]
            sizes, violations = count_windows(data, filters.shape[2:], paths, attributes)
        shape = (data.shape[0], channels, *sizes)
        return Inferred((ArraySpec(shape, data.dtype),), (*found, *violations))

    @staticmethod
    def compute(
        e: Engine,
        x: Array,
        w: Array,
        bias: Array | None,
        *,
        mode: ConvolutionMode,
        direction: ConvolutionDirection,
        strides: Sequence[int],
        dilations: Sequence[int],
        start_padding: Sequence[int],
        end_padding: Sequence[int],
        output_padding: Sequence[int],
        group_count: int,
    ) -> Array:
        pads = list(zip(start_padding, end_padding, strict=True))
        backward = direction is ConvolutionDirection.BACKWARD
        if backward != (mode is ConvolutionMode.CONVOLUTION):
            w = e.xp.flip(w, tuple(range(2, w.ndim)))
        if backward:
            pads = [
                ((n - 1) * step - start, (n - 1) * step - end + more)
                for n, step, (start, end), more in zip(
                    w.shape[2:], dilations, pads, output_padding, strict=True
                )
            ]
            w = _exchange_channels(e, w, group_count)
            y = e.conv(x, w, strides=[1] * len(strides), pads=pads, dilations=dilations,
                       groups=group_count, input_dilations=strides)  # fmt: skip
        else:
            y = e.conv(x, w, strides=strides, pads=pads, dilations=dilations, groups=group_count)
            if any(output_padding):
                y = e.xp.pad(y, [(0, 0), (0, 0), *((0, more) for more in output_padding)])
        return y if bias is None else y + bias


def _exchange_channels(e: Engine, w: Array, groups: int) -> Array:
    """Exchange the input and output channels of a filter within each group."""
    parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    swapped = e.xp.swapaxes(parts, 1, 2)
    return swapped.reshape(groups * w.shape[1], w.shape[0] // groups, *w.shape[2:])


def _channel_violations(
    data: ArraySpec, filters: ArraySpec, attributes: Attributes
) -> Iterator[Violation]:
    """Check that groups divide the channels, and that the filter has the channels of one group."""
    groups, channels = attributes["group_count"], data.shape[1]
    backward = attributes["direction"] is ConvolutionDirection.BACKWARD
    if groups < 1:
        if groups == 0:  # a UINT is not negative
            yield Violation("GroupCount", "at least 1", groups)
        return
    if channels % groups:
        yield Violation("GroupCount", f"a divisor of {channels} (InputTensor.Sizes[1])", groups)
    if backward:
        if filters.shape[0] != channels:
            rule = f"{channels} (InputTensor.Sizes[1])"
            yield Violation("FilterTensor.Sizes[0]", rule, filters.shape[0])
        return
    if filters.shape[0] % groups:
        rule = f"a divisor of {filters.shape[0]} (FilterTensor.Sizes[0])"
        yield Violation("GroupCount", rule, groups)
    if channels % groups == 0 and filters.shape[1] != channels // groups:
        rule = f"{channels // groups} (InputTensor.Sizes[1] / GroupCount)"
        yield Violation("FilterTensor.Sizes[1]", rule, filters.shape[1])


def _transposed_sizes(
    data: ArraySpec, filters: ArraySpec, attributes: Attributes
) -> tuple[list[int], list[Violation]]:
    """The spatial sizes of the output of a BACKWARD convolution."""
    sizes, found = [], list[Violation]()
    for i, (size, window) in enumerate(zip(data.shape[2:], filters.shape[2:], strict=True)):
        start, end, more, stride, dilation = (
            attributes[name][i]
            for name in ("start_padding", "end_padding", "output_padding", "strides", "dilations")
        )
        full = (size - 1) * stride + (window - 1) * dilation + 1 + more
        if start + end >= full:
            rule = f"less than {full} together with EndPadding[{i}] (the unpadded size)"
            found.append(Violation(f"StartPadding[{i}]", rule, start + end))
        sizes.append(full - start - end)
    return sizes, [*found, *check_sizes(sizes)]
