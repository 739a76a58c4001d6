"""SqueezeNet and MobileNet with random weights, in every library that is installed.

Each network is written once, in terms of `Layers`, which each library implements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final, Protocol

import numpy as np

import anydml as dml
from benchmarks.jobs import Array
from benchmarks.measure import Contestant

SIZES: Final = (1, 3, 224, 224)


class Layers(Protocol):
    """A library's layers on its own tensors; weights are NumPy arrays."""

    def convolution(
        self, x: Any, weights: Array, bias: Array, stride: int, padding: int, groups: int
    ) -> Any:
        """A convolution of NCHW, with a ReLU."""

    def max_pooling(self, x: Any) -> Any:
        """The maximum of windows of 3 × 3, at every second place."""

    def mean(self, x: Any) -> Any:
        """The mean of each channel."""

    def join(self, x: Any, y: Any) -> Any:
        """The channels of both."""


@dataclass
class Network:
    """A network under construction: its last tensor, and the generator of its weights."""

    layers: Layers
    x: Any
    channels: int = SIZES[1]
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def convolution(
        self, channels: int, size: int = 1, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Network:
        """Add a convolution to a number of channels."""
        inputs = self.channels // groups
        scale = (2 / (inputs * size * size)) ** 0.5
        weights = scale * self.rng.standard_normal((channels, inputs, size, size), np.float32)
        bias = 0.1 * self.rng.standard_normal(channels, np.float32)
        x = self.layers.convolution(self.x, weights, bias, stride, padding, groups)
        return Network(self.layers, x, channels, self.rng)

    def pool(self) -> Network:
        """Add a pooling of maxima."""
        return Network(self.layers, self.layers.max_pooling(self.x), self.channels, self.rng)


def squeezenet(layers: Layers, x: Any) -> Any:
    """SqueezeNet 1.1: narrow layers of 1 × 1 between joined ones of 1 × 1 and 3 × 3."""
    net = Network(layers, x).convolution(64, 3, 2)
    for narrow, pooled in ((16, True), (16, False), (32, True), (32, False), (48, True),
                           (48, False), (64, False), (64, False)):  # fmt: skip
        net = (net.pool() if pooled else net).convolution(narrow)
        wide = [net.convolution(4 * narrow), net.convolution(4 * narrow, 3, padding=1)]
        net = Network(layers, layers.join(*(one.x for one in wide)), 8 * narrow, net.rng)
    return layers.mean(net.convolution(1000).x)


def mobilenet(layers: Layers, x: Any) -> Any:
    """MobileNet 1: thirteen times a convolution for each channel and one of 1 × 1."""
    net = Network(layers, x).convolution(32, 3, 2, padding=1)
    for channels, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                             *((512, 1),) * 5, (1024, 2), (1024, 1)):  # fmt: skip
        net = net.convolution(net.channels, 3, stride, padding=1, groups=net.channels)
        net = net.convolution(channels)
    return Network(layers, layers.mean(net.x), net.channels, net.rng).convolution(1000).x


NETWORKS: Final[tuple[Callable[[Layers, Any], Any], ...]] = (squeezenet, mobilenet)


class Anydml:
    """Our layers: a graph under construction, and its weights by the names of its inputs."""

    def __init__(self) -> None:
        self.graph = dml.GraphBuilder()
        self.weights: dict[str, Array] = {}

    def _weight(self, array: Array) -> Any:
        name = f"w{len(self.weights)}"
        self.weights[name] = array
        kind: Any = array.dtype.name.upper()
        return self.graph.input(name, dml.TensorDesc(kind, array.shape, flags="OWNED_BY_DML"))

    def convolution(
        self, x: Any, weights: Array, bias: Array, stride: int, padding: int, groups: int
    ) -> Any:
        return self.graph.convolution(
            x, self._weight(weights), self._weight(bias.reshape(1, -1, 1, 1)),
            strides=(stride,) * 2, start_padding=(padding,) * 2, end_padding=(padding,) * 2,
            group_count=groups, fused_activation=dml.ActivationRelu(),
        )  # fmt: skip

    def max_pooling(self, x: Any) -> Any:
        return self.graph.max_pooling(x, window_size=(3, 3), strides=(2, 2))

    def mean(self, x: Any) -> Any:
        return self.graph.reduce(x, function="AVERAGE", axes=(2, 3))

    def join(self, x: Any, y: Any) -> Any:
        return self.graph.join([x, y], axis=1)


