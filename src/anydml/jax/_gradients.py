"""Calls in jvp and grad: tangents are calls that are linear, and have transposes of the same kind.

So that the derivatives of a program are of any order, forward and backward, and have the same bits
on every run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import jax
import numpy as np
from jax import numpy as jnp
from jax.interpreters import ad

from anydml.errors import ArgumentError
from anydml.jax._calls import PRIMITIVE, Call
from anydml.jax._indexed import gather_elements, gather_nd, scatter_elements, scatter_nd
from anydml.jax._kernels import Traced
from anydml.jax._movers import cast, reverse_subsequences

Cotangents = list[Traced | None]
Transpose = Callable[[Call, Traced, Any], Cotangents]
"""Takes a call, its result's cotangent, and operands: unknown are those in which it is linear."""


def _tangents(
    primals: Sequence[Traced], tangents: Sequence[Any], *, call: Call
) -> tuple[Any, Sequence[Any]]:
    """The results of a call, and what becomes of tangents: `Zero` where there is none."""
    results = call(*primals)
    moved: Sequence[Any] = ()
    if call.function == "top_k":
        moved = (gather_elements(tangents[0], results[1], axis=call["axis"]),)
    elif jnp.issubdtype(results[0].dtype, jnp.inexact):
        _check(call)
        linear = (0, 2)  # x, and the updates of a scatter
        operands = [
            ad.instantiate_zeros(tangent) if i in linear else primal
            for i, (primal, tangent) in enumerate(zip(primals, tangents, strict=True))
        ]
        moved = call(*operands)
    none = [ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results[len(moved) :]]
    return results, (*moved, *none)


def _check(call: Call) -> None:
    """Refuse what has no gradient."""
    given = dict(call.given)
    how, whole = given.get("reduction", "none"), given.get("include_self", True)
    if how == "none" or (how == "add" and whole):
        return
    said = f"reduction={how!r}" if whole else f"reduction={how!r} and include_self=False"
    raise ArgumentError(
        f"{call.function} with {said} has no gradient; those of top_k, the gathers, scatters with "
        f"reduction none or add, reverse_subsequences, split, join, slice_window, pad, tile and "
        f"cast have one"
    )


def _transposed(cotangents: Sequence[Any], *operands: Any, call: Call) -> Cotangents:
    (given,) = cotangents
    if type(given) is ad.Zero:
        return [None] * len(operands)
    found = _TRANSPOSES[call.function](call, given, operands)
    return [
        one if ad.is_undefined_primal(operand) else None
        for one, operand in zip(found, operands, strict=True)
    ]


def _gather(call: Call, given: Traced, operands: Any) -> Cotangents:
    x, lookup = operands[0].aval, operands[1]
    axis = call["axis"]
    places = _places(lookup, x.shape[axis], call["mode"]).reshape(-1, 1)
    slices = given.reshape(*x.shape[:axis], lookup.size, *x.shape[axis + 1 :])
    zeros = jnp.zeros(x.shape, x.dtype)
    moved = jnp.moveaxis(zeros, axis, 0), places, jnp.moveaxis(slices, axis, 0)
    return [jnp.moveaxis(scatter_nd(*moved, reduction="add"), 0, axis), None]


def _gather_elements(call: Call, given: Traced, operands: Any) -> Cotangents:
    x, lookup = operands[0].aval, operands[1]
    axis = call["axis"]
    places = _places(lookup, x.shape[axis], call["mode"])
    zeros = jnp.zeros(x.shape, x.dtype)
    return [scatter_elements(zeros, places, given, axis=axis, reduction="add"), None]


def _gather_nd(call: Call, given: Traced, operands: Any) -> Cotangents:
    x, lookup = operands[0].aval, operands[1]
    batch, mode = call["batch_dims"], call["mode"]
    kind = jax.dtypes.canonicalize_dtype(np.int64)
    rows, count = lookup.shape[:-1], lookup.shape[-1]
    columns = [jax.lax.broadcasted_iota(kind, rows, axis) for axis in range(batch)]
    columns += [_places(lookup[..., i], x.shape[batch + i], mode) for i in range(count)]
    places = jnp.stack(columns, axis=-1) if columns else jnp.zeros((*rows, 0), kind)
    return [scatter_nd(jnp.zeros(x.shape, x.dtype), places, given, reduction="add"), None]


def _places(lookup: Traced, size: int, mode: str) -> Traced:
    """Which elements of an axis were read: what gathering does with the positions themselves."""
    kind = jax.dtypes.canonicalize_dtype(jnp.int64)
    given = (("axis", 0), ("mode", mode))
    call = Call("gather", given, ((lookup.shape, kind.name),))
    return call(jnp.arange(size, dtype=kind), lookup)[0]


def _scatter_elements(call: Call, given: Traced, operands: Any) -> Cotangents:
    _, lookup, _ = operands
    axis = call["axis"]
    taken = gather_elements(given, lookup, axis=axis)
    if call["reduction"] == "add":
        return [given, None, taken]
    order = jnp.arange(lookup.size, dtype=jnp.int32).reshape(lookup.shape)
    last = scatter_elements(jnp.full(given.shape, -1, jnp.int32), lookup, order, axis=axis)
    wins = gather_elements(last, lookup, axis=axis) == order
    return [jnp.where(last < 0, given, 0), None, jnp.where(wins, taken, 0)]


def _scatter_nd(call: Call, given: Traced, operands: Any) -> Cotangents:
    _, lookup, _ = operands
    taken = gather_nd(given, lookup)
    if call["reduction"] == "add":
        return [given, None, taken]
    count = lookup.shape[-1]
    rows = lookup.shape[:-1]
    order = jnp.arange(math.prod(rows), dtype=jnp.int32).reshape(rows)
    last = scatter_nd(jnp.full(given.shape[:count], -1, jnp.int32), lookup, order)
    wins = gather_nd(last, lookup) == order
    wins, untouched = (
        mask.reshape(mask.shape + (1,) * (given.ndim - count)) for mask in (wins, last < 0)
    )
    return [jnp.where(untouched, given, 0), None, jnp.where(wins, taken, 0)]


def _reverse_subsequences(call: Call, given: Traced, operands: Any) -> Cotangents:
    return [reverse_subsequences(given, operands[1], axis=call["axis"]), None]


def _cast(call: Call, given: Traced, operands: Any) -> Cotangents:
    return [cast(given, operands[0].aval.dtype)]


_TRANSPOSES: Final[dict[str, Transpose]] = {
    "gather": _gather,
    "gather_elements": _gather_elements,
    "gather_nd": _gather_nd,
    "scatter_elements": _scatter_elements,
    "scatter_nd": _scatter_nd,
    "reverse_subsequences": _reverse_subsequences,
    "cast": _cast,
}

ad.primitive_jvps[PRIMITIVE] = _tangents
ad.primitive_transposes[PRIMITIVE] = _transposed
