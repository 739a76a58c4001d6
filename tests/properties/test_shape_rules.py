"""The kernels' native shape rules against the rooms' `infer`, which is the authority."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml._native import native
from anydml.errors import ArgumentError
from anydml.ops.gather import Gather
from anydml.ops.gather_elements import GatherElements
from anydml.ops.gather_nd import GatherND
from anydml.ops.join import Join
from anydml.ops.nonzero_coordinates import NonzeroCoordinates
from anydml.ops.scatter import Scatter
from anydml.ops.scatter_nd import ScatterND
from anydml.ops.split import Split
from anydml.ops.top_k import TopK1
from anydml.program import ArraySpec, Dynamic

SIZES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
INDICES = st.sampled_from(["i8", "i4", "u8", "u4", "i2", "f4", "?"])
DATA = st.sampled_from(["f4", "i8", "u1", "c8", "?", "M8[s]"])
INDEX_TYPES = st.sampled_from(["int64", "int32", "uint32", "uint64"]).flatmap(
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
    """As the array functions hand it on; None where they refuse it before they ask the room."""
    return axis % x.ndim if -x.ndim <= axis < x.ndim else None


def top_k(draw):
    x, axis = array(draw(SIZES), draw(DATA)), draw(AXES)
    k = draw(st.integers(-1, 5))
    attributes = {"axis": counted(axis, x), "k": k, "largest": True}
    return TopK1, [x], (axis, k, True, draw(INDEX_TYPES)), attributes


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
    given_ = {"axis": counted(axis, arrays[0]), "clamp": clamp}
    return Gather, arrays, (axis, "clamp" if clamp else "raise"), given_


def gather_elements(draw):
    _, arrays, arguments, given_ = gather(draw)
    return GatherElements, arrays, arguments, given_


def gather_nd(draw):
    arrays = indexed(draw, updates=False, tuples=True)
    batch, clamp = draw(st.integers(-1, 3)), draw(st.booleans())
    given_ = {"batch_dims": batch, "clamp": clamp}
    return GatherND, arrays, (batch, "clamp" if clamp else "raise"), given_


def split(draw):
    x, axis, sections = array(draw(SIZES), draw(DATA)), draw(AXES), draw(st.integers(-1, 4))
    number = counted(axis, x)
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


CASES = [top_k, nonzero, scatter_elements, scatter_nd, gather, gather_elements, gather_nd, split,
         join]  # fmt: skip


def inferred(room, arrays, attributes):
    """Shapes and types by the room; None where it, or a function before it, refuses."""
    if any(value is None for value in attributes.values()):
        return None
    result = room.infer([ArraySpec(a.shape, a.dtype) for a in arrays], attributes)
    if result.violations:
        return None
    shapes = [
        tuple(MEASURED if isinstance(size, Dynamic) else size for size in spec.shape)
        for spec in result.outputs
    ]
    return [(shape, spec.dtype) for shape, spec in zip(shapes, result.outputs, strict=True)]


def unusual(room, arrays, arguments):
    """What a quick call leaves to the general path although the operator takes it."""
    x = arrays[0]
    if room in (TopK1, NonzeroCoordinates):
        allowed = "fiu" if room is TopK1 else "fiub"
        return x.dtype.kind not in allowed  # which the function refuses
    if room in (Split, Join):
        return any(a.dtype != x.dtype for a in arrays)  # the same
    indices = arrays[1]
    if indices.dtype.name not in ("int64", "int32", "uint64", "uint32"):
        return True  # widened, or refused
    if room in (Scatter, ScatterND):
        return arrays[2].dtype != x.dtype
    if room is GatherND:
        return x.size == 0
    return x.ndim == 0 or x.shape[arguments[0]] == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@given(data=st.data())
def test_same_results(case, data):
    room, arrays, arguments, attributes = case(data.draw)
    inputs = [list(arrays)] if room is Join else arrays
    found = native.shapes(room.KERNEL, *inputs, *arguments)
    wanted = inferred(room, arrays, attributes)
    if found is None:
        assert wanted is None or unusual(room, arrays, arguments), (wanted, arrays)
        return
    assert wanted is not None, found
    if room is NonzeroCoordinates:
        wanted = wanted[1:]  # a function returns no count
    assert len(found) == len(wanted)
    for (shape, dtype), (wanted_shape, wanted_dtype) in zip(found, wanted, strict=True):
        assert shape == wanted_shape
        assert dtype == (arguments[-1] or np.intp if wanted_dtype is None else wanted_dtype)


def has_quick_way(name):
    try:
        native.quick(name)
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


def test_other_numbers_of_arguments():
    call = native.quick("gather")
    x, i = np.zeros(3, "f4"), np.zeros(3, "i8")
    for values in ((), (None,), (None, x, i, 0), (None, x, i, 0, "raise", 1),
                   (x, i, 0, "raise")):  # fmt: skip
        with pytest.raises(TypeError):
            call(*values)
