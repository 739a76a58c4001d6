"""Softmax and hardmax against PyTorch and the printed examples."""

import numpy as np
import pytest

import anydml as dml
from support.tolerances import assert_within

CPU = dml.Device("cpu")
X = np.array([[[12, 0], [-101, 11]], [[3, 234], [0, -101]]], "f4")


def run(kind, x, **attributes):
    desc = kind.with_outputs(input_tensor=dml.TensorDesc.from_array(x), **attributes)
    return CPU.create_operator(desc).compile()(x)


def test_the_examples_of_the_hardmax1_page():
    printed = {
        (1,): [[[1, 0], [0, 1]], [[1, 1], [0, 0]]],
        (0,): [[[1, 0], [0, 1]], [[0, 1], [1, 0]]],
        (0, 2): [[[0, 0], [0, 1]], [[0, 1], [0, 0]]],
    }
    for axes, expected in printed.items():
        np.testing.assert_array_equal(run(dml.ActivationHardmax1, X, axes=axes), expected)


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 1), (2, 0), (0, 1, 2), ()])
@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax"])
def test_pytorch(name, axes):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(3).normal(0, 30, (3, 4, 5)).astype("f4")
    x[0, 1, 2], x[2, 3, 1] = np.inf, np.nan
    x[1] = -np.inf
    kind = getattr(dml, f"Activation{name}1")
    got = run(kind, x, axes=axes)
    kept = [axis for axis in range(3) if axis not in axes]
    order = [*kept, *sorted(axes)]
    merged = torch.from_numpy(x).permute(order).reshape(*(x.shape[a] for a in kept), -1)
    function = torch.softmax if name == "Softmax" else torch.log_softmax
    expected = function(merged.double(), -1).numpy().reshape([x.shape[a] for a in order])
    expected = expected.transpose(np.argsort(order))
    if name == "LogSoftmax":  # of which PyTorch's float64 has no digits left near 0
        expected = np.where(np.abs(expected) < 1e-9, got, expected)
    assert_within(kind, got, expected)


@pytest.mark.parametrize("name", ["Softmax", "LogSoftmax", "Hardmax"])
def test_rows_are_along_the_last_axis(name):
    kind, with_axes = (getattr(dml, f"Activation{name}{version}") for version in ("", "1"))
    x = np.random.default_rng(4).normal(0, 3, (1, 1, 3, 5)).astype("f2")
    np.testing.assert_array_equal(run(kind, x), run(with_axes, x, axes=(3,)))
    tensor = dml.TensorDesc("FLOAT32", (2, 3, 4, 5))
    found = CPU.check(kind(input_tensor=tensor, output_tensor=tensor))
    assert [v.path for v in found] == [f"{kind.NAME}.InputTensor.Sizes[{i}]" for i in (0, 1)]
    assert "got 3" in str(found[1])


def test_log_softmax_near_one():
    x = np.array([[0, -40]], "f4")
    got = run(dml.ActivationLogSoftmax, x)
    assert_within(dml.ActivationLogSoftmax, got, np.array([[-np.exp(-40.0), -40]]))


def test_hardmax_counts_nan_as_the_largest():
    x = np.array([[1, np.nan, np.inf], [2, 2, 1], [-np.inf] * 3], "f4")
    got = run(dml.ActivationHardmax, x)
    np.testing.assert_array_equal(got, [[0, 1, 0], [1, 0, 0], [1, 0, 0]])
