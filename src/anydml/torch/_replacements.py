"""The replacements of PyTorch's operators in `deterministic`, by array functions.

A replacement takes the operator's own arguments. One that writes takes `target` as well, where the
result goes; an operator in place has the tensor itself for it, if kernels can write there.
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
Scatter = Callable[[Tensor, Any, str, bool, Tensor | None], Tensor]
"""Scatters updates into a tensor, by a reduction, with or without the elements themselves, to a
target or a new tensor."""

_top_k: Final[Any] = functions.top_k
_elements: Final[Any] = functions.scatter_elements
_blocks: Final[Any] = functions.scatter_nd

_KERNEL_TYPES: Final = frozenset(getattr(torch, name) for name in ("bool", *NUMBERS))
_MOVED_TYPES: Final = _KERNEL_TYPES | {torch.complex64, torch.complex128}

# PyTorch's words for reductions.
_REDUCTIONS: Final = {
    **{theirs: own for own, theirs in REDUCTIONS.items() if theirs != own},
    "add": "add",
    "multiply": "mul",
    "mean": "mean",
}


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
    """Convert to a type to add and multiply in: float32 for floats of 16 bits."""
    if x.is_complex():
        return x.to(torch.complex64) if x.dtype == torch.complex32 else x
    return x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else _numbers(x)


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
    return _chosen(x, x.shape[dim] if x.ndim else 1, dim, descending)


def _nonzero(x: Tensor) -> Tensor:
    found = _coordinates(x)
    # PyTorch's coordinates of one axis are contiguous.
    return torch.empty_strided(
        found.shape, (1, len(found)), dtype=found.dtype, device=found.device
    ).copy_(found)


def _coordinates(x: Tensor) -> Any:
    x = x.detach()
    return functions.nonzero_coordinates(x if x.dtype in _MOVED_TYPES else x != 0)


# ---- scatters -----------------------------------------------------------------------------------


def _combined(
    x: Tensor,
    updates: Tensor,
    reduction: str,
    include_self: bool,
    target: Tensor | None,
    run: Scatter,
) -> Tensor:
    """Scatter by any reduction, of any type, through calls of `run` with what kernels have."""
    if reduction == "none":
        place = None if target is None else _bits(target)
        result = run(_bits(x), _bits(updates), "none", True, place)
        return result if result.dtype == x.dtype else result.view(x.dtype)
    if reduction == "mean":
        return _into(target, _mean(x, updates, include_self, run))
    wide = _terms(x) if reduction in ("add", "mul") else _numbers(x)
    if wide.dtype == x.dtype:
        return run(x, updates, reduction, include_self, target)
    result = run(wide, updates.to(wide.dtype), reduction, include_self, None)
    return _into(target, result.to(x.dtype))


def _mean(x: Tensor, updates: Tensor, include_self: bool, run: Scatter) -> Tensor:
    """Scatter by means as PyTorch has them: sums and counts of small integers wrap."""
    zeros = torch.zeros_like(x, dtype=torch.int64)
    counts = run(zeros, zeros.new_ones(()), "add", True, None)
    wide, parts = _terms(x), counts + include_self
    total = run(wide, updates.to(wide.dtype), "add", include_self, None)
    if x.is_floating_point() or x.is_complex():
        means = total / parts.clamp(min=1)
    else:
        parts = parts.to(x.dtype)
        means = torch.div(total, parts.masked_fill(parts == 0, 1), rounding_mode="floor")
    return torch.where(counts > 0, means.to(x.dtype), x)  # others keep their bits


def _into(target: Tensor | None, result: Tensor) -> Tensor:
    if target is None:
        return result
    target.copy_(result)
    return target


# Along an axis, as torch.scatter has it: an index for each update.


def _scatter(
    x: Tensor, dim: int, index: Tensor, src: Any, reduce: str = "none",
    include_self: bool = True, target: Tensor | None = None,
) -> Tensor:  # fmt: skip
    x = x.detach()
    if not index.numel():
        return _into(target, x.clone())
    if not isinstance(src, torch.Tensor):
        src = x.new_full((), src)
    src = src.detach()
    if x.ndim == 0:
        flat = None if target is None else target.reshape(1)
        src = src.reshape(-1)
        return _scatter(x.reshape(1), dim, index.reshape(-1), src, reduce, include_self, flat)[0]
    if not index.ndim:
        index = index.reshape(1)
    if src.ndim != index.ndim and src.numel() == 1:
        src = src.expand(index.shape)
    elif src.shape != index.shape:  # of a larger source, the beginning
        src = src[tuple(slice(size) for size in index.shape)]

    def run(
        x: Tensor, updates: Tensor, reduction: str, include_self: bool, out: Tensor | None
    ) -> Tensor:
        return _elements(x, index, updates, axis=dim, reduction=reduction,
                         include_self=include_self, out=out)  # fmt: skip

    return _combined(x, src, _REDUCTIONS.get(reduce, reduce), include_self, target, run)


# Slices along an axis, by one list of indices.


def _slices(
    x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str = "none",
    include_self: bool = True, target: Tensor | None = None,
) -> Tensor:  # fmt: skip
    x, source = x.detach(), source.detach()
    if x.ndim == 0:
        flat = None if target is None else target.reshape(1)
        return _slices(x.reshape(1), 0, index, source.reshape(-1), reduce, include_self, flat)[0]
    index = index.reshape(-1).unsqueeze(-1)
    source = source.reshape([1] * x.ndim) if source.ndim == 0 else source
    reduction = _REDUCTIONS.get(reduce, reduce)
    return _tuples(x, index, source.movedim(dim, 0), reduction, include_self, target,
                   lambda tensor: tensor.movedim(dim, 0))  # fmt: skip


def _tuples(
    x: Tensor, index: Tensor, updates: Tensor, reduction: str, include_self: bool,
    target: Tensor | None, to_front: Callable[[Tensor], Tensor],
) -> Tensor:  # fmt: skip
    """Scatter by tuples of indices into the axes that `to_front` brings to the front."""
    if target is None and is_plain(x, index, updates):
        target = torch.empty_like(x)  # laid out as PyTorch's result

    def run(
        x: Tensor, updates: Tensor, reduction: str, include_self: bool, out: Tensor | None
    ) -> Tensor:
        place = None if out is None else to_front(out)
        result = _blocks(to_front(x), index, updates, reduction=reduction,
                         include_self=include_self, out=place)  # fmt: skip
        return to_original(result) if out is None else out

    def to_original(result: Tensor) -> Tensor:
        unraveled = result.new_empty(x.shape)
        to_front(unraveled).copy_(result)
        return unraveled

    return _combined(x, updates, reduction, include_self, target, run)


def _scaled(source: Tensor, alpha: Any) -> Tensor:
    if alpha == 1:
        return source
    factor = source.new_full((), alpha)  # refuses what PyTorch does, truncates as it does
    # Of 16-bit floats, PyTorch does not round the factor.
    return source * (alpha if source.is_floating_point() else factor)


def _index_add(
    x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1,
    target: Tensor | None = None,
) -> Tensor:  # fmt: skip
    return _slices(x, dim, index, _scaled(source, alpha), "add", True, target)


# By index tensors and masks, as x[indices] = values has it.


def _index_put(
    x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False,
    unsafe: bool = False, *, target: Tensor | None = None,
) -> Tensor:  # fmt: skip
    x, values = x.detach(), values.detach()
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
    reduction = "add" if accumulate else "none"
    return _tuples(x, torch.stack(columns, -1), updates, reduction, True, target,
                   lambda tensor: tensor.permute(*axes, *rest))  # fmt: skip


def _put(
    x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False, *,
    target: Tensor | None = None,
) -> Tensor:  # fmt: skip
    if index.numel() != source.numel():
        raise ArgumentError(f"source: expected {index.numel()} elements, got {source.numel()}")
    reduction = "add" if accumulate else "none"
    flat = _scatter(x.reshape(-1), 0, index.reshape(-1), source.reshape(-1), reduction)
    return _into(target, flat.reshape(x.shape))


def _embedding_backward(
    grad: Tensor, indices: Tensor, count: Any, padding: Any, by_frequency: bool
) -> Tensor:
    flat = indices.reshape(-1)
    rows = grad.reshape(-1, grad.shape[-1])
    if by_frequency:
        often = _scatter(flat.new_zeros(count), 0, flat, 1, "add")
        rows = rows / often[flat].unsqueeze(-1)
    summed = _slices(rows.new_zeros((count, grad.shape[-1])), 0, flat, rows, "add")
    if 0 <= padding < count:
        summed[padding] = 0
    return summed


# ---- the table ----------------------------------------------------------------------------------


def _to(function: Callable[..., Any]) -> Callable[..., Any]:
    """The variant that writes to ``out=``."""

    def run(*arguments: Any, **keywords: Any) -> Any:
        names = [name for name in ("values", "indices", "out") if name in keywords]
        targets = [keywords.pop(name) for name in names]
        results = function(*arguments, **keywords)
        for target, result in zip(
            targets, results if len(targets) > 1 else (results,), strict=True
        ):
            if target.shape != result.shape:
                target.resize_(result.shape)
            target.copy_(result)
        return tuple(targets) if len(targets) > 1 else targets[0]

    return run


def _in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the variant that writes to its first operand."""

    def run(x: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        lists = (value if isinstance(value, list | tuple) else (value,) for value in arguments)
        operands = [
            value for values in lists for value in values if isinstance(value, torch.Tensor)
        ]
        if is_plain(x, *operands):
            function(x, *arguments, **keywords, target=x.detach())
        else:
            x.copy_(function(x, *arguments, **keywords))
        return x

    return run


# The operator, its overloads, those that write to out=, those in place, and what replaces it.
_TABLE: Final = (
    ("topk", "default", "values", "", _topk),
    ("sort", "default stable", "values values_stable", "", _sort),
    ("nonzero", "default", "out", "", _nonzero),
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
    ("embedding_dense_backward", "default", "out", "", _embedding_backward),
)  # fmt: skip


class Replacement(NamedTuple):
    """A function that runs in place of an operator."""

    name: str
    """PyTorch's, without the mark of variants in place."""
    run: Callable[..., Any]
    """Takes the operator's arguments."""
    allocates: bool
    """Whether the results are new, and laid out by `with_strides`."""

    @property
    def operation(self) -> str:
        """The name that users know it by."""
        return _OPERATIONS.get(self.name, self.name)


_OPERATIONS: Final = {
    "_unsafe_index_put": "index_put",
    "_index_put_impl": "index_put",
    "embedding_dense_backward": "embedding",
}


def _table() -> dict[Any, Replacement]:
    found: dict[Any, Replacement] = {}
    for name, plain, to, in_place, function in _TABLE:
        variants = (
            (name, plain, Replacement(name, function, name != "nonzero")),  # which has own strides
            (name, to, Replacement(name, _to(function), False)),
            (f"{name}_", in_place, Replacement(name, _in_place(function), False)),
        )
        for operator, overloads, run in variants:
            for overload in overloads.split():
                found[getattr(getattr(torch.ops.aten, operator), overload)] = run
    return found


REPLACEMENTS: Final = _table()
"""By PyTorch's operator."""

OPERATIONS: Final = tuple(dict.fromkeys(found.operation for found in REPLACEMENTS.values()))
"""The names that users know the replaced operators by."""
