"""Elementwise operators, activations and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from anydml.core.dtypes import DataType
from anydml.graphs.build import Expression
from anydml.onnx.lower.node import Lower, Lowering, UnsupportedError
from anydml.onnx.types import DATA_TYPES, numpy_type
from anydml.ops._descriptor import Descriptor
from anydml.ops._registry import OPERATORS

_FIELD_ATTRIBUTES: Final = {"sigmoid_input_scale": "alpha", "threshold": "lambd"}


def unary(name: str, **defaults: Any) -> Lower:
    """An operator of one tensor, with fields that attributes of the same name may set.

    Defaults whose name ends with an underscore are no attributes of ONNX.
    """

    def lower(n: Lowering) -> Expression:
        return n.emit(name, n.view(0), **_fields(n, defaults))

    return lower


def _fields(n: Lowering, defaults: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    fields = {}
    for field, default in defaults.items():
        attribute = prefix + _FIELD_ATTRIBUTES.get(field, field)
        fixed = field.endswith("_")
        fields[field.rstrip("_")] = default if fixed else n.get(attribute, default)
    return fields


_ACTIVATIONS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "Elu": ("ACTIVATION_ELU", {"alpha": 1.0}),
    "HardSigmoid": ("ACTIVATION_HARD_SIGMOID", {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": ("ACTIVATION_LEAKY_RELU", {"alpha": 0.01}),
    "ParametricSoftplus": ("ACTIVATION_PARAMETRIC_SOFTPLUS", {"alpha": 1.0, "beta": 1.0}),
    "Relu": ("ACTIVATION_RELU", {}),
    "ScaledTanh": ("ACTIVATION_SCALED_TANH", {"alpha": 1.0, "beta": 1.0}),
    "Selu": ("ACTIVATION_SCALED_ELU",
             {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    "Sigmoid": ("ACTIVATION_SIGMOID", {}),
    "Softplus": ("ACTIVATION_SOFTPLUS", {"steepness_": 1.0}),
    "Softsign": ("ACTIVATION_SOFTSIGN", {}),
    "Tanh": ("ACTIVATION_TANH", {}),
    "ThresholdedRelu": ("ACTIVATION_THRESHOLDED_RELU", {"alpha": 1.0}),
}  # fmt: skip
"""Activations that may be fused into another node: the operator, and its fields."""


def activation(name: str) -> Lower:
    """An activation that may be fused into another node."""
    operator, defaults = _ACTIVATIONS[name]
    return unary(operator, **defaults)


def fused_activation(n: Lowering, rank: int) -> Descriptor:
    """The activation of a fused node, of the rank of its result."""
    name = n.get("activation")
    if name == "Softmax":
        own = len(n.results[0].shape)
        axis = n.get("activation_axis", -1) % own + rank - own
        return OPERATORS["ACTIVATION_SOFTMAX1"](axes=[axis])
    if name not in _ACTIVATIONS:
        raise UnsupportedError(f"the activation {name}")
    operator, defaults = _ACTIVATIONS[name]
    return OPERATORS[operator](**_fields(n, defaults, "activation_"))


def binary(name: str, **fields: Any) -> Lower:
    """An operator of two tensors, which broadcast to the output's sizes."""

    def lower(n: Lowering) -> Expression:
        sizes = n.output()[1]
        return n.emit(name, n.broadcast(0, sizes), n.broadcast(1, sizes), **fields)

    return lower


def choice(n: Lowering) -> Expression:
    sizes = n.output()[1]
    return n.emit("ELEMENT_WISE_IF", *(n.broadcast(i, sizes) for i in range(3)))


def variadic(name: str) -> Lower:
    """Sum, Max, Min and Mean of any number of tensors."""

    def lower(n: Lowering) -> Expression:
        sizes = n.output()[1]
        operands = [n.broadcast(i, sizes) for i in range(len(n.operands))]
        if len(operands) == 1:
            return n.emit("ELEMENT_WISE_IDENTITY", operands[0])
        mean = name == "ELEMENT_WISE_MEAN" and len(operands) > 2
        step = "ELEMENT_WISE_ADD" if mean else name
        result = operands[0]
        for operand in operands[1:]:
            result = n.emit(step, result, operand)
        if mean:
            scale = {"scale": 1 / len(operands), "bias": 0.0}
            result = n.emit("ELEMENT_WISE_IDENTITY", result, scale_bias=_scale_bias(**scale))
        return result

    return lower


def _scale_bias(scale: float, bias: float) -> Any:
    from anydml.ops._fields import ScaleBias

    return ScaleBias(scale, bias)


