"""The operators. Written by generate_operator_pages.py; the only list of them."""

from anydml.ops.activations import (
    ActivationIdentity,
    ActivationLeakyRelu,
    ActivationLinear,
    ActivationRelu,
    ActivationSigmoid,
    ActivationTanh,
)
from anydml.ops.cast import Cast
from anydml.ops.element_wise_identity import ElementWiseIdentity
from anydml.ops.elementwise import (
    ElementWiseAdd,
    ElementWiseAdd1,
    ElementWiseClip,
    ElementWiseClip1,
    ElementWiseDivide,
    ElementWiseMultiply,
    ElementWiseSubtract,
)
from anydml.ops.fill_value_constant import FillValueConstant
from anydml.ops.fill_value_sequence import FillValueSequence
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND, GatherND1
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.padding1 import Padding, Padding1, PaddingMode
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.scatter import Scatter, ScatterElements
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.slice1 import Slice, Slice1
from anydml.ops.split import Split
from anydml.ops.tile import Tile
from anydml.ops.top_k import AxisDirection, TopK, TopK1
from anydml.ops.upsample_2d import InterpolationMode, Upsample2D

__all__ = [
    "ActivationIdentity",
    "ActivationLeakyRelu",
    "ActivationLinear",
    "ActivationRelu",
    "ActivationSigmoid",
    "ActivationTanh",
    "AxisDirection",
    "Cast",
    "ElementWiseAdd",
    "ElementWiseAdd1",
    "ElementWiseClip",
    "ElementWiseClip1",
    "ElementWiseDivide",
    "ElementWiseIdentity",
    "ElementWiseMultiply",
    "ElementWiseSubtract",
    "FillValueConstant",
    "FillValueSequence",
    "Gather",
    "GatherElements",
    "GatherND",
    "GatherND1",
    "InterpolationMode",
    "Join",
    "NonzeroCoordinates",
    "Padding",
    "Padding1",
    "PaddingMode",
    "ReverseSubsequences",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Slice",
    "Slice1",
    "Split",
    "Tile",
    "TopK",
    "TopK1",
    "Upsample2D",
]
