"""TOP_K1 and TOP_K: find the K largest or smallest elements of every sequence along an axis.

The values are sorted: largest first for DECREASING, smallest first for INCREASING. Indices count
from the start of their sequence. Ties are ordered by ascending element index, in both directions.
NaN is larger than every number, all NaNs tie, and -0.0 ties with +0.0. Returned values have the
bits of their elements. TOP_K is TOP_K1 with DECREASING.

Worked example, axis 3, K = 3, DECREASING::

    input   [1, 2, 2, 3]   [3, 4, 5, 5]   [6, 6, 6, 6]
    values  [3, 2, 2]      [5, 5, 4]      [6, 6, 6]
    indices [3, 1, 2]      [2, 3, 1]      [0, 1, 2]

Pages: ``DML_TOP_K1_OPERATOR_DESC``, ``DML_TOP_K_OPERATOR_DESC``. The pages say that K must be less
than the size of the axis. anydml also accepts K equal to it (a full sort), as real implementations
do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from anydml.core._literals import AxisDirectionName
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.ops import _rules
from anydml.ops._descriptor import Arrays, Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import axis_field, enumeration, input_field, output_field, uint
from anydml.ops._shapes import replace_size
from anydml.ops.enumerations import AxisDirection

FAMILY = Family.SELECT


class TopK(Descriptor):
    """``DML_TOP_K_OPERATOR_DESC``: the K largest elements, largest first.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to select from.
    output_value_tensor : TensorDesc
        The selected values, with the type and sizes of the input, but K on the axis.
    output_index_tensor : TensorDesc
        The indices of the values along the axis: UINT32, or UINT64 from feature level 5_0, with the
        sizes of the values.
    axis : int
        The axis, in ``0..DimensionCount - 1``.
    k : int
        In ``1..InputTensor.Sizes[Axis]``.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.TopK(input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 4)),
    ...                 output_value_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 2)),
    ...                 output_index_tensor=dml.TensorDesc("UINT32", (1, 1, 3, 2)), axis=3, k=2)
    >>> dml.Device("cpu").minimum_feature_level(desc).suffix
    '2_0'
    """

    input_tensor: TensorDesc = input_field()
    output_value_tensor: TensorDesc = output_field()
    output_index_tensor: TensorDesc = output_field()
    axis: int = axis_field()
    k: int = uint()

    NAME = "TOP_K"
    KERNEL = "top_k"
    EXAMPLES: ClassVar[Sequence[Mapping[str, Any]]] = ({
        "input_tensor": [[[[0.0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]],
        "output_value_tensor": [[[[11.0, 10], [9, 8], [7, 6]]]],
        "output_index_tensor": [[[[3, 2], [2, 3], [3, 2]]]], "axis": 3, "k": 2,
    }, {
        "input_tensor": [[[[0.0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]]]],
        "output_value_tensor": [[[[4.0, 5, 10, 11], [3, 2, 9, 8]]]],
        "output_index_tensor": [[[[2, 2, 0, 0], [1, 1, 1, 1]]]], "axis": 2, "k": 2,
    }, {
        "input_tensor": [[[[1.0, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]],
        "output_value_tensor": [[[[3.0, 2, 2], [5, 5, 4], [6, 6, 6]]]],
        "output_index_tensor": [[[[3, 1, 2], [2, 3, 1], [0, 1, 2]]]], "axis": 3, "k": 3,
    })  # fmt: skip

    @property
    def direction(self) -> AxisDirection:
        """Largest first."""
        return AxisDirection.DECREASING

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, axis, k = inputs[0], attributes["axis"], attributes["k"]
        shape = replace_size(data.shape, axis, k)
        return Inferred.of(
            (ArraySpec(shape, data.dtype), ArraySpec(shape, None)),
            _rules.axis_in_range(axis, ("InputTensor", data)),
            _rules.at_least("K", k, 0),
            _at_most_the_size(k, data, axis),
        )

    def check(self) -> Rules:
        yield _rules.at_least("K", self.k, 1)

    def attributes(self) -> Attributes:
        largest = self.direction is AxisDirection.DECREASING
        return {"axis": self.axis, "k": self.k, "largest": largest}

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        values, indices = (np.moveaxis(output, attributes["axis"], -1) for output in outputs)
        sequences = np.moveaxis(inputs[0], attributes["axis"], -1)
        largest = attributes["largest"]
        for at in np.ndindex(sequences.shape[:-1]):
            sequence = sequences[at]
            elements = sequence.tolist()  # Python numbers: exact and comparable at any size
            # sorted() is stable, and NaN is the pair (1, 0): above every number, equal to itself.
            keys = [(1, 0) if x != x else (0, -x if largest else x) for x in elements]
            if largest:
                keys = [(-above, x) for above, x in keys]
            chosen = sorted(range(len(keys)), key=keys.__getitem__)[: attributes["k"]]
            values[at] = sequence[chosen]
            indices[at] = chosen


def _at_most_the_size(k: int, data: ArraySpec, axis: int) -> Rules:
    if 0 <= axis < len(data.shape):
        yield _rules.at_most("K", k, data.shape[axis], f"InputTensor.Sizes[{axis}]")


class TopK1(TopK):
    """``DML_TOP_K1_OPERATOR_DESC``: the K largest or smallest elements, sorted.

    Parameters
    ----------
    input_tensor, output_value_tensor, output_index_tensor, axis, k
        As for `TopK`.
    axis_direction : AxisDirection or str
        ``"DECREASING"`` for the largest, ``"INCREASING"`` for the smallest.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.TopK1(input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 4)),
    ...                  output_value_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 2)),
    ...                  output_index_tensor=dml.TensorDesc("UINT32", (1, 1, 3, 2)),
    ...                  axis=3, k=2, axis_direction="INCREASING")
    >>> dml.Device("cpu", feature_level="2_1").check(desc)
    []
    """

    axis_direction: AxisDirection | AxisDirectionName = enumeration(AxisDirection)

    NAME = "TOP_K1"
    ALSO_KNOWN_AS = "anydml.top_k onnx.TopK numpy.argpartition torch.topk jax.lax.top_k"
    EXAMPLES = (
        *({**example, "axis_direction": "DECREASING"} for example in TopK.EXAMPLES),
        {
            "input_tensor": [[[[1.0, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]]]],
            "output_value_tensor": [[[[1.0, 2, 2], [3, 4, 5], [6, 6, 6]]]],
            "output_index_tensor": [[[[0, 1, 2], [0, 1, 2], [0, 1, 2]]]],
            "axis": 3,
            "k": 3,
            "axis_direction": "INCREASING",
        },
    )

    @property
    def direction(self) -> AxisDirection:
        """The value of `axis_direction`."""
        direction: Any = self.axis_direction
        return direction  # type: ignore[no-any-return]  # a member since `__post_init__`
