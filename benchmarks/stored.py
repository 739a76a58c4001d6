"""Outcomes that `python -m benchmarks --json` has written, to be shown again without measuring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks import recipes
from benchmarks.cases import Case
from benchmarks.measure import Contestant
from benchmarks.report import Outcome
from benchmarks.suites import GPU_SUITES, SUITES, Suite


def as_text(document: Mapping[str, Any]) -> str:
    """A document of `report.as_json` as JSON with a line for each case."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    suites = []
    for name, suite in document["suites"].items():
        cases = ",\n".join(map(line, suite["cases"]))
        means = {key: value for key, value in suite.items() if key != "cases"}
        suites.append(f"{line(name)}: {line({**means, 'cases': []})[:-2]}\n{cases}\n]}}")
    head = line({**document, "suites": {}})
    return f"{head[:-2]}\n" + ",\n".join(suites) + "\n}}\n"


def outcomes_in(document: Mapping[str, Any]) -> list[Outcome]:
    """The outcomes of a file, suite by suite.

    Raises
    ------
    ValueError
        The file has not what `report.as_json` gives.
    """
    try:
        suites = GPU_SUITES if "GPU" in document["machine"] else SUITES
        return [
            _outcome(suites[name], case)
            for name, suite in document["suites"].items()
            for case in suite["cases"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"expected what python -m benchmarks --json writes: {error!r}") from error


def _outcome(suite: Suite, record: Mapping[str, Any]) -> Outcome:
    recipe = getattr(recipes, record["operation"])
    case = Case(record["name"], record["title"], recipe, record["parameters"])
    base, *others = map(_contestant, record["contestants"])
    copies, into, mixed = (
        [*map(_contestant, record.get(name, ()))] for name in ("copies", "into", "mixed")
    )
    return Outcome(suite, case, base, others, copies, record["bytes"], into, mixed)


def _contestant(record: Mapping[str, Any]) -> Contestant:
    if "problem" in record:
        return Contestant(record["name"], record["how"], problem=record["problem"])
    # Of three samples these are the statistics again.
    samples = [float(record[name]) for name in ("minimum", "median", "p90")]
    return Contestant(record["name"], record["how"], samples=samples)
