"""Every rule of the graph pages: one broken at a time, and all at once."""

import time

import numpy as np
import pytest

import anydml as dml

T = dml.TensorDesc
F4 = T("FLOAT32", (4,))
DEVICE = dml.Device("cpu")


def add(a=F4, b=F4, out=F4):
    return dml.ElementWiseAdd(a_tensor=a, b_tensor=b, output_tensor=out)


def relu(x=F4, out=None):
    return dml.ActivationRelu(input_tensor=x, output_tensor=out or x)


def node(desc, name=""):
    return dml.OperatorNode(desc, name)


def graph(nodes, *edges, **options):
    """Edges by their kinds."""
    kinds = (dml.InputEdge, dml.IntermediateEdge, dml.OutputEdge)
    return dml.GraphDesc(nodes, *([e for e in edges if type(e) is k] for k in kinds), **options)


In, Link, Out = dml.InputEdge, dml.IntermediateEdge, dml.OutputEdge

GOOD = graph([node(add(), "sum"), node(relu(), "top")],
             In(0, 0, 0, "x"), In(1, 0, 1, "w"), Link(0, 0, 1, 0), Out(1, 0, 0, "y"))  # fmt: skip


def replaced(**changes):
    fields = ("nodes", "input_edges", "intermediate_edges", "output_edges", "inputs", "outputs")
    return dml.GraphDesc(**{name: getattr(GOOD, name) for name in fields} | changes)


def owned(tensor):
    return T(tensor.data_type, tensor.sizes, flags="OWNED_BY_DML")


