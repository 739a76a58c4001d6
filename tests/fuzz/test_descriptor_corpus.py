"""What the fuzzer of descriptors has kept goes through without a finding."""

import random

import pytest

from fuzz import corpora
from fuzz.targets import descriptor

pytestmark = pytest.mark.slow


def test_corpus():
    inputs = corpora.inputs("descriptor")
    assert len(inputs) > 100
    for name, data in inputs.items():
        try:
            descriptor.run(data)
        except Exception as error:
            error.add_note(name)
            raise


def test_random_bytes():
    generator = random.Random(8)
    for _ in range(300):
        descriptor.run(generator.randbytes(generator.choice([0, 40, 120, 240])))


def test_a_wrong_result_is_found(monkeypatch):
    """The target can fail: of random bytes, some reach a comparison."""
    right = descriptor.by_reference

    def wrong(desc, arrays):
        results = right(desc, arrays)
        for value in results.values():
            for array in value if isinstance(value, list) else [value]:
                array.view(f"u{array.itemsize}").flat[0] ^= 1
        return results

    monkeypatch.setattr(descriptor, "by_reference", wrong)
    generator = random.Random(8)
    found = 0
    for _ in range(60):
        try:
            descriptor.run(generator.randbytes(120))
        except AssertionError:
            found += 1
    assert found > 10
