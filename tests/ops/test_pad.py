"""`pad` and PADDING1 against NumPy's own, for every mode, size and padding of short arrays."""

import itertools

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

MODES = {
    "constant": "constant", "edge": "edge", "reflection": "reflect", "symmetric": "symmetric",
    "wrap": "wrap",
}  # fmt: skip


def pad_by_index(x, width, mode, constant=0):
    """By an index for each place of each axis: older NumPy wraps long paddings differently."""
    y = x
    for axis, (start, end) in enumerate(width):
        size = y.shape[axis]
        at = np.arange(-start, size + end)
        if mode == "constant":
            pads = [(0, 0)] * y.ndim
            pads[axis] = (start, end)
            y = np.pad(y, pads, constant_values=constant)
            continue
        if mode == "edge":
            at = at.clip(0, size - 1)
        elif mode == "wrap" or size == 1:
            at %= size
        else:
            period = 2 * size - 2 * (mode == "reflection")
            at = np.abs(at % period)
            at = np.where(at < size, at, 2 * size - 1 - (mode == "reflection") - at)
        y = np.take(y, at, axis)
    return y


@pytest.mark.parametrize("mode", MODES)
def test_every_padding_of_short_arrays(mode):
    for size, start, end in itertools.product(range(1, 6), range(14), (0, 1, 4, 13)):
        x = np.arange(size, dtype="i2") + 10
        expected = pad_by_index(x, [(start, end)], mode, 7)
        assert_same_bits(dml.pad(x, (start, end), mode, 7), expected)
        desc = dml.Padding1(
            input_tensor=dml.TensorDesc("INT16", (size,)),
            output_tensor=dml.TensorDesc("INT16", expected.shape),
            padding_mode=mode.upper(), padding_value_data_type="INT16", padding_value=7,
            start_padding=[start], end_padding=[end],
        )  # fmt: skip
        assert_same_bits(dml.Device("reference").create_operator(desc).compile()(x), expected)
        if start < size and end < size:
            more = {"constant_values": 7} if mode == "constant" else {}
            assert_same_bits(expected, np.pad(x, (start, end), MODES[mode], **more))


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "f8", "c16", "?", "M8[s]"])
@pytest.mark.parametrize("mode", MODES)
def test_several_axes_types_and_layouts(mode, dtype):
    rng = np.random.default_rng(1)
    for shape in ((4, 5), (3, 1, 6), (2, 3, 4, 3), (1, 70), (33, 40)):
        x = rng.integers(0, 2, shape).astype(dtype)
        zero = np.zeros((), dtype)[()]
        for laid in (x, np.asfortranarray(x), x[..., ::-1], x[::-1, ::2]):
            width = [tuple(pair) for pair in rng.integers(0, 5, (laid.ndim, 2)).tolist()]
            width[-1] = (0, 0) if rng.random() < 0.4 else width[-1]
            expected = pad_by_index(laid, width, mode, zero)
            with dml.num_threads(int(rng.integers(1, 4))):
                assert_same_bits(dml.pad(laid, width, mode, zero), np.ascontiguousarray(expected))
                out = np.zeros(expected.shape[::-1], dtype).T
                assert dml.pad(laid, width, mode, zero, out=out) is out
            assert_same_bits(out, expected)


@pytest.mark.parametrize("mode", MODES)
def test_past_the_cache(mode):
    x = np.arange(1500 * 1600, dtype="f4").reshape(1500, 1600)
    for width in ([(3, 5), (1, 2)], [(700, 0), (0, 0)], [(0, 0), (1700, 1)]):
        expected = pad_by_index(x, width, mode, 1.5)
        for threads in (1, 3):
            with dml.num_threads(threads):
                assert_same_bits(dml.pad(x, width, mode, 1.5), expected)
    line = np.arange(3, dtype="u1")
    assert_same_bits(
        dml.pad(line, (5_000_000, 5_000_001), mode, 9),
        pad_by_index(line, [(5_000_000, 5_000_001)], mode, 9),
    )


