"""Every argument of every array function, wrong in every way that it can be."""

import builtins

import numpy as np
import pytest

import anydml as dml
from support import Poisoned

X = np.arange(12, dtype=np.float32).reshape(3, 4)
I = np.array([[0, 1], [1, 0], [2, -1]])  # noqa: E741  # beside X and U; along axis 1
U = np.zeros((3, 2), np.float32)
T = np.array([[0, 1], [2, 3]])  # tuples
V = np.zeros(2, np.float32)

# What a good call is, and the shape and type of what it returns.
GOOD = {
    "top_k": ({"x": X, "k": 2}, [((3, 2), "f4"), ((3, 2), "i8")]),
    "nonzero_coordinates": ({"x": X}, [((11, 2), "i8")]),
    "scatter_elements": ({"x": X, "indices": I, "updates": U, "axis": 1}, [((3, 4), "f4")]),
    "scatter_nd": ({"x": X, "indices": T, "updates": V}, [((3, 4), "f4")]),
    "split": ({"x": X, "sections_or_sizes": [1, 3], "axis": 1}, [((3, 1), "f4"), ((3, 3), "f4")]),
    "join": ({"arrays": [X, X], "axis": 0}, [((6, 4), "f4")]),
    "gather": ({"x": X, "indices": I, "axis": 1}, [((3, 3, 2), "f4")]),
    "gather_elements": ({"x": X, "indices": I, "axis": 1}, [((3, 2), "f4")]),
    "gather_nd": ({"x": X, "indices": T}, [((2,), "f4")]),
}
SEVERAL = ("top_k", "split")

NOT_ARRAYS = [
    None,
    "abc",
    object(),
    {"a": 1},
    [[1, 2], [3]],
    np.array(["a", "b"]),
    np.array([None, 1]),
    np.zeros(3, [("a", "i4"), ("b", "f4")]),
    np.ma.masked_array([1.0, 2.0], [True, False]),
    np.zeros(3, "clongdouble"),
]

TYPE, VALUE, INDEX = dml.ArgumentTypeError, dml.ArgumentError, dml.IndexOutOfRangeError
BUILTIN = {TYPE: TypeError, VALUE: ValueError, INDEX: IndexError}

WRONG = []


def wrong(function, kind, *parts, **changes):
    """The call with these changes raises `kind`, and the message has all the parts."""
    words = {key: str(value).partition(" at 0x")[0][:30] for key, value in changes.items()}
    text = "-".join(f"{key}={word!r}" for key, word in words.items())
    WRONG.append(pytest.param(function, changes, kind, parts, id=f"{function}-{text}"))


for name, (arguments, _) in GOOD.items():
    for bad in NOT_ARRAYS:
        if "x" in arguments:
            wrong(name, TYPE, "x:", x=bad)
        if "updates" in arguments:
            wrong(name, TYPE, "updates:", updates=bad)
        if "indices" in arguments:
            wrong(name, TYPE, "indices:", indices=bad)
    if "axis" in arguments or name == "top_k":
        for axis in (2, -3, 99, -99):
            wrong(name, VALUE, "axis: expected -2..1", f"got {axis}", axis=axis)
        for axis in (10**30, -(10**30)):
            wrong(name, VALUE, "axis: expected -2..1", axis=axis)
        for axis in (1.0, "1", None, True, np.float32(1), (0,), [1]):
            if name == "join" and axis is None:
                continue  # all elements
            wrong(name, TYPE, "axis: expected an integer", f"got {axis!r}", axis=axis)
    if "indices" in arguments:
        for kind in ("f4", "f8", "bool", "c8"):
            wrong(name, TYPE, "indices: expected one of int64, int32, uint32, uint64",
                  f"got {np.dtype(kind)}", indices=arguments["indices"].astype(kind))  # fmt: skip
        wrong(name, TYPE, "indices:", indices=[[0.5, 1.5]])
    if "updates" in arguments:
        shape = arguments["updates"].shape
        for kind in ("f8", "f2", "i4", "bool"):
            wrong(name, TYPE, "updates: expected float32 (the type of x)", f"got {np.dtype(kind)}",
                  updates=np.zeros(shape, kind))  # fmt: skip
        wrong(name, TYPE, "updates: expected float32", updates=np.full(shape, 1e300).tolist())
        for bad in ((7,), (*shape, 1), shape[:-1] + (5,)):
            wrong(name, VALUE, f"updates.shape: expected {shape}", f"got {bad}",
                  updates=np.zeros(bad, "f4"))  # fmt: skip
        for reduction in ("plus", "ADD", 1, b"add", ["add"], True, np.array(["add", "mul"])):
            wrong(name, VALUE, "reduction: expected one of None, 'none', 'add'",
                  f"got {reduction!r}", reduction=reduction)  # fmt: skip
    if name.startswith("gather"):
        for mode in ("wrp", "CLAMP", 1, None, b"raise", ["clamp"], True, np.array(["wrap"] * 2)):
            wrong(name, VALUE, "mode: expected one of 'raise', 'clamp', 'wrap', 'clip'",
                  f"got {mode!r}", mode=mode)  # fmt: skip

