"""Elementwise arithmetic: each output element from the input elements at the same place.

Inputs and output have one type and the same sizes; an input is broadcast by strides of 0. Integers
wrap around, and an integer divided by 0 is 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from anydml.dtypes import DataType, DataTypeName
from anydml.engines import Array, Engine
from anydml.errors import Violation
from anydml.ops._computed import Map
from anydml.ops._fields import (
    ScaleBias,
    enumeration,
    floating,
    input_field,
    nested,
    output_field,
    scalar,
    scale_bias,
)
from anydml.ops._rules import type_of_scalar
from anydml.ops.activations import FUSABLE, ActivationRelu, Fusable
from anydml.tensor import TensorDesc


@dataclass(frozen=True, kw_only=True, repr=False)
class Unary(Map):
    """Base of the operators of one input.

    Parameters
    ----------
    input_tensor : TensorDesc
        What the function is applied to.
    output_tensor : TensorDesc
        Type and sizes of the input.
    scale_bias : ScaleBias, optional
        Applied to each input element first: ``x * scale + bias``.
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    scale_bias: ScaleBias | None = scale_bias()


@dataclass(frozen=True, kw_only=True, repr=False)
class Binary(Map):
    """Base of the operators of two inputs.

    Parameters
    ----------
    a_tensor, b_tensor : TensorDesc
        The operands, of one type and the same sizes.
    output_tensor : TensorDesc
        Type and sizes of the operands.
    """

    a_tensor: TensorDesc = input_field()
    b_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()


class ElementWiseSubtract(Binary):
    """``A - B``."""

    NAME = "ELEMENT_WISE_SUBTRACT"
    ALSO_KNOWN_AS = "onnx.Sub numpy.subtract torch.sub jax.numpy.subtract jax.lax.sub"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return a - b


class ElementWiseAdd(Binary):
    """``A + B``."""

    NAME = "ELEMENT_WISE_ADD"
    ALSO_KNOWN_AS = "onnx.Add numpy.add torch.add jax.numpy.add jax.lax.add"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return a + b


@dataclass(frozen=True, kw_only=True, repr=False)
class ElementWiseAdd1(ElementWiseAdd):
    """``activation(A + B)``.

    Parameters
    ----------
    fused_activation : Activation, optional
        Applied to the sum; without tensors of its own.
    """

    fused_activation: Fusable | None = nested(*FUSABLE)

    NAME = "ELEMENT_WISE_ADD1"
    ALSO_KNOWN_AS = ""
    EXAMPLE = {"fused_activation": ActivationRelu()}


class ElementWiseMultiply(Binary):
    """``A * B``."""

    NAME = "ELEMENT_WISE_MULTIPLY"
    ALSO_KNOWN_AS = "onnx.Mul numpy.multiply torch.mul jax.numpy.multiply jax.lax.mul"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        return a * b


class ElementWiseDivide(Binary):
    """``A / B``; of integers towards zero, and 0 where B is 0."""

    NAME = "ELEMENT_WISE_DIVIDE"
    ALSO_KNOWN_AS = "onnx.Div numpy.divide torch.div jax.numpy.divide jax.lax.div"

    @staticmethod
    def compute(e: Engine, a: Array, b: Array) -> Array:
        if a.dtype.kind == "f":
            return a / b
        xp = e.xp
        divisor = xp.where(b == 0, b.dtype.type(1), b)
        quotient = a // divisor
        if a.dtype.kind == "i":  # `//` rounds down
            away = (quotient * divisor != a) & ((a < 0) != (divisor < 0))
            quotient = quotient + away.astype(a.dtype)
        return xp.where(b == 0, b.dtype.type(0), quotient)


@dataclass(frozen=True, kw_only=True, repr=False)
class ElementWiseClip(Unary):
    """``max(Min, min(x, Max))``; NaN stays NaN.

    Parameters
    ----------
    min, max : float
        The bounds; of integer tensors, converted as CAST does.
    """

    min: float = floating()
    max: float = floating()

    NAME = "ELEMENT_WISE_CLIP"
    EXAMPLE = {"min": -1.0, "max": 1.0}

    @staticmethod
    def compute(e: Engine, x: Array, *, min: float, max: float) -> Array:
        if x.dtype.kind == "f":
            low, high = x.dtype.type(min), x.dtype.type(max)
        else:
            low, high = (e.cast(e.xp.asarray(bound), x.dtype) for bound in (min, max))
        return e.xp.maximum(low, e.xp.minimum(x, high))


@dataclass(frozen=True, kw_only=True, repr=False)
class ElementWiseClip1(Unary):
    """``max(Min, min(x, Max))`` with bounds of the tensors' type; NaN stays NaN.

    Parameters
    ----------
    min_max_data_type : DataType
        The tensors' type.
    min, max : int or float
        The bounds.
    """

    min_max_data_type: DataType | DataTypeName = enumeration(DataType)
    min: int | float = scalar("min_max_data_type")
    max: int | float = scalar("min_max_data_type")

    NAME = "ELEMENT_WISE_CLIP1"
    EXAMPLE = {"min_max_data_type": "FLOAT32", "min": -1.0, "max": 1.0}
    ALSO_KNOWN_AS = "onnx.Clip numpy.clip torch.clamp jax.numpy.clip jax.lax.clamp"

    def rules(self) -> Iterator[Violation]:
        yield from type_of_scalar(
            "MinMaxDataType",
            DataType.parse(self.min_max_data_type),
            ("InputTensor", self.input_tensor),
        )

    @staticmethod
    def compute(
        e: Engine, x: Array, *, min_max_data_type: DataType, min: float, max: float
    ) -> Array:
        low, high = x.dtype.type(min), x.dtype.type(max)
        return e.xp.maximum(low, e.xp.minimum(x, high))
