"""Two conversions in a row, which compilers like to join, round and saturate twice."""

import numpy as np
import pytest

import anydml as dml
from support import Flavour, contents

WIDTHS = {"FLOAT": (16, 32, 64), "INT": (8, 16, 32, 64), "UINT": (8, 16, 32, 64)}
TYPES = [f"{kind}{bits}" for kind, all_bits in WIDTHS.items() for bits in all_bits]
RESULTS = {*TYPES} - {"FLOAT64", "UINT64"}  # of MAX
COUNT = 1500


def values_of(kind):
    """Any numbers, and some next to the middle of two numbers of a narrower type."""
    rng = np.random.default_rng(0)
    x = contents(rng, (COUNT,), kind, Flavour.RANDOM)
    near = rng.integers(-9, 9, COUNT)
    middle = {
        "f8": lambda: (1 + 2.0**-11 + near * 2.0**-40) * rng.choice([1, 3, 1e3], COUNT),
        "i8": lambda: 2**60 + 2**36 + near,
        "u8": lambda: 2**60 + 2**36 + near,
        "i4": lambda: 2**30 + 2**6 + near,
        "u4": lambda: 2**30 + 2**6 + near,
        "f4": lambda: 3e9 + near * 1e9,
    }.get(np.dtype(kind).str[1:])
    if middle is not None:
        x[::2] = middle()[::2].astype(kind)
    return x


QUICK = [("cpu", name) for name in TYPES] + [("onnxruntime", name) for name in TYPES]
SLOW = [pytest.param("xla", name, marks=pytest.mark.slow) for name in TYPES if name != "INT64"]


@pytest.mark.parametrize(("engine", "source"), [*QUICK, ("xla", "INT64"), *SLOW])
def test_conversions_are_not_joined(engine, source, monkeypatch):
    if engine == "onnxruntime":
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
        from anydml.devices.backends import onnxruntime as backend

        monkeypatch.setattr(backend, "LEAST_ELEMENTS", 0)
    elif engine == "xla":
        pytest.importorskip("jax")
    values = values_of(dml.DataType[source].numpy)
    for shift in range(1, len(TYPES)):
        # In one graph each conversion has one reader: only then ONNX Runtime joins the two.
        pairs = zip(TYPES, TYPES[shift:] + TYPES[:shift], strict=True)
        desc = graph_of(source, [pair for pair in pairs if source != pair[0]])
        got, expected = (
            dml.Device(name).compile_graph(desc)(x=values) for name in (engine, "reference")
        )
        for name in expected:
            np.testing.assert_array_equal(got[name], expected[name], err_msg=name)


def graph_of(source, pairs):
    """A graph of two conversions for each pair of types."""
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc(source, (COUNT,)))
    outputs = {}
    for pair in pairs:
        if pair[1] in RESULTS:
            y = graph.identity(x)
            for name in pair:
                y = graph.cast(y, output_data_type=name)
            # Which ONNX Runtime and XLA compute, with the conversions before it.
            outputs["_".join(pair)] = graph.max(y, y)
    return graph.build(**outputs)
