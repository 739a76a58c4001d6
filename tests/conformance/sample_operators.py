"""Operator modules without a page, with fields of every kind, to test what the kinds do."""

import numpy as np

import anydml as dml
from anydml.core.dtypes import UP_TO_32_BITS, data_types
from anydml.core.enums import NamedEnum
from anydml.core.levels import FeatureLevel
from anydml.core.program import ArraySpec, Inferred
from anydml.ops import _fields as fields
from anydml.ops._descriptor import Descriptor
from anydml.ops._pages import Support, TensorSupport

ANY = TensorSupport(range(1, 9), UP_TO_32_BITS)


def row(level, when=(), **tensors):
    return Support(FeatureLevel.parse(level), tensors, dict(when))


def _of(types):
    return TensorSupport(range(1, 9), data_types(types))


class Curve(Descriptor):
    """An activation: it has tensors where it stands alone, and none inside another operator."""

    input_tensor: dml.TensorDesc | None = fields.input_field(optional=True)
    output_tensor: dml.TensorDesc | None = fields.output_field(optional=True)
    alpha: float = fields.floating()

    NAME = "ACTIVATION_CURVE"
    KERNEL = "curve"
    FUSED = True
    SUPPORT = (row("3_0", InputTensor=ANY, OutputTensor=ANY),)

    @staticmethod
    def infer(inputs, attributes):
        return Inferred((inputs[0],))


class Other(Descriptor):
    """An operator that nothing takes inside."""

    input_tensor: dml.TensorDesc = fields.input_field()

    NAME = "OTHER"
    SUPPORT = (row("1_0", InputTensor=ANY),)


class Everything(Descriptor):
    """A weighted sum, with an attribute of each kind."""

    input_tensor: dml.TensorDesc = fields.input_field()
    bias_tensor: dml.TensorDesc | None = fields.input_field(optional=True)
    output_tensor: dml.TensorDesc = fields.output_field()
    count_tensor: dml.TensorDesc | None = fields.output_field(optional=True)
    step: int = fields.integer()
    keep: bool = fields.boolean()
    epsilon: float = fields.floating()
    dimension_count: int = fields.count_of("scales")
    scales: tuple = fields.floats(optional=True)
    pads: tuple = fields.uints(optional=True)
    shifts: tuple = fields.ints(optional=True)
    value_data_type: dml.DataType = fields.enumeration(dml.DataType)
    value: float = fields.scalar("value_data_type")
    delta: float = fields.scalar("value_data_type", wraps=True)
    scale_bias: dml.ScaleBias | None = fields.scale_bias()
    window: dml.Size2D = fields.size_2d()
    fused_activation: Curve | None = fields.nested(Curve)
    activations: tuple = fields.nested_list(Curve)

    NAME = "EVERYTHING"
    KERNEL = "everything"
    ONE_DIMENSION_COUNT = False
    SUPPORT = (row("1_0", InputTensor=ANY, BiasTensor=ANY, OutputTensor=ANY, CountTensor=ANY),)

    @staticmethod
    def infer(inputs, attributes):
        data, _ = inputs  # the second is None where it is left out
        return Inferred((ArraySpec(data.shape, data.dtype), ArraySpec((1,), np.dtype("u4"))))

    def attributes(self):
        return {"epsilon": self.epsilon, "step": self.step}

    @staticmethod
    def evaluate(inputs, outputs, attributes):
        data, bias = inputs
        result, count = outputs
        result[...] = data * attributes["step"] + (0 if bias is None else bias)
        if count is not None:
            count[...] = data.size


F = dml.TensorDesc("FLOAT32", (2, 3))
DEFAULTS = {
    "input_tensor": F,
    "output_tensor": F,
    "step": -3,
    "keep": True,
    "epsilon": 0.1,
    "value_data_type": "FLOAT16",
    "value": 1.5,
    "delta": -2,
    "window": (4, 2),
    "activations": [],
}


def everything(**changes):
    """A good descriptor, some fields replaced."""
    return Everything(**DEFAULTS | changes)


class Function(NamedEnum):
    """What a reduction does."""

    SUM = 0
    ARGMAX = 1

    @classmethod
    def prefix(cls):
        return "FUNCTION_"


class Reduction(Descriptor):
    """An operator with a table for each of some members of an attribute, as REDUCE has."""

    input_tensor: dml.TensorDesc = fields.input_field()
    output_tensor: dml.TensorDesc = fields.output_field()
    function: Function = fields.enumeration(Function)

    NAME = "REDUCTION"
    SUPPORT = (
        row("2_0", {"Function": ("SUM",)}, InputTensor=ANY, OutputTensor=_of("FLOAT32")),
        row("2_0", {"Function": ("ARGMAX",)}, InputTensor=ANY, OutputTensor=_of("UINT32")),
        row("3_0", {"Function": ("ARGMAX",)}, InputTensor=ANY, OutputTensor=_of("UINT32 INT64")),
    )

    @staticmethod
    def infer(inputs, attributes):
        return Inferred((ArraySpec(inputs[0].shape, None),))
