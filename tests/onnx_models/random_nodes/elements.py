"""Operators on single elements, and those that move, select and make elements."""

from math import prod

import numpy as np
import onnx.helper as oh
from onnx import TensorProto, numpy_helper

from random_nodes.chooser import Parameter, generates, is_integer

# Elementwise operators


@generates(
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BitwiseNot", "Ceil", "Cos", "Cosh",
    "Erf", "Exp", "Floor", "Identity", "IsNaN", "Log", "Neg", "Not", "Reciprocal", "Relu", "Round",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh",
)  # fmt: skip
def unary(c):
    low, high = {
        "Acos": (-0.9, 0.9), "Asin": (-0.9, 0.9), "Atanh": (-0.9, 0.9), "Acosh": (1.1, 5),
        "Log": (0.1, 4), "Sqrt": (0.1, 4), "Reciprocal": (0.1, 4), "Tan": (-1, 1),
    }.get(c.operator, (-3, 3))  # fmt: skip
    return [c.array(c.shape(), c.first_kind(), low, high)], {}


@generates(
    "Celu", "Elu", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Selu", "Shrink",
    "ThresholdedRelu",
)  # fmt: skip
def activation(c):
    names = [n for n in ("alpha", "beta", "gamma", "bias", "lambd") if n in c.schema.attributes]
    numbers = dict.fromkeys(names, (0.25, 0.7, 1.5))
    if c.operator == "Gelu":
        numbers["approximate"] = ("none", "tanh")
    return [c.array(c.shape(), c.first_kind())], c.some(**numbers)


@generates("ScaledTanh", "ParametricSoftplus", "Affine")
def removed_activation(c):
    return [c.array(c.shape(1))], {"alpha": 0.7, "beta": 1.5}


@generates(
    "Add", "And", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Mul", "Or", "Sub", "Xor",
)  # fmt: skip
def binary(c):
    kind, shape, attributes = c.first_kind(), c.shape(), {}
    one, other = c.pair(shape)
    if c.opset < 7:
        one = other = shape
        if c.flag() and shape:
            attributes["broadcast"], i = 1, c.int(0, len(shape) - 1)
            other = shape[i:]
            if c.flag():
                attributes["axis"], other = i, shape[i : c.int(i + 1, len(shape))]
    low = 1 if c.operator == "Div" else -3
    return [c.array(one, kind), c.parameter(c.array(other, kind, low), 0.4)], attributes


@generates("Pow", "Mod", "BitShift")
def arithmetic(c):
    kinds = [c.kind(formal.type_str) for formal in c.schema.inputs]
    low, high = {"Pow": (0, 2), "Mod": (1, 3), "BitShift": (0, 1)}[c.operator]
    one, other = c.pair(c.shape())
    if c.opset < 7:
        one = other
    x, y = c.array(one, kinds[0], 0.3 if c.operator == "Pow" else -3), None
    if c.operator == "Pow" and c.flag():
        y = np.asarray(c.int(0, 3), oh.tensor_dtype_to_np_dtype(kinds[1]))
    y = c.array(other, kinds[1], low, high) if y is None or c.opset < 7 else y
    is_float = not is_integer(x.dtype)
    return [x, c.parameter(y, 0.4)], {
        "Pow": {}, "Mod": {"fmod": 1 if is_float else c.one(None, 1)},
        "BitShift": {"direction": c.one("LEFT", "RIGHT")},
    }[c.operator]  # fmt: skip


@generates("PRelu")
def prelu(c):
    shape = c.shape(2 if c.opset < 7 else 0)
    slope = tuple(1 if c.flag(0.3) else n for n in shape)[c.int(0, len(shape)) :]
    if c.opset < 7:
        slope = c.one((1,), shape[1:2])
    return [c.array(shape, c.kind()), c.array(slope, c.kind())], {}


@generates("Sum", "Mean", "Max", "Min")
def variadic(c):
    shape = c.shape()
    shapes = [c.pair(shape)[0] if c.opset >= 8 else shape for _ in range(c.int(1, 4))]
    return [c.array(own, c.kind()) for own in shapes], {}


@generates("Where")
def where(c):
    shapes = c.pair(c.shape())
    arrays = [c.array(own, c.kind()) for own in shapes]
    return [c.array(shapes[0], TensorProto.BOOL), *arrays], {}


@generates("Clip")
def clip(c):
    x = c.array(c.shape(), c.kind())
    if c.since < 11:
        return [x], c.some(min=[-1.5], max=[1.25])
    low = 0 if x.dtype.name.startswith("uint") else -2
    bounds = [np.asarray(n, x.dtype) if c.flag(0.7) else None for n in (low, 3)]
    return [x, *(None if bound is None else c.parameter(bound) for bound in bounds)], {}


