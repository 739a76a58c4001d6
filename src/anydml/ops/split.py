"""SPLIT: copy consecutive slabs of the input along one axis into several outputs.

The sizes of the outputs on the axis add up to the size of the input. Every other size is equal. A
single output is a copy. SPLIT is the inverse of JOIN.

Worked example, axis 0::

    input [[1, 2], [3, 4], [5, 6]]   outputs of 2 and 1 rows: [[1, 2], [3, 4]] and [[5, 6]]

Page: ``DML_SPLIT_OPERATOR_DESC``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops import _rules
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import axis_field, count_of, input_field, output_list
from anydml.ops._shapes import replace_size

FAMILY = Family.MOVE


def _sizes_of_parts(data: ArraySpec, axis: int, sizes: Sequence[int]) -> Rules:
    if not 0 <= axis < len(data.shape):
        return
    if not sizes:
        return  # `check` reports it
    for i, size in enumerate(sizes):
        yield _rules.at_least(f"OutputTensors[{i}].Sizes[{axis}]", size, 0)
    if sum(sizes) != data.shape[axis]:
        rule = f"a sum of {data.shape[axis]} (InputTensor.Sizes[{axis}])"
        yield Violation(f"OutputTensors[..].Sizes[{axis}]", rule, sum(sizes))


class Split(Descriptor):
    """``DML_SPLIT_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to split.
    output_count : int, optional
        The number of outputs; by default the length of `output_tensors`.
    output_tensors : sequence of TensorDesc
        The parts, at least one, with the type of the input. Their sizes on the axis add up to the
        size of the input; every other size is that of the input.
    axis : int
        The axis, in ``0..DimensionCount - 1``.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Split(input_tensor=dml.TensorDesc("FLOAT32", (6,)),
    ...                  output_tensors=[dml.TensorDesc("FLOAT32", (2,)),
    ...                                  dml.TensorDesc("FLOAT32", (4,))], axis=0)
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_count: int = count_of("output_tensors")
    output_tensors: Sequence[TensorDesc] = output_list()
    axis: int = axis_field()

    NAME = "SPLIT"
    KERNEL = "split"
    ALSO_KNOWN_AS = "anydml.split onnx.Split numpy.split torch.split jax.numpy.split"
    EXAMPLES = (
        {
            "input_tensor": [[[[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]]],
            "output_tensors": [
                [[[[1.0, 2], [3, 4]]]],
                [[[[5.0, 6]]]],
                [[[[7.0, 8], [9, 10], [11, 12]]]],
            ],
            "axis": 2,
        },
        {
            "input_tensor": [[[[1.0, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]]],
            "output_tensors": [
                [[[[1.0], [3], [5], [7], [9], [11]]]],
                [[[[2.0], [4], [6], [8], [10], [12]]]],
            ],
            "axis": 3,
        },
    )

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, axis, sizes = inputs[0], attributes["axis"], attributes["sizes"]
        shapes = known(lambda: [replace_size(data.shape, axis, size) for size in sizes])
        return Inferred.of(
            known(lambda: tuple(ArraySpec(shape, data.dtype) for shape in shapes)),
            _rules.axis_in_range(axis, ("InputTensor", data)),
            _sizes_of_parts(data, axis, sizes),
        )

    def check(self) -> Rules:
        if not self.output_tensors:
            yield Violation("OutputCount", "at least 1", 0)

    def attributes(self) -> Attributes:
        axis = self.axis

        def size(part: TensorDesc) -> int:
            return sum(part.sizes[max(axis, 0) : max(axis, 0) + 1])

        sizes = known(lambda: tuple(known(size, part) for part in self.output_tensors))
        return {"axis": axis, "sizes": sizes}

    @staticmethod
    def compute(e: Engine, x: Array, *, axis: int, sizes: Sequence[int]) -> tuple[Array, ...]:
        ends = zip(sizes, accumulate(sizes), strict=True)
        return tuple(x[(slice(None),) * axis + (slice(end - size, end),)] for size, end in ends)
