"""What does nothing in a model is told, so that a typing error does not vanish."""

import json

import pytest
from model_files import only, split_model, tensor, value_resource, write_model

from anydml.models import load_model, run_model
from anydml.models.model import read_model


def warnings(folder, model):
    return load_model(write_model(folder, model)).warnings


def test_none(tmp_path):
    assert warnings(tmp_path, split_model()) == ()


def desc_of(model):
    return model["dispatchables"]["split"]["desc"]


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (lambda m: m.update(coments=1), "Top level: nothing reads member 'coments'."),
        (
            lambda m: m["resources"]["A"].update(sizInBytes=4),
            "Resource 'A': nothing reads member 'sizInBytes'; "
            "did you mean 'sizeInBytes'?",
        ),
        (
            lambda m: m["resources"]["Out1"]["initialValues"].update(valueDelta=4),
            "Resource 'Out1': initialValues: nothing reads member 'valueDelta'.",
        ),
        (
            lambda m: m["dispatchables"]["split"].update(Axis=0),
            "Dispatchable 'split': nothing reads member 'Axis'.",
        ),
        (
            lambda m: desc_of(m).update(Axes=0),
            "Dispatchable 'split': desc: nothing reads member 'Axes'; did you mean 'Axis'?",
        ),
        (
            lambda m: desc_of(m)["OutputTensors"][1]["Desc"].update(Stride=1),
            "Dispatchable 'split': desc.OutputTensors[1].Desc: nothing reads member 'Stride'; "
            "did you mean 'Strides'?",
        ),
        (
            lambda m: m["commands"][0]["bindings"]["OutputTensors"][1].update({"ofset\x1b": 1}),
            r"Command at index 0: bindings.OutputTensors[1]: nothing reads member 'ofset\x1b'.",
        ),
        (
            lambda m: m["commands"][0]["bindings"].update(OutputTensor="Out1"),
            "Command at index 0: bindings: SPLIT has no bind point 'OutputTensor' (it has "
            "InputTensor, OutputTensors).",
        ),
        (
            lambda m: m["dispatchables"]["split"].update(bindings={"Input": "A"}),
            "Dispatchable 'split': bindings: SPLIT has no bind point 'Input' (it has InputTensor, "
            "OutputTensors).",
        ),
        (
            lambda m: m["commands"][1].update(verbos=True),
            "Command at index 1: nothing reads member 'verbos'; did you mean 'verbose'?",
        ),
    ],
)  # fmt: skip
def test_what_nothing_reads(tmp_path, change, warning):
    model = split_model()
    change(model)
    assert warnings(tmp_path, model) == (warning,)


def test_dimensions_of_a_raw_file(tmp_path):
    written = {"type": "writeFile", "resource": "A", "targetPath": "a.bin", "dimensions": [2, "x"]}
    model = split_model()
    model["commands"] = [written]
    assert warnings(tmp_path, model) == ("Command at index 0: nothing reads member 'dimensions'.",)
    written |= {"targetPath": "a.NPY", "dimensions": [2, 3]}
    assert warnings(tmp_path, model) == ()


def test_it_runs_all_the_same(tmp_path):
    model = load_model(write_model(tmp_path, split_model() | {"extra": 1}))
    assert model.warnings
    assert run_model(model, write=lambda _: None)["Out1"].view("f4").tolist() == [1, 2]


def test_members_that_come_twice(tmp_path):
    text = json.dumps(split_model())
    text = text.replace('"Axis": 0', '"Axis": 7, "Axis": 1, "Axis": 0')
    text = text.replace('"resources": {', '"resources": {"A": 5, ')
    assert warnings(tmp_path, text) == (
        "resources: member 'A' comes more than once; the last one counts.",
        "Dispatchable 'split': desc: member 'Axis' comes more than once; the last one counts.",
    )


def test_a_part_that_could_not_be_read_has_no_unread_members(tmp_path):
    model = split_model()
    model["resources"]["A"] |= {"initialValuesDataType": "FLOAT", "sizInBytes": 4}
    text = json.dumps(model).replace('"sizInBytes"', '"a": 1, "a": 1, "sizInBytes"')
    found = read_model(write_model(tmp_path, text))
    assert found.problems[0].startswith("Resource 'A': ")
    assert found.warnings == (
        "Resource 'A': member 'a' comes more than once; the last one counts.",
    )


def test_members_for_readers_are_none(tmp_path):
    values = [{"name": "n", "type": "UINT8", "value": 6}]
    model = split_model()
    model["resources"]["B"] = {"initialValues": values}
    model["commands"][0]["bindings"]["InputTensor"] = {"name": "A", "format": "R32_FLOAT"}
    assert "$schema" in model
    assert warnings(tmp_path, model) == ()


def test_one_flag_of_execution_is_a_list_of_one(tmp_path):
    model = split_model()
    model["dispatchables"]["split"]["executionFlags"] = "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"
    assert warnings(tmp_path, model) == ()


def test_members_below_one_that_nothing_reads_are_not_told(tmp_path):
    assert warnings(tmp_path, only() | {"x": {"y": {"z": 1}}}) == (
        "Top level: nothing reads member 'x'.",
    )
    resource = value_resource([1]) | {"x": {"y": {"z": 1}}}
    assert warnings(tmp_path, only({"r": resource})) == ("Resource 'r': nothing reads member 'x'.",)


def test_deep_and_many(tmp_path):
    deep = tensor([1]) | {"DataType": "FLOAT32"}
    for _ in range(45):
        deep = {"x": [deep]}
    model = only({"r": value_resource([1]) | {"deep": deep} | {f"m{i}": 1 for i in range(5000)}})
    found = warnings(tmp_path, model)
    assert found[0] == "Resource 'r': nothing reads member 'deep'."
    assert len(found) == 1001
    assert found[-1] == "There are more."


def test_problems_are_told_up_to_a_number(tmp_path):
    found = read_model(write_model(tmp_path, only(commands=[{}] * 5000)))
    assert len(found.problems) == 1001
    assert found.problems[999] == "Command at index 999: type: expected a value, got none"
    assert found.problems[-1] == "There are more."


@pytest.mark.parametrize("kind", ["hlsl", "onnx"])
def test_what_dxdispatch_reads_is_no_warning(tmp_path, kind):
    model = split_model()
    model["dispatchables"]["split"] = {"type": kind, "sourcePath": "x", "compiler": "dxc"}
    model["commands"][0]["threadGroupCount"] = [1, 1, 1]
    model["commands"][0]["bindings"]["InputTensor"] = {"name": "A", "shape": [1]}
    read = read_model(write_model(tmp_path, model))
    assert "needs DxDispatch" in read.problems[0]
    assert read.warnings == ()
