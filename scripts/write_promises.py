"""Write docs/promises.md and the README's table of promises: what `anydml judge` finds here.

Run it where the libraries are installed, when one of them has a new version. It takes minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from anydml.judge import Answer, judge
from anydml.judge.libraries import versions_here
from anydml.judge.report import cell, report

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "promises.md"
README: Final = ROOT / "README.md"
BEGIN, END = "<!-- Written by scripts/write_promises.py. -->\n", "<!-- End. -->\n"

LIBRARIES: Final = {"anydml": "anydml", "numpy": "NumPy", "torch": "PyTorch",
                    "onnxruntime": "ONNX Runtime", "jax": "JAX"}  # fmt: skip
ROWS: Final = {
    ("top_k", "ties"): "top-k: equal elements in the order of their indices",
    ("top_k", "NaN"): "top-k: NaN is the largest, whatever its sign bit",
    ("top_k", "zeros"): "top-k: −0 and +0 are equal",
    ("scatter", "last wins"): "scatter: of several updates of one element, the last wins",
    ("scatter", "negative"): "scatter: negative indices count from the end",
    ("scatter", "bad index"): "scatter: an index out of range is an error",
    ("scatter_into", "unchanged"): "… and the array that was to be written is unchanged",
    ("scatter_add", "threads"): "sums of floats: the same bits at any number of threads",
}

HEAD: Final = """\
# What array functions promise

`anydml judge` found these answers on the CPU, with NumPy arrays for anydml. anydml makes all of
these promises. [Judge a top-k](guides/judge-top-k.md) says how to try a function of your own.

"""


def page(answers: Sequence[Answer]) -> str:
    """The page with all tables."""
    lines = "\n".join(report(answers, versions_here(), True))
    return f"{HEAD}{BEGIN}\n{lines}\n\n{END}"


def readme_table(answers: Sequence[Answer]) -> Iterator[str]:
    """The lines of the README's table."""
    versions = versions_here()
    by_place = {(a.library, a.promise.function, a.promise.name): a for a in answers}
    title = [f"{text} {versions[name]}" for name, text in LIBRARIES.items() if name != "anydml"]
    yield f"| | anydml | {' | '.join(title)} |"
    yield f"|{'---|' * (2 + len(title))}"
    for place, text in ROWS.items():
        cells = [cell(by_place[name, *place], True) for name in LIBRARIES]
        yield f"| {text} | {' | '.join(cells)} |"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    answers = judge()
    PAGE.write_text(page(answers), encoding="utf-8")
    before, _, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = "\n".join(readme_table(answers))
    README.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
