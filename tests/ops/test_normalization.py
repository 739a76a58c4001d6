"""Normalizations against PyTorch, and the rules that end with a feature level."""

import numpy as np
import pytest

import anydml as dml
from anydml.ops._fields import Role
from anydml.suite.expected import MAGNITUDES, exact
from support.computed import NAMES, device_named
from support.computed import run as computed
from support.tolerances import assert_within

CPU = dml.Device("cpu")
T = dml.TensorDesc


def run(kind, arrays, **attributes):
    tensors = {name: T.from_array(array) for name, array in arrays.items()}
    desc = kind.with_outputs(**tensors, **attributes)
    return CPU.create_operator(desc).compile()(*arrays.values())


def normal(seed, *sizes, scale=1.0, offset=0.0):
    return np.random.default_rng(seed).normal(offset, scale, sizes).astype("f4")


@pytest.fixture(name="torch")
def _torch():
    return pytest.importorskip("torch")


def test_batch_normalization(torch):
    x, mean, scale, bias = normal(1, 2, 3, 4, 5), *(normal(i, 1, 3, 1, 1) for i in (2, 3, 4))
    arrays = {"input_tensor": x, "mean_tensor": mean, "variance_tensor": abs(mean) + 1,
              "scale_tensor": scale, "bias_tensor": bias}  # fmt: skip
    attributes = {"spatial": True, "epsilon": 1e-3}
    got = run(dml.BatchNormalization, arrays, **attributes)
    wide = [a.astype("f8") for a in arrays.values()]
    arguments = [torch.from_numpy(a.ravel() if a.shape[0] == 1 else a) for a in wide]
    expected = torch.nn.functional.batch_norm(*arguments, eps=1e-3)
    magnitude = MAGNITUDES[dml.BatchNormalization](*wide, **attributes)
    assert_within(dml.BatchNormalization, got, expected, magnitude)
    leaky = dml.ActivationLeakyRelu(alpha=0.1)
    fused = run(dml.BatchNormalization, arrays, **attributes, fused_activation=leaky)
    np.testing.assert_array_equal(fused, np.where(got < 0, got * np.float32(0.1), got))


@pytest.mark.parametrize("cross_channel", [False, True])
@pytest.mark.parametrize("variance", [False, True])
def test_mean_variance_normalization(torch, cross_channel, variance):
    """With a mean that is large against the deviation, as float32 sums would not stand."""
    x = normal(5, 2, 3, 4, 5, offset=1000)
    got = run(dml.MeanVarianceNormalization, {"input_tensor": x}, cross_channel=cross_channel,
              normalize_variance=variance, epsilon=1e-5)  # fmt: skip
    axes = (1, 2, 3) if cross_channel else (2, 3)
    wide = torch.from_numpy(x).double()
    expected = wide - wide.mean(axes, keepdim=True)
    if variance:
        expected = expected / torch.sqrt(wide.var(axes, correction=0, keepdim=True) + 1e-5)
    assert_within(dml.MeanVarianceNormalization, got, expected)
    versions = [
        (dml.MeanVarianceNormalization1, {"normalize_variance": variance}),
        (dml.MeanVarianceNormalization2, {"use_mean": True, "use_variance": variance}),
    ]
    for kind, arguments in versions:
        again = run(kind, {"input_tensor": x}, axes=axes[::-1], epsilon=1e-5, **arguments)
        np.testing.assert_array_equal(got, again)


