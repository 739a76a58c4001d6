"""GATHER_ND and GATHER_ND1: select the elements or blocks that index tuples name.

::

    output[...] = input[indices[...]]                                GATHER_ND
    output[batch, ...] = input[batch, indices[batch, ...], ...]      GATHER_ND1

The last dimension of the indices contains tuples of ``t`` coordinates. If ``t`` equals the rank of
the input (of one batch), each tuple selects one element. If ``t`` is smaller, each tuple selects a
block of the remaining dimensions. Negative values of a signed index type count from the end of
their dimension. GATHER_ND is GATHER_ND1 without batch dimensions. It is the inverse of SCATTER_ND.

Worked example (two-coordinate tuples)::

    input [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]   indices [[0, 1], [1, 0]]
    output [[2, 3], [4, 5]]

Pages: ``DML_GATHER_ND_OPERATOR_DESC``, ``DML_GATHER_ND1_OPERATOR_DESC``. The pages' formula for the
sizes of the output uses the trailing ``t`` sizes of the input. Their examples use the sizes that
remain after the batch dimensions and the first ``t``; anydml follows the examples. The pages imply
that input and indices have the same batch sizes, and that the indices have at least one dimension
more than the batch dimensions, for the tuples.
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
from anydml.ops._fields import input_field, output_field, uint

FAMILY = Family.SELECT


class GatherND(Descriptor):
    """``DML_GATHER_ND_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to select from.
    indices_tensor : TensorDesc
        Tuples of ``t`` coordinates, ``t`` being the last size, in ``1..input_dimension_count``.
    output_tensor : TensorDesc
        The selected elements, with the type of the input. Sizes: leading sizes of 1, then the
        meaningful sizes of the indices without the last, then the meaningful sizes of the input
        without the first ``t``.
    input_dimension_count, indices_dimension_count : int
        The number of meaningful trailing dimensions; all sizes before them are 1.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.GatherND(input_tensor=dml.TensorDesc("FLOAT32", (2, 2)),
    ...                     indices_tensor=dml.TensorDesc("UINT32", (2, 1)),
    ...                     output_tensor=dml.TensorDesc("FLOAT32", (2, 2)),
    ...                     input_dimension_count=2, indices_dimension_count=2)
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    indices_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    input_dimension_count: int = uint()
    indices_dimension_count: int = uint()

    NAME = "GATHER_ND"
    KERNEL = "gather_nd"
    CLAMPS = True
    EXAMPLES = ({
        "input_tensor": [[0.0, 1], [2, 3]], "indices_tensor": [[1], [0]],
        "output_tensor": [[2.0, 3], [0, 1]], "input_dimension_count": 2,
        "indices_dimension_count": 2,
    }, {
        "input_tensor": [[[[0.0, 1], [2, 3]], [[4, 5], [6, 7]]]],
        "indices_tensor": [[[[0, 1], [1, 0]]]], "output_tensor": [[[[2.0, 3], [4, 5]]]],
        "input_dimension_count": 3, "indices_dimension_count": 2,
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, indices = inputs
        batch = attributes["batch_dims"]
        axes = _rules.indexed_axes(data, indices, batch)
        shape = known(lambda: indices.shape[:-1] + data.shape[batch + len(axes) :])
        return Inferred.of(
            (ArraySpec(shape, data.dtype),),
            _rules.tuples(data, indices, batch),
            _rules.something_to_clamp_to(attributes, data, indices, axes),
            coordinates=axes,
        )

    def check(self) -> Rules:
        data, indices = self.named("input_tensor"), self.named("indices_tensor")
        yield _rules.count_in_range(self.input_dimension_count, "InputDimensionCount", data)
        yield _rules.count_in_range(self.indices_dimension_count, "IndicesDimensionCount", indices)

    def natural_sizes(self) -> dict[str, tuple[int, ...]]:
        return {
            "InputTensor": _rules.trailing(self.input_tensor, self.input_dimension_count),
            "IndicesTensor": _rules.trailing(self.indices_tensor, self.indices_dimension_count),
        }

    def attributes(self) -> Attributes:
        return {"batch_dims": 0}

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        data, indices = inputs
        for at in np.ndindex(indices.shape[:-1]):
            coordinates = tuple(int(i) for i in indices[at])
            outputs[0][at] = data[at[: attributes["batch_dims"]] + coordinates]


class GatherND1(GatherND):
    """``DML_GATHER_ND1_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor, indices_tensor, output_tensor, input_dimension_count, indices_dimension_count
        As for `GatherND`, except that the sizes of the output omit the batch dimensions of the
        input.
    batch_dimension_count : int
        The number of leading meaningful dimensions that are independent batches.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.GatherND1(input_tensor=dml.TensorDesc("FLOAT32", (1, 3, 2, 2)),
    ...                      indices_tensor=dml.TensorDesc("UINT32", (1, 3, 2, 2)),
    ...                      output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 3, 2)),
    ...                      input_dimension_count=3, indices_dimension_count=3,
    ...                      batch_dimension_count=1)
    >>> dml.Device("cpu").check(desc)
    []
    """

    batch_dimension_count: int = uint()

    NAME = "GATHER_ND1"
    ALSO_KNOWN_AS = "anydml.gather_nd onnx.GatherND"
    EXAMPLES = ({
        "input_tensor": [[0.0, 1], [2, 3]], "indices_tensor": [[1], [0]],
        "output_tensor": [[2.0, 3], [0, 1]], "input_dimension_count": 2,
        "indices_dimension_count": 2, "batch_dimension_count": 0,
    }, {
        "input_tensor": [[[[0.0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]],
        "indices_tensor": [[[[0, 0], [1, 1]], [[1, 1], [0, 0]], [[0, 1], [1, 0]]]],
        "output_tensor": [[[[0.0, 3], [7, 4], [9, 10]]]], "input_dimension_count": 3,
        "indices_dimension_count": 3, "batch_dimension_count": 1,
    })  # fmt: skip

    def attributes(self) -> Attributes:
        return {"batch_dims": self.batch_dimension_count}
