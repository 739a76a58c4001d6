"""Values of options that are almost right."""

import json

import pytest

from anydml.cli import command as cli


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    values = {"initialValuesDataType": "UINT8", "initialValues": [1]}
    write = {"type": "writeFile", "resource": "x", "targetPath": "x.bin"}
    model = {"resources": {"x": values}, "dispatchables": {}, "commands": [write]}
    (tmp_path / "m.json").write_text(json.dumps(model))

    def run(*arguments):
        status = cli.main(arguments)
        return status, capfd.readouterr().err

    return run


@pytest.mark.parametrize("count", ["0", "-1", "1e3", "1.0", "", "1000001", "9" * 5000, "٣"])
def test_what_is_no_number_of_repeats(call, count):
    status, err = call("run", "m.json", "--repeat", count)
    assert status == 2
    assert "'--repeat': expected an integer in 1..1000000, got " in err
    assert len(err) < 400


@pytest.mark.parametrize(
    "arguments",
    [["run", ""], ["check", ""], ["check", "m.json", ""], ["run", "m.json", "--output-dir", ""],
     ["check", "m.json", "--output-dir="], ["run", "m.json", "--input-dir", ""]],
)  # fmt: skip
def test_an_empty_path_is_not_the_current_folder(call, tmp_path, arguments):
    status, err = call(*arguments)
    assert status == 2
    assert "expected a path, got ''" in err
    assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
