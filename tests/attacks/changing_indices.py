"""Calls one operator again and again while a thread changes all of its indices; run by a test.

    python changing_indices.py OPERATOR SECONDS

A read or write out of bounds shows as a segmentation fault, as a value that neither the input nor
the updates have, or as a changed byte beside the output. What a call may do: give values of its
operands, or raise `IndexOutOfRangeError` for a value that is really outside.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import anydml as dml

Array = np.ndarray[Any, np.dtype[Any]]
IN, UPDATE, BESIDE = 7, 5, 3
TYPES = ("uint32", "int64", "int32", "uint64")


def filled(shape: tuple[int, ...], value: int, dtype: str = "float32") -> Array:
    """An array of one value between pages of others."""
    count = int(np.prod(shape))
    full = np.full(count + 2048, BESIDE, dtype)
    full[1024 : 1024 + count] = value
    return full[1024 : 1024 + count].reshape(shape)


class Case:
    """One call: input sizes, index sizes, how far indices reach, updates' sizes if any."""

    def __init__(
        self,
        call: Callable[..., Any],
        shape: tuple[int, ...],
        lookup: tuple[int, ...],
        limit: int,
        updates: tuple[int, ...] | None = None,
        dtype: str = "float32",
        is_strided: bool = False,
    ) -> None:
        self.call, self.lookup, self.limit, self.is_strided = call, lookup, limit, is_strided
        self.x = filled(shape, IN, dtype)
        self.updates = None if updates is None else filled(updates, UPDATE, dtype)

    def indices(self, dtype: str) -> Array:
        """Memory for the indices; `is_strided` puts gaps between them."""
        if not self.is_strided:
            return np.zeros(self.lookup, dtype)
        return np.zeros((*self.lookup[:-1], 3 * self.lookup[-1]), dtype)[..., ::3]

    def run(self, indices: Array, out: Array | None) -> Array:
        """Call, into `out` where it is given."""
        operands = [self.x, indices] + ([] if self.updates is None else [self.updates])
        result: Array = self.call(*operands, out=out)
        return result


def gather(axis: int, mode: str = "raise") -> Callable[..., Any]:
    """`gather` along an axis."""
    return lambda x, indices, out: dml.gather(x, indices, axis=axis, mode=mode, out=out)


def gather_elements(axis: int) -> Callable[..., Any]:
    """`gather_elements` along an axis."""
    return lambda x, indices, out: dml.gather_elements(x, indices, axis=axis, out=out)


def gather_nd(x: Array, indices: Array, out: Array | None) -> Any:
    """`gather_nd`."""
    return dml.gather_nd(x, indices, out=out)


def scatter(axis: int, reduction: str | None = None) -> Callable[..., Any]:
    """`scatter_elements` along an axis."""
    return lambda x, indices, updates, out: dml.scatter_elements(
        x, indices, updates, axis=axis, reduction=reduction, out=out
    )


def scatter_nd(reduction: str | None = None) -> Callable[..., Any]:
    """`scatter_nd`."""
    return lambda x, indices, updates, out: dml.scatter_nd(
        x, indices, updates, reduction=reduction, out=out
    )


