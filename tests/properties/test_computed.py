"""Computed operators: every type, layout and device within the tolerance of the definition.

The exact result is `compute` in float64; what that itself means is judged elsewhere, by NumPy here
and by other projects' suites (tests/conformance/test_onnx_computed.py).
"""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.core.tolerance import Unit, first_difference
from anydml.engines._numpy import NumpyEngine
from anydml.ops._computed import Sized
from anydml.ops._fields import Role
from anydml.suite.expected import MAGNITUDES, exact
from support import Flavour, assert_same_bits, contents
from support.computed import KINDS, bindings, run
from support.made import shared
from support.strategies import descriptors, flavours, generators

CPU, REFERENCE = dml.Device("cpu"), dml.Device("reference")

SUMS_AND_PRODUCTS = (dml.ElementWiseAdd, dml.ElementWiseAdd1, dml.ElementWiseMultiply)


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


@every_kind
@given(data=st.data())
def test_the_cpu_is_within_the_tolerance(kind, data):
    desc = data.draw(descriptors(kind))
    arrays = inputs_of(data, desc)
    results, reference = run(CPU, desc, arrays), run(REFERENCE, desc, arrays)
    fused = getattr(desc, "fused_activation", None)
    if getattr(desc, "scale_bias", None) is None and fused is None:
        # Of two NaNs, NumPy's loops for sums and products take either.
        if kind.TOLERANCE.unit is Unit.BITS and kind not in SUMS_AND_PRODUCTS:
            for ours, theirs in zip(results, reference, strict=True):
                assert_same_bits(ours, theirs)
        for got, wide, magnitude in zip(results, *exact(desc, arrays), strict=True):
            rounded = kind.TOLERANCE.unit is Unit.BITS or got.dtype.kind != "f"
            expected = NumpyEngine().cast(wide, got.dtype) if rounded else wide
            if kind in MAGNITUDES:  # which are NaN where a result is left open
                got, expected, magnitude = (  # noqa: PLW2901
                    np.where(np.isnan(magnitude), a.dtype.type(0), a)
                    for a in (got, expected, magnitude)
                )
            where = first_difference(got, expected, magnitude, kind.TOLERANCE)
            assert where is None, (where, arrays, got[where], expected[where])
    assert [r.dtype for r in reference] == [r.dtype for r in results]
    assert [r.shape for r in reference] == [r.shape for r in results]


@every_kind
@given(data=st.data())
def test_a_scale_and_an_activation_are_calls_of_their_own(kind, data):
    """The same bits as the operators one after another, where no type in between is rounded."""
    desc = data.draw(descriptors(kind))
    fields = {info.attribute: getattr(desc, info.attribute) for info in desc.fields()}
    scaled, fused = fields.get("scale_bias"), fields.get("fused_activation")
    if not (scaled or fused) or desc.output_tensor.data_type is dml.DataType.FLOAT16:
        return
    arrays = inputs_of(data, desc)
    got, *_ = run(CPU, desc, arrays)
    if scaled:
        tensor = dml.TensorDesc(desc.input_tensor.data_type, desc.input_tensor.sizes)
        first = dml.ElementWiseIdentity(
            input_tensor=desc.input_tensor, output_tensor=tensor, scale_bias=scaled
        )
        arrays[:1] = run(CPU, first, arrays[:1])
        fields |= {"scale_bias": None, "input_tensor": tensor}
    plain = type(desc)(**{**fields, **({"fused_activation": None} if fused else {})})
    stepwise, *_ = run(CPU, plain, arrays)
    if fused:
        tensor = plain.output_tensor
        attributes = fused.attributes()
        last = type(fused)(input_tensor=tensor, output_tensor=tensor, **attributes)
        (stepwise,) = run(CPU, last, [stepwise])
    assert first_difference(got, stepwise) is None


