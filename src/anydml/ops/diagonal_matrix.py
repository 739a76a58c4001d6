"""Diagonal matrices: fill diagonals of the last two dimensions with a value.

The diagonal of an element is its column minus its row. All matrices of a batch are filled alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.core._literals import DataTypeName
from anydml.core.dtypes import DataType
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._computed import Sized
from anydml.ops._descriptor import Attributes
from anydml.ops._family import Family
from anydml.ops._fields import (
    Role,
    enumeration,
    floating,
    input_field,
    integer,
    output_field,
    scalar,
)
from anydml.ops._rules import type_of_scalar
from anydml.ops._shapes import dtype_named, infer_filled

FAMILY = Family.CREATE


def _diagonals(e: Engine, shape: Sequence[int]) -> Array:
    """The index of the diagonal of each element of a matrix."""
    *_, height, width = shape
    diagonals: Array = e.xp.arange(width)[None, :] - e.xp.arange(height)[:, None]
    return e.xp.broadcast_to(diagonals, shape)


class _Diagonal(Sized):
    """Base of both versions; adds the data type of the output to the attributes."""

    def attributes(self) -> Attributes:
        (_, output, _), *_ = self.tensors(Role.OUTPUT)
        return {"dtype": output.data_type.numpy.name, **super().attributes()}


class DiagonalMatrix(_Diagonal):
    """Writes the value where ``column - row`` equals the offset, and 0 elsewhere.

    Parameters
    ----------
    output_tensor : TensorDesc
        The matrices, which need not be square.
    offset : int
        The diagonal to fill: 0 is the main diagonal, positive offsets are to its right, negative
        ones to its left.
    value : float
        The value on the diagonal; for integer tensors it is converted as by CAST.
    """

    output_tensor: TensorDesc = output_field()
    offset: int = integer()
    value: float = floating()

    NAME = "DIAGONAL_MATRIX"
    EXAMPLES = ({"output_tensor": TensorDesc("FLOAT32", (3, 4)), "offset": 1, "value": 1.0},)
    ALSO_KNOWN_AS = "onnx.EyeLike numpy.eye torch.eye jax.numpy.eye"

    infer = staticmethod(infer_filled)

    @staticmethod
    def compute(
        e: Engine, *, shape: tuple[int, ...], dtype: str, offset: int, value: float
    ) -> Array:
        element = e.cast(e.xp.asarray(value, np.float64), dtype)
        return e.xp.where(_diagonals(e, shape) == offset, element, element.dtype.type(0))


class DiagonalMatrix1(_Diagonal):
    """Writes the value on diagonals ``begin`` to ``end - 1``; elsewhere copies the input, or 0.

    If ``begin`` is greater than ``end``, the value is written on all diagonals less than ``end``,
    and on ``begin`` and all diagonals greater than it.

    Parameters
    ----------
    input_tensor : TensorDesc, optional
        The values outside the filled diagonals; 0 if omitted.
    output_tensor : TensorDesc
        The matrices, with the type and sizes of the input. They need not be square.
    value_data_type : DataType
        The type of `value`, which must equal the type of the output.
    value : int or float
        The value on the filled diagonals.
    diagonal_fill_begin : int
        The first diagonal to fill.
    diagonal_fill_end : int
        The diagonal after the last one to fill.
    """

    input_tensor: TensorDesc | None = input_field(optional=True)
    output_tensor: TensorDesc = output_field()
    value_data_type: DataType | DataTypeName = enumeration(DataType)
    value: int | float = scalar("value_data_type")
    diagonal_fill_begin: int = integer()
    diagonal_fill_end: int = integer()

    NAME = "DIAGONAL_MATRIX1"
    EXAMPLES = ({
        "output_tensor": TensorDesc("FLOAT32", (3, 4)),
        "value_data_type": "FLOAT32", "value": 7.0,
        "diagonal_fill_begin": 0, "diagonal_fill_end": 2,
    },)  # fmt: skip
    ALSO_KNOWN_AS = "numpy.tri numpy.triu numpy.tril torch.triu torch.tril jax.numpy.tri"

    def check(self) -> Rules:
        yield type_of_scalar("ValueDataType", self.value_data_type, self.named("output_tensor"))

    @staticmethod
    def infer(inputs: Sequence[ArraySpec | None], attributes: Attributes) -> Inferred:
        return Inferred(
            (inputs[0] or ArraySpec(attributes["shape"], dtype_named(attributes["dtype"])),)
        )

    @staticmethod
    def compute(
        e: Engine,
        x: Array | None,
        *,
        shape: tuple[int, ...],
        dtype: str,
        value_data_type: Any,
        value: Any,
        diagonal_fill_begin: int,
        diagonal_fill_end: int,
    ) -> Array:
        diagonals = _diagonals(e, shape)
        within = (diagonals >= diagonal_fill_begin) ^ (diagonals >= diagonal_fill_end)
        within = within ^ (diagonal_fill_begin > diagonal_fill_end)
        element = np.dtype(dtype).type(value)
        rest = element.dtype.type(0) if x is None else x
        return e.xp.where(within, element, rest)
