"""The gate: no time is reported for a wrong result.

The reference is the array function with the kernels on NumPy (`anydml.portable`). Of this library,
every bit is checked. A peer is held to what it promises: right values, in order; which of several
equal elements it picks is its own affair, and so are its index type and the rounding of its sums.
"""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from anydml.functions._function import FunctionSpec, function_specs
from anydml.functions._memory import Memory
from anydml.portable.kernels import KERNELS, find_nonzero
from benchmarks.jobs import Array, Job

Results = tuple[Array, ...]

# Of array functions, and of compiled operators, which follow their pages.
_OUR_INDICES = (np.dtype(np.intp), np.dtype(np.uint32))
_TOLERANCE = {"float64": 1e-9, "float32": 1e-3, "float16": 1e-1}


class _OnNumPy(Memory):
    """The library of one call, whose kernels are those on NumPy."""

    def run(
        self, operator: Any, operands: Any, outputs: Any, attributes: Any, axes: Any, scratch: bool
    ) -> list[Array]:
        self._targets = [np.empty(shape, dtype) for shape, dtype in outputs]
        if KERNELS[operator.KERNEL](operands, self._targets, attributes) >= 0:
            raise IndexError("indices: expected indices into the axes")
        return self._targets

    def run_measured(
        self, operator: Any, x: Array, attributes: Any, kind: Any, size: int, fill: int
    ) -> Array:
        self._targets = [find_nonzero(x, attributes["columns"]).astype(kind)]
        return self._targets[0]


def _spec(job: Job) -> FunctionSpec:
    if job.operation not in function_specs():
        raise ValueError(f"operation: expected an array function's name, got {job.operation!r}")
    return function_specs()[job.operation]


def reference(job: Job) -> Results:
    """Compute the results of a job with the kernels on NumPy."""
    spec = _spec(job)
    known = {name: p.default for name, p in signature(spec.function).parameters.items()}
    known |= {**job.options, "sections_or_sizes": job.options.get("sections")}
    known |= zip(spec.operands, [job.arrays] if spec.lists_operands else job.arrays, strict=True)
    lib = _OnNumPy(spec, None)
    result = lib.results(
        spec.prepare(lib, *map(known.get, [*signature(spec.prepare).parameters][1:]))
    )
    return result if isinstance(result, tuple) else (result,)


class Gate:
    """Checks results of one job.

    Parameters
    ----------
    job : Job
        Its reference is computed once.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.expected = reference(job)
        self._is_index = [name == "index_dtype" for name in _spec(job).results]

    def outputs(self) -> Results:
        """Return arrays to write the results into, which hold something else."""
        return tuple(np.full_like(expected, 1) for expected in self.expected)

    def problem(self, results: Results, strict: bool) -> str | None:
        """Say what is wrong with the results; return None if nothing is.

        Parameters
        ----------
        results : tuple of arrays
            As the array function returns them.
        strict : bool
            Whether to require every guarantee of anydml, or only what peers promise.
        """
        if len(results) != len(self.expected):
            return f"expected {len(self.expected)} results, got {len(results)}"
        for i, (got, expected) in enumerate(zip(results, self.expected, strict=True)):
            is_index = self._is_index[min(i, len(self._is_index) - 1)]
            typed = got.dtype == expected.dtype
            if is_index:
                typed = not strict or got.dtype in _OUR_INDICES
            if got.shape != expected.shape:
                return f"expected shape {expected.shape}, got {got.shape}"
            if not typed:
                return f"expected type {expected.dtype}, got {got.dtype}"
            if is_index and len(results) == 2 and not strict:
                if problem := self._places_problem(got, results[0]):
                    return problem
            elif not (
                np.array_equal(got, expected) if is_index else self._equal(got, expected, strict)
            ):
                return "wrong values"
        return None

    def _equal(self, got: Array, expected: Array, strict: bool) -> bool:
        if strict or not {"reduction", "largest"} & {*self.job.options}:
            return same_bits(got, expected)
        reduced = self.job.options.get("reduction") is not None
        allowed = _TOLERANCE.get(expected.dtype.name, 0) if reduced else 0
        return np.allclose(got, expected, rtol=allowed, atol=allowed, equal_nan=True)

    def _places_problem(self, indices: Array, values: Array) -> str | None:
        """Say what is wrong with the indices of a peer whose values are right."""
        x, axis = self.job.arrays[0], self.job.options["axis"]
        indices, size = indices.astype(np.int64), x.shape[axis]
        if indices.min(initial=0) < 0 or indices.max(initial=0) >= size:
            return f"an index is outside 0..{size - 1}"
        if (np.diff(np.sort(indices, axis), axis=axis) == 0).any():
            return "an index comes twice"
        taken = np.take_along_axis(x, indices, axis)
        named = np.array_equal(taken, values, equal_nan=True)
        return None if named else "a value is not the one that its index names"


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays of one shape and type are equal to the bit."""
    raw = np.dtype(f"u{a.itemsize}")
    return np.array_equal(np.ascontiguousarray(a).view(raw), np.ascontiguousarray(b).view(raw))
