"""JAX arrays, on the CPU and on NVIDIA GPUs.

JAX tells nobody its streams: what is in an array is waited for, and a result is handed over when
its work has run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache, partial, reduce
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from anydml._native import native
from anydml.arrays import _dlpack
from anydml.arrays._base import Array, Wrap, class_of, unnoticed, unreadable
from anydml.arrays._device import DeviceArray, Shape, address_of, packed_strides
from anydml.arrays._types import DLPACK_CODES, counterpart, dtype_name, is_added, own_type
from anydml.errors import ArgumentTypeError

written = unnoticed


def owns(value: Any) -> bool:
    """Whether the value is an array or a tracer of JAX."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib") and (
        hasattr(value, "__dlpack__") or is_tracer(value)
    )


def adopt(value: Any, name: str) -> tuple[Array, Wrap]:
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
        there: Any = _from_cuda(value, name)
        return there, _wrap_cuda
    _dlpack.on_host(value, name)
    kind: Any = type(value)
    _offer(kind)
    try:
        array = np.asarray(value)
    except Exception as error:  # deleted, donated, not addressable: whatever JAX raises
        raise unreadable(name, error) from error
    return array, _wrap


@cache
def _offer(kind: type) -> None:
    """Tell the quick calls how JAX makes an array of a capsule, where it does it as expected.

    `jax.dlpack.from_dlpack` calls the same function, and takes three times as long about it.
    """
    jax: Any = sys.modules["jax"]
    make = getattr(sys.modules[kind.__module__], "dlpack_managed_tensor_to_buffer", None)
    if make is None or kind.__name__ != "ArrayImpl":
        return
    try:
        device = jax.local_devices(backend="cpu")[0]
        made = make(np.arange(3, dtype=np.int32).__dlpack__(), device, None)
        known = type(made) is kind and np.asarray(made).tolist() == [0, 1, 2]
        known = known and isinstance(jax.config.jax_enable_x64, bool)
    except Exception:  # another version of JAX: results are made by its public function
        return
    if known:
        native.take_jax(kind, make, device, jax.config)
        native.take_jax_split(partial(_split_program, device))


def _split_program(device: Any, value: Any, sizes: Sequence[int], axis: int) -> Any:
    """What splits arrays like this one, compiled by JAX; None for one of another device.

    Its results are as those that come by DLPack: committed to the device, of no weak type.
    """
    if value.devices() != {device}:
        return None
    jax: Any = sys.modules["jax"]
    ends = list(accumulate(sizes))

    def parts(x: Any) -> Any:
        return tuple(jax.lax.slice_in_dim(x, end - size, end, axis=axis)
                     for size, end in zip(sizes, ends, strict=True))  # fmt: skip

    here = jax.sharding.SingleDeviceSharding(device)
    like = jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=here)
    return jax.jit(parts, out_shardings=here).lower(like).compile()


@cache
def _offer_gpu(kind: Any, number: int) -> None:
    """The same for arrays on a GPU."""
    jax: Any = sys.modules["jax"]
    make: Any = getattr(sys.modules[kind.__module__], "dlpack_managed_tensor_to_buffer", None)
    if make is None:
        return
    try:
        device = next(d for d in jax.local_devices() if d.local_hardware_id == number)
        buffer = native.cuda.Buffer(number, 12, 0)
        capsule = native.cuda.dlpack(buffer, buffer.address, number, _CODES["i"], 32, [3])
        made = make(capsule, device, None)
        known = type(made) is kind and made.unsafe_buffer_pointer() == buffer.address
        known = known and tuple(map(int, made.__dlpack_device__())) == (_CUDA, number)
    except Exception:  # another version of JAX
        return
    if known:
        native.take_jax_gpu(number, device)


def index_type() -> np.dtype[Any]:
    """JAX's own default integer: int64 with jax_enable_x64, else int32."""
    jax: Any = sys.modules["jax"]
    kind: np.dtype[Any] = jax.dtypes.canonicalize_dtype(np.int64)
    return kind


def keep(dtype: np.dtype[Any], name: str) -> None:
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


def _wrap(array: Array) -> Any:
    jax: Any = sys.modules["jax"]
    keep(array.dtype, "result")
    # NumPy hands out types of its own only.
    return jax.numpy.from_dlpack(_Exported(array) if is_added(array.dtype) else array)


def _on_gpu(value: Any) -> bool:
    try:
        kind, _ = value.__dlpack_device__()
    except Exception:  # whatever JAX raises: it is told by the general way
        return False
    return int(kind) == _CUDA


_CPU = 1  # kDLCPU
_CUDA = 2  # kDLCUDA
_HOST = -1  # as the number of a device
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}  # DLPack's codes of NumPy's kinds


def _from_cuda(value: Any, name: str) -> DeviceArray:
    try:
        value.block_until_ready()
        address = int(value.unsafe_buffer_pointer())
        _, device = map(int, value.__dlpack_device__())
    except Exception as error:  # deleted, donated, on several devices: whatever JAX raises
        raise unreadable(name, error) from error
    kind: Any = type(value)
    _offer(kind)
    _offer_gpu(kind, device)
    return _placed(address, value.dtype, value.shape, device, value, writeable=False)


def _placed(
    address: int, kind: Any, shape: Shape, device: int, owner: Any, writeable: bool
) -> DeviceArray:
    dtype = own_type(np.dtype(kind))
    strides = packed_strides(shape, dtype.itemsize)

    def make(wanted: Shape, like: np.dtype[Any]) -> DeviceArray:
        size = prod(wanted) * like.itemsize
        buffer = native.cuda.Buffer(device, size, 0)
        return _placed(buffer.address, like, wanted, device, buffer, writeable=True)

    return DeviceArray(address, dtype, shape, strides, device, 0, owner, make,
                       writeable)  # fmt: skip


class _Exported:
    """A result as a producer of DLPack; packed, on the host or on a GPU."""

    def __init__(self, array: Array | DeviceArray) -> None:
        self._array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        array = self._array
        if isinstance(array, DeviceArray):
            return _CUDA, array.device
        return _CPU, 0

    def __dlpack__(self, **how: Any) -> Any:
        array, device, owner = self._array, _HOST, self._array
        if isinstance(array, DeviceArray):
            native.cuda.synchronize(array.device, array.stream)
            device, owner = array.device, array.owner
        kind = array.dtype
        code = DLPACK_CODES[dtype_name(kind)] if is_added(kind) else _CODES[kind.kind]
        return native.cuda.dlpack(owner, address_of(array), device, code, 8 * kind.itemsize,
                                  list(array.shape))  # fmt: skip


def _wrap_cuda(array: Any) -> Any:
    jax: Any = sys.modules["jax"]
    keep(array.dtype, "result")
    return jax.dlpack.from_dlpack(_Exported(array))


def is_tracer(value: Any) -> bool:
    """Whether the value stands for an array inside of jit, vmap or grad."""
    return isinstance(value, class_of("jax.core", "Tracer"))
