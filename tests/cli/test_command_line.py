"""The command `anydml`: what it prints, where, and its exit status."""

import io
import json
import os
import re
import subprocess
import sys

import pytest

import anydml as dml
from anydml.cli import command as cli
from anydml.documents import models
from anydml.models import files
from anydml.ops._registry import OPERATORS, page_of

TENSOR = {"DataType": "FLOAT32", "Sizes": [4]}
LONG = {"DataType": "FLOAT32", "Sizes": [300]}


def model(**tensor):
    return {
        "resources": {
            "A": {
                "initialValuesDataType": "FLOAT32",
                "initialValues": {"valueStart": 0.5, "valueDelta": 1, "valueCount": 300},
            },
            "Out": {
                "initialValuesDataType": "FLOAT32",
                "initialValues": {"value": 0, "valueCount": 300},
            },
        },
        "dispatchables": {
            "[bold]copy": {
                "type": "SPLIT",
                "InputTensor": LONG | tensor,
                "OutputCount": 1,
                "OutputTensors": [LONG],
                "Axis": 0,
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "[bold]copy",
                "bindings": {"InputTensor": "A", "OutputTensors": "Out"},
            },
            {"type": "print", "resource": "Out"},
            {"type": "writeFile", "resource": "Out", "targetPath": "out.dat"},
        ],
    }


@pytest.fixture
def call(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.json").write_text(json.dumps(model()))

    def run(*arguments, **change):
        if change:
            (tmp_path / "model.json").write_text(json.dumps(model() | change))
        status = cli.main(arguments)
        out, err = capfd.readouterr()
        return status, out, err

    return run


WRITES = "Files are written to 'model.out'.\n"
PRINTED = "Resource 'Out': " + ", ".join(f"{i + 0.5:g}" for i in range(300)) + "\n"


class TestRun:
    def test_it_prints_and_writes(self, call, tmp_path):
        assert call("run", "model.json") == (0, WRITES + PRINTED, "")
        assert (tmp_path / "model.out" / "out.dat").stat().st_size == 1200
        assert {path.name for path in tmp_path.iterdir()} == {"model.json", "model.out"}

    def test_nothing_that_exists_is_replaced(self, call, tmp_path):
        (tmp_path / "model.out").mkdir()
        (tmp_path / "model.out" / "out.dat").write_bytes(b"mine")
        status, out, err = call("run", "model.json")
        assert (status, out) == (1, "")
        assert err == (
            "Error: Output folder 'model.out' exists: remove it, name another by --output-dir, or "
            "let its files be replaced by --overwrite.\n"
        )
        status, out, err = call("run", "model.json", "--output-dir", "model.out")
        assert (status, out) == (1, "")
        assert err == (
            "Error: Command at index 2: File 'model.out/out.dat' cannot be written: it exists "
            "(--overwrite replaces files).\n"
        )
        assert (tmp_path / "model.out" / "out.dat").read_bytes() == b"mine"
        assert call("run", "model.json", "--overwrite") == (0, WRITES + PRINTED, "")
        assert (tmp_path / "model.out" / "out.dat").stat().st_size == 1200

    def test_output_dir(self, call, tmp_path):
        assert call("run", "model.json", "--output-dir", "made/here") == (0, PRINTED, "")
        assert (tmp_path / "made" / "here" / "out.dat").exists()

    def test_input_dir(self, call, tmp_path, monkeypatch):
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "x.bin").write_bytes(b"\1\2\3\4")
        (tmp_path / "x.bin").write_bytes(b"\7")
        read = {"x": {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "x.bin"}}}
        printing = [{"type": "print", "resource": "x"}]
        changed = {"resources": read, "dispatchables": {}, "commands": printing}
        assert call("run", "model.json", **changed) == (0, "Resource 'x': 7\n", "")
        expected = (0, "Resource 'x': 1, 2, 3, 4\n", "")
        assert call("run", "model.json", "--input-dir", "data") == expected
        text = (tmp_path / "model.json").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert call("run", "-", "--input-dir", "data") == expected
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        status, out, err = call("run", "-")
        assert (status, out) == (1, "")
        assert "expected no files: a model from standard input has no folder" in err
        assert call("run", "-", "--input-dir", "none")[0] == 2

    def test_standard_input(self, call, tmp_path, monkeypatch):
        text = (tmp_path / "model.json").read_bytes()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        printed = WRITES.replace("model.out", "stdin.out") + PRINTED
        assert call("run", "-") == (0, printed, "")
        assert (tmp_path / "stdin.out" / "out.dat").stat().st_size == 1200

    def test_warnings(self, call):
        status, out, err = call("run", "model.json", commnads=[])
        assert (status, out) == (0, WRITES + PRINTED)
        assert (
            err == "Warning: Top level: nothing reads member 'commnads'; did you mean 'commands'?\n"
        )

    def test_devices(self, call):
        for device in ("cpu", "reference", "auto"):
            assert call("run", "model.json", "--overwrite", "--device", device)[0] == 0
        status, _, err = call("run", "model.json", "--device", "tpu")
        assert (status, "got 'tpu'" in err) == (2, True)

    def test_bounds_without_a_file(self, call):
        for bound in (("--ulp", "1"), ("--rtol", "0.1"), ("--atol", "0.1")):
            status, _, err = call("run", "model.json", *bound)
            assert (status, "expected --expect RESOURCE=FILE" in err) == (2, True)

    def test_feature_level(self, call):
        for level in ("3_0", "DML_FEATURE_LEVEL_3_0"):
            assert call("run", "model.json", "--overwrite", "--feature-level", level)[0] == 0
        status, out, err = call("run", "model.json", "--feature-level", "2_1")
        assert (status, out) == (1, "")
        assert err.startswith("Error: Dispatchable '[bold]copy' (SPLIT): refused at feature level")
        status, _, err = call("run", "model.json", "--feature-level", "2_7")
        assert (status, "expected one of 1_0, 2_0" in err) == (2, True)

    def test_files_elsewhere(self, call, tmp_path):
        out = {"type": "writeFile", "resource": "Out", "targetPath": str(tmp_path.parent / "o.dat")}
        status, _, err = call("run", "model.json", commands=[out])
        assert status == 1
        assert "expected a file inside folder 'model.out', got" in err
        assert call("run", "model.json", "--output-dir", str(tmp_path.parent))[0] == 0

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("none.json", None, "none.json' cannot be read: No such file or directory"),
            (".", None, "Expected a regular file"),
            ("m.json", b"", "Expected a JSON model of DxDispatch, got an empty file"),
            ("m.json", b"\xff\xfe{\0}\0", "got UTF-16 text: save it as UTF-8"),
            ("m.json", b"[]", "Expected an object, got []"),
            ("m.json", b"[" * 100_000, "nested more than 100 deep"),
        ],
    )
    def test_errors_are_one_message(self, call, tmp_path, name, content, message):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        for command in ("run", "check"):
            status, out, err = call(command, name)
            assert (status, out) == (1, "")
            assert err.startswith("Error: ")
            assert message in err
            assert err.count("\n") == 1

    def test_it_prints_what_came_before_a_failure(self, call, monkeypatch):
        monkeypatch.setattr(files.os, "write", lambda *_: os.stat("none"))
        commands = model()["commands"]
        bad = {"type": "writeFile", "resource": "Out", "targetPath": "x.npy"}
        status, out, err = call("run", "model.json", commands=[*commands[:2], bad])
        assert (status, out) == (1, WRITES + PRINTED)
        assert err.startswith("Error: Command at index 2: File 'model.out/x.npy' cannot be written")


