"""Computed operators on XLA: every kind, type and layout within the tolerance of the definition.

What `docs/specification.md` leaves to XLA is left out here: denormals, which it takes for zeros,
the sign of a zero, and what padding makes of an infinite or NaN element of a filter.
"""

import dataclasses
from functools import partial

import numpy as np
import pytest

import anydml as dml
from anydml.engines._numpy import NumpyEngine
from anydml.exactness import Unit, first_difference
from anydml.ops._fields import Role
from support import Flavour, contents
from support.choices import Seeded
from support.computed import KINDS, bindings, exact
from support.descriptors import descriptor

jax = pytest.importorskip("jax")

from anydml.engines._jax import JaxEngine, x64  # noqa: E402  # needs JAX

ENGINE = NumpyEngine()
NAMES = {kind.NAME: kind for kind in KINDS}
USES_ERF = {kind.NAME: "erf" in kind.compute.__code__.co_names for kind in KINDS}


def plain(seed, kind):
    """A descriptor without calls besides the operator's own."""
    desc = descriptor(Seeded(seed), kind)
    names = {info.attribute for info in desc.fields()} & {"scale_bias", "fused_activation"}
    return dataclasses.replace(desc, **dict.fromkeys(names))


def inputs_of(desc, seed, flavour):
    """Arrays of the declared sizes; what the descriptor broadcasts is broadcast."""
    arrays = []
    for i, (_, tensor, _) in enumerate(desc.tensors(Role.INPUT)):
        rng = np.random.default_rng((seed, i))
        values = contents(rng, tensor.sizes, tensor.data_type.numpy, flavour)
        values = without_denormals(values)
        if desc.TOLERANCE.unit is not Unit.BITS:  # -0.0 decides the sign of an infinity
            values = np.where(values == 0, values.dtype.type(0), values)
        index = tuple(slice(0, 1) if s == 0 else slice(None) for s in tensor.element_strides)
        arrays.append(np.broadcast_to(values[index], tensor.sizes))
    return arrays


def without_denormals(x):
    """Zeros in place of denormals, and of what easily becomes one."""
    if x.dtype.kind != "f" or x.dtype == np.float16:
        return x
    minimum = 2.0**-60 * float(np.finfo(x.dtype).smallest_normal) ** 0.5
    return np.where(np.abs(x) < minimum, x.dtype.type(0), x)


def flushed(x):
    """Zeros in place of denormals and of -0.0."""
    if x.dtype.kind != "f":
        return x
    kind = np.float16 if x.dtype == np.float16 else np.float32
    minimum = 0 if kind is np.float16 else np.finfo(kind).smallest_normal
    return np.where((np.abs(x) < minimum) | (x == 0), x.dtype.type(0), x)


def assert_within_tolerance(kind, got, wide, magnitude, finite):
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


def perturbed(arrays):
    """Floats that rounding in float64 may have changed, in float64."""
    rng = np.random.default_rng(0)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return [
            x * (1 + rng.uniform(-(2.0**-50), 2.0**-50, x.shape)) if x.dtype.kind == "f" else x
            for x in arrays
        ]


def check(kind, seed, flavours):
    desc = plain(seed, kind)
    compiled = dml.Device("xla").create_operator(desc).compile()
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


@pytest.mark.parametrize("name", NAMES)
def test_types_and_sizes_are_those_of_numpy(name):
    """Without compiling; `erf` may have the elements' type, where NumPy's is wider."""
    kind = NAMES[name]
    for seed in range(2):
        desc = plain(seed, kind)
        present = iter(inputs_of(desc, seed, Flavour.TIED))
        operands = [None if slot is None else next(present) for slot in desc._slots(Role.INPUT)]
        if kind.WIDENS:
            operands = [x if x is None or x.dtype != "f2" else x.astype("f4") for x in operands]
        with np.errstate(all="ignore"):
            expected = kind.compute(ENGINE, *operands, **desc.attributes())
        compute = partial(kind.compute, JaxEngine(), **desc.attributes())
        with x64():
            got = jax.eval_shape(compute, *operands)
        pairs = zip(*(x if isinstance(x, tuple) else (x,) for x in (got, expected)), strict=True)
        for result, array in pairs:
            if array is not None:
                assert result.shape == array.shape
                is_wider = array.dtype == np.float64 and result.dtype == np.float32
                assert result.dtype == array.dtype or (is_wider and USES_ERF[name])


@pytest.mark.parametrize("name", [*NAMES][::16])
def test_some_kinds(name):
    check(NAMES[name], 0, Flavour)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_kind(name):
    for seed in range(3):
        check(NAMES[name], seed, Flavour)


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
def test_many_of_every_kind(name):
    for seed in range(3, 30):
        check(NAMES[name], seed, Flavour)


def test_a_scale_and_an_activation():
    """Results are those of the CPU, which computes them as calls of their own, too."""
    chosen = {
        kind: descriptor(Seeded(seed), kind)
        for seed in range(6)
        for kind in (dml.Gemm, dml.BatchNormalization, dml.ElementWiseAbs, dml.ElementWiseSqrt)
    }
    count = 0
    for kind, desc in chosen.items():
        arrays = inputs_of(desc, 0, Flavour.CONSTANT)
        arrays = [np.full_like(x, 0.75) for x in arrays]
        got, expected = (
            dml.Device(name).create_operator(desc).compile()(*arrays) for name in ("xla", "cpu")
        )
        count += len(desc.lower().calls) > 1
        np.testing.assert_allclose(got, expected, 1e-3, 1e-6, err_msg=kind.NAME)
    assert count
