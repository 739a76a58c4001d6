"""Bindings by the page's names and by the fields': the same call, and the same errors."""

from itertools import product

import numpy as np
import pytest

import anydml as dml
from anydml.ops._registry import OPERATORS
from support.made import plain_values, shared

T = dml.TensorDesc


def spellings(desc):
    points = desc.bind_points()
    for choice in product(("name", "attribute"), repeat=len(points)):
        yield {i.name: getattr(i, spelling) for i, spelling in zip(points, choice, strict=True)}


@pytest.mark.parametrize("device", ["cpu", "reference"])
@pytest.mark.parametrize("kind", dict.fromkeys(OPERATORS.values()), ids=lambda kind: kind.NAME)
def test_every_mixture_of_names_binds(kind, device):
    desc = shared(kind, 3, packed=True)
    compiled = dml.Device(device).create_operator(desc).compile()
    inputs = [info.name for info in desc.bind_points() if info.role.name == "INPUT"]
    expected = plain_values(desc)
    compiled.dispatch(**expected)
    for spelled in spellings(desc):
        got = plain_values(desc)
        compiled.dispatch(**{spelled[name]: value for name, value in got.items()})
        for name, value in got.items():
            assert_equal(value, expected[name])
        results = compiled(**{spelled[name]: got[name] for name in inputs})
        assert_equal([results], [[expected[n] for n in expected if n not in inputs]])


def assert_equal(got, expected):
    got, expected = flattened(got), flattened(expected)
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert one.tobytes() == other.tobytes()


def flattened(value):
    if isinstance(value, list | tuple):
        return [array for item in value for array in flattened(item)]
    return [value]


def split(**flags):
    tensor = T("FLOAT32", (4,), **flags)
    desc = dml.Split(input_tensor=tensor, axis=0, output_tensors=[T("FLOAT32", (2,))] * 2)
    return dml.Device("cpu").create_operator(desc).compile()


X = np.arange(4, dtype="f4")
Y = [np.zeros(2, "f4"), np.zeros(2, "f4")]
KNOWN = "expected one of InputTensor, OutputTensors, got an unknown binding"


@pytest.mark.parametrize(
    ("bindings", "message"),
    [
        ({"input_tensor": X, "InputTensor": X, "OutputTensors": Y},
         "InputTensor: expected one binding, got two (also as input_tensor"),
        ({"InputTensor": X, "input_tensor": X, "output_tensors": Y},
         "InputTensor: expected one binding, got two (also as input_tensor"),
        ({"InputTensor": X, "output_tensors": Y, "OutputTensors": Y},
         "OutputTensors: expected one binding, got two (also as output_tensors"),
        ({"input_tensr": X, "output_tensors": Y},
         f"input_tensr: {KNOWN}; did you mean 'input_tensor'?"),
        ({"InputTensr": X, "output_tensors": Y},
         f"InputTensr: {KNOWN}; did you mean 'InputTensor'?"),
        ({"input": X, "output_tensors": Y}, f"input: {KNOWN}"),
        ({"axis": 0, "InputTensor": X, "output_tensors": Y}, f"axis: {KNOWN}"),
        ({"input_tensor": X}, "OutputTensors: expected a binding, got none"),
        ({"input_tensor": X[:3], "output_tensors": Y}, "InputTensor: expected"),
        ({"input_tensor": X, "output_tensors": Y[:1]}, "OutputTensors: expected 2 arrays, got 1"),
        ({"input_tensor": X, "output_tensors": [Y[0], 3]}, r"OutputTensors[1]: expected"),
        ({"input_tensor": X, "output_tensors": [X[:2], X[2:]]},
         "OutputTensors[0]: expected memory that does not overlap"),
    ],
)  # fmt: skip
def test_errors_have_the_page_names(bindings, message):
    with pytest.raises(dml.BindingError) as error:
        split().dispatch(**bindings)
    assert str(error.value).startswith(message)
    assert not np.any(Y)


def test_inputs_by_position_and_name():
    for name in ("InputTensor", "input_tensor"):
        with pytest.raises(dml.BindingError, match=r"InputTensor: .*two"):
            split()(X, **{name: X})
    for name in ("OutputTensors", "output_tensors"):
        with pytest.raises(dml.BindingError, match="OutputTensors: expected no binding"):
            split()(X, **{name: Y})
    with pytest.raises(dml.BindingError, match=f"self: {KNOWN}"):
        split()(X, self=X)


def test_owned_tensors():
    compiled = split(flags="OWNED_BY_DML")
    for name in ("InputTensor", "input_tensor"):
        ready = compiled.initialize(**{name: X})
        assert [part.tolist() for part in ready()] == [[0, 1], [2, 3]]
        with pytest.raises(dml.BindingError, match="InputTensor: expected no binding"):
            ready.dispatch(**{name: X}, output_tensors=Y)
    for name in ("inpt_tensor", "self"):
        with pytest.raises(dml.BindingError, match=f"{name}: {KNOWN}"):
            compiled.initialize(**{name: X})
    with pytest.raises(dml.BindingError, match="expected one binding, got two"):
        compiled.initialize(InputTensor=X, input_tensor=X)


def test_a_bad_index_is_named_by_the_page():
    tensor, indices = T("FLOAT32", (4,)), T("INT32", (2,))
    desc = dml.GatherElements(
        input_tensor=tensor, indices_tensor=indices, output_tensor=T("FLOAT32", (2,)), axis=0
    )
    compiled = dml.Device("cpu").create_operator(desc).compile()
    with pytest.raises(dml.IndexOutOfRangeError, match=r"GATHER_ELEMENTS.IndicesTensor\[1\]: exp"):
        compiled.dispatch(input_tensor=X, indices_tensor=np.array([0, 4], "i4"), output_tensor=Y[0])
