"""Networks with random weights, each written once, as nodes of ONNX.

ONNX Runtime runs the nodes as they are, this library what `anydml.read_onnx` makes of them, and
PyTorch the same functions where it has them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

import anydml as dml
from benchmarks.jobs import Array
from benchmarks.measure import Contestant

ZERO_POINT, SCALE = np.uint8(128), np.float32(0.02)
"""Zero point and scale of quantized tensors; filters have a scale of their own alone."""
FILTER_SCALE: Final = np.float32(0.005)


@dataclass
class Nodes:
    """A network under construction: its nodes, and its weights by name."""

    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, Array] = field(default_factory=dict)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(7))

    def normal(self, *shape: int, scale: float = 1) -> Array:
        """Random weights."""
        return np.float32(scale) * self.rng.standard_normal(shape, np.float32)

    def add(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; inputs are tensors by name, and weights."""
        from onnx import helper

        names = [x if isinstance(x, str) else f"w{len(self.weights) + i}"
                 for i, x in enumerate(inputs)]  # fmt: skip
        pairs = zip(names, inputs, strict=True)
        self.weights |= {name: np.asarray(x) for name, x in pairs if not isinstance(x, str)}
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, names, [name], **attributes))
        return name

    def convolution(
        self,
        x: str,
        inputs: int,
        outputs: int,
        size: int = 1,
        *,
        bias: bool = True,
        **attributes: Any,
    ) -> str:
        """Add a convolution with random weights."""
        inputs //= attributes.get("group", 1)
        weights = self.normal(outputs, inputs, size, size, scale=(2 / (inputs * size**2)) ** 0.5)
        biases = [self.normal(outputs, scale=0.1)] if bias else []
        return self.add("Conv", x, weights, *biases, **attributes)

    def model(self, sizes: dict[str, tuple[int, ...]]) -> Any:
        """The network as a model, from the sizes of its inputs."""
        from onnx import TensorProto, helper, numpy_helper

        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                  for name, shape in sizes.items()]  # fmt: skip
        output = helper.make_tensor_value_info(self.nodes[-1].output[0], TensorProto.FLOAT, None)
        weights = [numpy_helper.from_array(array, name) for name, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, "graph", inputs, [output], weights)
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def squeezenet(net: Nodes, x: str) -> None:
    """SqueezeNet 1.1: narrow layers of 1 × 1 between joined ones of 1 × 1 and 3 × 3."""

    def step(x: str, *sizes: int, **attributes: Any) -> str:
        return net.add("Relu", net.convolution(x, *sizes, **attributes))

    x, channels = step(x, 3, 64, 3, strides=[2, 2]), 64
    for narrow, pooled in ((16, True), (16, False), (32, True), (32, False), (48, True),
                           (48, False), (64, False), (64, False)):  # fmt: skip
        x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2]) if pooled else x
        x = step(x, channels, narrow)
        channels = 8 * narrow
        wide = step(x, narrow, 4 * narrow), step(x, narrow, 4 * narrow, 3, pads=[1] * 4)
        x = net.add("Concat", *wide, axis=1)
    net.add("GlobalAveragePool", step(x, channels, 1000))


def mobilenet(net: Nodes, x: str) -> None:
    """MobileNet 1: thirteen times a convolution for each channel and one of 1 × 1."""

    def step(x: str, *sizes: int, **attributes: Any) -> str:
        return net.add("Relu", net.convolution(x, *sizes, **attributes))

    x, inputs = step(x, 3, 32, 3, strides=[2, 2], pads=[1] * 4), 32
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2),
                            *((512, 1),) * 5, (1024, 2), (1024, 1)):  # fmt: skip
        x = step(x, inputs, inputs, 3, strides=[stride] * 2, pads=[1] * 4, group=inputs)
        x, inputs = step(x, inputs, outputs), outputs
    step(net.add("GlobalAveragePool", x), inputs, 1000)