BROKEN = {
    "no node": (dml.GraphDesc([]), "Nodes: expected at least one node, got none"),
    "a rule of an operator": (
        replaced(nodes=[node(add(out=T("FLOAT32", (5,), total_tensor_size_in_bytes=20)), "sum"),
                        node(relu(), "top")]),
        "sum.ELEMENT_WISE_ADD.OutputTensor.Sizes[0]: expected 4 (the inputs imply {4}), got 5",
    ),
    "an unnamed node": (
        replaced(nodes=[node(add(out=T("FLOAT32", (5,))),), node(relu(), "top")]),
        "nodes[0].ELEMENT_WISE_ADD.OutputTensor.Sizes[0]: expected 4",
    ),
    "a cycle": (
        graph([node(add(), "a"), node(add(), "b"), node(relu(), "out")], In(0, 0, 0),
              Link(1, 0, 0, 1), Link(0, 0, 1, 0), Link(0, 0, 1, 1), Link(1, 0, 2, 0),
              Out(2, 0, 0)),
        "Nodes: expected a graph without cycles, got a -> b -> a",
    ),
    "a node that reads itself": (
        graph([node(add(), "a")], In(0, 0, 0), Link(0, 0, 0, 1), Out(0, 0, 0)),
        "Nodes: expected a graph without cycles, got a -> a",
    ),
    "a missing edge": (replaced(intermediate_edges=[]),
                       "top.InputTensor: expected a connection, got none"),
    "an output that no node writes": (replaced(outputs=["y", "z"]),
                                      "Outputs[1] (z): expected a connection, got none"),
    "a node whose results nobody reads": (
        replaced(nodes=[*GOOD.nodes, node(relu(), "idle")], input_edges=[*GOOD.input_edges,
                                                                         In(0, 2, 0)]),
        "idle: expected a connection of an output, got none",
    ),
    "a constant that nobody reads": (
        replaced(nodes=[*GOOD.nodes, dml.ConstantNode(b"1234", "c")]),
        "c: expected a connection of the constant, got none",
    ),
    "a node that is not there": (
        replaced(input_edges=[*GOOD.input_edges, In(0, 2, 0)]),
        "InputEdges[2].ToNodeIndex: expected 0..1 (2 nodes), got 2",
    ),
    "a negative index": (
        replaced(intermediate_edges=[Link(-1, 0, 1, 0)]),
        "IntermediateEdges[0].FromNodeIndex: expected 0..1 (2 nodes), got -1",
    ),
    "an input that the node does not have": (
        replaced(input_edges=[*GOOD.input_edges, In(0, 0, 2)]),
        "InputEdges[2].ToNodeInputIndex: expected 0..1 (2 inputs of sum), got 2",
    ),
    "an output that the node does not have": (
        replaced(output_edges=[Out(1, 1, 0)]),
        "OutputEdges[0].FromNodeOutputIndex: expected 0 (1 output of top), got 1",
    ),
    "an input that the graph does not have": (
        replaced(inputs=["x"]),
        "InputEdges[1].GraphInputIndex: expected 0 (1 input of the graph), got 1",
    ),
    "an output that the graph does not have": (
        replaced(output_edges=[Out(1, 0, 2)]),
        "OutputEdges[0].GraphOutputIndex: expected 0 (1 output of the graph), got 2",
    ),
    "an input of a node that is connected twice": (
        replaced(input_edges=[*GOOD.input_edges, In(0, 0, 1)]),
        "sum.BTensor: expected one connection, got several",
    ),
    "an output of the graph that is connected twice": (
        replaced(output_edges=[*GOOD.output_edges, Out(0, 0, 0)]),
        "Outputs[0] (y): expected one connection, got several",
    ),
    "an edge to a constant": (
        replaced(nodes=[*GOOD.nodes, dml.ConstantNode(b"1234", "c")], input_edges=[
            *GOOD.input_edges, In(0, 2, 0)]),
        "InputEdges[2].ToNodeIndex: expected an operator node, got the constant c",
    ),
    "an output of the graph that is a constant": (
        replaced(nodes=[*GOOD.nodes, dml.ConstantNode(b"1234", "c")], output_edges=[
            *GOOD.output_edges, Out(2, 0, 0)]),
        "OutputEdges[1].FromNodeIndex: expected an operator node, got the constant c",
    ),
    "sizes in bytes of an edge": (
        replaced(nodes=[GOOD.nodes[0], node(relu(T("FLOAT32", (5,))), "top")]),
        "top.InputTensor.TotalTensorSizeInBytes: expected 16 (sum.OutputTensor, which it is "
        "connected to), got 20",
    ),
    "sizes in bytes of one input": (
        replaced(nodes=[*GOOD.nodes, node(relu(T("FLOAT32", (5,))), "other")], input_edges=[
            *GOOD.input_edges, In(0, 2, 0)]),
        "other.InputTensor.TotalTensorSizeInBytes: expected 16 (sum.ATensor, which it is",
    ),
    "sizes in bytes of an output": (
        replaced(outputs=[dml.GraphTensor("y", T("INT8", (12,)))]),
        "y.TotalTensorSizeInBytes: expected 16 (top.OutputTensor, which it is connected to)",
    ),
    "weights of the wrong size": (
        graph([dml.ConstantNode(bytes(12), "c"), node(relu(), "top")], Link(0, 0, 1, 0),
              Out(1, 0, 0)),
        "c.Data: expected 16 bytes (TotalTensorSizeInBytes of top.InputTensor), got 12",
    ),
    "no data": (
        graph([dml.ConstantNode(b"", "c"), node(relu(), "top")], Link(0, 0, 1, 0), Out(1, 0, 0)),
        "c.Data: expected at least one byte, got 0",
    ),
    "an owned tensor from a node": (
        replaced(nodes=[GOOD.nodes[0], node(relu(owned(F4), F4), "top")]),
        "top.InputTensor: expected a connection to an input of the graph (it is OWNED_BY_DML), "
        "got one to sum",
    ),
    "an input that is owned here and not there": (
        replaced(nodes=[node(add(owned(F4), F4), "sum"), GOOD.nodes[1]],
                 input_edges=[In(0, 0, 0, "x"), In(0, 0, 1)]),
        "sum.BTensor.Flags: expected OWNED_BY_DML (as sum.ATensor; input 'x' of the graph), "
        "got NONE",
    ),
    "two inputs of one name": (
        replaced(inputs=["x", "x"]),
        "Inputs[1].Name: expected a unique name (Inputs[0] has the same), got 'x'",
    ),
    "an input and an output of one name": (
        replaced(outputs=["w"]),
        "Outputs[0].Name: expected a unique name (Inputs[1] has the same), got 'w'",
    ),
    "two nodes of one name": (
        replaced(nodes=[node(add(), "top"), GOOD.nodes[1]]),
        "Nodes[1].Name: expected a unique name (Nodes[0] has the same), got 'top'",
    ),
    "an output tensor that breaks a rule": (
        replaced(outputs=[dml.GraphTensor("y", T("FLOAT32", (2, 2), (1, 1),
                                                 total_tensor_size_in_bytes=16))]),
        "y.Strides: expected strides without overlapping elements (an output)",
    ),
    "a tensor that is left out": (
        graph([node(dml.ElementWiseClip(input_tensor=F4, output_tensor=F4, min=0, max=1), "c")],
              In(0, 0, 0), In(1, 0, 1), Out(0, 0, 0)),
        "InputEdges[1].ToNodeInputIndex: expected 0 (1 input of c), got 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_rule(what):
    broken, message = BROKEN[what]
    texts = [str(found) for found in DEVICE.check(broken)]
    assert any(text.startswith(message) for text in texts), texts
    assert DEVICE.minimum_feature_level(broken) is None
    with pytest.raises(dml.InvalidDescriptorError) as caught:
        DEVICE.compile_graph(broken)
    assert caught.value.violations == tuple(DEVICE.check(broken))


def test_a_good_graph():
    assert DEVICE.check(GOOD) == []
    compiled = DEVICE.compile_graph(GOOD)
    x = np.array([1, -2, 3, -4], np.float32)
    assert compiled(x=x, w=x)["y"].tolist() == [2, 0, 6, 0]


def test_all_violations_at_once():
    broken = replaced(
        nodes=[node(add(out=T("FLOAT32", (5,))), "sum"), node(relu(), "sum")],
        input_edges=[In(0, 0, 0, "x"), In(9, 9, 9)],
    )
    texts = [str(found) for found in DEVICE.check(broken)]
    assert len(texts) == 6
    paths = [text.partition(":")[0] for text in texts]
    assert paths == [
        "Nodes[1].Name", "sum.ELEMENT_WISE_ADD.OutputTensor.Sizes[0]",
        "InputEdges[1].GraphInputIndex", "InputEdges[1].ToNodeIndex",
        "sum.InputTensor.TotalTensorSizeInBytes", "sum.BTensor",
    ]  # fmt: skip


def test_feature_levels():
    assert dml.Device("cpu", feature_level="1_0").check(GOOD)[0].path == "FeatureLevel"
    four = T("FLOAT32", (1, 1, 1, 4))
    low = graph([node(relu(four))], In(0, 0, 0), Out(0, 0, 0))
    assert DEVICE.minimum_feature_level(low).suffix == "2_0"
    ints = T("INT64", (1, 1, 1, 4))
    high = graph([node(add(ints, ints, ints))], In(0, 0, 0), In(0, 0, 1), Out(0, 0, 0))
    level = DEVICE.minimum_feature_level(high)
    assert level == DEVICE.minimum_feature_level(high.nodes[0].desc)
    constant = graph([dml.ConstantNode(bytes(16), "c"), node(relu(four))], Link(0, 0, 1, 0),
                     Out(1, 0, 0))  # fmt: skip
    assert DEVICE.minimum_feature_level(constant).suffix == "6_2"
    below = dml.Device("cpu", feature_level="6_1").check(constant)
    assert [str(found) for found in below] == [
        "c.FeatureLevel: expected 6_2 or above (the level that introduced constant nodes), got 6_1"
    ]


def test_an_operator_that_a_device_lacks(monkeypatch):
    from anydml.devices.backends import cpu

    known = set(cpu.native.kernels()) - {"identity"}
    monkeypatch.setattr(
        cpu, "native", type("Lacking", (), {"kernels": staticmethod(lambda: known)})
    )
    desc = dml.ElementWiseIdentity(input_tensor=F4, output_tensor=F4)
    lacking = graph([node(desc, "copy")], In(0, 0, 0), Out(0, 0, 0))
    with pytest.raises(dml.MissingKernelError, match=r"^copy has no CPU kernel"):
        DEVICE.compile_graph(lacking)


def test_no_graph():
    with pytest.raises(dml.ArgumentTypeError, match="desc: expected a GraphDesc, got 3"):
        DEVICE.compile_graph(3)


def chain(length):
    nodes = [node(relu())] * length
    links = [Link(i, 0, i + 1, 0) for i in range(length - 1)]
    return graph(nodes, In(0, 0, 0), *links, Out(length - 1, 0, 0))


def test_a_deep_chain_takes_time_in_proportion():
    def seconds(length):
        deep = chain(length)
        begin = time.process_time()
        assert DEVICE.check(deep) == []
        return time.process_time() - begin

    short_time = min(seconds(2_000) for _ in range(3))
    assert seconds(40_000) < 80 * short_time
    assert DEVICE.compile_graph(chain(3_000))(input0=np.ones(4, np.float32))["output0"].sum() == 4


def test_a_long_cycle_is_shown_in_short():
    length = 5_000
    links = [Link(i, 0, (i + 1) % length, 0) for i in range(length)]
    found = DEVICE.check(graph([node(relu())] * length, *links, Out(0, 0, 0)))
    (text,) = [str(v) for v in found]
    assert text.startswith("Nodes: expected a graph without cycles, got nodes[")
    assert " more -> " in text
    assert len(text) < 200


def test_many_bad_edges():
    edges = [Link(7, 0, i, 0) for i in range(100_000)]
    found = DEVICE.check(graph([node(relu(), "r")], *edges, Out(0, 0, 0)))
    assert len(found) == 1000


def test_an_input_without_edges_between_others():
    nodes = [node(relu(), "a"), node(relu(), "c")]
    found = graph(nodes, In(0, 0, 0), In(2, 1, 0), Out(0, 0, 0), Out(1, 0, 1))
    assert len(found.inputs) == 3
    assert DEVICE.check(found) == []
    x = np.array([-1, 0, 1, 2], np.float32)
    results = DEVICE.compile_graph(found)(input0=x, input2=-x)
    assert results["output1"].tolist() == [1, 0, 0, 0]


def test_the_counts_of_inputs_and_outputs():
    read = graph([node(relu(), "a")], In(0, 0, 0), Out(0, 0, 0)).to_json()
    del read["Inputs"], read["Outputs"]
    more = dml.GraphDesc.from_json(read | {"InputCount": 3, "OutputCount": 2})
    assert [len(more.inputs), len(more.outputs)] == [3, 2]
    (found,) = DEVICE.check(more)
    assert str(found) == "Outputs[1] (output1): expected a connection, got none"
    (found, _) = DEVICE.check(dml.GraphDesc.from_json(read | {"InputCount": 0}))
    assert found.path == "InputEdges[0].GraphInputIndex"
    for wrong in ({"InputCount": 2**32 - 1}, {"Outputs": [{"Name": "y"}], "OutputCount": 2}):
        with pytest.raises(dml.ModelError, match="Count"):
            dml.GraphDesc.from_json(read | wrong)


def test_an_index_far_beyond():
    far = graph([node(relu(), "r")], In(2**32 - 1, 0, 0), Out(0, 0, 2**32 - 1))
    assert len(far.inputs) == len(far.outputs) == 1
    assert len(DEVICE.check(far)) == 5
