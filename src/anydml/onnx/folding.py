"""Nodes whose inputs are constant: their outputs, computed when the model is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        operands: dict[str, Any] = {}
        for name, unique in zip(node.proto.input, node.inputs, strict=True):
            if unique:
                value = self._values[unique]
                if value.data is None or not is_plain(value.type):
                    return None
                operands[name] = value.data
        named = [value for value in results if value.name]
        if not all(is_plain(value.type) for value in named):
            return None
        # The size of these two follows from the elements, and is bounded by them.
        if node.operator == "Range":
            if not _is_small_range([operands[name] for name in node.proto.input]):
                return None
        elif node.operator != "NonZero" and any(value.sizes is None for value in named):
            return None
        size = sum(value.nbytes for value in named)
        if size > min(_FOLDED_BYTES, self._left):
            return None
        self._left -= size
        arrays = _evaluate(node, operands)
        if arrays is None:
            return None
        for value, array in zip(results, arrays, strict=False):
            if value.name and array.dtype != numpy_type(value.type):
                return None
        return arrays


def _evaluate(node: Node, operands: Mapping[str, Array]) -> list[Array] | None:
    from onnx.reference import ReferenceEvaluator

    try:
        axes = node.attributes.get("axes")
        if node.operator == "Squeeze" and axes is not None:  # which the reference leaves out
            (x,) = operands.values()
            return [np.squeeze(x, tuple(axes))]
        with np.errstate(all="ignore"):
            evaluator = ReferenceEvaluator(node.proto, opsets={"": node.opset})
            return [np.asarray(result) for result in evaluator.run(None, operands)]
    except Exception:  # of an operator that it does not implement, which the device then runs
        return None


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
