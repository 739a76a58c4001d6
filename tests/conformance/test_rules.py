"""Each rule of the pages broken alone, and several at once."""

from itertools import product

import pytest
from broken_descriptors import BROKEN, BROKEN_TENSORS, F, T, U
from broken_mover_descriptors import BROKEN_MOVERS
from broken_nd_descriptors import BROKEN_ND
from good_descriptors import CLASSES, descriptor, fields_of

import anydml as dml

DEVICE = dml.Device("cpu")


@pytest.mark.parametrize("broken", [*BROKEN, *BROKEN_MOVERS, *BROKEN_ND, *BROKEN_TENSORS], ids=str)
def test_one_rule_broken(broken):
    base = fields_of(broken.operator)
    assert DEVICE.check(descriptor(broken.operator, base)) == []
    desc = descriptor(broken.operator, base | broken.changes)
    found = DEVICE.check(desc)
    prefix = f"{broken.operator}."
    wanted = {prefix + path for path in (broken.path, *broken.others)}
    if broken.path == "Axis" or broken.others:
        # Without its axis free, sizes that should agree no longer do.
        assert wanted <= {violation.path for violation in found}
    else:
        assert [violation.path for violation in found] == [prefix + broken.path], found
    violation = next(item for item in found if item.path == prefix + broken.path)
    assert broken.rule in violation.rule
    assert violation.got == broken.got or str(violation.got) == str(broken.got)
    with pytest.raises(dml.InvalidDescriptorError) as error:
        DEVICE.create_operator(desc)
    assert list(error.value.violations) == found
    assert str(violation) in str(error.value)
    assert str(violation) == f"{violation.path}: expected {violation.rule}, got {violation.got}"


@pytest.mark.parametrize("operator", ["TOP_K", "TOP_K1"])
def test_k_without_an_axis_is_at_least_one(operator):
    for k, told in ((0, ["at least 1"]), (1, []), (2, []), (6, [])):
        changes = {"Axis": 4, "K": k}
        found = DEVICE.check(descriptor(operator, fields_of(operator) | changes))
        assert f"{operator}.Axis" in {violation.path for violation in found}
        assert [item.rule for item in found if item.path == f"{operator}.K"] == told


@pytest.mark.parametrize("operator", ["GATHER_ND", "SCATTER_ND"])
def test_tuples_of_nothing_say_nothing_of_other_sizes(operator):
    changes = {"IndicesTensor": T(U, (1, 1, 3, 0))}
    found = DEVICE.check(descriptor(operator, fields_of(operator) | changes))
    assert [(item.path, item.rule, item.got) for item in found] == [
        (f"{operator}.IndicesTensor.Sizes[3]", "1..2^32 - 1", 0),
        (f"{operator}.IndicesTensor.Sizes[-1]", "1..2 (InputDimensionCount)", 0),
    ]


@pytest.mark.parametrize("operator", CLASSES)
def test_sizes_that_no_tensor_has_are_told_for_each(operator):
    for name, value in fields_of(operator).items():
        tensor = value[0] if isinstance(value, list) else value
        if not isinstance(tensor, dml.TensorDesc):
            continue
        for axis, size in ((3, 0), (0, 2**32)):
            sizes = [*tensor.sizes]
            sizes[axis] = size
            changed = T(tensor.data_type, sizes)
            new = [changed, *value[1:]] if isinstance(value, list) else changed
            found = DEVICE.check(descriptor(operator, fields_of(operator) | {name: new}))
            where = f"{operator}.{name}[0]" if isinstance(value, list) else f"{operator}.{name}"
            paths = [item.path for item in found]
            assert f"{where}.Sizes[{axis}]" in paths
            assert not any("None" in path or "Scale" in path for path in paths)


def test_offsets_below_the_input():
    changes = {"Offsets": (0, 0, 0, -1)}
    found = DEVICE.check(descriptor("SLICE", fields_of("SLICE") | changes))
    assert [item.rule for item in found if item.path == "SLICE.Offsets[3]"] == [
        "0..2^32 - 1 (UINT)", "0..4 (InputTensor.Sizes[3] - 1)",
    ]  # fmt: skip


