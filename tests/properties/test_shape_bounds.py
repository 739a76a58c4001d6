"""The quick calls' shape rules at every bound of small sizes: what they decline, what they give."""

import itertools

import numpy as np
import pytest

import anydml as dml
from anydml._native import native

X = np.arange(12.0).reshape(3, 4)
FAR = (-(2**63), 2**63 - 1, 2**63, 2**70)


def check(name, expected, x, *arguments):
    """A rule declines what is wrong, and gives the shape of what the call gives."""
    found = native.shapes(name, x, *arguments)
    assert (found is None) == (expected is None), (arguments, found)
    if expected is None:
        return
    expected = expected if isinstance(expected, list) else [expected]
    assert [shape for shape, _ in found] == [part.shape for part in expected], arguments
    got = native.function_call(name)(None, x, *arguments)
    got = got if isinstance(got, tuple) else [got]
    for one, part in zip(got, expected, strict=True):
        assert one.tobytes() == part.tobytes(), arguments


def window(x, axis, start, size, stride):
    fits = 0 <= start <= x.shape[axis] and 0 <= size <= x.shape[axis] - start and stride != 0
    if not fits or stride < -(2**63 - 1):
        return None
    at = [slice(None)] * x.ndim
    at[axis] = slice(start, start + size)
    return np.flip(x[tuple(at)], axis) if stride < 0 else x[tuple(at)]


@pytest.mark.parametrize("axis", [0, 1])
def test_windows(axis):
    other = 1 - axis
    for start, size in itertools.product(range(-1, 6), range(-1, 6)):
        for stride in (*range(-3, 4), *FAR[:2]):
            expected = window(X, axis, start, size, stride)
            if expected is not None:
                step = min(abs(stride), 9)
                expected = expected[(slice(None, None, step), slice(None))[:: 1 - 2 * axis]]
            starts, sizes, strides = [0, 0], list(X.shape), [1, 1]
            starts[axis], sizes[axis], strides[axis] = start, size, stride
            check("slice_window", expected, X, tuple(starts), tuple(sizes), tuple(strides))
    for far in FAR:
        for at in range(3):
            numbers = [[0, 0], [1, 1], [1, 1]]
            numbers[at][other] = far
            fits = at == 2 and far == FAR[1]
            check("slice_window", X[:1, :1] if fits else None, X, *map(tuple, numbers))


def test_split_by_sizes():
    for count in range(4):
        for sizes in itertools.product(range(-1, 6), repeat=count):
            fits = count > 0 and min(sizes) >= 0 and sum(sizes) == 4
            expected = np.split(X, np.cumsum(sizes)[:-1], axis=1) if fits else None
            check("split", expected, X, sizes, 1)
    for far in FAR:
        check("split", None, X, (4, far), 1)
    check("split", None, X, (2**63 - 1, 2**63 - 1, 6), 1)
    check("split", None, X[:, :0], (), 1)


def test_split_by_sections():
    for sections in range(-1, 6):
        fits = sections > 0 and 4 % sections == 0
        check("split", np.split(X, sections, axis=1) if fits else None, X, sections, 1)


@pytest.mark.parametrize("mode", ["constant", "edge"])
@pytest.mark.parametrize("shape", [(0,), (1,), (3,), (2, 0), (2, 3)])
def test_paddings(shape, mode):
    x = np.arange(np.prod(shape), dtype="f4").reshape(shape)
    for widths in itertools.product(range(-1, 3), repeat=2 * x.ndim):
        pairs = tuple(zip(widths[::2], widths[1::2], strict=True))
        is_padded_fully = all(
            size > 0 or sum(pair) == 0 for size, pair in zip(shape, pairs, strict=True)
        )
        fits = min(widths) >= 0 and (mode == "constant" or is_padded_fully)
        check("pad", np.pad(x, pairs, mode=mode) if fits else None, x, pairs, mode, 0)
    for far in FAR if x.size else ():
        for pair in ((far, 0), (0, far), (2**62, 2**62)):
            check("pad", None, x, (pair,) * x.ndim, mode, 0)