for k in (-1, 5, 100, 10**30):
    wrong("top_k", VALUE, f"k: expected at {'most 4' if k > 4 else 'least 0'}", f"got {k}", k=k)
for k in (2.0, "2", None, True, [2], np.float64(2)):
    wrong("top_k", TYPE, "k: expected an integer", f"got {k!r}", k=k)
for largest in (1, 0, "yes", [True]):
    wrong("top_k", TYPE, "largest: expected a bool", f"got {largest!r}", largest=largest)
for kind in ("int16", "float32", "uint16", "q2", 7, [1], ">i8", "bool", float):
    for name in ("top_k", "nonzero_coordinates"):
        wrong(name, TYPE, "index_dtype: expected one of int64, int32, uint32, uint64, got",
              index_dtype=kind)  # fmt: skip
for kind in ("c8", "M8[s]", "m8[s]", "longdouble"):
    wrong("top_k", TYPE, "x: expected one of", x=X.astype("i8").astype(kind))
for kind in ("M8[s]", "m8[s]", "longdouble"):
    wrong("nonzero_coordinates", TYPE, "x: expected one of", x=X.astype("i8").astype(kind))
for reduction in ("add", "mul", "min", "max"):
    for kind in ("m8[s]", "longdouble", *(("c8",) if reduction in ("min", "max") else ())):
        for name in ("scatter_elements", "scatter_nd"):
            shape = GOOD[name][0]["updates"].shape
            changes = {"x": X.astype("i8").astype(kind), "updates": np.zeros(shape, kind)}
            wrong(name, TYPE, f"x: reduction {reduction!r} expected one of",
                  f"got {np.dtype(kind)}", reduction=reduction, **changes)  # fmt: skip

for name in ("scatter_elements", "gather_elements"):
    for shape in ((), (2,), (1, 1, 1)):
        changes = {"updates": np.zeros(shape, "f4")} if name.startswith("scatter") else {}
        wrong(name, VALUE, "indices.ndim: expected 2 (x.ndim)", f"got {len(shape)}",
              indices=np.zeros(shape, "i8"), **changes)  # fmt: skip
    changes = {"updates": np.zeros((4, 2), "f4")} if name.startswith("scatter") else {}
    wrong(name, VALUE, "indices.shape[0]: expected at most 3 (x.shape[0])", "got 4",
          indices=np.zeros((4, 2), "i8"), **changes)  # fmt: skip
for name in ("scatter_nd", "gather_nd"):
    wrong(name, VALUE, "indices.ndim: expected 1 or more (tuples on the last axis), got 0",
          indices=np.int64(1))  # fmt: skip
    wrong(
        name,
        VALUE,
        "indices.shape[-1]: expected at most 2",
        "got 3",
        indices=np.zeros((1, 3), "i8"),
    )

for batch in (-1, 2, 3, 10**30):
    wrong("gather_nd", VALUE, "batch_dims: expected 0..1", f"got {batch}", batch_dims=batch)
for batch in (1.0, "1", None, True):
    wrong("gather_nd", TYPE, "batch_dims: expected an integer", batch_dims=batch)
