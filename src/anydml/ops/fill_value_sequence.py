"""FILL_VALUE_SEQUENCE: fill the output with an arithmetic sequence.

::

    value = start
    for each element of the output, in row-major order:
        output[element] = value
        value += delta

Each sum is computed in the data type of the output. Integers wrap around. Floats are rounded to the
nearest value, ties to even, at every step; therefore element i of a long sequence of floats may
differ from ``start + i * delta``.

Worked example, UINT8, start 10, delta -2::

    output [[10, 8], [6, 4]]

Page: ``DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC``. The page's second example has a negative step with
an unsigned type. Its bits are interpreted as an unsigned integer: -2 is 254 in UINT8.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from anydml.core._literals import DataTypeName
from anydml.core.dtypes import DataType
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import enumeration, output_field, scalar
from anydml.ops._rules import number_of, type_of_scalar
from anydml.ops._shapes import infer_filled

FAMILY = Family.CREATE


class FillValueSequence(Descriptor):
    """``DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC``.

    Parameters
    ----------
    output_tensor : TensorDesc
        The tensor to fill, of any sizes.
    value_data_type : DataType or str
        The type of both values, which must equal the type of the output.
    value_start : int or float
        The value of the first element.
    value_delta : int or float
        The difference between consecutive elements. It may be negative, even for unsigned types.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.FillValueSequence(output_tensor=dml.TensorDesc("FLOAT32", (3,)),
    ...                              value_data_type="FLOAT32", value_start=3, value_delta=2)
    >>> dml.Device("cpu").create_operator(desc).compile()()
    array([3., 5., 7.], dtype=float32)
    """

    output_tensor: TensorDesc = output_field()
    value_data_type: DataType | DataTypeName = enumeration(DataType)
    value_start: int | float = scalar("value_data_type")
    value_delta: int | float = scalar("value_data_type", wraps=True)

    NAME = "FILL_VALUE_SEQUENCE"
    KERNEL = "fill_sequence"
    ALSO_KNOWN_AS = "onnx.Range numpy.arange torch.arange jax.numpy.arange"
    EXAMPLES = ({
        "output_tensor": [[[[3.0, 5, 7]]]], "value_data_type": "FLOAT32", "value_start": 3.0,
        "value_delta": 2.0,
    }, {
        "output_tensor": [[[[10, 8], [6, 4]]]], "value_data_type": "UINT8", "value_start": 10,
        "value_delta": 254,
    })  # fmt: skip

    infer = staticmethod(infer_filled)

    def check(self) -> Rules:
        yield type_of_scalar("ValueDataType", self.value_data_type, self.named("output_tensor"))

    def attributes(self) -> Attributes:
        return {
            "shape": self.output_tensor.sizes,
            "dtype": self.output_tensor.data_type.numpy.name,
            "start": number_of(self.value_start),
            "delta": number_of(self.value_delta),
        }

    @staticmethod
    def compute(
        e: Engine, *, shape: Sequence[int], dtype: str, start: float, delta: float
    ) -> Array:
        kind = np.dtype(dtype)
        first, step = _of_type(start, kind), _of_type(delta, kind)
        if kind.kind != "f":
            return (e.xp.arange(prod(shape)).astype(kind) * step + first).reshape(shape)
        values = np.full(prod(shape), step)
        values[0] = first
        with np.errstate(all="ignore"):
            sums = np.add.accumulate(values)
        return e.xp.asarray(np.where(np.isnan(sums), kind.type("nan"), sums).reshape(shape))


def _of_type(number: Any, dtype: np.dtype[Any]) -> Any:
    return np.array(number).astype(dtype)[()]
