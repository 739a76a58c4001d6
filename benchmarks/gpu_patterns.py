"""Every order and tie pattern on a GPU, compared with PyTorch on the same input.

    python -m benchmarks.gpu_patterns [--json FILE] [CASE ..]

The cases are those of `python -m benchmarks --device cuda --suite adversarial`; here nothing is
checked, which takes most of that suite's time, and PyTorch is timed on each pattern too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks import gpu_cases, recipes
from benchmarks.cases import Case, chosen
from benchmarks.gpu import Gpu
from benchmarks.measure import Budget


def measured(gpu: Gpu, case: Case, pattern: str) -> dict[str, Any]:
    """The medians in ms, ours and PyTorch's fastest way."""
    job = case.job(pattern)
    ours = gpu.function(job)
    # PyTorch's kernels end the process on indices below 0.
    theirs = [] if pattern == "negative" else gpu.peers(1)[0].contestants(job)
    gpu.take_turns([ours, *theirs], Budget(7, 0.1))
    times = [one.statistic("median") * 1e3 for one in theirs if not one.problem]
    return {
        "case": case.title,
        "pattern": pattern,
        "ms": round(ours.statistic("median") * 1e3, 5),
        "torch_ms": round(min(times), 5) if times else None,
    }


def main() -> None:
    """Print a line for each case, and write all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="names as 'scatter*'")
    options = parser.parse_args()
    gpu = Gpu()
    rows: list[dict[str, Any]] = []
    for case in chosen(gpu_cases.adversarial(), options.cases):
        measurements = [
            measured(gpu, case, pattern) for pattern in recipes.patterns(case.operation, case.dtype)
        ]
        rows += measurements
        usual = measurements[0]["ms"]
        slowest = max(measurements, key=lambda row: float(row["ms"]))
        compared = [row for row in measurements if row["torch_ms"]]
        worst = min(compared, key=lambda row: float(row["torch_ms"] / row["ms"]), default=None)
        summary = (
            f"; least against PyTorch {worst['torch_ms'] / worst['ms']:.2f} ({worst['pattern']})"
            if worst
            else ""
        )
        print(
            f"{case.title:32} random {usual:.4f} ms, slowest {slowest['ms'] / usual:.2f} times "
            f"({slowest['pattern']}){summary}",
            flush=True,
        )
        if options.json:  # each time: a run may be ended early
            options.json.write_text(json.dumps({"gpu": gpu.describe(), "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
