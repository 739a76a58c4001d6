"""What the pages print of rearrangement, columns, regions and gradients."""

import numpy as np
import pytest

import anydml as dml
from anydml.ops._fields import Role

DEVICES = [dml.Device("cpu"), dml.Device("reference")]

DEPTH = (9 * np.arange(8).reshape(1, 8, 1, 1) + np.arange(6).reshape(2, 3)).astype(np.uint32)
COLUMNS = [
    [[0, 18, 1, 19, 2, 20], [36, 54, 37, 55, 38, 56], [3, 21, 4, 22, 5, 23],
     [39, 57, 40, 58, 41, 59]],
    [[9, 27, 10, 28, 11, 29], [45, 63, 46, 64, 47, 65], [12, 30, 13, 31, 14, 32],
     [48, 66, 49, 67, 50, 68]],
]  # fmt: skip
ROWS = [
    [[0, 9, 1, 10, 2, 11], [18, 27, 19, 28, 20, 29], [3, 12, 4, 13, 5, 14],
     [21, 30, 22, 31, 23, 32]],
    [[36, 45, 37, 46, 38, 47], [54, 63, 55, 64, 56, 65], [39, 48, 40, 49, 41, 50],
     [57, 66, 58, 67, 59, 68]],
]  # fmt: skip
WINDOW = {
    "strides": (1, 1), "window_size": (2, 2), "start_padding": (0, 0), "end_padding": (0, 0),
}  # fmt: skip
FIRST = {"block_size": 2, "order": "DEPTH_COLUMN_ROW"}
SECOND = {"block_size": 2, "order": "COLUMN_ROW_DEPTH"}


def tensor_of(sizes):
    return dml.TensorDesc("FLOAT32", sizes)


def image(rows):
    return np.array(rows, np.float32)[None, None]


NEAREST = {
    "output_gradient_tensor": tensor_of((2, 2)), "scales": (0.5, 1.5),
    "interpolation_mode": "NEAREST_NEIGHBOR",
}  # fmt: skip
COLUMNS_OF = {"window_sizes": (3, 3), "strides": (1, 1), "dilations": (1, 1)}
UNPADDED = {**COLUMNS_OF, "start_padding": (0, 0), "end_padding": (0, 0)}
PADDED = {**COLUMNS_OF, "start_padding": (1, 0), "end_padding": (1, 0)}
FOLDED = [
    [[26, 70, 102, 60], [78, 183, 231, 129], [84, 195, 243, 135], [82, 182, 214, 116]],
    [[170, 358, 390, 204], [294, 615, 663, 345], [300, 627, 675, 351], [226, 470, 502, 260]],
]  # fmt: skip
UNFOLDED = [
    [0, 1, 2, 5, 6, 7, 10, 11, 12],
    [1, 2, 3, 6, 7, 8, 11, 12, 13],
    [2, 3, 4, 7, 8, 9, 12, 13, 14],
    [5, 6, 7, 10, 11, 12, 15, 16, 17],
    [6, 7, 8, 11, 12, 13, 16, 17, 18],
    [7, 8, 9, 12, 13, 14, 17, 18, 19],
    [10, 11, 12, 15, 16, 17, 20, 21, 22],
    [11, 12, 13, 16, 17, 18, 21, 22, 23],
    [12, 13, 14, 17, 18, 19, 22, 23, 24],
]  # fmt: skip
UNFOLDED_PADDED = [
    [0, 0, 0, 0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16, 17],
    [0, 0, 0, 1, 2, 3, 6, 7, 8, 11, 12, 13, 16, 17, 18],
    [0, 0, 0, 2, 3, 4, 7, 8, 9, 12, 13, 14, 17, 18, 19],
    [0, 1, 2, 5, 6, 7, 10, 11, 12, 15, 16, 17, 20, 21, 22],
    [1, 2, 3, 6, 7, 8, 11, 12, 13, 16, 17, 18, 21, 22, 23],
    [2, 3, 4, 7, 8, 9, 12, 13, 14, 17, 18, 19, 22, 23, 24],
    [5, 6, 7, 10, 11, 12, 15, 16, 17, 20, 21, 22, 0, 0, 0],
    [6, 7, 8, 11, 12, 13, 16, 17, 18, 21, 22, 23, 0, 0, 0],
    [7, 8, 9, 12, 13, 14, 17, 18, 19, 22, 23, 24, 0, 0, 0],
]  # fmt: skip
CORNERS = np.float32([[0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]])
REGIONS = {
    "reduction_function": "AVERAGE", "interpolation_mode": "NEAREST_NEIGHBOR",
    "spatial_scale_x": 1, "spatial_scale_y": 1, "minimum_samples_per_output": 1,
    "maximum_samples_per_output": 1,
}  # fmt: skip
PLACES = {"input_pixel_offset": 0.5, "output_pixel_offset": -0.5,
          "align_regions_to_corners": False}  # fmt: skip
ALIGNED = {**REGIONS, "out_of_bounds_input_value": 0, "output_tensor": tensor_of((4, 1, 1, 3))}
FOUND = [[[[1, 1, 2]]], [[[3, 3, 4]]], [[[9, 9, 10]]], [[[11, 11, 12]]]]
FIRSTS = np.zeros(4, np.uint32)


