"""Batches, tangents and gradients that several array functions share, made of array functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from anydml.functions._arguments import is_uint64
from anydml.functions._function import SPECS, Attributes, Saved
from anydml.functions._library import Array, Library

Arrays = Sequence[Array]
Batched = tuple[Arrays, Sequence[int]]
Dims = Sequence[int | None]
Derived = Arrays
"""Tangents or cotangents; None for one that is zero, or not wanted."""


def call(lib: Library, name: str, operands: Arrays, **attributes: Any) -> Arrays:
    """Call an array function on normalized operands; attributes may come in any order."""
    spec = SPECS[name]
    given = {a.name: attributes.get(a.name, a.default) for a in spec.attributes}
    results: Arrays = lib.call(spec, operands, given)
    return results


def added_up(
    lib: Library, shape: Sequence[Any], indices: Array, updates: Array, **axis: int
) -> Arrays:
    """Add up updates in zeros of a shape: by indices along an axis, or by tuples of indices."""
    operands = (lib.zeros(shape, updates), indices, updates)
    name = "scatter_elements" if axis else "scatter_nd"
    return call(lib, name, operands, **axis, reduction="add", include_self=True)


# ---- batches: one call with one axis more -------------------------------------------------------


def to_first(lib: Library, x: Array, dim: int | None, size: Any) -> Array:
    """Move the batch of an array to the first axis; repeat the array if it has none."""
    if dim is None:
        return lib.broadcast_to(lib.reshape(x, (1, *x.shape)), (size, *x.shape))
    return lib.moveaxis(x, (dim,), (0,))


def all_first(lib: Library, operands: Arrays, dims: Sequence[int | None], size: Any) -> Arrays:
    """Move the batches of all operands to the first axis."""
    pairs = zip(operands, dims, strict=True)
    return [to_first(lib, operand, dim, size) for operand, dim in pairs]


def batch_by(
    name: str, widen: Callable[[Attributes, Any], Attributes] = lambda attributes, size: attributes
) -> Callable[..., Batched]:
    """Return the rule for attributes that `widen` adapts to one more axis in front, of a size."""

    def batch(
        lib: Library,
        operands: Arrays,
        dims: Sequence[int | None],
        size: Any,
        attributes: Attributes,
    ) -> Batched:
        results = call(lib, name, all_first(lib, operands, dims, size), **widen(attributes, size))
        return results, [0] * len(results)

    return batch


def batch_along(name: str, attribute: str = "axis") -> Callable[..., Batched]:
    """Return the rule for an attribute that is an axis, or a number of leading axes."""
    return batch_by(
        name, lambda attributes, _: {**attributes, attribute: attributes[attribute] + 1}
    )


def with_batches(lib: Library, indices: Array, batch: int) -> Array:
    """Return index tuples that begin with the positions of their batches."""
    if not batch:
        return indices
    wide = lib.positions(indices)  # as large as positions of batches
    shape = tuple(wide.shape[:-1])
    columns = [wide[..., i] for i in range(wide.shape[-1])]
    for axis in reversed(range(batch)):
        numbers = lib.arange(shape[axis], wide)
        lined_up = lib.reshape(numbers, tuple(-1 if i == axis else 1 for i in range(len(shape))))
        columns.insert(0, lib.broadcast_to(lined_up, shape))
    return lib.stack(columns, -1)


# ---- tangents of linear functions ---------------------------------------------------------------


def or_zeros(lib: Library, saved: Saved, tangents: Derived, i: int) -> Array:
    """Return a tangent, or zeros if it is None."""
    found = tangents[i]
    if found is not None:
        return found
    return lib.zeros(saved.shapes[i], next(t for t in tangents if t is not None))


def linear(name: str, **changed: Any) -> Callable[..., Derived]:
    """Return the tangent of a function that is linear in all operands that are not saved.

    `changed` are the attributes that the tangent has instead of the call's.
    """

    def tangent(lib: Library, saved: Saved, tangents: Derived) -> Derived:
        operands = [
            or_zeros(lib, saved, tangents, i) if kept is None else kept
            for i, kept in enumerate(saved.operands)
        ]
        results = call(lib, name, operands, **{**saved.attributes, **changed})
        return [y if lib.is_real_or_complex(y) else None for y in results]

    return tangent


def saves_second(attributes: Attributes) -> tuple[Sequence[int], Sequence[int]]:
    """Keep the second operand: indices."""
    return (1,), ()


def clamped(lib: Library, indices: Array, size: Any, clamp: bool) -> Array:
    """Return the positions that a gather reads; an index above int64 is behind the end."""
    if not clamp:
        return indices
    signed = lib.positions(indices)
    if is_uint64(indices):
        return lib.where(signed < 0, size - 1, lib.clip(signed, None, size - 1))
    return lib.clip(lib.where(signed < 0, signed + size, signed), 0, size - 1)


# ---- operands as arrays of the library -----------------------------------------------------------


def array_and_indices(lib: Library, x: Any, indices: Any, *others: Any) -> tuple[Array, Array]:
    """Convert the operands of gathers."""
    data = lib.array(x, "x")
    return data, lib.indices(indices, data)


def array_and_lengths(lib: Library, x: Any, lengths: Any, *others: Any) -> tuple[Array, Array]:
    """Convert the operands of functions on sequences."""
    data = lib.array(x, "x")
    return data, lib.indices(lengths, data, "lengths")
