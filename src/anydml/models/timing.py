"""What `--timing` prints."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from anydml.core._json import short_repr


def timed(index: int, name: str, operator: str, seconds: Sequence[float]) -> str:
    """How long the dispatches of one command took.

    The first one finds caches cold and pays for what is made once; it is printed separately.
    """
    what = f"Command at index {index}: dispatch of {short_repr(name)} ({operator})"
    if len(seconds) == 1:
        return f"{what}: {duration(seconds[0])}"
    return (
        f"{what}, {len(seconds)} times: median {duration(median(seconds))}, "
        f"fastest {duration(min(seconds))}, first {duration(seconds[0])}"
    )


def duration(seconds: float) -> str:
    """A time in three digits and a unit."""
    unit, size = next(
        (pair for pair in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)) if seconds >= pair[1]),
        ("ns", 1e-9),
    )
    number = seconds / size
    return f"{number:.{max(0, 3 - len(str(int(number))))}f} {unit}"
