"""Operators of neural networks, reductions, products and quantization."""

from math import prod

import numpy as np
import onnx.helper as oh
from onnx import TensorProto

from random_nodes.chooser import Parameter, generates, is_integer

# Windows


def window(c, sizes, dilations=True):
    kernel = [c.int(1, min(3, size)) for size in sizes]
    found = {"kernel_shape": kernel, "strides": c.one(None, c.ints(1, 3, len(sizes)))}
    if dilations and c.flag(0.4):
        found["dilations"] = [
            c.int(1, 2) if 2 * k - 1 <= size else 1 for k, size in zip(kernel, sizes, strict=True)
        ]
    pads, steps = c.one("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER", None, None), found["strides"]
    if pads is None:
        found["pads"] = [c.int(0, k - 1) for k in kernel * 2]
    elif pads[:4] != "SAME" or not steps or all(map(int.__le__, steps, kernel)):
        found["auto_pad"] = pads  # without negative padding
    return found


def image(c, kind, low=1, high=3, top=6, channels=None):
    sizes = c.ints(3, top, c.int(low, high))
    return c.array((c.int(1, 2), channels or c.int(1, 3), *sizes), kind), sizes


@generates("Conv", "ConvTranspose", "ConvInteger", "QLinearConv")
def convolution(c):
    quantized, back = c.operator in ("ConvInteger", "QLinearConv"), c.operator == "ConvTranspose"
    group, inside, outside = c.one(1, 1, 2), c.int(1, 2), c.int(1, 2)
    # ONNX Runtime multiplies some types only, and the reference mistakes one dimension for two.
    kinds = [c.one(TensorProto.UINT8, TensorProto.INT8) if quantized else c.kind()] * 2
    x, sizes = image(c, kinds[0], 2 if quantized else 1, 2 if quantized else 3,
                     4 if back else 6, group * inside)  # fmt: skip
    found = window(c, sizes) | {"group": group}
    kernel = found["kernel_shape"]
    channels = (group * inside, outside) if back else (group * outside, inside)
    w = c.array((*channels, *kernel), kinds[1])
    if back:
        strides = found["strides"] or [1] * len(sizes)
        more = [c.int(0, s - 1) for s in strides]
        found["output_padding"] = c.one(None, more)
        if c.flag(0.3) and found.pop("auto_pad", "NOTSET") != "VALID":
            found.pop("pads", None)
            dilations = found.get("dilations", [1] * len(sizes))
            spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
            found["output_shape"] = [
                (size - 1) * s + span + (m if found["output_padding"] else 0) - c.int(0, span - 1)
                for size, s, span, m in zip(sizes, strides, spans, more, strict=True)
            ]
    if not quantized:
        bias = c.array((group * outside,), kinds[0]) if c.flag() else None
        return [x, c.parameter(w), bias], found
    zeros = [c.array((), kind, 0, 1) for kind in kinds]
    if c.operator == "ConvInteger":
        return [x, w, c.one(None, zeros[0]), c.one(None, zeros[1])], found
    c.units = 1
    y = [c.scale() + np.float32(0.3), c.array((), kinds[0], 0, 3)]
    bias = c.array((group * outside,), TensorProto.INT32, -9, 9) if c.flag() else None
    per = c.one((), (group * outside,))
    return [x, c.scale(), zeros[0], w, c.scale(*per), np.resize(zeros[1], per), *y, bias], found


@generates("AveragePool", "MaxPool", "LpPool")
def pooling(c):
    x, sizes = image(c, c.kind())
    found = window(c, sizes, "dilations" in c.schema.attributes)
    if "dilations" in found and found.get("auto_pad", "").startswith("SAME"):
        del found["auto_pad"]  # both oracles leave dilations out of the padding
    for name, values in (("ceil_mode", (0, 1)), ("count_include_pad", (0, 1)), ("p", (1, 2, 3))):
        if name in c.schema.attributes and c.flag():
            found[name] = c.one(*values) if c.since > 1 else 2.0
    if c.operator == "MaxPool" and c.since >= 8 and c.flag():
        c.outputs, found["storage_order"] = 2, c.one(None, 0, 1)
    return [x], found


