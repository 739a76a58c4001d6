"""What the fuzzers of models and `.npy` files have kept goes through without a finding.

Whatever fails here failed under the fuzzer: an exception that is not the library's own, a line that
is none, a file touched that is not the model's, more than a second or 256 MiB.
"""

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def target(request, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module(f"fuzz.targets.{request.param}")


@pytest.mark.parametrize("target", ["model", "npy"], indirect=True, ids=str)
def test_corpus(target):
    name = target.__name__.rpartition(".")[2]
    inputs = sorted((ROOT / "fuzz" / "corpus" / name).iterdir())
    assert len(inputs) > 10
    for path in inputs:
        try:
            target.run(path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path.relative_to(ROOT)} is a finding") from error


@pytest.mark.parametrize("target", ["model"], indirect=True, ids=str)
def test_the_mutator_makes_models(target):
    seed = (ROOT / "fuzz" / "corpus" / "model" / "split_all").read_bytes()
    made = {target.mutated(seed, 4096, i, lambda data, most: data[:most]) for i in range(300)}
    assert len(made) > 200
    for data in made:
        target.run(data)


@pytest.mark.parametrize(
    ("target", "broken"),
    [("model", "anydml.models.loader.Folder.of"), ("npy", "anydml.models.npy._dtype")],
    indirect=["target"],
    ids=str,
)
def test_an_exception_of_another_kind_is_a_finding(target, broken, monkeypatch):
    name = target.__name__.rpartition(".")[2]
    inputs = sorted((ROOT / "fuzz" / "corpus" / name).iterdir())

    def fail(*_):
        raise KeyError("broken")

    monkeypatch.setattr(broken, fail)
    found = 0
    for path in inputs:
        try:
            target.run(path.read_bytes())
        except KeyError:
            found += 1
    assert found > 5
