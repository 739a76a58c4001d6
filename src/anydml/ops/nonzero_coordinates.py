"""NONZERO_COORDINATES: count the elements that are not zero and list their coordinates.

Negative zero is zero; NaN is not zero. Rows of coordinates are in ascending order of elements. Each
row contains the last N coordinates of its element. The output has a row for every element of the
input; the rows after the first ``count`` are undefined. In memory that the library allocates they
are zero; in memory that the caller binds they are not written.

Worked example, N = 3::

    input {1,1,2,4}  [[1, 0, 0, 2], [-0.0, 3.5, 0, -5.2]]
    count 4          coordinates [0,0,0] [0,0,3] [0,1,1] [0,1,3], then four undefined rows

Page: ``DML_NONZERO_COORDINATES_OPERATOR_DESC``. An input whose sizes are all 1 has the effective
rank 0. The smallest N is then 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from anydml.core.program import ArraySpec, Dynamic, Inferred
from anydml.core.rules import Rules, known
from anydml.core.tensor import TensorDesc
from anydml.ops._descriptor import Arrays, Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import input_field, output_field
from anydml.ops._rules import within

FAMILY = Family.SELECT


class NonzeroCoordinates(Descriptor):
    """``DML_NONZERO_COORDINATES_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to search; M is its number of elements.
    output_count_tensor : TensorDesc
        The number of elements that are not zero: UINT32, all sizes 1.
    output_coordinates_tensor : TensorDesc
        The coordinates of these elements: UINT32, sizes ``{1, .., M, N}``. N is at least 1, at
        least the effective rank of the input (its DimensionCount without leading sizes of 1), and
        at most its DimensionCount.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.NonzeroCoordinates(
    ...     input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 2, 4)),
    ...     output_count_tensor=dml.TensorDesc("UINT32", (1, 1, 1, 1)),
    ...     output_coordinates_tensor=dml.TensorDesc("UINT32", (1, 1, 8, 3)))
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_count_tensor: TensorDesc = output_field()
    output_coordinates_tensor: TensorDesc = output_field()

    NAME = "NONZERO_COORDINATES"
    KERNEL = "nonzero_coordinates"
    ONE_DIMENSION_COUNT = False
    ALSO_KNOWN_AS = (
        "anydml.nonzero_coordinates onnx.NonZero numpy.argwhere torch.nonzero "
        "torch.argwhere jax.numpy.argwhere"
    )
    EXAMPLES = (
        {
            "input_tensor": [[[[1.0, 0, 0, 2], [-0.0, 3.5, 0, -5.2]]]],
            "output_count_tensor": [[[[4]]]],
            "output_coordinates_tensor": [
                [
                    [
                        [0, 0, 0],
                        [0, 0, 3],
                        [0, 1, 1],
                        [0, 1, 3],
                        [0, 0, 0],
                        [0, 0, 0],
                        [0, 0, 0],
                        [0, 0, 0],
                    ]
                ]
            ],
        },
    )

    @property
    def effective_rank(self) -> int:
        """The input's DimensionCount without its leading sizes of 1."""
        sizes = self.input_tensor.sizes
        return next((len(sizes) - i for i, size in enumerate(sizes) if size != 1), 0)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        rows = Dynamic(known(lambda: prod(inputs[0].shape)))
        return Inferred((ArraySpec((), None), ArraySpec((rows, attributes["columns"]), None)))

    def check(self) -> Rules:
        low, high = max(1, self.effective_rank), self.input_tensor.dimension_count
        why = "effective rank to DimensionCount of InputTensor"
        for columns in self.output_coordinates_tensor.sizes[-1:]:
            yield within("OutputCoordinatesTensor.Sizes[-1]", columns, low, high, why)

    def attributes(self) -> Attributes:
        return {"columns": known(lambda: sum(self.output_coordinates_tensor.sizes[-1:]))}

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        count, coordinates = outputs
        found = 0
        with np.errstate(invalid="ignore"):  # NumPy 1 warns about signalling NaNs
            for at in np.ndindex(inputs[0].shape):
                if inputs[0][at] != 0:
                    coordinates[found] = at[-coordinates.shape[1] :]
                    found += 1
        count[...] = found
