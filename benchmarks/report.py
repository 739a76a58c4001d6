"""What came out: as lines on a terminal, as JSON, as a Markdown table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from math import exp, log
from typing import Any, Final

from benchmarks import machine as machines
from benchmarks.cases import Case
from benchmarks.measure import Contestant
from benchmarks.suites import Suite

SMALLEST_COPY: Final = 2**16
"""With fewer bytes a copy is all overhead, and a fraction of its bandwidth says nothing."""
ENDS_EARLY: Final = 2.0
"""A call that is more than this many times as fast as a plain copy of its bytes has not touched all
of them: no way of moving them is so much faster than a copy."""
NONE: Final = "–"

COPY: Final = (
    "**Of copy bandwidth** is the time of a plain copy divided by the time of the call. The copy "
    "(`numpy.copyto` between arrays that are used again, on one thread or on all, whichever is "
    "faster) reads and writes together as many bytes as the call must at least: its inputs once "
    "and its outputs once. More than 100 % is possible: a call that mostly reads, such as `top_k`, "
    "writes fewer bytes than the copy, and anydml's copy kernels can be faster than NumPy's."
)
COPY_ON_GPU: Final = (
    "**Of copy bandwidth** is the time of a device-to-device copy divided by the time of the call. "
    "The copy reads and writes together as many bytes as the call must at least: its inputs once "
    "and its outputs once. More than 100 % is possible: a call that mostly reads writes fewer "
    "bytes than the copy."
)
INTO: Final = (
    "**With `out=`** is the same ratio when every library writes into existing arrays. The "
    "difference from the first ratio is the cost of allocating results. Peers without `out=` are "
    "omitted, so the best peer may be another one."
)
MIXED: Final = (
    "**In alternation** is the ratio when the calls of anydml and of the best peer alternate, each "
    "timed directly after a call of the other, whose threads may still be spinning."
)
EARLY: Final = (
    "A call that **ends early** stops before it has read its input, so its ratio depends on the "
    "size of the input. It is excluded from the geometric mean."
)


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
    into : sequence of Contestant
        Base and others once more, writing into arrays that are there; empty where that was not
        measured.
    mixed : sequence of Contestant
        The best peer and the base in alternation, each call directly after one of the other.
    """

    suite: Suite
    case: Case
    base: Contestant
    others: Sequence[Contestant]
    copies: Sequence[Contestant] = ()
    traffic: int = 0
    into: Sequence[Contestant] = ()
    mixed: Sequence[Contestant] = ()

    def _time(self, contestant: Contestant) -> float:
        return contestant.statistic(self.suite.statistic)

    @property
    def time(self) -> float | None:
        """Seconds of the base; None when its result was wrong."""
        return None if self.base.problem else self._time(self.base)

    @property
    def against(self) -> Contestant | None:
        """Whom the base is compared with: the best peer."""
        valid = [other for other in self.others if not other.problem]
        return min(valid, key=self._time) if valid else None

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
    def ratio_into(self) -> float | None:
        """The ratio where results go into arrays that are there, on both sides."""
        if not self.into or self.into[0].problem:
            return None
        times = [self._time(other) for other in self.into[1:] if not other.problem]
        return min(times) / self._time(self.into[0]) if times else None

    @property
    def ratio_mixed(self) -> float | None:
        """The ratio in alternation."""
        if not self.mixed:
            return None
        peer, base = map(self._time, self.mixed)
        return peer / base

    @property
    def fraction(self) -> float | None:
        """How much of the bandwidth of a plain copy the base reaches."""
        if self.time is None or not self.copies or self.traffic < SMALLEST_COPY:
            return None
        return min(map(self._time, self.copies)) / self.time

    @property
    def ends_early(self) -> bool:
        """Whether the base has not read all of its input, so its ratio is not comparable."""
        return self.fraction is not None and self.fraction > ENDS_EARLY

    @property
    def share(self) -> str:
        """The fraction for reading."""
        if self.ends_early:
            return "ends early"
        return NONE if self.fraction is None else f"{100 * self.fraction:.0f} %"

    @property
    def wrong(self) -> list[str]:
        """Whoever of this library had a problem, and which."""
        ours = [self.base, *self.into[:1]]
        return [f"{self.case.name}, {c.name}: {c.problem}" for c in ours if c.problem]


def geometric_mean(outcomes: Iterable[Outcome], ratio: str = "ratio") -> float | None:
    """Return the mean of a ratio, by its property, over the cases that do not end early."""
    ratios = _comparable(outcomes, ratio)
    return exp(sum(map(log, ratios)) / len(ratios)) if ratios else None


def _comparable(outcomes: Iterable[Outcome], ratio: str = "ratio") -> list[float]:
    ratios = [getattr(outcome, ratio) for outcome in outcomes if not outcome.ends_early]
    return [found for found in ratios if found is not None]


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
        return self._line(["case", "anydml", "best peer", "ratio", "mixed", "of copy", "with out="])

    def line(self, outcome: Outcome) -> str:
        """A case's line; what is wrong follows in lines of their own."""
        entered = [outcome.base, *outcome.others]
        entered += [c for c in outcome.into if c.wrong]
        wrong = [f"    {c.label}: {c.problem}" for c in entered if c.wrong]
        unable = ", ".join(c.label for c in entered if c.problem and not c.wrong)
        first = self._line(_cells(outcome, duration))
        return "\n".join([first, *wrong, *([f"    not done by {unable}"] if unable else [])])

    def footing(self, outcomes: Sequence[Outcome]) -> str:
        """The geometric mean, of what does not end early."""
        return self._line(["geometric mean", "", "", *_means(outcomes, outcomes)])

    def _line(self, cells: Sequence[str]) -> str:
        widths = (
            f"<{self._width}",
            ">7",
            "<22",
            ">6",
            ">6",
            ">10",
            ">8" if self.suite.into else "",
        )
        columns = [f"{cell:{width}}" for cell, width in zip(cells, widths, strict=True) if width]
        return "  ".join(columns).rstrip()


