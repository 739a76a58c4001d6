"""Small models for the tests, written to files and run."""

import json

import numpy as np

from anydml.models import Limits, load_model, run_model


def tensor(sizes, data_type="FLOAT32", **fields):
    return {"DataType": data_type, "Sizes": list(sizes), **fields}


def zeros(count, data_type="FLOAT32", **fields):
    values = {"valueCount": count, "value": 0}
    return {"initialValuesDataType": data_type, "initialValues": values, **fields}


def value_resource(values, data_type="FLOAT32", **fields):
    return {"initialValuesDataType": data_type, "initialValues": values, **fields}


def split_model():
    """A model that uses most of the format: split into a part of 2 and a part of 4."""
    return {
        "$schema": "ignored",
        "resources": {
            "A": value_resource([1, 2, 3, 4, 5, 6]),
            "Out1": zeros(2),
            "Out2": zeros(4, sizeInBytes=32, initialValuesOffsetInBytes=0),
        },
        "dispatchables": {
            "split": {
                "type": "DML_OPERATOR_SPLIT",
                "dmlCompileType": "DmlCompileOp",
                "executionFlags": ["NONE"],
                "desc": {
                    "InputTensor": tensor([6], Flags=[], DimensionCount=1),
                    "OutputCount": 2,
                    "OutputTensors": [tensor([2]), {"Type": "BUFFER", "Desc": tensor([4])}],
                    "Axis": 0,
                },
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "split",
                "bindings": {"InputTensor": "A", "OutputTensors": ["Out1", {"name": "Out2"}]},
            },
            {"type": "print", "resource": "Out1"},
            {"type": "PRINT", "resource": "Out2", "verbose": False},
        ],
    }


def only(resources=None, commands=()):
    """A model without dispatchables."""
    return {"resources": resources or {}, "dispatchables": {}, "commands": list(commands)}


def write_model(folder, model):
    path = folder / "model.json"
    path.write_text(model if isinstance(model, str) else json.dumps(model), encoding="utf-8")
    return path


def run(folder, model, limits=None, **arguments):
    """The text that a model prints and its resources' bytes."""
    limits = limits or Limits(output_dir=folder)
    pieces = []
    buffers = run_model(
        load_model(write_model(folder, model), limits), limits=limits, write=pieces.append,
        **arguments,
    )  # fmt: skip
    return "".join(pieces), buffers


def first_values(folder, resource, dtype):
    """What a resource holds when the model begins."""
    path = write_model(folder, only({"r": resource}))
    buffer = load_model(path, Limits(output_dir=folder)).resources["r"].allocate()
    size = np.dtype(dtype).itemsize
    return buffer.tobytes(), np.frombuffer(buffer[: buffer.size // size * size], dtype)


def target_model(target, resource=None, **fields):
    command = {"type": "writeFile", "resource": "r", "targetPath": str(target)}
    return only({"r": resource or value_resource([1, 2, 3], "UINT8")}, [command | fields])


def write_target(folders, target, resource=None, limits=None, **fields):
    return run(folders / "model", target_model(target, resource, **fields), limits or Limits())


def gather(values, kind="INT16", more=(), **index):
    """A model of a GATHER with indices of a type that it does not take."""
    tensor = {"DataType": kind, "Sizes": [1, 1, 1, len(values) or 2], **index}
    data = {"DataType": "FLOAT32", "Sizes": [1, 1, 1, 4]}
    return {
        "resources": {
            "x": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 4]},
            "i": {"initialValuesDataType": kind, "initialValues": values},
            "y": {"initialValuesDataType": "FLOAT32", "initialValues": [0] * (len(values) or 2)},
        },
        "dispatchables": {
            "g": {
                "type": "DML_OPERATOR_GATHER",
                "desc": {
                    "InputTensor": data, "IndicesTensor": tensor,
                    "OutputTensor": {**data, "Sizes": [1, 1, 1, len(values) or 2]},
                    "Axis": 3, "IndexDimensions": 1,
                },
            }
        },
        "commands": [
            {"type": "dispatch", "dispatchable": "g",
             "bindings": {"InputTensor": "x", "IndicesTensor": "i", "OutputTensor": "y"}},
            *more,
            {"type": "print", "resource": "y"},
        ],
    }  # fmt: skip
