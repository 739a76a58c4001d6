"""Compare the functions on Dask arrays with Dask's own, by number of workers and chunks.

``python -m benchmarks.dask_functions [--rows N] [--repeat N] [--workers 1 2 ..] [--cupy]`` prints
a table in Markdown, in some two minutes. Calls that are compared run in turns, and the shortest
time of each counts; every result is checked. Kernels use one thread: the threads are Dask's. With
``--cupy`` the chunks are CuPy's, on a GPU.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import dask
import dask.array as da
import numpy as np

import anydml as dml

Calls = dict[str, Callable[[], Any]]
COLUMNS, K = 512, 10


def timed(calls: Calls, workers: int, repeat: int) -> dict[str, float]:
    """Milliseconds of each call, the shortest of several turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(repeat):
        for name, call in calls.items():
            lazy = call()
            with dask.config.set(scheduler="threads", num_workers=workers):
                begin = time.perf_counter()
                dask.compute(lazy)
                if "cupy" in sys.modules:
                    sys.modules["cupy"].cuda.get_current_stream().synchronize()
                best[name] = min(best[name], 1000 * (time.perf_counter() - begin))
    return best


def calls_on(x: Any, chunks: tuple[int, int]) -> dict[str, Calls]:
    """By what they do: ours, Dask's own, and in memory, of the same array in chunks."""
    xp: Any = sys.modules[type(x).__module__.partition(".")[0]]
    lazy = dask.persist(da.from_array(x, chunks=chunks))[0]
    marks = dask.persist(lazy > 0.99)[0]
    mask = x > 0.99
    rows = xp.asarray(np.random.default_rng(2).integers(0, len(x), (1000, 1)))
    near = rows // 64  # in the first blocks only
    ones = xp.ones((1000, COLUMNS), np.float32)
    return {
        "values of the 10 largest, axis 0": {
            "here": lambda: dml.top_k(lazy, K, axis=0).values,
            "dask": lambda: da.topk(lazy, K, axis=0),
            "in memory": lambda: dask.delayed(dml.top_k)(x, K, axis=0).values,
        },
        "indices of the 10 largest, axis 0": {
            "here": lambda: dml.top_k(lazy, K, axis=0).indices,
            "dask": lambda: da.argtopk(lazy, K, axis=0),
            "in memory": lambda: dask.delayed(dml.top_k)(x, K, axis=0).indices,
        },
        "coordinates of 1 % nonzero": {
            "here": lambda: dml.nonzero_coordinates(marks),
            "dask": lambda: da.argwhere(marks),
            "in memory": lambda: dask.delayed(dml.nonzero_coordinates)(mask),
        },
        "1,000 rows gathered": {
            "here": lambda: dml.gather(lazy, rows[:, 0]),
            "dask": lambda: lazy[rows[:, 0]],
            "in memory": lambda: dask.delayed(dml.gather)(x, rows[:, 0]),
        },
        "1,000 rows of the first 1/64": {
            "here": lambda: dml.gather(lazy, near[:, 0]),
            "dask": lambda: lazy[near[:, 0]],
            "in memory": lambda: dask.delayed(dml.gather)(x, near[:, 0]),
        },
        "1,000 rows added": {
            "here": lambda: dml.scatter_nd(lazy, rows, ones, reduction="add"),
            "in memory": lambda: dask.delayed(dml.scatter_nd)(x, rows, ones, reduction="add"),
        },
    }


def check(calls: Calls) -> None:
    """Ours gives what it gives in memory; Dask's own the same numbers."""
    here, in_memory = dask.compute(calls["here"](), calls["in memory"]())
    assert here.tobytes() == in_memory.tobytes()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=64 * 1024)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--cupy", action="store_true")
    arguments = parser.parse_args()
    x: Any = np.random.default_rng(1).random((arguments.rows, COLUMNS), np.float32)
    if arguments.cupy:
        import cupy  # type: ignore[import-not-found,unused-ignore]

        x = cupy.asarray(x)
    chunkings = [(arguments.rows // n, COLUMNS // m) for n, m in ((8, 1), (8, 4), (64, 4))]
    print(f"float32, {arguments.rows} × {COLUMNS}, {x.nbytes >> 20} MB; milliseconds\n")
    heads = [f"{who}, {n}" for who in ("here", "Dask") for n in arguments.workers]
    print(f"| workers | blocks | {' | '.join(heads)} | in memory |")
    print("|---" * (len(heads) + 3) + "|")
    with dml.num_threads(1):
        for chunks in chunkings:
            for what, calls in calls_on(x, chunks).items():
                check(calls)
                by_workers = [
                    timed(calls, workers, arguments.repeat) for workers in arguments.workers
                ]
                cells = [f"{times[name]:.0f}" if name in times else ""
                         for name in ("here", "dask") for times in by_workers]  # fmt: skip
                blocks = f"{arguments.rows // chunks[0]} × {COLUMNS // chunks[1]}"
                cells.append(f"{min(times['in memory'] for times in by_workers):.0f}")
                print(f"| {what} | {blocks} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