@generates("GlobalAveragePool", "GlobalMaxPool")
def global_pooling(c):
    return [image(c, c.kind(), 2)[0]], {}


@generates("MaxRoiPool", "RoiAlign")
def regions(c):
    kind = c.first_kind()
    batches, count = c.int(1, 2), c.int(1, 3)
    x = c.array((batches, 2, 6, 7), kind)
    batch = c.rng.integers(0, batches, count)
    found = c.some(spatial_scale=(1.0, 0.5))
    if c.operator == "MaxRoiPool":
        begin = c.rng.integers(0, 4, (count, 2))
        rows = np.hstack([batch[:, None], begin, begin + c.rng.integers(1, 3, (count, 2))])
        return [x, rows.astype(x.dtype)], {"pooled_shape": c.ints(1, 3, 2), **found}
    begin = c.rng.uniform(-1, 4, (count, 2))
    rows = np.hstack([begin, begin + c.rng.uniform(0.1, c.one(1, 4), (count, 2))])
    found |= c.some(output_height=(1, 2, 3), output_width=(1, 2, 3), sampling_ratio=(0, 1, 2),
                    mode=("avg", "avg", "max"))  # fmt: skip
    if c.since >= 16:
        found |= c.some(coordinate_transformation_mode=("half_pixel", "output_half_pixel"))
    return [x, rows.astype(x.dtype), batch.astype(np.int64)], found


@generates("Col2Im")
def columns(c):
    sizes, rank = c.ints(3, 6, 2), 2  # ONNX Runtime mistakes one dimension
    found = window(c, sizes)
    block, pads = found.pop("kernel_shape"), found.get("pads", [0] * 2 * rank)
    found.pop("auto_pad", None)
    spans = [
        (k - 1) * d + 1 for k, d in zip(block, found.get("dilations", [1] * rank), strict=True)
    ]
    strides = found["strides"] or [1] * rank
    count = prod(
        (size + pads[i] + pads[rank + i] - spans[i]) // strides[i] + 1
        for i, size in enumerate(sizes)
    )
    x = c.array((c.int(1, 2), c.int(1, 2) * prod(block), count), c.kind())
    return [x, Parameter(np.int64(sizes)), Parameter(np.int64(block))], found


@generates("MaxUnpool")
def unpooling(c):
    _, channels, rows, columns = shape = (1, c.int(1, 2), *c.ints(1, 3, 2))
    places = np.indices(shape)
    at = places[2:] * 2 + c.rng.integers(0, 2, (2, *shape))
    planes = (places[0] * channels + places[1]) * 2 * rows
    indices = ((planes + at[0]) * 2 * columns + at[1]).astype(np.int64)
    return [c.array(shape, c.kind("T1")), indices], {"kernel_shape": [2, 2], "strides": [2, 2]}


# Normalization


@generates("BatchNormalization", "InstanceNormalization")
def of_channels(c):
    x, _ = image(c, c.kind())
    channels = x.shape[1:2]
    if c.operator == "InstanceNormalization":
        return [x, *(c.array(channels, c.kind()) for _ in range(2))], c.some(epsilon=[1e-3])
    found = c.some(epsilon=[1e-3], momentum=[0.5])
    if c.since == 7 and c.flag():
        found["spatial"], channels = 0, x.shape[1:]
    if c.since >= 14 and c.flag(0.3):
        found["training_mode"], c.outputs = 1, 3
    kinds = [c.kind()] * 4
    if c.since >= 14 and c.flag(0.3):
        other = c.kind("U" if c.since == 14 else "T2")
        kinds = [c.kind(), c.kind(), other, other]
    lows = (-2, -2, -2, 0.5)
    vectors = [c.array(channels, k, low, 2) for k, low in zip(kinds, lows, strict=True)]
    return [x, *vectors], found


@generates("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization")
def of_layers(c):
    has_bias = c.operator == "LayerNormalization"
    if c.schema is None:
        kinds = c.one((1, 1), (10, 1), (10, 10))
    else:
        kinds = (c.kind(), c.kind("V") if c.operator == "RMSNormalization" else c.kind())
    shape = c.shape(1)
    axis = c.int(-len(shape), len(shape) - 1)
    vectors = [c.array(shape[axis:], kinds[1]) for _ in range(1 + (has_bias and c.flag()))]
    if has_bias:
        c.outputs = c.one(1, 1, 3)
    return [c.array(shape, kinds[0]), *vectors], {"axis": axis, **c.some(epsilon=[1e-3])}


