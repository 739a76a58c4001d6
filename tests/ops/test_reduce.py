"""Reductions and running totals against Python's own arithmetic, and the printed examples."""

import math
from itertools import product

import numpy as np
import pytest

import anydml as dml

CPU = dml.Device("cpu")
X = np.array([[1, 2, 3], [3, 0, 4], [2, 5, 2]], "f4")
TALLY = np.array([[2, 1, 3, 5], [3, 8, 7, 3], [9, 6, 2, 4]], "f4")


def run(kind, x, **attributes):
    desc = kind.with_outputs(input_tensor=dml.TensorDesc.from_array(x), **attributes)
    return CPU.create_operator(desc).compile()(x)


def groups(x, axes):
    """Index of each output element, and the input's elements that it is made of, as a list."""
    kept = [range(n) if axis not in axes else (0,) for axis, n in enumerate(x.shape)]
    for index in product(*kept):
        where = tuple(slice(None) if axis in axes else i for axis, i in enumerate(index))
        yield index, x[where].ravel().tolist()


ORACLES = {
    "ARGMAX": lambda v: v.index(max(v)),
    "ARGMIN": lambda v: v.index(min(v)),
    "AVERAGE": lambda v: math.fsum(v) / len(v),
    "L1": lambda v: math.fsum(map(abs, v)) if isinstance(v[0], float) else sum(map(abs, v)),
    "L2": lambda v: math.hypot(*v),
    "LOG_SUM": lambda v: math.log(math.fsum(v)) if math.fsum(v) > 0 else math.nan,
    "LOG_SUM_EXP": lambda v: math.log(math.fsum(map(math.exp, v))),
    "MAX": max,
    "MIN": min,
    "MULTIPLY": math.prod,
    "SUM": sum,
    "SUM_SQUARE": lambda v: sum(x * x for x in v),
}


@pytest.mark.parametrize("axes", [(0,), (2,), (0, 1), (2, 0), (2, 1, 0), ()])
@pytest.mark.parametrize("dtype", ["f4", "f2", "i4", "u8", "i1"])
@pytest.mark.parametrize("function", ORACLES)
def test_each_function(function, dtype, axes):
    name = dml.DataType.from_numpy(np.dtype(dtype))
    rows = [row for row in dml.support(dml.Reduce) if function in row.when["Function"]]
    if name not in rows[-1].tensors["InputTensor"].data_types:
        return
    generator = np.random.default_rng(5)
    x = generator.normal(0, 2, (3, 4, 5)).astype(dtype)
    if x.dtype.kind != "f":
        limits = np.iinfo(dtype)
        x = generator.integers(limits.min, limits.max, x.shape, dtype, endpoint=True)
    got = run(dml.Reduce, x, function=function, axes=axes)
    for index, values in groups(x, axes):
        expected = ORACLES[function](values)
        if function.startswith("ARG"):
            assert got[index] == expected
        elif x.dtype.kind == "f":
            np.testing.assert_allclose(got[index], np.array(expected).astype(dtype), rtol=1e-3
                                       if dtype == "f2" else 2e-7)  # fmt: skip
        else:  # wraps around
            assert (int(got[index]) - expected) % 2 ** (8 * x.itemsize) == 0


def test_what_is_not_a_number_takes_part():
    x = np.array([[1, np.nan, np.inf, np.nan], [-np.inf, np.inf, 0, 1]], "f4")
    for function in ("MAX", "MIN", "SUM", "MULTIPLY", "AVERAGE", "L1", "L2", "LOG_SUM_EXP"):
        assert np.isnan(run(dml.Reduce, x, function=function, axes=(1,))[0, 0]), function
    assert np.isnan(run(dml.Reduce, x, function="SUM", axes=(1,))[1, 0])
    assert run(dml.Reduce, x, function="MAX", axes=(1,))[1, 0] == np.inf
    for kind, infinite in ((dml.ArgMax, 1), (dml.ArgMin, 0)):
        first = run(kind, x, axes=(1,), axis_direction="INCREASING")
        last = run(kind, x, axes=(1,), axis_direction="DECREASING")
        assert first.ravel().tolist() == [1, infinite]
        assert last.ravel().tolist() == [3, infinite]
    nothing = np.full((2, 3), -np.inf, "f4")
    assert (run(dml.Reduce, nothing, function="LOG_SUM_EXP", axes=(1,)) == -np.inf).all()


