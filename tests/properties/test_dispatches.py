"""Generated dispatches against NumPy's own operations: `scripts/dispatches.py` runs a million."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import anydml as dml
from anydml.lifecycle import CompiledOperator
from anydml.ops._computed import Computed
from anydml.registry import OPERATORS

pytestmark = pytest.mark.slow

SCRIPTS = str(Path(__file__).parents[2] / "scripts")


@pytest.fixture(scope="module")
def dispatches():
    sys.path.insert(0, SCRIPTS)
    import dispatches

    yield dispatches
    sys.path.remove(SCRIPTS)


def test_two_thousand(dispatches):
    counts = Counter()
    for number in range(2):
        dispatches.run_chunk(1, number, counts)
    assert sum(counts.values()) - counts["bad indices"] == 2 * dispatches.CHUNK
    assert counts["bad indices"] > 20
    native = {kind for kind in OPERATORS.values() if not issubclass(kind, Computed)}
    assert len(counts) == len(native) + 1, "every operator with a kernel, and bad indices"


@pytest.mark.heavy
def test_a_hundred_thousand(dispatches):
    for number in range(100):
        dispatches.run_chunk(2, number, Counter())


def wrong_value(outputs):
    outputs[0].view(f"u{outputs[0].itemsize}").flat[0] ^= 1


def wrong_gap(outputs):
    base = outputs[0]
    while base.base is not None:
        base = base.base
    base.view(np.uint8)[-1] ^= 1


def raises_nothing(outputs):
    pass


@pytest.mark.parametrize("fault", [wrong_value, wrong_gap, raises_nothing])
def test_a_fault_is_found(dispatches, monkeypatch, fault):
    """The comparison can fail: each kind of fault is seen within a chunk."""
    plain = CompiledOperator.dispatch

    def faulty(self, **bindings):
        try:
            plain(self, **bindings)
        except dml.IndexOutOfRangeError:
            if fault is not raises_nothing:
                raise
            return
        names = [info.name for info in self.desc.tensor_fields() if "Output" in info.name]
        outputs = bindings[names[0]]
        fault(outputs if isinstance(outputs, list) else [outputs])

    monkeypatch.setattr(CompiledOperator, "dispatch", faulty)
    with pytest.raises(AssertionError):
        dispatches.run_chunk(3, 0, Counter())
