"""Natural shapes, and the comparison of declared outputs with the result of `infer`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec, Dynamic, Inferred
from anydml.core.rules import UNKNOWN, Rules, differ, known
from anydml.core.tensor import TensorDesc

Named = tuple[str, ArraySpec | None]
"""A tensor with the path that a message gives it; None for one that is omitted."""


@overload
def spec_of(tensor: None) -> None: ...
@overload
def spec_of(tensor: TensorDesc, sizes: tuple[int, ...] | None = None) -> ArraySpec: ...
def spec_of(tensor: TensorDesc | None, sizes: tuple[int, ...] | None = None) -> ArraySpec | None:
    """The shape and type of a tensor, or None; `sizes` replaces padded sizes."""
    if tensor is None:
        return None
    data_type = tensor.data_type
    dtype = UNKNOWN
    if data_type is not UNKNOWN:
        dtype = data_type.numpy if data_type.bits >= 8 else None
    return ArraySpec(tensor.sizes if sizes is None else sizes, dtype)


def numpy_of(data_type: Any) -> Any:
    """The NumPy type of a data type; unknown if there is none."""
    return UNKNOWN if data_type is UNKNOWN or data_type.bits < 8 else data_type.numpy


def dtype_named(name: Any) -> Any:
    """The NumPy type with a name, which may be unknown."""
    return name if name is UNKNOWN else np.dtype(name)


def infer_filled(inputs: Sequence[ArraySpec], attributes: Mapping[str, Any]) -> Inferred:
    """The output of an operator that has its shape and type as attributes."""
    return Inferred((ArraySpec(attributes["shape"], dtype_named(attributes["dtype"])),))


def replace_size(shape: Sequence[Any], axis: int, size: Any) -> Any:
    """The shape with another size on an axis; unknown if there is no such axis."""
    return known(
        lambda: (*shape[:axis], size, *shape[axis + 1 :]) if 0 <= axis < len(shape) else UNKNOWN
    )


def fixed(shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Replace sizes that depend on the data by the largest possible ones."""
    return tuple(size.max if isinstance(size, Dynamic) else size for size in shape)


def declared_as(
    path: str,
    tensor: TensorDesc,
    spec: ArraySpec,
    natural: bool = False,
    reasons: Sequence[str] = (),
    certain: bool = True,
) -> Rules:
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
    reasons : sequence of str, optional
        Where the last sizes come from.
    certain : bool, optional
        Whether the inputs break no rule. If not, implied sizes below 1 are ignored.
    """
    if spec.dtype is not None and differ(spec_of(tensor).dtype, spec.dtype):
        yield Violation(f"{path}.DataType", spec.dtype.name.upper(), tensor.data_type)
    sizes = fixed(spec.shape)
    missing = tensor.dimension_count - len(sizes)
    if missing < 0 or (missing and not natural):
        rule = f"{'at least ' if natural else ''}{len(sizes)} ({_implied(sizes)})"
        yield Violation(f"{path}.DimensionCount", rule, tensor.dimension_count)
        return
    for i, (expected, got) in enumerate(zip((1,) * missing + sizes, tensor.sizes, strict=True)):
        if differ(expected, got) and (certain or expected >= 1):
            from_end = i - tensor.dimension_count + len(reasons)
            why = reasons[from_end] if from_end >= 0 else _implied(sizes)
            yield Violation(f"{path}.Sizes[{i}]", f"{expected} ({why})", got)


def _implied(sizes: Sequence[Any]) -> str:
    return f"the inputs imply {{{', '.join(map(str, sizes))}}}"
