"""Computed operators that break rules of their pages: every violation, and nothing else."""

import dataclasses

import numpy as np
import pytest

import anydml as dml
from support.examples import page_example

DEVICE = dml.Device("cpu")


def tensor(*sizes, data_type="FLOAT32"):
    return dml.TensorDesc(data_type, sizes)


def gemm(a, b, c=None, out=(2, 2), **fields):
    types = {name: fields.pop(name, "FLOAT32") for name in ("a_type", "b_type", "c_type")}
    return dml.Gemm(
        a_tensor=tensor(*a, data_type=types["a_type"]),
        b_tensor=tensor(*b, data_type=types["b_type"]),
        c_tensor=c and tensor(*c, data_type=types["c_type"]),
        output_tensor=tensor(*out),
        **{"trans_a": "NONE", "trans_b": "NONE", "alpha": 1.0, "beta": 1.0, **fields},
    )


def convolution(x=(1, 4, 5, 5), w=(2, 4, 3, 3), bias=None, out=(1, 2, 3, 3), **fields):
    plain = {"strides": (1, 1), "dilations": (1, 1), "start_padding": (0, 0),
             "end_padding": (0, 0), "output_padding": (0, 0), "group_count": 1,
             "mode": "CROSS_CORRELATION", "direction": "FORWARD"}  # fmt: skip
    return dml.Convolution(
        input_tensor=tensor(*x), filter_tensor=tensor(*w), bias_tensor=bias and tensor(*bias),
        output_tensor=tensor(*out), **{**plain, **fields},
    )  # fmt: skip


def pooling(kind=dml.MaxPooling2, x=(1, 1, 5, 5), out=(1, 1, 4, 4), **fields):
    plain = {"strides": (1, 1), "window_size": (2, 2), "start_padding": (0, 0),
             "end_padding": (0, 0), "dilations": (1, 1)}  # fmt: skip
    arguments = {name: value for name, value in plain.items() if name in kind.__dataclass_fields__}
    return kind(input_tensor=tensor(*x), output_tensor=tensor(*out), **{**arguments, **fields})


def resample(x=(1, 5), out=(1, 9), **fields):
    plain = {"scales": (1.0, 2.0), "input_pixel_offsets": (0.5, 0.5),
             "output_pixel_offsets": (-0.5, -0.5), "interpolation_mode": "LINEAR"}  # fmt: skip
    return dml.Resample1(input_tensor=tensor(*x), output_tensor=tensor(*out), **{**plain, **fields})


def regions(kind=dml.RoiAlign, out=(2, 3, 2, 2), roi=(2, 4), batches=(2,), **changes):
    example = page_example(kind.NAME)
    fields = {info.attribute: getattr(example, info.attribute) for info in kind.fields()}
    fields["roi_tensor"] = tensor(*roi)
    if kind is dml.RoiPooling:
        return kind(**{**fields, "output_tensor": tensor(*out), **changes})
    fields["batch_indices_tensor"] = tensor(*batches, data_type="UINT32")
    if kind is dml.RoiAlignGrad:
        fields |= {"input_gradient_tensor": tensor(*out),
                   "output_gradient_tensor": tensor(1, 3, 4, 4)}  # fmt: skip
    else:
        fields |= {"input_tensor": tensor(1, 3, 4, 4), "output_tensor": tensor(*out)}
    return kind(**{**fields, **changes})


def blocks(kind=dml.Fold, x=(1, 8, 9), out=(1, 2, 4, 4), **fields):
    plain = {"window_sizes": (2, 2), "strides": (1, 1), "dilations": (1, 1),
             "start_padding": (0, 0), "end_padding": (0, 0)}  # fmt: skip
    return kind(input_tensor=tensor(*x), output_tensor=tensor(*out), **{**plain, **fields})


def product(zero=(1, 1), scale=(1, 1), zero_type="INT8"):
    return dml.QuantizedLinearMatrixMultiply(
        a_tensor=tensor(2, 3, data_type="INT8"), a_scale_tensor=tensor(*scale),
        a_zero_point_tensor=tensor(*zero, data_type=zero_type),
        b_tensor=tensor(3, 4, data_type="UINT8"), b_scale_tensor=tensor(1, 4),
        output_scale_tensor=tensor(2, 1), output_tensor=tensor(2, 4, data_type="UINT8"),
    )  # fmt: skip


