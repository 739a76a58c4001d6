"""Elementwise functions at the ends of their ranges, on every device that computes."""

import numpy as np
import pytest

import anydml as dml
from anydml.ops._fields import Role

INF = float("inf")
MOST = float(np.finfo(np.float32).max)


@pytest.fixture(params=["cpu", "reference", "xla"])
def run(request):
    if request.param == "xla":
        pytest.importorskip("jax")

    def result(kind, *arrays, **given):
        arrays = [np.array(array) for array in arrays]
        names = [info.attribute for info in kind.tensor_fields(Role.INPUT)]
        tensors = dict(zip(names, map(dml.TensorDesc.from_array, arrays), strict=True))
        desc = kind.with_outputs(**tensors, **given)
        return dml.Device(request.param).create_operator(desc).compile()(*arrays).tolist()

    return result


def test_the_error_function_at_infinity(run):
    x = np.array([-INF, -6, 6, INF], np.float32)
    assert run(dml.ElementWiseErf, x) == [-1, -1, 1, 1]
    below, above = run(dml.ActivationGelu, x[[0, 3]])
    assert np.isnan(below)  # 0 times infinity
    assert above == INF


def test_odd_powers_beyond_the_integers_of_float32(run):
    x = np.array([-2, -2, -1], np.float32)
    assert run(dml.ElementWisePow, x, np.array([270948921, 270948922, 2**31 - 1], np.int32)) == [
        -INF, INF, -1,
    ]  # fmt: skip


def test_the_power_of_a_half(run):
    x = np.array([-INF, INF, 4], np.float32)
    assert run(dml.ElementWiseConstantPow, x, exponent=0.5) == [INF, INF, 2]
    assert run(dml.ElementWisePow, x, np.full(3, 0.5, np.float32)) == [INF, INF, 2]


def test_the_mean_of_large_numbers(run):
    x = np.array([MOST, -MOST, INF], np.float32)
    assert run(dml.ElementWiseMean, x, x) == [MOST, -MOST, INF]
