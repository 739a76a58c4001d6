"""PyTorch's operations by the names that the rules of `FunctionSpec` use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from anydml._native import INDEX_TYPES, NUMBERS
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.functions import _arguments
from anydml.functions._function import FunctionSpec
from anydml.libraries import as_operand, reject_dask
from anydml.libraries._torch import copy_to_tensor
from anydml.libraries._types import type_of
from anydml.torch._pytorch import Tensor, torch

is_compiling: Final[Any] = torch.compiler.is_compiling

# As a graph may hold them; other ways to name a type are looked up in eager mode.
_TYPES: Final[dict[Any, Any]] = {
    spelling: getattr(torch, name)
    for name in NUMBERS
    for spelling in (getattr(torch, name), name, name.upper(), getattr(np, name, name))
}


class Namespace:
    """`anydml.functions._library.Library`, which documents the methods, for PyTorch.

    `call` calls an array function on normalized operands.
    """

    knows_modes = False

    def __init__(self, call: Callable[[FunctionSpec, Sequence[Tensor], Any], Any]) -> None:
        self.call = call

    # ---- arguments

    def array(self, value: Any, name: str, like: Tensor | None = None) -> Tensor:
        """A copy of another library's array, which has no gradient.

        With `like`, lists of floats have PyTorch's default type.
        """
        if isinstance(value, torch.Tensor):
            return value
        if is_compiling():
            result = torch.as_tensor(value)
        else:
            reject_dask(value, name)
            result = copy_to_tensor(as_operand(value, name)[0], name)
            if like is not None and result.is_floating_point() and _arguments.is_untyped(value):
                result = result.to(torch.get_default_dtype())
        return result if like is None else result.to(like.device)

    def indices(self, value: Any, like: Tensor, name: str = "indices") -> Tensor:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, tuple) and not value:  # `lengths` of a call with other options
            return torch.empty(0, dtype=torch.int64, device=like.device)
        if is_compiling():
            return _traced_indices(value, name).to(like.device)
        reject_dask(value, name)
        return _beside(like, _arguments.index_array(value, name), name)

    def same_type(self, value: Any, like: Tensor, name: str, like_name: str = "x") -> Tensor:
        if isinstance(value, torch.Tensor):
            if value.dtype != like.dtype:
                raise ArgumentTypeError(
                    f"{name}: expected {_name(like.dtype)} (the type of {like_name}), got "
                    f"{_name(value.dtype)}"
                )
            return value
        if is_compiling():
            _check_fit(value, like.dtype, name)
            return torch.tensor(value, dtype=like.dtype, device=like.device)
        reject_dask(value, name)
        empty = np.empty(0, type_of(_name(like.dtype)))
        array = _arguments.same_type(as_operand(value, name)[0], value, name, empty, like_name)
        return _beside(like, array, name)

    def value_type(self, dtype: Any) -> Any:
        return _type(dtype, "dtype", NUMBERS)

    def index_type(self, dtype: Any, x: Tensor, sizes: Sequence[Any]) -> Any:
        if dtype is None:
            return torch.int64
        kind = _type(dtype, "index_dtype", INDEX_TYPES)
        maximum = torch.iinfo(kind).max
        if maximum < 2**48:
            for size in sizes:
                if size - 1 > maximum:
                    raise ArgumentError(
                        f"index_dtype: expected a type that holds positions up to {size - 1}, "
                        f"got {_name(kind)}"
                    )
        return kind

    def promoted(self, values: Sequence[Any], name: str) -> list[Tensor]:
        arrays = [self.array(value, f"{name}[{i}]") for i, value in enumerate(values)]
        kind = reduce(torch.promote_types, [x.dtype for x in arrays])
        return [x.to(kind) for x in arrays]

    # ---- shapes

    broadcast_shapes = staticmethod(torch.broadcast_shapes)
    broadcast_to = staticmethod(torch.broadcast_to)
    reshape = staticmethod(torch.reshape)
    moveaxis = staticmethod(torch.movedim)

    # ---- values

    def zeros(self, shape: Sequence[Any], like: Tensor) -> Tensor:
        return like.new_zeros(shape)

    def arange(self, count: Any, like: Tensor) -> Tensor:
        return torch.arange(count, device=like.device)

    def positions(self, x: Tensor) -> Tensor:
        return x.to(torch.int64)

    def searchsorted(self, x: Tensor, values: Tensor) -> Tensor:
        return torch.searchsorted(x.contiguous(), values)  # PyTorch warns of strides

    where = staticmethod(torch.where)
    clip = staticmethod(torch.clamp)
    stack = staticmethod(torch.stack)

    def concatenate(self, arrays: Sequence[Tensor], axis: int) -> Tensor:
        return torch.cat(list(arrays), axis)

    def flip(self, x: Tensor, axis: int) -> Tensor:
        return x.flip(axis)

    def place(self, x: Tensor, shape: Sequence[Any], axis: int, start: Any, step: int) -> Tensor:
        if x.is_complex():  # which slice_scatter does not differentiate
            parts = torch.view_as_real(x.resolve_conj())
            placed = self.place(parts, (*shape, 2), axis, start, step)
            return torch.view_as_complex(placed)
        end = start + (x.shape[axis] - 1) * step + 1 if x.shape[axis] else start
        return x.new_zeros(shape).slice_scatter(x, axis, start, end, step)

    def sum(self, x: Tensor, axes: Sequence[int]) -> Tensor:
        return x.sum(axes) if axes else x  # without axes, PyTorch adds up all

    def is_real_or_complex(self, x: Tensor) -> bool:
        return bool(x.is_floating_point() or x.is_complex())

    def adjoint_weight(self, x: Tensor) -> Tensor:
        # PyTorch's gradient is the direction of steepest ascent.
        return x.conj() if x.is_complex() else x


def _beside(like: Tensor, array: Any, name: str) -> Tensor:
    """Return a copy where `like` is; a number is filled in there, as CUDA graphs can have it."""
    copy = copy_to_tensor(array, name)
    if copy.ndim or copy.device == like.device:
        return copy.to(like.device)
    return copy.new_full((), copy.item(), device=like.device)


def _traced_indices(value: Any, name: str) -> Tensor:
    """Convert indices to a tensor while PyTorch traces."""
    found = torch.as_tensor(value)
    if found.numel() and (found.dtype == torch.bool or found.is_floating_point()):
        raise ArgumentTypeError(
            f"{name}: expected one of {', '.join(INDEX_TYPES)}, or a smaller integer type, got "
            f"{_name(found.dtype)}"
        )
    return found.to(torch.int64)


def _check_fit(value: Any, dtype: Any, name: str) -> None:
    """Refuse Python numbers that a tensor would not keep; in terms that torch.compile traces."""
    if isinstance(value, (list, tuple)):
        for member in value:
            _check_fit(member, dtype, name)
    elif isinstance(value, (int, float)) and not _fits(value, dtype):
        # torch.compile formats no number
        raise ArgumentTypeError(f"{name}: expected the type of x, got a number that does not fit")


def _fits(value: float, dtype: Any) -> bool:
    if isinstance(value, bool):
        return bool(dtype == torch.bool)
    if dtype == torch.bool:
        return value in (0, 1)
    if dtype.is_complex:
        return True
    if not dtype.is_floating_point:
        return bool(torch.iinfo(dtype).min <= value <= torch.iinfo(dtype).max and not value % 1)
    if dtype.itemsize == 1:  # no number but zero is known to fit
        return not value
    is_finite = value - value == 0
    return bool(not is_finite or abs(value) <= torch.finfo(dtype).max)


def _type(dtype: Any, argument: str, accepted: Sequence[str]) -> Any:
    kind = _TYPES.get(dtype) if isinstance(dtype, str | type | torch.dtype) else None
    if kind is None:  # NumPy's or this library's own, or none
        kind = _TYPES.get(_arguments.type_name(dtype))
    if kind is None or _name(kind) not in accepted:
        raise _arguments.unknown_type(dtype, argument, accepted)
    return kind


def _name(kind: Any) -> str:
    return str(kind).removeprefix("torch.")
