"""FILL_VALUE_CONSTANT: every type, every layout, nothing between the elements."""

import numpy as np
import pytest

import anydml as dml
from support import Layout, Poisoned, assert_same_bits, strategies


def operator(data_type, sizes, value, strides=None, kind="cpu"):
    desc = dml.FillValueConstant(
        output_tensor=dml.TensorDesc(data_type, sizes, strides),
        value_data_type=data_type,
        value=value,
    )
    return dml.Device(kind).create_operator(desc).compile()


VALUES = {
    "f": (13.0, -0.0, 0.1, float("inf"), float("nan"), 6e-8),
    "i": (0, -1, 127, -128),
    "u": (0, 1, 255),
}


@pytest.mark.parametrize("dtype", strategies.NUMERIC)
def test_every_type(dtype):
    kind = np.dtype(dtype)
    limits = () if kind.kind == "f" else (np.iinfo(kind).max, np.iinfo(kind).min)
    for value in (*VALUES[kind.kind], *map(int, limits)):
        expected = np.full((3, 5), value, kind)
        for device in ("cpu", "reference"):
            assert_same_bits(operator(dtype.upper(), (3, 5), value, kind=device)(), expected)


@pytest.mark.parametrize("shape", [(1,), (1, 1, 1), (2, 3, 4), (40, 1, 7), (3, 200), (5, 1, 1)])
def test_every_layout(shape):
    rng = np.random.default_rng(5)
    for dtype in ("u1", "f2", "i4", "f8"):
        compiled = operator(dml.DataType.from_numpy(dtype), shape, 7)
        for _ in range(12):
            layout = Layout(
                order=tuple(rng.permutation(len(shape)).tolist()),
                gaps=tuple(rng.integers(0, 3, len(shape)).tolist()),
                reversed=tuple(np.flatnonzero(rng.integers(0, 2, len(shape))).tolist()),
            )
            out = Poisoned(shape, dtype, layout)
            with dml.num_threads(int(rng.integers(1, 4))):
                compiled.dispatch(OutputTensor=out.array)
            assert (out.array == 7).all()
            assert out.gaps_intact()


def test_past_the_cache():
    for dtype, sizes in (
        ("UINT8", (5000, 3001)),
        ("FLOAT16", (9_000_001,)),
        ("INT64", (1500, 999)),
    ):
        for threads in (1, 3):
            with dml.num_threads(threads):
                got = operator(dtype, sizes, 3)()
            assert (got == 3).all()
    rows = operator("FLOAT32", (3000, 900), 3, (1000, 1))()
    assert (rows == 3).all()
    filled = operator("FLOAT32", (900, 3000), 3, (1, 1000))()
    assert (filled == 3).all()


def test_no_value_is_rounded_silently_out_of_its_type():
    with pytest.raises(dml.InvalidDescriptorError, match=r"Value: expected .* got 256"):
        operator("UINT8", (2,), 256)
    with pytest.raises(dml.InvalidDescriptorError, match=r"Value: expected an integer .* got 1.5"):
        operator("INT32", (2,), 1.5)
