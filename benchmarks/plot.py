"""The ratios as horizontal bars, grouped by operator, on one screen."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import groupby
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.report import Outcome, geometric_mean, times

_TEXT, _GRID = "#222222", "#dddddd"
# Apart for colour-blind readers too (Okabe and Ito); one for each peer, in order of appearance.
_COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_FONT: Final = 7.5
_ROW: Final = 0.165
_MOST_ROWS: Final = 34
"""Of one column of bars; with more the plot has two."""
_SIZE: Final = (13.0, 0.9)
"""Inches: the width, and what stands above and below the bars."""


class _Row(NamedTuple):
    label: str
    outcome: Outcome | None
    """None for a group's heading."""


def available() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(path: Path, outcomes: Sequence[Outcome], machine: str) -> None:
    """Write the plot; the file's suffix names the format.

    Parameters
    ----------
    path : Path
        As ``ratios.svg`` or ``ratios.png``.
    outcomes : sequence of Outcome
        Of one suite; those without a ratio are left out.
    machine : str
        What they were measured on and with, and when.
    """
    figures: Any = import_module("matplotlib.figure")
    columns = arranged(outcomes)
    most = max(map(len, columns))
    width, margins = _SIZE
    size = (width if len(columns) > 1 else 0.62 * width, margins + 0.5 + _ROW * max(most, 4))
    figure = figures.Figure(figsize=size, layout="constrained")
    shown = [o for o in outcomes if o.ratio is not None]
    names = list(dict.fromkeys(o.against.name for o in shown if o.against))
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(names)}
    ratios = [o.ratio or 1.0 for o in shown]
    every = figure.subplots(1, len(columns), squeeze=False)[0]
    for axes, rows in zip(every, columns, strict=True):
        _bars(axes, rows, most, colours, ratios)
    if shown:
        base, against, heading = shown[0].suite.headings
        title = (
            f"{heading}: time of {against} ÷ time of {base}; "
            f"geometric mean {times(geometric_mean(shown))}"
        )
        if any(o.ends_early for o in shown):
            title += ", without what ends early (hatched)"
        figure.suptitle(title, fontsize=_FONT + 2, color=_TEXT, x=0.01, ha="left")
        _legend(figure, colours, shown[0].suite.kind)
    note = "\n".join(textwrap.wrap(machine, 210 if len(columns) > 1 else 130))
    figure.supxlabel(note, fontsize=_FONT - 1, color=_TEXT, x=0.01, ha="left")
    told = {"Description": machine} if path.suffix.lower() in (".png", ".svg") else None
    figure.savefig(path, dpi=120, facecolor="white", metadata=told)


def arranged(outcomes: Sequence[Outcome]) -> list[list[_Row]]:
    """Rows under a heading for each operator, in one column or two of about the same length."""
    groups: list[list[_Row]] = []
    kept = [o for o in outcomes if o.ratio is not None]
    for family, found in groupby(kept, key=lambda o: o.case.name.partition("/")[0]):
        rows = [_Row(o.case.title.removeprefix(family).strip(), o) for o in found]
        groups.append([_Row(family, None), *rows])
    total = sum(map(len, groups))
    if total <= _MOST_ROWS:
        return [[row for group in groups for row in group]]
    first: list[_Row] = []
    while len(first) + len(groups[0]) / 2 < total / 2:
        first += groups.pop(0)
    return [first, [row for group in groups for row in group]]


def ticks_for(ratios: Sequence[float]) -> list[float]:
    """1, 2, 5, 10, …: from the beginning of the axis to the end of the longest bar or above."""
    least, most = _begin(ratios), max([2.0, *ratios])
    low, high = floor(log10(least)), ceil(log10(most))
    steps = (1, 2, 5) if high - low < 4 else (1, 3) if high - low < 6 else (1,)
    ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
    last = next(tick for tick in ticks if tick >= most)
    return [tick for tick in ticks if least <= tick <= last]


def _begin(ratios: Sequence[float]) -> float:
    """Where the axis begins: a little before the shortest bar."""
    return 0.85 * min([1.0, *ratios])


def _bars(
    axes: Any, rows: Sequence[_Row], most: int, colours: dict[str, str], ratios: Sequence[float]
) -> None:
    for at, (label, outcome) in enumerate(rows):
        if outcome is None or outcome.ratio is None or outcome.against is None:
            axes.text(
                0, at, label, fontsize=_FONT, fontweight="bold", color=_TEXT, va="center",
                ha="right", transform=axes.get_yaxis_transform(),
            )  # fmt: skip
            continue
        axes.barh(
            at, outcome.ratio - 1, left=1, height=0.72, color=colours[outcome.against.name],
            hatch="////" if outcome.ends_early else None, edgecolor="white", linewidth=0,
        )  # fmt: skip
        axes.annotate(
            times(outcome.ratio), (max(outcome.ratio, 1.0), at), xytext=(3, 0),
            textcoords="offset points", va="center", fontsize=_FONT - 1, color=_TEXT,
        )  # fmt: skip
    labels = [(at, row.label) for at, row in enumerate(rows) if row.outcome]
    axes.set_yticks([at for at, _ in labels], [text for _, text in labels])
    axes.set_ylim(most - 0.4, -0.6)  # the same height of a row in every column
    axes.set_xscale("log")
    ticks = ticks_for(ratios)
    axes.set_xlim(_begin(ratios), ticks[-1] * 1.35)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.tick_params(length=0, labelsize=_FONT - 0.5, labelcolor=_TEXT)
    axes.minorticks_off()
    axes.grid(axis="x", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.axvline(1, color=_TEXT, linewidth=0.8)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)


def _legend(figure: Any, colours: dict[str, str], kind: str) -> None:
    if kind != "peers":
        return
    patches: Any = import_module("matplotlib.patches")
    handles = [patches.Patch(color=colour, label=name) for name, colour in colours.items()]
    figure.legend(
        handles=handles, title="best peer", loc="outside upper right", ncols=len(handles),
        fontsize=_FONT, title_fontsize=_FONT, frameon=False,
    )  # fmt: skip
