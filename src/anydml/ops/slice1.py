"""SLICE1 and SLICE: copy a window of the input, with a stride along each dimension.

::

    first = offset                 if the stride is positive
    first = offset + size - 1      if the stride is negative: from the end of the window
    output[i, j, ..] = input[first + stride * (i, j, ..)]

SLICE1 copies elements of a window, which must lie inside the input. Its strides may be negative.
Along each dimension, the output has at least one element and at most the number that the stride
reaches inside the window, ``1 + (size - 1) // |stride|``. In SLICE, the sizes are the number of
elements to copy, and thus the sizes of the output. Its strides are positive, and every element that
it copies must lie inside the input.

Worked example, SLICE1, offsets {0, 1}, sizes {4, 3}, strides {-2, 2}::

    input  [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
    output [[14, 16], [6, 8]]

Pages: ``DML_SLICE1_OPERATOR_DESC``, ``DML_SLICE_OPERATOR_DESC``. The page of SLICE1 prints UINT as
the type of the strides, but describes negative strides; they are INT. Its formula for the number of
elements divides by the stride; it means the absolute value of the stride. The page of SLICE does
not mention strides of 0; anydml rejects them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml.core._json import UINT32_MAX
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import count_of, input_field, ints, output_field, uints
from anydml.ops._numbers import span
from anydml.ops._rules import each_at_least, has_length, if_within, rank_of, usable, within

FAMILY = Family.MOVE


def _within_input(data: ArraySpec, starts: Sequence[int], sizes: Sequence[int]) -> Rules:
    rank = rank_of(data)
    windows = zip(data.shape, usable(starts, rank), usable(sizes, rank), strict=True)
    for i, (limit, start, size) in enumerate(windows):
        yield within(f"InputWindowOffsets[{i}]", start, 0, limit, f"InputTensor.Sizes[{i}]")
        rest = limit - if_within(start, 0, limit)
        why = f"InputTensor.Sizes[{i}] - InputWindowOffsets[{i}]"
        yield within(f"InputWindowSizes[{i}]", size, 0, rest, why)


def _strides(strides: Sequence[int]) -> Rules:
    for i, stride in enumerate(strides):
        yield _not_zero(f"InputWindowStrides[{i}]", stride)


def _not_zero(path: str, stride: int) -> Rules:
    if stride == 0:
        yield Violation(path, "a stride other than 0", 0)


def _within_reach(shape: Sequence[int], limits: Sequence[int]) -> Rules:
    for i, (count, limit) in enumerate(zip(shape, limits, strict=False)):
        yield _reached(f"OutputTensor.Sizes[{i}]", count, limit)


def _reached(path: str, count: int, limit: int) -> Rules:
    if count > limit:
        yield Violation(path, f"{span(1, limit)} (elements that the stride reaches)", count)


def offsets_of_elements(path: str, offsets: Sequence[int], of: str, sizes: Sequence[int]) -> Rules:
    """Check that each offset is that of an element."""
    for i, (offset, size) in enumerate(zip(offsets, sizes, strict=False)):
        yield within(f"{path}[{i}]", offset, 0, size - 1, f"{of}.Sizes[{i}] - 1")


class Slice1(Descriptor):
    """``DML_SLICE1_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor that contains the window.
    output_tensor : TensorDesc
        The selected elements, with the type and DimensionCount of the input. Each size is at least
        1 and at most the number of elements that the stride reaches in the window.
    dimension_count : int, optional
        The number of dimensions; by default the length of `offsets`.
    input_window_offsets : sequence of int
        The start of the window in each dimension.
    input_window_sizes : sequence of int
        The size of the window in each dimension, at least 1.
    input_window_strides : sequence of int
        The step between elements in each dimension, not 0. A negative stride starts at the end of
        the window.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Slice1(input_tensor=dml.TensorDesc("FLOAT32", (4, 4)),
    ...                   output_tensor=dml.TensorDesc("FLOAT32", (2, 2)),
    ...                   input_window_offsets=(0, 1), input_window_sizes=(4, 3),
    ...                   input_window_strides=(-2, 2))
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    dimension_count: int = count_of("input_window_offsets")
    input_window_offsets: Sequence[int] = uints()
    input_window_sizes: Sequence[int] = uints()
    input_window_strides: Sequence[int] = ints()

    NAME = "SLICE1"
    KERNEL = "slice_window"
    ALSO_KNOWN_AS = "anydml.slice_window onnx.Slice torch.narrow jax.lax.slice"
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]]],
        "output_tensor": [[[[2.0, 4], [10, 12]]]], "input_window_offsets": (0, 0, 0, 1),
        "input_window_sizes": (1, 1, 4, 3), "input_window_strides": (1, 1, 2, 2),
    }, {
        "input_tensor": [[[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]]],
        "output_tensor": [[[[14.0, 16], [6, 8]]]], "input_window_offsets": (0, 0, 0, 1),
        "input_window_sizes": (1, 1, 4, 3), "input_window_strides": (1, 1, -2, 2),
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, rank = inputs[0], rank_of(inputs[0])
        starts, sizes, strides = (attributes[name] for name in ("starts", "sizes", "strides"))

        def limit() -> Any:
            steps = [UNKNOWN if stride == 0 else stride for stride in usable(strides, rank)]
            return reached(usable(sizes, rank), steps)

        limits = known(limit)
        shape = attributes.get("counts", limits)
        named = {
            "InputWindowOffsets": starts,
            "InputWindowSizes": sizes,
            "InputWindowStrides": strides,
        }
        return Inferred.of(
            (ArraySpec(shape, data.dtype),),
            (
                has_length(name, values, rank, "InputTensor.DimensionCount")
                for name, values in named.items()
            ),
            _within_input(data, starts, sizes),
            _strides(strides),
            _within_reach(shape, limits),
        )

    def check(self) -> Rules:
        offsets, sizes = self.input_window_offsets, self.input_tensor.sizes
        yield offsets_of_elements("InputWindowOffsets", offsets, "InputTensor", sizes)
        yield each_at_least("InputWindowSizes", self.input_window_sizes, 1)

    def attributes(self) -> Attributes:
        return {
            "starts": self.input_window_offsets,
            "sizes": self.input_window_sizes,
            "strides": self.input_window_strides,
            "counts": self.output_tensor.sizes,
        }

    @staticmethod
    def compute(
        e: Engine,
        x: Array,
        *,
        starts: Sequence[int],
        sizes: Sequence[int],
        strides: Sequence[int],
        counts: Sequence[int],
    ) -> Array:
        pairs = zip(starts, sizes, strict=True)
        window = x[tuple(slice(start, start + size) for start, size in pairs)]
        backward = [axis for axis, stride in enumerate(strides) if stride < 0]
        window = e.xp.flip(window, backward) if backward else window
        steps = zip(counts, map(abs, strides), strict=True)
        return window[tuple(slice(0, count * step, step) for count, step in steps)]


class Slice(Descriptor):
    """``DML_SLICE_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to select from.
    output_tensor : TensorDesc
        The selected elements, with the type and DimensionCount of the input; its sizes equal
        `sizes`.
    dimension_count : int, optional
        The number of dimensions; by default the length of `offsets`.
    offsets : sequence of int
        The index of the first element along each dimension.
    sizes : sequence of int
        The number of elements to copy along each dimension, at least 1.
    strides : sequence of int
        The step between elements along each dimension, at least 1.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Slice(input_tensor=dml.TensorDesc("FLOAT32", (4, 4)),
    ...                  output_tensor=dml.TensorDesc("FLOAT32", (2, 2)),
    ...                  offsets=(1, 0), sizes=(2, 2), strides=(2, 3))
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    dimension_count: int = count_of("offsets")
    offsets: Sequence[int] = uints()
    sizes: Sequence[int] = uints()
    strides: Sequence[int] = uints()

    NAME = "SLICE"
    KERNEL = Slice1.KERNEL

    infer = staticmethod(Slice1.infer)
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]]],
        "output_tensor": [[[[7.0, 8], [11, 12], [15, 16]]]], "offsets": (0, 0, 1, 2),
        "sizes": (1, 1, 3, 2), "strides": (1, 1, 1, 1),
    }, {
        "input_tensor": [[[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]]],
        "output_tensor": [[[[5.0, 8], [13, 16]]]], "offsets": (0, 0, 1, 0), "sizes": (1, 1, 2, 2),
        "strides": (1, 1, 2, 3),
    })  # fmt: skip

    def check(self) -> Rules:
        rank = self.input_tensor.dimension_count
        arrays = {"Offsets": self.offsets, "Sizes": self.sizes, "Strides": self.strides}
        for name, values in arrays.items():
            yield has_length(name, values, rank, "InputTensor.DimensionCount")
        yield offsets_of_elements("Offsets", self.offsets, "InputTensor", self.input_tensor.sizes)
        yield each_at_least("Strides", self.strides, 1)
        yield self._reached()

    def _reached(self) -> Rules:
        limits = self.input_tensor.sizes
        arrays = (
            usable(values, len(limits)) for values in (self.offsets, self.sizes, self.strides)
        )
        for i, (limit, offset, size, stride) in enumerate(zip(limits, *arrays, strict=True)):
            rest = limit - 1 - if_within(offset, 0, limit - 1)
            most = 1 + rest // if_within(stride, 1, UINT32_MAX)
            why = f"the elements that the stride reaches from Offsets[{i}]"
            yield within(f"Sizes[{i}]", size, 1, most, why)

    def attributes(self) -> Attributes:
        pairs = known(lambda: [*zip(self.sizes, self.strides, strict=False)])
        return {
            "starts": self.offsets,
            "sizes": known(lambda: tuple(1 + (size - 1) * stride for size, stride in pairs)),
            "strides": self.strides,
            "counts": self.sizes,
        }

    compute = staticmethod(Slice1.compute)


def reached(sizes: Sequence[Any], strides: Sequence[Any]) -> tuple[Any, ...]:
    """The number of elements of a window that the strides reach."""
    pairs = zip(sizes, strides, strict=True)
    return tuple((size + abs(stride) - 1) // abs(stride) for size, stride in pairs)


def first_places(attributes: Attributes) -> tuple[int, ...]:
    """The index of the first element to copy: the start of the window or its end."""
    windows = zip(attributes["starts"], attributes["sizes"], attributes["strides"], strict=True)
    return tuple(start if stride > 0 else start + size - 1 for start, size, stride in windows)
