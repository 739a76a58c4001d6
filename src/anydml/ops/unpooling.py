"""Gradients of pooling: gradients of average and maximum pooling, and unpooling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import sums
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed, Sized
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import boolean, input_field, output_field
from anydml.ops._rules import equal, of_rank, rank_of, same_ranks, same_sizes, same_types
from anydml.ops._windows import check_arrays, count_windows, counts_of_windows, window_of
from anydml.ops.pooling import Dilated, Windows

FAMILY = Family.TRAINING


def _pooled(path: str, data: ArraySpec, gradient: ArraySpec, attributes: Attributes) -> Rules:
    """Check that windows fit into the data and the gradient has one element for each."""
    yield check_arrays(attributes, (path, data))
    data = of_rank(data, rank_of(gradient))
    window = attributes["window_size"]
    counts, fits = count_windows(data, window, "WindowSize[{}]", attributes)
    yield from fits
    for i, (expected, got) in enumerate(
        zip((*data.shape[:2], *counts), gradient.shape, strict=True)
    ):
        yield equal(f"InputGradientTensor.Sizes[{i}]", got, expected, "the number of windows")


class MeanGradients(Sized):
    """The tensors of the gradient of average pooling.

    Parameters
    ----------
    input_gradient_tensor : TensorDesc
        The gradient of the pooled tensor, ``{batches, channels, ..}``.
    output_gradient_tensor : TensorDesc
        The gradient of the tensor that was pooled.
    """

    ONE_DIMENSION_COUNT = True

    input_gradient_tensor: TensorDesc = input_field()
    output_gradient_tensor: TensorDesc = output_field()


class AveragePoolingGrad(Windows, MeanGradients):
    """The gradient of AVERAGE_POOLING: divides the gradient of each window among its elements.

    Parameters
    ----------
    include_padding : bool
        Whether the mean includes padding, as zeros.
    """

    include_padding: bool = boolean()

    NAME = "AVERAGE_POOLING_GRAD"
    TOLERANCE = sums(8)
    IN_PIECES = False
    EXAMPLES = ({
        "input_gradient_tensor": [[[[1, 2], [3, 4]]]],
        "output_gradient_tensor": TensorDesc("FLOAT32", (1, 1, 3, 3)),
        "strides": (1, 1), "window_size": (2, 2), "start_padding": (0, 0), "end_padding": (0, 0),
        "include_padding": False,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.ops.aten.avg_pool2d_backward"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (gradient,) = inputs
        output = ArraySpec(attributes["shape"], gradient.dtype)
        return Inferred.of(
            (output,),
            same_ranks(("InputGradientTensor", gradient), ("OutputGradientTensor", output)),
            _pooled("InputTensor", output, gradient, attributes),
        )

    @staticmethod
    def compute(
        e: Engine, dy: Array, *, shape: tuple[int, ...], include_padding: bool, **attributes: Any
    ) -> Array:
        wide = dy.astype(e.xp.float64)
        if include_padding:
            wide = wide / prod(attributes["window_size"])
        else:
            wide = wide / counts_of_windows(e, shape, wide.dtype, attributes)
        for i, (window, stride, start) in enumerate(
            zip(
                attributes["window_size"],
                attributes["strides"],
                attributes["start_padding"],
                strict=True,
            )
        ):
            wide = _shared(e, wide, 2 + i, shape[2 + i], window, stride, start)
        return wide


def _shared(
    e: Engine, x: Array, axis: int, size: int, window: int, stride: int, start: int
) -> Array:
    """For each element, the sum of the windows along an axis that cover it."""
    at = np.arange(size) + start
    first = np.maximum(-((window - 1 - at) // stride), 0)
    last = np.minimum(at // stride, x.shape[axis] - 1)
    total = e.xp.zeros((*x.shape[:axis], size, *x.shape[axis + 1 :]), x.dtype)
    for k in range(max(int((last - first).max()) + 1, 0)):
        is_covered = (first + k <= last).reshape(-1, *(1 for _ in x.shape[axis + 1 :]))
        taken = e.xp.take(x, np.minimum(first + k, x.shape[axis] - 1), axis=axis)
        total = total + e.xp.where(is_covered, taken, 0.0)
    return total


class MaximumGradients(Computed):
    """The tensors of the gradient of maximum pooling.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor that was pooled, ``{batches, channels, ..}``.
    input_gradient_tensor : TensorDesc
        The gradient of the pooled tensor.
    output_gradient_tensor : TensorDesc
        The gradient of the input, with the type and sizes of the input.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    input_gradient_tensor: TensorDesc = input_field()
    output_gradient_tensor: TensorDesc = output_field()


