"""Natural shapes, and the comparison of declared outputs with the result of `infer`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Dynamic
from anydml.core.tensor import TensorDesc


def spec_of(tensor: TensorDesc, sizes: tuple[int, ...] | None = None) -> ArraySpec:
    """The shape and type of a tensor; `sizes` replaces padded sizes."""
    dtype = tensor.data_type.numpy if tensor.data_type.bits >= 8 else None
    return ArraySpec(tensor.sizes if sizes is None else sizes, dtype)


def fixed(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace sizes that depend on the data by the largest possible ones."""
    return tuple(size.max if isinstance(size, Dynamic) else size for size in shape)


def declared_as(
    path: str, tensor: TensorDesc, spec: ArraySpec, natural: bool = False, certain: bool = True
) -> Iterator[Violation]:
    """Check that an output has the type and sizes that the inputs imply.

    Parameters
    ----------
    path : str
        The path of the output.
    tensor : TensorDesc
        The declared output.
    spec : ArraySpec
        The type and sizes that the inputs imply; a type of None accepts any type.
    natural : bool, optional
        Whether the tensor may have additional leading sizes of 1.
    certain : bool, optional
        Whether the inputs satisfy all rules. If not, implied sizes below 1 are ignored.
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
