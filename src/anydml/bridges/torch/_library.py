"""The operators as PyTorch's dispatcher knows them, ``torch.ops.anydml``: schemas, kernels, shapes.

They take the rooms' own terms: an axis counted from the start, slabs by their sizes, a flag for
clamping. A kernel is the array function on plain tensors. What a fake or meta tensor becomes is the
room's `infer`, on sizes that may be symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from anydml.bridges.torch._pytorch import Tensor, torch
from anydml.errors import ArgumentError, ArgumentTypeError
from anydml.functions import _engine, gather, movers, rearranging, scatter, selection, slabs
from anydml.functions._arguments import INDEX_KINDS
from anydml.ops.cast import Cast
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.padding1 import Padding1
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.slice1 import Slice1
from anydml.ops.split import Split
from anydml.ops.tile import Tile
from anydml.ops.top_k import TopK1

Tensors = Sequence[Tensor]

NAMESPACE: Final = "anydml"
SCHEMAS: Final = (
    "top_k(Tensor x, SymInt k, int axis, bool largest, ScalarType index_dtype) -> (Tensor, Tensor)",
    "nonzero_coordinates(Tensor x, ScalarType index_dtype) -> Tensor",
    "gather(Tensor x, Tensor indices, int axis, bool clamp) -> Tensor",
    "gather_elements(Tensor x, Tensor indices, int axis, bool clamp) -> Tensor",
    "gather_nd(Tensor x, Tensor indices, int batch_dims, bool clamp) -> Tensor",
    "scatter_elements(Tensor x, Tensor indices, Tensor updates, int axis, str reduction, "
    "bool include_self) -> Tensor",
    "scatter_nd(Tensor x, Tensor indices, Tensor updates, str reduction, bool include_self) "
    "-> Tensor",
    "split(Tensor x, SymInt[] sizes, int axis) -> Tensor[]",
    "join(Tensor[] arrays, int axis) -> Tensor",
    "cast(Tensor x, ScalarType dtype) -> Tensor",
    "pad(Tensor x, SymInt[] starts, SymInt[] ends, str mode, Scalar constant) -> Tensor",
    "slice_window(Tensor x, SymInt[] starts, SymInt[] sizes, int[] strides) -> Tensor",
    "tile(Tensor x, SymInt[] repeats) -> Tensor",
    "reverse_subsequences(Tensor x, Tensor lengths, int axis) -> Tensor",
)

INDEX_TYPES: Final[Mapping[Any, Any]] = {getattr(torch, name): name for name in INDEX_KINDS}

library: Final[Any] = torch.library.Library(NAMESPACE, "DEF")
for schema in SCHEMAS:
    # Results are packed, whatever strides the inputs have, and kernels take any.
    library.define(schema, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout))


# ---- kernels: the functions, on tensors that ask for nothing ------------------------------------


def _top_k(x: Tensor, k: int, axis: int, largest: bool, index_dtype: Any) -> tuple[Tensor, Tensor]:
    kind = _index_name(index_dtype)
    result: tuple[Tensor, Tensor] = selection.top_k(
        x, k, axis=axis, largest=largest, index_dtype=kind
    )
    return result


def _nonzero_coordinates(x: Tensor, index_dtype: Any) -> Tensor:
    return selection.nonzero_coordinates(x, index_dtype=_index_name(index_dtype))


def _index_name(kind: Any) -> Any:
    if kind not in INDEX_TYPES:
        accepted = ", ".join(map(str, INDEX_TYPES))
        raise ArgumentTypeError(f"index_dtype: expected one of {accepted}, got {kind}")
    return INDEX_TYPES[kind]


def _mode(clamp: bool) -> Any:
    return "clamp" if clamp else "raise"


def _gather(x: Tensor, indices: Tensor, axis: int, clamp: bool) -> Tensor:
    return gather.gather(x, indices, axis=axis, mode=_mode(clamp))


def _gather_elements(x: Tensor, indices: Tensor, axis: int, clamp: bool) -> Tensor:
    return gather.gather_elements(x, indices, axis=axis, mode=_mode(clamp))


def _gather_nd(x: Tensor, indices: Tensor, batch_dims: int, clamp: bool) -> Tensor:
    return gather.gather_nd(x, indices, batch_dims=batch_dims, mode=_mode(clamp))


def _scatter_elements(
    x: Tensor, indices: Tensor, updates: Tensor, axis: int, reduction: Any, include_self: bool
) -> Tensor:
    return scatter.scatter_elements(
        x, indices, updates, axis=axis, reduction=reduction, include_self=include_self
    )


def _scatter_nd(
    x: Tensor, indices: Tensor, updates: Tensor, reduction: Any, include_self: bool
) -> Tensor:
    return scatter.scatter_nd(x, indices, updates, reduction=reduction, include_self=include_self)


def _split(x: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
    return list(slabs.split(x, list(sizes), axis=axis))


def _join(arrays: Tensors, axis: int) -> Tensor:
    return slabs.join(arrays, axis=axis)


def _cast(x: Tensor, dtype: Any) -> Tensor:
    return movers.cast(x, dtype)


def _pad(x: Tensor, starts: Any, ends: Any, mode: Any, constant: Any) -> Tensor:
    if len(starts) != len(ends):
        raise ArgumentError(f"ends: expected {len(starts)} (as starts has), got {len(ends)}")
    return movers.pad(x, [*zip(starts, ends, strict=True)], mode, constant)


def _slice_window(x: Tensor, starts: Any, sizes: Any, strides: Any) -> Tensor:
    return movers.slice_window(x, starts, sizes, strides)


def _tile(x: Tensor, repeats: Any) -> Tensor:
    return rearranging.tile(x, repeats)


def _reverse_subsequences(x: Tensor, lengths: Tensor, axis: int) -> Tensor:
    return rearranging.reverse_subsequences(x, lengths, axis=axis)


# ---- what stands for tensors: shapes by `infer` -------------------------------------------------


def _inferred(
    room: _engine.Room, tensors: Tensors, types: Sequence[Any], given: Mapping[str, Any]
) -> list[Tensor]:
    """Tensors of the shapes that the operator makes, on the first one's device."""
    operands: Sequence[Any] = tensors
    outputs = _engine.infer(room, operands, given).outputs
    pairs = zip(outputs, types, strict=True)
    return [tensors[0].new_empty(spec.shape, dtype=kind) for spec, kind in pairs]


