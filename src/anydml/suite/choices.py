"""Where generators take their decisions from: a seeded generator or a fuzzer's bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


class Choices(ABC):
    """Decisions, each a number below a limit; 0 is the plainest choice."""

    @abstractmethod
    def below(self, limit: int) -> int:
        """In ``0..limit - 1``."""

    def between(self, low: int, high: int) -> int:
        """In ``low..high``."""
        return low + self.below(high - low + 1)

    def chance(self, of: int) -> bool:
        """True in `of` of 256 cases."""
        return self.below(256) >= 256 - of

    def among(self, choices: Sequence[Item]) -> Item:
        """One of some choices."""
        return choices[self.below(len(choices))]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """The items in some order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in items]


class Seeded(Choices):
    """Decisions of a seed."""

    def __init__(self, *seed: object) -> None:
        self._random = Random(repr(seed))

    def below(self, limit: int) -> int:
        return self._random.randrange(limit)
