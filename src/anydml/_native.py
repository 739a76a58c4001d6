"""The native extension of the best instruction-set level that this processor runs.

``ANYDML_INSTRUCTION_SET`` (``v2``, ``v3``, ``v4``) forces a level, for tests.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

from anydml._processor import levels as processor_levels
from anydml.errors import DeviceError

VARIABLE: Final = "ANYDML_INSTRUCTION_SET"


def _load() -> Any:
    levels: tuple[str, ...] = processor_levels()
    forced = os.environ.get(VARIABLE)
    if forced and forced not in levels:
        raise DeviceError(
            f"{VARIABLE}: expected one of {', '.join(levels)} (what this processor runs), "
            f"got {forced!r}"
        )
    if not levels:
        raise DeviceError("this processor is older than x86-64-v2, the oldest level that is built")
    return import_module(f"anydml._native_{forced or levels[0]}")


native: Final[Any] = _load()
