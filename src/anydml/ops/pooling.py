"""Pooling: one value for each sliding window over the spatial dimensions.

A window that contains only padding gives 0. For a maximum, it gives the lowest value of the type
and index 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, differ, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import sums
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import Role, boolean, count_of, input_field, output_field, uint, uints
from anydml.ops._rules import at_least
from anydml.ops._windows import check_arrays, count_windows, counts_of_windows, window_of

FAMILY = Family.NETWORKS

_HIGHEST_POWER: Final = 7
"""The highest power of float32 values whose sums cannot overflow float64."""


class Pooling(Computed):
    """Base of the pooling operators."""

    ONE_DIMENSION_COUNT = True
    WORKING_BYTES = 32  # positions are INT64, and powers float64
    IN_PIECES = True
    EXAMPLES = ({
        "input_tensor": [[[[1, 2, 3], [4, 9, 6], [7, 8, 5]]]],
        "strides": (1, 1), "window_size": (2, 2), "start_padding": (0, 0), "end_padding": (0, 1),
    },)  # fmt: skip

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        window = attributes["window_size"]
        sizes, fits = count_windows(data, window, "WindowSize[{}]", attributes)
        shape = known(lambda: (*data.shape[:2], *sizes))
        outputs = len(cls.tensor_fields(Role.OUTPUT))
        return Inferred.of(
            (ArraySpec(shape, data.dtype), ArraySpec(shape, None))[:outputs],
            check_arrays(attributes, ("InputTensor", data)),
            *fits,
            at_least("P", attributes.get("p", 1), 1),
        )


class Tensors(Pooling):
    """The fields that all pooling operators have.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to pool, ``{batches, channels, ..}`` with 2 or 3 spatial dimensions.
    output_tensor : TensorDesc
        The result, with the type of the input. The size of each spatial dimension is ``(padded -
        span) // stride + 1``, where ``span = (window - 1) * dilation + 1``.
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()

    def attributes(self) -> Attributes:
        """The attributes for `infer` and `compute`.

        If DirectML accepts an output with a partial window more, ``end_padding`` makes this window
        whole, and ``partial`` has what was added.
        """
        found = super().attributes()
        more = known(self._partial_windows, found)
        if more is UNKNOWN or not any(more):
            return found
        ends = tuple(map(sum, zip(found["end_padding"], more, strict=True)))
        return {**found, "end_padding": ends, "partial": more}

    def _partial_windows(self, attributes: Attributes) -> tuple[int, ...]:
        strides = attributes["strides"]
        rows = [
            self.input_tensor.sizes[2:], self.output_tensor.sizes[2:], attributes["window_size"],
            strides, attributes["start_padding"], attributes["end_padding"],
            attributes.get("dilations", [1] * len(strides)),
        ]  # fmt: skip
        return () if len(set(map(len, rows))) > 1 else tuple(map(_missing_padding, *rows))

    def check(self) -> Rules:
        yield super().check()
        for i, more in enumerate(self.attributes().get("partial", ())):
            size = self.output_tensor.sizes[i + 2] if more else 0
            for name, tensor, _ in self.tensors(Role.OUTPUT) if more else ():
                if differ(tensor.sizes[i + 2], size):
                    continue
                rule = f"{size - 1} (the number of whole windows)"
                yield Violation(f"{name}.Sizes[{i + 2}]", rule, f"{size} (one is partial)")


def _missing_padding(
    size: int, result: int, taps: int, stride: int, start: int, end: int, dilation: int
) -> int:
    """The padding that an output lacks for its last window; 0 if all windows are whole."""
    left = size + start + end - (taps - 1) * dilation - 1
    is_partial = left >= 0 and stride > 0 and left % stride and result == left // stride + 2
    return stride - left % stride if is_partial else 0


class Indices(Tensors):
    """The indices of the maxima.

    Parameters
    ----------
    output_indices_tensor : TensorDesc, optional
        For each output element, the flat index of the maximum in the input, with the sizes of the
        output.
    """

    output_indices_tensor: TensorDesc | None = output_field(optional=True)

    def attributes(self) -> dict[str, Any]:
        """The attributes for `infer` and `compute`, including whether indices are required."""
        return {**super().attributes(), "indexed": self.output_indices_tensor is not None}


class Windows(Pooling):
    """The sizes and positions of windows.

    Parameters
    ----------
    dimension_count : int, optional
        The number of spatial dimensions; by default the length of `strides`.
    strides : sequence of int
        The step from one window to the next, for each spatial dimension.
    window_size : sequence of int
        The number of elements of a window along each spatial dimension.
    start_padding : sequence of int
        The number of padding elements before each spatial dimension.
    end_padding : sequence of int
        The number of padding elements after each spatial dimension.
    """

    dimension_count: int = count_of("strides")
    strides: Sequence[int] = uints()
    window_size: Sequence[int] = uints()
    start_padding: Sequence[int] = uints()
    end_padding: Sequence[int] = uints()


class Dilated(Windows):
    """Windows with gaps.

    Parameters
    ----------
    dilations : sequence of int
        The step from one window element to the next.
    """

    dilations: Sequence[int] = uints()

    EXAMPLES = ({**Pooling.EXAMPLES[0], "dilations": (1, 2)},)


