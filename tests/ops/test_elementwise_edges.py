"""Elementwise functions at the ends of their ranges, on every device that computes."""

import numpy as np
import pytest

import anydml as dml
from anydml.ops._fields import Role
from support.computed import device_named
from support.tolerances import assert_within

INF = float("inf")
MOST = float(np.finfo(np.float32).max)


@pytest.fixture(params=["cpu", "reference", "xla", "onnxruntime"])
def run(request):
    device = device_named(request.param)

    def result(kind, *arrays, **arguments):
        arrays = [np.array(array) for array in arrays]
        names = [info.attribute for info in kind.tensor_fields(Role.INPUT)]
        tensors = dict(zip(names, map(dml.TensorDesc.from_array, arrays), strict=True))
        desc = kind.with_outputs(**tensors, **arguments)
        return device.create_operator(desc).compile()(*arrays).tolist()

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


@pytest.mark.parametrize("kind", ["f2", "f4"])
def test_nan_to_the_power_of_0(run, kind):
    x, zero = np.full(64, np.nan, kind), np.zeros(64, kind)
    assert run(dml.ElementWisePow, x, zero) == [1] * 64


@pytest.mark.parametrize("x", [-88.7, -90.0, -91.85])
def test_powers_below_the_normal_numbers(run, x):
    """exp(x) is a denormal number there, which XLA's CPU takes for 0; the result is none."""
    wide = np.float64(np.float32(x))
    power = np.exp(wide)
    for found, expected in (
        (run(dml.ActivationSwish, [np.float32(x)], sigmoid_input_scale=1.0), wide * power),
        (run(dml.ActivationSwish, [np.float32(-x)], sigmoid_input_scale=-1.0), -wide * power),
        (run(dml.ActivationSoftplus, [np.float32(1e3 * x)], steepness=1e-3), 1e3 * power),
        (run(dml.ActivationParametricSoftplus, [np.float32(x)], alpha=1e30, beta=1.0),
         1e30 * power),
    ):  # fmt: skip
        assert found == pytest.approx([expected], rel=1e-5, abs=0)


def test_products_beyond_the_largest_number(run):
    """A product with an attribute is, the result is not."""
    x = np.array([1e30, -1e30, 0, -INF, INF], np.float32)
    softplus = run(dml.ActivationSoftplus, x, steepness=1e10)
    expected = np.array([1e30, 0, np.log(2) * 1e-10, 0, INF])
    assert_within(dml.ActivationSoftplus, np.float32(softplus), expected)
    x = np.array([1e10, -1e10, 0, -INF, INF], np.float32)
    arguments = {"alpha": 1e-30, "beta": 1e30}
    expected = np.array([1e10, 0, np.log(2) * 1e-30, 0, INF])
    found = run(dml.ActivationParametricSoftplus, x, **arguments)
    assert_within(dml.ActivationParametricSoftplus, np.float32(found), expected)
    found = run(dml.ActivationParametricSoftplus, x, **{**arguments, "beta": -1e30})
    assert_within(dml.ActivationParametricSoftplus, np.float32(found), expected[[1, 0, 2, 4, 3]])
    found = run(dml.ActivationParametricSoftplus, [np.float32(1e-20)], alpha=1e20, beta=1e30)
    assert_within(dml.ActivationParametricSoftplus, np.float32(found), np.array([1e30]))


@pytest.mark.parametrize("p", [7, 8, 600, 2**32 - 1])
@pytest.mark.parametrize("side", [1, 9])
def test_high_powers_in_windows(run, p, side):
    """4 to the 600th is beyond FLOAT64, and so is the reciprocal."""
    kind, minimum = np.float32, 2.0**-120
    window = {"strides": (side, side), "window_size": (side, side), "p": p,
              "start_padding": (0, 0), "end_padding": (side, 0)}  # fmt: skip
    for value in (4, 0.25, MOST / 4, minimum, 0, INF):
        x = np.full((1, 1, side, side), value, kind)
        x[0, 0, 0, 1:] = 0
        count = side * side - side + 1
        found = np.array(run(dml.LpPooling, x, **window), kind).ravel()
        expected = [kind(value) * float(count) ** (1 / p), 0]  # and of padding alone
        assert_within(dml.LpPooling, found, np.array(expected))
    x[0, 0, 0, 0] = np.nan
    assert np.isnan(np.array(run(dml.LpPooling, x, **window)).ravel()[0])


def test_the_mean_of_large_numbers(run):
    x = np.array([MOST, -MOST, INF], np.float32)
    assert run(dml.ElementWiseMean, x, x) == [MOST, -MOST, INF]
