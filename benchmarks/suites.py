"""The suites: which cases are run against what, and how the outcome is to be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from benchmarks import gpu_cases, recipes
from benchmarks.cases import Case, K, M, Recipe, table

TYPES: Final = (
    *("float64", "float32", "float16"),
    *("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8"),
)
WORST_PATTERN: Final = 3.0
"""No order, tie pattern or distribution may be this many times slower than random input."""


@dataclass(frozen=True)
class Suite:
    """A set of cases and what they are compared with.

    Attributes
    ----------
    name, summary : str
        For the command line.
    cases : callable
        From whether to include the largest sizes to the cases.
    kind : str
        ``"peers"``: this library and the peers. ``"patterns"``: this library on every pattern of
        the input. ``"threads"``: this library on one thread and on all.
    headings : tuple of three str
        Of the time, of what it is compared with, and of the ratio of the second to the first.
    statistic : str
        ``"median"``, or ``"minimum"`` where calls are so short that any disturbance lengthens them.
    into : bool
        Everybody is measured a second time, writing into arrays that are there.
    arrays : str
        The module of the peer whose arrays this library is called on, and which is the only one
        beside it; empty for NumPy's arrays and all peers.
    """

    name: str
    summary: str
    cases: Callable[[bool], tuple[Case, ...]]
    kind: str = "peers"
    headings: tuple[str, str, str] = ("anydml", "best peer", "ratio")
    statistic: str = "median"
    into: bool = False
    arrays: str = ""


def calls(_full: bool = False) -> tuple[Case, ...]:
    """Calls of the array functions on 16 elements, of all that have a quick way."""
    data_movement = (
        Case("cast/16", "cast 16 elements", recipes.cast, {"shape": (16,), "to": "int32"}),
        Case("pad/16", "pad 16 elements", recipes.pad, {"shape": (16,), "pad_width": ((2, 2),)}),
        Case("slice_window/16", "window of 16 elements", recipes.slice_window,
             {"shape": (16,), "strides": (2,)}),
        Case("tile/16", "tile 16 elements", recipes.tile, {"shape": (16,), "repeats": (2,)}),
    )  # fmt: skip
    return (*(case for case in small() if not case.dispatch), *data_movement)


def small(_full: bool = False) -> tuple[Case, ...]:
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


def adversarial(_full: bool = False) -> tuple[Case, ...]:
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


def types(full: bool = False) -> tuple[Case, ...]:
    """Every type, sizes from 16 up, k from 1 to n, every axis, densities from 0 to 1."""
    cases = [*_by_type(), *_by_size(full), *_by_axis()]
    cases += (
        _case(recipes.nonzero_coordinates, f"density-{d}", shape=(2048, 512), density=d)
        for d in (0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 1.0)
    )
    return tuple(cases)


def data_movement(_full: bool = False) -> tuple[Case, ...]:
    """Copies and conversions: arrays of 64 MiB, which no cache holds, and of 1 MiB."""
    cast, identity, fill = recipes.cast, recipes.element_wise_identity, recipes.fill_value_sequence
    pad, window = recipes.pad, recipes.slice_window
    square, small = (4096, 4096), (512, 512)
    around = ((0, 0), (1, 1))
    cases = [
        _case(cast, f"{dtype}-to-{to}", shape=square, dtype=dtype, to=to)
        for dtype, to in (
            *(("float32", "float16"), ("float16", "float32"), ("float16", "int8")),
            *(("int8", "float16"), ("float32", "uint8"), ("uint8", "float32")),
            *(("float32", "int32"), ("int64", "int32"), ("float64", "float32")),
        )
    ]
    cases += [
        _case(cast, "small-float32-to-float16", shape=small, to="float16"),
        _case(identity, "copy", shape=square, scale=None),
        _case(identity, "scaled", shape=square),
        _case(identity, "scaled-float16", shape=square, dtype="float16"),
        _case(identity, "scaled-uint8", shape=square, dtype="uint8"),
        _case(identity, "small-scaled", shape=small),
        _case(fill, "float32", shape=square),
        _case(fill, "float16", shape=(8192, 4096), dtype="float16", delta=0.001),
        _case(fill, "int64", shape=(2048, 4096), dtype="int64"),
        _case(fill, "uint8", shape=(16384, 4096), dtype="uint8", delta=3),
        _case(pad, "rows-of-34", shape=(512 * K, 32), pad_width=around),
        _case(pad, "uint8-rows-of-34", shape=(2 * M, 32), dtype="uint8", pad_width=around),
        _case(pad, "edge-rows-of-34", shape=(512 * K, 32), pad_width=around, mode="edge"),
        _case(
            pad,
            "reflection-256x64x32x32",
            shape=(256, 64, 32, 32),
            pad_width=((0, 0), (0, 0), (1, 1), (1, 1)),
            mode="reflection",
        ),
        _case(pad, "4096x4096", shape=square, pad_width=((1, 1), (1, 1))),
        _case(window, "4096x4096-rows", shape=square, strides=(-1, 1)),
        *(
            _case(window, f"{taken}-of-4096x4096", shape=square, strides=(1, step))
            for taken, step in (("halves", 2), ("thirds", 3), ("quarters", 4), ("mirrored", -1))
        ),
        _case(window, "uint8-halves", shape=(8192, 8192), strides=(1, 2), dtype="uint8"),
        _case(window, "uint8-mirrored", shape=(8192, 8192), strides=(1, -1), dtype="uint8"),
        _case(window, "small-halves", shape=small, strides=(1, 2)),
        _case(recipes.fill_value_constant, "float32", shape=square),
        _case(recipes.fill_value_constant, "uint8", shape=(16384, 4096), dtype="uint8"),
        _case(recipes.tile, "1024x1024-4x4", shape=(K, K), repeats=(4, 4)),
        _case(recipes.tile, "rows-of-16-1x64", shape=(16 * K, 16), repeats=(1, 64)),
        _case(recipes.tile, "uint8-4096x4096-2x2", shape=square, dtype="uint8", repeats=(2, 2)),
        _case(recipes.reverse_subsequences, "128x128x1024", shape=(128, 128, K)),
        _case(recipes.reverse_subsequences, "4096x4096", shape=square),
    ]
    cases += [
        _case(recipes.upsample_2d, name, shape=(1, 64, 256, 256), scale=(2, 2), **options)
        for name, options in {
            "nearest-2x2": {},
            "nearest-float16-2x2": {"dtype": "float16"},
            "linear-2x2": {"mode": "linear"},
            "linear-float16-2x2": {"mode": "linear", "dtype": "float16"},
        }.items()
    ]
    return tuple(cases)


def _by_type() -> Iterator[Case]:
    for t in TYPES:
        square = {"shape": (1024, 1024), "dtype": t}
        yield _case(recipes.top_k, f"{t}-1024x1024-k32", **square, k=32)
        yield _case(recipes.top_k, f"{t}-1M-k100000", shape=(M,), dtype=t, k=100_000)
        yield _case(recipes.nonzero_coordinates, f"{t}-1024x1024-10%", **square, density=0.1)
        yield _case(recipes.scatter_elements, f"{t}-1024x1024", **square, axis=1)
        yield _case(recipes.scatter_elements, f"add-{t}-1024x1024", **square, reduction="add")
        yield _case(recipes.scatter_nd, f"{t}-1024x1024", **square, count=512, coordinates=1)
        yield _case(recipes.split, f"{t}-1024x1024-4", **square, sections=4, axis=1)
        yield _case(recipes.join, f"{t}-4-of-1024x256", shapes=((1024, 256),) * 4, axis=1, dtype=t)
        yield _case(recipes.gather, f"{t}-1024x1024", **square, count=1024)
        yield _case(recipes.gather_elements, f"{t}-1024x1024", **square, axis=1)
        yield _case(recipes.gather_nd, f"{t}-1024x1024", **square, count=M, coordinates=2)


def _by_size(full: bool) -> Iterator[Case]:
    for power in (4, 8, 12, 16, 20, 24, *((28,) if full else ())):
        n = 2**power
        for k in sorted({1, 10, n // 256, n // 4, n} - {0}):
            yield _case(recipes.top_k, f"n{n}-k{k}", shape=(n,), k=k)
        yield _case(recipes.nonzero_coordinates, f"n{n}", shape=(n,), density=0.5)
        yield _case(recipes.scatter_elements, f"n{n}", shape=(n,))
        yield _case(recipes.split, f"n{n}", shape=(n,), sections=4)
        yield _case(recipes.join, f"n{n}", shapes=((n // 4,),) * 4)
        yield _case(recipes.gather_elements, f"n{n}", shape=(n,))


def _by_axis() -> Iterator[Case]:
    shape = (96, 100, 104)
    for axis in range(3):
        at = f"96x100x104-axis{axis}"
        yield _case(recipes.top_k, f"{at}-k8", shape=shape, axis=axis, k=8)
        yield _case(recipes.scatter_elements, at, shape=shape, axis=axis)
        yield _case(recipes.split, at, shape=shape, axis=axis, sections=4)
        yield _case(recipes.join, at, shapes=(shape,) * 4, axis=axis)
        yield _case(recipes.gather, at, shape=shape, axis=axis, count=50)
        yield _case(recipes.gather_elements, at, shape=shape, axis=axis)


def _case(recipe: Recipe, detail: str, **parameters: Any) -> Case:
    name = recipe.__name__.removesuffix("_coordinates")
    return Case(f"{name}/{detail}", f"{name} {detail}", recipe, parameters)


SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite("table", "the cases of the README's table", lambda _full: table(), into=True),
        Suite("small", "16 elements: what a call costs", small, statistic="minimum"),
        Suite(
            "torch",
            "16 elements of tensors, beside PyTorch",
            calls,
            statistic="minimum",
            arrays="torch",
        ),
        Suite(
            "jax",
            "16 elements of JAX's arrays, beside JAX",
            calls,
            statistic="minimum",
            arrays="jax",
        ),
        Suite(
            "adversarial",
            f"every order, tie and index pattern; at most {WORST_PATTERN:g} times the random one",
            adversarial,
            kind="patterns",
            headings=("random", "slowest input", "slowdown"),
        ),
        Suite(
            "scaling",
            "one thread and all",
            lambda _full: table(),
            kind="threads",
            headings=("all threads", "one thread", "speed-up"),
        ),
        Suite(
            "movers",
            "copies and conversions of 64 MiB, as parts of a plain copy's rate",
            data_movement,
        ),
        Suite("types", "all types, sizes, k, axes, densities", types),
    )
}
GPU_SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite("table", "sizes that fill a GPU", gpu_cases.table),
        Suite(
            "adversarial",
            f"every order and tie; at most {WORST_PATTERN:g} times the random one",
            gpu_cases.adversarial,
            kind="patterns",
            headings=("random", "slowest input", "slowdown"),
        ),
    )
}


def suites_named(names: Iterable[str], device: str = "cpu") -> list[Suite]:
    """A device's suites by name, each once; ``"all"`` is every one."""
    expected = set(names)
    known = SUITES if device == "cpu" else GPU_SUITES
    return [suite for suite in known.values() if {"all", suite.name} & expected]
