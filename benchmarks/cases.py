"""`Case`, and the cases of the table that the README shows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np

from benchmarks import recipes
from benchmarks.jobs import Job

K: Final = 2**10
M: Final = 2**20
SEED: Final = 20240229

Recipe = Callable[..., Job]


@dataclass(frozen=True)
class Case:
    """A job that can be made again and again.

    Attributes
    ----------
    name : str
        For the command line: the operation, a slash, and what distinguishes it.
    title : str
        For reading.
    recipe : callable
        From `recipes`.
    parameters : mapping
        The recipe's arguments.
    dispatch : bool
        Whether a compiled operator is dispatched rather than the array function called.
    """

    name: str
    title: str
    recipe: Recipe
    parameters: Mapping[str, Any]
    dispatch: bool = False

    @property
    def operation(self) -> str:
        """The array function's name."""
        return self.recipe.__name__

    @property
    def dtype(self) -> str:
        """The data type."""
        return str(self.parameters.get("dtype", "float32"))

    def job(self) -> Job:
        """The job; always the same one."""
        return self.recipe(np.random.default_rng(SEED), **self.parameters)


def chosen(cases: Iterable[Case], patterns: Iterable[str]) -> list[Case]:
    """The cases whose name or title fits one of the glob patterns; all when there are none."""
    expected = tuple(patterns) or ("*",)
    return [
        case
        for case in cases
        if any(fnmatchcase(case.name, p) or fnmatchcase(case.title, p) for p in expected)
    ]


def _case(name: str, title: str, recipe: Recipe, **parameters: Any) -> Case:
    family = name.partition("/")[0]
    return Case(name, f"{family} {title}", recipe, parameters)


def table() -> tuple[Case, ...]:
    """The cases of the table: the five operators, then their counterparts and reductions."""
    return (*_top_k(), *_nonzero(), *_scatter(), *_split(), *_gather(), *_join(), *_reductions())


def _top_k() -> Iterable[Case]:
    op = recipes.top_k
    yield _case("top_k/16M-k100", "16 M, k 100", op, shape=(16 * M,), k=100)
    yield _case("top_k/1024x50257-k50", "1024×50257, k 50", op, shape=(1024, 50257), k=50)
    yield _case("top_k/64x4096-k8", "64×4096, k 8", op, shape=(64, 4096), k=8)
    yield _case("top_k/8192x128-k8", "8192×128, k 8", op, shape=(8192, 128), k=8)
    yield _case("top_k/256x65536-k1024", "256×65536, k 1024", op, shape=(256, 65536), k=1024)
    yield _case("top_k/1M-k500000", "1 M, k 500 000", op, shape=(M,), k=500_000)
    yield _case("top_k/1M-k-n-1", "1 M, k = n − 1", op, shape=(M,), k=M - 1)
    yield _case("top_k/50000x64-axis0-k10", "50000×64, axis 0, k 10", op, shape=(50000, 64), axis=0,
                k=10)  # fmt: skip
    yield _case("top_k/int8-16M-k100", "int8 16 M, k 100", op, shape=(16 * M,), k=100, dtype="int8")
    yield _case("top_k/float16-1024x50257-k50", "float16 1024×50257, k 50", op, shape=(1024, 50257),
                k=50, dtype="float16")  # fmt: skip
    yield _case("top_k/uint64-4M-k100", "uint64 4 M, k 100", op, shape=(4 * M,), k=100,
                dtype="uint64")  # fmt: skip


def _nonzero() -> Iterable[Case]:
    op = recipes.nonzero_coordinates
    square = (4096, 4096)
    yield _case("nonzero/4096x4096-0.1%", "4096², 0.1 %", op, shape=square, density=0.001)
    yield _case("nonzero/4096x4096-50%", "4096², 50 %", op, shape=square, density=0.5)
    yield _case("nonzero/4096x4096-100%", "4096², 100 %", op, shape=square, density=1.0)
    yield _case("nonzero/uint8-4096x4096-50%", "uint8 4096², 50 %", op, shape=square, density=0.5,
                dtype="uint8")  # fmt: skip
    yield _case("nonzero/16x64x128x128-10%", "16×64×128×128, 10 %", op, shape=(16, 64, 128, 128),
                density=0.1)  # fmt: skip


def _scatter() -> Iterable[Case]:
    op: Recipe = recipes.scatter_elements
    square = (4096, 4096)
    yield _case("scatter/4096x4096-axis1", "4096², axis 1, int64 permutation", op, shape=square,
                axis=1)  # fmt: skip
    yield _case("scatter/4096x4096-axis0", "4096², axis 0, int64 permutation", op, shape=square,
                axis=0)  # fmt: skip
    yield _case("scatter/16M-from-1M", "16 M ← 1 M", op, shape=(16 * M,), count=M)
    yield _case("scatter/16M-from-16M", "16 M ← 16 M permutation", op, shape=(16 * M,))
    op = recipes.scatter_nd
    rows = (M, 64)
    yield _case("scatter_nd/1Mx64-from-100k-rows", "1 M×64 ← 100 k rows", op, shape=rows,
                count=100_000, coordinates=1)  # fmt: skip
    yield _case("scatter_nd/1Mx64-from-1M-rows", "1 M×64 ← 1 M rows", op, shape=rows, count=M,
                coordinates=1)  # fmt: skip
    yield _case("scatter_nd/4096x4096-from-4M-scalars", "4096² ← 4 M scalars", op, shape=square,
                count=4 * M, coordinates=2)  # fmt: skip


