"""Activations over the whole range of their parameters, against formulas in float64.

Parameters and elements have every magnitude of FLOAT32. Products of the two then leave its range,
or cancel, on the way to results within it.
"""

import math

import numpy as np
import pytest

import anydml as dml
from anydml.core.tolerance import EXACT, first_difference
from anydml.ops.activations import FUSABLE
from support.computed import run

LIMITS = np.finfo(np.float32)


def sigmoid(x):
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def softplus(x, alpha, beta):
    return alpha * np.logaddexp(0, beta * x)


def hard_sigmoid(x, alpha, beta):
    return np.clip(alpha * x + beta, 0, 1)


FORMULAS = {
    dml.ActivationCelu: lambda x, alpha: (
        np.maximum(0, x) + np.minimum(0, alpha * np.expm1(x / alpha))
    ),
    dml.ActivationElu: lambda x, alpha: np.where(x >= 0, x, alpha * np.expm1(x)),
    dml.ActivationGelu: lambda x: x / 2 * np.vectorize(math.erfc)(-x / math.sqrt(2)),
    dml.ActivationHardSigmoid: hard_sigmoid,
    dml.ActivationHardSwish: lambda x, alpha, beta: x * hard_sigmoid(x, alpha, beta),
    dml.ActivationIdentity: lambda x: x,
    dml.ActivationLeakyRelu: lambda x, alpha: np.where(x >= 0, x, alpha * x),
    dml.ActivationLinear: lambda x, alpha, beta: alpha * x + beta,
    dml.ActivationParametricSoftplus: softplus,
    dml.ActivationRelu: lambda x: np.maximum(x, 0),
    dml.ActivationScaledElu: lambda x, alpha, gamma: (
        gamma * np.where(x > 0, x, alpha * np.expm1(x))
    ),
    dml.ActivationScaledTanh: lambda x, alpha, beta: alpha * np.tanh(beta * x),
    dml.ActivationShrink: lambda x, bias, threshold: np.where(
        x < -threshold, x + bias, np.where(x > threshold, x - bias, 0)
    ),
    dml.ActivationSigmoid: sigmoid,
    dml.ActivationSoftplus: lambda x, steepness: softplus(x, 1 / steepness, steepness),
    dml.ActivationSoftsign: lambda x: x / (1 + np.abs(x)),
    dml.ActivationSwish: lambda x, scale: x * sigmoid(scale * x),
    dml.ActivationTanh: np.tanh,
    dml.ActivationThresholdedRelu: lambda x, alpha: np.where(x > alpha, x, 0),
}


def test_every_activation_has_a_formula():
    assert FORMULAS.keys() >= {*FUSABLE}


def magnitudes(rng, count, smallest):
    """Numbers of either sign, half of them near 1, the others of every magnitude."""
    size = np.where(rng.random(count) < 0.5, rng.uniform(-3, 3, count),
                    rng.uniform(math.log2(smallest), 127.9, count))  # fmt: skip
    return (np.exp2(size) * rng.choice([-1, 1], count)).astype(np.float32)


def elements(rng, parameters, smallest):
    """Numbers of every magnitude, and those whose products with a parameter are near 1 or 100, or
    cancel another parameter.
    """
    parts = [magnitudes(rng, 60, smallest), np.float32([0, -0.0])]
    with np.errstate(all="ignore"):
        for a in parameters:
            near = rng.normal(0, 1, 20) * np.repeat([1, 100], 10)
            parts += [near / a, near * a]
            parts += [-b / a * (1 + rng.uniform(-1e-6, 1e-6, 5)) for b in parameters]
        x = np.concatenate(parts).astype(np.float32)
    x = x[np.isfinite(x) & ((np.abs(x) >= smallest) | (x == 0))]
    return np.append(x, np.float32([np.inf, -np.inf, np.nan]))


def judge(device, kind, seed, smallest):
    rng = np.random.default_rng((seed, *map(ord, kind.NAME)))
    names = [info.attribute for info in kind.fields() if info.attribute not in
             ("input_tensor", "output_tensor")]  # fmt: skip
    parameters = magnitudes(rng, len(names), smallest)
    if kind is dml.ActivationSoftplus:
        parameters = np.abs(parameters)
    elif kind is not dml.ActivationCelu and device == "cpu":  # XLA takes -0.0 + 0.0 for -0.0
        parameters[rng.random(len(names)) < 0.1] = 0
    x = elements(rng, parameters, smallest)
    tensor = dml.TensorDesc("FLOAT32", x.shape)
    arguments = dict(zip(names, parameters.tolist(), strict=True))
    desc = kind(input_tensor=tensor, output_tensor=tensor, **arguments)
    (got,) = run(dml.Device(device), desc, [x])
    formula = FORMULAS[kind]
    with np.errstate(all="ignore"):
        wide = parameters.astype(np.float64)
        expected = formula(x.astype(np.float64), *wide)
        magnitude = formula(np.abs(x.astype(np.float64)), *np.abs(wide))
        if kind.TOLERANCE is EXACT:
            expected = expected.astype(np.float32)
    where = first_difference(got, expected, np.abs(magnitude), kind.TOLERANCE)
    assert where is None, (arguments, x[where], got[where], expected[where])


@pytest.mark.parametrize("kind", FORMULAS, ids=lambda kind: kind.NAME)
def test_parameters_of_every_magnitude(kind):
    for seed in range(40):
        judge("cpu", kind, seed, float(LIMITS.smallest_subnormal))


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMULAS, ids=lambda kind: kind.NAME)
def test_parameters_of_every_magnitude_on_xla(kind):
    """Without denormal numbers, which XLA takes for zeros."""
    pytest.importorskip("jax")
    for seed in range(12):
        judge("xla", kind, seed, 2.0**-100)
