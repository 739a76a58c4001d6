"""`GraphBuilder`: DirectMLX's functions from the operators' definitions."""

import inspect

import numpy as np
import pytest

import anydml as dml
from anydml.graphs.directmlx import functions, names_of
from anydml.ops._registry import OPERATORS

T = dml.TensorDesc
X = np.array([[-1, 3, 2], [4, 0, -2]], np.float32).reshape(1, 1, 2, 3)


def builder(*names):
    graph = dml.GraphBuilder()
    return graph, *(graph.input(name, T("FLOAT32", X.shape)) for name in names)


def run(desc, **arrays):
    results = [dml.Device(kind).compile_graph(desc)(**arrays) for kind in ("cpu", "reference")]
    for name, value in results[0].items():
        assert value.tobytes() == results[1][name].tobytes()
    return {name: value.tolist() for name, value in results[0].items()}


def only(desc):
    (node,) = desc.nodes
    return node.desc


def test_every_operator_has_its_function():
    for name, kind in OPERATORS.items():
        assert kind in functions()[name.lower()]
        if name[-1].isdigit():  # and the function of its family
            assert kind in functions()[name.rstrip("0123456789").lower()]
    assert {"add", "top_k1", "activation_relu"} <= set(dir(dml.GraphBuilder()))


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        (lambda g, x: g.add(x, x), "ELEMENT_WISE_ADD"),
        (lambda g, x: g.add(x, x, fused_activation=dml.ActivationRelu()), "ELEMENT_WISE_ADD1"),
        (lambda g, x: g.element_wise_add1(x, x), "ELEMENT_WISE_ADD1"),
        (lambda g, x: g.clip(x, min=0, max=1), "ELEMENT_WISE_CLIP"),
        (lambda g, x: g.element_wise_clip1(x, min=0, max=1), "ELEMENT_WISE_CLIP1"),
        (lambda g, x: g.top_k(x, axis=3, k=1).index, "TOP_K"),
        (lambda g, x: g.top_k(x, axis=3, k=1, axis_direction="INCREASING").value, "TOP_K1"),
        (lambda g, x: g.top_k1(x, axis=3, k=1).value, "TOP_K1"),
        (lambda g, x: g.slice(x, offsets=(0,) * 4, sizes=X.shape, strides=(1,) * 4), "SLICE"),
        (lambda g, x: g.slice(x, input_window_offsets=(0,) * 4, input_window_sizes=X.shape,
                              input_window_strides=(1,) * 4), "SLICE1"),
        (lambda g, x: g.activation_leaky_relu(x), "ACTIVATION_LEAKY_RELU"),
        (lambda g, x: g.activation_softmax(x), "ACTIVATION_SOFTMAX"),
        (lambda g, x: g.activation_softmax(x, axes=(2,)), "ACTIVATION_SOFTMAX1"),
        # Version 0 takes no more than two sizes above 1.
        (lambda g, x: g.activation_softmax(g.tile(x, repeats=(2, 3, 1, 1))), "ACTIVATION_SOFTMAX1"),
        (lambda g, x: g.non_zero_coordinates(x).count, "NONZERO_COORDINATES"),
        (lambda g, x: g.padding(input_tensor=x, padding_mode="REFLECTION", padding_value=0,
                                start_padding=(0,) * 4, end_padding=(0,) * 4), "PADDING"),
    ],
)  # fmt: skip
def test_the_operator_of_a_function(call, operator):
    graph, x = builder("x")
    desc = graph.build(y=call(graph, x))
    assert operator == desc.nodes[-1].desc.NAME
    assert dml.Device("cpu").check(desc) == []


def test_an_expression_is_shown_by_its_tensor():
    _, x = builder("x")
    assert repr(x) == "<Expression TensorDesc('FLOAT32', (1, 1, 2, 3))>"


def test_defaults_of_directmlx():
    graph, x = builder("x")
    assert only(graph.build(y=graph.activation_leaky_relu(x))).alpha == np.float32(0.01)
    assert only(graph.build(y=graph.activation_leaky_relu(x, alpha=2))).alpha == 2
    wide = graph.tile(x, repeats=(2, 3, 1, 1))
    assert graph.build(y=graph.activation_softmax(wide)).nodes[-1].desc.axes == (3,)
    clip = graph.element_wise_clip1(x, min=0, max=1)
    assert only(graph.build(y=clip)).min_max_data_type is dml.DataType.FLOAT32


