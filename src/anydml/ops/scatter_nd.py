"""SCATTER_ND: copy the input, then overwrite the elements or blocks that index tuples name.

::

    output = input
    output[indices[...]] = updates[...]

The last dimension of the indices contains tuples of ``t`` coordinates. If ``t`` equals the rank of
the input, each update is one element. If ``t`` is smaller, each update is a block of the remaining
dimensions. Negative values of a signed index type count from the end of their dimension. If several
updates have the same target, the last one in row-major order of the indices wins. The output may be
bound to the memory of the input.

Worked example (one-coordinate tuples)::

    input [1, 2, 3, 4, 5, 6, 7, 8]   indices [[4], [3], [1], [7]]   updates [9, 10, 11, 12]
    output [1, 11, 3, 10, 9, 6, 7, 12]

Page: ``DML_SCATTER_ND_OPERATOR_DESC``. The page's formula for the sizes of the updates uses the
trailing ``t`` sizes of the input. Its example uses the sizes that remain after the first ``t``;
anydml follows the example. The page's half-open ranges for the two counts exclude values that its
example uses; anydml's ranges include both ends.
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


class ScatterND(Descriptor):
    """``DML_SCATTER_ND_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to copy to the output before the updates.
    indices_tensor : TensorDesc
        Tuples of ``t`` coordinates, ``t`` being the last size, in ``1..input_dimension_count``.
    updates_tensor : TensorDesc
        The new values, with the type of the input. Sizes: leading sizes of 1, then the meaningful
        sizes of the indices without the last, then the meaningful sizes of the input without the
        first ``t``.
    output_tensor : TensorDesc
        The result, with the type and sizes of the input.
    input_dimension_count, indices_dimension_count : int
        The number of meaningful trailing dimensions; all sizes before them are 1.

    Examples
    --------
    >>> import anydml as dml
    >>> data, index = dml.TensorDesc("FLOAT32", (1, 8)), dml.TensorDesc("UINT32", (4, 1))
    >>> desc = dml.ScatterND(input_tensor=data, indices_tensor=index,
    ...                      updates_tensor=dml.TensorDesc("FLOAT32", (1, 4)), output_tensor=data,
    ...                      input_dimension_count=1, indices_dimension_count=2)
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    indices_tensor: TensorDesc = input_field()
    updates_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    input_dimension_count: int = uint()
    indices_dimension_count: int = uint()

    NAME = "SCATTER_ND"
    KERNEL = "scatter_nd"
    IN_PLACE = True
    ALSO_KNOWN_AS = "anydml.scatter_nd onnx.ScatterND torch.index_put"
    EXAMPLES = ({
        "input_tensor": [[1.0, 2, 3, 4, 5, 6, 7, 8]], "indices_tensor": [[4], [3], [1], [7]],
        "updates_tensor": [[9.0, 10, 11, 12]], "output_tensor": [[1.0, 11, 3, 10, 9, 6, 7, 12]],
        "input_dimension_count": 1, "indices_dimension_count": 2,
    },)  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, indices, updates = inputs
        axes = _rules.indexed_axes(data, indices, 0)
        shape = known(lambda: indices.shape[:-1] + data.shape[len(axes) :])
        why = known(lambda: f"IndicesTensor.Sizes[:-1] + InputTensor.Sizes[{len(axes)}:]")
        return Inferred.of(
            (data,),
            _rules.tuples(data, indices, 0),
            _rules.same_shape("UpdatesTensor", updates.shape, shape, why),
            coordinates=axes,
        )

    def check(self) -> Rules:
        data, indices = self.named("input_tensor"), self.named("indices_tensor")
        yield _rules.same_types(data, self.named("updates_tensor"))
        yield _rules.count_in_range(self.input_dimension_count, "InputDimensionCount", data)
        yield _rules.count_in_range(self.indices_dimension_count, "IndicesDimensionCount", indices)

    def natural_sizes(self) -> dict[str, tuple[int, ...]]:
        sizes = _rules.trailing(self.input_tensor, self.input_dimension_count)
        lookup = _rules.trailing(self.indices_tensor, self.indices_dimension_count)

        def updates() -> tuple[int, ...]:
            own = self.updates_tensor.sizes
            rank = len(lookup[:-1]) + len(sizes[lookup[-1] :]) if lookup else 0
            padding = max(len(own) - rank, 0)
            # Other sizes before the natural ones stay: `infer` rejects them.
            return own if any(size != 1 for size in own[:padding]) else own[padding:]

        return {"InputTensor": sizes, "IndicesTensor": lookup, "UpdatesTensor": known(updates)}

    def attributes(self) -> Attributes:
        return {}

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, attributes: Attributes) -> None:
        data, indices, updates = inputs
        outputs[0][...] = data
        for at in np.ndindex(indices.shape[:-1]):
            outputs[0][tuple(int(i) for i in indices[at])] = updates[at]