def _split() -> Iterable[Case]:
    op = recipes.split
    wide = (4096, 12288)
    yield _case("split/4096x12288-axis1-3", "4096×12288, axis 1, 3 parts", op, shape=wide,
                sections=3, axis=1)  # fmt: skip
    yield _case("split/4096x12288-axis0-8", "4096×12288, axis 0, 8 parts", op, shape=wide,
                sections=8)  # fmt: skip
    yield _case("split/1024x64x1024-axis1-64", "1024×64×1024, axis 1, 64 parts", op,
                shape=(1024, 64, 1024), sections=64, axis=1)  # fmt: skip
    yield _case("split/int8-4096x4096-axis1-1024", "int8 4096², 1024 parts of 4", op,
                shape=(4096, 4096), sections=1024, axis=1, dtype="int8")  # fmt: skip


def _gather() -> Iterable[Case]:
    op: Recipe = recipes.gather
    rows, square = (M, 64), (4096, 4096)
    yield _case("gather/1Mx64-100k-rows", "1 M×64, 100 k rows", op, shape=rows, count=100_000)
    yield _case("gather/1Mx64-1M-rows", "1 M×64, 1 M rows", op, shape=rows, count=M)
    yield _case("gather/50257x768-8192-rows", "50257×768, 8192 rows", op, shape=(50257, 768),
                count=8192)  # fmt: skip
    yield _case("gather/int8-1Mx64-1M-rows", "int8 1 M×64, 1 M rows", op, shape=rows, count=M,
                dtype="int8")  # fmt: skip
    yield _case("gather/16M-4M", "16 M, 4 M scalars", op, shape=(16 * M,), count=4 * M)
    yield _case("gather/4096x4096-axis1-permutation", "4096², axis 1, permutation of the columns",
                op, shape=square, axis=1, count=4096, unique=True)  # fmt: skip
    yield _case("gather/4096x4096-axis1-64", "4096², axis 1, 64 columns", op, shape=square, axis=1,
                count=64)  # fmt: skip
    op = recipes.gather_elements
    yield _case("gather_elements/4096x4096-axis1", "4096², axis 1, int64 permutation", op,
                shape=square, axis=1)  # fmt: skip
    yield _case("gather_elements/4096x4096-axis0", "4096², axis 0, int64 permutation", op,
                shape=square, axis=0)  # fmt: skip
    yield _case("gather_elements/16M-16M", "16 M, 16 M permutation", op, shape=(16 * M,))
    yield _case("gather_elements/1024x50257-50", "1024×50257, 50 of each row", op,
                shape=(1024, 50257), axis=1, count=50)  # fmt: skip
    yield _case("gather_elements/float16-4096x4096-axis1",
                "float16 4096², axis 1, int64 permutation", op, shape=square, axis=1,
                dtype="float16")  # fmt: skip
    op = recipes.gather_nd
    yield _case("gather_nd/1Mx64-100k-rows", "1 M×64, 100 k rows", op, shape=rows, count=100_000,
                coordinates=1)  # fmt: skip
    yield _case("gather_nd/4096x4096-4M-scalars", "4096², 4 M scalars", op, shape=square,
                count=4 * M, coordinates=2)  # fmt: skip
    yield _case("gather_nd/64x4096x64-batches", "64 batches of 4096×64, 1024 rows each", op,
                shape=(64, 4096, 64), count=1024, coordinates=1, batch_dims=1)  # fmt: skip


def _join() -> Iterable[Case]:
    op = recipes.join
    yield _case("join/3-of-4096x4096-axis1", "3 of 4096², axis 1", op, shapes=((4096, 4096),) * 3,
                axis=1)  # fmt: skip
    yield _case("join/8-of-512x12288-axis0", "8 of 512×12288, axis 0", op,
                shapes=((512, 12288),) * 8)  # fmt: skip
    yield _case("join/64-of-1024x1x1024-axis1", "64 of 1024×1×1024, axis 1", op,
                shapes=((1024, 1, 1024),) * 64, axis=1)  # fmt: skip
    yield _case("join/int8-1024-of-4096x4-axis1", "int8 1024 of 4096×4, axis 1", op,
                shapes=((4096, 4),) * 1024, axis=1, dtype="int8")  # fmt: skip
    yield _case("join/cache-32x8x4096x128", "32×8×4096×128 and one more step, axis 2", op,
                shapes=((32, 8, 4096, 128), (32, 8, 1, 128)), axis=2)  # fmt: skip


def _reductions() -> Iterable[Case]:
    op: Recipe = recipes.scatter_elements
    square = (4096, 4096)
    yield _case("scatter_add/16M-from-16M", "16 M ← 16 M, repeated", op, shape=(16 * M,),
                reduction="add", unique=False)  # fmt: skip
    yield _case("scatter_add/int32-64k-from-16M", "int32 64 k ← 16 M, repeated", op,
                shape=(64 * K,), count=16 * M, reduction="add", dtype="int32",
                unique=False)  # fmt: skip
    yield _case("scatter_add/4096x4096-axis1", "4096², axis 1, repeated", op, shape=square, axis=1,
                reduction="add", unique=False)  # fmt: skip
    yield _case("scatter_max/4096x4096-axis0", "4096², axis 0, repeated", op, shape=square, axis=0,
                reduction="max", unique=False)  # fmt: skip
    yield _case("scatter_min/16M-from-1M", "16 M ← 1 M", op, shape=(16 * M,), count=M,
                reduction="min")  # fmt: skip
    op = recipes.scatter_nd
    yield _case("scatter_nd_add/1Mx64-from-100k-rows", "1 M×64 ← 100 k rows, repeated", op,
                shape=(M, 64), count=100_000, coordinates=1, reduction="add",
                unique=False)  # fmt: skip
    yield _case("scatter_nd_mul/4096x4096-from-4M-scalars", "4096² ← 4 M scalars, repeated", op,
                shape=square, count=4 * M, coordinates=2, reduction="mul",
                unique=False)  # fmt: skip
