"""Calls of the array functions at the edges of what is accepted, and what they give."""

from __future__ import annotations

from typing import Any

import numpy as np

import anydml as dml

MOST_AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32
X = np.arange(12, dtype=np.int64).reshape(3, 4) * 3
F = np.array([1.0, 2.0, 3.0], np.float32)
C = np.array([[1 + 2j, 3], [2j, 5]], np.complex64)
ONE = np.float32(7)
FAR = np.broadcast_to(np.uint8(7), (2**48,))  # one byte of memory
NONE = np.zeros((3, 0), np.float32)


def i(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def f(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


CASES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], Any]] = {
    # numbers for arrays, on arrays of two axes: the axis is not the index
    "gather: a number": (dml.gather, (X, 1), {"axis": 0}, X[1]),
    "gather: small indices": (dml.gather, (F, np.array([2, -1], "i1")), {}, f(3, 3)),
    "gather: no indices": (dml.gather, (F, []), {}, f()),
    "gather: one, wrapped": (dml.gather, (F, 4), {"mode": "wrap"}, f(2)[0]),
    "gather: one, clipped": (dml.gather, (F, -4), {"mode": "clip"}, f(1)[0]),
    "gather: of a scalar": (dml.gather, (ONE, [[0], [-1]]), {}, f([7], [7])),
    "gather: far away": (dml.gather, (FAR, [-1, 2**48 - 1]), {}, np.array([7, 7], "u1")),
    "gather: the most axes": (
        dml.gather,
        (np.full((1,) * (MOST_AXES // 2), 5.0), np.zeros((1,) * (MOST_AXES // 2 + 1), int)),
        {},
        np.full((1,) * MOST_AXES, 5.0),
    ),
    "gather_elements: spread along axis 0": (
        dml.gather_elements, (X, i([2], [0])), {"broadcast": True}, X[[2, 0]],
    ),
    "gather_elements: spread along axis 1": (
        dml.gather_elements, (X, i([3, 0, 1, 1, 2])), {"axis": 1, "broadcast": True},
        X[:, [3, 0, 1, 1, 2]],
    ),
    "gather_elements: both spread": (
        dml.gather_elements, (X[:1], i([3, 1], [0, 2])), {"axis": 1, "broadcast": True},
        i([9, 3], [0, 6]),
    ),
    "gather_elements: three axes, spread": (
        dml.gather_elements, (X.reshape(3, 2, 2), i([[1]], [[0]], [[1]])),
        {"axis": 1, "broadcast": True}, X.reshape(3, 2, 2)[[0, 1, 2], [1, 0, 1]][:, None],
    ),
    "gather_elements: not spread": (
        dml.gather_elements, (X, i([2, 0], [1, 1])), {"axis": 1}, i([6, 0], [15, 15]),
    ),
    "gather_elements: of a scalar": (
        dml.gather_elements, (ONE, i([0, -1], [0, 0])), {}, f([7, 7], [7, 7]),
    ),
    "gather_elements: one of a scalar": (dml.gather_elements, (ONE, np.int64(0)), {}, ONE),
    "gather_elements: of a scalar, spread": (
        dml.gather_elements, (ONE, i(0, 0)), {"broadcast": True}, f(7, 7),
    ),
    "gather_nd: pairs, wrapped": (dml.gather_nd, (X, i([4, -5], [1, 2], [0, 4])), {"mode": "wrap"},
                                  i(21, 18, 0)),
    "gather_nd: in batches, wrapped": (
        dml.gather_nd, (X, i([5], [4], [-1])), {"batch_dims": 1, "mode": "wrap"}, i(3, 12, 33),
    ),
    "gather: indices like x": (dml.gather, (i(1, 0, 1), i(2, 0)), {}, i(1, 1)),
    "gather: nothing of nothing, clipped": (
        dml.gather, (f(), np.zeros(0, "u8")), {"mode": "clip"}, f(),
    ),
    "gather_nd: indices like x": (dml.gather_nd, (i([1], [0]), i([0], [0], [1])), {},
                                  i([1], [1], [0])),
    "gather_nd: one tuple, wrapped": (dml.gather_nd, (X, i(4, -5)), {"mode": "wrap"}, X[1, 3]),
    "gather_nd: no tuples": (dml.gather_nd, (X, np.zeros((2, 0), int)), {}, np.stack([X, X])),
    "gather_nd: no tuples, wrapped": (
        dml.gather_nd, (X, np.zeros((1, 0), int)), {"mode": "wrap"}, X[None],
    ),
    "scatter_elements: a number": (
        dml.scatter_elements, (X, i([2, 0], [1, 1]), 1), {"axis": 0},
        i([0, 1, 6, 9], [1, 1, 18, 21], [1, 27, 30, 33]),
    ),
    "scatter_elements: spread along axis 1": (
        dml.scatter_elements, (X, i([1]), i([5], [6], [7])), {"axis": 1, "broadcast": True},
        i([0, 5, 6, 9], [12, 6, 18, 21], [24, 7, 30, 33]),
    ),
    "scatter_elements: spread along axis 0": (
        dml.scatter_elements, (X, i([1]), 5), {"broadcast": True},
        i([0, 3, 6, 9], [5, 5, 5, 5], [24, 27, 30, 33]),
    ),
    "scatter_elements: to a scalar": (dml.scatter_elements, (ONE, i(0, -1), f(5, 6)), {}, f(6)[0]),
    "scatter_elements: to a scalar, spread": (
        dml.scatter_elements, (ONE, i(0), f(5)), {"broadcast": True}, f(5)[0],
    ),
    "scatter_elements: nothing": (dml.scatter_elements, (F, [], []), {}, F),
    "scatter_elements: largest but itself": (
        dml.scatter_elements, (i(5, 5), i(0), i(-3)), {"reduction": "max", "include_self": False},
        i(-3, 5),
    ),
    "scatter_elements: least but itself": (
        dml.scatter_elements, (i(5, 5), i(0), i(8)), {"reduction": "min", "include_self": False},
        i(8, 5),
    ),
    "scatter_elements: product of complex numbers": (
        dml.scatter_elements, (C, i([1, 1], [0, -1]), C), {"axis": 1, "reduction": "mul"},
        C * np.array([[1, (1 + 2j) * 3], [2j, 5]], np.complex64),
    ),
    "scatter_nd: product of complex numbers": (
        dml.scatter_nd, (C, i([1], [1]), C), {"reduction": "mul"},
        np.stack([C[0], C[1] * C[0] * C[1]]),
    ),
    "scatter_elements: all of one kind": (
        dml.scatter_elements, (i(0, 1, 2), i(2, 2, 0), i(5, 6, 7)), {}, i(7, 1, 6),
    ),
    "scatter_nd: indices like x": (dml.scatter_nd, (i([0], [1]), i([1], [1]), i([5], [6])), {},
                                   i([0], [6])),
    "scatter_nd: updates like indices": (
        dml.scatter_nd, (i([7], [7], [7]), i([1], [2]), i([0], [1])), {}, i([7], [0], [1]),
    ),
    "slice_window: three numbers": (dml.slice_window, (X[0], (1,), (3,), (2,)), {}, i(3, 9)),
    "slice_window: back to the second": (dml.slice_window, (X[0], (1,), (2,), (-1,)), {}, i(6, 3)),
    "slice_window: back to the first": (dml.slice_window, (X[0], (0,), (3,), (-1,)), {},
                                        i(6, 3, 0)),
    "pad: a pair": (dml.pad, (F, (1, 2)), {}, f(0, 1, 2, 3, 0, 0)),
    "scatter_nd: a number": (dml.scatter_nd, (X, i([2, 0], [0, 3]), 1), {},
                             i([0, 3, 6, 1], [12, 15, 18, 21], [1, 27, 30, 33])),
    "scatter_nd: a number in rows": (dml.scatter_nd, (X, i([2]), 1), {},
                                     i([0, 3, 6, 9], [12, 15, 18, 21], [1, 1, 1, 1])),
    "scatter_nd: a number by one tuple": (dml.scatter_nd, (X, i(2, 1), 1), {},
                                          i([0, 3, 6, 9], [12, 15, 18, 21], [24, 1, 30, 33])),
    "top_k: of a scalar": (dml.top_k, (ONE, 1), {}, (ONE, np.int64(0))),
    "top_k: none of a scalar": (dml.top_k, (ONE, 0), {}, (f(), i())),
    "top_k: one of one": (dml.top_k, (f(7), 1), {}, (f(7), i(0))),
    "top_k: one of two": (dml.top_k, (f(7, 8), 1), {}, (f(8), i(1))),
    "top_k: two of bools": (dml.top_k, (np.array([False, True, True]), 2), {},
                            (np.array([True, True]), i(1, 2))),
    "top_k: indices that hold the last place": (
        dml.top_k, (FAR[: 2**31], 0), {"index_dtype": "int32"}, (FAR[:0], np.zeros(0, np.int32)),
    ),
    "nonzero_coordinates: rows without columns": (
        dml.nonzero_coordinates, (ONE,), {"size": 2**48}, np.zeros((2**48, 0), np.int64),
    ),
    "split: a number in an array": (dml.split, (F[:2], np.array(2)), {}, (f(1), f(2))),
    "split: by a size of nothing": (dml.split, (F, [0, 3]), {}, (f(), F)),
    "split: one section, near equal": (dml.split, (F, 1), {"near_equal": True}, (F,)),
    "split: two sections, near equal": (dml.split, (F, 2), {"near_equal": True}, (f(1, 2), f(3))),
    "split: at the start": (dml.split, (F,), {"points": [0]}, (f(), F)),
    "split: from the end": (dml.split, (F,), {"points": [-1]}, (f(1, 2), f(3))),
    "split: before the start": (dml.split, (F,), {"points": [-9, 1]}, (f(), f(1), f(2, 3))),
    "split: behind the end": (dml.split, (F,), {"points": [2, 9]}, (f(1, 2), f(3), f())),
    "join: three": (dml.join, ([F, f(4), F],), {}, f(1, 2, 3, 4, 1, 2, 3)),
    "join: one without elements": (dml.join, ([f()],), {}, f()),
    "join: flat": (dml.join, ([X[:2], i(1)],), {"axis": None}, np.append(X[:2], 1)),
    "cast: a type of NumPy's": (dml.cast, (F, np.int8), {}, np.array([1, 2, 3], "i1")),
    "pad: pairs in an array": (dml.pad, (F, np.array([[1, 2]])), {}, f(0, 1, 2, 3, 0, 0)),
    "pad: as many pairs as a pair has members": (
        dml.pad, (X[:1, :1] + 1, [(1, 0), (0, 2)]), {}, i([0, 0, 0], [1, 0, 0]),
    ),
    "pad: by NumPy's name": (dml.pad, (F, 2, "reflect"), {}, f(3, 2, 1, 2, 3, 2, 1)),
    "tile: the most axes": (dml.tile, (f(4), (1,) * MOST_AXES), {},
                            np.full((1,) * MOST_AXES, 4, "f4")),
    "reverse_subsequences: no lengths": (dml.reverse_subsequences, (NONE, []), {"axis": 0}, NONE),
    "reverse_subsequences: lengths beyond 32 bits": (
        dml.reverse_subsequences, (F, i(2**32 + 1)), {"axis": 0}, f(3, 2, 1),
    ),
}  # fmt: skip
