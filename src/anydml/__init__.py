"""DirectML's operators, graphs and JSON models on Linux, in Python."""

from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING as _TYPE_CHECKING

# First of all: `_command` for Ctrl-C meanwhile; `_processor` says why a sub-interpreter is refused.
from anydml import _command  # noqa: F401

try:
    _import_module("anydml._processor")
except ImportError as _error:
    if _error.name is None:  # the refusal; `_native` says what else is wrong
        raise

from anydml import ops as _ops
from anydml._notebooks import attach as _attach_notebook_forms
from anydml.core.dtypes import DataType
from anydml.core.errors import (
    AllocationError,
    AnyDMLError,
    ArgumentError,
    ArgumentTypeError,
    BindingError,
    DeviceError,
    IndexOutOfRangeError,
    InvalidDescriptorError,
    MissingKernelError,
    MissingPackageError,
    ModelError,
    Violation,
)
from anydml.core.levels import FeatureLevel
from anydml.core.tensor import TensorDesc, TensorFlags
from anydml.core.tolerance import Tolerance
from anydml.devices.device import Device, synchronize
from anydml.devices.memory import MemoryPool, memory_pool, set_memory_pool_limit
from anydml.devices.operators import CompiledOperator, Operator
from anydml.devices.threads import get_num_threads, num_threads, set_num_threads
from anydml.functions import _public as _functions
from anydml.functions._public import *  # noqa: F403  # each has __all__
from anydml.functions.top_k import TopKResult
from anydml.graphs.build import Expression, GraphBuilder
from anydml.graphs.compiled import CompiledGraph
from anydml.graphs.desc import (
    ConstantNode,
    GraphDesc,
    GraphTensor,
    InputEdge,
    IntermediateEdge,
    OperatorNode,
    OutputEdge,
)
from anydml.graphs.serialized import read_serialized_graph
from anydml.onnx import read_onnx, to_onnx
from anydml.ops import *  # noqa: F403  # each has __all__
from anydml.ops._descriptor import Descriptor
from anydml.ops._fields import ScaleBias, Size2D
from anydml.ops._pages import Support, TensorSupport
from anydml.ops._registry import from_json, support, tolerance
from anydml.ops._registry import function_called as _function_called

__version__ = "0.1.0.dev0"

_attach_notebook_forms()

if not _TYPE_CHECKING:  # type checkers would take any name for an attribute

    def __getattr__(name: str) -> _ModuleType:
        if name in ("dask", "jax", "judge", "pydirectml", "suite", "torch"):  # loaded on demand
            return _import_module(f"anydml.{name}")
        called = None if name.startswith("_") else _function_called(name)
        hint = f"; use {called}" if called else ""
        raise AttributeError(f"module 'anydml' has no attribute {name!r}{hint}")


__all__ = [
    "AllocationError",
    "AnyDMLError",
    "ArgumentError",
    "ArgumentTypeError",
    "BindingError",
    "CompiledGraph",
    "CompiledOperator",
    "ConstantNode",
    "DataType",
    "Descriptor",
    "Device",
    "DeviceError",
    "Expression",
    "FeatureLevel",
    "GraphBuilder",
    "GraphDesc",
    "GraphTensor",
    "IndexOutOfRangeError",
    "InputEdge",
    "IntermediateEdge",
    "InvalidDescriptorError",
    "MemoryPool",
    "MissingKernelError",
    "MissingPackageError",
    "ModelError",
    "Operator",
    "OperatorNode",
    "OutputEdge",
    "ScaleBias",
    "Size2D",
    "Support",
    "TensorDesc",
    "TensorFlags",
    "TensorSupport",
    "Tolerance",
    "TopKResult",
    "Violation",
    "from_json",
    "get_num_threads",
    "memory_pool",
    "num_threads",
    "read_onnx",
    "read_serialized_graph",
    "set_memory_pool_limit",
    "set_num_threads",
    "support",
    "synchronize",
    "to_onnx",
    "tolerance",
]
__all__ += _functions.__all__
__all__ += _ops.__all__
