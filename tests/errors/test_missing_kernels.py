"""Operators that a device has no kernel for: what lacks it, and what runs them."""

import json
import pickle

import numpy as np
import pytest

import anydml as dml
from anydml import MissingKernelError
from anydml.cli import command as cli
from anydml.ops import _registry as registry

T = dml.TensorDesc


class Doubled(dml.Cast):
    """A definition without a kernel."""

    NAME = "DOUBLED"
    KERNEL = "doubled"

    @staticmethod
    def evaluate(inputs, outputs, attributes):
        outputs[0][...] = inputs[0] * 2


def operator(device):
    tensor = T("FLOAT32", (2, 2))
    desc = Doubled(input_tensor=tensor, output_tensor=tensor)
    return dml.Device(device).create_operator(desc)


def test_compiling():
    with pytest.raises(dml.DeviceError) as error:
        operator("cpu").compile()
    assert str(error.value) == "DOUBLED has no CPU kernel; Device('reference') runs it"
    assert type(error.value) is MissingKernelError
    assert (error.value.operator, error.value.backend) == ("DOUBLED", "CPU")
    copied = pickle.loads(pickle.dumps(error.value))
    assert (type(copied), str(copied)) == (MissingKernelError, str(error.value))
    x = np.arange(4, dtype="f4").reshape(2, 2)
    assert np.array_equal(operator("reference").compile()(x), x * 2)


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "OPERATORS", {**registry.OPERATORS, "DOUBLED": Doubled})
    monkeypatch.chdir(tmp_path)
    tensor = {"DataType": "FLOAT32", "Sizes": [3]}
    values = {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3]}
    twice = {"type": "DOUBLED", "InputTensor": tensor, "OutputTensor": tensor}
    bindings = {"InputTensor": "X", "OutputTensor": "Y"}
    commands = [{"type": "dispatch", "dispatchable": "twice", "bindings": bindings},
                {"type": "print", "resource": "Y"}]  # fmt: skip
    (tmp_path / "model.json").write_text(
        json.dumps({"resources": {"X": values, "Y": values}, "dispatchables": {"twice": twice},
                    "commands": commands})
    )  # fmt: skip


WRONG = "Dispatchable 'twice' (DOUBLED): no CPU kernel; --device reference runs it."


def test_models(model, capfd):
    for device in ([], ["--device", "cpu"], ["--device", "auto"]):
        assert cli.main(["run", "model.json", *device]) == 1
        assert capfd.readouterr() == ("", f"Error: {WRONG}\n")
        assert cli.main(["check", "model.json", *device]) == 1
        assert WRONG in capfd.readouterr().out.splitlines()
    assert cli.main(["check", "model.json", "--json"]) == 1
    assert json.loads(capfd.readouterr().out)[0]["problems"] == [WRONG]
    assert cli.main(["run", "model.json", "--device", "reference"]) == 0
    assert capfd.readouterr() == ("Resource 'Y': 2, 4, 6\n", "")
    assert cli.main(["check", "model.json", "--device", "reference"]) == 0
    assert WRONG not in capfd.readouterr().out


def test_a_gpu_that_lacks_a_kernel():
    assert str(MissingKernelError("X", "CUDA")) == (
        "X has no CUDA kernel; Device('reference') runs it"
    )
