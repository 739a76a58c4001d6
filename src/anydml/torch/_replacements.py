"""The replacements of PyTorch's operators in `deterministic`, by array functions.

A replacement takes the operator's own arguments. One of an operator that writes changes its first
argument, which is a copy where the operator is not in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from anydml._native import NUMBERS, REDUCTIONS
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.functions import _public as functions
from anydml.torch._memory import is_plain
from anydml.torch._pytorch import Tensor, torch

Pair = tuple[Tensor, Tensor]

_top_k: Final[Any] = functions.top_k
_elements: Final[Any] = functions.scatter_elements
_blocks: Final[Any] = functions.scatter_nd

_KERNEL_TYPES: Final = frozenset(getattr(torch, name) for name in ("bool", *NUMBERS))
_MOVED_TYPES: Final = _KERNEL_TYPES | {torch.complex64, torch.complex128}

# PyTorch's words for reductions.
_REDUCTIONS: Final = {theirs: own for own, theirs in REDUCTIONS.items()} | {"multiply": "mul"}


# ---- types that kernels lack --------------------------------------------------------------------


def _bits(x: Tensor) -> Tensor:
    """View the elements as a type that kernels move."""
    if x.dtype in _MOVED_TYPES:
        return x
    if x.dtype == torch.complex32:
        return x.view(torch.int32)
    if x.element_size() != 1 or x.is_quantized:  # floats of 8 bits
        raise _no_kernel(x)
    return x.view(torch.uint8)


def _numbers(x: Tensor) -> Tensor:
    """Convert to a type that kernels compare and combine."""
    if x.dtype in _KERNEL_TYPES:
        return x
    if x.is_floating_point() and x.element_size() == 1:
        return x.to(torch.float32)
    raise _no_kernel(x)


def _terms(x: Tensor) -> Tensor:
    """Convert to a type that kernels add and multiply."""
    if x.is_complex():
        return x.to(torch.complex64) if x.dtype == torch.complex32 else x
    return _numbers(x)


def _no_kernel(x: Tensor) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"deterministic: expected a type that has a kernel ({', '.join(NUMBERS)}, bool, "
        f"complex64 and complex128 in sums and products), got {x.dtype}"
    )


# ---- selection ----------------------------------------------------------------------------------


def _chosen(x: Tensor, k: Any, dim: int, largest: bool) -> Pair:
    x = x.detach()
    values, indices = _top_k(_numbers(x), k, axis=dim, largest=largest)
    if values.dtype != x.dtype:
        values = values.to(x.dtype)
    return values, indices


def _topk(x: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    return _chosen(x, k, dim, largest)


def _sort(x: Tensor, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Pair:
    values, indices = _chosen(x, x.shape[dim] if x.ndim else 1, dim, descending)
    strides = torch.empty_like(x, device="meta").stride()
    return _laid_out(values, strides), _laid_out(indices, strides)


def _nonzero(x: Tensor) -> Tensor:
    found = _coordinates(x)
    return _laid_out(found, (1, len(found)))  # PyTorch's coordinates of one axis are contiguous


def _laid_out(x: Tensor, strides: tuple[int, ...]) -> Tensor:
    if x.stride() == strides:
        return x
    return torch.empty_strided(x.shape, strides, dtype=x.dtype, device=x.device).copy_(x)


def _coordinates(x: Tensor) -> Any:
    x = x.detach()
    return functions.nonzero_coordinates(x if x.dtype in _MOVED_TYPES else x != 0)


# ---- scatters -----------------------------------------------------------------------------------


def _write(
    scatter: Any, x: Tensor, index: Tensor, updates: Tensor, reduction: str, include_self: bool
) -> None:
    """Scatter updates into `x`, which a kernel does in place if it can."""
    updates, keywords = updates.detach(), {"reduction": reduction, "include_self": include_self}
    if is_plain(x, index, updates):
        scatter(x, index, updates, out=x, **keywords)
    else:
        x.copy_(scatter(x, index, updates, **keywords))


def _combine(
    scatter: Any, x: Tensor, index: Tensor, updates: Tensor, reduce: str, include_self: bool
) -> None:
    """Scatter into a tensor of any type, by any reduction, with what kernels have."""
    reduction = _REDUCTIONS.get(reduce, reduce)
    if reduction == "none":
        _write(scatter, _bits(x), index, _bits(updates), "none", True)
    elif reduction == "mean" and not (x.is_floating_point() or x.is_complex()):
        x.copy_(_mean(scatter, x, index, updates, include_self))
    else:
        wide = _numbers(x) if reduction in ("min", "max") else _terms(x)
        _write(scatter, wide, index, updates.to(wide.dtype), reduction, include_self)
        if wide is not x:
            x.copy_(wide)


def _mean(scatter: Any, x: Tensor, index: Tensor, updates: Tensor, include_self: bool) -> Tensor:
    """Scatter by means of integers as PyTorch has them: sums and counts of small ones wrap."""
    counts = torch.zeros_like(x, dtype=torch.int64)
    _write(scatter, counts, index, counts.new_ones(()), "add", True)
    total, parts = _numbers(x).clone(), (counts + include_self).to(x.dtype)
    _write(scatter, total, index, updates.to(total.dtype), "add", include_self)
    means = torch.div(total, parts.masked_fill(parts == 0, 1), rounding_mode="floor")
    return torch.where(counts > 0, means.to(x.dtype), x)


# Along an axis, as torch.scatter has it: an index for each update.


def _scatter(
    x: Tensor, dim: int, index: Tensor, src: Any, reduce: str = "none", include_self: bool = True
) -> None:
    if not index.numel():
        return
    if not isinstance(src, torch.Tensor):
        src = x.new_full((), src)
    if x.ndim == 0:
        x, index, src = x.reshape(1), index.reshape(-1), src.reshape(-1)
    if not index.ndim:
        index = index.reshape(1)
    if src.ndim != index.ndim and src.numel() == 1:
        src = src.expand(index.shape)
    elif src.shape != index.shape:  # of a larger source, the beginning
        src = src[tuple(slice(size) for size in index.shape)]
    _combine(partial(_elements, axis=dim), x, index, src, reduce, include_self)


# Slices along an axis, by one list of indices.


def _slices(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str = "none",
    include_self: bool = True,
) -> None:  # fmt: skip
    if x.ndim == 0:
        x, dim, source = x.reshape(1), 0, source.reshape(-1)
    if source.ndim == 0:
        source = source.reshape([1] * x.ndim)
    index = index.reshape(-1).unsqueeze(-1)
    _combine(_blocks, x.movedim(dim, 0), index, source.movedim(dim, 0), reduce, include_self)


def _scaled(source: Tensor, alpha: Any) -> Tensor:
    if alpha == 1:
        return source
    factor = source.new_full((), alpha)  # refuses what PyTorch does, truncates as it does
    # Of 16-bit floats, PyTorch does not round the factor.
    return source * (alpha if source.is_floating_point() else factor)


def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> None:
    _slices(x, dim, index, _scaled(source, alpha), "add")


# By index tensors and masks, as x[indices] = values has it.


def _index_put(
    x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False,
    unsafe: bool = False,
) -> None:  # fmt: skip
    axes: list[int] = []
    columns: list[Tensor] = []
    position = 0
    for index in indices:
        if index is None:
            position += 1
            continue
        here = index.to(x.device)
        masks = here.dtype in (torch.bool, torch.uint8)
        found = _coordinates(here).unbind(1) if masks else (here.to(torch.int64),)
        for column in found:
            axes.append(position)
            columns.append(column)
            position += 1
    if not axes:
        raise ArgumentError("indices: expected at least one tensor, got none")
    columns = list(torch.broadcast_tensors(*columns))
    shape, front = columns[0].shape, len(axes)
    rest = [axis for axis in range(x.ndim) if axis not in axes]
    lined_up = axes == list(range(axes[0], axes[0] + front))
    before = axes[0] if lined_up else 0
    sizes = [x.shape[axis] for axis in rest]
    updates = values.expand((*sizes[:before], *shape, *sizes[before:]))
    updates = updates.movedim(tuple(range(before, before + len(shape))), tuple(range(len(shape))))
    reduce = "add" if accumulate else "none"
    _combine(_blocks, x.permute(*axes, *rest), torch.stack(columns, -1), updates, reduce, True)


def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> None:
    if index.numel() != source.numel():
        raise ArgumentError(f"source: expected {index.numel()} elements, got {source.numel()}")
    flat = x.reshape(-1)
    _scatter(flat, 0, index.reshape(-1), source.reshape(-1), "add" if accumulate else "none")
    if not x.is_contiguous():  # then `flat` may be a copy
        x.copy_(flat.reshape(x.shape))


def _embedding_backward(
    grad: Tensor, indices: Tensor, count: Any, padding: Any, by_frequency: bool
) -> Tensor:
    flat = indices.reshape(-1)
    rows = grad.reshape(-1, grad.shape[-1])
    if by_frequency:
        often = flat.new_zeros(count)
        _scatter(often, 0, flat, 1, "add")
        rows = rows / often[flat].unsqueeze(-1)
    summed = rows.new_zeros((count, grad.shape[-1]))
    _slices(summed, 0, flat, rows, "add")
    if 0 <= padding < count:
        summed[padding] = 0
    return summed


# ---- the table ----------------------------------------------------------------------------------


def _to(function: Callable[..., Any]) -> Callable[..., Any]:
    """The variant that writes to ``out=``."""

    def run(*arguments: Any, **keywords: Any) -> Any:
        names = ("values", "indices", "out")
        targets = [keywords.pop(name) for name in names if name in keywords]
        several = len(targets) > 1
        results = function(*arguments, **keywords)
        for target, result in zip(targets, results if several else (results,), strict=True):
            if target.shape != result.shape:
                target.resize_(result.shape)
            target.copy_(result)
        return tuple(targets) if several else targets[0]

    return run


def _on_copy(function: Callable[..., None], keeps_strides: bool) -> Callable[..., Tensor]:
    """The variant that returns a new tensor."""
    memory_format = torch.preserve_format if keeps_strides else torch.contiguous_format

    def run(x: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        result = x.detach().clone(memory_format=memory_format)
        function(result, *arguments, **keywords)
        return result

    return run


def _in_place(function: Callable[..., None]) -> Callable[..., Tensor]:
    """The variant that returns its first operand."""

    def run(x: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        function(x.detach(), *arguments, **keywords)
        return x

    return run


# The operator, its overloads, those that write to out=, those in place (None: it returns what it
# makes, and does not write to its first argument), and what replaces it.
_TABLE: Final = (
    ("topk", "default", "values", None, _topk),
    ("sort", "default stable", "values values_stable", None, _sort),
    ("nonzero", "default", "out", None, _nonzero),
    ("scatter", "src value reduce value_reduce",
     "src_out value_out reduce_out value_reduce_out", "src value reduce value_reduce", _scatter),
    ("scatter_add", "default", "out", "default", partial(_scatter, reduce="add")),
    ("scatter_reduce", "two", "two_out", "two", _scatter),
    ("index_add", "default", "out", "default", _index_add),
    ("index_copy", "default", "out", "default", _slices),
    ("index_reduce", "default", "out", "default", _slices),
    ("index_put", "default", "out", "default", _index_put),
    ("_unsafe_index_put", "default", "", "", _index_put),
    ("_index_put_impl", "", "", "default", _index_put),
    ("put", "default", "out", "default", _put),
    ("embedding_dense_backward", "default", "out", None, _embedding_backward),
)  # fmt: skip

_OPERATIONS: Final = {
    "_unsafe_index_put": "index_put",
    "_index_put_impl": "index_put",
    "embedding_dense_backward": "embedding",
}


class Replacement(NamedTuple):
    """A function that runs in place of an operator."""

    name: str
    """PyTorch's, without the mark of variants in place."""
    operation: str
    """The name that users know it by."""
    run: Callable[..., Any]
    """Takes the operator's arguments."""


def _table() -> dict[Any, Replacement]:
    found: dict[Any, Replacement] = {}
    for name, plain, to, in_place, replacement in _TABLE:
        run: Callable[..., Any] = replacement
        new = run if in_place is None else _on_copy(run, run in (_put, _index_put))
        variants = (
            (name, plain, new),
            (name, to, _to(new)),
            (f"{name}_", in_place, _in_place(run)),
        )
        for operator, overloads, variant in variants:
            for overload in (overloads or "").split():
                overloaded = getattr(getattr(torch.ops.aten, operator), overload)
                found[overloaded] = Replacement(name, _OPERATIONS.get(name, name), variant)
    return found


REPLACEMENTS: Final = _table()
"""By PyTorch's operator."""

OPERATIONS: Final = tuple(dict.fromkeys(found.operation for found in REPLACEMENTS.values()))
"""The names that users know the replaced operators by."""
