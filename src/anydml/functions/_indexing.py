"""The argument ``mode=`` of gathers: indices outside of their axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anydml._native import INDEX_MODES
from anydml.core._json import check_word
from anydml.core.errors import ArgumentError
from anydml.functions._arguments import is_uint64
from anydml.functions._library import Array, Library


def into_axes(
    lib: Library, mode: Any, lookup: Array, data: Array, axes: Sequence[int]
) -> tuple[Array, int]:
    """Return the indices for the operator, and its attribute ``clamp``.

    In memory that is the number of the mode, because kernels know them all. Elsewhere only clamping
    is left to the operator, so that its rules for derivatives are few.
    """
    if isinstance(mode, str) and mode == "raise":
        return lookup, False
    check_word("mode", mode, INDEX_MODES)
    for axis in axes if mode != "clamp" else ():  # clamping: the operator's own rules
        if data.shape[axis] == 0 and 0 not in lookup.shape:
            raise ArgumentError(
                f"x: expected an element for mode {mode!r}, got none: axis {axis} has no elements"
            )
    if lib.knows_modes:
        return lookup, INDEX_MODES.index(mode)
    sizes = [data.shape[axis] for axis in axes]
    if mode == "clamp" or not sizes or 0 in sizes:  # with a size of 0 there are no indices
        return lookup, mode == "clamp"
    if len(sizes) == 1:
        return _moved(lib, mode, lookup, sizes[0]), False
    if lookup.shape[-1] != len(sizes):
        return lookup, False  # the operator's own rules refuse it
    columns = [_moved(lib, mode, lookup[..., i], size) for i, size in enumerate(sizes)]
    return lib.stack(columns, -1), False


def _moved(lib: Library, mode: Any, lookup: Array, size: Any) -> Array:
    signed = lib.positions(lookup)
    beyond = signed < 0 if is_uint64(lookup) else None  # 2^64 less than the index
    if mode == "wrap":
        inside = signed % size
        if beyond is None:
            return inside
        missing = 2**62 % size * 4 % size
        return lib.where(beyond, (inside + missing) % size, inside)
    inside = lib.clip(signed, 0, size - 1)
    return inside if beyond is None else lib.where(beyond, size - 1, inside)
