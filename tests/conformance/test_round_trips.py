"""to_json, from_json, repr, equality, hashing, copying and pickling of descriptors."""

import copy
import dataclasses
import json
import pickle

import pytest
from hypothesis import given

import anydml as dml
from anydml.ops._registry import OPERATORS
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from support import strategies
from support.made import shared

KINDS = list(dict.fromkeys(OPERATORS.values()))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_round_trips(kind):
    @given(strategies.descriptors(kind))
    def check(desc):
        assert dml.Device("cpu").check(desc) == []
        again = dml.from_json(json.loads(json.dumps(desc.to_json())))
        pasted = eval(repr(desc), vars(dml))
        for other in (again, pasted, copy.deepcopy(desc), pickle.loads(pickle.dumps(desc))):
            assert other == desc
            assert hash(other) == hash(desc)
            assert type(other) is kind
            assert repr(other) == repr(desc)
        for path, tensor, _ in desc.tensors():
            assert dml.TensorDesc.from_json(tensor.to_json()) == tensor, path
            assert eval(repr(tensor), vars(dml)) == tensor, path

    check()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)
def test_any_other_field_makes_another_descriptor(kind):
    desc = shared(kind, 4)
    assert desc == descriptor(Seeded(4), kind)
    for info in kind.fields():
        value = getattr(desc, info.attribute)
        others = (getattr(shared(kind, seed), info.attribute) for seed in range(50))
        other = next((other for other in others if other not in (value, None)), None)
        if other is None:  # a count, which other values of its field change, or an only member
            members = getattr(info.kind, "members", ())
            assert info.counts is not None or value is None or len(members) == 1, info.name
            continue
        changed = dataclasses.replace(desc, **{info.attribute: other})
        assert changed != desc, info.name
        assert len({changed, desc}) == 2, info.name


def test_a_count_is_shown_where_it_is_not_the_lists_length():
    part = dml.TensorDesc("FLOAT32", (2,))
    arguments = {"input_tensor": part, "output_tensors": [part], "axis": 0}
    assert "output_count" not in repr(dml.Split(**arguments))
    wrong = dml.Split(**arguments, output_count=3)
    assert "output_count=3" in repr(wrong)
    assert eval(repr(wrong), vars(dml)) == wrong


def test_frozen_and_keyword_only():
    tensor = dml.TensorDesc("FLOAT32", (2,))
    desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    with pytest.raises(AttributeError):
        desc.axis = 1
    with pytest.raises(AttributeError):
        tensor.sizes = (3,)
    with pytest.raises(TypeError):
        dml.Split(tensor, [tensor], 0)


def test_enum_values_as_member_full_name_or_suffix():
    forms = (dml.DataType.FLOAT16, "FLOAT16", "DML_TENSOR_DATA_TYPE_FLOAT16")
    assert len({dml.TensorDesc(form, [2]) for form in forms}) == 1
    data, index = dml.TensorDesc("FLOAT32", [2]), dml.TensorDesc("UINT32", [2])
    directions = (
        dml.AxisDirection.INCREASING,
        "INCREASING",
        "DML_AXIS_DIRECTION_INCREASING",
    )
    descs = {
        dml.TopK1(input_tensor=data, output_value_tensor=data, output_index_tensor=index,
                  axis=0, k=2, axis_direction=direction)
        for direction in directions
    }  # fmt: skip
    assert len(descs) == 1
    levels = (dml.FeatureLevel.LEVEL_5_0, "5_0", "DML_FEATURE_LEVEL_5_0")
    assert {dml.Device("cpu", feature_level=level).feature_level for level in levels} == {
        dml.FeatureLevel.LEVEL_5_0
    }
    for flags in ("OWNED_BY_DML", ["DML_TENSOR_FLAG_OWNED_BY_DML"], dml.TensorFlags.OWNED_BY_DML):
        tensor = dml.TensorDesc("FLOAT32", [2], flags=flags)
        assert tensor.flags is dml.TensorFlags.OWNED_BY_DML
    assert dml.TensorDesc("FLOAT32", [2], flags=[]).flags is dml.TensorFlags.NONE


