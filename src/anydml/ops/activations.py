"""Activations: elementwise functions that may also be fused into another operator.

A fused activation omits its tensors and is applied to the result of the enclosing operator.
"""

from __future__ import annotations

from math import inf, isfinite
from typing import Final, TypeAlias

from anydml.core.errors import Violation
from anydml.core.levels import FeatureLevel
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import products, ulp
from anydml.engines import Array, Engine
from anydml.ops._computed import Map
from anydml.ops._family import Family
from anydml.ops._fields import floating, input_field, output_field

FAMILY = Family.NETWORKS

_SCALED: Final = ulp(72)
"""The product in front of `exp` is rounded: 64 ULPs of the power where it is above 64."""


class Activation(Map):
    """Base of the activations.

    Parameters
    ----------
    input_tensor : TensorDesc
        The input of the function; omitted if the activation is fused.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input; omitted if the activation is fused.
    """

    input_tensor: TensorDesc | None = input_field(fused=True)
    output_tensor: TensorDesc | None = output_field(fused=True)

    FUSED = True
    WORKING_BYTES = 32


def _wide(e: Engine, x: Array, *parameters: float, when: bool = False) -> Array:
    """``x``, in FLOAT64 where `when`, or where a product with a parameter may leave FLOAT32."""
    is_moderate = all(not p or 1 / 256 <= abs(p) <= 256 for p in parameters)
    return x if is_moderate and not when else x.astype(e.xp.float64)


class ActivationIdentity(Activation):
    """``x``."""

    NAME = "ACTIVATION_IDENTITY"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return x


class ActivationRelu(Activation):
    """``max(0, x)``; NaN is unchanged."""

    NAME = "ACTIVATION_RELU"
    ALSO_KNOWN_AS = "onnx.Relu torch.nn.functional.relu jax.nn.relu"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return e.xp.maximum(x, e.xp.zeros_like(x))  # NumPy is slower with one zero


class ActivationLeakyRelu(Activation):
    """``x`` if it is not negative, else ``alpha * x``.

    Parameters
    ----------
    alpha : float
        The slope for negative elements.
    """

    alpha: float = floating()

    NAME = "ACTIVATION_LEAKY_RELU"
    EXAMPLES = ({"alpha": 0.1},)
    TOLERANCE = ulp(1)
    ALSO_KNOWN_AS = "onnx.LeakyRelu torch.nn.functional.leaky_relu jax.nn.leaky_relu"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float) -> Array:
        factor = x.dtype.type(alpha)
        line = factor * x
        if 0 < factor <= 1:  # 0 times infinity is NaN
            return e.xp.maximum(x, line)
        return e.xp.where(x >= 0, x, line)


class ActivationLinear(Activation):
    """``alpha * x + beta``.

    Parameters
    ----------
    alpha : float
        The slope.
    beta : float
        The constant that is added.
    """

    alpha: float = floating()
    beta: float = floating()

    NAME = "ACTIVATION_LINEAR"
    EXAMPLES = ({"alpha": 2.0, "beta": 1.0},)
    TOLERANCE = products(4)

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float, beta: float) -> Array:
        return x.dtype.type(alpha) * x + x.dtype.type(beta)


class ActivationSigmoid(Activation):
    """``1 / (1 + exp(-x))``."""

    NAME = "ACTIVATION_SIGMOID"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Sigmoid torch.sigmoid torch.nn.functional.sigmoid jax.nn.sigmoid"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        one = x.dtype.type(1)
        return one / (one + e.xp.exp(-x))  # where the power overflows, the result rounds to 0


class ActivationTanh(Activation):
    """``tanh(x)``."""

    NAME = "ACTIVATION_TANH"
    FUNCTION = "tanh"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Tanh numpy.tanh torch.tanh jax.numpy.tanh jax.lax.tanh"


