"""Transcendental functions: powers, exponentials, logarithms and trigonometry."""

from __future__ import annotations

from anydml.core.levels import FeatureLevel
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import ulp
from anydml.engines import Array, Engine
from anydml.ops._computed import Map
from anydml.ops._family import Family
from anydml.ops._fields import ScaleBias, floating, input_field, output_field, scale_bias
from anydml.ops._maps import Binary, Unary
from anydml.ops._rules import equal

FAMILY = Family.ELEMENTWISE


class ElementWiseExp(Unary):
    """``e`` to the power of ``x``."""

    NAME = "ELEMENT_WISE_EXP"
    FUNCTION = "exp"
    TOLERANCE = ulp(4)
    ALSO_KNOWN_AS = "onnx.Exp numpy.exp torch.exp jax.numpy.exp jax.lax.exp"


class ElementWiseLog(Unary):
    """The natural logarithm; NaN for negative numbers."""

    NAME = "ELEMENT_WISE_LOG"
    FUNCTION = "log"
    TOLERANCE = ulp(4)
    INPUTS = ([0.25, 0.5, 1.0, 4.0],)
    ALSO_KNOWN_AS = "onnx.Log numpy.log torch.log jax.numpy.log jax.lax.log"


class ElementWiseSqrt(Unary):
    """The square root; NaN for negative numbers."""

    NAME = "ELEMENT_WISE_SQRT"
    FUNCTION = "sqrt"
    TOLERANCE = ulp(1)
    INPUTS = ([0.25, 0.5, 1.0, 4.0],)
    ALSO_KNOWN_AS = "onnx.Sqrt numpy.sqrt torch.sqrt jax.numpy.sqrt jax.lax.sqrt"


class ElementWiseSin(Unary):
    """The sine of ``x`` in radians."""

    NAME = "ELEMENT_WISE_SIN"
    FUNCTION = "sin"
    TOLERANCE = ulp(4)
    ALSO_KNOWN_AS = "onnx.Sin numpy.sin torch.sin jax.numpy.sin jax.lax.sin"


class ElementWiseCos(Unary):
    """The cosine of ``x`` in radians."""

    NAME = "ELEMENT_WISE_COS"
    FUNCTION = "cos"
    TOLERANCE = ulp(4)
    ALSO_KNOWN_AS = "onnx.Cos numpy.cos torch.cos jax.numpy.cos jax.lax.cos"


class ElementWiseTan(Unary):
    """The tangent of ``x`` in radians."""

    NAME = "ELEMENT_WISE_TAN"
    FUNCTION = "tan"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Tan numpy.tan torch.tan jax.numpy.tan jax.lax.tan"


class ElementWiseAsin(Unary):
    """The angle in radians whose sine is ``x``; NaN outside -1..1."""

    NAME = "ELEMENT_WISE_ASIN"
    FUNCTION = "arcsin"
    TOLERANCE = ulp(6)
    INPUTS = ([-1.0, -0.5, 0.0, 0.5, 1.0],)
    ALSO_KNOWN_AS = "onnx.Asin numpy.arcsin torch.asin jax.numpy.arcsin jax.lax.asin"


class ElementWiseAcos(Unary):
    """The angle in radians whose cosine is ``x``; NaN outside -1..1."""

    NAME = "ELEMENT_WISE_ACOS"
    FUNCTION = "arccos"
    TOLERANCE = ulp(6)
    INPUTS = ([-1.0, -0.5, 0.0, 0.5, 1.0],)
    ALSO_KNOWN_AS = "onnx.Acos numpy.arccos torch.acos jax.numpy.arccos jax.lax.acos"


class ElementWiseAtan(Unary):
    """The angle in radians whose tangent is ``x``."""

    NAME = "ELEMENT_WISE_ATAN"
    FUNCTION = "arctan"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Atan numpy.arctan torch.atan jax.numpy.arctan jax.lax.atan"


class ElementWiseSinh(Unary):
    """The hyperbolic sine."""

    NAME = "ELEMENT_WISE_SINH"
    FUNCTION = "sinh"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Sinh numpy.sinh torch.sinh jax.numpy.sinh jax.lax.sinh"


class ElementWiseCosh(Unary):
    """The hyperbolic cosine."""

    NAME = "ELEMENT_WISE_COSH"
    FUNCTION = "cosh"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Cosh numpy.cosh torch.cosh jax.numpy.cosh jax.lax.cosh"


class ElementWiseTanh(Unary):
    """The hyperbolic tangent."""

    NAME = "ELEMENT_WISE_TANH"
    FUNCTION = "tanh"
    TOLERANCE = ulp(6)


class ElementWiseAsinh(Unary):
    """The number whose hyperbolic sine is ``x``."""

    NAME = "ELEMENT_WISE_ASINH"
    FUNCTION = "arcsinh"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Asinh numpy.arcsinh torch.asinh jax.numpy.arcsinh jax.lax.asinh"


