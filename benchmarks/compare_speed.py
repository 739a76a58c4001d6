"""Two installed versions side by side: how long each takes for the benchmark's cases.

    python -m benchmarks.compare_speed old/bin/python                       new: this interpreter's
    python -m benchmarks.compare_speed old/bin/python --new new/bin/python --cases 'top_k/*'
    python -m benchmarks.compare_speed old/bin/python --clock cpu       others use the machine too

Both versions run in processes of their own, which make the same operands by these recipes, and
work in turns, in bursts of a few hundredths of a second, the order swapped in
every round: whatever slows the machine down for longer slows both. What a round says is the ratio
of its two bursts; what a pair of processes says, the median of its rounds. Memory lies differently
in every process, which alone can be 10 % of a large case, so cases that look slow are measured with
more pairs, and the median of the pairs counts. Where the new version's indices are of another type
and their bytes count, it is asked for the old one's.

Exit status 0, 1 when a case is slower than the limit, 2 when nothing could be measured.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import repeat
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TextIO

ROOT: Final = Path(__file__).resolve().parents[1]
SUITES: Final = ("table", "small")
LARGE: Final = 1 << 16
"""Bytes of results from which on the type of indices makes a difference."""
CHUNKS: Final = 8
"""A burst is timed in this many parts; the median counts, so that a single pause does not."""
CLOCKS: Final[dict[str, Callable[[], float]]] = {
    "wall": time.perf_counter,
    "cpu": time.process_time,
}


class RefusalError(Exception):
    """One of the two versions cannot be measured."""


@dataclass(frozen=True)
class Plan:
    """How to measure.

    Attributes
    ----------
    burst : float
        Seconds that one version works before the other has its turn.
    rounds : int
        Bursts of each, for a pair of processes.
    restarts : int
        Pairs of processes for a case that looks slower than the limit.
    limit : float
        The most that the new version may take, as a multiple of the old one's time.
    clock : str
        ``"wall"``, or ``"cpu"`` for the seconds of all threads together.
    """

    burst: float = 0.03
    rounds: int = 20
    restarts: int = 5
    limit: float = 1.05
    clock: str = "wall"


@dataclass
class Outcome:
    """What the pairs of processes said of a case.

    Attributes
    ----------
    name : str
        The case's.
    pairs : list of list of float
        For each pair of processes, the ratios of its rounds.
    old, new : float
        The shortest time of a call that was seen, in seconds.
    """

    name: str
    pairs: list[list[float]] = field(default_factory=list)
    old: float = float("inf")
    new: float = float("inf")

    def add(self, rounds: Sequence[tuple[Sequence[float], Sequence[float]]]) -> None:
        """Take in a pair's rounds: seconds of calls of the old version and of the new one."""
        self.pairs.append([statistics.median(n) / statistics.median(o) for o, n in rounds])
        self.old = min(self.old, *(min(o) for o, _ in rounds))
        self.new = min(self.new, *(min(n) for _, n in rounds))

    @property
    def ratio(self) -> float:
        """New by old: the median of the pairs' medians."""
        return statistics.median(statistics.median(ratios) for ratios in self.pairs)

    @property
    def spread(self) -> float:
        """Half of what lies between the quartiles: of the pairs, or of the rounds of one pair."""
        has_pairs = len(self.pairs) > 1
        values = [statistics.median(r) for r in self.pairs] if has_pairs else self.pairs[0]
        if len(values) < 2:
            return 0.0
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        return (high - low) / 2


class Worker:
    """A process in which one version runs.

    Parameters
    ----------
    python : str
        Its interpreter.
    clock : str
        By which it takes times.
    """

    def __init__(self, python: str, clock: str) -> None:
        command = [python, "-m", "benchmarks.compare_speed", "--worker", "--clock", clock, python]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
            )
        except OSError as error:
            raise RefusalError(f"{python}: {error.strerror}") from None
        self._python = python

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def send(self, *command: object) -> None:
        """Send a command; `answer` waits for what comes of it."""
        assert self._process.stdin
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer will be missing

    def answer(self) -> Any:
        """What the last command came to."""
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RefusalError(f"{self._python} ended with status {self._process.wait()}")
        return json.loads(line)

    def ask(self, *command: object) -> Any:
        """A command and its answer."""
        self.send(*command)
        return self.answer()


def work(clock: Callable[[], float], commands: TextIO, answers: TextIO) -> None:
    """In a worker: list cases, make one ready, time bursts of it."""
    from benchmarks import ours
    from benchmarks.suites import suites_named

    def calls() -> None:
        for _ in repeat(None, count):
            call()

    call: Callable[[], object] = lambda: None  # noqa: E731  # until a case is chosen
    for line in commands:
        match json.loads(line):
            case ["cases", suites]:
                found = [case for suite in suites_named(suites) for case in suite.cases(False)]
                answer: Any = list(dict.fromkeys(case.name for case in found))
            case ["load", suites, name, options]:
                found = [case for suite in suites_named(suites) for case in suite.cases(False)]
                case = next(case for case in found if case.name == name)
                job = case.job()
                job = replace(job, options={**job.options, **options})
                call = (ours.dispatch if case.dispatch else ours.function)(job).call
                gc.collect()
                gc.freeze()
                gc.disable()
                answer = types_of(call())
            case ["estimate", seconds]:
                begin, count = time.perf_counter(), 0
                while not count or time.perf_counter() - begin < seconds:
                    call()
                    count += 1
                answer = (time.perf_counter() - begin) / count
            case ["burst", chunks, count]:
                answer = []
                call()  # the other version has filled the caches
                for _ in range(chunks):
                    start = clock()
                    calls()
                    answer.append((clock() - start) / count)
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def types_of(result: Any) -> list[str]:
    """Types of the arrays that a call returned; none if it returned none, or only small ones."""
    if result is None:
        return []
    arrays = result if isinstance(result, (tuple, list)) else (result,)
    large = sum(array.nbytes for array in arrays) > LARGE
    return [str(array.dtype) for array in arrays] if large else []


