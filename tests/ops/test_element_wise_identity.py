"""ELEMENT_WISE_IDENTITY: copies of bits, and the stated arithmetic."""

import numpy as np
import pytest

import anydml as dml
from anydml.core.dtypes import ALL_TYPES
from support import Flavour, assert_same_bits, contents


def compiled(data_type, sizes, scale_bias=None, device="cpu"):
    tensor = dml.TensorDesc(data_type, sizes)
    desc = dml.ElementWiseIdentity(input_tensor=tensor, output_tensor=tensor, scale_bias=scale_bias)
    return dml.Device(device).create_operator(desc).compile()


@pytest.mark.parametrize("data_type", ALL_TYPES, ids=str)
def test_scaled(data_type):
    rng = np.random.default_rng(5)
    dtype = data_type.numpy
    wide = np.float32 if dtype in (np.float32, np.float16) else np.float64
    for flavour in Flavour:
        x = contents(rng, (9, 131), dtype.name, flavour)
        assert_same_bits(compiled(data_type, x.shape)(x), x)
        for scale, bias in ((2, 0.5), (0.1, -3), (-1e30, 1e30), (np.inf, 0), (1, 0), (0, np.nan)):
            with np.errstate(all="ignore"):
                numbers = x.astype(wide) * wide(np.float32(scale)) + wide(np.float32(bias))
            expected = dml.cast(np.where(np.isnan(numbers), wide(np.nan), numbers), data_type)
            operator = compiled(data_type, x.shape, (scale, bias))
            assert_same_bits(operator(x), expected)
            inside = x.copy()
            operator.dispatch(InputTensor=inside, OutputTensor=inside)
            assert_same_bits(inside, expected)


def test_product_and_sum_are_rounded_one_after_the_other():
    # 1 - 2^-24 is rounded away from the product; one rounding of both would leave 2^-46.
    x = np.array([1 + 2**-23] * 40, "f4")
    for device in ("cpu", "reference"):
        assert (compiled("FLOAT32", (40,), (1 - 2**-23, -1), device)(x) == 0).all()
    assert np.float64(x[0]) * (1 - 2**-23) - 1 == -(2.0**-46)
    for data_type, number in (("FLOAT64", 1 + 2**-50), ("INT32", 2**24 + 1)):
        x = np.array([number], data_type.lower())
        assert compiled(data_type, (1,), (1, 0), "reference")(x)[0] == number


def test_layouts_and_in_place():
    x = np.arange(12, dtype="f4").reshape(3, 4)
    target = np.zeros((4, 3), "f4").T
    compiled("FLOAT32", (3, 4)).dispatch(InputTensor=x, OutputTensor=target)
    assert (target == x).all()
    before = x.copy()
    compiled("FLOAT32", (3, 4)).dispatch(InputTensor=x, OutputTensor=x)
    assert (x == before).all()
    both = np.zeros((4, 4), "f4")
    with pytest.raises(dml.BindingError, match=r"OutputTensor: .*overlap"):
        compiled("FLOAT32", (3, 4)).dispatch(InputTensor=both[:3], OutputTensor=both[1:])
