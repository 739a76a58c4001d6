"""What is malformed in a model is told completely, with where it is and what may be meant."""

import pickle

import pytest
from model_files import only, split_model, value_resource, write_model

import anydml as dml
from anydml.models import Limits, load_model, run_model
from anydml.models.check import reading_problems
from anydml.models.model import read_model
from anydml.models.report import report
from anydml.models.text import parse

DEVICE = dml.Device("cpu")


def problems(folder, model):
    return reading_problems(read_model(write_model(folder, model)))


def test_all_faults_of_a_descriptor(tmp_path):
    model = split_model()
    desc = model["dispatchables"]["split"]["desc"]
    desc["InputTensor"] |= {"DataType": "FLOAT", "Sizes": [6, "x", -1], "DimensionCount": "1"}
    desc["OutputTensors"] = [{"DataType": "FLOAT32"}, 5]
    desc["OutputCount"] = 2.0
    desc["Axes"] = desc.pop("Axis")
    where = "Dispatchable 'split': SPLIT."
    tensor = f"{where}InputTensor."
    found = problems(tmp_path, model)
    assert [text.partition(" FLOAT32,")[0] for text in found] == [
        f"{tensor}DataType: expected one of",
        f'{tensor}Sizes[1]: expected an integer in 0..4294967295, got the string "x"',
        f"{tensor}Sizes[2]: expected an integer in 0..4294967295, got -1",
        f'{tensor}DimensionCount: expected an integer in 0..4294967295, got the string "1"',
        f"{where}OutputCount: expected an integer in 0..4294967295, got 2.0",
        f"{where}OutputTensors[0].Sizes: expected a value, got none",
        f"{where}OutputTensors[1]: expected an object, got 5",
        f"{where}Axis: expected a value, got none (there is 'Axes')",
    ]


def test_from_json_raises_all_of_them_too():
    with pytest.raises(dml.ModelError) as caught:
        dml.from_json({"type": "SPLIT", "Axis": -1, "InputTensor": {"Sizes": [1]}})
    error = caught.value
    assert error.problems == (
        "SPLIT.InputTensor.DataType: expected a value, got none",
        "SPLIT.OutputCount: expected a value, got none",
        "SPLIT.OutputTensors: expected a value, got none",
        "SPLIT.Axis: expected 0 (InputTensor.DimensionCount is 1), got -1",
    )
    assert str(error) == "\n".join(error.problems)
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.problems, str(copy)) == (error.problems, str(error))


def test_a_scalar_whose_type_cannot_be_read_adds_no_fault_of_its_own():
    tensor = {"DataType": "FLOAT32", "Sizes": [4]}
    arguments = {
        "type": "FILL_VALUE_SEQUENCE", "OutputTensor": tensor, "ValueDataType": "FLOAT",
        "ValueStart": 1.5,
    }  # fmt: skip
    with pytest.raises(dml.ModelError) as caught:
        dml.from_json(arguments)
    first, second = caught.value.problems
    assert first.startswith("FILL_VALUE_SEQUENCE.ValueDataType: expected one of FLOAT32, ")
    assert second == "FILL_VALUE_SEQUENCE.ValueDelta: expected a value, got none"


def test_a_scalar_whose_type_alone_could_be_read():
    arguments = {"type": "FILL_VALUE_CONSTANT", "OutputTensor": 3, "ValueDataType": "INT8",
             "Value": 300}  # fmt: skip
    with pytest.raises(dml.ModelError) as caught:
        dml.from_json(arguments)
    assert caught.value.problems == (
        "FILL_VALUE_CONSTANT.OutputTensor: expected an object, got 3",
        "FILL_VALUE_CONSTANT.Value: expected an integer in -128..127, got 300",
    )


