"""Samples of regions of interest along one dimension, grouped into runs.

The number of samples depends on the data and has no useful bound. Samples that lie between the same
two elements of the input form a run: their mean is the value at their mean position, and their
maximum is at one end of the run. The number of runs is at most the number of elements that the
region covers, so the work does not depend on the number of samples.

Positions are computed in FLOAT64 from regions that are rounded to FLOAT32. A position or a quotient
that is within 2^-30 of an integer counts as that integer, so that rounding on one engine does not
choose other elements than on another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from anydml.engines import Array, Engine
from anydml.ops._descriptor import Attributes
from anydml.ops.enumerations import InterpolationMode


class Place(NamedTuple):
    """The two elements around a position, and the weight of the second; None for one element."""

    low: Array
    high: Array
    part: Any

    def taps(self) -> list[tuple[Array, Any]]:
        """Each element with its weight."""
        if self.part is None:
            return [(self.low, 1.0)]
        return [(self.low, 1.0 - self.part), (self.high, self.part)]


class Run(NamedTuple):
    """Samples between the same two elements: the first one, the last one, and their number."""

    begin: Array
    end: Array
    count: Array

    @property
    def middle(self) -> Array:
        """The mean of the samples' indices."""
        return (self.begin + self.end) / 2


@dataclass(frozen=True)
class Samples:
    """The samples of each output element along one dimension, in ascending order of position.

    Attributes
    ----------
    xp : module
        The engine's array namespace.
    size : int
        Elements of the input along the dimension.
    nearest : bool
        Whether a sample reads only the nearest element.
    start, step : array
        The position of the first sample, and the distance to the next.
    share, spacing : array
        The same as a fraction of the region: 0 at its first corner and 1 at its second.
    count : array
        The number of samples.
    first, last, inside : array
        The first and the last sample inside the input, and their number.
    """

    xp: Any
    size: int
    nearest: bool
    start: Array
    step: Array
    share: Array
    spacing: Array
    count: Array
    first: Array
    last: Array
    inside: Array

    @cached_property
    def runs(self) -> Array:
        """The number of runs. Each sample is its own run if samples are 1 or more apart."""
        first, last = self._cells
        counts = self.xp.where(self.step < 1, last - first + 1, self.inside)
        return self.xp.where(self.inside == 0, 0, counts)

    def run(self, index: Array) -> Run:
        """The run with this index. One that does not exist has no samples."""
        xp, index = self.xp, index.astype(self.xp.float64)
        first, last = self._cells
        cell, alone = first + index, self.first + index
        begin = xp.where(index == 0, self.first, self._last_of(cell - 1) + 1)
        end = xp.where(cell == last, self.last, self._last_of(cell))
        begin = xp.maximum(xp.where(self.step < 1, begin, alone), self.first)
        end = xp.minimum(xp.where(self.step < 1, end, alone), self.last)
        count = xp.where(index < self.runs, xp.maximum(end - begin + 1, 0), 0)
        return Run(begin, end, count)

    def place(self, index: Array) -> Place:
        """The elements around a sample, or between two samples around their mean position."""
        xp = self.xp
        at = self._position(index)
        if self.nearest:
            at = xp.ceil(snapped(xp, at - 0.5))
        at = xp.clip(at, 0, self.size - 1)
        low = xp.floor(at)
        high = xp.minimum(low + 1, self.size - 1)
        part = None if self.nearest else at - low
        return Place(low.astype(xp.int64), high.astype(xp.int64), part)

    def between(self, run: Run) -> tuple[Array, Array]:
        """The number of samples of a run that lie between two elements, and their mean fraction."""
        at = self._position(run.end)
        end = self.xp.where(at == self.xp.floor(at), run.end - 1, run.end)
        inner = (run.count > 0) & (at > 0) & (at <= self.size - 1)
        count = self.xp.where(inner, end - run.begin + 1, 0)
        return count, self.share + (run.begin + end) / 2 * self.spacing

    def _position(self, index: Array) -> Array:
        return snapped(self.xp, self.start + index * self.step)

    @cached_property
    def _cells(self) -> tuple[Array, Array]:
        """The elements at or after the first and the last sample, or the nearest ones."""
        first, last = (
            self.xp.ceil(snapped(self.xp, self._position(index) - self._half))
            for index in (self.first, self.last)
        )
        return first, last

    def _last_of(self, cell: Array) -> Array:
        return self.xp.floor(snapped(self.xp, (cell + self._half - self.start) / self.step))

    @property
    def _half(self) -> float:
        return 0.5 if self.nearest else 0.0