@generates("GroupNormalization")
def of_groups(c):
    groups, size = c.int(1, 2), c.int(1, 2)
    x, _ = image(c, c.kind(), channels=groups * size)
    count = groups if c.since < 21 else groups * size
    vectors = [c.array((count,), c.kind()) for _ in range(2)]
    return [x, *vectors], {"num_groups": groups, **c.some(epsilon=[1e-3])}


@generates("LRN", "LpNormalization", "MeanVarianceNormalization")
def of_regions(c):
    if c.operator == "LRN":  # ONNX Runtime takes odd sizes only
        numbers = c.some(alpha=[0.1], beta=[0.5], bias=[2.0])
        return [c.array((c.int(1, 2), c.int(1, 5), 3, 4), c.kind())], {
            "size": c.one(1, 3, 5), **numbers
        }  # fmt: skip
    x = c.array(c.shape(1), c.kind())
    if c.operator == "LpNormalization":
        return [x], c.some(axis=range(-x.ndim, x.ndim), p=(1, 2))
    if c.since >= 9 and c.flag():  # ONNX Runtime divides 0 by 0 where there is one element
        x = c.array([n + 1 for n in x.shape], c.kind())
        return [x], {"axes": sorted(c.axes(x.ndim))}
    old = c.some(across_channels=(0, 1), normalize_variance=(0, 1)) if c.since < 9 else {}
    return [c.array((2, 3, 3, 4), c.kind())], old


# Recurrent layers


@generates("RNN", "GRU", "LSTM")
def recurrent(c):
    gates, functions = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}[c.operator]
    direction = c.one(None, "forward", "reverse", "bidirectional")
    count = 2 if direction == "bidirectional" else 1
    steps, batches, size, hidden = c.int(1, 4), c.int(1, 3), c.int(1, 3), c.int(1, 4)
    layout = c.one(None, None, 1) if c.since >= 14 else None

    def array(*shape):
        return c.array(shape, c.kind(), -1, 1)

    def maybe(*shape):
        return array(*shape) if c.flag(0.4) else None

    first = (batches, steps) if layout else (steps, batches)
    state = (batches, count, hidden) if layout else (count, batches, hidden)
    lengths = c.rng.integers(1, steps + 1, batches).astype(np.int32)
    inputs = [array(*first, size), array(count, gates * hidden, size),
              array(count, gates * hidden, hidden), maybe(count, 2 * gates * hidden),
              c.one(None, lengths), maybe(*state)]  # fmt: skip
    if c.operator == "LSTM":
        inputs += [maybe(*state), maybe(count, 3 * hidden)]
    found = {"hidden_size": hidden, "direction": direction, "layout": layout}
    found |= {"clip": 0.8} if c.flag(0.2) else {}
    if c.operator == "GRU" and c.since >= 3:
        found |= c.some(linear_before_reset=(0, 1))
    if c.flag(0.4):
        names = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "HardSigmoid", "Elu", "Softsign")
        found["activations"] = [c.one(*names) for _ in range(functions * count)]
    c.outputs = 3 if c.operator == "LSTM" else 2
    return inputs, found


# Reductions and products