@pytest.mark.parametrize(
    ("arguments", "minimum"),
    [
        (("FLOAT32", (1, 1, 3, 4)), 48),
        (("FLOAT16", (3,)), 8),
        (("INT8", (1,)), 4),
        (("UINT8", (5,)), 8),
        (("FLOAT64", (3,)), 24),
        (("FLOAT32", (3, 4), (8, 1)), 80),
        (("FLOAT16", (3, 4), (0, 1)), 8),
        (("INT8", (3, 3), (4, 1)), 12),
        (("UINT4", (3,)), 4),
        (("INT4", (9,)), 8),
    ],
)
def test_minimum_implied_size(arguments, minimum):
    tensor = dml.TensorDesc(*arguments)
    assert tensor.minimum_size_in_bytes == minimum
    assert tensor.total_tensor_size_in_bytes == minimum


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, "Expected an object"),
        ({}, "type: expected a value, got none"),
        ({"type": "NO_SUCH"}, "NO_SUCH"),
        ({"type": "split"}, "split"),
        ({"type": "SPLIT"}, "InputTensor: expected a value, got none"),
        ({"type": "SPLIT", "InputTensor": {}}, "InputTensor.Sizes: expected a value, got none"),
        (
            {"type": "SPLIT", "InputTensor": {"Sizes": [1.0], "DataType": "FLOAT32"}},
            "InputTensor.Sizes[0]: expected an integer",
        ),
        (
            {"type": "SPLIT", "InputTensor": {"Sizes": [2**32], "DataType": "FLOAT32"}},
            "expected an integer in 0..4294967295",
        ),
        (
            {"type": "SPLIT", "InputTensor": {"Sizes": [2], "DataType": "FLOAT"}},
            "DataType: expected",
        ),
        (
            {"type": "SPLIT", "InputTensor": {"Sizes": [2], "DataType": "INT8"},
             "OutputTensors": [{"Sizes": [2], "DataType": "INT8"}], "Axis": 0},
            "OutputCount: expected a value, got none",
        ),
        (
            {"type": "SPLIT", "InputTensor": {"Sizes": [2], "DataType": "INT8"}, "OutputCount": 1,
             "OutputTensors": [{"Sizes": [2]}], "Axis": 0},
            "OutputTensors[0].DataType: expected a value, got none",
        ),
        (
            {"type": "SPLIT", "InputTensor": {"Sizes": [2], "DataType": "INT8",
                                              "DimensionCount": 2}},
            "expected 1 (the length of Sizes)",
        ),
    ],
)  # fmt: skip
def test_json_that_cannot_be_read(value, message):
    with pytest.raises(dml.ModelError) as error:
        dml.from_json(value)
    assert message in str(error.value)


def test_json_defaults():
    tensor = dml.TensorDesc.from_json(
        {"Desc": {"Sizes": [2, 3], "DataType": "FLOAT32", "TotalTensorSizeInBytes": 0,
                  "Strides": None, "Flags": []}}
    )  # fmt: skip
    assert tensor == dml.TensorDesc("FLOAT32", (2, 3))
    assert (
        dml.TensorDesc.from_json({"Sizes": [1], "DataType": "INT8", "Strides": []}).strides is None
    )
    written = dml.TensorDesc("INT8", (2, 2), (4, 1), flags="OWNED_BY_DML",
                             total_tensor_size_in_bytes=16,
                             guaranteed_base_offset_alignment=64)  # fmt: skip
    assert written.to_json() == {
        "DataType": "INT8",
        "Sizes": [2, 2],
        "Strides": [4, 1],
        "Flags": "OWNED_BY_DML",
        "TotalTensorSizeInBytes": 16,
        "GuaranteedBaseOffsetAlignment": 64,
    }


def test_fields_of_the_wrong_kind_are_reported_together():
    tensor = dml.TensorDesc("FLOAT32", (2,))
    with pytest.raises(dml.InvalidDescriptorError) as error:
        dml.TopK1(input_tensor=3, output_value_tensor=tensor, output_index_tensor=tensor,
                  axis=1.5, k=True, axis_direction="UP")  # fmt: skip
    paths = [violation.path for violation in error.value.violations]
    assert paths == ["TOP_K1.InputTensor", "TOP_K1.Axis", "TOP_K1.K", "TOP_K1.AxisDirection"]
    with pytest.raises(dml.InvalidDescriptorError) as error:
        dml.TensorDesc("FLOAT", "12", 3, flags="OWNED", total_tensor_size_in_bytes="x",
                       guaranteed_base_offset_alignment=1.0)  # fmt: skip
    paths = [violation.path for violation in error.value.violations]
    assert paths == [
        "TensorDesc.DataType",
        "TensorDesc.Sizes",
        "TensorDesc.Strides",
        "TensorDesc.Flags",
        "TensorDesc.GuaranteedBaseOffsetAlignment",
        "TensorDesc.TotalTensorSizeInBytes",
    ]


def test_from_array():
    import numpy as np

    assert dml.TensorDesc.from_array(np.zeros((2, 3), "f2")) == dml.TensorDesc("FLOAT16", (2, 3))
    assert dml.TensorDesc.from_array(np.float64(3)) == dml.TensorDesc("FLOAT64", (1,))
    strided = np.zeros((4, 6), "i4")[::2, ::3]
    assert dml.TensorDesc.from_array(strided) == dml.TensorDesc("INT32", (2, 2), (12, 3))
    repeated = np.broadcast_to(np.zeros(3, "u1"), (2, 3))
    assert dml.TensorDesc.from_array(repeated) == dml.TensorDesc("UINT8", (2, 3), (0, 1))
    with pytest.raises(dml.ArgumentError, match="strides"):
        dml.TensorDesc.from_array(np.zeros(4)[::-1])
    with pytest.raises(dml.ArgumentTypeError, match="array: expected elements of one of"):
        dml.TensorDesc.from_array(np.zeros(4, "c8"))
