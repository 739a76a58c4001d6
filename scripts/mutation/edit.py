"""A change of a text."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str
    rule: str
