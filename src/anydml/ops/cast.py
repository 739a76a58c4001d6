"""CAST: convert each element to another data type.

::

    output[i, j, ..] = (output's type) input[i, j, ..]

- Float to integer: the fraction is discarded, and the value is clamped to the range of the integer
  type. NaN becomes 0.
- Integer to integer: the low bits are kept.
- Any type to float: the value is rounded once to the nearest float, ties to even. A value that is
  too large becomes an infinity, and a NaN becomes the NaN without sign and payload.
- Between equal types, the bits are copied.

Worked example, FLOAT32 to UINT8::

    input  [[1.9, -1.5, 300], [-0.5, NaN, 254.99]]
    output [[1, 0, 255], [0, 0, 254]]

Page: ``DML_CAST_OPERATOR_DESC``. The page does not specify rounding, overflow and NaN; anydml
follows the rules above.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml.core.program import ArraySpec, Inferred
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import input_field, output_field
from anydml.ops._shapes import dtype_named

FAMILY = Family.ELEMENTWISE


class Cast(Descriptor):
    """``DML_CAST_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to convert.
    output_tensor : TensorDesc
        The converted elements, with the sizes of the input. Its type is the target type.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Cast(input_tensor=dml.TensorDesc("FLOAT32", (2, 3)),
    ...                 output_tensor=dml.TensorDesc("UINT8", (2, 3)))
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()

    NAME = "CAST"
    KERNEL = "cast"
    ALSO_KNOWN_AS = "anydml.cast onnx.Cast numpy.ndarray.astype torch.Tensor.to jax.Array.astype"
    EXAMPLES = ({
        "input_tensor": [1.9, -1.5, 300, -0.5, np.nan, 254.99],
        "output_tensor": [1, 0, 255, 0, 0, 254],
    }, {
        "input_tensor": [1, 0, 255, 0, 0, 254],
        "output_tensor": np.array([1.0, 0, 255, 0, 0, 254], np.float16),
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        return Inferred((ArraySpec(inputs[0].shape, dtype_named(attributes["to"])),))

    def attributes(self) -> Attributes:
        return {"to": self.output_tensor.data_type.numpy.name}

    @staticmethod
    def compute(e: Engine, x: Array, *, to: str) -> Array:
        result = e.cast(x, to)
        if x.dtype == result.dtype or x.dtype.kind != "f" or result.dtype.kind != "f":
            return result
        return e.xp.where(e.xp.isnan(result), result.dtype.type("nan"), result)
