"""A graph by PyTorch: each node as a function of `torch.nn.functional`.

Written from the operators' pages and PyTorch's documentation, apart from every `compute`, so that
it judges them. Values pass from node to node as bytes, laid out as the descriptors say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812

import anydml as dml
from anydml.ops._fields import Role

Tensor = torch.Tensor
Operator = Callable[..., Any]

DTYPES: Final = {
    "FLOAT32": torch.float32,
    "FLOAT16": torch.float16,
    "FLOAT64": torch.float64,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "UINT8": torch.uint8,
    "UINT32": torch.int32,  # of the same bits
}

OPERATORS: dict[str, Operator] = {}


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register what some operators compute from a descriptor and their inputs."""

    def register(function: Operator) -> Operator:
        OPERATORS.update(dict.fromkeys(names, function))
        return function

    return register


def run_graph(graph: dml.GraphDesc, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs of a graph, by name, from arrays or raw buffers by name."""
    with torch.no_grad():
        return _run(graph, inputs)


def _run(graph: dml.GraphDesc, inputs: Mapping[str, Any]) -> dict[str, Any]:
    held: dict[tuple[Any, int], Tensor] = {}
    for at, declared in enumerate(graph.inputs):
        if declared.name in inputs:
            held["input", at] = _raw(np.ascontiguousarray(inputs[declared.name]))
    for at, node in enumerate(graph.nodes):
        if isinstance(node, dml.ConstantNode):
            held[at, 0] = _raw(np.frombuffer(node.data, np.uint8))
    feeds: dict[tuple[int, int], tuple[Any, int]] = {
        (e.to_node_index, e.to_node_input_index): ("input", e.graph_input_index)
        for e in graph.input_edges
    }
    for link in graph.intermediate_edges:
        start = link.from_node_index, link.from_node_output_index
        feeds[link.to_node_index, link.to_node_input_index] = start
    left = [at for at, node in enumerate(graph.nodes) if isinstance(node, dml.OperatorNode)]
    while left:
        at = next(at for at in left if all(s in held for to, s in feeds.items() if to[0] == at))
        left.remove(at)
        desc: Any = graph.nodes[at].desc  # type: ignore[union-attr]
        operands = [
            None if tensor is None else _read(held[feeds[at, place]], tensor)
            for place, tensor in enumerate(_tensors(desc, Role.INPUT))
        ]
        found = OPERATORS[desc.NAME](desc, *operands)
        results = [found] if isinstance(found, Tensor) else list(found)
        for place, tensor in enumerate(_tensors(desc, Role.OUTPUT)):
            if tensor is not None:
                held[at, place] = _laid_out(_activated(desc, results[place]), tensor)
    outputs = {}
    for edge in graph.output_edges:
        declared = graph.outputs[edge.graph_output_index]
        at, index = edge.from_node_index, edge.from_node_output_index
        desc = graph.nodes[at].desc  # type: ignore[union-attr]
        output = declared.desc or _tensors(desc, Role.OUTPUT)[index]
        assert output is not None
        outputs[declared.name] = _read(held[at, index], output).numpy().view(output.data_type.numpy)
    return outputs


def _tensors(desc: Any, role: Role) -> list[dml.TensorDesc | None]:
    found: list[dml.TensorDesc | None] = []
    for info in desc.tensor_fields(role):
        value = getattr(desc, info.attribute)
        found += value if info.many else [value]
    return found


def _raw(array: Any) -> Any:
    octets = array.reshape(-1).view(np.uint8)
    padded = np.zeros(-(-octets.size // 8) * 8, np.uint8)
    padded[: octets.size] = octets
    return torch.from_numpy(padded)


def _read(octets: Tensor, tensor: dml.TensorDesc) -> Tensor:
    return octets.view(DTYPES[tensor.data_type.suffix]).as_strided(
        tensor.sizes, tensor.element_strides
    )


def _laid_out(value: Tensor, tensor: dml.TensorDesc) -> Any:
    octets = torch.zeros(-(-tensor.total_tensor_size_in_bytes // 8) * 8, dtype=torch.uint8)
    _read(octets, tensor).copy_(value.reshape(tensor.sizes))
    return octets


def _activated(desc: Any, value: Tensor) -> Any:
    fused = getattr(desc, "fused_activation", None)
    if fused is None:
        return value
    result: Tensor = OPERATORS[fused.NAME](fused, value)
    return result


def _scaled(desc: Any, x: Tensor) -> Any:
    pair = getattr(desc, "scale_bias", None)
    return x if pair is None else x * pair.scale + pair.bias


def _padded(x: Tensor, start: Sequence[int], end: Sequence[int], value: float = 0) -> Any:
    pairs = [n for pair in zip(reversed(start), reversed(end), strict=True) for n in pair]
    return F.pad(x, pairs, value=value)


@operator("CONVOLUTION")
def convolution(desc: Any, x: Tensor, w: Tensor, bias: Tensor | None) -> Any:
    """FORWARD is `conv2d`, BACKWARD `conv_transpose2d`."""
    rank, flat = w.ndim - 2, None if bias is None else bias.reshape(-1)
    if desc.mode.suffix == "CONVOLUTION":
        w = w.flip(tuple(range(2, w.ndim)))
    if desc.direction.suffix == "FORWARD":
        function = (F.conv1d, F.conv2d, F.conv3d)[rank - 1]
        x = _padded(x, desc.start_padding, desc.end_padding)
        y = function(x, w, None, desc.strides, 0, desc.dilations, desc.group_count)
        y = _padded(y, [0] * rank, desc.output_padding)
    else:
        transpose = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[rank - 1]
        y = transpose(x, w, None, desc.strides, 0, 0, desc.group_count, desc.dilations)
        # The declared sizes say how much of the end is kept: zeros, where nothing is summed.
        sizes = zip(desc.output_tensor.sizes[2:], y.shape[2:], desc.start_padding, strict=True)
        end = [size - (tensor - start) for size, tensor, start in sizes]
        y = _padded(y, [-n for n in desc.start_padding], end)
    return y if flat is None else y + flat.reshape(-1, *[1] * rank)


@operator("GEMM")
def gemm(desc: Any, a: Tensor, b: Tensor, c: Tensor | None) -> Any:
    """``alpha * A @ B + beta * C``."""
    a = a.mT if desc.trans_a.suffix == "TRANSPOSE" else a
    b = b.mT if desc.trans_b.suffix == "TRANSPOSE" else b
    y = desc.alpha * torch.matmul(a, b)
    return y if c is None else y + desc.beta * c


@operator("MAX_POOLING", "MAX_POOLING1", "MAX_POOLING2")
def max_pooling(desc: Any, x: Tensor) -> Any:
    """The largest element of each window, and where it is."""
    count = len(desc.window_size)
    dilations = getattr(desc, "dilations", (1,) * count)
    pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[count - 1]
    x = _padded(x, desc.start_padding, desc.end_padding, -torch.inf)
    return [pool(x, desc.window_size, desc.strides, 0, dilations)]


@operator("AVERAGE_POOLING", "AVERAGE_POOLING1")
def average_pooling(desc: Any, x: Tensor) -> Any:
    """The mean of each window; padding counts only if it is included."""
    count = len(desc.window_size)
    assert set(getattr(desc, "dilations", (1,))) == {1}
    pool = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[count - 1]
    ones = torch.ones_like(x)
    x, ones = (_padded(value, desc.start_padding, desc.end_padding) for value in (x, ones))
    y = pool(x, desc.window_size, desc.strides)
    return y if desc.include_padding else y / pool(ones, desc.window_size, desc.strides)


@operator("BATCH_NORMALIZATION")
def batch_normalization(
    desc: Any, x: Tensor, mean: Tensor, variance: Tensor, scale: Tensor, bias: Tensor
) -> Any:
    """With means and variances that are given."""
    assert mean.numel() == x.shape[1]
    mean, variance, scale, bias = (v.reshape(-1) for v in (mean, variance, scale, bias))
    return F.batch_norm(x, mean, variance, scale, bias, eps=desc.epsilon)


@operator("MEAN_VARIANCE_NORMALIZATION", "MEAN_VARIANCE_NORMALIZATION1")
def mean_variance_normalization(
    desc: Any, x: Tensor, scale: Tensor | None, bias: Tensor | None
) -> Any:
    """With the mean and variance of the input itself."""
    axes = getattr(desc, "axes", None)
    if axes is None:
        axes = tuple(range(0 if desc.cross_channel else 2, x.ndim))
        axes = (1, *axes) if desc.cross_channel else axes
    mean = x.double().mean(axes, keepdim=True)
    y = x - mean
    if desc.normalize_variance:
        y = y / torch.sqrt(x.double().var(axes, unbiased=False, keepdim=True) + desc.epsilon)
    y = y if scale is None else y * scale
    return (y if bias is None else y + bias).float()


@operator("VALUE_SCALE_2D")
def value_scale_2d(desc: Any, x: Tensor) -> Any:
    """A scale, and a bias for each channel."""
    return x * desc.scale + torch.tensor(desc.bias).reshape(1, -1, 1, 1)


@operator("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(desc: Any, x: Tensor) -> Any:
    """Across channels, as PyTorch has it."""
    assert desc.cross_channel
    return F.local_response_norm(x, desc.local_size, desc.alpha, desc.beta, desc.bias)


@operator("PADDING")
def padding(desc: Any, x: Tensor) -> Any:
    """A constant, the edge, or a reflection."""
    mode = {"CONSTANT": "constant", "EDGE": "replicate", "REFLECTION": "reflect"}
    if desc.padding_mode.suffix == "CONSTANT":
        return _padded(x, desc.start_padding, desc.end_padding, desc.padding_value)
    assert not any((*desc.start_padding[:2], *desc.end_padding[:2]))
    pairs = zip(reversed(desc.start_padding[2:]), reversed(desc.end_padding[2:]), strict=True)
    return F.pad(x, [n for pair in pairs for n in pair], mode[desc.padding_mode.suffix])


@operator("SLICE1")
def slice1(desc: Any, x: Tensor) -> Any:
    """A window with strides."""
    windows = zip(
        desc.input_window_offsets,
        desc.input_window_sizes,
        desc.input_window_strides,
        strict=True,
    )
    return x[tuple(slice(start, start + size, step) for start, size, step in windows)]


@operator("JOIN")
def join(desc: Any, *parts: Tensor) -> Any:
    """`torch.cat`."""
    return torch.cat(parts, desc.axis)


@operator("SPLIT")
def split(desc: Any, x: Tensor) -> Any:
    """`torch.split`."""
    return torch.split(x, [tensor.sizes[desc.axis] for tensor in desc.output_tensors], desc.axis)


@operator("GATHER")
def gather(desc: Any, x: Tensor, indices: Tensor) -> Any:
    """`torch.index_select`."""
    return x.index_select(desc.axis, indices.reshape(-1))


@operator("UPSAMPLE_2D")
def upsample_2d(desc: Any, x: Tensor) -> Any:
    """`interpolate`."""
    scale = float(desc.scale_size.height), float(desc.scale_size.width)
    if desc.interpolation_mode.suffix == "LINEAR":
        return F.interpolate(x, scale_factor=scale, mode="bilinear", align_corners=False)
    return F.interpolate(x, scale_factor=scale, mode="nearest")


@operator("REDUCE")
def reduce(desc: Any, x: Tensor) -> Any:
    """Sums and means along axes."""
    function: dict[str, Any] = {
        "SUM": torch.sum,
        "AVERAGE": torch.mean,
        "MAX": torch.amax,
        "MIN": torch.amin,
    }
    return function[desc.function.suffix](x, tuple(desc.axes), keepdim=True)


@operator("ELEMENT_WISE_CLIP")
def clip(desc: Any, x: Tensor) -> Any:
    """Between two bounds."""
    return torch.clamp(_scaled(desc, x), desc.min, desc.max)


_UNARY: Final[Mapping[str, Callable[[Any, Tensor], Tensor]]] = {
    "ACTIVATION_ELU": lambda d, x: F.elu(x, d.alpha),
    "ACTIVATION_IDENTITY": lambda d, x: x,
    "ACTIVATION_LEAKY_RELU": lambda d, x: F.leaky_relu(x, d.alpha),
    "ACTIVATION_LINEAR": lambda d, x: d.alpha * x + d.beta,
    "ACTIVATION_RELU": lambda d, x: F.relu(x),
    "ACTIVATION_SIGMOID": lambda d, x: F.sigmoid(x),
    "ACTIVATION_SOFTMAX": lambda d, x: F.softmax(x.reshape(x.shape[0], -1), 1).reshape(x.shape),
    "ACTIVATION_SOFTMAX1": lambda d, x: F.softmax(x, *d.axes),
    "ACTIVATION_TANH": lambda d, x: F.tanh(x),
    "ELEMENT_WISE_IDENTITY": _scaled,
    "ELEMENT_WISE_RECIP": lambda d, x: 1 / _scaled(d, x),
}

_BINARY: Final[Mapping[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "ELEMENT_WISE_ADD": torch.add,
    "ELEMENT_WISE_ADD1": torch.add,
    "ELEMENT_WISE_DIVIDE": torch.div,
    "ELEMENT_WISE_MAX": torch.maximum,
    "ELEMENT_WISE_MIN": torch.minimum,
    "ELEMENT_WISE_MODULUS_TRUNCATE": torch.fmod,
    "ELEMENT_WISE_MULTIPLY": torch.mul,
    "ELEMENT_WISE_SUBTRACT": torch.sub,
}

OPERATORS |= _UNARY
for _name, _function in _BINARY.items():
    OPERATORS[_name] = lambda desc, a, b, function=_function: function(a, b)


def difference(found: Any, expected: Any) -> float:
    """How far two results are apart: the largest difference by the largest magnitude."""
    assert found.shape == expected.shape
    assert np.isfinite(expected).all()
    scale = float(np.abs(expected).max(initial=0)) or 1.0
    return float(np.abs(found.astype(np.float64) - expected).max(initial=0)) / scale
