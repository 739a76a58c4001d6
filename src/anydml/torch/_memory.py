"""Tensors as memory that the kernels' native calls take, and new tensors for their results."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

from anydml._native import native
from anydml.core.errors import AllocationError
from anydml.libraries._torch import TYPE_NAMES
from anydml.libraries._types import type_of
from anydml.torch._pytorch import Tensor, torch

CODES: Final[dict[Any, int]] = {
    getattr(torch, name): native.type_code(type_of(name))
    for name in TYPE_NAMES
    if hasattr(torch, name)
}
"""The code of each type that kernels take."""

_TYPES: Final = {code: kind for kind, code in CODES.items()}

TABLE: Final[Any] = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)
"""DLPack's exchange table, which PyTorch has since 2.10."""

native.use_tensors(torch.empty_strided, CODES, TABLE)

Make = Callable[[int, tuple[int, ...]], tuple[Tensor, int]]


def block_of(x: Tensor) -> tuple[Any, ...]:
    """Describe a tensor on a GPU for a native call, with the storage that holds its memory."""
    storage = x.untyped_storage()
    return (
        CODES.get(x.dtype, -1), x.shape, x.stride(), x.itemsize, storage.data_ptr(),
        x.storage_offset(), storage.nbytes(), storage,
    )  # fmt: skip


def place_of(x: Tensor) -> tuple[tuple[int, int], Make]:
    """The GPU and the stream that a tensor's library works on, and what makes results there."""
    device = x.device

    def make(code: int, shape: tuple[int, ...]) -> tuple[Tensor, int]:
        try:
            result = torch.empty(shape, dtype=_TYPES[code], device=device)
        except torch.OutOfMemoryError as error:
            nbytes = prod(shape) * _TYPES[code].itemsize
            raise AllocationError("torch.empty", nbytes, "a result on the GPU") from error
        return result, result.data_ptr()

    stream = native.stream_of(device.index)
    if stream is None:  # the same, in ten times the time
        stream = torch.cuda.current_stream(device).cuda_stream
    return (device.index, stream), make


_PLAIN: Final = {torch.Tensor, torch.nn.Parameter}


def is_plain(*tensors: Tensor) -> bool:
    """Whether kernels can read and write them: no subclass, and nothing that is passed around."""
    return _PLAIN.issuperset(map(type, tensors)) and bool(native.have_storage(tensors))
