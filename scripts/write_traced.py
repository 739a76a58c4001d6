"""Write which operators Device("onnxruntime") traces, by data type, or why it does not.

    python scripts/write_traced.py > tests/conformance/onnxruntime_traced.tsv

A type is that of the operator's first tensor. Of each, descriptors are chosen at random; an
operator that is traced for some of them only has the reason behind "in part".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from anydml.devices.backends.onnxruntime import why_not_traced
from anydml.ops._registry import OPERATORS, computation
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor

FEWEST, MOST = 12, 400
"""Descriptors of an operator: at least, and at most, until each type was chosen."""


def rows(kind: type) -> Iterator[tuple[str, str, str]]:
    """Name, type and state of an operator for each type."""
    (first, *_) = kind.tensor_fields()
    types = sorted(kind.SUPPORT[-1].tensors[first.name].data_types)
    found: dict[str, set[str]] = {data_type.name: set() for data_type in types}
    for seed in range(MOST):
        if seed >= FEWEST and all(found.values()):
            break
        desc = descriptor(Seeded(seed), kind)
        program = desc.lower()
        specs = {
            s.name: s.spec for s in (*program.inputs, *program.outputs, *program.intermediates)
        }
        name = next(iter(desc.tensors()))[1].data_type.name
        for call in program.calls:
            operands = (tuple(n and specs[n] for n in s) for s in (call.inputs, call.outputs))
            why = why_not_traced(call.kernel, call.attributes, *operands)
            found.setdefault(name, set()).add(why or "traced")
    for name, states in found.items():
        reasons = sorted(states - {"traced"})
        state = "; ".join(reasons) if reasons else "traced" if states else "not chosen"
        yield kind.NAME, name, f"in part: {state}" if reasons and "traced" in states else state


def traced_kinds() -> list[type]:
    """The operators that have a computation."""
    kinds = dict.fromkeys(OPERATORS.values())
    return [kind for kind in kinds if computation(kind.KERNEL) is not None]


def main() -> None:
    """Print the table."""
    for kind in traced_kinds():
        for row in rows(kind):
            print(*row, sep="\t")


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    main()
