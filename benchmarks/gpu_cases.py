"""The cases for GPUs: sizes that fill one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks import recipes
from benchmarks.cases import Case, K, M, Recipe


def _case(recipe: Recipe, name: str, title: str, **parameters: Any) -> Case:
    family = recipe.__name__.removesuffix("_coordinates").removesuffix("_elements")
    return Case(f"{family}/{name}", f"{family} {title}", recipe, parameters)


def table() -> tuple[Case, ...]:
    """Top-k of every shape, nonzero, split and join, gathers, scatters."""
    return (*_top_k(), *_nonzero(), *_slabs(), *_gathers(), *_scatters())


def _top_k() -> Iterable[Case]:
    op = recipes.top_k
    half = "float16"
    yield _case(op, "1024x50257-k50", "1024×50257, k 50", shape=(1024, 50257), k=50)
    yield _case(op, "float16-1024x50257-k50", "float16 1024×50257, k 50", shape=(1024, 50257),
                k=50, dtype=half)  # fmt: skip
    yield _case(op, "1024x131072-k50", "1024×131072, k 50", shape=(1024, 128 * K), k=50)
    yield _case(op, "16x1M-k100", "16×1 M, k 100", shape=(16, M), k=100)
    yield _case(op, "16M-k100", "16 M, k 100", shape=(16 * M,), k=100)
    yield _case(op, "65536x128-k8", "65536×128, k 8", shape=(64 * K, 128), k=8)
    yield _case(op, "8192x128-k8", "8192×128, k 8", shape=(8 * K, 128), k=8)
    yield _case(op, "64x4096-k8", "64×4096, k 8", shape=(64, 4 * K), k=8)
    yield _case(op, "4096x4096-k8", "4096², k 8", shape=(4 * K, 4 * K), k=8)
    yield _case(op, "50000x64-axis0-k10", "50000×64, axis 0, k 10", shape=(50000, 64), axis=0,
                k=10)  # fmt: skip
    yield _case(op, "256x65536-k1024", "256×65536, k 1024", shape=(256, 64 * K), k=1024)
    yield _case(op, "64x32768-k2048", "64×32768, k 2048", shape=(64, 32 * K), k=2 * K)
    yield _case(op, "4x1M-k1000", "4×1 M, k 1000", shape=(4, M), k=1000)
    yield _case(op, "1M-k500000", "1 M, k 500 000", shape=(M,), k=500_000)


def _nonzero() -> Iterable[Case]:
    op = recipes.nonzero_coordinates
    square = (16 * K, 16 * K)
    yield _case(op, "16384x16384-1%", "16384², 1 %", shape=square, density=0.01)
    yield _case(op, "16384x16384-50%", "16384², 50 %", shape=square, density=0.5)
    yield _case(op, "16384x16384-100%", "16384², 100 %", shape=square, density=1.0)
    yield _case(op, "4096x4096-1%", "4096², 1 %", shape=(4 * K, 4 * K), density=0.01)


def _slabs() -> Iterable[Case]:
    wide = (16 * K, 24 * K)
    for sections in (3, 192):
        yield _case(recipes.split, f"16384x24576-axis1-{sections}",
                    f"16384×24576, axis 1, {sections} parts", shape=wide, sections=sections,
                    axis=1)  # fmt: skip
    yield _case(recipes.split, "int8-16384x24576-axis1-192", "int8 16384×24576, axis 1, 192 parts",
                shape=wide, sections=192, axis=1, dtype="int8")  # fmt: skip
    parts = ((16 * K, 8 * K),) * 3
    yield _case(recipes.join, "16384x24576-axis1-3", "3 parts to 16384×24576, axis 1",
                shapes=parts, axis=1)  # fmt: skip


def _gathers() -> Iterable[Case]:
    op, elements, nd = recipes.gather, recipes.gather_elements, recipes.gather_nd
    square = (8 * K, 8 * K)
    for row in (32, 128, 1 * K):
        rows = 64 * M // row
        yield _case(op, f"rows-{row}", f"{rows // K} K rows of {row}", shape=(rows, row),
                    count=rows)  # fmt: skip
    yield _case(op, "float16-32000x4096-8192", "8192 of 32000 rows of 4096 float16",
                shape=(32000, 4 * K), count=8 * K, dtype="float16")  # fmt: skip
    yield _case(op, "64M-from-64M", "64 M of 64 M", shape=(64 * M,), count=64 * M)
    yield _case(op, "4M-from-64M", "4 M of 64 M", shape=(64 * M,), count=4 * M)
    yield _case(op, "8192x8192-axis1-4096", "4096 columns of 8192²", shape=square, axis=1,
                count=4 * K)  # fmt: skip
    for axis in (1, 0):
        yield _case(elements, f"elements-8192x8192-axis{axis}", f"elements 8192², axis {axis}",
                    shape=square, axis=axis)  # fmt: skip
    yield _case(nd, "16M-pairs-8192x8192", "16 M pairs into 8192²", shape=square, count=16 * M,
                coordinates=2)  # fmt: skip
    yield _case(nd, "512K-rows-128", "512 K rows of 128 by pairs", shape=(4 * K, 128, 128),
                count=512 * K, coordinates=2)  # fmt: skip


def _scatters() -> Iterable[Case]:
    op, nd = recipes.scatter_elements, recipes.scatter_nd
    square = (8 * K, 8 * K)
    for axis in (1, 0):
        yield _case(op, f"8192x8192-axis{axis}", f"8192², axis {axis}", shape=square, axis=axis)
        yield _case(op, f"int32-add-8192x8192-axis{axis}", f"int32 add 8192², axis {axis}",
                    shape=square, axis=axis, dtype="int32", reduction="add")  # fmt: skip
    yield _case(op, "64M-from-64M", "64 M ← 64 M permutation", shape=(64 * M,))
    yield _case(op, "64M-from-4M", "64 M ← 4 M", shape=(64 * M,), count=4 * M)
    for count in (K, 100 * K, 600 * K):
        yield _case(op, f"10M-from-{count // K}K", f"10 M ← {count // K} K", shape=(10 * M,),
                    count=count)  # fmt: skip
    yield _case(op, "int32-add-64M-from-4M", "int32 add 64 M ← 4 M", shape=(64 * M,), count=4 * M,
                dtype="int32", reduction="add")  # fmt: skip
    yield _case(nd, "4Mx64-from-1M-rows", "4 M×64 ← 1 M rows", shape=(4 * M, 64), count=M,
                coordinates=1)  # fmt: skip
    yield _case(nd, "8192x8192-from-16M", "8192² ← 16 M scalars", shape=square, count=16 * M,
                coordinates=2)  # fmt: skip