def test_what_outputs_are():
    graph, x = builder("x")
    parts = graph.split(x, axis=3, output_axis_sizes=[1, 2])
    best = graph.top_k(x, axis=3, k=2, output_data_type="UINT64", axis_direction="DECREASING")
    fill = graph.fill_value_constant(output_sizes=(2, 2), value_data_type="INT32", value=3)
    desc = graph.build(
        a=parts[0], b=parts[1], value=best.value, index=best.index, fill=fill,
        cast=graph.cast(x, output_data_type="INT8"), joined=graph.join([x, x], axis=0),
    )  # fmt: skip
    assert [(t.desc.data_type.name, t.desc.sizes) for t in desc.outputs] == [
        ("FLOAT32", (1, 1, 2, 1)), ("FLOAT32", (1, 1, 2, 2)), ("FLOAT32", (1, 1, 2, 2)),
        ("UINT64", (1, 1, 2, 2)), ("INT32", (2, 2)), ("INT8", (1, 1, 2, 3)),
        ("FLOAT32", (2, 1, 2, 3)),
    ]  # fmt: skip
    assert run(desc, x=X)["index"] == [[[[1, 2], [0, 1]]]]


def test_outputs_with_another_dimension_count():
    graph, x = builder("x")
    corners = graph.input("corners", T("FLOAT32", (2, 4)))
    batches = graph.input("batches", T("UINT32", (2,)))
    window = {"window_sizes": (2, 2), "strides": (1, 1), "dilations": (1, 1),
              "start_padding": (0, 0), "end_padding": (0, 0)}  # fmt: skip
    columns = graph.unfold(x, **window)
    image = graph.fold(columns, output_sizes=X.shape, **window)
    sampled = {
        "reduction_function": "AVERAGE", "interpolation_mode": "LINEAR", "spatial_scale_x": 1,
        "spatial_scale_y": 1, "input_pixel_offset": 0.5, "output_pixel_offset": -0.5,
        "minimum_samples_per_output": 1, "maximum_samples_per_output": 1,
        "align_regions_to_corners": False,
    }  # fmt: skip
    regions = graph.roi_align(
        image, corners, batches, out_of_bounds_input_value=0, output_sizes=(2, 1, 3, 3), **sampled
    )
    gradients = graph.roi_align_grad(
        x, regions, corners, batches, output_gradient=True, output_roi_gradient=True, **sampled
    )
    assert columns.sizes == (1, 4, 2)
    assert [part.sizes for part in gradients] == [X.shape, (2, 4)]
    desc = graph.build(image=gradients.gradient, moves=gradients.roi_gradient)
    assert dml.Device("cpu").check(desc) == []


def test_reinterpret_makes_no_node():
    graph, x, y = builder("x", "y")
    transposed = graph.reinterpret(x, sizes=(1, 1, 3, 2), strides=(6, 6, 1, 3))
    as_row = graph.reinterpret(graph.identity(transposed), sizes=(6,))
    desc = graph.build(row=as_row, sum=graph.add(x, y))
    assert len(desc.nodes) == 2
    assert run(desc, x=X, y=X)["row"] == [-1, 4, 3, 0, 2, -2]
    bits = graph.reinterpret(x, "UINT32")
    assert (bits.sizes, bits.data_type) == (x.sizes, dml.DataType.UINT32)


def test_a_broadcast_input_is_bound_in_its_own_sizes():
    graph, x = builder("x")
    bias = graph.input("bias", T("FLOAT32", (1, 1, 1, 3)))
    wide = graph.reinterpret(bias, sizes=X.shape, strides=(0, 0, 0, 1))
    desc = graph.build(y=graph.add(x, wide))
    row = np.array([1, 2, 3], np.float32).reshape(1, 1, 1, 3)
    assert run(desc, x=X, bias=row)["y"] == (X + row).tolist()


