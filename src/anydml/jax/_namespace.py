"""JAX's operations by the names that the rules of `FunctionSpec` use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp

from anydml import libraries
from anydml.core.errors import ArgumentError
from anydml.devices.backends import cuda
from anydml.devices.backends._xla_calls import custom_call
from anydml.engines._jax import x64
from anydml.functions import _arguments
from anydml.functions._function import FunctionSpec
from anydml.libraries import as_operand, check_dtype, reject_dask
from anydml.libraries._types import as_type, counterpart, to_counterpart

Traced: TypeAlias = Any
"""An array of JAX, traced or not: the package's types are not needed to check this one."""

threads: Final[ContextVar[int | None]] = ContextVar("anydml.jax.threads", default=None)
"""The most threads of the calls in the program that is being made (0: what the process says when
they run); None in the user's traced code."""

cuda.configure()


@contextmanager
def at_most(limit: int | None) -> Iterator[None]:
    """Set `threads` while a program is made."""
    token = threads.set(limit)
    try:
        yield
    finally:
        threads.reset(token)


with jax.ensure_compile_time_eval():  # the first import may come from code that is being traced
    _EMPTY: Final = jnp.zeros(0)
ARRAY: Final = type(_EMPTY)
"""The class of JAX's arrays with memory."""

_LIMITS: Final = {
    np.dtype(kind): (np.iinfo(kind).min, np.iinfo(kind).max) for kind in (np.int32, np.uint32)
}


