"""Gradients: gradients of activations, clipping, local response normalization and slices."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from anydml.core._literals import DataTypeName
from anydml.core.dtypes import DataType
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import ulp
from anydml.engines import Array, Engine
from anydml.ops._axes import neighbours
from anydml.ops._computed import Map, Sized
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import (
    boolean,
    count_of,
    enumeration,
    floating,
    input_field,
    ints,
    output_field,
    scalar,
    uint,
    uints,
)
from anydml.ops._rules import at_least, each_at_least, same_ranks, type_of_scalar
from anydml.ops.elementwise import number
from anydml.ops.slice1 import Slice1, first_places, offsets_of_elements

FAMILY = Family.TRAINING


class Gradient(Map):
    """Base of the gradients of functions of one tensor.

    Parameters
    ----------
    input_tensor : TensorDesc
        The input of the function.
    input_gradient_tensor : TensorDesc
        The gradient of the result, with the type and sizes of the input.
    output_gradient_tensor : TensorDesc
        The gradient of the input, with the type and sizes of the input.
    """

    input_tensor: TensorDesc = input_field()
    input_gradient_tensor: TensorDesc = input_field()
    output_gradient_tensor: TensorDesc = output_field()

    WORKING_BYTES = 16


class ActivationReluGrad(Gradient):
    """Copies the gradient where the input is greater than 0, and 0 elsewhere."""

    NAME = "ACTIVATION_RELU_GRAD"
    ALSO_KNOWN_AS = "torch.ops.aten.threshold_backward"

    @staticmethod
    def compute(e: Engine, x: Array, dy: Array) -> Array:
        return e.xp.where(x > 0, dy, dy.dtype.type(0))


class ElementWiseClipGrad(Gradient):
    """0 where the input is at most Min or at least Max; copies the gradient elsewhere.

    Parameters
    ----------
    min, max : float
        The lower and the upper bound; for integer tensors they are converted as by CAST.
    """

    min: float = floating()
    max: float = floating()

    NAME = "ELEMENT_WISE_CLIP_GRAD"
    EXAMPLES = ({"min": -1.0, "max": 1.0},)

    @staticmethod
    def compute(e: Engine, x: Array, dy: Array, *, min: float, max: float) -> Array:
        return _between(e, x, dy, number(e, min, x), number(e, max, x))


class ElementWiseClipGrad1(Gradient):
    """ELEMENT_WISE_CLIP_GRAD with bounds in the data type of the tensors.

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

    NAME = "ELEMENT_WISE_CLIP_GRAD1"
    EXAMPLES = ({"min_max_data_type": "FLOAT32", "min": -1.0, "max": 1.0},)
    ALSO_KNOWN_AS = "torch.ops.aten.hardtanh_backward"

    def check(self) -> Rules:
        yield type_of_scalar("MinMaxDataType", self.min_max_data_type, self.named("input_tensor"))

    @staticmethod
    def compute(
        e: Engine, x: Array, dy: Array, *, min_max_data_type: DataType, min: float, max: float
    ) -> Array:
        return _between(e, x, dy, x.dtype.type(min), x.dtype.type(max))


def _between(e: Engine, x: Array, dy: Array, low: Any, high: Any) -> Array:
    return e.xp.where((x <= low) | (x >= high), dy.dtype.type(0), dy)


class LocalResponseNormalizationGrad(Gradient):
    """The gradient of LOCAL_RESPONSE_NORMALIZATION, computed in FLOAT64.

    Parameters
    ----------
    cross_channel : bool
        True for neighbours in other channels at the same position, False for neighbours at other
        positions in the same channel.
    local_size : int
        The number of neighbours along the channels, or along height and along width; at least 1.
    alpha, beta, bias : float
        The parameters of the formula of LOCAL_RESPONSE_NORMALIZATION.
    """

    cross_channel: bool = boolean()
    local_size: int = uint()
    alpha: float = floating()
    beta: float = floating()
    bias: float = floating()

    NAME = "LOCAL_RESPONSE_NORMALIZATION_GRAD"
    ELEMENTWISE = False
    TOLERANCE = ulp(1)
    WORKING_BYTES = 48
    INPUTS = ([[[[1.0]], [[2.0]], [[3.0]]]], [[[[1.0]], [[0.0]], [[0.0]]]])
    EXAMPLES = ({"cross_channel": True, "local_size": 3, "alpha": 3.0, "beta": 0.5, "bias": 1.0},)

    def check(self) -> Rules:
        yield at_least("LocalSize", self.local_size, 1)

    @staticmethod
    def compute(
        e: Engine, x: Array, dy: Array, *,
        cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float,
    ) -> Array:  # fmt: skip
        axes = (1,) if cross_channel else (2, 3)
        wide, gradient = x.astype(e.xp.float64), dy.astype(e.xp.float64)
        around = wide * wide
        for axis in axes:
            around = neighbours(e, around, axis, local_size)
        base = bias + alpha / local_size * around
        indirect = gradient * wide / base ** (beta + 1)
        for axis in axes:
            indirect = neighbours(e, indirect, axis, local_size, transposed=True)
        return gradient / base**beta - 2 * alpha * beta / local_size * wide * indirect


