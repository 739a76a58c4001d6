"""Kernels of this library in programs of JAX: custom calls of XLA, on the CPU and on CUDA."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jax
import numpy as np

from anydml._native import native
from anydml.core.errors import AnyDMLError

TARGET: Final = "anydml"
"""The name of the custom calls."""

failures: Final[deque[AnyDMLError]] = deque(maxlen=64)
"""The latest failures of custom calls, whose messages JAX's own exceptions have."""


def _message(failure: AnyDMLError) -> str:
    failures.append(failure)
    return str(failure)


def _register() -> None:
    on_cpu, on_gpu = native.xla_handlers(_message)
    jax.ffi.register_ffi_target(TARGET, on_cpu, platform="cpu")
    jax.ffi.register_ffi_target(TARGET, on_gpu, platform="CUDA")


_register()


def custom_call(
    kernel: str,
    operands: Sequence[Any],
    outputs: Sequence[tuple[tuple[int, ...], Any]],
    attributes: Mapping[str, Any],
    axes: Sequence[int] = (),
    threads: int = 0,
    **named: Any,
) -> list[Any]:
    """A kernel's results in traced code.

    Parameters
    ----------
    kernel : str
        Its name.
    operands : sequence of jax.Array
        Its inputs.
    outputs : sequence of (tuple of int, dtype) pairs
        The shapes and types of its outputs.
    attributes : mapping
        The kernel's own attributes.
    axes : sequence of int, optional
        The axes, one after the other, that the second operand's indices point into.
    threads : int, optional
        The most threads on the CPU; 0 for what the process says when it runs.
    **named
        ``where`` and ``padding``, as native/python/xla_ffi.cpp has them.
    """
    own = native.attribute_numbers(kernel, dict(attributes))
    numbers = (threads, axes[0] if axes else 0, len(axes), *own)
    specs = [jax.ShapeDtypeStruct(shape, kind) for shape, kind in outputs]
    call = jax.ffi.ffi_call(TARGET, specs)
    results: Sequence[Any] = call(
        *operands, kernel=kernel, numbers=np.array(numbers, np.int64), **named
    )
    return list(results)
