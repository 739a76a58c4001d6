"""UPSAMPLE_2D: enlarge images by integer factors, with repeated or interpolated pixels.

::

    NEAREST_NEIGHBOR   output[.., y, x] = input[.., y // height scale, x // width scale]
    LINEAR             linear interpolation between the two nearest elements of each dimension,
                       by the distance of their centers; before the center of the first element and
                       after the center of the last one, the value of that element

The center of output element x lies at position ``(x + 0.5) / scale - 0.5`` of the input. LINEAR is
computed in FLOAT32, first along the width and then along the height. The weight of the second
element is rounded once; the weight of the first is 1 minus it. Both products and their sum are each
rounded. The result is then converted to the data type of the output. An element with weight 0 is
ignored, even if it is infinite. A NaN result is the NaN without sign and payload.

Worked example, LINEAR, width 2, height 1::

    input  [[1, 2], [3, 5]]
    output [[1, 1.25, 1.75, 2], [3, 3.5, 4.5, 5]]

Page: ``DML_UPSAMPLE_2D_OPERATOR_DESC``. The page specifies neither the positions of elements nor
the precision. anydml follows the rules above; positions are as in RESAMPLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anydml.core._json import UINT32_MAX
from anydml.core._literals import InterpolationModeName
from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Inferred
from anydml.core.rules import UNKNOWN, Rules, known
from anydml.core.tensor import TensorDesc
from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes, Descriptor
from anydml.ops._family import Family
from anydml.ops._fields import Size2D, enumeration, input_field, output_field, size_2d
from anydml.ops._rules import if_within, within
from anydml.ops.enumerations import InterpolationMode
from anydml.portable._places import between

FAMILY = Family.NETWORKS


def _two_dimensions(data: ArraySpec) -> Rules:
    if len(data.shape) < 2:
        yield Violation("InputTensor.DimensionCount", "2 or more", len(data.shape))


class Upsample2D(Descriptor):
    """``DML_UPSAMPLE_2D_OPERATOR_DESC``.

    Parameters
    ----------
    input_tensor : TensorDesc
        The images to enlarge; the last two dimensions are height and width.
    output_tensor : TensorDesc
        The enlarged images, with the type and DimensionCount of the input. The last two sizes are
        those of the input times the scales; all others are equal.
    scale_size : Size2D or pair of int
        The scale factors of width and height, each at least 1.
    interpolation_mode : InterpolationMode or str
        NEAREST_NEIGHBOR repeats pixels, LINEAR interpolates between them.

    Examples
    --------
    >>> import anydml as dml
    >>> desc = dml.Upsample2D(input_tensor=dml.TensorDesc("FLOAT32", (1, 1, 1, 2)),
    ...                       output_tensor=dml.TensorDesc("FLOAT32", (1, 1, 1, 4)),
    ...                       scale_size=dml.Size2D(width=2, height=1),
    ...                       interpolation_mode="LINEAR")
    >>> compiled = dml.Device("cpu").create_operator(desc).compile()
    >>> compiled(dml.cast([[[[1, 2]]]], "float32"))
    array([[[[1.  , 1.25, 1.75, 2.  ]]]], dtype=float32)
    """

    input_tensor: TensorDesc = input_field()
    output_tensor: TensorDesc = output_field()
    scale_size: Size2D = size_2d()
    interpolation_mode: InterpolationMode | InterpolationModeName = enumeration(InterpolationMode)

    NAME = "UPSAMPLE_2D"
    KERNEL = "upsample"
    ALSO_KNOWN_AS = "onnx.Upsample torch.nn.Upsample"
    EXAMPLES = ({
        "input_tensor": [[[[1.0, 2], [3, 4]]]],
        "output_tensor": [[[[1.0, 1.25, 1.75, 2], [3, 3.25, 3.75, 4]]]], "scale_size": (2, 1),
        "interpolation_mode": "LINEAR",
    }, {
        "input_tensor": [[[[1.0, 2], [3, 4]]]],
        "output_tensor": [[[[1.0, 1, 2, 2], [1, 1, 2, 2], [3, 3, 4, 4], [3, 3, 4, 4]]]],
        "scale_size": (2, 2), "interpolation_mode": "NEAREST_NEIGHBOR",
    })  # fmt: skip

    @staticmethod
    def infer(inputs: Sequence[ArraySpec], attributes: Attributes) -> Inferred:
        (data,) = inputs

        def shape() -> Any:
            if len(data.shape) < 2:
                return UNKNOWN
            *outer, height, width = data.shape
            return (*outer, height * attributes["height"], width * attributes["width"])

        return Inferred.of((ArraySpec(known(shape), data.dtype),), _two_dimensions(data))

    def check(self) -> Rules:
        for name, scale, size, i in zip(
            ("Width", "Height"), self.scale_size, self.input_tensor.sizes[:-3:-1], (-1, -2),
            strict=False,
        ):  # fmt: skip
            axis = self.input_tensor.dimension_count + i
            why = f"UINT_MAX / InputTensor.Sizes[{axis}]"
            yield within(f"ScaleSize.{name}", scale, 1, UINT32_MAX // if_within(size, 1, size), why)

    def attributes(self) -> Attributes:
        mode: Any = self.interpolation_mode
        return {
            "mode": mode.suffix.lower(),
            "height": self.scale_size.height,
            "width": self.scale_size.width,
        }

    @staticmethod
    def compute(e: Engine, x: Array, *, mode: str, height: int, width: int) -> Array:
        if mode != "linear":
            return e.xp.repeat(e.xp.repeat(x, height, axis=-2), width, axis=-1)
        result = x.astype(np.float32)
        for axis, scale in ((-1, width), (-2, height)):
            result = _interpolated(e, result, axis, scale)
        result = e.xp.where(e.xp.isnan(result), np.float32("nan"), result)
        return e.cast(result, x.dtype)


def _interpolated(e: Engine, x: Array, axis: int, scale: int) -> Array:
    """The elements of an axis at `scale` times as many positions."""
    size = x.shape[axis]
    first, weights = between(size, scale)
    part = weights.reshape(-1, *(1,) * (-1 - axis))
    before = e.xp.take(x, first, axis=axis)
    after = e.xp.take(x, np.minimum(first + 1, size - 1), axis=axis)
    products = before * (np.float32(1) - part), after * part
    # A compiler would round only once if nothing stood between a product and the sum.
    kept = [e.xp.where(e.xp.isnan(one), np.float32("nan"), one) for one in products]
    return e.xp.where(part == 0, before, kept[0] + kept[1])
