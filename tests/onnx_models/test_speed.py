"""Times of models that cost more here than in ONNX Runtime: CPU times in one process."""

import time
import tracemalloc

import numpy as np
import onnx.helper as oh
import onnxruntime
import pytest
from building import FLOAT, floats, model_of

import anydml as dml
from support.seconds import result_within

node = oh.make_node


def reshapes():
    """A model of 125 reshapes."""
    sizes = (1, 8, 16, 16), (1, 16, 8, 16)
    nodes = [node("Reshape", [f"t{i}", f"s{i % 2}"], [f"t{i + 1}"]) for i in range(125)]
    nodes.append(node("Relu", ["t125"], ["y"]))
    shapes = {f"s{i}": np.int64(sizes[1 - i]) for i in range(2)}
    return model_of(nodes, {"t0": sizes[0]}, {"y": FLOAT}, shapes), sizes[0]


def pairs():
    """A model of 80 pairs of quantization and its inverse."""
    nodes = []
    for i in range(80):
        nodes += [
            node("QuantizeLinear", [f"t{i}", "scale", "zero"], [f"q{i}"]),
            node("DequantizeLinear", [f"q{i}", "scale", "zero"], [f"t{i + 1}"]),
        ]
    nodes.append(node("Relu", ["t80"], ["y"]))
    shape = (1, 64, 56, 56)
    constants = {"scale": np.float32(0.01), "zero": np.uint8(128)}
    return model_of(nodes, {"t0": shape}, {"y": FLOAT}, constants), shape


def least_time(run):
    times = []
    for _ in range(40):
        start = time.process_time()
        for _ in range(5):
            run()
        times.append(time.process_time() - start)
    return min(times)


@pytest.mark.slow
@pytest.mark.parametrize("make", [reshapes, pairs])
def test_no_more_than_five_times_that_of_onnx_runtime(make):
    model, shape = make()
    x = floats(0, *shape)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    compiled = dml.read_onnx(model).compile(dml.Device("cpu"))
    np.testing.assert_array_equal(compiled(t0=x)["y"], session.run(None, {"t0": x})[0])
    ours, theirs = least_time(lambda: compiled(t0=x)), least_time(
        lambda: session.run(None, {"t0": x})
    )  # fmt: skip
    assert ours < 5 * theirs


def test_a_static_model_of_400_nodes_is_checked_in_two_seconds():
    nodes, weights, name = [], {}, "x"
    for i in range(100):
        weights |= {f"w{i}": floats(i, 8, 8, 3, 3), f"b{i}": floats(i, 8)}
        nodes += [
            node("Conv", [name, f"w{i}", f"b{i}"], [f"c{i}"], pads=[1, 1, 1, 1]),
            node("Relu", [f"c{i}"], [f"r{i}"]),
            node("Sigmoid", [f"c{i}"], [f"g{i}"]),
            node("Mul", [f"r{i}", f"g{i}"], [f"m{i}"]),
        ]
        name = f"m{i}"
    data = model_of(nodes, {"x": [1, 8, 32, 32]}, {name: FLOAT}, weights).SerializeToString()

    def check():
        read = dml.read_onnx(data)
        return read.check("5_0"), [item.place for item in read.nodes]

    assert result_within(2, check) == ([], ["graph"] * 400)


def chain():
    nodes = [node("Relu", [f"{i}"], [f"{i + 1}"]) for i in range(9000)]
    return model_of(nodes, {"0": [2]}, {"9000": FLOAT})


def nested(depth=4, calls=9):
    """Functions of a small file that make 6,561 nodes."""
    functions = []
    for i in range(depth):
        name, domain = (f"F{i - 1}", "f") if i else ("Relu", "")
        body = [node(name, [f"{j}"], [f"{j + 1}"], domain=domain) for j in range(calls)]
        imports = [oh.make_opsetid("", 17), oh.make_opsetid("f", 1)]
        functions.append(oh.make_function("f", f"F{i}", ["0"], [f"{calls}"], body, imports))
    call = node(f"F{depth - 1}", ["0"], ["y"], domain="f")
    return model_of([call], {"0": [2]}, {"y": FLOAT}, domains=["f"], functions=functions)


@pytest.mark.slow
@pytest.mark.parametrize("make", [chain, nested])
def test_thousands_of_equal_nodes_are_ready_in_3_seconds_and_64_mib(make):
    data = make().SerializeToString()

    def compiled():
        return dml.read_onnx(data, memory_limit=2**26).compile(dml.Device("cpu"))

    (result,) = result_within(3, compiled)(**{"0": np.float32([-1, 2])}).values()
    np.testing.assert_array_equal(result, [0, 2])
    tracemalloc.start()
    try:
        compiled()
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
