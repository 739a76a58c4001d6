"""Valid models of many operators, and mutations that most of them do not survive."""

import random

import numpy as np
import onnx
import onnx.helper as oh
from building import bytes_of, floats
from onnx import AttributeProto, numpy_helper

INTEGERS = (-(2**31), -9, -2, -1, 0, 1, 2, 3, 5, 7, 2**31, 2**62)
TYPES = (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 21)
OPSETS = (-1, 0, *range(1, 30), 99, 2**40)
MOST_BYTES = 20_000
INSIDE = 0.6
"""How often a node of a body is mutated, of a model that has some."""

PLAIN = {onnx.TensorProto.DataType.Value(name) for name in (
    "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "BOOL", "FLOAT16", "DOUBLE",
)}  # fmt: skip

SCALE, ZERO = np.float32(0.1), np.uint8(128)
CONTRIB = {
    "QLinearSigmoid": (bytes_of(0, 2, 4), SCALE, ZERO, SCALE, ZERO),
    "QLinearLeakyRelu": (bytes_of(0, 2, 4), SCALE, ZERO, SCALE, ZERO),
    "QLinearSoftmax": (bytes_of(0, 2, 4), SCALE, ZERO, SCALE, ZERO, {"opset": 13}),
    "QLinearConcat": (SCALE, ZERO, bytes_of(0, 2, 4), SCALE, ZERO, bytes_of(1, 2, 4), SCALE, ZERO,
                      {"axis": 1}),
    "QLinearAdd": (bytes_of(0, 2, 4), SCALE, ZERO, bytes_of(1, 2, 4), SCALE, ZERO, SCALE, ZERO),
    "QLinearMul": (bytes_of(0, 2, 4), SCALE, ZERO, bytes_of(1, 2, 4), SCALE, ZERO, SCALE, ZERO),
    "QLinearAveragePool": (bytes_of(0, 1, 2, 4, 4), SCALE, ZERO, SCALE, ZERO,
                           {"kernel_shape": [2, 2]}),
    "QGemm": (bytes_of(0, 2, 4), SCALE, ZERO, bytes_of(1, 4, 3), SCALE, ZERO,
              np.zeros(3, np.int32), SCALE, ZERO),
    "MatMulIntegerToFloat": (bytes_of(0, 2, 4), bytes_of(1, 4, 3), SCALE, SCALE, ZERO, ZERO,
                             floats(2, 3)),
    "DynamicQuantizeMatMul": (floats(0, 2, 4), bytes_of(1, 4, 3), SCALE, ZERO, floats(2, 3)),
    "BiasGelu": (floats(0, 2, 4), floats(1, 4)),
    "FastGelu": (floats(0, 2, 4), floats(1, 4)),
    "FusedConv": (floats(0, 1, 1, 4, 4), floats(1, 1, 1, 3, 3), floats(2, 1),
                  {"activation": "Relu"}),
    "SkipLayerNormalization": (floats(0, 1, 2, 4), floats(1, 1, 2, 4), floats(2, 4), floats(3, 4),
                               floats(4, 4)),
    "MultiHeadAttention": (floats(0, 1, 2, 8), floats(1, 1, 2, 8), floats(2, 1, 2, 8),
                           floats(3, 24), {"num_heads": 2}),
    "Attention": (floats(0, 1, 2, 8), floats(1, 8, 24), floats(2, 24), {"num_heads": 2}),
    "GroupQueryAttention": (floats(0, 1, 1, 16), floats(1, 1, 1, 8), floats(2, 1, 1, 8),
                            floats(3, 1, 1, 4, 8), floats(4, 1, 1, 4, 8), np.int32([3]),
                            np.int32([4]), {"num_heads": 2, "kv_num_heads": 1}),
    "MatMulNBits": (floats(0, 2, 32), bytes_of(1, 3, 1, 16), floats(2, 3), bytes_of(3, 3),
                    {"K": 32, "N": 3, "bits": 4, "block_size": 32}),
    "RotaryEmbedding": (floats(0, 1, 2, 8), np.zeros((1, 2), np.int64), floats(1, 4, 4),
                        floats(2, 4, 4)),
}  # fmt: skip
"""Inputs of operators of com.microsoft, and their attributes."""


