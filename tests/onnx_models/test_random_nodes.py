"""Random valid nodes of every operator: their values and shapes are those of ONNX Runtime.

Types for which ONNX Runtime has no kernel are compared with its kernel of a wider type, or with the
reference implementation of the `onnx` package.
"""

import warnings
from dataclasses import replace

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from building import session
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from random_nodes import GENERATORS, Parameter, random_node

import anydml as dml
from anydml.onnx.table import ROWS
from anydml.onnx.types import is_plain, type_name

FORMS = ("inputs", "unknown sizes", "constants")
"""What the inputs of a node are: inputs of the model, results of unknown sizes, or initializers."""

WIDER = {
    TensorProto.FLOAT16: TensorProto.FLOAT, TensorProto.BFLOAT16: TensorProto.FLOAT,
    TensorProto.UINT8: TensorProto.INT32, TensorProto.INT8: TensorProto.INT32,
    TensorProto.UINT16: TensorProto.INT32, TensorProto.INT16: TensorProto.INT32,
    TensorProto.UINT32: TensorProto.INT64,
}  # fmt: skip

REFUSED = {
    "Reduce": "DirectML reduces no such type, although the provider registers it",
    "Col2Im": "DirectML folds no such type, although the provider registers it",
    "RMSNormalization": "the body of the function allows no scale of another type",
}
"""Nodes that DirectML refuses, by the begin of the operator's name."""


def kind_of(array):
    return oh.np_dtype_to_tensor_dtype(array.dtype)


def model_of_node(node, form, kinds=None):
    """A model of one node and the shapes of its outputs, and the model's inputs.

    Tensors of types that DirectML lacks are cast from float32, and to it.
    """
    nodes, inputs, weights, names = [], {}, {}, []
    for i, item in enumerate(node.inputs):
        constant = isinstance(item, Parameter)
        array, name = item.array if constant else item, f"x{i}" if item is not None else ""
        names.append(name)
        if array is None:
            continue
        array = np.asarray(array)
        kind = kind_of(array)
        if not is_plain(type_name(kind)):
            nodes.append(oh.make_node("Cast", [f"{name}f"], [name], to=kind))
            array, name = array.astype(np.float32), f"{name}f"
        if form == "constants" or constant:
            weights[name] = array
        elif form == "unknown sizes" and node.opset >= 5 and array.ndim:
            nodes.append(oh.make_node("Reshape", [f"{name}r", f"{name}s"], [name]))
            inputs |= {f"{name}r": array, f"{name}s": np.int64(array.shape)}
        else:
            inputs[name] = array
    results = [f"y{i}" for i in range(node.outputs)]
    strange = [k for k in kinds or [] if k and not is_plain(type_name(k))]
    made = [f"{name}q" if strange else name for name in results]
    nodes.append(oh.make_node(node.operator, names, made, domain=node.domain, **node.attributes))
    if strange:
        nodes += [oh.make_node("Cast", [f"{n}q"], [n], to=TensorProto.FLOAT) for n in results]
    nodes += [oh.make_node("Shape", [name], [f"{name}shape"]) for name in results]
    graph = oh.make_graph(
        nodes, "graph",
        [oh.make_tensor_value_info(n, kind_of(a), a.shape) for n, a in inputs.items()],
        [oh.make_value_info(f"{name}{end}", onnx.TypeProto())
         for end in ("", "shape") for name in results],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )  # fmt: skip
    opsets = [oh.make_opsetid("", node.opset), oh.make_opsetid("com.microsoft", 1)]
    model = oh.make_model(graph, opset_imports=opsets)
    model.ir_version = min(model.ir_version, 11)
    return model, inputs