wrong(
    "gather_nd",
    VALUE,
    "indices.shape[-2]: expected 3 (x.shape[-2], a batch size)",
    "got 2",
    batch_dims=1,
)
wrong("gather_nd", VALUE, "indices.shape[-1]: expected at most 1 ", "got 2",
      indices=np.zeros((3, 2), "i8"), batch_dims=1)  # fmt: skip

for sections in (0, -1, 3, 5, 10**30):
    wrong("split", VALUE, "sections_or_sizes: expected a divisor of 4", f"got {sections}",
          sections_or_sizes=sections)  # fmt: skip
for sections in (2.0, "2", None, True, {2}):
    wrong("split", TYPE, "sections_or_sizes: expected an integer", sections_or_sizes=sections)
wrong("split", VALUE, "sections_or_sizes: expected at least one size", sections_or_sizes=[])
wrong("split", VALUE, "sections_or_sizes: expected a sum of 4", "got 5", sections_or_sizes=[2, 3])
wrong("split", VALUE, "sections_or_sizes[1]: expected at least 0", "got -1",
      sections_or_sizes=[5, -1])  # fmt: skip
wrong("split", TYPE, "sections_or_sizes[1]: expected an integer", "got 2.0",
      sections_or_sizes=[2, 2.0])  # fmt: skip

for arrays in (None, 3, "ab", b"ab"):
    wrong("join", TYPE, "arrays: expected a sequence of arrays", arrays=arrays)
wrong("join", VALUE, "arrays: expected at least one", arrays=[])
for bad in NOT_ARRAYS:
    wrong("join", TYPE, "arrays[1]", arrays=[X, bad])
    wrong("join", TYPE, "arrays[0]", arrays=[bad, X])
wrong("join", TYPE, "arrays[1]: expected float32 (the type of arrays[0])", "got float64",
      arrays=[X, X.astype("f8")])  # fmt: skip
for bad in (X[:, :3], X[0], X[None]):
    wrong("join", VALUE, "arrays[2].shape: expected (3, 4) except on axis 0 (arrays[0].shape)",
          f"got {bad.shape}", arrays=[X, X, bad])  # fmt: skip


def call(function, changes):
    arguments = {**GOOD[function][0], **changes}
    return getattr(dml, function)(**arguments)


@pytest.mark.parametrize(("function", "changes", "kind", "parts"), WRONG)
def test_wrong_argument(function, changes, kind, parts):
    _, results = GOOD[function]
    if "reduction" in changes and "x" in changes:
        results = [(X.shape, changes["x"].dtype)]
    outs = [Poisoned(*result) for result in results]
    arrays = tuple(out.array for out in outs)
    out = arrays if function in SEVERAL else arrays[0]
    for options in ({}, {"out": out}):
        with pytest.raises(kind) as error:
            call(function, changes | options)
        assert isinstance(error.value, dml.AnyDMLError)
        assert isinstance(error.value, BUILTIN[kind])
        for part in parts:
            assert part in str(error.value), error.value
    assert all(item.untouched() for item in outs)


@pytest.mark.parametrize("function", GOOD)
def test_good_calls_are_good(function):
    result = call(function, {})
    results = result if isinstance(result, tuple) else (result,)
    assert [(r.shape, r.dtype) for r in results] == [
        (shape, np.dtype(kind)) for shape, kind in GOOD[function][1]
    ]


OUTS = []
for name, (_, results) in GOOD.items():
    for i, (shape, kind) in enumerate(results):
        where = f"out[{i}]" if name in SEVERAL else "out"
        other = "f8" if kind == "f4" else "i2"
        OUTS += [
            (name, i, np.zeros((*shape, 1), kind), VALUE, (f"{where}: expected shape {shape}",)),
            (name, i, np.zeros(shape[:-1] + (9,), kind), VALUE, (f"{where}: expected shape",)),
            (name, i, np.zeros((), kind), VALUE, (f"{where}: expected shape", "got ()")),
            (name, i, np.zeros(shape, other), TYPE,
             (f"{where}: expected {np.dtype(kind)}", f"got {np.dtype(other)}")),
            (name, i, np.zeros(shape, np.dtype(kind).newbyteorder()), TYPE,
             (f"{where}: expected",)),
            (name, i, np.broadcast_to(np.zeros((), kind), shape), VALUE, (f"{where}: ",)),
            (name, i, np.lib.stride_tricks.as_strided(np.zeros(99, kind), shape,
                                                      (0,) * len(shape), writeable=True),
             VALUE, (f"{where}: expected an array that does not overlap itself",)),
            (name, i, [0.0], TYPE, (f"{where}: expected an array", "got list")),
            (name, i, "x", TYPE, (f"{where}: expected an array", "got str")),
        ]  # fmt: skip
    OUTS += [
        (name, None, 3, TYPE, ("out: expected",)),
    ]
