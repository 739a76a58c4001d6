"""Hypothesis strategies: shapes, layouts, arrays in watched memory, descriptors that are good.

What an array holds is drawn as a flavour and a seed, so that thousands of cases cost little and an
example still shrinks in everything that decides which way a kernel takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from hypothesis import strategies as st

from anydml.core.dtypes import ALL_TYPES, INDEX_TYPES
from anydml.ops._descriptor import Descriptor
from anydml.suite.choices import Seeded
from anydml.suite.contents import Flavour, contents
from anydml.suite.descriptors import descriptor
from anydml.suite.layouts import Layout
from support.poison import PACKED, Poisoned

Draw = Callable[[st.SearchStrategy[Any]], Any]

NUMERIC = tuple(data_type.numpy.name for data_type in ALL_TYPES)
"""Names of the NumPy types that have an order."""

MOVED = (*NUMERIC, "bool", "complex64", "complex128", "datetime64[s]")
"""Names of the NumPy types that are at least moved."""

ADDED_FLOATS: tuple[str, ...] = ()
"""The same of those that ml_dtypes adds to NumPy, where it is installed."""

ADDED_MOVED: tuple[str, ...] = ()
"""Likewise."""

with suppress(ImportError):
    import ml_dtypes  # noqa: F401

    ADDED_FLOATS = ("bfloat16",)
    ADDED_MOVED = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")

INDEX = tuple(data_type.numpy.name for data_type in INDEX_TYPES)
"""Names of the NumPy types of indices."""


def generators() -> st.SearchStrategy[np.random.Generator]:
    """Random generators, by their seed."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


def shapes(
    min_rank: int = 0, max_rank: int = 4, *, min_side: int = 0, max_elements: int = 400
) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes with few elements, most of their sides short and one perhaps long."""

    @st.composite
    def draw_shape(draw: Draw) -> tuple[int, ...]:
        rank = draw(st.integers(min_rank, max_rank))
        shape = []
        left = max_elements
        for _ in range(rank):
            maximum = max(1, min(left, draw(st.sampled_from((2, 3, 5, 9, 70, max_elements)))))
            side = draw(st.integers(min(min_side, maximum), maximum))
            shape.append(side)
            left //= max(side, 1)
        return tuple(draw(st.permutations(shape)))

    return draw_shape()


def layouts(
    rank: int, *, output: bool = False, plain: bool = False, tuples: bool = False
) -> st.SearchStrategy[Layout]:
    """Layouts of arrays.

    Without repeats for an `output`, native and aligned where `plain`, with a last dimension that is
    not repeated for `tuples` of coordinates, each of which has limits of its own.
    """

    @st.composite
    def draw_layout(draw: Draw) -> Layout:
        if draw(st.booleans()):
            return PACKED
        axes = range(rank)
        return Layout(
            order=tuple(draw(st.permutations(axes))),
            gaps=tuple(draw(st.lists(st.integers(0, 2), max_size=rank))),
            reversed=tuple(draw(_subsets(rank))),
            repeated=() if output else tuple(draw(_repeats(rank - tuples))),
            shift=0 if plain else draw(st.sampled_from((0, 0, 1, 2, 4))),
            swapped=not (plain or output) and draw(st.integers(0, 7)) == 0,
            writeable=output or draw(st.booleans()),
        )

    return draw_layout()


def _subsets(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(range(count)), unique=True) if count > 0 else st.just([])


def _repeats(count: int) -> st.SearchStrategy[list[int]]:
    return st.one_of(st.just([]), _subsets(count))


def flavours() -> st.SearchStrategy[Flavour]:
    """What arrays are full of."""
    return st.sampled_from(Flavour)


@st.composite
def arrays(
    draw: Draw,
    shape: Sequence[int],
    dtype: str,
    flavour: Flavour | None = None,
    plain: bool = False,
) -> Poisoned:
    """An input of any layout and flavour in watched memory."""
    chosen = draw(flavours()) if flavour is None else flavour
    values = contents(draw(generators()), shape, dtype, chosen)
    return Poisoned(shape, dtype, draw(layouts(len(shape), plain=plain)), values)


def seeds() -> st.SearchStrategy[int]:
    """What a random generator begins with."""
    return st.integers(0, 2**32 - 1)


def descriptors(kind: type[Descriptor]) -> st.SearchStrategy[Any]:
    """Good descriptors (at the latest feature level) of an operator, of any rank and strides.

    By their seeds: a draw for each decision would take longer than the test.

    Parameters
    ----------
    kind : descriptor class
        As `TopK1`.
    """
    return st.integers(0, 2**32 - 1).map(lambda seed: descriptor(Seeded(seed), kind))