def measure(
    interpreters: tuple[str, str], suites: Sequence[str], name: str, plan: Plan, first: int
) -> list[tuple[list[float], list[float]]]:
    """The rounds of one pair of processes; `first` says who starts."""
    order = (0, 1) if first == 0 else (1, 0)
    with Worker(interpreters[0], plan.clock) as old, Worker(interpreters[1], plan.clock) as new:
        pair = (old, new)
        for i in order:
            pair[i].send("load", suites, name, {})
        types = {i: pair[i].answer() for i in order}
        if types[0] != types[1]:
            types[1] = new.ask("load", suites, name, {"index_dtype": types[0][-1]})
        if types[0] != types[1]:
            raise RefusalError(f"{name}: the old version gives {types[0]}, the new {types[1]}")
        longest = max(pair[i].ask("estimate", plan.burst) for i in order)
        chunks = max(1, min(CHUNKS, int(plan.burst / longest)))
        count = max(1, int(plan.burst / chunks / longest))
        rounds: list[tuple[list[float], list[float]]] = []
        for turn in range(plan.rounds):
            times: dict[int, list[float]] = {}
            for i in order if turn % 2 == 0 else order[::-1]:
                times[i] = pair[i].ask("burst", chunks, count)
            rounds.append((times[0], times[1]))
    return rounds


def look(interpreters: tuple[str, str], suites: Sequence[str], name: str, plan: Plan) -> Outcome:
    """Measure a case, and again with new processes while it may be slower than the limit."""
    outcome = Outcome(name)
    for pair in range(plan.restarts):
        outcome.add(measure(interpreters, suites, name, plan, pair % 2))
        # Half way to the limit already counts as a suspicion.
        if outcome.ratio <= (1 + plan.limit) / 2 and len(outcome.pairs) == 1:
            break
    return outcome


def format_outcome(outcome: Outcome, limit: float) -> str:
    """A line of the table."""
    mark = "  SLOWER" if outcome.ratio > limit else ""
    return (
        f"{outcome.name:<44}{outcome.ratio:>7.3f} ±{outcome.spread:.3f}{len(outcome.pairs):>4}"
        f"{outcome.old * 1e6:>13,.2f}{outcome.new * 1e6:>13,.2f}{outcome.new / outcome.old:>8.3f}"
        f"{mark}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, judge."""
    plan = Plan()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", help="an interpreter with the old version installed")
    parser.add_argument("--new", default=sys.executable, help="the new version's; this one's")
    parser.add_argument("--suite", action="append", help=f"{' and '.join(SUITES)} by default")
    parser.add_argument("--cases", action="append", default=[], help="a name or a pattern")
    parser.add_argument("--limit", type=float, default=plan.limit)
    parser.add_argument("--burst", type=float, default=plan.burst, help="seconds of a turn")
    parser.add_argument("--rounds", type=int, default=plan.rounds)
    parser.add_argument("--restarts", type=int, default=plan.restarts)
    parser.add_argument("--clock", choices=CLOCKS, default=plan.clock)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(CLOCKS[options.clock], sys.stdin, sys.stdout)
        return 0
    plan = Plan(options.burst, options.rounds, options.restarts, options.limit, options.clock)
    interpreters = (options.old, options.new)
    suites = options.suite or SUITES
    try:
        names = []
        for python in interpreters:
            with Worker(python, plan.clock) as worker:
                names.append(worker.ask("cases", suites))
        both = [name for name in names[0] if name in names[1]]
        patterns = options.cases or ["*"]
        chosen = [name for name in both if any(fnmatchcase(name, p) for p in patterns)]
        if not chosen:
            raise RefusalError(f"no case of both versions is named {' or '.join(patterns)}")
        outcomes = []
        for name in chosen:
            outcomes.append(look(interpreters, suites, name, plan))
            print(format_outcome(outcomes[-1], plan.limit), file=sys.stderr, flush=True)
    except RefusalError as refusal:
        print(f"compare_speed: {refusal}", file=sys.stderr)
        return 2
    outcomes.sort(key=lambda outcome: -outcome.ratio)
    print(f"{'case':<44}{'ratio':>7}{'pairs':>11}{'old µs':>13}{'new µs':>13}{'minima':>8}")
    for outcome in outcomes:
        print(format_outcome(outcome, plan.limit))
    slower = sum(outcome.ratio > plan.limit for outcome in outcomes)
    mean = statistics.geometric_mean([outcome.ratio for outcome in outcomes])
    print(f"{len(outcomes)} cases, geometric mean {mean:.3f}; {slower} above {plan.limit:g}")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
