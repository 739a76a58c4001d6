"""Networks with normalization, attention, recurrence and small integers, ours and in ONNX.

Each is written once, in terms of layers that are written twice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, Final, Protocol

import numpy as np

import anydml as dml
from benchmarks import networks
from benchmarks.jobs import Array
from benchmarks.measure import Contestant
from benchmarks.networks import Close, session

_RNG_SEED: Final = 11
ZERO_POINT, SCALE = 128, np.float32(0.02)
"""Of quantized tensors; filters have their own scale, and no zero point."""
FILTER_SCALE: Final = np.float32(0.005)


class Layers(Protocol):
    """Layers on tensors of one side; weights are NumPy arrays."""

    def normalized(self, x: Any, weights: Array, numbers: Array, stride: int, relu: bool) -> Any:
        """A convolution and a batch normalization: mean, variance, scale, bias."""

    def add(self, x: Any, y: Any, relu: bool = False) -> Any:
        """The sum."""

    def pool(self, x: Any) -> Any:
        """Maxima of windows of 3 × 3, padded by 1, at every second place."""

    def mean(self, x: Any) -> Any:
        """The mean of each channel."""

    def dense(self, x: Any, weights: Array, bias: Array, gelu: bool = False) -> Any:
        """The last axis times weights, and a bias."""

    def layer_norm(self, x: Any, scale: Array, bias: Array) -> Any:
        """Normalization of the last axis."""

    def attention(self, q: Any, k: Any, v: Any, heads: int) -> Any:
        """Attention of (1, 1, rows, heads * size)."""

    def lstm(self, x: Any, weights: Array, recurrence: Array, bias: Array) -> Any:
        """A forward layer on (1, steps, batch, size)."""

    def quantize(self, x: Any) -> Any:
        """Floats as UINT8."""

    def quantized(self, x: Any, weights: Array) -> Any:
        """A convolution of UINT8 with an INT8 filter of 3 × 3, padded by 1."""

    def dequantize(self, x: Any) -> Any:
        """UINT8 as floats."""


class Ours(networks.Anydml):
    """Layers of a graph under construction."""

    def _repeated(self, array: Array, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        return self.graph.reinterpret(self._weight(array), sizes=sizes, strides=strides)

    def normalized(self, x: Any, weights: Array, numbers: Array, stride: int, relu: bool) -> Any:
        pad = weights.shape[2] // 2
        y = self.graph.convolution(
            x, self._weight(weights), strides=(stride,) * 2, start_padding=(pad,) * 2,
            end_padding=(pad,) * 2,
        )  # fmt: skip
        four = [self._weight(row.reshape(1, -1, 1, 1)) for row in numbers]
        fused = dml.ActivationRelu() if relu else None
        return self.graph.batch_normalization(
            y, *four, spatial=True, epsilon=1e-5, fused_activation=fused
        )

    def add(self, x: Any, y: Any, relu: bool = False) -> Any:
        return self.graph.add(x, y, fused_activation=dml.ActivationRelu() if relu else None)

    def pool(self, x: Any) -> Any:
        return self.graph.max_pooling(
            x, window_size=(3, 3), strides=(2, 2), start_padding=(1, 1), end_padding=(1, 1)
        )

    def dense(self, x: Any, weights: Array, bias: Array, gelu: bool = False) -> Any:
        _, _, rows, size = x.sizes
        columns = weights.shape[1]
        w = self._repeated(weights, (1, 1, size, columns), (0, 0, columns, 1))
        c = self._repeated(bias, (1, 1, rows, columns), (0, 0, 0, 1))
        return self.graph.gemm(x, w, c, fused_activation=dml.ActivationGelu() if gelu else None)

    def layer_norm(self, x: Any, scale: Array, bias: Array) -> Any:
        both = (self._repeated(a, (1, 1, 1, a.size), (0, 0, 0, 1)) for a in (scale, bias))
        return self.graph.mean_variance_normalization1(
            x, *both, axes=(3,), normalize_variance=True, epsilon=1e-5
        )

    def attention(self, q: Any, k: Any, v: Any, heads: int) -> Any:
        _, _, rows, hidden = q.sizes
        size = hidden // heads
        q, k, v = (
            self.graph.reinterpret(
                t, sizes=(1, heads, rows, size), strides=(rows * hidden, size, hidden, 1)
            )
            for t in (q, k, v)
        )
        scores = self.graph.gemm(q, k, trans_b="TRANSPOSE", alpha=size**-0.5)
        y = self.graph.gemm(self.graph.activation_softmax1(scores, axes=(3,)), v)
        y = self.graph.reinterpret(
            y, sizes=(1, rows, heads, size), strides=(rows * hidden, size, rows * size, 1)
        )
        y = self.graph.identity(y)
        return self.graph.reinterpret(y, sizes=(1, 1, rows, hidden))

    def lstm(self, x: Any, weights: Array, recurrence: Array, bias: Array) -> Any:
        w, r, b = (self.graph.constant(a) for a in (weights, recurrence, bias))
        _, steps, batch, _ = x.sizes
        activations = dml.ActivationSigmoid(), dml.ActivationTanh(), dml.ActivationTanh()
        y = self.graph.lstm(
            x,
            self.graph.reinterpret(w, sizes=(1, *weights.shape)),
            self.graph.reinterpret(r, sizes=(1, *recurrence.shape)),
            self.graph.reinterpret(b, sizes=(1, 1, *bias.shape)),
            activation_descs=activations, direction="FORWARD", clip_threshold=0.0,
            use_clip_threshold=False, couple_input_forget=False, output_sequence=True,
        )  # fmt: skip
        return self.graph.reinterpret(y, sizes=(1, steps, batch, recurrence.shape[2]))

    def _parameter(self, value: Any, sizes: tuple[int, ...]) -> Any:
        array = np.asarray(value).reshape(1)
        return self._repeated(array, sizes, (0,) * len(sizes))

    def quantize(self, x: Any) -> Any:
        parameters = [self._parameter(a, x.sizes) for a in (SCALE, np.uint8(ZERO_POINT))]
        return self.graph.quantize_linear(x, *parameters, output_data_type="UINT8")

    def quantized(self, x: Any, weights: Array) -> Any:
        one = (1, 1, 1, 1)
        scale, zero = (self._parameter(a, one) for a in (SCALE, np.uint8(ZERO_POINT)))
        return self.graph.quantized_linear_convolution(
            x, scale, zero, self._weight(weights), self._parameter(FILTER_SCALE, one), None, None,
            scale, zero, start_padding=(1, 1), end_padding=(1, 1), output_data_type="UINT8",
        )  # fmt: skip

    def dequantize(self, x: Any) -> Any:
        parameters = [self._parameter(a, x.sizes) for a in (SCALE, np.uint8(ZERO_POINT))]
        return self.graph.dequantize_linear(x, *parameters, output_data_type="FLOAT32")


class Onnx(networks.Onnx):
    """Layers as nodes of ONNX, as a person writes them."""

    def normalized(self, x: Any, weights: Array, numbers: Array, stride: int, relu: bool) -> Any:
        pads = [weights.shape[2] // 2] * 4
        y = self._add("Conv", x, self._weight(weights), strides=[stride] * 2, pads=pads)
        mean, variance, scale, bias = map(self._weight, numbers)
        y = self._add("BatchNormalization", y, scale, bias, mean, variance)
        return self._add("Relu", y) if relu else y

    def add(self, x: Any, y: Any, relu: bool = False) -> Any:
        z = self._add("Add", x, y)
        return self._add("Relu", z) if relu else z

    def pool(self, x: Any) -> Any:
        return self._add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)

    def dense(self, x: Any, weights: Array, bias: Array, gelu: bool = False) -> Any:
        product = self._add("MatMul", x, self._weight(weights))
        y = self._add("Add", product, self._weight(bias))
        if not gelu:
            return y
        root, one, half = (self._weight(np.float32(n)) for n in (2**0.5, 1, 0.5))
        part = self._add("Add", self._add("Erf", self._add("Div", y, root)), one)
        return self._add("Mul", self._add("Mul", y, part), half)

    def layer_norm(self, x: Any, scale: Array, bias: Array) -> Any:
        return self._add("LayerNormalization", x, *map(self._weight, (scale, bias)))

    def attention(self, q: Any, k: Any, v: Any, heads: int) -> Any:
        shape = self._weight(np.array([0, -1, heads, 64]))
        q, v = (
            self._add("Transpose", self._add("Reshape", self._add("Squeeze", t, self._axis()),
                                             shape), perm=[0, 2, 1, 3])
            for t in (q, v)
        )  # fmt: skip
        k = self._add("Reshape", self._add("Squeeze", k, self._axis()), shape)
        k = self._add("Transpose", k, perm=[0, 2, 3, 1])
        scaled = self._add("Mul", self._add("MatMul", q, k), self._weight(np.float32(0.125)))
        y = self._add("MatMul", self._add("Softmax", scaled, axis=-1), v)
        y = self._add("Transpose", y, perm=[0, 2, 1, 3])
        return self._add("Reshape", y, self._weight(np.array([1, 1, -1, heads * 64])))

    def _axis(self) -> str:
        return self._weight(np.array([1]))

    def lstm(self, x: Any, weights: Array, recurrence: Array, bias: Array) -> Any:
        rows = self._add("Squeeze", x, self._weight(np.array([0])))
        operands = map(self._weight, (weights, recurrence, bias))
        y = self._add("LSTM", rows, *operands, hidden_size=recurrence.shape[2])
        y = self._add("Squeeze", y, self._axis())
        return self._add("Unsqueeze", y, self._weight(np.array([0])))

    def quantize(self, x: Any) -> Any:
        return self._add("QuantizeLinear", x, *map(self._weight, (SCALE, np.uint8(ZERO_POINT))))

    def quantized(self, x: Any, weights: Array) -> Any:
        scale, zero = map(self._weight, (SCALE, np.uint8(ZERO_POINT)))
        own = map(self._weight, (weights, FILTER_SCALE, np.int8(0)))
        return self._add("QLinearConv", x, scale, zero, *own, scale, zero, pads=[1] * 4)

    def dequantize(self, x: Any) -> Any:
        return self._add("DequantizeLinear", x, *map(self._weight, (SCALE, np.uint8(ZERO_POINT))))


def resnet18(layers: Layers, x: Any, normal: Callable[..., Array]) -> Any:
    """ResNet-18 with batch normalization."""

    def step(x: Any, inputs: int, outputs: int, size: int, stride: int, relu: bool = True) -> Any:
        weights = normal(outputs, inputs, size, size) * np.float32((2 / (inputs * size**2)) ** 0.5)
        numbers = np.abs(normal(4, outputs)) * np.float32(0.3) + np.float32(0.5)
        return layers.normalized(x, weights, numbers, stride, relu)

    x = layers.pool(step(x, 3, 64, 7, 2))
    inputs = 64
    for outputs in (64, 128, 256, 512):
        for stride in (1 if outputs == 64 else 2, 1):
            y = step(step(x, inputs, outputs, 3, stride), outputs, outputs, 3, 1, relu=False)
            same = inputs == outputs and stride == 1
            x = layers.add(y, x if same else step(x, inputs, outputs, 1, stride, False), relu=True)
            inputs = outputs
    return layers.mean(x)


def transformer(layers: Layers, x: Any, normal: Callable[..., Array]) -> Any:
    """Two layers of a transformer."""
    size = 768

    def dense(x: Any, inputs: int, outputs: int, gelu: bool = False) -> Any:
        weights = normal(inputs, outputs) * np.float32(inputs**-0.5)
        return layers.dense(x, weights, normal(outputs), gelu)

    def norm(x: Any) -> Any:
        return layers.layer_norm(x, np.abs(normal(size)), normal(size))

    for _ in range(2):
        q, k, v = (dense(x, size, size) for _ in range(3))
        x = norm(layers.add(x, dense(layers.attention(q, k, v, size // 64), size, size)))
        x = norm(layers.add(x, dense(dense(x, size, 4 * size, True), 4 * size, size)))
    return x


def lstm(layers: Layers, x: Any, normal: Callable[..., Array]) -> Any:
    """Two layers of an LSTM of 256."""
    inputs = 128
    for _ in range(2):
        weights, recurrence = normal(1, 1024, inputs), normal(1, 1024, 256)
        small = np.float32(0.05)
        x = layers.lstm(x, weights * small, recurrence * small, normal(1, 2048) * small)
        inputs = 256
    return x


def quantized(layers: Layers, x: Any, normal: Callable[..., Array]) -> Any:
    """Six convolutions of small integers."""
    x = layers.quantize(x)
    for _ in range(6):
        weights = np.clip(np.rint(12 * normal(32, 32, 3, 3)), -127, 127).astype(np.int8)
        x = layers.quantized(x, weights)
    return layers.dequantize(x)


CASES: Final = {
    "ResNet-18 with batch normalization": (resnet18, (1, 3, 224, 224)),
    "two transformer layers, 128 × 768": (transformer, (1, 1, 128, 768)),
    "two LSTM layers of 256, 32 steps": (lstm, (1, 32, 1, 128)),
    "six quantized convolutions": (quantized, (1, 32, 56, 56)),
}
"""Networks and the sizes of their inputs, by title."""


def contestants(name: str, threads: int, scale: int = 1) -> tuple[list[Contestant], Close]:
    """Everybody who can run a network, and what comes out.

    Parameters
    ----------
    name : str
        In `CASES`.
    threads : int
        Of ONNX Runtime.
    scale : int, optional
        By which height and width, or the number of steps, are divided.
    """
    network, sizes = CASES[name]
    if scale > 1:
        rows = sizes[1] // scale if network is lstm else sizes[1]
        sizes = (sizes[0], rows, sizes[2] if network is lstm else sizes[2] // scale, sizes[3])
        if network in (resnet18, quantized):
            sizes = (*sizes[:3], sizes[3] // scale)
    x = np.random.default_rng(0).normal(size=sizes).astype(np.float32)

    def build(layers: Any, first: Any) -> Any:
        rng = np.random.default_rng(_RNG_SEED)
        return network(layers, first, lambda *s: rng.standard_normal(s, np.float32))

    ours = Ours()
    desc = ours.graph.build(y=build(ours, ours.graph.input("x", dml.TensorDesc("FLOAT32", sizes))))
    compiled = {
        kind: dml.Device(kind).compile_graph(desc).initialize(**ours.weights)
        for kind in ("cpu", "reference", *(["onnxruntime"] if find_spec("onnxruntime") else []))
    }

    def single(result: Any) -> tuple[Array, ...]:
        return (np.asarray(result),)

    def call(kind: str) -> Any:
        return compiled[kind](x=x)["y"]

    found = [
        Contestant("anydml", kind, partial(call, kind), single)
        for kind in compiled
        if kind != "reference"
    ]
    expected = call("reference")
    if "onnxruntime" in compiled:
        nodes = Onnx()
        output = build(nodes, "x")
        onnx = session(nodes.nodes, ["x"], output, sizes, nodes.weights, threads)
        found.append(Contestant("ONNX Runtime", "", lambda: onnx.run(None, {"x": x})[0], single))
    # ONNX Runtime rounds to the next integer here and there, six times.
    return found, Close(expected, 6.5 * float(SCALE) if network is quantized else None)
