"""The printed examples through array functions, descriptors, raw buffers and JSON."""

import json
import re

import numpy as np
import pytest
from printed_examples import EXAMPLES

import anydml as dml
from support import Poisoned, assert_same_bits, by_reference

CLASSES = {
    "TOP_K": dml.TopK,
    "TOP_K1": dml.TopK1,
    "SCATTER": dml.Scatter,
    "SCATTER_ND": dml.ScatterND,
    "NONZERO_COORDINATES": dml.NonzeroCoordinates,
    "SLICE": dml.Slice,
    "SLICE1": dml.Slice1,
    "TILE": dml.Tile,
    "REVERSE_SUBSEQUENCES": dml.ReverseSubsequences,
    "PADDING": dml.Padding,
    "PADDING1": dml.Padding1,
    "FILL_VALUE_CONSTANT": dml.FillValueConstant,
    "FILL_VALUE_SEQUENCE": dml.FillValueSequence,
    "SPLIT": dml.Split,
    "JOIN": dml.Join,
    "GATHER": dml.Gather,
    "GATHER_ELEMENTS": dml.GatherElements,
    "GATHER_ND": dml.GatherND,
    "GATHER_ND1": dml.GatherND1,
}


def is_tensor(value):
    return isinstance(value, tuple)


def snake(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def described(value):
    if isinstance(value, list):
        return [described(item) for item in value]
    return dml.TensorDesc(*value[:2]) if is_tensor(value) else value


def as_json(value):
    if isinstance(value, list):
        return [as_json(item) for item in value]
    return {"DataType": value[0], "Sizes": list(value[1])} if is_tensor(value) else value


def array(tensor):
    """The values as an array; the second says which are defined."""
    kind, sizes, values = tensor
    width = sizes[-1]

    def rows(value):
        if value is None:
            return [np.nan] * width
        return [rows(item) for item in value] if isinstance(value, list) else value

    filled = np.array(rows(values), float).reshape(sizes)
    return np.nan_to_num(filled).astype(kind.lower()), ~np.isnan(filled)


def descriptor(example):
    fields = {snake(name): described(value) for name, value in example.fields.items()}
    return CLASSES[example.operator](**fields)


def tensors(example, prefix):
    """Arrays by name, of the inputs or of the outputs."""
    found = {}
    for name, value in example.fields.items():
        if name.startswith("Output") is not (prefix == "Output"):
            continue
        if isinstance(value, list) and is_tensor(value[0]):
            found[name] = [array(item)[0] for item in value]
        elif is_tensor(value):
            found[name] = array(value)[0]
    return found


def expect(example, name, got):
    value = example.fields[name]
    pairs = zip(value, got, strict=True) if isinstance(value, list) else [(value, got)]
    for tensor, result in pairs:
        expected, defined = array(tensor)
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        assert_same_bits(np.asarray(result)[defined], expected[defined], name)


@pytest.fixture(params=EXAMPLES, ids=str)
def example(request):
    return request.param


def test_descriptor_is_good(example):
    assert dml.Device("cpu").check(descriptor(example)) == []


def test_array_function(example):
    result = eval(example.call, {"dml": dml}, tensors(example, "Input"))
    outputs = [name for name in example.fields if name in tensors(example, "Output")]
    if example.operator == "NONZERO_COORDINATES":
        count = tensors(example, "Output")["OutputCountTensor"].item()
        rows = tensors(example, "Output")["OutputCoordinatesTensor"].reshape(-1, 3)
        assert_same_bits(result, rows[:count])
    elif len(outputs) > 1:
        for name, part in zip(outputs, result, strict=True):
            expect(example, name, part)
    else:
        expect(example, outputs[0], result)


def test_dispatch_to_arrays(example):
    desc = descriptor(example)
    outputs = {}
    watched = []
    for name, value in tensors(example, "Output").items():
        many = value if isinstance(value, list) else [value]
        poisoned = [Poisoned(item.shape, item.dtype) for item in many]
        watched += poisoned
        views = [item.array for item in poisoned]
        outputs[name] = views if isinstance(value, list) else views[0]
    compiled = dml.Device("cpu").create_operator(desc).compile()
    compiled.dispatch(**tensors(example, "Input"), **outputs)
    for name, got in outputs.items():
        expect(example, name, got)
    assert all(item.gaps_intact() for item in watched)


def test_dispatch_to_raw_buffers(example):
    desc = descriptor(example)

    def raw(value):
        if isinstance(value, list):
            return [raw(item) for item in value]
        return bytearray(value.tobytes())

    inputs = {name: raw(value) for name, value in tensors(example, "Input").items()}
    outputs = {name: raw(value) for name, value in tensors(example, "Output").items()}
    for value in outputs.values():
        for buffer in value if isinstance(value, list) else [value]:
            buffer[:] = b"\xa5" * len(buffer)
    dml.Device("cpu").create_operator(desc).compile().dispatch(**inputs, **outputs)
    for name, value in outputs.items():
        wanted = tensors(example, "Output")[name]
        if isinstance(value, list):
            got = [np.frombuffer(b, w.dtype).reshape(w.shape)
                   for b, w in zip(value, wanted, strict=True)]  # fmt: skip
        else:
            got = np.frombuffer(value, wanted.dtype).reshape(wanted.shape)
        expect(example, name, got)


def test_call_allocates(example):
    compiled = dml.Device("cpu").create_operator(descriptor(example)).compile()
    result = compiled(**tensors(example, "Input"))
    outputs = tensors(example, "Output")
    if len(outputs) > 1:
        for name in outputs:
            expect(example, name, getattr(result, snake(name)))
    else:
        expect(example, next(iter(outputs)), result)


def test_json_gives_the_same_descriptor(example):
    fields = {name: as_json(value) for name, value in example.fields.items()}
    desc = descriptor(example)
    inline = {"type": example.operator, **fields}
    assert dml.from_json(json.loads(json.dumps(inline))) == desc
    for nested in ("desc", "Desc"):
        assert dml.from_json({"type": f"DML_OPERATOR_{example.operator}", nested: fields}) == desc
    written = desc.to_json()
    assert written["type"] == f"DML_OPERATOR_{example.operator}"
    assert set(written) - {"type"} == set(fields)
    assert dml.from_json(json.loads(json.dumps(written))) == desc


def test_reference_of_the_room(example):
    result = by_reference(descriptor(example), tensors(example, "Input"))
    for name in tensors(example, "Output"):
        expect(example, name, result[name])
