"""PADDING1: the input with more elements at the ends of each dimension.

::

    i = output position - start padding, j = output position ..
    output = input[place(i), place(j), ..]

    mode         place(i), n is the input's size
    CONSTANT     i inside the input; around it is the value
    EDGE         0 below, n - 1 above
    REFLECTION   mirrored at the first and at the last element: .. 2 1 [0 1 2] 1 0 1 ..
    SYMMETRIC    mirrored at the edges: .. 1 0 [0 1 2] 2 1 0 0 ..
    WRAP         from the other end: .. 1 2 [0 1 2] 0 1 ..

Paddings may be longer than the input. The one element of a dimension of size 1 is repeated.

Worked example, REFLECTION, start {2}, end {3}::

    input  [1, 2, 3, 4]
    output [3, 2, 1, 2, 3, 4, 3, 2, 1]

Page: ``DML_PADDING1_OPERATOR_DESC``. It does not name WRAP, which level 6_4 adds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from anydml._named import NamedEnum
from anydml.dtypes import ALL_TYPES, DataType, DataTypeName
from anydml.errors import Violation
from anydml.levels import FeatureLevel
from anydml.ops import _rules
from anydml.ops._descriptor import Arrays, Attributes, Descriptor, support
from anydml.ops._fields import count_of, enumeration, input_field, output_field, scalar, uints
from anydml.program import ArraySpec, Inferred, Program
from anydml.tensor import TensorDesc


class PaddingMode(NamedEnum):
    """``DML_PADDING_MODE``: what stands around the input."""

    CONSTANT = 0
    EDGE = 1
    REFLECTION = 2
    SYMMETRIC = 3
    WRAP = 4

    @classmethod
    def prefix(cls) -> str:
        return "DML_PADDING_MODE_"


PaddingModeName = Literal[
    "CONSTANT", "EDGE", "REFLECTION", "SYMMETRIC", "WRAP",
    "DML_PADDING_MODE_CONSTANT", "DML_PADDING_MODE_EDGE", "DML_PADDING_MODE_REFLECTION",
    "DML_PADDING_MODE_SYMMETRIC", "DML_PADDING_MODE_WRAP",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class Padding1(Descriptor):
    """``DML_PADDING1_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        What is padded.
    output_tensor : TensorDesc
        Type and DimensionCount of the input; each size is the input's and both paddings.
    padding_mode : PaddingMode or str
        What stands around the input; WRAP from level 6_4.
    padding_value_data_type : DataType or str
        The type of the value, which is the output's.
    padding_value : int or float
        What stands around the input where the mode is CONSTANT.
    dimension_count : int, optional
        How many dimensions; left out, as many as there are start paddings.
    start_padding : sequence of int
        Elements in front of each dimension.
    end_padding : sequence of int
        Elements behind each dimension.

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
    SUPPORT = (
        support("5_0", InputTensor=(range(1, 9), ALL_TYPES), OutputTensor=(range(1, 9), ALL_TYPES)),
    )

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], given: Attributes) -> Inferred:
        data = inputs[0]
        rank = len(data.shape)
        broken = []
        for side, name in enumerate(("starts", "ends")):
            if len(given[name]) != rank:
                rule = f"{rank} pairs (the rank of x)"
                broken.append(Violation("pad_width", rule, f"{len(given[name])} of them"))
            broken += [
                Violation(f"pad_width[{i}][{side}]", "0 or more elements", count)
                for i, count in enumerate(given[name])
                if count < 0
            ]
        if broken:
            return Inferred((), tuple(broken))
        pads = [*zip(given["starts"], given["ends"], strict=True)]
        for i, ((start, end), size) in enumerate(zip(pads, data.shape, strict=True)):
            if size == 0 and start + end > 0 and given["mode"] != "constant":
                rule = f"mode 'constant' (axis {i} has no elements to pad with)"
                broken.append(Violation("mode", rule, given["mode"]))
        pairs = zip(pads, data.shape, strict=True)
        shape = tuple(start + size + end for (start, end), size in pairs)
        return Inferred((ArraySpec(shape, data.dtype),), tuple(broken))

    def check(self) -> Iterator[Violation]:
        data, output = ("InputTensor", self.input_tensor), ("OutputTensor", self.output_tensor)
        rank = self.input_tensor.dimension_count
        yield from _rules.same_data_type(data, output)
        yield from _rules.same_dimension_count(data, output)
        yield from _rules.type_of_scalar(
            "PaddingValueDataType", DataType.parse(self.padding_value_data_type), output
        )
        if self.dimension_count == len(self.start_padding) != rank:
            rule = f"{rank} (InputTensor.DimensionCount)"
            yield Violation("DimensionCount", rule, self.dimension_count)
        if len(self.end_padding) != rank:
            rule = f"{rank} values (InputTensor.DimensionCount)"
            yield Violation("EndPadding", rule, len(self.end_padding))
        sizes = self.output_tensor.sizes
        if any(len(values) != rank for values in (self.start_padding, self.end_padding, sizes)):
            return
        for i, size in enumerate(self.input_tensor.sizes):
            expected = self.start_padding[i] + size + self.end_padding[i]
            if sizes[i] != expected:
                rule = f"{expected} (StartPadding[{i}] + InputTensor.Sizes[{i}] + EndPadding[{i}])"
                yield Violation(f"OutputTensor.Sizes[{i}]", rule, sizes[i])

    def lower(self, *, clamp: bool = False) -> Program:
        return self._program(
            mode=PaddingMode.parse(self.padding_mode).suffix.lower(),
            starts=tuple(self.start_padding),
            ends=tuple(self.end_padding),
            value=bits_of(self.padding_value, DataType.parse(self.padding_value_data_type).numpy),
        )

    @staticmethod
    def evaluate(inputs: Arrays, outputs: Arrays, given: Attributes) -> None:
        data, output = inputs[0], outputs[0]
        raw = np.array(given["value"], np.int64).view(np.uint8)
        value = raw[: output.dtype.itemsize].view(output.dtype)[0]
        for at in np.ndindex(output.shape):
            axes = zip(at, given["starts"], data.shape, strict=True)
            places = tuple(_place(given["mode"], i - start, size) for i, start, size in axes)
            output[at] = value if None in places else data[places]


def _place(mode: str, at: int, size: int) -> int | None:
    """Where a position, counted from the input's first element, is read; None: the value."""
    if 0 <= at < size:
        return at
    if mode == "constant":
        return None
    if mode == "edge":
        return 0 if at < 0 else size - 1
    if mode == "wrap" or size == 1:
        return at % size
    if mode == "reflection":
        within = at % (2 * size - 2)
        return within if within < size else 2 * size - 2 - within
    within = at % (2 * size)
    return within if within < size else 2 * size - 1 - within


def bits_of(value: Any, dtype: np.dtype[Any]) -> tuple[int, ...]:
    """A value's bytes, as two integers of 64 bits."""
    octets = np.array(value, dtype).tobytes().ljust(16, b"\0")
    return tuple(np.frombuffer(octets, np.int64).tolist())
