"""Elementwise arithmetic: compute each output element from the input elements at the same position.

Inputs and output have the same data type and sizes. Strides of 0 broadcast an input. Integers wrap
around, and an integer divided by 0 is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml.core._literals import DataTypeName, RoundingModeName
from anydml.core.dtypes import DataType
from anydml.core.enums import NamedEnum
from anydml.core.errors import Violation
from anydml.core.levels import FeatureLevel
from anydml.core.rules import Rules
from anydml.core.tolerance import sums, ulp
from anydml.engines import Array, Engine
from anydml.ops._family import Family
from anydml.ops._fields import (
    ScaleBias,
    count_of,
    enumeration,
    floating,
    floats,
    nested,
    scalar,
    scale_bias,
)
from anydml.ops._maps import Binary, Function, Unary
from anydml.ops._rules import equal, type_of_scalar
from anydml.ops.activations import FUSABLE, Activation, ActivationRelu, Fusable

FAMILY = Family.ELEMENTWISE


class ElementWiseSubtract(Binary):
    """``A - B``."""

    NAME = "ELEMENT_WISE_SUBTRACT"
    FUNCTION = "subtract"
    ALSO_KNOWN_AS = "onnx.Sub numpy.subtract torch.sub jax.numpy.subtract jax.lax.sub"


class ElementWiseAdd(Binary):
    """``A + B``."""

    NAME = "ELEMENT_WISE_ADD"
    FUNCTION = "add"
    ALSO_KNOWN_AS = "onnx.Add numpy.add torch.add jax.numpy.add jax.lax.add"


class ElementWiseAdd1(ElementWiseAdd):
    """``activation(A + B)``.

    Parameters
    ----------
    fused_activation : Activation, optional
        The activation that is applied to the sum; its tensors are omitted.
    """

    fused_activation: Fusable | None = nested(*FUSABLE)

    NAME = "ELEMENT_WISE_ADD1"
    ALSO_KNOWN_AS = ""
    EXAMPLES = ({"fused_activation": ActivationRelu()},)


class ElementWiseMultiply(Binary):
    """``A * B``."""

    NAME = "ELEMENT_WISE_MULTIPLY"
    FUNCTION = "multiply"
    ALSO_KNOWN_AS = "onnx.Mul numpy.multiply torch.mul jax.numpy.multiply jax.lax.mul"


class ElementWiseDivide(Binary):
    """``A / B``; integers are rounded towards zero, and the result is 0 where B is 0."""

    NAME = "ELEMENT_WISE_DIVIDE"
    ALSO_KNOWN_AS = "onnx.Div numpy.divide torch.div jax.numpy.divide jax.lax.div"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return a / b if a.dtype.kind == "f" else quotient(e, a, b)


def quotient(e: Engine, a: Array, b: Array, *, rounds_down: bool = False) -> Array:
    """``a / b`` of integers, rounded towards zero or down; 0 where b is 0."""
    divisor = e.xp.where(b == 0, b.dtype.type(1), b)
    found = a // divisor
    if a.dtype.kind == "i" and not rounds_down:
        away = (found * divisor != a) & ((a < 0) != (divisor < 0))
        found = found + away.astype(a.dtype)
    return e.xp.where(b == 0, b.dtype.type(0), found)


class ElementWiseModulusFloor(Binary):
    """``A - B * floor(A / B)``, with the sign of ``B``; for integers, ``A`` where B is 0."""

    NAME = "ELEMENT_WISE_MODULUS_FLOOR"
    ALSO_KNOWN_AS = "onnx.Mod numpy.mod torch.remainder jax.numpy.mod"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return e.xp.mod(a, b)
        return a - b * quotient(e, a, b, rounds_down=True)


class ElementWiseModulusTruncate(Binary):
    """``A - B * trunc(A / B)``, with the sign of ``A``; for integers, ``A`` where B is 0."""

    NAME = "ELEMENT_WISE_MODULUS_TRUNCATE"
    ALSO_KNOWN_AS = "numpy.fmod torch.fmod jax.numpy.fmod jax.lax.rem"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return e.xp.fmod(a, b) if a.dtype.kind == "f" else a - b * quotient(e, a, b)


class ElementWiseMax(Binary):
    """The larger of ``A`` and ``B``; NaN if either is NaN."""

    NAME = "ELEMENT_WISE_MAX"
    FUNCTION = "maximum"
    ALSO_KNOWN_AS = "onnx.Max numpy.maximum torch.maximum jax.numpy.maximum jax.lax.max"


class ElementWiseMin(Binary):
    """The smaller of ``A`` and ``B``; NaN if either is NaN."""

    NAME = "ELEMENT_WISE_MIN"
    FUNCTION = "minimum"
    ALSO_KNOWN_AS = "onnx.Min numpy.minimum torch.minimum jax.numpy.minimum jax.lax.min"


class ElementWiseMean(Binary):
    """``(A + B) / 2``; for integers the sum wraps around and the half is rounded towards zero."""

    NAME = "ELEMENT_WISE_MEAN"
    TOLERANCE = sums(2)
    ALSO_KNOWN_AS = "onnx.Mean"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":  # halve first: the sum might overflow
            half = a.dtype.type(0.5)
            return a * half + b * half
        return quotient(e, a + b, e.xp.asarray(a.dtype.type(2)))


class ElementWiseDifferenceSquare(Binary):
    """``(A - B) * (A - B)``."""

    NAME = "ELEMENT_WISE_DIFFERENCE_SQUARE"
    TOLERANCE = ulp(2)

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return (a - b) * (a - b)


class ElementWiseAbs(Unary):
    """The absolute value; the most negative integer is unchanged."""

    NAME = "ELEMENT_WISE_ABS"
    FUNCTION = "abs"
    ALSO_KNOWN_AS = "onnx.Abs numpy.abs torch.abs jax.numpy.abs jax.lax.abs"


class ElementWiseNegate(Function):
    """``-x``; the most negative integer is unchanged."""

    NAME = "ELEMENT_WISE_NEGATE"
    FUNCTION = "negative"
    ALSO_KNOWN_AS = "onnx.Neg numpy.negative torch.neg jax.numpy.negative jax.lax.neg"


class ElementWiseSign(Function):
    """-1, 0 or 1 where ``x`` is negative, 0 or positive; 0 where ``x`` is NaN."""

    NAME = "ELEMENT_WISE_SIGN"
    ALSO_KNOWN_AS = "onnx.Sign numpy.sign torch.sign jax.numpy.sign jax.lax.sign"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        zero = x.dtype.type(0)
        return (x > zero).astype(x.dtype) - (x < zero).astype(x.dtype)


class ElementWiseCeil(Unary):
    """The smallest integer that is not less than ``x``."""

    NAME = "ELEMENT_WISE_CEIL"
    FUNCTION = "ceil"
    ALSO_KNOWN_AS = "onnx.Ceil numpy.ceil torch.ceil jax.numpy.ceil jax.lax.ceil"


class ElementWiseFloor(Unary):
    """The largest integer that is not greater than ``x``."""

    NAME = "ELEMENT_WISE_FLOOR"
    FUNCTION = "floor"
    ALSO_KNOWN_AS = "onnx.Floor numpy.floor torch.floor jax.numpy.floor jax.lax.floor"


class RoundingMode(NamedEnum):
    """``DML_ROUNDING_MODE``: the integer to which a number is rounded."""

    HALVES_TO_NEAREST_EVEN = 0
    TOWARD_ZERO = 1
    TOWARD_INFINITY = 2


class ElementWiseRound(Function):
    """Rounds to the nearest integer, or towards zero.

    Parameters
    ----------
    rounding_mode : RoundingMode
        HALVES_TO_NEAREST_EVEN rounds to the nearest integer, with ties to even. TOWARD_INFINITY
        rounds to the nearest integer, with ties away from zero. TOWARD_ZERO discards the fraction.
    """

    rounding_mode: RoundingMode | RoundingModeName = enumeration(RoundingMode)

    NAME = "ELEMENT_WISE_ROUND"
    EXAMPLES = ({"rounding_mode": "HALVES_TO_NEAREST_EVEN"},)
    ALSO_KNOWN_AS = "onnx.Round numpy.round numpy.rint torch.round jax.numpy.round jax.lax.round"

    @staticmethod
    def compute(e: Engine, x: Array, *, rounding_mode: RoundingMode) -> Array:
        if rounding_mode == RoundingMode.HALVES_TO_NEAREST_EVEN:
            return e.xp.rint(x)
        truncated = e.xp.trunc(x)
        if rounding_mode == RoundingMode.TOWARD_ZERO:
            return truncated
        half = e.xp.abs(x - truncated) >= x.dtype.type(0.5)
        return truncated + e.xp.where(half, e.xp.copysign(x.dtype.type(1), x), x.dtype.type(0))


class ElementWiseRecip(Unary):
    """``1 / x``."""

    NAME = "ELEMENT_WISE_RECIP"
    ALSO_KNOWN_AS = "onnx.Reciprocal numpy.reciprocal torch.reciprocal jax.numpy.reciprocal"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return x.dtype.type(1) / x


class ElementWiseThreshold(Unary):
    """``max(x, Min)``; NaN is unchanged.

    Parameters
    ----------
    min : float
        The lower bound; for integer tensors it is converted as by CAST.
    """

    min: float = floating()

    NAME = "ELEMENT_WISE_THRESHOLD"
    EXAMPLES = ({"min": 0.25},)

    @staticmethod
    def compute(e: Engine, x: Array, *, min: float) -> Array:
        return e.xp.maximum(x, number(e, min, x))


def number(e: Engine, value: float, like: Array) -> Any:
    """Convert a FLOAT attribute to the data type of a tensor, as CAST does."""
    kind = like.dtype
    return kind.type(value) if kind.kind == "f" else e.cast(e.xp.asarray(value), kind)


def between(e: Engine, x: Array, low: Any, high: Any) -> Array:
    """``max(low, min(x, high))``."""
    return e.xp.clip(x, low, e.xp.maximum(low, high))


class ElementWiseClip(Activation):
    """``max(Min, min(x, Max))``; NaN is unchanged.

    From feature level 6_0, it can be fused into CONVOLUTION and GEMM.

    Parameters
    ----------
    scale_bias : ScaleBias, optional
        The scale and bias that are applied to each input element first: ``x * scale + bias``.
    min, max : float
        The lower and the upper bound; for integer tensors they are converted as by CAST.
    """

    scale_bias: ScaleBias | None = scale_bias()
    min: float = floating()
    max: float = floating()

    NAME = "ELEMENT_WISE_CLIP"
    FUSED_SINCE = FeatureLevel.LEVEL_6_0
    EXAMPLES = ({"min": -1.0, "max": 1.0},)

    @staticmethod
    def compute(e: Engine, x: Array, *, min: float, max: float) -> Array:
        return between(e, x, number(e, min, x), number(e, max, x))


class ElementWiseClip1(Unary):
    """``max(Min, min(x, Max))`` with bounds in the data type of the tensors; NaN is unchanged.

    Parameters
    ----------
    min_max_data_type : DataType
        The type of the bounds, which must equal the type of the tensors.
    min, max : int or float
        The lower and the upper bound.
    """

    min_max_data_type: DataType | DataTypeName = enumeration(DataType)
    min: int | float = scalar("min_max_data_type")
    max: int | float = scalar("min_max_data_type")

    NAME = "ELEMENT_WISE_CLIP1"
    EXAMPLES = ({"min_max_data_type": "FLOAT32", "min": -1.0, "max": 1.0},)
    ALSO_KNOWN_AS = "onnx.Clip numpy.clip torch.clamp jax.numpy.clip jax.lax.clamp"

    def check(self) -> Rules:
        yield type_of_scalar("MinMaxDataType", self.min_max_data_type, self.named("input_tensor"))

    @staticmethod
    def compute(
        e: Engine, x: Array, *, min_max_data_type: DataType, min: float, max: float
    ) -> Array:
        return between(e, x, x.dtype.type(min), x.dtype.type(max))


class ValueScale2D(Function):
    """``scale * x + bias`` with a bias for each channel.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to scale, ``{batches, channels, height, width}``.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    scale : float
        The factor of every element.
    channel_count : int
        The length of `bias`, which is 1 or 3 and equals the number of channels.
    bias : sequence of float
        The value that is added to the elements of each channel.
    """

    scale: float = floating()
    channel_count: int = count_of("bias")
    bias: Sequence[float] = floats()

    NAME = "VALUE_SCALE_2D"
    ELEMENTWISE = False
    TOLERANCE = ulp(1)
    INPUTS = ([[[[0.0, 255.0]], [[51.0, 102.0]], [[204.0, 153.0]]]],)
    EXAMPLES = ({"scale": 0.5, "bias": (-1.0, 0.0, 1.0)},)

    def check(self) -> Rules:
        count = len(self.bias)
        if count not in (1, 3):
            yield Violation("ChannelCount", "1 or 3", count)
        for channels in self.input_tensor.sizes[1:2]:
            yield equal("InputTensor.Sizes[1]", channels, count, "ChannelCount")

    @staticmethod
    def compute(e: Engine, x: Array, *, scale: float, bias: Sequence[float]) -> Array:
        column = e.xp.asarray([float(b) for b in bias], e.xp.float64).reshape(-1, 1, 1)
        return x.astype(e.xp.float64) * scale + column
