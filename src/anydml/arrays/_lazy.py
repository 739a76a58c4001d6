"""Lazy and traced arrays, which have no memory yet."""

from __future__ import annotations

from typing import Any

from anydml.arrays import _jax
from anydml.arrays._base import class_of


def has_no_memory(value: Any) -> bool:
    """Whether the value is a dask array, or a tracer of JAX."""
    return isinstance(value, class_of("dask.array", "Array")) or _jax.is_tracer(value)
