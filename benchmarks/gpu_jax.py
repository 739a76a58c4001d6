"""Compare kernels in jitted JAX programs on a GPU with calls on CuPy arrays and XLA's operations.

Run it on a machine with a GPU, JAX and CuPy: ``python -m benchmarks.gpu_jax``. A time is the least
of some rounds: the wall time of calls whose end is waited for once a round, by the call.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

import anydml as dml

Call = Callable[[], Any]
CALLS, ROUNDS = 100, 9
MOST = 1.3  # of our own time on CuPy's arrays


def shortest_times(calls: list[Call], wait: Callable[[Any], Any]) -> list[float]:
    """Seconds of one call of each, in rounds that take turns."""
    found = [float("inf")] * len(calls)
    for call in calls:
        for _ in range(10):
            wait(call())
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            begin = time.perf_counter()
            for _ in range(CALLS):
                result = call()
            wait(result)
            found[i] = min(found[i], (time.perf_counter() - begin) / CALLS)
    return found


def cases() -> list[tuple[str, Callable[..., Any], Callable[..., Any], list[Any]]]:
    """A name, our call, XLA's own, and the operands."""
    jax: Any = import_module("jax")
    rng = np.random.default_rng(1)

    def rows(*shape: int) -> np.ndarray[Any, Any]:
        return rng.standard_normal(shape, np.float32)

    side = 8192
    places = np.argsort(rng.random((side, side), np.float32), axis=1).astype(np.int32)
    numbers = np.arange(side)[:, None]
    return [
        ("top_k 1024x50257, k 50", lambda x: dml.top_k(x, 50, index_dtype="int32"),
         lambda x: jax.lax.top_k(x, 50), [rows(1024, 50_257)]),
        ("top_k 300x4000, k 9", lambda x: dml.top_k(x, 9, index_dtype="int32"),
         lambda x: jax.lax.top_k(x, 9), [rows(300, 4000)]),
        ("scatter 8192x8192, axis 1", lambda x, i, u: dml.scatter_elements(x, i, u, axis=1),
         lambda x, i, u: x.at[numbers, i].set(u), [rows(side, side), places, rows(side, side)]),
    ]  # fmt: skip


def main() -> None:
    """Print a line for each case; fail where a program takes longer than it may."""
    jax: Any = import_module("jax")
    cupy: Any = import_module("cupy")
    if jax.default_backend() != "gpu":
        raise SystemExit("JAX has no GPU here")

    def wait(result: Any) -> None:
        jax.block_until_ready(result)
        cupy.cuda.Device().synchronize()

    slow = []
    for name, ours, theirs, operands in cases():
        by_jax, by_cupy = (
            [jax.numpy.asarray(a) for a in operands],
            [cupy.asarray(a) for a in operands],
        )
        jitted, own = jax.jit(ours), jax.jit(theirs)
        calls: list[Call] = [
            partial(jitted, *by_jax),
            partial(ours, *by_cupy),
            partial(own, *by_jax),
            partial(ours, *by_jax),
        ]
        traced, cupy_s, xla, eager = shortest_times(calls, wait)
        if traced > MOST * cupy_s:
            slow.append(name)
        print(
            f"{name:28s} jitted {traced * 1e3:7.3f} ms  CuPy's arrays {cupy_s * 1e3:7.3f} ms  "
            f"({traced / cupy_s:.2f})  XLA's own {xla * 1e3:7.3f} ms  eager {eager * 1e3:7.3f} ms"
        )
    if slow:
        raise SystemExit(f"more than {MOST} times the time on CuPy's arrays: {', '.join(slow)}")


if __name__ == "__main__":
    main()
