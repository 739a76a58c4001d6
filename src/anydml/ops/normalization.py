"""Normalization: scale elements by their mean and variance, their norm or their neighbours.

BATCH_NORMALIZATION computes elements in FLOAT32; the other operators compute in FLOAT64 and round
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml.core.errors import Violation
from anydml.core.levels import FeatureLevel
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules, differ
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import products, ulp
from anydml.engines import Array, Engine
from anydml.ops._axes import mean, neighbours, total
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import (
    axes_field,
    axis_field,
    boolean,
    count_of,
    floating,
    input_field,
    nested,
    output_field,
    uint,
)
from anydml.ops._maps import Function
from anydml.ops._rules import at_least, axis_in_range, broadcast_to, distinct_axes, rank_of
from anydml.ops._shapes import Named
from anydml.ops.activations import FUSABLE, ActivationRelu, Fusable

FAMILY = Family.NETWORKS


def _as_input(operator: type[Computed], inputs: Sequence[Any], *more: Rules) -> Inferred:
    # One output like the first input, to which the other inputs are broadcast.
    first, *others = zip(operator.input_names(), inputs, strict=True)
    return Inferred.of((inputs[0],), broadcast_to(first, *others), *more)


class BatchNormalization(Computed):
    """``activation(scale * (x - mean) / sqrt(variance + epsilon) + bias)``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize.
    mean_tensor, variance_tensor, scale_tensor, bias_tensor : TensorDesc
        Broadcast to the input: each size is 1 or that of the input.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    spatial : bool
        False if mean and variance differ between positions: below feature level 4_0, their last two
        sizes must then be those of the input. From feature level 4_0 it has no effect.
    epsilon : float
        The constant that is added to the variance.
    fused_activation : Activation, optional
        The activation that is applied to the result; its tensors are omitted.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    mean_tensor: TensorDesc = input_field()
    variance_tensor: TensorDesc = input_field()
    scale_tensor: TensorDesc = input_field()
    bias_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    spatial: bool = boolean()
    epsilon: float = floating()
    fused_activation: Fusable | None = nested(*FUSABLE)

    NAME = "BATCH_NORMALIZATION"
    WORKING_BYTES = 16
    TOLERANCE = products(8)
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2.0, 3.0]], [[4.0, 5.0, 6.0]]]],
        "mean_tensor": [[[[2.0]], [[5.0]]]], "variance_tensor": [[[[1.0]], [[4.0]]]],
        "scale_tensor": [[[[1.0]], [[2.0]]]], "bias_tensor": [[[[0.5]], [[0.0]]]], "spatial": True,
        "epsilon": 0.0, "fused_activation": ActivationRelu(),
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.BatchNormalization torch.nn.functional.batch_norm"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        return _as_input(cls, inputs)

    def rules_at(self, level: FeatureLevel) -> Rules:
        if level >= FeatureLevel.LEVEL_4_0 or self.spatial:
            return
        for name in ("mean_tensor", "variance_tensor"):
            yield _not_broadcast(self.named("input_tensor"), self.named(name))

    @staticmethod
    def compute(
        e: Engine, x: Array, mean: Array, variance: Array, scale: Array, bias: Array, *,
        spatial: bool, epsilon: float,
    ) -> Array:  # fmt: skip
        wide = e.xp.float64
        factor = scale.astype(wide) / e.xp.sqrt(variance.astype(wide) + epsilon)
        return _scaled(e, x - mean, factor) + bias


def _scaled(e: Engine, x: Array, factor: Array) -> Array:
    """``x * factor`` in the type of x; the factor, in FLOAT64, may be out of its range."""
    if x.dtype == e.xp.float64:
        return x * factor
    # Multiply by the root twice: between the two, the product is between x and the result.
    root = e.xp.sqrt(e.xp.abs(factor))
    root = e.xp.where(e.xp.isfinite(root) & (root > 0), root, 1.0).astype(x.dtype)
    return x * root * (factor / root.astype(factor.dtype)).astype(x.dtype)


def normalize(
    e: Engine, x: Array, scale: Array | None, bias: Array | None, axes: Sequence[int],
    use_mean: bool, use_variance: bool, epsilon: float,
) -> Array:  # fmt: skip
    """``scale * (x - mean) / sqrt(variance + epsilon) + bias``, with optional parts."""
    y = x - mean(e, x, axes) if use_mean else x.astype(e.xp.float64)
    if use_variance:
        factor = 1 / e.xp.sqrt(mean(e, y * y, axes) + epsilon)
        y = y * (factor if scale is None else factor * scale)
    elif scale is not None:
        y = y * scale
    return y if bias is None else y + bias


def _not_broadcast(first: Named, other: Named) -> Rules:
    assert first[1] is not None
    assert other[1] is not None
    sizes = [*enumerate(zip(other[1].shape, first[1].shape, strict=False))]
    for i, (size, expected) in sizes[-2:]:
        rule = f"{expected} (InputTensor.Sizes[{i}], as Spatial is False) below level 4_0"
        if not differ(size, 1) and differ(expected, 1):
            yield Violation(f"{other[0]}.Sizes[{i}]", rule, size)