class AveragePooling(Windows, Tensors):
    """The mean of each window.

    Parameters
    ----------
    include_padding : bool
        Whether the mean includes padding, as zeros.
    """

    include_padding: bool = boolean()

    NAME = "AVERAGE_POOLING"
    TOLERANCE = sums(8)
    EXAMPLES = ({**Pooling.EXAMPLES[0], "include_padding": False},)

    @staticmethod
    def compute(e: Engine, x: Array, *, include_padding: bool, **attributes: Any) -> Array:
        total = e.reduce_window(x, "sum", window_of(attributes))
        if include_padding:
            if "partial" not in attributes:
                return total / x.dtype.type(prod(attributes["window_size"]))
            return total / _counts_with_padding(e, x, attributes)
        return total / counts_of_windows(e, x.shape, x.dtype, attributes)


def _counts_with_padding(e: Engine, x: Array, attributes: Attributes) -> Array:
    """How many elements of the padded input each window meets, where the last ones are partial."""
    partial = attributes["partial"]
    pads = zip(x.shape[2:], attributes["start_padding"], attributes["end_padding"], partial,
               strict=True)  # fmt: skip
    shape = (*x.shape[:2], *(size + start + end - more for size, start, end, more in pads))
    none = [0] * len(partial)
    whole = {**attributes, "start_padding": none, "end_padding": partial}
    return counts_of_windows(e, shape, x.dtype, whole)


class AveragePooling1(Dilated, Tensors):
    """The mean of each window, with dilations.

    Parameters
    ----------
    include_padding : bool
        Whether the mean includes padding, as zeros.
    """

    include_padding: bool = boolean()

    NAME = "AVERAGE_POOLING1"
    TOLERANCE = sums(8)
    EXAMPLES = ({**Dilated.EXAMPLES[0], "include_padding": True},)
    ALSO_KNOWN_AS = "onnx.AveragePool onnx.GlobalAveragePool torch.nn.functional.avg_pool2d"

    compute = staticmethod(AveragePooling.compute)


class MaxPooling(Windows, Tensors):
    """The largest element of each window; NaN if the window contains a NaN."""

    NAME = "MAX_POOLING"

    @staticmethod
    def compute(e: Engine, x: Array, **attributes: Any) -> Array:
        return e.reduce_window(x, "max", window_of(attributes))


class MaxPooling1(Windows, Indices):
    """The largest element of each window and its index; of equal elements, the first one."""

    NAME = "MAX_POOLING1"

    @staticmethod
    def compute(
        e: Engine, x: Array, *, indexed: bool, **attributes: Any
    ) -> tuple[Array, Array | None]:
        if not indexed:
            return e.reduce_window(x, "max", window_of(attributes)), None
        values, places = e.locate_max(x, window_of(attributes))
        first = e.xp.arange(prod(x.shape[:2])) * prod(x.shape[2:])  # of each channel
        first = first.reshape(*x.shape[:2], *(1 for _ in x.shape[2:]))
        return values, e.xp.where(places < 0, 0, places + first)


class MaxPooling2(Dilated, Indices):
    """The largest element of each window, with dilations, and its index."""

    NAME = "MAX_POOLING2"
    ALSO_KNOWN_AS = "onnx.MaxPool onnx.GlobalMaxPool torch.nn.functional.max_pool2d"

    compute = staticmethod(MaxPooling1.compute)


class LpPooling(Windows, Tensors):
    """``(|x1|^P + .. + |xn|^P)^(1/P)`` of each window.

    Parameters
    ----------
    p : int
        The power, at least 1. 1 gives the sum of absolute values, 2 the square root of the sum of
        squares.
    """

    p: int = uint()

    NAME = "LP_POOLING"
    TOLERANCE = sums(8)
    EXAMPLES = ({**Pooling.EXAMPLES[0], "p": 2},)

    @staticmethod
    def compute(e: Engine, x: Array, *, p: int, **attributes: Any) -> Array:
        if p == 1:
            return e.reduce_window(e.xp.abs(x), "sum", window_of(attributes))
        # Powers of float32 exceed its range: 1e20 has a square, and a root of that.
        wide = e.xp.abs(x.astype(e.xp.float64))
        if p > _HIGHEST_POWER:
            logs = e.reduce_window(e.xp.log(wide) * p, "logaddexp", window_of(attributes))
            return e.xp.exp(logs / p).astype(x.dtype)
        powers = wide**p
        total = e.reduce_window(powers, "sum", window_of(attributes))
        return (e.xp.sqrt(total) if p == 2 else total ** (1 / p)).astype(x.dtype)


class LpPooling1(Dilated, Tensors):
    """``(|x1|^P + .. + |xn|^P)^(1/P)`` of each window, with dilations.

    Parameters
    ----------
    p : int
        The power, at least 1.
    """

    p: int = uint()

    NAME = "LP_POOLING1"
    TOLERANCE = sums(8)
    EXAMPLES = ({**Dilated.EXAMPLES[0], "p": 1},)
    ALSO_KNOWN_AS = "onnx.LpPool onnx.GlobalLpPool torch.nn.functional.lp_pool2d"

    compute = staticmethod(LpPooling.compute)
