"""The array functions on arrays of JAX, inside and outside of jit, vmap and grad.

The functions of the package send JAX's arrays here. Their kernels are custom calls of XLA's foreign
function interface: a primitive of JAX with rules for its transformations. They are here under their
own names, too.
"""

from collections.abc import Callable
from typing import Any

from anydml.core.extras import name_missing_package
from anydml.functions._dispatch import function_of
from anydml.functions._function import function_specs

with name_missing_package("anydml.jax", "anydml[jax]"):
    from jax.numpy import asarray as _asarray

    from anydml.devices.backends._xla_calls import TARGET
    from anydml.jax._eager import call_of

__all__ = ["TARGET"]


def __getattr__(name: str) -> Callable[..., Any]:
    """An array function that makes arrays of JAX of all operands."""
    return function_of(__name__, name, call_of, _asarray)


def __dir__() -> list[str]:
    return [*__all__, *function_specs()]
