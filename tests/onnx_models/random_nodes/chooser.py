"""Random choices for one node, and the registry of generators."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
from onnx import TensorProto

LATEST_OPSET = min(25, onnx.defs.onnx_opset_version())


@dataclass
class Parameter:
    """An input that shapes may depend on."""

    array: Any


@dataclass
class RandomNode:
    """A node and its inputs."""

    operator: str
    opset: int
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    units: int = 0  # the largest difference of integers, which are rounded

    def __repr__(self):
        inputs = [
            None if x is None else f"{'constant ' * isinstance(x, Parameter)}{a.dtype}{a.shape}"
            for x in self.inputs
            for a in [np.asarray(x.array if isinstance(x, Parameter) else x)]
        ]
        return f"{self.operator} {self.opset} {self.attributes} of {inputs}"


def element_type(text):
    """The value of TensorProto.DataType for ``tensor(float)``; 0 for other types."""
    name = text.removeprefix("tensor(").removesuffix(")").upper()
    return 0 if "COMPLEX" in name or name == "STRING" else getattr(TensorProto, name, 0)


class Chooser:
    """Random choices for one node.

    Parameters
    ----------
    operator : str
        The operator, with its domain if that is not ai.onnx.
    seed : int
        The same choices for the same seed.
    """

    def __init__(self, operator, seed):
        self.domain, _, self.operator = operator.rpartition(".")
        self.rng = np.random.default_rng([seed, *operator.encode()])
        self.kinds = {}
        self.outputs = 1
        self.units = 0
        self.since, self.schema = 1, None
        if self.domain or operator in REMOVED:
            self.opset = self.one(17, 18, 21) if self.domain else 1
            return
        found = dict(self._schemas())
        self.since = self.one(*sorted({schema.since_version for schema in found.values()}))
        opsets = [n for n, schema in found.items() if schema.since_version == self.since]
        self.opset = self.one(opsets[0], *opsets)
        self.schema = found[self.opset]

    def _schemas(self):
        """The schema in each opset that has the operator."""
        for opset in range(1, LATEST_OPSET + 1):
            try:
                found = onnx.defs.get_schema(self.operator, opset, "")
            except onnx.defs.SchemaError:
                continue
            if not found.deprecated:
                yield opset, found

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def ints(self, low, high, count):
        return [self.int(low, high) for _ in range(count)]

    def one(self, *options):
        return options[self.int(0, len(options) - 1)]

    def flag(self, probability=0.5):
        return bool(self.rng.random() < probability)

    def some(self, **options):
        """Attributes, each absent in a third of the nodes."""
        return {name: self.one(*values) for name, values in options.items() if self.flag(0.67)}

    def shape(self, low=0, high=4, top=4):
        return tuple(self.ints(1, top, self.int(low, high)))

    def axes(self, rank, low=1):
        """Some axes in any order, negative ones too where the version has them."""
        found = [int(i) for i in self.rng.permutation(rank)[: self.int(min(low, rank), rank)]]
        return [i - rank if self.opset >= 11 and self.flag(0.3) else i for i in found]

    def axis(self, rank):
        return self.int(-rank if self.opset >= 11 else 0, rank - 1)

    def kind(self, parameter="T", *only):
        """The element type of a type parameter, floats in half of the nodes."""
        if parameter not in self.kinds:
            (constraint,) = (c for c in self.schema.type_constraints
                             if c.type_param_str == parameter)  # fmt: skip
            kinds = [k for k in map(element_type, constraint.allowed_type_strs) if k]
            kinds = [k for k in kinds if k in only] or kinds
            floats = [k for k in kinds if k in (TensorProto.FLOAT, TensorProto.FLOAT16)]
            self.kinds[parameter] = self.one(*(floats if floats and self.flag() else kinds))
        return self.kinds[parameter]

    def first_kind(self):
        """The element type of the first input."""
        return self.kind(self.schema.inputs[0].type_str)

    def array(self, shape, kind=TensorProto.FLOAT, low=-3, high=3):
        dtype = np.dtype(oh.tensor_dtype_to_np_dtype(kind))
        if kind == TensorProto.BOOL:
            return self.rng.integers(0, 2, shape).astype(bool)
        if is_integer(dtype):
            limits = integer_limits(dtype)
            low, high = max(3 * int(np.floor(low)), limits[0]), min(3 * int(high), limits[1])
            return self.rng.integers(low, max(high, low) + 1, shape).astype(dtype)
        values = self.rng.uniform(low, high, shape)
        return np.asarray(np.round(2 * values) / 2 if low < 0 and self.flag(0.3) else values, dtype)

    def scale(self, *shape):
        return np.asarray(self.rng.uniform(0.05, 0.2, shape), np.float32)

    def pair(self, shape):
        """Two shapes that broadcast to one that is not larger than `shape`."""
        found = [tuple(1 if self.flag(0.2) else n for n in shape) for _ in range(2)]
        i, cut = self.int(0, 2), self.int(0, len(shape))
        return [own[cut:] if i == at else own for at, own in enumerate(found)]

    def indices(self, size, shape, dtype=np.int64):
        return self.rng.integers(-size if self.opset >= 11 else 0, size, shape).astype(dtype)

    def parameter(self, array, probability=0.8):
        """An input, which is an initializer in most models."""
        return Parameter(array) if self.flag(probability) else array


def is_integer(dtype):
    return dtype.name.lstrip("u").startswith("int")


def integer_limits(dtype):
    bits = int(dtype.name.lstrip("uint"))
    return (0, 2**bits - 1) if dtype.name[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


REMOVED = ("ScaledTanh", "ParametricSoftplus", "Affine", "ImageScaler", "Crop",
           "SimplifiedLayerNormalization")  # fmt: skip
"""Operators of ai.onnx that the `onnx` package no longer defines; ONNX Runtime has them."""

GENERATORS = {}


def generates(*operators):
    def added(function):
        GENERATORS.update(dict.fromkeys(operators, function))
        return function

    return added


def random_node(operator, seed):
    """The node of an operator for a seed."""
    c = Chooser(operator, seed)
    inputs, attributes = GENERATORS[operator](c)
    while inputs and inputs[-1] is None:
        inputs.pop()
    given = {name: value for name, value in attributes.items() if value is not None}
    return RandomNode(c.operator, c.opset, inputs, given, c.outputs, c.domain, c.units)