def test_without_a_mean(torch):
    x, scale, bias = normal(6, 3, 4, 5), normal(7, 1, 1, 5), normal(8, 1, 1, 5)
    got = run(dml.MeanVarianceNormalization2,
              {"input_tensor": x, "scale_tensor": scale, "bias_tensor": bias},
              axes=(2,), use_mean=False, use_variance=True, epsilon=1e-6)  # fmt: skip
    wide, weight = (torch.from_numpy(a).double() for a in (x, scale.ravel()))
    expected = torch.nn.functional.rms_norm(wide, (5,), weight, eps=1e-6).numpy()
    assert_within(dml.MeanVarianceNormalization2, got, expected + bias)
    plain = run(dml.MeanVarianceNormalization2, {"input_tensor": x}, axes=(2,), use_mean=False,
                use_variance=False, epsilon=1e-6)  # fmt: skip
    np.testing.assert_array_equal(plain, x)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_lp_normalization(torch, axis, p):
    x = normal(9, 3, 4, 5)
    x[:, 1] = 0
    got = run(dml.LpNormalization, {"input_tensor": x}, axis=axis, epsilon=1e-5, p=p)
    expected = torch.nn.functional.normalize(torch.from_numpy(x).double(), p, axis, 1e-5)
    assert_within(dml.LpNormalization, got, expected)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 50])
