"""Attributes far outside their range are violations, whichever rules they meet on the way."""

import dataclasses

import pytest
from good_descriptors import CLASSES, descriptor, fields_of

import anydml as dml
from anydml.ops._fields import Kind

ATTRIBUTES = [
    (name, info) for name, kind in CLASSES.items() for info in kind.fields() if info.kind == Kind()
]


@pytest.mark.parametrize("value", [-1, -9, -(2**63), 2**32, 2**64, 2**70])
@pytest.mark.parametrize(
    ("name", "info"), ATTRIBUTES, ids=[f"{name}.{info.name}" for name, info in ATTRIBUTES]
)
def test_attribute(name, info, value):
    good = descriptor(name, fields_of(name))
    try:
        found = dml.Device("cpu").check(dataclasses.replace(good, **{info.attribute: value}))
    except dml.InvalidDescriptorError as error:  # of more bits than any field has
        found = error.violations
    assert (abs(value) > 2**64 - 1) == isinstance(found, tuple)
    told = [violation.rule for violation in found if violation.path == f"{name}.{info.name}"]
    # What the field holds, and what the operator makes of it.
    assert len(told) == (1 if abs(value) > 2**64 - 1 else 2), told


@pytest.mark.parametrize("alignment", [-4, 2**32, 2**63])
def test_an_alignment_that_no_uint_holds(alignment):
    tensor = dml.TensorDesc("FLOAT32", (2,), guaranteed_base_offset_alignment=alignment)
    desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
    paths = [violation.path for violation in dml.Device("cpu").check(desc)]
    assert "SPLIT.InputTensor.GuaranteedBaseOffsetAlignment" in paths
    largest = dataclasses.replace(tensor, guaranteed_base_offset_alignment=2**31)
    assert not dml.Device("cpu").check(
        dml.Split(input_tensor=largest, output_tensors=[largest], axis=0)
    )
