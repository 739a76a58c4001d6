"""Regions: special values, corners anywhere, batches that do not exist, and many samples."""

import numpy as np
import pytest

import anydml as dml

DEVICES = [dml.Device("cpu"), dml.Device("reference")]
NAN, INF = np.nan, np.inf
RAMP = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


@pytest.fixture(params=DEVICES, ids=str)
def device(request):
    return request.param


def fields(images, regions, size, batches, changes):
    regions = np.atleast_2d(np.float32(regions))
    batches = np.zeros(len(regions), np.uint32) if batches is None else np.uint32(batches)
    arguments = {
        "reduction_function": "AVERAGE", "interpolation_mode": "LINEAR",
        "spatial_scale_x": 1.0, "spatial_scale_y": 1.0, "input_pixel_offset": 0.5,
        "output_pixel_offset": -0.5, "minimum_samples_per_output": 1,
        "maximum_samples_per_output": 1, "align_regions_to_corners": False, **changes,
    }  # fmt: skip
    output_tensor = dml.TensorDesc("FLOAT32", (len(regions), images.shape[1], *size))
    tensors = {"roi_tensor": regions, "batch_indices_tensor": batches}
    described = {name: dml.TensorDesc.from_array(array) for name, array in tensors.items()}
    return {**arguments, **described}, output_tensor, [regions, batches]


def align(device, images, regions, size=(1, 1), batches=None, beyond=-7.0, **changes):
    arguments, output_tensor, arrays = fields(images, regions, size, batches, changes)
    desc = dml.RoiAlign1.with_outputs(
        input_tensor=dml.TensorDesc.from_array(images), output_tensor=output_tensor,
        out_of_bounds_input_value=beyond, **arguments,
    )  # fmt: skip
    return device.create_operator(desc).compile()(images, *arrays)


def gradients(device, images, dy, regions, batches=None, **changes):
    arguments, output_tensor, arrays = fields(images, regions, dy.shape[2:], batches, changes)
    image = dml.TensorDesc.from_array(images)
    desc = dml.RoiAlignGrad.with_outputs(
        input_tensor=image,
        input_gradient_tensor=output_tensor,
        output_gradient_tensor=image,
        **arguments,
    )
    return device.create_operator(desc).compile()(images, dy, *arrays)


def pool(device, images, regions, size=(1, 1), scale=1.0):
    regions = np.float32(regions).reshape(1, 1, -1, 5)
    desc = dml.RoiPooling.with_outputs(
        input_tensor=dml.TensorDesc.from_array(images),
        roi_tensor=dml.TensorDesc.from_array(regions), spatial_scale=scale, pooled_size=size,
    )  # fmt: skip
    return device.create_operator(desc).compile()(images, regions)


@pytest.mark.parametrize("function", ["AVERAGE", "MAX"])
@pytest.mark.parametrize("mode", ["LINEAR", "NEAREST_NEIGHBOR"])
@pytest.mark.parametrize(
    "region", [(8, 0, 9, 1), (0, -9, 1, -8), (NAN, 0, 1, 1), (0, 0, 1, INF), (-3e38, 0, 3e38, 1)]
)
def test_a_region_outside(device, function, mode, region):
    changes = {"reduction_function": function, "interpolation_mode": mode}
    for maximum in (1, 2**32 - 1):
        samples = {"maximum_samples_per_output": maximum}
        got = align(device, RAMP, region, (2, 2), **changes, **samples)
        np.testing.assert_array_equal(got, -7)
    dx, corners = gradients(device, RAMP, np.ones_like(got), region, **changes)
    assert not dx.any()
    assert not corners.any()


@pytest.mark.parametrize("function", ["AVERAGE", "MAX"])
def test_a_batch_that_does_not_exist(device, function):
    images = np.concatenate([RAMP, RAMP + 100])
    regions, batches = [[1, 1, 2, 2]] * 4, [1, 2, 2**32 - 1, 0]
    got = align(device, images, regions, batches=batches, reduction_function=function)
    assert got.ravel().tolist() == [105, -7, -7, 5]
    dx, corners = gradients(
        device, images, np.ones_like(got), regions, batches, reduction_function=function
    )
    assert dx.sum((1, 2, 3)).tolist() == [1, 1]
    assert not corners.any()  # the samples lie on elements


