"""Calls of the array functions from traced code: what they give, and how they run on the host."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import jax
import numpy as np
from jax import numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir

from anydml._json import shown
from anydml.arrays import adopt, as_type, given_back, keep
from anydml.errors import ArgumentTypeError
from anydml.functions._arguments import index_array, same_type
from anydml.functions._arguments import spread as spread_by
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
    outputs : tuple of (shape, type name) pairs
        What it gives.
    """

    function: str
    given: tuple[tuple[str, Any], ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]

    def __call__(self, *operands: Traced) -> tuple[Traced, ...]:
        """The results in traced code."""
        return tuple(PRIMITIVE.bind(*operands, call=self))

    def __getitem__(self, name: str) -> Any:
        """An argument."""
        return dict(self.given)[name]

    def on_host(self, *operands: Any) -> tuple[Any, ...]:
        """The results of arrays that are there."""
        arrays = [np.asarray(operand) for operand in operands]
        result = _FUNCTIONS[self.function](*arrays, **dict(self.given))
        return tuple(result) if isinstance(result, tuple) else (result,)


PRIMITIVE: Final[Any] = Primitive("anydml")
"""A call as JAX knows it; what becomes of it in jvp, grad and vmap is registered beside it."""
PRIMITIVE.multiple_results = True


def _called_back(*operands: Traced, call: Call) -> Sequence[Traced]:
    specs = [jax.ShapeDtypeStruct(*output) for output in call.outputs]
    # Batches never get here: they are an axis more.
    results: Sequence[Traced] = jax.pure_callback(
        lambda *arrays: list(call.on_host(*arrays)), specs, *operands
    )
    return results


def _shapes(*operands: Any, call: Call) -> Sequence[Any]:
    return [jax.core.ShapedArray(shape, np.dtype(kind)) for shape, kind in call.outputs]


PRIMITIVE.def_impl(_called_back)
PRIMITIVE.def_abstract_eval(_shapes)
mlir.register_lowering(PRIMITIVE, mlir.lower_fun(_called_back, multiple_results=True))


def _nonzero_coordinates(
    x: Any, *, size: int, fill_value: int, index_dtype: str, batches: int = 0
) -> Any:
    """So many rows for each of the batches on the first axes."""
    if not batches:
        kind: Any = index_dtype
        return nonzero_coordinates(x, size=size, fill_value=fill_value, index_dtype=kind)
    count = math.prod(x.shape[:batches])
    whole = x.reshape(count, *x.shape[batches:])
    rows: Any = nonzero_coordinates(whole, index_dtype="int64")
    of, within = rows[:, 0], rows[:, 1:]
    ends = np.cumsum(np.bincount(of, minlength=count))
    places = np.arange(len(of)) - np.concatenate([[0], ends])[of]
    first = places < size
    result = np.full((count, size, within.shape[1]), fill_value, index_dtype)
    result[of[first], places[first]] = within[first]
    return result.reshape(*x.shape[:batches], size, within.shape[1])


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    function.__name__: function
    for function in (
        cast, gather, gather_elements, gather_nd, reverse_subsequences, scatter_elements,
        scatter_nd, top_k,
    )
} | {"nonzero_coordinates": _nonzero_coordinates}  # fmt: skip


def operand(value: Any, name: str) -> Traced:
    """An operand as an array of JAX, traced or not; of a type that JAX does not change."""
    if isinstance(value, jax.Array):
        return value
    array = given_back(adopt(value, name)[0])
    wanted = jax.dtypes.canonicalize_dtype(array.dtype)
    if wanted != array.dtype and array.dtype.kind in "iu":
        limits = np.iinfo(wanted)
        if not array.size or (limits.min <= array.min() and array.max() <= limits.max):
            array = as_type(array, wanted, name)
    keep(jnp.zeros(0), array.dtype, name)
    return jnp.asarray(array)


def operand_as(value: Any, name: str, of: Traced, of_name: str = "x") -> Traced:
    """An operand that must have another's type; numbers and lists take it on where they fit."""
    if isinstance(value, jax.Array):
        known = np.empty(0, value.dtype)
        same_type(known, known, name, of, of_name)
        return value
    array, _ = adopt(value, name)
    return jnp.asarray(same_type(array, value, name, of, of_name))


def indices(value: Any, name: str = "indices") -> Traced:
    """An operand that holds indices."""
    if isinstance(value, jax.Array):
        index_array(np.empty(0, value.dtype), name)
        return value
    return operand(index_array(value, name), name)


def spread(array: Traced, shape: tuple[int, ...], name: str) -> Traced:
    """An operand again and again, up to a shape."""
    return spread_by(array, shape, name, jnp.broadcast_to)


def no_out(out: Any) -> None:
    """Refuse an array to write into: JAX's arrays are never written."""
    if out is not None:
        raise ArgumentTypeError(
            f"out: expected None beside a traced value, got {shown(type(out).__name__)}"
        )
