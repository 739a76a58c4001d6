"""Computed operators on random descriptors against PyTorch in float64, within their tolerance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.ops._fields import Role
from support.computed import NAMES, device_named
from support.strategies import descriptors, generators
from support.tolerances import assert_within

torch = pytest.importorskip("torch")
functional = torch.nn.functional


def gemm(desc, a, b, c=None):
    a = a.mT if desc.trans_a else a
    b = b.mT if desc.trans_b else b
    y = desc.alpha * (a @ b)
    return y if c is None else y + desc.beta * c


def pads(*pairs):
    """Paddings of the last dimensions as PyTorch takes them, the last one first."""
    return [n for pair in reversed(list(zip(*pairs, strict=True))) for n in pair]


def convolution(desc, x, w, bias=None):
    spatial = len(desc.strides)
    if desc.mode is type(desc.mode).CONVOLUTION:
        w = w.flip(list(range(2, w.ndim)))
    arguments = {"stride": desc.strides, "dilation": desc.dilations, "groups": desc.group_count}
    if desc.direction is type(desc.direction).FORWARD:
        x = functional.pad(x, pads(desc.start_padding, desc.end_padding))
        y = getattr(functional, f"conv{spatial}d")(x, w, **arguments)
        cut = [(0, more) for more in desc.output_padding]
    else:
        y = getattr(functional, f"conv_transpose{spatial}d")(x, w, **arguments)
        sizes = zip(desc.start_padding, y.shape[2:], desc.output_tensor.sizes[2:], strict=True)
        cut = [(-start, start + size - full) for start, full, size in sizes]
    amounts = pads(*zip(*cut, strict=True))
    for bound in (max, min):  # PyTorch cuts first, and refuses to cut all that there is
        y = functional.pad(y, [bound(amount, 0) for amount in amounts])
    return y if bias is None else y + bias


def windows(desc, x, fill):
    """Each window's elements on the last axis."""
    rank = len(desc.strides)
    x = functional.pad(x, pads(desc.start_padding, desc.end_padding), value=fill)
    for i, dilation in enumerate(getattr(desc, "dilations", [1] * rank)):
        span = (desc.window_size[i] - 1) * dilation + 1
        x = x.unfold(2 + i, span, desc.strides[i])[..., ::dilation]
    return x.flatten(2 + rank)


def average_pooling(desc, x):
    count = windows(desc, torch.ones_like(x), float(desc.include_padding)).sum(-1)
    return windows(desc, x, 0.0).sum(-1) / count.clamp(min=1)


def max_pooling(desc, x):
    places = torch.arange(x.numel(), dtype=x.dtype).reshape(x.shape)
    dtype = desc.input_tensor.data_type.numpy
    lowest = -np.inf if dtype.kind == "f" else float(np.iinfo(dtype).min)
    values, place = windows(desc, x, -torch.inf).max(-1)
    values = values.clamp(min=lowest)  # where there is only padding
    found = windows(desc, places, 0.0).gather(-1, place[..., None])[..., 0]
    return (values, found) if getattr(desc, "output_indices_tensor", None) else values


def lp_pooling(desc, x):
    return torch.linalg.vector_norm(windows(desc, x, 0.0), desc.p, -1)


