"""Base classes of the elementwise operators, by their inputs."""

from __future__ import annotations

from anydml.core.tensor import TensorDesc
from anydml.ops._computed import Map
from anydml.ops._fields import ScaleBias, input_field, output_field, scale_bias


class Function(Map):
    """Base of the operators of one input.

    Parameters
    ----------
    input_tensor : TensorDesc
        The input of the function.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()


class Unary(Function):
    """Base of the operators of one input that may be scaled.

    Parameters
    ----------
    scale_bias : ScaleBias, optional
        The scale and bias that are applied to each input element first: ``x * scale + bias``.
    """

    scale_bias: ScaleBias | None = scale_bias()


class Binary(Map):
    """Base of the operators of two inputs.

    Parameters
    ----------
    a_tensor, b_tensor : TensorDesc
        The operands, with the same type and sizes.
    output_tensor : TensorDesc
        The result, with the type and sizes of the operands.
    """

    a_tensor: TensorDesc = input_field()
    b_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