def _like_first(
    room: _engine.Room, tensors: Tensors, given: Mapping[str, Any], count: int = 1
) -> list[Tensor]:
    return _inferred(room, tensors, [tensors[0].dtype] * count, given)


def _top_k_shapes(
    x: Tensor, k: int, axis: int, largest: bool, index_dtype: Any
) -> tuple[Tensor, Tensor]:
    values, indices = _inferred(TopK1, (x,), (x.dtype, index_dtype), {"axis": axis, "k": k})
    return values, indices


def _nonzero_shapes(x: Tensor, index_dtype: Any) -> Tensor:
    operands: Sequence[Any] = (x,)
    inferred = _engine.infer(NonzeroCoordinates, operands, {"columns": x.ndim})
    count = torch.library.get_ctx().new_dynamic_size()
    columns = inferred.outputs[1].shape[1]
    return x.new_empty((count, columns), dtype=index_dtype)


def _gather_shapes(x: Tensor, indices: Tensor, axis: int, clamp: bool) -> Tensor:
    return _like_first(Gather, (x, indices), {"axis": axis, "clamp": clamp})[0]


def _gather_elements_shapes(x: Tensor, indices: Tensor, axis: int, clamp: bool) -> Tensor:
    return _like_first(GatherElements, (x, indices), {"axis": axis, "clamp": clamp})[0]


def _gather_nd_shapes(x: Tensor, indices: Tensor, batch_dims: int, clamp: bool) -> Tensor:
    return _like_first(GatherND, (x, indices), {"batch_dims": batch_dims, "clamp": clamp})[0]


