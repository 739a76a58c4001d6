"""PADDING1 and PADDING: add elements before and after each dimension.

::

    i = output position - start padding, j = output position ..
    output = input[place(i), place(j), ..]

    mode         place(i), where n is the size of the input
    CONSTANT     i inside the input; outside it, the output is the padding value
    EDGE         the nearest element: 0 where i < 0, n - 1 where i >= n
    REFLECTION   mirrored, without repeating the first and last: .. 2 1 [0 1 2] 1 0 1 ..
    SYMMETRIC    mirrored, repeating the first and last: .. 1 0 [0 1 2] 2 1 0 0 ..
    WRAP         continued from the other end: .. 1 2 [0 1 2] 0 1 ..

The padding may be longer than the input. In every mode except CONSTANT, a dimension of size 1
repeats its only element.

Worked example, REFLECTION, start {2}, end {3}::

    input  [1, 2, 3, 4]
    output [3, 2, 1, 2, 3, 4, 3, 2, 1]

The padding value of PADDING1 has the data type of the tensors. The padding value of PADDING is a
FLOAT, which is converted to the data type of the tensors as by CAST: for integers, the fraction is
discarded and the value is clamped to the range of the type.

Pages: ``DML_PADDING1_OPERATOR_DESC``, ``DML_PADDING_OPERATOR_DESC``. The pages do not mention WRAP,
which feature level 6_4 adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from anydml.core._literals import DataTypeName, PaddingModeName
from anydml.core.dtypes import DataType
from anydml.core.enums import NamedEnum
from anydml.core.errors import Violation
from anydml.core.levels import FeatureLevel
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops import _rules
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import (
    count_of,
    enumeration,
    floating,
    input_field,
    output_field,
    scalar,
    uints,
)
from anydml.ops._numbers import bits_of
from anydml.ops._shapes import numpy_of
from anydml.portable._numbers import convert, value_of
from anydml.portable._places import padded_from

FAMILY = Family.MOVE


class PaddingMode(NamedEnum):
    """``DML_PADDING_MODE``: how the values of the padding are chosen."""

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4


_INPUT: Final = [[1.0, 2, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4], [5, 6, 7, 8]]
_PADDED: Final = {
    "CONSTANT": [
        [9.0, 9, 9, 9, 9, 9, 9, 9, 9, 9],
        [9, 9, 1, 2, 3, 4, 9, 9, 9, 9],
        [9, 9, 5, 6, 7, 8, 9, 9, 9, 9],
        [9, 9, 1, 2, 3, 4, 9, 9, 9, 9],
        [9, 9, 5, 6, 7, 8, 9, 9, 9, 9],
        [9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
        [9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
        [9, 9, 9, 9, 9, 9, 9, 9, 9, 9],
    ],
    "EDGE": [
        [1.0, 1, 1, 2, 3, 4, 4, 4, 4, 4],
        [1, 1, 1, 2, 3, 4, 4, 4, 4, 4],
        [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
        [1, 1, 1, 2, 3, 4, 4, 4, 4, 4],
        [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
        [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
        [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
        [5, 5, 5, 6, 7, 8, 8, 8, 8, 8],
    ],
    "REFLECTION": [
        [7.0, 6, 5, 6, 7, 8, 7, 6, 5, 6],
        [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
        [7, 6, 5, 6, 7, 8, 7, 6, 5, 6],
        [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
        [7, 6, 5, 6, 7, 8, 7, 6, 5, 6],
        [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
        [7, 6, 5, 6, 7, 8, 7, 6, 5, 6],
        [3, 2, 1, 2, 3, 4, 3, 2, 1, 2],
    ],
    "SYMMETRIC": [
        [2.0, 1, 1, 2, 3, 4, 4, 3, 2, 1],
        [2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
        [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
        [2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
        [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
        [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
        [2, 1, 1, 2, 3, 4, 4, 3, 2, 1],
        [6, 5, 5, 6, 7, 8, 8, 7, 6, 5],
    ],
}
_EXAMPLES: Final = tuple(
    {
        "input_tensor": [[_INPUT]],
        "output_tensor": [[padded]],
        "padding_mode": mode,
        "padding_value": 9.0,
        "start_padding": (0, 0, 1, 2),
        "end_padding": (0, 0, 3, 4),
    }
    for mode, padded in _PADDED.items()
)


def _counts(path: str, counts: Sequence[int], rank: Any) -> Rules:
    yield _rules.has_length(path, counts, rank, "InputTensor.DimensionCount")
    for i, count in enumerate(counts):
        yield _not_negative(f"{path}[{i}]", count)


def _not_negative(path: str, count: int) -> Rules:
    if count < 0:
        yield Violation(path, "0 or more elements", count)


def _something_to_pad_with(data: ArraySpec, attributes: Attributes) -> Rules:
    if attributes["mode"] == "constant":
        return
    pads = zip(data.shape, attributes["starts"], attributes["ends"], strict=False)
    for i, (size, start, end) in enumerate(pads):
        if size == 0 and start + end > 0:
            rule = f"mode 'constant' (axis {i} has no elements to pad with)"
            yield Violation("PaddingMode", rule, attributes["mode"])


class Padding1(Descriptor):
    """``DML_PADDING1_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The tensor to pad.
    output_tensor : TensorDesc
        The padded tensor, with the type and DimensionCount of the input. Each size is the size of
        the input plus both paddings.
    padding_mode : PaddingMode or str
        How the values of the padding are chosen. WRAP is available from feature level 6_4.
    padding_value_data_type : DataType or str
        The type of `padding_value`, which must equal the type of the tensors.
    padding_value : int or float
        The value of the padding in mode CONSTANT.
    dimension_count : int, optional
        The number of dimensions; by default the length of `start_padding`.
    start_padding : sequence of int
        The number of elements to add before each dimension.
    end_padding : sequence of int
        The number of elements to add after each dimension.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Padding1(input_tensor=dml.TensorDesc("FLOAT32", (4,)),
    ...                     output_tensor=dml.TensorDesc("FLOAT32", (9,)),
    ...                     padding_mode="REFLECTION", padding_value_data_type="FLOAT32",
    ...                     padding_value=0, start_padding=(2,), end_padding=(3,))
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    padding_mode: PaddingMode | PaddingModeName = enumeration(
        PaddingMode, WRAP=FeatureLevel.LEVEL_6_4
    )
    padding_value_data_type: DataType | DataTypeName = enumeration(DataType)
    padding_value: int | float = scalar("padding_value_data_type")
    dimension_count: int = count_of("start_padding")
    start_padding: Sequence[int] = uints()
    end_padding: Sequence[int] = uints()

    NAME = "PADDING1"
    KERNEL = "pad"
    ALSO_KNOWN_AS = "anydml.pad onnx.Pad numpy.pad torch.nn.functional.pad jax.numpy.pad"
    EXAMPLES = tuple({**e, "padding_value_data_type": "FLOAT32"} for e in _EXAMPLES)

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        data, starts, ends = inputs[0], attributes["starts"], attributes["ends"]
        rank = _rules.rank_of(data)

        def shape() -> tuple[Any, ...]:
            sizes = data.shape, _rules.usable(starts, rank), _rules.usable(ends, rank)
            return tuple(size + start + end for size, start, end in zip(*sizes, strict=True))

        return Inferred.of(
            (ArraySpec(known(shape), data.dtype),),
            _counts("StartPadding", starts, rank),
            _counts("EndPadding", ends, rank),
            _something_to_pad_with(data, attributes),
        )

    def check(self) -> Rules:
        kind, data = self.padding_value_data_type, self.named("input_tensor")
        yield _rules.type_of_scalar("PaddingValueDataType", kind, data)

    def attributes(self) -> Attributes:
        dtype = numpy_of(self.padding_value_data_type)
        return _kernel_attributes(self, bits_of(self.padding_value, dtype))

    @staticmethod
    def compute(
        e: Engine,
        x: Array,
        *,
        mode: str,
        starts: Sequence[int],
        ends: Sequence[int],
        value: Sequence[int],
    ) -> Array:
        pads = [*zip(starts, ends, strict=True)]
        if mode == "constant":
            return e.xp.pad(x, pads, constant_values=value_of(value, x.dtype))
        for axis, (start, end) in enumerate(pads):
            if start or end:
                size = x.shape[axis]
                x = e.xp.take(x, padded_from(mode, np.arange(-start, size + end), size), axis=axis)
        return x


