"""The DirectML operator system on Linux: descriptors, rules and guarantees of its pages."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import NoReturn as _NoReturn

# First of all: `_command` for Ctrl-C meanwhile; `_processor` says why a sub-interpreter is refused.
from anydml import _command, _processor  # noqa: F401
from anydml import ops as _ops
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
    MissingKernelError,
    ModelError,
    Violation,
)
from anydml.exactness import Tolerance
from anydml.functions._specs import TopKResult
from anydml.functions.gather import gather, gather_elements, gather_nd
from anydml.functions.movers import cast, pad, slice_window
from anydml.functions.rearranging import reverse_subsequences, tile
from anydml.functions.scatter import scatter_elements, scatter_nd
from anydml.functions.selection import nonzero_coordinates, top_k
from anydml.functions.slabs import join, split
from anydml.levels import FeatureLevel
from anydml.lifecycle import CompiledOperator, Operator
from anydml.memory import MemoryPool, memory_pool, set_memory_pool_limit
from anydml.ops import *  # noqa: F403
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import ScaleBias, Size2D
from anydml.ops._pages import Support, TensorSupport
from anydml.registry import from_json, support, tolerance
from anydml.registry import function_called as _function_called
from anydml.registry import operator_lacking as _operator_lacking
from anydml.tensor import TensorDesc, TensorFlags
from anydml.threads import get_num_threads, num_threads, set_num_threads

__version__ = "0.1.0"

if not _TYPE_CHECKING:  # type checkers would take any name for an attribute

    def __getattr__(name: str) -> _NoReturn:
        hint = ""
        if not name.startswith("_"):
            if called := _function_called(name):
                hint = f"; use {called}"
            elif lacking := _operator_lacking(name):
                hint = f": {lacking}"
        raise AttributeError(f"module 'anydml' has no attribute {name!r}{hint}")


__all__ = [
    "AllocationError",
    "AnyDMLError",
    "ArgumentError",
    "ArgumentTypeError",
    "BindingError",
    "CompiledOperator",
    "DataType",
    "Descriptor",
    "Device",
    "DeviceError",
    "FeatureLevel",
    "IndexOutOfRangeError",
    "InvalidDescriptorError",
    "MemoryPool",
    "MissingKernelError",
    "ModelError",
    "Operator",
    "ScaleBias",
    "Size2D",
    "Support",
    "TensorDesc",
    "TensorFlags",
    "TensorSupport",
    "Tolerance",
    "TopKResult",
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
__all__ += _ops.__all__
