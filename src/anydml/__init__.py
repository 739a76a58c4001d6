"""The DirectML operator system on Linux: descriptors, rules and guarantees of its pages."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import NoReturn as _NoReturn

# First of all: `_command` for Ctrl-C meanwhile; `_processor` says why a sub-interpreter is refused.
from anydml import _command, _processor  # noqa: F401
from anydml.bridges import _traced
from anydml.device import Device, synchronize
from anydml.dtypes import DataType
from anydml.errors import (
    AllocationError,
    AnyDMLError,
    ArgumentError,
    ArgumentTypeError,
    BindingError,
    DeviceError,
    IndexOutOfRangeError,
    InvalidDescriptorError,
    ModelError,
    Violation,
)
from anydml.exactness import Tolerance
from anydml.functions.gather import gather, gather_elements, gather_nd
from anydml.functions.movers import cast, pad, slice_window
from anydml.functions.rearranging import reverse_subsequences, tile
from anydml.functions.scatter import scatter_elements, scatter_nd
from anydml.functions.selection import TopKResult, nonzero_coordinates, top_k
from anydml.functions.slabs import join, split
from anydml.levels import FeatureLevel
from anydml.lifecycle import CompiledOperator, Operator
from anydml.memory import MemoryPool, memory_pool, set_memory_pool_limit
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import ScaleBias, Size2D
from anydml.ops._pages import Support, TensorSupport
from anydml.ops.cast import Cast
from anydml.ops.element_wise_identity import ElementWiseIdentity
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
from anydml.registry import from_json, support, tolerance
from anydml.registry import operator_lacking as _operator_lacking
from anydml.tensor import TensorDesc, TensorFlags
from anydml.threads import get_num_threads, num_threads, set_num_threads

__version__ = "0.1.0"

for _function in (
    cast, gather, gather_elements, gather_nd, join, nonzero_coordinates, pad, reverse_subsequences,
    scatter_elements, scatter_nd, slice_window, split, tile, top_k,
):  # fmt: skip
    _traced.tell(_function)
del _function

if not _TYPE_CHECKING:  # type checkers would take any name for an attribute

    def __getattr__(name: str) -> _NoReturn:
        lacking = None if name.startswith("_") else _operator_lacking(name)
        hint = f": {lacking}" if lacking else ""
        raise AttributeError(f"module 'anydml' has no attribute {name!r}{hint}")


__all__ = [
    "AllocationError",
    "AnyDMLError",
    "ArgumentError",
    "ArgumentTypeError",
    "AxisDirection",
    "BindingError",
    "Cast",
    "CompiledOperator",
    "DataType",
    "Descriptor",
    "Device",
    "DeviceError",
    "ElementWiseIdentity",
    "FeatureLevel",
    "FillValueConstant",
    "FillValueSequence",
    "Gather",
    "GatherElements",
    "GatherND",
    "GatherND1",
    "IndexOutOfRangeError",
    "InterpolationMode",
    "InvalidDescriptorError",
    "Join",
    "MemoryPool",
    "ModelError",
    "NonzeroCoordinates",
    "Operator",
    "Padding",
    "Padding1",
    "PaddingMode",
    "ReverseSubsequences",
    "ScaleBias",
    "Scatter",
    "ScatterElements",
    "ScatterND",
    "Size2D",
    "Slice",
    "Slice1",
    "Split",
    "Support",
    "TensorDesc",
    "TensorFlags",
    "TensorSupport",
    "Tile",
    "Tolerance",
    "TopK",
    "TopK1",
    "TopKResult",
    "Upsample2D",
    "Violation",
    "cast",
    "from_json",
    "gather",
    "gather_elements",
    "gather_nd",
    "get_num_threads",
    "join",
    "memory_pool",
    "nonzero_coordinates",
    "num_threads",
    "pad",
    "reverse_subsequences",
    "scatter_elements",
    "scatter_nd",
    "set_memory_pool_limit",
    "set_num_threads",
    "slice_window",
    "split",
    "support",
    "synchronize",
    "tile",
    "tolerance",
    "top_k",
]
