"""The gate: no time is reported for a wrong result.

References are obvious NumPy. Of this library, every bit is checked: ties in ascending order, the
last duplicate wins, reductions in row-major order, index types. A peer is held to what it promises:
right values, in order; which of several equal elements it picks is its own affair, and so are its
index type and the rounding of its sums.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from benchmarks.jobs import Array, Job

Results = tuple[Array, ...]

_COMBINE: dict[str, Any] = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
# Of array functions, and of compiled operators, which follow their pages.
_OUR_INDICES = (np.dtype(np.intp), np.dtype(np.uint32))
_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 1e-1}


class Gate:
    """Checks results of one job.

    Parameters
    ----------
    job : Job
        Its reference is computed once.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        # Top-k is checked by its properties: complete, and cheaper than a stable sort.
        self.expected = () if job.operation == "top_k" else reference(job)

    def problem(self, results: Results, strict: bool) -> str | None:
        """What is wrong with the results, or None.

        Parameters
        ----------
        results : tuple of arrays
            As the array function returns them.
        strict : bool
            Whether to require every guarantee of anydml, or only what peers promise.
        """
        if self.job.operation == "top_k":
            if len(results) != 2:
                return f"expected values and indices, got {len(results)} results"
            return _top_k_problem(self.job, results[0], results[1], strict)
        if len(results) != len(self.expected):
            return f"expected {len(self.expected)} results, got {len(results)}"
        inexact = not strict and self.job.options.get("reduction") is not None
        for got, expected in zip(results, self.expected, strict=True):
            if got.shape != expected.shape:
                return f"expected shape {expected.shape}, got {got.shape}"
            coordinates = self.job.operation == "nonzero_coordinates"
            if coordinates:
                typed = not strict or got.dtype in _OUR_INDICES
            else:
                typed = got.dtype == expected.dtype
            if not typed:
                return f"expected type {expected.dtype}, got {got.dtype}"
            if inexact and expected.dtype.name in _TOLERANCE:
                allowed = _TOLERANCE[expected.dtype.name]
                good = np.allclose(got, expected, rtol=allowed, atol=allowed, equal_nan=True)
            elif coordinates:
                good = np.array_equal(got, expected)
            else:
                good = same_bits(got, expected)
            if not good:
                return "wrong values"
        return None


