"""FILL_VALUE_SEQUENCE against additions one after the other."""

import numpy as np
import pytest

import anydml as dml
from support import assert_same_bits

INF, NAN = float("inf"), float("nan")


def filled(data_type, sizes, start, delta, strides=None):
    desc = dml.FillValueSequence(
        output_tensor=dml.TensorDesc(data_type, sizes, strides),
        value_data_type=data_type,
        value_start=start,
        value_delta=delta,
    )
    return dml.Device("cpu").create_operator(desc).compile()()


def added(data_type, count, start, delta):
    """By NumPy's own addition, which a running sum applies to one element after the other."""
    dtype = np.dtype(data_type.lower())
    with np.errstate(all="ignore"):
        steps = np.full(count, np.array(delta).astype(dtype))
        steps[0] = np.array(start).astype(dtype)
        sums = np.add.accumulate(steps, dtype=dtype)
        if dtype == np.float16:  # which NumPy would sum up in another precision
            value = steps[0]
            for i in range(count):
                sums[i] = value
                value = value + steps[-1] if count > 1 else value
    return np.where(np.isnan(sums), dtype.type(np.nan), sums) if dtype.kind == "f" else sums


FLOATS = [
    (0, 0.1), (0.1, 0.1), (-3, 0.7), (1e9, -0.3), (16777200, 1), (16777215, 1), (-16777220, 3),
    (1, 2**-24), (1 + 2**-23, 2**-24), (1, 3 * 2**-24), (2, -(2**-24)), (1, 5 * 2**-25), (0, 1e-45),
    (-1e-42, 1e-45), (1e-38, -3e-42), (3e38, 1e36), (-3e38, -1e38), (INF, -INF), (INF, 1), (NAN, 1),
    (0, 0), (-0.0, -0.0), (-0.0, 0), (0.0, -0.0), (5, 0), (1e20, 1), (0, 3e38), (-1, 1e-10),
    (100, -0.0001), (1e30, -3.3e25), (65504, -0.01), (1, 0.0004883), (2048, 1), (-2047, 1),
]  # fmt: skip


@pytest.mark.parametrize(("start", "delta"), FLOATS)
@pytest.mark.parametrize(("data_type", "count"), [("FLOAT32", 40_000), ("FLOAT16", 6_000)])
def test_every_sum_is_rounded(data_type, count, start, delta):
    if data_type == "FLOAT16" and max(abs(start), abs(delta)) > 65504 and not np.isinf(start):
        start, delta = start / 1e35, delta / 1e35
    got = filled(data_type, (count,), start, delta)
    assert_same_bits(got, added(data_type, count, start, delta))


def test_random_starts_and_steps():
    rng = np.random.default_rng(7)
    for _ in range(150):
        start, delta = (float(np.float32(x)) for x in
                        rng.standard_normal(2) * 2.0 ** rng.integers(-30, 30, 2))  # fmt: skip
        assert_same_bits(filled("FLOAT32", (5000,), start, delta),
                         added("FLOAT32", 5000, start, delta))  # fmt: skip


@pytest.mark.parametrize("data_type", ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32",
                                       "INT64", "UINT64"])  # fmt: skip
def test_integers_wrap(data_type):
    limits = np.iinfo(data_type.lower())
    half = limits.max // 2 + 1
    for start, delta in ((0, 1), (limits.max, 3), (limits.min, -3), (7, limits.max), (half, 1)):
        got = filled(data_type, (30, 70), start, delta)
        wrapped = delta % 2**limits.bits
        expected = np.array([(start + i * wrapped) % 2**limits.bits for i in range(2100)], object)
        assert_same_bits(got.ravel().view(f"u{limits.bits // 8}"),
                         expected.astype(f"u{limits.bits // 8}"))  # fmt: skip


def test_the_order_is_that_of_the_elements():
    out = np.zeros((5, 7), "i4").T
    desc = dml.FillValueSequence(
        output_tensor=dml.TensorDesc("INT32", (7, 5)), value_data_type="INT32",
        value_start=-4, value_delta=3,
    )  # fmt: skip
    compiled = dml.Device("cpu").create_operator(desc).compile()
    compiled.dispatch(OutputTensor=out)
    assert out.tolist() == (np.arange(35).reshape(7, 5) * 3 - 4).tolist()


@pytest.mark.heavy
def test_long_sequences():
    for start, delta in FLOATS:
        count = 20_000_000
        for threads in (1, 3):
            with dml.num_threads(threads):
                got = filled("FLOAT32", (count,), start, delta)
            assert_same_bits(got, added("FLOAT32", count, start, delta))
