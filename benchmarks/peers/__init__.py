"""The peers: what else a Python user can call for the same jobs.

Each has a module here, which imports it when it is made. A peer names the
ways in which it can do a job; all of them run, and the best one counts. Inputs are turned into its
own arrays beforehand, outputs are allocated by the call, threads are as many as this library's.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from benchmarks.peers._peer import Peer

_PEERS: Final = {
    "numpy": "NumPy", "torch": "PyTorch", "onnxruntime": "ONNXRuntime", "openvino": "OpenVINO",
    "jax": "JAX",
}  # fmt: skip
"""Module that must be installed (the peer's module here has the same name), and class."""

_NEEDED: Final = {"onnxruntime": ("onnx",)}
"""What a peer takes besides: ONNX Runtime runs models, and `onnx` makes them."""


def installed(threads: int, only: Iterable[str] = tuple(_PEERS)) -> list[Peer]:
    """The installed peers, set to this many threads."""
    return [_class(module)(threads) for module in only if _is_installed(module)]


def missing() -> list[str]:
    """The names of the peers that are not installed."""
    return [_class(module).name for module in _PEERS if not _is_installed(module)]


def _class(module: str) -> type[Peer]:
    found: type[Peer] = getattr(import_module(f"benchmarks.peers.{module}"), _PEERS[module])
    return found


def _is_installed(module: str) -> bool:
    return all(find_spec(name) for name in (module, *_NEEDED.get(module, ())))


__all__ = ["Peer", "installed", "missing"]
