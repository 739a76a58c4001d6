"""Dask's operations by the names that the rules of `FunctionSpec` use.

Indices in memory stay there: NumPy's functions take dask arrays as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dask.array import arange, take
from dask.array.utils import meta_from_array

from anydml.dask import _graphs
from anydml.dask._graphs import Lazy
from anydml.functions import _arguments
from anydml.functions._function import FunctionSpec
from anydml.libraries import check_dtype, promoted
from anydml.libraries._types import counterpart


class Namespace:
    """`anydml.functions._library.MovingLibrary` for Dask, without the operations of derivatives.

    `call` calls an array function on normalized operands.
    """

    knows_modes = False

    def __init__(self, call: Callable[[FunctionSpec, Sequence[Any], Any], Any]) -> None:
        self.call = call

    # ---- arguments

    def array(self, value: Any, name: str, like: Lazy | None = None) -> Lazy:
        return _graphs.lazy(value, name)

    def indices(self, value: Any, like: Lazy, name: str = "indices") -> Any:
        return _graphs.indices(value, name)

    def same_type(self, value: Any, like: Lazy, name: str, like_name: str = "x") -> Lazy:
        return _graphs.lazy_as(value, name, like, like_name)

    def value_type(self, dtype: Any) -> Any:
        return counterpart(_arguments.type_named(dtype), "dtype")

    def index_type(self, dtype: Any, x: Lazy, sizes: Sequence[int]) -> Any:
        return _arguments.result_indices(dtype, meta_from_array(x), sizes, None, "index_dtype")

    limits = staticmethod(np.iinfo)

    def promoted(self, values: Sequence[Any], name: str) -> list[Lazy]:
        parts = [_graphs.lazy(value, f"{name}[{i}]") for i, value in enumerate(values)]
        like = meta_from_array(parts[0])
        kind = promoted(like, [part.dtype for part in parts], name)
        check_dtype(like, kind, name)
        return [part.astype(kind) for part in parts]

    # ---- shapes

    broadcast_shapes = staticmethod(np.broadcast_shapes)
    broadcast_to = staticmethod(_graphs.broadcast)

    def reshape(self, x: Any, shape: Sequence[int]) -> Any:
        if tuple(shape) == (-1,) and _graphs.is_lazy(x) and x.ndim != 1:
            return _graphs.raveled(x)
        return x.reshape(shape)

    # ---- values

    def positions(self, x: Any) -> Any:
        return x.astype(np.int64)

    def is_uint64(self, x: Any) -> bool:
        return bool(x.dtype == np.uint64)

    where = staticmethod(np.where)
    clip = staticmethod(np.clip)
    stack = staticmethod(np.stack)
    concatenate = staticmethod(_graphs.joined)
    fill = staticmethod(_graphs.filled)
    take = staticmethod(take)

    def repeat(self, x: Lazy, count: int, axis: int) -> Lazy:
        return _graphs.joined([x] * count, axis)

    def numbers(self, x: Lazy, axis: int) -> Lazy:
        count = arange(x.shape[axis], chunks=(x.chunks[axis],), like=meta_from_array(x))
        return count.reshape((-1, *(1,) * (x.ndim - 1 - axis)))
