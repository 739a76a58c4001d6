"""Write the measured tables of README.md, docs/performance.md and docs/gpu.md.

    python -m benchmarks.show

They show `benchmarks/results.json` and, on docs/gpu.md, `benchmarks/gpu-h100.json`, which are what
`python -m benchmarks --json` wrote; a test compares.
Run this after a new measurement: ``python -m benchmarks --json benchmarks/results.json``, with
every peer installed and nothing else on the machine.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks import stored
from benchmarks.report import Outcome, as_markdown

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = ROOT / "benchmarks" / "results.json"
README: Final = ROOT / "README.md"
PAGE: Final = ROOT / "docs" / "performance.md"
GPU_RESULTS: Final = ROOT / "benchmarks" / "gpu-h100.json"
GPU_PAGE: Final = ROOT / "docs" / "gpu.md"

# One or two for each operator, among them what is not faster than everybody else.
REPRESENTATIVE: Final = (
    "top_k/1024x50257-k50",
    "top_k/1M-k500000",
    "nonzero/4096x4096-50%",
    "scatter/4096x4096-axis1",
    "scatter_nd/1Mx64-from-100k-rows",
    "split/4096x12288-axis1-3",
    "gather/50257x768-8192-rows",
    "gather_elements/1024x50257-50",
    "gather_nd/4096x4096-4M-scalars",
    "join/3-of-4096x4096-axis1",
)


def document() -> dict[str, Any]:
    """The stored results."""
    found: dict[str, Any] = json.loads(RESULTS.read_bytes())
    return found


def measured(results: Mapping[str, Any]) -> list[Outcome]:
    """The cases of the table."""
    return [o for o in stored.outcomes_in(results) if o.suite.name == "table"]


def representative(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The rows of the README, at most ten."""
    return [o for o in outcomes if o.case.name in REPRESENTATIVE]


def pages(results: Mapping[str, Any]) -> dict[Path, str]:
    """The text of each page that shows a table."""
    outcomes, described = measured(results), results["machine"]
    tables = {
        README: as_markdown(described, representative(outcomes), outcomes),
        PAGE: as_markdown(described, outcomes),
    }
    gpu = json.loads(GPU_RESULTS.read_bytes())
    tables[GPU_PAGE] = as_markdown(gpu["machine"], measured(gpu))
    return {path: _replaced(path.read_text(), table) for path, table in tables.items()}


def _replaced(text: str, table: str) -> str:
    block = re.compile(r"(<!-- bench:begin -->\n).*?(<!-- bench:end -->)", re.DOTALL)
    if len(block.findall(text)) != 1:
        raise ValueError("expected one block between bench:begin and bench:end")
    return block.sub(lambda match: f"{match[1]}{table}{match[2]}", text)


def main() -> None:
    """Write the pages."""
    for path, text in pages(document()).items():
        path.write_text(text)


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
