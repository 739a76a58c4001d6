"""Messages about a model have JSON's words: null, true and false."""

import copy
import json
import re
from pathlib import Path

import pytest
from model_files import split_model, write_model

import anydml as dml
from anydml.models import Limits
from anydml.models.report import report
from anydml.models.text import plain

EXAMPLES = Path(__file__).parents[2] / "examples" / "models"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.json") if path.stem != "malformed")

VALUES = [None, True, False, [None, True], {"a": False, "type": None, "name": True}]


def places(value, way=()):
    yield way
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*way, key))


def replaced(model, way, value):
    if not way:
        return value
    key, *rest = way
    changed = copy.copy(model)
    changed[key] = replaced(model[key], rest, value)
    return changed


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_word_of_python(name, tmp_path):
    text = (EXAMPLES / f"{name}.json").read_text() if name else json.dumps(split_model())
    model = json.loads(plain(text))
    output = 0
    for way in places(model):
        if len(way) > 2 and isinstance(way[-1], int) and way[-1] > 2:
            continue  # as the first ones of the array
        for value in VALUES:
            path = write_model(tmp_path, replaced(model, way, value))
            found = report(path, dml.Device("cpu"), Limits(tmp_path))
            for problem in (*found.unreadable, *found.problems, *found.warnings):
                output += 1
                assert not re.search(r"\b(None|True|False)\b", problem), problem
    assert output


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (("resources", "A"), None, "Resource 'A': Expected an object, got null."),
        (("resources", "A", "initialValues"), None, "expected an array or an object, got null"),
        (("resources", "A", "initialValues", 0), None, "expected a number, 'nan', 'inf' or "
         "'-inf', got null"),
        (("resources", "A", "initialValuesDataType"), None, ", got null"),
        (("dispatchables", "split", "desc", "Axis"), None, "got null"),
        (("dispatchables", "split", "desc", "InputTensor", "Flags"), [None], "[0]: expected one of "
         "NONE, OWNED_BY_DML, got null"),
        (("dispatchables", "split", "desc", "InputTensor", "DataType"), True, ", got true"),
        (("dispatchables", "split", "executionFlags"), [[None, "a"]], "got [null, 'a']"),
        (("commands", 0, "bindings"), [None, True], "expected an object, got [null, true]"),
        ((), None, "Expected an object, got null."),
    ],
)  # fmt: skip
def test_words(way, value, message, tmp_path):
    path = write_model(tmp_path, replaced(split_model(), way, value))
    found = report(path, dml.Device("cpu"), Limits(tmp_path))
    assert any(message in problem for problem in (*found.unreadable, *found.problems))


def test_from_json():
    with pytest.raises(dml.ModelError) as error:
        dml.from_json({"type": "SPLIT", "InputTensor": None, "OutputTensors": [True], "Axis": None})
    assert "got null" in str(error.value)
    assert "got true" in str(error.value)
    assert "None" not in str(error.value)
