"""WebNN's conformance data through the operators that implementations of WebNN map theirs to.

``ANYDML_WEBNN_DATA`` is a folder of JSON files, one for each of WebNN's operators, made of the Web
Platform Tests: ``tests`` is a list of graphs with inputs, operators and expected outputs.
"""

import json
import os
from math import inf, prod
from pathlib import Path

import numpy as np
import pytest
from onnx_operators import binary, leaky_relu, matmul, mean_variance, with_defaults

import anydml as dml
from support.computed import NAMES, device_named
from support.described import run_described

pytestmark = pytest.mark.heavy

FOLDER = os.environ.get("ANYDML_WEBNN_DATA")
if not FOLDER:
    pytest.skip("ANYDML_WEBNN_DATA is not set", allow_module_level=True)
CASES = [
    case
    for file in sorted(Path(FOLDER).glob("*.json"))
    for case in json.loads(file.read_text())["tests"]
]


def first(kind, **defaults):
    """An operator of one tensor whose options are the fields."""
    return lambda options, x: with_defaults(kind, **defaults)([x], options)


def pair(kind):
    return lambda options, a, b: binary(kind)([a, b], {})


def align_to_axes(x, values, axes):
    """Values whose dimensions are these axes of x."""
    if values is None:
        return None
    order = np.argsort(axes)
    sizes = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
    return values.transpose(order).reshape(sizes)


def normalize_batch(options, x, mean, variance):
    arguments = {"scale": np.ones_like(mean), "bias": np.zeros_like(mean), **options}
    axis = (options.get("axis", 1),)
    values = (mean, variance, arguments["scale"], arguments["bias"])
    operands = [x, *(align_to_axes(x, value, axis) for value in values)]
    return dml.BatchNormalization, operands, {"spatial": True, "epsilon": epsilon(options)}


def normalize(x, axes, channels, options):
    """Over some axes; scale and bias lie along others."""
    scale, bias = (align_to_axes(x, options.get(name), channels) for name in ("scale", "bias"))
    if scale is None and bias is not None:
        scale = np.ones_like(bias)
    return mean_variance([x, scale, bias], sorted(axes), epsilon=epsilon(options))


def normalize_instance(options, x):
    channel = 3 if options.get("layout") == "nhwc" else 1
    return normalize(x, {1, 2, 3} - {channel}, (channel,), options)


def normalize_layer(options, x):
    axes = options.get("axes", range(1, x.ndim))
    return normalize(x, axes, axes, options)


def epsilon(options):
    return options.get("epsilon", 1e-5)


def clamp(options, x):
    low, high = (
        number(bound) if isinstance(bound, str) else bound
        for bound in (options.get("minValue"), options.get("maxValue"))
    )
    limits = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
    low = low if low is not None else -inf if limits is None else limits.min
    high = high if high is not None else inf if limits is None else limits.max
    if np.isnan([low, high]).any():
        pytest.skip("a NaN as a bound is none in WebNN")
    kind = dml.DataType.from_numpy(x.dtype)
    if limits is not None:
        low, high = (int(np.clip(bound, limits.min, limits.max)) for bound in (low, high))
    return dml.ElementWiseClip1, [x], {"min_max_data_type": kind, "min": low, "max": high}


# Where the layouts' letters stand in NCHW and OIHW.
DIRECT, TRANSPOSED = "oihw", "iohw"


def to_layout(x, arguments, expected):
    return x.transpose([arguments.index(letter) for letter in expected])


def convolution(direction, filters):
    def run(options, x, w):
        x = to_layout(x, options.get("inputLayout", "nchw"), "nchw")
        w = to_layout(w, options.get("filterLayout", filters), filters)
        strides, more = options.get("strides", (1, 1)), options.get("outputPadding", (0, 0))
        dilations = options.get("dilations", (1, 1))
        top, bottom, left, right = options.get("padding", (0, 0, 0, 0))
        if "outputSizes" in options:  # in place of the padding of the output
            more = [
                size - ((n - 1) * stride + (taps - 1) * dilation + 1 - before - after)
                for size, n, stride, taps, dilation, before, after in zip(
                    options["outputSizes"], x.shape[2:], strides, w.shape[2:], dilations,
                    (top, left), (bottom, right), strict=True,
                )
            ]  # fmt: skip
        bias = options.get("bias")
        fields = {
            "mode": "CROSS_CORRELATION", "direction": direction, "strides": strides,
            "dilations": dilations, "start_padding": (top, left), "end_padding": (bottom, right),
            "output_padding": more, "group_count": options.get("groups", 1),
        }  # fmt: skip
        return dml.Convolution, [x, w, bias if bias is None else bias[:, None, None][None]], fields

    return run


def reduce(function):
    def run(options, x):
        axes = options.get("axes", range(x.ndim))
        return dml.Reduce, [x], {"function": function, "axes": tuple(axes)}

    return run


def multiply(options, a, b):
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    pair = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    return matmul([x.reshape(-1, *x.shape[-2:]) for x in pair], {})


