"""Quantization: represent floats by small integers with a scale and a zero point.

Inputs and output have the same sizes. Strides of 0 broadcast a scale for each row, or one for all
elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from anydml.core.errors import Violation
from anydml.core.levels import FeatureLevel
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.core.tolerance import ulp
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed, Map
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import input_field, output_field
from anydml.ops._rules import equal, type_name
from anydml.ops._shapes import dtype_named

FAMILY = Family.QUANTIZED


def _type_of_scale(x: ArraySpec | None, scale: ArraySpec | None) -> Rules:
    assert x is not None
    assert scale is not None
    if x.dtype is not UNKNOWN and scale.dtype is not UNKNOWN:
        own = type_name(x)
        expected = own if own.startswith("FLOAT") else "FLOAT32"
        yield equal("ScaleTensor.DataType", type_name(scale), expected, f"InputTensor is {own}")


class Linear(Map):
    """Base of linear quantization and its inverse.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to convert.
    scale_tensor : TensorDesc
        The scale of each element.
    zero_point_tensor : TensorDesc, optional
        The integer that represents 0.0, for each element. From feature level 6_2 it may be omitted:
        it is then 0.
    output_tensor : TensorDesc
        The converted elements, with the sizes of the input.
    """

    input_tensor: TensorDesc = input_field()
    scale_tensor: TensorDesc = input_field()
    zero_point_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()

    ZERO_POINT_IS_OPTIONAL: ClassVar[FeatureLevel] = FeatureLevel.LEVEL_6_2

    def rules_at(self, level: FeatureLevel) -> Rules:
        if self.zero_point_tensor is None and level < self.ZERO_POINT_IS_OPTIONAL:
            rule = f"a tensor (below level {self.ZERO_POINT_IS_OPTIONAL})"
            yield Violation("ZeroPointTensor", rule, None)


class ElementWiseQuantizeLinear(Linear):
    """``clamp(round(x / scale) + zero_point)``: ties to even, clamped to the range of the output.

    The quotient and the sum are computed in the type of the scale, but at least in float32. NaN
    becomes 0.
    """

    NAME = "ELEMENT_WISE_QUANTIZE_LINEAR"
    SAME_TYPES = ("ZeroPointTensor", "OutputTensor")
    WIDENS = False
    EXAMPLES = ({
        "input_tensor": [0.0, 2.0, 3.0, 1000.0, -254.0], "scale_tensor": [2.0] * 5,
        "zero_point_tensor": [128] * 5,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.quantize_per_tensor"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        inferred = super().infer(inputs, attributes)
        x, scale, _ = inputs
        rules = inferred.violations, _type_of_scale(x, scale)
        return Inferred.of(inferred.outputs, *rules)

    @staticmethod
    def compute(e: Engine, x: Array, scale: Array, zero_point: Array | None) -> Array:
        wide = e.xp.float32
        found = e.xp.rint(e.cast(x, wide) / e.cast(scale, wide))
        return found if zero_point is None else found + e.cast(zero_point, wide)


class ElementWiseDequantizeLinear(Linear):
    """``(x - zero_point) * scale``."""

    NAME = "ELEMENT_WISE_DEQUANTIZE_LINEAR"
    SAME_TYPES = ("InputTensor", "ZeroPointTensor")
    TOLERANCE = ulp(2)
    EXAMPLES = ({
        "input_tensor": [0, 3, 128, 255], "scale_tensor": [2.0] * 4, "zero_point_tensor": [128] * 4,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "torch.dequantize"

    @classmethod
    def infer(cls, inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        inferred = super().infer(inputs, attributes)
        scale = inputs[1]
        assert scale is not None
        return replace(inferred, outputs=(ArraySpec(inferred.outputs[0].shape, scale.dtype),))

    @staticmethod
    def compute(e: Engine, x: Array, scale: Array, zero_point: Array | None) -> Array:
        kind = e.xp.float32 if x.dtype.itemsize < 4 else e.xp.int64  # which has all differences
        wide = e.cast(x, kind)
        if zero_point is not None:
            wide = wide - e.cast(zero_point, kind)
        return e.cast(wide, scale.dtype) * scale


_QUANTIZED: Final = (np.dtype(np.int8), np.dtype(np.uint8))


class DynamicQuantizeLinear(Computed):
    """Quantizes with the scale and zero point that fit the range of the input, extended to 0.

    ``scale = (max - min) / (most - least)``, or 1 if all elements are 0;
    ``zero_point = clamp(round(least - min / scale))``;
    ``output = clamp(round(x / scale) + zero_point)``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to quantize.
    output_tensor : TensorDesc
        The quantized elements, with the sizes of the input. The range of its type is ``least`` to
        ``most``.
    output_scale_tensor : TensorDesc
        The scale: one element.
    output_zero_point_tensor : TensorDesc
        The zero point: one element with the type of the output.
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    output_scale_tensor: TensorDesc = output_field()
    output_zero_point_tensor: TensorDesc = output_field()

    NAME = "DYNAMIC_QUANTIZE_LINEAR"
    WIDENS = False
    WORKING_BYTES = 24
    EXAMPLES = ({"input_tensor": [0.0, 2.0, -3.0, -2.5, 1.34, 0.5]},)
    ALSO_KNOWN_AS = "onnx.DynamicQuantizeLinear torch.quantize_per_tensor_dynamic"

    def attributes(self) -> Attributes:
        return {"dtype": self.output_tensor.data_type.numpy.name}

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs
        dtype = dtype_named(attributes["dtype"])
        quantized = dtype if dtype is UNKNOWN or dtype in _QUANTIZED else None
        one = known(lambda: (1,) * len(data.shape))
        scale = ArraySpec(one, np.dtype(np.float32))
        return Inferred((ArraySpec(data.shape, quantized), scale, ArraySpec(one, quantized)))

    @staticmethod
    def compute(e: Engine, x: Array, *, dtype: str) -> tuple[Array, Array, Array]:
        xp, one, limits = e.xp, np.float32(1), np.iinfo(dtype)
        minimum, maximum = np.float32(limits.min), np.float32(limits.max)
        wide = x.astype(xp.float32)
        low = xp.minimum(xp.min(wide, keepdims=True), np.float32(0))
        high = xp.maximum(xp.max(wide, keepdims=True), np.float32(0))
        # In float64, since XLA multiplies by the rounded reciprocal of a constant on a GPU.
        share = ((high - low).astype(xp.float64) / np.float64(maximum - minimum)).astype(xp.float32)
        scale = xp.where(low == high, one, share)
        zero_point = xp.clip(xp.rint(minimum - low / scale), minimum, maximum)
        return xp.rint(wide / scale) + zero_point, scale, zero_point
