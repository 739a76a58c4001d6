"""The support tables against DirectML's schema and the history of its feature levels.

`scripts/check_pages.py` makes the two files of facts and compares the tables with the pages
themselves.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from sample_operators import Reduction

import anydml as dml
from anydml.ops import _fields as fields
from anydml.ops._fields import Role
from anydml.ops._pages import PAGES
from anydml.ops._registry import OPERATORS

FACTS = Path(__file__).parent

# Where the history or the schema says something else than the table of a page, and why the table
# holds. A line that nothing needs any more fails.
DIFFERENCES = {
    "SCATTER added at 2_0": "the page's table begins at 1_0",
    "TOP_K added at 1_0": "the history names it nowhere; the page's table begins at 2_0",
    "MAX_UNPOOLING added at 2_0": "the page's table begins at 3_0",
    "ACTIVATION_SHRINK extended at 2_1": "the page's table has no such row",
    "ELEMENT_WISE_IF extended at 2_1": "the page's table has no such row",
    "JOIN extended at 3_1": "the page's table has ranks 4 and 5 until 4_1",
    "ACTIVATION_RELU_GRAD extended at 3_1": "ranks 1 to 8 are there since 3_0",
    "ADAM_OPTIMIZER extended at 4_0": "the page's table has one row, for 3_0",
    "ACTIVATION_GELU in place": "the page does not say so",
    "ELEMENT_WISE_IS_INFINITY in place": "the page does not say so; the types differ in size",
    "FILL_VALUE_CONSTANT in place": "there is no input",
    "FILL_VALUE_SEQUENCE in place": "there is no input",
    "ACTIVATION_HARD_SWISH not in place": "the page says that it may",
    "ACTIVATION_SWISH not in place": "the page says that it may",
}

F = dml.TensorDesc("FLOAT32", (1, 1, 1, 1))
PADDED = {
    "padding_mode": "WRAP", "input_tensor": F, "output_tensor": F, "start_padding": (0,) * 4,
    "end_padding": (0,) * 4, "padding_value": 0.0,
}  # fmt: skip
NORMALIZED = {"input_tensor": F, "scale_tensor": F, "normalize_variance": True, "epsilon": 0.0}


def gemm(fused):
    return dml.Gemm.with_outputs(
        a_tensor=F, b_tensor=F, trans_a="NONE", trans_b="NONE", alpha=1.0, beta=0.0,
        fused_activation=fused,
    )  # fmt: skip


# What the history extends besides tables: a descriptor that the level accepts, and none before.
EXTENSIONS = {
    "MEAN_VARIANCE_NORMALIZATION extended at 5_2": dml.MeanVarianceNormalization.with_outputs(
        cross_channel=False, **NORMALIZED
    ),
    "MEAN_VARIANCE_NORMALIZATION1 extended at 5_2": dml.MeanVarianceNormalization1.with_outputs(
        axes=(3,), **NORMALIZED
    ),
    "ELEMENT_WISE_CLIP extended at 6_0": gemm(dml.ElementWiseClip(min=0, max=1)),
    "GEMM extended at 6_1": gemm(dml.ActivationSoftmax()),
    "ACTIVATION_SOFTMAX extended at 6_1": gemm(dml.ActivationSoftmax()),
    "ACTIVATION_SOFTMAX1 extended at 6_1": gemm(dml.ActivationSoftmax1(axes=(3,))),
    "PADDING extended at 6_4": dml.Padding(**PADDED),
    "PADDING1 extended at 6_4": dml.Padding1(padding_value_data_type="FLOAT32", **PADDED),
    "ACTIVATION_SOFTPLUS extended at 6_4": dml.ActivationSoftplus.with_outputs(
        input_tensor=F, steepness=0.5
    ),
}


class Schema(dict):
    """The recorded schema, which says what to do about an operator that it does not have."""

    def __missing__(self, name):
        pytest.fail(
            f"directml_schema.txt: expected a line of {name}, got none; write it with "
            'scripts/check_pages.py (CONTRIBUTING.md, "Adding an operator")'
        )


def schema():
    """By operator: whether it may run in place, and its fields as (kind, optional, name)."""
    found = Schema()
    for line in (FACTS / "directml_schema.txt").read_text(encoding="ascii").splitlines():
        name, in_place, text = re.fullmatch(r"(\w+)( \(in place\))?: (.*)", line).groups()
        text = text.replace("BOOL ", "UINT ")  # which most are there
        members = [re.fullmatch(r"(\w+)(\??) (\w+)", field).groups() for field in text.split(", ")]
        found[name] = (bool(in_place), [(kind, bool(mark), field) for kind, mark, field in members])
    return found


SCHEMA = schema()
FUNCTIONS = {"input", "inputs", "output", "outputs"}


def history(verb):
    """(operator, level) of every line of the history."""
    for line in (FACTS / "directml_history.txt").read_text(encoding="ascii").splitlines():
        level, did, *names = line.split()
        yield from ((name, level) for name in names if did == verb)


def differences():
    added = {name: level for name, level in history("adds") if name != "SCATTER_ELEMENTS"}
    assert added.keys() <= PAGES.keys()
    for name, page in PAGES.items():
        if (came := added.get(name, "1_0")) != page.level.suffix:
            yield f"{name} added at {came}"
        if SCHEMA[name][0] != page.in_place:
            yield f"{name} {'in' if SCHEMA[name][0] else 'not in'} place"
    for name, level in history("extends"):
        if level not in {row.level.suffix for row in PAGES[name].support}:
            yield f"{name} extended at {level}"


def test_an_operator_without_a_schema_says_what_to_do():
    with pytest.raises(pytest.fail.Exception, match=r"a line of NEWER, .*scripts/check_pages.py"):
        SCHEMA["NEWER"]


def test_differences_have_a_reason():
    assert sorted(differences()) == sorted([*DIFFERENCES, *EXTENSIONS])


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_extensions_hold_from_their_level(extension):
    name, _, level = extension.rpartition(" extended at ")
    desc = EXTENSIONS[extension]
    assert name in repr(desc.to_json())
    assert dml.Device("cpu").minimum_feature_level(desc).suffix == level


def test_every_operator_is_there_once():
    assert [*PAGES] == sorted(PAGES) == [*SCHEMA]
    assert {kind.NAME for kind in OPERATORS.values()} <= PAGES.keys()


@pytest.mark.parametrize("name", PAGES)
def test_table(name):
    """Its tensors are the schema's; a row accepts what those before it accept."""
    tensors = [field for kind, _, field in SCHEMA[name][1] if kind in FUNCTIONS]
    tables = {}
    for row in PAGES[name].support:
        tables.setdefault(str(row.when), []).append(row)
        assert [*row.tensors] == tensors
        for accepted in row.tensors.values():
            assert accepted.ranks
            assert set(accepted.ranks) <= {*range(1, 9)}
            assert len({*accepted.data_types}) == len(accepted.data_types)
            assert accepted.data_types
    for rows in tables.values():
        assert rows[0].level == PAGES[name].level
        for below, above in pairwise(rows):
            assert below.level < above.level
            for tensor, accepted in below.tensors.items():
                assert {*accepted.ranks} <= {*above.tensors[tensor].ranks}
                assert {*accepted.data_types} <= {*above.tensors[tensor].data_types}