@pytest.mark.parametrize(("mode", "expected"), [("raise", None), ("clamp", [0, 0, 4, 0, 4, 4, 4])])
def test_gathers_have_their_mode(mode, expected):
    """What is out of range is declined, or means what the mode says."""
    x, at = np.arange(5.0), np.array([-7, -6, -1, 0, 4, 5, 6])
    calls = (
        ("gather", x, at, 0), ("gather_elements", x, at, 0), ("gather_nd", x, at[:, None], 0),
    )  # fmt: skip
    for name, *operands in calls:
        got = native.function_call(name)(None, *operands, mode)
        assert got is None if expected is None else got.tolist() == expected, name


def test_joins_of_what_does_not_fit():
    x, call = np.zeros((2, 3), "f4"), native.function_call("join")
    for count in (1, 20):  # few parts are held one by one
        others = [np.zeros(shape, "f4") for shape in ((2, 4), (1, 3), (2, 3, 1), (2,), ())]
        for other in (*others, np.zeros((2, 3), "i4")):
            for axis in (0, 1):
                parts = [x] * count + [other] + [x] * (count - 1)
                try:
                    fits = np.concatenate(parts, axis).dtype == other.dtype
                except ValueError:
                    fits = False
                arguments = [np.asarray(part) for part in parts]
                assert (native.shapes("join", arguments, axis) is not None) == fits, other.shape
                assert (call(None, arguments, axis) is not None) == fits, other.shape


def test_casts_to_what_has_no_numbers():
    for kind in ("?", "c8", "M8[s]", "U1"):
        native.know_type(np.dtype(kind), np.dtype(kind))
        assert native.shapes("cast", X, np.dtype(kind)) is None
        with pytest.raises(dml.AnyDMLError):
            dml.cast(X, np.dtype(kind))


def test_casts_of_what_has_no_numbers():
    native.know_type(np.dtype("f4"), np.dtype("f4"))
    for kind, fits in (("f8", True), ("?", False), ("c8", False), ("M8[s]", False)):
        x = np.zeros(2, kind)
        assert (native.shapes("cast", x, np.dtype("f4")) is not None) == fits


def test_no_cast_to_another_byte_order():
    kind = np.dtype("f4").newbyteorder()
    native.know_type(kind, kind)
    assert native.shapes("cast", X, kind) is None


def test_nonzero_has_no_columns_below_none():
    for columns in (-1, 3):
        with pytest.raises(dml.ArgumentError, match=r"columns: expected 0 to"):
            native.run_measured("nonzero_coordinates", X, {"columns": columns}, pytest.fail, 1)


@pytest.mark.parametrize("halves", [(1, 2), (2, 1), (0, 3)])
def test_paddings_of_16_bytes_have_two_halves(halves):
    x, out = np.zeros(1, "c16"), np.zeros(3, "c16")
    arguments = {"mode": "constant", "value": list(halves), "starts": [1], "ends": [1]}
    native.run("pad", [x], [out], arguments, False, 1)
    assert out.view("u8").tolist() == [*halves, 0, 0, *halves]


@pytest.mark.parametrize(("ends", "fits"), [((0, 0), True), ((1, 0), False), ((0, 1), False)])
def test_nothing_to_pad_with(ends, fits):
    x, out = np.zeros(0), np.zeros(sum(ends))
    arguments = {"mode": "edge", "value": [0, 0], "starts": ends[:1], "ends": ends[1:]}
    if fits:
        native.run("pad", [x], [out], arguments, False, 1)
        return
    with pytest.raises(dml.ArgumentError, match="no element to pad with"):
        native.run("pad", [x], [out], arguments, False, 1)


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="NumPy has 32 axes at most"
)
def test_paddings_of_the_most_axes():
    x, pairs = np.zeros((1,) * 64), ((0, 1),) * 64
    assert native.shapes("pad", x, pairs, "constant", 0)[0][0] == (2,) * 64
    assert native.shapes("pad", x, (*pairs, (0, 0)), "constant", 0) is None


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("kind", "longest"), [("int32", 2**31), ("uint32", 2**32)])
def test_coordinates_fit_their_type_on_every_axis(axis, kind, longest):
    for more, fits in ((0, True), (1, False)):
        shape = [1, 1]
        shape[axis] = longest + more
        x = np.broadcast_to(np.zeros((), "?"), shape)
        assert (native.shapes("nonzero_coordinates", x, kind) is not None) == fits


def test_no_parts_are_joined_to_nothing():
    with pytest.raises(dml.ArgumentError, match="parts: expected at least one"):
        native.run("join", [], [np.zeros((0, 2))], {"axis": 0}, False, 1)
