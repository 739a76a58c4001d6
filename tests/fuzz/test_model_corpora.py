"""What the fuzzers of models and `.npy` files have kept goes through without a finding.

Whatever fails here failed under the fuzzer: an exception that is not the library's own, a line that
is none, a file touched that is not the model's, more than a second or 256 MiB.
"""

import pytest

from fuzz import corpora
from fuzz.targets import model, npy

pytestmark = pytest.mark.slow

TARGETS = {"model": model, "npy": npy}


@pytest.mark.parametrize("target", TARGETS)
def test_corpus(target):
    inputs = corpora.inputs(target)
    assert len(inputs) > 10
    for name, data in inputs.items():
        try:
            TARGETS[target].run(data)
        except Exception as error:
            raise AssertionError(f"{target}: {name} is a finding") from error


def test_the_mutator_makes_models():
    seed = corpora.inputs("model")["split_all"]
    mutants = {
        model.mutated(seed, 4096, i, lambda data, maximum: data[:maximum]) for i in range(300)
    }
    assert len(mutants) > 200
    for data in mutants:
        model.run(data)


def test_an_archive_holds_what_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(corpora, "FOLDER", tmp_path)
    (tmp_path / "corpus").mkdir()
    corpora.findings("x").mkdir(parents=True)
    (corpora.findings("x") / "crash").write_bytes(b"3")
    kept = {"b": b"", "a": bytes(range(256))}
    corpora.write("x", kept)
    first = corpora.archive("x").read_bytes()
    assert corpora.inputs("x") == kept | {"crash": b"3"}
    corpora.write("x", dict(reversed(kept.items())))
    assert corpora.archive("x").read_bytes() == first


@pytest.mark.parametrize(
    ("target", "broken"),
    [("model", "anydml.models.document.Folder.of"), ("npy", "anydml.models.formats._dtype")],
)
def test_an_exception_of_another_kind_is_a_finding(target, broken, monkeypatch):
    def fail(*_):
        raise KeyError("broken")

    monkeypatch.setattr(broken, fail)
    found = 0
    for data in corpora.inputs(target).values():
        try:
            TARGETS[target].run(data)
        except KeyError:
            found += 1
    assert found > 5