@generates(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
def reduce(c):
    shape = c.shape(0 if c.flag(0.1) else 1)
    axes = c.axes(len(shape), 0 if c.flag(0.2) else 1)
    x = c.array(shape, c.kind(), 0.2 if c.operator == "ReduceLogSum" else -2, 2)
    found = c.some(keepdims=(0, 1))
    if c.since < (13 if c.operator == "ReduceSum" else 18):
        return [x], {"axes": axes or None, **found}
    found |= c.some(noop_with_empty_axes=(0, 1))
    given = axes or c.flag()
    return [x, c.parameter(np.asarray(axes, np.int64)) if given else None], found


@generates("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax", "CumSum")
def along_axis(c):
    x = c.array(c.shape(1), c.kind())
    axis = c.axis(x.ndim)
    if c.operator == "CumSum":
        at = np.asarray(axis, c.one(np.int32, np.int64))
        return [x, c.parameter(at)], c.some(reverse=(0, 1), exclusive=(0, 1))
    if c.operator[:3] != "Arg":
        return [x], {"axis": axis}
    last = {"select_last_index": (0, 1)} if c.since >= 12 else {}
    return [x], c.some(axis=[axis], keepdims=(0, 1), **last)


def matrices(c):
    """The shapes of two matrices, vectors or batches that can be multiplied."""
    rows, columns, inside, batch = c.int(1, 4), c.int(1, 4), c.int(1, 4), c.pair(c.shape(0, 2))
    return c.one(
        ((inside,), (inside, columns)), ((*batch[0], rows, inside), (inside,)),
        ((inside,), (*batch[1], inside, columns)),
        *(((*batch[0], rows, inside), (*batch[1], inside, columns)),) * 3,
    )  # fmt: skip


@generates("MatMul", "MatMulInteger", "QLinearMatMul")
def product(c):
    one, other = matrices(c)
    if c.operator == "MatMul":
        return [c.array(one, c.kind()), c.array(other, c.kind())], {}
    kinds = [c.kind("T1"), c.kind("T2")]
    a, b = (c.array(shape, kind, -9, 9) for shape, kind in zip((one, other), kinds, strict=True))
    zeros = [c.array((), kind, 0, 2) for kind in kinds]
    if c.operator == "MatMulInteger":
        return [a, b, c.one(None, zeros[0]), c.one(None, zeros[1])], {}
    c.units, scales = 1, [c.scale() for _ in range(3)]  # DirectML has no others
    y = [scales[2] * 5, c.array((), c.kind("T3"), 0, 2)]
    return [a, scales[0], zeros[0], b, scales[1], zeros[1], *y], {}


@generates("Gemm")
def gemm(c):
    rows, columns, inside = c.ints(1, 4, 3)
    found = c.some(transA=(0, 1), transB=(0, 1))
    a = (inside, rows) if found.get("transA") else (rows, inside)
    b = (columns, inside) if found.get("transB") else (inside, columns)
    parts = [(rows, columns), (1, columns), (rows, 1), (columns,), (1,), ()]
    third = parts[c.int(0, 5)] if c.since >= 7 else parts[0]
    arrays = [c.array(shape, c.kind()) for shape in (a, b, third)]
    if not is_integer(arrays[0].dtype):
        found |= c.some(alpha=(0.5, 2.0), beta=(0.5, 0.0, 2.0))
    return arrays[: 2 if c.since >= 11 and c.flag(0.3) else 3], found


EQUATIONS = (
    "ij,jk->ik", "bij,bjk->bik", "ij->ji", "ii->i", "ij->", "ij,ij->", "i,j->ij", "bij,bkj->bik",
    "bhid,bhjd->bhij", "ij", "ij,jk", "abc,cd->abd", "...ij,...jk->...ik", "ij,j->i", "ijk->ik",
    "ij,jk,kl->il", "ab,cb->ac", "ba,bc->ac", "i,i->", "iij->ij", "ij , jk -> ki",
)  # fmt: skip


@generates("Einsum")
def einsum(c):
    equation, sizes = c.one(*EQUATIONS), {label: c.int(1, 4) for label in "abcdhijkl"}
    arrays = []
    for term in equation.replace(" ", "").split("->")[0].split(","):
        more = (2, 3) if "." in term else ()
        shape = [*more, *(sizes[label] for label in term.strip("."))]
        arrays.append(c.array(shape, c.kind()))
    return arrays, {"equation": equation}


# Quantization


@generates("QuantizeLinear", "DequantizeLinear")
def quantization(c):
    formals, shape = c.schema.inputs, list(c.shape(1))
    forward = c.operator == "QuantizeLinear"
    quantized = c.kind(c.schema.outputs[0].type_str if forward else formals[0].type_str)
    own, found = (), {}
    if c.since >= 13 and c.flag():
        axis = c.axis(len(shape))
        own, found = shape[axis : axis + 1 or None], {"axis": axis}
        if c.since >= 21 and c.flag():
            block = c.int(1, 2)
            own = list(shape)
            shape[axis] *= block
            found["block_size"] = block
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16)  # DirectML has no other scales
    kind = c.kind(formals[0].type_str, *(floats if forward else ()))
    scaled = formals[1].type_str
    scale_kind = c.kind(scaled, *floats) if scaled.startswith("T") else TensorProto.FLOAT
    scale = np.asarray(
        c.rng.choice([0.25, 0.5, 1, 2], own), oh.tensor_dtype_to_np_dtype(scale_kind)
    )
    dtype = np.dtype(oh.tensor_dtype_to_np_dtype(quantized))
    shifts = is_integer(dtype) and quantized != TensorProto.INT32
    zero = c.array(own, quantized, 0, 0.5) if shifts else np.zeros(own, dtype)
    needed = forward and quantized != TensorProto.UINT8
    inputs = [c.array(shape, kind, -5, 5), c.parameter(scale, 0.5)]
    return [*inputs, zero if needed or c.flag() else None], found


