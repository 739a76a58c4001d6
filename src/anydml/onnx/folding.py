"""Nodes whose inputs are constant: their outputs, computed when the model is read."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.onnx.nodes import Node
from anydml.onnx.types import Array, Value, is_plain, numpy_type

_FOLDED_BYTES: Final = 2**28
"""Bytes of a constant that is computed from others."""

# Operators that compute shapes or move and convert elements. Others run on the device.
_FOLDABLE: Final = frozenset((
    "Abs", "Add", "And", "ArgMax", "ArgMin", "Cast", "Ceil", "Clip", "Concat",
    "ConstantOfShape", "Cos", "CumSum", "Div", "Equal", "Erf", "Exp", "Expand", "Flatten",
    "Floor", "Gather", "GatherND", "Greater", "GreaterOrEqual", "Less",
    "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or",
    "Pad", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum",
    "Reshape", "Round", "ScatterElements", "ScatterND", "Sigmoid", "Sign", "Sin", "Slice",
    "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "TopK", "Transpose", "Trilu",
    "Unsqueeze", "Where", "Xor",
))  # fmt: skip


class Folding:
    """Computes nodes with constant inputs, within a limit for all of them.

    Parameters
    ----------
    values : mapping of str to Value
        The values of the model by name.
    memory_limit : int
        The most bytes of all results together.
    """

    def __init__(self, values: Mapping[str, Value], memory_limit: int) -> None:
        self._values = values
        self._left = memory_limit
        self._evaluators: dict[Hashable, Any] = {}

    def outputs(self, node: Node, results: Sequence[Value]) -> list[Array] | None:
        """The outputs of a node, or None if they are not constant.

        Parameters
        ----------
        node : Node
            The node.
        results : sequence of Value
            Its outputs; the type and shape of a Constant are set.
        """
        if node.domain:
            return None
        if node.operator == "Constant":
            return _literal(node, results[0])
        if node.operator in ("Shape", "Size") and node.inputs:
            return shape_or_size(node, self._values[node.inputs[0]].sizes)
        if node.operator in _FOLDABLE and node.inputs:
            return self._evaluated(node, results)
        return None

    def _evaluated(self, node: Node, results: Sequence[Value]) -> list[Array] | None:
        if node.operator == "OneHot" and self._values[node.inputs[0]].type[0] == "f":
            return None  # which the reference does not convert to integers
        operands: dict[int, Any] = {}
        for i, unique in enumerate(node.inputs):
            if unique:
                value = self._values[unique]
                if value.data is None or not is_plain(value.type):
                    return None
                operands[i] = value.data
        named = [value for value in results if value.name]
        if not all(is_plain(value.type) for value in named):
            return None
        # The size of these two follows from the elements, and is bounded by them.
        if node.operator == "Range":
            if not _is_small_range([*operands.values()]):
                return None
        elif node.operator != "NonZero" and any(value.sizes is None for value in named):
            return None
        size = sum(value.nbytes for value in named)
        if size > min(_FOLDED_BYTES, self._left):
            return None
        self._left -= size
        arrays = self._evaluate(node, operands)
        if arrays is None:
            return None
        for value, array in zip(results, arrays, strict=False):
            if value.name and array.dtype != numpy_type(value.type):
                return None
        return arrays

    def _evaluate(self, node: Node, operands: Mapping[int, Array]) -> list[Array] | None:
        try:
            axes = node.attributes.get("axes")
            if node.operator in ("Squeeze", "Unsqueeze") and axes is not None:
                # In the first versions, which the reference leaves out.
                change = np.squeeze if node.operator == "Squeeze" else np.expand_dims
                return [change(operands[0], tuple(axes))]
            with np.errstate(all="ignore"):
                evaluator = self._evaluator(node, tuple(operands))
                found = evaluator.run(None, {f"i{i}": data for i, data in operands.items()})
                return [np.asarray(result) for result in found]
        except Exception:  # of an operator that it does not implement, which the device then runs
            return None

    def _evaluator(self, node: Node, present: tuple[int, ...]) -> Any:
        """The reference of a node, which nodes that are alike share."""
        from onnx.reference import ReferenceEvaluator

        key = node.key and (node.key, present)
        if key is None or key not in self._evaluators:
            proto = type(node.proto)()
            proto.CopyFrom(node.proto)
            proto.input[:] = [f"i{i}" if i in present else "" for i in range(len(node.inputs))]
            proto.output[:] = [name and f"o{i}" for i, name in enumerate(proto.output)]
            self._evaluators[key] = ReferenceEvaluator(proto, opsets={"": node.opset})
        return self._evaluators[key]


def _is_small_range(operands: Sequence[Array]) -> bool:
    if any(operand.size != 1 for operand in operands):
        return False
    start, limit, delta = (float(operand.reshape(-1)[0]) for operand in operands)
    return delta != 0 and (limit - start) / delta < _FOLDED_BYTES / 8


def shape_or_size(node: Node, sizes: tuple[int, ...] | None) -> list[Array] | None:
    """The output of a Shape or Size node, if the sizes of its input are known."""
    if sizes is None:
        return None
    if node.operator == "Size":
        return [np.asarray(prod(sizes), np.int64)]
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return [np.asarray(sizes[start:end], np.int64)]


def _literal(node: Node, result: Value) -> list[Array] | None:
    for name, value in node.attributes.items():
        if name in ("value", "sparse_value") and isinstance(value, Value):
            result.type, result.shape, result.data = value.type, value.shape, value.data
            return None if value.data is None else [value.data]
        if name in ("value_int", "value_ints"):
            return [np.asarray(value, np.int64)]
        if name in ("value_float", "value_floats"):
            return [np.asarray(value, np.float32)]
    return None
