"""FILL_VALUE_CONSTANT: fill the output with one value.

::

    output[i, j, ..] = value

Worked example, FLOAT32, value 13::

    output [[13, 13, 13, 13], [13, 13, 13, 13]]

Page: ``DML_FILL_VALUE_CONSTANT_OPERATOR_DESC``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml.core._literals import DataTypeName
from anydml.core.dtypes import DataType
from anydml.core.rules import Rules
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import enumeration, output_field, scalar
from anydml.ops._numbers import bits_of
from anydml.ops._rules import type_of_scalar
from anydml.ops._shapes import infer_filled, numpy_of
from anydml.portable._numbers import value_of

FAMILY = Family.CREATE


class FillValueConstant(Descriptor):
    """``DML_FILL_VALUE_CONSTANT_OPERATOR_DESC``.

    Parameters
    ----------
    output_tensor : TensorDesc
        The tensor to fill, of any sizes.
    value_data_type : DataType or str
        The type of `value`, which must equal the type of the output.
    value : int or float
        The value of each element.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.FillValueConstant(output_tensor=dml.TensorDesc("FLOAT32", (3,)),
    ...                              value_data_type="FLOAT32", value=13)
    >>> dml.Device("cpu").create_operator(desc).compile()()
    array([13., 13., 13.], dtype=float32)
    """

    output_tensor: TensorDesc = output_field()
    value_data_type: DataType | DataTypeName = enumeration(DataType)
    value: int | float = scalar("value_data_type")

    NAME = "FILL_VALUE_CONSTANT"
    KERNEL = "fill_constant"
    ALSO_KNOWN_AS = "onnx.ConstantOfShape numpy.full torch.full jax.numpy.full"
    EXAMPLES = ({
        "output_tensor": [[[[13.0, 13, 13, 13], [13, 13, 13, 13]]]], "value_data_type": "FLOAT32",
        "value": 13.0,
    },)  # fmt: skip

    infer = staticmethod(infer_filled)

    def check(self) -> Rules:
        yield type_of_scalar("ValueDataType", self.value_data_type, self.named("output_tensor"))

    def attributes(self) -> Attributes:
        dtype = numpy_of(self.value_data_type)
        return {
            "shape": self.output_tensor.sizes,
            "dtype": dtype.name,
            "value": bits_of(self.value, dtype),
        }

    @staticmethod
    def compute(e: Engine, *, shape: Sequence[int], dtype: str, value: Sequence[int]) -> Array:
        return e.xp.full(shape, value_of(value, np.dtype(dtype)))
