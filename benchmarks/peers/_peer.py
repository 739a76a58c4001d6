"""`Peer`: what the peers have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from benchmarks.gate import Results
from benchmarks.jobs import MANY_RESULTS, Array, Job
from benchmarks.measure import Contestant, first_line

Call = Callable[[], Any]
Ways = Iterator[tuple[str, Call]]


class Peer:
    """Another library.

    A subclass has a method for each operation that it can do, taking its own arrays and the job's
    options, and yielding its ways: a description, and a call that does the whole job. Where it can
    write results into arrays that are there, the method has a parameter ``out``: None, an array, or
    for several results a tuple of arrays.

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

    def contestants(self, job: Job, outputs: Results | None = None) -> list[Contestant]:
        """One contestant for each of its ways, or one with the reason that there is none.

        `outputs` are arrays for the results, one for each.
        """
        method, options = getattr(self, job.operation, None), {**job.options}
        outs = None if outputs is None else tuple(map(self.take, outputs))
        if method is None or (outs and "out" not in signature(method).parameters):
            return []
        if outs:
            options["out"] = outs if job.operation in MANY_RESULTS else outs[0]

        def results(result: Any) -> Results:
            return self.results(outs or result)

        try:
            ways = list(method(*map(self.take, job.arrays), **options))
        except Exception as error:  # whatever it raises means that it does not do this job
            return [Contestant(self.name, problem=f"refused: {first_line(error)}")]
        return [Contestant(self.name, keywords, call, results) for keywords, call in ways]


def calling(function: Callable[..., Any], *arguments: Any, out: Any = None) -> Call:
    """A call of a function, which writes into `out` if that is not None."""
    return partial(function, *arguments) if out is None else partial(function, *arguments, out=out)