@generates("Cast", "CastLike")
def cast(c):
    x, target = c.array(c.shape(), c.kind("T1"), 0), c.kind("T2")
    if c.operator == "CastLike":
        return [x, c.array(c.shape(), target)], {}
    if c.since < 6:
        return [x], {"to": TensorProto.DataType.Name(target)}
    return [x], {"to": target, "saturate": c.one(None, 0, 1) if c.since >= 19 else None}


@generates("IsInf")
def is_infinity(c):
    x = c.array(c.shape(), c.kind("T1"))
    infinite = np.where(np.abs(x) > 1, np.copysign(np.inf, x), x).astype(x.dtype)
    return [infinite], c.some(detect_positive=(0, 1), detect_negative=(0, 1))


# Elements in other places


@generates("Transpose", "Flatten", "Size", "Shape")
def of_shape(c):
    x = c.array(c.shape(1, 5), c.first_kind())
    if c.operator == "Transpose":
        return [x], c.some(perm=[[int(i) for i in c.rng.permutation(x.ndim)]])
    if c.operator == "Flatten":
        return [x], c.some(axis=range(-x.ndim if c.opset >= 11 else 0, x.ndim + 1))
    bounds = range(-6, 7) if c.operator == "Shape" and c.since >= 15 else None
    return [x], c.some(start=bounds, end=bounds) if bounds else {}


@generates("Split")
def split(c):
    shape, count = list(c.shape(1)), c.int(1, 3)
    axis, parts = c.axis(len(shape)), c.ints(1, 3, count)
    if equal := c.flag():
        parts = [parts[0]] * count
    shape[axis], c.outputs = sum(parts), count
    found, sizes = {"axis": axis}, None
    if c.since >= 18 and equal:
        found["num_outputs"] = count
    elif c.since >= 13:
        sizes = None if equal else Parameter(np.int64(parts))
    elif not equal:
        found["split"] = parts
    return [c.array(shape, c.kind()), sizes], found


@generates("Concat")
def concat(c):
    shape = list(c.shape(1))
    axis, arrays = c.axis(len(shape)), []
    for _ in range(c.int(1, 4)):
        shape[axis] = c.int(0 if c.flag(0.1) else 1, 3)
        arrays.append(c.array(shape, c.kind()))
    return arrays, {"axis": axis}


@generates("Slice")
def slice_(c):
    shape = c.shape(1, 4, 6)
    axes = c.axes(len(shape))
    steps = [c.one(1, 1, 2, -1, -2) if c.since >= 10 else 1 for _ in axes]
    begins = [c.int(-shape[a], shape[a] - 1) if s > 0 else c.int(0, shape[a] + 2)
              for a, s in zip(axes, steps, strict=True)]  # fmt: skip
    ends = [c.one(shape[a], 99, 2**31 - 1) if s > 0 else c.one(-99, -shape[a] - 1)
            for a, s in zip(axes, steps, strict=True)]  # fmt: skip
    x = c.array(shape, c.first_kind())
    if c.since < 10:
        return [x], {"starts": begins, "ends": ends, "axes": axes}
    dtype, chance = c.one(np.int64, np.int32), c.one(0, 1, 1)
    return [x, *(c.parameter(np.asarray(n, dtype), chance)
                 for n in (begins, ends, axes, steps))], {}  # fmt: skip


@generates("Pad")
def pad(c):
    shape, mode = c.shape(1), c.one(None, "constant", "reflect", "edge")
    mode = c.one(mode, "wrap") if c.since >= 19 else mode
    most = [{"reflect": n - 1, "wrap": n}.get(mode, 3) for n in shape * 2]
    pads = [c.int(0, min(3, n)) for n in most]
    x = c.array(shape, c.kind())
    value = c.array((), c.kind(), 1) if mode in (None, "constant") and c.flag() else None
    if c.since < 11:
        number = None if value is None else float(value)
        return [x], {"mode": mode, "pads" if c.since > 1 else "paddings": pads, "value": number}
    axes = None
    if c.since >= 18 and c.flag(0.4):
        axes = c.axes(len(shape))
        pads = [pads[a % len(shape) + at] for at in (0, len(shape)) for a in axes]
    inputs = [np.int64(pads), value, None if axes is None else np.int64(axes)]
    return [x, *(None if n is None else Parameter(n) for n in inputs)], {"mode": mode}


