"""Computed operators on XLA, compared within the tolerance of the definition.

What `docs/specification.md` leaves to XLA is left out: denormals, which it takes for zeros, the
sign of a zero, and what padding makes of an infinite or NaN element of a filter.
"""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import anydml as dml
from anydml.core.tolerance import Unit, first_difference
from anydml.engines._numpy import NumpyEngine
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.suite.expected import exact
from support import Flavour, contents
from support.computed import Array, bindings
from support.made import shared

ENGINE = NumpyEngine()


def plain(seed: int, kind: type[Computed]) -> Any:
    """A descriptor without calls besides the operator's own."""
    desc = shared(kind, seed)
    names = {info.attribute for info in desc.fields()} & {"scale_bias", "fused_activation"}
    return dataclasses.replace(desc, **dict.fromkeys(names))


def inputs_of(desc: Any, seed: int, flavour: Flavour) -> list[Array]:
    """Arrays of the declared sizes; what the descriptor broadcasts is broadcast."""
    arrays = []
    for i, (_, tensor, _) in enumerate(desc.tensors(Role.INPUT)):
        rng = np.random.default_rng((seed, i))
        values = contents(rng, tensor.sizes, tensor.data_type.numpy, flavour)
        values = without_denormals(values)
        if desc.NAME == "ELEMENT_WISE_POW" and values.dtype.kind == "f":
            with np.errstate(invalid="ignore"):
                values = values * values.dtype.type(1)  # which leaves no signalling NaN
        if desc.TOLERANCE.unit is not Unit.BITS:  # -0.0 decides the sign of an infinity
            values = np.where(values == 0, values.dtype.type(0), values)
        index = tuple(slice(0, 1) if s == 0 else slice(None) for s in tensor.element_strides)
        arrays.append(np.broadcast_to(values[index], tensor.sizes))
    return arrays


def without_denormals(x: Array) -> Array:
    """Zeros in place of denormals, and of what easily becomes one."""
    if x.dtype.kind != "f" or x.dtype == np.float16:
        return x
    minimum = 2.0**-60 * float(np.finfo(x.dtype).smallest_normal) ** 0.5
    return np.where(np.abs(x) < minimum, x.dtype.type(0), x)


def flushed(x: Array) -> Array:
    """Zeros in place of denormals and of -0.0."""
    if x.dtype.kind != "f":
        return x
    kind = np.float16 if x.dtype == np.float16 else np.float32
    minimum = 0 if kind is np.float16 else np.finfo(kind).smallest_normal
    return np.where((np.abs(x) < minimum) | (x == 0), x.dtype.type(0), x)


def assert_within_tolerance(
    kind: type[Computed], got: Array, wide: Array, magnitude: Array, finite: bool
) -> None:
    rounded = kind.TOLERANCE.unit is Unit.BITS or got.dtype.kind != "f"
    expected = ENGINE.cast(wide, got.dtype) if rounded else wide
    left = np.zeros(got.shape, bool)
    if kind.TOLERANCE.unit in (Unit.PRODUCTS, Unit.SUMS):
        # Parts that are not finite, or whose sum is not: padding and the order decide.
        left = ~np.isfinite(magnitude) | (np.isnan(got) & (not finite))
    elif kind.TOLERANCE.unit is Unit.ULP and finite:
        # What overflows on the way is an infinity, or NaN of two.
        left = ~np.isfinite(magnitude) & ~np.isfinite(expected) & ~np.isfinite(got)
    got, expected, magnitude = (
        np.where(left, x.dtype.type(0), x) for x in (got, expected, magnitude)
    )
    got, expected = flushed(got), flushed(expected)
    where = first_difference(got, expected, magnitude, kind.TOLERANCE)
    assert where is None, (where, got[where], expected[where])


def perturbed(arrays: Sequence[Array]) -> list[Array]:
    """Floats that rounding in float64 may have changed, in float64."""
    rng = np.random.default_rng(0)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return [
            x * (1 + rng.uniform(-(2.0**-50), 2.0**-50, x.shape)) if x.dtype.kind == "f" else x
            for x in arrays
        ]


def check(device: str, kind: type[Computed], seed: int, flavours: Iterable[Flavour]) -> None:
    """A generated descriptor on a device of XLA: results within the definition's tolerance."""
    desc = plain(seed, kind)
    compiled = dml.Device(device).create_operator(desc).compile()
    for flavour in flavours:
        arrays = inputs_of(desc, seed, flavour)
        results = compiled(**bindings(desc, arrays))
        finite = all(np.isfinite(x).all() for x in arrays if x.dtype.kind == "f")
        results = [*results] if isinstance(results, tuple) else [results]
        expected, magnitudes = exact(desc, arrays)
        if kind.TOLERANCE.unit is Unit.ULP:
            # What cancels in float64 depends on the order there.
            others, _ = exact(desc, perturbed(arrays))
            with np.errstate(invalid="ignore"):
                near = [
                    np.abs(got - wide) <= 16 * np.abs(other - wide)
                    for got, wide, other in zip(results, expected, others, strict=True)
                ]
            expected = [np.where(n, g, w) for n, g, w in zip(near, results, expected, strict=True)]
        for got, wide, magnitude in zip(results, expected, magnitudes, strict=True):
            assert_within_tolerance(kind, got, wide, magnitude, finite)