@generates("DynamicQuantizeLinear")
def dynamic_quantization(c):
    c.outputs, c.units = 3, 1
    return [c.array(c.shape(1), TensorProto.FLOAT, c.one(-3, 0, 1))], {}


# Images


@generates("Upsample", "Resize")
def resize(c):
    kind = c.kind("T1" if c.operator == "Resize" and c.since >= 11 else "T")
    if c.since < 7 and c.operator == "Upsample":
        return [c.array((1, 1, 2, 3), kind)], {"height_scale": 2.0, "width_scale": 1.5}
    shape = (*c.ints(1, 2, 2), *c.ints(2, 6, c.int(1, 2)))
    numbers = (1.0, 2.0, 1.5, 3.0) if c.operator == "Upsample" else (1.0, 2.0, 0.5, 1.5, 0.7, 2.3)
    scales = [1.0, 1.0, *(c.one(*numbers) for _ in shape[2:])]
    x, found = c.array(shape, kind), c.some(mode=("nearest", "linear"))
    if c.operator == "Upsample" and c.since < 9:
        return [x], {"scales": scales, **found}
    if c.since < 11 or c.operator == "Upsample":
        return [x, Parameter(np.float32(scales))], found
    places = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    places += ["tf_half_pixel_for_nn"] if c.since < 13 else []
    places += ["half_pixel_symmetric"] if c.since >= 19 else []
    found |= c.some(coordinate_transformation_mode=[*places, "tf_crop_and_resize"])
    if found.get("mode", "nearest") == "nearest":
        ways = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
        found |= c.some(nearest_mode=ways)
    elif c.since >= 18 and c.flag(0.3) and not is_integer(x.dtype):
        found["antialias"] = 1
    region = np.float32([0] * len(shape) + [1] * len(shape))
    if found.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        found |= c.some(extrapolation_value=(0.0, 2.0))
        region[2], region[len(shape) + 2], scales[2] = c.one(-0.1, 0.2), c.one(0.8, 1.1), 1.5
    if c.flag():
        return [x, Parameter(region), Parameter(np.float32(scales))], found
    sizes = [*shape[:2], *c.ints(2, 9, len(shape) - 2)]
    empty = np.zeros(0, np.float32)
    return [x, *map(Parameter, (region, empty, np.int64(sizes)))], found


@generates("AffineGrid", "GridSample")
def grids(c):
    n = c.int(1, 2)
    if c.operator == "AffineGrid":
        rank = c.int(2, 3)
        sizes = Parameter(np.int64([n, 1, *c.ints(2, 4, rank)]))
        return [c.array((n, rank, rank + 1), c.kind("T1")), sizes], c.some(align_corners=(0, 1))
    arrays = [c.array((n, 2, 4, 5), c.kind("T1")), c.array((n, 3, 2, 2), c.kind("T2"), -1, 1)]
    return arrays, c.some(align_corners=(0, 1), padding_mode=("zeros", "border", "reflection"))