def test_all_faults_of_resources_and_commands(tmp_path):
    model = only(
        {
            "a": {"initialValuesDataType": "FLOAT32", "initialValues": [1, "x", None],
                  "sizeInBytes": -1},
            "b": {"initialValuesDataType": "FLOAT", "initialValues": ["x"], "sizeInBytes": "x"},
            "c": {"initialValuesDataType": "INT8", "initialValues": {"value": 300}},
            "d": {"initialValues": [{"type": "INT8"}, {"value": 1}]},
        },
        [
            {"type": "dispatch"},
            {"type": "print", "resource": 1, "verbose": 2},
            {"type": "writeFile", "targetPath": 3, "dimensions": [1, -1]},
            {"type": "dispatch", "dispatchable": "x", "bindings": {"A": [{"name": 1}, 2], "B": 3}},
        ],
    )  # fmt: skip
    found = problems(tmp_path, model)
    assert [text.partition(" FLOAT32,")[0] for text in found] == [
        "Resource 'a': sizeInBytes: expected an integer in 0..18446744073709551615, got -1",
        "Resource 'a': initialValues[1]: expected a number, 'nan', 'inf' "
        "or '-inf', got the string \"x\"",
        "Resource 'a': initialValues[2]: expected a number, 'nan', 'inf' or '-inf', got null",
        "Resource 'b': initialValuesDataType: expected one of",
        "Resource 'b': sizeInBytes: expected an integer in "
        '0..18446744073709551615, got the string "x"',
        "Resource 'c': initialValues.valueCount: expected a value, got none",
        "Resource 'c': initialValues.value: expected an integer in -128..127, got 300",
        "Resource 'd': initialValues[0].value: expected a value, got none",
        "Resource 'd': initialValues[1].type: expected a value, got none",
        "Command at index 0: dispatchable: expected a value, got none",
        "Command at index 0: bindings: expected a value, got none",
        "Command at index 1: resource: expected a string, got 1",
        "Command at index 1: verbose: expected true or false, got 2",
        "Command at index 2: resource: expected a value, got none",
        "Command at index 2: targetPath: expected a string, got 3",
        "Command at index 2: dimensions[1]: expected an integer in 0..4294967295, got -1",
        "Command at index 3: bindings.A[0].name: expected a string, got 1",
        "Command at index 3: bindings.A[1]: "
        "expected a resource's name, an object or an array of these, got 2",
        "Command at index 3: bindings.B: expected a "
        "resource's name, an object or an array of these, got 3",
    ]


def test_the_three_members_of_a_model(tmp_path):
    with pytest.raises(dml.ModelError) as caught:
        load_model(write_model(tmp_path, {"resource": {}, "commands": {}}))
    assert caught.value.problems == (
        "resources: expected a value, got none (there is 'resource')",
        "dispatchables: expected a value, got none",
        "commands: expected an array, got {}",
    )


def test_a_name_of_the_model_is_shown_without_what_a_terminal_obeys(tmp_path):
    bindings = {"\x1b[2J": 1, "\ud800": 2, "x" * 1000: 3}
    command = {"type": "dispatch", "dispatchable": "d", "bindings": bindings}
    found = problems(tmp_path, only(commands=[command]))
    assert [text.isprintable() for text in found] == [True] * 3
    assert r"\x1b[2J: expected a resource's name" in found[0]
    assert max(map(len, found)) < 300


@pytest.mark.parametrize(("value", "text"), [(None, "null"), (True, "true"), ([False], "[false]")])
def test_words_of_json(tmp_path, value, text):
    (found,) = problems(tmp_path, only(commands=[{"type": value}]))
    assert found.endswith(f"type: expected a string, got {text}")


def test_a_file_of_a_resource_without_a_type(tmp_path):
    untyped = {"initialValues": [{"type": "INT8", "value": 1}]}
    written = {"type": "writeFile", "resource": "r", "targetPath": "r.npy", "dimensions": [9]}
    found = report(write_model(tmp_path, only({"r": untyped}, [written])), DEVICE, Limits(tmp_path))
    assert found.problems == (
        "Command at index 0: Resource 'r' needs an 'initialValuesDataType' for this.",
    )


def test_very_many_faults_are_cut(tmp_path):
    model = only({"r": value_resource(["x"] * 20_000)})
    found = problems(tmp_path, model)
    assert len(found) == 1001
    assert found[999].startswith("Resource 'r': initialValues[999]: ")
    assert found[-1] == "There are more."


@pytest.mark.parametrize(
    ("text", "where", "wrong"),
    [
        (b'{\n "a": 1\n "b": 2}', (3, 2), "Expecting ',' delimiter"),
        (b'{\n // NaN "\n "a": [1, -Infinity]}', (3, 11), "-Infinity is not JSON"),
        (b'{"NaN": "NaN",\n\n  "b": NaN}', (3, 8), "NaN is not JSON"),
        (b'{"a": 1.5,\n"b": [0, ' + b"9" * 5000 + b"]}", (2, 10), "an integer of more than 4300"),
        (b'{"' + b"9" * 5000 + b'": 1.' + b"9" * 5000 + b',\n"b": -' + b"9" * 5000 + b"}", (2, 7),
         "an integer of more than 4300"),
        (b'{"a": 1,\n "b\xe9": 2}', (2, 4), "Expected UTF-8 text, got byte 0xE9"),
        (b"\xb9{}", (1, 1), "Expected UTF-8 text, or a serialized graph, got byte 0xB9"),
        (b'\xef\xbb\xbf{"a": 1,\n "\xc3\xa9": "\xff"}', (2, 8), "Expected UTF-8 text, got byte"),
        (b'{"a": [1, ' + b"9" * 5000 + b"-1]}", (1, 11), "an integer of more than 4300"),
        (b'{"a":\n' + b"[" * 100_000, (2, 100), "nested more than 100 deep"),
        (b'{"a":\n' + b"[" * 200 + b"]" * 200 + b"}", (2, 100), "nested more than 100 deep"),
        (b"[" + b"[" * 99 + b"]" * 99 + b", // [\n" + b"[" * 5000 + b"]" * 5000 + b"]", (2, 100),
         "nested more than 100 deep"),
        (b'{"[[": "]]", "a": ' + b"[" * 2100, (1, 118), "nested more than 100 deep"),
        (b'{"a": 1, /* x\n\n', (1, 10), "a comment that is not closed"),
        (b'{"a', (1, 2), "a string that is not closed."),
        (b'{"a\n": 1}', (1, 4), "a control character in a string."),
    ],
)  # fmt: skip
def test_an_error_of_json_has_its_line_and_column(text, where, wrong):
    with pytest.raises(dml.ModelError) as caught:
        parse(text)
    line, column = where
    start = f"JSON parse error at line {line}, column {column}: {wrong}"
    assert str(caught.value).startswith(start)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda m: m["commands"][1].update(resource="out1"),
         "Command at index 1: Unknown resource 'out1'; did you mean 'Out1'?"),
        (lambda m: m["commands"][0].update(dispatchable="spilt"),
         "Command at index 0: Unknown dispatchable 'spilt'; did you mean 'split'?"),
        (lambda m: m["commands"][1].update(resource="something"),
         "Command at index 1: Unknown resource 'something'."),
        (lambda m: m["dispatchables"]["split"].update(type="DML_OPERATOR_SPLTI"),
         "got 'DML_OPERATOR_SPLTI'; did you mean 'SPLIT'?"),
    ],
)  # fmt: skip
def test_a_name_that_is_nearly_right(tmp_path, change, problem):
    model = split_model()
    change(model)
    assert problems(tmp_path, model)[0].endswith(problem)


