"""Compare the host time of calls on 16 elements on a GPU with the arrays' own libraries.

Run it on a machine with a GPU: ``python -m benchmarks.gpu_small_calls``. Ours and theirs take
turns; a time is the least of some rounds of calls, whose end is waited for. The first lines are the
floor: what a new array, and a launch of a kernel that does nearly nothing, cost PyTorch itself.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import anydml as dml

Call = Callable[[], Any]
CALLS, ROUNDS = 300, 9


def shortest_times(calls: list[Call], wait: Call) -> list[float]:
    """Seconds of one of each, the least of several rounds that take turns."""
    found = [float("inf")] * len(calls)
    for call in calls:
        for _ in range(50):
            call()
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            wait()
            begin = time.perf_counter()
            for _ in range(CALLS):
                call()
            wait()
            found[i] = min(found[i], (time.perf_counter() - begin) / CALLS)
    return found


def print_row(name: str, ours: Call, theirs: Call, wait: Call) -> None:
    """A line of the table."""
    a, b = shortest_times([ours, theirs], wait)
    print(f"{name:28s} anydml {a * 1e6:7.2f} us   its own {b * 1e6:7.2f} us   {a / b:.2f}")
    sys.stdout.flush()


def inputs() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Values, a permutation, and values of which some are zero."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(16).astype(np.float32)
    return x, rng.permutation(16), x * (x > 0)


def torch_calls() -> None:
    """PyTorch's tensors."""
    torch: Any = import_module("torch")
    x, i, z = (torch.from_numpy(a).cuda() for a in inputs())
    wait = torch.cuda.synchronize
    empty = torch.empty(0, device="cuda")
    one = torch.zeros(1, device="cuda")
    launch_time = shortest_times(
        [lambda: torch.empty(16, device="cuda"), empty.zero_, one.zero_], wait
    )
    for name, seconds in zip(
        ("an array", "no launch", "a launch by PyTorch"), launch_time, strict=True
    ):
        print(f"torch {name:22s} {seconds * 1e6:7.2f} us")
    cases: dict[str, tuple[Call, Call]] = {
        "top_k": (lambda: dml.top_k(x, 4), lambda: torch.topk(x, 4)),
        "nonzero": (lambda: dml.nonzero_coordinates(z), lambda: torch.nonzero(z)),
        "split": (lambda: dml.split(x, 4), lambda: [p.clone() for p in torch.split(x, 4)]),
        "join": (lambda: dml.join([x, x]), lambda: torch.cat([x, x])),
        "cast": (lambda: dml.cast(x, "int32"), lambda: x.to(torch.int32)),
        "gather": (lambda: dml.gather(x, i), lambda: torch.index_select(x, 0, i)),
        "gather_elements": (
            lambda: dml.gather_elements(x, i, axis=0),
            lambda: torch.gather(x, 0, i),
        ),
        "scatter": (
            lambda: dml.scatter_elements(x, i, z, axis=0),
            lambda: torch.scatter(x, 0, i, z),
        ),
    }
    for name, (ours, theirs) in cases.items():
        print_row(f"torch {name}", ours, theirs, wait)


def cupy_calls() -> None:
    """CuPy's arrays."""
    cupy: Any = import_module("cupy")
    x, i, z = map(cupy.asarray, inputs())
    wait = cupy.cuda.get_current_stream().synchronize
    cases: dict[str, tuple[Call, Call]] = {
        "top_k / argsort, take": (lambda: dml.top_k(x, 4), lambda: x[cupy.argsort(-x)[:4]]),
        "nonzero / argwhere": (lambda: dml.nonzero_coordinates(z), lambda: cupy.argwhere(z)),
        "split": (lambda: dml.split(x, 4), lambda: [p.copy() for p in cupy.split(x, 4)]),
        "join": (lambda: dml.join([x, x]), lambda: cupy.concatenate([x, x])),
        "cast": (lambda: dml.cast(x, "int32"), lambda: x.astype("int32")),
        "gather / take": (lambda: dml.gather(x, i), lambda: cupy.take(x, i)),
        "gather_elements": (
            lambda: dml.gather_elements(x, i, axis=0),
            lambda: cupy.take_along_axis(x, i, 0),
        ),
        "cupy.empty": (lambda: cupy.empty(16, "f4"), lambda: cupy.ndarray((16,), "f4")),
    }
    for name, (ours, theirs) in cases.items():
        print_row(f"cupy {name}", ours, theirs, wait)


def jax_calls() -> None:
    """JAX arrays, compared with JAX's own jitted functions."""
    jax: Any = import_module("jax")
    jnp = jax.numpy
    if jax.default_backend() != "gpu":
        print("JAX has no GPU here")
        return
    x, i, z = map(jnp.asarray, inputs())
    top_k = jax.jit(lambda x: jax.lax.top_k(x, 4))
    join = jax.jit(lambda x: jnp.concatenate([x, x]))
    cast = jax.jit(lambda x: x.astype("int32"))
    take = jax.jit(jnp.take)
    scatter = jax.jit(lambda x, i, z: x.at[i].set(z))
    split = jax.jit(lambda x: jnp.split(x, 4))

    def done(call: Call) -> Call:
        return lambda: jax.block_until_ready(call())

    cases: dict[str, tuple[Call, Call]] = {
        "top_k": (lambda: dml.top_k(x, 4), done(lambda: top_k(x))),
        "nonzero": (lambda: dml.nonzero_coordinates(z), done(lambda: jnp.argwhere(z))),
        "split": (lambda: dml.split(x, 4), done(lambda: split(x))),
        "join": (lambda: dml.join([x, x]), done(lambda: join(x))),
        "cast": (lambda: dml.cast(x, "int32"), done(lambda: cast(x))),
        "gather": (lambda: dml.gather(x, i), done(lambda: take(x, i))),
        "scatter": (
            lambda: dml.scatter_elements(x, i, z, axis=0),
            done(lambda: scatter(x, i, z)),
        ),
    }
    for name, (ours, theirs) in cases.items():
        print_row(f"jax {name}", ours, theirs, lambda: None)


def main() -> None:
    """All libraries that are here."""
    for calls in (torch_calls, cupy_calls, jax_calls):
        try:
            calls()
        except Exception as error:
            print(f"{calls.__name__}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