def contrib_models():
    """A model of each operator, whose first input is not constant."""
    for operator, (*parts,) in CONTRIB.items():
        attributes = parts.pop() if isinstance(parts[-1], dict) else {}
        arrays = {f"x{i}": np.asarray(part) for i, part in enumerate(parts)}
        first = {name: array for name, array in arrays.items() if name == "x0"}
        graph = oh.make_graph(
            [oh.make_node(operator, [*arrays], ["y"], domain="com.microsoft", **attributes)],
            "graph",
            [oh.make_tensor_value_info(name, oh.np_dtype_to_tensor_dtype(a.dtype), list(a.shape))
             for name, a in first.items()],
            [onnx.ValueInfoProto(name="y")],
            [numpy_helper.from_array(a, name) for name, a in arrays.items() if name not in first],
        )  # fmt: skip
        opsets = [oh.make_opsetid("", 17), oh.make_opsetid("com.microsoft", 1)]
        yield oh.make_model(graph, opset_imports=opsets, ir_version=8)


def models():
    """The node tests of `onnx`, models of com.microsoft's operators, and some with bodies."""
    from onnx.backend.test.case.node import collect_testcases
    from test_control_flow import MODELS

    found = [case.model for case in collect_testcases(None)]
    few = [model for model in found if model.ByteSize() < MOST_BYTES]
    bodies = [model for model, _ in MODELS.values()]
    bodies += [model for model in few if any(map(inner_nodes, model.graph.node))]
    return few, list(contrib_models()), bodies


def inner_nodes(node):
    """The nodes of the bodies of a node, and of theirs."""
    graphs = (attribute.g for attribute in node.attribute if attribute.HasField("g"))
    own = [inner for graph in graphs for inner in graph.node]
    return [*own, *(item for inner in own for item in inner_nodes(inner))]


def is_endless(model):
    """Whether a Loop has no trip count, or an attribute may be a very large one."""
    nodes = [*model.graph.node, *(node for item in model.functions for node in item.node)]
    nodes += [inner for node in nodes for inner in inner_nodes(node)]
    loops = [node for node in nodes if node.op_type == "Loop"]
    numbers = [item.i for node in nodes for item in node.attribute]
    return bool(loops) and (max(numbers) > 10**6 or not all(any(x.input[:1]) for x in loops))


