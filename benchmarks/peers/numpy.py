"""NumPy: partitions, fancy indexing, take and put, copies of views."""

from __future__ import annotations

from typing import Any, Final, cast

import numpy as np

from benchmarks.jobs import Array
from benchmarks.peers._peer import Call, Peer, Ways, calling

_COMBINE: Final[dict[str, Any]] = {
    "add": np.add,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class NumPy(Peer):
    """One thread, whatever the setting: NumPy is single-threaded."""

    name = "NumPy"
    version = np.__version__

    def top_k(self, x: Array, k: int, axis: int, largest: bool) -> Ways:
        """Partition and sort; a full sort for large k."""
        size = x.shape[axis]

        def best(candidates: Array) -> tuple[Array, Array]:
            values = np.take_along_axis(x, candidates, axis)
            order = np.argsort(values, axis)
            if largest:
                order = np.flip(order, axis)
            return (
                np.take_along_axis(values, order, axis),
                np.take_along_axis(candidates, order, axis),
            )

        def partitioned() -> tuple[Array, Array]:
            parted = np.argpartition(x, size - k if largest else k - 1, axis)
            return best(_slice(parted, axis, slice(size - k, None) if largest else slice(k)))

        def filtered() -> tuple[Array, Array]:
            bound = np.partition(x, size - k if largest else k - 1)[size - k if largest else k - 1]
            candidates = np.flatnonzero(x >= bound if largest else x <= bound)
            values, indices = best(candidates)
            return values[:k], indices[:k]

        def sorted_whole() -> tuple[Array, Array]:
            order = np.argsort(x, axis)
            if largest:
                order = np.flip(order, axis)
            indices = _slice(order, axis, slice(k))
            return np.take_along_axis(x, indices, axis), indices

        if k < size:
            yield "argpartition, argsort", partitioned
            if x.ndim == 1:
                yield "partition, flatnonzero, argsort", filtered
        if 4 * k >= size:
            yield "argsort", sorted_whole

    def nonzero_coordinates(self, x: Array) -> Ways:
        """The result needs no conversion."""
        yield "argwhere", lambda: np.argwhere(x)

    def scatter_elements(
        self,
        x: Array,
        indices: Array,
        updates: Array,
        axis: int,
        reduction: str | None,
        out: Any = None,
    ) -> Ways:
        """A copy, and writes into it."""
        grid: list[Array] = list(np.indices(indices.shape, sparse=True))
        grid[axis] = indices
        yield _written(x, tuple(grid), updates, reduction, out)

    def scatter_nd(
        self, x: Array, indices: Array, updates: Array, reduction: str | None, out: Any = None
    ) -> Ways:
        """A copy, and writes into it."""
        yield _written(x, tuple(np.moveaxis(indices, -1, 0)), updates, reduction, out)

    def split(self, x: Array, sections: int, axis: int, out: Any = None) -> Ways:
        """Views, and copies of them."""

        def copied() -> None:
            for part, view in zip(out, np.split(x, sections, axis), strict=True):
                np.copyto(part, view)

        if out is not None:
            yield "split, copyto", copied
        else:
            yield "split, copy", lambda: [part.copy() for part in np.split(x, sections, axis)]

    def join(self, *parts: Array, axis: int, out: Any = None) -> Ways:
        """The result needs no conversion."""
        yield "concatenate", calling(np.concatenate, parts, axis, out=out)

    def gather(self, x: Array, indices: Array, axis: int, out: Any = None) -> Ways:
        """The result needs no conversion."""
        yield "take", calling(np.take, x, indices, axis, out=out)
        if axis == 0 and out is None:
            yield "x[i]", lambda: x[indices]

    def gather_elements(self, x: Array, indices: Array, axis: int, out: Any = None) -> Ways:
        """Into an array in one dimension only: `take_along_axis` has no form for it."""
        if x.ndim == 1:
            yield "take", calling(np.take, x, indices, out=out)
        if out is None:
            yield "take_along_axis", lambda: np.take_along_axis(x, indices, axis)

    def gather_nd(self, x: Array, indices: Array, batch_dims: int, out: Any = None) -> Ways:
        """Fancy indexing; rows only into an array: indexing has no form for it."""
        at = (*_batches(indices, batch_dims), *np.moveaxis(indices, -1, 0))
        if out is None:
            yield "x[i, ..]", lambda: x[at]
        elif not batch_dims and indices.shape[-1] == 1:
            yield "take", lambda: np.take(x, indices[..., 0], 0, out=out)


def _written(
    x: Array, at: tuple[Array, ...], updates: Array, reduction: str | None, out: Any
) -> tuple[str, Call]:
    """A copy of x, in `out` if that is there, and updates at these places."""

    def copied() -> Array:
        np.copyto(out, x)
        return cast("Array", out)

    copy = x.copy if out is None else copied

    def assigned() -> Array:
        y = copy()
        if reduction is None:
            y[at] = updates
        else:
            _COMBINE[reduction].at(y, at, updates)
        return y

    way = "y[i, ..] = u" if reduction is None else f"{_COMBINE[reduction].__name__}.at"
    return f"copy, {way}", assigned


def _slice(array: Array, axis: int, taken: slice) -> Array:
    return np.moveaxis(np.moveaxis(array, axis, 0)[taken], 0, axis)


def _batches(indices: Array, batch_dims: int) -> tuple[Array, ...]:
    """Coordinates of the batches, to stand before those of the tuples."""
    sizes = (*indices.shape[:batch_dims], *(1,) * (indices.ndim - 1 - batch_dims))
    return tuple(np.indices(sizes, sparse=True)[:batch_dims])