def _both_or_neither(desc: Any, level: FeatureLevel) -> Rules:
    # Scale and bias, below level 5_2.
    pair = {"ScaleTensor": desc.scale_tensor, "BiasTensor": desc.bias_tensor}
    if level >= FeatureLevel.LEVEL_5_2 or len({value is None for value in pair.values()}) == 1:
        return
    (name,) = (name for name, value in pair.items() if value is None)
    (other,) = pair.keys() - {name}
    yield Violation(name, f"a tensor below level 5_2, because {other} is present", None)


class MeanVarianceNormalization(Computed):
    """``activation(scale * (x - mean) / sqrt(variance + epsilon) + bias)`` of images.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize, ``{batches, channels, height, width}``.
    scale_tensor, bias_tensor : TensorDesc, optional
        Broadcast to the input: each size is 1 or that of the input. Below feature level 5_2, either
        both or neither must be present.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    cross_channel : bool
        Whether mean and variance are computed across channels.
    normalize_variance : bool
        Whether elements are divided by the standard deviation.
    epsilon : float
        The constant that is added to the variance.
    fused_activation : Activation, optional
        The activation that is applied to the result; its tensors are omitted.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    scale_tensor: TensorDesc | None = input_field(optional=True)
    bias_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()
    cross_channel: bool = boolean()
    normalize_variance: bool = boolean()
    epsilon: float = floating()
    fused_activation: Fusable | None = nested(*FUSABLE)

    NAME = "MEAN_VARIANCE_NORMALIZATION"
    TOLERANCE = ulp(1)
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2.0, 3.0]], [[4.0, 6.0, 8.0]]]], "cross_channel": False,
        "normalize_variance": True, "epsilon": 0.5,
    },)  # fmt: skip

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        return _as_input(cls, inputs)

    def rules_at(self, level: FeatureLevel) -> Rules:
        yield _both_or_neither(self, level)

    @staticmethod
    def compute(
        e: Engine, x: Array, scale: Array | None, bias: Array | None, *,
        cross_channel: bool, normalize_variance: bool, epsilon: float,
    ) -> Array:  # fmt: skip
        axes = (1, 2, 3) if cross_channel else (2, 3)
        return normalize(e, x, scale, bias, axes, True, normalize_variance, epsilon)


class AxesNormalization(Computed):
    """Base of the operators with an `axes` field."""

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    scale_tensor: TensorDesc | None = input_field(optional=True)
    bias_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()
    axis_count: int = count_of("axes")
    axes: Sequence[int] = axes_field()

    TOLERANCE = ulp(1)

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        return _as_input(cls, inputs, distinct_axes(attributes["axes"], ("InputTensor", inputs[0])))


def _all_channels(data: Named, other: Named) -> Rules:
    assert data[1] is not None
    if other[1] is None or rank_of(data[1]) < 2 or rank_of(other[1]) < 2:
        return
    channels, got = data[1].shape[1], other[1].shape[1]
    if got == 1 != channels:
        rule = f"{channels} (InputTensor.Sizes[1]) below level 4_0"
        yield Violation(f"{other[0]}.Sizes[1]", rule, got)


class MeanVarianceNormalization1(AxesNormalization):
    """``activation(scale * (x - mean) / sqrt(variance + epsilon) + bias)`` along some axes.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize.
    scale_tensor, bias_tensor : TensorDesc, optional
        Broadcast to the input: each size is 1 or that of the input. Below feature level 4_0, the
        second size must be that of the input. Below feature level 5_2, either both or neither must
        be present.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    axis_count : int
        The length of `axes`.
    axes : sequence of int
        The axes along which mean and variance are computed, in any order.
    normalize_variance : bool
        Whether elements are divided by the standard deviation.
    epsilon : float
        The constant that is added to the variance.
    fused_activation : Activation, optional
        The activation that is applied to the result; its tensors are omitted.
    """

    normalize_variance: bool = boolean()
    epsilon: float = floating()
    fused_activation: Fusable | None = nested(*FUSABLE)

    NAME = "MEAN_VARIANCE_NORMALIZATION1"
    EXAMPLES = ({
        "input_tensor": [[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]], "scale_tensor": [[2.0, 1.0, 1.0]],
        "bias_tensor": [[0.0, 0.0, 0.5]], "axes": (1,), "normalize_variance": True, "epsilon": 0.5,
    },)  # fmt: skip

    def rules_at(self, level: FeatureLevel) -> Rules:
        yield _both_or_neither(self, level)
        if level < FeatureLevel.LEVEL_4_0:
            for name in ("scale_tensor", "bias_tensor"):
                yield _all_channels(self.named("input_tensor"), self.named(name))

    @staticmethod
    def compute(
        e: Engine, x: Array, scale: Array | None, bias: Array | None, *,
        axes: Sequence[int], normalize_variance: bool, epsilon: float,
    ) -> Array:  # fmt: skip
        return normalize(e, x, scale, bias, axes, True, normalize_variance, epsilon)


class MeanVarianceNormalization2(AxesNormalization):
    """``activation(scale * (x - mean) / sqrt(variance + epsilon) + bias)``, parts optional.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize.
    scale_tensor, bias_tensor : TensorDesc, optional
        Broadcast to the input: each size is 1 or that of the input.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    axis_count : int
        The length of `axes`.
    axes : sequence of int
        The axes along which mean and variance are computed, in any order.
    use_mean : bool
        Whether the mean is subtracted. If not, the variance is computed with a mean of 0.
    use_variance : bool
        Whether elements are divided by the standard deviation.
    epsilon : float
        The constant that is added to the variance.
    fused_activation : Activation, optional
        The activation that is applied to the result; its tensors are omitted.
    """

    use_mean: bool = boolean()
    use_variance: bool = boolean()
    epsilon: float = floating()
    fused_activation: Fusable | None = nested(*FUSABLE)

    NAME = "MEAN_VARIANCE_NORMALIZATION2"
    EXAMPLES = ({
        "input_tensor": [[1.0, 2.0, 3.0], [4.0, 6.0, 8.0]], "scale_tensor": [[2.0, 1.0, 1.0]],
        "axes": (1,), "use_mean": False, "use_variance": True, "epsilon": 0.0,
    },)  # fmt: skip
    ALSO_KNOWN_AS = (
        "onnx.MeanVarianceNormalization onnx.InstanceNormalization onnx.LayerNormalization "
        "onnx.RMSNormalization torch.nn.functional.instance_norm torch.nn.functional.layer_norm "
        "torch.nn.functional.rms_norm"
    )

    @staticmethod
    def compute(
        e: Engine, x: Array, scale: Array | None, bias: Array | None, *,
        axes: Sequence[int], use_mean: bool, use_variance: bool, epsilon: float,
    ) -> Array:  # fmt: skip
        return normalize(e, x, scale, bias, axes, use_mean, use_variance, epsilon)


class LpNormalization(Computed):
    """Divides each element by the norm along an axis: ``x / max(norm, epsilon)``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    axis : int
        The axis of the norm.
    epsilon : float
        The smallest divisor.
    p : int
        1 for ``sum(|x|)``, 2 for ``sqrt(sum(x * x))``.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()
    epsilon: float = floating()
    p: int = uint()

    NAME = "LP_NORMALIZATION"
    TOLERANCE = ulp(1)
    EXAMPLES = ({"input_tensor": [[3.0, -4.0], [0.0, 0.0]], "axis": 1, "epsilon": 1e-5, "p": 2},)
    ALSO_KNOWN_AS = "onnx.LpNormalization torch.nn.functional.normalize"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data = "InputTensor", inputs[0]
        return Inferred.of((inputs[0],), axis_in_range(attributes["axis"], data))

    def check(self) -> Rules:
        if self.p not in (1, 2):
            yield Violation("P", "1 or 2", self.p)

    @staticmethod
    def compute(e: Engine, x: Array, *, axis: int, epsilon: float, p: int) -> Array:
        wide = x.astype(e.xp.float64)
        norm = total(e, e.xp.abs(wide) if p == 1 else wide * wide, (axis,))
        return wide / e.xp.maximum(norm if p == 1 else e.xp.sqrt(norm), epsilon)


