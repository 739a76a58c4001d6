"""The times of each case as dots on one axis, a dot for each library."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from pathlib import Path
from textwrap import wrap
from typing import Final

from anydml.drawing import document, text
from benchmarks.report import Outcome, times

_WIDTH: Final = 440
"""In pixels: a phone shows it almost as large as it is."""
_MARGIN: Final = 14
_ROW: Final = 44
_LINE: Final = 17
_LETTER: Final = 7.3
_UNITS: Final = {0: "s", -3: "ms", -6: "µs", -9: "ns"}

# Around (0, 0); one for each library besides this one, in order of appearance.
_SHAPES: Final = ("M-5-5h10v10h-10z", "M0-6l6 11h-12z", "M0-7l6 7-6 7-6-7z", "M0 6l6-11h-12z",
                  "M-3-6h6l3 6-3 6h-6l-3-6z", "M-6-2h12v4h-12z")  # fmt: skip
_OURS: Final = '<circle class="ours" r="6"/>'


def draw(path: Path, outcomes: Sequence[Outcome], machine: str) -> None:
    """Write the plot, an SVG file for light and dark pages.

    Parameters
    ----------
    path : Path
        The file.
    outcomes : sequence of Outcome
        Of one suite; those without a ratio are left out.
    machine : str
        What they were measured on and with, and when.
    """
    drawn = [(o, times_of(o)) for o in outcomes if o.ratio is not None]
    names = list(dict.fromkeys(name for _, found in drawn for name in found))
    ours = drawn[0][0].base.name if drawn else ""
    marks = {name: _peer(i) for i, name in enumerate(n for n in names if n != ours)} | {ours: _OURS}
    decades = decades_of([seconds for _, found in drawn for seconds in found.values()])
    rows = [outcome for outcome, _ in drawn]
    headings = rows[0].suite.headings if rows else ("", "", "")
    title = f"Time of a call. On the right: time of {headings[1]} ÷ time of {headings[0]}"
    body, y = "", float(_MARGIN)
    for line in wrap(title, _letters()):
        body += _text("muted", _MARGIN, y + 11, line)
        y += _LINE
    legend, y = _legend({ours: marks[ours], **marks} if rows else {}, y + 14)
    body += legend
    top, y = y, y + 6
    for outcome, found in drawn:
        body += _row(outcome, {name: (s, marks[name]) for name, s in found.items()}, decades, y)
        y += _ROW
    body = _axis(decades, top, y) + body
    y += 2 * _LINE + 4
    for line in wrap(machine, _letters()):
        body += _text("muted", _MARGIN, y, line)
        y += _LINE
    spoken = "; ".join([*(f"{o.case.title}: {times(o.ratio)}" for o in rows), machine])
    path.write_text(
        document(_WIDTH, y, f"Time of a call of {', '.join(names)}", spoken, body), encoding="utf-8"
    )


def times_of(outcome: Outcome) -> dict[str, float]:
    """The seconds of each library, of several ways the best one's, this library first."""
    found: dict[str, float] = {}
    for contestant in (outcome.base, *outcome.others):
        if not contestant.problem:
            seconds = contestant.statistic(outcome.suite.statistic)
            found[contestant.name] = min(seconds, found.get(contestant.name, seconds))
    return found


def decades_of(seconds: Sequence[float]) -> range:
    """The powers of ten from below the shortest time to above the longest one."""
    low, high = min(seconds, default=1e-3), max(seconds, default=1e-3)
    return range(floor(log10(low)), max(ceil(log10(high)), floor(log10(low)) + 1) + 1)


def _x(seconds: float, decades: range) -> float:
    full_width = _WIDTH - 4 * _MARGIN
    return 2 * _MARGIN + full_width * (log10(seconds) - decades[0]) / (decades[-1] - decades[0])


def _letters() -> int:
    return int((_WIDTH - 2 * _MARGIN) / _LETTER)


def _peer(index: int) -> str:
    return f'<path class="mark" d="{_SHAPES[index % len(_SHAPES)]}"/>'


def _legend(marks: dict[str, str], y: float) -> tuple[str, float]:
    body, x = "", float(_MARGIN + 8)
    for name, mark in marks.items():
        width = 32 + _LETTER * len(name)
        if x + width > _WIDTH:
            x, y = float(_MARGIN + 8), y + 22
        body += _at(x, y, mark) + _text("ink", x + 12, y + 4, name)
        x += width
    return body, y + 20


def _row(outcome: Outcome, found: dict[str, tuple[float, str]], decades: range, y: float) -> str:
    ratio = "ends early" if outcome.ends_early else times(outcome.ratio)
    lost = not outcome.ends_early and (outcome.ratio or 1) < 1
    dots = "".join(
        _at(_x(seconds, decades), y + 28, mark)
        for seconds, mark in found.values()  # this library first, below the outlines
    )
    return (
        _text("ink", _MARGIN, y + 11, outcome.case.title)
        + _text("alarm" if lost else "ink", _WIDTH - _MARGIN, y + 11, ratio, "end", bold=True)
        + f'<path class="grid" d="M{_MARGIN} {y + 28:g}H{_WIDTH - _MARGIN}"/>{dots}'
    )


def _axis(decades: range, top: float, bottom: float) -> str:
    body = ""
    for power in decades:
        x = _x(10.0**power, decades)
        unit = max(min(0, power // 3 * 3), min(_UNITS))
        label = f"{10.0 ** (power - unit):g} {_UNITS[unit]}"
        body += f'<path class="grid" d="M{x:.1f} {top:g}V{bottom:g}"/>'
        body += _text("muted", x, bottom + 14, label, "middle")
    return body


def _text(
    kind: str, x: float, y: float, words: str, anchor: str = "start", bold: bool = False
) -> str:
    style = f'text-anchor="{anchor}"' + (' font-weight="bold"' if bold else "")
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" {style}>{text(words)}</text>'


def _at(x: float, y: float, body: str) -> str:
    return f'<g transform="translate({x:.1f} {y:g})">{body}</g>'
