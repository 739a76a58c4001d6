"""How nodes of ONNX's operators become descriptors: class, operands and fields.

Operands are broadcast as ONNX broadcasts them, with strides of 0.
"""

import numpy as np
import pytest

import anydml as dml


def unary(kind, **fixed):
    def run(inputs, attributes):
        return kind, inputs[:1], {**fixed, **attributes}

    return run


def binary(kind):
    return lambda inputs, attributes: (kind, np.broadcast_arrays(*inputs), attributes)


def clip(inputs, attributes):
    x = inputs[0]
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    arguments = [*inputs[1:], None, None][:2]
    bounds = [
        minimum if bound is None else bound.item()
        for bound, minimum in zip(arguments, (limits.min, limits.max), strict=True)
    ]
    low, high = (float(b) if x.dtype.kind == "f" else int(b) for b in bounds)
    data_type = dml.DataType.from_numpy(x.dtype)
    return dml.ElementWiseClip1, [x], {"min_max_data_type": data_type, "min": low, "max": high}


def leaky_relu(inputs, attributes):
    return dml.ActivationLeakyRelu, inputs, {"alpha": attributes.get("alpha", 0.01)}


def reduce_axis(kind):
    def run(inputs, attributes):
        rank = inputs[0].ndim
        return kind, inputs, {"axes": (attributes.get("axis", -1) % rank,)}

    return run


def reduce(function):
    def run(inputs, attributes):
        x, arguments = inputs[0], attributes.get("axes", [])
        if len(inputs) > 1 and inputs[1] is not None:
            arguments = inputs[1].tolist()
        axes = [axis % x.ndim for axis in arguments]
        if not axes and not attributes.get("noop_with_empty_axes"):
            axes = range(x.ndim)
        return dml.Reduce, [x], {"function": function, "axes": tuple(axes)}

    return run


def position(kind):
    def run(inputs, attributes):
        direction = "DECREASING" if attributes.get("select_last_index") else "INCREASING"
        axis = attributes.get("axis", 0) % inputs[0].ndim
        return kind, inputs, {"axes": (axis,), "axis_direction": direction}

    return run


def running(kind, exclusive):
    def run(inputs, attributes):
        x, axis = inputs
        return kind, [x], {
            "axis": int(axis.item()) % x.ndim,
            "axis_direction": "DECREASING" if attributes.get("reverse") else "INCREASING",
            exclusive: bool(attributes.get("exclusive")),
        }  # fmt: skip

    return run


def per_channel(values, x):
    return values.reshape(-1, *[1] * (x.ndim - 2))[None]


def batch_normalization(inputs, attributes):
    x, scale, bias, mean, variance = inputs
    others = [per_channel(values, x) for values in (mean, variance, scale, bias)]
    arguments = {"spatial": True, "epsilon": attributes.get("epsilon", 1e-5)}
    return dml.BatchNormalization, [x, *others], arguments


def mean_variance(inputs, axes, use_mean=True, **arguments):
    arguments = {"axes": tuple(axes), "use_mean": use_mean, "use_variance": True, **arguments}
    return dml.MeanVarianceNormalization2, inputs, arguments


def instance_normalization(inputs, attributes):
    x, *others = inputs
    operands = [x, *(per_channel(values, x) for values in others)]
    return mean_variance(operands, range(2, x.ndim), epsilon=attributes.get("epsilon", 1e-5))


def layer_normalization(use_mean):
    def run(inputs, attributes):
        x, *others = inputs
        axes = range(attributes.get("axis", -1) % x.ndim, x.ndim)
        padded = [y.reshape((1,) * (x.ndim - y.ndim) + y.shape) for y in others]
        operands = [x, *padded, None][:3]
        return mean_variance(operands, axes, use_mean, epsilon=attributes.get("epsilon", 1e-5))

    return run


def mvn(inputs, attributes):
    axes = attributes.get("axes", (0, 2, 3))
    return mean_variance([*inputs, None, None], axes, epsilon=1e-18)


def lp_normalization(inputs, attributes):
    axis = attributes.get("axis", -1) % inputs[0].ndim
    return (
        dml.LpNormalization,
        inputs,
        {"axis": axis, "epsilon": 1e-30, "p": attributes.get("p", 2)},
    )


