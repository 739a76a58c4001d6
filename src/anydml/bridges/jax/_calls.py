"""Calls of the array functions from traced code: what they give, and how they run on the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import jax
import numpy as np
from jax import numpy as jnp

from anydml._json import shown
from anydml.arrays import adopt, as_type, keep
from anydml.errors import ArgumentError, ArgumentTypeError
from anydml.functions._arguments import index_array, same_type
from anydml.functions.gather import gather, gather_elements, gather_nd
from anydml.functions.movers import cast
from anydml.functions.rearranging import reverse_subsequences
from anydml.functions.scatter import scatter_elements, scatter_nd
from anydml.functions.selection import nonzero_coordinates, top_k

Traced: TypeAlias = Any
"""An array of JAX, traced or not: the package's types are not needed to check this one."""


@dataclass(frozen=True)
class Call:
    """A call of an array function without its operands: hashable, so that JAX can compare it.

    Attributes
    ----------
    function : str
        Its name.
    given : tuple of (str, value) pairs
        Its other arguments; axes count from the start.
    ranks : tuple of int
        Of the operands.
    outputs : tuple of (shape, type name) pairs
        What it gives.
    """

    function: str
    given: tuple[tuple[str, Any], ...]
    ranks: tuple[int, ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]

    def __call__(self, *operands: Traced) -> tuple[Traced, ...]:
        """The results in traced code; under vmap the host sees all rows at once."""
        specs = tuple(jax.ShapeDtypeStruct(*output) for output in self.outputs)
        results: tuple[Traced, ...] = jax.pure_callback(
            self._on_host, specs, *operands, vmap_method="expand_dims"
        )
        return results

    def _on_host(self, *operands: Any) -> tuple[Any, ...]:
        arrays = [np.asarray(operand) for operand in operands]
        mapped = arrays[0].ndim - self.ranks[0]
        given = dict(self.given)
        if not mapped:
            return self._run(arrays, given)
        batch = np.broadcast_shapes(*(array.shape[:mapped] for array in arrays))
        shift = _SHIFTED.get(self.function)
        if shift is not None:
            pairs = zip(arrays, self.ranks, strict=True)
            wide = [np.broadcast_to(a, batch + a.shape[a.ndim - rank :]) for a, rank in pairs]
            return self._run(wide, given | {shift: given[shift] + mapped})
        results = tuple(np.empty(batch + shape, kind) for shape, kind in self.outputs)
        for at in np.ndindex(batch):
            rows = [
                array[tuple(min(i, n - 1) for i, n in zip(at, array.shape, strict=False))]
                for array in arrays
            ]
            for result, row in zip(results, self._run(rows, given), strict=True):
                result[at] = row
        return results

    def _run(self, arrays: Sequence[Any], given: Mapping[str, Any]) -> tuple[Any, ...]:
        result = _FUNCTIONS[self.function](*arrays, **given)
        return tuple(result) if isinstance(result, tuple) else (result,)


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        cast, gather, gather_elements, gather_nd, nonzero_coordinates, reverse_subsequences,
        scatter_elements, scatter_nd, top_k,
    )
}  # fmt: skip

# The argument that counts axes: with it, rows of a batch are one call more.
_SHIFTED: Final = {
    "top_k": "axis", "gather_elements": "axis", "scatter_elements": "axis",
    "gather_nd": "batch_dims", "reverse_subsequences": "axis",
}  # fmt: skip


def operand(value: Any, name: str) -> Traced:
    """An operand as an array of JAX, traced or not; of a type that JAX does not change."""
    if isinstance(value, jax.Array):
        return value
    array, _ = adopt(value, name)
    wanted = jax.dtypes.canonicalize_dtype(array.dtype)
    if wanted != array.dtype and array.dtype.kind in "iu" and array.size:
        limits = np.iinfo(wanted)
        if limits.min <= array.min() and array.max() <= limits.max:
            array = as_type(array, wanted, name)
    keep(jnp.zeros(0), array.dtype, name)
    return jnp.asarray(array)


def operand_as(value: Any, name: str, of: Traced) -> Traced:
    """An operand that must have another's type; numbers and lists take it on where they fit."""
    if isinstance(value, jax.Array):
        known = np.empty(0, value.dtype)
        same_type(known, known, name, of)
        return value
    array, _ = adopt(value, name)
    return jnp.asarray(same_type(array, value, name, of))


def indices(value: Any, name: str = "indices") -> Traced:
    """An operand that holds indices."""
    if isinstance(value, jax.Array):
        index_array(np.empty(0, value.dtype), name)
        return value
    return operand(index_array(value, name), name)


def spread(array: Traced, shape: tuple[int, ...], name: str) -> Traced:
    """An operand again and again, up to a shape."""
    try:
        return jnp.broadcast_to(array, shape)
    except ValueError:
        raise ArgumentError(
            f"{name}: expected a shape that can be broadcast to {shape}, got {array.shape}"
        ) from None


def no_out(out: Any) -> None:
    """Refuse an array to write into: JAX's arrays are never written."""
    if out is not None:
        raise ArgumentTypeError(
            f"out: expected None beside a traced value, got {shown(type(out).__name__)}"
        )
