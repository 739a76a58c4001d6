"""The native extension of the best instruction-set level that this processor runs.

``ANYDML_INSTRUCTION_SET`` (``v2``, ``v3``, ``v4``) forces a level, for tests.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from anydml._processor import levels as processor_levels
from anydml.errors import DeviceError

VARIABLE: Final = "ANYDML_INSTRUCTION_SET"
LEVELS: Final = ("v4", "v3", "v2", "baseline")


def built_levels() -> list[str]:
    """The levels that this installation has, best first."""
    return [level for level in LEVELS if find_spec(f"anydml._native_{level}")]


def usable_levels() -> list[str]:
    """The levels that this installation has and this processor runs, best first."""
    runs = processor_levels()
    return [level for level in built_levels() if level in runs]


def _load() -> Any:
    levels = usable_levels()
    if not levels:
        raise ImportError(
            f"anydml: expected a processor that runs {' or '.join(built_levels())} (the x86-64 "
            "levels that this installation was built for), got one that runs "
            f"{processor_levels()[0] if processor_levels() else 'none that anydml supports'}; "
            "build it on this machine, or for all levels with "
            "`pip install -C cmake.define.ANYDML_LEVELS=all .`"
        )
    forced = os.environ.get(VARIABLE)
    if forced and forced not in levels:
        raise DeviceError(
            f"{VARIABLE}: expected one of {', '.join(levels)} (what this installation has and "
            f"this processor runs), got {forced!r}"
        )
    return import_module(f"anydml._native_{forced or levels[0]}")


native: Final[Any] = _load()