def counted(*sizes):
    return np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)


EXAMPLES = [
    (dml.Fold, [counted(1, 9, 4)], {**UNPADDED, "output_tensor": tensor_of((1, 1, 4, 4))},
     image([[0, 5, 13, 9], [14, 38, 54, 32], [38, 86, 102, 56], [26, 57, 65, 35]])),
    (dml.Fold, [counted(1, 9, 8)], {**PADDED, "output_tensor": tensor_of((1, 1, 4, 4))},
     [FOLDED[:1]]),
    (dml.Fold, [counted(1, 18, 8)], {**PADDED, "output_tensor": tensor_of((1, 2, 4, 4))}, [FOLDED]),
    (dml.Unfold, [counted(1, 1, 5, 5)], UNPADDED, [UNFOLDED]),
    (dml.Unfold, [counted(1, 1, 5, 5)], PADDED, [UNFOLDED_PADDED]),
    (dml.RoiAlign, [counted(1, 1, 4, 4) + 1, CORNERS, FIRSTS], ALIGNED, FOUND),
    (dml.RoiAlign1, [counted(1, 1, 4, 4) + 1, CORNERS, FIRSTS], {**ALIGNED, **PLACES}, FOUND),
    (
        dml.RoiAlignGrad,
        [None, counted(4, 1, 1, 3) + 1, CORNERS, FIRSTS],
        {
            **REGIONS, **PLACES, "output_gradient_tensor": tensor_of((1, 1, 4, 4)),
            "output_roi_gradient_tensor": None,
        },
        image([[3, 3, 9, 6], [0, 0, 0, 0], [15, 9, 21, 12], [0, 0, 0, 0]]),
    ),
    (dml.DepthToSpace1, [DEPTH], FIRST, [COLUMNS]),
    (dml.DepthToSpace, [DEPTH], {"block_size": 2}, [COLUMNS]),
    (dml.DepthToSpace1, [DEPTH], SECOND, [ROWS]),
    (dml.SpaceToDepth1, [np.uint32([COLUMNS])], FIRST, DEPTH),
    (dml.SpaceToDepth, [np.uint32([COLUMNS])], {"block_size": 2}, DEPTH),
    (dml.SpaceToDepth1, [np.uint32([ROWS])], SECOND, DEPTH),
    (
        dml.AveragePoolingGrad,
        [image([[1, 2], [3, 4]])],
        {**WINDOW, "include_padding": False, "output_gradient_tensor": tensor_of((1, 1, 3, 3))},
        image([[0.25, 0.75, 0.5], [1, 2.5, 1.5], [0.75, 1.75, 1]]),
    ),
    (
        dml.MaxPoolingGrad,
        [image([[1, 2, 3], [2, 4, 2], [5, 6, 7]]), image([[1, 2], [4, 5]])],
        {**WINDOW, "dilations": (1, 1)},
        image([[0, 0, 0], [0, 3, 0], [0, 4, 5]]),
    ),
    (
        dml.SliceGrad,
        [np.float32([[1, 2], [3, 4]])],
        {
            "output_gradient_tensor": tensor_of((4, 4)), "input_window_offsets": (0, 0),
            "input_window_sizes": (3, 3), "input_window_strides": (2, 2),
        },
        [[1, 0, 2, 0], [0, 0, 0, 0], [3, 0, 4, 0], [0, 0, 0, 0]],
    ),
    (  # the page names no offsets: these make what it prints
        dml.ResampleGrad1,
        [np.float32([[4, 5, 6]])],
        {
            **NEAREST, "rounding_direction": "DECREASING",
            "input_pixel_offsets": (0, 0), "output_pixel_offsets": (0, 0),
        },
        [[9, 6], [0, 0]],
    ),
    (  # the middles of elements, whose halves are rounded up: not what the page prints
        dml.ResampleGrad,
        [np.float32([[4, 5, 6]])],
        {**NEAREST, "input_pixel_offsets": (0.5, 0.5), "output_pixel_offsets": (-0.5, -0.5)},
        [[0, 0], [4, 11]],
    ),
    (  # offsets that make what the page prints
        dml.ResampleGrad,
        [np.float32([[4, 5, 6]])],
        {**NEAREST, "input_pixel_offsets": (0.5, 0.5), "output_pixel_offsets": (0, 0)},
        [[9, 6], [0, 0]],
    ),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize(("kind", "arrays", "arguments", "printed"), EXAMPLES)
def test_a_page_prints(device, kind, arrays, arguments, printed):
    names = [info.attribute for info in kind.tensor_fields(Role.INPUT)]
    present = {n: a for n, a in zip(names, arrays, strict=True) if a is not None}
    tensors = {n: dml.TensorDesc.from_array(a) for n, a in present.items()}
    compiled = device.create_operator(kind.with_outputs(**tensors, **arguments)).compile()
    result = compiled(*present.values())
    np.testing.assert_array_equal(result, printed, strict=False)
    assert result.dtype == next(iter(present.values())).dtype
