"""The native extension, with the kernels of the best instruction-set level that can be used.

``ANYDML_INSTRUCTION_SET`` (``v2``, ``v3``, ``v4``) forces a level, for tests. ``python`` forces the
kernels on NumPy (`anydml.portable`), which also run where the extension is not installed.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from typing import Any, Final, NamedTuple

from anydml.core.errors import DeviceError

VARIABLE: Final = "ANYDML_INSTRUCTION_SET"
LEVELS: Final = ("v4", "v3", "v2", "baseline")
PORTABLE: Final = "python"
_AGAIN: Final = "pip install --force-reinstall --no-deps ."


def _extension() -> Any:
    if os.environ.get(VARIABLE) == PORTABLE:
        return import_module("anydml.portable.bindings")
    if find_spec("anydml._bindings") is None:
        found = sorted(filter(_is_native, os.listdir(os.path.dirname(__file__))))
        if not found:
            return import_module("anydml.portable.bindings")
        raise _incomplete(
            f"expected _bindings{EXTENSION_SUFFIXES[0]}, of this Python and platform, got "
            + ", ".join(found)
        )
    try:
        import_module("anydml._processor")
        return import_module("anydml._bindings")
    except ImportError as error:
        raise _incomplete(str(error)) from error


def _is_native(name: str) -> bool:
    start, _, end = name.partition(".")
    is_ours = start in ("_bindings", "_processor") or start.startswith("_kernels_")
    return is_ours and end.endswith(("so", "pyd"))


def _incomplete(reason: str) -> ImportError:
    return ImportError(
        f"anydml: the native modules of this installation cannot be used ({reason}); install "
        f"anydml again: {_AGAIN}"
    )


native: Final[Any] = _extension()


def kernels_path(level: str) -> str:
    """The kernel library of a level, in the folder of the extension module."""
    return os.path.join(os.path.dirname(native.__file__), f"_kernels_{level}.so")


def built_levels() -> list[str]:
    """The levels that this installation has, best first."""
    return [level for level in LEVELS if os.path.exists(kernels_path(level))]


def usable_levels() -> list[str]:
    """The levels that this installation has and this processor runs, best first."""
    if not has_extension():
        return [PORTABLE]
    runs = import_module("anydml._processor").levels()
    return [level for level in built_levels() if level in runs]


def has_extension() -> bool:
    """Whether the native extension runs, and not its names on NumPy."""
    return bool(native.__name__ == "anydml._bindings")


def require_extension(module: str) -> None:
    """Check that the native extension runs.

    Raises
    ------
    ImportError
        It does not; `module` needs it.
    """
    if not has_extension():
        raise ImportError(
            f"{module} needs the native modules of anydml, which this installation lacks; install "
            "a wheel for this platform, or build it with a C++20 compiler: pip install ."
        )


def _load() -> str:
    levels = usable_levels()
    if not levels and not built_levels():
        raise _incomplete("no kernel library, _kernels_*.so, is beside them")
    if not levels:
        runs = import_module("anydml._processor").levels()
        raise ImportError(
            f"anydml: expected a processor that runs {' or '.join(built_levels())} (the x86-64 "
            "levels that this installation was built for), got one that runs "
            f"{runs[0] if runs else 'none that anydml supports'}; "
            "build it on this machine, or for all levels with "
            "`ANYDML_LEVELS=all pip install .`"
        )
    forced = os.environ.get(VARIABLE)
    if forced and forced not in levels:
        raise DeviceError(
            f"{VARIABLE}: expected one of {', '.join(levels)} (what this installation has and "
            f"this processor runs), got {forced!r}"
        )
    try:
        level: str = native.load_kernels(kernels_path(forced or levels[0]))
    except ImportError as error:  # "…; install anydml again"
        raise ImportError(f"anydml: {error}: {_AGAIN}") from error
    return level


LEVEL: Final = _load()


def describe_level() -> str:
    """The level of the kernels, for people; of the kernels on NumPy, why these run."""
    if has_extension():
        return LEVEL
    forced = os.environ.get(VARIABLE) == PORTABLE
    return f"NumPy ({f'{VARIABLE}={PORTABLE}' if forced else 'no native modules installed'})"


class ElementType(NamedTuple):
    """An element type that the kernels know."""

    name: str
    number: int
    """In DML_TENSOR_DATA_TYPE, above 63 where DirectML has none; 0: elements are only moved."""
    size: int
    kind: str
    in_numpy: bool


# The tables of native/common/types.def and modes.def.
_TABLES: Final = native.tables()
TYPES: Final = tuple(ElementType(*row) for row in _TABLES["types"])
NUMBERS: Final = tuple(t.name for t in TYPES if t.number and t.kind != "c")
"""The types that have an order and a sum; others are only moved."""
INDEX_TYPES: Final[tuple[str, ...]] = tuple(_TABLES["index_types"])
INDEX_MODES: Final[tuple[str, ...]] = tuple(_TABLES["index_modes"])
INTERPOLATIONS: Final[tuple[str, ...]] = tuple(_TABLES["interpolations"])
PADDING_MODES: Final[tuple[str, ...]] = tuple(_TABLES["padding_modes"])
REDUCTIONS: Final[dict[str, str]] = dict(_TABLES["reductions"])
"""PyTorch's word for each reduction."""
MOST_ELEMENTS: Final[int] = _TABLES["most_elements"]
