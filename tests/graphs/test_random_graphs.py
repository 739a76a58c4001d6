"""Random graphs give what their operators give one after the other."""

import copy
import pickle

import numpy as np
import pytest
from random_graphs import random_graph
from stepwise import run_stepwise

import anydml as dml

SEEDS = range(80)


def as_bytes(array):
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return np.concatenate([flat, np.zeros(-flat.size % 4, np.uint8)])


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_graph(seed, device):
    graph, arrays = random_graph(seed)
    target = dml.Device(device)
    assert target.check(graph) == []
    inputs = {name: as_bytes(array) for name, array in arrays.items()}
    expected = run_stepwise(graph, inputs)
    compiled = target.compile_graph(graph)
    owned = {
        t.name: arrays[t.name] for t in graph.inputs
        if t.desc.flags is dml.TensorFlags.OWNED_BY_DML and is_read(graph, t)
    }  # fmt: skip
    bound = {
        t.name: arrays[t.name] for t in graph.inputs if t.name not in owned and is_read(graph, t)
    }
    compiled.initialize(**owned)
    for one in (compiled, pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)):
        got = one(**bound)
        assert got.keys() == expected.keys()
        for tensor in graph.outputs:
            assert got[tensor.name].shape == tensor.desc.sizes
            count = got[tensor.name].nbytes  # what is behind that is padding
            assert (as_bytes(got[tensor.name])[:count] == expected[tensor.name][:count]).all()
    outputs = {t.name: np.full(t.desc.sizes, 7, t.desc.data_type.numpy) for t in graph.outputs}
    compiled.dispatch(**bound, **outputs)
    for name, array in outputs.items():
        assert array.tobytes() == got[name].tobytes()


def is_read(graph, tensor):
    index = graph.inputs.index(tensor)
    return any(edge.graph_input_index == index for edge in graph.input_edges)


@pytest.mark.parametrize("seed", SEEDS)
def test_json_both_ways(seed):
    graph, _ = random_graph(seed)
    assert dml.GraphDesc.from_json(graph.to_json()) == graph
    assert hash(dml.GraphDesc.from_json(graph.to_json())) == hash(graph)


def test_random_graphs_have_what_they_are_for():
    graphs = [random_graph(seed)[0] for seed in SEEDS]
    programs = [dml.Device("cpu").compile_graph(graph).program for graph in graphs]
    views = [i for p in programs for i in p.intermediates if i.buffer]
    assert any(0 in (view.strides or ()) for view in views)
    assert any(view.strides and 0 not in view.strides for view in views)
    assert any(isinstance(node, dml.ConstantNode) for g in graphs for node in g.nodes)