def test_constants():
    graph, x = builder("x")
    doubled = graph.multiply(x, graph.constant(np.full(X.shape, 2, np.float32), name="two"))
    raw = graph.constant(np.full(6, 3, np.float32).tobytes(), T("FLOAT32", X.shape))
    desc = graph.build(y=graph.add(doubled, raw))
    assert run(desc, x=X)["y"] == (X * 2 + 3).tolist()


def test_only_what_is_needed_is_in_the_graph():
    graph, x, y = builder("x", "y")
    graph.add(x, y)
    desc = graph.build(z=graph.activation_relu(x))
    assert len(desc.nodes) == 1
    assert [t.name for t in desc.inputs] == ["x", "y"]
    compiled = dml.Device("cpu").compile_graph(desc)
    with pytest.raises(dml.BindingError, match=r"y: expected nothing \(no node reads it\)"):
        compiled(x=X, y=X)


def test_a_tensor_policy():
    def interleaved(data_type, sizes):
        _, c, h, w = sizes
        return T(data_type, sizes, (h * w * c, 1, w * c, c))

    graph = dml.GraphBuilder(interleaved)
    x = graph.input("x", T("FLOAT32", (1, 2, 1, 3)))
    inner = graph.activation_relu(x)
    assert inner.desc.strides == (6, 1, 6, 2)
    flat = graph.reinterpret(graph.identity(inner), sizes=(6,))
    array = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3)
    assert run(graph.build(y=flat), x=array)["y"] == [0, 3, 1, 4, 2, 5]


def test_a_descriptor_as_it_is():
    graph, x = builder("x")
    tensor = T("FLOAT32", X.shape)
    desc = dml.ActivationRelu(input_tensor=tensor, output_tensor=tensor)
    (y,) = graph.operator(desc, x, name="relu")
    assert graph.build(y=y).nodes == (dml.OperatorNode(desc, "relu"),)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g, x: g.activation_rellu(x), AttributeError, "did you mean 'activation_relu'"),
        (lambda g, x: g.relu(x), AttributeError, "did you mean 'activation_relu'"),
        (lambda g, x: g.top_k(x), TypeError, r"expected a value for axis, k, got"),
        (lambda g, x: g.activation_relu(X), TypeError, "input_tensor: expected an expression, got"),
        (lambda g, x: g.activation_relu(x, x), TypeError, "at most 1 expression by position"),
        (lambda g, x: g.activation_relu(x, slope=1), TypeError, "unexpected field 'slope'; "),
        (lambda g, x: g.add(x, a=x, b=x), TypeError, "ADD: a: expected one expression, got two"),
        (lambda g, x: g.add(x), TypeError, "expected a value for b_tensor"),
        (lambda g, x: g.join(x, axis=0), TypeError, "input_tensors: expected a list of expr"),
        (lambda g, x: g.gather(x, x, axis=7, index_dimensions=1), ValueError, "expected 0..3"),
        (
            lambda g, x: g.top_k(x, axis=3, k=9), ValueError,
            r"TOP_K\.K: expected at most 3 .* got 9",
        ),
        (lambda g, x: g.gather_nd(x, x, input_dimension_count=0, indices_dimension_count=0),
         ValueError, "InputDimensionCount: expected 1..4"),
        (lambda g, x: g.add(x, dml.GraphBuilder().input("z", x.desc)), ValueError,
         "b_tensor: expected an expression of this graph, got one of another"),
        (lambda g, x: g.build(), TypeError, "outputs: expected at least one expression"),
        (lambda g, x: g.build(y=x), ValueError, "y: expected an expression that an operator"),
    ],
)  # fmt: skip
def test_wrong_calls(call, error, message):
    graph, x = builder("x")
    with pytest.raises(error, match=message):
        call(graph, x)


