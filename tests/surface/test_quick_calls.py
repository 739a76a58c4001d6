"""Plain arrays take the quick way: the general path gives the same, at many times the cost."""

import sys
from functools import partial

import numpy as np
import pytest

import anydml as dml
from anydml._native import native
from anydml.functions import _dispatch
from support.documented_calls import documented_calls

X = np.arange(12.0).reshape(3, 4)
AT = np.array([[0, 1, 2, 0]])
PAIRS = np.array([[0, 1], [2, 3]])

HALF = 32 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 16  # of NumPy's limit of axes
DEEP = np.zeros((1,) * HALF)

CALLS = {
    "top_k": lambda: dml.top_k(X, 2),
    "top_k of a type": lambda: dml.top_k(X, 2, axis=0, largest=False, index_dtype="uint32"),
    "nonzero_coordinates": lambda: dml.nonzero_coordinates(X),
    "scatter_elements": lambda: dml.scatter_elements(X, AT, X[:1]),
    "scatter_elements add": lambda: dml.scatter_elements(X, AT, X[:1], reduction="add"),
    "scatter_nd": lambda: dml.scatter_nd(X, PAIRS, X[0, :2]),
    "gather": lambda: dml.gather(X, AT[0], axis=1),
    "gather_elements": lambda: dml.gather_elements(X, AT),
    "gather_nd": lambda: dml.gather_nd(X, PAIRS),
    "split": lambda: dml.split(X, 3),
    "join": lambda: dml.join([X, X], axis=1),
    # Where the shape rules end.
    "top_k of none": lambda: dml.top_k(X, 0),
    "top_k of all": lambda: dml.top_k(X, 4, axis=-1),
    "nonzero_coordinates of bools": lambda: dml.nonzero_coordinates(X > 3),
    "scatter_elements at the last axis": lambda: dml.scatter_elements(
        X, AT.T[:3], X[:, :1], axis=-1
    ),
    "scatter_elements of all": lambda: dml.scatter_elements(X, np.zeros(X.shape, "i4"), X),
    "scatter_nd of elements": lambda: dml.scatter_nd(X, PAIRS, X[0, :2], reduction="max"),
    "scatter_nd of the whole": lambda: dml.scatter_nd(X, np.zeros((1, 0), "i8"), X[None]),
    "gather of the most axes": lambda: dml.gather(
        DEEP, np.zeros((1,) * (HALF + 1), "u4"), axis=HALF - 1
    ),
    "gather of one": lambda: dml.gather(X, np.array(2), axis=-2),
    "gather_elements of more": lambda: dml.gather_elements(X, np.zeros((9, 4), "i8"), axis=0),
    "gather_nd of the most axes": lambda: dml.gather_nd(
        DEEP, np.zeros((1,) * (HALF + 1) + (1,), "i8")
    ),
    "gather_nd of deep tuples": lambda: dml.gather_nd(
        DEEP, np.zeros((1,) * (HALF - 2) + (HALF,), "i8")
    ),
    "gather_nd of batches": lambda: dml.gather_nd(X, np.array([[1], [2], [3]]), batch_dims=1),
    "split into one": lambda: dml.split(X, 1, axis=-2),
    "split into all": lambda: dml.split(X, 4, axis=-1),
    "join of times": lambda: dml.join([np.zeros(2, "M8[s]"), np.zeros(1, "M8[s]")]),
    "cast": lambda: dml.cast(X, "float32"),
    "pad": lambda: dml.pad(X, 1),
    "slice_window": lambda: dml.slice_window(X, [1, 0], [2, 3]),
    "tile": lambda: dml.tile(X, (1, 2)),
    "top_k of NumPy's type": lambda: dml.top_k(X, 2, index_dtype=np.int64),
    "top_k of a dtype": lambda: dml.top_k(X, 2, index_dtype=np.dtype("u8")),
    "top_k of the default type": lambda: dml.top_k(X, 2, index_dtype=None),
    "pad by a pair": lambda: dml.pad(X[0], [(1, 2)]),
    "pad by pairs": lambda: dml.pad(X, [(1, 2), [0, 3]], mode="edge"),
    "pad by two": lambda: dml.pad(X, (1, 2), mode="reflect"),
    "tile of fewer axes": lambda: dml.tile(X, [3]),
    "slice_window backwards": lambda: dml.slice_window(X, (0, 0), (3, 4), (-2, 3)),
    "split by sizes": lambda: dml.split(X, (1, 0, 3), axis=1),
    "join of a tuple": lambda: dml.join((X, X)),
    "join of sixteen": lambda: dml.join([X] * 16),
    "join of seventeen": lambda: dml.join([X] * 17),
    "join of one": lambda: dml.join([X], axis=-1),
    "join of other sizes": lambda: dml.join([X, X[:0], X[:1]], axis=0),
    # The first call of each docstring, of functions that need no operand's values first.
    **{
        f"documented {call}": partial(call.with_operands, np.array)
        for call in documented_calls()[::-1]
        if not call.spec.value_checks
    },
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_plain_arrays_need_no_general_path(call, monkeypatch):
    expected = call()

    def unexpected(*_):
        raise AssertionError("the general path was taken")

    monkeypatch.setattr(_dispatch, "on_memory", unexpected)
    got = call()
    assert np.array_equal(np.concatenate([np.ravel(a) for a in got]) if isinstance(got, tuple)
                          else got,
                          np.concatenate([np.ravel(a) for a in expected])
                          if isinstance(expected, tuple) else expected)  # fmt: skip


RANGE = np.arange(3)
WRITES = {
    "gather": lambda x, out: dml.gather(x, RANGE[::-1], out=out),
    "gather_elements": lambda x, out: dml.gather_elements(x, np.zeros((3, 4), "i8"), out=out),
    "gather_nd": lambda x, out: dml.gather_nd(x, RANGE[:, None], out=out),
    "scatter_elements": lambda x, out: dml.scatter_elements(x, AT, X[:1], out=out),
    "scatter_nd": lambda x, out: dml.scatter_nd(x, PAIRS, X[0, :2], reduction="add", out=out),
    "join": lambda x, out: dml.join([x[:1], x[1:]], out=out),
    "tile": lambda x, out: dml.tile(x, (1, 1), out=out),
    "pad": lambda x, out: dml.pad(x, 0, out=out),
    "slice_window": lambda x, out: dml.slice_window(x, [0, 0], [3, 4], out=out),
    "cast": lambda x, out: dml.cast(x, "float64", out=out),
}
OVERWRITES = {"scatter_elements", "scatter_nd"}


@pytest.mark.parametrize("name", WRITES)
def test_writing_to_plain_arrays_needs_no_general_path(name, monkeypatch):
    call, expected = WRITES[name], WRITES[name](X, None)
    wide, column_first = np.zeros((6, 8)), np.zeros((4, 3)).T
    fits = [np.zeros((3, 4)), wide[::2, ::2], wide[::-2, ::-2]]
    general = [column_first, np.zeros((3, 4), ">f8")]
    in_place = X.copy()
    (fits if name in OVERWRITES else general).append(in_place)

    class NeededError(Exception):
        pass

    def unexpected(*_):
        raise NeededError

    monkeypatch.setattr(_dispatch, "on_memory", unexpected)
    for out in fits:
        x = out if out is in_place else X
        assert call(x, out) is out
        assert np.array_equal(out, expected)
    before = in_place.copy()
    for out in general:
        with pytest.raises(NeededError):
            call(out if out is in_place else X, out)
    assert name in OVERWRITES or np.array_equal(in_place, before)


LARGEST = float(np.finfo("f4").max)


@pytest.mark.parametrize(
    ("dtype", "taken", "left"),
    [
        ("i1", [0, 1, -1, 127, -128], [128, -129, 2**62, 2**64, 1.5, True]),
        ("i8", [1, -1, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1]),
        ("u1", [0, 1, 255], [256, -1]),
        ("u8", [1, 2**63 - 1], [2**63, -1]),
        ("f4", [0, 1, -(2**24), 2**24, -1.5, LARGEST],
         [2**24 + 1, -(2**24) - 1, LARGEST * 1.1, float("inf"), float("nan")]),
        ("f8", [0.1, 2**24, LARGEST * 2], [2**24 + 1, float("inf")]),
        ("f2", [0], [1, 1.5, 0.0]),
        ("c8", [0], [1, 0.0]),
        ("c16", [0], [1, 0.0]),
        ("g", [0], [1, 0.5]),
        ("?", [0], [1, False]),
        ("M8[s]", [], [0, 1]),
    ],
)  # fmt: skip
def test_constants_that_need_no_general_path(dtype, taken, left):
    x = np.ones(1, dtype)
    for value in taken:
        assert native.shapes("pad", x, 1, "constant", value) is not None, value
        padded = native.function_call("pad")(None, x, 1, "constant", value)
        assert padded.tolist() == [value, x[0], value]
    for value in left:
        assert native.shapes("pad", x, 1, "constant", value) is None, value


def test_types_that_stand_for_themselves():
    class Name(str):
        __slots__ = ()

    dml.cast(X, "float32")
    assert native.shapes("cast", X, "float32")[0][1] == np.float32
    for kind in (Name("float32"), [], None, object()):
        assert native.shapes("cast", X, kind) is None


@pytest.mark.parametrize("count", [1, 2, 5])
def test_plain_bindings_need_no_binding_in_python(count):
    joined = dml.TensorDesc.from_array(np.zeros((1, 1, count, 2)))
    part = dml.TensorDesc.from_array(np.zeros((1, 1, 1, 2)))
    desc = dml.Split(input_tensor=joined, output_tensors=(part,) * count, axis=2)
    compiled = dml.Device("cpu").create_operator(desc).compile()
    x = np.arange(2.0 * count).reshape(1, 1, count, 2)
    outputs = [np.zeros((1, 1, 1, 2)) for _ in range(count)]
    done = compiled._executable.dispatch({"InputTensor": x, "OutputTensors": outputs}, 1)
    assert done == -1  # None: left to Python
    assert np.array_equal(np.concatenate(outputs, 2), x)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 40])
def test_the_parts_of_a_list_are_let_go(count):
    parts = [np.zeros((1, 2)) for _ in range(count)]
    before = [sys.getrefcount(part) for part in parts]
    for arguments in (parts, tuple(parts)):
        assert dml.join(arguments).shape == (count, 2)
        dml.split(np.zeros((count, 2)), [1] * count, out=parts)
    with pytest.raises(dml.ArgumentError):
        dml.join([*parts, np.zeros(3)])
    del arguments
    assert [sys.getrefcount(part) for part in parts] == before
