"""Arguments at the edges of what is accepted, in the quick call and the general path behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from corner_calls import CASES, FAR, MOST_AXES, ONE, F, X, f, i

import anydml as dml
from support import assert_same_bits


@pytest.mark.parametrize("name", CASES)
def test_accepted(name: str) -> None:
    function, arguments, keywords, expected = CASES[name]
    returns_tuple = isinstance(expected, tuple)
    reference = expected if returns_tuple else (expected,)
    outs = tuple(np.empty(np.shape(array), array.dtype) for array in reference)
    out = outs if returns_tuple else outs[0]
    result = function(*arguments, **keywords)
    written = function(*arguments, **keywords, out=out)
    for got in (result, written, out):
        for ours, theirs in zip(got if returns_tuple else (got,), reference, strict=True):
            assert_same_bits(ours, np.asarray(theirs))
    assert all(a is b for a, b in zip(written if returns_tuple else (written,), outs, strict=True))


REFUSED: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], str]] = {
    "axis: no axes": (dml.split, (ONE, 1), {}, "x: expected at least one axis, got rank 0"),
    "gather: too many elements": (
        dml.gather, (np.broadcast_to(FAR[:1], (2**48 + 1,)), [0]), {},
        f"x: expected at most 2^48 elements, got {2**48 + 1} (shape ({2**48 + 1},))",
    ),
    "gather: too many axes": (
        dml.gather, (np.zeros((1,) * (MOST_AXES // 2 + 1)), np.zeros((1,) * (MOST_AXES // 2 + 1),
                                                                     int)), {},
        f"gather: expected at most {MOST_AXES} axes of the result, got {MOST_AXES + 1}",
    ),
    "gather: too many axes to write to": (
        dml.gather, (np.zeros((1,) * MOST_AXES), np.zeros((1, 1), int)), {"out": F},
        f"gather: expected at most {MOST_AXES} axes of the result, got {MOST_AXES + 1}",
    ),
    "gather: nothing of another type": (dml.gather, (F, np.zeros(0, bool)), {},
                                        "indices: expected one of int64"),
    "gather: modes in an array": (dml.gather, (F, [0]), {"mode": np.array(["raise", "wrap"])},
                                  "mode: expected one of 'raise'"),
    "gather: a scalar to write to": (
        dml.gather, (F, 0), {"out": ONE}, "out: expected an array, got the scalar",
    ),
    "gather: foreign byte order to write to": (
        dml.gather, (F, 0), {"out": np.zeros((), ">f4")}, "out: expected float32, got >f4",
    ),
    "gather_elements: behind a scalar": (
        dml.gather_elements, (ONE, [1]), {}, "gather_elements: indices[0]: expected -1..0",
    ),
    "gather_nd: long tuples": (
        dml.gather_nd, (X, np.zeros((2, 3), int)), {"mode": "wrap"},
        "indices.shape[-1]: expected at most 2 (the dimensions that tuples point into), got 3",
    ),
    "gather_nd: no axes": (dml.gather_nd, (np.zeros((0, 2)), 1), {"mode": "wrap"},
                           "indices.ndim: expected"),
    "gather_nd: batches below 0": (
        dml.gather_nd, (np.zeros((0, 0)), [[0]]), {"batch_dims": -1, "mode": "wrap"},
        "batch_dims: expected",
    ),
    "scatter_elements: a float in integers": (
        dml.scatter_elements, (X[0], [0], [1.5]), {},
        "updates: expected int64 (the type of x), got float64 values that do not fit: 1.5",
    ),
    "scatter_elements: another type": (
        dml.scatter_elements, (F, [0], np.ones(1)), {},
        "updates: expected float32 (the type of x), got float64",
    ),
    "scatter_elements: too large for a byte": (
        dml.scatter_elements, (np.zeros(2, "i1"), [0], [128]), {},
        "updates: expected int8 (the type of x), got int64 values that do not fit: 128",
    ),
    "scatter_elements: a number among dates": (
        dml.scatter_elements, (np.zeros(2, "M8[s]"), [0], [1]), {},
        "updates: expected datetime64[s] (the type of x), got int64 values that do not fit: 1",
    ),
    "scatter_elements: reductions in an array": (
        dml.scatter_elements, (F, [0], [1.0]), {"reduction": np.array(["add", "mul"])},
        "reduction: expected one of None, 'none'",
    ),
    "scatter_elements: a flag": (dml.scatter_elements, (F, i(0), f(1)), {"broadcast": 0},
                                 "broadcast: expected a bool, got 0"),
    "scatter_nd: a number by no tuple": (dml.scatter_nd, (X, np.int64(0), 1), {},
                                         "indices.ndim: expected"),
    "scatter_nd: a number by long tuples": (
        dml.scatter_nd, (X, np.zeros((2, 3), int), 1), {},
        "indices.shape[-1]: expected at most 2 (the dimensions that tuples point into), got 3",
    ),
    "top_k: results": (dml.top_k, (F, 1), {"out": (F.copy(),)},
                       "out: expected 2 arrays (values, indices), got 1"),
    "top_k: an immense k": (dml.top_k, ([1.0], 10**5000), {}, "k: expected at most 1"),
    "top_k: indices that do not hold the last place": (
        dml.top_k, (FAR[: 2**31 + 1], 0), {"index_dtype": "int32"},
        f"index_dtype: expected a type that holds positions up to {2**31}, got int32",
    ),
    "nonzero_coordinates: one long axis": (
        dml.nonzero_coordinates, (FAR[None, : 2**31 + 1],), {"index_dtype": "int32"},
        f"index_dtype: expected a type that holds positions up to {2**31}, got int32",
    ),
    "split: a float in an array": (
        dml.split, (F, np.array(2.5)), {},
        f"sections_or_sizes: expected an integer, got {np.float64(2.5)!r}",
    ),
    "split: a string": (dml.split, (F, "12"), {},
                        "sections_or_sizes: expected an integer, got '12'"),
    "split: no sections, near equal": (dml.split, (F, 0), {"near_equal": True},
                                       "sections_or_sizes: expected at least 1 section, got 0"),
    "split: no sections": (
        dml.split, (F, 0), {},
        "sections_or_sizes: expected a divisor of 3 (the size of axis 0 of x), or near_equal",
    ),
    "split: a size below 0": (dml.split, (F, [4, -1]), {},
                              "sections_or_sizes[1]: expected at least 0, got -1"),
    "split: points in one number": (dml.split, (F,), {"points": np.array(2)},
                                    "points: expected a sequence of integers, got array(2)"),
    "split: a flag": (dml.split, (F, 3), {"near_equal": 0},
                      "near_equal: expected a bool, got 0"),
    "join: a flag": (dml.join, ([F, F],), {"promote": 1}, "promote: expected a bool, got 1"),
    "join: what is no array": (dml.join, ([F, F, "a"],), {}, "arrays[2]: expected numbers"),
    "top_k: another type of indices": (
        dml.top_k, (F, 1), {"index_dtype": "int32", "out": (F[:1].copy(), i(0))},
        "out[1]: expected int32, got int64",
    ),
    "join: a string": (dml.join, ("ab",), {}, "arrays: expected a sequence of arrays, got 'ab'"),
    "join: a number": (dml.join, (5,), {}, "arrays: expected a sequence of arrays, got 5"),
    "cast: no type": (dml.cast, (F, None), {}, "dtype: expected one of float64"),
    "cast: foreign byte order": (dml.cast, (F, np.dtype(">f8")), {},
                                 "dtype: expected one of float64"),
    "pad: modes in an array": (dml.pad, (F, 1, np.array(["edge", "wrap"])), {},
                               "mode: expected one of 'constant'"),
    "slice_window: a string": (dml.slice_window, (F, "0", [1]), {},
                               "starts: expected a sequence of integers, got '0'"),
    "slice_window: a number": (dml.slice_window, (F, 0, [1]), {},
                               "starts: expected a sequence of integers, got 0"),
    "tile: too many axes": (dml.tile, (F, (1,) * (MOST_AXES + 1)), {},
                            f"repeats: expected at most {MOST_AXES} values, got {MOST_AXES + 1}"),
    "reverse_subsequences: a length below 0": (
        dml.reverse_subsequences, (F, [-1]), {"axis": 0}, "lengths: expected 0 or more, got -1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    function, arguments, keywords, message = REFUSED[name]
    with pytest.raises(dml.AnyDMLError) as caught:
        function(*arguments, **keywords)
    output = str(caught.value)
    assert message in output
    if message.endswith((")", "got float64", "int32")) or "do not fit" in message:
        assert output.endswith(message)


# Lists and numbers take on a type where their values fit: the type, the values, whether they do.
FITTING = [
    ("complex64", [1.5], True), ("complex64", [1j], True), ("complex64", [True], False),
    ("float32", [1e300], False), ("float32", [np.inf, np.nan], True), ("float32", [True], False),
    ("float32", [1j], False),
    ("uint8", [255], True), ("uint8", [256], False), ("uint8", [0], True), ("uint8", [-1], False),
    ("int8", [-128, 127], True), ("int8", [-129, 0], False), ("int8", [0, 128], False),
    ("int8", [1.0, -128.0, 127.0], True), ("int8", [-0.0], True), ("int8", [128.0], False),
    ("int8", [-129.0], False), ("int8", [0.5], False), ("int8", [np.nan], False),
    ("int8", [np.inf], False), ("int8", [1j], False), ("int8", [True], False), ("int8", [], True),
    ("int64", [-(2.0**63)], True), ("int64", [2.0**63], False), ("uint64", [2.0**63], True),
    ("uint64", [2.0**64], False), ("uint64", [-1.0], False), ("uint64", [0, -1e-9], False),
    ("bool", [0, 1], True), ("bool", [2], False), ("bool", [0.0, 1.0], True),
    ("bool", [0.5], False), ("bool", [2.0], False), ("bool", [np.nan], False),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "values", "fits"), FITTING)
def test_lists_take_on_a_type(kind: str, values: list[Any], fits: bool) -> None:
    x = np.zeros(3, kind)
    places = list(range(len(values)))
    if not fits:
        with pytest.raises(
            dml.ArgumentTypeError, match=r"got \w+ values that do not fit: "
        ) as raised:
            dml.scatter_elements(x, places, values)
        assert str(raised.value).rpartition(": ")[2] in [repr(value) for value in values]
        return
    result = dml.scatter_elements(x, places, values)
    assert_same_bits(result[: len(values)], np.array(values).astype(kind))


def test_integers_among_floats_are_exact() -> None:
    """NumPy makes floats of such a list, and rounds the integers."""
    x = np.zeros(2, np.int64)
    assert dml.scatter_elements(x, [0, 1], [2**53 + 1, 2.0]).tolist() == [2**53 + 1, 2]
    assert dml.scatter_nd(x, [[1]], [2.0**62]).tolist() == [0, 2**62]
    x = np.zeros(2, np.uint64)
    assert dml.scatter_elements(x, [0, 1], [2**64 - 1, 1.0]).tolist() == [2**64 - 1, 1]
    with pytest.raises(dml.ArgumentTypeError, match=r"do not fit: -1$"):
        dml.scatter_elements(x, [0, 1], [2**64 - 1, -1])
    with pytest.raises(dml.ArgumentTypeError, match=r"do not fit: 0\.5$"):
        dml.scatter_elements(x, [0, 1], [2**53 + 1, 0.5])


# What NumPy lacks: values, whether they fit, and what a message ends with.
ADDED = [
    ("bfloat16", [float.fromhex("0x1.fefffep127")], True, ""),
    ("bfloat16", [float.fromhex("0x1.ffp127")], False, f" fit: {float.fromhex('0x1.ffp127')}"),
    ("bfloat16", [1j], False, " values that do not fit: 1j"),
    ("bfloat16", np.ones(1, np.float32), False, "got float32"),
    ("float8_e4m3fn", [0.0], True, ""),
    ("float8_e4m3fn", [-0.0], False, " values that do not fit: -0.0; give an array of that type"),
    ("float8_e4m3fn", [1.0], False, " values that do not fit: 1.0; give an array of that type"),
    ("float8_e4m3fn", np.ones(1, np.float32), False, "got float32"),
    ("float8_e8m0fnu", [0.0], False, " values that do not fit: 0.0; give an array of that type"),
    ("float8_e8m0fnu", [], True, ""),
]


@pytest.mark.parametrize(("kind", "values", "fits", "end"), ADDED)
def test_lists_take_on_an_added_type(kind: str, values: Any, fits: bool, end: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.ones(2, getattr(ml_dtypes, kind))
    places = list(range(len(values)))
    if not fits:
        with pytest.raises(dml.ArgumentTypeError) as caught:
            dml.scatter_elements(x, places, values)
        assert str(caught.value).endswith(end)
        return
    result = dml.scatter_elements(x, places, values)
    assert result.dtype == x.dtype
    assert result[: len(values)].tobytes() == np.array(values).astype(x.dtype).tobytes()


@pytest.mark.parametrize("reduction", ["min", "mean"])
def test_reductions_that_a_type_has_not(reduction: str) -> None:
    for x in (np.zeros(2, np.complex64), np.zeros(2, bool)):
        call = {"x": x, "indices": i(0), "updates": x[:1], "reduction": reduction}
        if (reduction, x.dtype.kind) in (("min", "b"), ("mean", "c")):
            assert_same_bits(dml.scatter_elements(**call), x)
        else:
            with pytest.raises(dml.ArgumentTypeError, match=r"x: reduction .* expected one of"):
                dml.scatter_elements(**call)


def test_the_type_of_indices_is_that_of_the_array_to_write_to() -> None:
    values, indices = i(0), np.zeros(1, np.int32)
    assert dml.top_k(i(4, 5), 1, out=(values, indices)).indices is indices
    assert (values.tolist(), indices.tolist()) == ([5], [1])
    rows = np.zeros((1, 1), np.uint32)
    assert dml.nonzero_coordinates(i(0, 3), out=rows) is rows
    assert rows.tolist() == [[1]]


def test_what_has_an_array_interface_is_written_to() -> None:
    class Holder:
        def __init__(self, array: np.ndarray) -> None:
            self.__array_interface__ = array.__array_interface__

    memory = f(0, 0)
    holder = Holder(memory)
    assert dml.gather(F, [2, 0], out=holder) is holder
    assert memory.tolist() == [3, 1]


def test_the_first_array_says_how_types_are_promoted() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.ones(1, dtype=torch.float32)
    assert dml.join([i(2), tensor], promote=True).dtype == np.float64
    assert dml.join([tensor, i(2)], promote=True).dtype == torch.float32


def test_means_of_updates_of_rank_0() -> None:
    x = np.zeros(3, np.float16)
    assert dml.scatter_nd(x, [1], np.float16(3), reduction="mean").tolist() == [0, 1.5, 0]
    updates = np.array([4, 5], np.int32)
    found = dml.scatter_nd(np.int32(3), np.zeros((2, 0), int), updates, reduction="mean")
    assert found == (3 + 4 + 5) // 3


@pytest.mark.parametrize("lengths", [[], (), np.empty(0, int)])
def test_no_lengths_for_some_rows(lengths: Any) -> None:
    with pytest.raises(dml.ArgumentError, match="lengths: expected one for each row"):
        dml.top_k(np.ones((3, 5)), 2, lengths=lengths)
    assert dml.top_k(np.ones((0, 5)), 2, lengths=lengths).values.shape == (0, 2)
