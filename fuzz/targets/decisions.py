"""A fuzzer's bytes as decisions, so that an input means the same with and without a fuzzer."""

from __future__ import annotations

from anydml.suite.choices import Choices

_EDGES = (0, 1, 2, 7, 8, 9, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1,
          2**64, 2**70, -1, -2, -(2**31), -(2**63))  # fmt: skip


class Decisions(Choices):
    """Reads bytes from the front; when they are used up, each decision is the first choice."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """The next byte, or 0."""
        at = self._at
        if at >= len(self._data):
            return 0
        self._at = at + 1
        return self._data[at]

    def below(self, limit: int) -> int:
        """In ``0..limit - 1``."""
        value = self.byte()
        span = 256
        while span < limit:
            value, span = value << 8 | self.byte(), span << 8
        return value % limit

    def integer(self) -> int:
        """Any integer: small, at the edge of a type, or random."""
        way = self.byte()
        if way < 120:
            return way % 12
        if way < 220:
            return _EDGES[way % len(_EDGES)]
        return int.from_bytes(bytes(self.byte() for _ in range(way % 10)), "little", signed=True)
