"""Everything that a definition says, broken: one thing at a time, and two at once."""

import pytest
from hypothesis import given, settings

import anydml as dml
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from anydml.suite.breakages import breakages, replaced
from anydml.suite.choices import Seeded
from support import strategies
from support.made import shared

KINDS = list(dict.fromkeys(OPERATORS.values()))
T = dml.TensorDesc
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
DEVICES = {level: dml.Device("cpu", feature_level=level) for level in dml.FeatureLevel}
LATEST = max(DEVICES)
SEEDS = range(min(6, settings.default.max_examples // 3))


def check(desc, level=LATEST):
    return DEVICES[level].check(desc)


def paths_of(found, desc):
    return [violation.path.removeprefix(f"{desc.NAME}.") for violation in found]


@every_kind
def test_one_rule_broken(kind):
    for seed in SEEDS:
        desc = shared(kind, seed)
        assert check(desc) == []
        for broken in breakages(desc):
            found = check(broken.desc, broken.level)
            paths = paths_of(found, desc)
            if broken.desc.deviations(dml.FeatureLevel.parse(broken.level)):
                continue  # DirectML accepts it all the same
            assert any(path.startswith(broken.path) for path in paths), (broken, found)
            field = broken.path.partition(".")[0]
            assert not broken.alone or all(path.startswith(field) for path in paths), found
            with pytest.raises(dml.InvalidDescriptorError) as error:
                DEVICES[broken.level].create_operator(broken.desc)
            assert list(error.value.violations) == found
            for item in found:
                assert str(item) == f"{item.path}: expected {item.rule}, got {item.got}"
                assert str(item) in str(error.value)


@every_kind
def test_what_is_required_and_what_may_be_left_out(kind):
    desc = shared(kind, 1)
    fields = {info.attribute: getattr(desc, info.attribute) for info in kind.fields()}
    for info in kind.fields():
        if (
            info.optional
            or info.counts is not None
            or (kind.FUSED and info.role is not Role.ATTRIBUTE)
        ):
            kind(**fields | {info.attribute: None})
            continue
        with pytest.raises(dml.InvalidDescriptorError, match=rf"{kind.NAME}\.{info.name}: "):
            kind(**fields | {info.attribute: None})
        rest = {name: value for name, value in fields.items() if name != info.attribute}
        with pytest.raises(dml.ArgumentTypeError, match=info.attribute):
            kind(**rest)
        if info.text in ("UINT", "INT"):  # more bits than any field has
            with pytest.raises(dml.InvalidDescriptorError, match=info.name):
                kind(**fields | {info.attribute: 2**64})


@every_kind
@given(one=strategies.seeds(), two=strategies.seeds())
def test_two_broken_tensors_are_both_reported(kind, one, two):
    desc = shared(kind, one)
    tensors = [path for path, _, _ in desc.tensors()]
    mistakes = [
        {"total_tensor_size_in_bytes": 2}, {"guaranteed_base_offset_alignment": 12},
        {"strides": (1,) * 9},
    ]  # fmt: skip
    choose = Seeded(two)
    chosen = dict.fromkeys(choose.shuffled(tensors)[:2])
    for path in chosen:
        tensor = next(tensor for at, tensor, _ in desc.tensors() if at == path)
        wrong = T(tensor.data_type, tensor.sizes, **choose.among(mistakes))
        desc = replaced(desc, path, wrong)
    found = paths_of(check(desc), desc)
    assert {path.rpartition(".")[0] for path in found} == set(chosen)


def test_several_rules_broken_give_all_of_them():
    desc = dml.TopK1(
        input_tensor=T("FLOAT64", (1, 1, 2, 5), (0, 0, 5, 1), guaranteed_base_offset_alignment=6),
        output_value_tensor=T("FLOAT16", (1, 1, 3, 3), (9, 9, 0, 1)),
        output_index_tensor=T("INT32", (1, 2, 4), total_tensor_size_in_bytes=6),
        axis=3,
        k=9,
        axis_direction="INCREASING",
    )
    assert sorted(paths_of(check(desc), desc)) == sorted(
        (
            "InputTensor.DataType",
            "OutputIndexTensor.DataType",
            "InputTensor.GuaranteedBaseOffsetAlignment",
            "OutputValueTensor.Strides",
            "OutputIndexTensor.TotalTensorSizeInBytes",
            "OutputIndexTensor.TotalTensorSizeInBytes",
            "OutputIndexTensor.DimensionCount",
            "OutputValueTensor.Sizes[2]",
            "OutputValueTensor.Sizes[3]",
            "K",
        )
    )


def test_at_most_two_to_the_32_minus_one_elements():
    fits = T("INT8", (65537, 65535))  # 2^32 - 1
    assert check(dml.Split(input_tensor=fits, output_tensors=[fits], axis=0)) == []
    above = T("INT8", (65536, 65536))
    found = check(dml.Split(input_tensor=above, output_tensors=[above], axis=0))
    assert {(v.path, v.got) for v in found} == {
        ("SPLIT.InputTensor.Sizes", 2**32),
        ("SPLIT.OutputTensors[0].Sizes", 2**32),
    }
