"""Small networks against PyTorch: the same graph as functions of `torch.nn.functional`."""

import numpy as np
import pytest

import anydml as dml
from support.computed import device_named

torch_graphs = pytest.importorskip("support.torch_graphs", exc_type=ImportError)

T = dml.TensorDesc
RELU = dml.ActivationRelu()


class Network:
    """A graph whose weights are seeded random values."""

    def __init__(self, seed):
        self.graph = dml.GraphBuilder()
        self.random = np.random.default_rng(seed)
        self.arrays = {}

    def input(self, *sizes, strides=None, scale=1.0, offset=0.0):
        """An input; the array is its memory, in the order of the strides."""
        name = f"x{len(self.arrays)}"
        desc = T("FLOAT32", sizes, strides)
        count = desc.minimum_size_in_bytes // 4
        self.arrays[name] = (self.random.normal(0, scale, count) + offset).astype(np.float32)
        return self.graph.input(name, desc)

    def weights(self, *sizes):
        return self.input(*sizes, scale=1 / np.sqrt(np.prod(sizes[1:])))

    def per_channel(self, count, offset=0.0):
        return self.input(1, count, 1, 1, scale=0.1, offset=offset)


def residual(net):
    """Strides, groups, dilations, normalization with given statistics, a sum, a mean, a matrix."""
    g = net.graph
    x = net.input(2, 3, 19, 17)
    first = g.convolution(
        x,
        net.weights(8, 3, 3, 3),
        net.per_channel(8),
        strides=(2, 2),
        start_padding=(1, 1),
        end_padding=(1, 1),
        fused_activation=RELU,
    )
    deep = g.convolution(
        first,
        net.weights(8, 1, 3, 3),
        group_count=8,
        dilations=(2, 2),
        start_padding=(2, 2),
        end_padding=(2, 2),
    )
    deep = g.batch_normalization(
        deep, net.per_channel(8), net.per_channel(8, 1), net.per_channel(8, 1),
        net.per_channel(8), spatial=True, epsilon=1e-5,
        fused_activation=dml.ActivationLeakyRelu(alpha=0.1),
    )  # fmt: skip
    both = g.activation_relu(g.add(first, deep))
    small = g.max_pooling(
        both, window_size=(3, 2), strides=(2, 2), start_padding=(1, 0), end_padding=(0, 1)
    )
    mean = g.average_pooling(
        small,
        window_size=small.sizes[2:],
        strides=(1, 1),
        start_padding=(0, 0),
        end_padding=(0, 0),
        include_padding=False,
    )
    row = g.reinterpret(mean, sizes=(1, 1, 2, 8))
    y = g.gemm(
        row,
        net.weights(1, 1, 5, 8),
        net.input(1, 1, 2, 5),
        trans_b="TRANSPOSE",
        alpha=2.0,
        beta=0.5,
    )
    return {"y": g.activation_softmax1(y, axes=(3,)), "small": small}  # fmt: skip


def style(net):
    """Reflections, normalization by the input's own statistics, crops, transposed convolution."""
    g = net.graph
    x = g.value_scale_2d(net.input(1, 3, 16, 16), scale=2.0, bias=(0.1, -0.2, 0.3))
    x = g.padding(
        x,
        padding_mode="REFLECTION",
        padding_value=0,
        start_padding=(0, 0, 3, 3),
        end_padding=(0, 0, 3, 2),
    )
    x = g.convolution(x, net.weights(6, 3, 3, 3), strides=(2, 2))
    x = g.mean_variance_normalization1(
        x,
        net.per_channel(6, 1),
        net.per_channel(6),
        axes=(0, 2, 3),
        normalize_variance=True,
        epsilon=1e-5,
        fused_activation=RELU,
    )
    n = x.sizes[2]
    inner = g.slice1(
        x,
        input_window_offsets=(0, 0, 1, 0),
        input_window_sizes=(1, 6, n - 2, n),
        input_window_strides=(1, 1, 1, 2),
    )
    x = g.join([inner, g.activation_tanh(inner)], axis=1)
    height, width = (2 * (n - 1) + 3 for n in x.sizes[2:])
    y = g.convolution(
        x,
        net.weights(12, 4, 3, 3),
        net.per_channel(4),
        direction="BACKWARD",
        strides=(2, 2),
        output_sizes=(1, 4, height + 1, width),
    )
    scale = net.input(1, 4, height + 1, width, strides=(4, 1, 0, 0))
    return {"y": g.activation_linear(g.multiply(y, scale), alpha=150, beta=1)}  # fmt: skip