def result_types(model):
    """The types of the outputs, where the `onnx` package infers them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inferred = onnx.shape_inference.infer_shapes(model).graph
    found = {v.name: v.type.tensor_type.elem_type for v in (*inferred.value_info, *inferred.output)}
    return [found.get(o.name, 0) for o in model.graph.output if not o.name.endswith("shape")]


def by_onnx_runtime(model, inputs):
    try:
        return session(model).run(None, inputs)
    except Exception:  # which have no public base
        return None


def widened(node):
    """The node with inputs of types for which ONNX Runtime has more kernels."""

    def wider(item):
        array = item.array if isinstance(item, Parameter) else item
        if array is None or kind_of(np.asarray(array)) not in WIDER:
            return item
        array = np.asarray(array)
        array = array.astype(oh.tensor_dtype_to_np_dtype(WIDER[kind_of(array)]))
        return Parameter(array) if isinstance(item, Parameter) else array

    return replace(node, inputs=[wider(item) for item in node.inputs])


def by_reference(model, inputs):
    try:
        with np.errstate(all="ignore"):
            return ReferenceEvaluator(model).run(None, inputs)
    except Exception:  # of many classes
        return None


def expected_results(node, kinds):
    """The values of ONNX Runtime, or of the reference implementation; None if neither has any."""
    model, inputs = model_of_node(node, "inputs", kinds)
    found = by_onnx_runtime(model, inputs)
    if found is None:
        found = by_onnx_runtime(*model_of_node(widened(node), "inputs", kinds))
    if found is None and node.operator not in MISTAKEN:
        found = by_reference(model, inputs)
    if found is None:
        return None
    # A wider type, and some types of the reference, are others than those that ONNX defines.
    arrays = [np.asarray(array) for array in found]
    for i, kind in enumerate(kinds):
        if is_plain(type_name(kind)):
            arrays[i] = arrays[i].astype(oh.tensor_dtype_to_np_dtype(kind))
    return arrays


MISTAKEN = {
    "GlobalMaxPool": "the reference drops dimensions",
    "QLinearConv": "the reference takes one spatial dimension for two",
    "Softmax": "the reference takes one axis before version 13",
}
"""Operators of which the reference implementation is not asked."""


def check(operator, seed):
    """Compare a node; return whether there was something to compare."""
    node, form = random_node(operator, seed), FORMS[seed % len(FORMS)]
    kinds = result_types(model_of_node(node, "inputs")[0])
    expected = expected_results(node, kinds)
    if expected is None:
        return False
    model, inputs = model_of_node(node, form, kinds)
    try:
        results = dml.read_onnx(model).compile(dml.Device("cpu"))(**inputs)
    except (dml.ModelError, dml.InvalidDescriptorError) as error:
        if operator.startswith(tuple(REFUSED)) or "ONNX Runtime" in str(error):
            return False
        raise AssertionError(f"{node} ({form})") from error
    for (name, found), reference in zip(results.items(), expected, strict=True):
        what = f"{name} of {node} ({form})"
        assert found.dtype == reference.dtype, what
        assert found.shape == reference.shape, what
        one, other = found.astype(np.float64), reference.astype(np.float64)
        if found.dtype.kind in "biu":
            assert np.abs(one - other).max(initial=0) <= node.units, what
        else:
            error = 4 * np.finfo(np.float16).eps if found.dtype == np.float16 else 1e-4
            np.testing.assert_allclose(one, other, error, error, err_msg=what)
    return True


@pytest.mark.parametrize("operator", sorted(GENERATORS))
def test_random_nodes(operator):
    for seed in range(2):
        check(operator, seed)


@pytest.mark.slow
@pytest.mark.parametrize("operator", sorted(GENERATORS))
def test_more_random_nodes(operator):
    assert sum(check(operator, seed) for seed in range(2, 14))


@pytest.mark.heavy
@pytest.mark.parametrize("operator", sorted(GENERATORS))
def test_many_random_nodes(operator):
    for seed in range(14, 200):
        check(operator, seed)


def test_every_operator_has_random_nodes():
    """Those of other domains have tests of their own, as far as they are not here."""
    assert {name for domain, name in ROWS if not domain} <= GENERATORS.keys() | WITHOUT
    assert not GENERATORS.keys() & WITHOUT


WITHOUT = {"GlobalLpPool"}
"""Operators without a generator."""
