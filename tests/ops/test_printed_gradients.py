"""What the pages print of rearrangement and of gradients, with the attributes beside it."""

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


def whole(sizes):
    return dml.TensorDesc("FLOAT32", sizes)


def image(rows):
    return np.array(rows, np.float32)[None, None]


NEAREST = {
    "output_gradient_tensor": whole((2, 2)), "scales": (0.5, 1.5),
    "interpolation_mode": "NEAREST_NEIGHBOR",
}  # fmt: skip

EXAMPLES = [
    (dml.DepthToSpace1, [DEPTH], FIRST, [COLUMNS]),
    (dml.DepthToSpace, [DEPTH], {"block_size": 2}, [COLUMNS]),
    (dml.DepthToSpace1, [DEPTH], SECOND, [ROWS]),
    (dml.SpaceToDepth1, [np.uint32([COLUMNS])], FIRST, DEPTH),
    (dml.SpaceToDepth, [np.uint32([COLUMNS])], {"block_size": 2}, DEPTH),
    (dml.SpaceToDepth1, [np.uint32([ROWS])], SECOND, DEPTH),
    (
        dml.AveragePoolingGrad,
        [image([[1, 2], [3, 4]])],
        {**WINDOW, "include_padding": False, "output_gradient_tensor": whole((1, 1, 3, 3))},
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
            "output_gradient_tensor": whole((4, 4)), "input_window_offsets": (0, 0),
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
@pytest.mark.parametrize(("kind", "arrays", "given", "printed"), EXAMPLES)
def test_a_page_prints(device, kind, arrays, given, printed):
    names = [info.attribute for info in kind.tensor_fields(Role.INPUT)]
    tensors = {n: dml.TensorDesc.from_array(a) for n, a in zip(names, arrays, strict=True)}
    result = device.create_operator(kind.with_outputs(**tensors, **given)).compile()(*arrays)
    np.testing.assert_array_equal(result, printed, strict=False)
    assert result.dtype == arrays[0].dtype
