"""SCATTER: copy the input, then overwrite the elements that the indices name along one axis.

::

    output = input
    output[index[i, j, ..], j, ..] = updates[i, j, ..]     if Axis is 0
    output[i, index[i, j, ..], ..] = updates[i, j, ..]     if Axis is 1

It is the inverse of GATHER_ELEMENTS and is also named SCATTER_ELEMENTS. Negative values of a signed
index type count from the end of the axis. If several updates have the same target, the last one in
row-major order of the indices wins. The output may be bound to the memory of the input.

Worked example, axis 0 (the index 3 occurs twice; 7 is the later update)::

    input [0, 1, 2, 3, 4]   indices [3, 1, 3, 0]   updates [5, 6, 7, 8]
    output [8, 6, 2, 7, 4]

Page: ``DML_SCATTER_OPERATOR_DESC``.
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


class Scatter(Descriptor):
    """``DML_SCATTER_OPERATOR_DESC``, also named ``DML_SCATTER_ELEMENTS_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to copy to the output before the updates.
    indices_tensor : TensorDesc
        The positions along the axis. Its sizes equal those of the input, except on the axis, where
        the size is free.
    updates_tensor : TensorDesc
        The new values, with the sizes of the indices and the type of the input.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    axis : int
        The axis, in ``0..DimensionCount - 1``.

    Examples
    --------
    >>> import anydml as dml
    >>> data, index = dml.TensorDesc("FLOAT32", (5,)), dml.TensorDesc("UINT32", (4,))
    >>> update = dml.TensorDesc("FLOAT32", (4,))
    >>> desc = dml.Scatter(input_tensor=data, indices_tensor=index, updates_tensor=update,
    ...                    output_tensor=data, axis=0)
    >>> compiled = dml.Device("cpu").create_operator(desc).compile()
    >>> import numpy as np
    >>> compiled(np.arange(5, dtype="f4"), np.array([3, 1, 3, 0], "u4"),
    ...          np.array([5, 6, 7, 8], "f4"))
    array([8., 6., 2., 7., 4.], dtype=float32)
    """

    input_tensor: TensorDesc = input_field()
    indices_tensor: TensorDesc = input_field()
    updates_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()

    NAME = "SCATTER"
    ALIASES = ("SCATTER_ELEMENTS",)
    KERNEL = "scatter_elements"
    IN_PLACE = True
    ALSO_KNOWN_AS = (
        "anydml.scatter_elements onnx.ScatterElements numpy.put_along_axis "
        "torch.scatter jax.numpy.put_along_axis"
    )
    EXAMPLES = ({
        "input_tensor": [0.0, 1, 2, 3, 4], "indices_tensor": [3, 1, 3, 0],
        "updates_tensor": [5.0, 6, 7, 8], "output_tensor": [8.0, 6, 2, 7, 4], "axis": 0,
    }, {
        "input_tensor": [[0.0, 0, 0], [0, 0, 0], [0, 0, 0]],
        "indices_tensor": [[1, 0, 2], [0, 2, 1]], "updates_tensor": [[10.0, 11, 12], [20, 21, 22]],
        "output_tensor": [[20.0, 11, 0], [10, 0, 22], [0, 21, 12]], "axis": 0,
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, indices, updates = inputs
        axis = attributes["axis"]
        return Inferred.of(
            (data,),
            _rules.axis_in_range(axis, ("InputTensor", data)),
            _rules.indices_along(axis, data, indices),
            _rules.same_shape("UpdatesTensor", updates.shape, indices.shape, "IndicesTensor.Sizes"),
            coordinates=(axis,),
        )

    def check(self) -> Rules:
        data = self.named("input_tensor")
        yield _rules.same_types(data, self.named("updates_tensor"))
        yield _rules.same_sizes(data, self.named("indices_tensor"), free_axis=self.axis)

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        data, indices, updates = inputs
        outputs[0][...] = data
        for at in np.ndindex(indices.shape):
            target = list(at)
            target[attributes["axis"]] = int(indices[at])
            outputs[0][tuple(target)] = updates[at]


ScatterElements = Scatter
