"""Lazy and traced arrays, which have no memory yet."""

from __future__ import annotations

from typing import Any

from anydml.core.errors import ArgumentTypeError
from anydml.libraries import _jax
from anydml.libraries._base import class_of


def has_no_memory(value: Any) -> bool:
    """Whether the value is a dask array, or a tracer of JAX."""
    return _is_dask(value) or _jax.is_tracer(value)


def reject_dask(value: Any, name: str) -> None:
    """Reject a dask array where converting it would compute it without being asked."""
    if _is_dask(value):
        raise ArgumentTypeError(
            f"{name}: expected an array in memory, got a dask array; call {name}.compute(), or "
            f"make the first operand a dask array"
        )


def _is_dask(value: Any) -> bool:
    return isinstance(value, class_of("dask.array", "Array"))
