"""What came out: as lines on a terminal, as JSON, as a Markdown table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any, Final

from anydml.bench import machine as machines
from anydml.bench.cases import Case
from anydml.bench.measure import Contestant
from anydml.bench.suites import Suite

SMALLEST_COPY: Final = 2**16
"""With fewer bytes a copy is all overhead, and a fraction of its bandwidth says nothing."""
NONE: Final = "–"


@dataclass(frozen=True)
class Outcome:
    """What a case gave.

    Attributes
    ----------
    suite, case
        What was run.
    base : Contestant
        Whose time it is about.
    others : sequence of Contestant
        What it is compared with.
    copies : sequence of Contestant
        Plain copies of as many bytes.
    traffic : int
        Those bytes.
    """

    suite: Suite
    case: Case
    base: Contestant
    others: Sequence[Contestant]
    copies: Sequence[Contestant] = ()
    traffic: int = 0

    def _time(self, contestant: Contestant) -> float:
        return contestant.statistic(self.suite.statistic)

    @property
    def time(self) -> float | None:
        """Seconds of the base; None when its result was wrong."""
        return None if self.base.problem else self._time(self.base)

    @property
    def against(self) -> Contestant | None:
        """Whom the base is compared with: the best peer, or the slowest pattern."""
        valid = [other for other in self.others if not other.problem]
        choose = max if self.suite.kind == "patterns" else min
        return choose(valid, key=self._time) if valid else None

    @property
    def against_time(self) -> float | None:
        """Seconds of `against`."""
        return self._time(self.against) if self.against else None

    @property
    def ratio(self) -> float | None:
        """How many times as long as the base the other takes."""
        if self.time is None or self.against_time is None:
            return None
        return self.against_time / self.time

    @property
    def fraction(self) -> float | None:
        """How much of the bandwidth of a plain copy the base reaches."""
        if self.time is None or not self.copies or self.traffic < SMALLEST_COPY:
            return None
        return min(map(self._time, self.copies)) / self.time

    @property
    def wrong(self) -> list[str]:
        """Whoever of this library had a problem, and which."""
        ours = [self.base, *(self.others if self.suite.kind != "peers" else ())]
        return [f"{self.case.name}, {c.name}: {c.problem}" for c in ours if c.problem]


def geometric_mean(outcomes: Iterable[Outcome]) -> float | None:
    """Of all ratios that there are."""
    ratios = [o.ratio for o in outcomes if o.ratio is not None]
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else None


def duration(seconds: float | None) -> str:
    """A time in three digits and a unit."""
    if seconds is None:
        return NONE
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{_digits(seconds / size)} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def times(ratio: float | None) -> str:
    """A ratio for reading."""
    return NONE if ratio is None else f"{_digits(ratio)} ×"


def percent(fraction: float | None) -> str:
    """A fraction for reading."""
    return NONE if fraction is None else f"{100 * fraction:.0f} %"


def _digits(number: float) -> str:
    if number >= 99.5:
        return f"{number:.0f}"
    return (
        f"{number:.1f}"
        if number >= 9.95
        else f"{number:.2f}"
        if number >= 0.995
        else f"{number:.3f}"
    )


class Lines:
    """Outcomes as lines of a fixed width, one as soon as it is there.

    Parameters
    ----------
    suite : Suite
        Gives the headings.
    cases : sequence of Case
        Their longest title sets the width.
    """

    def __init__(self, suite: Suite, cases: Sequence[Case]) -> None:
        self.suite = suite
        self._width = max(len("case"), *(len(case.title) for case in cases))

    def heading(self) -> str:
        """The line above the others."""
        return self._line("case", *self.suite.headings, "of copy")

    def line(self, outcome: Outcome) -> str:
        """A case's line; what is wrong follows in lines of their own."""
        first = self._line(
            outcome.case.title,
            duration(outcome.time),
            _named(outcome, duration),
            times(outcome.ratio),
            percent(outcome.fraction),
        )
        entered = [outcome.base, *outcome.others]
        wrong = [f"    {c.label}: {c.problem}" for c in entered if c.wrong]
        unable = ", ".join(c.label for c in entered if c.problem and not c.wrong)
        return "\n".join([first, *wrong, *([f"    not done by {unable}"] if unable else [])])

    def footing(self, outcomes: Sequence[Outcome]) -> str:
        """The geometric mean."""
        return self._line("geometric mean", "", "", times(geometric_mean(outcomes)), "")

    def _line(self, case: str, time: str, against: str, ratio: str, fraction: str) -> str:
        base, _, name = self.suite.headings
        columns = (
            f"{case:<{self._width}}",
            f"{time:>{max(len(base), 7)}}",
            f"{against:<22}",
            f"{ratio:>{max(len(name), 6)}}",
            f"{fraction:>7}",
        )
        return "  ".join(columns).rstrip()