def lrn(inputs, attributes):
    arguments = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0, **attributes}
    size = arguments.pop("size")
    fields = {"cross_channel": True, "local_size": size, **arguments}
    return dml.LocalResponseNormalization, inputs, fields


def gemm(inputs, attributes):
    a, b, c = [*inputs, None][:3]
    trans = {name: attributes.get(key, 0) for name, key in (("a", "transA"), ("b", "transB"))}
    if c is not None:
        rows, columns = a.shape[trans["a"]], b.shape[1 - trans["b"]]
        c = np.broadcast_to(c, (rows, columns))
    arguments = {f"trans_{name}": dml.MatrixTransform(value) for name, value in trans.items()}
    arguments |= {name: attributes.get(name, 1.0) for name in ("alpha", "beta")}
    return dml.Gemm, [a, b, c], arguments


def matmul(inputs, attributes):
    a, b = inputs
    a = a if a.ndim > 1 else a[None]
    b = b if b.ndim > 1 else b[:, None]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    pair = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b)]
    arguments = {"trans_a": "NONE", "trans_b": "NONE", "alpha": 1.0, "beta": 0.0}
    return dml.Gemm, pair, arguments


def spatial(attributes, sizes, window, backward=False):
    """ONNX's attributes of a convolution as DirectML's."""
    rank = len(window)
    strides = attributes.get("strides", [1] * rank)
    dilations = attributes.get("dilations", [1] * rank)
    more = attributes.get("output_padding", [0] * rank)
    spans = [(n - 1) * step + 1 for n, step in zip(window, dilations, strict=True)]
    start, end = np.reshape(attributes.get("pads", [0] * 2 * rank), (2, rank)).tolist()
    auto = attributes.get("auto_pad", b"NOTSET").decode()
    if backward:
        full = [
            (n - 1) * s + span + m
            for n, s, span, m in zip(sizes, strides, spans, more, strict=True)
        ]
        expected = attributes.get(
            "output_shape", [n * s for n, s in zip(sizes, strides, strict=True)]
        )
        excess = [n - m for n, m in zip(full, expected, strict=True)]
    else:
        counts = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
        excess = [
            max((m - 1) * s + span - n, 0)
            for n, m, s, span in zip(sizes, counts, strides, spans, strict=True)
        ]
    if auto.startswith("SAME") or "output_shape" in attributes:
        less, rest = [n // 2 for n in excess], [n - n // 2 for n in excess]
        start, end = (less, rest) if auto != "SAME_LOWER" else (rest, less)
        more = [m + max(-n, 0) for m, n in zip(more, excess, strict=True)]
        start, end = ([max(n, 0) for n in side] for side in (start, end))
    return {
        "strides": strides, "dilations": dilations, "start_padding": start, "end_padding": end,
        "output_padding": more,
    }  # fmt: skip


def convolution(direction):
    def run(inputs, attributes):
        x, w, bias = [*inputs, None][:3]
        arguments = spatial(attributes, x.shape[2:], w.shape[2:], direction == "BACKWARD")
        arguments |= {"mode": "CROSS_CORRELATION", "direction": direction}
        arguments |= {"group_count": attributes.get("group", 1)}
        if bias is not None:
            bias = bias.reshape(1, -1, *(1 for _ in x.shape[2:]))
        return dml.Convolution, [x, w, bias], arguments

    return run


def with_defaults(kind, **defaults):
    return lambda inputs, attributes: (kind, inputs, {**defaults, **attributes})


def modulus(inputs, attributes):
    kind = (
        dml.ElementWiseModulusTruncate if attributes.pop("fmod", 0) else dml.ElementWiseModulusFloor
    )
    return kind, np.broadcast_arrays(*inputs), {}


def is_infinity(inputs, attributes):
    positive, negative = (attributes.get(f"detect_{s}", 1) for s in ("positive", "negative"))
    mode = "EITHER" if positive and negative else "POSITIVE" if positive else "NEGATIVE"
    return dml.ElementWiseIsInfinity, inputs, {"infinity_mode": mode}


def shift(inputs, attributes):
    left = attributes["direction"] == b"LEFT"
    kind = dml.ElementWiseBitShiftLeft if left else dml.ElementWiseBitShiftRight
    return kind, np.broadcast_arrays(*inputs), {}


def linear(kind):
    def run(inputs, attributes):
        x, scale, *zero_points = inputs
        axis = attributes.get("axis", 1)
        if attributes.get("block_size"):
            pytest.skip("blocks")

        def spread(a):
            a = a.reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
            return np.broadcast_to(a, x.shape)

        return kind, [x, *(spread(a) for a in (scale, *zero_points))], {}

    return run


def pooling(kind, **fixed):
    def run(inputs, attributes):
        (x,) = inputs
        window = attributes.get("kernel_shape", x.shape[2:])
        arguments = spatial(attributes, x.shape[2:], window)
        del arguments["output_padding"]
        for i, n in enumerate(x.shape[2:] if attributes.get("ceil_mode") else ()):
            stride, start = arguments["strides"][i], arguments["start_padding"][i]
            span = (window[i] - 1) * arguments["dilations"][i] + 1
            last = -(-(n + start + arguments["end_padding"][i] - span) // stride)
            last -= last * stride >= n + start  # a window that would meet only padding
            arguments["end_padding"][i] = max(
                arguments["end_padding"][i], last * stride + span - n - start
            )
        arguments |= {
            name: type(value)(attributes.get(onnx, value)) for name, (onnx, value) in fixed.items()
        }
        while x.ndim < 4:  # with a spatial dimension of 1 in front
            x = x[:, :, None]
            window = [1, *window]
            for name in ("strides", "dilations", "start_padding", "end_padding"):
                arguments[name] = [int(name in ("strides", "dilations")), *arguments[name]]
        return kind, [x], {**arguments, "window_size": window}

    return run


DEFAULTS = {
    dml.Rnn: ("Tanh",),
    dml.Gru: ("Sigmoid", "Tanh"),
    dml.Lstm: ("Sigmoid", "Tanh", "Tanh"),
}


def layer(kind, more=lambda attributes: {}):
    """A recurrent layer; with layout 1 the batch comes first."""

    def run(inputs, attributes):
        arguments = dict(zip(("x", "w", "r", "b", "lengths", "h", "c", "p"), inputs, strict=False))
        batch_first = attributes.get("layout", 0)
        states = [arguments.get(name) for name in "hc"]
        if batch_first:
            arguments["x"] = arguments["x"].swapaxes(0, 1)
            states = [None if y is None else y.swapaxes(0, 1) for y in states]
        operands = [arguments["x"], arguments["w"], arguments["r"], arguments.get("b")]
        shapes = [(0,), (0,), (0,), (0, 1)]
        operands = [y if y is None else np.expand_dims(y, a)
                    for y, a in zip(operands, shapes, strict=True)]  # fmt: skip
        lengths, peephole = arguments.get("lengths"), arguments.get("p")
        operands += [
            None if y is None else y[None] for y in states[: (kind is dml.Lstm and 2) or 1]
        ]
        operands.append(None if lengths is None else lengths.astype("u4").reshape(1, 1, 1, -1))
        if kind is dml.Lstm:
            operands.append(None if peephole is None else peephole[None, None])
        direction = attributes.get("direction", b"forward").decode()
        names = [name.decode() for name in attributes.get("activations", [])] or DEFAULTS[kind] * 2
        count = len(DEFAULTS[kind]) * (2 if direction == "bidirectional" else 1)
        directions = {"forward": "FORWARD", "reverse": "BACKWARD", "bidirectional": "BIDIRECTIONAL"}
        return kind, operands, {
            "activation_descs": [getattr(dml, f"Activation{n}")() for n in names[:count]],
            "direction": directions[direction],
            **more(attributes),
        }  # fmt: skip

    return run


def lstm_attributes(attributes):
    return {
        "clip_threshold": attributes.get("clip", 0.0),
        "use_clip_threshold": "clip" in attributes,
        "couple_input_forget": bool(attributes.get("input_forget")),
    }


def gru_attributes(attributes):
    return {"linear_before_reset": bool(attributes.get("linear_before_reset"))}
