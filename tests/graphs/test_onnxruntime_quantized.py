"""Quantized operators as single nodes of ONNX Runtime: the same bits as on the CPU."""

import numpy as np
import pytest

import anydml as dml

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from anydml.devices.backends import onnxruntime as backend  # noqa: E402  # needs ONNX Runtime
from anydml.engines import _onnx_quantized as quantized  # noqa: E402  # after the skip

T = dml.TensorDesc
BYTES = ("INT8", "UINT8")


@pytest.fixture
def operators(monkeypatch):
    """The operators of the models that are made."""
    found = []
    make = backend._new_session

    def new_session(name, model, *rest):
        found.extend(node.op_type for node in model.proto.graph.node)
        return make(name, model, *rest)

    monkeypatch.setattr(backend, "LEAST_ELEMENTS", 0)
    monkeypatch.setattr(backend, "_new_session", new_session)
    return found


class Weights:
    """Owned tensors of a graph, chosen at random."""

    def __init__(self, graph, rng):
        self.graph, self.rng, self.arrays = graph, rng, {}

    def add(self, array):
        name = f"w{len(self.arrays)}"
        self.arrays[name] = array
        kind = array.dtype.name.upper()
        return self.graph.input(name, T(kind, array.shape, flags="OWNED_BY_DML"))

    def bytes(self, sizes, kind, wide=True):
        limits = np.iinfo(kind.lower())
        low, high = (limits.min, limits.max) if wide else (limits.min // 4, limits.max // 4)
        return self.add(self.rng.integers(low, high + 1, sizes).astype(kind.lower()))

    def scale(self, sizes, size):
        """Powers of two, short numbers, or any: sums often lie halfway between two results."""
        choice = self.rng.integers(3)
        numbers = size * self.rng.uniform(0.5, 2, sizes)
        if choice == 0:
            numbers = 2.0 ** np.rint(np.log2(numbers))
        elif choice == 1:
            numbers = np.rint(numbers * 1000) / 1000 + 0.001
        return self.add(numbers.astype(np.float32))

    def maybe(self, make, *arguments):
        return make(*arguments) if self.rng.random() < 0.7 else None


def with_channels(weights, x, rank):
    """A convolution of `x`, whose scales and zero points are for all channels or for each."""
    rng = weights.rng
    kind, filter_kind, output = rng.choice(BYTES, 3)
    kind = x.desc.data_type.name
    channels, groups = x.sizes[1], int(rng.choice([1, x.sizes[1]]))
    filters = channels if groups > 1 else int(rng.choice([3, 8]))
    window = tuple(int(n) for n in rng.integers(1, 4, rank - 2))
    one = (1,) * rank
    each = (1, filters, *one[2:]) if rng.random() < 0.5 else one
    total = channels // groups * np.prod(window) ** 0.5 * 80 * 80
    return weights.graph.quantized_linear_convolution(
        x, weights.scale(one, 0.02), weights.maybe(weights.bytes, one, kind),
        weights.bytes((filters, channels // groups, *window), filter_kind),
        weights.scale(each, 0.005), weights.maybe(weights.bytes, each, filter_kind, False),
        weights.maybe(
            lambda: weights.add(rng.integers(-9000, 9000, (1, filters, *one[2:])).astype(np.int32))
        ),
        weights.scale(one, 0.02 * 0.005 * total / 100), weights.maybe(weights.bytes, one, output),
        strides=tuple(int(n) for n in rng.integers(1, 3, rank - 2)),
        dilations=tuple(int(n) for n in rng.integers(1, 3, rank - 2)),
        start_padding=(2,) * (rank - 2), end_padding=(3,) * (rank - 2), group_count=groups,
        output_data_type=output,
    )  # fmt: skip


def product(weights, x):
    """A matrix product of `x`, scaled as a whole or by columns."""
    rng, kind, output = weights.rng, *weights.rng.choice(BYTES, 2)
    one, columns = (1,) * 4, int(rng.integers(1, 9))
    each = (1, 1, 1, columns) if rng.random() < 0.5 else one
    b = weights.bytes((*x.sizes[:2], x.sizes[3], columns), kind)
    return weights.graph.quantized_linear_matrix_multiply(
        x, weights.scale(one, 0.02), weights.maybe(weights.bytes, one, x.desc.data_type.name),
        b, weights.scale(each, 0.01), weights.maybe(weights.bytes, each, kind),
        weights.scale(one, 0.01 * x.sizes[3]), weights.maybe(weights.bytes, one, output),
        output_data_type=output,
    )  # fmt: skip


def bits_on(name, desc, weights, arrays):
    got = dml.Device(name).compile_graph(desc).initialize(**weights.arrays)(**arrays)
    return {key: array.tobytes() for key, array in got.items()}


def assert_same_bits(seed):
    rng = np.random.default_rng(seed)
    graph = dml.GraphBuilder()
    weights = Weights(graph, rng)
    kind = rng.choice(BYTES)
    is_product = rng.random() < 0.4
    rank = 4 if is_product else int(rng.choice([3, 4]))
    batches = (1, 1) if is_product else (2, int(rng.choice([1, 4])))
    sizes = (*batches, *(int(n) for n in rng.integers(4, 9, rank - 2)))
    x = graph.input("x", T(kind, sizes))
    limits = np.iinfo(kind.lower())
    arrays = {"x": rng.integers(limits.min, limits.max + 1, sizes).astype(kind.lower())}
    first = product(weights, x) if is_product else with_channels(weights, x, rank)
    last = product(weights, first) if is_product else with_channels(weights, first, rank)
    desc = graph.build(first=first, last=last)
    assert bits_on("onnxruntime", desc, weights, arrays) == bits_on("cpu", desc, weights, arrays)


@pytest.mark.parametrize("seeds", [range(12)])
def test_random_quantized_networks(operators, seeds):
    for seed in seeds:
        assert_same_bits(seed)
    assert {"QLinearConv", "QLinearMatMul"} <= {*operators}


@pytest.mark.slow
def test_many_random_quantized_networks(operators):
    for seed in range(12, 400):
        assert_same_bits(seed)
    assert operators.count("QLinearConv") > 200
    assert operators.count("QLinearMatMul") > 30


@pytest.mark.parametrize("seed", range(30))
def test_factors_are_equal_at_every_sum(seed):
    """Where one is found: all sums are compared here, and not only those around the steps."""
    rng = np.random.default_rng(seed)
    largest, count = 1 << 16, int(rng.choice([1, 3]))
    numbers = [10 ** rng.uniform(-2, 0, (n, 1)) for n in (1, count, 1)]
    if seed % 3 == 0:
        numbers = [2.0 ** np.rint(np.log2(n)) for n in numbers]
    x, w, scale = (n.astype(np.float32).astype(np.float64) for n in numbers)
    zero, bias = float(rng.integers(256)), rng.integers(-99, 99, (count, 1)).astype(np.float64)
    steps = [
        quantized._Step(*step)
        for step in (("Add", bias), ("Mul", x), ("Mul", w), ("Div", scale), ("Round", bias),
                     ("Add", np.full((1, 1), zero)))
    ]  # fmt: skip
    sums = quantized._sums_of_steps(steps, bias, zero, largest, 0)
    all_sums = np.arange(-largest, largest + 1)
    expected = np.clip(np.rint((all_sums + bias) * x * w / scale) + zero, 0, 255)
    ways = (quantized._rounded_once, np.float32), (quantized._truncated, np.float64)
    found = [quantized._equal_factors(sums, bias, way, zero, kind) for way, kind in ways]
    assert found[seed % 3 > 0] is not None  # powers of two are exact; others have no halves
    for (way, _), factors in zip(ways, found, strict=True):
        if factors is not None:
            got = way(all_sums + bias, factors.reshape(-1, 1), zero)
            np.testing.assert_array_equal(got, expected)


def test_factors_that_round_otherwise_are_not_taken():
    """A hundred thousand sums for each result: some are closer to a half than float32 tells."""
    ratio, bias = np.full((1, 1), 1.0 / 98_765), np.zeros((1, 1))
    steps = [quantized._Step("Mul", ratio), quantized._Step("Round", ratio)]
    sums = quantized._sums_of_steps(steps, bias, 0.0, 255**2 * 4096, 0)
    single, double = (
        quantized._equal_factors(sums, bias, way, 0.0, kind)
        for way, kind in ((quantized._rounded_once, np.float32), (quantized._truncated, np.float64))
    )
    assert single is None
    assert double is not None


SPECIAL = [np.nan, np.inf, -np.inf, 1e30, -1e30, 0.0, -0.0, 0.25, -0.25, 0.75, 1.25, 63.75, -64.25]


@pytest.mark.parametrize("kind", BYTES)
@pytest.mark.parametrize("size", [0.5, 0.3, -0.5, 1e-42, 1e38])
@pytest.mark.parametrize("special", [True, False])
def test_special_numbers_are_quantized(operators, kind, size, special):
    rng = np.random.default_rng(0)
    x = np.concatenate([(rng.integers(-600, 600, 1000) / 4), SPECIAL if special else []])
    x = x.astype(np.float32).reshape(1, -1)
    graph = dml.GraphBuilder()
    parameters = [
        graph.reinterpret(graph.constant(a.reshape(1)), sizes=x.shape, strides=(0, 0))
        for a in (np.float32(size), np.array(3, kind.lower()))
    ]
    whole = graph.quantize_linear(graph.input("x", T.from_array(x)), *parameters,
                                  output_data_type=kind)  # fmt: skip
    desc = graph.build(
        q=whole, y=graph.dequantize_linear(whole, *parameters, output_data_type="FLOAT32")
    )
    got, expected = (dml.Device(name).compile_graph(desc)(x=x) for name in ("onnxruntime", "cpu"))
    np.testing.assert_array_equal(got["q"], expected["q"])
    np.testing.assert_array_equal(got["y"], expected["y"])
    assert {"QuantizeLinear", "DequantizeLinear"} <= {*operators}


def test_operators_between_conversions_stay_operators_of_floats(operators):
    """ONNX Runtime would make a quantized one of the three, which rounds in another way."""
    rng = np.random.default_rng(0)
    graph = dml.GraphBuilder()
    weights = Weights(graph, rng)
    x = rng.integers(0, 256, (1, 8, 9, 9)).astype(np.uint8)
    w = weights.bytes((8, 8, 3, 3), "INT8")
    one = (np.float32(0.0137), np.uint8(128)), (np.float32(0.00291), np.int8(0))

    def parameters(pair, sizes):
        return [
            graph.reinterpret(weights.add(a.reshape(1)), sizes=sizes, strides=(0,) * 4)
            for a in pair
        ]

    entry = graph.input("x", T.from_array(x))
    floats = [
        graph.dequantize_linear(e, *parameters(pair, e.sizes), output_data_type="FLOAT32")
        for e, pair in zip((entry, w), one, strict=True)
    ]
    y = graph.convolution(*floats)
    last = graph.quantize_linear(y, *parameters(one[0], y.sizes), output_data_type="UINT8")
    desc = graph.build(y=y, last=last)
    both = [
        dml.Device(name).compile_graph(desc).initialize(**weights.arrays)(x=x)
        for name in ("onnxruntime", "cpu")
    ]
    steps = [both[0]["y"] / np.float32(0.0137), both[0]["last"].astype(np.float32) - 128]
    inside = np.abs(steps[1] + 0.5) < 127
    assert (np.abs(steps[0] - steps[1])[inside] <= 0.5).all()
    np.testing.assert_allclose(both[0]["y"], both[1]["y"], 1e-4, 1e-5)