def _named(outcome: Outcome, form: Callable[[float | None], str]) -> str:
    if outcome.against is None:
        return NONE
    name = f" ({outcome.against.name})" if outcome.suite.kind != "threads" else ""
    return f"{form(outcome.against_time)}{name}"


def as_json(machine: dict[str, Any], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything, with the times in seconds."""
    suites: dict[str, Any] = {}
    for outcome in outcomes:
        suite = suites.setdefault(outcome.suite.name, {"statistic": outcome.suite.statistic})
        suite.setdefault("cases", []).append(_case_json(outcome))
    for name, suite in suites.items():
        suite["geometric_mean"] = geometric_mean(o for o in outcomes if o.suite.name == name)
    return {"generated_by": "anydml bench", "machine": machine, "suites": suites}


def _case_json(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "name": case.name,
        "title": case.title,
        "operation": case.operation,
        "parameters": dict(case.parameters),
        "bytes": outcome.traffic,
        "contestants": [_contestant_json(c) for c in (outcome.base, *outcome.others)],
        "copies": [_contestant_json(c) for c in outcome.copies],
        "compared_with": outcome.against.name if outcome.against else None,
        "ratio": outcome.ratio,
        "fraction_of_copy": outcome.fraction,
    }


def _contestant_json(contestant: Contestant) -> dict[str, Any]:
    told: dict[str, Any] = {"name": contestant.name, "how": contestant.how}
    if contestant.problem:
        return told | {"problem": contestant.problem}
    for name in ("median", "minimum", "p90"):
        told[name] = contestant.statistic(name)
    return told | {"samples": len(contestant.samples)}


def as_markdown(machine: dict[str, Any], outcomes: Sequence[Outcome]) -> str:
    """A table for each suite, with the machine under it."""
    suites = {outcome.suite.name: outcome.suite for outcome in outcomes}
    blocks = ["<!-- generated by anydml bench; do not edit -->"]
    blocks += (_table(s, [o for o in outcomes if o.suite is s]) for s in suites.values())
    blocks.append(f"{machines.in_one_line(machine)}.")
    return "\n\n".join(blocks) + "\n"


def _table(suite: Suite, outcomes: Sequence[Outcome]) -> str:
    longest = max((o.time or 0 for o in outcomes), default=0)
    unit, size = ("ms", 1e-3) if longest >= 1e-4 else ("µs", 1e-6)

    def number(seconds: float | None) -> str:
        return NONE if seconds is None else _digits(seconds / size)

    base, against, ratio = suite.headings
    share = any(o.fraction is not None for o in outcomes)
    rows = [
        ["case", f"{base}, {unit}", f"{against}, {unit}", ratio, "of copy bandwidth"],
        ["---", "---:", "---:", "---:", "---:"],
    ]
    rows += [
        [
            outcome.case.title,
            "**wrong**" if outcome.time is None else number(outcome.time),
            _named(outcome, number),
            times(outcome.ratio),
            percent(outcome.fraction),
        ]
        for outcome in outcomes
    ]
    rows.append(["**geometric mean**", "", "", f"**{times(geometric_mean(outcomes))}**", ""])
    return "\n".join(f"| {' | '.join(row if share else row[:-1])} |" for row in rows)
