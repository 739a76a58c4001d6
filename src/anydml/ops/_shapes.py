"""Natural shapes, and declared outputs compared with what `infer` makes of the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from anydml.errors import Violation
from anydml.program import ArraySpec, Dynamic
from anydml.tensor import TensorDesc


def spec_of(tensor: TensorDesc, sizes: tuple[int, ...] | None = None) -> ArraySpec:
    """The shape and type of a tensor; other sizes where its own are padded."""
    dtype = tensor.data_type.numpy if tensor.data_type.bits >= 8 else None
    return ArraySpec(tensor.sizes if sizes is None else sizes, dtype)


def fixed(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shape with the largest sizes in place of those that the data decide."""
    return tuple(size.max if isinstance(size, Dynamic) else size for size in shape)


def declared_as(
    path: str, tensor: TensorDesc, spec: ArraySpec, natural: bool = False, certain: bool = True
) -> Iterator[Violation]:
    """An output has the type and sizes that the inputs make.

    Parameters
    ----------
    path : str
        Of the output.
    tensor : TensorDesc
        As it is declared.
    spec : ArraySpec
        What the inputs make; a type of None is free.
    natural : bool, optional
        Whether leading sizes of 1 may stand in front of it.
    certain : bool, optional
        Whether the inputs break no rule; if they do, sizes that no tensor has say nothing.
    """
    if spec.dtype is not None and spec_of(tensor).dtype != spec.dtype:
        yield Violation(f"{path}.DataType", f"{spec.dtype.name.upper()}", tensor.data_type)
    sizes = fixed(spec.shape)
    missing = tensor.dimension_count - len(sizes)
    if missing < 0 or (missing and not natural):
        rule = f"{'at least ' if natural else ''}{len(sizes)} ({_implied(sizes)})"
        yield Violation(f"{path}.DimensionCount", rule, tensor.dimension_count)
        return
    for i, (expected, got) in enumerate(zip((1,) * missing + sizes, tensor.sizes, strict=True)):
        if expected != got and (certain or expected >= 1):
            yield Violation(f"{path}.Sizes[{i}]", f"{expected} ({_implied(sizes)})", got)


def _implied(sizes: Sequence[Any]) -> str:
    return f"the inputs imply {{{', '.join(map(str, sizes))}}}"