def _in_jax_type(array: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
    """An array of a type that JAX keeps: without 64-bit types, integers that fit are narrowed."""
    kind = array.dtype
    if kind.itemsize < 8:
        return array
    dtype = jax.dtypes.canonicalize_dtype(kind)
    if dtype == kind:
        return array
    if kind.kind in "iu":
        low, high = _LIMITS[dtype]
        if not array.size or (low <= array.min() and array.max() <= high):
            return as_type(array, dtype, name)
    check_dtype(_EMPTY, kind, name)
    return array


def _check_index_range(array: np.ndarray[Any, Any], name: str) -> None:
    """Reject Python integers that JAX's default integer type cannot hold."""
    kind = jax.dtypes.canonicalize_dtype(array.dtype)
    if kind == array.dtype or not array.size:
        return
    low, high = _LIMITS[kind]
    for value in (array.min(), array.max()):
        if not low <= value <= high:
            raise ArgumentError(
                f"{name}: expected indices of {kind} (JAX without jax_enable_x64), got {value}, "
                f"which is out of range"
            )


def _typed(value: Traced, name: str) -> Traced:
    """Return an array of JAX, and refuse a type that the functions do not know."""
    kind = value.dtype if isinstance(value.dtype, np.dtype) else np.dtype("V1")  # keys have others
    as_operand(np.empty(0, kind), name)
    return value


class Namespace:
    """`anydml.functions._library.Library` for JAX.

    Without what only gradients of composed functions need, which JAX differentiates itself.
    `call` calls an array function on normalized operands.
    """

    knows_modes = in_memory = False

    def __init__(self, call: Callable[[FunctionSpec, Sequence[Traced], Any], Any]) -> None:
        self.call = call

    # ---- arguments

    def array(self, value: Any, name: str, like: Traced | None = None) -> Traced:
        """Convert to a type that JAX keeps; with `like`, lists of floats get its default type."""
        if isinstance(value, jax.Array):
            return _typed(value, name)
        reject_dask(value, name)
        array = to_counterpart(as_operand(value, name)[0])
        if like is not None and array.dtype.kind in "fc" and _arguments.is_untyped(value):
            array = array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
        return self.place(_in_jax_type(array, name))

    def place(self, array: Any) -> Traced:
        """Make an operand from an array of NumPy."""
        return jnp.asarray(array)

    def indices(self, value: Any, like: Traced, name: str = "indices") -> Traced:
        if not isinstance(value, jax.Array):
            reject_dask(value, name)
            array = _arguments.index_array(value, name)
            if _arguments.is_untyped(value):
                _check_index_range(array, name)
            return self.place(_in_jax_type(array, name))
        _arguments.index_array(np.empty(0, value.dtype), name)
        return value if value.dtype.itemsize >= 4 else value.astype(np.int32)

    def same_type(self, value: Any, like: Traced, name: str, like_name: str = "x") -> Traced:
        if isinstance(value, jax.Array):
            known = np.empty(0, value.dtype)
            _arguments.same_type(known, known, name, like, like_name)
            return _typed(value, name)
        reject_dask(value, name)
        array = _arguments.same_type(as_operand(value, name)[0], value, name, like, like_name)
        return self.place(array)

    def value_type(self, dtype: Any) -> Any:
        kind = _arguments.type_named(dtype)
        check_dtype(_EMPTY, kind, "dtype")
        return counterpart(kind, "dtype")

    def index_type(self, dtype: Any, x: Traced, sizes: Sequence[int]) -> Any:
        return _arguments.result_indices(dtype, x, sizes, None, "index_dtype")

    def promoted(self, values: Sequence[Any], name: str) -> list[Traced]:
        for i, value in enumerate(values):
            reject_dask(value, f"{name}[{i}]")
        parts = [
            value if isinstance(value, jax.Array) else as_operand(value, f"{name}[{i}]")[0]
            for i, value in enumerate(values)
        ]
        kind = libraries.promoted(_EMPTY, [part.dtype for part in parts], name)
        kind = counterpart(kind, name)
        return [
            self.astype(part, kind)
            if isinstance(part, jax.Array)
            else self.place(part.astype(kind))
            for part in parts
        ]

    # ---- shapes

    broadcast_shapes = staticmethod(np.broadcast_shapes)
    broadcast_to = staticmethod(jnp.broadcast_to)
    reshape = staticmethod(jnp.reshape)
    moveaxis = staticmethod(jnp.moveaxis)

    # ---- values

    def zeros(self, shape: Sequence[int], like: Traced) -> Traced:
        return jnp.zeros(shape, like.dtype)

    def arange(self, count: int, like: Traced) -> Traced:
        return jnp.arange(count, dtype=self.positions(jnp.zeros(0, like.dtype)).dtype)

    def positions(self, x: Traced) -> Traced:
        # Without 64-bit types there are no larger positions than 32 bits hold.
        if x.dtype.kind in "iu" and x.dtype.itemsize >= 4:
            return x
        return x.astype(jax.dtypes.canonicalize_dtype(np.int64))

    searchsorted = staticmethod(jnp.searchsorted)
    where = staticmethod(jnp.where)
    clip = staticmethod(jnp.clip)
    stack = staticmethod(jnp.stack)

    def concatenate(self, arrays: Sequence[Traced], axis: int) -> Traced:
        return lax.concatenate(arrays, axis)

    def is_real_or_complex(self, x: Traced) -> bool:
        return bool(jnp.issubdtype(x.dtype, jnp.inexact))

    def adjoint_weight(self, x: Traced) -> Traced:
        return x  # JAX transposes linear functions without conjugation

    # ---- operations that move elements

    def take(self, x: Traced, positions: Any, axis: int) -> Traced:
        return jnp.take(x, positions, axis=axis, mode="clip")

    def fill(self, x: Traced, axis: int, size: int, value: Any) -> Traced:
        return jnp.full_like(x, value, shape=(*x.shape[:axis], size, *x.shape[axis + 1 :]))

    def repeat(self, x: Traced, count: int, axis: int) -> Traced:
        return jnp.tile(x, (count, *(1,) * (x.ndim - 1 - axis)))

    # ---- programs

    def run(
        self, operator: Any, operands: Any, outputs: Any, attributes: Any, axes: Any, scratch: bool
    ) -> list[Traced]:
        limit = threads.get() or 0
        return custom_call(operator.KERNEL, operands, outputs, attributes, axes, limit)

    def full(self, shape: Sequence[int], value: Any, like: Any) -> Traced:
        return jnp.full(shape, value, like.dtype)

    def kept(self, x: Traced) -> Traced:
        return x  # nothing changes arrays of JAX

    def as_numbers(self, x: Traced) -> Traced:
        return x.astype(np.uint8) if x.dtype == np.bool_ else x

    def as_bools(self, x: Traced) -> Traced:
        return x != 0

    def astype(self, x: Traced, kind: Any) -> Traced:
        return lax.convert_element_type(x, kind)

    def wide_types(self) -> AbstractContextManager[Any]:
        return x64()

    def is_nonzero(self, x: Traced) -> Traced:
        # XLA flushes subnormal parts.
        bits = np.uint32 if x.dtype.itemsize == 8 else np.uint64
        first, second = (lax.bitcast_convert_type(part, bits) for part in (x.real, x.imag))
        return ((first | second) << 1) != 0


class HostNamespace(Namespace):
    """Operands of a compiled program: `jax.jit` makes arrays of NumPy's, after these checks.

    Arrays of JAX stay as they are, because the program checks them when it is traced.
    """

    def array(self, value: Any, name: str, like: Traced | None = None) -> Traced:
        return value if type(value) is ARRAY else super().array(value, name, like)

    def indices(self, value: Any, like: Traced, name: str = "indices") -> Traced:
        return value if type(value) is ARRAY else super().indices(value, like, name)

    def same_type(self, value: Any, like: Traced, name: str, like_name: str = "x") -> Traced:
        if type(value) is ARRAY:
            return value
        return super().same_type(value, like, name, like_name)

    def place(self, array: Any) -> Traced:
        return array if isinstance(array, np.ndarray) else jnp.asarray(array)

    def astype(self, x: Traced, kind: Any) -> Traced:
        return x  # the program converts it
