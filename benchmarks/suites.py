"""The suites: which cases are run against what, and how the outcome is to be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import gpu_cases, recipes
from benchmarks.cases import Case, K, M, Recipe, table

WORST_PATTERN: Final = 3.0
"""No order, tie pattern or distribution may be this many times slower than random input."""


@dataclass(frozen=True)
class Suite:
    """A set of cases and what they are compared with.

    Attributes
    ----------
    name, summary : str
        For the command line.
    cases : tuple of Case
        What is run.
    kind : str
        ``"peers"``: this library and the peers. ``"patterns"``: this library on every pattern of
        the input.
    headings : tuple of three str
        Of the time, of what it is compared with, and of the ratio of the second to the first.
    statistic : str
        ``"median"``, or ``"minimum"`` where calls are so short that any disturbance lengthens them.
    into : bool
        Everybody is measured a second time, writing into arrays that are there.
    """

    name: str
    summary: str
    cases: tuple[Case, ...]
    kind: str = "peers"
    headings: tuple[str, str, str] = ("anydml", "best peer", "ratio")
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


def adversarial() -> tuple[Case, ...]:
    """Cases that take every algorithm, to be run on every pattern."""
    top_k, nonzero = recipes.top_k, recipes.nonzero_coordinates
    scatter, scatter_nd = recipes.scatter_elements, recipes.scatter_nd
    gather, elements, gather_nd = recipes.gather, recipes.gather_elements, recipes.gather_nd
    return (
        _case(top_k, "4M-k100", shape=(4 * M,), k=100),
        _case(top_k, "256x16384-k50", shape=(256, 16384), k=50),
        _case(top_k, "64x16384-k1024", shape=(64, 16384), k=1024),
        _case(top_k, "8192x128-k8", shape=(8192, 128), k=8),
        _case(top_k, "1M-k250000", shape=(M,), k=250_000),
        _case(top_k, "1M-k-n", shape=(M,), k=M),
        _case(top_k, "50000x64-axis0-k10", shape=(50000, 64), k=10, axis=0),
        _case(top_k, "smallest-4M-k100", shape=(4 * M,), k=100, largest=False),
        _case(top_k, "int8-16M-k100", shape=(16 * M,), k=100, dtype="int8"),
        _case(top_k, "float16-256x16384-k50", shape=(256, 16384), k=50, dtype="float16"),
        _case(top_k, "uint64-4M-k100", shape=(4 * M,), k=100, dtype="uint64"),
        _case(nonzero, "2048x2048-50%", shape=(2048, 2048), density=0.5),
        _case(nonzero, "uint8-4096x4096-50%", shape=(4096, 4096), density=0.5, dtype="uint8"),
        _case(nonzero, "16x64x64x64-50%", shape=(16, 64, 64, 64), density=0.5),
        _case(scatter, "2048x2048-axis1", shape=(2048, 2048), axis=1),
        _case(scatter, "2048x2048-axis0", shape=(2048, 2048), axis=0),
        _case(scatter, "16M-from-1M", shape=(16 * M,), count=M),
        _case(scatter, "4M-from-4M", shape=(4 * M,)),
        _case(scatter, "add-4M-from-4M", shape=(4 * M,), reduction="add"),
        _case(scatter, "add-2048x2048-axis0", shape=(2048, 2048), axis=0, reduction="add"),
        _case(scatter_nd, "256kx64-from-64k", shape=(256 * K, 64), count=64 * K, coordinates=1),
        _case(scatter_nd, "2048x2048-from-1M", shape=(2048, 2048), count=M, coordinates=2),
        _case(
            scatter_nd,
            "add-256kx64-from-64k",
            shape=(256 * K, 64),
            count=64 * K,
            coordinates=1,
            reduction="add",
        ),
        _case(gather, "256kx64-256k", shape=(256 * K, 64), count=256 * K),
        _case(gather, "2048x2048-axis1", shape=(2048, 2048), count=2048, axis=1),
        _case(elements, "2048x2048-axis1", shape=(2048, 2048), axis=1),
        _case(elements, "2048x2048-axis0", shape=(2048, 2048), axis=0),
        _case(elements, "4M-4M", shape=(4 * M,)),
        _case(gather_nd, "2048x2048-1M", shape=(2048, 2048), count=M, coordinates=2),
    )


def _case(recipe: Recipe, detail: str, **parameters: Any) -> Case:
    name = recipe.__name__.removesuffix("_coordinates")
    return Case(f"{name}/{detail}", f"{name} {detail}", recipe, parameters)


_PATTERNS: Final = Suite(
    "adversarial",
    f"every order, tie and index pattern; at most {WORST_PATTERN:g} times the random one",
    adversarial(),
    kind="patterns",
    headings=("random", "slowest input", "slowdown"),
)
SUITES: Final = {
    "table": Suite("table", "the cases of the README's table", table(), into=True),
    "small": Suite("small", "16 elements: what a call costs", small(), statistic="minimum"),
    "adversarial": _PATTERNS,
}
GPU_SUITES: Final = {
    "table": Suite("table", "sizes that fill a GPU", gpu_cases.table()),
    "adversarial": _PATTERNS,
}


def suites_named(names: Iterable[str], device: str = "cpu") -> list[Suite]:
    """A device's suites by name, each once; ``"all"`` is every one."""
    expected = set(names)
    known = SUITES if device == "cpu" else GPU_SUITES
    return [suite for suite in known.values() if {"all", suite.name} & expected]
