"""Batches, tangents and gradients of the array functions, made of the array functions themselves.

The gradients are those of PyTorch's own operators. Of updates that replace one element only the
last one counts, so only it has a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from anydml.core.errors import ArgumentTypeError
from anydml.functions._spec import SPECS, Array, Namespace, Saved

Attributes = tuple[Any, ...]
Arrays = Sequence[Array]
Batched = tuple[Arrays, Sequence[int]]
Derived = Sequence[Array | None]


def call(xp: Namespace, name: str, operands: Arrays, *attributes: Any) -> Arrays:
    """The results of another function."""
    results: Arrays = xp.call(SPECS[name], operands, attributes)
    return results


# ---- batches: one call with one axis more -------------------------------------------------------


def _first(xp: Namespace, x: Array, dim: int | None, size: Any) -> Array:
    """The array with its batch on the first axis; repeated where it has none."""
    if dim is None:
        return xp.broadcast_to(xp.reshape(x, (1, *x.shape)), (size, *x.shape))
    return xp.moveaxis(x, (dim,), (0,))


def all_first(xp: Namespace, operands: Arrays, dims: Sequence[int | None], size: Any) -> Arrays:
    """The operands with their batches on the first axis."""
    pairs = zip(operands, dims, strict=True)
    return [_first(xp, operand, dim, size) for operand, dim in pairs]


def batch_by(name: str, widen: Callable[[Attributes, Any], Attributes]) -> Callable[..., Batched]:
    """The rule for attributes that `widen` adapts to one more axis in front, of a size."""

    def batch(
        xp: Namespace,
        operands: Arrays,
        dims: Sequence[int | None],
        size: Any,
        attributes: Attributes,
    ) -> Batched:
        results = call(xp, name, all_first(xp, operands, dims, size), *widen(attributes, size))
        return results, [0] * len(results)

    return batch


def batch_along(name: str, position: int) -> Callable[..., Batched]:
    """The rule for an axis, or a number of leading axes, at a position of the attributes."""

    def widen(attributes: Attributes, size: Any) -> Attributes:
        return (*attributes[:position], attributes[position] + 1, *attributes[position + 1 :])

    return batch_by(name, widen)


def batch_nonzero(
    xp: Namespace, operands: Arrays, dims: Sequence[int | None], size: int, attributes: Attributes
) -> Batched:
    """Only with a size do all members of a batch have as many rows."""
    if attributes[1] < 0:
        raise ArgumentTypeError(
            "size: expected an integer under vmap, because the number of nonzero elements differs "
            "between the members of a batch, got None; pass size=, or call outside of vmap"
        )
    kind, rows, fill = attributes
    x = _first(xp, operands[0], dims[0], size)
    total = prod(x.shape)
    if not rows or not total:
        (of_one,) = call(xp, "nonzero_coordinates", (x[0],), *attributes)
        return [_first(xp, of_one, None, size)], [0]
    # What is not there comes last, as of a member behind the others.
    (found,) = call(xp, "nonzero_coordinates", (x,), kind, total, size)
    members = xp.positions(found[..., 0])
    starts = xp.searchsorted(members, xp.arange(size + 1, members))
    row_numbers = xp.reshape(starts[:-1], (-1, 1)) + xp.arange(rows, members)
    inside = xp.reshape(row_numbers < xp.reshape(starts[1:], (-1, 1)), (size, rows, 1))
    (taken,) = call(xp, "gather", (found[..., 1:], xp.clip(row_numbers, 0, total - 1)), 0, False)
    return [xp.where(inside, taken, fill)], [0]


def batch_gather(
    xp: Namespace, operands: Arrays, dims: Sequence[int | None], size: Any, attributes: Attributes
) -> Batched:
    """Of one array, or by one array of indices: one call; else tuples behind a batch axis."""
    x, indices = operands
    axis, clamp = attributes
    if dims[1] is None:
        moved = xp.moveaxis(x, (dims[0] or 0,), (0,))
        return call(xp, "gather", (moved, indices), axis + 1, clamp), [0]
    if dims[0] is None:
        moved = xp.moveaxis(indices, (dims[1],), (0,))
        return call(xp, "gather", (x, moved), axis, clamp), [axis]
    x, indices = all_first(xp, operands, dims, size)
    rank = indices.ndim - 1
    tuples = xp.reshape(indices, (*indices.shape, 1))
    lined_up = xp.moveaxis(x, (axis + 1,), (1,))
    slices = call(xp, "gather_nd", (lined_up, tuples), 1, clamp)[0]
    behind = tuple(range(1, rank + 1))
    return [xp.moveaxis(slices, behind, tuple(i + axis for i in behind))], [0]


def batch_scatter_nd(
    xp: Namespace, operands: Arrays, dims: Sequence[int | None], size: Any, attributes: Attributes
) -> Batched:
    """Tuples that name their member of the batch."""
    x, indices, updates = all_first(xp, operands, dims, size)
    return call(xp, "scatter_nd", (x, _with_batches(xp, indices, 1), updates), *attributes), [0]


def _with_batches(xp: Namespace, indices: Array, batch: int) -> Array:
    """Index tuples that name their batches themselves."""
    if not batch:
        return indices
    wide = xp.positions(indices)  # as large as positions of batches
    shape = tuple(wide.shape[:-1])
    columns = [wide[..., i] for i in range(wide.shape[-1])]
    for axis in reversed(range(batch)):
        numbers = xp.arange(shape[axis], wide)
        lined_up = xp.reshape(numbers, tuple(-1 if i == axis else 1 for i in range(len(shape))))
        columns.insert(0, xp.broadcast_to(lined_up, shape))
    return xp.stack(columns, -1)


# ---- what is linear -----------------------------------------------------------------------------


def _of(x: Array | None) -> Array:
    assert x is not None
    return x


def _or_zeros(xp: Namespace, saved: Saved, tangents: Derived, i: int) -> Array:
    found = tangents[i]
    if found is not None:
        return found
    return xp.zeros(saved.shapes[i], next(t for t in tangents if t is not None))


def _tangents(xp: Namespace, results: Arrays) -> Derived:
    return [result if xp.is_real_or_complex(result) else None for result in results]


def linear(
    name: str, adapt: Callable[[Attributes], Attributes] = lambda attributes: attributes
) -> Callable[..., Derived]:
    """The tangent of a function that is linear in all operands that are not saved."""

    def tangent(xp: Namespace, saved: Saved, tangents: Derived) -> Derived:
        operands = [
            _or_zeros(xp, saved, tangents, i) if kept is None else kept
            for i, kept in enumerate(saved.operands)
        ]
        return _tangents(xp, call(xp, name, operands, *adapt(saved.attributes)))

    return tangent


# ---- selection ----------------------------------------------------------------------------------


def tangent_top_k(xp: Namespace, saved: Saved, tangents: Derived) -> Derived:
    """The tangents of the elements that are chosen."""
    operands = (tangents[0], _of(saved.results[1]))
    return [*call(xp, "gather_elements", operands, saved.attributes[1], False), None]


def gradient_top_k(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """No position comes twice, so nothing is added up."""
    grad, axis = _of(grads[0]), saved.attributes[1]
    zeros = xp.zeros(saved.shapes[0], grad)
    return call(xp, "scatter_elements", (zeros, _of(saved.results[1]), grad), axis, "add", True)


# ---- gathers: what was read has the sum of what became of it ------------------------------------


def gradient_gather(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """Blocks that lie along one axis."""
    grad, (axis, clamp), shape = _of(grads[0]), saved.attributes, saved.shapes[0]
    indices = _clamped(xp, _of(saved.operands[1]), shape[axis], clamp)
    behind = tuple(range(axis, axis + indices.ndim))
    slices = xp.moveaxis(grad, behind, tuple(range(indices.ndim)))
    zeros = xp.zeros((shape[axis], *shape[:axis], *shape[axis + 1 :]), grad)
    tuples = xp.reshape(indices, (*indices.shape, 1))
    (summed,) = call(xp, "scatter_nd", (zeros, tuples, slices), "add", True)
    return [xp.moveaxis(summed, (0,), (axis,)), None]


def gradient_gather_elements(
    xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]
) -> Derived:
    """Elements along an axis."""
    grad, (axis, clamp), shape = _of(grads[0]), saved.attributes, saved.shapes[0]
    indices = _clamped(xp, _of(saved.operands[1]), shape[axis], clamp)
    operands = (xp.zeros(shape, grad), indices, grad)
    return [*call(xp, "scatter_elements", operands, axis, "add", True), None]


def gradient_gather_nd(
    xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]
) -> Derived:
    """Blocks that tuples name."""
    grad, (batch, clamp), shape = _of(grads[0]), saved.attributes, saved.shapes[0]
    indices = _of(saved.operands[1])
    if clamp and indices.shape[-1]:
        axes = range(batch, batch + indices.shape[-1])
        columns = [_clamped(xp, indices[..., i], shape[axis], True) for i, axis in enumerate(axes)]
        indices = xp.stack(columns, -1)
    operands = (xp.zeros(shape, grad), _with_batches(xp, indices, batch), grad)
    return [*call(xp, "scatter_nd", operands, "add", True), None]


def _clamped(xp: Namespace, indices: Array, size: Any, clamp: bool) -> Array:
    """The positions that a gather reads; beyond int64 lies behind the end."""
    if not clamp:
        return indices
    signed = xp.positions(indices)
    if xp.is_uint64(indices):
        return xp.where(signed < 0, size - 1, xp.clip(signed, None, size - 1))
    return xp.clip(xp.where(signed < 0, signed + size, signed), 0, size - 1)


# ---- scatters: every reduction is linear in x and the updates by weights -------------------------


def saves_scatter(attributes: Attributes) -> tuple[Sequence[int], Sequence[int]]:
    """Values are needed where they decide the weights."""
    return ((0, 1, 2), (0,)) if attributes[-2] in ("mul", "min", "max") else ((1,), ())


class _Scatter:
    """One scatter: calls with its indices, and what its operands weigh in the result."""

    def __init__(self, xp: Namespace, saved: Saved, like: Array) -> None:
        self.xp, self.saved, self.like = xp, saved, like
        self.indices = _of(saved.operands[1])
        *self.leading, self.reduction, self.include_self = saved.attributes
        self.shape, _, self.updates_shape = saved.shapes

    def scatter(self, x: Array, updates: Array, reduction: str, include_self: bool = True) -> Array:
        name = "scatter_elements" if self.leading else "scatter_nd"
        operands = (x, self.indices, updates)
        return call(self.xp, name, operands, *self.leading, reduction, include_self)[0]

    def gather(self, x: Array) -> Array:
        name = "gather_elements" if self.leading else "gather_nd"
        return call(self.xp, name, (x, self.indices), *(self.leading or [0]), False)[0]

    def zeros(self, shape: Sequence[Any]) -> Array:
        return self.xp.zeros(shape, self.like)

    def counts(self) -> Array:
        """How many updates meet in each element, as integers."""
        ones = self.xp.zeros(self.updates_shape, self.xp.arange(1, self.indices)) + 1
        return self.scatter(self.xp.zeros(self.shape, ones), ones, "add")

    def weights(self) -> tuple[Array | None, Array | None]:
        """Of x and of the updates; None for 1."""
        if self.reduction == "none":
            return self.counts() == 0, self._winners()
        if self.reduction == "add":
            return None if self.include_self else self.counts() == 0, None
        if self.reduction == "mean":
            counts = self.counts()
            ones = self.zeros(self.shape) + 1
            share = ones / self.xp.where(counts == 0, 1, counts + int(self.include_self))
            own = share if self.include_self else counts == 0
            return own, self.gather(share)
        return self._of_products() if self.reduction == "mul" else self._of_extremes()

    def _winners(self) -> Array:
        """Which updates are the last ones of their element."""
        numbers = self.xp.arange(prod(self.updates_shape), self.indices)
        numbers = self.xp.reshape(numbers, self.updates_shape)
        placed = self.scatter(self.xp.zeros(self.shape, numbers), numbers, "none")
        return self.gather(placed) == numbers

    def _of_extremes(self) -> tuple[Array, Array]:
        """Equal shares of all that equal the result."""
        xp, (x, _, updates) = self.xp, map(_of, self.saved.operands)
        result = _of(self.saved.results[0])
        ours = xp.where(x == result, self.zeros(self.shape) + 1, 0)
        if not self.include_self:
            ours = xp.where(self.counts() == 0, self.zeros(self.shape) + 1, 0)
        theirs = xp.where(updates == self.gather(result), self.zeros(self.updates_shape) + 1, 0)
        share = 1 / self.scatter(ours, theirs, "add")
        return ours * share, theirs * self.gather(share)

    def _of_products(self) -> tuple[Array, Array]:
        """The product of the others, also where one of them is 0."""
        xp, (x, _, updates) = self.xp, map(_of, self.saved.operands)
        filled = xp.where(x == 0, 1, x)
        ours = self.scatter(filled, updates, "mul", self.include_self) / filled
        if not self.include_self:
            ours = xp.where(self.counts() == 0, self.zeros(self.shape) + 1, 0)
        zero = updates == 0
        zeros = xp.where(zero, self.zeros(self.updates_shape) + 1, 0)
        alone = zero & (self.gather(self.scatter(self.zeros(self.shape), zeros, "add")) == 1)
        others = self.scatter(x, xp.where(alone, 1, updates), "mul", self.include_self)
        shares = self.gather(_of(self.saved.results[0])) / xp.where(zero, 1, updates)
        return ours, xp.where(alone, self.gather(others), shares)


def _weighted(xp: Namespace, weight: Array | None, x: Array) -> Array:
    if weight is None:
        return x
    chosen = str(weight.dtype).endswith("bool")  # then infinite values outside do not matter
    return xp.where(weight, x, 0) if chosen else weight * x


def tangent_scatter(xp: Namespace, saved: Saved, tangents: Derived) -> Derived:
    """The sum of the weighted tangents."""
    moved = [_or_zeros(xp, saved, tangents, i) for i in (0, 2)]
    one = _Scatter(xp, saved, moved[0])
    parts = [_weighted(xp, *pair) for pair in zip(one.weights(), moved, strict=True)]
    return [one.scatter(parts[0], parts[1], "add")]


def gradient_scatter(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """The weighted gradient, and of the updates what became of them."""
    grad = _of(grads[0])
    one = _Scatter(xp, saved, grad)
    own, others = (None if w is None else xp.adjoint_weight(w) for w in one.weights())
    return [
        _weighted(xp, own, grad) if needs[0] else None,
        None,
        _weighted(xp, others, one.gather(grad)) if needs[2] else None,
    ]


# ---- slabs and movers ---------------------------------------------------------------------------


def gradient_split(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """The slabs, joined."""
    return call(xp, "join", grads, saved.attributes[1])


def gradient_join(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """The slabs."""
    (axis,) = saved.attributes
    sizes = [shape[axis] for shape in saved.shapes]
    return call(xp, "split", (_of(grads[0]),), sizes, axis)


def gradient_cast(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """The other way."""
    return call(xp, "cast", (_of(grads[0]),), saved.dtypes[0])


def gradient_pad(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """Without the padding; or added up, axis by axis, where it repeats elements."""
    grad, shape = _of(grads[0]), saved.shapes[0]
    starts, ends, mode, _ = saved.attributes
    if mode == "constant":
        window = (starts, shape, (1,) * len(shape))
        return call(xp, "slice_window", (grad,), *window)
    for axis, size in enumerate(shape):
        paddings = ((starts[axis],), (ends[axis],))
        (positions,) = call(xp, "pad", (xp.arange(size, grad),), *paddings, mode, 0)
        rest = (*grad.shape[:axis], *grad.shape[axis + 1 :])
        operands = (
            xp.zeros((size, *rest), grad),
            xp.reshape(positions, (*positions.shape, 1)),
            xp.moveaxis(grad, (axis,), (0,)),
        )
        (summed,) = call(xp, "scatter_nd", operands, "add", True)
        grad = xp.moveaxis(summed, (0,), (axis,))
    return [grad]


def gradient_slice(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """Axis by axis the gradient grows from the window's elements to the whole axis."""
    grad, shape = _of(grads[0]), saved.shapes[0]
    for axis, (start, size, stride) in enumerate(zip(*saved.attributes, strict=True)):
        first, step = start, abs(stride)
        if stride < 0:  # from the end of the window
            grad = xp.flip(grad, axis)
            first = start + (size - 1) % step if size else start
        full_shape = (*grad.shape[:axis], shape[axis], *grad.shape[axis + 1 :])
        grad = xp.place(grad, full_shape, axis, first, step)
    return [grad]


def gradient_tile(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """The sum over the tiles."""
    pairs = zip(saved.attributes[0], saved.shapes[0], strict=True)
    tiles = xp.reshape(_of(grads[0]), tuple(size for pair in pairs for size in pair))
    return [xp.sum(tiles, tuple(range(0, tiles.ndim, 2)))]


def gradient_reverse(xp: Namespace, saved: Saved, grads: Derived, needs: Sequence[bool]) -> Derived:
    """The same reversal."""
    operands = (_of(grads[0]), _of(saved.operands[1]))
    return [*call(xp, "reverse_subsequences", operands, *saved.attributes), None]
