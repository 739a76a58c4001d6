"""Problems as data: codes, accepted values and locations, in `anydml check --json`."""

import copy
import dataclasses
import json
import pickle
from pathlib import Path

import pytest

import anydml as dml
from anydml import FeatureLevel, ModelError
from anydml.cli import command as cli
from anydml.core.levels import LATEST
from anydml.core.problems import Problem, accepted_by, members, pointer
from anydml.models.positions import placed
from anydml.ops._computed import Computed
from anydml.ops._registry import OPERATORS
from support.examples import page_example

MODELS = Path(__file__).resolve().parents[2] / "examples" / "models"


@pytest.mark.parametrize(
    ("rule", "accepted"),
    [
        ("FLOAT32 (InputTensor.DataType)", {"values": ["FLOAT32"]}),
        ("one of A, B at feature level 5_0 (C at no level)", {"values": ["A", "B"]}),
        ("4 at feature level 2_0 (2 from 3_1)", {"values": [4]}),
        ("1..8 at feature level 6_4", {"minimum": 1, "maximum": 8}),
        ("1 or 3", {"values": [1, 3]}),
        ("at least 2", {"minimum": 2}),
        ("0 or more", {"minimum": 0}),
        ("3_0 or above (the level that introduced TOP_K1)", {"minimum": "3_0"}),
        ("at most 7 (InputTensor.Sizes[1])", {"maximum": 7}),
        ("1..2^32 - 1", {"minimum": 1, "maximum": 2**32 - 1}),
        ("an integer in 0..9", {"minimum": 0, "maximum": 9}),
        ("(2, 3) (IndicesTensor.Sizes)", {"values": [[2, 3]]}),
        ("4 values (InputTensor.DimensionCount)", {"length": 4}),
        ("a stride other than 0", None),
        ("at most 2^32 - 1 elements", None),
        ("a multiple of 4 below 2^64", None),
    ],
)
def test_accepted_values_of_a_rule(rule, accepted):
    assert accepted_by(rule) == accepted


COMPUTED = [kind for kind in OPERATORS.values() if issubclass(kind, Computed)]


@pytest.mark.parametrize("kind", COMPUTED, ids=lambda kind: kind.NAME)
def test_what_the_support_table_accepts_is_data(kind):
    desc = page_example(kind.NAME)
    tensor = dml.TensorDesc("INT64", (1,) * 8)
    wrong = {info.attribute: [tensor] if info.many else tensor for info in desc.bind_points()}
    codes = set()
    for level in FeatureLevel:
        for violation in dataclasses.replace(desc, **wrong).violations(level):
            codes.add(violation.code)
            name = violation.path.split(".")[1].partition("[")[0]
            if violation.code == "unsupported_operator":
                assert violation.accepted["minimum"] <= LATEST.suffix
            elif violation.code == "unsupported_data_type":
                types = {str(t) for row in kind.SUPPORT for t in row.tensors[name].data_types}
                assert set(violation.accepted["values"]) <= types - {"INT64"}
            elif violation.code == "unsupported_dimension_count":
                assert violation.accepted
    assert codes & {"unsupported_data_type", "unsupported_dimension_count", "unsupported_operator"}


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("Axis", ("Axis",)),
        ("OutputTensors[1].Sizes[0]", ("OutputTensors", 1, "Sizes", 0)),
        ("IndicesTensor.Sizes[-1]", ("IndicesTensor", "Sizes")),
        ("OutputTensors[..].Sizes[0]", ("OutputTensors",)),
    ],
)
def test_location_of_a_path(path, location):
    assert members(path) == location


def test_pointers_escape_names():
    assert pointer(("dispatchables", "a/b~c", 0)) == "/dispatchables/a~1b~0c/0"


