"""Accepted exactly where the pages' tables say: operator × level × data type × rank.

The tables are data, which test_pages.py judges; here it is judged what the check makes of them.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import settings

import anydml as dml
from anydml.core.problems import members
from anydml.core.rules import find_violations
from anydml.ops._deviations import observed
from anydml.ops._fields import EnumerationKind, NestedKind
from anydml.ops._pages import PAGES
from anydml.ops._registry import OPERATORS
from anydml.suite.breakages import replaced
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from support.made import shared

KINDS = list(dict.fromkeys(OPERATORS.values()))
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
DEVICES = {level: dml.Device("cpu", feature_level=level) for level in sorted(dml.FeatureLevel)}
SEEDS = range(min(8, settings.default.max_examples // 2))
LATEST = max(DEVICES)
PAGE_LEVELS = dict(
    line.split("\t")
    for line in Path(__file__).with_name("page_levels.tsv").read_text().splitlines()[1:]
)


@pytest.mark.parametrize("operator", PAGES)
def test_every_level_of_the_newest_page_has_a_row(operator):
    """The tables may be transcribed from an outdated page; this list is not."""
    got = ",".join(sorted({row.level.suffix for row in PAGES[operator].support}))
    assert got == PAGE_LEVELS[operator]


def test_levels_are_the_documented_ones_in_order():
    assert [level.suffix for level in DEVICES] == [
        "1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2", "6_0", "6_1", "6_2",
        "6_3", "6_4",
    ]  # fmt: skip


@every_kind
def test_what_a_row_accepts_those_above_it_do(kind):
    assert dml.support(kind) == dml.support(kind.NAME) == PAGES[kind.NAME].support
    for below, above in pairwise(row for row in kind.SUPPORT if not row.when):
        for name, tensor in below.tensors.items():
            assert set(tensor.ranks) <= set(above.tensors[name].ranks)
            assert set(tensor.data_types) <= set(above.tensors[name].data_types)


def table_of(desc):
    """The rows that are for the descriptor's attributes."""
    attributes = {info.name: getattr(desc, info.attribute) for info in desc.fields()}
    return [
        row
        for row in desc.SUPPORT
        if all(dml_name(attributes[name]) in members for name, members in row.when.items())
    ]


def dml_name(value):
    return getattr(value, "suffix", value)


def refused_at(desc, level):
    """Paths of what the row of a level does not accept; None below the operator's first level."""
    rows = [row for row in table_of(desc) if row.level <= level]
    if not rows:
        return None
    found = set()
    for path, tensor, info in desc.tensors():
        accepted = rows[-1].tensors[info.name]
        if tensor.dimension_count not in accepted.ranks:
            found.add(f"{desc.NAME}.{path}.DimensionCount")
        if tensor.data_type not in accepted.data_types:
            found.add(f"{desc.NAME}.{path}.DataType")
    for info in desc.fields():
        value = getattr(desc, info.attribute)
        if isinstance(info.kind, EnumerationKind):
            if dict(info.kind.later).get(value.suffix, level) > level:
                found.add(f"{desc.NAME}.{info.name}")
        elif isinstance(info.kind, NestedKind) and value is not None:
            for nested in value if info.kind.many else (value,):
                if nested.nested_since() > level:
                    found.add(f"{desc.NAME}.{info.name}.FeatureLevel")
    known = desc.without(*(members(path.partition(".")[2]) for path in found))
    rules = find_violations(known.rules_at(level))
    return found | {f"{desc.NAME}.{violation.path}" for violation in rules}


@every_kind
def test_valid_descriptors_at_every_level(kind):
    """Those that each row accepts, at each level; and the first level that does."""
    for row in kind.SUPPORT:
        for seed in SEEDS:
            desc = descriptor(Seeded(row.level, seed), kind, row.level)
            accepting = []
            for level, device in DEVICES.items():
                refused, found = refused_at(desc, level), device.check(desc)
                if refused is None:
                    first = kind.SUPPORT[0].level
                    assert found[0].path == f"{kind.NAME}.FeatureLevel"
                    assert found[0].rule.startswith(f"{first} or above")
                    assert found[0].got == level
                    continue
                assert {violation.path for violation in found} == refused, (level, desc)
                if not refused:
                    accepting.append(level)
            assert row.level in accepting
            assert DEVICES[row.level].minimum_feature_level(desc) == accepting[0]


def edges(table):
    """The first and the last level of each row."""
    first = [row.level for row in table]
    return [a for a, b in pairwise(DEVICES) if first[0] <= a and {a, b} & {*first}] + [LATEST]


@every_kind
def test_each_type_and_rank_of_each_tensor(kind):
    """What one tensor alone may not have is refused for it, and the hint is the first level."""
    desc = shared(kind, 1, packed=True)
    for path, tensor, info in desc.tensors():
        others = [dml.TensorDesc(kind_, tensor.sizes) for kind_ in dml.DataType]
        others += [
            dml.TensorDesc(tensor.data_type, ((1,) * rank + tensor.sizes)[-rank:])
            for rank in range(1, 9)
        ]
        for other in others:
            wrong = replaced(desc, path, other)
            table = table_of(wrong)
            for level in edges(table):
                rows = [row for row in table if row.level <= level]
                accepted = rows[-1].tensors[info.name]
                output = {
                    violation.path.rpartition(".")[2]: without_advice(violation.rule)
                    for violation in DEVICES[level].check(wrong)
                    if violation.path.startswith(f"{kind.NAME}.{path}.")
                    and f"at feature level {level} " in violation.rule
                }
                expected = {}
                if other.data_type not in accepted.data_types:
                    types = ", ".join(map(str, accepted.data_types))
                    one_of = "one of " if len(accepted.data_types) > 1 else ""
                    hint = first_of(table, info.name, "data_types", other.data_type)
                    expected["DataType"] = f"{one_of}{types} at feature level {level} ({hint})"
                if kind.ONE_DIMENSION_COUNT and len([*desc.tensors()]) > 1:
                    output.pop("DimensionCount", None)  # that of the other tensors may be named
                elif other.dimension_count not in accepted.ranks:
                    low, high = accepted.ranks[0], accepted.ranks[-1]
                    span = f"{low}..{high}" if low < high else f"{low}"
                    hint = first_of(table, info.name, "ranks", other.dimension_count)
                    expected["DimensionCount"] = f"{span} at feature level {level} ({hint})"
                got = {"DataType": other.data_type, "DimensionCount": other.dimension_count}
                for name in list(expected):  # what DirectML accepts all the same
                    violation = dml.Violation(f"{path}.{name}", expected[name], got[name])
                    if observed(kind.NAME, violation, level) is not None:
                        del expected[name]
                assert output == expected


def without_advice(rule):
    """A rule without the other operator that it names (tests/ops/test_fused.py)."""
    return re.sub(r"; \w+, without .*\)$", ")", rule)


def first_of(table, name, column, got):
    """The hint of a refusal: the first level that accepts."""
    levels = [row.level for row in table if got in getattr(row.tensors[name], column)]
    return f"{got} from {levels[0]}" if levels else f"{got} at no level"


def test_aliases():
    assert dml.ScatterElements is dml.Scatter
    assert dml.support("SCATTER_ELEMENTS") == dml.support("DML_OPERATOR_SCATTER")
