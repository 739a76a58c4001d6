"""Gradients of the operators: made of the same operators, so that they have gradients too.

They are those of PyTorch's own operators. Of updates that meet in one element only the last one
counts, so only it has a gradient; PyTorch leaves that case undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from anydml.bridges.torch._library import KERNELS, library, may_move, ops
from anydml.bridges.torch._pytorch import Tensor, torch
from anydml.errors import ArgumentTypeError

Gradients = tuple[Any, ...]

_Function: Final[Any] = import_module("torch.autograd.function")._SingleLevelFunction
_one_level: Final[Any] = import_module(
    "torch._functorch.utils"
).enable_single_level_autograd_function

_forward: Final[Any] = torch.autograd.forward_ad

DIFFERENTIABLE: Final = ("none", "add")
"""The reductions of scatters that have a gradient."""


class Differentiable:
    """The gradient of one operator.

    Parameters
    ----------
    save : callable
        Takes the context, the operator's arguments and its results.
    backward : callable
        Takes the context and the gradients of the results.
    listed : bool
        Whether the first argument is a list of tensors.
    """

    def __init__(
        self, name: str, save: Callable[..., None], backward: Callable[..., Any], listed: bool
    ) -> None:
        operator = getattr(ops, name).default

        def arguments(given: tuple[Any, ...]) -> tuple[Any, ...]:
            # Of a list, autograd sees the members only when they stand alone: behind the rest.
            return (list(given[1:]), given[0]) if listed else given

        class Call(_Function):  # type: ignore[misc]  # PyTorch's, without types
            @staticmethod
            def forward(ctx: Any, *given: Any) -> Any:
                given = arguments(given)
                # A function's forward pass turns both off; levels of torch.func below this one
                # have their own gradients.
                with (
                    torch.enable_grad(),
                    _forward._set_fwd_grad_enabled(True),
                    torch._C._AutoDispatchBelowAutograd(),
                ):
                    results = operator(*given)
                results = tuple(results) if isinstance(results, list) else results
                save(ctx, given, results)
                if may_move():
                    ctx.forward = given, results
                return results

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return backward(ctx, *grads)

            @staticmethod
            def jvp(ctx: Any, *tangents: Any) -> Any:
                given, results = ctx.forward
                del ctx.forward  # or it would keep what no backward pass needs
                moved = _moved(name, operator, given, results, arguments(tangents))
                return tuple(moved) if isinstance(moved, list) else moved

        def kernel(*given: Any) -> Any:
            asked = torch.is_grad_enabled() and torch._C._any_requires_grad(*given)
            if not asked and not may_move():
                with torch._C._AutoDispatchBelowAutograd():
                    return operator(*given)
            # The dispatcher has come to one level of torch.func's transformations, or there is
            # none: this records for that level, and goes on below it.
            with _one_level():
                results = Call.apply(*((given[1], *given[0]) if listed else given))
            return list(results) if name == "split" else results

        self.kernel = kernel


# ---- forward ------------------------------------------------------------------------------------


def _moved(name: str, operator: Any, given: Any, results: Any, tangents: Any) -> Any:
    """What becomes of tangents: every operator but `top_k` is linear in what has one."""
    first = results[0] if isinstance(results, tuple) else results
    if not (first.is_floating_point() or first.is_complex()):
        return None
    if name == "top_k":
        return ops.gather_elements(tangents[0], results[1], given[2], False), None
    if name.startswith("scatter"):
        reduction = given[-2]
        if reduction not in DIFFERENTIABLE:
            raise no_gradient(reduction)
    if name == "pad":
        given = (*given[:-1], 0)  # the constant does not move
    linear = (0, 2) if name.startswith("scatter") else (0,)
    pairs = enumerate(zip(given, tangents, strict=True))
    return operator(*(_tangent(*pair) if i in linear else pair[0] for i, pair in pairs))


def _tangent(operand: Any, moves: Any) -> Any:
    if isinstance(operand, list):
        return [_tangent(*pair) for pair in zip(operand, moves, strict=True)]
    return torch.zeros_like(operand) if moves is None else moves


# ---- selection ----------------------------------------------------------------------------------


def _save_top_k(ctx: Any, inputs: Any, output: Any) -> None:
    x, _, axis, _, _ = inputs
    ctx.axis, ctx.shape = axis, x.shape
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(output[1])


def _top_k(ctx: Any, grad: Any, _: Any) -> Gradients:
    (indices,) = ctx.saved_tensors
    # No position comes twice, so that nothing is added up.
    zeros = grad.new_zeros(ctx.shape)
    given = ops.scatter_elements(zeros, indices, grad, ctx.axis, "add", True)
    return given, None, None, None, None


def _save_nothing(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.mark_non_differentiable(output)


def _nothing(ctx: Any, *grads: Any) -> Gradients:
    return None, None


# ---- gathers: what was read has the sum of what became of it ------------------------------------


def _save_gather(ctx: Any, inputs: Any, output: Any) -> None:
    x, indices, ctx.axis, ctx.clamp = inputs
    ctx.shape = x.shape
    ctx.save_for_backward(indices)


def _gather(ctx: Any, grad: Any) -> Gradients:
    (indices,) = ctx.saved_tensors
    axis, shape = ctx.axis, ctx.shape
    indices = _clamped(indices, shape[axis]) if ctx.clamp else indices
    behind = range(axis, axis + indices.ndim)
    slices = grad.movedim(tuple(behind), tuple(range(indices.ndim)))
    zeros = grad.new_zeros((shape[axis], *shape[:axis], *shape[axis + 1 :]))
    summed = ops.scatter_nd(zeros, indices.unsqueeze(-1), slices, "add", True)
    return summed.movedim(0, axis), None, None, None


def _gather_elements(ctx: Any, grad: Any) -> Gradients:
    (indices,) = ctx.saved_tensors
    indices = _clamped(indices, ctx.shape[ctx.axis]) if ctx.clamp else indices
    zeros = grad.new_zeros(ctx.shape)
    summed = ops.scatter_elements(zeros, indices, grad, ctx.axis, "add", True)
    return summed, None, None, None


def _gather_nd(ctx: Any, grad: Any) -> Gradients:
    (indices,) = ctx.saved_tensors
    batch, shape = ctx.axis, ctx.shape  # the third argument is the number of batch axes here
    if ctx.clamp:
        axes = range(batch, batch + indices.shape[-1])
        columns = [_clamped(indices[..., i], shape[axis]) for i, axis in enumerate(axes)]
        indices = torch.stack(columns, -1) if columns else indices
    summed = ops.scatter_nd(grad.new_zeros(shape), with_batches(indices, batch), grad, "add", True)
    return summed, None, None, None


def _clamped(indices: Tensor, size: Any) -> Tensor:
    """The positions that a clamping gather reads."""
    signed = indices.to(torch.int64)
    if indices.dtype == torch.uint64:  # beyond int64 lies behind the end
        return torch.where(signed < 0, size - 1, signed.clamp(max=size - 1))
    return torch.where(signed < 0, signed + size, signed).clamp(0, size - 1)


def with_batches(indices: Tensor, batch: int) -> Tensor:
    """Index tuples that name their batches themselves."""
    if not batch:
        return indices
    wide = indices.to(torch.int64)  # as large as positions of batches
    shape = wide.shape[:-1]
    columns = []
    for axis in range(batch):
        positions = torch.arange(shape[axis], device=wide.device)
        lined_up = positions.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        columns.append(lined_up.expand(shape).unsqueeze(-1))
    return torch.cat([*columns, wide], -1)


# ---- scatters: an element that was replaced has no gradient, an update what became of it --------


def _save_scatter(ctx: Any, inputs: Any, output: Any) -> None:
    x, indices, _, *ctx.axis, ctx.reduction, ctx.include_self = inputs
    ctx.shape = x.shape
    ctx.save_for_backward(indices)


def _scatter_elements(ctx: Any, grad: Any) -> Gradients:
    (indices,) = ctx.saved_tensors
    (axis,) = ctx.axis

    def scatter(x: Tensor, updates: Tensor) -> Tensor:
        result: Tensor = ops.scatter_elements(x, indices, updates, axis, "none", True)
        return result

    def gather(x: Tensor) -> Tensor:
        result: Tensor = ops.gather_elements(x, indices, axis, False)
        return result

    return (*_scattered(ctx, grad, indices.shape, scatter, gather), None, None, None)


def _scatter_nd(ctx: Any, grad: Any) -> Gradients:
    (indices,) = ctx.saved_tensors

    def scatter(x: Tensor, updates: Tensor) -> Tensor:
        result: Tensor = ops.scatter_nd(x, indices, updates, "none", True)
        return result

    def gather(x: Tensor) -> Tensor:
        result: Tensor = ops.gather_nd(x, indices, 0, False)
        return result

    shape = (*indices.shape[:-1], *ctx.shape[indices.shape[-1] :])
    return (*_scattered(ctx, grad, shape, scatter, gather), None, None)


def _scattered(
    ctx: Any,
    grad: Tensor,
    shape: Sequence[int],
    scatter: Callable[[Tensor, Tensor], Tensor],
    gather: Callable[[Tensor], Tensor],
) -> Gradients:
    """The gradients of x and, behind None for the indices, of the updates, which have a shape."""
    if ctx.reduction not in DIFFERENTIABLE:
        raise no_gradient(ctx.reduction)
    kept, updates = grad, None
    adds = ctx.reduction == "add"
    if ctx.needs_input_grad[0] and not (adds and ctx.include_self):
        kept = scatter(grad, grad.new_zeros(shape))
    if ctx.needs_input_grad[2]:
        updates = gather(grad)
        if not adds:  # the last one wins
            count = 1
            for size in shape:
                count = count * size
            numbers = torch.arange(count, device=grad.device).reshape(shape)
            winners = scatter(numbers.new_zeros(ctx.shape), numbers)
            updates = torch.where(gather(winners) == numbers, updates, 0)
    return kept, None, updates


def no_gradient(reduction: str) -> ArgumentTypeError:
    """What is raised where a gradient is asked of a reduction that has none."""
    accepted = " and ".join(map(repr, DIFFERENTIABLE))
    return ArgumentTypeError(
        f"reduction: {accepted} have a gradient, got {reduction!r} and a tensor that requires "
        f"grad; use .detach()"
    )


# ---- slabs --------------------------------------------------------------------------------------


def _save_split(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, ctx.axis = inputs


def _split(ctx: Any, *grads: Any) -> Gradients:
    return ops.join(grads, ctx.axis), None, None


def _save_join(ctx: Any, inputs: Any, output: Any) -> None:
    arrays, ctx.axis = inputs
    ctx.sizes = [array.shape[ctx.axis] for array in arrays]


def _join(ctx: Any, grad: Any) -> Gradients:
    return (None, *ops.split(grad, ctx.sizes, ctx.axis))


# ---- movers -------------------------------------------------------------------------------------


def _save_cast(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.dtype = inputs[0].dtype
    if not output.dtype.is_floating_point:
        ctx.mark_non_differentiable(output)


def _cast(ctx: Any, grad: Any) -> Gradients:
    return ops.cast(grad, ctx.dtype), None


def _save_pad(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.starts, _, ctx.mode, _ = inputs
    ctx.shape = x.shape


def _pad(ctx: Any, grad: Any) -> Gradients:
    if ctx.mode != "constant":
        raise ArgumentTypeError(f"mode: 'constant' has a gradient, got {ctx.mode!r}")
    kept = ops.slice_window(grad, ctx.starts, ctx.shape, [1] * len(ctx.shape))
    return kept, None, None, None, None


def _save_slice(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.starts, ctx.sizes, ctx.strides = inputs
    ctx.shape = x.shape


def _slice(ctx: Any, grad: Any) -> Gradients:
    # Axis by axis: grad grows from the window's elements to the whole axis.
    given = zip(ctx.starts, ctx.sizes, ctx.strides, ctx.shape, strict=True)
    for axis, (start, size, stride, whole) in enumerate(given):
        first, step = start, abs(stride)
        if stride < 0:  # from the end of the window
            grad = grad.flip(axis)
            first = start + (size - 1) % step if size else start
        zeros = grad.new_zeros((*grad.shape[:axis], whole, *grad.shape[axis + 1 :]))
        grad = zeros.slice_scatter(grad, axis, first, start + size, step)
    return grad, None, None, None


def _save_tile(ctx: Any, inputs: Any, output: Any) -> None:
    x, ctx.repeats = inputs
    ctx.shape = x.shape


def _tile(ctx: Any, grad: Any) -> Gradients:
    pairs = zip(ctx.repeats, ctx.shape, strict=True)
    tiles = grad.reshape([size for pair in pairs for size in pair])
    return tiles.sum(tuple(range(0, tiles.ndim, 2))), None  # of no axes: of all there are, none


def _save_reverse(ctx: Any, inputs: Any, output: Any) -> None:
    _, lengths, ctx.axis = inputs
    ctx.save_for_backward(lengths)


def _reverse_subsequences(ctx: Any, grad: Any) -> Gradients:
    (lengths,) = ctx.saved_tensors
    return ops.reverse_subsequences(grad, lengths, ctx.axis), None, None


_FORMULAS: Final = {
    "top_k": (_save_top_k, _top_k),
    "nonzero_coordinates": (_save_nothing, _nothing),
    "gather": (_save_gather, _gather),
    "gather_elements": (_save_gather, _gather_elements),
    "gather_nd": (_save_gather, _gather_nd),
    "scatter_elements": (_save_scatter, _scatter_elements),
    "scatter_nd": (_save_scatter, _scatter_nd),
    "split": (_save_split, _split),
    "join": (_save_join, _join),
    "cast": (_save_cast, _cast),
    "pad": (_save_pad, _pad),
    "slice_window": (_save_slice, _slice),
    "tile": (_save_tile, _tile),
    "reverse_subsequences": (_save_reverse, _reverse_subsequences),
}

for name in KERNELS:
    formula = Differentiable(name, *_FORMULAS[name], listed=name == "join")
    library.impl(name, formula.kernel, "Autograd")
