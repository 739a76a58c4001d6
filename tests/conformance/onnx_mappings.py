"""Nodes of ONNX as computed operators: those that rearrange, resample, quantize and train."""

import numpy as np
import pytest
from onnx_operators import spatial

import anydml as dml


def depth_space(kind):
    orders = {b"DCR": "DEPTH_COLUMN_ROW", b"CRD": "COLUMN_ROW_DEPTH"}

    def run(inputs, attributes):
        order = orders[attributes.get("mode", b"DCR")]
        return kind, inputs, {"block_size": attributes["blocksize"], "order": order}

    return run


def resize(inputs, attributes):
    x, _, scales, sizes = [*inputs, None, None, None][:4]
    mode = attributes.get("mode", b"nearest").decode()
    places = attributes.get("coordinate_transformation_mode", b"half_pixel").decode()
    if mode == "cubic" or places == "tf_crop_and_resize" or attributes.get("exclude_outside"):
        pytest.skip("DirectML has no such mode")
    axes = [*attributes.get("axes", range(x.ndim))]
    if sizes is not None:
        ratios = [n / x.shape[axis] for n, axis in zip(sizes, axes, strict=True)]
        policy = attributes.get("keep_aspect_ratio_policy", b"stretch")
        if policy != b"stretch":
            ratio = (min if policy == b"not_larger" else max)(ratios)
            ratios = [ratio] * len(axes)
            sizes = [int(np.floor(x.shape[axis] * ratio + 0.5)) for axis in axes]
    else:
        ratios = [float(s) for s in scales]
        sizes = [int(n * s) for n, s in zip((x.shape[axis] for axis in axes), ratios, strict=True)]
    arguments = {"scales": [1.0] * x.ndim}
    new_sizes, begin_values, ends = [*x.shape], [0.0] * x.ndim, [0.0] * x.ndim
    for axis, size, ratio in zip(axes, sizes, ratios, strict=True):
        new_sizes[axis] = int(size)
        n, length = x.shape[axis], x.shape[axis] * ratio
        scale = ratio
        if places == "align_corners":
            scale = (length - 1) / (n - 1) if n > 1 and length > 1 else 1.0
        half = places in ("half_pixel", "half_pixel_symmetric") or (
            places == "pytorch_half_pixel" and length > 1
        )
        begin_values[axis], ends[axis] = (0.5, -0.5) if half else (0.0, 0.0)
        if places == "half_pixel_symmetric":
            begin_values[axis] += n / 2 * (int(size) / length - 1)
        arguments["scales"][axis] = scale
    # Rounding half way and half a place further is rounding to the nearest.
    nearest = attributes.get("nearest_mode", b"round_prefer_floor").decode()
    direction = "INCREASING" if nearest in ("round_prefer_floor", "ceil") else "DECREASING"
    shift = {"round_prefer_floor": 0.5, "round_prefer_ceil": -0.5}.get(nearest, 0.0)
    linear = mode == "linear"
    return dml.Resample3, [x], {
        **arguments,
        "output_tensor": dml.TensorDesc(dml.DataType.from_numpy(x.dtype), new_sizes),
        "input_pixel_offsets": [b if linear else b + shift for b in begin_values],
        "output_pixel_offsets": ends,
        "interpolation_mode": "LINEAR" if linear else "NEAREST_NEIGHBOR",
        "rounding_direction": direction,
        "antialiased": bool(attributes.get("antialias")),
    }  # fmt: skip


def parameter(values, rank, axis):
    """A scale or zero point as DirectML has it: of all dimensions, along one of them."""
    if values is None:
        return None
    count = values.size
    return values.reshape([count if i == axis % rank else 1 for i in range(rank)])


def integer_convolution(inputs, attributes):
    x, w, x_zero, w_zero = [*inputs, None, None][:4]
    arguments = spatial(attributes, x.shape[2:], w.shape[2:])
    del arguments["output_padding"]
    arguments["group_count"] = attributes.get("group", 1)
    zeros = [parameter(zero, x.ndim, 1) for zero in (x_zero, w_zero)]
    return dml.ConvolutionInteger, [x, zeros[0], w, zeros[1]], arguments


