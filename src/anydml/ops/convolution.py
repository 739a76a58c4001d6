"""Convolution: convolution and transposed convolution of images and volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml.core._literals import ConvolutionDirectionName, ConvolutionModeName
from anydml.core.enums import NamedEnum
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import products
from anydml.engines import Array, Engine
from anydml.engines._windows import Window
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import count_of, enumeration, input_field, nested, output_field, uint, uints
from anydml.ops._rules import (
    at_least,
    equal,
    if_within,
    of_rank,
    rank_of,
    same_ranks,
    same_types,
    usable,
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


class ConvolutionDirection(NamedEnum):
    """``DML_CONVOLUTION_DIRECTION``: a convolution, or the transpose of one."""

    FORWARD = 0
    BACKWARD = 1


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

    ONE_DIMENSION_COUNT = True

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
    MULTIPLIES = True
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
        backward = known(lambda: attributes["direction"] == ConvolutionDirection.BACKWARD)
        if backward is True:
            return {**attributes, "output_padding": self._kept(attributes)}
        return attributes

    def _kept(self, attributes: Attributes) -> Any:
        """The output padding, increased if the declared output is larger by less than a stride."""
        padding, output = attributes["output_padding"], spec_of(self.output_tensor).shape
        data, filters = spec_of(self.input_tensor), spec_of(self.filter_tensor)
        sizes, _ = _transposed_sizes(data, filters, attributes)
        if any(array is UNKNOWN for array in (padding, output, sizes)) or len(output) < 3:
            return padding
        strides = usable(attributes["strides"], len(sizes))

        def kept(padded: int, size: int, n: int, stride: int) -> int:
            return padded + size - n if n < size and padded + size - n < stride else padded

        steps = zip(padding, output[2:], sizes, strides, strict=False)
        changed = [(step[0], known(kept, *step)) for step in steps]
        return tuple(old if new is UNKNOWN else new for old, new in changed)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, filters, bias = inputs
        operands = ("InputTensor", data), ("FilterTensor", filters), ("BiasTensor", bias)
        backward = known(lambda: attributes["direction"] == ConvolutionDirection.BACKWARD)
        filters = of_rank(filters, rank_of(data))
        groups = attributes["group_count"]
        channels = known(lambda: filters.shape[1] * groups if backward else filters.shape[0])
        sizes, fits = UNKNOWN, list[Rules]()
        if backward is True:
            sizes, fits = _transposed_sizes(data, filters, attributes)
        elif backward is False:
            window = known(lambda: filters.shape[2:])
            sizes, fits = count_windows(data, window, "FilterTensor.Sizes[{}]", attributes, 2)
        shape = known(lambda: (data.shape[0], channels, *sizes))
        return Inferred.of(
            (ArraySpec(shape, data.dtype),),
            same_types(*operands),
            same_ranks(*operands),
            check_arrays(attributes, operands[0]),
            _groups(data, filters, groups, backward),
            _bias_sizes(bias, channels, rank_of(data)),
            *fits,
        )

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
            window = Window(w.shape[2:], [1] * len(strides), pads, dilations)
            y = e.conv(x, w, window, group_count, strides)
        else:
            y = e.conv(x, w, Window(w.shape[2:], strides, pads, dilations), group_count)
            if any(output_padding):
                y = e.xp.pad(y, [(0, 0), (0, 0), *((0, more) for more in output_padding)])
        return y if bias is None else y + bias


def _exchange_channels(e: Engine, w: Array, groups: int) -> Array:
    """Exchange the input and output channels of a filter within each group."""
    parts = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    swapped = e.xp.swapaxes(parts, 1, 2)
    return swapped.reshape(groups * w.shape[1], w.shape[0] // groups, *w.shape[2:])


def _groups(data: ArraySpec, filters: ArraySpec, groups: int, backward: bool) -> Rules:
    """Check that groups divide the channels, and that the filter has the channels of one group."""
    channels = data.shape[1]
    yield at_least("GroupCount", groups, 1)
    of_one_group = known(lambda: channels // groups if groups > 0 == channels % groups else UNKNOWN)
    yield _divides(groups, channels, "InputTensor.Sizes[1]")
    yield _filter_channels(filters, groups, channels, of_one_group, backward)


def _divides(groups: int, channels: int, where: str) -> Rules:
    if groups > 0 and channels % groups:
        yield Violation("GroupCount", f"a divisor of {channels} ({where})", groups)


def _filter_channels(
    filters: ArraySpec, groups: int, channels: int, of_one_group: int, backward: bool
) -> Rules:
    path = "FilterTensor.Sizes[{}]"
    if backward:
        yield equal(path.format(0), filters.shape[0], channels, "InputTensor.Sizes[1]")
    else:
        yield _divides(groups, filters.shape[0], path.format(0))
        why = "InputTensor.Sizes[1] / GroupCount"
        yield equal(path.format(1), filters.shape[1], of_one_group, why)


def _bias_sizes(bias: ArraySpec | None, channels: int, rank: Any) -> Rules:
    for axis, size in enumerate(of_rank(bias, rank).shape if bias else ()):
        expected, why = (channels, "the output's channels") if axis == 1 else (1, "")
        yield equal(f"BiasTensor.Sizes[{axis}]", size, expected, why)


def _transposed_sizes(
    data: ArraySpec, filters: ArraySpec, attributes: Attributes
) -> tuple[Any, list[Rules]]:
    """The spatial sizes of the output of a BACKWARD convolution, and their rules."""
    if data.shape is UNKNOWN:
        return UNKNOWN, []
    count = len(data.shape) - 2
    sizes, rules = [], list[Rules]()
    names = ("start_padding", "end_padding", "output_padding")
    window = filters.shape if filters.shape is UNKNOWN else filters.shape[2:]
    for i, (size, taps, stride, dilation, start, end, more) in enumerate(
        zip(
            data.shape[2:], usable(window, count, True),
            *(usable(attributes[name], count, True) for name in ("strides", "dilations")),
            *(usable(attributes[name], count) for name in names), strict=True,
        )
    ):  # fmt: skip
        full = (size - 1) * stride + (taps - 1) * dilation + 1 + more
        rules.append(_less_than_unpadded(i, start + end, full))
        sizes.append(if_within(full - start - end, 1, full))
    return sizes, [*rules, check_sizes(sizes)]


def _less_than_unpadded(i: int, padding: int, full: int) -> Rules:
    if padding >= full:
        rule = f"less than {full} together with EndPadding[{i}] (the unpadded size)"
        yield Violation(f"StartPadding[{i}]", rule, padding)