def affine(n: Lowering) -> Expression:
    scale = _scale_bias(n.get("alpha", 1.0), n.get("beta", 0.0))
    return n.emit("ELEMENT_WISE_IDENTITY", n.view(0), scale_bias=scale)


def power(n: Lowering) -> Expression:
    exponent = n.operand(1)
    # The exponent of CONSTANT_POW is a FLOAT, which its page has for floats only.
    by_number = exponent.data is not None and exponent.data.size == 1
    if by_number and (n.exact or n.type() in ("f16", "f32")):
        assert exponent.data is not None
        value = float(exponent.data.reshape(-1)[0])
        return n.emit("ELEMENT_WISE_CONSTANT_POW", n.broadcast(0, n.output()[1]), exponent=value)
    sizes = n.output()[1]
    return n.emit("ELEMENT_WISE_POW", n.broadcast(0, sizes), n.broadcast(1, sizes))


def clip(n: Lowering) -> Expression:
    kind = n.type()
    if n.version < 11:
        bounds = np.finfo(np.float32)
        low = max(float(n.get("min", bounds.min)), float(bounds.min))
        high = min(float(n.get("max", bounds.max)), float(bounds.max))
        return n.emit("ELEMENT_WISE_CLIP", n.view(0), min=low, max=high)
    limits: Any = np.finfo(numpy_type(kind)) if kind[0] == "f" else np.iinfo(numpy_type(kind))
    found = [n.constant(i) for i in (1, 2)]
    low, high = (
        limit if data is None else data.reshape(-1)[0]
        for data, limit in zip(found, (limits.min, limits.max), strict=True)
    )
    convert = float if kind[0] == "f" else int
    return n.emit(
        "ELEMENT_WISE_CLIP1", n.view(0), min_max_data_type=DATA_TYPES[kind], min=convert(low),
        max=convert(high),
    )  # fmt: skip


def modulus(n: Lowering) -> Expression:
    kind = "TRUNCATE" if n.get("fmod", 0) else "FLOOR"
    result: Expression = binary(f"ELEMENT_WISE_MODULUS_{kind}")(n)
    return result


def shift(n: Lowering) -> Expression:
    result: Expression = binary(f"ELEMENT_WISE_BIT_SHIFT_{n.get('direction', 'LEFT')}")(n)
    return result


def is_infinity(n: Lowering) -> Expression:
    positive, negative = (n.get(f"detect_{sign}", 1) for sign in ("positive", "negative"))
    if not positive and not negative and not n.exact:
        raise UnsupportedError("DirectML has no mode that detects neither infinity")
    mode = "EITHER" if positive == negative else "POSITIVE" if positive else "NEGATIVE"
    return n.emit("ELEMENT_WISE_IS_INFINITY", n.view(0), infinity_mode=mode)


def cast(n: Lowering) -> Expression:
    data_type, sizes = n.output()
    x = n.view(0)
    if n.results[0].type != "bool" or n.type() == "bool":
        return n.emit("CAST", x, outputs=[(data_type, sizes)])
    if n.exact or n.type() in ("u8", "bool"):
        # The provider truncates first: 0.5 becomes false.
        byte = n.emit("CAST", x, outputs=[(DataType.UINT8, sizes)])
        return n.emit("ELEMENT_WISE_CLIP1", byte, min_max_data_type=DataType.UINT8, min=0, max=1)
    if n.type() == "f64":
        raise UnsupportedError("DirectML compares no FLOAT64")
    zero = n.builder.constant(np.zeros(1, x.data_type.numpy).tobytes().ljust(4, b"\0"),
                              _one(x.data_type))  # fmt: skip
    zeros = n.reshape(zero, sizes, (0,) * len(sizes))
    equal = n.emit("ELEMENT_WISE_LOGICAL_EQUALS", x, zeros)
    return n.emit("ELEMENT_WISE_LOGICAL_NOT", equal)


def _one(data_type: DataType) -> Any:
    from anydml.core.tensor import TensorDesc

    return TensorDesc(data_type, (1,))


def softmax(name: str) -> Lower:
    """An activation along axes: before version 13 all from `axis` on, then `axis` alone."""

    def lower(n: Lowering) -> Expression:
        rank = max(len(n.shape()), 4)
        shift = rank - len(n.shape())
        if n.version < 13:
            axes = range(n.axis(1) + shift, rank)
        else:
            axes = range(n.axis(-1) + shift, n.axis(-1) + shift + 1)
        return n.emit(name, n.view(0), axes=tuple(axes))

    return lower
