"""Computed operators: every type, layout and device within the tolerance of the definition.

The exact result is `compute` in float64; what that itself means is judged elsewhere, by NumPy here
and by other projects' suites (tests/conformance/test_onnx_computed.py).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.engines._numpy import NumpyEngine
from anydml.exactness import Unit, first_difference
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.registry import OPERATORS
from support import Flavour, contents
from support.samples import computed
from support.strategies import flavours, generators

KINDS = [kind for kind in dict.fromkeys(OPERATORS.values()) if issubclass(kind, Computed)]
CPU, REFERENCE = dml.Device("cpu"), dml.Device("reference")


every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.NAME)


def inputs_of(data, desc, flavour=None):
    """Arrays of the declared sizes; what the descriptor broadcasts is broadcast."""
    arrays = []
    for _, tensor, _ in desc.tensors(Role.INPUT):
        chosen = flavour or data.draw(flavours())
        values = contents(data.draw(generators()), tensor.sizes, tensor.data_type.numpy, chosen)
        index = tuple(slice(0, 1) if s == 0 else slice(None) for s in tensor.element_strides)
        arrays.append(np.broadcast_to(values[index], tensor.sizes))
    return arrays


def run(device, desc, arrays):
    return device.create_operator(desc).compile()(*arrays)


def exact(desc, arrays):
    """The result in float64 without a scale and bias, and that on absolute values."""
    engine, given = NumpyEngine(), desc.attributes()
    with np.errstate(all="ignore"):
        wide = [a.astype(np.float64) if a.dtype.kind == "f" else a for a in arrays]
        return (
            type(desc).compute(engine, *wide, **given),
            type(desc).compute(engine, *map(np.abs, wide), **given),
        )


@every_kind
@given(data=st.data())
def test_the_cpu_is_within_the_tolerance(kind, data):
    desc = data.draw(computed(kind))
    arrays = inputs_of(data, desc)
    got = run(CPU, desc, arrays)
    fused = getattr(desc, "fused_activation", None)
    if getattr(desc, "scale_bias", None) is None and fused is None:
        wanted, magnitude = exact(desc, arrays)
        with np.errstate(all="ignore"):
            wanted = wanted.astype(got.dtype) if kind.TOLERANCE.unit is Unit.BITS else wanted
        where = first_difference(got, wanted, np.abs(magnitude), kind.TOLERANCE)
        assert where is None, (where, [a[where] for a in arrays], got[where], wanted[where])
    reference = run(REFERENCE, desc, arrays)
    assert reference.dtype == got.dtype
    assert reference.shape == got.shape


@every_kind
@given(data=st.data())
def test_a_scale_and_an_activation_are_calls_of_their_own(kind, data):
    """The same bits as the operators one after another, where no type in between is rounded."""
    desc = data.draw(computed(kind))
    fields = {info.attribute: getattr(desc, info.attribute) for info in desc.fields()}
    scaled, fused = fields.get("scale_bias"), fields.get("fused_activation")
    if desc.output_tensor.data_type is dml.DataType.FLOAT16 or not (scaled or fused):
        return
    arrays = inputs_of(data, desc)
    got = run(CPU, desc, arrays)
    if scaled:
        tensor = dml.TensorDesc(desc.input_tensor.data_type, desc.input_tensor.sizes)
        first = dml.ElementWiseIdentity(
            input_tensor=desc.input_tensor, output_tensor=tensor, scale_bias=scaled
        )
        arrays[0] = run(CPU, first, arrays[:1])
        fields |= {"scale_bias": None, "input_tensor": tensor}
    plain = type(desc)(**{**fields, **({"fused_activation": None} if fused else {})})
    stepwise = run(CPU, plain, arrays)
    if fused:
        tensor = plain.output_tensor
        attributes = fused.attributes()
        last = type(fused)(input_tensor=tensor, output_tensor=tensor, **attributes)
        stepwise = run(CPU, last, [stepwise])
    assert first_difference(got, stepwise) is None


@every_kind
@given(data=st.data())
def test_outputs_that_are_bound(kind, data):
    """Strided outputs, and an output over an input where the page allows it."""
    desc = data.draw(computed(kind))
    arrays = [a.copy() for a in inputs_of(data, desc, Flavour.RANDOM)]
    wanted = run(CPU, desc, arrays)
    compiled = CPU.create_operator(desc).compile()
    bindings = dict(zip((info.name for info in desc.bind_points(Role.INPUT)),
                        arrays, strict=True))  # fmt: skip
    memory = np.full((*wanted.shape[:-1], 2 * wanted.shape[-1]), 77, wanted.dtype)
    compiled.dispatch(**bindings, OutputTensor=memory[..., ::2])
    assert first_difference(memory[..., ::2], wanted) is None
    assert (memory[..., 1::2] == 77).all()
    name, first = next(iter(bindings.items()))
    pairs = compiled.program.in_place()
    if ("OutputTensor", name) in pairs:
        compiled.dispatch(**bindings, OutputTensor=first)
        assert first_difference(first, wanted) is None
    else:
        with pytest.raises(dml.BindingError, match="OutputTensor: expected memory of its own"):
            compiled.dispatch(**bindings, OutputTensor=first)


@every_kind
def test_every_page_that_allows_it_is_in_place(kind):
    desc = kind.with_outputs(**{
        info.attribute: dml.TensorDesc("FLOAT32", (2, 2, 2, 2))
        for info in kind.tensor_fields(Role.INPUT)
    }, **{k: v for k, v in kind.example().items() if not k.endswith("tensor")})  # fmt: skip
    if kind.IN_PLACE and getattr(desc, "fused_activation", None) is None:
        assert desc.lower().in_place()


@every_kind
@given(data=st.data())
def test_json_and_repr_give_the_descriptor_back(kind, data):
    desc = data.draw(computed(kind))
    assert dml.from_json(desc.to_json()) == desc
    assert eval(repr(desc), vars(dml) | {"inf": float("inf")}) == desc


@every_kind
@given(data=st.data())
def test_outputs_of_other_sizes_or_types_are_refused(kind, data):
    desc = data.draw(computed(kind))
    tensor = desc.output_tensor
    axis = data.draw(st.integers(0, tensor.dimension_count - 1))
    sizes = list(tensor.sizes)
    sizes[axis] += 1
    fields = {info.attribute: getattr(desc, info.attribute) for info in desc.fields()}
    wrong = kind(**{**fields, "output_tensor": dml.TensorDesc(tensor.data_type, sizes)})
    found = [violation.path for violation in CPU.check(wrong)]
    assert found == [f"{kind.NAME}.OutputTensor.Sizes[{axis}]"]
    types = kind.SUPPORT[-1].tensors["OutputTensor"].data_types
    other = next(t for t in types if t is not tensor.data_type)
    wrong = kind(**{**fields, "output_tensor": dml.TensorDesc(other, tensor.sizes)})
    assert [v.path for v in CPU.check(wrong)] == [f"{kind.NAME}.OutputTensor.DataType"]