def test_forms_of_the_arguments():
    x = np.arange(6).reshape(2, 3)
    assert_same_bits(dml.pad(x, 1), np.pad(x, 1))
    assert_same_bits(dml.pad(x, (1, 2), "reflect"), np.pad(x, (1, 2), "reflect"))
    assert_same_bits(dml.pad(x, [(1, 2), (0, 3)], "edge"), np.pad(x, [(1, 2), (0, 3)], "edge"))
    assert_same_bits(dml.pad(np.float32(3), ()), np.array(3, "f4"))
    assert_same_bits(dml.pad(np.zeros((0, 2)), 1, constant=4), np.full((2, 4), 4.0))
    assert_same_bits(dml.pad(np.zeros((0, 2)), [(0, 0), (1, 1)], "edge"), np.zeros((0, 4)))
    nan = dml.pad(np.zeros(1, "f2"), 1, constant=float("nan"))
    assert nan.view("u2").tolist() == [0x7E00, 0, 0x7E00]


@pytest.mark.parametrize(
    ("width", "mode", "constant", "message"),
    [
        ((1, -1), "edge", 0, r"pad_width\[0\]\[1\]: expected 0 or more elements, got -1"),
        ([(1, 1)], "edge", 0, "pad_width: expected 2 pairs"),
        ([(1, 1), (1,)], "edge", 0, r"pad_width\[1\]: expected a pair, got 1 values"),
        ([(1, 1), 1], "edge", 0, r"pad_width\[1\]: expected a sequence of integers"),
        (1.5, "edge", 0, "pad_width: expected an integer, a pair"),
        (True, "edge", 0, "pad_width: expected an integer, got True"),
        ("12", "edge", 0, "pad_width: expected"),
        (itertools.count(), "edge", 0, "pad_width: expected 2 pairs"),
        (1, "nearest", 0, "mode: expected one of 'constant', 'edge', 'reflection'"),
        (1, None, 0, "mode: expected one of"),
        (1, np.array(["edge", "wrap"]), 0, "mode: expected one of"),
        (1, "constant", 300, "constant: expected int8"),
        (1, "constant", 1.5, "constant: expected int8"),
        (1, "constant", [1, 2], "constant: expected one number, got shape"),
        (1, "constant", None, "constant: expected numbers"),
    ],
)
def test_what_does_not_fit(width, mode, constant, message):
    out = np.full((4, 5), 7, "i1")
    with pytest.raises(dml.AnyDMLError, match=message):
        dml.pad(np.zeros((2, 3), "i1"), width, mode, constant, out=out)
    assert (out == 7).all()


def test_no_element_to_pad_with():
    with pytest.raises(dml.ArgumentError, match="mode: expected mode 'constant'"):
        dml.pad(np.zeros((0, 2)), 1, "edge")


def test_wrap_comes_with_level_6_4():
    tensor = dml.TensorDesc("FLOAT32", (3,))
    desc = dml.Padding1(
        input_tensor=tensor, output_tensor=tensor, padding_mode="WRAP",
        padding_value_data_type="FLOAT32", padding_value=0, start_padding=[0], end_padding=[0],
    )  # fmt: skip
    assert str(dml.Device("cpu").minimum_feature_level(desc)) == "6_4"
    (violation,) = dml.Device("cpu", feature_level="6_3").check(desc)
    assert violation.path == "PADDING1.PaddingMode"
    assert violation.rule == (
        "one of CONSTANT, EDGE, REFLECTION, SYMMETRIC at feature level 6_3 (WRAP from 6_4)"
    )


def test_bools_are_padded_with_zero_and_one():
    x = np.array([True, False])
    assert dml.pad(x, 1).tolist() == [False, True, False, False]
    assert dml.pad(x, 1, constant=1).tolist() == [True, True, False, True]
    with pytest.raises(dml.ArgumentTypeError, match="constant: expected bool"):
        dml.pad(x, 1, constant=2)