def _cells(outcome: Outcome, form: Callable[[float | None], str]) -> list[str]:
    """A row of a table; `form` writes a time."""
    against = outcome.against
    return [
        outcome.case.title,
        form(outcome.time),
        NONE if against is None else f"{form(outcome.against_time)} ({against.name})",
        times(outcome.ratio),
        times(outcome.ratio_mixed),
        outcome.share,
        times(outcome.ratio_into),
    ]


def _means(outcomes: Sequence[Outcome], complete: Sequence[Outcome]) -> list[str]:
    """The last cells of a table's last row."""
    ratio, mixed, into = (
        times(geometric_mean(of, name))
        for of, name in ((complete, "ratio"), (complete, "ratio_mixed"), (outcomes, "ratio_into"))
    )
    return [ratio, mixed, "", into]


def as_json(machine: dict[str, Any], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything, with the times in seconds."""
    suites: dict[str, Any] = {}
    for outcome in outcomes:
        suite = suites.setdefault(outcome.suite.name, {"statistic": outcome.suite.statistic})
        suite.setdefault("cases", []).append(_case_json(outcome))
    for name, suite in suites.items():
        done = [o for o in outcomes if o.suite.name == name]
        for what in ("", "_mixed", "_into"):
            suite[f"geometric_mean{what}"] = geometric_mean(done, f"ratio{what}")
    return {"generated_by": "python -m benchmarks", "machine": machine, "suites": suites}


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
        "into": [_contestant_json(c) for c in outcome.into],
        "mixed": [_contestant_json(c) for c in outcome.mixed],
        "compared_with": outcome.against.name if outcome.against else None,
        "ratio": outcome.ratio,
        "ratio_mixed": outcome.ratio_mixed,
        "ratio_into": outcome.ratio_into,
        "fraction_of_copy": outcome.fraction,
        "ends_early": outcome.ends_early,
    }


def _contestant_json(contestant: Contestant) -> dict[str, Any]:
    record: dict[str, Any] = {"name": contestant.name, "how": contestant.how}
    if contestant.problem:
        return record | {"problem": contestant.problem}
    for name in ("median", "minimum", "p90"):
        record[name] = contestant.statistic(name)
    return record | {"samples": len(contestant.samples)}


def as_markdown(
    machine: dict[str, Any], outcomes: Sequence[Outcome], complete: Sequence[Outcome] = ()
) -> str:
    """A table for each suite, with what its columns mean and the machine under it.

    Parameters
    ----------
    machine : dict
        As `machine.describe` gives it.
    outcomes : sequence of Outcome
        The rows.
    complete : sequence of Outcome, optional
        What the rows are a choice of: the geometric means are of these, and the table has no column
        for the copy and no line for the machine.
    """
    suites = {outcome.suite.name: outcome.suite for outcome in outcomes}
    blocks = ["<!-- generated by python -m benchmarks; do not edit -->"]
    for suite in suites.values():
        rows = [o for o in outcomes if o.suite is suite]
        blocks.append(_table(suite, rows, [o for o in complete if o.suite is suite]))
    copy = COPY_ON_GPU if "GPU" in machine else COPY
    shown = [
        _columns([o for o in outcomes if o.suite is suite], complete) for suite in suites.values()
    ]
    mixed, fraction, into = map(any, zip(*(columns[4:] for columns in shown), strict=True))
    early = not complete and any(o.ends_early for o in outcomes)
    notes = (MIXED, mixed), (copy, fraction), (INTO, into), (EARLY, early)
    blocks += [note for note, is_shown in notes if is_shown]
    if not complete:
        blocks.append(f"{machines.in_one_line(machine)}.")
    return "\n\n".join(blocks) + "\n"


def _table(suite: Suite, outcomes: Sequence[Outcome], complete: Sequence[Outcome]) -> str:
    longest = max((o.time or 0 for o in outcomes), default=0)
    unit, size = ("ms", 1e-3) if longest >= 1e-4 else ("µs", 1e-6)

    def number(seconds: float | None) -> str:
        return "**wrong**" if seconds is None else _digits(seconds / size)

    heads = (f"anydml, {unit}", f"best peer, {unit}", "ratio", "in alternation",
             "of copy bandwidth", "with `out=`")  # fmt: skip
    rows = [["case", *heads], ["---", *["---:"] * 6], *(_cells(o, number) for o in outcomes)]
    of = f" of {len(_comparable(complete))} cases" if complete else ""
    means = [f"**{mean}**" if mean else "" for mean in _means(outcomes, complete or outcomes)]
    rows.append([f"**geometric mean{of}**", "", "", *means])
    columns = _columns(outcomes, complete)
    return "\n".join(f"| {' | '.join(compress(row, columns))} |" for row in rows)


def _columns(outcomes: Sequence[Outcome], complete: Sequence[Outcome]) -> list[bool]:
    """Which columns the table of a suite has."""
    mixed, fraction, into = (
        any(getattr(o, name) is not None for o in outcomes)
        for name in ("ratio_mixed", "fraction", "ratio_into")
    )
    return [True] * 4 + [mixed, fraction and not complete, into and not complete]
