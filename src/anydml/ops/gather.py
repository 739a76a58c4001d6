"""GATHER: select the slices of the input that the indices name along one axis.

::

    output[...] = input[..., indices[...], ...]

The sizes of the output are those of the input, with the axis replaced by the meaningful sizes of
the indices. They are right-aligned to DimensionCount: leading sizes of 1 are cropped or added.
Negative values of a signed index type count from the end of the axis.

Worked example, axis 0, IndexDimensions 1::

    input [[1, 2], [3, 4], [5, 6]]   indices [0, 1, 1, 2]
    output [[1, 2], [3, 4], [3, 4], [5, 6]]

Page: ``DML_GATHER_OPERATOR_DESC``. The page says that invalid indices give a wrong output, clamped
to the input, without failure; anydml raises an error unless clamping is requested. The page's range
for IndexDimensions excludes DimensionCount, but its example 1 requires it; anydml accepts it.
Example 3 prints IndexDimensions 2, but only 1 gives the printed output. The sentence that ties the
data type of the output to a DimensionCount means the data type of the input.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules, known
from anydml.core.tensor import TensorDesc
from anydml.ops import _rules
from anydml.ops._descriptor import Arrays, Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import axis_field, input_field, output_field, uint

FAMILY = Family.SELECT


class Gather(Descriptor):
    """``DML_GATHER_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to select from.
    indices_tensor : TensorDesc
        The positions to select along the axis.
    output_tensor : TensorDesc
        The selected slices, with the type of the input. Sizes: ``input[:axis] + indices +
        input[axis + 1:]`` with the meaningful sizes of the indices, right-aligned.
    axis : int
        The axis, in ``0..DimensionCount - 1``.
    index_dimensions : int
        The number of meaningful trailing dimensions of the indices; all sizes before them are 1.
        With 0 there is one index, and the output has no dimension for it.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Gather(input_tensor=dml.TensorDesc("FLOAT32", (3, 2)),
    ...                   indices_tensor=dml.TensorDesc("UINT32", (1, 4)),
    ...                   output_tensor=dml.TensorDesc("FLOAT32", (4, 2)),
    ...                   axis=0, index_dimensions=1)
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    indices_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    axis: int = axis_field()
    index_dimensions: int = uint()

    NAME = "GATHER"
    KERNEL = "gather"
    CLAMPS = True
    ALSO_KNOWN_AS = "anydml.gather onnx.Gather numpy.take torch.index_select jax.numpy.take"
    EXAMPLES = ({
        "input_tensor": [11.0, 12, 13, 14], "indices_tensor": [3, 1, 3, 0, 2],
        "output_tensor": [14.0, 12, 14, 11, 13], "axis": 0, "index_dimensions": 1,
    }, {
        "input_tensor": [[1.0, 2], [3, 4], [5, 6]], "indices_tensor": [[0, 1, 1, 2]],
        "output_tensor": [[1.0, 2], [3, 4], [3, 4], [5, 6]], "axis": 0, "index_dimensions": 1,
    }, {
        "input_tensor": [[1.0, 2], [3, 4], [5, 6]], "indices_tensor": [[1, 0]],
        "output_tensor": [[2.0, 1], [4, 3], [6, 5]], "axis": 1, "index_dimensions": 1,
    }, {
        "input_tensor": [[[1.0, 2, 3], [4, 5, 6], [7, 8, 9]]], "indices_tensor": [[[0, 2]]],
        "output_tensor": [[[1.0, 3]], [[4, 6]], [[7, 9]]], "axis": 2, "index_dimensions": 2,
    }, {
        "input_tensor": [[[1.0, 2], [3, 4], [5, 6]]], "indices_tensor": [[[0, 1], [1, 2]]],
        "output_tensor": [[[1.0, 2], [3, 4]], [[3, 4], [5, 6]]], "axis": 1, "index_dimensions": 2,
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, indices = inputs
        axis = attributes["axis"]
        shape = known(lambda: data.shape[:axis] + indices.shape + data.shape[axis + 1 :])
        return Inferred.of(
            (ArraySpec(shape, data.dtype),),
            _rules.axis_in_range(axis, ("InputTensor", data)),
            _rules.something_to_clamp_to(attributes, data, indices, (axis,)),
            coordinates=(axis,),
        )

    def check(self) -> Rules:
        yield _rules.axis_in_range(self.axis, self.named("input_tensor"))
        indices = self.named("indices_tensor")
        yield _rules.count_in_range(self.index_dimensions, "IndexDimensions", indices, 0)

    def cropped(self) -> int:
        """The number of leading sizes of 1 before the axis that may be cropped."""
        sizes = self.input_tensor.sizes[: self.axis]
        return next((i for i, size in enumerate(sizes) if size != 1), len(sizes))

    def natural_sizes(self) -> dict[str, tuple[int, ...]]:
        return {
            "InputTensor": known(lambda: self.input_tensor.sizes[self.cropped() :]),
            "IndicesTensor": _rules.trailing(self.indices_tensor, self.index_dimensions),
        }

    def attributes(self) -> Attributes:
        return {"axis": known(lambda: self.axis - self.cropped())}

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        data, indices = inputs
        axis, behind = attributes["axis"], attributes["axis"] + indices.ndim
        for at in np.ndindex(outputs[0].shape):
            outputs[0][at] = data[at[:axis] + (int(indices[at[axis:behind]]),) + at[behind:]]