def outputs(job: Job) -> Results:
    """Arrays for the results of a job, as the array function makes them; of other contents."""
    if job.operation == "top_k":
        x, axis = job.arrays[0], job.options["axis"] % job.arrays[0].ndim
        shape = (*x.shape[:axis], job.options["k"], *x.shape[axis + 1 :])
        return np.full(shape, 1, x.dtype), np.full(shape, -1, np.intp)
    return tuple(np.full(expected.shape, 1, expected.dtype) for expected in reference(job))


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and type are equal to the bit."""
    raw = np.dtype(f"u{a.itemsize}")
    return np.array_equal(np.ascontiguousarray(a).view(raw), np.ascontiguousarray(b).view(raw))


def reference(job: Job) -> Results:
    """What a job gives, computed plainly; any operation but ``top_k``."""
    options = job.options
    reduction: str | None = options.get("reduction")
    first, *others = job.arrays
    match job.operation:
        case "nonzero_coordinates":
            return (np.argwhere(first),)
        case "scatter_elements":
            return (_scatter_elements(first, others[0], others[1], options["axis"], reduction),)
        case "scatter_nd":
            return (_scatter_nd(first, others[0], others[1], reduction),)
        case "split":
            return tuple(np.split(first, options["sections"], options["axis"]))
        case "join":
            return (np.concatenate(job.arrays, options["axis"]),)
        case "gather":
            return (np.take(first, others[0], options["axis"]),)
        case "gather_elements":
            return (_gather_elements(first, others[0], options["axis"]),)
        case "gather_nd":
            return (_gather_nd(first, others[0], options["batch_dims"]),)
    raise ValueError(f"operation: expected an array function's name, got {job.operation!r}")


def _grid(indices: Array, axis: int, size: int) -> tuple[Array, ...]:
    """The coordinates that an index array along an axis points to."""
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    signed = indices.astype(np.int64)
    grid[axis] = np.where(signed < 0, signed + size, signed)
    return tuple(grid)


def _write(flat: Array, at: Array, updates: Array, reduction: str | None) -> None:
    if reduction is None:
        flat[at] = updates  # in one dimension NumPy promises that the last one stays
    else:
        _COMBINE[reduction].at(flat, at, updates)  # one after the other


def _scatter_elements(
    x: Array, indices: Array, updates: Array, axis: int, reduction: str | None
) -> Array:
    y = np.array(x, order="C")
    at = np.ravel_multi_index(_grid(indices, axis, x.shape[axis]), x.shape)
    _write(y.reshape(-1), at.reshape(-1), updates.reshape(-1), reduction)
    return y


def _scatter_nd(x: Array, indices: Array, updates: Array, reduction: str | None) -> Array:
    y = np.array(x, order="C")
    sizes = x.shape[: indices.shape[-1]]
    signed = indices.reshape(-1, len(sizes)).astype(np.int64)
    wrapped = np.where(signed < 0, signed + np.array(sizes), signed)
    at = np.ravel_multi_index(tuple(wrapped.T), sizes)
    rows = y.reshape(prod(sizes), -1)
    _write(rows, at, updates.reshape(len(at), -1), reduction)
    return y


def _gather_elements(x: Array, indices: Array, axis: int) -> Array:
    taken: Array = x[_grid(indices, axis, x.shape[axis])]
    return taken


def _gather_nd(x: Array, indices: Array, batch_dims: int) -> Array:
    batches = np.indices(indices.shape[:batch_dims], sparse=True)
    behind = (1,) * (indices.ndim - 1 - batch_dims)
    leading = tuple(b.reshape(b.shape + behind) for b in batches)
    taken: Array = x[(*leading, *np.moveaxis(indices, -1, 0))]
    return taken


def _before(a: Array, b: Array, largest: bool) -> Array:
    """Whether a precedes b in the requested order; NaN counts as the largest."""
    precedes: Array = a > b if largest else a < b
    if a.dtype.kind == "f":
        high, low = (a, b) if largest else (b, a)
        precedes |= np.isnan(high) & ~np.isnan(low)
    return precedes


def _top_k_problem(job: Job, values: Array, indices: Array, strict: bool) -> str | None:
    axis, k, largest = job.options["axis"], job.options["k"], job.options["largest"]
    x = np.moveaxis(job.arrays[0], axis, -1)
    values, indices = np.moveaxis(values, axis, -1), np.moveaxis(indices, axis, -1)
    shape, size = (*x.shape[:-1], k), x.shape[-1]
    if values.shape != shape or indices.shape != shape:
        return f"expected shape {shape}, got {values.shape} and {indices.shape}"
    if values.dtype != x.dtype:
        return f"expected values of type {x.dtype}, got {values.dtype}"
    if strict and indices.dtype not in _OUR_INDICES:
        return f"expected indices of type {np.dtype(np.intp)}, got {indices.dtype}"
    indices = indices.astype(np.int64)
    if indices.min(initial=0) < 0 or indices.max(initial=0) >= size:
        return f"an index is outside 0..{size - 1}"
    if (np.diff(np.sort(indices, axis=-1), axis=-1) == 0).any():
        return "an index comes twice"
    taken = np.take_along_axis(x, indices, axis=-1)
    both_nan = (values != values) & (taken != taken)  # no integer is NaN
    if not (same_bits(values, taken) if strict else ((values == taken) | both_nan).all()):
        return "a value is not the one that its index names"
    first, second = values[..., :-1], values[..., 1:]
    if _before(second, first, largest).any():
        return "values are out of order"
    last = values[..., -1:]
    precedes = _before(x, last, largest)
    if (precedes.sum(-1) != _before(values, last, largest).sum(-1)).any():
        return "a better element was left out"
    if strict:
        tied = ~_before(first, second, largest)
        if (tied & (indices[..., :-1] > indices[..., 1:])).any():
            return "ties are not in ascending index order"
        level = ~precedes & ~_before(last, x, largest) & (np.arange(size) <= indices[..., -1:])
        if (level.sum(-1) != (~_before(values, last, largest)).sum(-1)).any():
            return "a tie with a smaller index was left out"
    return None
