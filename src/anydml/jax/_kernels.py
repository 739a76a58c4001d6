"""Kernels of this library in programs of JAX: custom calls of XLA, on the CPU and on CUDA."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

import jax
import numpy as np

from anydml._native import native
from anydml.core.errors import AnyDMLError
from anydml.devices.backends import cuda

Traced: TypeAlias = Any
"""An array of JAX, traced or not: the package's types are not needed to check this one."""

TARGET: Final = "anydml"
"""The name of the custom calls."""

failures: Final[deque[AnyDMLError]] = deque(maxlen=64)
"""The latest failures of custom calls, whose messages JAX's own exceptions have."""

threads: Final[ContextVar[int | None]] = ContextVar("anydml.jax.threads", default=None)
"""The most threads of the calls in the program that is being made (0: what the process says when
they run); None in the user's traced code."""


def _message(failure: AnyDMLError) -> str:
    failures.append(failure)
    return str(failure)


def _register() -> None:
    on_cpu, on_gpu = native.xla_handlers(_message)
    jax.ffi.register_ffi_target(TARGET, on_cpu, platform="cpu")
    jax.ffi.register_ffi_target(TARGET, on_gpu, platform="CUDA")
    cuda.configure()


_register()


def run(
    operator: Any,
    operands: Sequence[Traced],
    outputs: Sequence[tuple[tuple[int, ...], Any]],
    attributes: Mapping[str, Any],
    axes: Sequence[int],
    scratch: bool,
) -> list[Traced]:
    """Call an operator's kernel (`anydml.functions._function.KernelLibrary`)."""
    # The indices' axes follow one another.
    limit, first = threads.get() or 0, axes[0] if axes else 0
    kernel = operator.KERNEL
    numbers = (limit, first, len(axes), *native.attribute_numbers(kernel, dict(attributes)))
    specs = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in outputs]
    call = jax.ffi.ffi_call(TARGET, specs)
    results: Sequence[Traced] = call(*operands, kernel=kernel, numbers=np.array(numbers, np.int64))
    return list(results)
