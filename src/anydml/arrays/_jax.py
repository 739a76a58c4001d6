"""JAX arrays on the CPU."""

from __future__ import annotations

import sys
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
            f"{name}: expected an array with memory, got a tracer (jax.jit, vmap or grad); "
            f"call outside of it or through jax.pure_callback"
        )
    _dlpack.on_host(value, name)
    try:
        array = np.asarray(value)
    except Exception as error:  # deleted, donated, not addressable: whatever JAX raises
        raise unreadable(name, error) from error
    return array, _wrap


def _wrap(array: Array) -> Any:
    jax: Any = sys.modules["jax"]
    kept = jax.dtypes.canonicalize_dtype(array.dtype)
    if kept != array.dtype:  # which JAX would change without a word
        raise ArgumentTypeError(
            f"result: expected a type that JAX has, got {array.dtype}; "
            f"64 bits need jax.config.update('jax_enable_x64', True)"
        )
    return jax.numpy.from_dlpack(array)


def _is_tracer(value: Any) -> bool:
    core = getattr(sys.modules.get("jax"), "core", None)
    tracer = getattr(core, "Tracer", None)
    return tracer is not None and isinstance(value, tracer)
