"""Folding: copy sliding windows to columns, and add columns to images.

A column contains the elements of one window, channel by channel. There is one column for each
window, in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import sums
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed, Sized
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import count_of, input_field, output_field, uints
from anydml.ops._rules import equal, of_rank, rank_of, usable
from anydml.ops._windows import check_arrays, count_windows

FAMILY = Family.NETWORKS


class Windows(Computed):
    """The sizes and positions of windows.

    Parameters
    ----------
    dimension_count : int, optional
        The number of spatial dimensions; by default the number of window sizes.
    window_sizes : sequence of int
        The number of elements of a window along each spatial dimension.
    strides : sequence of int
        The step from one window to the next, for each spatial dimension.
    dilations : sequence of int
        The step from one window element to the next.
    start_padding, end_padding : sequence of int
        The number of elements before and after each spatial dimension that windows may cover.
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    dimension_count: int = count_of("window_sizes")
    window_sizes: Sequence[int] = uints()
    strides: Sequence[int] = uints()
    dilations: Sequence[int] = uints()
    start_padding: Sequence[int] = uints()
    end_padding: Sequence[int] = uints()

    WORKING_BYTES = 48
    EXAMPLES = ({
        "window_sizes": (2, 2), "strides": (1, 1), "dilations": (1, 1),
        "start_padding": (0, 0), "end_padding": (0, 0),
    },)  # fmt: skip


class Unfold(Windows):
    """Copies each window of the input to a column. The padding consists of zeros.

    Parameters
    ----------
    input_tensor : TensorDesc
        ``{batches, channels, ..}`` with 1 to 6 spatial dimensions.
    output_tensor : TensorDesc
        The columns, ``{batches, channels * elements of a window, windows}``, with the type of the
        input.
    """

    NAME = "UNFOLD"
    EXAMPLES = (
        {**Windows.EXAMPLES[0], "input_tensor": [[[[1.0, 2, 3], [4.0, 5, 6], [7.0, 8, 9]]]]},
    )
    ALSO_KNOWN_AS = "torch.nn.functional.unfold torch.ops.aten.im2col"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        counts, rules = _count("InputTensor", data, attributes)

        def shape() -> tuple[Any, ...]:
            elements = prod(attributes["window_sizes"])
            return data.shape[0], data.shape[1] * elements, prod(counts)

        return Inferred.of((ArraySpec(known(shape), data.dtype),), *rules)

    @staticmethod
    def compute(e: Engine, x: Array, **attributes: Any) -> Array:
        places, inside = _places(e, x.shape, attributes)
        taken = e.xp.take(x.reshape(*x.shape[:2], -1), places.reshape(-1), axis=2)
        taken = e.xp.where(inside.reshape(-1), taken, x.dtype.type(0))
        window = prod(attributes["window_sizes"])
        return taken.reshape(len(x), x.shape[1] * window, -1)


class Fold(Windows, Sized):
    """Adds each column at the position of its window: the transpose of UNFOLD.

    Parameters
    ----------
    input_tensor : TensorDesc
        The columns, ``{batches, channels * elements of a window, windows}``. Elements on padding
        are ignored.
    output_tensor : TensorDesc
        ``{batches, channels, ..}`` with 1 to 6 spatial dimensions and the type of the input. Its
        sizes must give as many windows as the input has columns.
    """

    NAME = "FOLD"
    TOLERANCE = sums(4)
    EXAMPLES = ({
        **Windows.EXAMPLES[0], "output_tensor": TensorDesc("FLOAT32", (1, 1, 3, 3)),
        "input_tensor": [
            [[1.0, 2, 4, 5], [2.0, 3, 5, 6], [4.0, 5, 7, 8], [5.0, 6, 8, 9]]
        ],
    },)  # fmt: skip
    ALSO_KNOWN_AS = "onnx.Col2Im torch.nn.functional.fold torch.ops.aten.col2im"

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        images = ArraySpec(attributes["shape"], data.dtype)
        counts, rules = _count("OutputTensor", images, attributes)
        window = known(lambda: prod(usable(attributes["window_sizes"], len(counts), True)))
        columns = of_rank(data, 3)

        def shape() -> tuple[Any, ...]:
            batches, rows, _ = columns.shape
            channels = rows // window if rows % window == 0 else UNKNOWN
            return batches, channels, *images.shape[2:]

        return Inferred.of(
            (ArraySpec(known(shape), data.dtype),),
            *rules,
            equal("InputTensor.DimensionCount", rank_of(data), 3),
            _columns(columns, window, counts),
        )

    @staticmethod
    def compute(e: Engine, x: Array, *, shape: Sequence[int], **attributes: Any) -> Array:
        places, inside = _places(e, shape, attributes)
        images, size = prod(shape[:2]), prod(shape[2:])
        first = (e.xp.arange(images) * size).reshape(-1, 1)
        at = e.xp.where(inside.reshape(-1), first + places.reshape(-1), 0)
        values = x.astype(e.xp.float64).reshape(images, -1)
        values = e.xp.where(inside.reshape(-1), values, 0.0)
        return e.scatter_add(images * size, at.reshape(-1), values.reshape(-1)).reshape(shape)


def _count(name: str, data: ArraySpec, attributes: Attributes) -> tuple[Any, list[Rules]]:
    """The number of windows along each spatial dimension of the images, and their rules."""
    window = attributes["window_sizes"]
    counts, fits = count_windows(data, window, "WindowSizes[{}]", attributes)
    return counts, [check_arrays(attributes, (name, data)), *fits]


def _columns(columns: ArraySpec, window: int, counts: Sequence[int]) -> Rules:
    _, rows, size = columns.shape
    yield _is_multiple(rows, window)
    yield equal("InputTensor.Sizes[2]", size, known(lambda: prod(counts)), "the number of windows")


def _is_multiple(rows: int, window: int) -> Rules:
    if rows % window:
        yield Violation(
            "InputTensor.Sizes[1]", f"{window} or a multiple (elements of a window)", rows
        )


def _places(e: Engine, shape: Sequence[int], attributes: Attributes) -> tuple[Array, Array]:
    """The position in an image of each element of each window, and whether it is in the image."""
    xp, rank = e.xp, len(shape) - 2
    places, inside = xp.zeros((1,) * 2 * rank, xp.int64), xp.ones((1,) * 2 * rank, bool)
    for i, (size, window, stride, dilation, start, end) in enumerate(
        zip(shape[2:], *(attributes[name] for name in (
            "window_sizes", "strides", "dilations", "start_padding", "end_padding"
        )), strict=True)
    ):  # fmt: skip
        count = (size + start + end - (window - 1) * dilation - 1) // stride + 1
        shape_on_axes = [1] * 2 * rank
        shape_on_axes[i], shape_on_axes[rank + i] = window, count
        at = xp.arange(window)[:, None] * dilation + xp.arange(count) * stride - start
        at = at.reshape(shape_on_axes)
        places = places * size + xp.clip(at, 0, size - 1)
        inside = inside & (at >= 0) & (at < size)
    return places, inside
