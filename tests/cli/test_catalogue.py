"""`anydml ops` and `anydml devices`: tables that keep their columns, and the same as JSON."""

import json

import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.cli import tables
from anydml.devices.backends import is_name
from anydml.ops._pages import PAGES
from anydml.ops._registry import OPERATORS


@pytest.fixture
def call(capsys):
    def run(*arguments, status=0):
        assert cli.main(arguments) == status
        return capsys.readouterr().out

    return run


def test_operators_as_json(call):
    everything = json.loads(call("ops", "--json"))
    assert [item["name"] for item in everything] == [*OPERATORS]
    for item in everything:
        operator = OPERATORS[item["name"]]
        assert item["descriptor"] == operator.__name__
        assert [f["attribute"] for f in item["fields"]] == [f.attribute for f in operator.fields()]
        assert all(field["meaning"] for field in item["fields"])
        assert "`" not in json.dumps(item["fields"])
        assert item == json.loads(call("ops", item["name"], "--json"))


def test_one_operator_as_json(call):
    output = json.loads(call("ops", "--json", "top_k1"))
    assert (output["name"], output["descriptor"], output["feature_level"]) == (
        "TOP_K1",
        "TopK1",
        "2_1",
    )
    assert output["text"].startswith("TOP_K")
    assert "::" not in output["text"]
    assert output["fields"][4]["meaning"] == "In 1..InputTensor.Sizes[Axis]."  # TopK's
    assert output["fields"][-1] == {
        "name": "AxisDirection", "attribute": "axis_direction", "kind": "AxisDirection",
        "optional": False, "values": ["INCREASING", "DECREASING"],
        "meaning": '"DECREASING" for the largest, "INCREASING" for the smallest.',
    }  # fmt: skip
    (row,) = (row for row in output["support"] if row["feature_level"] == "5_0")
    assert row["tensors"]["OutputIndexTensor"] == {
        "ranks": [1, 8], "data_types": ["UINT64", "UINT32"],
    }  # fmt: skip
    assert len(output["support"]) == len(dml.TopK1.SUPPORT)


def test_an_operator_of_a_family_says_what_it_does(call):
    output = call("ops", "ActivationCelu")
    assert "max(0, x) + min(0, alpha * (exp(x / alpha) - 1))." in output
    assert "`" not in output


def test_a_table_says_which_values_of_a_field_a_row_is_for(call):
    lines = call("ops", "reduce").splitlines()
    (heading,) = (line for line in lines if line.endswith("data types"))
    assert heading.split()[0] == "where"
    assert any(line.startswith("  Function: ARGMIN, ARGMAX") for line in lines)
    assert not any(line.startswith("  where  ") for line in call("ops", "gemm").splitlines())


def test_optional_fields_say_so(call):
    output = json.loads(call("ops", "PADDING1", "--json"))
    optional = {field["name"] for field in output["fields"] if field["optional"]}
    assert optional == {info.name for info in dml.Padding1.fields() if info.optional}


def test_every_operator_of_directml(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    out = call("ops")
    found = {words[0]: words[1] for words in map(str.split, out.splitlines()[4:])}
    assert found == {
        name: PAGES[operator.NAME].level.suffix for name, operator in OPERATORS.items()
    }
    assert call("ops", "--all") == out
    assert call("ops", "--all", "--json") == call("ops", "--json")


def test_every_operator_of_directml_as_json(call):
    everything = {item["name"]: item for item in json.loads(call("ops", "--json"))}
    assert everything.keys() - {"SCATTER_ELEMENTS"} == PAGES.keys()  # the same as SCATTER
    for name, page in PAGES.items():
        assert everything[name]["feature_level"] == page.level.suffix
    reduction = everything["REDUCE"]["support"]
    assert reduction[0]["when"] == {"Function": ["ARGMIN", "ARGMAX"]}
    assert reduction[0]["tensors"]["OutputTensor"] == {"ranks": [4, 4], "data_types": ["UINT32"]}
    assert (everything["SCATTER"]["in_place"], everything["GATHER"]["in_place"]) == (True, False)


def test_devices_as_json(call):
    with dml.num_threads(3):
        cpu, *others = json.loads(call("devices", "--json"))
    assert (cpu["device"], cpu["threads"]) == ("cpu", 3)
    assert cpu["computes_with"]
    assert {"device": "reference", "computes_with": "Python", "threads": 1} in others


def test_fields_have_their_meaning(call):
    out = call("ops", "SPLIT")
    assert "Axis" in out
    assert tables.meanings(dml.Split)["axis"].replace("`", "") in out


ROWS = [["one", "a b c d e f g h", "1"], ["another", "x", "some words in a row"]]


def lines(width):
    return [*tables.table("Title", ["name", "letters", "words"], ROWS, width)]


def test_a_table_without_a_width_has_a_line_for_each_row():
    assert lines(None) == [
        "Title",
        "",
        "  name     letters          words",
        "  -------  ---------------  -------------------",
        "  one      a b c d e f g h  1",
        "  another  x                some words in a row",
    ]


@pytest.mark.parametrize("width", [40, 30, 10, 1, -5])
def test_a_narrow_table_wraps_between_words(width):
    found = lines(width)
    body = found[4:]
    for text in ("another", "one"):
        assert text in " ".join(body)
    assert [line.split()[0] for line in body if not line.startswith("     ")] == ["one", "another"]
    words = " ".join(body).split()
    for row in ROWS:
        for word in " ".join(row).split():
            assert word in words
    assert max(map(len, found)) <= max(width, 39)
    starts = [i for i in range(2, len(found[3])) if found[3][i - 1 : i + 1] == " -"]
    for line in found[2:]:  # every column begins where it does in the heading
        assert all(line[i - 2 : i].strip() == "" for i in starts)


def test_a_wide_table_is_not_stretched():
    assert lines(500) == lines(None)


@pytest.mark.parametrize("columns", ["30", "0", "-3", "x", "99999999999999999999"])
def test_columns_that_the_environment_gives(call, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    out = call("ops")
    assert all(name in out for name in OPERATORS)
    longest = max(map(len, out.splitlines()))
    assert longest <= 80 if columns != "99999999999999999999" else longest > 80


def test_names_of_backends():
    for name in ("cpu", "cuda", "cuda:0", "cuda:12", "reference", "auto"):
        assert is_name(name), name
    for name in ("", "cuda:", "cuda:N", "cuda:-1", "cuda:01", "cuda:0 ", "CPU", "npu"):
        assert not is_name(name), name
