"""Activations: elementwise functions that may also be fused into another operator.

A fused activation has no tensors of its own: it is applied to the result of the operator that it
stands in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from anydml.engines import Array, Engine
from anydml.exactness import products, ulp
from anydml.ops._computed import Map
from anydml.ops._fields import floating, input_field, output_field
from anydml.tensor import TensorDesc


@dataclass(frozen=True, kw_only=True, repr=False)
class Activation(Map):
    """Base of the activations.

    Parameters
    ----------
    input_tensor : TensorDesc
        What the function is applied to; left out where the activation is fused.
    output_tensor : TensorDesc
        Type and sizes of the input; left out where the activation is fused.
    """

    input_tensor: TensorDesc | None = input_field(fused=True)
    output_tensor: TensorDesc | None = output_field(fused=True)

    FUSED = True


class ActivationIdentity(Activation):
    """``x``."""

    NAME = "ACTIVATION_IDENTITY"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return x


class ActivationRelu(Activation):
    """``max(0, x)``; NaN stays NaN."""

    NAME = "ACTIVATION_RELU"
    ALSO_KNOWN_AS = "onnx.Relu torch.nn.functional.relu jax.nn.relu"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return e.xp.maximum(x, x.dtype.type(0))


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationLeakyRelu(Activation):
    """``x`` where it is not negative, else ``alpha * x``.

    Parameters
    ----------
    alpha : float
        The slope below 0.
    """

    alpha: float = floating()

    NAME = "ACTIVATION_LEAKY_RELU"
    EXAMPLE = {"alpha": 0.1}
    TOLERANCE = ulp(1)
    ALSO_KNOWN_AS = "onnx.LeakyRelu torch.nn.functional.leaky_relu jax.nn.leaky_relu"

    @staticmethod
    def compute(e: Engine, x: Array, *, alpha: float) -> Array:
        return e.xp.where(x >= 0, x, x.dtype.type(alpha) * x)


@dataclass(frozen=True, kw_only=True, repr=False)
class ActivationLinear(Activation):
    """``alpha * x + beta``.

    Parameters
    ----------
    alpha : float
        The slope.
    beta : float
        What is added.
    """

    alpha: float = floating()
    beta: float = floating()

    NAME = "ACTIVATION_LINEAR"
    EXAMPLE = {"alpha": 2.0, "beta": 1.0}
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
        small = e.xp.exp(-e.xp.abs(x))  # which does not overflow
        return e.xp.where(x >= 0, one, small) / (one + small)


class ActivationTanh(Activation):
    """``tanh(x)``."""

    NAME = "ACTIVATION_TANH"
    TOLERANCE = ulp(6)
    ALSO_KNOWN_AS = "onnx.Tanh numpy.tanh torch.tanh jax.numpy.tanh jax.lax.tanh"

    @staticmethod
    def compute(e: Engine, x: Array) -> Array:
        return e.xp.tanh(x)


Fusable: TypeAlias = (
    ActivationIdentity | ActivationLeakyRelu | ActivationLinear | ActivationRelu
    | ActivationSigmoid | ActivationTanh
)  # fmt: skip

FUSABLE: Final = Fusable.__args__
"""The activations that another operator may contain."""
