"""ROI_ALIGN, its version 1 and its gradient against PyTorch, sample by sample.

The samples of a region are products of matrices, one for each dimension, that say which elements a
sample reads. They are differentiated by PyTorch.
"""

import dataclasses
from math import prod

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import anydml as dml
from anydml.ops._fields import Role
from support.computed import run
from support.strategies import descriptors, generators

torch = pytest.importorskip("torch")

DEVICE = dml.Device("cpu")


def matrix(desc, letter, first, second, outputs, size):
    """For samples along a dimension: weights, positions' order, and which ones are inside."""
    scale = getattr(desc, f"spatial_scale_{letter}")
    low, high = (float(np.float32(corner.item() * scale)) for corner in (first, second))
    extent = float(np.float32(high - low))
    minimum = max(desc.minimum_samples_per_output, 1)
    count = int(np.clip(np.ceil(np.float32(extent / outputs)), minimum,
                        desc.maximum_samples_per_output))  # fmt: skip
    index = np.arange(count * outputs) - getattr(desc, "output_pixel_offset", -0.5)
    share = index / len(index)
    if getattr(desc, "align_regions_to_corners", False):
        share = index / (len(index) - 1) if len(index) > 1 else np.array([0.5])
    at = low + share * extent - getattr(desc, "input_pixel_offset", 0.5)
    at = np.round(at * 2.0**30) / 2.0**30  # ties are ties
    inside = (at >= -1) & (at <= size)
    if desc.interpolation_mode.suffix != "LINEAR":
        at = np.ceil(at - 0.5)
    clipped = np.clip(at, 0, size - 1)
    below = np.floor(clipped).astype(int)
    part = torch.from_numpy(clipped - below)
    exact = scale * (first * torch.from_numpy(1 - share) + second * torch.from_numpy(share))
    moves = torch.from_numpy((part.numpy() > 0) & inside)
    part = torch.where(moves, part + exact - exact.detach(), part)
    above = np.minimum(below + 1, size - 1)
    rows = torch.nn.functional.one_hot(torch.from_numpy(np.stack([below, above])), size).double()
    weights = rows[0] * (1 - part[:, None]) + rows[1] * part[:, None]
    order = -1 if extent < 0 else 1
    return weights, order, torch.from_numpy(inside)


def aligned(desc, images, regions, batches, outputs, beyond):
    """The output of ROI_ALIGN1."""
    pooled = []
    for corners, batch in zip(regions.reshape(-1, 4), batches.reshape(-1).tolist(), strict=True):
        known = batch < len(images)
        image = images[batch if known else 0]
        rows, down, inside = matrix(desc, "y", *corners[1::2], outputs[0], image.shape[1])
        columns, right, within = matrix(desc, "x", *corners[::2], outputs[1], image.shape[2])
        inside = inside[:, None] & within & known
        samples = torch.where(inside, rows @ image @ columns.T, beyond)
        cells = samples.unflatten(1, (outputs[0], -1)).unflatten(3, (outputs[1], -1))
        cells = cells.transpose(2, 3)
        if desc.reduction_function.suffix == "AVERAGE":
            pooled.append(cells.mean((3, 4)))
            continue
        reversed_axes = [axis for axis, way in ((3, down), (4, right)) if way < 0]
        cells = cells.flip(reversed_axes).flatten(3)
        first = cells.detach().numpy().astype("f4").argmax(-1)
        pooled.append(cells.gather(-1, torch.from_numpy(first)[..., None])[..., 0])
    return torch.stack(pooled)


def drawn(kind, data):
    """A descriptor with numbers that are finite, and arrays for it."""
    desc = data.draw(descriptors(kind))
    if data.draw(st.booleans()):
        desc = dataclasses.replace(desc, maximum_samples_per_output=2**32 - 1)
    numbers = [getattr(desc, info.attribute) for info in desc.fields()]
    assume(all(np.isfinite(n) for n in numbers if isinstance(n, float)))
    generator, arrays = data.draw(generators()), {}
    halves = data.draw(st.booleans())
    for info in desc.bind_points(Role.INPUT):
        tensor = getattr(desc, info.attribute)
        values = generator.random(tensor.sizes) * 16 - 4
        if info.name == "BatchIndicesTensor":
            values = generator.integers(0, 3, tensor.sizes)
        elif info.name == "ROITensor" and halves:
            values = np.round(values * 2) / 2
        kept = tuple(slice(0, 1 if s == 0 else None) for s in tensor.element_strides)
        values = values.astype(tensor.data_type.numpy)[kept]
        arrays[info.attribute] = np.broadcast_to(values, tensor.sizes)
    return desc, arrays


def assert_near(got, expected):
    expected = expected.detach().numpy().reshape(got.shape)
    near = 2e-3 if got.dtype == np.float16 else 1e-5
    np.testing.assert_allclose(got, expected, rtol=near, atol=near * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("kind", [dml.RoiAlign, dml.RoiAlign1], ids=lambda kind: kind.NAME)
@given(data=st.data())
def test_regions(kind, data):
    desc, arrays = drawn(kind, data)
    images, regions, batches = (torch.from_numpy(a.astype("f8")) for a in arrays.values())
    beyond = desc.out_of_bounds_input_value
    expected = aligned(desc, images, regions, batches.int(), desc.output_tensor.sizes[2:], beyond)
    (got,) = run(DEVICE, desc, [*arrays.values()])
    assert_near(got, expected)


@given(data=st.data())
def test_gradients(data):
    desc, arrays = drawn(dml.RoiAlignGrad, data)
    shape = desc.attributes()["shape"]
    images = torch.from_numpy(arrays.get("input_tensor", np.zeros(shape)).astype("f8"))
    regions = torch.from_numpy(arrays["roi_tensor"].astype("f8"))
    dy = torch.from_numpy(arrays["input_gradient_tensor"].astype("f8"))
    leaves = images.requires_grad_(), regions.requires_grad_()
    largest = desc.reduction_function.suffix == "MAX"
    beyond = -torch.inf if largest else 0.0
    batches = torch.from_numpy(arrays["batch_indices_tensor"].astype("i8"))
    y = aligned(desc, images, regions, batches, dy.shape[2:], beyond)
    y = torch.where(torch.isfinite(y), y, 0.0)
    gradients = torch.autograd.grad(y, leaves, dy, materialize_grads=True)
    outputs = desc.output_gradient_tensor, desc.output_roi_gradient_tensor
    expected = [g for g, tensor in zip(gradients, outputs, strict=True) if tensor is not None]
    for got, exact in zip(run(DEVICE, desc, [*arrays.values()]), expected, strict=True):
        assert_near(got, exact)
    assert prod(shape) == images.numel()
