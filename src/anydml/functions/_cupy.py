"""The array functions on CuPy's arrays: native calls on memory that public attributes describe.

A call that is unusual in any way, or wrong, takes the general path, which says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import cupy
import numpy as np

from anydml._native import native
from anydml.core.errors import AnyDMLError
from anydml.functions._function import FunctionSpec

Caller = Callable[[tuple[Any, ...], Any], Any]

# CuPy's types by their codes, and the other way; other packages' once they have been seen.
_TYPES: Final = {
    native.type_code(dtype): dtype
    for dtype in map(np.dtype, ("?", *"bhilqBHILQefdFD"))
    if native.type_code(dtype) is not None
}
_CODES: Final = {dtype: code for code, dtype in _TYPES.items()}


class _UnusualError(Exception):
    """A call that the general path takes."""


class _Namespace:
    """The few operations of `Library` that usual calls need, for CuPy's own arrays."""

    broadcast_to = staticmethod(cupy.broadcast_to)

    def __getattr__(self, name: str) -> Any:
        raise _UnusualError

    def array(self, value: Any, name: str, like: Any = None) -> Any:
        if type(value) is not cupy.ndarray:
            raise _UnusualError
        return value

    def indices(self, value: Any, like: Any, name: str = "indices") -> Any:
        return self.array(value, name)  # the native call checks the type

    def same_type(self, value: Any, like: Any, name: str, like_name: str = "x") -> Any:
        return self.array(value, name)  # the native call compares the types

    def value_type(self, dtype: Any) -> Any:
        return dtype  # the native call knows types that the general path has understood

    def index_type(self, dtype: Any, x: Any, sizes: Sequence[Any]) -> Any:
        return dtype  # the native call knows None: int64, NumPy's own


_NAMESPACE: Final = _Namespace()


def _block(x: Any) -> tuple[Any, ...]:
    code = _CODES.get(x.dtype)
    if code is None:
        code = native.type_code(x.dtype)
        if code is None:
            raise _UnusualError
        _CODES[x.dtype], _TYPES[code] = code, x.dtype
    return code, x.shape, x.strides, 1, x.data.ptr, 0, -1, x


def _make(code: int, shape: tuple[int, ...]) -> tuple[Any, int]:
    result = cupy.empty(shape, _TYPES[code])
    return result, result.data.ptr


def call_of(spec: FunctionSpec, general: Caller) -> Caller:
    """Return the call of a function with CuPy's arrays; `general` takes unusual calls."""
    run = native.memory_call(spec.operator.KERNEL, spec.result_class)
    defaults = tuple(a.default for a in spec.attributes if a.default is not None)
    count = len(spec.attributes) - len(defaults)

    def call_kernel(arguments: tuple[Any, ...], out: Any) -> Any:
        if not (out is None or spec.is_single or isinstance(out, list | tuple)):
            return None
        outs = () if out is None else (out,) if spec.is_single else tuple(out)
        try:
            operands, attributes, is_scalar = spec.prepare(_NAMESPACE, *arguments)
            blocks: Any = [_block(x) for x in operands]
            out_blocks = [_block(_NAMESPACE.array(x, "out")) for x in outs]
        except (_UnusualError, AnyDMLError, ValueError):  # the last one: of CuPy
            return None
        values = (*attributes.values(),)
        device = operands[0].device.id
        here = device == cupy.cuda.runtime.getDevice()
        if not here or is_scalar or any(x.device.id != device for x in (*operands, *outs)):
            return None
        if values[count:] != defaults:  # attributes that the kernel does not have
            return None
        place = device, cupy.cuda.get_current_stream().ptr
        operand_blocks = [blocks] if spec.lists_operands else blocks
        written = None if out is None else out_blocks[0] if spec.is_single else out_blocks
        result = run(written, place, _make, *operand_blocks, *values[:count])
        if out is None or result is None:
            return result
        return out if spec.is_single else spec.finished(outs)

    def call(arguments: tuple[Any, ...], out: Any) -> Any:
        # An iterator can be read once only.
        if not any(hasattr(value, "__next__") for value in (*arguments, out)):
            try:
                result = call_kernel(arguments, out)
            except MemoryError:
                result = None  # the general path says how much for what
            if result is not None:
                return result
        return general(arguments, out)

    return call
