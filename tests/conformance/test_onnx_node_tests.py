"""The node tests of the `onnx` package through the array functions, by a small adapter."""

import numpy as np
import pytest
from onnx_nodes import check, node_cases

import anydml as dml

pytest.importorskip("onnx")

OPERATORS = (
    "TopK", "ScatterElements", "Scatter", "ScatterND", "NonZero", "Split", "Gather",
    "GatherElements", "GatherND", "Concat",
)  # fmt: skip


def top_k(inputs, attributes, count):
    x, k = inputs if len(inputs) == 2 else (inputs[0], attributes["k"])
    return dml.top_k(
        x,
        int(np.asarray(k).item()),
        axis=attributes.get("axis", -1),
        largest=bool(attributes.get("largest", 1)),
        sorted=bool(attributes.get("sorted", 1)),
        index_dtype="int64",
    )


def scatter_elements(inputs, attributes, count):
    reduction = attributes.get("reduction", b"none").decode()
    return [dml.scatter_elements(*inputs, axis=attributes.get("axis", 0), reduction=reduction)]


def scatter_nd(inputs, attributes, count):
    return [dml.scatter_nd(*inputs, reduction=attributes.get("reduction", b"none").decode())]


def nonzero(inputs, attributes, count):
    return [dml.nonzero_coordinates(inputs[0]).T.astype(np.int64)]


def split(inputs, attributes, count):
    axis = attributes.get("axis", 0)
    size = inputs[0].shape[axis]
    if len(inputs) == 2:
        sizes = inputs[1]
    elif "split" in attributes:
        sizes = attributes["split"]
    else:
        # From opset 18 on, `num_outputs` equal slabs of which the last may be smaller.
        piece = -(-size // count)
        sizes = [min(piece, size - start) for start in range(0, piece * count, piece)] or [0]
    return list(dml.split(inputs[0], list(map(int, sizes)), axis=axis))


def gather(inputs, attributes, count):
    return [dml.gather(*inputs, axis=attributes.get("axis", 0))]


def gather_elements(inputs, attributes, count):
    return [dml.gather_elements(*inputs, axis=attributes.get("axis", 0))]


def gather_nd(inputs, attributes, count):
    return [dml.gather_nd(*inputs, batch_dims=attributes.get("batch_dims", 0))]


def concat(inputs, attributes, count):
    return [dml.join(inputs, axis=attributes["axis"])]


ADAPTERS = dict(
    zip(
        OPERATORS,
        (top_k, scatter_elements, scatter_elements, scatter_nd, nonzero, split, gather,
         gather_elements, gather_nd, concat),
        strict=True,
    )
)  # fmt: skip


@pytest.fixture(scope="module")
def cases():
    return {case.name: case for case in CASES}


CASES = node_cases(OPERATORS)


def test_there_are_cases_for_every_operator():
    found = {case.model.graph.node[0].op_type for case in CASES}
    assert found == set(OPERATORS)
    reductions = {case.name.rpartition("_")[2] for case in CASES} & {"add", "mul", "min", "max"}
    assert len(reductions) == 4
    assert len(CASES) >= 50


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_node(name, cases):
    case = cases[name]
    check(case, ADAPTERS[case.model.graph.node[0].op_type])
