"""Calls under vmap: one call on all batches, with one axis more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import jax
from jax import numpy as jnp
from jax.interpreters import batching

from anydml.jax._calls import PRIMITIVE, Call
from anydml.jax._kernels import Traced

Batched = tuple[Sequence[Traced], Sequence[int]]
"""Results, and where their axis of batches is."""

Dims = Sequence[int | None]

# The argument that counts axes.
_COUNTED: Final = {
    "top_k": "axis", "gather_elements": "axis", "scatter_elements": "axis",
    "gather_nd": "batch_dims", "reverse_subsequences": "axis",
}  # fmt: skip


def _batched(operands: Sequence[Traced], dims: Dims, *, call: Call) -> Batched:
    pairs = zip(operands, dims, strict=True)
    count = next(operand.shape[dim] for operand, dim in pairs if dim is not None)
    if call.function == "gather":
        return _gather(call, count, operands, dims)
    pairs = zip(operands, dims, strict=True)
    wide = [_first(operand, dim, count) for operand, dim in pairs]
    if call.function == "scatter_nd":
        wide[1] = _of_batches(wide[1])
    results = _with_batches(call, count)(*wide)
    return results, [0] * len(results)


def _first(operand: Traced, dim: int | None, count: int) -> Traced:
    """The operand with its batches on the first axis; over and over where it has none."""
    if dim is None:
        return jnp.broadcast_to(operand, (count, *operand.shape))
    return jnp.moveaxis(operand, dim, 0)


def _with_batches(call: Call, count: int) -> Call:
    """The call with one axis more in front of all operands."""
    given = dict(call.given)
    counted = _COUNTED.get(call.function)
    if counted is not None:
        given[counted] += 1
    if call.function == "nonzero_coordinates":
        given["batches"] = given.get("batches", 0) + 1
    outputs = tuple(((count, *shape), kind) for shape, kind in call.outputs)
    return Call(call.function, tuple(given.items()), outputs)


def _of_batches(tuples: Traced) -> Traced:
    """Index tuples that name their batch themselves, on the first axis."""
    numbers = jax.lax.broadcasted_iota(tuples.dtype, (*tuples.shape[:-1], 1), 0)
    return jnp.concatenate([numbers, tuples], axis=-1)


def _gather(call: Call, count: int, operands: Sequence[Traced], dims: Dims) -> Batched:
    x, lookup = operands
    axis = call["axis"]
    ((shape, kind),) = call.outputs
    if dims[1] is None:
        given = (("axis", axis + 1), ("mode", call["mode"]))
        wide = Call("gather", given, (((count, *shape), kind),))
        return wide(_first(x, dims[0], count), lookup), [0]
    lookup = _first(lookup, dims[1], count)
    if dims[0] is None:
        wide = Call("gather", call.given, (((*shape[:axis], count, *shape[axis:]), kind),))
        return wide(x, lookup), [axis]
    x = jnp.moveaxis(_first(x, dims[0], count), axis + 1, 1)
    rest = x.shape[2:]
    given = (("batch_dims", 1), ("mode", call["mode"]))
    slices = Call("gather_nd", given, (((*lookup.shape, *rest), kind),))(x, lookup[..., None])[0]
    behind = tuple(range(1, lookup.ndim))
    return [jnp.moveaxis(slices, behind, tuple(i + axis for i in behind))], [0]


batching.primitive_batchers[PRIMITIVE] = _batched
