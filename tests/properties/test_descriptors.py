"""Descriptors dispatched to arrays and to raw buffers, against the operators' references."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import anydml as dml
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from support import (
    Flavour,
    Poisoned,
    assert_agrees,
    assert_same_bits,
    by_reference,
    contents,
    indices,
    strategies,
)

# Those that calculate are in test_computed.py.
KINDS = [kind for kind in dict.fromkeys(OPERATORS.values()) if not issubclass(kind, Computed)]
INDICES = "IndicesTensor"


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def to_list(value):
    return value if isinstance(value, list | tuple) else [value]


def index_sizes(desc):
    """What the values of the index tensor point into: an axis, or one for each coordinate.

    None where the operator takes any value.
    """
    checked = desc.lower().calls[0].indices
    if checked is None:
        return None
    return checked.sizes if len(checked.sizes) > 1 else checked.sizes[0]


def values_of(data, desc, name, tensor):
    generator = data.draw(strategies.generators())
    if name == INDICES:
        sizes = index_sizes(desc)
        if sizes is not None:
            return indices(generator, tensor.sizes, sizes, tensor.data_type.numpy)
        if data.draw(st.booleans()):  # near 0, where most of them name something
            return indices(generator, tensor.sizes, 5, tensor.data_type.numpy)
    flavour = data.draw(strategies.flavours())
    return contents(generator, tensor.sizes, tensor.data_type.numpy, flavour)


def strides_of(tensor):
    return tuple(stride * tensor.data_type.element_size for stride in tensor.element_strides)


def view_of(tensor, flat):
    """A tensor's elements in the raw buffer that the descriptor describes."""
    return np.ndarray(tensor.sizes, tensor.data_type.numpy, flat, 0, strides_of(tensor))


def fields_of(desc, role):
    for info in desc.tensor_fields(role):
        yield info.name, to_list(getattr(desc, info.attribute)), info.many


def bound(tensors, many):
    return tensors if many else tensors[0]


