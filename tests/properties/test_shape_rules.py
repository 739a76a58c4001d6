"""The kernels' native shape rules against the operators' `infer`, which is the authority."""

from __future__ import annotations

from inspect import signature

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anydml._native import native
from anydml.core.errors import ArgumentError, ArgumentTypeError
from anydml.core.program import ArraySpec, Dynamic
from anydml.functions._function import function_specs
from anydml.functions.pad import constant_of, padding_mode, paddings
from anydml.functions.top_k import TopKRows
from anydml.ops.cast import Cast
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.padding1 import Padding1
from anydml.ops.reverse_subsequences import ReverseSubsequences
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.slice1 import Slice1
from anydml.ops.split import Split
from anydml.ops.tile import Tile
from anydml.ops.top_k import TopK1
from support import assert_same_bits

SIZES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
INDICES = st.sampled_from(["i8", "i4", "u8", "u4", "i2", "f4", "?"])
DATA = st.sampled_from(["f4", "i8", "u1", "c8", "?", "M8[s]"])
INDEX_NAMES = ["int64", "int32", "uint32", "uint64"]
INDEX_TYPES = st.sampled_from(INDEX_NAMES).flatmap(
    lambda kind: st.sampled_from([None, kind, getattr(np, kind), np.dtype(kind)])
)
AXES = st.integers(-5, 4)
MEASURED = -1


