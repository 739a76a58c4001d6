"""First calls that go wrong: the error says which argument, what is expected, and what to write."""

from dataclasses import fields

import click
import numpy as np
import pytest
from click.testing import CliRunner

import anydml as dml
from anydml.cli.command import commands
from anydml.ops._examples import examples_of
from anydml.ops._fields import FloatsKind, IntegersKind
from anydml.ops._registry import OPERATORS

X = np.ones((2, 3), np.float32)
TENSOR = dml.TensorDesc.from_array(X)
RELU = dml.ActivationRelu(input_tensor=TENSOR, output_tensor=TENSOR)
DEVICE = dml.Device("cpu")
OPERATOR = DEVICE.create_operator(RELU).compile()


def graph():
    """Return a builder, its input and an output."""
    builder = dml.GraphBuilder()
    x = builder.input("x", TENSOR)
    return builder, x, builder.activation_relu(x)


def compiled():
    builder, _, y = graph()
    return DEVICE.compile_graph(builder.build(y=y))


def built(call):
    builder, x, y = graph()
    return call(builder, x, y)


MESSAGES = {
    "build(y)": (
        lambda: built(lambda g, x, y: g.build(y)),
        "build(): expected arguments by name (NAME=), got 1 by position",
    ),
    "graph(x)": (
        lambda: compiled()(X), "CompiledGraph: expected arguments by name (x=), got 1 by position",
    ),
    "graph.dispatch(x, y)": (
        lambda: compiled().dispatch(X, X),
        "dispatch(): expected arguments by name (x=, y=), got 2 by position",
    ),
    "operator.dispatch(x)": (
        lambda: OPERATOR.dispatch(X),
        "dispatch(): expected arguments by name (InputTensor=, OutputTensor=), got 1 by position",
    ),
    "operator.initialize(x)": (
        lambda: OPERATOR.initialize(X),
        "initialize(): expected arguments by name (none here), got 1 by position",
    ),
    "graph.initialize(x)": (
        lambda: compiled().initialize(X),
        "initialize(): expected arguments by name (none here), got 1 by position",
    ),
    "GraphBuilder(device)": (
        lambda: dml.GraphBuilder(DEVICE),
        "tensor_policy: expected a function of a data type and sizes, "
        "got Device('cpu', feature_level='6_4')",
    ),
    "join of expressions": (
        lambda: built(lambda g, x, y: g.join(x, y, axis=1)),
        "JOIN: expected at most 1 expression by position (input_tensors), got 2; "
        "give a list of expressions",
    ),
    "reduce by position": (
        lambda: built(lambda g, x, y: g.reduce(x, "SUM")),
        "REDUCE: expected at most 1 expression by position (input_tensor), got 2; name the others",
    ),
    "one size": (
        lambda: dml.TensorDesc("FLOAT32", 2),
        "TensorDesc.Sizes: expected a sequence of at most 8 integers, got 2; did you mean [2]?",
    ),
    "one stride": (
        lambda: dml.TensorDesc("FLOAT32", [2], 1),
        "TensorDesc.Strides: expected a sequence of at most 8 integers, or None, got 1; "
        "did you mean [1]?",
    ),
    "one tensor": (
        lambda: dml.Join(input_tensors=TENSOR, output_tensor=TENSOR, axis=0),
        "JOIN.InputTensors: expected a sequence of TensorDesc, got TensorDesc('FLOAT32', (2, 3)); "
        "did you mean [TensorDesc('FLOAT32', (2, 3))]?",
    ),
    "an array": (
        lambda: dml.ActivationRelu(input_tensor=X, output_tensor=TENSOR),
        "ACTIVATION_RELU.InputTensor: expected a TensorDesc, "
        "got array([[1., 1., 1.], [1., 1., 1.]], dtype=float32); "
        "TensorDesc.from_array describes an array",
    ),
    "an operator's class by name": (
        lambda: dml.tolerance("Reduce"),
        "operator: expected the name of a DirectML operator, got 'Reduce'; did you mean 'REDUCE'?",
    ),
    "support of no operator": (
        lambda: dml.support("Reduce"),
        "operator: expected the name of a DirectML operator, got 'Reduce'; did you mean 'REDUCE'?",
    ),
    "SciPy's mirror": (
        lambda: dml.pad(X, 1, mode="mirror"),
        "mode: expected one of 'constant', 'edge', 'reflection', 'symmetric', 'wrap', 'reflect', "
        "got 'mirror'; use 'reflect'",
    ),
    "a longer name": (
        lambda: dml.scatter_elements(X, [[0]], X[:1, :1], reduction="multiply"),
        "reduction: expected one of None, 'none', 'add', 'mul', 'min', 'max', 'sum', 'prod', "
        "'amin', 'amax', 'mean', got 'multiply'; did you mean 'mul'?",
    ),
    **{
        f"JSON text of {kind}": (
            lambda read=read: read("{}"), "Expected an object, got '{}' (json.loads reads a text).",
        )
        for kind, read in {
            "an operator": dml.from_json, "a graph": dml.GraphDesc.from_json,
            "a tensor": dml.TensorDesc.from_json, "a node": dml.OperatorNode.from_json,
            "a constant": dml.ConstantNode.from_json, "an edge": dml.InputEdge.from_json,
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("case", MESSAGES)
def test_what_a_first_call_says(case):
    call, message = MESSAGES[case]
    with pytest.raises(dml.AnyDMLError) as caught:
        call()
    assert str(caught.value) == message


SEQUENCES = [
    (kind, info)
    for kind in dict.fromkeys(OPERATORS.values())
    for info in kind.fields()
    if isinstance(info.kind, IntegersKind | FloatsKind) or info.many
]


@pytest.mark.parametrize(
    ("kind", "info"), SEQUENCES, ids=lambda item: getattr(item, "NAME", getattr(item, "name", ""))
)
def test_one_member_in_place_of_a_sequence(kind, info):
    desc = next(examples_of(kind)).desc
    values = {item.name: getattr(desc, item.name) for item in fields(desc)}
    member = (values[info.attribute] or [0])[0]
    with pytest.raises(dml.InvalidDescriptorError) as caught:
        kind(**{**values, info.attribute: member})
    (violation,) = caught.value.violations
    assert violation.path == f"{kind.NAME}.{info.name}"
    assert violation.rule.startswith("a sequence of ")
    assert "; did you mean [" in str(violation)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, command in commands.commands.items()
        if not isinstance(command, click.Group)
        and all(item.nargs == 1 for item in command.params if isinstance(item, click.Argument))
    ],
)
def test_one_argument_too_many(name):
    command = commands.commands[name]
    places = [item for item in command.params if item.param_type_name == "argument"]
    options = ["-o", "-"] if name == "convert" else []
    done = CliRunner().invoke(commands, [name, *["a"] * len(places), "one more", *options])
    assert done.exit_code == 2
    assert "arguments: expected " in done.output
    assert done.output.endswith("got 'one more' in addition\n")


def test_a_node_says_which_axis_it_has(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    values = [helper.make_tensor_value_info(name, float32, [2, 3]) for name in "xyz"]
    node = helper.make_node("Concat", ["x", "y"], ["z"], "n", axis=5)
    model = helper.make_model(helper.make_graph([node], "g", values[:2], values[2:]))
    with pytest.raises(dml.ModelError, match=r"'n' \(Concat\): .*; got axis=5, 'x' \(2, 3\), 'y'"):
        dml.read_onnx(model.SerializeToString()).check()