def resnet18(net: Nodes, x: str) -> None:
    """ResNet-18 with batch normalization."""

    def step(x: str, *sizes: int, stride: int = 1) -> str:
        pads = [sizes[-1] // 2] * 4
        y = net.convolution(x, *sizes, bias=False, strides=[stride] * 2, pads=pads)
        return net.add("BatchNormalization", y, *np.abs(net.normal(4, sizes[1], scale=0.3)) + 0.5)

    x = net.add("Relu", step(x, 3, 64, 7, stride=2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    inputs = 64
    for outputs in (64, 128, 256, 512):
        for stride in (1 if outputs == 64 else 2, 1):
            y = net.add("Relu", step(x, inputs, outputs, 3, stride=stride))
            y = step(y, outputs, outputs, 3)
            same = inputs == outputs and stride == 1
            x = net.add("Add", y, x if same else step(x, inputs, outputs, 1, stride=stride))
            x, inputs = net.add("Relu", x), outputs
    net.add("GlobalAveragePool", x)


def transformer(net: Nodes, x: str) -> None:
    """Two layers of a transformer."""
    size, heads = 768, 12

    def dense(x: str, inputs: int, outputs: int) -> str:
        product = net.add("MatMul", x, net.normal(inputs, outputs, scale=inputs**-0.5))
        return net.add("Add", product, net.normal(outputs))

    def norm(x: str, y: str) -> str:
        weights = np.abs(net.normal(size)), net.normal(size)
        return net.add("LayerNormalization", net.add("Add", x, y), *weights)

    def gelu(x: str) -> str:
        one, half = np.float32(1), np.float32(0.5)
        part = net.add("Add", net.add("Erf", net.add("Div", x, np.float32(2**0.5))), one)
        return net.add("Mul", net.add("Mul", x, part), half)

    for _ in range(2):
        q, k, v = (
            net.add("Transpose", net.add("Reshape", dense(x, size, size),
                                         np.array([0, -1, heads, size // heads])), perm=perm)
            for perm in ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
        )  # fmt: skip
        scaled = net.add("Mul", net.add("MatMul", q, k), np.float32((size // heads) ** -0.5))
        y = net.add("MatMul", net.add("Softmax", scaled, axis=-1), v)
        y = net.add("Reshape", net.add("Transpose", y, perm=[0, 2, 1, 3]), np.array([0, -1, size]))
        x = norm(x, dense(y, size, size))
        x = norm(x, dense(gelu(dense(x, size, 4 * size)), 4 * size, size))


def lstm(net: Nodes, x: str) -> None:
    """Two layers of an LSTM of 256."""
    for inputs in (128, 256):
        shapes = (1, 1024, inputs), (1, 1024, 256), (1, 2048)
        weights = [net.normal(*shape, scale=0.05) for shape in shapes]
        x = net.add("Squeeze", net.add("LSTM", x, *weights, hidden_size=256), np.array([1]))


def quantized(net: Nodes, x: str) -> None:
    """Six convolutions of small integers."""
    x = net.add("QuantizeLinear", x, SCALE, ZERO_POINT)
    for _ in range(6):
        weights = np.clip(np.rint(net.normal(32, 32, 3, 3, scale=12)), -127, 127).astype(np.int8)
        own = weights, FILTER_SCALE, np.int8(0)
        x = net.add("QLinearConv", x, SCALE, ZERO_POINT, *own, SCALE, ZERO_POINT, pads=[1] * 4)
    net.add("DequantizeLinear", x, SCALE, ZERO_POINT)


CASES: Final[dict[str, tuple[Callable[[Nodes, str], None], tuple[int, ...]]]] = {
    "squeezenet": (squeezenet, (1, 3, 224, 224)),
    "mobilenet": (mobilenet, (1, 3, 224, 224)),
    "ResNet-18 with batch normalization": (resnet18, (1, 3, 224, 224)),
    "two transformer layers, 128 × 768": (transformer, (1, 128, 768)),
    "two LSTM layers of 256, 32 steps": (lstm, (32, 1, 128)),
    "six quantized convolutions": (quantized, (1, 32, 56, 56)),
}
"""Networks and the sizes of their inputs, by title."""


def _torch_functions(torch: Any) -> dict[str, Callable[..., Any]]:
    """PyTorch's functions for nodes, from tensors and attributes."""

    def convolution(
        x: Any, w: Any, b: Any, *, strides: Any = 1, pads: Any = (0,), group: int = 1
    ) -> Any:
        return torch.conv2d(x, w, b, strides, pads[0], groups=group)

    return {
        "Conv": convolution,
        "Relu": torch.relu_,
        "MaxPool": lambda x, *, kernel_shape, strides: torch.max_pool2d(x, kernel_shape, strides),
        "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
        "Concat": lambda *tensors, axis: torch.cat(tensors, axis),
    }


def _on_torch(net: Nodes, x: Array) -> Callable[[], Any] | None:
    """The network on PyTorch's tensors; None where a function is missing."""
    import torch
    from onnx import helper

    functions = _torch_functions(torch)
    if any(node.op_type not in functions for node in net.nodes):
        return None
    held = {name: torch.from_numpy(array) for name, array in net.weights.items()}
    steps = []
    for node in net.nodes:
        options = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        steps.append((partial(functions[node.op_type], **options), node.input, node.output[0]))

    def run() -> Any:
        values = {**held, "x": torch.from_numpy(x)}
        for function, inputs, output in steps:
            values[output] = function(*(values[name] for name in inputs))
        return values[output]

    return run


def session(model: Any, threads: int) -> Any:
    """A model in ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model.SerializeToString(), options)


@dataclass(frozen=True)
class Close:
    """The gate: within 1e-4 of the largest element of the reference's result, or a bound."""

    result: Array
    bound: float | None = None

    def problem(self, results: tuple[Array, ...], strict: bool) -> str | None:
        """Say what is wrong with the results; return None if nothing is."""
        (got,) = results
        bound = self.bound or 1e-4 * np.abs(self.result).max()
        right = got.shape == self.result.shape and (np.abs(got - self.result) <= bound).all()
        return None if right else "wrong values"


def contestants(title: str, threads: int, scale: int = 1) -> tuple[list[Contestant], Close]:
    """Everybody who can run a network, and what comes out.

    Parameters
    ----------
    title : str
        In `CASES`.
    threads : int
        Of the peers.
    scale : int, optional
        By which height and width, steps or rows are divided.
    """
    network, sizes = CASES[title]
    if scale > 1:
        changed = (0,) if network is lstm else (1,) if network is transformer else (2, 3)
        sizes = tuple(n // scale if i in changed else n for i, n in enumerate(sizes))
    x = np.random.default_rng(0).normal(size=sizes).astype(np.float32)
    net = Nodes()
    network(net, "x")
    model = net.model({"x": sizes})
    output = model.graph.output[0].name
    read = dml.read_onnx(model.SerializeToString())

    def single(result: Any) -> tuple[Array, ...]:
        return (np.asarray(result),)

    def call(device: str) -> Callable[[], Any]:
        compiled = read.compile(dml.Device(device))
        return lambda: compiled(x=x)[output]

    has_jax = find_spec("jax") and network in (squeezenet, mobilenet)  # others compile for minutes
    devices = ["cpu", *["onnxruntime"] * bool(find_spec("onnxruntime")), *["xla"] * bool(has_jax)]
    found = [Contestant("anydml", device, call(device), single) for device in devices]
    if find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
        if (run := _on_torch(net, x)) is not None:
            found.append(Contestant("PyTorch", "", run, single))
    if find_spec("onnxruntime"):
        onnx = session(model, threads)
        found.append(Contestant("ONNX Runtime", "", lambda: onnx.run(None, {"x": x})[0], single))
    # ONNX Runtime rounds to the next integer here and there, six times.
    return found, Close(call("reference")(), 6.5 * float(SCALE) if network is quantized else None)