def layouts(net):
    """Edges between layouts: channels last on the way, broadcasts, bytes of other sizes."""
    g = dml.GraphBuilder(channels_last)
    net.graph = g
    x = net.input(2, 3, 6, 4, strides=(72, 1, 12, 3))
    y = g.convolution(x, net.weights(5, 3, 2, 2), mode="CONVOLUTION")
    y = g.subtract(y, net.input(2, 5, 5, 3, strides=(0, 1, 0, 0)))
    plain = g.reinterpret(y, sizes=(2, 5, 3, 5))  # rows, columns and channels in their order
    return {"y": y, "moved": g.activation_sigmoid(plain), "up": g.upsample_2d(
        plain, scale_size=(3, 2), interpolation_mode="LINEAR")}  # fmt: skip


def channels_last(data_type, sizes):
    _, c, h, w = sizes
    return T(data_type, sizes, (h * w * c, 1, w * c, c))


def volumes(net):
    """Three spatial dimensions."""
    g = net.graph
    x = net.input(1, 4, 5, 6, 7)
    y = g.convolution(
        x,
        net.weights(6, 2, 2, 3, 2),
        group_count=2,
        strides=(1, 2, 1),
        start_padding=(1, 0, 0),
        end_padding=(0, 1, 0),
        output_padding=(0, 0, 1),
    )
    y = g.average_pooling(
        y,
        window_size=(2, 2, 2),
        strides=(1, 1, 2),
        start_padding=(1, 0, 0),
        end_padding=(0, 0, 0),
        include_padding=False,
    )
    return {"y": g.divide(g.clip(y, min=-0.5, max=0.5), net.input(*y.sizes, offset=4))}  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "reference", "xla", "onnxruntime"])
@pytest.mark.parametrize("build", [residual, style, layouts, volumes])
def test_as_pytorch_has_it(build, device):
    target = device_named(device)
    net = Network(hash_of(build.__name__))
    outputs = build(net)
    desc = net.graph.build(**outputs)
    found = target.compile_graph(desc)(**net.arrays)
    expected = torch_graphs.run_graph(desc, net.arrays)
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert torch_graphs.difference(array, expected[name]) <= 1e-5, name
        assert np.std(expected[name]) > 1e-3, "the comparison would say nothing"


def hash_of(text):
    return sum(map(ord, text))


def test_the_judge_sees_a_difference():
    net = Network(1)
    desc = net.graph.build(**residual(net))
    expected = torch_graphs.run_graph(desc, net.arrays)
    net.arrays["x1"][0] += 0.1
    found = dml.Device("cpu").compile_graph(desc)(**net.arrays)
    assert torch_graphs.difference(found["small"], expected["small"]) > 1e-3


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_transposed_convolutions_that_keep_part_of_a_stride(kept):
    """As PyTorch's `output_padding`: zeros and the bias, where nothing is summed."""
    net = Network(kept)
    g = net.graph
    y = g.convolution(net.input(1, 2, 4, 4), net.weights(2, 3, 2, 2), net.per_channel(3),
                      direction="BACKWARD", strides=(3, 3), start_padding=(1, 0),
                      output_sizes=(1, 3, 10 + kept, 11))  # fmt: skip
    desc = g.build(y=y)
    found = dml.Device("cpu").compile_graph(desc)(**net.arrays)["y"]
    assert found.shape == (1, 3, 10 + kept, 11)
    expected = torch_graphs.run_graph(desc, net.arrays)["y"]
    assert torch_graphs.difference(found, expected) <= 1e-6


@pytest.mark.parametrize("size", [9, 13])
def test_transposed_convolutions_of_other_sizes(size):
    net = Network(0)
    with pytest.raises(dml.InvalidDescriptorError, match=r"Sizes\[2\]: expected 10") as caught:
        dml.Device("cpu").compile_graph(net.graph.build(y=net.graph.convolution(
            net.input(1, 2, 4, 4), net.weights(2, 3, 2, 2), direction="BACKWARD", strides=(3, 3),
            start_padding=(1, 0), output_sizes=(1, 3, size, 11), name="up",
        )))  # fmt: skip
    assert str(caught.value).startswith("up.CONVOLUTION.OutputTensor")
