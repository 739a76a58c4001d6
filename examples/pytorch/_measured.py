"""What the examples share: the same work by two libraries, in time and in repeatability."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

Work = Callable[[], Sequence[torch.Tensor]]


def arguments(text: str | None) -> argparse.Namespace:
    """Where to run, and whether on little."""
    parser = argparse.ArgumentParser(description=(text or "").partition("\n")[0])
    here = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=here, help="cuda where there is a GPU, else cpu")
    parser.add_argument("--small", action="store_true", help="less work; what a CPU gets anyway")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    options.small = options.small or options.device == "cpu"
    return options


def seconds(work: Callable[[], Any], runs: int, device: str) -> float:
    """The median time of a call; on a GPU between events, so that the host's share counts only
    where the GPU waits for it.
    """
    for _ in range(3):
        work()
    times = []
    for _ in range(runs):
        if device == "cpu":
            begin = time.perf_counter()
            work()
            times.append(time.perf_counter() - begin)
            continue
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        work()
        last.record()
        last.synchronize()
        times.append(first.elapsed_time(last) / 1e3)
    return statistics.median(times)


def kinds(work: Work, runs: int) -> int:
    """How many different results so many runs give, to the bit."""
    seen = {
        tuple(t.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes() for t in work())
        for _ in range(runs)
    }
    return len(seen)


def compare(title: str, ours: Work, theirs: Work, options: argparse.Namespace) -> None:
    """Print both; ours has to repeat itself."""
    print(f"{title}, on {options.device}:")
    for name, work in (("anydml", ours), ("PyTorch", theirs)):
        taken = seconds(work, options.runs, options.device)
        found = kinds(work, options.runs)
        again = "the same bits" if found == 1 else f"{found} different results"
        print(f"  {name:<8}{taken * 1e3:9.3f} ms   {again} in {options.runs} runs")
        if name == "anydml" and found != 1:
            raise SystemExit("expected the same bits in every run")
