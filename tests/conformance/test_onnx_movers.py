"""The node tests of the `onnx` package whose operators move, repeat and fill."""

import numpy as np
import pytest
from onnx_nodes import check, node_cases

import anydml as dml

pytest.importorskip("onnx")

OPERATORS = (
    "Tile", "Expand", "Pad", "Slice", "ConstantOfShape", "ReverseSequence", "OneHot", "Resize",
    "Upsample",
)  # fmt: skip


def run(desc, *inputs):
    return [dml.Device("cpu").create_operator(desc).compile()(*inputs)]


def tile(inputs, attributes, count):
    x, repeats = inputs
    return [dml.tile(x, repeats)]


def expand(inputs, attributes, count):
    """Sizes of 1 repeated, on both sides."""
    x, shape = inputs
    expected = np.broadcast_shapes(x.shape, tuple(shape))
    sizes = (1,) * (len(expected) - x.ndim) + x.shape
    return [dml.tile(x, [big // small for big, small in zip(expected, sizes, strict=True)])]


def pad(inputs, attributes, count):
    x, pads, *more = inputs
    mode = attributes["mode"].decode()
    axes = more[1] if len(more) > 1 else range(x.ndim)
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(axes):
        widths[axis] = (int(pads[i]), int(pads[i + len(axes)]))
    return [dml.pad(x, widths, mode, more[0] if more else 0)]


def slice_(inputs, attributes, count):
    """By SLICE where it goes forwards, by SLICE1 otherwise."""
    x, starts, ends, *more = inputs
    axes = more[0] if more else range(len(starts))
    steps = more[1] if len(more) > 1 else (1,) * len(starts)
    taken = [range(size) for size in x.shape]
    for axis, *limits in zip(axes, starts, ends, steps, strict=True):
        taken[axis] = taken[axis][slice(*map(int, limits))]
    shape = tuple(map(len, taken))
    if 0 in shape:  # no descriptor has that
        return [dml.slice_window(x, (0,) * x.ndim, shape)]
    kind = dml.DataType.from_numpy(x.dtype)
    tensors = {"input_tensor": dml.TensorDesc.from_array(x),
               "output_tensor": dml.TensorDesc(kind, shape)}  # fmt: skip
    strides = [places.step for places in taken]
    if min(strides) > 0:
        offsets = [places[0] for places in taken]
        return run(dml.Slice(**tensors, offsets=offsets, sizes=shape, strides=strides), x)
    return run(
        dml.Slice1(
            **tensors,
            input_window_offsets=[min(places) for places in taken],
            input_window_sizes=[max(places) - min(places) + 1 for places in taken],
            input_window_strides=strides,
        ),
        x,
    )


def constant_of_shape(inputs, attributes, count):
    from onnx.numpy_helper import to_array

    value = to_array(attributes["value"])
    if 0 in inputs[0]:
        return [np.zeros(inputs[0], value.dtype)]
    kind = dml.DataType.from_numpy(value.dtype)
    output = dml.TensorDesc(kind, inputs[0])
    return run(
        dml.FillValueConstant(output_tensor=output, value_data_type=kind, value=value.item())
    )


def reverse_sequence(inputs, attributes, count):
    x, lengths = inputs
    batch, axis = attributes.get("batch_axis", 1), attributes.get("time_axis", 0)
    shape = [1] * x.ndim
    shape[batch] = x.shape[batch]
    raw = x if x.dtype.isbuiltin == 1 else x.view(f"u{x.itemsize}")  # bfloat16
    return [dml.reverse_subsequences(raw, lengths.reshape(shape), axis=axis).view(x.dtype)]


def one_hot(inputs, attributes, count):
    """Whole numbers as integers, which ONNX also takes as floats."""
    indices, depth, values = inputs
    axis = attributes.get("axis", -1)
    return [dml.one_hot(indices.astype(np.int64), int(depth.item()), values, axis=axis)]


def upsample(inputs, attributes, count):
    """Whole multiples of height and width, by the middles of elements."""
    x, sizes = inputs[0], inputs[-1]
    axes = attributes.get("axes", range(x.ndim))
    scales = [1] * x.ndim
    for axis, size in zip(axes, sizes, strict=True):
        scales[axis] = int(size) // (x.shape[axis] if sizes.dtype == np.int64 else 1)
    mode = {"nearest": "NEAREST_NEIGHBOR"}.get(attributes["mode"].decode(), "LINEAR")
    shape = [size * scale for size, scale in zip(x.shape, scales, strict=True)]
    desc = dml.Upsample2D(
        input_tensor=dml.TensorDesc.from_array(x),
        output_tensor=dml.TensorDesc(dml.DataType.from_numpy(x.dtype), shape),
        scale_size=dml.Size2D(scales[3], scales[2]),
        interpolation_mode=mode,
    )
    return run(desc, x)


RESIZES = {
    "test_resize_upsample_scales_nearest", "test_resize_upsample_scales_linear",
    "test_resize_upsample_scales_nearest_axes_2_3", "test_resize_upsample_scales_nearest_axes_3_2",
    "test_upsample_nearest",
}  # fmt: skip
"""Those that UPSAMPLE_2D has: by whole numbers, nearest or linear, by the middles of elements."""

ADAPTERS = dict(
    zip(
        OPERATORS,
        (
            tile,
            expand,
            pad,
            slice_,
            constant_of_shape,
            reverse_sequence,
            one_hot,
            upsample,
            upsample,
        ),
        strict=True,
    )
)
CASES = {
    case.name: case
    for case in node_cases(OPERATORS)
    if case.model.graph.node[0].op_type not in ("Resize", "Upsample") or case.name in RESIZES
}


def test_there_are_cases_for_every_operator():
    assert {case.model.graph.node[0].op_type for case in CASES.values()} == set(OPERATORS)
    assert len(CASES) >= 20


@pytest.mark.parametrize("name", CASES)
def test_node(name):
    case = CASES[name]
    check(case, ADAPTERS[case.model.graph.node[0].op_type])