def quantized_convolution(inputs, attributes):
    x, x_scale, x_zero, w, w_scale, w_zero, scale, zero, bias = [*inputs, None][:9]
    arguments = spatial(attributes, x.shape[2:], w.shape[2:])
    del arguments["output_padding"]
    arguments["group_count"] = attributes.get("group", 1)
    x_scale, x_zero, w_scale, w_zero, scale, zero, bias = (
        parameter(y, x.ndim, 1) for y in (x_scale, x_zero, w_scale, w_zero, scale, zero, bias)
    )
    operands = [x, x_scale, x_zero, w, w_scale, w_zero, bias, scale, zero]
    return dml.QuantizedLinearConvolution, operands, arguments


def integer_product(inputs, attributes):
    a, b, a_zero, b_zero = [*inputs, None, None][:4]
    zeros = parameter(a_zero, a.ndim, -2), parameter(b_zero, b.ndim, -1)
    return dml.MatrixMultiplyInteger, [a, zeros[0], b, zeros[1]], {}


def quantized_product(inputs, attributes):
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = inputs
    a_scale, a_zero, scale, zero = (
        parameter(y, a.ndim, -2) for y in (a_scale, a_zero, scale, zero)
    )
    b_scale, b_zero = (parameter(y, b.ndim, -1) for y in (b_scale, b_zero))
    operands = [a, a_scale, a_zero, b, b_scale, b_zero, scale, zero]
    return dml.QuantizedLinearMatrixMultiply, operands, {}


def unpool(inputs, attributes):
    x, indices, *sizes = inputs
    if sizes:
        output_size = sizes[0]
    else:
        strides = attributes.get("strides", [1] * (x.ndim - 2))
        window = zip(x.shape[2:], strides, attributes["kernel_shape"], strict=True)
        output_size = (*x.shape[:2], *((n - 1) * stride + size for n, stride, size in window))
    output = dml.TensorDesc(dml.DataType.from_numpy(x.dtype), [int(n) for n in output_size])
    return dml.MaxUnpooling, [x, indices.astype("u8")], {"output_tensor": output}


def regions(inputs, attributes):
    x, corners, batches = inputs
    size = [attributes.get(f"output_{name}", 1) for name in ("height", "width")]
    samples = attributes.get("sampling_ratio", 0)
    half = attributes.get("coordinate_transformation_mode", b"half_pixel") == b"half_pixel"
    scale = attributes.get("spatial_scale", 1.0)
    functions = {b"avg": "AVERAGE", b"max": "MAX"}
    return dml.RoiAlign1, [x, corners, batches.astype("u8")], {
        "output_tensor": dml.TensorDesc("FLOAT32", (len(corners), x.shape[1], *size)),
        "reduction_function": functions[attributes.get("mode", b"avg")],
        "interpolation_mode": "LINEAR", "spatial_scale_x": scale, "spatial_scale_y": scale,
        "input_pixel_offset": 0.5 if half else 0.0, "output_pixel_offset": -0.5,
        "out_of_bounds_input_value": 0.0, "minimum_samples_per_output": samples or 1,
        "maximum_samples_per_output": samples or 2**32 - 1, "align_regions_to_corners": False,
    }  # fmt: skip


def columns(inputs, attributes):
    x, image, block = inputs
    rank = len(block)
    channels = x.shape[1] // np.prod(block)
    start, end = np.reshape(attributes.get("pads", [0] * 2 * rank), (2, rank)).tolist()
    return dml.Fold, [x], {
        "output_tensor": dml.TensorDesc("FLOAT32", (len(x), int(channels), *image.tolist())),
        "window_sizes": block.tolist(), "strides": attributes.get("strides", [1] * rank),
        "dilations": attributes.get("dilations", [1] * rank), "start_padding": start,
        "end_padding": end,
    }  # fmt: skip


FURTHER = {
    "RoiAlign": regions,
    "Col2Im": columns,
    "MaxUnpool": unpool,
    "DepthToSpace": depth_space(dml.DepthToSpace1),
    "SpaceToDepth": depth_space(dml.SpaceToDepth1),
    "Resize": resize,
    "DynamicQuantizeLinear": lambda inputs, attributes: (dml.DynamicQuantizeLinear, inputs, {}),
    "MatMulInteger": integer_product,
    "QLinearMatMul": quantized_product,
}

FURTHER_DIFFERENT = {
    "test_roialign_mode_max": "the largest weighted element; the page has the largest sample",
    "test_maxunpool_export_with_output_shape": "indices into the result before it is padded",
    **dict.fromkeys(
        (
            "test_resize_downsample_scales_linear_antialias",
            "test_resize_downsample_sizes_linear_antialias",
        ),
        "beyond an edge these repeat the edge; here such elements have weight 0, as in PyTorch",
    ),
}