_RENAMED: Final = {"InputTensor": "OutputGradientTensor", "OutputTensor": "InputGradientTensor"}


class SliceGrad(Sized):
    """The gradient of SLICE1: writes elements to their positions in the window, and 0 elsewhere.

    Parameters
    ----------
    input_gradient_tensor : TensorDesc
        The gradient of the slice.
    output_gradient_tensor : TensorDesc
        The gradient of the tensor that was sliced, with the type and DimensionCount of the input.
    dimension_count : int, optional
        The number of dimensions; by default the length of `offsets`.
    input_window_offsets : sequence of int
        The start of the window in each dimension of the output.
    input_window_sizes : sequence of int
        The size of the window in each dimension, at least 1.
    input_window_strides : sequence of int
        The step between elements in each dimension, not 0. A negative stride starts at the end of
        the window.
    """

    input_gradient_tensor: TensorDesc = input_field()
    output_gradient_tensor: TensorDesc = output_field()
    dimension_count: int = count_of("input_window_offsets")
    input_window_offsets: Sequence[int] = uints()
    input_window_sizes: Sequence[int] = uints()
    input_window_strides: Sequence[int] = ints()

    NAME = "SLICE_GRAD"
    WORKING_BYTES = 24
    EXAMPLES = ({
        "input_gradient_tensor": [[1.0, 2.0], [3.0, 4.0]],
        "output_gradient_tensor": TensorDesc("FLOAT32", (4, 4)),
        "input_window_offsets": (0, 0), "input_window_sizes": (3, 3),
        "input_window_strides": (2, 2),
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.ops.aten.slice_backward"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (gradient,) = inputs
        output = ArraySpec(attributes["shape"], gradient.dtype)
        sliced = Slice1.infer([output], _window(attributes, gradient.shape))
        return Inferred.of(
            (output,),
            same_ranks(("InputGradientTensor", gradient), ("OutputGradientTensor", output)),
            map(_renamed, sliced.violations),
        )

    def check(self) -> Rules:
        offsets, sizes = self.input_window_offsets, self.output_gradient_tensor.sizes
        yield offsets_of_elements("InputWindowOffsets", offsets, "OutputGradientTensor", sizes)
        yield each_at_least("InputWindowSizes", self.input_window_sizes, 1)

    @staticmethod
    def compute(e: Engine, dy: Array, *, shape: tuple[int, ...], **attributes: Any) -> Array:
        window = _window(attributes, dy.shape)
        places = zip(shape, first_places(window), window["strides"], dy.shape, strict=True)
        for axis, (size, first, stride, count) in enumerate(places):
            steps, rest = np.divmod(np.arange(size) - first, stride)
            inside = (rest == 0) & (steps >= 0) & (steps < count)
            taken = e.xp.take(dy, np.where(inside, steps, 0), axis=axis)
            mask = inside.reshape(-1, *(1 for _ in shape[axis + 1 :]))
            dy = e.xp.where(mask, taken, dy.dtype.type(0))
        return dy


def _window(attributes: Attributes, counts: tuple[int, ...]) -> Attributes:
    """The attributes as SLICE1 expects them."""
    names = {"starts": "offsets", "sizes": "sizes", "strides": "strides"}
    return {
        **{name: attributes[f"input_window_{own}"] for name, own in names.items()}, "counts": counts
    }  # fmt: skip


def _renamed(violation: Violation) -> Violation:
    texts = [violation.path, violation.rule]
    for name, own in _RENAMED.items():
        texts = [text.replace(name, own) for text in texts]
    return dataclasses.replace(violation, path=texts[0], rule=texts[1])
