"""`cast` between all types: against NumPy where it is defined, and by the stated rules."""

import numpy as np
import pytest

import anydml as dml
from anydml.core.dtypes import ALL_TYPES
from support import Flavour, assert_same_bits, contents

TYPES = [data_type.numpy for data_type in ALL_TYPES]


def cast_by_numpy(x, to):
    """By whole arrays of NumPy's, as the reference goes element by element."""
    if x.dtype == to:
        return x.copy()
    with np.errstate(all="ignore"):
        if to.kind == "f":
            result = x.astype(to)
            return np.where(np.isnan(result), to.type(np.nan), result)
        if x.dtype.kind != "f":
            return x.astype(to)
        limits = np.iinfo(to)
        wide = np.nan_to_num(x.astype(np.float64), nan=0, posinf=np.inf, neginf=-np.inf)
        high, low = wide >= float(limits.max), wide <= float(limits.min)
        kept = np.trunc(np.where(high | low, 0, wide)).astype(to)
        return np.where(high, limits.max, np.where(low, limits.min, kept)).astype(to)


@pytest.mark.parametrize("to", TYPES, ids=str)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_every_pair_of_types(source, to):
    rng = np.random.default_rng(3)
    for flavour in Flavour:
        x = contents(rng, (7, 61), source.name, flavour)
        expected = cast_by_numpy(x, to)
        assert_same_bits(dml.cast(x, to), expected)
        assert_same_bits(dml.cast(x[:, ::2], to.name), expected[:, ::2].copy())
        desc = dml.Cast(
            input_tensor=dml.TensorDesc(source.name.upper(), (7, 61)),
            output_tensor=dml.TensorDesc(to.name.upper(), (7, 61)),
        )
        for device in ("cpu", "reference"):
            assert_same_bits(dml.Device(device).create_operator(desc).compile()(x), expected)


def test_doubles_are_rounded_to_halves_once():
    # Half a unit and a little more: by way of FLOAT32 it would be a tie, and go to even.
    x = np.array([1 + 2**-11 + 2**-40, 1 + 2**-11 - 2**-40, 1 + 2**-11, 65519.99999, 65520.0])
    assert dml.cast(x, "float16").tolist() == [1 + 2**-10, 1, 1, 65504, np.inf]
    tiny = np.array([2.0**-25, 2.0**-25 * (1 + 2**-40), 2.0**-60, -(2.0**-24)])
    assert dml.cast(tiny, "float16").tolist() == [0, 2.0**-24, 0, -(2.0**-24)]


def test_kinds_of_arguments():
    assert dml.cast(np.array([True, False]), "int8").tolist() == [1, 0]
    assert dml.cast([[1.5]], dml.DataType.INT64).dtype == np.int64
    assert dml.cast(np.float32(3.7), "DML_TENSOR_DATA_TYPE_UINT8").shape == ()
    assert dml.cast(np.empty((0, 3)), np.int16).shape == (0, 3)
    assert dml.cast(np.arange(3).astype(">i4"), float).tolist() == [0, 1, 2]
    out = np.zeros(3, "f2")
    assert dml.cast(np.arange(3), "float16", out=out) is out
    torch = pytest.importorskip("torch")
    result = dml.cast(torch.tensor([1.5, float("nan")]), torch.uint8)
    assert result.tolist() == [1, 0]
    assert result.dtype == torch.uint8


@pytest.mark.parametrize(
    ("x", "dtype", "message"),
    [
        ([1], None, "dtype: expected one of float64"),
        ([1], "bool", "dtype: expected one of float64"),
        ([1], "complex64", "dtype"),
        ([1], dml.DataType.INT4, "dtype"),
        ([1], object(), "dtype"),
        ([1j], "int8", "x: expected one of bool, float64"),
        (["a"], "int8", "x: expected numbers"),
        (np.array(["2001"], "M8[Y]"), "int8", "x: expected one of bool"),
    ],
)
def test_what_does_not_fit(x, dtype, message):
    out = np.full(1, 7, "i1")
    with pytest.raises(dml.ArgumentTypeError, match=message):
        dml.cast(x, dtype, out=out)
    assert out[0] == 7


def test_an_output_over_the_input_is_refused():
    x = np.arange(4, dtype="i4")
    with pytest.raises(dml.ArgumentError, match=r"out: .*overlap"):
        dml.cast(x, "float32", out=x.view("f4"))