class TestCheck:
    def test_good(self, call):
        assert call("check", "model.json") == (
            0,
            "Dispatchable '[bold]copy' (SPLIT): accepted at feature level 6_4\n"
            "  Lowest feature level that accepts it: 3_0\n"
            "Command at index 2 writes resource 'Out' to 'model.out/out.dat'.\n",
            "",
        )

    def test_every_dispatchable_and_every_violation(self, call):
        good, broken = model()["dispatchables"]["[bold]copy"], {"type": "ROI_POLING"}
        wide = good | {"InputTensor": LONG | {"DataType": "FLOAT64"}, "OutputTensors": []}
        many = {"broken": broken, "wide": wide, "good": good}
        status, out, _ = call("check", "model.json", "--feature-level", "3_0", dispatchables=many)
        assert status == 1
        assert out.splitlines() == [
            "Dispatchable 'wide' (SPLIT): refused at feature level 3_0",
            "  SPLIT.InputTensor.DataType: expected one of FLOAT32, FLOAT16, INT32, INT16, INT8, "
            "UINT32, UINT16, UINT8 at feature level 3_0 (FLOAT64 from 4_1), got FLOAT64",
            "    try: InputTensor.DataType FLOAT32",
            "  SPLIT.OutputCount: expected at least 1, got 0",
            "  SPLIT.OutputCount: expected 0 (the length of OutputTensors), got 1",
            f"  Page: {page_of('SPLIT')}",
            "  No feature level accepts it",
            "Dispatchable 'good' (SPLIT): accepted at feature level 3_0",
            "  Lowest feature level that accepts it: 3_0",
            "Dispatchable 'broken': type: expected the name of a DirectML operator, got "
            "'ROI_POLING'; did you mean 'ROI_POOLING'? (line 1, column 266)",
            "Command at index 0: Unknown dispatchable '[bold]copy' (line 1, column 637)",
            "Command at index 2 writes resource 'Out' to 'model.out/out.dat'.",
        ]

    def test_what_a_level_lacks(self, call, tmp_path):
        (tmp_path / "model.json").write_text(json.dumps(model(DataType="INT64")))
        status, out, _ = call("check", "model.json")
        assert status == 1
        assert "SPLIT.OutputTensors[0].DataType: expected INT64" in out

    def test_bindings(self, call):
        commands = model()["commands"]
        commands[0]["bindings"]["OutputTensors"] = []
        status, out, _ = call("check", "model.json", commands=commands)
        assert status == 1
        assert "Command at index 0: Bind point 'OutputTensors': Expected 1 resource, got 0 " in out

    def test_nothing_runs(self, call, tmp_path):
        call("check", "model.json")
        call("check", "model.json", "--output-dir", "made", "--overwrite")
        assert [path.name for path in tmp_path.iterdir()] == ["model.json"]

    def test_what_would_be_written(self, call, tmp_path):
        (tmp_path / "model.out").mkdir()
        status, out, err = call("check", "model.json")
        assert (status, err) == (1, "")
        assert "Output folder 'model.out' exists: remove it" in out
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "out.dat").write_bytes(b"mine")
        status, out, _ = call("check", "model.json", "--output-dir", "made")
        assert status == 1
        assert "Command at index 2: File 'made/out.dat' cannot be written: it exists" in out
        status, out, _ = call("check", "model.json", "--output-dir", "made", "--overwrite")
        assert status == 0
        assert "Command at index 2 writes resource 'Out' to 'made/out.dat'.\n" in out

    def test_what_would_stop_a_run(self, call):
        commands = model()["commands"]
        commands[0]["bindings"]["OutputTensors"] = "A"
        commands[2] |= {"targetPath": "out.npy", "dimensions": [301]}
        status, out, _ = call("check", "model.json", commands=commands)
        assert status == 1
        assert "Command at index 0: OutputTensors[0]: expected memory that does not overlap" in out
        assert "Command at index 2: dimensions: expected at most 300" in out
        status, out, _ = call("check", "model.json", "--memory-limit", "100")
        assert status == 1
        assert "(--memory-limit)" in out

    def test_several_models(self, call, tmp_path):
        (tmp_path / "bad.json").write_text('{"commands": []}')
        status, out, err = call("check", "model.json", "bad.json", "model.json")
        assert (status, err) == (
            1,
            "Error: bad.json: resources: expected a value, got none\n"
            "bad.json: dispatchables: expected a value, got none\n",
        )
        assert out.count("accepted at feature level") == 2
        assert [line for line in out.splitlines() if line.endswith(".json:")] == [
            "model.json:", "bad.json:", "model.json:",
        ]  # fmt: skip
        assert call("check", "model.json", "model.json")[0] == 0
        assert call("check")[0] == 2

    def test_json(self, call, tmp_path):
        (tmp_path / "bad.json").write_text("{}")
        status, out, err = call(
            "check", "--json", "model.json", "bad.json", "--feature-level", "2_1", extra=1
        )
        assert (status, err) == (1, "")
        found, bad = json.loads(out)
        (checked,) = found.pop("dispatchables")
        (violation, *_) = checked.pop("violations")
        assert found == {
            "model": "model.json", "good": False, "problems": [], "details": [],
            "warnings": ["Top level: nothing reads member 'extra'."],
            "writes": [{"command": 2, "resource": "Out", "path": "model.out/out.dat"}],
        }  # fmt: skip
        assert checked == {
            "name": "[bold]copy", "operator": "SPLIT", "accepted": False,
            "minimum_feature_level": "3_0", "observed_deviations": [],
        }  # fmt: skip
        assert violation["path"] == "SPLIT.InputTensor.DimensionCount"
        assert violation["got"] == "1"
        assert (bad["good"], bad["problems"][0]) == (False, "resources: expected a value, got none")
        assert json.loads(call("check", "--json", "model.json")[1])[0]["good"] is True


