"""Tensor descriptors on their own: kinds of fields, JSON, sizes and strides without end."""

import itertools
import operator
import random

import numpy as np
import pytest

import anydml as dml
from anydml.ops._numbers import span
from support.seconds import result_within

T = dml.TensorDesc


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ({"data_type": 3}, "DataType"),
        ({"sizes": 3}, "Sizes"),
        ({"sizes": "12"}, "Sizes"),
        ({"sizes": {1: 2}}, "Sizes"),
        ({"sizes": [1.0]}, "Sizes"),
        ({"sizes": [True]}, "Sizes"),
        ({"sizes": [2**64]}, "Sizes"),
        ({"sizes": [2] * 100_000}, "Sizes"),
        ({"strides": [None]}, "Strides"),
        ({"strides": 1}, "Strides"),
        ({"flags": 1}, "Flags"),
        ({"flags": ["OWNED"]}, "Flags"),
        ({"total_tensor_size_in_bytes": 4.0}, "TotalTensorSizeInBytes"),
        ({"guaranteed_base_offset_alignment": None}, "GuaranteedBaseOffsetAlignment"),
    ],
)  # fmt: skip
def test_fields_of_the_wrong_kind(arguments, path):
    with pytest.raises(dml.InvalidDescriptorError) as error:
        T(**{"data_type": "FLOAT32", "sizes": (2,)} | arguments)
    assert [violation.path for violation in error.value.violations] == [f"TensorDesc.{path}"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"Sizes": 3}, "Sizes: expected an array, got 3"),
        ({"Sizes": ["2"]}, "Sizes[0]: expected an integer"),
        ({"Sizes": [True]}, "Sizes[0]: expected an integer"),
        ({"Sizes": [-1]}, "Sizes[0]: expected an integer in 0..4294967295, got -1"),
        ({"Sizes": [2] * 100_000}, "Sizes: expected at most 8 integers, got 100000"),
        ({"Strides": [1.5]}, "Strides[0]: expected an integer"),
        ({"Strides": {}}, "Strides: expected an array"),
        ({"DataType": 1}, "DataType: expected one of"),
        ({"Type": "TEXTURE"}, "Type: expected BUFFER, got 'TEXTURE'"),
        ({"Type": 1}, "Type: expected a string, got 1"),
        ({"Flags": "OWNED"}, "Flags: expected one of NONE, OWNED_BY_DML, got 'OWNED'"),
        ({"Flags": 1}, "Flags: expected one of NONE, OWNED_BY_DML, got 1"),
        ({"TotalTensorSizeInBytes": -4}, "TotalTensorSizeInBytes: expected an integer in 0.."),
        ({"TotalTensorSizeInBytes": 2**64}, "TotalTensorSizeInBytes: expected an integer in 0.."),
        ({"GuaranteedBaseOffsetAlignment": "4"}, '0..4294967295, got the string "4"'),
        ({"DimensionCount": 2}, "DimensionCount: expected 1 (the length of Sizes), got 2"),
        ({"Desc": 3}, "Desc: expected an object, got 3"),
    ],
)  # fmt: skip
def test_json_that_cannot_be_read(fields, message):
    with pytest.raises(dml.ModelError) as error:
        T.from_json({"DataType": "FLOAT32", "Sizes": [2]} | fields)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("sizes", "strides", "minimum"),
    [
        ((3, 5), None, 60),
        ((3, 5), (5, 1), 60),
        ((3, 5), (8, 1), 84),
        ((1, 5), (9, 2), 36),
        ((0, 5), None, 0),
        ((0, 5), (1, 1), 0),
        ((0, 5), (9, 2), 0),
    ],
)
def test_smallest_size(sizes, strides, minimum):
    assert T("FLOAT32", sizes, strides).minimum_size_in_bytes == minimum


@pytest.mark.parametrize(
    ("sizes", "strides", "overlap"),
    [
        ((1, 3), (0, 1), False),
        ((1, 1), (0, 0), False),
        ((2, 3), (0, 1), True),
        ((2, 3), (2, 1), True),
        ((2, 3), (3, 1), False),
        ((3, 2), (2, 3), False),
        ((4, 3), (2, 3), True),
        ((2, 2, 2), (3, 2, 1), True),
        ((2, 2, 2), (4, 2, 1), False),
        # Within the bound of the search only as it goes nowhere twice.
        ((2, 4, 3, 5, 5, 2, 5), (573, 885, 378, 562, 3540, 236, 804), False),
    ],
)
def test_elements_in_one_place(sizes, strides, overlap):
    """Searched for where strides do not nest; one element has no second place."""
    assert T("FLOAT32", sizes, strides).overlaps_itself() is overlap