def test_the_edges_of_the_input(device):
    """A sample reads the nearest element up to one element outside."""
    regions = [[x + 0.5, 0.5, x + 0.5, 0.5] for x in (-1, -1.001, -0.25, 3.5, 4, 4.001)]
    got = align(device, RAMP, regions).ravel()
    assert got.tolist() == [0, -7, 0, 3, 3, -7]
    half = align(device, RAMP, [-3, 0.5, 5, 0.5], (1, 1), minimum_samples_per_output=4,
                 maximum_samples_per_output=4)  # fmt: skip  # at -2.5, -0.5, 1.5, 3.5
    assert half.item() == pytest.approx((-7 + 0 + 1.5 + 3) / 4)


def test_empty_and_mirrored_regions(device):
    assert align(device, RAMP, [1.5, 1.5, 1.5, 1.5], (2, 3)).tolist() == [[[[5] * 3] * 2]]
    plain = align(device, RAMP, [0, 1, 4, 3], (2, 4))
    mirrored = align(device, RAMP, [4, 3, 0, 1], (2, 4))
    np.testing.assert_array_equal(mirrored, plain[..., ::-1, ::-1])


@pytest.mark.parametrize("minimum", [0, 3, 1000, 2**32 - 1])
def test_any_number_of_samples(device, minimum):
    """The work does not depend on it: a mean becomes an integral."""
    samples = {"minimum_samples_per_output": minimum, "maximum_samples_per_output": 2**32 - 1}
    region = [0.75, 0.5, 3.25, 3.5]
    got = align(device, RAMP, region, **samples).item()
    count = max(minimum, 3)
    if count <= 1000:
        x, y = (np.arange(count) + 0.5) / count, (np.arange(count) + 0.5) / count
        sampled = 4 * (y * 3) + (0.25 + x * 2.5)[:, None]  # the ramp between its middles
        assert got == pytest.approx(sampled.mean(), rel=1e-6)
    assert got == pytest.approx(7.5, rel=1e-6)
    maximum = align(device, RAMP, region, reduction_function="MAX", **samples).item()
    ends = 1 - 0.5 / count
    assert maximum == pytest.approx(4 * 3 * ends + 0.25 + 2.5 * ends, rel=1e-6)
    nearest = align(device, RAMP, region, interpolation_mode="NEAREST_NEIGHBOR", **samples).item()
    if count <= 1000:
        rows, columns = np.ceil(y * 3 - 0.5), np.ceil(0.25 + x * 2.5 - 0.5)
        assert nearest == pytest.approx((4 * rows + columns[:, None]).mean(), rel=1e-6)
    else:  # the mean row and the mean column are 1.5
        assert nearest == pytest.approx(4 * 1.5 + 1.5, rel=1e-6)
    dx, corners = gradients(device, RAMP, np.ones((1, 1, 1, 1), np.float32), region, **samples)
    assert dx.sum() == pytest.approx(1, rel=1e-6)
    assert corners.sum() == pytest.approx(5, rel=1e-6)  # 1 to the right, 4 down


def test_samples_of_an_empty_region_move_with_both_corners(device):
    samples = {"minimum_samples_per_output": 4, "maximum_samples_per_output": 4}
    dy = np.ones((1, 1, 1, 1), np.float32)
    _, corners = gradients(device, RAMP, dy, [1.75, 1.75, 1.75, 1.75], **samples)
    assert corners.tolist() == [[0.5, 2, 0.5, 2]]


def test_positions_are_rounded_where_rounding_decides(device):
    """In FLOAT64, 0.3 * 10 is above 3, and (0.8 - 0.1) * 10 above 7."""
    row = np.arange(10, dtype=np.float32).reshape(1, 1, 1, 10)
    nearest = {"interpolation_mode": "NEAREST_NEIGHBOR"}
    assert align(device, row, [0, 0, 10, 1], (1, 5), **nearest).ravel().tolist() == [0, 2, 4, 6, 8]
    scaled = {"spatial_scale_x": 10.0, "maximum_samples_per_output": 9}
    assert align(device, row, [0.3, 0, 0.3, 1], **nearest, **scaled).item() == 2
    got = align(device, np.square(row), [0.1, 0, 0.8, 1], (1, 7), **scaled)
    assert got.ravel().tolist() == pytest.approx([1, 4, 9, 16, 25, 36, 49], rel=1e-6)


