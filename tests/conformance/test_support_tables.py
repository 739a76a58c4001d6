"""Accepted exactly where the pages' tables say: operator × level × data type × rank."""

from functools import cache
from itertools import pairwise, product
from pathlib import Path

import pytest
from good_descriptors import CLASSES, INDEX_TENSORS, descriptor, fields_of, padded, types_of
from support_tables import LEVELS, TABLES, TYPES, accepts, lowest_level, row_at

import anydml as dml
from anydml.ops._pages import PAGES

RANKS = range(1, 9)
PAGE_LEVELS = dict(
    line.split("\t")
    for line in Path(__file__).with_name("page_levels.tsv").read_text().splitlines()[1:]
)


@cache
def device(level):
    return dml.Device("cpu", feature_level=level)


@pytest.mark.parametrize("operator", TABLES)
def test_table_as_data(operator):
    got = {
        row.level.suffix: {
            name: (set(tensor.ranks), {str(kind) for kind in tensor.data_types})
            for name, tensor in row.tensors.items()
        }
        for row in dml.support(operator)
    }
    assert got == TABLES[operator]
    # What a row accepts those above it do: a refusal names the first that accepts.
    for below, above in pairwise(TABLES[operator].values()):
        for name, (ranks, types) in below.items():
            assert ranks <= above[name][0]
            assert types <= above[name][1]
    assert dml.support(CLASSES[operator]) == dml.support(operator)


@pytest.mark.parametrize("operator", PAGES)
def test_every_level_of_the_newest_page_has_a_row(operator):
    """`TABLES` may be transcribed from the same outdated page as `SUPPORT`; this list is not."""
    got = ",".join(sorted({row.level.suffix for row in PAGES[operator].support}))
    assert got == PAGE_LEVELS[operator]


def test_levels_are_the_documented_ones_in_order():
    assert [level.suffix for level in sorted(dml.FeatureLevel)] == LEVELS


def _names(operator):
    return next(iter(TABLES[operator].values()))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("operator", TABLES)
def test_every_rank_and_pair_of_types(operator, level):
    indexed = any(name in INDEX_TENSORS for name in _names(operator))
    count = 0
    for rank, data, index in product(RANKS, TYPES, TYPES if indexed else ["UINT32"]):
        desc = _descriptor(operator, rank, data, index)
        ranks = _ranks(operator, rank)
        types = types_of(_names(operator), data, index)
        expected = accepts(operator, level, ranks, types)
        violations = device(level).check(desc)
        assert (not violations) is expected, (rank, data, index, violations)
        count += expected
    exists = row_at(operator, level) is not None
    assert (count > 0) is exists


def _ranks(operator, rank):
    ranks = dict.fromkeys(_names(operator), rank)
    if operator == "NONZERO_COORDINATES" and rank == 1:
        ranks["OutputCoordinatesTensor"] = 2
    return ranks


@cache
def _descriptor(operator, rank, data, index):
    return descriptor(operator, fields_of(operator, rank, data, index))


@pytest.mark.parametrize("level", ["3_0", "3_1", "4_0", "6_4"])
def test_nonzero_takes_three_ranks_of_their_own(level):
    types = types_of(_names("NONZERO_COORDINATES"), "FLOAT32", "UINT32")
    for r, c, o in product(RANKS, RANKS, RANKS):
        desc = descriptor("NONZERO_COORDINATES", fields_of("NONZERO_COORDINATES", ranks=(r, c, o)))
        ranks = {"InputTensor": r, "OutputCountTensor": c, "OutputCoordinatesTensor": o}
        expected = accepts("NONZERO_COORDINATES", level, ranks, types)
        violations = device(level).check(desc)
        assert (not violations) is expected, (r, c, o, violations)


