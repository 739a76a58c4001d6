"""ELEMENT_WISE_IDENTITY: copy each element, optionally scaled and with a bias.

::

    output[i, j, ..] = input[i, j, ..]
    output[i, j, ..] = input[i, j, ..] * scale + bias

Without a scale and a bias, the bits of each element are copied. With them, the product is rounded,
then the sum. FLOAT32 and FLOAT16 are computed in FLOAT32, every other type in FLOAT64. The sum is
converted to the data type as by CAST: to the nearest float, or to an integer by discarding the
fraction and clamping to the range of the type. A NaN result is the NaN without sign and payload.

Worked example, FLOAT16, scale 2, bias 0.5::

    input  [[1, -1], [0.25, 40000]]
    output [[2.5, -1.5], [1, inf]]

Page: ``DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC``. The output may be bound to exactly the memory of
the input. The page does not specify the precision; anydml follows the rules above.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from anydml.core.program import ArraySpec, Inferred
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import ScaleBias, input_field, output_field, scale_bias

FAMILY = Family.ELEMENTWISE


class ElementWiseIdentity(Descriptor):
    """``DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The elements to copy.
    output_tensor : TensorDesc
        The copy, with the type and sizes of the input; its strides may differ.
    scale_bias : ScaleBias or pair of float, optional
        The factor of each element, and the value that is added to the product.

    Examples
    --------
    >>> import anydml as dml
    >>> tensor = dml.TensorDesc("FLOAT32", (2, 2))
    >>> desc = dml.ElementWiseIdentity(input_tensor=tensor, output_tensor=tensor,
    ...                                scale_bias=dml.ScaleBias(scale=2, bias=0.5))
    >>> dml.Device("cpu").check(desc)
    []
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    scale_bias: ScaleBias | None = scale_bias()

    NAME = "ELEMENT_WISE_IDENTITY"
    KERNEL = "identity"
    ALSO_KNOWN_AS = "onnx.Identity"
    EXAMPLES = ({
        "input_tensor": np.array([[1.0, -1], [0.25, 40000]], np.float16),
        "output_tensor": np.array([[2.5, -1.5], [1, np.inf]], np.float16),
        "scale_bias": ScaleBias(scale=2.0, bias=0.5),
    }, {
        "input_tensor": np.array([[1.0, -1], [0.25, 40000]], np.float16),
        "output_tensor": np.array([[1.0, -1], [0.25, 40000]], np.float16),
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        return Inferred((inputs[0],))

    def attributes(self) -> Attributes:
        if self.scale_bias is None:
            return {"scaled": False}
        return {"scaled": True, "scale": self.scale_bias.scale, "bias": self.scale_bias.bias}

    @staticmethod
    def compute(
        e: Engine, x: Array, *, scaled: bool, scale: float = 1.0, bias: float = 0.0
    ) -> Array:
        if not scaled:
            return x
        wide = np.dtype(np.float32 if x.dtype in (np.float32, np.float16) else np.float64)
        product = x.astype(wide) * wide.type(scale)
        # A compiler would round only once if nothing stood between the product and the sum: NaN of
        # floats, zeros of integers, of which the sign plays no part.
        is_float = x.dtype.kind == "f"
        stopped = e.xp.isnan(product) if is_float else product == 0
        product = e.xp.where(stopped, wide.type("nan" if is_float else 0), product)
        result = product + wide.type(bias)
        return e.cast(e.xp.where(e.xp.isnan(result), wide.type("nan"), result), x.dtype)