for name in SEVERAL:
    for bad in ((), (X,), (X, X, X)):
        OUTS.append((name, None, bad, VALUE, ("out: expected 2 arrays", f"got {len(bad)}")))
    OUTS.append((name, None, X, TYPE, ("out: expected a tuple of 2 arrays",)))


@pytest.mark.parametrize(
    ("function", "position", "bad", "kind", "parts"),
    OUTS,
    ids=lambda value: str(value)[:20] if isinstance(value, str | int) else "",
)
def test_wrong_out(function, position, bad, kind, parts):
    outs = [Poisoned(*result) for result in GOOD[function][1]]
    arrays = [out.array for out in outs]
    if position is None:
        out = bad
    else:
        arrays[position] = bad
        out = tuple(arrays) if function in SEVERAL else bad
    before = np.array(bad, copy=True) if isinstance(bad, np.ndarray) else None
    with pytest.raises(kind) as error:
        call(function, {"out": out})
    for part in parts:
        assert part in str(error.value), error.value
    assert all(item.untouched() for item in outs)
    if before is not None:
        assert np.array_equal(bad, before)


@pytest.mark.parametrize("function", GOOD)
def test_read_only_out(function):
    for i in range(len(GOOD[function][1])):
        outs = [Poisoned(*result) for result in GOOD[function][1]]
        outs[i].array.flags.writeable = False
        arrays = tuple(out.array for out in outs)
        with pytest.raises(VALUE, match=r"writable") as error:
            call(function, {"out": arrays if function in SEVERAL else arrays[0]})
        where = f"out[{i}]" if function in SEVERAL else "out"
        assert str(error.value).startswith(where)
        assert all(item.untouched() for item in outs)


def _inside(array, shape, kind):
    """An array of the shape and type whose first byte is the array's last."""
    memory = np.zeros(4096, np.uint8)
    held = memory[512 : 512 + array.nbytes].view(array.dtype).reshape(array.shape)
    held[...] = array
    start = 512 + array.nbytes - 4
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    return memory, held, memory[start : start + size].view(kind).reshape(shape)


@pytest.mark.parametrize("function", GOOD)
def test_out_overlaps_an_operand(function):
    arguments, results = GOOD[function]
    for name, value in arguments.items():
        operand = value[1] if name == "arrays" else value
        if not isinstance(operand, np.ndarray):
            continue
        for i, (shape, kind) in enumerate(results):
            memory, held, target = _inside(operand, shape, kind)
            before = memory.copy()
            outs = [np.zeros(*result) for result in results]
            outs[i] = target
            changes = {name: [X, held] if name == "arrays" else held,
                       "out": tuple(outs) if function in SEVERAL else target}  # fmt: skip
            where = f"out[{i}]" if function in SEVERAL else "out"
            label = "arrays[1]" if name == "arrays" else name
            with pytest.raises(VALUE) as error:
                call(function, changes)
            assert str(error.value).startswith(f"{where}: expected memory that does not overlap")
            assert f"overlap {label}, got an overlap" in str(error.value)
            assert np.array_equal(memory, before)


@pytest.mark.parametrize("function", SEVERAL)
def test_outs_overlap_each_other(function):
    memory = np.zeros(24, np.uint32)
    (first, _), (second, _) = GOOD[function][1]
    outs = [
        memory[: np.prod(first)].reshape(first).view("f4"),
        memory[1 : 1 + np.prod(second)].reshape(second).view("u4"),
    ]
    if function == "split":
        outs[1] = memory[: np.prod(second)].reshape(second).view("f4")
    with pytest.raises(VALUE, match=r"out\[1\]: .*overlap out\[0\]"):
        call(function, {"out": tuple(outs)})
    assert not memory.any()