@generates("SpaceToDepth", "DepthToSpace")
def blocks(c):
    size, channels, (rows, columns) = c.int(1, 3), c.int(1, 2), c.ints(1, 2, 2)
    shape = (2, channels, rows * size, columns * size)
    if c.operator == "DepthToSpace":
        shape = (2, channels * size * size, rows, columns)
    mode = {"mode": c.one(None, "DCR", "CRD")} if c.operator[0] == "D" and c.since >= 11 else {}
    return [c.array(shape, c.kind())], {"blocksize": size, **mode}


@generates("Tile", "Expand")
def repeats(c):
    shape = c.shape(1)
    if c.operator == "Expand":
        one, other = c.pair(shape)
        return [c.array(one, c.kind()), Parameter(np.int64(other))], {}
    if c.since < 6:
        numbers = (np.asarray(n, oh.tensor_dtype_to_np_dtype(c.kind())) for n in (2, 0))
        return [c.array(shape, c.kind()), *map(Parameter, numbers)], {}
    return [c.array(shape, c.kind()), Parameter(np.int64(c.ints(1, 3, len(shape))))], {}


@generates("Squeeze", "Unsqueeze")
def ones(c):
    shape = [1 if c.flag() else c.int(1, 3) for _ in range(c.int(1, 5))]
    rank, count = len(shape), c.int(1, 3)
    own = [i for i, n in enumerate(shape) if n == 1]
    if c.operator == "Unsqueeze":
        rank += count
        own = list(range(rank))
    else:
        count = len(own)
    axes = [own[i] for i in c.rng.permutation(len(own))[:count]]
    axes = [a - rank if c.opset >= 11 and c.flag(0.3) else a for a in axes]
    x = c.array(shape, c.kind())
    if not axes:
        return [x], {}
    return ([x], {"axes": axes}) if c.since < 13 else ([x, c.parameter(np.int64(axes))], {})


