"""JAX arrays, on the CPU and on NVIDIA GPUs, for calls that need their memory.

JAX does not expose its streams. A call therefore waits for its operands, and returns a result when
its work has run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np

from anydml._native import native
from anydml.core.errors import ArgumentTypeError
from anydml.libraries import _dlpack
from anydml.libraries._base import Array, Wrap, class_of, unreadable
from anydml.libraries._device import DeviceArray, Shape, packed_strides
from anydml.libraries._types import counterpart, dtype_name, is_added, own_type, to_counterpart


def owns(value: Any) -> bool:
    """Whether the value is an array or a tracer of JAX."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib") and (
        hasattr(value, "__dlpack__") or is_tracer(value)
    )


def as_operand(value: Any, name: str) -> tuple[Array, Wrap]:
    """The array as a NumPy array that cannot be written; tracers are refused."""
    if is_tracer(value):
        raise ArgumentTypeError(
            f"{name}: expected an array with memory, got a tracer (jax.jit, vmap or grad); call "
            f"outside of it, or inside through jax.pure_callback(function, shape_and_dtype, ..)"
        )
    if value.is_deleted():
        raise ArgumentTypeError(
            f"{name}: expected an array with memory, got one that was deleted or donated"
        )
    if _on_gpu(value):
        array: Any = _from_cuda(value, name)
        return array, from_device_array
    _dlpack.on_host(value, name)
    try:
        array = np.asarray(value)
    except Exception as error:  # deleted, donated, not addressable: whatever JAX raises
        raise unreadable(name, error) from error
    return array, partial(_wrap, value)


def index_type() -> np.dtype[Any]:
    """JAX's own default integer: int64 with jax_enable_x64, else int32."""
    jax: Any = sys.modules["jax"]
    kind: np.dtype[Any] = jax.dtypes.canonicalize_dtype(np.int64)
    return kind


def check_dtype(dtype: np.dtype[Any], name: str) -> None:
    """Refuse 64 bits where JAX has them not: it would make them 32 without a word."""
    jax: Any = sys.modules["jax"]
    kind = counterpart(dtype, name)
    if jax.dtypes.canonicalize_dtype(kind) != kind:
        raise ArgumentTypeError(
            f"{name}: expected a type that JAX has, got {dtype_name(dtype)}; "
            f"64 bits need jax.config.update('jax_enable_x64', True)"
        )


def promoted(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """JAX's rules: an integer and a float give the float."""
    jax: Any = sys.modules["jax"]
    kinds = [counterpart(dtype, "arrays") for dtype in dtypes]
    return own_type(np.dtype(reduce(jax.numpy.promote_types, kinds)))


def _wrap(like: Any, array: Array) -> Any:
    """A result as an array of JAX: on the device of another one, committed to it where that is."""
    jax: Any = sys.modules["jax"]
    check_dtype(array.dtype, "result")
    device = like.sharding if like.committed else None
    return jax.device_put(
        to_counterpart(array), device, may_alias=True
    )  # nothing else writes to it


def _on_gpu(value: Any) -> bool:
    try:
        kind, _ = value.__dlpack_device__()
    except Exception:  # any JAX error; the general path reports it
        return False
    return int(kind) == _dlpack.CUDA


def _from_cuda(value: Any, name: str) -> DeviceArray:
    try:
        value.block_until_ready()
        _, device = map(int, value.__dlpack_device__())
        bits = _as_bits(value)
        address = int(bits.__cuda_array_interface__["data"][0])
    except Exception as error:  # deleted, donated, on several devices: whatever JAX raises
        raise unreadable(name, error) from error
    return _placed(address, value.dtype, value.shape, device, bits, writeable=False)


def _as_bits(value: Any) -> Any:
    """A copy as integers of the same bits if NumPy has no such type."""
    if not is_added(own_type(value.dtype)):
        return value
    jax: Any = sys.modules["jax"]
    bits = jax.lax.bitcast_convert_type(value, np.dtype(f"u{value.dtype.itemsize}"))
    return bits.block_until_ready()


def _placed(
    address: int, kind: Any, shape: Shape, device: int, owner: Any, writeable: bool
) -> DeviceArray:
    dtype = own_type(np.dtype(kind))
    strides = packed_strides(shape, dtype.itemsize)

    def make(shape: Shape, like: np.dtype[Any]) -> DeviceArray:
        size = prod(shape) * like.itemsize
        buffer = native.cuda.Buffer(device, size, 0)
        return _placed(buffer.address, like, shape, device, buffer, writeable=True)

    return DeviceArray(address, dtype, shape, strides, device, 0, owner, make,
                       writeable)  # fmt: skip


def from_device_array(array: Any) -> Any:
    """A packed array on a GPU as one of JAX, of the same memory."""
    jax: Any = sys.modules["jax"]
    check_dtype(array.dtype, "result")
    return jax.dlpack.from_dlpack(_dlpack.Exported(array))


def is_tracer(value: Any) -> bool:
    """Whether the value stands for an array inside of jit, vmap or grad."""
    return isinstance(value, class_of("jax.core", "Tracer"))
