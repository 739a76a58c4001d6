"""NumPy: partitions, fancy indexing, take and put, copies of views."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from benchmarks.jobs import Array
from benchmarks.peers._peer import Peer, Ways

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
        self, x: Array, indices: Array, updates: Array, axis: int, reduction: str | None
    ) -> Ways:
        """A copy, and writes into it."""
        if reduction is not None:
            grid = _grid(indices, axis)

            def combined() -> Array:
                y = x.copy()
                _COMBINE[reduction].at(y, grid, updates)
                return y

            yield f"copy, {_COMBINE[reduction].__name__}.at", combined
            return

        def put() -> Array:
            y = x.copy()
            np.put_along_axis(y, indices, updates, axis)
            return y

        def assigned() -> Array:
            y = x.copy()
            y[indices] = updates
            return y

        if x.ndim == 1:
            yield "copy, y[i] = u", assigned
        else:
            yield "copy, put_along_axis", put

    def scatter_nd(self, x: Array, indices: Array, updates: Array, reduction: str | None) -> Ways:
        """A copy, and writes into it."""
        columns = tuple(np.moveaxis(indices, -1, 0))

        def assigned() -> Array:
            y = x.copy()
            if reduction is None:
                y[columns] = updates
            else:
                _COMBINE[reduction].at(y, columns, updates)
            return y

        label = "y[i, ..] = u" if reduction is None else f"{_COMBINE[reduction].__name__}.at"
        yield f"copy, {label}", assigned

    def split(self, x: Array, sections: int, axis: int) -> Ways:
        """Views, and copies of them."""
        yield "split, copy", lambda: [part.copy() for part in np.split(x, sections, axis)]

    def join(self, *parts: Array, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "concatenate", lambda: np.concatenate(parts, axis)

    def gather(self, x: Array, indices: Array, axis: int) -> Ways:
        """The result needs no conversion."""
        yield "take", lambda: np.take(x, indices, axis)
        if axis == 0:
            yield "x[i]", lambda: x[indices]

    def gather_elements(self, x: Array, indices: Array, axis: int) -> Ways:
        """The result needs no conversion."""
        if x.ndim == 1:
            yield "take", lambda: np.take(x, indices)
        yield "take_along_axis", lambda: np.take_along_axis(x, indices, axis)

    def gather_nd(self, x: Array, indices: Array, batch_dims: int) -> Ways:
        """Fancy indexing."""
        at = (*_batches(indices, batch_dims), *np.moveaxis(indices, -1, 0))
        yield "x[i, ..]", lambda: x[at]

    def scatter_elements_into(
        self, outs: Any, x: Array, indices: Array, updates: Array, axis: int, reduction: str | None
    ) -> Ways:
        """A copy, and writes into it."""
        out, grid = outs[0], _grid(indices, axis)

        def combined() -> None:
            np.copyto(out, x)
            _COMBINE[reduction or ""].at(out, grid, updates)

        def assigned() -> None:
            np.copyto(out, x)
            out[grid] = updates

        if reduction is None:
            yield "copyto, y[i, ..] = u", assigned
        else:
            yield f"copyto, {_COMBINE[reduction].__name__}.at", combined

    def scatter_nd_into(
        self, outs: Any, x: Array, indices: Array, updates: Array, reduction: str | None
    ) -> Ways:
        """A copy, and writes into it."""
        out, columns = outs[0], tuple(np.moveaxis(indices, -1, 0))

        def assigned() -> None:
            np.copyto(out, x)
            if reduction is None:
                out[columns] = updates
            else:
                _COMBINE[reduction].at(out, columns, updates)

        label = "y[i, ..] = u" if reduction is None else f"{_COMBINE[reduction].__name__}.at"
        yield f"copyto, {label}", assigned

    def split_into(self, outs: Any, x: Array, sections: int, axis: int) -> Ways:
        """Copies of views."""

        def copied() -> None:
            for out, view in zip(outs, np.split(x, sections, axis), strict=True):
                np.copyto(out, view)

        yield "split, copyto", copied

    def join_into(self, outs: Any, *parts: Array, axis: int) -> Ways:
        """The same."""
        yield "concatenate", lambda: np.concatenate(parts, axis, out=outs[0])

    def gather_into(self, outs: Any, x: Array, indices: Array, axis: int) -> Ways:
        """The same."""
        yield "take", lambda: np.take(x, indices, axis, out=outs[0])

    def gather_elements_into(self, outs: Any, x: Array, indices: Array, axis: int) -> Ways:
        """In one dimension only: `take_along_axis` has no form for it."""
        if x.ndim == 1:
            yield "take", lambda: np.take(x, indices, out=outs[0])

    def gather_nd_into(self, outs: Any, x: Array, indices: Array, batch_dims: int) -> Ways:
        """Rows only: indexing has no form for it."""
        if not batch_dims and indices.shape[-1] == 1:
            yield "take", lambda: np.take(x, indices[..., 0], 0, out=outs[0])


def _slice(array: Array, axis: int, taken: slice) -> Array:
    return np.moveaxis(np.moveaxis(array, axis, 0)[taken], 0, axis)


def _grid(indices: Array, axis: int) -> tuple[Array, ...]:
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[axis] = indices
    return tuple(grid)


def _batches(indices: Array, batch_dims: int) -> tuple[Array, ...]:
    """Coordinates of the batches, to stand before those of the tuples."""
    sizes = (*indices.shape[:batch_dims], *(1,) * (indices.ndim - 1 - batch_dims))
    return tuple(np.indices(sizes, sparse=True)[:batch_dims])