@pytest.mark.parametrize(
    ("member", "near"),
    [("axis", "Axis"), ("OutputTensor", "OutputTensors"), ("outptuTensors", "OutputTensors"),
     ("Batch", None), ("InpTens", None),
     ("OutputTensorXYZs", None)],
)  # fmt: skip
def test_a_member_that_nothing_reads(tmp_path, member, near):
    model = split_model()
    model["dispatchables"]["split"]["desc"][member] = 1
    (warning,) = load_model(write_model(tmp_path, model)).warnings
    hint = f"; did you mean '{near}'?" if near else "."
    assert warning == f"Dispatchable 'split': desc: nothing reads member '{member}'{hint}"


def test_how_many_bind_points_are_shown(tmp_path):
    model = split_model()
    model["commands"][0]["bindings"] = {f"p{i}": "A" for i in range(30)}
    found = report(write_model(tmp_path, model), DEVICE, Limits(tmp_path)).problems
    assert found[0].endswith(f"bindings: {', '.join(repr(f'p{i}') for i in range(20))}).")
    model["commands"][0]["bindings"] = {}
    found = report(write_model(tmp_path, model), DEVICE, Limits(tmp_path)).problems
    assert found[0].endswith("(bindings: none).")


def test_a_bound_resource_that_the_model_lacks_is_a_problem_once(tmp_path):
    model = split_model()
    model["commands"][0]["bindings"]["OutputTensors"] = ["X", "X"]
    found = report(write_model(tmp_path, model), DEVICE, Limits(tmp_path)).problems
    assert set(found) == {"Command at index 0: Unknown resource 'X'."}


def test_a_written_resource_that_the_model_lacks_is_a_problem_once(tmp_path):
    written = {"type": "writeFile", "resource": "r", "targetPath": "r.bin"}
    found = report(write_model(tmp_path, only({}, [written])), DEVICE, Limits(tmp_path))
    assert found.problems == ("Command at index 0: Unknown resource 'r'.",)
    assert found.targets == ()


def test_what_a_run_refuses_before_it_begins_is_a_problem_each(tmp_path):
    model = split_model()
    model["commands"][0]["bindings"] = {"InputTensor": [], "OutputTensors": []}
    with pytest.raises(dml.ModelError) as caught:
        run_model(load_model(write_model(tmp_path, model)))
    assert [text.partition(",")[0] for text in caught.value.problems] == [
        "Command at index 0: Bind point 'InputTensor': Expected 1 resource",
        "Command at index 0: Bind point 'OutputTensors': Expected 2 resources",
    ]


def test_a_misspelled_bind_point_is_one_problem(tmp_path):
    model = split_model()
    bindings = model["commands"][0]["bindings"]
    bindings["Input"] = bindings.pop("InputTensor")
    found = report(write_model(tmp_path, model), DEVICE, Limits(tmp_path))
    assert found.problems == (
        "Command at index 0: Bind point 'InputTensor': Expected 1 resource, got 0 "
        "(there is 'Input').",
    )
    assert found.warnings == ()
    # An operator that is refused hides it as little.
    model["dispatchables"]["split"]["desc"]["Axis"] = 9
    again = report(write_model(tmp_path, model), DEVICE, Limits(tmp_path))
    assert again.problems == found.problems
    assert [item.path for item in again.dispatchables[0].violations] == ["SPLIT.Axis"]