def test_several_rules_broken_give_all_of_them():
    desc = dml.TopK1(
        input_tensor=T("FLOAT64", (1, 1, 2, 5), (0, 0, 5, 1), guaranteed_base_offset_alignment=6),
        output_value_tensor=T("FLOAT16", (1, 1, 3, 3), (9, 9, 0, 1)),
        output_index_tensor=T("INT32", (1, 2, 4), total_tensor_size_in_bytes=6),
        axis=3,
        k=9,
        axis_direction="INCREASING",
    )
    paths = [violation.path for violation in DEVICE.check(desc)]
    assert sorted(paths) == sorted(
        f"TOP_K1.{path}"
        for path in (
            "InputTensor.DataType",
            "OutputIndexTensor.DataType",
            "InputTensor.GuaranteedBaseOffsetAlignment",
            "OutputValueTensor.Strides",
            "OutputIndexTensor.TotalTensorSizeInBytes",
            "OutputIndexTensor.TotalTensorSizeInBytes",
            "OutputIndexTensor.DimensionCount",
            "OutputValueTensor.DataType",
            "OutputValueTensor.Sizes[2]",
            "OutputValueTensor.Sizes[3]",
            "K",
        )
    )


def test_every_pair_of_broken_tensor_rules_is_reported():
    """Two independent mistakes, one in each of two tensors, are both there."""
    for operator in ("SCATTER", "TOP_K1", "GATHER"):
        mistakes = [b for b in BROKEN_TENSORS if b.operator == operator]
        for i, first in enumerate(mistakes):
            for second in mistakes[i + 1 :]:
                if first.changes.keys() & second.changes.keys():
                    continue
                changes = first.changes | second.changes
                found = DEVICE.check(descriptor(operator, fields_of(operator) | changes))
                paths = {violation.path for violation in found}
                assert paths == {f"{operator}.{first.path}", f"{operator}.{second.path}"}