@pytest.mark.parametrize(
    ("call", "operators"),
    [
        (lambda a, b: a + b, ["ELEMENT_WISE_ADD"]),
        (lambda a, b: a - b, ["ELEMENT_WISE_SUBTRACT"]),
        (lambda a, b: a * b, ["ELEMENT_WISE_MULTIPLY"]),
        (lambda a, b: a / b, ["ELEMENT_WISE_DIVIDE"]),
        (lambda a, b: a + 2, ["ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: 2 + a, ["ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: a - 2, ["ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: 2 - a, ["ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: a * np.float32(2), ["ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: np.float32(2) * a, ["ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: a / 2, ["ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: 2 / a, ["ELEMENT_WISE_RECIP", "ELEMENT_WISE_IDENTITY"]),
        (lambda a, b: -a, ["ELEMENT_WISE_IDENTITY"]),
    ],
)
def test_arithmetic_of_expressions(call, operators):
    graph, a = builder("a")
    b = graph.input("b", a.desc)
    one, other = np.abs(X) + np.float32(1), X + np.float32(50)
    desc = graph.build(y=call(a, b))
    assert [node.desc.NAME for node in desc.nodes] == operators
    inputs = {"a": one, "b": other}
    used = {desc.inputs[edge.graph_input_index].name for edge in desc.input_edges}
    result = dml.Device("cpu").compile_graph(desc)(**{name: inputs[name] for name in used})
    np.testing.assert_allclose(result["y"], call(one, other), rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, 1e39, 1e-45])
def test_a_quotient_by_a_number_is_that_of_floats(value):
    graph, a = builder("a")
    compiled = dml.Device("cpu").compile_graph(graph.build(y=a / value))
    with np.errstate(all="ignore"):
        expected = X * (np.float32(1) / np.float32(value)) + np.float32(0)
        result = compiled(a=X)["y"]
    np.testing.assert_array_equal(result, expected)


def test_arithmetic_with_other_objects():
    _, a = builder("a")
    for call in (lambda: a + X, lambda: X + a, lambda: a % 2, lambda: "x" * a, lambda: None / a):
        with pytest.raises(TypeError, match=r"operand|can.t multiply"):
            call()
    with pytest.raises(ValueError, match="got one of another"):
        a + dml.GraphBuilder().input("z", a.desc)


@pytest.mark.parametrize("name", functions())
def test_a_function_shows_its_arguments(name):
    function = getattr(dml.GraphBuilder, name)
    parameters = inspect.signature(function).parameters
    known = {
        spelling
        for kind in functions()[name]
        for info in kind.fields()
        for spelling in names_of(info)
    }
    assert {*parameters} - {"self", "name", "output_sizes", "output_data_type"} <= {
        *known, "output_axis_sizes",
    }  # fmt: skip
    assert function.__doc__.startswith("Add ")
    bound = inspect.signature(getattr(dml.GraphBuilder(), name))
    assert [*bound.parameters] == [*parameters][1:]


def test_signatures_of_functions():
    def of(name):
        return str(inspect.signature(getattr(dml.GraphBuilder(), name))).replace("'", "")

    assert of("activation_relu").startswith("(input: Expression, *, output_sizes")
    assert "k: int, axis_direction: " in of("top_k")
    assert "filter: Expression, bias: Expression | None = None, *, mode" in of("convolution")
    assert "alpha: float = 1.0" in of("gemm").replace("FLOAT", "float")
    with pytest.raises(AttributeError, match="did you mean 'activation_relu'"):
        dml.GraphBuilder.relu  # noqa: B018  # the attribute is looked up


def test_an_argument_that_is_none_is_left_out():
    graph = dml.GraphBuilder()
    x = graph.input("x", dml.TensorDesc("FLOAT32", (1, 1, 4, 4)))
    w = graph.input("w", dml.TensorDesc("FLOAT32", (1, 1, 3, 3)))
    assert graph.convolution(x, w, None, strides=None, group_count=None).sizes == (1, 1, 2, 2)


def test_an_operator_without_any_of_its_optional_outputs_is_refused():
    graph = dml.GraphBuilder()
    tensor = dml.TensorDesc("FLOAT32", (1, 1, 4, 4))
    x, w, r = (graph.input(name, tensor) for name in "xwr")
    message = "RNN: expected at least one of output_sequence, output_single, got none; pass"
    with pytest.raises(dml.ArgumentTypeError, match=message):
        graph.rnn(x, w, r, activation_descs=[dml.ActivationRelu()], direction="FORWARD")