def check(capsys, path, *options):
    assert cli.main(["check", "--json", str(path), *options]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    return found


def at(document, location):
    for part in location.split("/")[1:]:
        document = document[int(part) if isinstance(document, list) else part]
    return document


def test_a_refused_operator(capsys, tmp_path):
    desc = dml.TopK(
        input_tensor=dml.TensorDesc("FLOAT32", (1, 4)),
        output_value_tensor=dml.TensorDesc("FLOAT32", (1, 2)),
        output_index_tensor=dml.TensorDesc("INT64", (1, 2)),
        axis=2,
        k=2,
    )
    fields = desc.to_json()
    nested = {"type": fields.pop("type"), "desc": fields}
    path = tmp_path / "model.json"
    model = {"resources": {}, "dispatchables": {"a/b": nested}, "commands": []}
    path.write_text(json.dumps(model))
    (dispatchable,) = check(capsys, path)["dispatchables"]
    first, second = dispatchable["violations"]
    assert (first["code"], second["code"]) == ("unsupported_data_type", "invalid_axis")
    assert first["location"] == "/dispatchables/a~1b/desc/OutputIndexTensor/DataType"
    assert first["accepted"] == {"values": ["UINT64", "UINT32"]}
    assert second["location"] == "/dispatchables/a~1b/desc/Axis"
    assert second["accepted"] == {"minimum": 0, "maximum": 1}


def test_a_malformed_model(capsys):
    found = check(capsys, MODELS / "malformed.json")
    assert [item["message"] for item in found["details"]] == found["problems"]
    assert [(item["code"], item["location"]) for item in found["details"]] == [
        ("invalid_value", "/dispatchables/top/desc/InputTensor/DataType"),
        ("invalid_value", "/dispatchables/top/desc/InputTensor/Sizes/1"),
        ("missing_field", "/dispatchables/top/desc/Axis"),
        ("invalid_value", "/dispatchables/top/desc/K"),
        ("unknown_resource", "/commands/0"),
    ]
    types, size, _, k, _ = (item["accepted"] for item in found["details"])
    assert "FLOAT64" in types["values"]
    assert size == k == {"minimum": 0, "maximum": 2**32 - 1}


def change(model, location, value):
    model = copy.deepcopy(model)
    above, _, last = location.rpartition("/")
    at(model, above)[last] = value
    return model


@pytest.mark.parametrize(
    ("location", "value", "code", "text"),
    [
        ("/commands/0/dispatchable", "bottom", "unknown_dispatchable", "/commands/0/dispatchable"),
        ("/commands/0/bindings/InputTensor", "y", "overlap", "/commands/0"),
        ("/commands/0/bindings/OutputTensor", "z", "binding", "/commands/0"),
        ("/commands/1/targetPath", "../y", "output_path", "/commands/1/targetPath"),
        ("/resources/x/initialValues", 5, "invalid_value", "/resources/x/initialValues"),
    ],
)
def test_a_model_that_cannot_run(location, value, code, text, capsys, tmp_path):
    tensor = {"DataType": "FLOAT32", "Sizes": [2]}
    resource = {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2]}
    model = {
        "resources": {"x": resource, "y": {**resource}, "z": {**resource, "initialValues": [1]}},
        "dispatchables": {
            "top": {
                "type": "ACTIVATION_SOFTPLUS",
                "InputTensor": {"DataType": "FLOAT32", "Sizes": [2], "Strides": [0]},
                "OutputTensor": tensor,
                "Steepness": 1,
            }
        },
        "commands": [
            {"type": "dispatch", "dispatchable": "top",
             "bindings": {"InputTensor": "x", "OutputTensor": "y"}},
            {"type": "writeFile", "resource": "y", "targetPath": "y.bin"},
        ],
    }  # fmt: skip
    path = tmp_path / "model.json"
    path.write_text(json.dumps(change(model, location, value)))
    details = check(capsys, path, "--output-dir", str(tmp_path / "out"))["details"]
    assert [(item["code"], item["location"]) for item in details] == [(code, text)]
    path.write_text(json.dumps(model))
    assert cli.main(["check", str(path), "--output-dir", str(tmp_path / "out")]) == 0


def test_text_that_is_no_json(capsys, tmp_path):
    path = tmp_path / "model.json"
    path.write_text("{")
    (detail,) = check(capsys, path)["details"]
    assert (detail["code"], detail["location"]) == ("invalid_json", "")


def test_an_error_pickles_with_its_problems():
    error = ModelError(Problem("Wrong.", "binding", ("commands", 1)), "Plain.")
    first, second = pickle.loads(pickle.dumps(error)).problems
    assert (first, first.code, first.location) == ("Wrong.", "binding", ("commands", 1))
    assert second == "Plain."


def locations(value, here=()):
    yield here, value
    indices = range(len(value)) if isinstance(value, list) else ()
    for key in value if isinstance(value, dict) else indices:
        yield from locations(value[key], (*here, key))


@pytest.mark.parametrize("indent", [None, 2])
def test_every_value_is_found_in_its_text(indent):
    document = {
        "a": [1, -2.5, [], {}, [[None, True], {'"[{': '}] // \\ "', "é": "\n"}]],
        "": {"b": {"c": False, "a": [{"a": 1e-5}]}},
    }
    found = [*locations(document)][1:]
    text = json.dumps(document, indent=indent)
    problems = placed([Problem("x", location=where) for where, _ in found], text.encode())
    lines = text.split("\n")
    for problem, (_, value) in zip(problems, found, strict=True):
        line, column = problem.position
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == value


def test_a_position_among_comments():
    text = b'\xef\xbb\xbf{ // {"a": 1\n /* "a": 2 */ "b": [3, /*,*/ 4,], "a":\n\n  5}'
    wrong = [("b", 1), ("a",), ("b", 7), ("c", "d"), ()]
    found = placed([Problem("x", location=location) for location in wrong], text)
    assert [problem.position for problem in found] == [(2, 30), (4, 3), (2, 20), None, None]
    assert [found[0].line, found[4].line] == ["x (line 2, column 30)", "x"]


def test_a_problem_of_a_graph_has_its_position(tmp_path, capsys):
    path = tmp_path / "graph.json"
    path.write_text('{"Nodes": [\n {"Type": "CONSTANT", "Name": "w",\n  "Data": 5}]}')
    (detail,) = [item for item in check(capsys, path)["details"] if "Data" in item["message"]]
    assert (detail["line"], detail["column"]) == (3, 11)
    assert detail["message"] == "Nodes[0] ('w').Data: expected a string, got 5"
