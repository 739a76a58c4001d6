"""The table of ONNX operators against what ONNX Runtime's DirectML provider registers."""

import csv
from pathlib import Path

import pytest

from anydml.onnx.table import HOST, ROWS

FACTS = list(
    csv.DictReader(
        Path(__file__).with_name("facts.tsv").read_text(encoding="utf-8").splitlines(),
        delimiter="\t",
    )
)

ABSENT = {("", "GroupNorm")}
"""An operator that the provider registers under a name that ONNX does not have."""


def by_version(text):
    """``[7] T=f16 / [8] T=f16 f32`` as a dict."""
    found = {}
    for part in filter(None, text.replace("; [", " / [").split(" / ")):
        version, _, rest = part.partition("] ")
        found[int(version[1:])] = rest
    return found


def at(table, version):
    return next((table[v] for v in sorted(table, reverse=True) if v <= version), "")


def types_of(text):
    parts = (part.partition("=") for part in text.split(";") if part)
    return {name.strip(): set(types.split()) for name, _, types in parts}


def test_every_fact_has_a_row_and_every_row_a_fact():
    known = {(fact["domain"], fact["operator"]) for fact in FACTS}
    assert known >= ABSENT
    assert {key for key in known - ABSENT if key[1] not in HOST} == ROWS.keys()


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact["operator"])
def test_versions_types_and_constants_are_those_of_the_provider(fact):
    row = ROWS.get((fact["domain"], fact["operator"]))
    if row is None:
        assert fact["operator"] in HOST or (fact["domain"], fact["operator"]) in ABSENT
        return
    versions = tuple(map(int, fact["versions"].split(",")))
    assert row.versions == versions
    types, constants = by_version(fact["types"]), by_version(fact["constants"])
    for version in versions:
        registered = {name: set(found) for name, found in row.types_at(version).items()}
        assert registered == types_of(at(types, version))
        positions = at(constants, version)
        expected = tuple(map(int, positions.split(","))) if positions else ()
        assert row.constants_at(version) == expected
    assert {True: "yes", False: "no", "pair": "pair"}[row.graph] == fact["graph"]
    assert (row.lower is None) == (fact["kind"] == "d")
