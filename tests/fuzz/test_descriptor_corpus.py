"""What the fuzzer of descriptors has kept goes through without a finding."""

import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORPUS = sorted((ROOT / "fuzz" / "corpus" / "descriptor").iterdir())


@pytest.fixture(scope="module")
def descriptor():
    sys.path.insert(0, str(ROOT))
    from fuzz.targets import descriptor

    yield descriptor
    sys.path.remove(str(ROOT))


def test_corpus(descriptor):
    assert CORPUS
    for path in CORPUS:
        try:
            descriptor.run(path.read_bytes())
        except Exception as error:
            error.add_note(path.name)
            raise


def test_random_bytes(descriptor):
    generator = random.Random(8)
    for _ in range(300):
        descriptor.run(generator.randbytes(generator.choice([0, 40, 120, 240])))


def test_a_wrong_result_is_found(descriptor, monkeypatch):
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
