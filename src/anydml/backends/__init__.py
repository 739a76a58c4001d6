"""Where programs run: `cpu`, the native kernels, and `reference`, the rooms' own loops.

A backend allocates memory and compiles programs. Nothing above this package knows which backends
there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from anydml.backends._base import Backend, Executable, decline
from anydml.backends.cpu import CpuBackend
from anydml.backends.reference import ReferenceBackend

BACKENDS: Final[Mapping[str, Backend]] = {
    "cpu": CpuBackend(),
    "reference": ReferenceBackend(),
}
"""By the name that `Device` takes; the best one first."""

__all__ = ["BACKENDS", "Backend", "Executable", "decline"]