def test_sums_of_many_small_numbers():
    """A running float32 sum would be far off."""
    x = np.full((1, 2, 300_000), 0.1, "f4")
    assert run(dml.Reduce, x, function="SUM", axes=(2,))[0, 0, 0] == np.float32(
        float(x[0, 0, 0]) * 300_000
    )
    assert run(dml.CumulativeSummation, x, axis=2, axis_direction="INCREASING",
               has_exclusive_sum=False)[0, 1, -1] == pytest.approx(30_000, rel=1e-6)  # fmt: skip


def test_ties_and_directions():
    x = np.array([3, 2, 1, 2, 3, 1], "u1")
    ends = {(kind, d): int(run(kind, x, axes=(0,), axis_direction=d)[0])
            for kind in (dml.ArgMax, dml.ArgMin) for d in ("INCREASING", "DECREASING")}  # fmt: skip
    assert [*ends.values()] == [0, 4, 2, 5]


def test_the_printed_examples():
    def add(axes):
        return run(dml.Reduce, x, function="SUM", axes=axes).tolist()

    x = np.array([[1, 2, 3], [3, 0, 4], [2, 4, 2]], "f4")
    assert (add((0,)), add((1,)), add((0, 1))) == ([[6, 6, 9]], [[6], [7], [8]], [[21]])
    arg = [run(dml.ArgMax, X, axes=a, axis_direction="INCREASING").tolist()
           for a in ((0,), (1,), (0, 1))]  # fmt: skip
    assert arg == [[[1, 2, 1]], [[2], [2], [1]], [[7]]]

    def tally(kind, *arguments):
        names = ["axis", "axis_direction", kind.fields()[-1].attribute]
        return run(kind, TALLY, **dict(zip(names, arguments, strict=True))).tolist()

    running, multiply = dml.CumulativeSummation, dml.CumulativeProduct
    assert tally(running, 1, "INCREASING", False) == [
        [2, 3, 6, 11],
        [3, 11, 18, 21],
        [9, 15, 17, 21],
    ]
    assert tally(running, 1, "INCREASING", True) == [[0, 2, 3, 6], [0, 3, 11, 18], [0, 9, 15, 17]]
    assert tally(running, 1, "DECREASING", False) == [
        [11, 9, 8, 5],
        [21, 18, 10, 3],
        [21, 12, 6, 4],
    ]
    assert tally(running, 0, "INCREASING", False) == [[2, 1, 3, 5], [5, 9, 10, 8], [14, 15, 12, 12]]
    assert tally(multiply, 1, "INCREASING", True)[1] == [1, 3, 24, 168]
    assert tally(multiply, 1, "DECREASING", False)[0] == [30, 15, 15, 5]
    assert tally(multiply, 0, "INCREASING", False)[2] == [54, 48, 42, 60]


def test_rules():
    tensor = dml.TensorDesc("FLOAT32", (2, 3))
    desc = dml.Reduce(function="ARGMAX", input_tensor=tensor, output_tensor=tensor, axes=(1,))
    found = {v.path: v.rule for v in CPU.check(desc)}
    assert set(found) == {"REDUCE.OutputTensor.DataType", "REDUCE.OutputTensor.Sizes[1]"}
    assert "the inputs imply {2, 1}" in found["REDUCE.OutputTensor.Sizes[1]"]
    desc = dml.CumulativeSummation(input_tensor=tensor, output_tensor=tensor, axis=2,
                                   axis_direction="INCREASING", has_exclusive_sum=True)  # fmt: skip
    (found,) = CPU.check(desc)
    assert str(found).startswith("CUMULATIVE_SUMMATION.Axis: expected 0..1")
    for function, types in (("MIN", "INT8"), ("SUM", "INT64"), ("L2", "FLOAT16")):
        tensor = dml.TensorDesc(types, (2,))
        desc = dml.Reduce(function=function, input_tensor=tensor,
                          output_tensor=dml.TensorDesc(types, (1,)), axes=(0,))  # fmt: skip
        level = CPU.minimum_feature_level(desc).suffix
        assert level == {"MIN": "3_0", "SUM": "5_0", "L2": "3_0"}[function]
