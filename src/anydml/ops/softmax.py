"""Softmax and hardmax: normalize the elements of each group.

A group consists of the elements along the axes; without axes, each element is its own group. The
operators without a 1 in their name have rows as groups: the last axis of a tensor in which all
sizes except the last two are 1. A group that contains a NaN becomes NaN. So does a group whose
largest element is +infinity, or whose elements are all -infinity. HARDMAX treats NaN as the largest
element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from anydml.core.levels import FeatureLevel
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tolerance import EXACT, ulp
from anydml.engines import Array, Engine
from anydml.ops._axes import merge_axes
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import axes_field, count_of
from anydml.ops._rules import distinct_axes, equal
from anydml.ops.activations import Activation

FAMILY = Family.NETWORKS

_ROUNDED = ulp(72)
"""The difference from the largest element is rounded before `exp`: up to 64 ULPs above 64."""


def softmax(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    """``exp(x) / sum(exp(x))``, computed from the differences from the largest element."""
    powers = e.xp.exp(x - e.xp.max(x, axis=tuple(axes), keepdims=True))
    total = e.xp.sum(powers, axis=tuple(axes), keepdims=True, dtype=e.xp.float64)
    return powers / total.astype(x.dtype)


def log_softmax(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    """``log(softmax(x))``, accurate even if one element is much larger than the others."""
    below = x - e.xp.max(x, axis=tuple(axes), keepdims=True)
    # The first of the largest elements has exp(0) = 1, which log1p adds.
    rest = e.xp.exp(below) - hardmax(e, x, axes)
    total = e.xp.sum(rest, axis=tuple(axes), keepdims=True, dtype=e.xp.float64)
    return below - e.xp.log1p(total.astype(x.dtype))


def hardmax(e: Engine, x: Array, axes: Sequence[int]) -> Array:
    """1 for the first of the largest elements, 0 for the others."""
    merged, split = merge_axes(e, x, axes)
    first = e.xp.argmax(merged, axis=-1)[..., None]
    return split((e.xp.arange(merged.shape[-1]) == first).astype(x.dtype))


def _only_rows(data: ArraySpec) -> Rules:
    why = "only the last two sizes may differ; the version with axes takes any"
    for i, size in enumerate(data.shape[:-2]):
        yield equal(f"InputTensor.Sizes[{i}]", size, 1, why)


def _of_rows(function: Callable[[Engine, Array, Sequence[int]], Array]) -> Any:
    return staticmethod(lambda e, x: function(e, x, (x.ndim - 1,)))


class Rowwise(Activation):
    """Base of the operators that normalize rows.

    Parameters
    ----------
    input_tensor : TensorDesc
        The rows to normalize; all sizes except the last two are 1.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    """

    ELEMENTWISE = False
    FUSED = False
    INPUTS = ([[1.0, 2.0, 3.0], [0.0, -1.0, 0.0]],)

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        (output,) = super().infer(inputs, attributes).outputs
        return Inferred.of((output,), _only_rows(output))


class ActivationSoftmax(Rowwise):
    """``exp(x) / sum(exp(x))`` of each row.

    From feature level 6_1, it can be fused into GEMM.
    """

    NAME = "ACTIVATION_SOFTMAX"
    FUSED = True
    FUSED_SINCE = FeatureLevel.LEVEL_6_1
    TOLERANCE = _ROUNDED

    compute = _of_rows(softmax)


class ActivationLogSoftmax(Rowwise):
    """``log(exp(x) / sum(exp(x)))`` of each row."""

    NAME = "ACTIVATION_LOG_SOFTMAX"
    TOLERANCE = _ROUNDED

    compute = _of_rows(log_softmax)


class ActivationHardmax(Rowwise):
    """1 for the first of the largest elements of each row, 0 for the others."""

    NAME = "ACTIVATION_HARDMAX"
    TOLERANCE = EXACT

    compute = _of_rows(hardmax)


class AlongAxes(Activation):
    """Base of the operators with axes.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to normalize.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    axis_count : int
        The length of `axes`.
    axes : sequence of int
        The axes of a group, in any order.
    """

    axis_count: int = count_of("axes")
    axes: Sequence[int] = axes_field()

    ELEMENTWISE = False
    FUSED = False
    INPUTS = ([[12.0, 0.0, -101.0, 11.0], [3.0, 234.0, 0.0, -101.0]],)
    EXAMPLES = ({"axes": (0,)},)

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        (output,) = super().infer(inputs, attributes).outputs
        rule = distinct_axes(attributes["axes"], ("InputTensor", output))
        return Inferred.of((output,), rule)


class ActivationSoftmax1(AlongAxes):
    """``exp(x) / sum(exp(x))`` along some axes.

    From feature level 6_1, it can be fused into GEMM.
    """

    NAME = "ACTIVATION_SOFTMAX1"
    FUSED = True
    FUSED_SINCE = FeatureLevel.LEVEL_6_1
    TOLERANCE = _ROUNDED
    ALSO_KNOWN_AS = "onnx.Softmax torch.softmax torch.nn.functional.softmax jax.nn.softmax"

    compute = staticmethod(softmax)


class ActivationLogSoftmax1(AlongAxes):
    """``log(exp(x) / sum(exp(x)))`` along some axes."""

    NAME = "ACTIVATION_LOG_SOFTMAX1"
    TOLERANCE = _ROUNDED
    ALSO_KNOWN_AS = (
        "onnx.LogSoftmax torch.log_softmax torch.nn.functional.log_softmax jax.nn.log_softmax"
    )

    compute = staticmethod(log_softmax)


class ActivationHardmax1(AlongAxes):
    """1 for the first of the largest elements along some axes, 0 for the others."""

    NAME = "ACTIVATION_HARDMAX1"
    TOLERANCE = EXACT
    ALSO_KNOWN_AS = "onnx.Hardmax"

    compute = staticmethod(hardmax)