COMPUTED = {
    **{
        name: first(getattr(dml, f"ElementWise{name.title()}"))
        for name in ("abs", "ceil", "exp", "floor", "log", "sqrt")
    },
    **{
        name: first(getattr(dml, f"Activation{name.title()}"))
        for name in ("relu", "sigmoid", "tanh")
    },
    "neg": first(dml.ElementWiseNegate),
    "logicalNot": first(dml.ElementWiseLogicalNot),
    "elu": first(dml.ActivationElu, alpha=1.0),
    "hardSigmoid": first(dml.ActivationHardSigmoid, alpha=0.2, beta=0.5),
    "hardSwish": first(dml.ActivationHardSwish, alpha=1 / 6, beta=0.5),
    "leakyRelu": lambda options, x: leaky_relu([x], options),
    "linear": first(dml.ActivationLinear, alpha=1.0, beta=0.0),
    "softmax": lambda options, x, axis: (dml.ActivationSoftmax1, [x], {"axes": (axis,)}),
    "add": pair(dml.ElementWiseAdd),
    "sub": pair(dml.ElementWiseSubtract),
    "mul": pair(dml.ElementWiseMultiply),
    "div": pair(dml.ElementWiseDivide),
    "max": pair(dml.ElementWiseMax),
    "min": pair(dml.ElementWiseMin),
    "pow": pair(dml.ElementWisePow),
    "equal": pair(dml.ElementWiseLogicalEquals),
    "greater": pair(dml.ElementWiseLogicalGreaterThan),
    "greaterOrEqual": pair(dml.ElementWiseLogicalGreaterThanOrEqual),
    "lesser": pair(dml.ElementWiseLogicalLessThan),
    "lesserOrEqual": pair(dml.ElementWiseLogicalLessThanOrEqual),
    "clamp": clamp,
    "matmul": multiply,
    "batchNormalization": normalize_batch,
    "instanceNormalization": normalize_instance,
    "layerNormalization": normalize_layer,
    "conv2d": convolution("FORWARD", DIRECT),
    "convTranspose2d": convolution("BACKWARD", TRANSPOSED),
    "reduceL1": reduce("L1"),
    "reduceL2": reduce("L2"),
    "reduceLogSum": reduce("LOG_SUM"),
    "reduceLogSumExp": reduce("LOG_SUM_EXP"),
    "reduceMax": reduce("MAX"),
    "reduceMean": reduce("AVERAGE"),
    "reduceMin": reduce("MIN"),
    "reduceProduct": reduce("MULTIPLY"),
    "reduceSum": reduce("SUM"),
    "reduceSumSquare": reduce("SUM_SQUARE"),
}

MOVED = {
    "cast": lambda options, x, kind: dml.cast(x, kind),
    "concat": lambda options, arrays, axis: dml.join(arrays, axis=axis),
    "gather": lambda options, x, indices: dml.gather(
        x, indices, axis=options.get("axis", 0), mode="clamp"
    ),
    "slice": lambda options, x, *window: dml.slice_window(x, *window, options.get("strides")),
    "split": lambda options, x, splits: dml.split(x, splits, axis=options.get("axis", 0)),
}
"""Operators that array functions are."""


def array_of(tensor):
    """A tensor of the data; numbers that JSON has not are words."""
    descriptor = tensor["descriptor"]
    kind = np.dtype(descriptor["dataType"])
    data = np.atleast_1d(np.array(tensor["data"], dtype=object)).ravel()
    values = np.array([number(item) if isinstance(item, str) else item for item in data], kind)
    shape = descriptor["shape"]
    return values.reshape(shape) if values.size == prod(shape) else np.full(shape, values)


def number(word):
    """A number that JSON has not, from its word: an integer ends in n."""
    return int(word[:-1]) if word.endswith("n") else float(word)


def evaluate(operator, arrays, expected, device):
    """The results of one operator, and the expected ones as its types have them."""

    def resolve(value):
        if isinstance(value, list):
            return [resolve(item) for item in value]
        return arrays.get(value, value) if isinstance(value, str) else value

    arguments, options = [], {}
    for argument in operator["arguments"]:
        ((name, value),) = argument.items()
        if name == "options":
            options = {key: resolve(item) for key, item in value.items()}
        else:
            arguments.append(resolve(value))
    name = operator["name"]
    if name in MOVED:
        results = MOVED[name](options, *arguments)
        return results if isinstance(results, list | tuple) else [results], expected
    kind, inputs, fields = COMPUTED[name](
        options, *map(np.atleast_1d, arguments[:1]), *arguments[1:]
    )
    if options.get("inputLayout") == "nhwc":
        expected = [to_layout(y, "nhwc", "nchw") for y in expected]
    fields.pop("label", None)
    return run_described(kind, inputs, fields, expected, device)


@pytest.mark.parametrize("device", NAMES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case, device):
    graph = case["graph"]
    (operator,) = graph["operators"]
    if operator["name"] not in COMPUTED.keys() | MOVED.keys():
        pytest.skip(f"{operator['name']} is no operator of DirectML")
    arrays = {name: array_of(tensor) for name, tensor in graph["inputs"].items()}
    reference = [array_of(tensor) for tensor in graph["expectedOutputs"].values()]
    results, reference = evaluate(operator, arrays, reference, device_named(device))
    for result, expected in zip(results, reference, strict=True):
        half = expected.dtype == np.float16
        relative, absolute = (2e-3, 1e-3) if half else (2e-6, 2e-6)
        np.testing.assert_allclose(
            result.reshape(expected.shape), expected, rtol=relative, atol=absolute
        )
