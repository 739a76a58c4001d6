"""Runs the cases of a suite in other processes, so that no crash or hang ends the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from anydml.core._json import counted, short_repr
from anydml.core.errors import ArgumentError, ModelError
from anydml.core.levels import FeatureLevel
from anydml.models.files import open_file
from anydml.suite.case import Case, read_suite
from anydml.suite.child import HUNG, result_of
from anydml.suite.judge import GOOD, STATUSES, Result
from anydml.suite.runners import Runner
from anydml.suite.write import chosen_operators

BATCH: Final = 1024  # starting a process on a GPU takes ten seconds


@dataclass(frozen=True)
class Report:
    """The results of a run.

    Attributes
    ----------
    runner : str
        The runner.
    cases : dict of str to Case
        The cases that were judged, by name.
    results : list of Result
        Their results, in the same order.
    known : dict of str to (str, str)
        Status and reason of expected differences, by the name of the case.
    """

    runner: str
    cases: Mapping[str, Case]
    results: Sequence[Result]
    known: Mapping[str, tuple[str, str]]

    @property
    def differences(self) -> list[Result]:
        """Results that are faults."""
        return [result for result in self.results if result.status not in GOOD]

    @property
    def unexpected(self) -> list[Result]:
        """Faults that are not known."""
        return [
            result
            for result in self.differences
            if self.known.get(result.case, ("",))[0] != result.status
        ]

    @property
    def outdated(self) -> list[str]:
        """Cases with a known difference that was judged and has not occurred."""
        now = {result.case: result.status for result in self.results}
        return [name for name, (status, _) in self.known.items() if now.get(name, status) != status]

    def counts(self) -> dict[str, Counter[str]]:
        """How many results of each status an operator has."""
        found: dict[str, Counter[str]] = {}
        for result in self.results:
            found.setdefault(self.cases[result.case].operator, Counter())[result.status] += 1
        return found

    def lines(self) -> Iterator[str]:
        """The table of operators, and the first unexpected difference in full."""
        counts = self.counts()
        total = sum(counts.values(), Counter[str]())
        columns = [status for status in STATUSES if total[status]]
        width = max(map(len, (*counts, "operator")))
        yield f"{'operator':{width}}  {'  '.join(f'{name:>11}' for name in columns)}"
        for name, row in (*sorted(counts.items()), ("all", total)):
            yield f"{name:{width}}  {'  '.join(f'{row[status]:11}' for status in columns)}"
        for name in self.outdated:
            yield f"Expected, but it no longer differs so: {name}"
        if self.unexpected:
            yield from self._in_full(self.unexpected[0])
        known = len(self.differences) - len(self.unexpected)
        more = f", and {known} that are expected" if known else ""
        found = counted(len(self.unexpected), "difference")
        yield f"{found} in {counted(len(self.results), 'case')}{more}"

    def _in_full(self, result: Result) -> Iterator[str]:
        case = self.cases[result.case]
        yield ""
        yield f"First difference: {result.case}: {STATUSES[result.status]}"
        yield f"  {result.detail or 'no further details'}"
        source = "the page" if case.source == "page" else "observed behavior of DirectML"
        rule = f"{case.path} ({case.code})" if case.code else "valid"
        yield f"  Expected: {case.verdict} at {case.level.suffix} by {source}: {rule}"
        yield f"  Model: {case.model}"
        yield f"  {json.dumps(case.document['dispatchables'])}"
        yield ""

    def as_json(self) -> dict[str, Any]:
        """The report, for programs."""
        unexpected = {result.case for result in self.unexpected}
        return {
            "runner": self.runner,
            "cases": len(self.results),
            "operators": self.counts(),
            "differences": [
                {
                    **result._asdict(),
                    "operator": self.cases[result.case].operator,
                    "source": self.cases[result.case].source,
                    "expected": result.case not in unexpected,
                }
                for result in self.differences
            ],
            "outdated": self.outdated,
        }

    def expected_lines(self) -> Iterator[str]:
        """Lines of a file of known differences: case, status and reason."""
        for result in self.differences:
            reason = self.known.get(result.case, ("", ""))[1] or result.detail
            yield f"{result.case}\t{result.status}\t{' '.join(reason.split()) or 'unknown'}"


def run(
    folder: str | Path,
    runner: str | Runner,
    *,
    operators: Iterable[str] = (),
    expected: str | Path | None = None,
    time_limit: float = 60.0,
    progress: Callable[[str], object] = lambda _: None,
) -> Report:
    """Judge an implementation of DirectML by the cases of a suite.

    Parameters
    ----------
    folder : str or Path
        The suite, as `write` made it.
    runner : str or object
        A device of this package, ``"dxdispatch"`` or ``"dxdispatch=PATH"``, ``"directml"``, or
        ``"MODULE:OBJECT"``: cases run in other processes, and a crash or a hang is the result of
        its case. An object with ``run(case)`` runs in this process, without this protection.
    operators : iterable of str
        Names of operators; all if left out.
    expected : str or Path, optional
        A file of known differences.
    time_limit : float
        The most seconds that a case may take.
    progress : callable
        Takes a line now and then, and an empty one at the end.

    Returns
    -------
    Report
        The results.

    Raises
    ------
    AnyDMLError
        The folder, the file or the runner cannot be used.
    """
    if not time_limit > 0:
        raise ArgumentError(f"time_limit: expected a number above 0, got {time_limit}")
    cases = read_suite(folder, chosen_operators(operators))
    known = {} if expected is None else read_expected(Path(expected))
    if not isinstance(runner, str):
        level = getattr(runner, "feature_level", None)
        cases = _of_level(cases, level)
        results = [result_of(runner, case) for case in cases]
        name = type(runner).__name__
    else:
        children = _Children(runner, Path(folder), time_limit, max(case.level for case in cases))
        name, results = runner, []
        cases = _of_level(cases, children.level())
        for start in range(0, len(cases), BATCH):
            progress(f"{start} of {len(cases)} cases")
            results += children.results([case.name for case in cases[start : start + BATCH]])
        progress("")
    return Report(name, {case.name: case for case in cases}, results, known)


def _of_level(cases: list[Case], level: object) -> list[Case]:
    """Cases of a level only, for an implementation that has just one."""
    if level is None:
        return cases
    wanted = FeatureLevel.parse(level)
    return [case for case in cases if case.level is wanted]


def read_expected(path: Path) -> dict[str, tuple[str, str]]:
    """Status and reason of the known differences in a file, by case.

    Raises
    ------
    ModelError
        The file cannot be read, or a line of it is not ``case<TAB>status<TAB>reason``.
    """
    with open_file(path) as file:
        text = file.read(1 << 26).decode(errors="replace")
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        case, _, rest = line.partition("\t")
        status, _, reason = rest.partition("\t")
        if status not in STATUSES or status in GOOD or not reason.strip():
            raise ModelError(
                f"File {str(path)!r}, line {number}: expected a case, one of "
                f"{', '.join(s for s in STATUSES if s not in GOOD)}, and a reason, with tabs "
                f"between them, got {short_repr(line)}."
            )
        found[case] = status, reason
    return found


class _Children:
    """Processes that run cases of a suite with a runner."""

    def __init__(self, runner: str, folder: Path, limit: float, level: FeatureLevel) -> None:
        self._arguments = [runner, str(folder.absolute()), str(limit), level.suffix]
        self._limit = limit

    def level(self) -> str | None:
        """The only level that the runner judges, None for all; starts it once."""
        lines, ending = self._attempt([])
        if not lines or "error" in lines[0]:
            reason = lines[0]["error"] if lines else f"it {ending}"
            raise ArgumentError(reason if lines else f"runner: {self._arguments[0]}: {reason}")
        found: str | None = lines[0]["level"]
        return found

    def results(self, names: Sequence[str]) -> list[Result]:
        """The result of each case; what ends the process is found, by halves if need be."""
        if not names:
            return []
        lines, ending = self._attempt(names)
        done = [Result(*line) for line in lines[1:] if isinstance(line, list)]
        if ending is None and len(done) == len(names):
            return done
        if lines[1:] and isinstance(lines[-1], dict):
            raise ModelError(lines[-1]["error"])
        if ending == "hung":
            hung = Result(names[len(done)], "hung", f"no result after {self._limit:g} seconds")
            return [*done, hung, *self.results(names[len(done) + 1 :])]
        if len(names) == 1:
            return [Result(names[0], "crashed", f"the process {ending}")]
        alone = self.results([names[len(done)]])
        if alone[0].status == "crashed":
            return [*done, *alone, *self.results(names[len(done) + 1 :])]
        half = len(names) // 2  # an earlier case is the cause, or several together
        return self.results(names[:half]) + self.results(names[half:])

    def _attempt(self, names: Sequence[str]) -> tuple[list[Any], str | None]:
        """Start a process; return what it wrote, and how it ended if it did not run all cases."""
        found = list[Any]()
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "anydml.suite.child", *self._arguments],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                encoding="utf-8", errors="replace", start_new_session=True,
            )  # fmt: skip
            try:
                written, _ = process.communicate(json.dumps(list(names)))
            finally:
                _kill(process)
            errors.seek(0)
            said = errors.read().decode(errors="replace")
        try:
            found += map(json.loads, written.splitlines())
        except ValueError:
            return found, "wrote what is no result"
        if len(found) > len(names):
            return found, None
        if process.returncode == 1 and HUNG in said:
            return found, "hung"
        last = said[-300:].strip().splitlines()[-1:]
        return found, f"ended with status {process.returncode}: {''.join(last)}"


def _kill(process: subprocess.Popen[str]) -> None:
    """End a process if it is left, and on POSIX those that it has started."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
