"""What `print` commands print: numbers as C++ streams write them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

# Elements formatted at a time, so that the text of a large buffer is never in memory as a whole.
_CHUNK: Final = 16384


def printed(name: str, numbers: Array, verbose: bool) -> Iterator[str]:
    """The text of one `print`, in pieces.

    ``Resource 'Out': 1, 2``; with `verbose`, a line an element: index, value and bits.
    """
    text = _text_of(numbers.dtype)
    if not verbose:
        yield f"Resource '{visible(name)}': "
        for start in range(0, numbers.size, _CHUNK):
            separator = ", " if start else ""
            chunk = numbers[start : start + _CHUNK].tolist()
            yield separator + ", ".join(map(text, chunk))
        yield "\n"
        return
    yield f"Resource '{visible(name)}':\n"
    digits = 2 * numbers.itemsize
    width = len(str(numbers.size))
    bits = numbers.view(f"u{numbers.itemsize}")
    for start in range(0, numbers.size, _CHUNK):
        pairs = zip(
            numbers[start : start + _CHUNK].tolist(),
            bits[start : start + _CHUNK].tolist(),
            strict=True,
        )
        yield "".join(
            f"[{start + i:{width}}] {text(value)} (0x{pattern:0{digits}X})\n"
            for i, (value, pattern) in enumerate(pairs)
        )


def _text_of(dtype: np.dtype[Any]) -> Callable[[Any], str]:
    return "{:g}".format if dtype.kind == "f" else str  # :g has 6 significant digits


def visible(name: str) -> str:
    """A name from a model without anything that a terminal would act on."""
    return name if name.isprintable() else name.encode("unicode_escape").decode()
