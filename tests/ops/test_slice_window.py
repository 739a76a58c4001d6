"""`slice_window` against NumPy's own slices: every window and stride of short arrays."""

import itertools

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

STRIDES = (1, 2, 3, 9, -1, -2, -3, -9)
WINDOWS = [(start, size) for start in range(7) for size in range(7 - start)]


@pytest.mark.parametrize("stride", STRIDES)
def test_every_window(stride):
    x = np.arange(6, dtype=np.int16) + 10
    fields = {"input_tensor": dml.TensorDesc("INT16", (6,)), "input_window_strides": [stride]}
    for start, size in WINDOWS:
        expected = x[start : start + size][::stride]
        assert_same_bits(dml.slice_window(x, [start], [size], [stride]), expected)
        if not size:
            continue  # a descriptor's window is not empty
        for count in range(1, len(expected) + 1):
            output = dml.TensorDesc("INT16", (count,))
            desc = dml.Slice1(
                **fields,
                output_tensor=output,
                input_window_offsets=[start],
                input_window_sizes=[size],
            )
            for kind in ("cpu", "reference"):
                got = dml.Device(kind).create_operator(desc).compile()(x)
                assert_same_bits(got, expected[:count])


def test_several_axes_and_a_bound_output():
    x = np.arange(60.0).reshape(3, 4, 5)[:, ::-1]
    for strides in itertools.product((1, -2), repeat=3):
        expected = x[0:3, 1:3, 1:5][tuple(slice(None, None, stride) for stride in strides)]
        out = np.full(expected.shape, np.nan)
        assert dml.slice_window(x, (0, 1, 1), (3, 2, 4), strides, out=out) is out
        assert_same_bits(out, np.ascontiguousarray(expected))


@pytest.mark.parametrize(
    ("starts", "sizes", "strides", "message"),
    [
        ((0,), (7,), None, r"sizes\[0\]: expected 0..6"),
        ((7,), (0,), None, r"starts\[0\]: expected 0..6"),
        ((0,), (1,), (0,), r"strides\[0\]: expected a stride other than 0"),
        ((0, 0), (1,), None, "starts: expected 1 values"),
        (0, (1,), None, "starts: expected a sequence of integers"),
        ((0,), itertools.count(), None, "sizes: expected 1 values"),
    ],
)
def test_what_does_not_fit(starts, sizes, strides, message):
    out = np.full(1, 7)
    with pytest.raises(dml.AnyDMLError, match=message):
        dml.slice_window(np.arange(6), starts, sizes, strides, out=out)
    assert out[0] == 7
