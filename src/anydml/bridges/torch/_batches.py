"""`torch.vmap` of the operators: one call on all batches, with one axis more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from anydml.bridges.torch._gradients import with_batches
from anydml.bridges.torch._library import NAMESPACE, library, ops
from anydml.bridges.torch._pytorch import Tensor, torch
from anydml.errors import ArgumentTypeError

Batched = tuple[Any, Any]
"""A result, and where its axis of batches is."""


def _first(tensor: Tensor, dim: int | None, count: int) -> Tensor:
    """The tensor with its batches on the first axis; over and over where it has none."""
    if dim is None:
        return tensor.unsqueeze(0).expand(count, *tensor.shape)
    return tensor.movedim(dim, 0)


def _all_first(info: Any, dims: Sequence[Any], tensors: Sequence[Tensor]) -> list[Tensor]:
    pairs = zip(tensors, dims, strict=True)
    return [_first(tensor, dim, info.batch_size) for tensor, dim in pairs]


def _top_k(info: Any, dims: Any, x: Tensor, k: int, axis: int, *given: Any) -> Batched:
    return ops.top_k(x.movedim(dims[0], 0), k, axis + 1, *given), (0, 0)


def _nonzero_coordinates(info: Any, dims: Any, *given: Any) -> Batched:
    raise ArgumentTypeError(
        "x: expected a tensor that is not batched (torch.vmap), as how many elements are not zero "
        "differs between batches; call outside of it"
    )


def _gather(info: Any, dims: Any, x: Tensor, indices: Tensor, axis: int, clamp: bool) -> Batched:
    if dims[1] is None:
        return ops.gather(x.movedim(dims[0], 0), indices, axis + 1, clamp), 0
    if dims[0] is None:
        return ops.gather(x, indices.movedim(dims[1], 0), axis, clamp), axis
    x, indices = _all_first(info, dims[:2], (x, indices))
    rank = indices.ndim - 1
    slices = ops.gather_nd(x.movedim(axis + 1, 1), indices.unsqueeze(-1), 1, clamp)
    behind = tuple(range(1, rank + 1))
    return slices.movedim(behind, tuple(i + axis for i in behind)), 0


def _gather_elements(
    info: Any, dims: Any, x: Tensor, indices: Tensor, axis: int, clamp: bool
) -> Batched:
    x, indices = _all_first(info, dims[:2], (x, indices))
    return ops.gather_elements(x, indices, axis + 1, clamp), 0


def _gather_nd(
    info: Any, dims: Any, x: Tensor, indices: Tensor, batch_dims: int, clamp: bool
) -> Batched:
    x, indices = _all_first(info, dims[:2], (x, indices))
    return ops.gather_nd(x, indices, batch_dims + 1, clamp), 0


def _scatter_elements(
    info: Any, dims: Any, x: Tensor, indices: Tensor, updates: Tensor, axis: int, *given: Any
) -> Batched:
    operands = _all_first(info, dims[:3], (x, indices, updates))
    return ops.scatter_elements(*operands, axis + 1, *given), 0


def _scatter_nd(
    info: Any, dims: Any, x: Tensor, indices: Tensor, updates: Tensor, *given: Any
) -> Batched:
    x, indices, updates = _all_first(info, dims[:3], (x, indices, updates))
    return ops.scatter_nd(x, with_batches(indices, 1), updates, *given), 0


def _split(info: Any, dims: Any, x: Tensor, sizes: Sequence[int], axis: int) -> Batched:
    return ops.split(x.movedim(dims[0], 0), sizes, axis + 1), [0] * len(sizes)


def _join(info: Any, dims: Any, arrays: Sequence[Tensor], axis: int) -> Batched:
    return ops.join(_all_first(info, dims[0], arrays), axis + 1), 0


def _cast(info: Any, dims: Any, x: Tensor, dtype: Any) -> Batched:
    return ops.cast(x, dtype), dims[0]


def _pad(
    info: Any, dims: Any, x: Tensor, starts: Sequence[int], ends: Sequence[int], *given: Any
) -> Batched:
    return ops.pad(x.movedim(dims[0], 0), [0, *starts], [0, *ends], *given), 0


def _slice_window(
    info: Any, dims: Any, x: Tensor, starts: Any, sizes: Any, strides: Any
) -> Batched:
    window = ([0, *starts], [info.batch_size, *sizes], [1, *strides])
    return ops.slice_window(x.movedim(dims[0], 0), *window), 0


def _tile(info: Any, dims: Any, x: Tensor, repeats: Sequence[int]) -> Batched:
    return ops.tile(x.movedim(dims[0], 0), [1, *repeats]), 0


def _reverse_subsequences(info: Any, dims: Any, x: Tensor, lengths: Tensor, axis: int) -> Batched:
    return ops.reverse_subsequences(*_all_first(info, dims[:2], (x, lengths)), axis + 1), 0


_RULES: Final[dict[str, Callable[..., Batched]]] = {
    "top_k": _top_k,
    "nonzero_coordinates": _nonzero_coordinates,
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "split": _split,
    "join": _join,
    "cast": _cast,
    "pad": _pad,
    "slice_window": _slice_window,
    "tile": _tile,
    "reverse_subsequences": _reverse_subsequences,
}

for name, rule in _RULES.items():
    torch.library.register_vmap(f"{NAMESPACE}::{name}", rule, lib=library)
