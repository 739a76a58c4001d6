"""The suites: which cases are run against what, and how the outcome is to be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import gpu_cases, recipes
from benchmarks.cases import Case, Recipe, table


@dataclass(frozen=True)
class Suite:
    """A set of cases and what they are compared with.

    Attributes
    ----------
    name, summary : str
        For the command line.
    cases : tuple of Case
        What is run.
    statistic : str
        ``"median"``, or ``"minimum"`` where calls are so short that any disturbance lengthens them.
    into : bool
        Everybody is measured a second time, writing into arrays that are there.
    """

    name: str
    summary: str
    cases: tuple[Case, ...]
    statistic: str = "median"
    into: bool = False


def small() -> tuple[Case, ...]:
    """Calls on 16 elements, and a compiled operator's dispatch."""
    calls: dict[str, tuple[Recipe, dict[str, Any]]] = {
        "top_k": (recipes.top_k, {"shape": (16,), "k": 4}),
        "nonzero": (recipes.nonzero_coordinates, {"shape": (16,), "density": 0.5}),
        "scatter": (recipes.scatter_elements, {"shape": (16,)}),
        "scatter_nd": (recipes.scatter_nd, {"shape": (4, 4), "count": 4, "coordinates": 2}),
        "split": (recipes.split, {"shape": (16,), "sections": 4}),
        "join": (recipes.join, {"shapes": ((4,),) * 4}),
        "gather": (recipes.gather, {"shape": (16,), "count": 16}),
        "gather_elements": (recipes.gather_elements, {"shape": (16,)}),
        "gather_nd": (recipes.gather_nd, {"shape": (4, 4), "count": 4, "coordinates": 2}),
    }
    dispatched = ("top_k", "nonzero", "scatter", "scatter_nd", "split")
    return (
        *(Case(f"{name}/16", f"{name} 16 elements", *call) for name, call in calls.items()),
        *(
            Case(f"dispatch/{name}-16", f"dispatch of {name}, 16 elements", *calls[name], True)
            for name in dispatched
        ),
    )


SUITES: Final = {
    "table": Suite("table", "the cases of the README's table", table(), into=True),
    "small": Suite("small", "16 elements: what a call costs", small(), statistic="minimum"),
}
GPU_SUITES: Final = {"table": Suite("table", "sizes that fill a GPU", gpu_cases.table())}


def suites_named(names: Iterable[str], device: str = "cpu") -> list[Suite]:
    """A device's suites by name, each once; ``"all"`` is every one."""
    expected = set(names)
    known = SUITES if device == "cpu" else GPU_SUITES
    return [suite for suite in known.values() if {"all", suite.name} & expected]