class TestLookingUp:
    def test_ops(self, call):
        status, out, _ = call("ops")
        assert status == 0
        for name in OPERATORS:
            row = rf"^\s*{name}\s+\d_\d\s+\d(\.\.\d)?\s+[A-Z]+\d"
            assert re.search(row, out, re.MULTILINE), name

    @pytest.mark.parametrize("name", ["TOP_K1", "DML_OPERATOR_TOP_K1", "TopK1", "top_k1"])
    def test_one_operator(self, call, name, monkeypatch):
        monkeypatch.setenv("COLUMNS", "120")
        status, out, _ = call("ops", name)
        assert status == 0
        assert out.startswith("DML_OPERATOR_TOP_K1  (anydml.TopK1)\n")
        for text in ("Worked example", "AxisDirection", "one of INCREASING, DECREASING", "5_0"):
            assert text in out

    @pytest.mark.parametrize("name", OPERATORS)
    def test_every_operator(self, call, name):
        _, out, _ = call("ops", name)
        for info in OPERATORS[name].fields():
            assert info.name in out
        assert "[]" not in out

    def test_no_such_operator(self, call):
        status, _, err = call("ops", "FROBNICATE")
        assert (status, "(`anydml ops` lists them)" in err) == (2, True)

    def test_devices(self, call):
        with dml.num_threads(3):
            status, out, _ = call("devices")
        assert status == 0
        assert re.search(r"cpu\s+\S.*\s3\b", out)
        assert re.search(r"reference\s+Python\s+1\b", out)
        assert re.search(r"^Processor: \S", out, re.MULTILINE)
        assert bool(re.search(r"^GPUs: none \(.+\)$", out, re.MULTILINE)) is ("cuda:0" not in out)

    def test_version(self, call):
        assert call("--version") == (0, f"anydml {dml.__version__}\n", "")

    def test_help(self, call):
        status, out, _ = call("--help")
        assert status == 0
        for command in ("run", "check", "ops", "devices"):
            assert re.search(rf"^  {command}\s.*[^.]\.$", out, re.MULTILINE)  # not cut

    @pytest.mark.parametrize("arguments", [["nonsense"], ["run"], ["run", "a", "b"], ["--what"]])
    def test_wrong_usage(self, call, arguments):
        status, out, err = call(*arguments)
        assert (status, out) == (2, "")
        assert "Usage: anydml" in err