def cases(operator: str) -> Iterator[Case]:
    """The calls of one operator, one or more for each way that its kernel can take."""
    if operator == "gather":
        yield Case(gather(0), (3000,), (20_000,), 3000)
        yield Case(gather(0), (400_000,), (60_000,), 400_000)
        yield Case(gather(0), (400_000,), (60_000,), 400_000, is_strided=True)
        yield Case(gather(1), (40, 3000), (2000,), 3000)
        yield Case(gather(1), (400, 300, 2), (300,), 300)
        yield Case(gather(0, "clamp"), (3000,), (20_000,), 3000)
    elif operator == "gather_elements":
        yield Case(gather_elements(1), (100, 600), (100, 600), 600)
        yield Case(gather_elements(1), (100, 600), (100, 600), 600, dtype="float16")
        yield Case(gather_elements(1), (100, 600), (100, 600), 600, dtype="float64")
        yield Case(gather_elements(1), (100, 600), (100, 600), 600, is_strided=True)
        yield Case(gather_elements(0), (400, 700), (400, 700), 400)
        yield Case(gather_elements(0), (400_000,), (60_000,), 400_000)
    elif operator == "gather_nd":
        yield Case(gather_nd, (50, 60), (20_000, 2), 50)
        yield Case(gather_nd, (600, 700), (40_000, 2), 600)
        yield Case(gather_nd, (600, 700), (20_000, 1), 600)
        yield Case(gather_nd, (40, 50, 60), (20_000, 3), 40)
        yield Case(gather_nd, (10, 10, 10, 10, 3), (10_000, 4), 10)
    elif operator == "scatter_elements":
        for reduction in (None, "max"):
            yield Case(scatter(1, reduction), (60, 600), (60, 600), 600, (60, 600))
            yield Case(scatter(0, reduction), (400, 200), (400, 200), 400, (400, 200))
            yield Case(scatter(0, reduction), (500_000,), (100_000,), 500_000, (100_000,))
            yield Case(scatter(0, reduction), (500_000,), (300,), 500_000, (300,))
        yield Case(scatter(1), (60, 600), (60, 600), 600, (60, 600), is_strided=True)
        yield Case(scatter(0, "max"), (300,), (300_000,), 300, (300_000,), dtype="int32")
    else:
        for reduction in (None, "max"):
            yield Case(scatter_nd(reduction), (60, 50), (3000, 2), 50, (3000,))
            yield Case(scatter_nd(reduction), (600, 500), (60_000, 2), 500, (60_000,))
            yield Case(scatter_nd(reduction), (800, 300), (900, 1), 800, (900, 300))
            yield Case(scatter_nd(reduction), (40, 40, 40, 3), (40_000, 3), 40, (40_000, 3))
        yield Case(scatter_nd(), (600, 500), (60_000, 2), 500, (60_000,), is_strided=True)


class Changer:
    """A thread that makes all indices good, and bad, and good again."""

    def __init__(self, indices: Array, limit: int) -> None:
        size = indices.dtype.itemsize
        generator = np.random.default_rng(0)
        self._indices = indices
        self._good = generator.integers(0, limit, indices.shape).astype(indices.dtype)
        self._bad = np.full(indices.shape, 2 ** (8 * size - 2) + 12_345, indices.dtype)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._change)

    def _change(self) -> None:
        # Mostly good, so that calls come past their check; NumPy copies without the lock.
        while not self._stop.is_set():
            self._indices[...] = self._good
            self._indices[...] = self._good
            self._indices[...] = self._bad
            self._indices[...] = self._good

    def __enter__(self) -> Changer:
        self._indices[...] = self._good
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def check(case: Case, result: Array) -> None:
    """Only values of the operands, and what lies beside a bound output as it was."""
    seen = set(np.unique(result).tolist())
    assert seen <= {IN, UPDATE}, seen


def call(case: Case, indices: Array, out: Array | None) -> None:
    """One call, and what may come of it."""
    try:
        check(case, case.run(indices, out))
    except dml.IndexOutOfRangeError as error:
        minimum = -error.size if indices.dtype.kind == "i" else 0
        if minimum <= error.value < error.size and "changed" not in str(error):
            raise AssertionError(str(error)) from error


def main() -> None:
    """All index types and cases of one operator, for about so many seconds."""
    operator, seconds = sys.argv[1], float(sys.argv[2])
    every = list(itertools.product(TYPES, cases(operator)))
    calls = 0
    for dtype, case in every:
        indices = case.indices(dtype)
        shape = np.shape(case.run(indices, None))
        out = filled(shape, IN, case.x.dtype.name)
        surroundings = out.base
        assert surroundings is not None
        with Changer(indices, case.limit):
            end = time.monotonic() + seconds / len(every)
            while time.monotonic() < end:
                call(case, indices, None)
                call(case, indices, out)
                calls += 2
        ends = np.concatenate([surroundings[:1024], surroundings[-1024:]])
        assert (ends == BESIDE).all(), "written beside the output"
    print(calls)


if __name__ == "__main__":
    main()
