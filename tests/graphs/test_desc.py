"""`GraphDesc` and its parts: kinds of fields, names, JSON both ways."""

import copy
import pickle

import numpy as np
import pytest

import anydml as dml

T = dml.TensorDesc
F2 = T("FLOAT32", (2,))
RELU = dml.ActivationRelu(input_tensor=F2, output_tensor=F2)
GRAPH = dml.GraphDesc(
    [
        dml.OperatorNode(RELU, "relu"),
        dml.OperatorNode(RELU),
        dml.ConstantNode(b"\0\1\2\3" * 2, "c"),
    ],
    [dml.InputEdge(0, 0, 0, "x")],
    [dml.IntermediateEdge(2, 0, 1, 0, "link")],
    [dml.OutputEdge(0, 0, 0), dml.OutputEdge(1, 0, 1, "z")],
)


def test_names_of_inputs_and_outputs():
    assert [t.name for t in GRAPH.inputs] == ["x"]
    assert [t.name for t in GRAPH.outputs] == ["output0", "z"]
    assert dml.GraphDesc([], inputs=["a"]).inputs == (dml.GraphTensor("a"),)


def test_copies_are_equal():
    assert pickle.loads(pickle.dumps(GRAPH)) == GRAPH
    assert copy.deepcopy(GRAPH) == GRAPH
    assert len({GRAPH, copy.deepcopy(GRAPH)}) == 1
    with pytest.raises(AttributeError):
        GRAPH.nodes = ()


def test_json_of_every_part():
    text = GRAPH.to_json()
    assert text["Nodes"][2] == {"Type": "CONSTANT", "Data": "AAECAwABAgM=", "Name": "c"}
    assert text["InputEdges"] == [
        {"GraphInputIndex": 0, "ToNodeIndex": 0, "ToNodeInputIndex": 0, "Name": "x"}
    ]
    assert dml.GraphDesc.from_json(text) == GRAPH
    text["Nodes"][0]["Type"] = "DML_GRAPH_NODE_TYPE_OPERATOR"
    assert dml.GraphDesc.from_json(text) == GRAPH


def test_what_is_wrong_in_json_is_told_at_once():
    with pytest.raises(dml.ModelError) as caught:
        dml.GraphDesc.from_json({
            "Nodes": [{"Type": "CONSTANT", "Data": "?"}, {"Type": "NODE"}],
            "InputEdges": [{"GraphInputIndex": -1, "ToNodeIndex": 1.0}],
            "Outputs": [{}],
        })  # fmt: skip
    problems = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 6
    for part in ("base 64", "OPERATOR or CONSTANT, got 'NODE'", "GraphInputIndex", "ToNodeIndex",
                 "ToNodeInputIndex: expected a value, got none",
                 "Name: expected a value, got none"):  # fmt: skip
        assert part in problems


def test_what_is_wrong_in_json_is_named():
    with pytest.raises(dml.ModelError) as caught:
        dml.GraphDesc.from_json({
            "Nodes": [
                {"Type": "OPERATOR", "Name": "conv 1", "Operator": {"type": "RELUX"}},
                {"Type": "OPERATOR", "Name": 7, "Operator": RELU.to_json()},
                {"Type": "NODE", "Name": ""},
                3,
            ],
            "InputEdges": [{"Name": "x"}],
        })  # fmt: skip
    starts = ["[0] ('conv 1').", "[1].", "[2].", "[3]: ", *["[0] ('x')."] * 3]
    for problem, start in zip(caught.value.problems, starts, strict=True):
        assert problem.startswith(f"{list_of(start)}{start}")
    assert caught.value.problems[0].location == ("Nodes", 0, "Operator", "type")


def list_of(start):
    return "InputEdges" if "'x'" in start else "Nodes"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dml.OperatorNode(3), "desc: expected an operator descriptor, got 3"),
        (lambda: dml.OperatorNode(RELU, 3), "name: expected a string, got 3"),
        (lambda: dml.ConstantNode("text"), "data: expected bytes, a buffer or an array"),
        (lambda: dml.InputEdge(0, True, 0), "to_node_index: expected an integer, got True"),
        (lambda: dml.InputEdge(0, 1.5, 0), "to_node_index: expected an integer, got 1.5"),
        (lambda: dml.GraphTensor("x", 3), "desc: expected a TensorDesc, got 3"),
        (lambda: dml.GraphDesc(3), "nodes: expected a sequence, got 3"),
        (lambda: dml.GraphDesc([3]), r"nodes\[0\]: expected OperatorNode or ConstantNode, got 3"),
        (lambda: dml.GraphDesc([], [dml.OutputEdge(0, 0, 0)]),
         r"input_edges\[0\]: expected InputEdge, got OutputEdge"),
    ],
)  # fmt: skip
def test_other_kinds(make, message):
    with pytest.raises(dml.ArgumentTypeError, match=f"^{message}"):
        make()


def test_a_constant_copies_its_data():
    data = np.arange(6, dtype=np.int16).reshape(2, 3).T
    node = dml.ConstantNode(data)
    data[...] = 0
    assert np.frombuffer(node.data, np.int16).tolist() == [0, 3, 1, 4, 2, 5]
    assert dml.InputEdge(np.int64(1), 0, 0) == dml.InputEdge(1, 0, 0)
