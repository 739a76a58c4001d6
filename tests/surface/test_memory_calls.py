"""Calls of kernels on memory that Python describes: what is taken, and what is declined."""

import numpy as np
import pytest

import anydml as dml
from anydml._native import native

FLOAT32, INT64 = native.type_code(np.dtype("f4")), native.type_code(np.dtype("i8"))
DTYPES = {native.type_code(np.dtype(kind)): kind for kind in ("f4", "i8", "i4", "c8", "?")}


def block(array, **changes):
    """An operand over all of an array's memory."""
    parts = {
        "type": native.type_code(array.dtype),
        "sizes": array.shape,
        "strides": tuple(stride // array.itemsize for stride in array.strides),
        "unit": array.itemsize,
        "address": array.ctypes.data,
        "offset": 0,
        "bytes": array.nbytes,
    } | changes
    return (*parts.values(), array)


def make(code, shape):
    array = np.empty(shape, DTYPES[code])
    return array, array.ctypes.data


def call(kernel, *values, out=None, kind=None, place=None, make=make):
    return native.memory_call(kernel, kind)(out, place, make, *values)


X = np.arange(12, dtype=np.float32).reshape(3, 4)
AT = np.array([[0, -1], [1, 1], [3, 0]])


def test_results_are_those_of_arrays():
    values, indices = call("top_k", block(X), 1, 2, True, None, kind=dml.TopKResult)
    expected = dml.top_k(X, 2)
    np.testing.assert_array_equal(values, expected.values)
    np.testing.assert_array_equal(indices, expected.indices)
    for kernel, arguments, reference in (
        ("gather_elements", (block(X), block(AT), 1, "raise"), dml.gather_elements(X, AT, axis=1)),
        ("join", ([block(X)] * 1500, 0), dml.join([X] * 1500)),
        (
            "nonzero_coordinates",
            (block(X), 2, "int32"),
            dml.nonzero_coordinates(X, index_dtype="i4"),
        ),
        ("cast", (block(X), INT64), dml.cast(X, "int64")),
        ("tile", (block(X), (2, 1)), dml.tile(X, (2, 1))),
    ):
        result = call(kernel, *arguments)
        assert result.dtype == reference.dtype
        np.testing.assert_array_equal(result, reference)


@pytest.mark.parametrize("sizes", [(2, 2), [1, 0, 3], [1] * 4, [4]], ids=str)
def test_lists_of_results(sizes):
    for part, expected in zip(call("split", block(X), 1, sizes), dml.split(X, sizes, axis=1),
                            strict=True):  # fmt: skip
        np.testing.assert_array_equal(part, expected)


def test_offsets_and_strides_count_units():
    part = X[1:, 1::2]
    operand = block(part, address=X.ctypes.data, offset=5, bytes=X.nbytes)
    np.testing.assert_array_equal(call("tile", operand, (1, 2)), np.tile(part, 2))
    operand = block(part, strides=part.strides, unit=1, address=X.ctypes.data, offset=20, bytes=-1)
    np.testing.assert_array_equal(call("tile", operand, (1, 2)), np.tile(part, 2))
    reversed_view = X[::-1]
    operand = block(reversed_view, address=X.ctypes.data, offset=8, bytes=X.nbytes)
    np.testing.assert_array_equal(call("tile", operand, (1, 2)), np.tile(reversed_view, 2))


@pytest.mark.parametrize(
    "changes",
    [
        {"bytes": X.nbytes - 1}, {"offset": 1}, {"offset": -1}, {"sizes": (3, 5)},
        {"strides": (4, -1)}, {"strides": (2**62, 1)}, {"sizes": (2**62, 4)}, {"sizes": (-3, 4)},
        {"sizes": (3,)}, {"sizes": [3, 4]}, {"strides": [4, 1]}, {"sizes": (3, 4.0)},
        {"address": 0}, {"address": -1}, {"address": 2**64}, {"address": None},
        {"type": 3 << 8 | 32}, {"type": -1}, {"type": 2**40}, {"type": "f4"},
        {"unit": 2**62}, {"unit": None}, {"offset": 2**62}, {"offset": 2**63}, {"bytes": None},
        {"bytes": 2**64}, {"sizes": (1,) * 65, "strides": (1,) * 65},
    ],
    ids=str,
)  # fmt: skip
def test_operands_that_do_not_fit_are_declined(changes):
    assert call("tile", block(X), (1, 2)) is not None
    assert call("tile", block(X, **changes), (1, 2)) is None
    assert call("join", [block(X), block(X, **changes)], 0) is None


def test_what_else_is_declined():
    for operand in (None, X, list(block(X)), block(X)[:6]):
        assert call("tile", operand, (1, 2)) is None
    for place in (1, (0,), (0, 0, 0), ("0", 0), (-1, 0), (0, "1"), (2**40, -1)):
        assert call("tile", block(X), (1, 2), place=place) is None
    for parts in (None, iter([block(X)]), []):
        assert call("join", parts, 0) is None
    for code in (3 << 8 | 32, -1, 2**70, None):
        assert call("cast", block(X), code) is None
    assert call("gather_elements", block(X), block(AT + 3), 1, "raise") is None  # a bad index
    for sizes in ([], [5], [2, 1], [5, -1], [2, 2.0], 2, None, [2**70]):
        assert call("split", block(X), 1, sizes) is None
    many = block(np.empty((400, 0), np.float32))
    assert call("split", many, 0, [1, 2, 1] * 100) is None  # of sizes that are not kept
    assert len(call("split", many, 0, [1] * 400)) == 400
    for constant in (None, "1", [0], True):
        assert call("pad", block(X), "edge", constant, (1, 1), (0, 0)) is None
    for width in (1, (1,), (1, 1.0), None):
        assert call("pad", block(X), "edge", 0, (1, 1), width) is None
    for reduction, include_self in (("sum", True), (None, True), ("add", False), ("add", None)):
        operands = block(X), block(np.zeros((1, 1), "i8")), block(X)
        assert call("scatter_nd", *operands, reduction, include_self) is None
    empty = np.empty((0, 4), np.float32)
    assert call("tile", block(empty, address=0, bytes=0), (1, 2)).shape == (0, 8)


def test_wrong_calls():
    with pytest.raises(TypeError, match=r"tile\(\) takes 5 arguments, got 4"):
        native.memory_call("tile")(None, None, make, block(X))
    with pytest.raises(dml.ArgumentError, match="kernel: expected one that is registered"):
        native.memory_call("nothing")
    for wrong in (None, (X,), (X, "0"), (X, 1, 2)):
        with pytest.raises(dml.ArgumentError, match="make: expected a pair"):
            call("tile", block(X), (1, 2), make=lambda code, shape, wrong=wrong: wrong)
    with pytest.raises(ZeroDivisionError):
        call("split", block(X), 1, [2, 2], make=lambda code, shape: 1 / 0)


def test_codes_of_types():
    assert (FLOAT32, INT64) == (2 << 8 | 32, 64)
    for kind in ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8",
                 "c16", np.longlong):  # fmt: skip
        dtype = np.dtype(kind)
        code = native.type_code(dtype)
        assert code & 255 == 8 * dtype.itemsize
        result = call("tile", block(np.ones(2, dtype)), (2,), make=lambda got, shape, code=code,
                    dtype=dtype: make_as(got, shape, code, dtype))  # fmt: skip
        np.testing.assert_array_equal(result, np.ones(4, dtype))
    for kind in ("M8[s]", "m8", "U2", "O", "V4", np.longdouble):
        assert native.type_code(np.dtype(kind)) is None
    assert native.type_code("f4") is None


def make_as(got, shape, code, dtype):
    assert got == code
    array = np.empty(shape, dtype)
    return array, array.ctypes.data