class ActivationThresholdedRelu(Activation):
    """``x`` if it is greater than alpha, else 0; NaN becomes 0.

    Parameters
    ----------
    alpha : float
        The threshold.
    """

    alpha: float = floating()

    NAME = "ACTIVATION_THRESHOLDED_RELU"
    EXAMPLES = ({"alpha": 1.0},)
    ALSO_KNOWN_AS = "onnx.ThresholdedRelu"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float) -> Array:
        return e.xp.where(x > x.dtype.type(alpha), x, x.dtype.type(0))


def _kinked(e: Engine, x: Array, alpha: float) -> Array:
    """``x`` if it is not negative, else ``alpha * (exp(x) - 1)``."""
    scale, zero = x.dtype.type(alpha), x.dtype.type(0)
    if isfinite(scale):  # two terms, of which one is 0, take less time than a choice
        return e.xp.maximum(x, zero) + scale * e.xp.expm1(e.xp.minimum(x, zero))
    return e.xp.where(x >= 0, x, scale * e.xp.expm1(x))


class ActivationElu(Activation):
    """``x`` if it is not negative, else ``alpha * (exp(x) - 1)``.

    Parameters
    ----------
    alpha : float
        The negated limit for ``x`` towards -infinity.
    """

    alpha: float = floating()

    NAME = "ACTIVATION_ELU"
    EXAMPLES = ({"alpha": 1.0},)
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Elu torch.nn.functional.elu jax.nn.elu"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float) -> Array:
        return _kinked(e, x, alpha)


class ActivationScaledElu(Activation):
    """``gamma * x`` if ``x`` is greater than 0, else ``gamma * (alpha * exp(x) - alpha)``.

    Parameters
    ----------
    alpha : float
        The negated limit for ``x`` towards -infinity, before scaling.
    gamma : float
        The scale.
    """

    alpha: float = floating()
    gamma: float = floating()

    NAME = "ACTIVATION_SCALED_ELU"
    EXAMPLES = ({"alpha": 1.6732, "gamma": 1.0507},)
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Selu torch.nn.functional.selu jax.nn.selu"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float, gamma: float) -> Array:
        x = _wide(e, x, alpha, gamma)
        return x.dtype.type(gamma) * _kinked(e, x, alpha)


