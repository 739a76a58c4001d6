"""UPSAMPLE_2D against whole arrays of NumPy's, PyTorch's `interpolate`, and its own definition."""

import numpy as np
import pytest

import anydml as dml
from support import Layout, Poisoned, assert_same_bits


def descriptor(x, width, height, mode, strides=None):
    data_type = dml.DataType.from_numpy(x.dtype)
    *outer, rows, columns = x.shape
    return dml.Upsample2D(
        input_tensor=dml.TensorDesc(data_type, x.shape),
        output_tensor=dml.TensorDesc(data_type, (*outer, rows * height, columns * width), strides),
        scale_size=(width, height),
        interpolation_mode=mode,
    )


def upsampled(x, width, height, mode, device="cpu"):
    operator = dml.Device(device).create_operator(descriptor(x, width, height, mode))
    return operator.compile()(x)


def stretched(x, axis, scale):
    """Between the two nearest elements along an axis, those without weight left out."""
    size = x.shape[axis]
    middle = np.maximum(2 * np.arange(size * scale) + 1 - scale, 0)
    first, rest = np.divmod(middle, 2 * scale)
    part = np.where(first < size - 1, rest / (2 * scale), 0).astype("f4")
    part = part.reshape((-1,) + (1,) * (-1 - axis))
    one, two = (np.take(x, np.minimum(at, size - 1), axis) for at in (first, first + 1))
    with np.errstate(all="ignore"):
        return np.where(part == 0, one, one * (np.float32(1) - part) + two * part)


def upsampled_by_repeats(x, width, height, mode):
    if mode != "LINEAR":
        return x.repeat(height, -2).repeat(width, -1)
    y = stretched(stretched(x.astype("f4"), -1, width), -2, height)
    with np.errstate(over="ignore"):
        return np.where(np.isnan(y), np.float32(np.nan), y).astype(x.dtype)


MODES = ("NEAREST_NEIGHBOR", "LINEAR")
ODD = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 65504.0, 6e-8, 1e-3]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["f4", "f2"])
def test_every_scale_and_layout(mode, dtype):
    rng = np.random.default_rng(8)
    for shape in ((1, 1, 1, 1), (2, 3, 4, 5), (1, 2, 1, 9), (2, 1, 9, 1), (1, 2, 2, 3, 4)):
        for width, height in ((1, 1), (2, 2), (3, 1), (1, 3), (4, 2), (5, 7), (40, 3), (2, 33)):
            x = rng.standard_normal(shape).astype(dtype)
            x = np.where(rng.random(shape) < 0.3, rng.choice(ODD, shape), x).astype(dtype)
            expected = upsampled_by_repeats(x, width, height, mode)
            assert_same_bits(upsampled(x, width, height, mode), expected)
            if x.size <= 40:
                assert_same_bits(upsampled(x, width, height, mode, "reference"), expected)
            compiled = dml.Device("cpu").create_operator(descriptor(x, width, height, mode))
            compiled = compiled.compile()
            order = tuple(rng.permutation(x.ndim).tolist())
            gaps = tuple(rng.integers(0, 3, x.ndim).tolist())
            out = Poisoned(expected.shape, dtype, Layout(order=order, gaps=gaps, reversed=(1,)))
            for laid in (np.asfortranarray(x), np.repeat(x, 2, -1)[..., ::2]):
                with dml.num_threads(int(rng.integers(1, 4))):
                    compiled.dispatch(InputTensor=laid, OutputTensor=out.array)
                assert_same_bits(np.ascontiguousarray(out.array), expected)
                assert out.gaps_intact()


@pytest.mark.parametrize("mode", MODES)
def test_long_rows_and_past_the_cache(mode):
    """Several pieces of columns, at every phase of a scale."""
    rng = np.random.default_rng(9)
    for dtype, shape, width, height in (
        ("f4", (1, 1, 3, 700), 3, 2), ("f2", (1, 2, 2, 1025), 1, 2), ("f4", (1, 1, 2, 1), 5000, 1),
        ("f4", (1, 1, 1, 3), 1500, 3), ("f4", (2, 3, 300, 301), 2, 3),
        ("f2", (1, 8, 700, 33), 7, 4), ("f4", (1, 1, 2, 2049), 1, 1), ("f4", (1, 1, 3, 1024), 2, 1),
    ):  # fmt: skip
        x = rng.standard_normal(shape).astype(dtype)
        expected = upsampled_by_repeats(x, width, height, mode)
        for threads in (1, 3):
            with dml.num_threads(threads):
                assert_same_bits(upsampled(x, width, height, mode), expected)


def test_against_torch():
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(10).standard_normal((2, 3, 5, 6)).astype("f4")
    for width, height in ((2, 2), (3, 4), (1, 5)):
        for mode, theirs, options in (
            ("NEAREST_NEIGHBOR", "nearest", {}),
            ("LINEAR", "bilinear", {"align_corners": False}),
        ):
            expected = torch.nn.functional.interpolate(
                torch.tensor(x), scale_factor=(height, width), mode=theirs, **options
            )
            got = upsampled(x, width, height, mode)
            np.testing.assert_allclose(got, expected.numpy(), rtol=1e-5, atol=1e-6)


def test_what_has_no_weight_does_not_count():
    x = np.array([[[[1, np.inf, 2]]]], "f4")
    got = upsampled(x, 3, 1, "LINEAR")
    assert got[0, 0, 0, [0, 1, 4, 7, 8]].tolist() == [1, 1, np.inf, 2, 2]
    assert upsampled(x[..., :1], 4, 4, "LINEAR").tolist() == np.ones((1, 1, 4, 4)).tolist()
    nan = np.array([0xFF800001], "u4").view("f4").reshape(1, 1, 1, 1)
    for device in ("cpu", "reference"):
        upsampled_nan = upsampled(nan, 1, 1, "LINEAR", device)
        assert upsampled_nan.view("u4").tolist() == [[[[0x7FC00000]]]]
    assert upsampled(nan, 1, 1, "NEAREST_NEIGHBOR").view("u4").tolist() == [[[[0xFF800001]]]]
