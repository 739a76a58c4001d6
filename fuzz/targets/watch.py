"""What every target watches: time, memory, and that a message is one."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS = 1.0
_BYTES = 2**28


@contextmanager
def limits(seconds: float = _SECONDS, memory: int = _BYTES) -> Iterator[None]:
    """Fail when what is inside takes more processor time, or raises the process's peak by more."""
    time_before, peak_before = time.process_time(), _peak()
    yield
    taken, grown = time.process_time() - time_before, _peak() - peak_before
    if taken > seconds:
        raise TimeoutError(f"took {taken:.1f} s of processor time")
    if grown > memory:
        raise MemoryError(f"took {grown} bytes more")


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def message(text: str) -> None:
    """Fail when a message is none, or has what a terminal would act on."""
    assert text.strip(), "an empty message"
    for line in text.split("\n"):
        assert line.isprintable(), f"not printable: {line!r}"
