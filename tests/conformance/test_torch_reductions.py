"""Softmax, reductions and normalizations on random descriptors, within their tolerances of PyTorch.

PyTorch computes in float64. The numbers are ordinary, with a NaN or an infinity among them at
times: where sums cancel, two orders of summing may differ even in float64.
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.ops._fields import Role
from anydml.suite.expected import MAGNITUDES
from support.strategies import descriptors
from support.tolerances import assert_within

torch = pytest.importorskip("torch")
DEVICE = dml.Device("cpu")


def grouped(function):
    """A function of the last axis, of the elements along all axes in row-major order."""

    def run(x, desc):
        kept = [axis for axis in range(x.ndim) if axis not in desc.axes]
        order = [*kept, *sorted(desc.axes)]
        moved = x.permute(order)
        y = function(moved.reshape(*moved.shape[: len(kept)], -1))
        return y.reshape(moved.shape).permute(*np.argsort(order).tolist())

    return run


REDUCTIONS = {
    "AVERAGE": lambda x: x.mean(-1),
    "L1": lambda x: x.abs().sum(-1),
    "L2": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "LOG_SUM": lambda x: x.sum(-1).log(),
    "LOG_SUM_EXP": lambda x: x.logsumexp(-1),
    "MAX": lambda x: x.amax(-1),
    "MIN": lambda x: x.amin(-1),
    "MULTIPLY": lambda x: x.prod(-1),
    "SUM": lambda x: x.sum(-1),
    "SUM_SQUARE": lambda x: (x * x).sum(-1),
    "ARGMAX": lambda x: x.argmax(-1),
    "ARGMIN": lambda x: x.argmin(-1),
}


def reduce(x, desc):
    kept = [axis for axis in range(x.ndim) if axis not in desc.axes]
    moved = x.permute([*kept, *sorted(desc.axes)])
    merged = moved.reshape(*moved.shape[: len(kept)], -1)
    return REDUCTIONS[desc.function.suffix](merged).reshape(desc.output_tensor.sizes)


def running(name):
    def run(x, desc):
        backward = desc.axis_direction is dml.AxisDirection.DECREASING
        y = getattr(torch, name)(x.flip(desc.axis) if backward else x, desc.axis)
        if desc.attributes()[desc.fields()[-1].attribute]:  # exclusive
            y = y.roll(1, desc.axis)
            y.select(desc.axis, 0).fill_(1 if name == "cumprod" else 0)
        return y.flip(desc.axis) if backward else y

    return run


def batch(x, mean, variance, scale, bias, desc):
    return (x - mean) * scale * torch.rsqrt(variance + desc.epsilon) + bias


def mean_variance(axes_of, uses):
    def run(x, *others, desc):
        others = iter(others)
        axes, (use_mean, use_variance) = axes_of(desc), uses(desc)
        center = x.mean(axes, keepdim=True) if axes else x
        y = x - center if use_mean else x
        if use_variance:
            about = center if use_mean else torch.zeros_like(center)
            squares = (x - about).square()
            spread = squares.mean(axes, keepdim=True) if axes else squares
            y = y / torch.sqrt(spread + desc.epsilon)
        y = y * next(others) if desc.scale_tensor is not None else y
        return y + next(others) if desc.bias_tensor is not None else y

    return run


def versioned(uses):
    return mean_variance(lambda desc: desc.axes, uses)


def images(desc):
    return (1, 2, 3) if desc.cross_channel else (2, 3)


ORACLES = {
    dml.ActivationSoftmax1: grouped(lambda x: torch.softmax(x, -1)),
    dml.ActivationLogSoftmax1: grouped(lambda x: torch.log_softmax(x, -1)),
    dml.Reduce: reduce,
    dml.CumulativeSummation: running("cumsum"),
    dml.CumulativeProduct: running("cumprod"),
    dml.LpNormalization: lambda x, desc: torch.nn.functional.normalize(
        x, desc.p, desc.axis, desc.epsilon
    ),
    dml.BatchNormalization: lambda *xs, desc: batch(*xs, desc),
    dml.MeanVarianceNormalization: mean_variance(images, lambda d: (True, d.normalize_variance)),
    dml.MeanVarianceNormalization1: versioned(lambda d: (True, d.normalize_variance)),
    dml.MeanVarianceNormalization2: versioned(lambda d: (d.use_mean, d.use_variance)),
}


@pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.NAME)
@given(data=st.data())
def test_pytorch(kind, data):
    desc = data.draw(descriptors(kind))
    first = desc.input_tensor.data_type.numpy
    if getattr(desc, "fused_activation", None) is not None:
        desc = dataclasses.replace(desc, fused_activation=None)
    if first.kind == "u":  # which PyTorch lacks
        return
    generator = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    arrays = []
    for _, tensor, info in desc.tensors(Role.INPUT):
        values = generator.normal(0, 3, tensor.sizes)
        if info.attribute == "variance_tensor":
            values = np.abs(values) + 0.1
        array = values.astype(tensor.data_type.numpy)
        if first.kind == "f" and data.draw(st.integers(0, 4)) == 0:
            array.flat[0] = data.draw(st.sampled_from((np.nan, np.inf, -np.inf)))
        index = tuple(slice(0, 1) if s == 0 else slice(None) for s in tensor.element_strides)
        arrays.append(np.broadcast_to(array[index], tensor.sizes))
    got = DEVICE.create_operator(desc).compile()(*arrays)
    wide = [torch.from_numpy(a.astype("f8" if a.dtype.kind == "f" else "i8")) for a in arrays]
    expected = ORACLES[kind](*wide, desc=desc).numpy()
    if first.kind != "f" or got.dtype.kind != "f":
        np.testing.assert_array_equal(got.astype("i8"), expected)
        return
    magnitude = None
    if kind in MAGNITUDES:
        with np.errstate(all="ignore"):
            magnitude = MAGNITUDES[kind](*(x.numpy() for x in wide), **desc.attributes())
    assert_within(kind, got, expected, magnitude)
