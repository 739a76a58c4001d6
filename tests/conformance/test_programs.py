"""What a room lowers a descriptor to: pure data whose slots are the descriptor's tensors."""

import pickle

import good_descriptors as good
import numpy as np
import pytest

import anydml as dml
from anydml.program import ArraySpec, IndexUse

OPERATORS = sorted(good.CLASSES)


@pytest.mark.parametrize("rank", [2, 4, 8])
@pytest.mark.parametrize("operator", OPERATORS)
def test_slots_are_the_tensors_without_padding(operator, rank):
    desc = good.descriptor(operator, good.fields_of(operator, rank))
    program = desc.lower()
    tensors = {path: (tensor, info.role.value) for path, tensor, info in desc.tensors()}
    slots = [(slot, "input tensor") for slot in program.inputs]
    slots += [(slot, "output tensor") for slot in program.outputs]
    assert {slot.name for slot, _ in slots} == set(tensors)
    for slot, role in slots:
        tensor, expected = tensors[slot.name]
        assert role == expected
        assert slot.declared == tensor.sizes
        assert slot.spec.dtype == tensor.data_type.numpy
        assert slot.declared == (1,) * slot.padding + slot.spec.shape
    assert program.calls[0].inputs == tuple(slot.name for slot in program.inputs)
    assert program.calls[-1].outputs == tuple(slot.name for slot in program.outputs)


@pytest.mark.parametrize("operator", OPERATORS)
def test_programs_are_frozen_hashable_picklable_and_printable(operator):
    program = good.descriptor(operator, good.fields_of(operator)).lower()
    again = good.descriptor(operator, good.fields_of(operator)).lower()
    assert program == again
    assert hash(program) == hash(again)
    assert pickle.loads(pickle.dumps(program)) == program
    assert program.calls[0].kernel in str(program)
    with pytest.raises(AttributeError):
        program.calls = ()


@pytest.mark.parametrize("operator", OPERATORS)
def test_only_what_clamps_lowers_differently(operator):
    desc = good.descriptor(operator, good.fields_of(operator))
    assert (desc.lower(clamp=True) != desc.lower()) == desc.CLAMPS
    assert operator.startswith("GATHER") == desc.CLAMPS


def test_an_example():
    t = dml.TensorDesc
    program = dml.GatherND1(
        input_tensor=t("FLOAT32", (1, 3, 2, 5)),
        indices_tensor=t("UINT32", (1, 3, 4, 1)),
        output_tensor=t("FLOAT32", (1, 3, 4, 5)),
        input_dimension_count=3,
        indices_dimension_count=3,
        batch_dimension_count=1,
    ).lower(clamp=True)
    assert [slot.spec for slot in program.inputs] == [
        ArraySpec((3, 2, 5), np.dtype("f4")),
        ArraySpec((3, 4, 1), np.dtype("u4")),
    ]
    assert program.outputs[0].spec == ArraySpec((3, 4, 5), np.dtype("f4"))
    # The coordinate points into axis 2 of the four that the caller sees.
    assert program.calls[0].indices == IndexUse("IndicesTensor", (2,), (2,))
    assert program.calls[0].indices.axis_and_size(7) == (2, 2)
    assert str(program) == (
        "OutputTensor: float32[3, 4, 5] = gather_nd(InputTensor: float32[3, 2, 5], "
        "IndicesTensor: uint32[3, 4, 1], batch_dims=1, clamp=True)"
    )


def test_natural_updates_of_scatter_nd():
    t = dml.TensorDesc
    program = dml.ScatterND(
        input_tensor=t("FLOAT32", (1, 3, 5)),
        indices_tensor=t("UINT32", (1, 2, 1)),
        updates_tensor=t("FLOAT32", (1, 2, 5)),
        output_tensor=t("FLOAT32", (1, 3, 5)),
        input_dimension_count=2,
        indices_dimension_count=2,
    ).lower()
    assert [slot.spec.shape for slot in program.inputs] == [(3, 5), (2, 1), (2, 5)]