@pytest.mark.parametrize("operator", TABLES)
def test_each_tensor_on_its_own(operator):
    """A type or rank that one tensor alone may not have is reported for that tensor."""
    for level in LEVELS:
        row = row_at(operator, level)
        if row is None:
            continue
        for name, kind in product(row, TYPES):
            fields = fields_of(operator, 4)
            fields[name] = _with_type(fields[name], kind)
            paths = _paths(device(level).check(descriptor(operator, fields)), "DataType")
            refused = any(path.startswith(f"{operator}.{name}") for path in paths)
            own = "UINT32" if name in INDEX_TENSORS else "FLOAT32"
            # An accepted type that is not its own may still disagree with another tensor's.
            if kind not in row[name][1]:
                assert refused, (level, name, kind)
            elif kind == own:
                assert not paths, (level, name, kind)
        for name, rank in product(row, RANKS):
            fields = fields_of(operator, 4)
            fields[name] = _with_rank(fields[name], rank)
            paths = _paths(device(level).check(descriptor(operator, fields)), "DimensionCount")
            refused = any(path.startswith(f"{operator}.{name}") for path in paths)
            if rank not in row[name][0]:
                assert refused, (level, name, rank)
            elif rank == 4:
                assert not paths, (level, name, rank)


@pytest.mark.parametrize("operator", TABLES)
def test_minimum_feature_level(operator):
    indexed = any(name in INDEX_TENSORS for name in _names(operator))
    for rank, data, index in product(RANKS, TYPES, TYPES if indexed else ["UINT32"]):
        desc = _descriptor(operator, rank, data, index)
        types = types_of(_names(operator), data, index)
        expected = lowest_level(operator, _ranks(operator, rank), types)
        got = device("1_0").minimum_feature_level(desc)
        assert (got and got.suffix) == expected, (rank, data, index)


@pytest.mark.parametrize("operator", TABLES)
def test_refusal_names_the_level_that_would_accept(operator):
    for level in LEVELS:
        if row_at(operator, level) is None:
            desc = _descriptor(operator, 4, "FLOAT32", "UINT32")
            (violation,) = device(level).check(desc)
            first = next(iter(TABLES[operator]))
            assert violation.path == f"{operator}.FeatureLevel"
            assert violation.rule.startswith(f"{first} or above")
            assert str(violation.got) == level
            continue
        for data in TYPES:
            desc = _descriptor(operator, 4, data, "UINT32")
            need = lowest_level(
                operator, _ranks(operator, 4), types_of(_names(operator), data, "UINT32")
            )
            for violation in device(level).check(desc):
                assert violation.path.endswith(".DataType")
                assert str(violation.got) == data
                hint = f"{data} from {need}" if need else f"{data} at no level"
                assert hint in violation.rule
                assert f"at feature level {level}" in violation.rule


def test_one_type_is_not_one_of_several():
    desc = _descriptor("TOP_K", 4, "FLOAT32", "INT8")
    for level, rule in (("3_1", "UINT32 at feature"), ("5_0", "one of UINT64, UINT32 at feature")):
        (violation,) = device(level).check(desc)
        assert violation.rule.startswith(rule)


@pytest.mark.parametrize("operator", TABLES)
def test_refusal_of_a_rank_names_the_level_that_would_accept(operator):
    for level, rank in product(LEVELS, RANKS):
        row = row_at(operator, level)
        if row is None:
            continue
        for violation in device(level).check(_descriptor(operator, rank, "FLOAT32", "UINT32")):
            if "at feature level" not in violation.rule:
                continue  # a rule that all levels have
            name = _name_in(violation.path)
            got = 2 if name == "OutputCoordinatesTensor" and rank == 1 else rank
            accepted = (at for at, tensors in TABLES[operator].items() if got in tensors[name][0])
            need = next((f"from {at}" for at in accepted), "at no level")
            low, high = min(row[name][0]), max(row[name][0])
            span = f"{low}..{high}" if low < high else f"{low}"
            assert violation.rule == f"{span} at feature level {level} ({got} {need})"
            assert violation.got == got
            assert violation.path.endswith(".DimensionCount")


def test_aliases():
    assert dml.ScatterElements is dml.Scatter
    assert dml.support("SCATTER_ELEMENTS") == dml.support("DML_OPERATOR_SCATTER")


def _with_type(value, kind):
    if isinstance(value, list):
        return [_with_type(value[0], kind), *value[1:]]
    return dml.TensorDesc(kind, value.sizes)


def _with_rank(value, rank):
    if isinstance(value, list):
        return [_with_rank(value[0], rank), *value[1:]]
    return dml.TensorDesc(value.data_type, padded(rank, *value.sizes[-2:]))


def _name_in(path):
    return path.split(".")[1].partition("[")[0]


def _paths(violations, ending):
    return [violation.path for violation in violations if violation.path.endswith(ending)]
