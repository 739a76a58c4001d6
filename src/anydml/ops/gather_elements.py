"""GATHER_ELEMENTS: select the elements that the indices name along one axis.

::

    output[i, j, ..] = input[index[i, j, ..], j, ..]     if Axis is 0
    output[i, j, ..] = input[i, index[i, j, ..], ..]     if Axis is 1

It is the inverse of SCATTER (SCATTER_ELEMENTS). Negative values of a signed index type count from
the end of the axis.

Worked example, axis 0::

    input [[1, 2, 3], [4, 5, 6], [7, 8, 9]]   indices [[1, 2, 0], [2, 0, 0]]
    output [[4, 8, 3], [7, 2, 3]]

Page: ``DML_GATHER_ELEMENTS_OPERATOR_DESC``. The page's example prints UINT32 as the type of the
output, but its rules require the type of the input: this is a misprint for FLOAT32.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.ops import _rules
from anydml.ops._descriptor import Arrays, Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import axis_field, input_field, output_field

FAMILY = Family.SELECT


class GatherElements(Descriptor):
    """``DML_GATHER_ELEMENTS_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to select from.
    indices_tensor : TensorDesc
        The positions along the axis. Its sizes equal those of the input, except on the axis, where
        the size is free.
    output_tensor : TensorDesc
        The selected elements, with the sizes of the indices and the type of the input.
    axis : int
        The axis, in ``0..DimensionCount - 1``.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.GatherElements(input_tensor=dml.TensorDesc("FLOAT32", (3, 3)),
    ...                           indices_tensor=dml.TensorDesc("UINT32", (2, 3)),
    ...                           output_tensor=dml.TensorDesc("FLOAT32", (2, 3)), axis=0)
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    indices_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()

    NAME = "GATHER_ELEMENTS"
    KERNEL = "gather_elements"
    CLAMPS = True
    ALSO_KNOWN_AS = (
        "anydml.gather_elements onnx.GatherElements numpy.take_along_axis "
        "torch.gather jax.numpy.take_along_axis"
    )
    EXAMPLES = ({
        "input_tensor": [[1.0, 2, 3], [4, 5, 6], [7, 8, 9]],
        "indices_tensor": [[1, 2, 0], [2, 0, 0]], "output_tensor": [[4.0, 8, 3], [7, 2, 3]],
        "axis": 0,
    },)  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, indices = inputs
        axis = attributes["axis"]
        return Inferred.of(
            (ArraySpec(indices.shape, data.dtype),),
            _rules.axis_in_range(axis, ("InputTensor", data)),
            _rules.indices_along(axis, data, indices),
            _rules.something_to_clamp_to(attributes, data, indices, (axis,)),
            coordinates=(axis,),
        )

    def check(self) -> Rules:
        data, indices = self.named("input_tensor"), self.named("indices_tensor")
        yield _rules.same_sizes(data, indices, free_axis=self.axis)

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        data, indices = inputs
        for at in np.ndindex(indices.shape):
            source = list(at)
            source[attributes["axis"]] = int(indices[at])
            outputs[0][at] = data[tuple(source)]
