"""The cases for GPUs: sizes that fill one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from anydml.bench import recipes
from anydml.bench.cases import Case, K, M, Recipe


def _case(recipe: Recipe, name: str, title: str, **parameters: Any) -> Case:
    family = recipe.__name__.removesuffix("_coordinates").removesuffix("_elements")
    return Case(f"{family}/{name}", f"{family} {title}", recipe, parameters)


def table(_full: bool = False) -> tuple[Case, ...]:
    """Top-k of every shape, nonzero, split and join."""
    return (*_top_k(), *_nonzero(), *_slabs())


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


def adversarial(_full: bool = False) -> tuple[Case, ...]:
    """Cases that take every algorithm, to be run on every pattern."""
    op, nonzero = recipes.top_k, recipes.nonzero_coordinates
    return (
        _case(op, "1024x50257-k50", "1024×50257, k 50", shape=(1024, 50257), k=50),
        _case(op, "16M-k100", "16 M, k 100", shape=(16 * M,), k=100),
        _case(op, "4x1M-k1000", "4×1 M, k 1000", shape=(4, M), k=1000),
        _case(op, "4096x4096-k8", "4096², k 8", shape=(4 * K, 4 * K), k=8),
        _case(op, "8192x128-k8", "8192×128, k 8", shape=(8 * K, 128), k=8),
        _case(op, "50000x64-axis0-k10", "50000×64, axis 0, k 10", shape=(50000, 64), axis=0, k=10),
        _case(nonzero, "4096x4096-50%", "4096², 50 %", shape=(4 * K, 4 * K), density=0.5),
    )
