"""Runs of FLOAT32 operations as native chains: the bits of NumPy's, in place, on threads."""

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from anydml.devices.backends import _blocks
from anydml.devices.backends._chains import chain_of
from anydml.devices.backends._computed import WORKING
from support import Flavour, contents

UNARY = ("abs", "negate", "sqrt", "floor", "ceil", "recip", "activation_relu")
BINARY = ("add", "subtract", "multiply", "divide", "max", "min", "difference_square", "mean")

# As bounds, where NumPy keeps the sign of a zero that equals one: 2.0 does not.
ZEROS = (
    [-0.0, 0.0] if np.signbit(np.clip(np.float32([-0.0]), np.float32(0), np.float32(1)))[0] else []
)


def random_chain(seed, count, sizes):
    """A graph of operations that chains have, on values that earlier ones made."""
    rng = np.random.default_rng(seed)
    graph = dml.GraphBuilder()
    values = [graph.input(name, dml.TensorDesc("FLOAT32", sizes)) for name in "xyz"]
    for _ in range(count):
        a, b = (values[i] for i in rng.integers(0, len(values), 2))
        kind = rng.integers(0, 4)
        if kind == 0:
            values.append(getattr(graph, UNARY[rng.integers(0, len(UNARY))])(a))
        elif kind == 1:
            low = rng.choice([*ZEROS, rng.normal()])
            high = rng.choice([*ZEROS[1:], rng.normal() + 1])
            values.append(graph.clip(a, min=float(low), max=float(high)))
        else:
            values.append(getattr(graph, BINARY[rng.integers(0, len(BINARY))])(a, b))
    outputs = {f"o{i}": values[j] for i, j in enumerate({len(values) - 1, 3 + count // 2})}
    return graph.build(**outputs)


def bits(x):
    """The bytes, with one NaN for all: of two operands that are NaN, NumPy's loops take either."""
    return np.where(np.isnan(x), np.float32("nan"), x).tobytes()


@pytest.mark.parametrize("seed", range(30))
def test_the_bits_of_numpy(seed):
    sizes = [(5,), (3, 1000), (2048,), (2, 3, 4097), (70_001,)][seed % 5]
    desc = random_chain(seed, 3 + seed, sizes)
    program = dml.Device("cpu").compile_graph(desc).program
    _, runs = _blocks.fuse(program)
    (run,) = runs.values()
    chain = chain_of(run)
    assert chain is not None
    step = _blocks._numpy_step(run, WORKING)
    for flavour in Flavour:
        arrays = {
            name: contents(np.random.default_rng((seed, i)), sizes, "f4", flavour)
            for i, name in enumerate("xyz")
        }
        inputs = [arrays[name] for name in run.inputs]
        got, expected = ([np.empty(sizes, "f4") for _ in run.outputs] for _ in range(2))
        assert native.chain((*inputs, *got), chain, 1 + seed % 3)
        step(inputs, expected, True, 1)
        for name, a, b in zip(run.outputs, got, expected, strict=True):
            assert bits(a) == bits(b), (name, flavour)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_result_over_an_operand(threads):
    tensor = dml.TensorDesc("FLOAT32", (100_003,))
    desc = dml.ElementWiseMultiply.with_outputs(a_tensor=tensor, b_tensor=tensor)
    compiled = dml.Device("cpu").create_operator(desc).compile()
    x, y = np.random.default_rng(0).random((2, 100_003), np.float32)
    expected = x * y
    with dml.num_threads(threads):
        compiled.dispatch(ATensor=x, BTensor=y, OutputTensor=x)
    assert (x == expected).all()


def test_other_layouts_are_numpy_s():
    desc = random_chain(7, 9, (300, 400))
    compiled = dml.Device("cpu").compile_graph(desc)
    arrays = {
        n: np.random.default_rng(i).random((400, 300), np.float32) for i, n in enumerate("xyz")
    }
    read = {slot.name for slot in compiled.program.inputs}
    bound = {name: array.T for name, array in arrays.items() if name in read}
    packed = compiled(**{name: array.copy() for name, array in bound.items()})
    for name, result in compiled(**bound).items():
        assert result.tobytes() == packed[name].tobytes()


@pytest.mark.parametrize("function", ["exp", "sign", "tan"])
def test_what_chains_do_not_have(function):
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (50_000,)))
    desc = graph.build(y=graph.add(getattr(graph, function)(x), x))
    _, runs = _blocks.fuse(dml.Device("cpu").compile_graph(desc).program)
    (run,) = runs.values()
    assert chain_of(run) is None


def test_the_chain_of_the_benchmark_is_native():
    from benchmarks.graphs import chain

    _, runs = _blocks.fuse(dml.Device("cpu").compile_graph(chain((50_000,))).program)
    (run,) = runs.values()
    assert chain_of(run) is not None
