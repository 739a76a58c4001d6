"""Where programs run: native kernels (`cpu`), NVIDIA GPUs (`cuda`), XLA, ONNX Runtime, or
`reference`.

A backend allocates memory and compiles programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from anydml.core._json import did_you_mean, short_repr
from anydml.core.errors import DeviceError
from anydml.core.extras import name_missing_package
from anydml.devices.backends import cuda
from anydml.devices.backends._base import Backend, Executable, Kernels, decline
from anydml.devices.backends.cpu import CpuBackend, CpuKernels
from anydml.devices.backends.cuda import CudaBackend
from anydml.devices.backends.reference import ReferenceBackend
from anydml.libraries._device import DeviceArray

NAMES: Final = (
    "cpu", "onnxruntime", "cuda", "cuda:N", "xla", "xla:PLATFORM", "reference",
)  # fmt: skip
"""The names that `Device` takes besides "auto"; N is a GPU's number, PLATFORM JAX's name of one."""

_GPU: Final = re.compile(r"cuda(?::(0|[1-9][0-9]{0,3}))?")
_XLA: Final = re.compile(r"xla(?::([a-z]{1,20}))?")
_CPU: Final = CpuBackend()
_REFERENCE: Final = ReferenceBackend()
_CPU_KERNELS: Final = CpuKernels()


def is_name(name: str) -> bool:
    """Whether it names a backend, be it here or not."""
    patterns = _GPU.fullmatch(name), _XLA.fullmatch(name)
    return name in ("cpu", "onnxruntime", "reference", "auto") or any(patterns)


def backend_named(name: str) -> tuple[str, Backend]:
    """A backend, and its full name.

    Raises
    ------
    DeviceError
        No such backend, or one that this machine does not have.
    """
    if name in ("cpu", "auto"):
        return "cpu", _CPU
    if name == "reference":
        return "reference", _REFERENCE
    if name == "onnxruntime":
        return name, _onnxruntime()
    platform = _XLA.fullmatch(name)
    if platform is not None:
        return name, _xla(platform[1])
    number = _GPU.fullmatch(name)
    if number is None:
        accepted = ", ".join((*NAMES, "auto"))
        hint = "; did you mean 'cuda'?" if name.lower() == "gpu" else did_you_mean(name, NAMES)
        raise DeviceError(f"kind: expected one of {accepted}, got {short_repr(name)}{hint}")
    device = int(number[1] or 0)
    found, _ = cuda.gpus()
    if device >= len(found):
        raise DeviceError(f"kind: expected a GPU of this machine (it has {len(found)}), got {name}")
    return f"cuda:{device}", CudaBackend(device)


def backends_here() -> dict[str, Backend]:
    """Every backend of this machine, by its full name; the one that "auto" takes first."""
    found: dict[str, Backend] = {"cpu": _CPU}
    with suppress(DeviceError):  # no driver
        found |= {f"cuda:{i}": CudaBackend(i) for i in range(len(cuda.gpus()[0]))}
    with suppress(DeviceError):  # no ONNX Runtime
        found["onnxruntime"] = _onnxruntime()
    with suppress(DeviceError):  # no JAX
        found["xla"] = _xla(None)
    return found | {"reference": _REFERENCE}


def why_no_gpu() -> str | None:
    """Why this machine has no usable GPU; None if it has one."""
    try:
        found, _ = cuda.gpus()
    except DeviceError as error:
        return str(error)
    return None if found else "the NVIDIA driver finds none"


def _xla(platform: str | None) -> Backend:
    with name_missing_package("Device('xla')", "anydml[xla]"):
        from anydml.devices.backends.xla import XlaBackend
    return XlaBackend(platform)


def _onnxruntime() -> Backend:
    with name_missing_package("Device('onnxruntime')", "anydml[onnxruntime]"):
        from anydml.devices.backends.onnxruntime import OnnxRuntimeBackend, refuse_old_version
    refuse_old_version()
    return OnnxRuntimeBackend()


def kernels_for(arrays: Sequence[Any]) -> Kernels:
    """The kernels where the arrays of a call are.

    Raises
    ------
    ArgumentError
        They are on several devices.
    """
    if any(isinstance(array, DeviceArray) for array in arrays):
        return cuda.kernels_for(arrays)
    return _CPU_KERNELS


__all__ = ["NAMES", "Backend", "Executable", "backend_named", "backends_here", "decline", "is_name",
           "kernels_for", "why_no_gpu"]  # fmt: skip