def test_the_search_for_elements_in_one_place_against_trying_all():
    draw = random.Random(8)
    found = {True: 0, False: 0}
    for _ in range(3000):
        rank = draw.randint(1, 4)
        sizes = [draw.randint(1, 4) for _ in range(rank)]
        strides = [draw.randint(0 if draw.random() < 0.1 else 1, 14) for _ in range(rank)]
        places = [
            sum(map(operator.mul, at, strides)) for at in itertools.product(*map(range, sizes))
        ]
        expected = len(set(places)) < len(places)
        assert T("INT8", sizes, strides).overlaps_itself() is expected, (sizes, strides)
        found[expected] += 1
    assert min(found.values()) > 300


def test_four_bit_types_have_no_array():
    with pytest.raises(dml.ArgumentTypeError, match="UINT4"):
        _ = dml.DataType.UINT4.numpy
    assert dml.DataType.INT4.bits == 4


@pytest.mark.parametrize(
    "strides",
    [
        (3, 5, 7, 11, 13, 17, 19, 23),
        (2**31, 2**31 - 1, 2**30 + 1, 3**18, 3**17, 5**11, 7**9, 1),
        tuple(range(1001, 1009)),
        (2**32 - 1,) * 8,
    ],
)
def test_strides_made_to_defeat_the_search_for_overlaps(strides):
    """Untrusted descriptors cost a bounded time, and are refused when in doubt."""
    output = T("INT8", (13,) * 8, strides)
    desc = dml.Split(input_tensor=T("INT8", (13,) * 8), output_tensors=[output], axis=0)
    found = result_within(10, lambda: dml.Device("cpu").check(desc))
    paths = [violation.path for violation in found]
    assert "SPLIT.OutputTensors[0].Strides" in paths


def test_repr_of_operators():
    tensor = T("FLOAT32", (2,))
    desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    operator = dml.Device("cpu", feature_level="3_0").create_operator(desc)
    assert repr(operator) == f"<Operator {desc!r} on Device('cpu', feature_level='3_0')>"
    assert repr(desc) in repr(operator.compile())


def test_device_kinds():
    assert dml.Device("auto").kind == "cpu"
    assert dml.Device().feature_level is max(dml.FeatureLevel)
    assert (
        eval(repr(dml.Device("cpu", feature_level="2_1")), vars(dml)).feature_level.suffix == "2_1"
    )
    with pytest.raises(
        dml.DeviceError,
        match=r"^kind: .*'npu'",
    ):
        dml.Device("npu")


LARGEST = 2**32 - 1


@pytest.mark.parametrize(
    ("desc", "paths"),
    [
        (T("FLOAT32", ()), ["DimensionCount"]),
        (T("FLOAT32", (1,)), []),
        (T("FLOAT32", (1,) * 8), []),
        (T("FLOAT32", (1, 0)), ["Sizes[1]"]),
        (T("INT8", (1, LARGEST)), []),
        (T("INT8", (2, 2**31)), ["Sizes"]),
        (T("INT8", (LARGEST + 1,)), ["Sizes[0]", "Sizes"]),
        (T("INT8", (LARGEST,) * 3), ["Sizes", "TotalTensorSizeInBytes"]),
        (T("INT8", (2, -1)), ["Sizes[1]"]),
        (T("INT8", (2, 2), (0, 1)), []),
        (T("INT8", (2, 2), (-1, 1)), ["Strides[0]"]),
        (T("INT8", (1, 2), (LARGEST, 1)), []),
        (T("INT8", (1, 2), (LARGEST + 1, 1)), ["Strides[0]"]),
        (T("INT8", (2, 2), (1,)), ["Strides"]),
        (T("INT8", (8, 8), (1,), total_tensor_size_in_bytes=4), ["Strides"]),
        (T("INT8", (2**64 - 1,)), ["Sizes[0]", "Sizes", "TotalTensorSizeInBytes"]),
        (T("INT8", (8,), total_tensor_size_in_bytes=8), []),
        (T("INT8", (8,), total_tensor_size_in_bytes=4), ["TotalTensorSizeInBytes"]),
        (T("INT8", (8,), total_tensor_size_in_bytes=10), ["TotalTensorSizeInBytes"]),
        (T("INT8", (8,), total_tensor_size_in_bytes=2**64 - 4), []),
        (T("FLOAT32", (8,), guaranteed_base_offset_alignment=0), []),
        (T("FLOAT32", (8,), guaranteed_base_offset_alignment=4), []),
        (T("INT8", (8,), guaranteed_base_offset_alignment=1), []),
        (T("FLOAT32", (8,), guaranteed_base_offset_alignment=2**31), []),
        *(
            (T("FLOAT32", (8,), guaranteed_base_offset_alignment=n), [
                "GuaranteedBaseOffsetAlignment"])
            for n in (-4, 1, 2, 3, 6, 2**32)
        ),
    ],
)  # fmt: skip
def test_where_the_rules_of_tensors_end(desc, paths):
    assert [violation.path for violation in desc.check()] == paths