@generates("ImageScaler", "Crop")
def old_images(c):
    if c.operator == "Crop":
        return [c.array((1, 2, 5, 6))], {"border": c.ints(0, 1, 4), **c.some(scale=[[2, 3]])}
    channels = c.one(1, 3)
    return [c.array((1, channels, 2, 3))], {"scale": 0.5, "bias": [1.0, 2.0, 3.0][:channels]}


# com.microsoft


def bytes_of(c, *shape):
    kind = c.one(TensorProto.INT8, TensorProto.UINT8)
    return c.array(shape, kind, -9, 9), [c.scale(), c.array((), kind, 0, 2)]


@generates("com.microsoft.QLinearAdd", "com.microsoft.QLinearConcat",
           "com.microsoft.QLinearSigmoid")  # fmt: skip
def quantized_elements(c):
    c.units, kind, shape = 1, c.one(TensorProto.INT8, TensorProto.UINT8), list(c.shape(1))
    y = [c.scale(), c.array((), kind, 0, 2)]

    def operand(sizes):
        return [c.array(sizes, kind, -9, 9), c.scale(), c.array((), kind, 0, 2)]

    if c.operator == "QLinearAdd":
        one, other = c.pair(shape)
        return [*operand(one), *operand(other), *y], {}
    if c.operator == "QLinearSigmoid":
        x, *others = operand(shape)
        return [x, *map(Parameter, (*others, np.float32(2**-8), y[1]))], {}
    axis, inputs = c.int(-len(shape), len(shape) - 1), [*map(Parameter, y)]
    for _ in range(c.int(1, 3)):
        shape[axis] = c.int(1, 3)
        x, *others = operand(shape)
        inputs += [x, *map(Parameter, others)]
    return inputs, {"axis": axis}


@generates("com.microsoft.QLinearAveragePool", "com.microsoft.QLinearGlobalAveragePool")
def quantized_pooling(c):
    c.units, kind = 1, c.one(TensorProto.INT8, TensorProto.UINT8)
    x, sizes = image(c, kind, 2, 2)
    found = c.some(channels_last=(0, 1))
    if "Global" not in c.operator:
        found |= window(c, sizes, False) | c.some(ceil_mode=(0, 1), count_include_pad=(0, 1))
    if found.get("channels_last"):
        x = np.moveaxis(x, 1, -1)
    zeros = [c.array((), kind, 0, 2) for _ in range(2)]
    return [x, c.scale(), zeros[0], c.scale(), zeros[1]], found


@generates("com.microsoft.SkipLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization")
def skipped(c):
    shape = tuple(c.ints(1, 4, 3))
    skip, vector = c.one(shape, (1, *shape[1:]), shape[1:]), shape[2:]
    beta = [] if "Simple" in c.operator else [c.one(None, c.array(vector))]
    small = np.float32(10.0 ** -c.int(0, 3))
    arrays = [c.array(own) * small for own in (shape, skip)]
    return [*arrays, c.array(vector), *beta, c.one(None, c.array(vector) * small)], c.some(
        epsilon=[1e-3]
    )


@generates("com.microsoft.MatMulNBits")
def in_blocks(c):
    bits, block, count, size = c.one(4, 8), c.one(16, 32), c.int(1, 3), c.int(1, 5)
    b = c.rng.integers(0, 256, (size, count, block * bits // 8)).astype(np.uint8)
    zeros = c.rng.integers(0, 256, size * -(-count * bits // 8)).astype(np.uint8)
    inputs = [
        c.array((*c.shape(1, 2), block * count)),
        Parameter(b),
        Parameter(c.scale(size * count)),
    ]
    found = {"K": block * count, "N": size, "bits": bits, "block_size": block}
    return [*inputs, Parameter(zeros) if c.flag() else None], found


@generates("com.microsoft.FusedMatMul")
def fused_product(c):
    rows, columns, inside = c.ints(1, 4, 3)
    found, batch = c.some(transA=(0, 1), transB=(0, 1), alpha=[0.5]), c.shape(0, 2)
    a = (inside, rows) if found.get("transA") else (rows, inside)
    b = (columns, inside) if found.get("transB") else (inside, columns)
    return [c.array((*batch, *a)), c.array((*batch, *b) if c.flag(0.7) else b)], found
