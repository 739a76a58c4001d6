"""Small ONNX models, and what ONNX Runtime makes of them."""

import numpy as np
import onnx.helper as oh
import onnxruntime
from onnx import TensorProto, numpy_helper

import anydml as dml

FLOAT, FLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16
UINT8, INT32 = TensorProto.UINT8, TensorProto.INT32


def model_of(nodes, inputs, outputs, weights=None, opset=17, domains=(), functions=(), **fields):
    """A model; `inputs` has shapes (float32) or pairs of a type and a shape."""
    pairs = [
        (name, *(item if isinstance(item[0], int) and isinstance(item[1:2], tuple)
                 and len(item) == 2 and isinstance(item[1], list) else (FLOAT, item)))
        for name, item in inputs.items()
    ]  # fmt: skip
    graph = oh.make_graph(
        nodes,
        "graph",
        [oh.make_tensor_value_info(name, kind, shape) for name, kind, shape in pairs],
        [oh.make_value_info(name, oh.make_tensor_type_proto(kind, None))
         for name, kind in outputs.items()],
        [numpy_helper.from_array(np.asarray(array), name)
         for name, array in (weights or {}).items()],
    )  # fmt: skip
    opsets = [oh.make_opsetid("", opset), *(oh.make_opsetid(name, 1) for name in domains)]
    model = oh.make_model(graph, opset_imports=opsets, functions=functions, **fields)
    model.ir_version = min(model.ir_version, 10)
    return model


def session(model):
    """ONNX Runtime's session of a model, without rewrites that change rounding."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = model if isinstance(model, str | bytes) else model.SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def compare(model, inputs, device="cpu", atol=1e-5, rtol=1e-4, **options):
    """Run a model here and in ONNX Runtime; the read model."""
    read = dml.read_onnx(model, **options)
    results = read.compile(dml.Device(device))(**inputs)
    expected = session(model).run(list(results), inputs)
    for (name, result), reference in zip(results.items(), expected, strict=True):
        assert result.dtype == reference.dtype, name
        assert result.shape == reference.shape, name
        np.testing.assert_allclose(result, reference, rtol=rtol, atol=atol, err_msg=name)
    return read


def floats(seed, *shape):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(np.float32)


def one(operator, inputs, weights=None, kind=FLOAT, outputs=1, **attributes):
    """A model of one node of com.microsoft, and its inputs; `middle` keeps all outputs."""
    names = [*inputs, *(weights or {})]
    order = attributes.pop("order", names)
    middle = attributes.pop("middle", False)
    results = [f"y{i}" if middle or i + 1 in (1, outputs) else "" for i in range(outputs)]
    node = oh.make_node(operator, order, results, domain="com.microsoft", **attributes)
    declared = {
        name: (oh.np_dtype_to_tensor_dtype(array.dtype), list(array.shape))
        for name, array in inputs.items()
    }
    kinds = kind if isinstance(kind, tuple) else (kind,) * outputs
    named = {name: kind for name, kind in zip(results, kinds, strict=True) if name}
    model = model_of([node], declared, named, weights, domains=["com.microsoft"])
    return model, inputs


def bytes_of(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)


def signed(seed, *shape):
    """Seven bits: without VNNI, ONNX Runtime saturates the sum of two products in 16 bits."""
    return np.random.default_rng(seed).integers(-64, 64, shape).astype(np.int8)