def _scatter_elements_shapes(
    x: Tensor, indices: Tensor, updates: Tensor, axis: int, reduction: str, include_self: bool
) -> Tensor:
    return _like_first(Scatter, (x, indices, updates), {"axis": axis})[0]


def _scatter_nd_shapes(
    x: Tensor, indices: Tensor, updates: Tensor, reduction: str, include_self: bool
) -> Tensor:
    return _like_first(ScatterND, (x, indices, updates), {})[0]


def _split_shapes(x: Tensor, sizes: Sequence[int], axis: int) -> list[Tensor]:
    return _like_first(Split, (x,), {"axis": axis, "sizes": sizes}, len(sizes))


def _join_shapes(arrays: Tensors, axis: int) -> Tensor:
    return _like_first(Join, arrays, {"axis": axis})[0]


def _cast_shapes(x: Tensor, dtype: Any) -> Tensor:
    return _inferred(Cast, (x,), (dtype,), {"to": movers.type_named(dtype)})[0]


def _pad_shapes(
    x: Tensor, starts: Sequence[int], ends: Sequence[int], mode: str, constant: Any
) -> Tensor:
    return _like_first(Padding1, (x,), {"starts": starts, "ends": ends, "mode": mode})[0]


def _slice_shapes(
    x: Tensor, starts: Sequence[int], sizes: Sequence[int], strides: Sequence[int]
) -> Tensor:
    given = {"starts": starts, "sizes": sizes, "strides": strides}
    return _like_first(Slice1, (x,), given)[0]


def _tile_shapes(x: Tensor, repeats: Sequence[int]) -> Tensor:
    return _like_first(Tile, (x,), {"repeats": repeats})[0]


def _reverse_shapes(x: Tensor, lengths: Tensor, axis: int) -> Tensor:
    return _like_first(ReverseSubsequences, (x, lengths), {"axis": axis})[0]


KERNELS: Final[Mapping[str, tuple[Callable[..., Any], Callable[..., Any]]]] = {
    "top_k": (_top_k, _top_k_shapes),
    "nonzero_coordinates": (_nonzero_coordinates, _nonzero_shapes),
    "gather": (_gather, _gather_shapes),
    "gather_elements": (_gather_elements, _gather_elements_shapes),
    "gather_nd": (_gather_nd, _gather_nd_shapes),
    "scatter_elements": (_scatter_elements, _scatter_elements_shapes),
    "scatter_nd": (_scatter_nd, _scatter_nd_shapes),
    "split": (_split, _split_shapes),
    "join": (_join, _join_shapes),
    "cast": (_cast, _cast_shapes),
    "pad": (_pad, _pad_shapes),
    "slice_window": (_slice_window, _slice_shapes),
    "tile": (_tile, _tile_shapes),
    "reverse_subsequences": (_reverse_subsequences, _reverse_shapes),
}
"""Of each operator: what runs on memory, and what finds shapes."""


def may_move() -> bool:
    """Whether tensors may have a tangent now (torch.autograd.forward_ad, torch.func.jvp)."""
    functorch = torch._C._functorch
    level = functorch.peek_interpreter_stack()
    moves = level is not None and level.key() == functorch.TransformType.Jvp
    return bool(moves or torch.autograd.forward_ad._current_level >= 0)


def _unasked(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel on the same memory, without the gradient or tangent that was asked for."""

    def run(*given: Any) -> Any:
        return kernel(*map(_detached, given))

    return run


def _detached(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach() if value.requires_grad or may_move() else value
    if isinstance(value, list) and value and isinstance(value[0], torch.Tensor):
        return [_detached(member) for member in value]
    return value


for name, (kernel, shapes) in KERNELS.items():
    for key in ("CPU", "CUDA"):
        library.impl(name, _unasked(kernel), key)
    torch.library.register_fake(f"{NAMESPACE}::{name}", shapes, lib=library)

ops: Final[Any] = torch.ops.anydml
"""The operators, to be called."""
