"""The process that runs cases: ``python -m anydml.suite.child RUNNER FOLDER LIMIT LEVEL``.

It reads the names of cases from standard input, and writes a line for each result. What a runner
prints goes nowhere.
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
from typing import Final, TextIO

from anydml.core.errors import AnyDMLError
from anydml.core.levels import FeatureLevel
from anydml.suite.case import Case, Refused, only_written, read_suite
from anydml.suite.judge import Result, judge
from anydml.suite.runners import Runner, runner_named

HUNG: Final = "Timeout ("
"""Start of the watchdog's message on standard error when it ends the process."""

_START_SECONDS: Final = 120.0


def result_of(runner: Runner, case: Case) -> Result:
    """Run and judge a case; an exception of the runner is a crash, and TimeoutError a hang."""
    with only_written(f"Case {case.name}"):
        case.buffers()  # an error of the suite is not one of the runner
    try:
        answer = runner.run(case)
    except Refused as refused:
        answer = refused
    except TimeoutError:
        return Result(case.name, "hung")
    except Exception as error:
        return Result(case.name, "crashed", f"{type(error).__name__}: {error}"[:2000])
    return judge(case, answer)


def main() -> None:
    """Run the cases."""
    name, folder, limit, level = sys.argv[1:]
    names = json.load(sys.stdin)
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    faulthandler.dump_traceback_later(max(float(limit), _START_SECONDS), exit=True)
    try:
        runner = runner_named(name, float(limit), FeatureLevel.parse(level))
        cases = {case.name: case for case in read_suite(folder)}
        _tell(results, {"level": getattr(runner, "feature_level", None) and level})
        for case in names:
            faulthandler.dump_traceback_later(1.5 * float(limit), exit=True)
            _tell(results, result_of(runner, cases[case]))
    except AnyDMLError as error:
        _tell(results, {"error": str(error)})
    os._exit(0)  # libraries of GPUs can hang when they are unloaded


def _tell(results: TextIO, value: object) -> None:
    results.write(f"{json.dumps(value)}\n")
    results.flush()


if __name__ == "__main__":
    main()
