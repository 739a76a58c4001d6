"""REVERSE_SUBSEQUENCES: reverse the first elements of each sequence along an axis.

::

    n = min(lengths[i, 0, k], size)                        axis 1
    output[i, j, k] = input[i, n - 1 - j, k]               if j < n
    output[i, j, k] = input[i, j, k]                       otherwise

A length greater than the size of the axis means the full axis. With lengths 0 and 1 the sequence is
copied unchanged.

Worked example, axis 1, lengths {{2}, {4}, {3}}::

    input  [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    output [[2, 1, 3, 4], [8, 7, 6, 5], [11, 10, 9, 12]]

Page: ``DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC``. The page's examples call the lengths
SequenceTensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from anydml.core.program import ArraySpec, Inferred
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops import _rules
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import axis_field, input_field, output_field
from anydml.ops._shapes import replace_size

FAMILY = Family.MOVE


class ReverseSubsequences(Descriptor):
    """``DML_REVERSE_SUBSEQUENCES_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor that contains the sequences.
    sequence_lengths_tensor : TensorDesc
        The number of elements to reverse in each sequence, with the sizes of the input, but 1 on
        the axis.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    axis : int
        The axis, in ``0..DimensionCount - 1``.

    Examples
    --------
    >>> import anydml as dml
    >>> tensor = dml.TensorDesc("FLOAT32", (1, 1, 3, 4))
    >>> desc = dml.ReverseSubsequences(
    ...     input_tensor=tensor, output_tensor=tensor,
    ...     sequence_lengths_tensor=dml.TensorDesc("UINT32", (1, 1, 3, 1)), axis=3)
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    sequence_lengths_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()

    NAME = "REVERSE_SUBSEQUENCES"
    KERNEL = "reverse_subsequences"
    ALSO_KNOWN_AS = "anydml.reverse_subsequences onnx.ReverseSequence"
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]]],
        "sequence_lengths_tensor": [[[[2], [4], [3]]]],
        "output_tensor": [[[[2.0, 1, 3, 4], [8, 7, 6, 5], [11, 10, 9, 12]]]], "axis": 3,
    }, {
        "input_tensor": [[[[1.0, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]]],
        "sequence_lengths_tensor": [[[[2, 3, 1, 0]]]],
        "output_tensor": [[[[5.0, 10, 3, 4], [1, 6, 7, 8], [9, 2, 11, 12]]]], "axis": 2,
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, lengths = inputs
        axis = attributes["axis"]
        expected = replace_size(data.shape, axis, 1)
        why = "InputTensor's with 1 on the axis"
        return Inferred.of(
            (data,),
            _rules.axis_in_range(axis, ("InputTensor", data)),
            _rules.same_shape("SequenceLengthsTensor", lengths.shape, expected, why),
        )

    @staticmethod
    def compute(e: Engine, x: Array, lengths: Array, *, axis: int) -> Array:
        size, inner = x.shape[axis], len(x.shape) - axis - 1
        at = e.xp.arange(size).reshape(-1, *(1,) * inner)
        reversed_count = e.xp.minimum(lengths, lengths.dtype.type(size)).astype(e.xp.int64)
        places = e.xp.where(at < reversed_count, reversed_count - 1 - at, at)
        return e.xp.take_along_axis(x, places, axis)
