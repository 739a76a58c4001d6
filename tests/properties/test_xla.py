"""Computed operators on XLA: every kind, type and layout within the tolerance of the definition."""

from functools import partial

import numpy as np
import pytest

import anydml as dml
from anydml.engines._numpy import NumpyEngine
from anydml.ops._fields import Role
from support import Flavour
from support.computed import KINDS
from support.made import shared
from support.on_xla import check, inputs_of, plain

jax = pytest.importorskip("jax")

from anydml.devices.backends import xla  # noqa: E402  # needs JAX
from anydml.engines._jax import JaxEngine, x64  # noqa: E402  # after the skip

ENGINE = NumpyEngine()
NAMES = {kind.NAME: kind for kind in KINDS}
USES_ERF = {kind.NAME: "erf" in kind.compute.__code__.co_names for kind in KINDS}


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


@pytest.mark.parametrize("name", [name for name, kind in NAMES.items() if kind.MULTIPLIES])
def test_halves_are_multiplied_as_they_are(name, monkeypatch):
    """As on a GPU: exact products of float16, added in float32."""
    kind, seeds = NAMES[name], [0, 5, 7] if name == "GEMM" else [0, 1, 3]
    traced = []

    class Engine(JaxEngine):
        def dot(self, a, b):
            traced.append((a.dtype.name, b.dtype.name))
            return super().dot(a, b)

        def conv(self, x, w, *options):
            traced.append((x.dtype.name, w.dtype.name))
            return super().conv(x, w, *options)

    monkeypatch.setattr(xla, "engine", lambda platform, program: Engine(platform == "cpu"))
    for seed in seeds:
        check("xla", kind, seed, Flavour)
    assert traced == [("float16", "float16")] * len(seeds)


@pytest.mark.parametrize("name", [*NAMES][::16])
def test_some_kinds(name):
    check("xla", NAMES[name], 0, Flavour)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_every_kind(name):
    for seed in range(3):
        check("xla", NAMES[name], seed, Flavour)


@pytest.mark.heavy
@pytest.mark.parametrize("name", NAMES)
def test_many_of_every_kind(name):
    for seed in range(3, 30):
        check("xla", NAMES[name], seed, Flavour)


def test_a_scale_and_an_activation():
    """Results are those of the CPU, which computes them as calls of their own, too."""
    chosen = {
        kind: shared(kind, seed)
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