@every_kind
@given(data=st.data())
def test_outputs_that_are_bound(kind, data):
    """Strided outputs, and an output over an input where the page allows it."""
    desc = data.draw(descriptors(kind))
    arrays = [a.copy() for a in inputs_of(data, desc, Flavour.RANDOM)]
    expected = run(CPU, desc, arrays)
    compiled = CPU.create_operator(desc).compile()
    bound = bindings(desc, arrays)
    outputs = {
        info.name: np.full((*result.shape[:-1], 2 * result.shape[-1]), 77, result.dtype)
        for info, result in zip(desc.bind_points(Role.OUTPUT), expected, strict=True)
    }
    compiled.dispatch(**bound, **{name: memory[..., ::2] for name, memory in outputs.items()})
    for memory, result in zip(outputs.values(), expected, strict=True):
        assert first_difference(memory[..., ::2], result) is None
        assert (memory[..., 1::2] == 77).all()
    if not bound:
        return
    (output, *_), (name, first) = outputs, next(iter(bound.items()))
    if expected[0].shape != first.shape or expected[0].dtype != first.dtype:
        return
    over = {**outputs, output: first}
    over = {key: over[key] if key == output else over[key][..., ::2] for key in over}
    if (output, name) in compiled.program.in_place():
        compiled.dispatch(**bound, **over)
        assert first_difference(first, expected[0]) is None
    else:
        with pytest.raises(
            dml.BindingError, match=f"{output}: expected memory that does not overlap"
        ):
            compiled.dispatch(**bound, **over)


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.IN_PLACE], ids=lambda kind: kind.NAME
)
def test_every_page_that_allows_it_is_in_place(kind):
    drawn = (shared(kind, seed, packed=True) for seed in range(20))
    assert any(desc.lower().in_place() for desc in drawn)


@every_kind
@given(data=st.data())
def test_outputs_of_other_sizes_or_types_are_refused(kind, data):
    desc = data.draw(descriptors(kind))
    info = data.draw(st.sampled_from(desc.bind_points(Role.OUTPUT)))
    tensor = getattr(desc, info.attribute)
    axis = data.draw(st.integers(0, tensor.dimension_count - 1))
    sizes = list(tensor.sizes)
    sizes[axis] += 1
    wrong = dataclasses.replace(desc, **{info.attribute: dml.TensorDesc(tensor.data_type, sizes)})
    if not desc.bind_points(Role.INPUT) or issubclass(kind, Sized):
        return  # the caller chooses the sizes
    if wrong.deviations(CPU.feature_level) or (
        wrong.attributes() != desc.attributes() and not CPU.check(wrong)
    ):
        return  # a deviation, or among those that a stride leaves, for a BACKWARD convolution
    found = [violation.path for violation in CPU.check(wrong)]
    assert found == [f"{kind.NAME}.{info.name}.Sizes[{axis}]"]
    specs = dict(zip(desc.tensor_fields(Role.OUTPUT), desc.inferred().outputs, strict=True))
    row = [row for row in kind.SUPPORT if desc._is_for(row)][-1]
    for other in row.tensors[info.name].data_types:
        wrong = dataclasses.replace(desc, **{info.attribute: dml.TensorDesc(other, tensor.sizes)})
        right = specs[info].dtype is None or other is tensor.data_type
        found = {violation.path for violation in CPU.check(wrong)}
        assert bool(found) is not right
        assert all(path.endswith("DataType") for path in found)


WITH_AXES = [kind for kind in KINDS if any(info.attribute == "axes" for info in kind.fields())]


@pytest.mark.parametrize("kind", WITH_AXES, ids=lambda kind: kind.NAME)
def test_axes_that_are_refused(kind):
    """All of them at once, and sizes of outputs are not guessed from them."""
    desc = shared(kind, 0)
    rank = desc.input_tensor.dimension_count
    wrong = dataclasses.replace(desc, axes=(0, rank, 0, 2**32 - 1), axis_count=4)
    assert [v.path for v in CPU.check(wrong)] == [f"{kind.NAME}.Axes[{i}]" for i in (1, 2, 3)]
    wrong = dataclasses.replace(desc, axes=(0, 0), axis_count=1)
    paths = {v.path for v in CPU.check(wrong)}
    assert paths == {f"{kind.NAME}.AxisCount", f"{kind.NAME}.Axes[1]"}
