"""Support tables of the reference pages, as `_pages.json` has them for every DirectML operator.

The file is the source of the tables: an operator by its name, in alphabetical order, and a line for
each row of its table. A row's key is its feature level, followed by an attribute and its members
where the row holds for these only (``"2_1 Function MIN MAX"``). Its value has the ranks and the
data types by the names of consecutive tensors that share them. ``in_place`` is true where the page
says that the output may be the input's memory. A tensor without data types is one for which the
page prints none.

``scripts/check_pages.py`` compares the file with the pages, with the history of feature levels and
with DirectML's schema.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from anydml.core.dtypes import DataType, data_types
from anydml.core.levels import FeatureLevel
from anydml.ops._numbers import span


@dataclass(frozen=True)
class TensorSupport:
    """The ranks and data types that one row of a support table accepts for one tensor."""

    ranks: range
    data_types: tuple[DataType, ...]

    @property
    def ranks_text(self) -> str:
        """The text of the ranks in a message."""
        return span(self.ranks[0], self.ranks[-1])


@dataclass(frozen=True)
class Support:
    """One row of a support table: the accepted values from one level up to the next row's level.

    Attributes
    ----------
    level : FeatureLevel
        The first level to which the row applies.
    tensors : dict of str to TensorSupport
        Ranks and data types by the page's tensor name.
    when : dict of str to tuple of str
        The members of an attribute to which the row applies, by the page's name; empty if it
        applies to all.
    """

    level: FeatureLevel
    tensors: Mapping[str, TensorSupport]
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """The support table of an operator's page, lowest level first, and its in-place rule."""

    support: tuple[Support, ...]
    in_place: bool

    @property
    def level(self) -> FeatureLevel:
        """The feature level that introduced the operator."""
        return self.support[0].level


class _Pages(Mapping[str, Page]):
    """The pages by operator name; each is parsed at its first use."""

    def __init__(self, text: str) -> None:
        self._data: dict[str, Any] = json.loads(text)
        self._parsed: dict[str, Page] = {}

    def __getitem__(self, name: str) -> Page:
        if name not in self._parsed:
            data = self._data[name]
            rows = tuple(_row(key, tensors) for key, tensors in data["support"].items())
            self._parsed[name] = Page(rows, data.get("in_place", False))
        return self._parsed[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def _row(key: str, tensors: Mapping[str, str]) -> Support:
    level, *condition = key.split()
    accepted = {
        name: _tensor_support(text) for names, text in tensors.items() for name in names.split()
    }
    when = {condition[0]: tuple(condition[1:])} if condition else {}
    return Support(FeatureLevel.parse(level), accepted, when)


@cache
def _tensor_support(text: str) -> TensorSupport:
    ranks, _, types = text.partition(" ")
    low, _, high = ranks.partition("-")
    return TensorSupport(range(int(low), int(high or low) + 1), data_types(types))


def _text() -> str:
    # Do not import pathlib: that takes longer than reading the file.
    with open(os.path.join(os.path.dirname(__file__), "_pages.json"), encoding="utf-8") as file:
        return file.read()


PAGES: Final[Mapping[str, Page]] = _Pages(_text())
"""The page of every operator of DirectML, by the operator's name."""
