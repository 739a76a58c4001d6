"""The ratios as a horizontal bar plot."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from anydml.bench.report import Outcome, geometric_mean, times

_ROW: Final = 0.24
_BAR, _BEHIND, _TEXT, _GRID = "#3b76af", "#c44e52", "#333333", "#dddddd"


def available() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write the plot; the file's suffix names the format.

    Parameters
    ----------
    path : Path
        As ``ratios.svg`` or ``ratios.png``.
    outcomes : sequence of Outcome
        Of one suite; those without a ratio are left out.
    """
    figures: Any = import_module("matplotlib.figure")
    shown = [(o.case.title, o.ratio) for o in outcomes if o.ratio is not None]
    names, ratios = [name for name, _ in shown], [ratio for _, ratio in shown]
    figure = figures.Figure(figsize=(8, 0.9 + _ROW * max(len(shown), 1)), layout="constrained")
    axes = figure.add_subplot()
    rows = range(len(shown))
    axes.barh(rows, [r - 1 for r in ratios], left=1, height=0.7, color=list(map(_colour, ratios)))
    for row, ratio in zip(rows, ratios, strict=True):
        axes.annotate(
            times(ratio),
            (max(ratio, 1.0), row),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            color=_TEXT,
        )
    axes.set_yticks(rows, names, fontsize=7, color=_TEXT)
    axes.invert_yaxis()
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.set_xlim(min([0.8, *ratios]) * 0.95, max([2.0, *ratios]) * 1.6)
    ticks = [
        t for t in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if _within(t, axes.get_xlim())
    ]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks], fontsize=7, color=_TEXT)
    axes.minorticks_off()
    axes.grid(axis="x", color=_GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.axvline(1, color=_TEXT, linewidth=0.8)
    axes.tick_params(length=0)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
    if shown:
        _, against, ratio_heading = outcomes[0].suite.headings
        base = outcomes[0].suite.headings[0]
        mean = times(geometric_mean(outcomes))
        axes.set_title(
            f"{ratio_heading}: time of {against} ÷ time of {base} (geometric mean {mean})",
            fontsize=8,
            color=_TEXT,
            loc="left",
        )
    figure.savefig(path, dpi=150, facecolor="white")


def _colour(ratio: float) -> str:
    return _BAR if ratio >= 1 else _BEHIND


def _within(value: float, limits: tuple[float, float]) -> bool:
    return limits[0] <= value <= limits[1]
