"""Calls with gradients: each is a call of the array functions too."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
from jax import numpy as jnp

from anydml.bridges.jax._calls import Call, Traced
from anydml.errors import ArgumentError

Backward = Callable[[Call, Any, tuple[Traced, ...]], tuple[Traced, ...]]


def differentiable(backward: Backward) -> Callable[..., tuple[Traced, ...]]:
    """A call with a gradient.

    Parameters
    ----------
    backward : callable
        Takes the call, what its operands and results were, and the cotangents of the results; gives
        a cotangent for each operand, None where there is none.
    """

    @partial(jax.custom_vjp, nondiff_argnums=(0,))
    def run(call: Call, *operands: Traced) -> tuple[Traced, ...]:
        return call(*operands)

    def forward(call: Call, *operands: Traced) -> tuple[Any, Any]:
        results = run(call, *operands)
        return results, (operands, results)

    run.defvjp(forward, backward)
    traced: Callable[..., tuple[Traced, ...]] = run
    return traced


def no_gradient(call: Call, kept: Any, cotangents: tuple[Traced, ...]) -> tuple[Traced, ...]:
    """What has no gradient says so."""
    how = "".join(f" with {name}={value!r}" for name, value in call.given if name == "reduction")
    raise ArgumentError(
        f"{call.function}{how} has no gradient; those of top_k, the gathers, scatters with "
        f"reduction none or add, split and join have one"
    )


def places(lookup: Traced, size: int, mode: str) -> Traced:
    """Which elements of an axis were read: what gathering does with the positions themselves."""
    kind = jax.dtypes.canonicalize_dtype(jnp.int64)
    given = (("axis", 0), ("mode", mode))
    call = Call("gather", given, (1, lookup.ndim), ((lookup.shape, kind.name),))
    return call(jnp.arange(size, dtype=kind), lookup)[0]
