"""Array functions in blocks: how each is cut, or composed of a library's operations.

Blocks are arrays of any library in memory. The tasks of a lazy library are in `_block_tasks`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anydml.functions._function import Attributes
from anydml.functions._library import Array

Part = tuple[Array, ...]
Pointing = tuple[int, tuple[int | None, ...], bool]
"""How indices name elements: how many axes of x come before the named ones; for each of these the
axis of the indices that it goes along with, or None where a coordinate points into it; and whether
the last axis of the indices holds the coordinates of a tuple."""


@dataclass(frozen=True)
class Composed:
    """The results by a library's own operations, where these only move elements.

    A library that compiles or schedules these itself can fuse, cut and differentiate them.
    """

    rule: Callable[..., Sequence[Array]]
    """``rule(lib, operands, attributes)``: the results."""


@dataclass(frozen=True)
class Blockwise:
    """Each block of the result is computed from one block."""


@dataclass(frozen=True)
class Tree:
    """Partial results of the blocks along an axis are merged; the result is one chunk there."""

    axis: str
    """The attribute that is the axis."""
    of_block: Callable[[Array, int, Attributes], Part]
    """The partial results of a block, from where it begins on the axis and the attributes."""
    merge: Callable[[Sequence[Part], Attributes], Part]
    """One partial result for several that follow one another."""


@dataclass(frozen=True)
class Rows:
    """Each block gives rows, in row-major order of the elements."""

    mark: Callable[[Array], Array]
    """A smaller array that has the same rows as a block."""
    of_block: Callable[[Array, Sequence[int], Attributes], Array]
    """The rows of a block, or of its marks, from where it begins and the attributes."""


@dataclass(frozen=True)
class Indexed:
    """The second operand names elements of the first, which are read, or written to."""

    points: Callable[[Sequence[Array], Attributes], Pointing]
    """How indices name elements, from operands and attributes."""
    writes: bool = False
    """Whether there are updates."""


def point_along(operands: Sequence[Array], attributes: Attributes) -> Pointing:
    """Say that indices name elements along an axis."""
    axis = attributes["axis"]
    return 0, tuple(None if i == axis else i for i in range(operands[0].ndim)), False


def point_by_tuples(operands: Sequence[Array], batch: int) -> Pointing:
    """Say that indices name blocks by tuples, behind batch axes."""
    return 0, (*range(batch), *(None,) * operands[1].shape[-1]), True
