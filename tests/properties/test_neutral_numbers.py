"""What leaves every other number as it is, for each reduction and type."""

import numpy as np
import pytest

from anydml.functions._scatter import identity
from support import assert_same_bits

EACH = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
TYPES = ("float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8")


@pytest.mark.parametrize("options", ["add", "mul", "min", "max", "mean"])
@pytest.mark.parametrize("kind", ["bool", *TYPES, "uint64", "complex64"])
def test_the_neutral_number_changes_no_other(options, kind):
    dtype = np.dtype(kind)
    if (dtype.kind, options) in (("c", "min"), ("c", "max"), ("b", "mean")):
        return
    number = identity(options, dtype)
    assert number.dtype == dtype
    if dtype.kind == "b":
        x, combine = np.array([False, True]), {"add": np.logical_or, "mul": np.logical_and}
        function = combine.get(options) or EACH[options]
    else:
        limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
        x = np.array([limits.min, limits.max, 0, 1, 7], dtype)
        function = EACH["add" if options == "mean" else options]
    assert_same_bits(function(x, number), x)


def test_the_neutral_number_of_another_librarys_type():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    found = {options: identity(options, np.dtype(bfloat16)) for options in EACH}
    assert all(type(number) is bfloat16 for number in found.values())
    assert found == {"add": 0, "mul": 1, "min": np.inf, "max": -np.inf}