def slice_gradient(dy=(2,), out=(6,), offset=1, size=4, stride=2):
    return dml.SliceGrad(
        input_gradient_tensor=tensor(*dy), output_gradient_tensor=tensor(*out),
        input_window_offsets=(offset,), input_window_sizes=(size,), input_window_strides=(stride,),
    )  # fmt: skip


def mean_gradient(dy=(1, 1, 2, 2), out=(1, 1, 5, 5)):
    return dml.AveragePoolingGrad(
        input_gradient_tensor=tensor(*dy), output_gradient_tensor=tensor(*out), strides=(2, 2),
        window_size=(2, 2), start_padding=(0, 0), end_padding=(0, 0), include_padding=True,
    )  # fmt: skip


def to_space(block, channels=8):
    return dml.DepthToSpace(
        input_tensor=tensor(1, channels, 2, 3), output_tensor=tensor(1, 2, 4, 6), block_size=block
    )


MOST = 2**32 - 1

BROKEN = [
    (
        convolution(strides=(0, 1), dilations=(1, 0)),
        ["Strides[0]: expected at least 1, got 0", "Dilations[1]: expected at least 1, got 0"],
    ),
    (
        convolution(start_padding=(0,), end_padding=(1, 2, 3)),
        ["StartPadding: expected 2 values (InputTensor.DimensionCount - 2), got 1",
         "EndPadding: expected 2 values (InputTensor.DimensionCount - 2), got 3"],
    ),
    (
        convolution(dimension_count=3),
        ["DimensionCount: expected 2 (the length of Strides), got 3"],
    ),
    (
        convolution(group_count=3),
        ["GroupCount: expected a divisor of 4 (InputTensor.Sizes[1]), got 3",
         "GroupCount: expected a divisor of 2 (FilterTensor.Sizes[0]), got 3"],
    ),
    (convolution(group_count=0), ["GroupCount: expected at least 1, got 0"]),
    (
        convolution(group_count=2),
        ["FilterTensor.Sizes[1]: expected 2 (InputTensor.Sizes[1] / GroupCount), got 4"],
    ),
    (
        convolution(w=(3, 4, 3, 3), direction="BACKWARD"),
        ["FilterTensor.Sizes[0]: expected 4 (InputTensor.Sizes[1]), got 3",
         *(f"OutputTensor.Sizes[{i}]: expected {size} (the inputs imply {{1, 4, 7, 7}}), got {got}"
           for i, size, got in ((1, 4, 2), (2, 7, 3), (3, 7, 3)))],
    ),
    (
        convolution(w=(4, 1, 3, 3), direction="BACKWARD", group_count=2, start_padding=(7, 0),
                    out=(1, 2, 7, 7)),
        ["StartPadding[0]: expected less than 7 together with EndPadding[0] (the unpadded "
         "size), got 7"],
    ),
    (
        convolution(w=(2, 4, 6, 3), dilations=(1, 3), end_padding=(0, 1)),
        [f"FilterTensor.Sizes[{axis}]: expected at most {n} elements including dilation (the "
         f"padded input's size), got {n + 1}" for axis, n in ((2, 5), (3, 6))],
    ),
    (
        convolution(bias=(2, 3, 1, 1)),
        ["BiasTensor.Sizes[0]: expected 1, got 2",
         "BiasTensor.Sizes[1]: expected 2 (the output's channels), got 3"],
    ),
    (
        convolution(bias=(1, 2, 1)),
        ["BiasTensor.DimensionCount: expected 4 (InputTensor.DimensionCount), got 3"],
    ),
    (
        convolution(start_padding=(MOST, 0), end_padding=(MOST, 0)),
        [f"OutputTensor.Sizes[2]: expected at most {MOST}, got {2 * MOST + 3}"],
    ),
    (
        convolution(start_padding=(-1, 2**32), strides=(-1, 1)),
        ["Strides[0]: expected 0..2^32 - 1 (UINT), got -1",
         "StartPadding[0]: expected 0..2^32 - 1 (UINT), got -1",
         "StartPadding[1]: expected 0..2^32 - 1 (UINT), got 4294967296"],
    ),
    (
        pooling(strides=(0, 0), window_size=(0, 1), dilations=(1, 0)),
        ["Strides[0]: expected at least 1, got 0", "Strides[1]: expected at least 1, got 0",
         "WindowSize[0]: expected at least 1, got 0", "Dilations[1]: expected at least 1, got 0"],
    ),
    (
        pooling(window_size=(6, 3), dilations=(1, 3)),
        ["WindowSize[0]: expected at most 5 elements including dilation (the padded input's size), "
         "got 6",
         "WindowSize[1]: expected at most 5 elements including dilation (the padded input's size), "
         "got 7"],
    ),
    (
        pooling(x=(1, 1, 5, 5, 5), out=(1, 1, 4, 4, 4), window_size=(2, 2, 2)),
        ["Strides: expected 3 values (InputTensor.DimensionCount - 2), got 2",
         "Dilations: expected 3 values (InputTensor.DimensionCount - 2), got 2",
         "StartPadding: expected 3 values (InputTensor.DimensionCount - 2), got 2",
         "EndPadding: expected 3 values (InputTensor.DimensionCount - 2), got 2",
         "DimensionCount: expected 3 (InputTensor.DimensionCount - 2), got 2"],
    ),
    (
        pooling(x=(1, 5, 5), out=(1, 4, 4)),
        [f"{name}Tensor.DimensionCount: expected 4..5 at feature level 6_4 (3 at no level), got 3"
         for name in ("Input", "Output")],
    ),
    (
        pooling(output_indices_tensor=tensor(1, 1, 4, 5, data_type="INT32")),
        ["OutputIndicesTensor.DataType: expected one of UINT64, UINT32 at feature level 6_4 "
         "(INT32 at no level), got INT32",
         "OutputIndicesTensor.Sizes[3]: expected 4 (the inputs imply {1, 1, 4, 4}), got 5"],
    ),
    (pooling(dml.LpPooling, p=0), ["P: expected at least 1, got 0"]),
    (
        pooling(start_padding=(MOST, 0)),
        [f"OutputTensor.Sizes[2]: expected at most {MOST}, got {MOST + 4}"],
    ),
    (
        convolution(strides=(MOST, MOST), start_padding=(MOST, 0), out=(1, 2, 2, 1)),
        [],
    ),
    (gemm((2, 3), (4, 2)), ["BTensor.Sizes[0]: expected 3 (ATensor.Sizes[1]), got 4"]),
    (
        gemm((2, 3), (3, 2), trans_a="TRANSPOSE", trans_b="TRANSPOSE"),
        [f"OutputTensor.Sizes[{i}]: expected 3 ({x}Tensor.Sizes[{1 - i}], because Trans{x} is "
         "TRANSPOSE), got 2" for i, x in enumerate("AB")],
    ),
    (
        gemm((1, 2, 2, 3), (2, 3, 3, 2), (2, 2), b_type="FLOAT16"),
        ["CTensor.DimensionCount: expected 4 (ATensor.DimensionCount), got 2",
         "OutputTensor.DimensionCount: expected 4 (ATensor.DimensionCount), got 2",
         "BTensor.DataType: expected FLOAT32 (ATensor.DataType), got FLOAT16",
         "BTensor.Sizes[0]: expected 1 (ATensor.Sizes[0]), got 2",
         "BTensor.Sizes[1]: expected 2 (ATensor.Sizes[1]), got 3"],
    ),
    (
        gemm((2, 3), (3, 2), (1, 2)),
        ["CTensor.Sizes[0]: expected 2 (ATensor.Sizes[0]), got 1"],
    ),
    (to_space(2), []),
    (to_space(0), ["BlockSize: expected at least 1, got 0"]),
    (to_space(3), ["InputTensor.Sizes[1]: expected 9 or a multiple (BlockSize), got 8",
         "OutputTensor.Sizes[2]: expected 6 (the inputs imply {1, ?, 6, 9}), got 4",
         "OutputTensor.Sizes[3]: expected 9 (the inputs imply {1, ?, 6, 9}), got 6"]),
    (resample(), []),
    (
        resample(scales=(0.0, np.inf), input_pixel_offsets=(np.nan, 0.0),
                 output_pixel_offsets=(1.0,)),
        ["Scales[0]: expected a finite number above 0, got 0.0",
         "Scales[1]: expected a finite number above 0, got float('inf')",
         "InputPixelOffsets[0]: expected a finite number, got float('nan')",
         "OutputPixelOffsets: expected 2 values (InputTensor.DimensionCount), got 1"],
    ),
    (
        resample(out=(1, 1, 9)),
        ["OutputTensor.DimensionCount: expected 2 (InputTensor.DimensionCount), got 3"],
    ),
    (product(), []),
    (product(zero=(2, 1)), []),
    (
        product(zero=(3, 2), zero_type="UINT8"),
        ["AZeroPointTensor.DataType: expected INT8 (ATensor.DataType), got UINT8",
         "AZeroPointTensor.Sizes[0]: expected 2 or 1 (for each or for all), got 3",
         "AZeroPointTensor.Sizes[1]: expected 1, got 2"],
    ),
    (
        product(scale=(2,)),
        [f"{name}Tensor.DimensionCount: expected 1 (AScaleTensor.DimensionCount), got 2"
         for name in ("AZeroPoint", "BScale", "OutputScale")],
    ),
    (slice_gradient(), []),
    (slice_gradient(stride=-2), []),
    (slice_gradient(stride=0), ["InputWindowStrides[0]: expected a stride other than 0, got 0"]),
    (
        slice_gradient(dy=(3,)),
        ["InputGradientTensor.Sizes[0]: expected 1..2 (elements that the stride reaches), got 3"],
    ),
    (
        slice_gradient(out=(4,)),
        ["InputWindowSizes[0]: expected 0..3 (OutputGradientTensor.Sizes[0] - "
         "InputWindowOffsets[0]), got 4"],
    ),
    (mean_gradient(), []),
    (mean_gradient(out=(1, 1, 4, 5)), []),
    (
        mean_gradient(out=(1, 2, 5, 6)),
        ["InputGradientTensor.Sizes[1]: expected 2 (the number of windows), got 1",
         "InputGradientTensor.Sizes[3]: expected 3 (the number of windows), got 2"],
    ),
    (regions(), []),
    (regions(reduction_function="SUM"), ["ReductionFunction: expected AVERAGE or MAX, got SUM"]),
    (
        regions(minimum_samples_per_output=3, maximum_samples_per_output=2),
        ["MinimumSamplesPerOutput: expected at most 2 (MaximumSamplesPerOutput), got 3"],
    ),
    (
        regions(minimum_samples_per_output=0, maximum_samples_per_output=0),
        ["MaximumSamplesPerOutput: expected at least 1, got 0"],
    ),
    (regions(roi=(1, 2, 4), batches=(1, 1, 2)), []),
    (
        regions(roi=(2, 2, 5), batches=(2, 1, 3)),
        ["ROITensor.Sizes[0]: expected 1, got 2",
         "ROITensor.Sizes[2]: expected 4 (numbers of a region), got 5",
         "BatchIndicesTensor.Sizes[0]: expected 1, got 2",
         "BatchIndicesTensor.Sizes[2]: expected 2 (ROITensor, the number of regions), got 3"],
    ),
    (
        regions(out=(3, 2, 7, 1)),
        ["OutputTensor.Sizes[0]: expected 2 (the inputs imply {2, 3, 7, 1}), got 3",
         "OutputTensor.Sizes[1]: expected 3 (the inputs imply {2, 3, 7, 1}), got 2"],
    ),
    (
        regions(roi_tensor=tensor(2, 4, data_type="FLOAT16")),
        ["ROITensor.DataType: expected FLOAT32 (InputTensor.DataType), got FLOAT16"],
    ),
    (regions(dml.RoiPooling, roi=(1, 1, 2, 5), out=(2, 1, 1, 2)), []),
    (
        regions(dml.RoiPooling, roi=(2, 1, 2, 4), out=(2, 1, 1, 2)),
        ["ROITensor.Sizes[0]: expected 1, got 2",
         "ROITensor.Sizes[3]: expected 5 (numbers of a region), got 4"],
    ),
    (
        regions(dml.RoiPooling, roi=(1, 1, 2, 5), pooled_size=(0, 2), out=(2, 1, 2, 1)),
        ["PooledSize.Width: expected at least 1, got 0"],
    ),
    (regions(dml.RoiAlignGrad), []),
    (
        regions(dml.RoiAlignGrad, output_gradient_tensor=None),
        ["OutputGradientTensor: expected a tensor, here or as another output, got None"],
    ),
    (
        regions(dml.RoiAlignGrad, reduction_function="MAX"),
        ["InputTensor: expected a tensor (ReductionFunction MAX and OutputROIGradientTensor need "
         "it), got None"],
    ),
    (
        regions(dml.RoiAlignGrad, output_roi_gradient_tensor=tensor(2, 4)),
        ["InputTensor: expected a tensor (ReductionFunction MAX and OutputROIGradientTensor need "
         "it), got None"],
    ),
    (
        regions(dml.RoiAlignGrad, input_tensor=tensor(2, 2, 4, 4)),
        ["InputGradientTensor.Sizes[1]: expected 2 (InputTensor.Sizes[1]), got 3",
         "OutputGradientTensor.Sizes[0]: expected 2 (the inputs imply {2, 3, 4, 4}), got 1"],
    ),
    (
        regions(dml.RoiAlignGrad, out=(3, 3, 2, 2), input_tensor=tensor(1, 3, 4, 4),
                output_roi_gradient_tensor=tensor(1, 4)),
        ["InputGradientTensor.Sizes[0]: expected 2 (ROITensor, the number of regions), got 3",
         "OutputROIGradientTensor.Sizes[0]: expected 2 (the inputs imply {2, 4}), got 1"],
    ),
    (blocks(), []),
    (
        blocks(x=(2, 6, 8)),
        ["InputTensor.Sizes[1]: expected 4 or a multiple (elements of a window), got 6",
         "InputTensor.Sizes[2]: expected 9 (the number of windows), got 8",
         "OutputTensor.Sizes[0]: expected 2 (the inputs imply {2, ?, 4, 4}), got 1"],
    ),
    (blocks(x=(1, 8, 1, 9)), ["InputTensor.DimensionCount: expected 3, got 4"]),
    (
        blocks(out=(1, 2, 4, 1)),
        ["WindowSizes[1]: expected at most 1 elements including dilation "
         "(the padded input's size), got 2"],
    ),
    (
        blocks(strides=(0, 1), dilations=(1,)),
        ["Strides[0]: expected at least 1, got 0",
         "Dilations: expected 2 values (OutputTensor.DimensionCount - 2), got 1"],
    ),
    (blocks(dml.Unfold, x=(1, 2, 4, 4), out=(1, 8, 9)), []),
    (
        blocks(dml.Unfold, x=(1, 2, 4, 4), out=(1, 2, 4, 9)),
        ["OutputTensor.DimensionCount: expected 3 (the inputs imply {1, 8, 9}), got 4"],
    ),
    (
        blocks(dml.Unfold, x=(1, 2, 4, 4), out=(1, 8, 8), end_padding=(0, 1)),
        ["OutputTensor.Sizes[2]: expected 12 (the inputs imply {1, 8, 12}), got 8"],
    ),
    (
        gemm((2, 3), (1, 3, 2)),
        ["BTensor.DimensionCount: expected 2 (ATensor.DimensionCount), got 3"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("desc", "expected"), BROKEN, ids=lambda value: getattr(value, "NAME", ""))
def test_every_violation_is_reported(desc, expected):
    assert [str(v).removeprefix(f"{desc.NAME}.") for v in DEVICE.check(desc)] == expected


def test_huge_padding_takes_no_memory():
    """Of a window for each of the corners, one element meets the input."""
    desc = convolution(strides=(MOST, 1), start_padding=(MOST, 0), out=(1, 2, 2, 3))
    x, w = np.ones((1, 4, 5, 5), np.float32), np.ones((2, 4, 3, 3), np.float32)
    got = DEVICE.create_operator(desc).compile()(x, w)
    assert got[0, 0].tolist() == [[0, 0, 0], [36, 36, 36]]


@pytest.mark.parametrize("kind", [dml.MaxPooling2, dml.AveragePooling1, dml.LpPooling1])
def test_huge_windows_take_no_time(kind):
    """Of a window of 2^32 - 1 elements, five meet the input."""
    more = {dml.AveragePooling1: {"include_padding": False}, dml.LpPooling1: {"p": 1}}
    desc = pooling(kind, window_size=(MOST, 1), start_padding=(MOST - 1, 0), out=(1, 1, 5, 5),
                   **more.get(kind, {}))  # fmt: skip
    x = np.ones((1, 1, 5, 5), np.float32)
    got = DEVICE.create_operator(desc).compile()(x)
    expected = np.arange(1, 6) if kind is dml.LpPooling1 else np.ones(5)
    assert (got[0, 0] == expected[:, None]).all()


def test_a_window_of_padding_alone():
    x = np.full((1, 2, 1, 1), -5, np.int8)
    desc = dml.MaxPooling2.with_outputs(
        input_tensor=dml.TensorDesc.from_array(x), strides=(1, 1), window_size=(1, 1),
        start_padding=(0, 1), end_padding=(0, 0), dilations=(1, 1),
    )  # fmt: skip
    values, indices = DEVICE.create_operator(desc).compile()(x)
    assert values.ravel().tolist() == [-128, -5, -128, -5]
    assert indices.ravel().tolist() == [0, 0, 0, 1]
    desc = dml.AveragePooling.with_outputs(
        input_tensor=tensor(1, 2, 1, 1), strides=(1, 1), window_size=(1, 1),
        start_padding=(0, 1), end_padding=(0, 0), include_padding=False,
    )  # fmt: skip
    means = DEVICE.create_operator(desc).compile()(x.astype(np.float32))
    assert means.ravel().tolist() == [0, -5, 0, -5]


def test_what_lies_between_two_axes_is_no_larger_than_input_and_output():
    """One axis grows by padding before the other would shrink: 65,536 times the input."""
    n = 1 << 16
    x = np.arange(n, dtype=np.float32).reshape(1, 1, 1, n)
    desc = dml.MaxPooling2.with_outputs(
        input_tensor=dml.TensorDesc.from_array(x), strides=(1, n), window_size=(n, n),
        start_padding=(n - 1, 0), end_padding=(n - 1, 0), dilations=(1, 1),
        output_indices_tensor=None,
    )  # fmt: skip
    assert desc.output_tensor.sizes == (1, 1, n, 1)
    assert (DEVICE.create_operator(desc).compile()(x) == n - 1).all()


@pytest.mark.parametrize("kind", ["INT32", "UINT4"])
def test_the_type_of_an_output_hides_no_rule_of_attributes(kind):
    fields = {"strides": (0, 1), "group_count": 0}
    desc = convolution(**fields)
    wrong = dataclasses.replace(desc, output_tensor=tensor(1, 2, 3, 3, data_type=kind))
    alone, both = ([v.path.removeprefix("CONVOLUTION.") for v in DEVICE.check(d)]
                   for d in (desc, wrong))  # fmt: skip
    assert alone == ["Strides[0]", "GroupCount"]
    assert both == ["OutputTensor.DataType", *alone]


def test_a_rank_that_no_level_has_is_reported_once():
    (found,) = (
        violation
        for violation in DEVICE.check(
            dml.ActivationRelu(input_tensor=tensor(*[1] * 9), output_tensor=tensor(2))
        )
        if violation.path.startswith("ACTIVATION_RELU.InputTensor")
    )
    assert found.rule == "1 (OutputTensor.DimensionCount)"
