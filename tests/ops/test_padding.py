"""PADDING where it differs from PADDING1: a value of FLOAT for every type, levels of the modes."""

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits, strategies


def padding(dtype, value, mode="CONSTANT"):
    data_type = dml.DataType.from_numpy(dtype)
    return dml.Padding(
        input_tensor=dml.TensorDesc(data_type, (1, 1, 1, 2)),
        output_tensor=dml.TensorDesc(data_type, (1, 1, 1, 4)),
        padding_mode=mode,
        padding_value=value,
        start_padding=(0, 0, 0, 1),
        end_padding=(0, 0, 0, 1),
    )


# What a FLOAT becomes: in signed and unsigned integers of 8 bits.
VALUES = [
    (10.6, 10, 10), (-1.5, -1, 0), (-0.5, 0, 0), (300.0, 127, 255), (-300.0, -128, 0),
    (float("inf"), 127, 255), (float("-inf"), -128, 0), (float("nan"), 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("value", "signed", "unsigned"), VALUES)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_value_becomes_an_integer(value, signed, unsigned, device):
    for dtype, expected in (("i1", signed), ("u1", unsigned)):
        compiled = dml.Device(device).create_operator(padding(dtype, value)).compile()
        got = compiled(np.array([[[[1, 2]]]], dtype))
        assert got.tolist() == [[[[expected, 1, 2, expected]]]]


@pytest.mark.parametrize("dtype", strategies.NUMERIC)
def test_a_value_becomes_every_type_as_cast_does_it(dtype):
    x = np.array([[[[1, 2]]]], dtype)
    for value in (0.1, 1e6, -7.75, 3e38, 1e-45, float("nan")):
        got = dml.Device("cpu").create_operator(padding(dtype, value)).compile()(x)
        ends = dml.cast(np.array([value, value], "f4"), dtype)
        assert_same_bits(got[0, 0, 0, ::3], ends)
        assert got[0, 0, 0, 1:3].tolist() == [1, 2]


def test_modes_by_level():
    levels = {"EDGE": "1_0", "SYMMETRIC": "3_0", "WRAP": "6_4"}
    for mode, level in levels.items():
        desc = padding("f4", 0, mode)
        assert dml.Device("cpu").minimum_feature_level(desc).suffix == level
    (violation,) = dml.Device("cpu", feature_level="2_1").check(padding("f4", 0, "SYMMETRIC"))
    assert violation.path == "PADDING.PaddingMode"
    assert violation.rule == (
        "one of CONSTANT, EDGE, REFLECTION at feature level 2_1 (SYMMETRIC from 3_0)"
    )
