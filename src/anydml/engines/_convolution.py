"""Cross-correlation on NumPy: three algorithms, by the sizes.

- A filter of one element without strides and padding is one matrix product of the input itself.
- A depthwise filter (groups of one channel) of few elements is a sum of products, one for each
  element, of blocks that stay in the cache.
- Else the windows are copied into columns (im2col), a piece at a time, and multiplied.

Input dilation (the transpose of a convolution with strides) is one convolution without strides for
each remainder of the output position: no zero is multiplied.

Beyond its result a call takes `COLUMN_BYTES` and as much as one column of all channels, which is
not more than the filter, and copies of operands that are not contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import gcd, prod
from typing import Any, Final, NamedTuple

import numpy as np

from anydml.engines._windows import Axis, Index, blocks, taps

Array = np.ndarray[Any, np.dtype[Any]]

COLUMN_BYTES: Final = 2 << 20
"""The most memory of the columns that are made at a time."""

_BLOCK_BYTES: Final = 256 << 10
"""The size of a block that a depthwise convolution works on."""

SCRATCH_BYTES: Final = max(COLUMN_BYTES, _BLOCK_BYTES)
"""The most that a call takes besides what the sizes of its operands and result account for."""

_MOST_ALONE: Final = 500_000
"""The most products of two elements in a product of matrices that OpenBLAS adds on one thread."""

_MOST_PIECES: Final = 8
"""The most of those for which its threads are not woken: 4 million take 0.1 ms."""

_MOST_TAPS: Final = 64
"""The most elements of a filter that a depthwise convolution takes one by one."""


def multiply(a: Array, b: Array, out: Array | None = None) -> Array:
    """Products of matrices; a small one in pieces that are too small for threads of BLAS.

    NumPy has no option for them, and on a busy machine each product waits for one that does not
    run: 32 ms instead of 0.1.
    """
    rows, columns = a.shape[-2], b.shape[-1]
    count = -(-rows * a.shape[-1] * columns // _MOST_ALONE)
    if not 1 < count <= _MOST_PIECES or min(rows, columns) == 1 or a.dtype.kind != "f":
        return np.matmul(a, b, out=out)
    if out is None:
        shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = np.empty((*shape, rows, columns), np.result_type(a, b))
    size = -(-max(rows, columns) // count)
    for start in range(0, max(rows, columns), size):
        at = slice(start, start + size)
        if rows > columns:
            np.matmul(a[..., at, :], b, out=out[..., at, :])
        else:
            np.matmul(a, b[..., at], out=out[..., at])
    return out


def correlate(x: Array, w: Array, axes: Sequence[Axis], groups: int) -> Array:
    """The windows of x (N, C, *spatial) times w (K, C / groups, *window), summed."""
    if all(axis.is_identity for axis in axes):
        return _by_product(x, w, groups)
    if groups == len(w) == x.shape[1] and prod(w.shape[2:]) <= _MOST_TAPS:
        return _by_taps(x, w, axes)
    return _by_columns(x, w, axes, groups)


def correlate_dilated(
    x: Array, w: Array, axes: Sequence[Axis], groups: int, steps: Sequence[int]
) -> Array:
    """Convolve `x` with step - 1 zeros between elements; `axes` have the sizes of `x` itself."""
    result = np.zeros((x.shape[0], w.shape[0], *(axis.count for axis in axes)), x.dtype)
    phases = [list(_phases(axis, step)) for axis, step in zip(axes, steps, strict=True)]
    for chosen in product(*phases):
        outputs: Index = (..., *(phase.outputs for phase in chosen))
        part: Index = (..., *(phase.taps for phase in chosen))
        result[outputs] = correlate(x, w[part], [phase.axis for phase in chosen], groups)
    return result


class _Phase(NamedTuple):
    """Output positions with one remainder, and the filter's elements that meet elements there."""

    outputs: slice
    taps: slice
    axis: Axis


def _phases(axis: Axis, step: int) -> Iterator[_Phase]:
    common = gcd(axis.stride, step)
    period, between = step // common, step // gcd(axis.dilation, step)
    for first in range(min(between, axis.window)):
        # The output positions p at which p * stride + offset is a multiple of the step.
        offset = first * axis.dilation - axis.start
        phase = -offset // common * pow(axis.stride // common, -1, period) % period
        if offset % common == 0 and phase < axis.count:
            own = Axis(
                axis.size,
                -(-(axis.window - first) // between),
                -(-(axis.count - phase) // period),
                axis.stride // common,
                axis.dilation * between // step,
                -(phase * axis.stride + offset) // step,
            )
            yield _Phase(slice(phase, None, period), slice(first, None, between), own)


def _by_product(x: Array, w: Array, groups: int) -> Array:
    batch, channels, *sizes = x.shape
    filters = w.reshape(groups, w.shape[0] // groups, channels // groups)
    values = x.reshape(batch, groups, channels // groups, prod(sizes))
    return multiply(filters, values).reshape(batch, w.shape[0], *sizes)


def _by_taps(x: Array, w: Array, axes: Sequence[Axis]) -> Array:
    counts = tuple(axis.count for axis in axes)
    result = np.zeros((*x.shape[:2], *counts), x.dtype)
    places = list(taps(axes))
    for block in blocks(x.shape[:2], _BLOCK_BYTES // (prod(counts) * x.itemsize)):
        values, sums, filters = x[block], result[block], w[block[1], 0, ..., *(None for _ in axes)]
        products = np.empty(sums.shape, x.dtype)
        for place, outputs, elements in places:
            where: Index = (..., *outputs)
            factor: Index = (slice(None), *place)
            np.multiply(values[(..., *elements)], filters[factor], out=products[where])
            sums[where] += products[where]
    return result


def _by_columns(x: Array, w: Array, axes: Sequence[Axis], groups: int) -> Array:
    batch, channels = x.shape[:2]
    counts = tuple(axis.count for axis in axes)
    depth = prod(w.shape[1:])
    filters = w.reshape(groups, w.shape[0] // groups, depth)
    result = np.empty((batch, groups, w.shape[0] // groups, prod(counts)), x.dtype)
    block_size = COLUMN_BYTES // (groups * depth * x.itemsize)
    for samples, *positions in blocks((batch, *counts), block_size):
        parts = [axis.part(at) for axis, at in zip(axes, positions, strict=True)]
        piece = tuple(part.count for part in parts)
        values = x[samples]
        columns = np.zeros((len(values), channels, *w.shape[2:], *piece), x.dtype)
        for place, outputs, elements in taps(parts):
            target: Index = (slice(None), slice(None), *place, *outputs)
            columns[target] = values[(..., *elements)]
        # The positions of a block are consecutive.
        first = int(np.ravel_multi_index([at.start for at in positions], counts))
        at = slice(first, first + prod(piece))
        columns = columns.reshape(-1, groups, depth, prod(piece))
        multiply(filters, columns, out=result[samples, ..., at])
    return result.reshape(batch, w.shape[0], *counts)