class ElementWiseAcosh(Unary):
    """The number whose hyperbolic cosine is ``x``; NaN below 1."""

    NAME = "ELEMENT_WISE_ACOSH"
    FUNCTION = "arccosh"
    TOLERANCE = ulp(6)
    INPUTS = ([1.0, 1.5, 2.0, 10.0],)
    ALSO_KNOWN_AS = "onnx.Acosh numpy.arccosh torch.acosh jax.numpy.arccosh jax.lax.acosh"


class ElementWiseAtanh(Unary):
    """The number whose hyperbolic tangent is ``x``; NaN outside -1..1."""

    NAME = "ELEMENT_WISE_ATANH"
    FUNCTION = "arctanh"
    TOLERANCE = ulp(6)
    INPUTS = ([-1.0, -0.5, 0.0, 0.5, 1.0],)
    ALSO_KNOWN_AS = "onnx.Atanh numpy.arctanh torch.atanh jax.numpy.arctanh jax.lax.atanh"


class ElementWiseErf(Unary):
    """The error function."""

    NAME = "ELEMENT_WISE_ERF"
    WORKING_BYTES = 48
    TOLERANCE = ulp(8)
    ALSO_KNOWN_AS = "onnx.Erf torch.erf jax.lax.erf"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return e.erf(x)


class ElementWiseAtanYX(Binary):
    """The angle in radians between the first axis and the point (``B``, ``A``)."""

    NAME = "ELEMENT_WISE_ATAN_YX"
    FUNCTION = "arctan2"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "numpy.arctan2 torch.atan2 jax.numpy.arctan2 jax.lax.atan2"


class ElementWiseConstantPow(Unary):
    """``x`` to the power of a constant; NaN if ``x`` is negative and the power fractional.

    Parameters
    ----------
    exponent : float
        The exponent.
    """

    exponent: float = floating()

    NAME = "ELEMENT_WISE_CONSTANT_POW"
    TOLERANCE = ulp(8)
    EXAMPLES = ({"exponent": 2.0},)

    @staticmethod
    def compute(e: Engine, x: Array, *, exponent: float) -> Array:
        y = e.xp.power(x, x.dtype.type(exponent))
        if exponent != 0.5:
            return y
        # NumPy computes a square root, which is NaN for -infinity; the power is infinity.
        infinity = x.dtype.type("inf")
        return e.xp.where(x == -infinity, infinity, y)


class ElementWisePow(Map):
    """``x`` to the power of the exponent; NaN if ``x`` is negative and the exponent fractional.

    Integers to integer powers are exact and wrap around. To a negative power, they are rounded
    towards zero, and 0 gives 0. An integer to the power of a float is computed in float64 and
    converted as by CAST. A float to an integer power of 32 bits or more is computed in the same
    way.

    Parameters
    ----------
    input_tensor : TensorDesc
        The base.
    exponent_tensor : TensorDesc
        The exponent, with the sizes of the base. Its type may differ.
    output_tensor : TensorDesc
        The result, with the type and sizes of the base.
    scale_bias : ScaleBias, optional
        The scale and bias that are applied to each element of the base first: ``x * scale + bias``.
    """

    input_tensor: TensorDesc = input_field()
    exponent_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    scale_bias: ScaleBias | None = scale_bias()

    NAME = "ELEMENT_WISE_POW"
    SAME_TYPES = ("InputTensor", "OutputTensor")
    TOLERANCE = ulp(8)
    ALSO_KNOWN_AS = "onnx.Pow numpy.power torch.pow jax.numpy.power jax.lax.pow"

    def rules_at(self, level: FeatureLevel) -> Rules:
        base, exponent = self.input_tensor.data_type, self.exponent_tensor.data_type
        if level < FeatureLevel.LEVEL_3_0:
            why = "InputTensor.DataType, below level 3_0"
            yield equal("ExponentTensor.DataType", exponent, base, why)

    @staticmethod
    def compute(e: Engine, x: Array, exponent: Array) -> Array:
        xp = e.xp
        # In float32 an odd integer of 32 bits may become an even one.
        is_exact = exponent.dtype.kind == "f" or exponent.dtype.itemsize < 4
        if x.dtype.kind == "f" and is_exact:
            return xp.power(x, exponent.astype(x.dtype))
        if "f" in (x.dtype.kind, exponent.dtype.kind):
            return xp.power(x.astype(xp.float64), exponent.astype(xp.float64))
        one, odd = x.dtype.type(1), (exponent & exponent.dtype.type(1)) != 0
        product = xp.where(odd, x, one)
        power = x
        for bit in range(1, 8 * exponent.dtype.itemsize - (exponent.dtype.kind == "i")):
            power = power * power
            taken = (exponent >> exponent.dtype.type(bit)) & exponent.dtype.type(1)
            product = xp.where(taken != 0, product * power, product)
        unit = (x == one) | (x + one == x.dtype.type(0)) & (x.dtype.kind == "i")
        inverse = xp.where(unit, xp.where(odd, x, one), x.dtype.type(0))
        return xp.where(exponent < exponent.dtype.type(0), inverse, product)
