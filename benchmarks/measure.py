"""Taking times: contestants in turns, in one process, with a plain copy among them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Final

import numpy as np

from benchmarks.gate import Gate, Results

FEWEST: Final = 3
"""Runs that even a slow contestant gets."""
LONGEST: Final = 2.0
"""Seconds of a call that is timed once only."""
_SETTLE: Final = 0.02  # the threads of some peers spin for fifteen milliseconds
_SAMPLE: Final = 0.0005
_PARALLEL_COPY: Final = 2**20


@dataclass
class Contestant:
    """Somebody who does a job, and the times taken.

    Attributes
    ----------
    name, how : str
        Who, and by which calls.
    call : callable
        Does the whole job, outputs included.
    results : callable
        From what the call returns to the arrays that the array function returns.
    strict : bool
        Whether the gate requires every guarantee of anydml.
    problem : str
        Why there are no times; empty when there are.
    samples : list of float
        Seconds for one call.
    """

    name: str
    how: str = ""
    call: Callable[[], Any] = lambda: None
    results: Callable[[Any], Results] = lambda result: result
    strict: bool = False
    problem: str = ""
    samples: list[float] = field(default_factory=list)

    @property
    def wrong(self) -> bool:
        """Whether the result was wrong, rather than the job refused."""
        return self.problem.startswith("wrong")

    @property
    def label(self) -> str:
        """Name and ways, for reading."""
        return f"{self.name} ({self.how})" if self.how else self.name

    def statistic(self, name: str) -> float:
        """The samples' ``"median"``, ``"minimum"`` or ``"p90"``, in seconds."""
        if name == "median":
            return statistics.median(self.samples)
        ordered = sorted(self.samples)
        return ordered[0] if name == "minimum" else ordered[int(0.9 * (len(ordered) - 1) + 0.5)]

    def release(self) -> None:
        """Let go of the arrays that the call holds; the times stay."""
        self.call = lambda: None
        self.results = lambda result: result

    def pass_gate(self, gate: Gate) -> None:
        """Do the job once; `problem` says what is wrong."""
        try:
            results = self.results(self.call())
        except Exception as error:  # whatever a peer raises means that it does not do this job
            self.problem = f"refused: {first_line(error)}"
            return
        problem = gate.problem(results, self.strict)
        self.problem = f"wrong: {problem}" if problem else ""


def first_line(error: Exception) -> str:
    """An exception in one short line."""
    text = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {text}"[:120]


@dataclass(frozen=True)
class Budget:
    """How long to measure: runs of each contestant, or seconds, whichever is less."""

    runs: int = 30
    seconds: float = 1.0


def take_turns(contestants: Sequence[Contestant], budget: Budget, alone: bool = True) -> None:
    """Time those without a problem round by round: A B C, A B C, …

    A turn starts with an untimed call, so that threads that the previous contestant left spinning,
    and its data in the caches, do not count. If not `alone`, each turn is one call, directly after
    the previous contestant's. Results are freed outside the timed part. A contestant that has used
    up the budget is skipped, but each gets at least `FEWEST` turns, or one of more than `LONGEST`.
    """
    candidates = [c for c in contestants if not c.problem]
    used = dict.fromkeys(map(id, candidates), 0.0)
    collecting = gc.isenabled()
    gc.disable()
    try:
        while candidates:
            for contestant in candidates:
                begin = time.perf_counter()
                contestant.samples.append(_turn(contestant.call, alone))
                used[id(contestant)] += time.perf_counter() - begin
            candidates = [
                c
                for c in candidates
                if (len(c.samples) < FEWEST and c.samples[-1] < LONGEST)
                or (len(c.samples) < budget.runs and used[id(c)] < budget.seconds)
            ]
    finally:
        if collecting:
            gc.enable()


def settle(call: Callable[[], Any]) -> float:
    """Call until nothing of the previous contestant is left; return the seconds of a call."""
    clock = time.perf_counter
    begin = clock()
    calls = 0
    while not calls or clock() - begin < _SETTLE:
        call()
        calls += 1
    return (clock() - begin) / calls


def _turn(call: Callable[[], Any], alone: bool) -> float:
    """Seconds for one call; short ones are timed many at a time if `alone`."""
    clock = time.perf_counter
    many = int(_SAMPLE / settle(call)) if alone else 1
    if many <= 1:
        begin = clock()
        result = call()
        end = clock()
        del result
        return end - begin
    begin = clock()
    for _ in repeat(None, many):
        call()
    return (clock() - begin) / many


class PlainCopy:
    """A plain copy into memory that is used again: what the memory can do.

    Parameters
    ----------
    threads : int
        Large copies are tried on one thread and on this many; the faster one counts.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(max(threads - 1, 1))
        self._from = self._to = np.zeros(0, np.uint8)

    def contestants(self, traffic: int) -> list[Contestant]:
        """Copies that move `traffic` bytes: half of them read, half written."""
        half = traffic // 2
        if self._from.size < half:
            self._from, self._to = np.ones(half, np.uint8), np.ones(half, np.uint8)
        source, target = self._from[:half], self._to[:half]
        ways = [Contestant("copy", "1 thread", lambda: np.copyto(target, source))]
        if self.threads > 1 and half >= _PARALLEL_COPY:
            pairs = list(
                zip(
                    np.array_split(target, self.threads),
                    np.array_split(source, self.threads),
                    strict=True,
                )
            )
            ways.append(
                Contestant("copy", f"{self.threads} threads", lambda: self._parallel(pairs))
            )
        return ways

    def _parallel(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        others = [self._pool.submit(np.copyto, *pair) for pair in pairs[1:]]
        np.copyto(*pairs[0])
        for other in others:
            other.result()

    def close(self) -> None:
        """End the copying threads and give back the memory."""
        self._pool.shutdown()
        self._from = self._to = np.zeros(0, np.uint8)