class Padding(Descriptor):
    """``DML_PADDING_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor, output_tensor, dimension_count, start_padding, end_padding
        As for `Padding1`.
    padding_mode : PaddingMode or str
        How the values of the padding are chosen. SYMMETRIC is available from feature level 3_0,
        WRAP from feature level 6_4.
    padding_value : float
        The value of the padding in mode CONSTANT. It is converted to the data type of the tensors.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Padding(input_tensor=dml.TensorDesc("INT32", (2,)),
    ...                    output_tensor=dml.TensorDesc("INT32", (4,)),
    ...                    padding_mode="CONSTANT", padding_value=10.6,
    ...                    start_padding=(1,), end_padding=(1,))
    >>> compiled = dml.Device("cpu").create_operator(desc).compile()
    >>> compiled(dml.cast([1, 2], "int32"))
    array([10,  1,  2, 10], dtype=int32)
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    padding_mode: PaddingMode | PaddingModeName = enumeration(
        PaddingMode, SYMMETRIC=FeatureLevel.LEVEL_3_0, WRAP=FeatureLevel.LEVEL_6_4
    )
    padding_value: float = floating()
    dimension_count: int = count_of("start_padding")
    start_padding: Sequence[int] = uints()
    end_padding: Sequence[int] = uints()

    NAME = "PADDING"
    KERNEL = Padding1.KERNEL

    infer = staticmethod(Padding1.infer)
    EXAMPLES = _EXAMPLES

    def attributes(self) -> Attributes:
        dtype = self.input_tensor.data_type.numpy
        value = self.padding_value
        if dtype is not UNKNOWN and value is not UNKNOWN:
            value = convert(np.asarray(value, np.float32), dtype).item()
        return _kernel_attributes(self, bits_of(value, dtype))

    compute = staticmethod(Padding1.compute)


def _kernel_attributes(desc: Padding | Padding1, value: tuple[int, ...]) -> dict[str, Any]:
    mode: Any = desc.padding_mode
    return {
        "mode": mode.suffix.lower(),
        "starts": desc.start_padding,
        "ends": desc.end_padding,
        "value": value,
    }
