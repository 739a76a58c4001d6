"""A pytest plugin: writes down which test runs and how long it took, and ends one that hangs.

Also limits the memory that a mutant takes from the machine.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_FILE = Path(os.environ["ANYDML_MUTATION_WATCH"])
_SECONDS = float(os.environ["ANYDML_MUTATION_SECONDS"])
_BYTES = 12 << 30

resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))


def _add(line: str) -> None:
    with _FILE.open("a", encoding="utf-8") as stream:
        stream.write(line + "\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """The name before, the seconds after: a process that dies leaves the name."""
    begin = time.monotonic()
    _add(f"> {item.nodeid}")
    faulthandler.dump_traceback_later(_SECONDS, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        _add(str(time.monotonic() - begin))
