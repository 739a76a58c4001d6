"""JAX arrays on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from anydml.arrays import _dlpack
from anydml.arrays._base import Array, Wrap, unnoticed, unreadable
from anydml.errors import ArgumentTypeError

written = unnoticed


def owns(value: Any) -> bool:
    """Whether the value is an array or a tracer of JAX."""
    return type(value).__module__.partition(".")[0] in ("jax", "jaxlib") and (
        hasattr(value, "__dlpack__") or _is_tracer(value)
    )


def adopt(value: Any, name: str) -> tuple[Array, Wrap]:
    """The array as a NumPy array that cannot be written; tracers are refused."""
    if _is_tracer(value):
        raise ArgumentTypeError(
            f"{name}: expected an array with memory, got a tracer (jax.jit, vmap or grad); call "
            f"outside of it, or inside through jax.pure_callback(function, shape_and_dtype, ..)"
        )
    _dlpack.on_host(value, name)
    try:
        array = np.asarray(value)
    except Exception as error:  # deleted, donated, not addressable: whatever JAX raises
        raise unreadable(name, error) from error
    return array, _wrap


def index_type() -> np.dtype[Any]:
    """JAX's own default integer: int64 with jax_enable_x64, else int32."""
    jax: Any = sys.modules["jax"]
    kind: np.dtype[Any] = jax.dtypes.canonicalize_dtype(np.int64)
    return kind


def keep(dtype: np.dtype[Any], name: str) -> None:
    """Refuse 64 bits where JAX has them not: it would make them 32 without a word."""
    jax: Any = sys.modules["jax"]
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ArgumentTypeError(
            f"{name}: expected a type that JAX has, got {dtype}; "
            f"64 bits need jax.config.update('jax_enable_x64', True)"
        )


def promoted(dtypes: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """JAX's rules: an integer and a float give the float."""
    jax: Any = sys.modules["jax"]
    return np.dtype(reduce(jax.numpy.promote_types, dtypes))


def _wrap(array: Array) -> Any:
    jax: Any = sys.modules["jax"]
    keep(array.dtype, "result")
    return jax.numpy.from_dlpack(array)


def _is_tracer(value: Any) -> bool:
    core = getattr(sys.modules.get("jax"), "core", None)
    tracer = getattr(core, "Tracer", None)
    return tracer is not None and isinstance(value, tracer)