class _PyTorch:
    """Steps on tensors by number; 0 is the input."""

    def __init__(self) -> None:
        self.steps: list[tuple[Callable[..., Any], tuple[int, ...]]] = []

    def _add(self, function: Callable[..., Any], *inputs: int) -> int:
        self.steps.append((function, inputs))
        return len(self.steps)

    def run(self, x: Any) -> Any:
        values = [x]
        for function, inputs in self.steps:
            values.append(function(*(values[i] for i in inputs)))
        return values[-1]

    def convolution(
        self, x: Any, weights: Array, bias: Array, stride: int, padding: int, groups: int
    ) -> Any:
        import torch

        w, b = torch.from_numpy(weights), torch.from_numpy(bias)
        return self._add(
            lambda t: torch.relu_(torch.conv2d(t, w, b, stride, padding, groups=groups)), x
        )

    def max_pooling(self, x: Any) -> Any:
        import torch

        return self._add(lambda t: torch.max_pool2d(t, 3, 2), x)

    def mean(self, x: Any) -> Any:
        return self._add(lambda t: t.mean((2, 3), keepdim=True), x)

    def join(self, x: Any, y: Any) -> Any:
        import torch

        return self._add(lambda *tensors: torch.cat(tensors, 1), x, y)


class Onnx:
    """Nodes on tensors by name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def _add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def _weight(self, array: Any) -> str:
        from onnx import numpy_helper

        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def convolution(
        self, x: Any, weights: Array, bias: Array, stride: int, padding: int, groups: int
    ) -> Any:
        operands = x, self._weight(weights), self._weight(bias)
        result = self._add(
            "Conv", *operands, strides=[stride] * 2, pads=[padding] * 4, group=groups,
        )  # fmt: skip
        return self._add("Relu", result)

    def max_pooling(self, x: Any) -> Any:
        return self._add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2])

    def mean(self, x: Any) -> Any:
        return self._add("GlobalAveragePool", x)

    def join(self, x: Any, y: Any) -> Any:
        return self._add("Concat", x, y, axis=1)


def session(
    nodes: Sequence[Any], inputs: Sequence[str], output: str, sizes: Sequence[int],
    weights: Sequence[Any], threads: int,
) -> Any:  # fmt: skip
    """A graph of ONNX nodes in ONNX Runtime; all inputs have the same sizes."""
    import onnxruntime
    from onnx import TensorProto, helper

    input_infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes) for name in inputs]
    output_infos = [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "graph", input_infos, output_infos, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


@dataclass(frozen=True)
class Close:
    """The gate: within 1e-4 of the largest element of the reference's result, or a bound."""

    result: Array
    bound: float | None = None

    def problem(self, results: tuple[Array, ...], strict: bool) -> str | None:
        """What is wrong with the results, or None."""
        (got,) = results
        bound = self.bound or 1e-4 * np.abs(self.result).max()
        right = got.shape == self.result.shape and (np.abs(got - self.result) <= bound).all()
        return None if right else "wrong values"


def contestants(
    network: Callable[[Layers, Any], Any], sizes: tuple[int, ...], threads: int
) -> tuple[list[Contestant], Close]:
    """Everybody who can run a network on one picture, and what comes out."""
    picture = np.random.default_rng(0).random(sizes, np.float32)
    layers = Anydml()
    expression = network(layers, layers.graph.input("x", dml.TensorDesc("FLOAT32", sizes)))
    desc = layers.graph.build(y=expression)
    compiled = dml.Device("cpu").compile_graph(desc).initialize(**layers.weights)
    reference = dml.Device("reference").compile_graph(desc).initialize(**layers.weights)

    def single(result: Any) -> tuple[Array, ...]:
        return (np.asarray(result),)

    found = [Contestant("anydml", "call", lambda: compiled(x=picture)["y"], single, strict=True)]
    if find_spec("onnxruntime") and find_spec("onnx"):
        session_of = dml.Device("onnxruntime").compile_graph(desc).initialize(**layers.weights)
        found.append(
            Contestant("anydml", "onnxruntime", lambda: session_of(x=picture)["y"], single)
        )
    if find_spec("jax"):
        on_xla = dml.Device("xla").compile_graph(desc).initialize(**layers.weights)
        found.append(Contestant("anydml", "xla", lambda: on_xla(x=picture)["y"], single))
    if find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
        steps, tensor = _PyTorch(), torch.from_numpy(picture)
        network(steps, 0)
        found.append(Contestant("PyTorch", "", lambda: steps.run(tensor), single))
    if find_spec("onnxruntime") and find_spec("onnx"):
        nodes = Onnx()
        output = network(nodes, "x")
        onnx = session(nodes.nodes, ["x"], output, sizes, nodes.weights, threads)
        found.append(
            Contestant("ONNX Runtime", "", lambda: onnx.run(None, {"x": picture})[0], single)
        )
    return found, Close(reference(x=picture)["y"])
