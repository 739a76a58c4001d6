"""Scales and zero points: their rules, and conversions between integers and real numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from anydml.core.errors import Violation
from anydml.core.program import ArraySpec
from anydml.core.rules import Rules, differ, known
from anydml.engines import Array, Engine
from anydml.ops._computed import Computed
from anydml.ops._rules import equal, same_types
from anydml.ops._shapes import Named

Specs = Mapping[str, ArraySpec | None]

PARAMETERS: Final = ("ScaleTensor", "ZeroPointTensor")


def named_specs(cls: type[Computed], inputs: Sequence[ArraySpec | None]) -> dict[str, Any]:
    """The inputs by their names on the page."""
    return dict(zip(cls.input_names(), inputs, strict=True))


def parameters(specs: Specs, tensor: str, rank: Any, axis: Any, count: Any) -> Rules:
    """Check that scale and zero point have one element, or `count` along an axis from the end."""
    data = f"{tensor}Tensor", specs.get(f"{tensor}Tensor")
    for suffix in PARAMETERS:
        parameter = f"{tensor}{suffix}", specs.get(f"{tensor}{suffix}")
        if suffix == "ZeroPointTensor" and data[1] is not None and data[1].dtype is not None:
            yield same_types(data, parameter)
        yield _sizes_of_parameter(parameter, rank, axis, count)


def _sizes_of_parameter(parameter: Named, rank: Any, axis: Any, count: Any) -> Rules:
    name, spec = parameter
    if spec is None or known(lambda: prod(spec.shape) == 1) is True:
        return
    own = len(spec.shape)
    at = None if axis is None or own > rank else 0 if own == 1 else own + axis
    for i, size in enumerate(spec.shape):
        if i != at:
            yield equal(f"{name}.Sizes[{i}]", size, 1)
        elif differ(size, 1) and differ(size, count):
            yield Violation(f"{name}.Sizes[{i}]", f"{count} or 1 (for each or for all)", size)


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