def mutated(model, choose):
    """A copy with one to three mutations; `choose` is a `random.Random`."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _ in range(choose.choice((1, 1, 2, 3))):
        mutate = choose.choice(MUTATIONS)
        if mutate in (change_version, change_type, change_size, make_constant):
            mutate(copy, choose)
        elif copy.graph.node:
            inner = [item for node in copy.graph.node for item in inner_nodes(node)]
            nodes = inner if inner and choose.random() < INSIDE else [*copy.graph.node]
            mutate(choose.choice(nodes), choose)
    return copy


def change_attribute(node, choose):
    if not node.attribute:
        return
    attribute = choose.choice(list(node.attribute))
    if attribute.type == AttributeProto.INT:
        attribute.i = choose.choice(INTEGERS)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = choose.choice((0, -1, float("nan"), float("inf"), 1e30))
    elif attribute.type == AttributeProto.STRING:
        attribute.s = choose.choice((b"", b"x", b"\xff", b"VALID", b"SAME_UPPER", b"bidirectional"))
    elif attribute.type == AttributeProto.STRINGS and attribute.strings:
        attribute.strings[choose.randrange(len(attribute.strings))] = b"Foo"
    elif attribute.type == AttributeProto.INTS:
        how = choose.randrange(3) if attribute.ints else 0
        if how == 0:
            attribute.ints.append(choose.choice(INTEGERS))
        elif how == 1:
            attribute.ints[choose.randrange(len(attribute.ints))] = choose.choice(INTEGERS)
        else:
            del attribute.ints[-1]


def drop_attribute(node, choose):
    if node.attribute:
        del node.attribute[choose.randrange(len(node.attribute))]


def add_attribute(node, choose):
    name = choose.choice(("axis", "axes", "hidden_size", "kernel_shape", "strides", "pads", "group",
                          "to", "foo", "layout", "direction", "block_size", "mode"))  # fmt: skip
    value = choose.choice((0, 1, -1, 3, [1], [1, 1], [0, 0, 0, 0], "x", 2.5))
    node.attribute.append(oh.make_attribute(name, value))


def change_kind(node, choose):
    if node.attribute:
        attribute = choose.choice(list(node.attribute))
        value = choose.choice((1, [1], 2.5, "x", [2.5]))
        attribute.CopyFrom(oh.make_attribute(attribute.name, value))


def leave_out(node, choose):
    names = choose.choice((node.input, node.input, node.output))
    if names:
        names[choose.randrange(len(names))] = ""


def cut(node, choose):
    if node.input:
        del node.input[-1]


def lengthen(node, choose):
    node.input.append(choose.choice((*node.input, "")))


def more_outputs(node, choose):
    node.output.append(choose.choice(("", "extra")))


def swap(node, choose):
    if len(node.input) > 1:
        i, j = choose.sample(range(len(node.input)), 2)
        node.input[i], node.input[j] = node.input[j], node.input[i]


def rename(node, choose):
    node.op_type = choose.choice((f"{node.op_type}u", "Relu", "Conv", "Max", "LSTM", "Cast", "Foo"))


def change_domain(node, choose):
    node.domain = choose.choice(
        ("com.microsoft", "foo", "ai.onnx.ml", "ai.onnx", "com.microsoft.dml")
    )


def change_body(node, choose):
    """Take from a body an input, an output or a node, or name an output after something else."""
    bodies = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    if not bodies:
        return
    body = choose.choice(bodies)
    items = choose.choice((body.input, body.output, body.node, body.initializer))
    if items and choose.random() < INSIDE:
        del items[choose.randrange(len(items))]
    elif body.output and body.node:
        names = [name for inner in body.node for name in (*inner.input, *inner.output)]
        choose.choice(body.output).name = choose.choice(names or [""])


def change_version(model, choose):
    choose.choice(list(model.opset_import)).version = choose.choice(OPSETS)


def _input(model, choose):
    found = [item for item in model.graph.input if item.type.HasField("tensor_type")]
    return choose.choice(found) if found else None


def change_type(model, choose):
    item = _input(model, choose)
    if item is not None:
        item.type.tensor_type.elem_type = choose.choice(TYPES)


def change_size(model, choose):
    item = _input(model, choose)
    if item is None:
        return
    sizes = item.type.tensor_type.shape.dim
    how = choose.randrange(4)
    if how == 0:
        sizes.add().dim_value = choose.choice((1, 2))
    elif sizes and how == 1:
        del sizes[-1]
    elif sizes and how == 2:
        sizes[choose.randrange(len(sizes))].dim_value = choose.choice((0, 1, 2, 3, 4, 7))
    elif sizes:
        sizes[choose.randrange(len(sizes))].dim_param = "n"


def make_constant(model, choose):
    """Replace an input by an initializer."""
    item = _input(model, choose)
    if item is None or item.type.tensor_type.elem_type not in PLAIN:
        return
    sizes = [size.dim_value for size in item.type.tensor_type.shape.dim]
    count = int(np.prod(sizes))
    if count > 10_000:
        return
    numbers = [choose.choice((-1, 0, 0, 1, 1, 2, 3)) for _ in range(count)]
    kind = oh.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
    array = np.array(numbers).astype(kind).reshape(sizes)
    model.graph.initializer.append(numpy_helper.from_array(array, item.name))
    model.graph.input.remove(item)


MUTATIONS = (
    change_attribute, change_attribute, drop_attribute, add_attribute, change_kind, leave_out,
    leave_out, cut, lengthen, more_outputs, swap, rename, change_domain, change_version,
    change_body, change_body, change_type, change_type, change_size, change_size, make_constant,
    make_constant,
)  # fmt: skip


FAMILY = (1, 0, 0, 0, 1, 2)
"""Which family a mutant is of, by the last digit of its number to base 6."""


def mutants(first, count):
    """Yield a number and a mutant for each number from `first` on."""
    families = models()
    for number in range(first, first + count):
        choose = random.Random(number)
        yield number, mutated(choose.choice(families[FAMILY[number % len(FAMILY)]]), choose)
