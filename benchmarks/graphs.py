"""Compiled graphs: ``python -m benchmarks graphs``.

A chain of eight elementwise operations on 16 M floats beside a plain copy, NumPy, PyTorch and ONNX
Runtime, and networks on one picture. Every result is checked against the reference device first,
and a wrong one gets no time.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

import numpy as np

import anydml as dml
from anydml.devices.threads import get_num_threads
from benchmarks import machine
from benchmarks.jobs import Array
from benchmarks.measure import Budget, Contestant, PlainCopy, settle, take_turns
from benchmarks.networks import CASES, contestants, session

ELEMENTS: Final = 16 * 2**20
LOW, HIGH = -1.0, 2.0
MEASUREMENTS: Final = 5
SECONDS: Final = 0.1
"""Seconds of one measurement of processor time."""


@dataclass(frozen=True)
class Expected:
    """The gate: this library's results have the reference's bits, a peer's are close to them."""

    result: Array

    def problem(self, results: tuple[Array, ...], strict: bool) -> str | None:
        """What is wrong with the results, or None."""
        (got,) = results
        if got.shape != self.result.shape or got.dtype != self.result.dtype:
            return f"expected {self.result.dtype}{self.result.shape}, got {got.dtype}{got.shape}"
        if strict:
            return None if got.tobytes() == self.result.tobytes() else "wrong values"
        return None if np.allclose(got, self.result, 1e-5, 1e-5) else "wrong values"


def chain(sizes: tuple[int, ...]) -> dml.GraphDesc:
    """Multiply, add, clip, subtract, multiply, ReLU, add, subtract."""
    graph = dml.GraphBuilder()
    x, y = (graph.input(name, dml.TensorDesc("FLOAT32", sizes)) for name in "xy")
    value = graph.clip(graph.add(graph.multiply(x, y), x), min=LOW, max=HIGH)
    value = graph.activation_relu(graph.multiply(graph.subtract(value, y), x))
    return graph.build(z=graph.subtract(graph.add(value, y), x))


def eager(x: Any, y: Any, clip: Callable[..., Any], relu: Callable[..., Any]) -> Any:
    """The chain on a library's arrays."""
    value = clip(x * y + x, LOW, HIGH)
    return relu((value - y) * x) + y - x


def on_arrays(sizes: tuple[int, ...], threads: int) -> tuple[list[Contestant], Expected]:
    """Everybody who can compute the chain, and what comes out."""
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=sizes).astype(np.float32) for _ in range(2))
    z = np.empty_like(x)
    desc = chain(sizes)
    compiled = dml.Device("cpu").compile_graph(desc)
    expected = Expected(dml.Device("reference").compile_graph(desc)(x=x, y=y)["z"])

    def dispatch() -> Array:
        compiled.dispatch(x=x, y=y, z=z)
        return z

    def single(result: Any) -> tuple[Array, ...]:
        return (np.asarray(result),)

    found = [
        Contestant("anydml", "dispatch", dispatch, single, strict=True),
        Contestant("NumPy", "", lambda: eager(x, y, np.clip, lambda v: np.maximum(v, 0)), single),
    ]
    if find_spec("jax"):
        on_xla = dml.Device("xla").compile_graph(desc)
        found.append(Contestant("anydml", "xla", lambda: on_xla(x=x, y=y)["z"], single))
    if find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
        tx, ty = torch.from_numpy(x), torch.from_numpy(y)
        found.append(
            Contestant("PyTorch", "", lambda: eager(tx, ty, torch.clip, torch.relu), single)
        )
    if find_spec("onnxruntime") and find_spec("onnx"):
        onnx = session(dml.to_onnx(desc), threads)
        found.append(
            Contestant("ONNX Runtime", "", lambda: onnx.run(None, {"x": x, "y": y})[0], single)
        )
    return found, expected


def processor_seconds(contestant: Contestant) -> float:
    """What a call takes of all processors together, which other programs disturb less."""
    times = []
    for _ in range(MEASUREMENTS):
        settle(contestant.call)
        begin, used, calls = time.perf_counter(), time.process_time(), 0
        while not calls or time.perf_counter() - begin < SECONDS:
            contestant.call()
            calls += 1
        times.append((time.process_time() - used) / calls)
    return statistics.median(times)


def lines(budget: Budget) -> Iterator[str]:
    """The results, a table for each case."""
    threads = get_num_threads()
    copies = PlainCopy(threads)
    networks = CASES if find_spec("onnx") else {}
    for title in ("eight elementwise operations, 16 M floats", *networks):
        copied = title not in networks
        found, expected = on_arrays((ELEMENTS,), threads) if copied else contestants(title, threads)
        for contestant in found:
            contestant.pass_gate(expected)  # type: ignore[arg-type]  # a gate of another job
        peers = copies.contestants(2 * expected.result.nbytes)[:1] if copied else []
        take_turns([*found, *peers], budget)
        yield f"\n{title}"
        copy = peers[0].statistic("minimum") if peers else 0.0
        for contestant in (*peers, *found):
            if contestant.problem:
                yield f"  {contestant.label:<22} {contestant.problem}"
                continue
            seconds = contestant.statistic("minimum")
            times = f" {seconds / copy:8.1f} copies" if copy else ""
            cpu = f", CPU {1e6 * processor_seconds(contestant):12.1f} us"
            yield f"  {contestant.label:<22} {1e6 * seconds:12.1f} us{times}{cpu}"
    copies.close()


def main(budget: Budget) -> None:
    """Print the machine and the results."""
    print(machine.in_one_line(machine.describe([])))
    for line in lines(budget):
        print(line, flush=True)
