"""`Peer`: what the peers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.gate import Results
from benchmarks.jobs import Array, Job
from benchmarks.measure import Contestant, first_line

Call = Callable[[], Any]
Ways = Iterator[tuple[str, Call]]


class Peer:
    """Another library.

    A subclass has a method for each operation that it can do, taking its own arrays and the job's
    options, and yielding its ways: a description, and a call that does the whole job. Where it can
    write results into arrays that are there, a second method, named as the operation and ``_into``,
    takes a tuple of these arrays first.

    Parameters
    ----------
    threads : int
        The most threads that it may use.
    """

    name: str
    version: str

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def take(self, array: Array) -> Any:
        """An array of its own kind; no part of what is timed."""
        return array

    def give(self, value: Any) -> Array:
        """A NumPy array of one of its own."""
        return np.asarray(value)

    def results(self, result: Any) -> Results:
        """What a call returned, as the array functions return it."""
        many = isinstance(result, tuple | list)
        return tuple(map(self.give, result)) if many else (self.give(result),)

    def contestants(self, job: Job) -> list[Contestant]:
        """One contestant for each of its ways, or one with the reason that there is none."""
        return self._entered(
            job.operation, self.results, *map(self.take, job.arrays), **job.options
        )

    def contestants_into(self, job: Job, outputs: Results) -> list[Contestant]:
        """The same with the arrays for the results, one for each array that the job gives."""
        outs = tuple(map(self.take, outputs))

        def written(_: Any) -> Results:
            return tuple(map(self.give, outs))

        arrays = map(self.take, job.arrays)
        return self._entered(f"{job.operation}_into", written, outs, *arrays, **job.options)

    def _entered(
        self, name: str, results: Callable[[Any], Results], *arrays: Any, **options: Any
    ) -> list[Contestant]:
        method = getattr(self, name, None)
        if method is None:
            return []
        try:
            ways = list(method(*arrays, **options))
        except Exception as error:  # whatever it raises means that it does not do this job
            return [Contestant(self.name, problem=f"refused: {first_line(error)}")]
        return [Contestant(self.name, keywords, call, results) for keywords, call in ways]
