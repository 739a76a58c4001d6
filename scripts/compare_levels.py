"""Runs the same generated calls at several instruction-set levels and compares results to the bit.

    python scripts/compare_levels.py v2 v3 v4
    python scripts/compare_levels.py --seed 7 --count 5000

Every level runs in a process of its own with two numbers of threads and prints a digest for each
call. The first call whose digest is not everywhere the same is named; status 1.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TYPES = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
INDEX_TYPES = ("i4", "i8", "u4", "u8")
SIZES = (1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 128, 257, 511, 600)
Call = tuple[str, Callable[[], Any]]


def calls(seed: int, count: int) -> Iterator[Call]:
    """The calls, each a text and a function; the same for the same arguments."""
    import numpy as np

    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
    import anydml as dml
    from support import Flavour, contents, indices

    generator = np.random.default_rng(seed)
    flavours = list(Flavour)

    def shape(rank: int, maximum: int) -> tuple[int, ...]:
        sizes = [int(generator.choice(SIZES)) for _ in range(rank)]
        while np.prod(sizes, dtype=np.int64) > maximum:
            sizes[int(generator.integers(rank))] = int(generator.integers(1, 9))
        return tuple(sizes)

    def array(sizes: tuple[int, ...], kind: str) -> Any:
        """Packed, transposed or every other element."""
        flavour = flavours[generator.integers(len(flavours))]
        layout = generator.integers(4)
        if layout == 0:
            return contents(generator, sizes[::-1], kind, flavour).T
        if layout == 1:
            return contents(generator, (*sizes[:-1], 2 * sizes[-1]), kind, flavour)[..., ::2]
        return contents(generator, sizes, kind, flavour)

    def reduction(kind: str) -> str | None:
        names = [None, "add", "mul", "min", "max"]
        return names[generator.integers(len(names))]

    def top_k() -> Call:
        rank = int(generator.integers(1, 4))
        x = array(shape(rank, 200_000), str(generator.choice(TYPES)))
        axis = int(generator.integers(rank))
        size = x.shape[axis]
        k = int(generator.choice([min(1, size), min(2, size), size // 3, size]))
        largest = bool(generator.integers(2))
        return (
            f"top_k {x.dtype} {x.shape} {x.strides} k={k} axis={axis} largest={largest}",
            lambda: dml.top_k(x, k, axis=axis, largest=largest),
        )

    def nonzero() -> Call:
        x = array(shape(int(generator.integers(1, 5)), 100_000), str(generator.choice(TYPES)))
        return f"nonzero {x.dtype} {x.shape} {x.strides}", lambda: dml.nonzero_coordinates(x)

    def scatter_elements() -> Call:
        rank = int(generator.integers(1, 4))
        x = array(shape(rank, 60_000), str(generator.choice(TYPES)))
        axis = int(generator.integers(rank))
        sizes = tuple(
            int(generator.choice(SIZES)) if i == axis else int(generator.integers(1, size + 1))
            for i, size in enumerate(x.shape)
        )
        lookup = indices(generator, sizes, x.shape[axis], str(generator.choice(INDEX_TYPES)))
        updates, combine = array(sizes, x.dtype.str), reduction(x.dtype.str)
        return (
            f"scatter_elements {x.dtype} {x.shape} {lookup.dtype} {sizes} axis={axis} {combine}",
            lambda: dml.scatter_elements(x, lookup, updates, axis=axis, reduction=combine),
        )

    def scatter_nd() -> Call:
        rank = int(generator.integers(1, 4))
        x = array(shape(rank, 60_000), str(generator.choice(TYPES)))
        width = int(generator.integers(1, rank + 1))
        many = int(generator.choice(SIZES))
        kind = str(generator.choice(INDEX_TYPES))
        lookup = indices(generator, (many, width), x.shape[:width], kind)
        updates, combine = array((many, *x.shape[width:]), x.dtype.str), reduction(x.dtype.str)
        return (
            f"scatter_nd {x.dtype} {x.shape} {lookup.dtype} {lookup.shape} {combine}",
            lambda: dml.scatter_nd(x, lookup, updates, reduction=combine),
        )

    def gathers() -> Call:
        rank = int(generator.integers(1, 4))
        x = array(shape(rank, 60_000), str(generator.choice(TYPES)))
        axis, kind = int(generator.integers(rank)), str(generator.choice(INDEX_TYPES))
        mode = "clamp" if generator.integers(4) == 0 else "raise"
        which = generator.integers(3)
        if which == 0:
            lookup = indices(generator, shape(1, 600), x.shape[axis], kind)
            return (
                f"gather {x.dtype} {x.shape} {kind} {lookup.shape} axis={axis} {mode}",
                lambda: dml.gather(x, lookup, axis=axis, mode=mode),
            )
        if which == 1:
            sizes = tuple(
                int(generator.choice(SIZES)) if i == axis else size
                for i, size in enumerate(x.shape)
            )
            lookup = indices(generator, sizes, x.shape[axis], kind)
            return (
                f"gather_elements {x.dtype} {x.shape} {kind} {sizes} axis={axis} {mode}",
                lambda: dml.gather_elements(x, lookup, axis=axis, mode=mode),
            )
        width = int(generator.integers(1, rank + 1))
        lookup = indices(generator, (*shape(1, 600), width), x.shape[:width], kind)
        return (
            f"gather_nd {x.dtype} {x.shape} {kind} {lookup.shape}",
            lambda: dml.gather_nd(x, lookup),
        )

    def slabs() -> Call:
        rank = int(generator.integers(1, 5))
        x = array(shape(rank, 200_000), str(generator.choice(TYPES)))
        axis = int(generator.integers(rank))
        cut = int(generator.integers(0, x.shape[axis] + 1))
        sizes = [size for size in (cut, x.shape[axis] - cut) if size]
        if generator.integers(2):
            return (
                f"split {x.dtype} {x.shape} {x.strides} {sizes} axis={axis}",
                lambda: dml.split(x, sizes, axis=axis),
            )
        return (
            f"join {x.dtype} {x.shape} {x.strides} axis={axis}",
            lambda: dml.join([x, x, x], axis=axis),
        )

    makers = [top_k, top_k, nonzero, scatter_elements, scatter_elements, scatter_nd, gathers, slabs]
    for number in range(count):
        yield makers[number % len(makers)]()


def run_here(seed: int, count: int) -> None:
    """Print the digest and the text of each call, a line each."""
    import numpy as np

    import anydml as dml

    for text, call in calls(seed, count):
        for threads in (1, 3):
            digest = hashlib.sha256()
            with dml.num_threads(threads):
                result = call()
            for part in result if isinstance(result, tuple | list) else [result]:
                digest.update(f"{part.dtype} {part.shape}".encode())
                digest.update(np.ascontiguousarray(part).tobytes())
            print(digest.hexdigest()[:24], text, f"threads={threads}", sep="\t")


def lines_of(level: str, seed: int, count: int) -> list[str]:
    """What `run_here` prints at a level."""
    command = [sys.executable, __file__, "--here", "--seed", str(seed), "--count", str(count)]
    done = subprocess.run(
        command,
        env={**os.environ, "ANYDML_INSTRUCTION_SET": level},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def differences(results: dict[str, list[str]]) -> list[str]:
    """A line for every call that has not the same digest at all levels and numbers of threads."""
    found = []
    levels = list(results)
    if len({len(lines) for lines in results.values()}) != 1:
        return ["not the same number of calls"]
    expected: dict[int, str] = {}  # call → digest; two lines (numbers of threads) a call
    for number, lines in enumerate(zip(*results.values(), strict=True)):
        for level, line in zip(levels, lines, strict=True):
            digest, _, text = line.partition("\t")
            first = expected.setdefault(number // 2, digest)
            if digest != first:
                found.append(f"{level}: {digest}, not {first}: {text}")
    return found


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Compare results between levels, to the bit.")
    parser.add_argument("levels", nargs="*", help="all that can be used, by default")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--here", action="store_true", help="run them in this process and print")
    options = parser.parse_args()
    if options.here:
        run_here(options.seed, options.count)
        return 0
    from anydml._native import usable_levels

    levels = options.levels or usable_levels()
    found = differences({level: lines_of(level, options.seed, options.count) for level in levels})
    for line in found[:20]:
        print(line)
    print(f"{options.count} calls at {', '.join(levels)}: {len(found)} digests differ")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