def array(shape, dtype):
    """Nothing looks at the elements: a broadcast one stands for all."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def related(draw, shape):
    """A shape of its own, or one that differs from another in a size or two."""
    if draw(st.booleans()):
        return draw(SIZES)
    sizes = list(shape)
    for _ in range(draw(st.integers(0, 2)) if sizes else 0):
        sizes[draw(st.integers(0, len(sizes) - 1))] = draw(st.integers(0, 5))
    return tuple(sizes)


def indexed(draw, *, updates, tuples=False):
    dtype = draw(DATA)
    x = array(draw(SIZES), dtype)
    shape = related(draw, x.shape)
    if tuples:
        shape = (*shape, draw(st.integers(0, 4)))
    arrays = [x, array(shape, draw(INDICES))]
    if updates:
        shape = (*shape[:-1], *x.shape[shape[-1] :]) if tuples else shape
        shape = shape if draw(st.booleans()) else related(draw, shape)
        arrays.append(array(shape, draw(st.sampled_from([dtype, "f4"]))))
    return arrays


def counted(axis, x):
    """As the array functions hand it on; None where they reject it before."""
    return axis % x.ndim if -x.ndim <= axis < x.ndim else None


def top_k(draw):
    x, axis = array(draw(SIZES), draw(DATA)), draw(AXES)
    k = draw(st.integers(-1, 5))
    attributes = {"axis": counted(axis, x), "k": k, "largest": True}
    return TopK1, [x], (axis, k, True, draw(INDEX_TYPES)), attributes


def top_k_rows(draw):
    x, axis, k = array(draw(SIZES), draw(DATA)), draw(AXES), draw(st.integers(-1, 5))
    number = counted(axis, x)
    rows = x.shape if number is None else (*x.shape[:number], *x.shape[number + 1 :])
    sizes = draw(st.sampled_from([(0,), rows])) if draw(st.booleans()) else related(draw, rows)
    flags = [draw(st.booleans()) for _ in range(4)]
    arguments = (axis, k, *flags, 0, draw(INDEX_TYPES))
    return TopKRows, [x, array(sizes, draw(INDICES))], arguments, {"axis": number, "k": k}


def nonzero(draw):
    x = array(draw(SIZES), draw(DATA))
    return NonzeroCoordinates, [x], (draw(INDEX_TYPES),), {"columns": x.ndim}


def scatter_elements(draw):
    arrays, axis = indexed(draw, updates=True), draw(AXES)
    return Scatter, arrays, (axis, None), {"axis": counted(axis, arrays[0])}


def scatter_nd(draw):
    return ScatterND, indexed(draw, updates=True, tuples=True), ("none",), {}


def gather(draw):
    arrays, axis, clamp = indexed(draw, updates=False), draw(AXES), draw(st.booleans())
    attributes = {"axis": counted(axis, arrays[0]), "clamp": clamp}
    return Gather, arrays, (axis, "clamp" if clamp else "raise"), attributes


def gather_elements(draw):
    _, arrays, arguments, attributes = gather(draw)
    return GatherElements, arrays, arguments, attributes


def gather_nd(draw):
    arrays = indexed(draw, updates=False, tuples=True)
    batch, clamp = draw(st.integers(-1, 3)), draw(st.booleans())
    attributes = {"batch_dims": batch, "clamp": clamp}
    return GatherND, arrays, (batch, "clamp" if clamp else "raise"), attributes


def split(draw):
    x, axis, sections = array(draw(SIZES), draw(DATA)), draw(AXES), draw(st.integers(-1, 4))
    number = counted(axis, x)
    if draw(st.booleans()):
        sizes = draw(st.lists(st.integers(-1, 3), max_size=4))
        refused = not sizes or min(sizes) < 0  # which the function does
        attributes = {"axis": None if refused else number, "sizes": sizes}
        return Split, [x], (draw(st.sampled_from([list, tuple]))(sizes), axis), attributes
    if number is not None and (sections < 1 or x.shape[number] % sections):
        number = None
    sizes = [] if number is None else [x.shape[number] // sections] * sections
    return Split, [x], (sections, axis), {"axis": number, "sizes": sizes}


def join(draw):
    first = array(draw(SIZES), draw(DATA))
    others = [array(related(draw, first.shape), draw(st.sampled_from([first.dtype, "f4"])))
              for _ in range(draw(st.integers(0, 3)))]  # fmt: skip
    axis = draw(AXES)
    return Join, [first, *others], (axis,), {"axis": counted(axis, first)}


def cast(draw):
    to = draw(st.sampled_from(["float32", "FLOAT16", np.int64, np.dtype("u1"), "complex64"]))
    name = str(to).lower() if isinstance(to, str) else np.dtype(to).name
    refused = name == "complex64"  # which the function does
    if not refused:
        native.know_type(to, np.dtype(name))
    return Cast, [array(draw(SIZES), draw(DATA))], (to,), {"to": None if refused else name}


def slice_window(draw):
    x = array(draw(SIZES), draw(DATA))
    rank = x.ndim if draw(st.booleans()) else draw(st.integers(0, 4))
    starts, sizes = (
        tuple(draw(st.integers(-1, 4)) for _ in range(rank)) for _ in ("starts", "sizes")
    )
    strides = draw(st.none() | st.tuples(*[st.integers(-3, 3)] * rank))
    attributes = {
        "starts": starts,
        "sizes": sizes,
        "strides": (1,) * x.ndim if strides is None else strides,
    }
    return Slice1, [x], (starts, sizes, strides), attributes


def tile(draw):
    x = array(draw(SIZES), draw(DATA))
    repeats = draw(st.integers(-1, 3) | st.lists(st.integers(-1, 3), max_size=4))
    counts = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    missing = max(len(counts) - x.ndim, 0)
    data = x.reshape((1,) * missing + x.shape)
    attributes = {"repeats": (1,) * (data.ndim - len(counts)) + counts}
    return Tile, [data], (repeats,), attributes


def pad(draw):
    x = array(draw(SIZES), draw(DATA))
    count = st.integers(-1, 3)
    width = draw(
        count | st.tuples(count, count) | st.tuples(*[st.tuples(count, count)] * x.ndim)
        | st.lists(st.lists(count, min_size=1, max_size=3), max_size=4)
    )  # fmt: skip
    mode = draw(st.sampled_from(["constant", "edge", "reflection", "reflect", "symmetric", "wrap"]))
    try:
        starts, ends = paddings(width, x.ndim)
    except ArgumentError:
        starts = None
        ends = None
    attributes = {"mode": padding_mode(mode), "starts": starts, "ends": ends, "value": (0, 0)}
    return Padding1, [x], (width, mode, 0), attributes


def reverse_subsequences(draw):
    x = array(draw(SIZES), draw(DATA))
    axis = draw(st.integers(-3, 3))
    inside = -x.ndim <= axis < x.ndim
    number = axis % x.ndim if inside else None
    sizes = [1 if i == number else size for i, size in enumerate(x.shape)]
    lengths = array(draw(st.just(tuple(sizes)) | SIZES), draw(st.sampled_from(["i4", "u8"])))
    return ReverseSubsequences, [x, lengths], (axis,), {"axis": number}


def by_specification(spec):
    """A case of a function whose attributes are plain."""
    values = {"size": st.integers(-1, 5), "integer": st.integers(0, 5), "flag": st.booleans()}

    def case(draw):
        kinds = [INDICES if name == "indices" else DATA for name in spec.operands]
        arrays = [array(draw(SIZES), draw(kind)) for kind in kinds]
        # An attribute that no argument gives is a constant of the function.
        own = [name for name in signature(spec.prepare).parameters if name in spec.kinds]
        attributes = {
            attribute.name: draw(values[attribute.kind]) if attribute.name in own else True
            for attribute in spec.attributes
        }
        return spec.operator, arrays, tuple(attributes[name] for name in own), attributes

    case.__name__ = spec.name
    return case


CASES = [top_k, top_k_rows, nonzero, scatter_elements, scatter_nd, gather, gather_elements,
         gather_nd, split, join, cast, slice_window, tile, pad, reverse_subsequences]  # fmt: skip
OTHERS = {
    spec.operator: spec
    for name, spec in function_specs().items()
    if name.removesuffix("_coordinates") not in {case.__name__ for case in CASES}
}
CASES += map(by_specification, OTHERS.values())


def inferred(definition, arrays, attributes):
    """Shapes and types by the operator; None where it, or a function before it, refuses."""
    if any(value is None for value in attributes.values()):
        return None
    result = definition.infer([ArraySpec(a.shape, a.dtype) for a in arrays], attributes)
    if result.violations:
        return None
    shapes = [
        tuple(MEASURED if isinstance(size, Dynamic) else size for size in spec.shape)
        for spec in result.outputs
    ]
    return [(shape, spec.dtype) for shape, spec in zip(shapes, result.outputs, strict=True)]


def unusual(definition, arrays, arguments):
    """What a quick call leaves to the general path although the operator takes it."""
    x = arrays[0]
    if definition in OTHERS:
        pairs = zip(OTHERS[definition].operands, arrays, strict=True)
        return any(name == "indices" and a.dtype.name not in INDEX_NAMES for name, a in pairs)
    if definition is TopKRows and arrays[1].dtype.name not in INDEX_NAMES:
        return True  # widened, or refused
    if definition in (TopK1, TopKRows, NonzeroCoordinates):
        allowed = "fiub" if definition is NonzeroCoordinates else "fiu"
        return x.dtype.kind not in allowed  # which the function refuses
    if definition is Cast:
        return x.dtype.kind not in "fiu"
    if definition in (Slice1, Tile):
        return False
    if definition is Padding1:
        return x.dtype.kind == "M" or arguments[0] in ((), [])  # no 0; no pairs
    if definition in (Split, Join):
        return any(a.dtype != x.dtype for a in arrays)  # the same
    indices = arrays[1]
    if indices.dtype.name not in INDEX_NAMES:
        return True  # widened, or refused
    if definition in (Scatter, ScatterND):
        return arrays[2].dtype != x.dtype
    if definition is GatherND:
        return x.size == 0
    return x.ndim == 0 or x.shape[arguments[0]] == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@given(data=st.data())
def test_same_results(case, data):
    definition, arrays, arguments, attributes = case(data.draw)
    inputs = [list(arrays)] if definition is Join else arrays
    found = native.shapes(definition.KERNEL, *inputs, *arguments)
    expected = inferred(definition, arrays, attributes)
    if found is None:
        assert expected is None or unusual(definition, arrays, arguments), (expected, arrays)
        return
    assert expected is not None, found
    if definition is NonzeroCoordinates:
        expected = expected[1:]  # a function returns no count
    assert len(found) == len(expected)
    for (shape, dtype), (wanted_shape, wanted_dtype) in zip(found, expected, strict=True):
        assert shape == wanted_shape
        assert dtype == (arguments[-1] or np.intp if wanted_dtype is None else wanted_dtype)


def has_quick_way(name):
    try:
        native.function_call(name)
    except ArgumentError:
        return False
    return True


def test_every_rule_is_compared():
    assert {case.__name__.removesuffix("_coordinates") for case in CASES} == {
        name.removesuffix("_coordinates") for name in native.kernels() if has_quick_way(name)
    }


@pytest.mark.parametrize(("kind", "longest"), [
    ("int32", 2**31), ("uint32", 2**32), ("int64", 2**40), ("uint64", 2**40), (None, 2**40),
])  # fmt: skip
def test_index_types_hold_every_position(kind, longest):
    for size in (longest, longest + 1):
        x = array((2, size), "u1")
        fits = longest in {size, 2**40}
        assert (native.shapes("top_k", x, 1, 1, True, kind) is not None) == fits
        assert (native.shapes("nonzero_coordinates", x, kind) is not None) == fits


def test_words_are_an_arguments_own():
    x, i = np.zeros(3, "f4"), np.zeros(3, "i8")
    for word in (None, "none", "add", "mul", "min", "max"):
        assert native.shapes("scatter_elements", x, i, x, 0, word) is not None
    for word in ("raise", "clamp", "", "None", 0, True):
        assert native.shapes("scatter_elements", x, i, x, 0, word) is None
    for word in ("raise", "clamp"):
        assert native.shapes("gather", x, i, 0, word) is not None
    for word in (None, "none", "add", 0, False):
        assert native.shapes("gather", x, i, 0, word) is None
    for kind in ("int16", np.int16, np.dtype(">i8"), "", 0, float, np.bool_):
        assert native.shapes("nonzero_coordinates", x, kind) is None


CONSTANTS = st.one_of(
    st.integers(-300, 300), st.integers(), st.floats(), st.sampled_from([True, None, "1", 0, 0.0]),
    st.floats(width=32), st.integers(-(2**25), 2**25),
)  # fmt: skip
TYPES = [
    "?",
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "c8",
    "c16",
    "M8[s]",
]


@pytest.mark.parametrize("dtype", TYPES)
@given(constant=CONSTANTS)
@example(constant=2**24 + 1)
@example(constant=float(np.finfo(np.float32).max) * (1 + 2.0**-25))
def test_constants_are_what_the_general_path_makes_of_them(dtype, constant):
    x = np.zeros(2, dtype)
    found = native.function_call("pad")(None, x, 1, "constant", constant)
    try:
        with np.errstate(over="ignore"):
            expected = constant_of(constant, x, "constant")
    except (ArgumentError, ArgumentTypeError):
        assert found is None
        return
    if found is not None:
        assert_same_bits(found[::3], np.array([expected, expected]))


def test_types_that_may_mean_something_else_are_not_kept():
    class Named:
        dtype = np.dtype("f4")

    class Text(str):
        pass

    x = np.zeros(2, "i4")
    for named_type in (Named, Named(), Text("float32"), ["float32"], type("A", (np.float32,), {})):
        native.know_type(named_type, np.dtype("f4"))
        assert native.shapes("cast", x, named_type) is None
    for named_type in ("f4 of this test", np.float32, np.dtype("f4")):
        native.know_type(named_type, np.dtype("f4"))
        assert native.shapes("cast", x, named_type) == [((2,), np.dtype("f4"))]


@pytest.mark.parametrize("numbers", [
    True, 2.0, np.int64(2), np.array(2), [True], [2.0], [np.int64(2)], np.array([2]), "2", {2: 2},
    [[1, 1]] * 65, [0] * 129, [[1, 1], 1], [1, [1, 1]], [[1, 1, 1]], 2**63, [2**63],
])  # fmt: skip
def test_integers_are_exact(numbers):
    x = np.zeros(2, "f4")
    assert native.shapes("tile", x, numbers) is None
    assert native.shapes("pad", x, numbers, "constant", 0) is None
    assert native.shapes("split", x, numbers, 0) is None
    assert native.shapes("slice_window", x, [0], numbers, None) is None


def test_other_numbers_of_arguments():
    call = native.function_call("gather")
    x, i = np.zeros(3, "f4"), np.zeros(3, "i8")
    for values in ((), (None,), (None, x, i, 0), (None, x, i, 0, "raise", 1),
                   (x, i, 0, "raise")):  # fmt: skip
        with pytest.raises(TypeError):
            call(*values)