@pytest.fixture(params=["cpu", "reference", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Every test of this file runs on each backend that is there."""
    return dml.Device(request.param)


def defined(desc, name, expected):
    """Which elements of an output are: of the coordinates, the rows below the count."""
    mask = np.ones(expected[name][0].shape, bool)
    if name == "OutputCoordinatesTensor":
        count = expected["OutputCountTensor"][0].item()
        mask.reshape(-1, mask.shape[-1])[count:] = False
    return mask


def results_of(desc, arrays):
    return {name: to_list(value) for name, value in by_reference(desc, arrays).items()}


def test_arrays_of_any_layout(kind, device):
    @given(st.data(), strategies.descriptors(kind), st.integers(1, 4))
    def check(data, desc, threads):
        inputs, outputs, watched = {}, {}, []
        for name, tensors, many in fields_of(desc, Role.INPUT):
            operands = [
                Poisoned(
                    tensor.sizes,
                    tensor.data_type.numpy,
                    data.draw(
                        strategies.layouts(
                            tensor.dimension_count, plain=True, tuples=name == INDICES
                        )
                    ),
                    values_of(data, desc, name, tensor),
                )
                for tensor in tensors
            ]
            watched += operands
            inputs[name] = bound([operand.array for operand in operands], many)
        targets = {}
        for name, tensors, many in fields_of(desc, Role.OUTPUT):
            targets[name] = [
                Poisoned(
                    tensor.sizes,
                    tensor.data_type.numpy,
                    data.draw(strategies.layouts(tensor.dimension_count, output=True, plain=True)),
                )
                for tensor in tensors
            ]
            outputs[name] = bound([target.array for target in targets[name]], many)
        before = {name: [t.array.copy() for t in many] for name, many in targets.items()}
        expected = results_of(desc, inputs)
        compiled = device.create_operator(desc).compile()
        with dml.num_threads(threads):
            compiled.dispatch(**inputs, **outputs)
            allocated = compiled(**inputs)
        allocated = [
            item
            for value in (allocated if len(targets) > 1 else [allocated])
            for item in to_list(value)
        ]
        expected_result = [item for many in expected.values() for item in many]
        for got, reference in zip(allocated, expected_result, strict=True):
            assert_agrees(
                desc, got, reference, "allocated"
            )  # what is undefined is zero in memory of our own
        for name, many in targets.items():
            mask = defined(desc, name, expected) if len(many) == 1 else ...
            for target, reference, old in zip(many, expected[name], before[name], strict=True):
                assert_agrees(desc, target.array[mask], reference[mask], name)
                if len(many) == 1:
                    assert_same_bits(target.array[~mask], old[~mask], f"{name}, undefined")
                assert target.gaps_intact()
        assert all(operand.untouched() for operand in watched)

    check()


RAW_FORMS = ("elements", "bytes", "signed bytes", "buffer")


def raw_form(data, flat, tensor):
    """The bytes as one of the forms in which a raw buffer may come."""
    form = data.draw(st.sampled_from(RAW_FORMS))
    if form == "elements" and flat.nbytes % tensor.data_type.element_size == 0:
        return flat.view(tensor.data_type.numpy)
    if form == "signed bytes":
        return flat.view(np.int8)
    return memoryview(flat) if form == "buffer" else flat


def test_raw_buffers_laid_out_by_strides(kind, device):
    @given(st.data(), strategies.descriptors(kind), st.integers(1, 4))
    def check(data, desc, threads):
        inputs, raw, watched = {}, {}, []
        for name, tensors, many in fields_of(desc, Role.INPUT):
            views, forms = [], []
            for tensor in tensors:
                memory = Poisoned((tensor.total_tensor_size_in_bytes,), "u1")
                view = view_of(tensor, memory.array)
                view[...] = values_of(data, desc, name, tensor)
                watched.append((memory, memory.block.copy()))
                views.append(view)
                forms.append(raw_form(data, memory.array, tensor))
            inputs[name], raw[name] = bound(views, many), bound(forms, many)
        expected = results_of(desc, inputs)
        images = []
        for name, tensors, many in fields_of(desc, Role.OUTPUT):
            forms = []
            for i, tensor in enumerate(tensors):
                memory = Poisoned((tensor.total_tensor_size_in_bytes,), "u1")
                image = memory.array.copy()
                mask = defined(desc, name, expected) if len(tensors) == 1 else ...
                view_of(tensor, image)[mask] = expected[name][i][mask]
                images.append((name, memory, image))
                forms.append(raw_form(data, memory.array, tensor))
            raw[name] = bound(forms, many)
        with dml.num_threads(threads):
            device.create_operator(desc).compile().dispatch(**raw)
        for name, memory, image in images:
            assert np.array_equal(memory.array, image), name  # elements and gaps alike
            assert memory.gaps_intact()
        for memory, before in watched:
            assert np.array_equal(memory.block, before)

    check()


@pytest.mark.parametrize(
    "kind", [dml.Scatter, dml.ScatterND, dml.ElementWiseIdentity], ids=lambda kind: kind.__name__
)
def test_output_bound_to_the_input(kind, device):
    @given(st.data(), strategies.descriptors(kind), st.booleans())
    def check(data, desc, spoil):
        packed = dml.TensorDesc(desc.input_tensor.data_type, desc.input_tensor.sizes)
        fields = {info.attribute: getattr(desc, info.attribute) for info in desc.fields()}
        desc = kind(**fields | {"input_tensor": packed, "output_tensor": packed})
        arrays = {
            name: values_of(data, desc, name, tensors[0])
            for name, tensors, _ in fields_of(desc, Role.INPUT)
        }
        layout = data.draw(strategies.layouts(packed.dimension_count, output=True, plain=True))
        target = Poisoned(
            packed.sizes, packed.data_type.numpy, layout, values=arrays["InputTensor"]
        )
        expected = by_reference(desc, arrays)["OutputTensor"]
        arrays["InputTensor"] = target.array
        compiled = device.create_operator(desc).compile()
        if spoil and INDICES in arrays:
            lookup = arrays[INDICES]
            lookup.flat[data.draw(st.integers(0, lookup.size - 1))] = 2**31 - 1
            with pytest.raises(dml.IndexOutOfRangeError) as error:
                compiled.dispatch(**arrays, OutputTensor=target.array)
            assert str(error.value).startswith(f"{desc.NAME}.IndicesTensor[")
            assert target.untouched()
        else:
            compiled.dispatch(**arrays, OutputTensor=target.array)
            assert_agrees(desc, target.array, expected, "in place")
            assert target.gaps_intact()

    check()


@pytest.mark.parametrize(
    "kind",
    [dml.Gather, dml.GatherElements, dml.GatherND, dml.GatherND1],
    ids=lambda kind: kind.__name__,
)
def test_clamping_is_what_clipped_indices_give(kind, device):
    @given(st.data(), strategies.descriptors(kind))
    def check(data, desc):
        tensor = desc.indices_tensor
        wild = contents(data.draw(strategies.generators()), tensor.sizes,
                        tensor.data_type.numpy, data.draw(st.sampled_from(
                            (Flavour.SPECIAL, Flavour.TIED, Flavour.RANDOM))))  # fmt: skip
        x = values_of(data, desc, "InputTensor", desc.input_tensor)
        size = np.array(index_sizes(desc), object)
        wide = wild.astype(object)
        if wild.dtype.kind == "i":
            wide = np.where(wide < 0, wide + size, wide)
        clipped = np.minimum(np.maximum(wide, 0), size - 1).astype(wild.dtype)
        expected = by_reference(desc, {"InputTensor": x, INDICES: clipped})["OutputTensor"]
        operator = device.create_operator(desc, out_of_range="clamp")
        assert_agrees(desc, operator.compile()(x, wild), expected, "clamped")

    check()