KINDS = {
    fields.AxisKind: "UINT",
    fields.EnumerationKind: "UINT",
    fields.FloatKind: "FLOAT",
    fields.FloatsKind: "FLOAT_ARRAY",
    fields.IntKind: "INT",
    fields.BoolKind: "UINT",
    fields.Kind: "UINT",
    fields.NestedKind: "OPERATOR_DESC",
    fields.ScalarKind: "SCALAR_UNION",
    fields.ScaleBiasKind: "SCALE_BIAS",
    fields.Size2DKind: "SIZE_2D",
}


def schema_kind(info):
    if info.role is not Role.ATTRIBUTE:
        return f"{'input' if info.role is Role.INPUT else 'output'}{'s' if info.many else ''}"
    if isinstance(info.kind, fields.IntegersKind):
        return "INT_ARRAY" if info.kind.signed else "UINT_ARRAY"
    is_list = isinstance(info.kind, fields.NestedKind) and info.kind.many
    return "OPERATOR_DESC_ARRAY" if is_list else KINDS[type(info.kind)]


@pytest.mark.parametrize("operator", dict.fromkeys(OPERATORS.values()), ids=lambda kind: kind.NAME)
def test_definition(operator):
    """A definition has the schema's fields, in their order, and the page's table."""
    found = [(schema_kind(info), info.optional, info.name) for info in operator.fields()]
    # The schema has some fields as UINT that are BOOL on their pages, and a number that may be
    # left out, which in a structure it cannot.
    schema = [
        ("BOOL" if kind == "UINT" and own == "BOOL" else kind, optional and kind != "FLOAT", name)
        for (kind, optional, name), (own, *_) in zip(SCHEMA[operator.NAME][1], found, strict=True)
    ]
    assert found == schema
    page = PAGES[operator.NAME]
    assert operator.SUPPORT is page.support
    assert page.in_place <= operator.IN_PLACE


@pytest.mark.parametrize(
    ("function", "level", "output", "good"),
    [
        ("SUM", "2_0", "FLOAT32", True), ("SUM", "2_0", "UINT32", False),
        ("ARGMAX", "2_0", "UINT32", True), ("ARGMAX", "2_0", "FLOAT32", False),
        ("ARGMAX", "2_0", "INT64", False), ("ARGMAX", "3_0", "INT64", True),
        ("SUM", "3_0", "INT64", False),
    ],
)  # fmt: skip
def test_rows_for_some_members_of_an_attribute(function, level, output, good):
    desc = Reduction(
        input_tensor=dml.TensorDesc("FLOAT32", (2,)),
        output_tensor=dml.TensorDesc(output, (2,)),
        function=function,
    )
    found = dml.Device("cpu", feature_level=level).check(desc)
    assert (not found) is good
    assert [violation.path for violation in found] == ["REDUCTION.OutputTensor.DataType"][good:]