class LocalResponseNormalization(Function):
    """``x / (bias + alpha / local_size * sum(x * x)) ** beta``, summed over a neighbourhood.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize, ``{batches, channels, height, width}``.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    cross_channel : bool
        True for neighbours in other channels at the same position, False for neighbours at other
        positions in the same channel.
    local_size : int
        The number of neighbours along the channels, or along height and along width, at least 1:
        ``(local_size - 1) // 2`` before the element, the element, and the others after it.
    alpha, beta, bias : float
        The parameters of the formula.
    """

    cross_channel: bool = boolean()
    local_size: int = uint()
    alpha: float = floating()
    beta: float = floating()
    bias: float = floating()

    NAME = "LOCAL_RESPONSE_NORMALIZATION"
    ELEMENTWISE = False
    TOLERANCE = ulp(1)
    INPUTS = ([[[[1.0]], [[2.0]], [[3.0]], [[4.0]]]],)
    EXAMPLES = ({"cross_channel": True, "local_size": 3, "alpha": 3.0, "beta": 0.5, "bias": 1.0},)
    ALSO_KNOWN_AS = "onnx.LRN torch.nn.functional.local_response_norm"

    def check(self) -> Rules:
        yield at_least("LocalSize", self.local_size, 1)

    @staticmethod
    def compute(
        e: Engine, x: Array, *,
        cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float,
    ) -> Array:  # fmt: skip
        wide = x.astype(e.xp.float64)
        around = wide * wide
        for axis in (1,) if cross_channel else (2, 3):
            around = neighbours(e, around, axis, local_size)
        return wide / (bias + alpha / local_size * around) ** beta
