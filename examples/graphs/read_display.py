"""A small network that reads the digits of a seven-segment display in noisy pictures.

Convolution with three filters, pooling, a matrix product, softmax. What the matrix contains comes
from clean pictures of the ten digits, through the first part of the same network.
"""

import numpy as np

import anydml as dml

HEIGHT, WIDTH = 13, 8
# Lit segments of each digit: top, upper left and right, middle, lower left and right, bottom.
DIGITS = ("1110111", "0010010", "1011101", "1011011", "0111010",
          "1101011", "1101111", "1010010", "1111111", "1111011")  # fmt: skip
SEGMENTS = (np.s_[1:2, 2:6], np.s_[2:6, 1:2], np.s_[2:6, 6:7], np.s_[6:7, 2:6],
            np.s_[7:11, 1:2], np.s_[7:11, 6:7], np.s_[11:12, 2:6])  # fmt: skip
# What finds horizontal lines, vertical lines, and anything bright.
FILTERS = np.array(
    [[[-1, -1, -1], [2, 2, 2], [-1, -1, -1]], [[-1, 2, -1]] * 3, [[1, 1, 1]] * 3], np.float32
).reshape(3, 1, 3, 3)


def picture(digit: int) -> np.ndarray:
    """A digit as it is displayed."""
    pixels = np.zeros((HEIGHT, WIDTH), np.float32)
    for place, lit in zip(SEGMENTS, DIGITS[digit], strict=True):
        pixels[place] = float(lit)
    return pixels


def features(graph: dml.GraphBuilder, pictures: dml.Expression) -> dml.Expression:
    """Rows of what the filters find."""
    found = graph.convolution(
        pictures, graph.constant(FILTERS), start_padding=(1, 1), end_padding=(1, 1),
        fused_activation=dml.ActivationRelu(),
    )  # fmt: skip
    pooled = graph.max_pooling(found, window_size=(2, 2), strides=(2, 2))
    count = pooled.sizes[0]
    return graph.reinterpret(pooled, sizes=(1, 1, count, np.prod(pooled.sizes[1:]).item()))


def compiled(batch: int, matrix: np.ndarray | None = None) -> dml.CompiledGraph:
    """The first part of the network; all of it, if there is a matrix."""
    graph = dml.GraphBuilder()
    rows = features(graph, graph.input("pictures", dml.TensorDesc("FLOAT32", (batch, 1, 13, 8))))
    if matrix is None:
        return dml.Device("cpu").compile_graph(graph.build(rows=rows))
    flags = {"flags": "OWNED_BY_DML"}
    weights = graph.input("weights", dml.TensorDesc("FLOAT32", (1, 1, *matrix.shape), **flags))
    scores = graph.gemm(rows, weights, trans_b="TRANSPOSE")
    desc = graph.build(chances=graph.activation_softmax1(scores, axes=(3,)))
    return dml.Device("cpu").compile_graph(desc).initialize(weights=matrix.reshape(1, 1, 10, -1))


clean = np.stack([picture(digit) for digit in range(10)]).reshape(10, 1, HEIGHT, WIDTH)
rows = compiled(10)(pictures=clean)["rows"].reshape(10, -1)
network = compiled(40, 4 * rows / np.linalg.norm(rows, axis=1, keepdims=True))

digits = np.arange(40) % 10
noise = np.random.default_rng(0).normal(0, 0.1, (40, 1, HEIGHT, WIDTH)).astype(np.float32)
chances = network(pictures=clean[digits] + noise)["chances"].reshape(40, 10)
read = chances.argmax(1)
print("display shows", "".join(map(str, digits)))
print("network reads", "".join(map(str, read)))
assert (read == digits).mean() >= 0.95
