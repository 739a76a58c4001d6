"""Scales and zero points: their rules, and conversions between integers and real numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed, same_as
from anydml.ops._fields import Role

Specs = Mapping[str, ArraySpec | None]

PARAMETERS: Final = ("ScaleTensor", "ZeroPointTensor")


def named_specs(cls: type[Computed], inputs: Sequence[ArraySpec | None]) -> dict[str, Any]:
    """The inputs by their names on the page."""
    names = [info.name for info in cls.tensor_fields(Role.INPUT)]
    return dict(zip(names, inputs, strict=True))


def parameters(
    specs: Specs, tensor: str, rank: int, axis: int | None, count: int
) -> Iterator[Violation]:
    """Check that scale and zero point have one element, or `count` along an axis from the end."""
    data = specs.get(f"{tensor}Tensor")
    for suffix in PARAMETERS:
        name = f"{tensor}{suffix}"
        spec = specs.get(name)
        if spec is None:
            continue
        if suffix == "ZeroPointTensor" and data is not None and data.dtype is not None:
            yield from same_as((f"{tensor}Tensor", data), (name, spec), sizes=False)
        if prod(spec.shape) == 1:
            continue
        own = len(spec.shape)
        at = None if axis is None or own > rank else 0 if own == 1 else own + axis
        for i, size in enumerate(spec.shape):
            if i == at and size not in (1, count):
                yield Violation(f"{name}.Sizes[{i}]", f"{count} or 1 (for each or for all)", size)
            elif i != at and size != 1:
                yield Violation(f"{name}.Sizes[{i}]", "1", size)


def align_to_axis(value: Array | None, axis: int) -> Any:
    """Align a scale or zero point to an axis counted from the end, in FLOAT64."""
    if value is None:
        return 0.0
    wide = value.astype(np.float64)
    if prod(value.shape) == 1:
        return wide.reshape(())
    return wide.reshape(-1, *(1 for _ in range(-axis - 1)))


def centred(x: Array, zero_point: Array | None, axis: int = -1) -> Array:
    """Subtract the zero point from integers, in FLOAT64."""
    return x.astype(np.float64) - align_to_axis(zero_point, axis)


def wrapped(e: Engine, x: Array) -> Array:
    """Convert exact integers from FLOAT64 to INT32, wrapping around."""
    return x.astype(e.xp.int64).astype(e.xp.int32)


def quantized(e: Engine, x: Array, scale: Any, zero_point: Array | None, axis: int = -1) -> Array:
    """Quantize numbers to integers with a zero point; ties to even."""
    return e.xp.rint(x / scale) + align_to_axis(zero_point, axis)


def type_of_output(specs: Specs) -> Any:
    """The output type: the type of its zero point, or the caller's choice without one."""
    zero_point = specs["OutputZeroPointTensor"]
    return None if zero_point is None else zero_point.dtype