def test_good_edges():
    good = [
        # K equal to the axis: a full sort.
        ("TOP_K1", {"K": 5, "OutputValueTensor": T(F, (1, 1, 2, 5)),
                    "OutputIndexTensor": T(U, (1, 1, 2, 5))}),
        # The effective rank 0 needs one column, and takes as many as there are dimensions.
        ("NONZERO_COORDINATES", {"InputTensor": T(F, (1, 1, 1, 1)),
                                 "OutputCoordinatesTensor": T(U, (1, 1, 1, 1))}),
        ("NONZERO_COORDINATES", {"InputTensor": T(F, (1, 1, 1, 1)),
                                 "OutputCoordinatesTensor": T(U, (1, 1, 1, 4))}),
        # More indices than the axis has elements.
        ("SCATTER", {"IndicesTensor": T(U, (1, 1, 2, 9)), "UpdatesTensor": T(F, (1, 1, 2, 9))}),
        # Inputs may repeat and overlap themselves, and any tensor may have gaps.
        ("SCATTER", {"InputTensor": T(F, (1, 1, 2, 5), (0, 0, 0, 0)),
                     "OutputTensor": T(F, (1, 1, 2, 5), (99, 77, 20, 3))}),
        ("SPLIT", {"InputTensor": T(F, (1, 1, 2, 5), (0, 0, 1, 1))}),
        # Transposed outputs overlap nowhere.
        ("GATHER", {"OutputTensor": T(F, (1, 1, 2, 3), (6, 6, 1, 2))}),
        # A stride on a size of 1 means nothing.
        ("GATHER", {"OutputTensor": T(F, (1, 1, 2, 3), (0, 0, 3, 1))}),
        ("SPLIT", {"InputTensor": T(F, (1, 1, 2, 5), total_tensor_size_in_bytes=4096)}),
        ("SPLIT", {"InputTensor": T(F, (1, 1, 2, 5), flags="OWNED_BY_DML")}),
        ("SPLIT", {"InputTensor": T(F, (1, 1, 2, 5), guaranteed_base_offset_alignment=4096)}),
        # No index dimension: one index, the axis is gone.
        ("GATHER", {"IndicesTensor": T(U, (1, 1, 1, 1)), "IndexDimensions": 0,
                    "OutputTensor": T(F, (1, 1, 1, 2))}),
        ("GATHER", {"IndicesTensor": T(U, (2, 3, 4, 5)), "IndexDimensions": 4,
                    "InputTensor": T(F, (1, 1, 1, 7)), "OutputTensor": T(F, (2, 3, 4, 5))}),
        # The largest scale, which makes the largest tensor.
        ("UPSAMPLE_2D", {"InputTensor": T(F, (1, 1, 1, 5)), "ScaleSize": (2**32 // 5, 1),
                         "OutputTensor": T(F, (1, 1, 1, 2**32 - 1))}),
        ("UPSAMPLE_2D", {"InputTensor": T(F, (1, 1, 1, 1)), "ScaleSize": (2**32 - 1, 1),
                         "OutputTensor": T(F, (1, 1, 1, 2**32 - 1))}),
        # Both counts may be the rank.
        ("SCATTER_ND", {"InputDimensionCount": 4, "InputTensor": T(F, (1, 1, 2, 5)),
                        "IndicesDimensionCount": 4, "IndicesTensor": T(U, (1, 1, 1, 4)),
                        "UpdatesTensor": T(F, (1, 1, 1, 1))}),
    ]  # fmt: skip
    for operator, changes in good:
        desc = descriptor(operator, fields_of(operator) | changes)
        assert DEVICE.check(desc) == [], (operator, changes)


@pytest.mark.parametrize(
    ("sizes", "path"),
    [
        ((1, 1, 0, 5), "Sizes[2]"),
        ((1, 1, 2**32, 1), "Sizes[2]"),
        ((), "DimensionCount"),
        ((1,) * 9, "DimensionCount"),
    ],
)
def test_sizes_and_ranks_that_no_tensor_has(sizes, path):
    tensor = T(F, sizes)
    desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    paths = {violation.path for violation in DEVICE.check(desc)}
    assert f"SPLIT.InputTensor.{path}" in paths
    assert f"SPLIT.OutputTensors[0].{path}" in paths


def test_at_most_two_to_the_32_minus_one_elements():
    fits = T("INT8", (65537, 65535))  # 2^32 - 1
    assert DEVICE.check(dml.Split(input_tensor=fits, output_tensors=[fits], axis=0)) == []
    above = T("INT8", (65536, 65536))
    found = DEVICE.check(dml.Split(input_tensor=above, output_tensors=[above], axis=0))
    assert {(v.path, v.got) for v in found} == {
        ("SPLIT.InputTensor.Sizes", 2**32),
        ("SPLIT.OutputTensors[0].Sizes", 2**32),
    }


@pytest.mark.parametrize(
    ("sizes", "strides", "overlaps"),
    [
        ((4,), (0,), True),
        ((1,), (0,), False),
        ((2, 3), (3, 1), False),
        ((2, 3), (2, 1), True),
        ((3, 2), (1, 3), False),
        ((2, 2), (2, 3), False),
        ((3, 3), (2, 3), False),
        ((4, 3), (2, 3), True),
        ((3, 4), (4, 3), False),
        ((4, 5), (4, 3), True),
        ((5, 5, 5), (1, 5, 25), False),
        ((5, 5, 5), (1, 5, 24), True),
    ],
)
def test_outputs_that_overlap_themselves(sizes, strides, overlaps):
    offsets = {sum(i * s for i, s in zip(at, strides, strict=True)) for at in _places(sizes)}
    assert (len(offsets) < _count(sizes)) is overlaps
    source = T(F, sizes)
    output = T(F, sizes, strides)
    desc = dml.Split(input_tensor=source, output_tensors=[output], axis=0)
    found = [violation.path for violation in DEVICE.check(desc)]
    assert found == (["SPLIT.OutputTensors[0].Strides"] if overlaps else [])


def _places(sizes):
    return product(*map(range, sizes))


def _count(sizes):
    return len(list(_places(sizes)))