def test_local_response_across_channels(torch, size):
    x = normal(10, 2, 6, 3, 4)
    arguments = {"local_size": size, "alpha": 0.5, "beta": 0.75, "bias": 2.0}
    got = run(dml.LocalResponseNormalization, {"input_tensor": x}, cross_channel=True, **arguments)
    squares = np.pad(x.astype("f8") ** 2, ((0, 0), ((size - 1) // 2, size // 2), (0, 0), (0, 0)))
    around = sum(squares[:, i : i + 6] for i in range(size))
    expected = x / (2 + 0.5 / size * around) ** 0.75
    assert_within(dml.LocalResponseNormalization, got, expected)
    if size % 2:  # PyTorch has the longer side in front
        wide = torch.from_numpy(x).double()
        library = torch.nn.functional.local_response_norm(wide, size, 0.5, 0.75, 2)
        assert_within(dml.LocalResponseNormalization, got, library)


def test_local_response_within_a_channel(torch):
    x = normal(11, 2, 3, 5, 6)
    got = run(dml.LocalResponseNormalization, {"input_tensor": x}, cross_channel=False,
              local_size=3, alpha=0.5, beta=0.75, bias=2.0)  # fmt: skip
    window = torch.ones(3, 1, 3, 3, dtype=torch.double)
    squares = torch.from_numpy(x).double() ** 2
    around = torch.nn.functional.conv2d(squares, window, padding=1, groups=3).numpy()
    assert_within(dml.LocalResponseNormalization, got, x / (2 + 0.5 / 3 * around) ** 0.75)


def test_value_scale():
    x = np.arange(12).reshape(1, 3, 2, 2).astype("f2")
    got = run(dml.ValueScale2D, {"input_tensor": x}, scale=0.5, bias=(1, -2, 0.25))
    np.testing.assert_array_equal(got, x * 0.5 + np.array([1, -2, 0.25]).reshape(3, 1, 1))
    tensor = T("FLOAT32", (1, 2, 4, 4))
    desc = dml.ValueScale2D(input_tensor=tensor, output_tensor=tensor, scale=1, bias=(0,) * 4)
    found = [str(v) for v in CPU.check(desc)]
    assert found == [
        "VALUE_SCALE_2D.ChannelCount: expected 1 or 3, got 4",
        "VALUE_SCALE_2D.InputTensor.Sizes[1]: expected 4 (ChannelCount), got 2",
    ]


def test_sizes_that_cannot_be_broadcast():
    x, wrong = T("FLOAT32", (2, 3, 4, 5)), T("FLOAT16", (2, 1, 3, 5))
    desc = dml.MeanVarianceNormalization1(
        input_tensor=x, scale_tensor=wrong, bias_tensor=T("FLOAT32", (4, 5)), output_tensor=x,
        axes=(4, 1), normalize_variance=True, epsilon=0,
    )  # fmt: skip
    found = {v.path.partition(".")[2]: str(v) for v in CPU.check(desc)}
    assert [*found] == [
        "BiasTensor.DimensionCount", "ScaleTensor.DataType", "ScaleTensor.Sizes[2]", "Axes[0]",
    ]  # fmt: skip
    assert "expected 1 or 4 (InputTensor.Sizes[2]), got 3" in found["ScaleTensor.Sizes[2]"]


def test_rules_that_end_with_a_level():
    x, one = T("FLOAT32", (2, 3, 4, 5)), T("FLOAT32", (1, 1, 1, 1))
    alone = {"input_tensor": x, "scale_tensor": one, "output_tensor": x, "epsilon": 0}
    first = dml.MeanVarianceNormalization(cross_channel=True, normalize_variance=True, **alone)
    second = dml.MeanVarianceNormalization1(axes=(1,), normalize_variance=True, **alone)
    both = dml.MeanVarianceNormalization1(axes=(1,), normalize_variance=True, bias_tensor=one,
                                          **alone)  # fmt: skip
    batch = dml.BatchNormalization(
        input_tensor=x, mean_tensor=one, variance_tensor=one, scale_tensor=one, bias_tensor=one,
        output_tensor=x, spatial=False, epsilon=0,
    )  # fmt: skip
    levels = [CPU.minimum_feature_level(d).suffix for d in (first, second, both, batch)]
    assert levels == ["5_2", "5_2", "4_0", "4_0"]
    old = dml.Device("cpu", feature_level="3_1")
    found = [v.path.partition(".")[2] for v in old.check(second)]
    assert found == ["BiasTensor", "ScaleTensor.Sizes[1]"]
    assert len(old.check(batch)) == 4
    assert "as Spatial is False" in str(old.check(batch)[0])
    assert not dml.Device("cpu", feature_level="4_0").check(batch)


def test_numbers_that_are_refused():
    x = T("FLOAT32", (2, 3, 4, 5))
    lp = dml.LpNormalization(input_tensor=x, output_tensor=x, axis=1, epsilon=0, p=3)
    assert [str(v) for v in CPU.check(lp)] == ["LP_NORMALIZATION.P: expected 1 or 2, got 3"]
    lp = dml.LpNormalization(input_tensor=x, output_tensor=x, axis=4, epsilon=0, p=2)
    assert [str(v) for v in CPU.check(lp)] == [
        "LP_NORMALIZATION.Axis: expected 0..3 (InputTensor.DimensionCount is 4), got 4"
    ]
    lrn = dml.LocalResponseNormalization(input_tensor=x, output_tensor=x, cross_channel=True,
                                         local_size=0, alpha=1, beta=1, bias=1)  # fmt: skip
    assert [str(v) for v in CPU.check(lrn)] == [
        "LOCAL_RESPONSE_NORMALIZATION.LocalSize: expected at least 1, got 0"
    ]


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize(
    ("deviation", "offset"), [(1, 0), (1e-3, 1000), (1e3, 1e6), (1, 1e6), (1e-6, 1)]
)
def test_adversarial_batches(deviation, offset, device):
    """Means that are large against the deviation, and a bias that cancels one column."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(4, 768)) * deviation + offset).astype(np.float32)
    scale = (rng.normal(size=(4, 1)) * 1000).astype(np.float32)
    mean, variance = (f(x, 1, keepdims=True, dtype="f8").astype("f4") for f in (np.mean, np.var))
    bias = -(x[:, :1] - mean) * scale / np.sqrt(variance + 1e-5)
    arrays = x, mean, variance, scale, bias
    fields = [info.attribute for info in dml.BatchNormalization.tensor_fields(Role.INPUT)]
    tensors = dict(zip(fields, map(dml.TensorDesc.from_array, arrays), strict=True))
    desc = dml.BatchNormalization.with_outputs(**tensors, spatial=True, epsilon=1e-5)
    ((expected,), (magnitude,)) = exact(desc, arrays)
    (got,) = computed(device_named(device), desc, arrays)
    assert_within(dml.BatchNormalization, got, expected, magnitude)