class TestProcess:
    def python(self, *arguments, **options):
        return subprocess.run(
            [sys.executable, *arguments], stderr=subprocess.PIPE, check=False, **options
        )

    def test_a_reader_that_goes_away(self, call, tmp_path):
        reading, writing = os.pipe()
        os.close(reading)
        done = self.python("-m", "anydml", "run", "model.json", stdout=writing)
        os.close(writing)
        assert (done.returncode, done.stderr) == (1, b"")

    @pytest.mark.parametrize(
        ("redirected", "status"), [("run model.json >&-", 0), ("run none.json >&- 2>&-", 1)]
    )
    def test_closed_streams(self, call, redirected, status):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m anydml {redirected}"],
            capture_output=True,
            check=False,
        )
        assert done.returncode == status
        assert b"Traceback" not in done.stderr

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
    @pytest.mark.parametrize("unbuffered", ["", pytest.param("1", marks=pytest.mark.slow)])
    def test_a_full_disk(self, call, unbuffered):
        environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
        with open("/dev/full", "wb") as full:
            done = self.python("-m", "anydml", "run", "model.json", stdout=full, env=environment)
        assert done.returncode == 1
        assert done.stderr.startswith(b"Error: ")
        assert done.stderr.count(b"\n") == 1

    def test_output_is_plain_text_without_a_terminal(self, call):
        done = self.python("-m", "anydml", "run", "model.json", stdout=subprocess.PIPE)
        assert done.stdout.decode() == WRITES + PRINTED

    def test_importing_the_package_loads_no_command_line(self):
        code = (
            "import sys, anydml; print([m for m in ('click', 'rich', 'json5') if m in sys.modules])"
        )
        assert self.python("-c", code, stdout=subprocess.PIPE).stdout == b"[]\n"


def test_interrupt(call, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "run_model", interrupted)
    assert call("run", "model.json") == (130, "", "\nError: interrupted\n")


def test_no_memory(call, monkeypatch):
    def exhausted(*_, **__):
        raise MemoryError

    monkeypatch.setattr(models, "run_model", exhausted)
    assert call("run", "model.json") == (1, "", "Error: not enough memory\n")
