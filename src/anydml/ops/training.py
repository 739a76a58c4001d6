"""Training: batch normalization, its gradients, and the Adam optimizer.

All operators compute in FLOAT64 and round once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import ulp
from anydml.engines import Array, Engine
from anydml.ops._axes import mean, total
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import floating, input_field, nested, output_field
from anydml.ops._rules import broadcast_to, equal, same, same_types
from anydml.ops.activations import FUSABLE, Fusable

FAMILY = Family.TRAINING


def _reduced(parameters: Array) -> tuple[int, ...]:
    """The axes along which the parameters have size 1."""
    return tuple(axis for axis, size in enumerate(parameters.shape) if size == 1)


class BatchNormalizationTraining(Computed):
    """``activation(scale * (x - mean) / sqrt(variance + epsilon) + bias + more)``.

    Mean and variance of the input are computed along the dimensions in which the scale has size 1.
    The variance is the mean of the squared differences.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize.
    scale_tensor, bias_tensor : TensorDesc
        Broadcast to the input: each size is 1 or that of the input.
    fused_add_tensor : TensorDesc, optional
        The tensor to add to the result before the activation, with the sizes of the input.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    output_mean_tensor, output_variance_tensor : TensorDesc
        The mean and the variance, with the sizes of the scale.
    epsilon : float
        The constant that is added to the variance.
    fused_activation : Activation, optional
        The activation that is applied to the result; its tensors are omitted.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    scale_tensor: TensorDesc = input_field()
    bias_tensor: TensorDesc = input_field()
    fused_add_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()
    output_mean_tensor: TensorDesc = output_field()
    output_variance_tensor: TensorDesc = output_field()
    epsilon: float = floating()
    fused_activation: Fusable | None = nested(*FUSABLE)

    NAME = "BATCH_NORMALIZATION_TRAINING"
    TOLERANCE = ulp(1)
    WORKING_BYTES = 32
    EXAMPLES = ({
        "input_tensor": [[1.0, 4.0], [2.0, 4.0], [3.0, 10.0]],
        "scale_tensor": [[1.0, 2.0]], "bias_tensor": [[0.5, 0.0]], "epsilon": 0.5,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.ops.aten.native_batch_norm"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, scale, bias, more = inputs
        return Inferred.of(
            (data, scale, scale),
            broadcast_to(("InputTensor", data), ("ScaleTensor", scale)),
            same(("ScaleTensor", scale), ("BiasTensor", bias)),
            same(("InputTensor", data), ("FusedAddTensor", more)),
        )

    @staticmethod
    def compute(
        e: Engine, x: Array, scale: Array, bias: Array, more: Array | None, *, epsilon: float
    ) -> tuple[Array, Array, Array]:
        axes = _reduced(scale)
        middle = mean(e, x, axes)
        centred = x - middle
        variance = mean(e, centred * centred, axes)
        y = centred * (scale / e.xp.sqrt(variance + epsilon)) + bias
        return y if more is None else y + more, middle, variance


class NormalizationGradient(Computed):
    """The fields that the gradients of batch normalization have.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor that was normalized.
    input_gradient_tensor : TensorDesc
        The gradient of the result, with the sizes of the input.
    mean_tensor, variance_tensor, scale_tensor : TensorDesc
        Broadcast to the input: each size is 1 or that of the input. All three have the same sizes.
    output_gradient_tensor : TensorDesc
        The gradient of the input.
    output_scale_gradient_tensor, output_bias_gradient_tensor : TensorDesc
        The gradients of scale and bias, with the sizes of the scale.
    epsilon : float
        The constant that is added to the variance.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    input_gradient_tensor: TensorDesc = input_field()
    mean_tensor: TensorDesc = input_field()
    variance_tensor: TensorDesc = input_field()
    scale_tensor: TensorDesc = input_field()
    output_gradient_tensor: TensorDesc = output_field()
    output_scale_gradient_tensor: TensorDesc = output_field()
    output_bias_gradient_tensor: TensorDesc = output_field()
    epsilon: float = floating()

    TOLERANCE = ulp(1)
    WORKING_BYTES = 48
    EXAMPLES = ({
        "input_tensor": [[1.0, 4.0], [2.0, 4.0], [3.0, 10.0]],
        "input_gradient_tensor": [[1.0, 0.0], [0.0, 0.0], [2.0, 1.0]],
        "mean_tensor": [[2.0, 6.0]], "variance_tensor": [[0.5, 8.0]],
        "scale_tensor": [[1.0, 2.0]], "epsilon": 0.5,
    },)  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, gradient, middle, variance, scale = inputs
        first, mean = ("InputTensor", data), ("MeanTensor", middle)
        return Inferred.of(
            (data, middle, middle),
            same(first, ("InputGradientTensor", gradient)),
            broadcast_to(first, mean),
            same(mean, ("VarianceTensor", variance), ("ScaleTensor", scale)),
        )


class BatchNormalizationGrad(NormalizationGradient):
    """The gradients of BATCH_NORMALIZATION, with constant mean and variance."""

    NAME = "BATCH_NORMALIZATION_GRAD"

    @staticmethod
    def compute(
        e: Engine, x: Array, dy: Array, middle: Array, variance: Array, scale: Array, *,
        epsilon: float,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        axes = _reduced(middle)
        factor = 1 / e.xp.sqrt(variance.astype(e.xp.float64) + epsilon)
        scaled = total(e, dy * (x - middle.astype(e.xp.float64)) * factor, axes)
        return dy * (scale * factor), scaled, total(e, dy, axes)


class BatchNormalizationTrainingGrad(NormalizationGradient):
    """The gradients of BATCH_NORMALIZATION_TRAINING, including those through mean and variance."""

    NAME = "BATCH_NORMALIZATION_TRAINING_GRAD"
    ALSO_KNOWN_AS = "torch.ops.aten.native_batch_norm_backward"

    @staticmethod
    def compute(
        e: Engine, x: Array, dy: Array, middle: Array, variance: Array, scale: Array, *,
        epsilon: float,
    ) -> tuple[Array, Array, Array]:  # fmt: skip
        axes = _reduced(middle)
        wide, divisor = x.astype(e.xp.float64), variance.astype(e.xp.float64) + epsilon
        factor = 1 / e.xp.sqrt(divisor)
        centred = wide - mean(e, wide, axes)
        correlation = mean(e, dy * centred, axes)
        dx = scale * factor * (dy - mean(e, dy, axes) - centred * correlation / divisor)
        return dx, total(e, dy * (wide - middle) * factor, axes), total(e, dy, axes)


def _one_element(path: str, spec: ArraySpec) -> Rules:
    for i, size in enumerate(spec.shape):
        yield equal(f"{path}.Sizes[{i}]", size, 1)


class AdamOptimizer(Computed):
    """Updates parameters and the moments of their gradient by one step of the Adam algorithm.

    ``m = beta1 * m + (1 - beta1) * g``, ``v = beta2 * v + (1 - beta2) * g * g`` and
    ``x = x - rate * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (sqrt(v) + epsilon)``.

    Parameters
    ----------
    input_parameters_tensor, input_first_moment_tensor, input_second_moment_tensor : TensorDesc
        The parameters x, first moments m and second moments v, with the same type and sizes.
    gradient_tensor : TensorDesc
        The gradient g, with the same type and sizes.
    training_step_tensor : TensorDesc
        The number t of the step: one element with the same type.
    output_parameters_tensor, output_first_moment_tensor, output_second_moment_tensor : TensorDesc
        The values of x, m and v after the step.
    learning_rate : float
        The rate in the formula.
    beta1, beta2 : float
        The decay rates of the first and the second moment.
    epsilon : float
        The constant that is added to the root of the second moment.
    """

    ONE_DIMENSION_COUNT = True

    input_parameters_tensor: TensorDesc = input_field()
    input_first_moment_tensor: TensorDesc = input_field()
    input_second_moment_tensor: TensorDesc = input_field()
    gradient_tensor: TensorDesc = input_field()
    training_step_tensor: TensorDesc = input_field()
    output_parameters_tensor: TensorDesc = output_field()
    output_first_moment_tensor: TensorDesc = output_field()
    output_second_moment_tensor: TensorDesc = output_field()
    learning_rate: float = floating()
    beta1: float = floating()
    beta2: float = floating()
    epsilon: float = floating()

    NAME = "ADAM_OPTIMIZER"
    NOT_IN_PLACE = ("TrainingStepTensor",)
    TOLERANCE = ulp(1)
    WORKING_BYTES = 24
    EXAMPLES = ({
        "input_parameters_tensor": [[[[1.0, 2.0]]]],
        "input_first_moment_tensor": [[[[0.0, 0.5]]]],
        "input_second_moment_tensor": [[[[0.0, 1.0]]]],
        "gradient_tensor": [[[[3.0, -1.0]]]],
        "training_step_tensor": [[[[1.0]]]],
        "learning_rate": 0.5, "beta1": 0.5, "beta2": 0.75, "epsilon": 0.0,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.optim.Adam"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        first, *others, step = zip(cls.input_names(), inputs, strict=True)
        return Inferred.of(
            (inputs[0],) * 3, same(first, *others), same_types(first, step), _one_element(*step)
        )

    @staticmethod
    def compute(
        e: Engine, x: Array, m: Array, v: Array, g: Array, t: Array, *,
        learning_rate: float, beta1: float, beta2: float, epsilon: float,
    ) -> tuple[Any, Any, Any]:  # fmt: skip
        x, m, v, g, t = (y.astype(e.xp.float64) for y in (x, m, v, g, t))
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * (g * g)
        correction = e.xp.sqrt(1 - e.xp.float64(beta2) ** t) / (1 - e.xp.float64(beta1) ** t)
        return x - learning_rate * correction * m / (e.xp.sqrt(v) + epsilon), m, v