@pytest.mark.parametrize("function", ["scatter_elements", "scatter_nd"])
def test_in_place_means_exactly_the_input(function):
    memory = Poisoned((4, 4), "f4")
    x = memory.array[:3]
    for target in (memory.array[1:], x[::-1], memory.array.T[:3]):
        with pytest.raises(VALUE, match=r"out: .*overlap x"):
            call(function, {"x": x, "out": target})
    assert memory.untouched()
    assert call(function, {"x": x, "out": x}) is x


@pytest.mark.parametrize("function", ["gather", "gather_elements", "top_k", "join", "split"])
def test_no_other_function_works_in_place(function):
    memory = Poisoned((3, 4), "f4")
    x = memory.array
    changes = {
        "gather": {"x": x, "indices": np.arange(4), "out": x},
        "gather_elements": {"x": x, "indices": np.zeros((3, 4), "i8"), "out": x},
        "top_k": {"x": x, "k": 4, "out": (x, np.zeros((3, 4), "u4"))},
        "join": {"arrays": [x], "out": x},
        "split": {"x": x, "sections_or_sizes": 1, "out": (x,)},
    }[function]
    with pytest.raises(VALUE, match="overlap"):
        call(function, changes)
    assert memory.untouched()


def test_nothing_is_clamped_to_in_an_empty_axis():
    empty = np.zeros((0, 3), "f4")
    for indices in ([0], [-1]):
        with pytest.raises(VALUE, match="axis 0 has no elements"):
            dml.gather(empty, indices, mode="clamp")
        with pytest.raises(INDEX, match="nothing"):
            dml.gather(empty, indices)
    with pytest.raises(VALUE, match="axis 0 has no elements"):
        dml.gather_nd(empty, [[0]], mode="clamp")
    # Without an index nothing is clamped.
    assert dml.gather(empty, np.zeros(0, "i8"), mode="clamp").shape == (0, 3)
    assert dml.gather_elements(empty, np.zeros((0, 3), "i8"), mode="clamp").shape == (0, 3)
    assert dml.gather_nd(empty, np.zeros((0, 1), "i8"), mode="clamp").shape == (0, 3)


def test_axis_of_a_scalar():
    with pytest.raises(VALUE, match=r"x: .*axis"):
        dml.split(np.float32(1), 1)
    with pytest.raises(VALUE, match=r"arrays\[0\]: expected at least one axis"):
        dml.join([np.float32(1)])


def test_builtin_names_are_what_they_derive_from():
    tree = {
        dml.InvalidDescriptorError: builtins.ValueError,
        dml.BindingError: builtins.ValueError,
        dml.IndexOutOfRangeError: builtins.IndexError,
        dml.ArgumentError: builtins.ValueError,
        dml.ArgumentTypeError: builtins.TypeError,
        dml.ModelError: builtins.ValueError,
        dml.DeviceError: builtins.RuntimeError,
    }
    for kind, builtin in tree.items():
        assert issubclass(kind, dml.AnyDMLError)
        assert issubclass(kind, builtin)
        assert kind.__doc__


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "uint64"])
def test_lists_fit_up_to_the_limits_of_the_type(kind):
    limits = np.iinfo(kind)
    x = np.zeros(2, kind)
    for good in (limits.min, limits.max):
        assert dml.scatter_elements(x, [1], [good]).tolist() == [0, good]
        assert dml.join([x, [good]]).tolist() == [0, 0, good]
    for bad in (limits.min - 1, limits.max + 1):
        with pytest.raises(TYPE, match="updates: expected"):
            dml.scatter_elements(x, [1], [bad])


def test_float_lists_fit_where_they_stay_finite():
    x = np.zeros(2, "f2")
    assert dml.scatter_elements(x, [1], [65504.0]).tolist() == [0, 65504]
    assert np.isinf(dml.scatter_elements(x, [1], [np.inf])[1])
    with pytest.raises(TYPE, match="values that do not fit"):
        dml.scatter_elements(x, [1], [65536.0])