def test_corners(device):
    """As TensorFlow's `crop_and_resize`: the middle of the region for one sample."""
    changes = {
        "input_pixel_offset": 0.0, "output_pixel_offset": 0.0, "align_regions_to_corners": True,
        "spatial_scale_x": 3.0, "spatial_scale_y": 3.0,
    }  # fmt: skip
    got = align(device, RAMP, [0, 0, 1, 1], (2, 4), **changes)
    assert got.tolist() == [[[[0, 1, 2, 3], [12, 13, 14, 15]]]]
    assert align(device, RAMP, [0, 0, 1, 1], **changes).item() == 7.5


def test_elements_that_are_not_finite(device):
    images = np.float32([[[[NAN, 1, INF, -INF]]]])
    region = [[x + 0.5, 0.5, x + 0.5, 0.5] for x in (0, 0.5, 1, 1.5, 2, 2.5)]
    got = align(device, images, region).ravel()
    np.testing.assert_array_equal(got, [NAN, NAN, 1, INF, INF, NAN])
    maximum = {"reduction_function": "MAX", "maximum_samples_per_output": 9}
    got = align(device, images, [[0, 0, 2, 1], [1, 0, 4, 1], [3, 0, 4, 1]], **maximum).ravel()
    np.testing.assert_array_equal(got, [NAN, INF, -INF])
    dx, _ = gradients(device, images, np.full((1, 1, 1, 1), INF, np.float32), [1, 0, 2, 1])
    np.testing.assert_array_equal(dx.ravel(), [0, INF, 0, 0])
    for x in (-0.25, 3.75):  # beside an infinite element, where the sample does not change
        edges = np.float32([[[[INF, 1, 2, -INF]]]])
        dy = np.ones((1, 1, 1, 1), np.float32)
        _, corners = gradients(device, edges, dy, [x + 0.5, 0.5, x + 0.5, 0.5])
        assert not corners.any()


def test_the_gradient_of_equal_maxima_is_the_first_ones(device):
    images = np.float32([[[[5, 5, 1], [5, 5, 5]]]])
    dy = np.float32([[[[2]]], [[[3]]]])
    maximum = {"reduction_function": "MAX", "maximum_samples_per_output": 3}
    for region in ([0, 0, 3, 2], [3, 2, 0, 0]):
        dx, _ = gradients(device, images, dy, [region, [1, 0, 3, 2]],
                          minimum_samples_per_output=3, interpolation_mode="NEAREST_NEIGHBOR",
                          **maximum)  # fmt: skip
        assert dx.tolist() == [[[[2, 3, 0], [0, 0, 0]]]]
    crossed = np.float32([[[[1, 5, 1], [5, 1, 1]]]])
    dx, _ = gradients(
        device, crossed, dy[:1], [0, 0, 3, 2], minimum_samples_per_output=3, **maximum
    )
    assert dx.tolist() == [[[[0, 2, 0], [0, 0, 0]]]]
    dx, _ = gradients(device, np.float32([[[[1, NAN, INF]]]]), dy[:1], [0, 0, 3, 1], **maximum)
    assert dx.tolist() == [[[[0, 2, 0]]]]
    dx, _ = gradients(
        device, np.full((1, 1, 1, 2), -INF, np.float32), dy[:1], [0, 0, 2, 1], **maximum
    )
    assert dx.tolist() == [[[[2, 0]]]]


def test_pooling_of_regions_anywhere(device):
    images = np.concatenate([RAMP, -RAMP])
    regions = [
        [0, -9, -9, 9, 9], [0, -9, -9, -8, -8], [1, 0, 0, 0, 0], [1.9, 3, 3, 3, 3],
        [2, 0, 0, 3, 3], [-1, 0, 0, 3, 3], [NAN, 0, 0, 3, 3], [0, NAN, 0, 3, 3],
        [0, 2, 1, 0, 0], [0, 0, 0, INF, 1], [0, -3e38, 0, 3e38, 0],
    ]  # fmt: skip
    assert pool(device, images, regions).ravel().tolist() == [
        15, 0, 0, -15, 0, 0, 0, 0, 6, 7, 3,
    ]  # fmt: skip


def test_pooling_rounds_halves_away_from_zero(device):
    got = pool(device, RAMP, [[0, 1, 1, 1, 1], [0, 3, 5, 3, 5]], scale=0.5)
    assert got.ravel().tolist() == [5, 14]


def test_pooling_of_special_elements(device):
    images = np.float32([[[[-INF, -INF, NAN, 1, INF]]]])
    got = pool(device, images, [[0, 0, 0, 1, 0], [0, 1, 0, 3, 0], [0, 3, 0, 4, 0]])
    np.testing.assert_array_equal(got.ravel(), [-INF, NAN, INF])