def columns(desc, x):
    """Each window as a column; images by PyTorch's own function."""
    rank = len(desc.strides)
    x = functional.pad(x, pads(desc.start_padding, desc.end_padding))
    if rank == 2:
        arguments = {"dilation": desc.dilations, "stride": desc.strides}
        return functional.unfold(x, desc.window_sizes, **arguments)
    for i, dilation in enumerate(desc.dilations):
        span = (desc.window_sizes[i] - 1) * dilation + 1
        x = x.unfold(2 + i, span, desc.strides[i])[..., ::dilation]
    x = x.permute(0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    return x.flatten(2 + rank).flatten(1, 1 + rank)


def folded(desc, x):
    sizes, rank = desc.output_tensor.sizes, len(desc.strides)
    if rank != 2:
        images = torch.zeros(sizes, dtype=x.dtype, requires_grad=True)
        return torch.autograd.grad(columns(desc, images), images, x)[0]
    edges = [*zip(desc.start_padding, desc.end_padding, strict=True)]
    padded = [size + sum(pair) for size, pair in zip(sizes[2:], edges, strict=True)]
    arguments = {"dilation": desc.dilations, "stride": desc.strides}
    y = functional.fold(x, padded, desc.window_sizes, **arguments)
    return functional.pad(y, [-n for n in pads(desc.start_padding, desc.end_padding)])


def real(x, scale=None, zero=None, axis=-1):
    """What a quantized tensor stands for."""
    rest = [1] * (-axis - 1)
    x = x if zero is None else x - zero.reshape(-1, *rest)
    return x if scale is None else x * scale.reshape(-1, *rest)


def quantized(desc, y, scale, zero=None, axis=-1):
    limits = np.iinfo(desc.output_tensor.data_type.numpy)
    rest = [1] * (-axis - 1)
    y = (y / scale.reshape(-1, *rest)).round() + (0 if zero is None else zero.reshape(-1, *rest))
    return y.clamp(limits.min, limits.max).nan_to_num(0)


def integer_convolution(desc, x, x_zero, w, w_zero):
    x = functional.pad(real(x, None, x_zero), pads(desc.start_padding, desc.end_padding))
    arguments = {"stride": desc.strides, "dilation": desc.dilations, "groups": desc.group_count}
    w = real(w, None, w_zero, -w.ndim)
    return getattr(functional, f"conv{len(desc.strides)}d")(x, w, **arguments)


def quantized_convolution(desc, x, x_scale, x_zero, w, w_scale, w_zero, bias, scale, zero):
    y = integer_convolution(desc, x, x_zero, w, w_zero)
    y = y if bias is None else y + bias
    return quantized(desc, real(y * x_scale.ravel(), w_scale, None, 1 - x.ndim), scale, zero)


def integer_product(desc, a, a_zero, b, b_zero):
    return real(a, None, a_zero, -2) @ real(b, None, b_zero)


def float_product(desc, a, a_scale, a_zero, b, b_scale, b_zero, bias):
    y = real(a, a_scale, a_zero, -2) @ real(b, b_scale, b_zero)
    return y if bias is None else y + bias


def quantized_product(desc, a, a_scale, a_zero, b, b_scale, b_zero, scale, zero):
    y = float_product(desc, a, a_scale, a_zero, b, b_scale, b_zero, None)
    return quantized(desc, y, scale, zero, -2)


def quantized_pooling(desc, x, x_scale, x_zero, scale, zero):
    y = average_pooling(desc, real(x, x_scale, x_zero, 1 - x.ndim))
    return quantized(desc, y, scale, zero, 1 - x.ndim)


def quantized_sum(desc, a, a_scale, a_zero, b, b_scale, b_zero, scale, zero):
    return quantized(desc, real(a, a_scale, a_zero) + real(b, b_scale, b_zero), scale, zero)


ORACLES = {
    dml.Unfold: columns,
    dml.Fold: folded,
    dml.ConvolutionInteger: integer_convolution,
    dml.QuantizedLinearConvolution: quantized_convolution,
    dml.MatrixMultiplyInteger: integer_product,
    dml.MatrixMultiplyIntegerToFloat: float_product,
    dml.QuantizedLinearMatrixMultiply: quantized_product,
    dml.QuantizedLinearAveragePooling: quantized_pooling,
    dml.ElementWiseQuantizedLinearAdd: quantized_sum,
    dml.Gemm: gemm,
    dml.Convolution: convolution,
    dml.AveragePooling: average_pooling,
    dml.AveragePooling1: average_pooling,
    dml.MaxPooling: max_pooling,
    dml.MaxPooling1: max_pooling,
    dml.MaxPooling2: max_pooling,
    dml.LpPooling: lp_pooling,
    dml.LpPooling1: lp_pooling,
}


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("kind", ORACLES, ids=lambda kind: kind.NAME)
@given(data=st.data())
def test_as_pytorch(kind, device, data):
    compute = device_named(device)
    desc = data.draw(descriptors(kind))
    generator = data.draw(generators())
    arrays = [
        (
            generator.random(tensor.sizes) * 16 - (0 if tensor.data_type.numpy.kind == "u" else 8)
        ).astype(tensor.data_type.numpy)
        for _, tensor, _ in desc.tensors(Role.INPUT)
    ]
    if getattr(desc, "fused_activation", None) is not None:
        desc = kind(**{
            info.attribute: getattr(desc, info.attribute) for info in desc.fields()
            if info.attribute != "fused_activation"
        })  # fmt: skip
    arrays = [
        np.broadcast_to(
            a[tuple(slice(0, 1 if s == 0 else None) for s in t.element_strides)], a.shape
        )
        for a, (_, t, _) in zip(arrays, desc.tensors(Role.INPUT), strict=True)
    ]
    results = as_tuple(compute.create_operator(desc).compile()(*arrays))
    wide = [torch.from_numpy(a.astype(np.float64)) for a in arrays]
    exact = as_tuple(ORACLES[kind](desc, *operands(desc, wide)))
    largest = as_tuple(ORACLES[kind](absolute(desc), *operands(desc, [x.abs() for x in wide])))
    for got, expected, magnitude in zip(results, exact, largest, strict=True):
        assert_within(kind, got, expected, magnitude.numpy())


def as_tuple(results):
    return tuple(results) if isinstance(results, tuple) else (results,)


def operands(desc, tensors):
    present = iter(tensors)
    return [
        next(present) if getattr(desc, info.attribute) is not None else None
        for info in desc.tensor_fields(Role.INPUT)
    ]


def absolute(desc):
    """The descriptor with the absolute values of its numbers."""
    return type(desc)(**{
        info.attribute: abs(value) if isinstance(value, float) else value
        for info in desc.fields()
        for value in [getattr(desc, info.attribute)]
    })  # fmt: skip
