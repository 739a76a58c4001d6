"""The helpers of `support` see what they are there to see."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anydml.suite.contents import special_values
from support import (
    Flavour,
    Layout,
    Poisoned,
    assert_same_bits,
    bits,
    contents,
    indices,
    references,
    strategies,
)

NAN = np.array([0x7FC00000, 0x7FC00001], np.uint32).view("f4")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([0.0]), np.array([-0.0])),
        (NAN[:1], NAN[1:]),
        (np.array([1.0]), np.array([1.0], "f4")),
        (np.zeros((1, 2)), np.zeros((2, 1))),
        (np.array([1 + 2j]), np.array([1 + 3j])),
        (np.float32(1), np.float32(2)),
    ],
    ids=["signed zero", "NaN payload", "type", "shape", "complex", "scalar"],
)
def test_bits_that_differ_are_seen(one, other):
    assert_same_bits(one, one.copy())
    with pytest.raises(AssertionError):
        assert_same_bits(one, other)


def test_bits_do_not_depend_on_the_layout():
    x = contents(np.random.default_rng(0), (5, 7), "f8", Flavour.SPECIAL)
    assert_same_bits(x.T.copy().T, x)
    assert np.array_equal(bits(x.astype(">f8")), bits(x))


@given(st.data(), strategies.shapes(max_elements=60), st.sampled_from(strategies.NUMERIC))
def test_every_byte_of_a_layout_is_watched(data, shape, kind):
    layout = data.draw(strategies.layouts(len(shape)))
    values = contents(data.draw(strategies.generators()), shape, kind, Flavour.SPECIAL)
    watched = Poisoned(shape, kind, layout, values)
    if not layout.repeated:
        native = watched.array.astype(watched.array.dtype.newbyteorder("="), copy=False)
        assert_same_bits(native, values)
    size = watched.array.itemsize
    own = {
        watched.array[at + (...,)].__array_interface__["data"][0] + byte
        for at in np.ndindex(*shape)
        for byte in range(size)
    }
    start = watched.block.__array_interface__["data"][0]
    for position in data.draw(st.lists(st.integers(0, watched.block.size - 1), max_size=20)):
        watched.block[position] ^= 1
        assert not watched.untouched()
        assert watched.gaps_intact() is (start + position in own)
        watched.block[position] ^= 1
    assert watched.untouched()


def test_special_values_are_all_there():
    for kind in strategies.NUMERIC:
        values = special_values(kind)
        assert values.dtype == kind
        if values.dtype.kind == "f":
            assert len(set(bits(values[np.isnan(values)]).tolist())) == 5
            assert {True, False} <= set(np.signbit(values[values == 0]).tolist())
            assert np.isinf(values).sum() == 2
            assert (np.abs(values[values != 0]) < np.finfo(kind).tiny).any()
        else:
            assert {np.iinfo(kind).min, np.iinfo(kind).max} <= set(values.tolist())


def test_indices_are_valid_and_negative_where_signed():
    generator = np.random.default_rng(0)
    found = indices(generator, (1000,), 7, "int32")
    assert (found.min(), found.max()) == (-7, 6)
    assert indices(generator, (1000,), 7, "uint32").max() == 6
    tuples = indices(generator, (500, 2), (3, 9), "int64")
    assert tuples.min(0).tolist() == [-3, -9]


def test_references_on_cases_worked_by_hand():
    nan = np.nan
    values, chosen = references.top_k(np.array([0.0, nan, -0.0, 5.0, nan]), 4)
    assert chosen.tolist() == [1, 4, 3, 0]
    values, chosen = references.top_k(np.array([0.0, nan, -0.0, 5.0]), 4, largest=False)
    assert chosen.tolist() == [0, 2, 3, 1]
    assert np.signbit(values).tolist() == [False, True, False, False]
    x = np.zeros((2, 3), int)
    at = np.array([[2, 2, -3]])
    assert references.scatter_elements(x, at, np.array([[7, 8, 9]]), 1).tolist() == [
        [9, 0, 8],
        [0, 0, 0],
    ]
    added = references.scatter_elements(x, at, np.array([[7, 8, 9]]), 1, "add")
    assert added.tolist() == [[9, 0, 15], [0, 0, 0]]
    assert references.nonzero_coordinates(np.array([[0.0, nan], [-0.0, 1]])).tolist() == [
        [0, 1],
        [1, 1],
    ]
    assert references.gather(np.array([5, 6, 7]), np.array([[-9, 9]]), clamp=True).tolist() == [
        [5, 7]
    ]


def test_layouts():
    assert Layout(order=(1, 0)).strides((2, 3), 4) == (4, 8)
    assert Layout(gaps=(1, 2)).strides((2, 3), 4) == (40, 12)
    assert Layout(reversed=(0,), repeated=(1,)).strides((2, 3), 8) == (-8, 0)
    shifted = Poisoned((3,), "f8", Layout(shift=1, swapped=True, writeable=False)).array
    assert not shifted.flags.aligned
    assert not shifted.flags.writeable
    assert not shifted.dtype.isnative
