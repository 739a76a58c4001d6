"""Computed operators: all of them, their results on a device, and the exact ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest

from anydml.devices.device import Device
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS

Array = np.ndarray[Any, np.dtype[Any]]

KINDS: Final = [kind for kind in dict.fromkeys(OPERATORS.values()) if issubclass(kind, Computed)]

NAMES: Final = (
    "cpu",
    pytest.param("xla", marks=pytest.mark.slow),
    pytest.param("onnxruntime", marks=pytest.mark.slow),
)
"""Of the devices that outside judges look at."""


def device_named(name: str) -> Device:
    """The device; the test is skipped where its library is missing."""
    if name == "xla":
        pytest.importorskip("jax")
    if name == "onnxruntime":
        pytest.importorskip("onnxruntime")
        backend = pytest.importorskip("anydml.devices.backends.onnxruntime")
        backend.LEAST_ELEMENTS = 0  # small arrays get sessions, too
    return Device(name)


def bindings(desc: Any, arrays: Sequence[Array]) -> dict[str, Any]:
    """An array for each input tensor, by the names that they are bound by: lists for lists."""
    present = iter(arrays)
    found: dict[str, Any] = {}
    for info in desc.bind_points(Role.INPUT):
        members = [next(present) for _ in info.paths(getattr(desc, info.attribute))]
        found[info.name] = members if info.many else members[0]
    return found


def run(device: Device, desc: Any, arrays: Sequence[Array]) -> list[Array]:
    """The results that the descriptor has, always as a list."""
    results = device.create_operator(desc).compile()(**bindings(desc, arrays))
    return [*results] if isinstance(results, tuple) else [results]
