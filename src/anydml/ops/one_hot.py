"""ONE_HOT: write one value at the position that each index names, and another value elsewhere.

::

    output[i, j, k] = on    if indices[i, 0, k] is j or j - size         axis 1
    output[i, j, k] = off   otherwise

The first two elements of the values tensor, in row-major order, are the off value and the on value;
further elements are ignored. If an index is outside -size..size - 1, all elements of its sequence
have the off value.

Worked example, axis 1 of size 3, values {7, 9}::

    indices  [[0], [-1], [5]]
    output   [[9, 7, 7], [7, 7, 9], [7, 7, 7]]

Page: ``DML_ONE_HOT_OPERATOR_DESC``.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.ops import _rules
from anydml.ops._descriptor import Arrays, Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import axis_field, input_field, output_field
from anydml.ops._shapes import replace_size

FAMILY = Family.SELECT


def _one_on_the_axis(indices: ArraySpec, axis: int) -> Rules:
    if 0 <= axis < len(indices.shape):
        path = f"IndicesTensor.Sizes[{axis}]"
        yield _rules.equal(path, indices.shape[axis], 1, "the size of the axis")


def _off_and_on(values: ArraySpec) -> Rules:
    if prod(values.shape) < 2:
        rule = "2 elements or more (off and on)"
        yield Violation("ValuesTensor.Sizes", rule, values.shape)


class OneHot(Descriptor):
    """``DML_ONE_HOT_OPERATOR_DESC``.

    Parameters
    ----------
    indices_tensor : TensorDesc
        For each sequence, the position of the on value along the axis. Negative indices count from
        the end. Its sizes are those of the output, with 1 on the axis.
    values_tensor : TensorDesc
        The off value, then the on value: at least two elements, of which the first two are used.
    output_tensor : TensorDesc
        The sequences, with the type of the values. The size on the axis is free.
    axis : int
        The axis, in ``0..DimensionCount - 1``.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.OneHot(indices_tensor=dml.TensorDesc("UINT32", (1, 1, 3, 1)),
    ...                   values_tensor=dml.TensorDesc("FLOAT32", (1, 1, 1, 2)),
    ...                   output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 4)), axis=3)
    >>> dml.Device("cpu").check(desc)
    []
    """

    indices_tensor: TensorDesc = input_field()
    values_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()

    NAME = "ONE_HOT"
    KERNEL = "one_hot"
    ALSO_KNOWN_AS = "anydml.one_hot onnx.OneHot torch.nn.functional.one_hot jax.nn.one_hot"
    EXAMPLES = ({
        "indices_tensor": [[[[0], [3], [2]]]], "values_tensor": [[[[0.0, 1]]]],
        "output_tensor": [[[[1.0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]]], "axis": 3,
    }, {
        "indices_tensor": [[[[0, 2, 1, 0]]]], "values_tensor": [[[[0.0, 1]]]],
        "output_tensor": [[[[1.0, 0, 0, 1], [0, 0, 1, 0], [0, 1, 0, 0]]]], "axis": 2,
    }, {
        "indices_tensor": [[[[0], [3], [2]]]], "values_tensor": [[[[4.0], [2], [9]]]],
        "output_tensor": [[[[2.0, 4, 4, 4], [4, 4, 4, 2], [4, 4, 2, 4]]]], "axis": 3,
    }, {
        "indices_tensor": [[[[-3], [100], [3]]]], "values_tensor": [[[[0.0, 1]]]],
        "output_tensor": [[[[0.0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]]], "axis": 3,
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        indices, values = inputs
        axis, depth = attributes["axis"], attributes["depth"]
        if attributes["inserts"]:  # an array function's indices lack the axis
            inserted = known(lambda: (*indices.shape[:axis], 1, *indices.shape[axis:]))
            indices = ArraySpec(inserted, indices.dtype)
        return Inferred.of(
            (ArraySpec(replace_size(indices.shape, axis, depth), values.dtype),),
            _rules.axis_in_range(axis, ("IndicesTensor", indices)),
            _one_on_the_axis(indices, axis),
            _off_and_on(values),
            _rules.at_least("Depth", depth, 0),
        )

    def attributes(self) -> Attributes:
        axis, sizes = self.axis, self.output_tensor.sizes
        depth = known(lambda: sizes[axis] if 0 <= axis < len(sizes) else UNKNOWN)
        return {"axis": axis, "depth": depth, "inserts": False}

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        indices, values = inputs
        off, on = values.reshape(-1)[:2]
        size = attributes["depth"]
        sequences = np.moveaxis(outputs[0], attributes["axis"], -1)
        lookup = np.moveaxis(indices, attributes["axis"], -1)[..., 0]
        for at in np.ndindex(lookup.shape):
            index = int(lookup[at])
            place = index + size if index < 0 else index
            for i in range(size):
                sequences[at][i] = on if i == place else off