class ActivationCelu(Activation):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``.

    Parameters
    ----------
    alpha : float
        The negated limit for ``x`` towards -infinity.
    """

    alpha: float = floating()

    NAME = "ACTIVATION_CELU"
    EXAMPLES = ({"alpha": 2.0},)
    TOLERANCE = ulp(8)
    ALSO_KNOWN_AS = "onnx.Celu torch.nn.functional.celu jax.nn.celu"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float) -> Array:
        x = _wide(e, x, alpha, when=alpha < 0)  # powers above 1 multiply the quotient's rounding
        zero, scale = x.dtype.type(0), x.dtype.type(alpha)
        return e.xp.maximum(x, zero) + e.xp.minimum(scale * e.xp.expm1(x / scale), zero)


def softplus(e: Engine, x: Array, alpha: float, beta: float) -> Array:
    """``alpha * log(1 + exp(beta * x))``, even if ``beta * x`` is out of the range of the type."""
    x = _wide(e, x, alpha, beta, when=abs(alpha) > 1)  # which makes denormal powers normal numbers
    kind = x.dtype.type
    # alpha takes over the size of beta, so that the line above 0 is x or -x, times one number.
    size = abs(beta) if 1 < abs(beta) < inf else 1.0
    line = e.xp.maximum(kind(beta / size) * x, kind(0))
    return kind(alpha * size) * (
        line + e.xp.log1p(e.xp.exp(-e.xp.abs(kind(beta) * x))) / kind(size)
    )


class ActivationSoftplus(Activation):
    """``log(1 + exp(steepness * x)) / steepness``.

    Parameters
    ----------
    steepness : float
        The steepness, at least 1; from feature level 6_4, any number greater than 0.
    """

    steepness: float = floating()

    NAME = "ACTIVATION_SOFTPLUS"
    EXAMPLES = ({"steepness": 1.0},)
    TOLERANCE = _SCALED
    ALSO_KNOWN_AS = "onnx.Softplus torch.nn.functional.softplus jax.nn.softplus"

    def rules_at(self, level: FeatureLevel) -> Rules:
        below_1 = FeatureLevel.LEVEL_6_4
        if level < below_1 and not self.steepness >= 1:
            rule = f"at least 1 at feature level {level} (above 0 from {below_1})"
            yield Violation("Steepness", rule, self.steepness)
        elif not self.steepness > 0:
            yield Violation("Steepness", "a number above 0", self.steepness)

    @staticmethod
    def compute(e: Engine, x: Array, *, steepness: float) -> Array:
        return softplus(e, x, 1 / steepness, steepness)


class ActivationParametricSoftplus(Activation):
    """``alpha * log(1 + exp(beta * x))``.

    Parameters
    ----------
    alpha : float
        The scale of the result.
    beta : float
        The scale of ``x``.
    """

    alpha: float = floating()
    beta: float = floating()

    NAME = "ACTIVATION_PARAMETRIC_SOFTPLUS"
    EXAMPLES = ({"alpha": 2.0, "beta": 1.0},)
    TOLERANCE = _SCALED

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float, beta: float) -> Array:
        return softplus(e, x, alpha, beta)


class ActivationSoftsign(Activation):
    """``x / (1 + |x|)``."""

    NAME = "ACTIVATION_SOFTSIGN"
    TOLERANCE = ulp(2)
    ALSO_KNOWN_AS = "onnx.Softsign torch.nn.functional.softsign jax.nn.soft_sign"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return x / (x.dtype.type(1) + e.xp.abs(x))


class ActivationHardSigmoid(Activation):
    """``max(0, min(alpha * x + beta, 1))``.

    Parameters
    ----------
    alpha : float
        The slope.
    beta : float
        The result at 0.
    """

    alpha: float = floating()
    beta: float = floating()

    NAME = "ACTIVATION_HARD_SIGMOID"
    EXAMPLES = ({"alpha": 0.2, "beta": 0.5},)
    TOLERANCE = products(4)
    ALSO_KNOWN_AS = "onnx.HardSigmoid torch.nn.functional.hardsigmoid jax.nn.hard_sigmoid"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float, beta: float) -> Array:
        x = _wide(e, x, alpha, when=abs(beta) > 1)  # the sum may cancel
        kind = x.dtype.type
        line = kind(alpha) * x + kind(beta)
        return e.xp.maximum(kind(0), e.xp.minimum(line, kind(1)))


class ActivationHardSwish(ActivationHardSigmoid):
    """``x * max(0, min(alpha * x + beta, 1))``.

    Parameters
    ----------
    alpha : float
        The slope of the factor.
    beta : float
        The factor at 0.
    """

    NAME = "ACTIVATION_HARD_SWISH"
    FUSED = False
    EXAMPLES = ({"alpha": 1 / 6, "beta": 0.5},)
    ALSO_KNOWN_AS = "onnx.HardSwish torch.nn.functional.hardswish jax.nn.hard_swish"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float, beta: float) -> Array:
        return x * ActivationHardSigmoid.compute(e, x, alpha=alpha, beta=beta)


class ActivationSwish(Activation):
    """``x * sigmoid(sigmoid_input_scale * x)``.

    Parameters
    ----------
    sigmoid_input_scale : float
        The scale of ``x`` in the factor.
    """

    sigmoid_input_scale: float = floating()

    NAME = "ACTIVATION_SWISH"
    FUSED = False
    EXAMPLES = ({"sigmoid_input_scale": 1.0},)
    TOLERANCE = _SCALED
    ALSO_KNOWN_AS = "onnx.Swish torch.nn.functional.silu jax.nn.silu jax.nn.swish"

    @staticmethod
    def compute(e: Engine, x: Array, *, sigmoid_input_scale: float) -> Array:
        x = _wide(e, x, sigmoid_input_scale)
        zero, one, half = map(x.dtype.type, (0, 1, 0.5))
        z = x.dtype.type(sigmoid_input_scale) * x
        # XLA's CPU flushes denormal powers, which x may make normal: multiply by the root twice.
        root = e.xp.exp(e.xp.minimum(z, zero) * half)
        return x * root * (root / (one + e.xp.exp(-e.xp.abs(z))))


class ActivationScaledTanh(Activation):
    """``alpha * tanh(beta * x)``.

    Parameters
    ----------
    alpha : float
        The scale of the result.
    beta : float
        The scale of ``x``.
    """

    alpha: float = floating()
    beta: float = floating()

    NAME = "ACTIVATION_SCALED_TANH"
    EXAMPLES = ({"alpha": 2.0, "beta": 0.5},)
    TOLERANCE = ulp(8)

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float, beta: float) -> Array:
        x = _wide(e, x, alpha, beta)
        return x.dtype.type(alpha) * e.xp.tanh(x.dtype.type(beta) * x)


class ActivationGelu(Activation):
    """``x / 2 * (1 + erf(x / sqrt(2)))``."""

    NAME = "ACTIVATION_GELU"
    WORKING_BYTES = 56
    TOLERANCE = products(16)
    ALSO_KNOWN_AS = "onnx.Gelu torch.nn.functional.gelu jax.nn.gelu"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        kind = x.dtype.type
        return kind(0.5) * x * (kind(1) + e.erf(x * kind(0.5**0.5)))


class ActivationShrink(Activation):
    """``x + bias`` below ``-threshold``, ``x - bias`` above ``threshold``, else 0.

    Integers are computed in float64 and converted as by CAST.

    Parameters
    ----------
    bias : float
        The constant that is added to elements below the threshold and subtracted from those above
        it.
    threshold : float
        The threshold.
    """

    bias: float = floating()
    threshold: float = floating()

    NAME = "ACTIVATION_SHRINK"
    EXAMPLES = ({"bias": 0.25, "threshold": 1.0},)
    ALSO_KNOWN_AS = "onnx.Shrink torch.nn.functional.softshrink torch.nn.functional.hardshrink"

    @staticmethod
    def compute(e: Engine, x: Array, *, bias: float, threshold: float) -> Array:
        x = x if x.dtype.kind == "f" else x.astype(e.xp.float64)
        shift, bound, zero = (x.dtype.type(value) for value in (bias, threshold, 0.0))
        above = e.xp.where(x > bound, x - shift, zero)
        return e.xp.where(x < -bound, x + shift, above)


class ActivationParameterizedRelu(Map):
    """``x`` if it is not negative, else ``slope * x``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The input of the function.
    slope_tensor : TensorDesc
        The slope for negative elements, for each element, with the type and sizes of the input.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    """

    input_tensor: TensorDesc = input_field()
    slope_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()

    NAME = "ACTIVATION_PARAMETERIZED_RELU"
    ALSO_KNOWN_AS = "onnx.PRelu torch.nn.functional.prelu"

    @staticmethod
    def compute(e: Engine, x: Array, slope: Array) -> Array:
        return e.xp.where(x >= 0, x, slope * x)


Fusable: TypeAlias = (
    ActivationCelu | ActivationElu | ActivationGelu | ActivationHardSigmoid | ActivationIdentity
    | ActivationLeakyRelu | ActivationLinear | ActivationParametricSoftplus | ActivationRelu
    | ActivationScaledElu | ActivationScaledTanh | ActivationShrink | ActivationSigmoid
    | ActivationSoftplus | ActivationSoftsign | ActivationTanh | ActivationThresholdedRelu
)  # fmt: skip

FUSABLE: Final = Fusable.__args__
"""The activations that another operator may contain."""