def test_a_guaranteed_alignment_of_half_bytes_is_at_least_one():
    (violation,) = T("UINT4", (8,), guaranteed_base_offset_alignment=3).check()
    assert "of at least 1 (the element size)" in violation.rule


def test_what_has_too_many_dimensions_is_not_searched():
    found = T("INT8", (2,) * 9, (0,) * 9).check(output=True)
    assert [violation.path for violation in found] == ["DimensionCount"]


def test_how_many_sizes_are_taken():
    assert T("INT8", [2] * 64).dimension_count == 64
    assert T.from_json({"DataType": "INT8", "Sizes": [2] * 64}).dimension_count == 64
    with pytest.raises(dml.InvalidDescriptorError):
        T("INT8", [2] * 65)
    with pytest.raises(dml.ModelError, match="at most 8 integers, got 65"):
        T.from_json({"DataType": "INT8", "Sizes": [2] * 65})


def test_flags_are_those_of_the_list_together():
    flags = ["NONE", "OWNED_BY_DML", "NONE"]
    assert T("INT8", [1], flags=flags).flags is dml.TensorFlags.OWNED_BY_DML
    assert repr(T("INT8", [1], flags=flags)) == "TensorDesc('INT8', (1,), flags='OWNED_BY_DML')"
    assert repr(T("INT8", [1])) == "TensorDesc('INT8', (1,))"


def test_enumerations_have_the_numbers_of_the_header():
    for kind, names in (
        (dml.TensorFlags, ("NONE", "OWNED_BY_DML")),
        (dml.AxisDirection, ("INCREASING", "DECREASING")),
        (dml.PaddingMode, ("CONSTANT", "EDGE", "REFLECTION", "SYMMETRIC", "WRAP")),
        (dml.InterpolationMode, ("NEAREST_NEIGHBOR", "LINEAR")),
    ):
        assert [(member.suffix, int(member)) for member in kind] == [
            (name, number) for number, name in enumerate(names)
        ]


def test_a_repeated_dimension_beside_a_sparse_one():
    assert T("INT8", (2, 4), (0, 3)).overlaps_itself() is True


def test_how_ranges_are_said():
    assert [span(1, 1), span(1, 2), span(0, 0), span(2, 1)] == ["1", "1..2", "0", "nothing"]


def test_what_a_descriptor_of_an_array_may_hold():
    with pytest.raises(
        dml.ArgumentTypeError, match=r"elements of one of .*\bUINT8.*\bINT8\b.*, got complex128$"
    ):
        T.from_array([1j])
    with pytest.raises(dml.ArgumentTypeError, match=r", got \[None\]$"):
        T.from_array([None])
    nested = [1]
    nested.append(nested)
    with pytest.raises(dml.ArgumentError) as error:
        T.from_array(nested)
    assert "recursion" not in str(error.value)
    with pytest.raises(dml.ArgumentError, match=r"non-negative multiples .* got \(6,\)"):
        T.from_array(np.zeros(3, "f4,i2")["f0"])
    assert T.from_array(np.zeros((2, 2), "i1")[:, :1]).strides == (2, 1)
    with pytest.raises(dml.ArgumentError, match=r"non-negative multiples .* got \(-1,\)"):
        T.from_array(np.zeros(3, "i1")[::-1])


def test_the_effective_rank():
    count, rows = T("UINT32", (1, 1, 1)), T("UINT32", (1, 1, 3))
    for sizes, rank in (((1, 1, 1), 0), ((1, 1, 2), 1), ((1, 2, 1), 2), ((2, 1, 1), 3)):
        desc = dml.NonzeroCoordinates(
            input_tensor=T("UINT8", sizes),
            output_count_tensor=count,
            output_coordinates_tensor=rows,
        )
        assert desc.effective_rank == rank