class MaxPoolingGrad(Dilated, MaximumGradients):
    """The gradient of MAX_POOLING2: the first largest element of each window gets its gradient."""

    NAME = "MAX_POOLING_GRAD"
    TOLERANCE = sums(4)
    WORKING_BYTES = 64
    EXAMPLES = ({
        "input_tensor": [[[[1, 2, 3], [2, 4, 2], [5, 6, 7]]]],
        "input_gradient_tensor": [[[[1, 2], [4, 5]]]],
        "strides": (1, 1), "window_size": (2, 2), "start_padding": (0, 0), "end_padding": (0, 0),
        "dilations": (1, 1),
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.ops.aten.max_pool2d_with_indices_backward"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, gradient = inputs
        operands = ("InputTensor", data), ("InputGradientTensor", gradient)
        return Inferred.of(
            (data,),
            same_types(*operands),
            same_ranks(*operands),
            _pooled("InputTensor", data, gradient, attributes),
        )

    @staticmethod
    def compute(e: Engine, x: Array, dy: Array, **attributes: Any) -> Array:
        _, places = e.locate_max(x, window_of(attributes))
        size, channels = prod(x.shape[2:]), prod(x.shape[:2])
        first = (e.xp.arange(channels) * size).reshape(channels, 1)
        flat = places.reshape(channels, -1)
        # A window that contains only padding has no largest element.
        values = e.xp.where(flat < 0, 0.0, dy.reshape(channels, -1).astype(e.xp.float64))
        at = e.xp.maximum(flat, 0) + first
        total = e.scatter_add(channels * size, at.reshape(-1), values.reshape(-1))
        return total.reshape(x.shape)


class MaxUnpooling(Sized):
    """Writes each element to the position that its index names; all other elements are 0.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to write.
    indices_tensor : TensorDesc
        For each element, its flat index in the output, in row-major order of all dimensions. An
        element whose index is out of range is ignored. Elements with the same index are added.
    output_tensor : TensorDesc
        The result, with the type of the input and any sizes.
    """

    ONE_DIMENSION_COUNT = True

    input_tensor: TensorDesc = input_field()
    indices_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()

    NAME = "MAX_UNPOOLING"
    TOLERANCE = sums(4)
    WORKING_BYTES = 48
    EXAMPLES = ({
        "input_tensor": [[[[4, 6], [7, 5]]]], "indices_tensor": [[[[4, 6], [2, 9]]]],
        "output_tensor": TensorDesc("FLOAT32", (1, 1, 3, 3)),
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.MaxUnpool torch.nn.functional.max_unpool2d"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, indices = inputs
        operands = ("InputTensor", data), ("IndicesTensor", indices)
        output = ArraySpec(attributes["shape"], data.dtype)
        return Inferred.of((output,), same_ranks(*operands), same_sizes(*operands))

    @staticmethod
    def compute(e: Engine, x: Array, indices: Array, *, shape: tuple[int, ...]) -> Array:
        size = prod(shape)
        flat, values = indices.reshape(-1), x.reshape(-1)
        if values.dtype.kind == "f":
            values = values.astype(e.xp.float64)
        inside = flat < size
        places = e.xp.where(inside, flat, 0).astype(e.xp.int64)
        values = e.xp.where(inside, values, values.dtype.type(0))
        return e.scatter_add(size, places, values).reshape(shape)
