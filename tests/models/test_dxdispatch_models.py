"""Models of the operators that DxDispatch's own models use, in the form that these have.

They name a schema, make values by start and step, leave a resource longer than its tensor, bind one
resource to several tensors at offsets, spell enumerations out, and print what they wrote.
"""

import pytest
from model_files import run, tensor, zeros

import anydml as dml


def counted(count, start=1, delta=1):
    values = {"valueCount": count, "valueStart": start, "valueDelta": delta}
    return {"initialValuesDataType": "FLOAT32", "initialValues": values}


def plain(resources):
    """Bindings of each tensor to the resource of its name."""
    return {name: name for name in resources}


ONE = {"InputTensor": tensor([1, 1, 4, 3]), "OutputTensor": tensor([1, 1, 2, 2])}

# Operator, its fields, resources, bindings, what is printed.
MODELS = {
    "ELEMENT_WISE_IDENTITY": (
        {"InputTensor": tensor([4]), "OutputTensor": tensor([4]),
         "ScaleBias": {"Scale": 3, "Bias": -1}},
        {"InputTensor": counted(4), "OutputTensor": zeros(4)},
        None,
        ["OutputTensor: 2, 5, 8, 11"],
    ),
    "FILL_VALUE_SEQUENCE": (
        {"ValueDataType": "FLOAT32", "ValueStart": 0.5, "ValueDelta": 1.25,
         "OutputTensor": tensor([1, 1, 1, 4])},
        {"OutputTensor": zeros(4)},
        None,
        ["OutputTensor: 0.5, 1.75, 3, 4.25"],
    ),
    "JOIN": (
        {"Axis": 0, "InputCount": 3, "InputTensors": [tensor([2]), tensor([1]), tensor([3])],
         "OutputTensor": tensor([6])},
        {"A": counted(7), "B": counted(4, 50, 10), "OutputTensor": zeros(6)},
        {"InputTensors": [{"name": "A", "elementCount": 2, "elementOffset": 0}, "B",
                          {"name": "A", "elementCount": 3, "elementOffset": 3}],
         "OutputTensor": "OutputTensor"},
        ["OutputTensor: 1, 2, 50, 4, 5, 6"],
    ),
    "SLICE": (
        {**ONE, "DimensionCount": 4, "Offsets": [0, 0, 1, 0], "Sizes": [1, 1, 2, 2],
         "Strides": [1, 1, 2, 2]},
        {"InputTensor": counted(12), "OutputTensor": zeros(4)},
        None,
        ["OutputTensor: 4, 6, 10, 12"],
    ),
    "SPLIT": (
        {"Axis": 0, "InputTensor": tensor([5]), "OutputCount": 2,
         "OutputTensors": [tensor([2]), tensor([3])]},
        {"InputTensor": counted(5), "Out1": zeros(2), "Out2": zeros(3)},
        {"InputTensor": "InputTensor", "OutputTensors": ["Out1", "Out2"]},
        ["Out1: 1, 2", "Out2: 3, 4, 5"],
    ),
    "UPSAMPLE_2D": (
        {"InputTensor": tensor([1, 1, 2, 2]), "OutputTensor": tensor([1, 1, 2, 6]),
         "ScaleSize": {"Width": 3, "Height": 1},
         "InterpolationMode": "DML_INTERPOLATION_MODE_LINEAR"},
        {"InputTensor": counted(4, 0, 3), "OutputTensor": zeros(12)},
        None,
        ["OutputTensor: 0, 0, 1, 2, 3, 3, 6, 6, 7, 8, 9, 9"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("operator", MODELS)
@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_model(operator, device, tmp_path):
    fields, resources, bindings, printed = MODELS[operator]
    dispatch = {"type": "dispatch", "dispatchable": "it", "bindings": bindings or plain(resources)}
    names = [line.partition(":")[0] for line in printed]
    model = {
        "$schema": "./_schema.json",
        "resources": resources,
        "dispatchables": {"it": {"type": f"DML_OPERATOR_{operator}", "desc": fields}},
        "commands": [dispatch, *({"type": "print", "resource": name} for name in names)],
    }
    text, _ = run(tmp_path, model, device=dml.Device(device))
    assert text == "".join(f"Resource '{name}':{line}\n" for name, _, line in
                           (line.partition(":") for line in printed))  # fmt: skip
