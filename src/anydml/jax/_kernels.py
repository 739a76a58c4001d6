"""Kernels of this library in the traced code of array functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from anydml.devices.backends import cuda
from anydml.devices.backends._xla_calls import TARGET, custom_call, failures

__all__ = ["TARGET", "Traced", "failures", "run", "threads"]

Traced: TypeAlias = Any
"""An array of JAX, traced or not: the package's types are not needed to check this one."""

threads: Final[ContextVar[int | None]] = ContextVar("anydml.jax.threads", default=None)
"""The most threads of the calls in the program that is being made (0: what the process says when
they run); None in the user's traced code."""

cuda.configure()


def run(
    operator: Any,
    operands: Sequence[Traced],
    outputs: Sequence[tuple[tuple[int, ...], Any]],
    attributes: Mapping[str, Any],
    axes: Sequence[int],
    scratch: bool,
) -> list[Traced]:
    """Call an operator's kernel (`anydml.functions._library.KernelLibrary`)."""
    # The indices' axes follow one another.
    limit = threads.get() or 0
    return custom_call(operator.KERNEL, operands, outputs, attributes, axes, limit)
