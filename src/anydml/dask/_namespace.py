"""Dask's operations by the names that the rules of `FunctionSpec` use.

Indices in memory stay there: NumPy's functions take dask arrays as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dask.array import arange, from_array, take
from dask.array.utils import meta_from_array

from anydml._native import INDEX_TYPES
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.dask import _graphs
from anydml.dask._graphs import Lazy
from anydml.functions import _arguments
from anydml.functions._function import FunctionSpec
from anydml.libraries import as_operand, promoted
from anydml.libraries._device import DeviceArray
from anydml.libraries._types import counterpart, to_counterpart


class Namespace:
    """`anydml.functions._library.Library` for Dask, without the operations of derivatives.

    `call` calls an array function on normalized operands.
    """

    knows_modes = False

    def __init__(self, call: Callable[[FunctionSpec, Sequence[Any], Any], Any]) -> None:
        self.call = call

    # ---- arguments

    def array(self, value: Any, name: str, like: Lazy | None = None) -> Lazy:
        """Return a dask array of known sizes and a type of this machine's byte order."""
        if not _graphs.is_lazy(value):
            array, _ = as_operand(value, name)
            held = value if isinstance(array, DeviceArray) else to_counterpart(array)
            return from_array(held, chunks="auto" if array.size else -1, asarray=False)
        if not isinstance(value.dtype, np.dtype):  # as of PyTorch's tensors
            kind = type(meta_from_array(value))
            raise ArgumentTypeError(
                f"{name}: expected a dask array of NumPy or CuPy arrays, got chunks of class "
                f"{kind.__module__}.{kind.__qualname__}; use {name}.map_blocks(np.asarray, "
                f"dtype=..)"
            )
        meta = to_counterpart(as_operand(meta_from_array(value), name)[0])
        for axis, size in enumerate(value.shape):
            if math.isnan(size):
                raise ArgumentError(
                    f"{name}: expected known sizes, got an unknown one on axis {axis}; "
                    f"call {name}.compute_chunk_sizes() first"
                )
        array = value if value.dtype == meta.dtype else value.astype(meta.dtype)
        # Dask's own functions make mistakes with chunks that have no elements.
        full = tuple(tuple(size for size in sizes if size) or (0,) for sizes in array.chunks)
        return array if full == array.chunks else _graphs.rechunked(array, full)

    def indices(self, value: Any, like: Lazy, name: str = "indices") -> Any:
        """Return a dask array, or one in host memory where the indices are there."""
        if not _graphs.is_lazy(value):
            held = _arguments.index_array(value, name)
            return self.array(value, name) if isinstance(held, DeviceArray) else held
        array = self.array(value, name)
        if array.dtype.name in INDEX_TYPES:
            return array
        return array.astype(_arguments.index_array(meta_from_array(array), name).dtype)

    def same_type(self, value: Any, like: Lazy, name: str, like_name: str = "x") -> Lazy:
        if _graphs.is_lazy(value):
            lazy = self.array(value, name)
            meta = meta_from_array(lazy)
            _arguments.same_type(meta, meta, name, like, like_name)
            return lazy
        array, _ = as_operand(value, name)
        array = _arguments.same_type(array, value, name, like, like_name)
        return self.array(value if isinstance(array, DeviceArray) else array, name)

    def value_type(self, dtype: Any) -> Any:
        return counterpart(_arguments.type_named(dtype), "dtype")

    def index_type(self, dtype: Any, x: Lazy, sizes: Sequence[int]) -> Any:
        return _arguments.result_indices(dtype, meta_from_array(x), sizes, None, "index_dtype")

    def promoted(self, values: Sequence[Any], name: str) -> list[Lazy]:
        parts = [self.array(value, f"{name}[{i}]") for i, value in enumerate(values)]
        like = meta_from_array(parts[0])
        kind = promoted(like, [part.dtype for part in parts], name)
        return [part.astype(kind) for part in parts]

    # ---- shapes

    broadcast_shapes = staticmethod(np.broadcast_shapes)
    broadcast_to = staticmethod(_graphs.broadcast)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        if tuple(shape) == (-1,) and _graphs.is_lazy(x) and x.ndim != 1:
            # A chunk for each block, in row-major order.
            x = _graphs.in_order(x, x.ndim)
            name = _graphs.layer_name("ravel", x.name)
            layer: _graphs.Layer = {}
            sizes = []
            for i, at in enumerate(_graphs.blocks(x.chunks)):
                _graphs.put(layer, (name, i), np.ravel, _graphs.block(x, at))
                sizes.append(math.prod(x.chunks[axis][n] for axis, n in enumerate(at)))
            return _graphs.new_array(name, layer, [x], (tuple(sizes),), x, x.dtype)
        return x.reshape(shape)

    # ---- values

    def positions(self, x: Any) -> Any:
        return x.astype(np.int64)

    where = staticmethod(np.where)
    clip = staticmethod(np.clip)
    stack = staticmethod(np.stack)
    concatenate = staticmethod(_graphs.joined)
    fill = staticmethod(_graphs.filled)
    take = staticmethod(take)

    def repeat(self, x: Lazy, count: int, axis: int) -> Lazy:
        return _graphs.joined([x] * count, axis)

    def numbers(self, x: Lazy, axis: int) -> Lazy:
        options = {}
        if _graphs.is_lazy(x):
            options = {"chunks": (x.chunks[axis],), "like": meta_from_array(x)}
        count = arange(x.shape[axis], **options)
        return count.reshape((-1, *(1,) * (x.ndim - 1 - axis)))