@dataclass(frozen=True)
class Grid:
    """The samples of all regions.

    Attributes
    ----------
    e : Engine
        The engine to compute with.
    rows, columns : Samples
        Along the height and along the width.
    first : array
        The position of each region's channels in the flattened input.
    """

    e: Engine
    rows: Samples
    columns: Samples
    first: Array

    @classmethod
    def of(
        cls,
        e: Engine,
        sizes: Sequence[int],
        regions: Array,
        indices: Array,
        outputs: Sequence[int],
        attributes: Attributes,
    ) -> Grid:
        """The samples of regions of an input, for the height and width of an output."""
        corners = regions.reshape(-1, 4).astype(e.xp.float64)
        known, first = first_elements(e, indices.reshape(-1), sizes)
        rows, columns = (
            _samples_along(e, corners, known, 2 + i, sizes[2 + i], outputs[i], attributes)
            for i in range(2)
        )
        return cls(e, rows, columns, first)

    @property
    def count(self) -> Array:
        """The number of samples of each output element."""
        return self.rows.count * self.columns.count

    def repeat(self, step: Callable[[Run, Run, Any], Any], carry: Any) -> Any:
        """Apply ``step(run of rows, run of columns, carry)`` to all pairs of runs."""
        # This also caches `runs` outside the loop: a value from inside would not outlive its trace.
        width = self.e.xp.max(self.columns.runs).astype(self.e.xp.int64)
        count = self.e.xp.max(self.rows.runs).astype(self.e.xp.int64) * width

        def one(index: Array, carry: Any) -> Any:
            return step(self.rows.run(index // width), self.columns.run(index % width), carry)

        return self.e.repeat(count, one, carry)

    def taps(self, row: Place, column: Place) -> Iterator[tuple[Array, Array]]:
        """The elements that a sample reads: their positions and their weights."""
        for y, part in row.taps():
            for x, share in column.taps():
                yield self.first + y * self.columns.size + x, part * share

    def value(self, flat: Array, row: Array, column: Array) -> Array:
        """The sample at a row and a column; elements with weight 0 are ignored."""
        xp, total = self.e.xp, 0.0
        for position, weight in self.taps(self.rows.place(row), self.columns.place(column)):
            taken = xp.take(flat, position).astype(xp.float64)
            total = total + xp.where(weight == 0, 0.0, weight * taken)
        return total

    def ends(self, flat: Array, row: Run, column: Run) -> Iterator[tuple[Array, Array, Array]]:
        """The samples at the ends of two runs, one of which is the largest: value, row, column."""
        for y in (row.begin, row.end):
            for x in (column.begin, column.end):
                yield self.value(flat, y, x), y, x

    def largest(self, flat: Array, shape: Sequence[int]) -> tuple[Run, Run]:
        """The largest sample of each output element, as a run in each dimension.

        Values are compared in FLOAT32: equal ones must be equal on every engine.
        """
        xp = self.e.xp

        def update_best(row: Run, column: Run, best: Any) -> Any:
            has_samples = row.count * column.count > 0
            for exact, y, x in self.ends(flat, row, column):
                value, (maximum, top, left) = exact.astype(xp.float32), best
                same = (value == maximum) | (xp.isnan(value) & xp.isnan(maximum))
                first = (y < top) | ((y == top) & (x < left))
                more = (value > maximum) | (xp.isnan(value) & ~xp.isnan(maximum))
                taken = has_samples & (more | (same & first))
                best = tuple(
                    xp.where(taken, new, old) for new, old in zip((value, y, x), best, strict=True)
                )
            return best

        nowhere = xp.full(shape, xp.inf, xp.float64)
        _, top, left = self.repeat(
            update_best, (xp.full(shape, -xp.inf, xp.float32), nowhere, nowhere)
        )
        found = xp.isfinite(top)
        y, x, count = xp.where(found, top, 0), xp.where(found, left, 0), found.astype(xp.float64)
        return Run(y, y, count), Run(x, x, xp.ones_like(count))

    def slopes(self, row: Run, column: Run, flat: Array, dy: Array) -> Array:
        """The gradients of x1, y1, x2 and y2 before they are scaled, by one pair of runs."""
        xp = self.e.xp
        y, x = self.rows.place(row.middle), self.columns.place(column.middle)
        taps = self.taps(y, x)
        a, b, c, d = (xp.take(flat, position).astype(xp.float64) for position, _ in taps)
        found = []
        for line, run, count, (first, second), part in (
            (self.columns, column, row.count, (b - a, d - c), y.part),
            (self.rows, row, column.count, (c - a, d - b), x.part),
        ):
            between, share = line.between(run)
            slope = first * (1.0 - part) + xp.where(part == 0, 0.0, second * part)
            slope = xp.where(between * count == 0, 0.0, dy * slope * (between * count))
            found.append([xp.sum(slope * way, (1, 2, 3)) for way in (1.0 - share, share)])
        (left, right), (top, bottom) = found
        return xp.stack([left, top, right, bottom], -1)


def first_elements(e: Engine, batches: Array, sizes: Sequence[int]) -> tuple[Array, Array]:
    """Say which batches exist, and where each region's channels begin in the flat input."""
    known = (batches >= 0) & (batches < sizes[0])
    batch = e.xp.where(known, batches, 0).astype(e.xp.int64).reshape(-1, 1, 1, 1)
    channels = e.xp.arange(sizes[1]).reshape(-1, 1, 1)
    return known, (batch * sizes[1] + channels) * (sizes[2] * sizes[3])


def snapped(xp: Any, x: Array) -> Array:
    """Round to the nearest integer if it is within 2^-30."""
    near = xp.round(x)
    return xp.where(xp.abs(x - near) <= 2.0**-30 * xp.maximum(xp.abs(x), 1.0), near, x)


def _samples_along(
    e: Engine,
    regions: Array,
    known: Array,
    axis: int,
    size: int,
    outputs: int,
    attributes: Attributes,
) -> Samples:
    """The samples along dimension 2, the height, or 3, the width.

    Parameters
    ----------
    e : Engine
        The engine to compute with.
    regions : array
        One row ``x1, y1, x2, y2`` for each region.
    known : array
        Whether the batch of the region exists; if not, no sample is inside.
    axis : int
        The dimension.
    size, outputs : int
        Sizes of the input and of the output along it.
    attributes : mapping
        The operator's attributes.

    Returns
    -------
    Samples
        Arrays that broadcast with ``{regions, channels, height, width}``.
    """
    xp = e.xp
    scale = attributes["spatial_scale_y" if axis == 2 else "spatial_scale_x"]
    corners = [_rounded(xp, regions[:, i] * scale) for i in (3 - axis, 5 - axis)]
    low, high = (corner.reshape(-1, 1, 1, 1) for corner in corners)
    extent = _rounded(xp, high - low)
    minimum, maximum = (
        attributes[f"{bound}_samples_per_output"] for bound in ("minimum", "maximum")
    )
    count = xp.clip(xp.ceil(_rounded(xp, extent / outputs)), max(minimum, 1), maximum)
    parts = count * outputs
    to_corners = attributes.get("align_regions_to_corners", False)
    spacing = 1 / (xp.maximum(parts - 1, 1) if to_corners else parts)
    index = xp.arange(outputs, dtype=xp.float64).reshape((-1, 1) if axis == 2 else (-1,))
    share = (index * count - attributes.get("output_pixel_offset", -0.5)) * spacing
    if to_corners:
        share = xp.where(parts == 1, 0.5, share)
    # In ascending order. The samples of an empty region are all at one place: one of them counts.
    is_reversed, flat = extent < 0, xp.abs(extent * spacing) < 1e-30
    share = xp.where(is_reversed, share + (count - 1) * spacing, share)
    spacing = xp.where(is_reversed, -spacing, spacing)
    share = xp.where(flat, share + (count - 1) / 2 * spacing, share)
    count = xp.where(flat, 1, count)
    start = share * extent + low - attributes.get("input_pixel_offset", 0.5)
    step = xp.where(flat, 1, spacing * extent)
    valid = xp.isfinite(start) & known.reshape(-1, 1, 1, 1)
    start, share = xp.where(valid, start, 0), xp.where(valid, share, 0)
    step, spacing, count = (xp.where(valid, x, 1) for x in (step, spacing, count))
    first = xp.clip(xp.ceil(snapped(xp, (-1 - start) / step)), 0, count)
    last = xp.clip(xp.floor(snapped(xp, (size - start) / step)), -1, count - 1)
    inside = xp.where(valid, xp.maximum(last - first + 1, 0), 0)
    nearest = attributes["interpolation_mode"] is InterpolationMode.NEAREST_NEIGHBOR
    return Samples(xp, size, nearest, start, step, share, spacing, count, first, last, inside)


def _rounded(xp: Any, x: Array) -> Array:
    """Round to FLOAT32."""
    return x.astype(xp.float32).astype(xp.float64)