@generates("Reshape", "ConstantOfShape")
def shapes(c):
    if c.operator == "ConstantOfShape":
        value = numpy_helper.from_array(c.array((1,), c.kind("T2")), "")
        return [Parameter(np.asarray(c.shape(), np.int64))], c.some(value=[value])
    shape = c.shape(1)
    to = [n for n in shape if c.flag()]
    to.append(prod(shape) // prod(to))
    to = [to[i] for i in c.rng.permutation(len(to))]
    to = [0 if i < len(shape) and n == shape[i] and c.flag(0.3) else n for i, n in enumerate(to)]
    if c.flag(0.4):
        to[c.int(0, len(to) - 1)] = -1
    x = c.array(shape, c.kind())
    return ([x], {"shape": to}) if c.since < 5 else ([x, c.parameter(np.int64(to))], {})


@generates("Gather", "GatherElements")
def gather(c):
    shape = c.shape(1)
    axis, dtype = c.axis(len(shape)), oh.tensor_dtype_to_np_dtype(c.kind("Tind"))
    own = c.shape(0, 2)
    if c.operator == "GatherElements":
        own = [c.int(1, 4 if i == axis % len(shape) else n) for i, n in enumerate(shape)]
    indices = c.indices(shape[axis], own, dtype)
    return [c.array(shape, c.kind()), c.parameter(indices, 0.3)], {"axis": axis}


@generates("GatherND")
def gather_nd(c):
    shape = c.shape(1)
    batch = c.int(0, len(shape) - 1) if c.since >= 12 else 0
    own = (*shape[:batch], *c.shape(0, 2))
    columns = [c.indices(n, own) for n in shape[batch : c.int(batch + 1, len(shape))]]
    return [c.array(shape, c.kind()), np.stack(columns, -1)], {"batch_dims": batch or None}


def reduction(c):
    if "reduction" not in c.schema.attributes:
        return {}
    return c.some(reduction=("none", "add", "mul", *(("max", "min") if c.since >= 18 else ())))


@generates("Scatter", "ScatterElements")
def scatter(c):
    shape = c.shape(1)
    axis = c.axis(len(shape))
    own = [c.int(1, n) for n in shape]
    indices = c.rng.random((*own[:axis], shape[axis], *own[axis:][1:])).argsort(axis)
    indices = indices.take(range(own[axis]), axis)
    indices = indices - shape[axis] if c.opset >= 11 and c.flag(0.3) else indices
    dtype = oh.tensor_dtype_to_np_dtype(c.kind("Tind"))
    inputs = [c.array(shape, c.kind()), c.parameter(indices.astype(dtype), 0.3)]
    return [*inputs, c.array(own, c.kind())], {"axis": axis, **reduction(c)}


@generates("ScatterND")
def scatter_nd(c):
    shape = c.shape(1)
    indexed = c.int(1, len(shape))
    places = c.rng.permutation(prod(shape[:indexed]))[: c.int(1, prod(shape[:indexed]))]
    indices = np.stack(np.unravel_index(places, shape[:indexed]), -1).astype(np.int64)
    updates = c.array((len(places), *shape[indexed:]), c.kind())
    return [c.array(shape, c.kind()), indices, updates], reduction(c)


@generates("EyeLike", "Trilu")
def diagonals(c):
    if c.operator == "EyeLike":
        found = c.some(k=range(-2, 3), dtype=[c.kind("T2")])
        return [c.array(c.shape(2, 2), c.kind("T1"))], found
    k = c.parameter(np.int64(c.int(-4, 4))) if c.flag(0.7) else None
    return [c.array(c.shape(2), c.kind()), k], c.some(upper=(0, 1))


@generates("ReverseSequence")
def reverse(c):
    shape, batch = c.shape(2), c.int(0, 1)
    lengths = c.rng.integers(1, shape[1 - batch] + 1, shape[batch]).astype(np.int64)
    return [c.array(shape, c.kind()), lengths], {"batch_axis": batch, "time_axis": 1 - batch}


@generates("OneHot")
def one_hot(c):
    indices = c.array(c.shape(1, 3), c.kind("T1"), -1, 1)
    depth = np.asarray(c.int(1, 5), c.one(np.int64, np.int32))
    axis = c.int(-indices.ndim - 1, indices.ndim)
    values = c.array((2,), c.kind("T3"))
    return [indices, c.parameter(depth), values], c.some(axis=[axis])


@generates("NonZero", "Compress")
def selected(c):
    x = c.array(c.shape(1), c.kind())
    if c.operator == "NonZero":
        return [np.where(c.array(x.shape, TensorProto.BOOL), x, np.zeros((), x.dtype))], {}
    axis = c.one(None, c.axis(x.ndim))
    count = x.size if axis is None else x.shape[axis]
    return [x, c.array((count,), TensorProto.BOOL)], {"axis": axis}


@generates("TopK")
def top_k(c):
    shape = c.shape(1, 4, 6)
    axis, c.outputs = c.axis(len(shape)), 2
    x = c.rng.random(shape).argsort(axis).astype(oh.tensor_dtype_to_np_dtype(c.kind()))
    k = c.int(1, shape[axis])
    found = {"axis": axis, **(c.some(largest=(0, 1)) if c.since >= 11 else {})}
    if c.since < 10:
        return [x], {"k": k, **found}
    return [x, c.parameter(np.int64([k]))], found


# Other functions


@generates("Range")
def range_(c):
    begin, step, count = c.int(-5, 5), c.one(1, 2, -1, -2), c.int(1, 5)
    dtype = oh.tensor_dtype_to_np_dtype(c.kind())
    numbers = (begin, begin + step * count, step)
    return [c.parameter(np.asarray(n, dtype)) for n in numbers], {}


@generates("Dropout")
def dropout(c):
    x, half = c.array(c.shape(1), c.kind()), Parameter(np.float32(0.5))
    if c.since >= 12:
        return [x, *([half, Parameter(np.bool_(False))] if c.flag() else [])], {}
    return [x], {"ratio": 0.5, "is_test": 1 if c.since < 7 else None}


@generates("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
def loss(c):
    classes, more = c.int(2, 4), c.shape(0, 2, 3)
    labels = c.rng.integers(0, classes, (2, *more)).astype(np.int64)
    weight = c.array((classes,), c.kind(), 0.1, 1) if c.flag() else None
    found = c.some(reduction=("none", "sum", "mean"))
    return [c.array((2, classes, *more), c.kind()), labels, weight], found


@generates("CenterCropPad")
def center(c):
    shape = c.shape(1, 4, 5)
    axes = c.one(None, c.axes(len(shape)))
    sizes = c.ints(1, 6, len(shape if axes is None else axes))
    return [c.array(shape, c.kind()), Parameter(np.int64(sizes))], {"axes": axes}


@generates("Attention")
def attention(c):
    c.kinds["T2"] = c.kind("T1", TensorProto.FLOAT, TensorProto.FLOAT16)
    batch, heads, rows, keys, size = c.ints(1, 3, 5)
    arrays = [c.array((batch, heads, n, size), c.kind("T1"), -1, 1) for n in (rows, keys, keys)]
    return arrays, c.some(is_causal=(0, 1), scale=[0.5])


@generates("RotaryEmbedding")
def rotary(c):
    batch, heads, rows, half = c.ints(1, 2, 4)
    tables = [c.array((batch, rows, half), c.kind(), -1, 1) for _ in range(2)]
    return [c.array((batch, heads, rows, 2 * half), c.kind()), *tables], c.some(interleaved=(0, 1))
