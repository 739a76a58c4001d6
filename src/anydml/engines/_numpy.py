"""NumPy as an engine: what the base install computes with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

_COLUMN_BYTES: Final = 8 << 20
"""The most memory of the columns that a convolution makes at a time."""

_TAPS: Final = 64
"""The most elements of a window that a depthwise convolution takes one by one."""


class NumpyEngine:
    """`Engine` on NumPy arrays."""

    xp: Any = np

    def dot(self, a: Array, b: Array) -> Array:
        """Matrix products."""
        result: Array = np.matmul(a, b)
        return result

    def conv(
        self,
        x: Array,
        w: Array,
        *,
        strides: Sequence[int],
        pads: Sequence[tuple[int, int]],
        dilations: Sequence[int],
        groups: int,
        input_dilations: Sequence[int] | None = None,
    ) -> Array:
        """Cross-correlation: by taps where each channel stands alone, else by columns."""
        if input_dilations is not None:
            x = _dilate(x, input_dilations)
        view = _windows(x, w.shape[2:], strides, pads, dilations, 0)
        if groups == x.shape[1] == w.shape[0] and prod(w.shape[2:]) <= _TAPS:
            return _by_taps(view, w)
        return _by_columns(view, w, groups)

    def windows(
        self,
        x: Array,
        *,
        sizes: Sequence[int],
        strides: Sequence[int],
        pads: Sequence[tuple[int, int]],
        dilations: Sequence[int],
        fill: Any,
    ) -> Array:
        """The windows, as a view of the padded array."""
        return _windows(x, sizes, strides, pads, dilations, fill)

    def cast(self, x: Array, dtype: Any) -> Array:
        """Conversion as CAST has it."""
        dtype = np.dtype(dtype)
        if x.dtype.kind != "f" or dtype.kind == "f":
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                return x.astype(dtype)
        limits = np.iinfo(dtype)
        wide = x.astype(np.float64)
        high = wide >= float(limits.max)
        low = wide <= float(limits.min)
        inside = np.where(high | low | np.isnan(wide), 0.0, np.trunc(wide)).astype(dtype)
        inside = np.where(high, dtype.type(limits.max), inside)
        return np.where(low, dtype.type(limits.min), inside)


def _dilate(x: Array, dilations: Sequence[int]) -> Array:
    if all(step == 1 for step in dilations):
        return x
    spatial = [
        (n - 1) * step + 1 if n else 0 for n, step in zip(x.shape[2:], dilations, strict=True)
    ]
    wide = np.zeros((*x.shape[:2], *spatial), x.dtype)
    wide[(slice(None), slice(None), *(slice(None, None, step) for step in dilations))] = x
    return wide


def _windows(
    x: Array,
    sizes: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[tuple[int, int]],
    dilations: Sequence[int],
    fill: Any,
) -> Array:
    x = _pad(x, pads, fill)
    spans = [(n - 1) * step + 1 for n, step in zip(sizes, dilations, strict=True)]
    counts = [
        max((n - span) // step + 1, 0)
        for n, span, step in zip(x.shape[2:], spans, strides, strict=True)
    ]
    if 0 in (*counts, *sizes):
        return np.empty((*x.shape[:2], *counts, *sizes), x.dtype)
    steps = x.strides[2:]
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *counts, *sizes),
        (
            *x.strides[:2],
            *(a * b for a, b in zip(steps, strides, strict=True)),
            *(a * b for a, b in zip(steps, dilations, strict=True)),
        ),
        writeable=False,
    )


def _pad(x: Array, pads: Sequence[tuple[int, int]], fill: Any) -> Array:
    crops = tuple(
        slice(max(-start, 0), n - max(-end, 0))
        for n, (start, end) in zip(x.shape[2:], pads, strict=True)
    )
    x = x[(slice(None), slice(None), *crops)]
    widths = [(max(start, 0), max(end, 0)) for start, end in pads]
    if not any(map(any, widths)):
        return x
    shape = [n + start + end for n, (start, end) in zip(x.shape[2:], widths, strict=True)]
    padded = np.full((*x.shape[:2], *shape), fill, x.dtype)
    inner = [slice(start, start + n) for n, (start, _) in zip(x.shape[2:], widths, strict=True)]
    padded[(slice(None), slice(None), *inner)] = x
    return padded


def _by_taps(view: Array, w: Array) -> Array:
    # One multiply-add of the whole output for each element of the window.
    rank = w.ndim - 2
    result = np.zeros(view.shape[: 2 + rank], view.dtype)
    product_of = np.empty_like(result)
    for tap in np.ndindex(w.shape[2:]):
        factor = w[(slice(None), 0, *tap)].reshape(-1, *(1,) * rank)
        result += np.multiply(view[(..., *tap)], factor, out=product_of)
    return result


def _by_columns(view: Array, w: Array, groups: int) -> Array:
    # im2col in pieces of positions, so that the columns stay within the cache and a limit.
    batch, rest = view.shape[0], view.shape[2:]
    rank = w.ndim - 2
    counts = rest[:rank]
    outputs, depth = w.shape[0] // groups, prod(w.shape[1:])
    result = np.empty((batch, w.shape[0], *counts), view.dtype)
    filters = w.reshape(groups, outputs, depth)
    for at, piece in _pieces(counts, depth * groups * view.itemsize):
        part = view[(slice(None), slice(None), *at)]
        columns = np.moveaxis(part, range(2, 2 + rank), range(-rank, 0))
        for sample in range(batch):
            columns_of = columns[sample].reshape(groups, depth, prod(piece))
            product_of = np.matmul(filters, columns_of)
            result[sample][(slice(None), *at)] = product_of.reshape(w.shape[0], *piece)
    return result


def _pieces(
    counts: Sequence[int], bytes_each: int
) -> Iterator[tuple[tuple[slice, ...], tuple[int, ...]]]:
    """Blocks of positions whose columns take a limited number of bytes."""
    most = max(_COLUMN_BYTES // max(bytes_each, 1), 1)
    steps = list(counts)
    for axis in range(len(steps)):
        inner = prod(steps[axis + 1 :])
        steps[axis] = min(max(most // max(inner, 1), 1), max(steps[axis], 1))
    ranges = [range(0, n, step) for n, step in zip(counts, steps, strict=True)]
    for starts in product(*ranges):
        ends = [min(a + step, n) for a, step, n in zip(starts, steps, counts, strict=True)]
        at = tuple(slice(a, b) for a, b in zip(starts, ends, strict=True))
        yield at, tuple(b - a for a, b in zip(starts, ends, strict=True))
