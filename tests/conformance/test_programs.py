"""Lowering of descriptors: pure data whose slots are the descriptor's tensors."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.core.program import ArraySpec, IndexUse
from anydml.ops._registry import OPERATORS
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from support import strategies
from support.made import shared

every_kind = pytest.mark.parametrize(
    "kind", dict.fromkeys(OPERATORS.values()), ids=lambda kind: kind.NAME
)


@every_kind
@given(data=st.data())
def test_slots_are_the_tensors_without_padding(kind, data):
    desc = data.draw(strategies.descriptors(kind))
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
    read = [name for call in program.calls for name in call.inputs]
    assert {slot.name for slot in program.inputs} <= set(read)
    outputs = [slot.name for slot in program.outputs]
    written = [name for call in program.calls for name in call.outputs if name in outputs]
    assert sorted(written) == sorted(outputs)  # each once
    if getattr(desc, "fused_activation", None) is None:
        assert [name for name in program.calls[-1].outputs if name] == outputs


@every_kind
def test_programs_are_frozen_hashable_picklable_and_printable(kind):
    program = shared(kind, 5).lower()
    again = descriptor(Seeded(5), kind).lower()
    assert program == again
    assert hash(program) == hash(again)
    assert pickle.loads(pickle.dumps(program)) == program
    assert program.calls[0].kernel in str(program)
    with pytest.raises(AttributeError):
        program.calls = ()


@every_kind
def test_only_what_clamps_lowers_differently(kind):
    desc = shared(kind, 6)
    program = desc.lower()
    assert (program.clamped() != program) == any(call.indices for call in program.calls)
    assert kind.NAME.startswith("GATHER") == desc.CLAMPS


def test_an_example():
    t = dml.TensorDesc
    program = (
        dml.GatherND1(
            input_tensor=t("FLOAT32", (1, 3, 2, 5)),
            indices_tensor=t("UINT32", (1, 3, 4, 1)),
            output_tensor=t("FLOAT32", (1, 3, 4, 5)),
            input_dimension_count=3,
            indices_dimension_count=3,
            batch_dimension_count=1,
        )
        .lower()
        .clamped()
    )
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
