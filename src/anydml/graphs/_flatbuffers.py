"""Reader of FlatBuffers, tables of offsets, in data that nobody has checked.

Every read is within the data, and all reads together are bounded: a small file cannot lead to work
without end by offsets that share what they point to.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from anydml.core.errors import ModelError

_SHARING: Final = 8
"""Average number of times that each byte may be read.

About 1 in files of ONNX Runtime. A writer that keeps each text only once reaches 3.
"""


class Table:
    """Table: its members by their numbers, each at an offset or left out.

    Parameters
    ----------
    source : Source
        The data.
    at : int
        Where the table begins.
    """

    def __init__(self, source: Source, at: int) -> None:
        self._source = source
        self._at = at
        self._layout = at - source.number("i", at)
        self._length = source.number("H", self._layout)

    def _place(self, index: int) -> int | None:
        entry = 4 + 2 * index
        if entry + 2 > self._length:
            return None
        offset = self._source.number("H", self._layout + entry)
        return self._at + offset if offset else None

    def _target(self, index: int) -> int | None:
        place = self._place(index)
        return None if place is None else self._source.follow(place)

    def number(self, index: int, kind: str) -> int:
        """Read a number; 0 if it is left out. Kinds are those of `struct`."""
        place = self._place(index)
        return 0 if place is None else int(self._source.number(kind, place))

    def structure(self, index: int, kinds: str) -> tuple[Any, ...] | None:
        """Read the members of a structure that the table points to."""
        target = self._target(index)
        return None if target is None else self._source.unpack(kinds, target)

    def table(self, index: int) -> Table | None:
        """Read another table."""
        target = self._target(index)
        return None if target is None else Table(self._source, target)

    def numbers(self, index: int, kind: str) -> tuple[Any, ...] | None:
        """Read a vector of numbers."""
        target = self._target(index)
        if target is None:
            return None
        return self._source.unpack(f"{self._source.number('I', target)}{kind}", target + 4)

    def octets(self, index: int) -> bytes:
        """Read a vector of bytes; no bytes if it is left out."""
        target = self._target(index)
        return b"" if target is None else self._source.octets(target)

    def text(self, index: int) -> str:
        """Read a string; empty if it is left out."""
        return _text(self.octets(index))

    def _targets(self, index: int) -> list[int]:
        target = self._target(index)
        if target is None:
            return []
        count = self._source.number("I", target)
        offsets = self._source.unpack(f"{count}I", target + 4)
        return [target + 4 * (i + 1) + offset for i, offset in enumerate(offsets)]

    def texts(self, index: int) -> list[str]:
        """Read a vector of strings."""
        return [_text(self._source.octets(at)) for at in self._targets(index)]

    def tables(self, index: int) -> list[Table]:
        """Read a vector of tables."""
        return [Table(self._source, at) for at in self._targets(index)]


class Source:
    """Data of a file, read with checked offsets.

    Parameters
    ----------
    data : bytes
        All of it.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = _SHARING * len(data)

    def root(self) -> Table:
        """Read the table that contains all others."""
        return Table(self, self.follow(0))

    def unpack(self, kinds: str, at: int) -> tuple[Any, ...]:
        """Read numbers that lie one behind the other."""
        size = struct.calcsize(f"<{kinds}")
        self._check(at, size)
        return struct.unpack_from(f"<{kinds}", self._data, at)

    def number(self, kind: str, at: int) -> Any:
        """Read one number."""
        return self.unpack(kind, at)[0]

    def follow(self, at: int) -> int:
        """Return where the offset at a place points to."""
        return at + int(self.number("I", at))

    def octets(self, at: int) -> bytes:
        """Read a vector of bytes."""
        count = self.number("I", at)
        self._check(at + 4, count)
        return self._data[at + 4 : at + 4 + count]

    def _check(self, at: int, size: int) -> None:
        if not 0 <= at <= len(self._data) - size:
            raise ModelError(
                f"Expected {size} bytes at offset {at}, got a file of {len(self._data)} bytes."
            )
        self._left -= size
        if self._left < 0:
            raise ModelError(
                f"Expected a file whose parts are shared at most {_SHARING} times, got one that "
                f"shares them more often."
            )


def _text(octets: bytes) -> str:
    try:
        return octets.decode()
    except UnicodeDecodeError as error:
        raise ModelError(f"Expected text in UTF-8, got other bytes: {error}.") from error
