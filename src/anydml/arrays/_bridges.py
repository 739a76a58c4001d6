"""Lazy and traced arrays, which have no memory yet: which they are, and what computes with them.

A bridge is a module that has the array functions under their own names, for values of one library.
It stands above the functions and is registered here by name, so that it is loaded when the first
of these values comes in.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from anydml.arrays import _jax
from anydml.arrays._base import class_of


def _is_dask(value: Any) -> bool:
    return isinstance(value, class_of("dask.array", "Array"))


BRIDGES: Final[tuple[tuple[Callable[[Any], bool], str], ...]] = (
    (_is_dask, "anydml.dask"),
    (_jax.is_tracer, "anydml.jax"),
)
"""Whether a value is a bridge's, and the bridge's module."""


def bridge_of(*values: Any) -> Any:
    """The bridge that takes a call with these operands; None for arrays with memory."""
    for owns, module in BRIDGES:
        if any(map(owns, values)):
            return import_module(module)
    return None
