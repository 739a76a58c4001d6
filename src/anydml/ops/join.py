"""JOIN: concatenate several inputs along one axis.

The size of the output on the axis is the sum of the sizes of the inputs. Every other size is equal.
A single input is copied. JOIN is the inverse of SPLIT.

Worked example, axis 1::

    inputs [[1, 2, 3], [4, 5, 6]] and [[7], [8]]   output [[1, 2, 3, 7], [4, 5, 6, 8]]

Page: ``DML_JOIN_OPERATOR_DESC``.
"""

from __future__ import annotations

from collections.abc import Sequence

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, differ
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops import _rules
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import axis_field, count_of, input_list, output_field
from anydml.ops._shapes import Named, replace_size, spec_of

FAMILY = Family.MOVE


def _named(parts: Sequence[ArraySpec]) -> list[Named]:
    return [(f"InputTensors[{i}]", part) for i, part in enumerate(parts)]


def _same_except(axis: int, first: Named, other: Named) -> Rules:
    assert first[1] is not None
    assert other[1] is not None
    size = other[1].shape[axis] if 0 <= axis < len(other[1].shape) else UNKNOWN
    expected = replace_size(first[1].shape, axis, size)
    if len(expected) != len(other[1].shape) or any(map(differ, expected, other[1].shape)):
        rule = f"{first[1].shape} except on axis {axis} ({first[0]}.Sizes)"
        yield Violation(f"{other[0]}.Sizes", rule, other[1].shape)


class Join(Descriptor):
    """``DML_JOIN_OPERATOR_DESC``.

    Parameters
    ----------
    input_count : int, optional
        The number of inputs; by default the length of `input_tensors`.
    input_tensors : sequence of TensorDesc
        The tensors to join, at least one, with the type of the output. Their sizes on the axis add
        up to the size of the output; every other size is that of the output.
    output_tensor : TensorDesc
        The joined tensor.
    axis : int
        The axis, in ``0..DimensionCount - 1``.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Join(input_tensors=[dml.TensorDesc("FLOAT32", (1, 1, 2, 3)),
    ...                                dml.TensorDesc("FLOAT32", (1, 1, 2, 4))],
    ...                 output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 7)), axis=3)
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_count: int = count_of("input_tensors")
    input_tensors: Sequence[TensorDesc] = input_list()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()

    NAME = "JOIN"
    KERNEL = "join"
    ALSO_KNOWN_AS = "anydml.join onnx.Concat numpy.concatenate torch.cat jax.numpy.concatenate"
    EXAMPLES = (
        {
            "input_tensors": [
                [[[[1.0, 2, 3], [4, 5, 6]]]],
                [[[[7.0, 8, 9, 10], [11, 12, 13, 14]]]],
            ],
            "output_tensor": [[[[1.0, 2, 3, 7, 8, 9, 10], [4, 5, 6, 11, 12, 13, 14]]]],
            "axis": 3,
        },
        {
            "input_tensors": [
                [[[[1.0, 2], [3, 4]]]],
                [[[[5.0, 6], [7, 8]]]],
                [[[[9.0, 10], [11, 12]]]],
            ],
            "output_tensor": [[[[1.0, 2], [3, 4]], [[5, 6], [7, 8]], [[9, 10], [11, 12]]]],
            "axis": 1,
        },
        {
            "input_tensors": [
                [[[[1.0, 2], [3, 4]]]],
                [[[[5.0, 6], [7, 8]]]],
                [[[[9.0, 10], [11, 12]]]],
            ],
            "output_tensor": [[[[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]]],
            "axis": 2,
        },
        {
            "input_tensors": [
                [[[[1.0, 2], [3, 4]]]],
                [[[[5.0, 6], [7, 8]]]],
                [[[[9.0, 10], [11, 12]]]],
            ],
            "output_tensor": [[[[1.0, 2, 5, 6, 9, 10], [3, 4, 7, 8, 11, 12]]]],
            "axis": 3,
        },
    )

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        if not inputs:
            nothing = ArraySpec(UNKNOWN, UNKNOWN)
            return Inferred((nothing,), (Violation("InputCount", "at least 1", 0),))
        axis = attributes["axis"]
        first, *others = _named(inputs)
        total = sum(_rules.size_at(part, axis) for part in inputs)
        shape = replace_size(inputs[0].shape, axis, total)
        return Inferred.of(
            (ArraySpec(shape, inputs[0].dtype),),
            _rules.axis_in_range(axis, first),
            (_same_except(axis, first, other) for other in others),
        )

    def check(self) -> Rules:
        first, *others = _named(tuple(map(spec_of, self.input_tensors))) or [("", None)]
        yield _rules.same_types(first, *others)

    @staticmethod
    def compute(e: Engine, *parts: Array, axis: int) -> Array:
        return e.xp.concatenate(parts, axis)
