"""Calls of the array functions in traced code: what they give, and what JAX makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import mlir

from anydml._json import shown
from anydml.arrays import adopt, as_type, given_back, keep
from anydml.errors import ArgumentTypeError
from anydml.functions._arguments import index_array, same_type
from anydml.functions._arguments import spread as spread_by
from anydml.jax import _kernels
from anydml.jax._kernels import Traced


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
    threads : int
        The most threads that it uses; 0: what the process says when it runs.
    """

    function: str
    given: tuple[tuple[str, Any], ...]
    outputs: tuple[tuple[tuple[int, ...], str], ...]
    threads: int = field(default_factory=_kernels.most_threads)

    def __call__(self, *operands: Traced) -> tuple[Traced, ...]:
        """The results in traced code."""
        return tuple(PRIMITIVE.bind(*operands, call=self))

    def __getitem__(self, name: str) -> Any:
        """An argument."""
        return dict(self.given)[name]


PRIMITIVE: Final[Any] = Primitive("anydml")
"""A call as JAX knows it; what becomes of it in jvp, grad and vmap is registered beside it."""
PRIMITIVE.multiple_results = True


def _computed(*operands: Traced, call: Call) -> list[Traced]:
    compute = getattr(_kernels, call.function)
    results: list[Traced] = compute(
        *operands, outputs=call.outputs, most=call.threads, **dict(call.given)
    )
    return results


def _shapes(*operands: Any, call: Call) -> Sequence[Any]:
    return [jax.core.ShapedArray(shape, np.dtype(kind)) for shape, kind in call.outputs]


PRIMITIVE.def_impl(jax.jit(_computed, static_argnames="call"))
PRIMITIVE.def_abstract_eval(_shapes)
mlir.register_lowering(PRIMITIVE, mlir.lower_fun(_computed, multiple_results=True))


def operand(value: Any, name: str) -> Traced:
    """An operand as an array of JAX, traced or not; of a type that JAX does not change."""
    if isinstance(value, jax.Array):
        return _typed(value, name)
    array = given_back(adopt(value, name)[0])
    wanted = jax.dtypes.canonicalize_dtype(array.dtype)
    if wanted != array.dtype and array.dtype.kind in "iu":
        limits = np.iinfo(wanted)
        if not array.size or (limits.min <= array.min() and array.max() <= limits.max):
            array = as_type(array, wanted, name)
    keep(jnp.zeros(0), array.dtype, name)
    return jnp.asarray(array)


def _typed(value: Traced, name: str) -> Traced:
    """An array of a type that the functions know, which stays that type beside others."""
    kind = value.dtype if isinstance(value.dtype, np.dtype) else np.dtype("V1")  # keys have others
    adopt(np.empty(0, kind), name)
    return lax.convert_element_type(value, kind) if value.weak_type else value


def operand_as(value: Any, name: str, of: Traced, of_name: str = "x") -> Traced:
    """An operand that must have another's type; numbers and lists take it on where they fit."""
    if isinstance(value, jax.Array):
        known = np.empty(0, value.dtype)
        same_type(known, known, name, of, of_name)
        return _typed(value, name)
    array, _ = adopt(value, name)
    return jnp.asarray(same_type(array, value, name, of, of_name))


def indices(value: Any, name: str = "indices") -> Traced:
    """An operand that holds indices."""
    if isinstance(value, jax.Array):
        index_array(np.empty(0, value.dtype), name)
        return value if value.dtype.itemsize >= 4 else value.astype(np.int32)
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
