"""Resampling, and gradients of operators, against PyTorch and its automatic differentiation."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import anydml as dml
from anydml.ops._fields import Role
from support.strategies import descriptors, generators
from support.tolerances import assert_within

torch = pytest.importorskip("torch")
functional = torch.nn.functional

DEVICE = dml.Device("cpu")


def resampled(x, sizes, scales, starts, ends, nearest, direction):
    """Each dimension as a gather of one or two elements, in PyTorch's own operations."""
    for axis, (n, scale, start, end) in enumerate(zip(sizes, scales, starts, ends, strict=True)):
        at = (torch.arange(n, dtype=torch.float32) - end) / scale - start
        maximum = x.shape[axis] - 1
        if nearest:
            rounded = {None: (at + 0.5).floor(), 0: at.ceil(), 1: at.floor()}[direction]
            x = x.index_select(axis, rounded.clamp(0, maximum).long())
            continue
        at = at.clamp(0, maximum)
        low = at.floor()
        part = (at - low).double().reshape(-1, *[1] * (x.ndim - axis - 1))
        high = x.index_select(axis, (low + 1).clamp(max=maximum).long())
        x = torch.lerp(x.index_select(axis, low.long()), high, part)
    return x


def resample_gradient(desc, dy):
    shape = desc.output_gradient_tensor.sizes
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    y = resampled(
        x, dy.shape, desc.scales, desc.input_pixel_offsets, desc.output_pixel_offsets,
        desc.interpolation_mode.suffix == "NEAREST_NEIGHBOR",
        getattr(desc, "rounding_direction", None),
    )  # fmt: skip
    return torch.autograd.grad(y, x, dy)


def gradient(function, dy, *inputs):
    leaves = [x.clone().requires_grad_() for x in inputs]
    return torch.autograd.grad(function(*leaves), leaves, dy)


def relu_gradient(desc, x, dy):
    return gradient(torch.relu, dy, x)


def clip_gradient(desc, x, dy):
    low, high = desc.min, desc.max
    if desc.input_tensor.data_type.numpy.kind != "f":  # they are integers, too
        minimum = 0 if desc.input_tensor.data_type.numpy.kind == "u" else -np.inf
        low, high = (max(float(np.trunc(bound)), minimum) for bound in (low, high))

    def clip(x):  # whose gradient is 0 at the bounds
        return torch.where((x > low) & (x < high), x, 0.0)

    return gradient(clip, dy, x)


def response(desc, x):
    behind, before = desc.local_size // 2, (desc.local_size - 1) // 2
    around = x * x
    for axis in (1,) if desc.cross_channel else (2, 3):
        pad = [0, 0] * (x.ndim - 1 - axis) + [before, behind]
        around = functional.pad(around, pad).unfold(axis, desc.local_size, 1).sum(-1)
    return x / (desc.bias + desc.alpha / desc.local_size * around) ** desc.beta


def response_gradient(desc, x, dy):
    assume(any(map(float, (desc.bias, desc.alpha))))  # else powers of 0
    return gradient(lambda x: response(desc, x), dy, x)


def slice_gradient(desc, dy):
    y = torch.zeros(desc.output_gradient_tensor.sizes, dtype=dy.dtype)
    window = zip(
        desc.input_window_offsets, desc.input_window_sizes, desc.input_window_strides, dy.shape,
        strict=True,
    )  # fmt: skip
    places = [
        start + torch.arange(n) * stride + (0 if stride > 0 else size - 1)
        for start, size, stride, n in window
    ]
    y[torch.meshgrid(*places, indexing="ij")] = dy
    return (y,)


def pads(desc):
    pairs = reversed([*zip(desc.start_padding, desc.end_padding, strict=True)])
    return [n for pair in pairs for n in pair]


def windows(desc, x, fill):
    x = functional.pad(x, pads(desc), value=fill)
    for i, size in enumerate(desc.window_size):
        dilation = desc.dilations[i] if hasattr(desc, "dilations") else 1
        span = (size - 1) * dilation + 1
        x = x.unfold(2 + i, span, desc.strides[i])[..., ::dilation]
    return x.flatten(2 + len(desc.strides))


def average_gradient(desc, dy):
    x = torch.zeros(desc.output_gradient_tensor.sizes, dtype=dy.dtype)
    count = windows(desc, torch.ones_like(x), float(desc.include_padding)).sum(-1).clamp(min=1)
    return gradient(lambda x: windows(desc, x, 0.0).sum(-1) / count, dy, x)


def max_gradient(desc, x, dy):
    place = windows(desc, x.detach(), -torch.inf).max(-1).indices[..., None]
    return gradient(lambda x: windows(desc, x, 0.0).gather(-1, place)[..., 0], dy, x)


def batch_gradient(desc, x, dy, mean, variance, scale):
    def normalize(x, scale, bias):
        return (x - mean) * scale / torch.sqrt(variance + desc.epsilon) + bias

    return gradient(normalize, dy, x, scale, torch.zeros_like(scale))


ORACLES = {
    dml.ActivationReluGrad: relu_gradient,
    dml.ElementWiseClipGrad: clip_gradient,
    dml.ElementWiseClipGrad1: clip_gradient,
    dml.LocalResponseNormalizationGrad: response_gradient,
    dml.SliceGrad: slice_gradient,
    dml.AveragePoolingGrad: average_gradient,
    dml.MaxPoolingGrad: max_gradient,
    dml.BatchNormalizationGrad: batch_gradient,
    dml.ResampleGrad: resample_gradient,
    dml.ResampleGrad1: resample_gradient,
}


@pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.NAME)
@given(data=st.data())
def test_as_pytorch(kind, data):
    desc = data.draw(descriptors(kind))
    numbers = [getattr(desc, info.attribute) for info in desc.fields()]
    assume(all(np.isfinite(n) for n in numbers if isinstance(n, float)))
    generator = data.draw(generators())
    arrays = []
    for _, tensor, _ in desc.tensors(Role.INPUT):
        dtype = tensor.data_type.numpy
        values = generator.random(tensor.sizes) * 16 - (0 if dtype.kind == "u" else 8)
        kept = tuple(slice(0, 1 if s == 0 else None) for s in tensor.element_strides)
        arrays.append(np.broadcast_to(values.astype(dtype)[kept], tensor.sizes))
    results = DEVICE.create_operator(desc).compile()(*arrays)
    results = results if isinstance(results, tuple) else (results,)
    wide = [torch.from_numpy(array.astype(np.float64)) for array in arrays]
    exact = ORACLES[kind](desc, *wide)
    magnitude = ORACLES[kind](desc, *(x.abs() for x in wide))
    for got, expected, maximum in zip(results, exact, magnitude, strict=True):
        assert_within(kind, got, expected, maximum.abs().numpy())


@pytest.mark.parametrize("size", [(3, 2), (5, 12), (1, 4), (20, 3), (12, 8), (7, 6)])
@pytest.mark.parametrize("antialiased", [True, False])
def test_images_are_resized_as_pytorch_resizes_them(size, antialiased):
    x = np.random.default_rng(0).random((2, 3, 13, 9), np.float32)
    height, width = size
    desc = dml.Resample3.with_outputs(
        input_tensor=dml.TensorDesc.from_array(x),
        output_tensor=dml.TensorDesc("FLOAT32", (2, 3, *size)),
        interpolation_mode="LINEAR", rounding_direction="DECREASING", antialiased=antialiased,
        scales=(1, 1, height / 13, width / 9),
        input_pixel_offsets=(0.5,) * 4, output_pixel_offsets=(-0.5,) * 4,
    )  # fmt: skip
    got = DEVICE.create_operator(desc).compile()(x)
    expected = functional.interpolate(
        torch.from_numpy(x), size, mode="bilinear", antialias=antialiased
    )
    np.testing.assert_allclose(got, expected, atol=1e-5)  # scales are rounded to float32 here


@pytest.mark.parametrize("parameters", [(1, 3, 1, 1), (1, 1, 4, 5), (2, 3, 4, 5)])
def test_training_normalizes_batches_as_pytorch_does(parameters):
    """The result, its moments and all gradients, through the moments as well."""
    generator = np.random.default_rng(1)
    x, dy = generator.random((2, 2, 3, 4, 5), np.float32).astype(np.float64)
    scale, bias = generator.random((2, *parameters), np.float32).astype(np.float64)
    axes = [axis for axis, size in enumerate(parameters) if size == 1]

    def normalize(x, scale, bias):
        mean = x.mean(axes, keepdim=True) if axes else x
        centred = x - mean
        variance = (centred**2).mean(axes, keepdim=True) if axes else centred**2
        return centred * scale / torch.sqrt(variance + 0.5) + bias, mean, variance

    leaves = [torch.from_numpy(a).requires_grad_() for a in (x, scale, bias)]
    expected = normalize(*leaves)
    gradients = torch.autograd.grad(expected[0], leaves, torch.from_numpy(dy))
    x, dy, scale, bias = (a.astype(np.float32) for a in (x, dy, scale, bias))
    names = ("input_tensor", "scale_tensor", "bias_tensor")
    tensors = {
        n: dml.TensorDesc.from_array(a) for n, a in zip(names, (x, scale, bias), strict=True)
    }
    desc = dml.BatchNormalizationTraining.with_outputs(**tensors, epsilon=0.5)
    results = DEVICE.create_operator(desc).compile()(x, scale, bias)
    for got, exact in zip(results, expected, strict=True):
        assert_within(dml.BatchNormalizationTraining, got, exact.detach())
    _, mean, variance = results
    operands = x, dy, mean, variance, scale
    names = [
        info.attribute for info in dml.BatchNormalizationTrainingGrad.tensor_fields(Role.INPUT)
    ]
    tensors = {n: dml.TensorDesc.from_array(a) for n, a in zip(names, operands, strict=True)}
    desc = dml.BatchNormalizationTrainingGrad.with_outputs(**tensors, epsilon=0.5)
    for got, exact in zip(
        DEVICE.create_operator(desc).compile()(*operands), gradients, strict=True
    ):
        np.testing.assert_allclose(got, exact, rtol=1e-4, atol=2e-6)


def test_parameters_after_steps_as_pytorch_has_them():
    """Whose epsilon is added to the corrected moment: with 0 there is no difference."""
    generator = np.random.default_rng(2)
    x = torch.from_numpy(generator.random((1, 1, 3, 4))).requires_grad_()
    optimizer = torch.optim.Adam([x], lr=0.25, betas=(0.5, 0.75), eps=0.0)
    state = [x.detach().numpy().astype(np.float32), *np.zeros((2, *x.shape), np.float32)]
    for step in range(1, 4):
        g = generator.random(x.shape)
        x.grad = torch.from_numpy(g)
        optimizer.step()
        operands = *state, g.astype(np.float32), np.full((1, 1, 1, 1), step, np.float32)
        names = [info.attribute for info in dml.AdamOptimizer.tensor_fields(Role.INPUT)]
        tensors = {n: dml.TensorDesc.from_array(a) for n, a in zip(names, operands, strict=True)}
        desc = dml.AdamOptimizer.with_outputs(
            **tensors, learning_rate=0.25, beta1=0.5, beta2=0.75, epsilon=0.0
        )
        state = DEVICE.create_operator(desc).compile()(*operands)
        np.testing.assert_allclose(state[0], x.detach(), rtol=1e-5)
